"""The hand-written evaluator of Hex: two-distances, and how many cells the best ways share.

The two-distance of a cell from an edge is 1 beside the edge and else one more than the second least among its
neighbours: the opponent may take the best one away. Cells count as neighbours also where a chain of one's own stones
joins them. (J. van Rijswijck, Computer Hex: are bees better than fruitflies?, 2000.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import from_dtype
from numba.extending import overload

from .. import verbs
from ..game import AnyVariant
from ..games.hex.kernels import EDGES, HEX, NEIGHBOURS, X, joined
from ..jit import OPTIONS, entry, inline, kernel
from ..squares import CELLS

TERMS = ("distance_a", "distance_d", "width_a", "width_d", "tempo", "win")
"""Names of the terms, in the order in which `terms` writes them."""

MOST = 8999
"""No position is worth more."""
FAR = 30
"""The two-distance of a cell that cannot be reached in two ways."""

DEFAULT = np.dtype(
    [
        ("distance", "i8"),  # per step of the least sum of a cell's two-distances from both edges
        ("width", "i8"),  # per cell with that sum
        ("tempo", "i8"),  # for the side to move
        ("terms", "i8", (8,)),
        # Scratch.
        ("near", "i1", (2, CELLS)),  # two-distances from edge 1 and edge 2; of stones: heard from two sources
        ("heard", "i2", (CELLS,)),  # the first source that reached a cell or stone
        ("queue", "i2", (CELLS,)),
        ("relay", "i2", (2 * CELLS,)),
    ],
    align=True,
)


def parameters(variant: AnyVariant) -> Any:
    """The weights for a variant, in a one-element recarray.

    Fitted to the results of games of the search with itself on 5 to 11 files, so that 100 centipawns are a score of
    64 %: distance and tempo come out alike on all boards, a cell counts for less the more there are.
    """
    record = np.zeros(1, DEFAULT).view(np.recarray)
    p = record[0]
    p["distance"], p["width"], p["tempo"] = 110, 1100 // variant.files**2, 150
    return record


@kernel
def spread(p, s, owner, edge):
    """Write the two-distance of every empty cell from one of its owner's edges (0 or 1) to `p.near[edge]`."""
    bit = 1 + edge
    end = 0
    for i in range(s.files * s.files):
        sq = int(s.cells[i])
        p.heard[sq] = 0
        p.near[edge, sq] = FAR
        if i < s.empty and joined(s, sq, owner) & bit:
            p.near[edge, sq] = 1
            p.queue[end] = sq
            end += 1
    other = owner | (EDGES - bit)
    begin = 0
    while begin < end:
        source = int(p.queue[begin])
        begin += 1
        steps = int(p.near[edge, source]) + 1
        sq = source
        waiting = 0
        while True:
            for d in NEIGHBOURS:
                t = sq + d
                c = int(s.board[t])
                # Stones that reach this edge need no telling: the cells beside them have distance 1.
                if (c == 0 or c == owner or c == other) and p.near[edge, t] == FAR and p.heard[t] != source:
                    if p.heard[t]:
                        p.near[edge, t] = steps
                        if c == 0:
                            p.queue[end] = t
                            end += 1
                    else:
                        p.heard[t] = source
                    if c:
                        p.relay[waiting] = t
                        waiting += 1
            if waiting == 0:
                break
            waiting -= 1
            sq = int(p.relay[waiting])


@kernel
def ways(p, s, side):
    """The least sum of a cell's two-distances, and how many cells have it: sum | number << 8."""
    owner = X << side
    first, second = 0, 1
    spread(p, s, owner, first)
    spread(p, s, owner, second)
    least = 2 * FAR
    number = 0
    for i in range(s.empty):
        sq = int(s.cells[i])
        total = int(p.near[0, sq]) + int(p.near[1, sq])
        if total < least:
            least = total
            number = 0
        if total == least:
            number += 1
    return min(least, FAR) | number << 8


@inline
def wins(s):
    """Whether the side to move can join its edges at once."""
    owner = X << s.side
    for i in range(s.empty):
        if joined(s, int(s.cells[i]), owner) == EDGES:
            return True
    return False


@entry
def terms(p, s):
    """Write the terms into `p.terms`, in centipawns for side `a`; returns their sum.

    Where the side to move wins at once nothing else counts.
    """
    out = p.terms
    if wins(s):
        for i in range(5):
            out[i] = 0
        out[5] = MOST if s.side == 0 else -MOST
        return out[5]
    a = ways(p, s, 0)
    d = ways(p, s, 1)
    out[0] = -p.distance * (a & 255)
    out[1] = p.distance * (d & 255)
    out[2] = p.width * (a >> 8)
    out[3] = -p.width * (d >> 8)
    out[4] = p.tempo if s.side == 0 else -p.tempo
    out[5] = 0
    return out[0] + out[1] + out[2] + out[3] + out[4]


@entry
def evaluate(p, s):
    """The value for the side to move, in centipawns, always far from the values of won games."""
    value = terms(p, s)
    return value if s.side == 0 else -value


PARAMS = from_dtype(DEFAULT)
STATE = from_dtype(HEX)


@overload(verbs.evaluate, jit_options=OPTIONS)
def _evaluate(params, state):
    if params == PARAMS and state == STATE:
        return lambda params, state: evaluate(params, state)


verbs.KERNELS["evaluate", DEFAULT, HEX] = evaluate
