"""The hand-written evaluator of Hex: the length of each side's shortest paths, and how many cells lie on them.

The length of a path through a cell is the sum of the cell's two-distances from the side's two edges.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compile.jit import entry, inline, kernel
from ..games.base_variant import AnyVariant
from ..games.hex import kernels  # noqa: F401  binds the verbs that a search calls
from ..games.hex.distances import FAR, survey, through
from ..games.hex.state import EDGES, HEX, X, joined
from ..games.interface import bind
from ..score import MAX_EVAL

TERMS = ("distance_a", "distance_d", "width_a", "width_d", "tempo", "win")
"""Names of the terms."""

MOST = MAX_EVAL - 1
"""Values are limited to this."""

DEFAULT = np.dtype(
    [
        ("distance", "i8"),  # per step of a shortest path
        ("width", "i8"),  # per cell on a shortest path
        ("tempo", "i8"),  # for the side to move
        ("terms", [(term, "i8") for term in TERMS]),
    ],
    align=True,
)


COUNT = 8
"""The first bit of the number of cells in what `ways` returns; below it is the length."""
LENGTH = (1 << COUNT) - 1


def parameters(variant: AnyVariant) -> Any:
    """The weights for a variant, in a one-element recarray.

    Fitted to the results of self-play games on boards of 5 to 9 files, so that 100 centipawns are an expected score
    of 64 %. Distance and tempo come out the same on all boards; a cell counts less on a larger one.
    """
    record = np.zeros(1, DEFAULT).view(np.recarray)
    p = record[0]
    p["distance"], p["width"], p["tempo"] = 110, 1100 // variant.files**2, 150
    return record


@kernel
def ways(s, slot, side):
    """The length of a side's shortest paths and the number of cells on them: length | number << COUNT."""
    least = 2 * FAR
    number = 0
    for i in range(s.empty):
        length = through(s, slot, side, int(s.cells[i]))
        if length < least:
            least = length
            number = 0
        if length == least:
            number += 1
    return min(least, FAR) | number << COUNT


@inline
def wins(s):
    """Whether the side to move can connect its edges with its next move."""
    owner = X << s.side
    for i in range(s.empty):
        if joined(s, int(s.cells[i]), owner) == EDGES:
            return True
    return False


@entry
def terms(p, s):
    """Write the terms into `p.terms`, in centipawns for side `a`; returns their sum.

    If the side to move can win at once, nothing else counts.
    """
    found = p.terms
    if wins(s):
        found.distance_a = found.distance_d = found.width_a = found.width_d = found.tempo = 0
        found.win = MOST if s.side == 0 else -MOST
        return found.win
    slot = survey(s)
    a_side, d_side = 0, 1
    a = ways(s, slot, a_side)
    d = ways(s, slot, d_side)
    found.distance_a = -p.distance * (a & LENGTH)
    found.distance_d = p.distance * (d & LENGTH)
    found.width_a = p.width * (a >> COUNT)
    found.width_d = -p.width * (d >> COUNT)
    found.tempo = p.tempo if s.side == 0 else -p.tempo
    found.win = 0
    return found.distance_a + found.distance_d + found.width_a + found.width_d + found.tempo


@entry
def evaluate(p, s):
    """The value for the side to move, in centipawns, always far from the values of won games."""
    value = terms(p, s)
    return value if s.side == 0 else -value


@entry
def value(p, s):
    """The value for side `a`, in centipawns."""
    return float(terms(p, s))


bind(DEFAULT, HEX, evaluate=evaluate, value=value)
