"""The order of tafl's moves in a network's policy: for each square, row by row from the top, and each direction (up,
right, down, left), the moves by 1 to N - 1 squares.

An N x N board has 4 N^2 (N - 1) entries, 1,176 on 7 x 7; those of moves that would leave the board are unused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...compile.jit import inline
from ...squares import DIRECTIONS, ORIGIN, STRIDE, TARGET, move, on_board, square

if TYPE_CHECKING:
    from .variant import Variant


@inline
def move_index(s, move):
    """The index of a legal move in the policy."""
    n = s.width
    o = int(move & ORIGIN)
    way = int(move >> TARGET) - o
    if way >= STRIDE:
        direction = 0
        far = way // STRIDE
    elif way > 0:
        direction = 1
        far = way
    elif way > -STRIDE:
        direction = 3
        far = -way
    else:
        direction = 2
        far = -way // STRIDE
    cell = (n - o // STRIDE) * n + o % STRIDE - 1
    return (cell * 4 + direction) * (n - 1) + far - 1


def moves(variant: Variant) -> tuple[int, ...]:
    """Every move that can be legal, by its index in the policy; 0 for unused entries."""
    n = variant.files
    found = []
    for row in range(n):
        for file in range(n):
            origin = square(file, n - 1 - row)
            for step in DIRECTIONS:
                targets = [origin + step * far for far in range(1, n)]
                inside = [_in_line(origin, target, step, n) for target in targets]
                found += [
                    move(origin, target) if fits else 0 for target, fits in zip(targets, inside, strict=True)
                ]
    return tuple(found)


def _in_line(origin: int, target: int, step: int, n: int) -> bool:
    """Whether a target is on the board, and in the row of its origin if `step` is horizontal."""
    along = abs(step) == 1
    return on_board(target, n) and (not along or target // STRIDE == origin // STRIDE)
