"""A weighted sum of what a king sees from his square, of material and of guarded corners (kernel).

Source: the counts of `evaluators/king_features.py`, with weights set by hand to begin with. Every number
of escapes and of hostile neighbours has its own weight, attackers and defenders apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...compile.jit import kernel
from ..king_features import corner_guards, extract_king_features, hand_weights

NUMBER = 4
SOURCE = "what a king sees from his square, material and guarded corners, weighed one by one"
GAMES = ("tafl",)
SCALE = 1.0
OUTPUT = "value"
OPTIONS: Mapping[str, int] = {}

FEATURES = {
    "attacker": 1,  # attackers on the board, less those at the start
    "defender": 1,  # defenders at the start, less those on the board
    "road": 4,  # 0, 1, 2, 3+ goal squares that the king could reach with his next move
    "lane": 1,  # ways, at most 8, to reach a goal the move after
    "distance": 1,  # from the king to the nearest goal, less that at the start
    "room": 1,  # squares the king could go to, at most 12
    "pressure": 5,  # 0 to 4 neighbour squares of the king hostile to him
    "guard": 1,  # attackers on squares that shut a corner
    "tempo": 1,  # 1 if the attackers are to move, else -1
}
"""Names of the features with their number of weights."""


def shapes(variant: Any, options: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays by name, in the order of the weights."""
    return {name: (weights,) for name, weights in FEATURES.items()}


def layout(variant: Any, options: Mapping[str, int]) -> tuple[int, ...]:
    """What the kernels have to know of the sizes: up to 16 integers for `p.shape`."""
    from ...games.tafl.tables import goal_distance

    home = next(sq for sq, letter in variant.start.pieces if letter == "K")
    return (variant.attackers, variant.defenders, goal_distance(variant.rules, home))


def default(variant: Any) -> dict[str, Any]:
    """Weights set by hand: where learning begins."""
    import numpy as np

    weights = hand_weights(variant)
    return {name: np.atleast_1d(np.array(weights[name], np.float64)) for name in FEATURES}


def naive(variant: Any, options: Mapping[str, int], arrays: Mapping[str, Any], position: Any) -> float:
    """The value for side `a` in float64, slow and obvious: what the kernel must agree with."""
    seen = counted(variant, position)
    total = sum(float(arrays[name][0]) * number for name, number in seen.items() if FEATURES[name] == 1)
    return total + float(arrays["road"][min(seen["road"], 3)]) + float(arrays["pressure"][seen["pressure"]])


def counted(variant: Any, position: Any) -> dict[str, int]:
    """What the features count, the slow way; roads are not cut off at 3."""
    from ...games.tafl.tables import goal_distance

    attackers, defenders, far = layout(variant, {})
    pieces = dict(position.pieces())
    men = "".join(pieces.values())
    state = position.new_record()[0]
    king = next(sq for sq, letter in pieces.items() if letter == "K")
    axes = (1, 21)
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
                    other = 22 - axis
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


def king_way(state: Any, start: int, step: int, reach: int = 19) -> list[int]:
    """The squares where the king may stop on his way from `start`, up to the first goal."""
    found = []
    for sq in range(start + step, start + step * (reach + 1), step):
        cell = int(state["board"][sq])
        if cell & 15:
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
    """What each feature adds to the value; the kernel has just left them in `inputs`."""
    return parts(FEATURES, params)


def parts(features: Mapping[str, int], params: Any) -> list[tuple[str, float]]:
    """What each of the features, named with their number of weights, adds to a weighted sum."""
    found, at = [], 0
    for name, weights in features.items():
        part = slice(at, at + weights)
        found.append((name, float(params["weights"][part] @ params["inputs"][part])))
        at += weights
    return found


@kernel
def value(p, s):
    """The value for the attackers, in centipawns where the weights are; features stay in `p.inputs`."""
    x = p.inputs
    for i in range(16):
        x[i] = 0.0
    x[0] = s.count[0] - p["shape"][0]
    x[1] = p["shape"][1] - (s.count[1] - 1)
    king = s.king
    if king:
        escapes_in_1, escapes_in_2, room, pressure = extract_king_features(s, king)
        x[2 + escapes_in_1] = 1.0
        x[6] = escapes_in_2
        x[7] = s.goal_distance[king] - p["shape"][2]
        x[8] = room
        x[9 + pressure] = 1.0
        x[14] = corner_guards(s)
        x[15] = 1.0 if s.side == 0 else -1.0
    total = 0.0
    for i in range(16):
        total += p.weights[i] * x[i]
    return total
