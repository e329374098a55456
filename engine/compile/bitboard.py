"""Bitboards: sets of squares, as a vector of 32-bit words with one word per row and one bit per column.

A bitboard has 16 or 32 words, depending on the board's rows. In kernels it lives in registers and supports & | ^ ~ and
shifts of all words by the same number of bits; a whole side slides in the time of one piece. As in `simd_x16.py`, each
function has two implementations: plain numpy, slow and obvious, and LLVM code.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import models, register_model

from .jit import OPTIONS  # noqa: F401 - marks a file whose text is part of the kernels
from .simd_x16 import Code, lowered

LOW, HIGH = 16, 32
"""The two heights of sets, in rows."""
WORD = ir.IntType(32)


class _Bitboard(types.Type):
    def __init__(self, height: int) -> None:
        self.height = height
        super().__init__(name=f"Bitboard{height}")


@register_model(_Bitboard)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.VectorType(WORD, kind.height))


def empty_low() -> Any:
    """The empty set of 16 rows."""
    return np.zeros(LOW, np.int32)


def empty_high() -> Any:
    """The empty set of 32 rows."""
    return np.zeros(HIGH, np.int32)


def load(like: Any, a: Any, i: int) -> Any:
    """The set whose rows are in the array `a` of 32-bit words from index `i` on, of the height of `like`."""
    return np.array(a[i : i + len(like)])


def single(like: Any, row: int, word: int) -> Any:
    """The set with `word` as row `row` and all other rows empty, of the height of `like`."""
    v = np.zeros_like(like)
    v[row] = word
    return v


def popcount(v: Any) -> int:
    """The number of squares in a set."""
    return sum(int(word).bit_count() for word in v.view(np.uint32))


def differ(v: Any, w: Any) -> bool:
    """Whether two sets differ."""
    return bool((v != w).any())


def shift_up(v: Any) -> Any:
    """The set shifted up by one row."""
    return np.append(v.dtype.type(0), v[:-1])


def shift_down(v: Any) -> Any:
    """The set shifted down by one row."""
    return np.append(v[1:], v.dtype.type(0))


def fill_ranks(v: Any, free: Any) -> Any:
    """The squares of `free` that pieces on `v` can slide to along their rows, together with `v`."""
    left = right = v
    for _ in range(len(v)):
        left, right = left | free & left << 1, right | free & right >> 1
    return free & (left | right)


def fill_files(v: Any, free: Any) -> Any:
    """As `fill_ranks`, along columns."""
    up = down = v
    for _ in range(len(v)):
        up, down = up | free & shift_up(up), down | free & shift_down(down)
    return free & (up | down)


def _constant(v: Any, number: int) -> Any:
    return ir.Constant(v.type, [number] * v.type.count)


def _everywhere(code: Code, kind: Any, number: Any) -> Any:
    """A number, of any width, broadcast to every row."""
    number = code.builder.trunc(number, WORD) if number.type.width > WORD.width else number
    number = code.builder.zext(number, WORD) if number.type.width < WORD.width else number
    one = code.builder.insert_element(ir.Constant(kind, ir.Undefined), number, WORD(0))
    return code.builder.shuffle_vector(
        one, one, ir.Constant(ir.VectorType(WORD, kind.count), [0] * kind.count)
    )


def _moved(code: Code, v: Any, k: int) -> Any:
    """The set shifted up by `k` rows."""
    n = v.type.count
    lanes = [i - k if 0 <= i - k < n else n for i in range(n)]
    return code.builder.shuffle_vector(v, _constant(v, 0), ir.Constant(ir.VectorType(WORD, n), lanes))


def _filled(code: Code, v: Any, free: Any, step: Any) -> Any:
    """Squares of `free` reached from `v` by steps in one direction (Kogge-Stone: the distance doubles each round)."""
    build, k = code.builder, 1
    # Rounds of 1, 2, 4, 8 steps cross 16 columns, and with 16 more any board.
    while k < v.type.count:
        v = build.or_(v, build.and_(free, step(v, k)))
        free = build.and_(free, step(free, k))
        k *= 2
    return v


_EMPTY = {name: _Bitboard(height) for name, height in (("low", LOW), ("high", HIGH))}


@lowered(empty_low, _EMPTY["low"])
def _empty_low_code(_code: Code) -> Any:
    return ir.Constant(ir.VectorType(WORD, LOW), [0] * LOW)


@lowered(empty_high, _EMPTY["high"])
def _empty_high_code(_code: Code) -> Any:
    return ir.Constant(ir.VectorType(WORD, HIGH), [0] * HIGH)


@lowered(load, None)
def _load(code: Code, like: Any, a: Any, i: Any) -> Any:
    return code.builder.load(code.pointer(1, a, i, 1, like.type), align=4)


@lowered(single, None)
def _single(code: Code, like: Any, row: Any, word: Any) -> Any:
    n = like.type.count
    there = code.builder.icmp_unsigned(
        "==", _everywhere(code, like.type, row), ir.Constant(like.type, list(range(n)))
    )
    return code.builder.select(there, _everywhere(code, like.type, word), _constant(like, 0))


@lowered(popcount, types.int64)
def _popcount_code(code: Code, v: Any) -> Any:
    for name, result in (("ctpop", v.type), ("vector.reduce.add", WORD)):
        kind = ir.FunctionType(result, [v.type])
        call = cgutils.get_or_insert_function(code.builder.module, kind, f"llvm.{name}.v{v.type.count}i32")
        v = code.builder.call(call, [v])
    return code.builder.zext(v, ir.IntType(64))


@lowered(differ, types.boolean)
def _differ(code: Code, v: Any, w: Any) -> Any:
    bits = code.builder.bitcast(code.builder.icmp_unsigned("!=", v, w), ir.IntType(v.type.count))
    return code.builder.icmp_unsigned("!=", bits, bits.type(0))


@lowered(shift_up, None)
def _shift_up_code(code: Code, v: Any) -> Any:
    return _moved(code, v, 1)


@lowered(shift_down, None)
def _shift_down_code(code: Code, v: Any) -> Any:
    return _moved(code, v, -1)


@lowered(fill_ranks, None)
def _fill_ranks_code(code: Code, v: Any, free: Any) -> Any:
    build = code.builder
    left = _filled(code, v, free, lambda x, k: build.shl(x, _constant(x, k)))
    right = _filled(code, v, free, lambda x, k: build.lshr(x, _constant(x, k)))
    return build.and_(free, build.or_(left, right))


@lowered(fill_files, None)
def _fill_files_code(code: Code, v: Any, free: Any) -> Any:
    up = _filled(code, v, free, lambda x, k: _moved(code, x, k))
    down = _filled(code, v, free, lambda x, k: _moved(code, x, -k))
    return code.builder.and_(free, code.builder.or_(up, down))


@lowered(operator.and_, None, _Bitboard, _Bitboard)
def _and(code: Code, v: Any, w: Any) -> Any:
    return code.builder.and_(v, w)


@lowered(operator.or_, None, _Bitboard, _Bitboard)
def _or(code: Code, v: Any, w: Any) -> Any:
    return code.builder.or_(v, w)


@lowered(operator.xor, None, _Bitboard, _Bitboard)
def _xor(code: Code, v: Any, w: Any) -> Any:
    return code.builder.xor(v, w)


@lowered(operator.invert, None, _Bitboard)
def _invert(code: Code, v: Any) -> Any:
    return code.builder.not_(v)


@lowered(operator.lshift, None, _Bitboard, types.Integer)
def _left(code: Code, v: Any, k: Any) -> Any:
    return code.builder.shl(v, _everywhere(code, v.type, k))


@lowered(operator.rshift, None, _Bitboard, types.Integer)
def _right(code: Code, v: Any, k: Any) -> Any:
    return code.builder.lshr(v, _everywhere(code, v.type, k))
