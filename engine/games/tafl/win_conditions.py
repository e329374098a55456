"""Wins that depend on the whole board: exit fort, encirclement, sealed corners (kernels).

All are rare, so each begins with a cheap test that almost always rules it out.
"""

from __future__ import annotations

from ...compile.jit import inline, kernel
from ...squares import STRIDE
from .codes import (
    ALL_CAPTURED,
    ATTACKERS,
    CORNER,
    D_GUARD,
    D_SOLDIER,
    DEFENDERS,
    DEFENDERS_STUCK,
    ENCIRCLEMENT_RING,
    EXIT_FORT,
    GUARD,
    KING_CAPTURED,
    KING_ESCAPED,
    MEN,
    PIECE,
    SEALED,
    SEALED_CORNERS,
    SOLDIER,
    SURROUNDED,
    WALL,
)
from .movegen import DIRECTIONS, RIGHT, UP, piece_moves, terrain
from .state import SCRATCH_PIECE

ROUND = (UP, UP + RIGHT, RIGHT, RIGHT - UP, -UP, -UP - RIGHT, -RIGHT, UP - RIGHT)

# The numbers of men in hnefatafl.org's tests for hopeless positions.
TRAP_OPEN_IN_FRONT = 5
"""Up to this many attackers, a king held at the edge needs no two attackers in front of him."""
TRAP_WITHOUT_HELP = 2
"""With fewer defenders, no help can come to him."""
TRAP_AGAINST_HELP = 7
"""With more attackers than this, two that stand obliquely in front of him keep help away."""
SEAL_ATTACKERS, SEAL_DEFENDERS = 13, 4
"""Sealed corners suffice for at least so many attackers against fewer defenders than so many."""
SEAL_WIDE_GAP, SEAL_NARROW_GAP = 3, 2
"""Free squares of an edge, between the seals, that are too few to break out; the wider gap only with fewer than
`SEAL_WIDE_GAP_DEFENDERS` defenders."""
SEAL_WIDE_GAP_DEFENDERS = 6


@inline
def attacker(s, sq):
    """Whether an attacker stands on a square."""
    p = s.board[sq] & PIECE
    return SOLDIER <= p <= GUARD


@inline
def has_line_to_edge(s, start):
    """Whether a straight line without attackers leads to the edge: a cheap proof that there is no ring."""
    for d in DIRECTIONS:
        q = start
        while not attacker(s, q):
            if s.edge[q]:
                return True
            q += d
    return False


@kernel
def reaches_edge(s, start):
    """Whether a flood from `start` over empty squares and defenders' pieces reaches an edge square."""
    if has_line_to_edge(s, start):
        return True
    s.stamp += 1
    return flood_reaches_edge(s, start)


@kernel
def flood_reaches_edge(s, start):
    """As `reaches_edge`, over squares not yet marked with the current stamp."""
    stamp = s.stamp
    s.flood[0] = start
    s.mark[start] = stamp
    n = 1
    while n:
        n -= 1
        q = int(s.flood[n])
        if s.edge[q]:
            return True
        for d in DIRECTIONS:
            x = q + d
            if s.mark[x] != stamp and not attacker(s, x):
                s.mark[x] = stamp
                s.flood[n] = x
                n += 1
    return False


@kernel
def is_surrounded(s):
    """`encirclement`: `apart`, no defender can reach the edge; `ring`, one ring encloses the king and all of them."""
    if s.encirclement == ENCIRCLEMENT_RING:
        if s.king == 0 or reaches_edge(s, s.king):
            return False
        for i in range(s.count[DEFENDERS]):
            if s.mark[s.pieces[DEFENDERS, i]] != s.stamp:
                return False
        return True
    for i in range(s.count[DEFENDERS]):
        if has_line_to_edge(s, int(s.pieces[DEFENDERS, i])):
            return False
    s.stamp += 1
    for i in range(s.count[DEFENDERS]):
        q = int(s.pieces[DEFENDERS, i])
        if s.mark[q] != s.stamp and flood_reaches_edge(s, q):
            return False
    return s.count[DEFENDERS] > 0


@kernel
def surrounded(s, t, captured):
    """Whether the attacker that arrived at `t` has closed an encirclement.

    Before his move there was none. He can close one only if two other attackers stand on the eight squares around him:
    with fewer, the free squares around him connect inside and outside. Or he captured the last defender outside.
    Jumping pieces cross rings, so with them the shortcut is not sound.
    """
    if captured == 0 and not s.jumpers:
        near = 0
        for d in ROUND:
            if attacker(s, t + d):
                near += 1
        if near < 2:
            return False
    return is_surrounded(s)


@kernel
def king_can_move(s):
    """Whether the king has a move, whichever side is to move."""
    return piece_moves(s, s.king, SCRATCH_PIECE) > SCRATCH_PIECE


