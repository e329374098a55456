"""The king's escapes, room and pressure, and the guarded corners: features of learned evaluators (kernels).

Shipped evaluator files were trained on exactly these counts, so they must not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..compile.jit import inline
from ..games.tafl.codes import ESCAPE_CORNER, GUARD, KING, PIECE, SOLDIER
from ..games.tafl.movegen import DIRECTIONS, RIGHT, UP
from ..games.tafl.variant import Variant

MOST_ESCAPES_IN_1, MOST_ESCAPES_IN_2, MOST_ROOM = 3, 8, 12
"""Counts are capped at these."""


def hand_weights(variant: Variant) -> Mapping[str, Any]:
    """Hand-set centipawns for these counts, from which learning starts.

    Each side's men together are worth about the same at the start, so the fewer a side has, the more each is worth.
    """
    attackers, defenders = max(1, variant.attackers), max(1, variant.defenders)
    # Twelve defenders on a Copenhagen board are worth 100 each; in a smaller army each man is worth more.
    whole = 1200 + 40 * (defenders - 12)
    edge = variant.rules.escape == "edge"
    return {
        "attacker": max(30, whole // attackers),
        "defender": max(60, whole // defenders),
        "road": (0, -120, -900, -1200) if edge else (0, -300, -1500, -1800),
        "lane": -6 if edge else -35,
        "distance": 8 if edge else 10,
        "room": -4,
        "pressure": (0, 25, 60, 120, 160) if variant.rules.king_sides == 2 else (0, 12, 35, 90, 120),
        "guard": 0 if edge else 18,
        "tempo": 8,
    }


@inline
def runs_to_goal(s, sq, d):
    """Whether the king, standing on `sq`, could slide in direction `d` onto a goal square."""
    bit = 1 << KING
    t = sq + d
    while True:
        c = s.board[t]
        if c & PIECE:
            return False
        if s.goal[t]:
            return s.stop[t] & bit != 0
        if c and not s.pass_[t] & bit:
            return False
        t += d


@inline
def extract_king_features(s, king):
    """The king's escapes in one move and in two, squares he can go to (each capped), and hostile neighbours."""
    escapes_in_1 = 0
    escapes_in_2 = 0
    room = 0
    pressure = 0
    bit = 1 << KING
    for d in DIRECTIONS:
        c = s.board[king + d]
        if (s.hostile[c] >> KING) & 1:
            pressure += 1
        t = king + d
        reach = s.reach[KING]
        # The axis perpendicular to `d`.
        sideways = UP + RIGHT - abs(d)
        while reach:
            c = s.board[t]
            if c & PIECE:
                break
            stops = c == 0 or (s.stop[t] & bit) != 0
            if s.goal[t]:
                if stops:
                    escapes_in_1 += 1
                break
            if stops:
                room += 1
                if not s.edge[t] or s.escape == ESCAPE_CORNER:
                    if runs_to_goal(s, t, sideways):
                        escapes_in_2 += 1
                    if runs_to_goal(s, t, -sideways):
                        escapes_in_2 += 1
            if c and not s.pass_[t] & bit:
                break
            t += d
            reach -= 1
    return (
        min(escapes_in_1, MOST_ESCAPES_IN_1),
        min(escapes_in_2, MOST_ESCAPES_IN_2),
        min(room, MOST_ROOM),
        pressure,
    )


@inline
def corner_guards(s):
    """The number of attackers on squares that block a corner."""
    guards = 0
    for i in range(s.guards):
        q = s.board[s.guard[i]] & PIECE
        if SOLDIER <= q <= GUARD:
            guards += 1
    return guards
