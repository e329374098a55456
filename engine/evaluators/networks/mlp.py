"""A perceptron with up to three hidden layers, for boards of every game (kernels).

What it sees, the top rank first:

    tafl       N^2 cells (attackers 1, defenders -1, king -2, empty 0), 1 if the defenders are to move, 1 if the
               attackers are, pieces of the side to move on the board. "Tablut Game AI with Temporal Difference
               Learning": 2,701 weights for 7 x 7 and `mlp:50`.
    hex        N^2 cells: 1 for a stone of who moved last, -1 for one of who is to move; the value is that of who moved
               last. M. McCarver, R. LeGrand, "Evolving a Hex-Playing Agent": 616 weights for 11 x 11 and `mlp:5`.
    hexapawn   a cell for each of white's pawns, then of black's, then three times 1 if white is to move: 2mn + 3.

Hidden units of the layers have one activation; the value is the output unit before its sigmoid, for side `a`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ...compile.jit import inline, kernel

NUMBER = 5
SOURCE = '"Tablut Game AI with Temporal Difference Learning"; M. McCarver, R. LeGrand, "Evolving a Hex-Playing Agent"'
GAMES = ("tafl", "hex", "hexapawn")
SCALE = 400 / math.log(10)
OUTPUT = "logit"
LAYERS = ("first", "second", "third")
OPTIONS: Mapping[str, int] = {"first": 50, "second": 0, "third": 0, "activation": 0}
ACTIVATIONS = ("sigmoid", "tanh", "relu", "leaky", "softsign", "softplus", "threshold")
WORDS: Mapping[str, tuple[str, int]] = {word: ("activation", i) for i, word in enumerate(ACTIVATIONS)}


def inputs(variant: Any) -> int:
    """How many numbers it sees."""
    cells: int = variant.files * variant.ranks
    return {"tafl": cells + 3, "hex": cells, "hexapawn": 2 * cells + 3}[variant.game]


def sizes(options: Mapping[str, int]) -> list[int]:
    """Units of each hidden layer."""
    return [options[name] for name in LAYERS if options[name]]


def shapes(variant: Any, options: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    below = inputs(variant)
    for name, units in zip(LAYERS, sizes(options), strict=False):
        found[name] = (units, below)
        found[f"{name}_bias"] = (units,)
        below = units
    return {**found, "output": (below,), "output_bias": (1,)}


def layout(variant: Any, options: Mapping[str, int]) -> tuple[int, ...]:
    return (variant.files, variant.ranks, options["activation"], *sizes(options))


def naive(variant: Any, options: Mapping[str, int], arrays: Mapping[str, Any], position: Any) -> float:
    import numpy as np

    x, sign = _naive_inputs(variant, position)
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


def _naive_inputs(variant: Any, position: Any) -> tuple[Any, int]:
    """What is seen, and 1 or -1 for whom the output speaks."""
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
        return cells({"x": sign, "o": -sign}), sign
    if variant.game == "hexapawn":
        return np.concatenate([cells({"P": 1}), cells({"p": 1}), [1.0 - mover] * 3]), 1
    letters = [letter for _, letter in position.pieces()]
    worth = {letter: -2 if letter == "K" else -1 if letter.isupper() else 1 for letter in letters}
    left = sum(letter.isupper() == bool(mover) for letter in letters)
    return np.concatenate([cells(worth), [mover, 1 - mover, left]]), 1


@inline
def activated(kind, x):
    if kind == 0:
        return 1.0 / (1.0 + math.exp(-x))
    if kind == 1:
        return math.tanh(x)
    if kind == 2:
        return max(x, 0.0)
    if kind == 3:
        return x if x > 0.0 else x * 0.01
    if kind == 4:
        return x / (1.0 + abs(x))
    if kind == 5:
        return max(x, 0.0) + math.log1p(math.exp(-abs(x)))
    return 1.0 if x > 0.0 else 0.0


@kernel
def forward(p, f):
    """The output for the `f` numbers in `p.inputs`, of which most are 0."""
    seen = 0
    for i in range(f):
        if p.inputs[i] != 0.0:
            p.places[seen] = i
            seen += 1
    kind = p["shape"][2]
    units = p["shape"][3]
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
    while layer < 3 and p["shape"][3 + layer]:
        below = units
        units = p["shape"][3 + layer]
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
    n = p["shape"][0]
    f = 0
    for r in range(n):
        base = (n - r) * 21 + 1
        for c in range(n):
            piece = s.board[base + c] & 15
            p.inputs[f] = 0.0 if piece == 0 else -2.0 if piece == 14 else -1.0 if piece & 8 else 1.0
            f += 1
    p.inputs[f] = s.side
    p.inputs[f + 1] = 1 - s.side
    p.inputs[f + 2] = s.count[s.side]
    return forward(p, f + 3)


@kernel
def hex_value(p, s):
    """The value of a Hex position for side `a`."""
    n = p["shape"][0]
    sign = 1.0 if s.side else -1.0
    f = 0
    for r in range(n):
        base = (n - r) * 21 + 1
        for c in range(n):
            owner = int(s.board[base + c]) >> 2 & 3
            p.inputs[f] = 0.0 if owner == 0 else sign if owner == 1 else -sign
            f += 1
    return sign * forward(p, f)


@kernel
def hexapawn_value(p, s):
    """The value of a hexapawn position for white."""
    files = p["shape"][0]
    ranks = p["shape"][1]
    cells = files * ranks
    f = 0
    for r in range(ranks):
        base = (ranks - r) * 21 + 1
        for c in range(files):
            owner = int(s.board[base + c]) >> 5
            p.inputs[f] = 1.0 if owner == 1 else 0.0
            p.inputs[cells + f] = 1.0 if owner == 2 else 0.0
            f += 1
    for i in range(3):
        p.inputs[2 * cells + i] = 1 - s.side
    return forward(p, 2 * cells + 3)


@inline
def slope_of(kind, y):
    """The slope of an activation, from what the unit gives."""
    if kind == 0:
        return y * (1.0 - y)
    if kind == 1:
        return 1.0 - y * y
    if kind == 2:
        return 1.0 if y > 0.0 else 0.0
    if kind == 3:
        return 1.0 if y > 0.0 else 0.01
    if kind == 4:
        return (1.0 - abs(y)) * (1.0 - abs(y))
    if kind == 5:
        return 1.0 - math.exp(-y)
    return 0.0


@kernel
def slopes(p, g, f, sign):
    """The slopes of the output by all weights, times `sign`, into `g.slope`, for the `f` numbers that `forward`
    has just seen. The layers are computed once more: `forward` keeps two at most."""
    kind = p["shape"][2]
    below = f
    at = 0
    layers = 0
    while layers < 3 and p["shape"][3 + layers]:
        units = p["shape"][3 + layers]
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
    # Back from layer to layer: `at` is where the weights of the layer above begin.
    while layers:
        layers -= 1
        units = p["shape"][3 + layers]
        below = p["shape"][2 + layers] if layers else f
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
