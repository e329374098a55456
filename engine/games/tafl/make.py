"""Making and undoing moves, with every kind of capture (kernels)."""

from __future__ import annotations

import numpy as np

from ...compile.jit import entry, inline, kernel
from ...squares import ORIGIN, STRIDE, TARGET
from .codes import (
    ALL_CAPTURED,
    ATTACKERS,
    ATTACKING_COMMANDERS,
    ATTACKING_MEN,
    BERSERK_ANY,
    CAPTURED_PIECE,
    CAPTURED_SLOT,
    CAPTURED_SQUARE,
    COMMANDERS,
    CORNER,
    D_GUARD,
    D_MERCENARY,
    D_SOLDIER,
    DEFENDERS,
    DEFENDING,
    EXIT_FORT,
    GUARD,
    GUARDS,
    JUMP_CAPTURE,
    KING,
    KING_CAPTURED,
    KING_ESCAPED,
    KING_FELL,
    KING_ON_EDGE_ENCLOSED,
    KING_ON_EDGE_LAST,
    KING_ON_EDGE_SAFE,
    MERCENARIES,
    PIECE,
    SEALED,
    SHIELDWALL_CORNER,
    SIDE,
    SURROUNDED,
    THRONE,
    WALL,
)
from .movegen import DIRECTIONS, RIGHT, UP, piece_moves, terrain
from .state import SCRATCH_CAPTURES
from .win_conditions import fort_holds, opentafl_end, sealed, surrounded


@inline
def helps_take(s, sq, q):
    """Whether the terrain or the piece on `sq` helps to capture the piece with code `q`."""
    return (s.hostile[s.board[sq]] >> q) & 1


@inline
def list_remove(s, sq, q):
    """Remove the piece on `sq` from its side's list, moving the last piece into the gap; returns its place."""
    side = q >> SIDE
    place = int(s.slot[sq])
    n = s.count[side] - 1
    last = s.pieces[side, n]
    s.pieces[side, place] = last
    s.slot[last] = place
    s.slot[sq] = 0
    s.count[side] = n
    return place


@inline
def list_insert(s, sq, q, place):
    """Put a piece back into its side's list, at its former place."""
    side = q >> SIDE
    n = s.count[side]
    if place < n:
        # The entry after the end may be a mercenary that has gone back to the other side: keep its slot.
        moved = s.pieces[side, place]
        s.pieces[side, n] = moved
        s.slot[moved] = n
    s.pieces[side, place] = sq
    s.slot[sq] = place
    s.count[side] = n + 1


@inline
def remove_piece(s, sq):
    """Capture the man on `sq`, pushing him on the stack of captures: remove him, or a mercenary changes sides."""
    c = int(s.board[sq])
    q = c & PIECE
    place = list_remove(s, sq, q)
    s.key ^= s.zobrist[q, sq]
    s.caught[s.caught_top] = sq | q << CAPTURED_PIECE | place << CAPTURED_SLOT
    s.caught_top += 1
    if (MERCENARIES >> q) & 1:
        turned = q ^ DEFENDING
        s.board[sq] = c ^ DEFENDING
        s.key ^= s.zobrist[turned, sq]
        n = s.count[turned >> SIDE]
        s.pieces[turned >> SIDE, n] = sq
        s.slot[sq] = n
        s.count[turned >> SIDE] = n + 1
    else:
        s.board[sq] = c ^ q


@inline
def restore_piece(s):
    """Undo the last capture on the stack."""
    s.caught_top -= 1
    entry = int(s.caught[s.caught_top])
    sq = entry & CAPTURED_SQUARE
    q = (entry >> CAPTURED_PIECE) & PIECE
    if (MERCENARIES >> q) & 1:
        s.count[(q ^ DEFENDING) >> SIDE] -= 1
    s.board[sq] = (int(s.board[sq]) & ~PIECE) | q
    list_insert(s, sq, q, entry >> CAPTURED_SLOT)


@inline
def add_once(s, n, sq):
    """Add a victim to the list in `s.flood` unless it is there already; returns the new length."""
    for i in range(n):
        if s.flood[i] == sq:
            return n
    s.flood[n] = sq
    return n + 1


