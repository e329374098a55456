"""A multi-layer perceptron with up to three hidden layers, for every game (kernels).

Inputs, top rank first:

    tafl       N^2 cells (attackers 1, defenders -1, king -2, empty 0), 1 if the defenders are to move, 1 if the
               attackers are, pieces of the side to move on the board. "Tablut Game AI with Temporal Difference
               Learning": 2,701 weights for 7 x 7 and `mlp:50`.
    hex        N^2 cells: 1 for a stone of the side that moved last, -1 for one of the side to move; the output is the
               value for the side that moved last. M. McCarver, R. LeGrand, "Evolving a Hex-Playing Agent": 616 weights
               for 11 x 11 and `mlp:5`.
               `planes`: N^2 cells for the stones of the side that moved last, then N^2 for the other side's. `edges`:
               the same inputs again, restricted to stones connected to an edge of their owner. `transposed`: the side
               that connects left and right sees the board reflected in the long diagonal, so that both play from top
               to bottom.
    hexapawn   mn cells for white's pawns, mn for black's, then three copies of 1 if white is to move: 2mn + 3.

All hidden units have the same activation; the value is the output unit before its sigmoid, for side `a`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ...compile.jit import inline, kernel
from ...games.hex.state import EDGES as HEX_EDGES
from ...games.hex.state import OWNER as HEX_OWNER
from ...games.hex.state import OWNER_BITS
from ...games.hexapawn.kernels import OWNER
from ...games.tafl.codes import DEFENDING, KING, PIECE
from ...squares import STRIDE

NUMBER = 5
SOURCE = '"Tablut Game AI with Temporal Difference Learning"; M. McCarver, R. LeGrand, "Evolving a Hex-Playing Agent"'
GAMES = ("tafl", "hex", "hexapawn")
SCALE = 400 / math.log(10)
OUTPUT = "logit"
LAYERS = ("first", "second", "third")
MOST_LAYERS = len(LAYERS)
READINGS = ("planes", "edges", "transposed")
"""Options for the inputs of a Hex board; the bits of the layout's `READING`, in this order."""
PLANES, EDGES, TRANSPOSED = 1, 2, 4
MOST_INPUTS = 1 << 10
FILES, RANKS, ACTIVATION, UNITS, READING = 0, 1, 2, 3, 6
"""Indices of the layout's numbers; those of the layers' units begin at `UNITS`."""
OPTIONS: Mapping[str, int] = {
    "first": 50, "second": 0, "third": 0, "activation": 0, **dict.fromkeys(READINGS, 0),
}  # fmt: skip
ACTIVATIONS = ("sigmoid", "tanh", "relu", "leaky", "softsign", "softplus", "threshold")
SIGMOID, TANH, RELU, LEAKY, SOFTSIGN, SOFTPLUS, THRESHOLD = range(len(ACTIVATIONS))
LEAK = 0.01
"""The slope of `leaky` below 0."""
WORDS: Mapping[str, tuple[str, int]] = {
    **{word: ("activation", i) for i, word in enumerate(ACTIVATIONS)},
    **{word: (word, 1) for word in READINGS},
}


def inputs(variant: Any, options: Mapping[str, int]) -> int:
    """The number of inputs; ValueError for an input option of another game."""
    cells: int = variant.files * variant.ranks
    read = [word for word in READINGS if options[word]]
    if variant.game == "hex":
        seen = cells * (1 + options["planes"]) * (1 + options["edges"])
        if seen > MOST_INPUTS:
            raise ValueError(f"network mlp: {seen} inputs: expected at most {MOST_INPUTS}")
        return seen
    if read:
        raise ValueError(f"network mlp: {read[0]}: expected a variant of hex, not {variant.game}")
    return cells + 3 if variant.game == "tafl" else 2 * cells + 3


def sizes(options: Mapping[str, int]) -> list[int]:
    """Units of each hidden layer."""
    return [options[name] for name in LAYERS if options[name]]


