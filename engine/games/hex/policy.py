"""The order of Hex's moves in a network's policy: cells row by row, top row first, then the swap if there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...compile.jit import inline
from ...squares import ORIGIN, STRIDE, SWAP, move, square

if TYPE_CHECKING:
    from .variant import Variant


@inline
def move_index(s, move):
    """The index of a legal move in the policy."""
    if move == SWAP:
        return s.files * s.files
    cell = int(move & ORIGIN)
    return (s.files - cell // STRIDE) * s.files + cell % STRIDE - 1


def moves(variant: Variant) -> tuple[int, ...]:
    """Every move that can be legal, by its index in the policy."""
    n = variant.size
    cells = [square(file, n - 1 - row) for row in range(n) for file in range(n)]
    return (*(move(cell, cell) for cell in cells), *((SWAP,) if variant.swap else ()))