@kernel
def fort_holds(s):
    """`exit_fort`: whether the king is on the edge inside walls that attackers could never breach.

    I, the inside, is a flood fill from the king over empty squares. W starts as all defending men; each man that could
    be captured if attackers stood on every square outside I and W is removed from it, until nothing changes.
    In `mark`, men of W have `stamp` and squares of I `stamp + 1`.
    """
    king = s.king
    stamp = s.stamp + 1
    s.stamp += 2
    inside = stamp + 1
    s.flood[0] = king
    s.mark[king] = inside
    top = 1
    done = 0
    while done < top:
        q = int(s.flood[done])
        done += 1
        for d in DIRECTIONS:
            x = q + d
            c = s.board[x] & PIECE
            if c == 0:
                if s.mark[x] != inside:
                    s.mark[x] = inside
                    s.flood[top] = x
                    top += 1
            elif c <= GUARD:
                return False
    if not king_can_move(s):
        return False
    for i in range(s.count[DEFENDERS]):
        sq = s.pieces[DEFENDERS, i]
        if sq != king:
            s.mark[sq] = stamp
    changed = True
    while changed:
        changed = False
        for i in range(s.count[DEFENDERS]):
            sq = int(s.pieces[DEFENDERS, i])
            p = s.board[sq] & PIECE
            if not (MEN >> p) & 1 or s.mark[sq] != stamp:
                continue
            if (is_open(s, sq + RIGHT, p, stamp) and is_open(s, sq - RIGHT, p, stamp)) or (
                is_open(s, sq + UP, p, stamp) and is_open(s, sq - UP, p, stamp)
            ):
                s.mark[sq] = 0
                changed = True
    for i in range(done):
        q = int(s.flood[i])
        for d in DIRECTIONS:
            x = q + d
            p = s.board[x] & PIECE
            if D_SOLDIER <= p <= D_GUARD and s.mark[x] != stamp:
                return False
    return True


@inline
def is_open(s, x, p, stamp):
    """Whether an attacker could stand on `x`, or its empty terrain be hostile to the man with code `p`."""
    c = s.board[x]
    if c & PIECE == WALL:
        return False
    if s.mark[x] != stamp and s.mark[x] != stamp + 1:
        return True
    return c & PIECE == 0 and (s.hostile[c] >> p) & 1 != 0


@kernel
def opentafl_end(s, fell, king_came):
    """The end that OpenTafl sees on the board, in its order; `king_came`: the king moved last, or was set up there.

    OpenTafl tests for a third occurrence second. Any of the later ends would have held when the position first
    occurred, so testing for repetition afterwards gives the same result.
    """
    if s.count[ATTACKERS] == 0 and s.capture_all:
        return ALL_CAPTURED
    if s.king and king_came and not fell and s.goal[s.king]:
        return KING_ESCAPED
    if fell:
        return KING_CAPTURED
    if is_locked(s):
        return DEFENDERS_STUCK
    if s.exit_fort and opentafl_fort(s):
        return EXIT_FORT
    if s.encirclement and is_surrounded(s):
        return SURROUNDED
    if s.sealed and sealed(s):
        return SEALED
    return 0


@kernel
def is_locked(s):
    """Whether no defending piece has an empty neighbour square."""
    for i in range(s.count[DEFENDERS]):
        sq = int(s.pieces[DEFENDERS, i])
        for d in DIRECTIONS:
            if s.board[sq + d] & PIECE == 0:
                return False
    return True


@kernel
def opentafl_fort(s):
    """OpenTafl's exit fort: the king can move and reach the edge, and no attacker touches him or a square he can reach.

    Each man who touches that inside has at most two neighbours that are neither inside nor held by a defender. Whether
    such a man could be captured is not tested.
    """
    king = s.king
    s.stamp += 1
    inside = s.stamp
    s.flood[0] = king
    s.mark[king] = inside
    top = 1
    done = 0
    at_edge = False
    while done < top:
        q = int(s.flood[done])
        done += 1
        if s.edge[q]:
            at_edge = True
        for d in DIRECTIONS:
            x = q + d
            c = s.board[x] & PIECE
            if c == 0:
                if s.mark[x] != inside:
                    s.mark[x] = inside
                    s.flood[top] = x
                    top += 1
            elif c <= GUARD:
                return False
    if not at_edge or not king_can_move(s):
        return False
    for i in range(done):
        q = int(s.flood[i])
        for d in DIRECTIONS:
            x = q + d
            if D_SOLDIER <= s.board[x] & PIECE <= D_GUARD and openings(s, x, inside) >= 3:
                return False
    return True


