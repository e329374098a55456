"""A random player that is not uniform, and may pass (kernels).

Source: the observed behaviour of the program of "Tablut Game AI with Temporal Difference Learning". It draws a piece,
then a direction, up to four times, until there are n > 0 free squares that way, then a length from 1 to n - 1 (1 if n
is 1), so it never slides as far as it can. It passes if it finds no direction, or if the piece may not stop on the
square.
"""

from __future__ import annotations

import numpy as np

from ...compile.jit import entry, kernel
from ...compile.rng import randbelow
from ...squares import TARGET
from .adjudication import generate
from .codes import PIECE, REPETITION_FORBIDDEN
from .make import undo
from .movegen import DIRECTIONS, can_reach_straight, piece_moves
from .state import SCRATCH_PIECE

PASS = -1
TRIES = 4
"""Directions that it draws at most."""


@kernel
def free_squares(s, o, d):
    """How far the piece on `o` could slide in direction `d`, counting squares where it may not stop."""
    bit = 1 << (s.board[o] & PIECE)
    n = 0
    t = o + d
    while not s.board[t] & PIECE and (s.board[t] == 0 or (s.pass_[t] | s.stop[t]) & bit):
        n += 1
        if s.board[t] and not s.pass_[t] & bit:
            break
        t += d
    while n and not can_reach_straight(s, o, o + n * d, d, n):
        n -= 1
    return n


@entry
def random_slide(s):
    """A move, `PASS`, or 0 if the side has no legal move.

    The move is uniformly random where rules forbid moves for the position they lead to, or one piece must continue.
    """
    if s.must_go or s.repetition >= REPETITION_FORBIDDEN:
        end = generate(s, 0)
        return int(s.moves[randbelow(s, end)]) if end else 0
    side = s.side
    some = False
    for i in range(s.count[side]):
        if piece_moves(s, int(s.pieces[side, i]), SCRATCH_PIECE) > SCRATCH_PIECE:
            some = True
            break
    if not some:
        return 0
    o = int(s.pieces[side, randbelow(s, s.count[side])])
    for _ in range(TRIES):
        d = DIRECTIONS[randbelow(s, 4)]
        n = free_squares(s, o, d)
        if n:
            steps = 1 + randbelow(s, max(1, n - 1))
            t = o + steps * d
            return o | t << TARGET if can_reach_straight(s, o, t, d, steps) else PASS
    return PASS


@kernel
def pass_turn(s):
    """Pass the turn; it counts as a ply."""
    ply = s.ply + 1
    s.u_key[ply] = s.key
    s.u_move[ply] = 0
    s.u_quiet[ply] = s.quiet
    s.u_since[ply] = s.since
    s.u_caught[ply] = s.caught_top
    s.u_side[ply] = s.side
    s.u_must[ply] = 0
    s.ply = ply
    s.quiet += 1
    s.played += 1
    s.turns += 1
    s.side = 1 - s.side
    s.key ^= s.side_zobrist
    s.keys[ply] = s.key ^ (s.side_zobrist if s.side and s.repetition_board else np.uint64(0))


@kernel
def take_back(s):
    """Undo a move or a pass."""
    ply = s.ply
    if s.u_move[ply]:
        undo(s)
        return
    s.key = s.u_key[ply]
    s.quiet = s.u_quiet[ply]
    s.side = 1 - s.side
    s.turns -= 1
    s.played -= 1
    s.ply = ply - 1
