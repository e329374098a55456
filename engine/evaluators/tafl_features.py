"""Features of a board for tafl's hand-written evaluator: the king's escapes, region and neighbours, mobility (kernels).

Sets of squares are bitboards (`compile/bitboard.py`). `p` is the evaluator's record. Besides the weights it holds the
features and, for code that looks at single rows, both sides' pieces row by row.
"""

from __future__ import annotations

import numpy as np

from ..compile.bitboard import (
    HIGH,
    LOW,
    differ,
    empty_high,
    empty_low,
    fill_files,
    fill_ranks,
    load,
    popcount,
    shift_down,
    shift_up,
    single,
)
from ..compile.intrinsics import cells_between, ones
from ..compile.jit import inline, kernel
from ..games.tafl.codes import D_GUARD, D_SOLDIER, GUARD, KING, PIECE, SOLDIER
from ..games.tafl.movegen import DIRECTIONS
from ..squares import STRIDE

ROWS = HIGH
"""Words of a set: row r of the mailbox is word r + 2, so that the two rows on either side of any square exist."""
FEATURE_NAMES = (
    "attackers_lost",  # men, from the start of the game
    "defenders_lost",
    "escapes_in_1",  # goal squares that the king can reach in one move, at most 3
    "escapes_in_2",  # squares one move away from which he can reach a goal, at most 5; 0 if there are escapes in 1
    "escapes_in_3",  # the same two moves away, at most 16
    "goals",  # corners that he could reach if the attackers never moved; 4 for any square of an edge that is a goal
    "edges",  # edge squares he could reach like this, in 32nds of all; 0 where the goals are corners
    "region",  # all squares he could reach like this, in 32nds of the board
    "room",  # squares he can go to in one move, goals excluded, at most 14
    "pressure",  # neighbour squares hostile to him
    "near_attackers",  # attackers diagonally beside him
    "far_attackers",  # attackers two rows or columns away
    "beside_defenders",  # defenders orthogonally beside him
    "near_defenders",
    "far_defenders",
    "thin",  # attackers on the side of him that has fewest, at most 8
    "empty",  # sides of him without attackers
    "attackers_reach",  # attackers' moves by target square, in 32nds of the board; rows and columns counted separately
    "defenders_reach",
    "to_move",  # 0 attackers, 1 defenders
)
"""What `extract_features` counts."""
FEATURES = np.dtype([(name, "i8") for name in FEATURE_NAMES])


@inline
def slides(start, free, n, steps):
    """The squares of `free` within `steps` steps of the pieces on `start`, together with `start`."""
    if steps >= n:
        return fill_ranks(start, free) | fill_files(start, free)
    left = right = up = down = start
    for _ in range(steps):
        left = left | free & left << 1
        right = right | free & right >> 1
        up = up | free & shift_up(up)
        down = down | free & shift_down(down)
    return free & (left | right | up | down)


@inline
def flood_fill(grown, free):
    """The set of squares connected to `grown` through squares of `free`."""
    while True:
        before = grown
        grown = grown | fill_ranks(grown, free)
        grown = grown | fill_files(grown, free)
        if not differ(grown, before):
            return grown


@inline
def write_bitboards(p, s, n):
    """Write each side's pieces to `p`, row by row."""
    for i in range(ROWS):
        p.attacker_rows[i] = 0
        p.defender_rows[i] = 0
    inside = (2 << n) - 2
    for row in range(1, n + 1):
        p.attacker_rows[row + 2] = cells_between(s.board, row * STRIDE, SOLDIER, GUARD) & inside
        p.defender_rows[row + 2] = cells_between(s.board, row * STRIDE, D_SOLDIER, KING) & inside


