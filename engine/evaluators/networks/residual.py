"""A residual network for square boards, with a value head and a policy head for each side (kernels).

After D. Silver et al., "Mastering the game of Go without human knowledge" (2017), without normalisation: a 3 x 3
convolution to `filters` planes, then `blocks` of two such convolutions with a skip connection, ReLU throughout. Four
blocks of 32 filters on 7 x 7 have 81,842 weights. The policy head is a 1 x 1 convolution; the value head takes the mean
and maximum of each plane through one hidden layer.

Inputs, top rank first:

    tafl       planes of the attackers' men, the defenders' men, the king, the squares that let him escape, the side to
               move (1 if the attackers), earlier occurrences of the position (2 at most), and plies since the last
               capture (in eighths of 64 plies, 8 at most)
    hex        planes of x, of o, the side to move (1 if x)

Kernels compute in float32 and sum in another order than numpy. Planes have a frame of empty cells around the board; the
values of one cell are adjacent in memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...compile.jit import inline, kernel
from ...compile.simd_f32 import LANES, add_times, load_lanes, store_lanes
from ...games.hex.state import OWNER, OWNER_BITS
from ...games.tafl.adjudication import occurrences
from ...games.tafl.codes import DEFENDING, KING, PIECE
from ...squares import STRIDE

NUMBER = 16
SOURCE = 'D. Silver et al., "Mastering the game of Go without human knowledge", 2017; K. He et al., 2016'
GAMES = ("tafl", "hex")
SCALE = 400 / math.log(10)
OUTPUT = "logit"
LAYERS = ("blocks",)
SIZE, PLANES, FILTERS, BLOCKS, CHANNELS = range(5)
"""Indices of the layout's numbers."""
OPTIONS: Mapping[str, int] = {"blocks": 4, "filters": 32}
RECORD = "policy"
HIDDEN = 32
MOST_REPEATED, QUIET_STEP, MOST_QUIET = 2, 8, 8


def planes(variant: Any) -> int:
    """The number of input planes."""
    return {"tafl": 7, "hex": 3}[variant.game]


def side_plane(variant: Any) -> int:
    """The index of the plane for the side to move."""
    return {"tafl": 4, "hex": 2}[variant.game]


def inputs(variant: Any) -> int:
    """The number of inputs."""
    return planes(variant) * int(variant.files) ** 2


def channels(variant: Any) -> int:
    """The number of policy outputs for each cell."""
    return {"tafl": 4 * (int(variant.files) - 1), "hex": 1}[variant.game]


