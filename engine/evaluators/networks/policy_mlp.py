"""A multi-layer perceptron with one to four hidden layers and two heads, value and policy (kernels).

Source: "HexapawnZero": 21 - 128 - 128 - 128 - 128 with ReLU, 28 moves and a value; 56,093 weights on 3 x 3.

Inputs, 0 or 1 each, top rank first:

    hexapawn   cells of white's pawns, of black's pawns, then three copies of: white is to move
    hex        cells of x, of o, then: x is to move
    tafl       cells of the attackers' men, of the defenders' men, of the king, then: the attackers are to move

The policy head gives a logit for each move, in the order of the game's `policy.py`; those of the legal moves go through
a softmax. The value head goes through tanh: the expected result for the side to move, from -1 to 1. The first index of
a weight matrix is the input unit, so that kernels add whole rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...compile.jit import inline, kernel
from ...games.hex.state import OWNER as HEX_OWNER
from ...games.hex.state import OWNER_BITS
from ...games.hexapawn.kernels import OWNER
from ...games.tafl.codes import DEFENDING, KING, PIECE
from ...squares import STRIDE

NUMBER = 15
SOURCE = '"HexapawnZero", after D. Silver et al., "Mastering the game of Go without human knowledge", 2017'
GAMES = ("hexapawn", "hex", "tafl")
SCALE = 400 / math.log(10)
OUTPUT = "logit"
LAYERS = ("first", "second", "third", "fourth")
MOST_LAYERS = len(LAYERS)
INPUTS, MOVES, UNITS = range(3)
"""Indices of the layout's numbers; those of the layers' units begin at `UNITS`."""
OPTIONS: Mapping[str, int] = dict.fromkeys(LAYERS, 128)
RECORD = "policy"


def inputs(variant: Any) -> int:
    """The number of inputs."""
    cells: int = variant.files * variant.ranks
    return {"hexapawn": 2 * cells + 3, "hex": 2 * cells + 1, "tafl": 3 * cells + 1}[variant.game]


def sizes(options: Mapping[str, int]) -> list[int]:
    """Units of each hidden layer."""
    return [options[name] for name in LAYERS if options[name]]


def shapes(variant: Any, options: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays by name, in the order of the weights."""
    from ...games import policy_moves

    found: dict[str, tuple[int, ...]] = {}
    below = inputs(variant)
    for name, units in zip(LAYERS, sizes(options), strict=False):
        found[name] = (below, units)
        found[f"{name}_bias"] = (units,)
        below = units
    moves = len(policy_moves(variant))
    return {
        **found,
        "policy": (below, moves),
        "policy_bias": (moves,),
        "value": (below, 1),
        "value_bias": (1,),
    }


def layout(variant: Any, options: Mapping[str, int]) -> tuple[int, ...]:
    """The sizes that the kernels need: up to 16 integers for `p.shape`."""
    from ...games import policy_moves

    return (inputs(variant), len(policy_moves(variant)), *sizes(options))


def naive(variant: Any, options: Mapping[str, int], arrays: Mapping[str, Any], position: Any) -> float:
    """The value for side `a` as a logit, using tanh(x) = 2 sigmoid(2 x) - 1."""
    hidden = _naive_hidden(variant, options, arrays, position)
    own = float(hidden @ arrays["value"][:, 0] + arrays["value_bias"][0])
    return -2 * own if position.side else 2 * own


def naive_policy(variant: Any, options: Mapping[str, int], arrays: Mapping[str, Any], position: Any) -> Any:
    """The policy logits of all moves, float64[moves]: a slow, obvious reference for the kernel."""
    return _naive_hidden(variant, options, arrays, position) @ arrays["policy"] + arrays["policy_bias"]


def _naive_hidden(variant: Any, options: Mapping[str, int], arrays: Mapping[str, Any], position: Any) -> Any:
    x = naive_inputs(variant, position)
    for name, _ in zip(LAYERS, sizes(options), strict=False):
        x = np.maximum(x @ arrays[name] + arrays[f"{name}_bias"], 0)
    return x


