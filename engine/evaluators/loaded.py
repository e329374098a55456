"""Evaluators that are data: one record for every architecture, and the dispatch by its number (kernels).

One record type means that a search is compiled once for all of them; the choice costs a comparison or two a leaf.
"""

from __future__ import annotations

import numpy as np
from numba import from_dtype
from numba.extending import overload

from .. import verbs
from ..games.tafl.state import TAFL
from ..jit import OPTIONS, entry
from .networks import hingston2007, simple

MOST_WEIGHTS = 1 << 15
MOST_UNITS = 1 << 10
MOST = 9000
"""Centipawns that no evaluation exceeds: far from the values of won games."""

LOADED = np.dtype(
    [
        ("architecture", "i8"),  # NUMBER of its file in `networks`; 0: every position is worth nothing
        ("scale", "f8"),  # centipawns per unit of the value
        ("shape", "i8", (16,)),  # what `layout` says
        ("weights", "f8", (MOST_WEIGHTS,)),  # the genome: all arrays in their order, flattened
        ("inputs", "f8", (MOST_UNITS,)),  # scratch
        ("units", "f8", (2, MOST_UNITS)),  # scratch
    ],
    align=True,
)


@entry
def tafl_value(p, s):
    """The value for the attackers."""
    a = p.architecture
    if a == 1:
        return simple.value(p, s)
    if a == 2:
        return hingston2007.value(p, s)
    return 0.0


@entry
def tafl_evaluate(p, s):
    """The value for the side to move, in centipawns."""
    x = tafl_value(p, s) * p.scale
    cp = np.int64(min(max(x, -9000.0), 9000.0))
    return cp if s.side == 0 else -cp


PARAMS = from_dtype(LOADED)
STATE = from_dtype(TAFL)


@overload(verbs.value, jit_options=OPTIONS)
def _value(params, state):
    if params == PARAMS and state == STATE:
        return lambda params, state: tafl_value(params, state)


@overload(verbs.evaluate, jit_options=OPTIONS)
def _evaluate(params, state):
    if params == PARAMS and state == STATE:
        return lambda params, state: tafl_evaluate(params, state)


verbs.KERNELS["value", LOADED, TAFL] = tafl_value
verbs.KERNELS["evaluate", LOADED, TAFL] = tafl_evaluate
