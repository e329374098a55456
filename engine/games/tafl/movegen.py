"""Move generation: slides, jumps, and all moves of a side (kernels)."""

from __future__ import annotations

from ...compile.jit import inline, kernel
from ...squares import STRIDE, TARGET
from .codes import JUMP_NONE, JUMP_RESTRICTED, PIECE, SIDE, TERRAIN, TERRAINS
from .state import SCRATCH_PIECE

UP, RIGHT = STRIDE, 1
DIRECTIONS = (UP, RIGHT, -UP, -RIGHT)


@inline
def terrain(cell):
    """The terrain of a cell."""
    return (int(cell) >> TERRAIN) & TERRAINS


@inline
def may_step(s, o, t, bit):
    """Whether the piece with this bit may enter the empty special square `t`, coming from `o`."""
    return s.region[t] == s.region[o] or (s.enter[t] & bit) != 0


@inline
def slides(s, o, top):
    """Write all slides of the piece on `o`. A cell of 0 is free for all pieces: the common loop reads nothing else."""
    bit = 1 << (s.board[o] & PIECE)
    for d in DIRECTIONS:
        t = o + d
        c = s.board[t]
        while True:
            while c == 0:
                s.moves[top] = o | t << TARGET
                top += 1
                t += d
                c = s.board[t]
            if c & PIECE or not may_step(s, o, t, bit):
                break
            if s.stop[t] & bit:
                s.moves[top] = o | t << TARGET
                top += 1
            if not s.pass_[t] & bit:
                break
            t += d
            c = s.board[t]
    return top


@kernel
def slides_limited(s, o, top):
    """As `slides`, for rule sets in which a piece has a limited reach."""
    p = s.board[o] & PIECE
    bit = 1 << p
    for d in DIRECTIONS:
        t = o
        for _ in range(s.reach[p]):
            t += d
            c = s.board[t]
            if c & PIECE or (c and not may_step(s, o, t, bit)):
                break
            if c == 0 or s.stop[t] & bit:
                s.moves[top] = o | t << TARGET
                top += 1
            if c and not s.pass_[t] & bit:
                break
    return top


@inline
def may_jump(s, o, d):
    """Whether the piece on `o` may jump over an adjacent enemy in direction `d`."""
    p = s.board[o] & PIECE
    mode = s.jump[p]
    if mode == JUMP_NONE:
        return False
    if not (s.jumpable[p >> SIDE] >> (s.board[o + d] & PIECE)) & 1:
        return False
    t = o + 2 * d
    bit = 1 << p
    if s.board[t] & PIECE or not s.stop[t] & bit or not may_step(s, o, t, bit):
        return False
    return mode != JUMP_RESTRICTED or ((s.jump_square[o] | s.jump_square[t]) >> (p >> SIDE)) & 1 != 0


@kernel
def jumps(s, o, top):
    """Write the jumps of the piece on `o` to `s.moves` from `top` on; returns the new end."""
    if s.jump[s.board[o] & PIECE]:
        for d in DIRECTIONS:
            if may_jump(s, o, d):
                s.moves[top] = o | (o + 2 * d) << TARGET
                top += 1
    return top


@kernel
def piece_moves(s, o, top):
    """Write all moves of one piece, before rules that forbid a move for the position it leads to."""
    if s.limited:
        top = slides_limited(s, o, top)
    else:
        top = slides(s, o, top)
    if s.jumpers:
        top = jumps(s, o, top)
    return top


@kernel
def generate_pseudo_legal(s, top):
    """Write all moves of the side to move, before rules that forbid a move for the position it leads to."""
    if s.must_go:
        return piece_moves(s, s.must_go, top)
    side = s.side
    if s.limited or s.jumpers:
        for i in range(s.count[side]):
            top = piece_moves(s, int(s.pieces[side, i]), top)
        return top
    for i in range(s.count[side]):
        top = slides(s, int(s.pieces[side, i]), top)
    return top


@inline
def can_reach_straight(s, o, t, d, steps):
    """Whether the piece on `o` can slide or jump to `t`, `steps` > 0 squares away in direction `d`."""
    p = s.board[o] & PIECE
    bit = 1 << p
    if steps == 2 and s.jumpers and may_jump(s, o, d):
        return True
    if steps > s.reach[p]:
        return False
    q = o + d
    while q != t:
        c = s.board[q]
        if c and (c & PIECE or not may_step(s, o, q, bit) or not s.pass_[q] & bit):
            return False
        q += d
    c = s.board[t]
    return c == 0 or (may_step(s, o, t, bit) and (s.stop[t] & bit) != 0)


@kernel
def can_reach(s, o, t):
    """Whether the piece on `o` can slide or jump to `t` (any two different squares of the board)."""
    if s.board[t] & PIECE:
        return False
    span = t - o
    if o // STRIDE == t // STRIDE:
        d = RIGHT if span > 0 else -RIGHT
        return can_reach_straight(s, o, t, d, span * d)
    if o % STRIDE == t % STRIDE:
        d = UP if span > 0 else -UP
        return can_reach_straight(s, o, t, d, span // d)
    return False


@kernel
def has_pseudo_legal_move(s):
    """Whether the side to move has any move of `generate_pseudo_legal`."""
    if s.must_go:
        return piece_moves(s, s.must_go, SCRATCH_PIECE) > SCRATCH_PIECE
    side = s.side
    for i in range(s.count[side]):
        o = int(s.pieces[side, i])
        for d in DIRECTIONS:
            c = s.board[o + d]
            if c == 0:
                return True
            # An occupied neighbour may be jumped, a special square crossed: only these need a closer look.
            if (c & PIECE == 0 or s.jumpers) and piece_moves(s, o, SCRATCH_PIECE) > SCRATCH_PIECE:
                return True
    return False
