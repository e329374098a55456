"""Wins with the next move, and the other side's threats to win (kernels).

With these a search needs no tree for such positions: a side that can escape or capture the king now has won, and
attackers who face two open ways to a goal have lost. Answers are always certain; for rule sets in which the king is
captured in other ways than by men around him they are just fewer.
"""

from __future__ import annotations

import numpy as np

from ...compile.jit import inline, kernel
from ...sides import WINNER
from ...squares import TARGET
from ..interface import LOST, NO_THREAT, THREAT
from .adjudication import limit_salt
from .codes import ATTACKERS, ATTACKING_MEN, DEFENDERS, PIECE
from .make import make, undo
from .movegen import DIRECTIONS, can_reach
from .noisy import arrivals, king_pressed


@inline
def way_out(s, d):
    """The goal square that the king could reach in direction `d` with one move, 0 if there is none."""
    t = s.king + d
    while s.board[t] & PIECE == 0:
        if s.goal[t] and can_reach(s, s.king, t):
            return t
        t += d
    return 0


@kernel
def winning_move(s, top):
    """A move by which the side to move wins now, 0 if none is seen; `s.moves` from `top` on is scratch."""
    if s.king == 0 or s.must_go or s.opentafl:
        return 0
    if s.side == DEFENDERS:
        for d in DIRECTIONS:
            t = way_out(s, d)
            if t:
                return int(s.king | t << TARGET)
        return 0
    for d in DIRECTIONS:
        t = s.king + d
        if s.board[t] & PIECE == 0 and king_pressed(s, t, 0):
            end = arrivals(s, t, 0, ATTACKING_MEN, top, top)
            for i in range(top, end):
                move = int(s.moves[i])
                # `king_pressed` is a heuristic: only making the move proves it.
                make(s, move)
                won = s.outcome >> WINNER == ATTACKERS + 1
                undo(s)
                if won:
                    return move
    return 0


@kernel
def threat_level(s, top):
    """NO_THREAT, THREAT or LOST: what the other side would threaten if it were to move.

    The side to move must have no immediate win. `s.moves` from `top` on is scratch.
    """
    if s.king == 0 or s.must_go or s.opentafl:
        return NO_THREAT
    if s.side == ATTACKERS:
        ways = 0
        for d in DIRECTIONS:
            if way_out(s, d):
                ways += 1
        if ways < 2:
            return THREAT if ways else NO_THREAT
        # One move blocks one way. Only an unusual capture of the king or a draw could still save the attackers.
        odd = s.capture_run or s.jumpers or s.commander_pair or s.turncoats or s.berserk
        return THREAT if odd or s.material_attackers >= 0 or limit_salt(s) else LOST
    for d in DIRECTIONS:
        t = s.king + d
        if (
            s.board[t] & PIECE == 0
            and king_pressed(s, t, 0)
            and arrivals(s, t, 0, ATTACKING_MEN, top, top) > top
        ):
            return THREAT
    return NO_THREAT


@kernel
def make_null(s):
    """Let the side to move pass; returns 0 if it may not.

    No position after it counts as a repetition of one before it. `unmake_null` undoes it.
    """
    if s.must_go or s.opentafl or s.count[s.side] < 3:
        return 0
    ply = s.ply + 1
    s.u_key[ply] = s.key
    s.u_move[ply] = 0
    s.u_since[ply] = s.since
    s.u_side[ply] = s.side
    s.u_must[ply] = 0
    s.ply = ply
    s.since = ply
    s.side = 1 - s.side
    s.key ^= s.side_zobrist
    s.keys[ply] = s.key ^ (s.side_zobrist if s.side and s.repetition_board else np.uint64(0))
    return 1


@kernel
def unmake_null(s):
    """Undo a null move."""
    ply = s.ply
    s.key = s.u_key[ply]
    s.since = s.u_since[ply]
    s.side = 1 - s.side
    s.ply = ply - 1
