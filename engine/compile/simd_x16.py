"""Vectors of sixteen floating-point numbers, for kernels that evaluate many positions.

Each function has two implementations: plain numpy, and LLVM code, which uses whatever instructions the processor has.
In kernels a vector lives in registers and supports + - and *. The two agree up to rounding, `sigmoid` up to
`SIGMOID_ERROR`, or for single precision `SINGLE_SIGMOID_ERROR`. The precision of a vector is that of the array that it
is loaded from.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, models, register_model

from ..squares import STRIDE
from .jit import OPTIONS  # noqa: F401 - marks a file whose text is part of the kernels

WIDTH = 16
SIGMOID_ERROR = 2e-11
SINGLE_SIGMOID_ERROR = 1.4e-7

# 2**x on [-1/2, 1/2], relative error below 4.1e-11.
EXP2 = (
    0.9999999999616804,
    0.6931471807284537,
    0.2402265119815657,
    0.05550410353429199,
    0.009618027253796027,
    0.0013333922579072434,
    0.0001546929110610596,
    1.5201917953912812e-05,
)
# The same, relative error below 1.1e-7 when its numbers are rounded to single precision.
SINGLE_EXP2 = (
    1.0000001192092896,
    0.6931469440460205,
    0.24022120237350464,
    0.05550713092088699,
    0.009675540961325169,
    0.0013276472454890609,
)


class _X16(types.Type):
    """Sixteen numbers, each with so many bits, `mantissa` of them behind the point."""

    def __init__(self, bits: int, mantissa: int, powers: tuple[float, ...]) -> None:
        super().__init__(name=f"F{bits}x16")
        self.bits, self.mantissa, self.powers = bits, mantissa, powers
        self.lane = ir.DoubleType() if bits == 64 else ir.FloatType()
        self.number = types.float64 if bits == 64 else types.float32
        self.vector = ir.VectorType(self.lane, WIDTH)


F64X16 = _X16(64, 52, EXP2)
F32X16 = _X16(32, 23, SINGLE_EXP2)


@register_model(_X16)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, kind.vector)


def _kind_of(array: Any) -> Any:
    """The vectors in an array of that type."""
    return F32X16 if array.dtype == types.float32 else F64X16


def spread(x: float) -> Any:
    """A vector of doubles with the number in every lane."""
    return np.full(WIDTH, float(x))


def times(v: Any, x: float) -> Any:
    """Every lane times a number."""
    return v * float(x)


def single(v: Any) -> Any:
    """Doubles rounded to single precision."""
    return v.astype(np.float32)


def load(a: Any, i: int) -> Any:
    """`a[i : i + 16]`."""
    return np.array(a[i : i + WIDTH])


def store(a: Any, i: int, v: Any) -> None:
    """`a[i : i + 16] = v`."""
    a[i : i + WIDTH] = v


def _triples(i: int, j: int, k: int) -> list[int]:
    return [x + n for x in (i, j, k, k + STRIDE, k + 2 * STRIDE) for n in range(3)]


def triples(a: Any, i: int, j: int, k: int) -> Any:
    """Three numbers each from indices `i`, `j`, `k`, `k + STRIDE`, `k + 2 STRIDE` on; the last lane is arbitrary.

    The array must extend 8 numbers beyond these on both sides.
    """
    return np.append(a[_triples(i, j, k)], a.dtype.type(0))


def put_triples(a: Any, i: int, j: int, k: int, v: Any) -> None:
    """Write the lanes of `v` to where `triples` reads them."""
    a[_triples(i, j, k)] = v[:15]


def add_rows(sums: Any, v: Any, a: Any, i: int, j: int, k: int) -> Any:
    """`sums` plus 15 rows of `a` of 16 numbers, with the indices of `triples`, each row times a lane of `v`."""
    return sums + v[:15] @ a.reshape(-1, WIDTH)[_triples(i, j, k)]


def sigmoid(v: Any) -> Any:
    """1 / (1 + exp(-x)) for every lane."""
    return 1 / (1 + np.exp(-np.clip(v, -40, 40)))


def sigmoids(v: Any, w: Any) -> Any:
    """`sigmoid` of two vectors, faster than two calls."""
    return sigmoid(v), sigmoid(w)


def double(v: Any) -> Any:
    """The same numbers as doubles."""
    return v.astype(np.float64)


def dot(v: Any, w: Any) -> Any:
    """The dot product of doubles."""
    return float(v @ w)


def lowered(function: Any, result: Any, *operands: Any) -> Callable[[Any], Any]:
    """Make the decorated function, which builds LLVM code, the implementation of `function` in kernels.

    `result` is its type or a function that finds it from the arguments' types; None: the type of the first argument.
    For an operator, `operands` are the types or classes of the operands for which it is implemented.
    """

    def found(arguments: list[Any]) -> Any:
        if result is None:
            return arguments[0]
        return result if isinstance(result, types.Type) else result(arguments)

    @infer_global(function)
    class _Template(AbstractTemplate):
        def generic(self, arguments: Any, keywords: Any) -> Any:
            arguments = [types.unliteral(argument) for argument in arguments]
            if keywords or not all(map(_fits, arguments, operands)):
                return None
            return signature(found(arguments), *arguments)

    def register(build: Any) -> Any:
        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return build(Code(context, builder, signature.args), *arguments)

        lower_builtin(function, *(operands or (types.VarArg(types.Any),)))(lower)
        return build

    return register


def _fits(kind: Any, operand: Any) -> bool:
    return isinstance(kind, operand) if isinstance(operand, type) else bool(kind == operand)


class Code:
    """A builder with helpers for the code patterns used here."""

    def __init__(self, context: Any, builder: Any, kinds: Any) -> None:
        self.context, self.builder, self.kinds = context, builder, kinds

    def spread(self, x: Any, kind: Any) -> Any:
        """A vector of that kind with the same number in every lane."""
        one = self.builder.insert_element(
            ir.Constant(kind.vector, ir.Undefined), x, ir.Constant(ir.IntType(32), 0)
        )
        return self.mix(one, one, [0] * WIDTH)

    def pointer(self, which: int, array: Any, index: Any, step: int, kind: Any, offset: int = 0) -> Any:
        """The address of element `index * step + offset` of an array argument, as a pointer to `kind`."""
        data = self.context.make_array(self.kinds[which])(self.context, self.builder, array).data
        i64 = ir.IntType(64)
        if index.type.width < 64:
            index = self.builder.zext(index, i64)
        if step != 1:
            index = self.builder.mul(index, ir.Constant(i64, step))
        if offset:
            index = self.builder.add(index, ir.Constant(i64, offset))
        return self.builder.bitcast(self.builder.gep(data, [index]), kind.as_pointer())

    def read(self, pointer: Any) -> Any:
        """The vector there, which need not be aligned to more than its numbers."""
        return self.builder.load(pointer, align=_number_bytes(pointer.type.pointee))

    def write(self, v: Any, pointer: Any) -> None:
        self.builder.store(v, pointer, align=_number_bytes(v.type))

    def fma(self, x: Any, y: Any, z: Any) -> Any:
        name = f"llvm.fmuladd.v{x.type.count}f{8 * _number_bytes(x.type)}"
        kind = ir.FunctionType(x.type, [x.type] * 3)
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, name), [x, y, z])

    def mix(self, x: Any, y: Any, lanes: Any) -> Any:
        """Select lanes of two vectors; the second's are numbered after the first's."""
        mask = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), list(lanes))
        return self.builder.shuffle_vector(x, y, mask)


def _number_bytes(vector: Any) -> int:
    """Bytes of one of the vector's numbers."""
    return 8 if vector.element == ir.DoubleType() else 4


