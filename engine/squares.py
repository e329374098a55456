"""Squares and moves as integers; text only at the edge.

A square is an index into one padded mailbox of 21 x 21 cells that serves every board up to 19 x 19:
``(rank + 1) * 21 + file + 1`` with rank and file counted from 0 at a1. It does not depend on the board's
size, and one step is +-1 or +-21 everywhere. A move is ``origin | target << TARGET``; a stone that is placed has its
square as both.
"""

from __future__ import annotations

from collections.abc import Iterator

STRIDE = 21
CELLS = STRIDE * STRIDE
MIN_SIZE = 3
MAX_SIZE = 19
FILES = "abcdefghijklmnopqrs"
DIRECTIONS = (STRIDE, 1, -STRIDE, -1)

ORIGIN = 511
"""The bits of a move that are its origin."""
TARGET = 9
"""The first bit of a move's target."""
NO_MOVE = 0
"""No legal move is 0: its origin would be a cell outside the board."""
SWAP = 1 | 1 << TARGET
"""Taking over the first stone, where a game has that rule: a cell outside the board, too."""


def square(file: int, rank: int) -> int:
    """The square of `file` and `rank`, both counted from 0."""
    return (rank + 1) * STRIDE + file + 1


def file_of(sq: int) -> int:
    """The file of a square, 0 for a."""
    return sq % STRIDE - 1


def rank_of(sq: int) -> int:
    """The rank of a square, 0 for the first."""
    return sq // STRIDE - 1


def squares(size: int) -> Iterator[int]:
    """All squares of a `size` x `size` board, a1 b1 ... up to the top right."""
    for rank in range(size):
        for file in range(size):
            yield square(file, rank)


def on_board(sq: int, size: int) -> bool:
    """Whether a square is on a board of this size."""
    return 0 <= file_of(sq) < size and 0 <= rank_of(sq) < size


def sort_key(sq: int) -> tuple[int, int]:
    """File before rank, ranks as numbers: a2 before a10 before b1."""
    return sq % STRIDE, sq // STRIDE


def name(sq: int) -> str:
    """A square as text, `d4`."""
    return f"{FILES[file_of(sq)]}{rank_of(sq) + 1}"


def parse(text: str, size: int) -> int:
    """The square called `text`; ValueError naming it if there is none on this board."""
    if (
        len(text) in (2, 3)
        and text[0] in FILES
        and text[1:].isascii()
        and text[1:].isdigit()
        and text[1] != "0"
    ):
        file, rank = FILES.index(text[0]), int(text[1:]) - 1
        if file < size and rank < size:
            return square(file, rank)
        raise ValueError(f"no square {text} on this {size}x{size} board")
    raise ValueError(f"{text!r} is not a square: expected a file letter and a rank such as a1 or h11")


def move(origin_sq: int, target_sq: int) -> int:
    """The move from one square to another."""
    return origin_sq | target_sq << TARGET


def origin(m: int) -> int:
    """Where a move begins."""
    return m & ORIGIN


def target(m: int) -> int:
    """Where a move ends."""
    return m >> TARGET


def is_same_piece(previous: int, m: int) -> bool:
    """Whether the piece that `previous` moved moves again, as only in a turn that goes on after a capture (berserk)."""
    return origin(m) == target(previous) and origin(m) != target(m)


def move_name(m: int) -> str:
    """`d1d3`: origin, then target; `f6` for a stone placed there; `swap`."""
    if m == SWAP:
        return "swap"
    origin_sq, target_sq = m & ORIGIN, m >> TARGET
    return name(target_sq) if origin_sq == target_sq else name(origin_sq) + name(target_sq)


def move_sort_key(m: int) -> tuple[int, int, int, int]:
    """Sorts moves by origin, then target, each by file and rank."""
    return sort_key(m & ORIGIN) + sort_key(m >> TARGET)
