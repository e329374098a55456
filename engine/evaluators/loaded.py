"""Evaluators loaded from files: one record for every architecture, and dispatch by its number (kernels).

With one record type a search is compiled once per game for all of them; the dispatch costs a comparison or two per
leaf. A game that no network supports has `zero` alone.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np

from ..catalogue import GAMES
from ..compile.jit import entry, inline
from ..games.hex import kernels  # noqa: F401  binds the verbs that a search calls
from ..games.hex.state import HEX
from ..games.hexapawn.kernels import HEXAPAWN
from ..games.interface import bind
from ..games.tafl.state import TAFL
from ..score import MAX_EVAL
from .networks import hingston2007, hingston2007_2862, linear, linear_tablut, linear_threats, mlp, simple

MOST_WEIGHTS = 1 << 15
MOST_UNITS = mlp.MOST_INPUTS

LOADED = np.dtype(
    [
        ("architecture", "i8"),  # NUMBER of its file in `networks`; 0: every position is worth 0
        ("scale", "f8"),  # centipawns per unit of the value
        ("shape", "i8", (16,)),  # what `layout` returns, then zeros
        ("used", "i8"),  # number of weights
        ("weights", "f8", (MOST_WEIGHTS,)),  # all arrays in order, flattened, then zeros
        ("inputs", "f8", (MOST_UNITS,)),  # scratch
        ("units", "f8", (2, MOST_UNITS)),  # scratch
        ("places", "i8", (MOST_UNITS,)),  # scratch
        ("root_side", "i8"),  # side to move at the root of a search, plus 1; 0: unknown
        ("root_caught", "i8"),  # height of the stack of captures at the root
    ],
    align=True,
)


@entry
def tafl_value(p, s):
    """The value for the attackers."""
    a = p.architecture
    if a == simple.NUMBER:
        return simple.value(p, s)
    if a == hingston2007.NUMBER:
        return hingston2007.value(p, s)
    if a == linear.NUMBER:
        return linear.value(p, s)
    if a == mlp.NUMBER:
        return mlp.value(p, s)
    if a == linear_tablut.NUMBER:
        return linear_tablut.value(p, s)
    if a == linear_threats.NUMBER:
        return linear_threats.value(p, s)
    if a == hingston2007_2862.NUMBER:
        return hingston2007_2862.value(p, s)
    return 0.0


@entry
def hex_value(p, s):
    """The value for side `a`."""
    if p.architecture == mlp.NUMBER:
        return mlp.hex_value(p, s)
    return 0.0


@entry
def hexapawn_value(p, s):
    """The value for white."""
    if p.architecture == mlp.NUMBER:
        return mlp.hexapawn_value(p, s)
    return 0.0


@inline
def centipawns(p, s, x):
    """A value for side `a` as centipawns for the side to move."""
    cp = np.int64(min(max(x * p.scale, -float(MAX_EVAL)), float(MAX_EVAL)))
    return cp if s.side == 0 else -cp


@entry
def tafl_evaluate(p, s):
    """The value for the side to move, in centipawns."""
    return centipawns(p, s, tafl_value(p, s))


@entry
def hex_evaluate(p, s):
    """The value for the side to move, in centipawns."""
    return centipawns(p, s, hex_value(p, s))


@entry
def hexapawn_evaluate(p, s):
    """The value for the side to move, in centipawns."""
    return centipawns(p, s, hexapawn_value(p, s))


@entry
def zero_value(p, s):
    """Every position is worth 0."""
    return 0.0


@entry
def zero_evaluate(p, s):
    """As `zero_value`, in centipawns for the side to move."""
    return 0


_BOUND = {
    "tafl": (TAFL, tafl_value, tafl_evaluate),
    "hex": (HEX, hex_value, hex_evaluate),
    "hexapawn": (HEXAPAWN, hexapawn_value, hexapawn_evaluate),
}
for _game in GAMES:
    if _game in _BOUND:
        _state, _value, _evaluate = _BOUND[_game]
    else:
        _kernels = import_module(f"..games.{_game}.kernels", __package__)
        _state, _value, _evaluate = getattr(_kernels, _game.upper()), zero_value, zero_evaluate
    bind(LOADED, _state, value=_value, evaluate=_evaluate)
