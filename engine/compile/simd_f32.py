"""Vectors of thirty-two single-precision numbers, for convolutions.

As in `simd_x16.py`, each function has two implementations: plain numpy, and LLVM code. In a plain loop the compiler
cannot know that two parts of a record do not overlap, and accesses memory for every product.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import models, register_model

from .jit import OPTIONS  # noqa: F401 - marks a file whose text is part of the kernels
from .simd_x16 import lowered

LANES = 32


class _F32x32(types.Type):
    def __init__(self) -> None:
        super().__init__(name="F32x32")


F32X32 = _F32x32()
VECTOR = ir.VectorType(ir.FloatType(), LANES)


@register_model(_F32x32)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, VECTOR)


def load_lanes(a: Any, i: int) -> Any:
    """`a[i : i + 32]`."""
    return np.array(a[i : i + LANES])


def store_lanes(a: Any, i: int, v: Any) -> None:
    """`a[i : i + 32] = v`."""
    a[i : i + LANES] = v


def add_times(v: Any, x: Any, w: Any) -> Any:
    """`v + x * w` for a number x."""
    return v + np.float32(x) * w


@lowered(load_lanes, F32X32)
def _load(code: Any, a: Any, i: Any) -> Any:
    return code.builder.load(code.pointer(0, a, i, 1, VECTOR), align=4)


@lowered(store_lanes, types.void)
def _store(code: Any, a: Any, i: Any, v: Any) -> Any:
    code.builder.store(v, code.pointer(0, a, i, 1, VECTOR), align=4)
    return code.context.get_dummy_value()


@lowered(add_times, None)
def _add_times(code: Any, v: Any, x: Any, w: Any) -> Any:
    builder = code.builder
    x = code.context.cast(builder, x, code.kinds[1], types.float32)
    first = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), x, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    spread = builder.shuffle_vector(first, first, mask)
    kind = ir.FunctionType(VECTOR, [VECTOR] * 3)
    fma = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fmuladd.v{LANES}f32")
    return builder.call(fma, [spread, w, v])
