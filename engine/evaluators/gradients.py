"""The gradient of a loaded evaluator's value with respect to its weights (kernels).

Gradient learners call `gradient` for the value and its slopes. Each architecture with weights has a `slopes` kernel,
which must run right after `value`: it reads the inputs and units that `value` leaves in the record.
"""

from __future__ import annotations

import numpy as np

from ..compile.jit import entry
from ..games.hex.state import HEX
from ..games.hexapawn.kernels import HEXAPAWN
from ..games.interface import bind
from ..games.tafl.state import TAFL
from . import loaded
from .loaded import LOADED, MOST_UNITS, MOST_WEIGHTS
from .networks import hingston2007, hingston2007_2862, linear, linear_tablut, linear_threats, mlp

GRADIENT = np.dtype(
    [
        ("slope", "f8", (MOST_WEIGHTS,)),  # derivative of the value for side `a` with respect to each weight
        ("units", "f8", (3, MOST_UNITS)),  # scratch
        ("errors", "f8", (2, MOST_UNITS)),  # scratch
    ],
    align=True,
)


@entry
def tafl_gradient(p, s, g):
    """Write the derivative of the value by each weight to `g.slope`; returns the value, for the attackers."""
    x = loaded.tafl_value(p, s)
    a = p.architecture
    if a == linear.NUMBER:
        for i in range(16):
            g.slope[i] = p.inputs[i]
    elif a == linear_threats.NUMBER:
        for i in range(linear_threats.COUNT):
            g.slope[i] = p.inputs[i]
    elif a == linear_tablut.NUMBER:
        linear_tablut.slopes(p, s, g)
    elif a == mlp.NUMBER:
        mlp.slopes(p, g, p["shape"][mlp.FILES] * p["shape"][mlp.RANKS] + 3, 1.0)
    elif a == hingston2007.NUMBER:
        hingston2007.slopes(p, s, g)
    elif a == hingston2007_2862.NUMBER:
        hingston2007_2862.slopes(p, s, g)
    return x


@entry
def hex_gradient(p, s, g):
    """Write the derivative of the value by each weight to `g.slope`; returns the value, for side `a`."""
    x = loaded.hex_value(p, s)
    if p.architecture == mlp.NUMBER:
        mlp.slopes(p, g, mlp.hex_width(p), 1.0 if s.side else -1.0)
    return x


@entry
def hexapawn_gradient(p, s, g):
    """Write the derivative of the value by each weight to `g.slope`; returns the value, for white."""
    x = loaded.hexapawn_value(p, s)
    if p.architecture == mlp.NUMBER:
        mlp.slopes(p, g, 2 * p["shape"][mlp.FILES] * p["shape"][mlp.RANKS] + 3, 1.0)
    return x


bind(LOADED, TAFL, GRADIENT, gradient=tafl_gradient)
bind(LOADED, HEX, GRADIENT, gradient=hex_gradient)
bind(LOADED, HEXAPAWN, GRADIENT, gradient=hexapawn_gradient)
