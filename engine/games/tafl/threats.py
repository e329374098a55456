"""What the next move may decide: wins at once, and those the other side threatens (kernels).

A search that knows these needs no tree for them: a side that can escape or take the king now has won, and attackers
who face two open ways to a goal have lost. Only what is certain is said; rule sets whose kings fall in other ways
than by men around them get fewer answers, never wrong ones.
"""

from __future__ import annotations

import numpy as np

from ...compile.jit import inline, kernel
from ...squares import TARGET
from ..interface import LOST, NO_THREAT, THREAT
from .adjudication import limit_salt
from .codes import ATTACKERS, ATTACKING_MEN, DEFENDERS, PIECE, WINNER
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
                # `king_pressed` is a guess; only the move itself is a verdict.
                make(s, move)
                won = s.outcome >> WINNER == ATTACKERS + 1
                undo(s)
                if won:
                    return move
    return 0


@kernel
def threat_level(s, top):
    """NO_THREAT, THREAT or LOST: how the other side would win if it were to move.

    The side to move must have no win at once. `s.moves` from `top` on is scratch.
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
        # One man shuts one way. What else could save the attackers: a king who falls in an uncommon manner, a draw.
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
    """Let the side to move pass, for searches that ask what a threat is worth; 0 if it may not.

    No position after it counts as repeated with one before it. `unmake_null` takes it back.
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
    """Take a pass back."""
    ply = s.ply
    s.key = s.u_key[ply]
    s.since = s.u_since[ply]
    s.side = 1 - s.side
    s.ply = ply - 1
