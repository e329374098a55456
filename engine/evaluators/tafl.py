"""The hand-written evaluator of tafl: a weighted sum of the features of `tafl_features` and of where men stand.

Parameters are one record of weights in sixteenths of a centipawn, read by `tafl_weights.py`; positive terms are good
for the attackers. The kernels are generic over board sizes and goals: what a goal, a wall or a hostile neighbour is
comes from the rule tables.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compile.jit import entry
from ..games.interface import bind
from ..games.tafl.codes import KING, PIECE_CODES
from ..games.tafl.state import CORE, TAFL
from ..games.tafl.tables import template
from ..games.tafl.variant import Variant
from ..score import MAX_EVAL
from ..squares import CELLS, STRIDE, squares
from .tafl_features import FEATURES, ROWS, extract_features
from .tafl_weights import squares_alike, weights_for

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
)
"""Names of the terms, in the order in which `terms` writes them."""

WEIGHTS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("lost", (2, 2)),  # a man lost: attackers, defenders; each of the first half, each of the rest
    ("post", (2, 15)),  # a man on each kind of square: attackers, defenders
    ("king", (15,)),  # the king there
    ("road", (2, 4)),  # attackers, defenders to move: 0, 1, 2, 3+ escapes in 1
    ("way", (2, 2)),  # escapes in 2; attackers, defenders to move: the first, each more
    ("far_way", (2, 2)),  # escapes in 3; attackers, defenders to move: the first, each
    ("goal", (5,)),  # 0 to 4 goals within the king's reach
    ("edge", ()),  # each 32nd of the edge within his reach
    ("region", ()),  # each 32nd of the board within his reach
    ("pressure", (5,)),  # 0 to 4 neighbour squares hostile to the king
    ("near", (5,)),  # near and far attackers; defenders beside the king, near, far
    ("thin", ()),  # each attacker on the king's emptiest side
    ("empty", ()),  # each side of the king without attackers
    ("room", ()),  # each square the king could go to
    ("reach", (2,)),  # each 32nd of the board that attackers, defenders could go to
    ("tempo", ()),  # to be to move
    ("level", ()),  # always
)
"""Names of the weights with their shapes, as the files of weights have them: those of measured sets never change."""

DEFAULT = np.dtype(
    [
        *((name, "i8", shape) if shape else (name, "i8") for name, shape in WEIGHTS),
        ("attackers", "i8"),  # men at the start
        ("defenders", "i8"),
        ("goal_squares", "i8"),
        ("square", "i2", (3, CELLS)),  # what a square is worth: to attackers, defenders, the king
        ("inside", "i4", (ROWS,)),  # squares where the king may stop, as `tafl_features` has sets
        ("free", "i4", (ROWS,)),  # squares where men may
        ("goals", "i4", (ROWS,)),
        ("terms", "i8", (len(TERMS),)),
    ],
    align=True,
)


def parameters(variant: Variant, weights: str = "") -> Any:
    """The weights for a variant, of the newest set or of the one called `weights`, in a one-element recarray."""
    record = np.zeros(1, DEFAULT).view(np.recarray)
    p = record[0]
    for name, values in weights_for(variant, weights).items():
        p[name] = values
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


@entry
def terms(p, s):
    """Write the terms into `p.terms`, in centipawns for the attackers; returns their sum."""
    out = p.terms
    extract_features(p, s)
    stack = s.moves
    side = s.side
    lost_a, lost_d = stack[FEATURES], stack[FEATURES + 1]
    half_a, half_d = p.attackers // 2, p.defenders // 2
    material = p.lost[0, 0] * min(lost_a, half_a) + p.lost[0, 1] * max(lost_a - half_a, 0)
    material += p.lost[1, 0] * min(lost_d, half_d) + p.lost[1, 1] * max(lost_d - half_d, 0)
    out[0] = material >> 4
    king = s.king
    if king == 0:
        for i in range(1, 10):
            out[i] = 0
        return out[0]
    posts = 0
    for i in range(s.count[0]):
        posts += p.square[0, s.pieces[0, i]]
    for i in range(s.count[1]):
        posts += p.square[1, s.pieces[1, i]]
    out[1] = posts - p.square[1, king] >> 4
    out[2] = int(p.square[2, king]) >> 4
    in_2, in_3 = stack[FEATURES + 3], stack[FEATURES + 4]
    escapes = int(p.road[side, stack[FEATURES + 2]])
    if in_2:
        escapes += p.way[side, 0] + p.way[side, 1] * (in_2 - 1)
    if in_3:
        escapes += p.far_way[side, 0] + p.far_way[side, 1] * in_3
    out[3] = escapes >> 4
    out[4] = p.goal[stack[FEATURES + 5]] + p.edge * stack[FEATURES + 6] + p.region * stack[FEATURES + 7] >> 4
    out[5] = p.pressure[stack[FEATURES + 9]] >> 4
    neighbourhood = 0
    for i in range(5):
        neighbourhood += p.near[i] * stack[FEATURES + 10 + i]
    out[6] = neighbourhood >> 4
    out[7] = p.thin * stack[FEATURES + 15] + p.empty * stack[FEATURES + 16] >> 4
    out[8] = (
        p.room * stack[FEATURES + 8] + p.reach[0] * stack[FEATURES + 17] + p.reach[1] * stack[FEATURES + 18]
        >> 4
    )
    out[9] = p.level + (p.tempo if side == 0 else -p.tempo) >> 4
    total = 0
    for i in range(10):
        total += out[i]
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
