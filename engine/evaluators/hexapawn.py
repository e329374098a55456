"""The hand-written evaluator of hexapawn: material, advancement, passed pawns, the right to move.

Parameters are one record of centipawn weights; positive terms are good for white (side `a`). Tempi, which decide games
on small boards, are left to the search.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compile.jit import entry, inline
from ..games.base_variant import AnyVariant
from ..games.hexapawn.kernels import HEXAPAWN, OWNER, WALL
from ..games.interface import bind
from ..score import MAX_EVAL
from ..squares import STRIDE

TERMS = ("material", "advancement", "passed", "tempo")
"""Names of the terms."""

DEFAULT = np.dtype(
    [
        ("pawn", "i8"),
        ("step", "i8"),  # per row that a pawn has advanced
        (
            "passed",
            "i8",
        ),  # a pawn that nothing can block or take, one step from the far row; divided by the steps left
        ("tempo", "i8"),
        ("terms", [(term, "i8") for term in TERMS]),
    ],
    align=True,
)


def parameters(variant: AnyVariant) -> Any:
    """The weights, the same for every size, in a one-element recarray."""
    record = np.zeros(1, DEFAULT).view(np.recarray)
    p = record[0]
    p["pawn"], p["step"], p["passed"], p["tempo"] = 100, 4, 300, 10
    return record


@inline
def is_passed(s, sq, side):
    """Whether no enemy pawn stands ahead of the pawn on `sq`, on its own file or on a neighbouring one."""
    step = STRIDE - 2 * STRIDE * side
    enemy = 2 - side
    t = sq + step
    while s.board[t] >> OWNER != WALL >> OWNER:
        if (
            s.board[t] >> OWNER == enemy
            or s.board[t - 1] >> OWNER == enemy
            or s.board[t + 1] >> OWNER == enemy
        ):
            return False
        t += step
    return True


@entry
def terms(p, s):
    """Write the terms into `p.terms`, in centipawns for white; returns their sum."""
    found = p.terms
    steps = 0
    passed = 0
    for side in range(2):
        sign = 1 - 2 * side
        for i in range(s.files):
            sq = int(s.pawns[side, i])
            if sq:
                rank = sq // STRIDE - 1
                gone = s.ranks - 1 - rank if side else rank
                steps += sign * gone
                left = s.ranks - 1 - gone
                if left and is_passed(s, sq, side):
                    passed += sign * (p.passed // left)
    found.material = p.pawn * (s.count[0] - s.count[1])
    found.advancement = p.step * steps
    found.passed = passed
    found.tempo = p.tempo if s.side == 0 else -p.tempo
    return found.material + found.advancement + found.passed + found.tempo


@entry
def evaluate(p, s):
    """The value for the side to move, in centipawns, always far from the values of won games."""
    value = min(max(terms(p, s), -MAX_EVAL), MAX_EVAL)
    return value if s.side == 0 else -value


@entry
def value(p, s):
    """The value for side `a`, in centipawns."""
    return float(terms(p, s))


bind(DEFAULT, HEXAPAWN, evaluate=evaluate, value=value)
