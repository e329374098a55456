"""The order of hexapawn's moves in a network's policy.

It is that of HexapawnZero: steps of white, steps of black, captures of white, captures of black. Each block lists the
origins row by row from the side's home row, left to right, captures to the left first. With m rows and n columns there
are 2(m - 1)n + 4(m - 1)(n - 1) moves, 28 on 3 x 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...compile.jit import inline
from ...squares import ORIGIN, STRIDE, TARGET, move, square

if TYPE_CHECKING:
    from .variant import Variant


@inline
def move_index(s, move):
    """The index of a legal move in the policy."""
    o = int(move & ORIGIN)
    t = int(move >> TARGET)
    black = int(s.side)
    rank = o // STRIDE - 1
    file = o % STRIDE - 1
    gone = s.ranks - 1 - rank if black else rank
    aside = t % STRIDE - 1 - file
    steps = (s.ranks - 1) * s.files
    if aside == 0:
        return black * steps + gone * s.files + file
    # Each row has captures to the left from all columns but the first, and to the right from all but the last.
    row = 2 * (s.files - 1)
    return 2 * steps + (black * (s.ranks - 1) + gone) * row + 2 * file - (1 if aside < 0 else 0)


def moves(variant: Variant) -> tuple[int, ...]:
    """Every move that can be legal, by its index in the policy."""
    files, ranks = variant.files, variant.ranks
    steps, captures = [], []
    for home, up in ((0, 1), (ranks - 1, -1)):
        for gone in range(ranks - 1):
            rank = home + up * gone
            for file in range(files):
                steps.append(move(square(file, rank), square(file, rank + up)))
                captures += [
                    move(square(file, rank), square(beside, rank + up))
                    for beside in (file - 1, file + 1)
                    if 0 <= beside < files
                ]
    return (*steps, *captures)
