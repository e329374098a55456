"""Vectors of thirty-two 16-bit integers, for efficiently updatable networks.

As in `simd_x16.py`, each function has two implementations: plain numpy, and LLVM code. Sums wrap around as machine
words do, so that both give the same bits on every processor. In kernels a vector lives in registers and supports + and
-.
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
from .simd_x16 import lowered

LANES = 32


class _I16x32(types.Type):
    def __init__(self) -> None:
        super().__init__(name="I16x32")


I16X32 = _I16x32()
_I16, _I32 = ir.IntType(16), ir.IntType(32)
VECTOR = ir.VectorType(_I16, LANES)
_BYTES = ir.VectorType(ir.IntType(8), LANES)
_WIDE = ir.VectorType(_I32, LANES // 2)


@register_model(_I16x32)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, VECTOR)


def load_words(a: Any, i: int) -> Any:
    """`a[i : i + 32]` of an array of int16."""
    return np.array(a[i : i + LANES])


def store_words(a: Any, i: int, v: Any) -> None:
    """`a[i : i + 32] = v`."""
    a[i : i + LANES] = v


def dot_squares(v: Any, a: Any, i: int) -> int:
    """The sum of `c * c * w` over the lanes, where c is a lane of `v` clamped to 0 to 255, and w its int8 weight in
    `a[i : i + 32]`."""
    clipped = np.clip(v.astype(np.int64), 0, 255)
    return int((clipped * clipped) @ a[i : i + LANES].astype(np.int64))


@lowered(operator.add, I16X32, I16X32, I16X32)
def _add(code: Any, v: Any, w: Any) -> Any:
    return code.builder.add(v, w)


@lowered(operator.sub, I16X32, I16X32, I16X32)
def _sub(code: Any, v: Any, w: Any) -> Any:
    return code.builder.sub(v, w)


@lowered(load_words, I16X32)
def _load(code: Any, a: Any, i: Any) -> Any:
    return code.builder.load(code.pointer(0, a, i, 1, VECTOR), align=2)


@lowered(store_words, types.void)
def _store(code: Any, a: Any, i: Any, v: Any) -> Any:
    code.builder.store(v, code.pointer(0, a, i, 1, VECTOR), align=2)
    return code.context.get_dummy_value()


@lowered(dot_squares, types.int64)
def _dot_squares(code: Any, v: Any, a: Any, i: Any) -> Any:
    builder = code.builder

    def everywhere(n: int) -> Any:
        return ir.Constant(VECTOR, [n] * LANES)

    def lanes(x: Any, first: int) -> Any:
        return builder.sext(code.mix(x, x, range(first, LANES, 2)), _WIDE)

    low, high = everywhere(0), everywhere(255)
    v = builder.select(builder.icmp_signed("<", v, low), low, v)
    v = builder.select(builder.icmp_signed(">", v, high), high, v)
    weights = builder.sext(builder.load(code.pointer(1, a, i, 1, _BYTES), align=1), VECTOR)
    # 255 * -128 fits 16 bits: so one instruction (vpmaddwd) multiplies by the other factor and adds pairs.
    product = builder.mul(v, weights)
    pairs = builder.add(
        builder.mul(lanes(product, 0), lanes(v, 0)), builder.mul(lanes(product, 1), lanes(v, 1))
    )
    kind = ir.FunctionType(_I32, [_WIDE])
    add_up = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.add.v{LANES // 2}i32")
    return builder.sext(builder.call(add_up, [pairs]), ir.IntType(64))
