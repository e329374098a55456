"""A weighted sum of the king's escapes, room and pressure, of material and of guarded corners (kernel).

Source: ours, on the counts of `evaluators/king_features.py`, starting from weights set by hand. Every number of escapes
and of hostile neighbours has a weight of its own, and so have attackers and defenders.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from ...compile.jit import kernel
from ...games.tafl.codes import PIECE
from ...games.tafl.movegen import RIGHT, UP
from ...squares import MAX_SIZE
from ..king_features import corner_guards, extract_king_features, hand_weights

NUMBER = 4
SOURCE = "what a king sees from his square, material and guarded corners, weighed one by one"
GAMES = ("tafl",)
SCALE = 1.0
OUTPUT = "value"
START_ATTACKERS, START_DEFENDERS, START_DISTANCE = range(3)
"""Indices of the layout's numbers: men at the start, without the king, and the king's distance from a goal there."""
OPTIONS: Mapping[str, int] = {}

FEATURES = {
    "attacker": 1,  # attackers on the board, less those at the start
    "defender": 1,  # defenders at the start, less those on the board
    "road": 4,  # 0, 1, 2, 3+ goal squares that the king could reach with his next move
    "lane": 1,  # ways to reach a goal in two moves, at most 8
    "distance": 1,  # from the king to the nearest goal, less that at the start
    "room": 1,  # squares that the king can go to, at most 12
    "pressure": 5,  # 0 to 4 neighbour squares of the king hostile to him
    "guard": 1,  # attackers on squares that block a corner
    "tempo": 1,  # 1 if the attackers are to move, else -1
}
"""Names of the features, with the number of weights of each."""
COUNT = sum(FEATURES.values())
_AT = dict(zip(FEATURES, accumulate(FEATURES.values(), initial=0), strict=False))
ATTACKER, DEFENDER, ROAD, LANE, DISTANCE = (
    _AT[name] for name in ("attacker", "defender", "road", "lane", "distance")
)
ROOM, PRESSURE, GUARD, TEMPO = (_AT[name] for name in ("room", "pressure", "guard", "tempo"))


def shapes(variant: Any, options: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays by name, in the order of the weights."""
    return {name: (weights,) for name, weights in FEATURES.items()}


def layout(variant: Any, options: Mapping[str, int]) -> tuple[int, ...]:
    """The sizes that the kernels need: up to 16 integers for `p.shape`."""
    from ...games.tafl.tables import goal_distance

    home = next(sq for sq, letter in variant.start.pieces if letter == "K")
    return (variant.attackers, variant.defenders, goal_distance(variant.rules, home))


def default(variant: Any) -> dict[str, Any]:
    """Weights set by hand, from which learning starts."""
    import numpy as np

    weights = hand_weights(variant)
    return {name: np.atleast_1d(np.array(weights[name], np.float64)) for name in FEATURES}


def naive(variant: Any, options: Mapping[str, int], arrays: Mapping[str, Any], position: Any) -> float:
    """The value for side `a` in float64: a slow, obvious reference for the kernel."""
    seen = counted(variant, position)
    total = sum(float(arrays[name][0]) * number for name, number in seen.items() if FEATURES[name] == 1)
    return total + float(arrays["road"][min(seen["road"], 3)]) + float(arrays["pressure"][seen["pressure"]])


def counted(variant: Any, position: Any) -> dict[str, int]:
    """The features, counted the slow way; roads are not capped at 3."""
    from ...games.tafl.tables import goal_distance

    attackers, defenders, far = layout(variant, {})
    pieces = dict(position.pieces())
    men = "".join(pieces.values())
    state = position.new_record()[0]
    king = next(sq for sq, letter in pieces.items() if letter == "K")
    axes = (RIGHT, UP)
    reach = int(state["reach"][14])
    room, roads, lanes = 0, 0, 0
    for axis in axes:
        for step in (axis, -axis):
            for sq in king_way(state, king, step, reach):
                if state["goal"][sq]:
                    roads += 1
                    continue
                room += 1
                if variant.rules.escape == "corner" or not state["edge"][sq]:
                    other = UP + RIGHT - axis
                    for way in (king_way(state, sq, other), king_way(state, sq, -other)):
                        lanes += bool(way) and bool(state["goal"][way[-1]])
    hostile = [state["board"][king + step] for axis in axes for step in (axis, -axis)]
    return {
        "attacker": len([m for m in men if m.islower()]) - attackers,
        "defender": defenders - len([m for m in men if m.isupper() and m != "K"]),
        "road": roads,
        "lane": min(lanes, 8),
        "distance": goal_distance(variant.rules, king) - far,
        "room": min(room, 12),
        "pressure": sum("K" in letters_of(state["hostile"][c]) for c in hostile),
        "guard": sum(
            pieces.get(int(sq), "K").islower() for sq in state["guard"][: int(state["guards"])].tolist()
        ),
        "tempo": 1 if position.side == 0 else -1,
    }


def king_way(state: Any, start: int, step: int, reach: int = MAX_SIZE) -> list[int]:
    """The squares where the king may stop when he slides from `start`, up to the first goal."""
    found = []
    for sq in range(start + step, start + step * (reach + 1), step):
        cell = int(state["board"][sq])
        if cell & PIECE:
            break
        if cell == 0 or "K" in letters_of(state["stop"][sq]):
            found.append(sq)
        if state["goal"][sq] or not (cell == 0 or "K" in letters_of(state["pass_"][sq])):
            break
    return found


def letters_of(bits: Any) -> str:
    """The pieces of a set of piece codes."""
    from ...games.tafl.codes import LETTERS

    return "".join(letter for code, letter in enumerate(LETTERS) if int(bits) >> code & 1)


def terms(options: Mapping[str, int], params: Any, state: Any) -> list[tuple[str, float]]:
    """What each feature adds to the value; reads the features that the kernel has just left in `inputs`."""
    return parts(FEATURES, params)


def parts(features: Mapping[str, int], params: Any) -> list[tuple[str, float]]:
    """What each feature adds to a weighted sum; `features` maps names to numbers of weights."""
    found, at = [], 0
    for name, weights in features.items():
        part = slice(at, at + weights)
        found.append((name, float(params["weights"][part] @ params["inputs"][part])))
        at += weights
    return found


@kernel
def value(p, s):
    """The value for the attackers, in the unit of the weights (centipawns); leaves the features in `p.inputs`."""
    x = p.inputs
    for i in range(COUNT):
        x[i] = 0.0
    x[ATTACKER] = s.count[0] - p["shape"][START_ATTACKERS]
    x[DEFENDER] = p["shape"][START_DEFENDERS] - (s.count[1] - 1)
    king = s.king
    if king:
        escapes_in_1, escapes_in_2, room, pressure = extract_king_features(s, king)
        x[ROAD + escapes_in_1] = 1.0
        x[LANE] = escapes_in_2
        x[DISTANCE] = s.goal_distance[king] - p["shape"][START_DISTANCE]
        x[ROOM] = room
        x[PRESSURE + pressure] = 1.0
        x[GUARD] = corner_guards(s)
        x[TEMPO] = 1.0 if s.side == 0 else -1.0
    total = 0.0
    for i in range(COUNT):
        total += p.weights[i] * x[i]
    return total
