"""The Hex state: one structured record.

A cell is a byte: its owner in bits 2 and 3, and in bits 0 and 1 which of the owner's two edges its chain reaches. The
frame cells beyond an edge belong to the owner of that edge, so that stones connect to edges as they do to each other.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ...compile import structs
from ...compile.jit import inline
from ...squares import CELLS, STRIDE, file_of, rank_of, square
from ..interface import MOVES

EDGES = 3
"""Both edges of a side: 1 is top or left, 2 is bottom or right."""
OWNER = 2
"""The first bit of a cell's owner, the side + 1."""
OWNER_BITS = 3
"""The bits of an owner, once it is shifted down."""
X, O = 1 << OWNER, 2 << OWNER
"""Owner bits; a side's is `X << side`."""
OUTSIDE = 16
"""Set on every cell around the board, the frame's too. An empty cell is 0."""
NEIGHBOURS = (STRIDE, STRIDE + 1, 1, -STRIDE, -STRIDE - 1, -1)
"""Offsets of a cell's six neighbours, in cyclic order."""
PLIES = 512
KEPT = 64
"""Two-distances are cached for this many plies, since a search needs them again when it returns to a node."""

_i = "i8"

HEX = np.dtype(
    [
        ("zobrist", "u8", (2, CELLS)),
        ("side_zobrist", "u8"),
        ("files", _i),
        ("swap", _i),  # 1 where the second ply may take over the first stone
        # The position, restored by `undo`.
        ("key", "u8"),
        ("side", _i),
        ("ply", _i),
        ("outcome", _i),
        ("empty", _i),  # number of empty cells
        ("told", _i),  # height of the stack of stones marked with an edge
        ("board", "i1", (CELLS,)),
        ("cells", "i2", (CELLS,)),  # every cell of the board: the empty ones, then the stones, latest first
        ("place", "i2", (CELLS,)),  # index of a cell in `cells`
        # Stacks.
        ("news", "i2", (CELLS,)),  # stones marked with an edge, in that order
        ("u_move", "i4", (PLIES,)),
        ("u_told", "i2", (PLIES,)),
        ("u_place", "i2", (PLIES,)),
        # Two-distances of the last positions, by ply, side and edge; see `distances.py`.
        ("near", "i1", (KEPT, 2, 2, CELLS)),
        ("near_key", "u8", (KEPT,)),  # key of the position that they belong to
        ("heard", "i2", (CELLS,)),
        ("queue", "i2", (CELLS,)),
        ("relay", "i2", (2 * CELLS,)),
        ("moves", "i4", (MOVES,)),
        ("caught_top", _i),  # always 0: nothing is captured
        ("random", "u8"),
        ("tally", _i, (8,)),
    ],
    align=True,
)
CORE = slice(HEX.fields["files"][1], HEX.fields["news"][1])  # type: ignore[index]
"""Bytes of the record that are the position."""


def new_record(size: int, swap: bool) -> Any:
    """An array of one record with an empty board of `size` x `size` cells, `a` to move."""
    record = structs.zeros(HEX)
    whole = record.view(np.uint8).reshape(-1)
    empty = _empty_board(size, swap)
    whole[: len(empty)] = np.frombuffer(empty, np.uint8)
    record[0]["random"] = 1
    record[0]["near_key"] = 1  # the empty board's key is 0
    return record


@lru_cache(maxsize=64)
def _empty_board(size: int, swap: bool) -> bytes:
    """The bytes of a record before its stacks."""
    record = structs.zeros(HEX)
    s = record[0]
    draw = np.random.Generator(np.random.PCG64(1942))
    s["zobrist"] = draw.integers(0, 1 << 64, (2, CELLS), np.uint64)
    s["side_zobrist"] = draw.integers(0, 1 << 64, dtype=np.uint64)
    s["files"], s["swap"] = size, swap
    board = np.full(CELLS, OUTSIDE, np.int8)
    for i in range(size):
        board[square(i, size)] |= X | 1
        board[square(i, -1)] |= X | 2
        board[square(-1, i)] |= O | 1
        board[square(size, i)] |= O | 2
    # The middle comes first: among equals, the best moves are there.
    twice = [2 * i - size + 1 for i in range(size)]
    listed = sorted(
        (square(file, rank) for file in range(size) for rank in range(size)),
        key=lambda sq: _distance(twice[file_of(sq)], twice[rank_of(sq)]),
    )
    board[listed] = 0
    s["board"] = board
    s["empty"] = len(listed)
    s["cells"][: len(listed)] = listed
    s["place"][listed] = range(len(listed))
    return record.view(np.uint8).reshape(-1)[: CORE.stop].tobytes()


def _distance(x: int, y: int) -> int:
    """The square of a distance on the rhombus, where (1, 1) is as long as (1, 0) and (0, 1)."""
    return x * x + y * y - x * y


@inline
def joined(s, sq, owner):
    """The edges that a stone of `owner` on `sq` is connected to through its neighbours."""
    found = 0
    for d in NEIGHBOURS:
        c = int(s.board[sq + d])
        if c & owner:
            found |= c
    return found & EDGES
