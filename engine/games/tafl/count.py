"""Perft and random playouts: whole trees and whole games inside kernels."""

from __future__ import annotations

import numpy as np

from ...jit import entry, inline
from .judge import adjudicate, can_move, generate, stuck
from .state import MOST_MOVES, MOVES
from .strike import make, undo
from .walk import goes

ROOM = MOVES - 3 * MOST_MOVES
"""Nothing descends with less room than this left on the move stack."""


@entry
def perft(s, depth, top):
    """Leaves after exactly `depth` >= 1 plies, counting the last ply without playing it."""
    end = generate(s, top)
    if depth == 1 or end > ROOM:
        return end - top
    leaves = 0
    for i in range(top, end):
        make(s, int(s.moves[i]))
        if s.outcome == 0:
            leaves += perft(s, depth - 1, end)
        undo(s)
    return leaves


@entry
def perft_plain(s, depth, top):
    """As `perft`, but every leaf is played; `s.tally[0]` counts those whose last ply captures."""
    end = generate(s, top)
    leaves = 0
    for i in range(top, end):
        caught = s.caught_top
        make(s, int(s.moves[i]))
        if depth == 1:
            leaves += 1
            if s.caught_top > caught:
                s.tally[0] += 1
        elif s.outcome == 0:
            leaves += perft_plain(s, depth - 1, end)
        undo(s)
    return leaves


@inline
def below(s, n):
    """A uniform random integer in [0, n), n < 2**31: xorshift64*, the high half scaled."""
    x = s.random
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    s.random = x
    return np.int64(((x * np.uint64(0x2545F4914F6CDD1D)) >> np.uint64(33)) * np.uint64(n) >> np.uint64(31))


@entry
def random_move(s):
    """A uniformly random legal move, 0 if there is none.

    Draws (piece, square in line with it) until the pair is a move: every move is such a pair exactly once, so
    accepted draws are uniform, and on an open board this is far cheaper than writing the list. A crowded board
    gets the list.
    """
    side = s.side
    if s.must_go == 0 and s.repetition < 6:
        size = s.size
        spread = 2 * size
        n = s.count[side] * spread
        for _ in range(256 if n else 0):
            r = below(s, n)
            o = int(s.pieces[side, r // spread])
            k = r % spread
            if k < size:
                t = o - o % 21 + 1 + k
            else:
                t = (k - size + 1) * 21 + o % 21
            if t != o and goes(s, o, t):
                return o | t << 9
    end = generate(s, 0)
    if end == 0:
        return 0
    return int(s.moves[below(s, end)])


@entry
def playout(s, most):
    """Play uniformly random moves until the game is over or `most` plies are played; returns the outcome."""
    for _ in range(most):
        if s.outcome:
            break
        m = random_move(s)
        if m == 0:
            s.outcome = stuck(s)
            break
        make(s, m)
        if s.outcome == 0 and s.must_go == 0:
            s.outcome = adjudicate(s, -1)
    return s.outcome


@entry
def playouts(s, games, most):
    """Play `games` random games from the position and take each back; tallies plies, a, d, draws, unfinished."""
    for _ in range(games):
        ply = s.ply
        outcome = playout(s, most)
        s.tally[0] += s.ply - ply
        s.tally[1 + (3 if outcome == 0 else (outcome >> 8) - 1)] += 1
        while s.ply > ply:
            undo(s)
        s.outcome = 0


@entry
def walk_randomly(s, plies):
    """Play up to `plies` random moves and leave them played; returns how many were."""
    done = 0
    while done < plies and s.outcome == 0 and can_move(s):
        make(s, random_move(s))
        if s.outcome == 0 and s.must_go == 0:
            s.outcome = adjudicate(s, -1) if can_move(s) else stuck(s)
        done += 1
    return done
