"""What the king sees from his square, and attackers that guard corners: counts that learned evaluators weigh (kernels).

Shipped evaluator files were learned on exactly these counts: they must not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..compile.jit import inline
from ..games.tafl.codes import KING
from ..games.tafl.movegen import DIRECTIONS
from ..games.tafl.variant import Variant


def hand_weights(variant: Variant) -> Mapping[str, Any]:
    """Centipawns for these counts, set by hand: where learning begins.

    A side's men are worth what makes the start balanced: the fewer a side has, the dearer each is.
    """
    attackers, defenders = max(1, variant.attackers), max(1, variant.defenders)
    # Twelve defenders on a Copenhagen board are worth 100 each; small armies lose more with each man.
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
        if c & 15:
            return False
        if s.goal[t]:
            return s.stop[t] & bit != 0
        if c and not s.pass_[t] & bit:
            return False
        t += d


@inline
def extract_king_features(s, king):
    """What the king sees from his square: escapes in one move and in two, room, pressure."""
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
        # `d` and `sideways` are the two axes: a step sideways from the road leads along the other one.
        sideways = 22 - abs(d)
        while reach:
            c = s.board[t]
            if c & 15:
                break
            stops = c == 0 or (s.stop[t] & bit) != 0
            if s.goal[t]:
                if stops:
                    escapes_in_1 += 1
                break
            if stops:
                room += 1
                if not s.edge[t] or s.escape == 0:
                    if runs_to_goal(s, t, sideways):
                        escapes_in_2 += 1
                    if runs_to_goal(s, t, -sideways):
                        escapes_in_2 += 1
            if c and not s.pass_[t] & bit:
                break
            t += d
            reach -= 1
    return min(escapes_in_1, 3), min(escapes_in_2, 8), min(room, 12), pressure


@inline
def corner_guards(s):
    """Attackers on squares that shut a corner."""
    guards = 0
    for i in range(s.guards):
        q = s.board[s.guard[i]] & 15
        if 1 <= q <= 5:
            guards += 1
    return guards