def shapes(variant: Any, options: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays by name, in the order of the weights."""
    filters = options["filters"]
    if filters % LANES:
        raise ValueError(f"network residual: filters={filters}: expected a multiple of {LANES}")
    if getattr(variant, "swap", False):
        raise ValueError(f"network residual: {variant.name}: expected a variant without the swap rule")
    found: dict[str, tuple[int, ...]] = {"stem": (3, 3, planes(variant), filters), "stem_bias": (filters,)}
    for block in range(1, options["blocks"] + 1):
        for part in ("one", "two"):
            found[f"block{block}_{part}"] = (3, 3, filters, filters)
            found[f"block{block}_{part}_bias"] = (filters,)
    return {
        **found,
        "policy": (2, filters, channels(variant)),
        "policy_bias": (2, channels(variant)),
        "hidden": (2, 2 * filters, HIDDEN),
        "hidden_bias": (2, HIDDEN),
        "value": (2, HIDDEN),
        "value_bias": (2,),
    }


def layout(variant: Any, options: Mapping[str, int]) -> tuple[int, ...]:
    """The sizes that the kernels need: up to 16 integers for `p.shape`."""
    return (variant.files, planes(variant), options["filters"], options["blocks"], channels(variant))


def naive(variant: Any, options: Mapping[str, int], arrays: Mapping[str, Any], position: Any) -> float:
    """The value for side `a` as a logit, using tanh(x) = 2 sigmoid(2 x) - 1."""
    trunk, side = _naive_trunk(variant, options, arrays, position), int(position.side)
    seen = np.concatenate([trunk.mean(axis=(0, 1)), trunk.max(axis=(0, 1))])
    hidden = np.maximum(seen @ arrays["hidden"][side] + arrays["hidden_bias"][side], 0)
    own = float(hidden @ arrays["value"][side] + arrays["value_bias"][side])
    return -2 * own if side else 2 * own


def naive_policy(variant: Any, options: Mapping[str, int], arrays: Mapping[str, Any], position: Any) -> Any:
    """The policy logits of all moves, float64[moves]: a slow, obvious reference for the kernel."""
    trunk, side = _naive_trunk(variant, options, arrays, position), int(position.side)
    return (trunk @ arrays["policy"][side] + arrays["policy_bias"][side]).ravel()


def _naive_trunk(variant: Any, options: Mapping[str, int], arrays: Mapping[str, Any], position: Any) -> Any:
    n = variant.files

    def convolved(x: Any, name: str) -> Any:
        out = np.zeros((n, n, options["filters"])) + arrays[f"{name}_bias"]
        for r in range(n):
            for c in range(n):
                for dr in range(3):
                    for dc in range(3):
                        if 0 <= r + dr - 1 < n and 0 <= c + dc - 1 < n:
                            out[r, c] += x[r + dr - 1, c + dc - 1] @ arrays[name][dr, dc]
        return out

    x = np.moveaxis(naive_inputs(variant, position).reshape(planes(variant), n, n), 0, 2)
    x = np.maximum(convolved(x, "stem"), 0)
    for block in range(1, options["blocks"] + 1):
        inner = np.maximum(convolved(x, f"block{block}_one"), 0)
        x = np.maximum(x + convolved(inner, f"block{block}_two"), 0)
    return x


def naive_inputs(variant: Any, position: Any) -> Any:
    """The inputs, float64[inputs]."""
    from ...squares import file_of, rank_of

    n = variant.files
    seen = np.zeros((planes(variant), n, n))
    groups = {"tafl": ("tcnmg", "TCNMG", "K"), "hex": ("x", "o")}[variant.game]
    for sq, letter in position.pieces():
        for plane, letters in zip(seen, groups, strict=False):
            plane[n - 1 - rank_of(sq), file_of(sq)] = letter in letters
    if variant.game == "tafl":
        goal = position.new_record()[0]["goal"]
        for row in range(n):
            for column in range(n):
                seen[3, row, column] = goal[(n - row) * STRIDE + column + 1]
        seen[5] = min(position.repetitions - 1, MOST_REPEATED)
        seen[6] = min(position.quiet // QUIET_STEP, MOST_QUIET)
    seen[side_plane(variant)] = 1 - int(position.side)
    return seen.ravel()


@inline
def tafl_inputs(p, s):
    """Write the planes of a position to `p.inputs`, a small integer for each cell; returns the number of inputs."""
    n = s.width
    cells = n * n
    earlier = min(occurrences(s, -1) - 1, MOST_REPEATED)
    quiet = min(s.quiet // QUIET_STEP, MOST_QUIET)
    f = 0
    for r in range(n):
        base = (n - r) * STRIDE + 1
        for c in range(n):
            piece = int(s.board[base + c]) & PIECE
            p.inputs[f] = 0 < piece < DEFENDING
            p.inputs[cells + f] = piece > DEFENDING and piece != KING
            p.inputs[2 * cells + f] = piece == KING
            p.inputs[3 * cells + f] = s.goal[base + c] != 0
            p.inputs[4 * cells + f] = 1 - s.side
            p.inputs[5 * cells + f] = earlier
            p.inputs[6 * cells + f] = quiet
            f += 1
    return 7 * cells


@inline
def hex_inputs(p, s):
    """Write the planes of a position to `p.inputs`, a small integer for each cell; returns the number of inputs."""
    n = s.files
    cells = n * n
    f = 0
    for r in range(n):
        base = (n - r) * STRIDE + 1
        for c in range(n):
            owner = int(s.board[base + c]) >> OWNER & OWNER_BITS
            p.inputs[f] = owner == 1
            p.inputs[cells + f] = owner == 2
            p.inputs[2 * cells + f] = 1 - s.side
            f += 1
    return 3 * cells


@inline
def add_lanes(out, at, v):
    """`out[at : at + 32] += v`"""
    store_lanes(out, at, add_times(v, np.float32(1.0), load_lanes(out, at)))


@kernel
def convolve(x, weights, at, out, n, below, filters):
    """Add a 3 x 3 convolution of `x`, float32[n + 2, n + 2, below], and its biases to `out`, [n + 2, n + 2, filters].

    Four cells of a row are computed together; those beyond the board are computed too, and dropped.
    """
    width = n + 2
    bias = at + 9 * below * filters
    for r in range(1, n + 1):
        for begin in range(1, n + 1, 4):
            for part in range(0, filters, LANES):
                one = load_lanes(weights, bias + part)
                two = one
                three = one
                four = one
                for tap in range(9):
                    source = ((r + tap // 3 - 1) * width + begin - 1 + tap % 3) * below
                    row = at + tap * below * filters + part
                    for i in range(source, source + below):
                        w = load_lanes(weights, row)
                        row += filters
                        one = add_times(one, x[i], w)
                        two = add_times(two, x[i + below], w)
                        three = add_times(three, x[i + 2 * below], w)
                        four = add_times(four, x[i + 3 * below], w)
                to = (r * width + begin) * filters + part
                add_lanes(out, to, one)
                if begin + 1 <= n:
                    add_lanes(out, to + filters, two)
                if begin + 2 <= n:
                    add_lanes(out, to + 2 * filters, three)
                if begin + 3 <= n:
                    add_lanes(out, to + 3 * filters, four)
    return bias + filters


@kernel
def rectify(x, n, filters):
    """ReLU, in place, on the inner cells of `x`, float32[n + 2, n + 2, filters]."""
    width = n + 2
    for r in range(1, n + 1):
        for k in range((r * width + 1) * filters, (r * width + n + 1) * filters):
            x[k] = max(x[k], np.float32(0.0))


@kernel
def forward(p, side):
    """Policy and value for the planes in `p.inputs`, with `side` to move."""
    n = p["shape"][SIZE]
    below = p["shape"][PLANES]
    filters = p["shape"][FILTERS]
    width = n + 2
    size = width * width * filters
    cells = n * n
    first = p.units[0]
    second = p.units[1]
    third = p.more
    for k in range(width * width * below):
        second[k] = 0.0
    for k in range(size):
        first[k] = 0.0
    for r in range(n):
        for c in range(n):
            for i in range(below):
                second[((r + 1) * width + c + 1) * below + i] = p.inputs[i * cells + r * n + c]
    at = convolve(second, p.weights, 0, first, n, below, filters)
    rectify(first, n, filters)
    for _ in range(p["shape"][BLOCKS]):
        for k in range(size):
            second[k] = 0.0
            third[k] = 0.0
        at = convolve(first, p.weights, at, third, n, filters, filters)
        rectify(third, n, filters)
        at = convolve(third, p.weights, at, first, n, filters, filters)
        rectify(first, n, filters)
    moves = p["shape"][CHANNELS]
    heads = at + side * filters * moves
    biases = at + 2 * filters * moves + side * moves
    for r in range(n):
        for c in range(n):
            to = (r * n + c) * moves
            source = ((r + 1) * width + c + 1) * filters
            for m in range(moves):
                p.policy[to + m] = p.weights[biases + m]
            for i in range(filters):
                v = first[source + i]
                for m in range(moves):
                    p.policy[to + m] += v * p.weights[heads + i * moves + m]
    at += 2 * (filters + 1) * moves
    for i in range(filters):
        total = np.float32(0.0)
        largest = np.float32(0.0)
        for r in range(1, n + 1):
            for c in range(1, n + 1):
                v = first[(r * width + c) * filters + i]
                total += v
                largest = max(largest, v)
        second[i] = total / np.float32(cells)
        second[filters + i] = largest
    hidden = at + side * 2 * filters * HIDDEN
    biases = at + 4 * filters * HIDDEN + side * HIDDEN
    for h in range(HIDDEN):
        third[h] = p.weights[biases + h]
    for i in range(2 * filters):
        for h in range(HIDDEN):
            third[h] += second[i] * p.weights[hidden + i * HIDDEN + h]
    at += 4 * filters * HIDDEN + 2 * HIDDEN
    value = p.weights[at + 2 * HIDDEN + side]
    for h in range(HIDDEN):
        value += max(third[h], np.float32(0.0)) * p.weights[at + side * HIDDEN + h]
    p.value = value
