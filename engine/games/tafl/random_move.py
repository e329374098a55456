"""Uniformly random moves (kernel)."""

from __future__ import annotations

import numpy as np

from ...compile.jit import entry
from ...compile.rng import randbelow
from ...squares import STRIDE, TARGET
from .adjudication import generate
from .codes import PIECE, REPETITION_FORBIDDEN
from .movegen import RIGHT, UP, can_reach_straight

DRAWS = 256
"""Draws before the moves are generated."""


@entry
def random_move(s):
    """A uniformly random legal move, 0 if there is none.

    Rejection sampling: draws (piece, square in line with it) until the pair is a legal move. Every move is exactly one
    such pair, so accepted draws are uniform, and on an open board this is far cheaper than generating all moves. On a
    crowded board, after DRAWS failures, the moves are generated.
    """
    side = s.side
    if s.must_go == 0 and s.repetition < REPETITION_FORBIDDEN:
        size = s.width
        # Unsigned, because floor division of signed numbers takes four more instructions.
        spread = np.uint64(2 * size)
        n = s.count[side] * 2 * size
        for _ in range(DRAWS if n else 0):
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