@kernel
def run_victims(s, t, n):
    """`capture_run = line`: add the unbroken line of enemies up to a square hostile to each of them.

    Returns the new length of the list, plus KING_FELL if the king is captured.
    """
    side = (s.board[t] & PIECE) >> SIDE
    taken = s.victims[side]
    if side == ATTACKERS:
        taken |= 1 << KING
    fell = 0
    for d in DIRECTIONS:
        q = t + d
        first = q
        while True:
            p = s.board[q] & PIECE
            if not (taken >> p) & 1 or (p == KING and terrain(s.board[q]) == THRONE):
                break
            q += d
        if q == first:
            continue
        falls = True
        v = first
        while v != q:
            if not helps_take(s, q, s.board[v] & PIECE):
                falls = False
            v += d
        if falls:
            v = first
            while v != q:
                if s.board[v] & PIECE == KING:
                    fell = 1
                else:
                    n = add_once(s, n, v)
                v += d
    return n + KING_FELL * fell


@inline
def holds_wall(s, sq, side, mover):
    """Whether a piece of `side` on `sq` can hold an end of a row: the mover by capturing, any other passively."""
    p = s.board[sq] & PIECE
    helpers = s.active_captors if sq == mover else s.passive_captors
    return p != 0 and p != WALL and p >> SIDE == side and (helpers >> p) & 1 != 0


@kernel
def row_victims(s, end, d, inward, mover, n):
    """Add the victims of the shieldwall row that begins after `end`, in direction `d` along the edge."""
    side = (s.board[mover] & PIECE) >> SIDE
    x = end + d
    length = 0
    while True:
        p = s.board[x] & PIECE
        # The two end squares of an edge line never belong to a row.
        if p == 0 or p == WALL or p >> SIDE == side or s.board[x + d] & PIECE == WALL:
            break
        if not holds_wall(s, x + inward, side, mover):
            break
        length += 1
        x += d
    if length < 2:
        return n
    closed = holds_wall(s, x, side, mover)
    if not closed and s.shieldwall == SHIELDWALL_CORNER:
        # Only one end may be an empty corner: `end` is held whenever a move closes the row.
        c = int(s.board[x])
        closed = c & PIECE == 0 and terrain(c) == CORNER
    if not closed:
        return n
    for i in range(1, length + 1):
        v = end + i * d
        p = s.board[v] & PIECE
        if p != KING and not (GUARDS >> p) & 1:
            n = add_once(s, n, v)
    return n


@kernel
def wall_victims(s, t, n):
    """Add the shieldwall rows captured by the piece that arrived at `t`, at an end or (`any`) anywhere."""
    p = s.board[t] & PIECE
    side = p >> SIDE
    if s.shieldwall_any:
        size = s.width
        for k in range(4):
            inward = DIRECTIONS[k]
            d = DIRECTIONS[(k + 1) & 3]
            if inward == UP:
                corner = STRIDE + 1
            elif inward == -UP:
                corner = size * STRIDE + size
            elif inward == RIGHT:
                corner = size * STRIDE + 1
            else:
                corner = STRIDE + size
            # A row may begin at a corner square, held or empty, or at any held square after it.
            for i in range(size - 1):
                e = corner + i * d
                c = int(s.board[e])
                if holds_wall(s, e, side, t):
                    n = row_victims(s, e, d, inward, t, n)
                elif c & PIECE == 0 and terrain(c) == CORNER and s.shieldwall == SHIELDWALL_CORNER:
                    n = row_from_corner(s, e, d, inward, t, n)
        return n
    if not (s.active_captors >> p) & 1 or not s.edge[t]:
        return n
    for k in range(4):
        inward = DIRECTIONS[k]
        if s.board[t - inward] & PIECE == WALL:
            d = DIRECTIONS[(k + 1) & 3]
            n = row_victims(s, t, d, inward, t, n)
            n = row_victims(s, t, -d, inward, t, n)
    return n


@kernel
def row_from_corner(s, end, d, inward, mover, n):
    """Add the row after an empty corner square: its far end must be held by a piece, not by another corner."""
    side = (s.board[mover] & PIECE) >> SIDE
    x = end + d
    while True:
        p = s.board[x] & PIECE
        if p == 0 or p == WALL or p >> SIDE == side:
            break
        x += d
    if not holds_wall(s, x, side, mover):
        return n
    return row_victims(s, x, -d, inward, mover, n)


@kernel
def linnaean_victim(s, t, n):
    """Add the defender captured against his own king, who is on the throne between three other attackers."""
    for d in DIRECTIONS:
        q = s.board[t + d] & PIECE
        k = t + 2 * d
        if (
            D_SOLDIER <= q <= D_MERCENARY
            and k == s.king
            and (k == s.linnaean_square if s.linnaean_square else terrain(s.board[k]) == THRONE)
        ):
            others = 0
            for e in DIRECTIONS:
                if e != -d and (ATTACKING_MEN >> (s.board[k + e] & PIECE)) & 1:
                    others += 1
            if others == 3:
                n = add_once(s, n, t + d)
    return n