@inline
def openings(s, sq, inside):
    """The number of a man's neighbour squares that are neither inside the fort nor held by a defending piece."""
    n = 0
    for d in DIRECTIONS:
        p = s.board[sq + d] & PIECE
        if p <= GUARD and s.mark[sq + d] != inside:
            n += 1
    return n


@kernel
def sealed(s):
    """`sealed = org`: whether hnefatafl.org would call the position hopeless for the defenders, by its own tests."""
    return king_trapped(s) or (s.sealed == SEALED_CORNERS and corners_sealed(s))


@inline
def is_corner(s, q):
    """Whether a square is a corner."""
    return terrain(s.board[q]) == CORNER


@kernel
def king_trapped(s):
    """Test A: the king on an edge square, two attackers on each side of him along the edge, and no help near."""
    king = s.king
    if king == 0 or not s.edge[king]:
        return False
    for d in DIRECTIONS:
        if is_corner(s, king + d):
            return False
    for k in range(4):
        inward = DIRECTIONS[k]
        if s.board[king - inward] & PIECE != WALL:
            continue
        d = DIRECTIONS[(k + 1) & 3]
        n = s.count[ATTACKERS]
        held = True
        for e in (d, -d):
            if s.board[king + e] & PIECE == WALL:
                return False  # he is on the end square of an edge line
            for j in range(1, 3):
                x = king + j * e
                if is_corner(s, x) and j == 2:
                    n += 1
                elif not attacker(s, x):
                    held = False
        if not held:
            continue
        if n > TRAP_OPEN_IN_FRONT and not (attacker(s, king + inward) and attacker(s, king + 2 * inward)):
            continue
        if s.count[DEFENDERS] - 1 < TRAP_WITHOUT_HELP:
            return True
        if n > TRAP_AGAINST_HELP:
            for e in (d, -d):
                if attacker(s, king + e + inward) and attacker(s, king + e + 2 * inward):
                    return True
    return False


@kernel
def corners_sealed(s):
    """Test B: all four corners sealed, and few defenders left or none of them between the seals."""
    n = s.count[ATTACKERS]
    m = s.count[DEFENDERS] - 1
    size = s.width
    stamp = s.stamp + 1
    s.stamp += 1
    for k in range(4):
        up = UP if k < 2 else -UP
        right = RIGHT if k % 2 == 0 else -RIGHT
        corner = (STRIDE if k < 2 else size * STRIDE) + (1 if k % 2 == 0 else size)
        if not corner_sealed(s, corner, up, right, stamp):
            return False
    if m < SEAL_DEFENDERS and n >= SEAL_ATTACKERS:
        return True
    if side_test(s, SEAL_WIDE_GAP, stamp) and m < SEAL_WIDE_GAP_DEFENDERS:
        return True
    return side_test(s, SEAL_NARROW_GAP, stamp)


@kernel
def corner_sealed(s, corner, up, right, stamp):
    """Whether one corner is sealed; marks the squares that count as held."""
    s.mark[corner] = stamp
    if (
        attacker(s, corner + up)
        and attacker(s, corner + 2 * up)
        and attacker(s, corner + right)
        and attacker(s, corner + 2 * right)
    ):
        for d in (up, right):
            s.mark[corner + d] = stamp
            s.mark[corner + 2 * d] = stamp
        return True
    top = 0
    for d in (up, right):
        q = corner + d
        p = s.board[q] & PIECE
        if p == 0 or SOLDIER <= p <= GUARD:
            s.flood[top] = q
            top += 1
    done = 0
    while done < top:
        q = int(s.flood[done])
        done += 1
        for d in DIRECTIONS:
            x = q + d
            p = s.board[x] & PIECE
            if p == WALL or x == corner or SOLDIER <= p <= GUARD:
                continue
            known = False
            for i in range(top):
                if s.flood[i] == x:
                    known = True
            if known:
                continue
            if p:
                if x == corner + up or x == corner + right:
                    continue
                return False
            s.flood[top] = x
            top += 1
    for i in range(top):
        q = int(s.flood[i])
        if s.edge[q] or q == corner + up or q == corner + right:
            s.mark[q] = stamp
    return True


@kernel
def side_test(s, most, stamp):
    """Whether every edge line has at most `most` squares that are neither sealed nor attackers', all adjacent."""
    size = s.width
    for k in range(4):
        if k == 0:
            first, d = STRIDE + 1, RIGHT
        elif k == 1:
            first, d = size * STRIDE + 1, RIGHT
        elif k == 2:
            first, d = STRIDE + 1, UP
        else:
            first, d = STRIDE + size, UP
        free = 0
        begun = -1
        last = -1
        for i in range(size):
            q = first + i * d
            if s.mark[q] != stamp and not attacker(s, q):
                free += 1
                if begun < 0:
                    begun = i
                last = i
        if free > most or (free and last - begun + 1 != free):
            return False
    return True
