"""A weighted sum of what the hand-written evaluator of tafl looks at (kernel).

Source: the terms of `evaluators/tafl.py`, whose weights make this the same evaluator. Every weight is a weight of its
own: each number of roads, each number of hostile neighbours, attackers and defenders apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...jit import kernel
from ..tafl import around, standing_guards

NUMBER = 4
SOURCE = "the terms of the hand-written evaluator of tafl, weighed one by one"
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
    return {name: (weights,) for name, weights in FEATURES.items()}


def layout(variant: Any, options: Mapping[str, int]) -> tuple[int, ...]:
    from ...games.tafl.tables import goal_distance

    home = next(sq for sq, letter in variant.start.pieces if letter == "K")
    return (variant.attackers, variant.defenders, goal_distance(variant.rules, home))


def default(variant: Any) -> dict[str, Any]:
    """The arrays that make this the hand-written evaluator."""
    import numpy as np

    from ..tafl import parameters

    weights = parameters(variant)[0]
    return {name: np.atleast_1d(np.array(weights[name], np.float64)) for name in FEATURES}


def naive(variant: Any, options: Mapping[str, int], arrays: Mapping[str, Any], position: Any) -> float:
    from ...games.tafl.tables import goal_distance

    attackers, defenders, far = layout(variant, options)
    pieces = dict(position.pieces())
    men = "".join(pieces.values())
    state = position.new_record()[0]
    board = {sq: int(cell) for sq, cell in enumerate(state["board"])}
    king = next(sq for sq, letter in pieces.items() if letter == "K")

    def slide(start: int, step: int, reach: int) -> list[int]:
        """The squares where the king may stop, up to the first goal."""
        found = []
        for sq in range(start + step, start + step * (reach + 1), step):
            if board[sq] & 15 and sq != king:
                break
            free = board[sq] & ~15 == 0
            if free or "K" in _letters(state["stop"][sq]):
                found.append(sq)
            if state["goal"][sq] or not (free or "K" in _letters(state["pass_"][sq])):
                break
        return found

    axes = (1, 21)
    reach = int(state["reach"][14])
    room, roads, lanes = 0, 0, 0
    for axis in axes:
        for step in (axis, -axis):
            for sq in slide(king, step, reach):
                if state["goal"][sq]:
                    roads += 1
                    continue
                room += 1
                if variant.rules.escape == "corner" or not state["edge"][sq]:
                    other = 22 - axis
                    for way in (slide(sq, other, 19), slide(sq, -other, 19)):
                        lanes += bool(way) and bool(state["goal"][way[-1]])
    hostile = [board[king + step] for axis in axes for step in (axis, -axis)]
    seen = {
        "attacker": len([m for m in men if m.islower()]) - attackers,
        "defender": defenders - len([m for m in men if m.isupper() and m != "K"]),
        "lane": min(lanes, 8),
        "distance": goal_distance(variant.rules, king) - far,
        "room": min(room, 12),
        "guard": sum(
            pieces.get(int(sq), "K").islower() for sq in state["guard"][: int(state["guards"])].tolist()
        ),
        "tempo": 1 if position.side == 0 else -1,
    }
    total = sum(float(arrays[name][0]) * number for name, number in seen.items())
    total += float(arrays["road"][min(roads, 3)])
    return total + float(arrays["pressure"][sum("K" in _letters(state["hostile"][c]) for c in hostile)])


def _letters(bits: Any) -> str:
    """The pieces of a set of piece codes."""
    from ...games.tafl.state import LETTERS

    return "".join(letter for code, letter in enumerate(LETTERS) if int(bits) >> code & 1)


def terms(options: Mapping[str, int], params: Any, state: Any) -> list[tuple[str, float]]:
    """What each feature adds to the value; the kernel has just left them in `inputs`."""
    found, at = [], 0
    for name, weights in FEATURES.items():
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
        roads, lanes, room, pressure = around(s, king)
        x[2 + roads] = 1.0
        x[6] = lanes
        x[7] = s.goal_distance[king] - p["shape"][2]
        x[8] = room
        x[9 + pressure] = 1.0
        x[14] = standing_guards(s)
        x[15] = 1.0 if s.side == 0 else -1.0
    total = 0.0
    for i in range(16):
        total += p.weights[i] * x[i]
    return total
