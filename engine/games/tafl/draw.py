"""Uniformly random moves (kernel)."""

from __future__ import annotations

from ...dice import below
from ...jit import entry
from .judge import generate
from .walk import goes


@entry
def random_move(s):
    """A uniformly random legal move, 0 if there is none.

    Draws (piece, square in line with it) until the pair is a move: every move is such a pair exactly once, so
    accepted draws are uniform, and on an open board this is far cheaper than writing the list. A crowded board
    gets the list.
    """
    side = s.side
    if s.must_go == 0 and s.repetition < 6:
        size = s.width
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
