"""What the hand-written evaluator of tafl counts on a board: ways, nets, men around the king, reach (kernels).

Sets of squares are vectors of rows (`rows.py`). The two sides' sets also stand in the tail of the state's move stack,
where no list of moves ever ends, for what looks at single rows.
"""

from __future__ import annotations

from ..compile.intrinsics import cells_between, ones
from ..compile.jit import inline, kernel
from ..games.interface import MOVES
from ..games.tafl.codes import KING
from ..games.tafl.movegen import DIRECTIONS
from ..rows import HIGH, LOW, across, along, count, differ, high, load, low, raised, single, sunk
from ..squares import STRIDE

ROWS = HIGH
"""Words of a set: row r of the mailbox is word r + 2, so that two rows around any square are words, too."""
SEEN = MOVES - 512 - 32
"""Where `look` writes its counts; the last 512 words of the stack belong to `can_move`."""
ATTACKERS = SEEN - 2 * ROWS
DEFENDERS = SEEN - ROWS

COUNTS = (
    "attackers_lost",  # men, from the start of the game
    "defenders_lost",
    "roads",  # goal squares that the king could go to at once, at most 3
    "ways",  # squares from which he sees a goal, one move away, at most 5; none counted where there are roads
    "far_ways",  # the same two moves away, at most 16
    "goals",  # corners, at most 4, that he could reach if the attackers stood still for ever; an edge counts as 4
    "edges",  # edge squares he could so reach, in 32nds of all; 0 where the goals are corners
    "region",  # all squares he could so reach, in 32nds of the board
    "room",  # squares he could go to at once, no goals, at most 14
    "pressure",  # neighbour squares hostile to him
    "near_attackers",  # attackers diagonally beside him
    "far_attackers",  # attackers two rows or columns away
    "beside_defenders",  # defenders orthogonally beside him
    "near_defenders",
    "far_defenders",
    "thin",  # attackers on that of his four sides where they are fewest, at most 8
    "empty",  # how many of his four sides have none
    "attackers_reach",  # squares that attackers could go to at once, in 32nds of the board; rows and columns apart
    "defenders_reach",
    "to_move",  # 0 attackers, 1 defenders
)
"""What `look` counts, in the order in which it writes."""


@inline
def go(start, free, n, reach):
    """The squares of `free` that pieces on `start` go to, at most `reach` steps, with those on which they stand."""
    if reach >= n:
        return along(start, free) | across(start, free)
    left = right = up = down = start
    for _ in range(reach):
        left = left | free & left << 1
        right = right | free & right >> 1
        up = up | free & raised(up)
        down = down | free & sunk(down)
    return free & (left | right | up | down)


@inline
def flood(grown, free):
    """The set as it has grown, square by square, as far as `free` goes."""
    while True:
        before = grown
        grown = grown | along(grown, free)
        grown = grown | across(grown, free)
        if not differ(grown, before):
            return grown


@inline
def place(s, n):
    """Write the rows of each side's pieces."""
    w = s.moves
    for i in range(ROWS):
        w[ATTACKERS + i] = 0
        w[DEFENDERS + i] = 0
    inside = (2 << n) - 2
    for row in range(1, n + 1):
        w[ATTACKERS + row + 2] = cells_between(s.board, row * STRIDE, 1, 7) & inside
        w[DEFENDERS + row + 2] = cells_between(s.board, row * STRIDE, 9, KING) & inside


