"""The moves of Hex in a fixed order, the places they have in the policy of a network: cells row by row, the top one
first; behind them the swap, where the rules have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...compile.jit import inline
from ...squares import ORIGIN, STRIDE, SWAP, move, square

if TYPE_CHECKING:
    from .variant import Variant


@inline
def move_index(s, move):
    """The place of a legal move."""
    if move == SWAP:
        return s.files * s.files
    cell = int(move & ORIGIN)
    return (s.files - cell // STRIDE) * s.files + cell % STRIDE - 1


def moves(variant: Variant) -> tuple[int, ...]:
    """All moves that can ever be legal, each at its place."""
    n = variant.size
    cells = [square(file, n - 1 - row) for row in range(n) for file in range(n)]
    return (*(move(cell, cell) for cell in cells), *((SWAP,) if variant.swap else ()))