@lowered(operator.add, None, _X16, _X16)
def _add(code: Any, v: Any, w: Any) -> Any:
    return code.builder.fadd(v, w)


@lowered(operator.sub, None, _X16, _X16)
def _sub(code: Any, v: Any, w: Any) -> Any:
    return code.builder.fsub(v, w)


@lowered(operator.mul, None, _X16, _X16)
def _mul(code: Any, v: Any, w: Any) -> Any:
    return code.builder.fmul(v, w)


@lowered(spread, F64X16)
def _spread(code: Any, x: Any) -> Any:
    return code.spread(code.context.cast(code.builder, x, code.kinds[0], types.float64), F64X16)


@lowered(times, None)
def _times(code: Any, v: Any, x: Any) -> Any:
    kind = code.kinds[0]
    return code.builder.fmul(
        v, code.spread(code.context.cast(code.builder, x, code.kinds[1], kind.number), kind)
    )


@lowered(single, F32X16)
def _single(code: Any, v: Any) -> Any:
    return code.builder.fptrunc(v, F32X16.vector)


@lowered(double, F64X16)
def _double(code: Any, v: Any) -> Any:
    return v if code.kinds[0] is F64X16 else code.builder.fpext(v, F64X16.vector)


@lowered(load, lambda arguments: _kind_of(arguments[0]))
def _load(code: Any, a: Any, i: Any) -> Any:
    return code.read(code.pointer(0, a, i, 1, _kind_of(code.kinds[0]).vector))


@lowered(store, types.void)
def _store(code: Any, a: Any, i: Any, v: Any) -> Any:
    code.write(v, code.pointer(0, a, i, 1, v.type))
    return code.context.get_dummy_value()


def _places(i: Any, j: Any, k: Any) -> tuple[tuple[Any, int], ...]:
    """Where triples begin: an index and an offset to it."""
    return (i, 0), (j, 0), (k, 0), (k, STRIDE), (k, 2 * STRIDE)


