"""What the hand-written evaluator of tafl counts on a board: ways, nets, men around the king, reach (kernels).

A set of squares is one word for each row of the board with one bit for each column, so that a whole side slides in
the time of one piece. The sets lie in the tail of the state's move stack, where no list of moves ever ends.
"""

from __future__ import annotations

from ..games.tafl.state import KING
from ..games.tafl.walk import DIRECTIONS
from ..intrinsics import ones
from ..jit import inline, kernel
from ..squares import STRIDE
from ..verbs import MOVES

ROWS = 24
"""Words of a set: row r of the mailbox is word r + 2, so that two rows around any square are words, too."""
SETS = 9
SEEN = MOVES - 512 - 32
"""Where `look` writes its counts; the last 512 words of the stack belong to `can_move`."""
SETS = 10
ATTACKERS, DEFENDERS, ATTACKERS_ACROSS, DEFENDERS_ACROSS, OPEN, ONE, TWO, GOALWARD, NET, SPARE = (
    SEEN - ROWS * (SETS - i) for i in range(SETS)
)

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
def used(n):
    """How many words of a set a board of `n` rows needs: whole vectors, and no constant, which compilers unroll."""
    return (n + 12) & ~7


@inline
def along(word, free):
    """Where pieces of one row slide to within it."""
    left = right = word
    p = q = free
    for k in (1, 2, 4, 8):
        left |= p & left << k
        right |= q & right >> k
        p &= p << k
        q &= q >> k
    left |= p & left << 16
    right |= q & right >> 16
    return (left | right) & free


@inline
def along_limited(word, free, reach):
    """As `along`, for pieces that go at most `reach` steps."""
    left = right = word
    for _ in range(reach):
        left |= free & left << 1
        right |= free & right >> 1
    return (left | right) & free


@kernel
def slide(w, start, free, to, n):
    """Set `to`: the squares of `free` that pieces on `start` slide to, however far."""
    for i in range(used(n)):
        w[to + i] = along(w[start + i], w[free + i])
    up = down = 0
    for i in range(3, n + 3):
        up = w[free + i] & (up | w[start + i - 1])
        w[to + i] |= up
    for i in range(n + 2, 2, -1):
        down = w[free + i] & (down | w[start + i + 1])
        w[to + i] |= down


@kernel
def step(w, start, free, to, n, reach):
    """As `slide`, for pieces that go at most `reach` steps."""
    for i in range(used(n)):
        w[to + i] = along_limited(w[start + i], w[free + i], reach)
    for i in range(3, n + 3):
        up = down = 0
        p = q = w[free + i]
        for k in range(1, reach + 1):
            if i - k > 1:
                up |= p & w[start + i - k]
                p &= w[free + i - k]
            if i + k < n + 4:
                down |= q & w[start + i + k]
                q &= w[free + i + k]
        w[to + i] |= up | down


@kernel
def flood(w, grown, free, n):
    """Let the set `grown` grow, square by square, as far as `free` goes."""
    first = True
    while True:
        more = 0
        for i in range(used(n)):
            old = w[grown + i]
            new = old | along(old, w[free + i])
            more |= old ^ new
            w[grown + i] = new
        if more == 0 and not first:
            break
        first = False
        more = 0
        for i in range(3, n + 3):
            new = w[free + i] & w[grown + i - 1] & ~w[grown + i]
            more |= new
            w[grown + i] |= new
        for i in range(n + 2, 2, -1):
            new = w[free + i] & w[grown + i + 1] & ~w[grown + i]
            more |= new
            w[grown + i] |= new
        if more == 0:
            break


@inline
def go(w, start, free, to, n, reach):
    """Set `to`: the squares of `free` that pieces on `start` go to."""
    if reach >= n:
        slide(w, start, free, to, n)
    else:
        step(w, start, free, to, n, reach)


@inline
def size_of(w, squares, n):
    """How many squares a set has."""
    total = 0
    for i in range(3, n + 3):
        total += ones(w[squares + i])
    return total


@inline
def place(s, side):
    """The set of one side's pieces, and the same with rows and columns exchanged."""
    w = s.moves
    n = s.width
    base, across = ATTACKERS, ATTACKERS_ACROSS
    if side:
        base, across = DEFENDERS, DEFENDERS_ACROSS
    for i in range(used(n)):
        w[base + i] = 0
        w[across + i] = 0
    for i in range(s.count[side]):
        sq = int(s.pieces[side, i])
        row = sq // STRIDE
        column = sq - row * STRIDE
        w[base + row + 2] |= 1 << column
        w[across + column + 2] |= 1 << row