@inline
def escapes(p, s, n, attackers, defenders):
    """Write escapes in one, two and three moves, room, and the reachable region: where the king could go if the
    attackers never moved and his own men made way.
    """
    far = s.reach[KING]
    goals = load(attackers, p.goals, 0)
    inside = load(attackers, p.inside, 0)
    free = inside & ~(attackers | defenders)
    row = s.king // STRIDE
    king = single(attackers, row + 2, 1 << (s.king - row * STRIDE))
    one = slides(king, free, n, far)
    in_1 = popcount(one & goals)
    one = one & ~goals
    in_2 = in_3 = 0
    if in_1 == 0:
        goalward = slides(goals, free, n, far) & ~goals
        in_2 = popcount(one & goalward)
        in_3 = popcount(slides(one, free, n, far) & ~one & goalward)
    p.features.escapes_in_1 = min(in_1, 3)
    p.features.escapes_in_2 = min(in_2, 5)
    p.features.escapes_in_3 = min(in_3, 16)
    p.features.room = min(popcount(one), 14)
    region = flood_fill(king | one, inside & ~attackers)
    caught = popcount(region & goals)
    if s.escape == 0:
        p.features.goals = min(caught, 4)
        p.features.edges = 0
    else:
        p.features.goals = 4 if caught else 0
        p.features.edges = 32 * caught // max(p.goal_squares, 1)
    p.features.region = 32 * popcount(region) // (n * n)


@inline
def king_neighbourhood(p, s, n):
    """Write the features of the pieces around the king: beside him, near him, and on each of his sides."""
    king = s.king
    pressure = beside_a = beside_d = 0
    for d in DIRECTIONS:
        c = s.board[king + d]
        q = c & PIECE
        pressure += (s.hostile[c] >> KING) & 1
        beside_a += SOLDIER <= q <= GUARD
        beside_d += D_SOLDIER <= q <= D_GUARD
    row = king // STRIDE + 2
    column = king - (row - 2) * STRIDE
    near_a = near_d = far_a = far_d = 0
    for i in range(row - 2, row + 3):
        attackers = p.attacker_rows[i] << 2 >> column & 31
        defenders = p.defender_rows[i] << 2 >> column & 31
        far_a += ones(attackers)
        far_d += ones(defenders)
        if row - 1 <= i <= row + 1:
            near_a += ones(attackers & 14)
            near_d += ones(defenders & 14)
    below = above = left = right = 0
    for i in range(3, n + 3):
        attackers = p.attacker_rows[i]
        here = ones(attackers)
        if i < row:
            below += here
        elif i > row:
            above += here
        left += ones(attackers & ((1 << column) - 1))
        right += ones(attackers >> (column + 1))
    p.features.pressure = pressure
    p.features.near_attackers = near_a - beside_a
    p.features.far_attackers = far_a - near_a
    p.features.beside_defenders = beside_d
    p.features.near_defenders = near_d - beside_d - 1
    p.features.far_defenders = far_d - near_d
    p.features.thin = min(below, above, left, right, 8)
    p.features.empty = (below == 0) + (above == 0) + (left == 0) + (right == 0)


@inline
def mobility(start, free, n, far):
    """The squares that one side's pieces can move to along rows, plus those along columns, in 32nds of the board."""
    if far >= n:
        squares = popcount(fill_ranks(start, free)) + popcount(fill_files(start, free))
    else:
        left = right = up = down = start
        for _ in range(far):
            left = left | free & left << 1
            right = right | free & right >> 1
            up = up | free & shift_up(up)
            down = down | free & shift_down(down)
        squares = popcount(free & (left | right)) + popcount(free & (up | down))
    return 32 * squares // (n * n)


@kernel
def extract_with_king(p, s, empty):
    """Write the features that need a king, with sets of the height of `empty`."""
    n = s.width
    write_bitboards(p, s, n)
    attackers = load(empty, p.attacker_rows, 0)
    defenders = load(empty, p.defender_rows, 0)
    escapes(p, s, n, attackers, defenders)
    king_neighbourhood(p, s, n)
    free = load(empty, p.free, 0) & ~(attackers | defenders)
    p.features.attackers_reach = mobility(attackers, free, n, s.reach[SOLDIER])
    p.features.defenders_reach = mobility(defenders, free, n, s.reach[D_SOLDIER])


@kernel
def extract_features(p, s):
    """Write the features of a position to `p.features`; without a king only the first two are meaningful."""
    p.features.attackers_lost = p.attackers - s.count[0]
    p.features.defenders_lost = p.defenders + 1 - s.count[1]
    p.features.to_move = s.side
    if s.king:
        if s.width + 3 <= LOW:
            extract_with_king(p, s, empty_low())
        else:
            extract_with_king(p, s, empty_high())