@lowered(triples, lambda arguments: _kind_of(arguments[0]))
def _triples_code(code: Any, a: Any, *places: Any) -> Any:
    # Overlapping unaligned halves, each read from early enough that its triple is in the right lanes.
    half = ir.VectorType(_kind_of(code.kinds[0]).lane, 8)

    def part(n: int, lane: int) -> Any:
        x, offset = _places(*places)[n]
        return code.read(code.pointer(0, a, x, 1, half, offset - lane))

    low = code.mix(part(0, 0), part(1, 3), (0, 1, 2, 11, 12, 13, 14, 15))
    low = code.mix(low, part(2, 6), (0, 1, 2, 3, 4, 5, 14, 15))
    high = code.mix(part(2, -2), part(3, 1), (0, 9, 10, 11, 12, 13, 14, 15))
    high = code.mix(high, part(4, 4), (0, 1, 2, 3, 12, 13, 14, 15))
    return code.mix(low, high, range(WIDTH))


@lowered(put_triples, types.void)
def _put_triples(code: Any, a: Any, i: Any, j: Any, k: Any, v: Any) -> Any:
    three = ir.VectorType(v.type.element, 3)
    for n, (x, offset) in enumerate(_places(i, j, k)):
        part = code.mix(v, v, range(3 * n, 3 * n + 3))
        code.write(part, code.pointer(0, a, x, 1, three, offset))
    return code.context.get_dummy_value()


@lowered(add_rows, None)
def _add_rows(code: Any, sums: Any, v: Any, a: Any, *places: Any) -> Any:
    # Several partial sums shorten the dependency chain. The old sums come last: rounded once, where they are large.
    parts: list[Any] = []
    for n in range(15):
        x, offset = _places(*places)[n // 3]
        row = code.read(code.pointer(2, a, x, WIDTH, v.type, (offset + n % 3) * WIDTH))
        lane = code.mix(v, v, [n] * WIDTH)
        if n < 3:
            parts.append(code.builder.fmul(lane, row))
        else:
            parts[n % 3] = code.fma(lane, row, parts[n % 3])
    return code.builder.fadd(code.builder.fadd(code.builder.fadd(parts[1], parts[2]), parts[0]), sums)


def _build_sigmoids(code: Any, kind: Any, xs: list[Any]) -> list[Any]:
    """Interleaves the steps of all vectors to hide their latency."""
    build = code.builder
    whole_numbers = ir.VectorType(ir.IntType(kind.bits), WIDTH)

    def number(x: float) -> Any:
        return ir.Constant(kind.vector, [float(x)] * WIDTH)

    xs = [build.fmul(x, number(-1.4426950408889634)) for x in xs]
    for sign, bound in ((">", 57.0), ("<", -57.0)):
        xs = [build.select(build.fcmp_ordered(sign, x, number(bound)), number(bound), x) for x in xs]
    # Adding 1.5 * 2**52 (2**23) rounds to a whole number and leaves it in the low bits: the exponent of the power.
    magic = number(1.5 * 2**kind.mantissa)
    wholes = [build.fadd(x, magic) for x in xs]
    xs = [build.fsub(x, build.fsub(whole, magic)) for x, whole in zip(xs, wholes, strict=True)]
    powers = [number(kind.powers[-1])] * len(xs)
    for c in kind.powers[-2::-1]:
        powers = [code.fma(power, x, number(c)) for power, x in zip(powers, xs, strict=True)]
    mantissa = ir.Constant(whole_numbers, [kind.mantissa] * WIDTH)
    exponents = [build.shl(build.bitcast(whole, whole_numbers), mantissa) for whole in wholes]
    powers = [
        build.bitcast(build.add(build.bitcast(power, whole_numbers), exponent), kind.vector)
        for power, exponent in zip(powers, exponents, strict=True)
    ]
    return [build.fdiv(number(1.0), build.fadd(power, number(1.0))) for power in powers]


@lowered(sigmoid, None)
def _sigmoid(code: Any, v: Any) -> Any:
    return _build_sigmoids(code, code.kinds[0], [v])[0]


@lowered(sigmoids, lambda arguments: types.UniTuple(arguments[0], 2))
def _sigmoids(code: Any, v: Any, w: Any) -> Any:
    pair = types.UniTuple(code.kinds[0], 2)
    return code.context.make_tuple(code.builder, pair, _build_sigmoids(code, code.kinds[0], [v, w]))


@lowered(dot, types.float64)
def _dot(code: Any, v: Any, w: Any) -> Any:
    v, n = code.builder.fmul(v, w), WIDTH
    while n > 1:
        n //= 2
        v = code.builder.fadd(code.mix(v, v, range(n)), code.mix(v, v, range(n, 2 * n)))
    return code.builder.extract_element(v, ir.Constant(ir.IntType(32), 0))
