"""Noisy moves: captures, the king's capture and escapes (kernels)."""

from __future__ import annotations

from ...compile.jit import entry, inline, kernel
from ...squares import ORIGIN, STRIDE, TARGET
from .adjudication import filter_legal, generate
from .codes import (
    ATTACKERS,
    ATTACKING_MEN,
    DEFENDERS,
    KING,
    KING_FELL,
    KING_ON_EDGE_LAST,
    KING_ON_EDGE_SAFE,
    PIECE,
    REPETITION_FORBIDDEN,
    SIDE,
    WALL,
)
from .make import count_captures, helps_take
from .movegen import DIRECTIONS, can_reach

ESCAPE = 255
TAKE_KING = 254
CAPTURE = 32


@entry
def order_score(s, move):
    """A heuristic for move ordering: ESCAPE, TAKE_KING, else CAPTURE per man taken.

    It sees custodial captures, and the king's by the hostile squares around him. Where whole lines are captured, and
    for pieces that jump, the move is tried. A capture that is not seen here is ordered and pruned as a quiet move.
    """
    o = move & ORIGIN
    t = move >> TARGET
    p = s.board[o] & PIECE
    if p == KING and s.goal[t]:
        return ESCAPE
    if s.capture_run or s.jump[p]:
        n = count_captures(s, o, t)
        return TAKE_KING if n >= KING_FELL else CAPTURE * min(n, 7)
    side = p >> SIDE
    value = 0
    if (s.active_captors >> p) & 1:
        victims = s.victims[side]
        for d in DIRECTIONS:
            q = s.board[t + d] & PIECE
            # The square that the mover leaves counts as empty: it cannot be the far side of its own capture.
            if (victims >> q) & 1 and t + 2 * d != o and helps_take(s, t + 2 * d, q):
                value += CAPTURE
    if side == ATTACKERS and s.king:
        away = abs(s.king - t)
        if (away == 1 or away == STRIDE) and king_pressed(s, t, o):
            return TAKE_KING
    return value


@kernel
def king_pressed(s, t, o):
    """Whether an attacker that moves from `o` to `t` beside the king would leave him no side that is not hostile."""
    k = s.king
    sides = s.king_sides[k]
    if sides == 2:
        far = 2 * k - t
        return far != o and helps_take(s, far, KING) != 0
    if sides == 0:
        return False
    for d in DIRECTIONS:
        x = k + d
        if x == t:
            continue
        if x == o or not helps_take(s, x, KING):
            c = s.board[x] & PIECE
            if (
                x == o
                or c != WALL
                or s.king_on_edge == KING_ON_EDGE_SAFE
                or (s.king_on_edge == KING_ON_EDGE_LAST and s.count[DEFENDERS] > 1)
            ):
                return False
    return True


@inline
def arrivals(s, e, side, mask, top, begin):
    """Write the moves to square `e` of pieces of `side` in `mask`, looking outwards from `e`; none twice."""
    special = s.board[e] != 0
    for d in DIRECTIONS:
        o = e + d
        c = s.board[o]
        clear = True
        while c & PIECE == 0:
            if c:
                clear = False
            o += d
            c = s.board[o]
        p = c & PIECE
        if p == WALL or p >> SIDE != side or not (mask >> p) & 1:
            continue
        if (special or not clear or s.limited) and not can_reach(s, o, e):
            continue
        move = o | e << TARGET
        known = False
        for i in range(begin, top):
            if s.moves[i] == move:
                known = True
        if not known:
            s.moves[top] = move
            top += 1
    return top


@inline
def staged_generation(s):
    """0 where `generate_noisy` has to look at all moves."""
    return 0 if s.capture_run or s.jumpers or s.must_go else 1


@entry
def generate_noisy(s, top):
    """Write the custodial captures, captures of the king and escapes of the side to move, found from their victims.

    For rule sets with other captures (jumps, lines, berserk turns): all legal moves with an `order_score` above 0.
    """
    begin = top
    side = s.side
    if not staged_generation(s):
        end = generate(s, top)
        for i in range(begin, end):
            move = int(s.moves[i])
            if s.must_go or order_score(s, move):
                s.moves[top] = move
                top += 1
        return top
    if side == DEFENDERS and s.king:
        for d in DIRECTIONS:
            t = s.king + d
            while s.board[t] & PIECE == 0:
                if s.goal[t] and can_reach(s, s.king, t):
                    s.moves[top] = s.king | t << TARGET
                    top += 1
                    break
                t += d
    if side == ATTACKERS and s.king:
        for d in DIRECTIONS:
            t = s.king + d
            if s.board[t] & PIECE == 0 and king_pressed(s, t, 0):
                top = arrivals(s, t, side, ATTACKING_MEN, top, begin)
    enemy = 1 - side
    victims = s.victims[side]
    for i in range(s.count[enemy]):
        v = int(s.pieces[enemy, i])
        q = s.board[v] & PIECE
        if not (victims >> q) & 1:
            continue
        for d in DIRECTIONS:
            e = v + d
            if s.board[e] & PIECE == 0 and helps_take(s, v - d, q):
                top = arrivals(s, e, side, s.active_captors, top, begin)
    if s.repetition >= REPETITION_FORBIDDEN:
        top = filter_legal(s, begin, top)
    return top
