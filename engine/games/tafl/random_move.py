"""Uniformly random moves (kernel)."""

from __future__ import annotations

import numpy as np

from ...compile.jit import entry
from ...compile.rng import randbelow
from ...squares import STRIDE, TARGET
from .adjudication import generate
from .codes import PIECE, REPETITION_FORBIDDEN
from .movegen import RIGHT, UP, can_reach_straight


@entry
def random_move(s):
    """A uniformly random legal move, 0 if there is none.

    Draws (piece, square in line with it) until the pair is a move: every move is such a pair exactly once, so
    accepted draws are uniform, and on an open board this is far cheaper than writing the list. A crowded board
    gets the list.
    """
    side = s.side
    if s.must_go == 0 and s.repetition < REPETITION_FORBIDDEN:
        size = s.width
        # Unsigned: a quotient of signed numbers is rounded down, which takes a division and four steps more.
        spread = np.uint64(2 * size)
        n = s.count[side] * 2 * size
        for _ in range(256 if n else 0):
            r = np.uint64(randbelow(s, n))
            piece = r // spread
            k = np.int64(r - piece * spread)
            o = int(s.pieces[side, piece])
            row = o // STRIDE
            if k < size:
                t = row * STRIDE + 1 + k
                d = RIGHT
                steps = t - o
            else:
                t = o + (k - size + 1 - row) * STRIDE
                d = UP
                steps = k - size + 1 - row
            if steps < 0:
                d = -d
                steps = -steps
            if steps and not s.board[t] & PIECE and can_reach_straight(s, o, t, d, steps):
                return o | t << TARGET
    end = generate(s, 0)
    if end == 0:
        return 0
    return int(s.moves[randbelow(s, end)])