@inline
def ways(p, s, n, attackers, defenders):
    """Roads, ways of two and three moves, room, and the net: where the king could go if all attackers stood still for
    ever and his own men made way.
    """
    w = s.moves
    far = s.reach[KING]
    goals = load(attackers, p.goals, 0)
    inside = load(attackers, p.inside, 0)
    free = inside & ~(attackers | defenders)
    row = s.king // STRIDE
    king = single(attackers, row + 2, 1 << (s.king - row * STRIDE))
    one = go(king, free, n, far)
    roads = count(one & goals)
    one = one & ~goals
    ways = far_ways = 0
    if roads == 0:
        goalward = go(goals, free, n, far) & ~goals
        ways = count(one & goalward)
        far_ways = count(go(one, free, n, far) & ~one & goalward)
    w[SEEN + 2] = min(roads, 3)
    w[SEEN + 3] = min(ways, 5)
    w[SEEN + 4] = min(far_ways, 16)
    w[SEEN + 8] = min(count(one), 14)
    net = flood(king | one, inside & ~attackers)
    caught = count(net & goals)
    if s.escape == 0:
        w[SEEN + 5] = min(caught, 4)
        w[SEEN + 6] = 0
    else:
        w[SEEN + 5] = 4 if caught else 0
        w[SEEN + 6] = 32 * caught // max(p.goal_squares, 1)
    w[SEEN + 7] = 32 * count(net) // (n * n)


@inline
def company(s, n):
    """Who stands around the king: beside him, near him, and on which sides there are no attackers."""
    w = s.moves
    king = s.king
    pressure = beside_a = beside_d = 0
    for d in DIRECTIONS:
        c = s.board[king + d]
        q = c & 15
        pressure += (s.hostile[c] >> KING) & 1
        beside_a += 1 <= q <= 5
        beside_d += 9 <= q <= 13
    row = king // STRIDE + 2
    column = king - (row - 2) * STRIDE
    near_a = near_d = far_a = far_d = 0
    for i in range(row - 2, row + 3):
        attackers = w[ATTACKERS + i] << 2 >> column & 31
        defenders = w[DEFENDERS + i] << 2 >> column & 31
        far_a += ones(attackers)
        far_d += ones(defenders)
        if row - 1 <= i <= row + 1:
            near_a += ones(attackers & 14)
            near_d += ones(defenders & 14)
    below = above = left = right = 0
    for i in range(3, n + 3):
        attackers = w[ATTACKERS + i]
        here = ones(attackers)
        if i < row:
            below += here
        elif i > row:
            above += here
        left += ones(attackers & ((1 << column) - 1))
        right += ones(attackers >> (column + 1))
    w[SEEN + 9] = pressure
    w[SEEN + 10] = near_a - beside_a
    w[SEEN + 11] = far_a - near_a
    w[SEEN + 12] = beside_d
    w[SEEN + 13] = near_d - beside_d - 1
    w[SEEN + 14] = far_d - near_d
    w[SEEN + 15] = min(below, above, left, right, 8)
    w[SEEN + 16] = (below == 0) + (above == 0) + (left == 0) + (right == 0)


@inline
def reach(start, free, n, far):
    """How far one side's pieces could go at once, along rows and along columns, in 32nds of the board."""
    if far >= n:
        squares = count(along(start, free)) + count(across(start, free))
    else:
        left = right = up = down = start
        for _ in range(far):
            left = left | free & left << 1
            right = right | free & right >> 1
            up = up | free & raised(up)
            down = down | free & sunk(down)
        squares = count(free & (left | right)) + count(free & (up | down))
    return 32 * squares // (n * n)


@kernel
def survey(p, s, empty):
    """Write the counts that need a king; sets are as high as `empty`."""
    w = s.moves
    n = s.width
    place(s, n)
    attackers = load(empty, w, ATTACKERS)
    defenders = load(empty, w, DEFENDERS)
    ways(p, s, n, attackers, defenders)
    company(s, n)
    free = load(empty, p.free, 0) & ~(attackers | defenders)
    w[SEEN + 17] = reach(attackers, free, n, s.reach[1])
    w[SEEN + 18] = reach(defenders, free, n, s.reach[9])


@kernel
def look(p, s):
    """Write the counts of a position to `s.moves[SEEN:]`; without a king only the first two mean anything."""
    w = s.moves
    w[SEEN] = p.attackers - s.count[0]
    w[SEEN + 1] = p.defenders + 1 - s.count[1]
    w[SEEN + 19] = s.side
    if s.king:
        if s.width + 3 <= LOW:
            survey(p, s, low())
        else:
            survey(p, s, high())
