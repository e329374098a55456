"""What the next move may decide: wins at once, and those the other side threatens (kernels).

A search that knows these needs no tree for them: who can escape or take the king now has won, and attackers who face
two open ways to a goal have lost. Only what is certain is said; rule sets whose kings fall in other ways than by
men around them get fewer answers, never wrong ones.
"""

from __future__ import annotations

import numpy as np

from ...compile.jit import inline, kernel
from .judge import horizon
from .noisy import arrivals, king_pressed
from .strike import make, undo
from .walk import DIRECTIONS, goes

MEN_OF_ATTACK = 31
"""Bits of the pieces that can take a king."""


@inline
def way_out(s, d):
    """The goal square that the king could reach in direction `d` with one move, 0 if there is none."""
    t = s.king + d
    while s.board[t] & 15 == 0:
        if s.goal[t] and goes(s, s.king, t):
            return t
        t += d
    return 0


@kernel
def win_at_once(s, top):
    """A move by which the side to move wins now, 0 if none is seen; `s.moves` from `top` on is scratch."""
    if s.king == 0 or s.must_go or s.opentafl:
        return 0
    if s.side == 1:
        for d in DIRECTIONS:
            t = way_out(s, d)
            if t:
                return int(s.king | t << 9)
        return 0
    for d in DIRECTIONS:
        t = s.king + d
        if s.board[t] & 15 == 0 and king_pressed(s, t, 0):
            end = arrivals(s, t, 0, MEN_OF_ATTACK, top, top)
            for i in range(top, end):
                move = int(s.moves[i])
                # `king_pressed` is a guess; only the move itself is a verdict.
                make(s, move)
                won = s.outcome >> 8 == 1
                undo(s)
                if won:
                    return move
    return 0


@kernel
def looming(s, top):
    """How the other side would win if it were to move: 0 not, 1 in a way that may be parried, 2 whatever is done.

    The side to move must have no win at once. `s.moves` from `top` on is scratch.
    """
    if s.king == 0 or s.must_go or s.opentafl:
        return 0
    if s.side == 0:
        ways = 0
        for d in DIRECTIONS:
            if way_out(s, d):
                ways += 1
        if ways < 2:
            return ways
        # One man shuts one way. What else could save the attackers: a king who falls in an uncommon manner, a draw.
        odd = s.capture_run or s.jumpers or s.commander_pair or s.turncoats or s.berserk
        return 1 if odd or s.material_attackers >= 0 or horizon(s) else 2
    for d in DIRECTIONS:
        t = s.king + d
        if (
            s.board[t] & 15 == 0
            and king_pressed(s, t, 0)
            and arrivals(s, t, 0, MEN_OF_ATTACK, top, top) > top
        ):
            return 1
    return 0


@kernel
def skip(s):
    """Let the side to move pass, for searches that ask what a threat is worth; 0 if it may not.

    No position after it counts as repeated with one before it. `unskip` takes it back.
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
def unskip(s):
    ply = s.ply
    s.key = s.u_key[ply]
    s.since = s.u_since[ply]
    s.side = 1 - s.side
    s.ply = ply - 1