@inline
def safe_at_edge(s):
    """Whether a king on the edge of the board is safe from capture."""
    return s.king_on_edge == KING_ON_EDGE_SAFE or (
        s.king_on_edge == KING_ON_EDGE_LAST and s.count[DEFENDERS] > 1
    )


@kernel
def king_falls(s, t, p):
    """Whether the attacker `p` that arrived at `t`, next to the king, has captured him."""
    k = s.king
    sides = s.king_sides[k]
    if sides == 2:
        return helps_take(s, 2 * k - t, KING) != 0
    if sides == 0:
        return False
    on_throne = terrain(s.board[k]) == THRONE
    if s.commander_pair and not on_throne and (COMMANDERS >> p) & 1:
        far = int(s.board[2 * k - t])
        q = far & PIECE
        if (ATTACKING_COMMANDERS >> q) & 1:
            return True
        if terrain(far) == CORNER and q != WALL and (s.hostile[far & ~PIECE] >> KING) & 1:
            return True
    for d in DIRECTIONS:
        c = s.board[k + d]
        if c & PIECE == WALL:
            if safe_at_edge(s):
                return False
        elif not (s.hostile[c] >> KING) & 1:
            return False
    return True


@kernel
def pair_falls(s, t):
    """`king_with_one`: whether the mover has enclosed the king together with exactly one defender beside him."""
    k = s.king
    if s.king_sides[k] == 0:
        return False
    mate = 0
    for d in DIRECTIONS:
        q = s.board[k + d] & PIECE
        if D_SOLDIER <= q <= D_GUARD:
            if mate:
                return False
            mate = k + d
    if mate == 0:
        return False
    touched = False
    for member, other in ((k, mate), (mate, k)):
        p = s.board[member] & PIECE
        for d in DIRECTIONS:
            x = member + d
            if x == other:
                continue
            if x == t:
                touched = True
            c = s.board[x]
            q = c & PIECE
            if D_SOLDIER <= q <= KING:
                return False
            if q == WALL:
                if s.king_on_edge != KING_ON_EDGE_ENCLOSED:
                    return False
            elif not (s.hostile[c] >> p) & 1:
                return False
    return touched


@kernel
def uncommon_victims(s, o, t, p, n):
    """Add the victims of jumps, long lines and the Linnaean rule; the length, plus KING_FELL if a line has the king."""
    mid = (o + t) >> 1
    q = s.board[mid] & PIECE
    span = abs(t - o)
    if (span == 2 or span == 2 * STRIDE) and s.jump[p] == JUMP_CAPTURE and q != 0:
        n = add_once(s, n, mid)
    if s.linnaean and (ATTACKING_MEN >> p) & 1:
        n = linnaean_victim(s, t, n)
    if s.capture_run and (s.active_captors >> p) & 1:
        n = run_victims(s, t, n)
    return n


@inline
def apply(s, o, t):
    """Move the piece and remove everything that it captures; returns 1 if the king falls.

    All victims are found on the board before any is removed. The caller updates side to move, counters and stacks.
    """
    c = int(s.board[o])
    p = c & PIECE
    side = p >> SIDE
    s.board[o] = c ^ p
    s.board[t] = int(s.board[t]) | p
    place = s.slot[o]
    s.slot[t] = place
    s.slot[o] = 0
    s.pieces[side, place] = t
    s.key ^= s.zobrist[p, o] ^ s.zobrist[p, t]
    if p == KING:
        s.king = t
    n = 0
    fell = 0
    if s.uncommon:
        n = uncommon_victims(s, o, t, p, n)
        fell = n // KING_FELL
        n %= KING_FELL
    if (s.active_captors >> p) & 1 and not s.capture_run:
        victims = s.victims[side]
        for d in DIRECTIONS:
            q = s.board[t + d] & PIECE
            if (victims >> q) & 1 and helps_take(s, t + 2 * d, q):
                if s.uncommon:
                    n = add_once(s, n, t + d)
                else:
                    s.flood[n] = t + d
                    n += 1
    if s.shieldwall and (s.edge[t] or s.shieldwall_any):
        n = wall_victims(s, t, n)
    for i in range(n):
        remove_piece(s, int(s.flood[i]))
    if side == ATTACKERS and s.king and p != GUARD:
        away = abs(s.king - t)
        if away == 1 or away == STRIDE:
            if king_falls(s, t, p):
                fell = 1
        if s.king_with_one and not fell and pair_falls(s, t):
            fell = 1
    return fell