def shapes(variant: Any, options: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays by name, in the order of the weights."""
    found: dict[str, tuple[int, ...]] = {}
    below = inputs(variant, options)
    for name, units in zip(LAYERS, sizes(options), strict=False):
        found[name] = (units, below)
        found[f"{name}_bias"] = (units,)
        below = units
    return {**found, "output": (below,), "output_bias": (1,)}


def layout(variant: Any, options: Mapping[str, int]) -> tuple[int, ...]:
    """The sizes that the kernels need: up to 16 integers for `p.shape`."""
    units = (sizes(options) + [0] * len(LAYERS))[: len(LAYERS)]
    reading = sum(options[word] << bit for bit, word in enumerate(READINGS))
    return (variant.files, variant.ranks, options["activation"], *units, reading)


def naive(variant: Any, options: Mapping[str, int], arrays: Mapping[str, Any], position: Any) -> float:
    """The value for side `a` in float64: a slow, obvious reference for the kernel."""
    import numpy as np

    x, sign = _naive_inputs(variant, options, position)
    activate = {
        "sigmoid": lambda x: 0.5 + 0.5 * math.tanh(x / 2),
        "tanh": math.tanh,
        "relu": lambda x: max(x, 0.0),
        "leaky": lambda x: x if x > 0 else x / 100,
        "softsign": lambda x: x / (1 + abs(x)),
        "softplus": lambda x: max(x, 0.0) + math.log1p(math.exp(-abs(x))),
        "threshold": lambda x: float(x > 0),
    }[ACTIVATIONS[options["activation"]]]
    for name, _ in zip(LAYERS, sizes(options), strict=False):
        x = np.array(
            [activate(float(w @ x + b)) for w, b in zip(arrays[name], arrays[f"{name}_bias"], strict=True)]
        )
    return sign * float(arrays["output"] @ x + arrays["output_bias"][0])


def _naive_inputs(variant: Any, options: Mapping[str, int], position: Any) -> tuple[Any, int]:
    """The inputs, float64[inputs], and 1 if the output is the value for side `a`, -1 if for side `d`."""
    import numpy as np

    from ...squares import file_of, rank_of

    def cells(worth: Mapping[str, int]) -> Any:
        board = np.zeros((variant.ranks, variant.files))
        for sq, letter in position.pieces():
            board[variant.ranks - 1 - rank_of(sq), file_of(sq)] = worth.get(letter, 0)
        return board.ravel()

    mover = int(position.side)
    if variant.game == "hex":
        sign = 1 if mover == 1 else -1
        whole = cells({"x": sign, "o": -sign}).reshape(variant.ranks, variant.files)
        seen = [whole, whole * _naive_joined(whole, sign)] if options["edges"] else [whole]
        if options["transposed"] and mover == 0:
            seen = [plane.T for plane in seen]
        if options["planes"]:
            seen = [part for plane in seen for part in (plane > 0, plane < 0)]
        return np.array(seen, float).ravel(), sign
    if variant.game == "hexapawn":
        return np.concatenate([cells({"P": 1}), cells({"p": 1}), [1.0 - mover] * 3]), 1
    letters = [letter for _, letter in position.pieces()]
    worth = {letter: -2 if letter == "K" else -1 if letter.isupper() else 1 for letter in letters}
    left = sum(letter.isupper() == bool(mover) for letter in letters)
    return np.concatenate([cells(worth), [mover, 1 - mover, left]]), 1


def _naive_joined(board: Any, sign: int) -> Any:
    """A mask of the stones connected to an edge of their owner; stones of x have the value `sign` on this board."""
    import numpy as np

    n = len(board)
    joined = np.zeros((n, n), bool)
    for stone, ends in ((sign, [(r, c) for r in (0, n - 1) for c in range(n)]),
                        (-sign, [(r, c) for c in (0, n - 1) for r in range(n)])):  # fmt: skip
        waiting = ends
        while waiting:
            r, c = waiting.pop()
            if 0 <= r < n and 0 <= c < n and board[r, c] == stone and not joined[r, c]:
                joined[r, c] = True
                waiting += [(r - 1, c), (r - 1, c + 1), (r, c - 1), (r, c + 1), (r + 1, c - 1), (r + 1, c)]
    return joined


@inline
def activated(kind, x):
    """The activation `kind`, an index into ACTIVATIONS, of the weighted sum `x`."""
    if kind == SIGMOID:
        return 1.0 / (1.0 + math.exp(-x))
    if kind == TANH:
        return math.tanh(x)
    if kind == RELU:
        return max(x, 0.0)
    if kind == LEAKY:
        return x if x > 0.0 else x * LEAK
    if kind == SOFTSIGN:
        return x / (1.0 + abs(x))
    if kind == SOFTPLUS:
        return max(x, 0.0) + math.log1p(math.exp(-abs(x)))
    return 1.0 if x > 0.0 else 0.0


@kernel
def forward(p, f):
    """The output for the first `f` numbers of `p.inputs`, most of which are 0."""
    seen = 0
    for i in range(f):
        if p.inputs[i] != 0.0:
            p.places[seen] = i
            seen += 1
    kind = p["shape"][ACTIVATION]
    units = p["shape"][UNITS]
    bias = units * f
    for h in range(units):
        at = h * f
        sum_ = 0.0
        for i in range(seen):
            place = p.places[i]
            sum_ += p.weights[at + place] * p.inputs[place]
        p.units[0, h] = activated(kind, sum_ + p.weights[bias + h])
    at = bias + units
    layer = 1
    while layer < MOST_LAYERS and p["shape"][UNITS + layer]:
        below = units
        units = p["shape"][UNITS + layer]
        bias = at + units * below
        source = (layer - 1) & 1
        for h in range(units):
            sum_ = 0.0
            for i in range(below):
                sum_ += p.weights[at + i] * p.units[source, i]
            at += below
            p.units[1 - source, h] = activated(kind, sum_ + p.weights[bias + h])
        at = bias + units
        layer += 1
    source = (layer - 1) & 1
    total = 0.0
    for i in range(units):
        total += p.weights[at + i] * p.units[source, i]
    return total + p.weights[at + units]


@kernel
def value(p, s):
    """The value of a tafl position for the attackers."""
    n = p["shape"][FILES]
    f = 0
    for r in range(n):
        base = (n - r) * STRIDE + 1
        for c in range(n):
            piece = s.board[base + c] & PIECE
            p.inputs[f] = 0.0 if piece == 0 else -2.0 if piece == KING else -1.0 if piece & DEFENDING else 1.0
            f += 1
    p.inputs[f] = s.side
    p.inputs[f + 1] = 1 - s.side
    p.inputs[f + 2] = s.count[s.side]
    return forward(p, f + 3)


@kernel
def hex_inputs(p, s):
    """Write the inputs of a Hex position to `p.inputs`; returns their number."""
    n = p["shape"][FILES]
    reading = p["shape"][READING]
    sign = 1.0 if s.side else -1.0
    # The step from a cell to the next one of its row, and from a row to the next.
    step, row = 1, -STRIDE
    if reading & TRANSPOSED and s.side == 0:
        step, row = -STRIDE, 1
    cells = n * n
    f = 0
    for r in range(n):
        sq = n * STRIDE + 1 + r * row
        for _ in range(n):
            cell = int(s.board[sq])
            owner = cell >> HEX_OWNER & OWNER_BITS
            x = 0.0 if owner == 0 else sign if owner == 1 else -sign
            joined = x if cell & HEX_EDGES else 0.0
            if reading & PLANES:
                p.inputs[f] = max(x, 0.0)
                p.inputs[f + cells] = max(-x, 0.0)
                if reading & EDGES:
                    p.inputs[f + 2 * cells] = max(joined, 0.0)
                    p.inputs[f + 3 * cells] = max(-joined, 0.0)
            else:
                p.inputs[f] = x
                if reading & EDGES:
                    p.inputs[f + cells] = joined
            sq += step
            f += 1
    return hex_width(p)


@inline
def hex_width(p):
    """The number of inputs for a Hex board."""
    reading = p["shape"][READING]
    f = p["shape"][FILES] * p["shape"][RANKS]
    if reading & PLANES:
        f *= 2
    return f * 2 if reading & EDGES else f


@kernel
def hex_value(p, s):
    """The value of a Hex position for side `a`."""
    sign = 1.0 if s.side else -1.0
    return sign * forward(p, hex_inputs(p, s))


@kernel
def hexapawn_value(p, s):
    """The value of a hexapawn position for white."""
    files = p["shape"][FILES]
    ranks = p["shape"][RANKS]
    cells = files * ranks
    f = 0
    for r in range(ranks):
        base = (ranks - r) * STRIDE + 1
        for c in range(files):
            owner = int(s.board[base + c]) >> OWNER
            p.inputs[f] = 1.0 if owner == 1 else 0.0
            p.inputs[cells + f] = 1.0 if owner == 2 else 0.0
            f += 1
    for i in range(3):
        p.inputs[2 * cells + i] = 1 - s.side
    return forward(p, 2 * cells + 3)


@inline
def slope_of(kind, y):
    """The derivative of an activation, from the unit's output `y`."""
    if kind == SIGMOID:
        return y * (1.0 - y)
    if kind == TANH:
        return 1.0 - y * y
    if kind == RELU:
        return 1.0 if y > 0.0 else 0.0
    if kind == LEAKY:
        return 1.0 if y > 0.0 else LEAK
    if kind == SOFTSIGN:
        return (1.0 - abs(y)) * (1.0 - abs(y))
    if kind == SOFTPLUS:
        return 1.0 - math.exp(-y)
    return 0.0


@kernel
def slopes(p, g, f, sign):
    """Write `sign` times the slopes of the output by all weights to `g.slope`, for the last `forward` of `f` inputs.

    The layers are computed again, because `forward` keeps two at most.
    """
    kind = p["shape"][ACTIVATION]
    below = f
    at = 0
    layers = 0
    while layers < MOST_LAYERS and p["shape"][UNITS + layers]:
        units = p["shape"][UNITS + layers]
        bias = at + units * below
        for h in range(units):
            sum_ = p.weights[bias + h]
            for i in range(below):
                seen = p.inputs[i] if layers == 0 else g.units[layers - 1, i]
                if seen != 0.0:
                    sum_ += p.weights[at + i] * seen
            at += below
            g.units[layers, h] = activated(kind, sum_)
        at = bias + units
        below = units
        layers += 1
    for i in range(below):
        g.slope[at + i] = sign * (g.units[layers - 1, i] if layers else p.inputs[i])
        g.errors[(layers - 1) & 1, i] = sign * p.weights[at + i]
    g.slope[at + below] = sign
    # Backpropagation: `at` is the index of the first weight of the layer above.
    while layers:
        layers -= 1
        units = p["shape"][UNITS + layers]
        below = p["shape"][UNITS + layers - 1] if layers else f
        bias = at - units
        at = bias - units * below
        for i in range(below):
            g.errors[1 - (layers & 1), i] = 0.0
        for h in range(units):
            error = g.errors[layers & 1, h] * slope_of(kind, g.units[layers, h])
            g.slope[bias + h] = error
            row = at + h * below
            if layers:
                for i in range(below):
                    g.slope[row + i] = error * g.units[layers - 1, i]
                    g.errors[1 - (layers & 1), i] += error * p.weights[row + i]
            else:
                for i in range(below):
                    g.slope[row + i] = error * p.inputs[i]
