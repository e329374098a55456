"""The hand-written evaluator of tafl: a weighted sum of the features of `tafl_features` and of where men stand.

Parameters are one record of weights in sixteenths of a centipawn, read by `tafl_weights.py`; positive terms are good
for the attackers. The kernels work for all board sizes and goals: the rule tables say what is a goal, a wall or a
hostile neighbour.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compile import structs
from ..compile.jit import entry, kernel
from ..games.interface import bind
from ..games.tafl.codes import KING, PIECE_CODES
from ..games.tafl.state import CORE, TAFL
from ..games.tafl.tables import template
from ..games.tafl.variant import Variant
from ..score import MAX_EVAL
from ..squares import CELLS, STRIDE, squares
from .tafl_features import FEATURES, ROWS, extract_features
from .tafl_siege import COUNTS as SIEGE_COUNTS
from .tafl_siege import PROGRESS, siege_value
from .tafl_siege import WEIGHTS as SIEGE_WEIGHTS
from .tafl_weights import endgame_weights_for, squares_alike, weights_for

TERMS = (
    "material",
    "posts",
    "king",
    "escapes",
    "reachable_region",
    "pressure",
    "king_neighbourhood",
    "sides",
    "reach",
    "tempo",
    "siege",
)
"""Names of the terms."""

WEIGHTS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("lost", (2, 2)),  # per man lost, attackers, defenders: of the first half, of the rest
    ("post", (2, 15)),  # a man on each kind of square: attackers, defenders
    ("king", (15,)),  # the king on each kind of square
    ("road", (2, 4)),  # attackers, defenders to move: 0, 1, 2, 3+ escapes in 1
    ("way", (2, 2)),  # escapes in 2; attackers, defenders to move: the first, each more
    ("far_way", (2, 2)),  # escapes in 3; attackers, defenders to move: the first, each
    ("goal", (5,)),  # 0 to 4 goals within the king's reach
    ("edge", ()),  # per 32nd of the edge within his reach
    ("region", ()),  # per 32nd of the board within his reach
    ("pressure", (5,)),  # 0 to 4 neighbour squares hostile to the king
    ("near", (5,)),  # near and far attackers; defenders beside the king, near, far
    ("thin", ()),  # per attacker on the king's emptiest side
    ("empty", ()),  # per side of the king without attackers
    ("room", ()),  # per square that the king can go to
    ("reach", (2,)),  # per 32nd of the board that attackers, defenders can go to
    ("tempo", ()),  # for the side to move
    ("level", ()),  # always
)
"""Names and shapes of the weights, as in the weight files. Those of measured sets never change."""

DEFAULT = np.dtype(
    [
        *((name, "i8", shape) if shape else (name, "i8") for name, shape in WEIGHTS),
        ("attackers", "i8"),  # men at the start
        ("defenders", "i8"),
        ("goal_squares", "i8"),
        (
            "besieged",
            "i8",
        ),  # a siege begins when the defenders have this many pieces, king included; 0: never
        ("square", "i2", (3, CELLS)),  # the value of a square to attackers, defenders, the king
        ("inside", "i4", (ROWS,)),  # squares where the king may stop, as a set of `tafl_features`
        ("free", "i4", (ROWS,)),  # squares where men may
        ("goals", "i4", (ROWS,)),
        ("features", FEATURES),
        ("attacker_rows", "i4", (ROWS,)),
        ("defender_rows", "i4", (ROWS,)),
        ("siege", SIEGE_COUNTS),
        ("siege_weights", SIEGE_WEIGHTS),
        ("progress_weights", PROGRESS),
        ("terms", [(term, "i8") for term in TERMS]),
    ],
    align=True,
)


def parameters(variant: Variant, weights: str = "") -> Any:
    """The weights for a variant, of the newest set or of the one called `weights`, in a one-element array."""
    record = structs.zeros(DEFAULT)
    p = record[0]
    for name, values in weights_for(variant, weights).items():
        p[name] = values
    siege = endgame_weights_for(variant, "siege", weights)
    for name, weight in siege.items():
        p["siege_weights"][name] = weight
    p["besieged"] = p["siege_weights"]["men"] + 1 if siege else 0
    for name, weight in endgame_weights_for(variant, "progress", weights).items():
        p["progress_weights"][name] = weight
    p["attackers"], p["defenders"] = variant.attackers, variant.defenders
    state = np.frombuffer(template(variant.rules, "tTK") + bytes(TAFL.itemsize - CORE.stop), TAFL)[0]
    kinds = squares_alike(variant.size)
    for sq in squares(variant.size):
        for piece in range(2):
            p["square"][piece, sq] = p["post"][piece, kinds[sq]]
        p["square"][2, sq] = p["king"][kinds[sq]]
        row, bit = sq // STRIDE + 2, 1 << sq % STRIDE
        if _may_stop(state, sq, 1 << KING):
            p["inside"][row] |= bit
            p["goals"][row] |= bit * int(state["goal"][sq])
            p["goal_squares"] += int(state["goal"][sq])
        if _may_stop(state, sq, 1 << PIECE_CODES["t"]):
            p["free"][row] |= bit
    return record


def _may_stop(state: Any, sq: int, piece: int) -> bool:
    """Whether a piece that comes from an ordinary square may end its move on `sq`."""
    entered = int(state["enter"][sq]) if state["region"][sq] else piece
    return bool(int(state["stop"][sq]) & entered & piece)


@kernel
def besiege(p, s):
    """Write the terms that a siege changes. In a separate kernel, so that other positions pay nothing for it."""
    # Never below 0: otherwise defenders would give men away to get here, and attackers would refuse to take them.
    p.terms.siege = max(siege_value(p, s, p.features.goals) >> 4, 0)
    if p.features.goals == 0:
        # The king is cut off from the corners, so their guards are free to leave.
        p.terms.posts = 0


@entry
def terms(p, s):
    """Write the terms into `p.terms`, in centipawns for the attackers; returns their sum."""
    extract_features(p, s)
    seen = p.features
    found = p.terms
    side = s.side
    half_a, half_d = p.attackers // 2, p.defenders // 2
    material = p.lost[0, 0] * min(seen.attackers_lost, half_a) + p.lost[0, 1] * max(
        seen.attackers_lost - half_a, 0
    )
    material += p.lost[1, 0] * min(seen.defenders_lost, half_d) + p.lost[1, 1] * max(
        seen.defenders_lost - half_d, 0
    )
    found.material = material >> 4
    king = s.king
    if king == 0:
        found.posts = found.king = found.escapes = found.reachable_region = found.pressure = 0
        found.king_neighbourhood = found.sides = found.reach = found.tempo = found.siege = 0
        return found.material
    posts = 0
    for i in range(s.count[0]):
        posts += p.square[0, s.pieces[0, i]]
    for i in range(s.count[1]):
        posts += p.square[1, s.pieces[1, i]]
    found.posts = posts - p.square[1, king] >> 4
    found.king = int(p.square[2, king]) >> 4
    escapes = int(p.road[side, seen.escapes_in_1])
    if seen.escapes_in_2:
        escapes += p.way[side, 0] + p.way[side, 1] * (seen.escapes_in_2 - 1)
    if seen.escapes_in_3:
        escapes += p.far_way[side, 0] + p.far_way[side, 1] * seen.escapes_in_3
    found.escapes = escapes >> 4
    found.reachable_region = p.goal[seen.goals] + p.edge * seen.edges + p.region * seen.region >> 4
    found.pressure = p.pressure[seen.pressure] >> 4
    neighbourhood = p.near[0] * seen.near_attackers + p.near[1] * seen.far_attackers
    neighbourhood += p.near[2] * seen.beside_defenders
    neighbourhood += p.near[3] * seen.near_defenders + p.near[4] * seen.far_defenders
    found.king_neighbourhood = neighbourhood >> 4
    found.sides = p.thin * seen.thin + p.empty * seen.empty >> 4
    reach = p.room * seen.room + p.reach[0] * seen.attackers_reach + p.reach[1] * seen.defenders_reach
    found.reach = reach >> 4
    found.tempo = p.level + (p.tempo if side == 0 else -p.tempo) >> 4
    found.siege = 0
    if s.count[1] <= p.besieged:
        besiege(p, s)
    total = found.material + found.posts + found.king + found.escapes + found.reachable_region
    total += found.pressure + found.king_neighbourhood + found.sides + found.reach + found.tempo + found.siege
    return total


@entry
def evaluate(p, s):
    """The value for the side to move, in centipawns, always far from the values of won games."""
    value = terms(p, s)
    value = min(max(value, -MAX_EVAL), MAX_EVAL)
    return value if s.side == 0 else -value


@entry
def value(p, s):
    """The value for side `a`, in centipawns."""
    return float(terms(p, s))


bind(DEFAULT, TAFL, evaluate=evaluate, value=value)
