"""Sets of squares in registers against the same in plain numpy, and against squares counted one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hnefi.engine.compile import bitboard
from hnefi.engine.compile.intrinsics import cells_between
from hnefi.engine.compile.jit import kernel

RECORD = np.dtype(
    [("v", "i4", (40,)), ("w", "i4", (40,)), ("out", "i4", (12, bitboard.HIGH)), ("numbers", "i8", (4,))]
)


def everything(empty: Any, height: int) -> Any:
    def fill(s: Any, i: int, j: int, k: int) -> None:
        like = empty()
        v = bitboard.load(like, s.v, i)
        w = bitboard.load(like, s.w, j)
        sets = (
            v,
            v & w,
            v | w,
            v ^ w,
            ~v & w,
            v << k,
            v >> k,
            bitboard.shift_up(v),
            bitboard.shift_down(v),
            bitboard.fill_ranks(v & w, w),
            bitboard.fill_files(v & w, w),
            bitboard.single(v, i, j + 1),
        )
        for n in range(len(sets)):
            # Bit by bit: sets have no other way out of their registers.
            for row in range(height):
                for bit in range(31):
                    s.out[n, row] |= bitboard.popcount(sets[n] & bitboard.single(v, row, 1 << bit)) << bit
        s.numbers[0] = bitboard.popcount(v)
        s.numbers[1] = bitboard.differ(v, w)
        s.numbers[2] = bitboard.differ(v, v)
        s.numbers[3] = bitboard.popcount(like)

    return fill


def slides(words: Any, free: Any, steps: tuple[tuple[int, int], ...]) -> list[int]:
    """Where pieces slide to, square by square, and the free squares among their own."""
    squares = {(row, bit) for row, word in enumerate(words) for bit in range(32) if word >> bit & 1}
    clear = {(row, bit) for row, word in enumerate(free) for bit in range(32) if word >> bit & 1}
    found = squares & clear
    for square in squares:
        for step in steps:
            row, bit = square[0] + step[0], square[1] + step[1]
            while (row, bit) in clear:
                found.add((row, bit))
                row, bit = row + step[0], bit + step[1]
    return [sum(1 << bit for bit in range(32) if (row, bit) in found) for row in range(len(words))]


@pytest.mark.parametrize("height", [bitboard.LOW, bitboard.HIGH])
def test_in_registers_as_in_numpy_and_square_by_square(height: int) -> None:
    draw = np.random.default_rng(height)
    function = everything(bitboard.empty_low if height == bitboard.LOW else bitboard.empty_high, height)
    compiled = kernel(function)
    across = 15 if height == bitboard.LOW else 19
    for number in range(4):
        made = np.zeros(1, RECORD).view(np.recarray)
        # An empty board is crossed from edge to edge.
        for name, density in (("v", 0.2 if number else 0.02), ("w", 0.7 if number else 1)):
            cells = draw.random((40, across)) < density
            made[0][name] = (cells << np.arange(1, across + 1)).sum(1)
        i, j, k = (int(x) for x in draw.integers(0, 8, 3))
        plain = made.copy()
        compiled(made[0], i, j, k)
        function(plain[0], i, j, k)
        assert made.tobytes() == plain.tobytes(), number
        v, w = made[0]["v"][i : i + height], made[0]["w"][j : j + height]
        assert list(made[0]["out"][9][:height]) == slides(v & w, w, ((0, 1), (0, -1)))
        assert list(made[0]["out"][10][:height]) == slides(v & w, w, ((1, 0), (-1, 0)))
        assert list(made[0]["numbers"]) == [sum(int(x).bit_count() for x in v), 1, 0, 0]


@kernel
def between(s: Any, start: int, least: int, most: int) -> int:
    return cells_between(s.cells, start, least, most)


def test_cells_between() -> None:
    made = np.zeros(1, np.dtype([("cells", "u2", (80,))])).view(np.recarray)
    made[0]["cells"] = np.random.default_rng(3).integers(0, 256, 80)
    for start in range(48):
        for least, most in ((1, 7), (9, 14), (0, 0), (15, 15), (0, 15), (9, 8)):
            codes = made[0]["cells"][start : start + 32] & 15
            wanted = sum(1 << i for i, code in enumerate(codes) if least <= code <= most)
            assert between(made[0], start, least, most) == wanted
            assert cells_between(made[0]["cells"], start, least, most) == wanted