@inline
def revert(s, o, t, caught):
    """Undo a move and its captures, which are those above `caught` on the stack."""
    while s.caught_top > caught:
        restore_piece(s)
    c = int(s.board[t])
    p = c & PIECE
    side = p >> SIDE
    s.board[t] = c ^ p
    s.board[o] = int(s.board[o]) | p
    place = s.slot[t]
    s.slot[o] = place
    s.slot[t] = 0
    s.pieces[side, place] = o
    if p == KING:
        s.king = o


@kernel
def count_captures(s, o, t):
    """How many men the move captures, plus KING_FELL if the king falls."""
    caught = s.caught_top
    key = s.key
    fell = apply(s, o, t)
    n = s.caught_top - caught
    revert(s, o, t, caught)
    s.key = key
    return n + KING_FELL * fell


@inline
def is_capture(s, o, t):
    """Whether the move captures a man or the king."""
    return count_captures(s, o, t) > 0


@kernel
def must_continue(s, t):
    """Whether the berserk piece on `t`, which has just captured, must move again."""
    end = piece_moves(s, t, SCRATCH_CAPTURES)
    if s.berserk == BERSERK_ANY:
        return end > SCRATCH_CAPTURES
    for i in range(SCRATCH_CAPTURES, end):
        m = int(s.moves[i])
        if is_capture(s, m & ORIGIN, m >> TARGET):
            return True
    return False


@entry
def make(s, move):
    """Play a move of `generate_pseudo_legal`. Sets `s.outcome` if the game ends on the board.

    Repetition, limits and the lack of a legal move are left to `adjudication.py`.
    """
    o = move & ORIGIN
    t = move >> TARGET
    side = s.side
    ply = s.ply + 1
    caught = s.caught_top
    s.u_key[ply] = s.key
    s.u_move[ply] = move
    s.u_quiet[ply] = s.quiet
    s.u_since[ply] = s.since
    s.u_caught[ply] = caught
    s.u_must[ply] = s.must_go
    s.u_side[ply] = side
    s.ply = ply
    s.played += 1
    if s.must_go:
        s.key ^= s.must_zobrist[s.must_go]
        s.must_go = 0
    fell = apply(s, o, t)
    n = s.caught_top - caught
    if n:
        s.quiet = 0
        s.taken[side] += n
        if not s.turncoats:
            s.since = ply
    else:
        s.quiet += 1
    # In the order in which the rules judge a move.
    outcome = 0
    king = s.king
    if s.opentafl:
        outcome = opentafl_end(s, fell, side == DEFENDERS and king == t)
    elif fell:
        outcome = KING_CAPTURED
    elif king and side == DEFENDERS and s.goal[t] and king == t:
        outcome = KING_ESCAPED
    elif s.exit_fort and s.edge[king] and fort_holds(s):
        outcome = EXIT_FORT
    elif side == ATTACKERS and s.encirclement and surrounded(s, t, n):
        outcome = SURROUNDED
    elif s.count[ATTACKERS] == 0 and s.capture_all:
        outcome = ALL_CAPTURED
    elif s.sealed and sealed(s):
        outcome = SEALED
    s.outcome = outcome
    if n and s.berserk and outcome == 0 and must_continue(s, t):
        s.must_go = t
        s.key ^= s.must_zobrist[t]
        s.keys[ply] = 0  # positions inside a turn are not counted
    else:
        s.side = 1 - side
        s.turns += 1
        s.key ^= s.side_zobrist
        if s.repetition_board:
            s.keys[ply] = s.key ^ (s.side_zobrist if s.side else np.uint64(0))
        else:
            s.keys[ply] = s.key


@entry
def undo(s):
    """Undo the last move, restoring every byte of the position."""
    ply = s.ply
    move = int(s.u_move[ply])
    if s.side != s.u_side[ply]:
        s.side = s.u_side[ply]
        s.turns -= 1
    caught = int(s.u_caught[ply])
    s.taken[s.side] -= s.caught_top - caught
    revert(s, move & ORIGIN, move >> TARGET, caught)
    s.key = s.u_key[ply]
    s.quiet = s.u_quiet[ply]
    s.since = s.u_since[ply]
    s.must_go = s.u_must[ply]
    s.outcome = 0
    s.played -= 1
    s.ply = ply - 1
