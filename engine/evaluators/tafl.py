"""The hand-written evaluator of tafl: material, the king's ways out, guards of the corners.

Parameters are one record of centipawn weights; positive terms are good for the attackers. It is generic over
board sizes and goals: what counts as a goal, a guard square or a hostile neighbour comes from the rule tables.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import from_dtype
from numba.extending import overload

from .. import verbs
from ..games.tafl.state import KING, TAFL
from ..games.tafl.tables import goal_distance
from ..games.tafl.walk import DIRECTIONS
from ..jit import OPTIONS, entry, inline
from ..variant import Variant

TERMS = ("material", "roads", "distance", "king_room", "pressure", "guards", "tempo")
"""Names of the terms, in the order in which `terms` writes them."""

DEFAULT = np.dtype(
    [
        ("attacker", "i8"),  # worth of an attackers' man
        ("defender", "i8"),  # worth of a defenders' man
        ("attackers", "i8"),  # men at the start: material is 0 there
        ("defenders", "i8"),
        ("road", "i8", (4,)),  # 0, 1, 2, 3+ goal squares the king could reach with his next move
        ("lane", "i8"),  # a square from which he could reach a goal the move after
        ("distance", "i8"),  # per step from the king to the nearest goal, as against the start
        ("far", "i8"),  # that distance at the start
        ("room", "i8"),  # per square the king could go to, at most 12
        ("pressure", "i8", (5,)),  # 0 to 4 neighbour squares of the king hostile to him
        ("guard", "i8"),  # an attacker on a square that shuts a corner
        ("tempo", "i8"),
        ("terms", "i8", (8,)),
    ],
    align=True,
)


def parameters(variant: Variant) -> Any:
    """The weights for a variant, in a one-element recarray.

    A side's men are worth what makes the start balanced: the fewer a side has, the dearer each is.
    """
    record = np.zeros(1, DEFAULT).view(np.recarray)
    p = record[0]
    attackers, defenders = max(1, variant.attackers), max(1, variant.defenders)
    p["attackers"], p["defenders"] = variant.attackers, variant.defenders
    # Twelve defenders on a Copenhagen board are worth 100 each; small armies lose more with each man.
    whole = 1200 + 40 * (defenders - 12)
    p["defender"] = max(60, whole // defenders)
    p["attacker"] = max(30, whole // attackers)
    edge = variant.rules.escape == "edge"
    p["road"] = (0, -120, -900, -1200) if edge else (0, -300, -1500, -1800)
    p["lane"] = -6 if edge else -35
    p["distance"] = 8 if edge else 10
    throne = next(sq for sq, letter in variant.start.pieces if letter == "K")
    p["far"] = goal_distance(variant.rules, throne)
    p["room"] = -4
    needed = variant.rules.king_sides
    p["pressure"] = (0, 25, 60, 120, 160) if needed == 2 else (0, 12, 35, 90, 120)
    p["guard"] = 0 if edge else 18
    p["tempo"] = 8
    return record


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
def around(s, king):
    """What the king sees from his square: roads, lanes, room and pressure, as `DEFAULT` counts them."""
    roads = 0
    lanes = 0
    room = 0
    pressure = 0
    bit = 1 << KING
    for d in DIRECTIONS:
        c = s.board[king + d]
        if (s.hostile[c] >> KING) & 1:
            pressure += 1
        t = king + d
        reach = s.reach[KING]
        # d and across are the two axes: a step sideways from the road leads along the other one.
        across = 22 - abs(d)
        while reach:
            c = s.board[t]
            if c & 15:
                break
            stops = c == 0 or (s.stop[t] & bit) != 0
            if s.goal[t]:
                if stops:
                    roads += 1
                break
            if stops:
                room += 1
                if not s.edge[t] or s.escape == 0:
                    if runs_to_goal(s, t, across):
                        lanes += 1
                    if runs_to_goal(s, t, -across):
                        lanes += 1
            if c and not s.pass_[t] & bit:
                break
            t += d
            reach -= 1
    return min(roads, 3), min(lanes, 8), min(room, 12), pressure


@inline
def standing_guards(s):
    """Attackers on squares that shut a corner."""
    guards = 0
    for i in range(s.guards):
        q = s.board[s.guard[i]] & 15
        if 1 <= q <= 5:
            guards += 1
    return guards


@entry
def terms(p, s):
    """Write the terms into `p.terms`, in centipawns for the attackers; returns their sum."""
    out = p.terms
    material = p.attacker * (s.count[0] - p.attackers) - p.defender * (s.count[1] - 1 - p.defenders)
    out[0] = material
    king = s.king
    if king == 0:
        return material
    roads, lanes, room, pressure = around(s, king)
    out[1] = p.road[roads] + p.lane * lanes
    out[2] = p.distance * (s.goal_distance[king] - p.far)
    out[3] = p.room * room
    out[4] = p.pressure[pressure]
    out[5] = p.guard * standing_guards(s) if p.guard else 0
    out[6] = p.tempo if s.side == 0 else -p.tempo
    total = 0
    for i in range(7):
        total += out[i]
    return total


@entry
def evaluate(p, s):
    """The value for the side to move, in centipawns, always far from the values of won games."""
    value = terms(p, s)
    value = min(max(value, -9000), 9000)
    return value if s.side == 0 else -value


@entry
def value(p, s):
    """The value for side `a`, in centipawns."""
    return float(terms(p, s))


PARAMS = from_dtype(DEFAULT)
STATE = from_dtype(TAFL)


@overload(verbs.evaluate, jit_options=OPTIONS)
def _evaluate(params, state):
    if params == PARAMS and state == STATE:
        return lambda params, state: evaluate(params, state)


verbs.KERNELS["evaluate", DEFAULT, TAFL] = evaluate


@overload(verbs.value, jit_options=OPTIONS)
def _value(params, state):
    if params == PARAMS and state == STATE:
        return lambda params, state: value(params, state)


verbs.KERNELS["value", DEFAULT, TAFL] = value