def naive_inputs(variant: Any, position: Any) -> Any:
    """The inputs, float64[inputs]."""
    from ...squares import file_of, rank_of

    groups = {"hexapawn": ("P", "p"), "hex": ("x", "o"), "tafl": ("tcnmg", "TCNMG", "K")}[variant.game]
    planes = np.zeros((len(groups), variant.ranks, variant.files))
    for sq, letter in position.pieces():
        for plane, letters in zip(planes, groups, strict=True):
            plane[variant.ranks - 1 - rank_of(sq), file_of(sq)] = letter in letters
    copies = 3 if variant.game == "hexapawn" else 1
    return np.concatenate([planes.ravel(), [1.0 - int(position.side)] * copies])


@inline
def hexapawn_inputs(p, s):
    """Write the inputs of a position to `p.inputs`, 0 or 1 each; returns their number."""
    cells = s.files * s.ranks
    f = 0
    for r in range(s.ranks):
        base = (s.ranks - r) * STRIDE + 1
        for c in range(s.files):
            owner = int(s.board[base + c]) >> OWNER
            p.inputs[f] = owner == 1
            p.inputs[cells + f] = owner == 2
            f += 1
    for i in range(3):
        p.inputs[2 * cells + i] = 1 - s.side
    return 2 * cells + 3


@inline
def hex_inputs(p, s):
    """Write the inputs of a position to `p.inputs`, 0 or 1 each; returns their number."""
    cells = s.files * s.files
    f = 0
    for r in range(s.files):
        base = (s.files - r) * STRIDE + 1
        for c in range(s.files):
            owner = int(s.board[base + c]) >> HEX_OWNER & OWNER_BITS
            p.inputs[f] = owner == 1
            p.inputs[cells + f] = owner == 2
            f += 1
    p.inputs[2 * cells] = 1 - s.side
    return 2 * cells + 1


@inline
def tafl_inputs(p, s):
    """Write the inputs of a position to `p.inputs`, 0 or 1 each; returns their number."""
    cells = s.width * s.width
    f = 0
    for r in range(s.width):
        base = (s.width - r) * STRIDE + 1
        for c in range(s.width):
            piece = int(s.board[base + c]) & PIECE
            p.inputs[f] = 0 < piece < DEFENDING
            p.inputs[cells + f] = piece > DEFENDING and piece != KING
            p.inputs[2 * cells + f] = piece == KING
            f += 1
    p.inputs[3 * cells] = 1 - s.side
    return 3 * cells + 1


@inline
def add_row(p, into, x, at, units):
    """Add `x` times a row of weights to a layer."""
    for h in range(units):
        p.units[into, h] += x * p.weights[at + h]


@inline
def begin_layer(p, into, at, units):
    """Set a layer to its biases."""
    for h in range(units):
        p.units[into, h] = p.weights[at + h]


@kernel
def forward(p, f):
    """Policy and value for the first `f` numbers of `p.inputs`, most of which are 0."""
    units = p["shape"][UNITS]
    begin_layer(p, 0, f * units, units)
    for i in range(f):
        if p.inputs[i]:
            add_row(p, 0, np.float32(p.inputs[i]), i * units, units)
    at = (f + 1) * units
    source = 0
    layer = 1
    while True:
        for h in range(units):
            p.units[source, h] = max(p.units[source, h], np.float32(0.0))
        if layer == MOST_LAYERS or p["shape"][UNITS + layer] == 0:
            break
        below = units
        units = p["shape"][UNITS + layer]
        begin_layer(p, 1 - source, at + below * units, units)
        for i in range(below):
            if p.units[source, i] > np.float32(0.0):
                add_row(p, 1 - source, p.units[source, i], at + i * units, units)
        at += (below + 1) * units
        source = 1 - source
        layer += 1
    moves = p["shape"][MOVES]
    begin_layer(p, 1 - source, at + units * moves, moves)
    for i in range(units):
        if p.units[source, i] > np.float32(0.0):
            add_row(p, 1 - source, p.units[source, i], at + i * moves, moves)
    for m in range(moves):
        p.policy[m] = p.units[1 - source, m]
    at += (units + 1) * moves
    value = p.weights[at + units]
    for i in range(units):
        value += p.weights[at + i] * p.units[source, i]
    p.value = value