@inline
def lines(w, row, bit, n):
    """Set `ONE`: where the king slides to, who stands on the square `bit` of a row."""
    for i in range(used(n)):
        w[ONE + i] = 0
    w[ONE + row] = along(bit, w[OPEN + row])
    i = row + 1
    while w[OPEN + i] & bit:
        w[ONE + i] = bit
        i += 1
    i = row - 1
    while w[OPEN + i] & bit:
        w[ONE + i] = bit
        i -= 1


@inline
def ways(p, s, n):
    """Roads, ways of two and three moves, and room."""
    w = s.moves
    row = s.king // STRIDE + 2
    bit = 1 << (s.king - (row - 2) * STRIDE)
    for i in range(used(n)):
        w[NET + i] = 0
        w[SPARE + i] = p.goals[i]
        w[OPEN + i] = p.inside[i] & ~(w[ATTACKERS + i] | w[DEFENDERS + i])
    w[NET + row] = bit
    if s.reach[KING] >= n:
        lines(w, row, bit, n)
    else:
        step(w, NET, OPEN, ONE, n, s.reach[KING])
    go(w, SPARE, OPEN, GOALWARD, n, s.reach[KING])
    roads = 0
    for i in range(3, n + 3):
        roads += ones(w[ONE + i] & p.goals[i])
    for i in range(used(n)):
        w[ONE + i] &= ~p.goals[i]
        w[GOALWARD + i] &= ~p.goals[i]
    near = far = 0
    if roads == 0:
        go(w, ONE, OPEN, TWO, n, s.reach[KING])
        for i in range(3, n + 3):
            near += ones(w[ONE + i] & w[GOALWARD + i])
            far += ones(w[TWO + i] & ~w[ONE + i] & w[GOALWARD + i])
    w[SEEN + 2] = min(roads, 3)
    w[SEEN + 3] = min(near, 5)
    w[SEEN + 4] = min(far, 16)
    w[SEEN + 8] = min(size_of(w, ONE, n), 14)


@inline
def net(p, s, n):
    """Where the king could go if all attackers stood still for ever and his own men made way."""
    w = s.moves
    for i in range(used(n)):
        w[NET + i] |= w[ONE + i]
        w[OPEN + i] = p.inside[i] & ~w[ATTACKERS + i]
    flood(w, NET, OPEN, n)
    goals = 0
    for i in range(3, n + 3):
        goals += ones(w[NET + i] & p.goals[i])
    if s.escape == 0:
        w[SEEN + 5] = min(goals, 4)
        w[SEEN + 6] = 0
    else:
        w[SEEN + 5] = 4 if goals else 0
        w[SEEN + 6] = 32 * goals // max(p.goal_squares, 1)
    w[SEEN + 7] = 32 * size_of(w, NET, n) // (n * n)


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
def reach(p, s, n):
    """How far each side's pieces could go at once, along rows and along columns."""
    w = s.moves
    for i in range(used(n)):
        w[OPEN + i] = p.free[i] & ~(w[ATTACKERS + i] | w[DEFENDERS + i])
        w[SPARE + i] = p.free_across[i] & ~(w[ATTACKERS_ACROSS + i] | w[DEFENDERS_ACROSS + i])
    for k in range(2):
        start, across = ATTACKERS, ATTACKERS_ACROSS
        if k:
            start, across = DEFENDERS, DEFENDERS_ACROSS
        far = s.reach[1 + 8 * k]
        if far >= n:
            for i in range(used(n)):
                w[ONE + i] = along(w[start + i], w[OPEN + i])
                w[TWO + i] = along(w[across + i], w[SPARE + i])
        else:
            for i in range(used(n)):
                w[ONE + i] = along_limited(w[start + i], w[OPEN + i], far)
                w[TWO + i] = along_limited(w[across + i], w[SPARE + i], far)
        w[SEEN + 17 + k] = 32 * (size_of(w, ONE, n) + size_of(w, TWO, n)) // (n * n)


@kernel
def look(p, s):
    """Write the counts of a position to `s.moves[SEEN:]`; without a king only the first two mean anything."""
    w = s.moves
    n = s.width
    w[SEEN] = p.attackers - s.count[0]
    w[SEEN + 1] = p.defenders + 1 - s.count[1]
    w[SEEN + 19] = s.side
    if s.king:
        place(s, 0)
        place(s, 1)
        ways(p, s, n)
        net(p, s, n)
        company(s, n)
        reach(p, s, n)
