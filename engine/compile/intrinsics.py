"""Compiler features that numba lacks: unsigned indices, functions that stay apart, atomics, and bit instructions.

Indices count from the start. numba lets negative signed indices count from the end, which costs a comparison and a
select at each access: a quarter of the time in the inner loops of move generation. No kernel uses negative indices
(NUMBA_BOUNDSCHECK=1 shows it), so a compilation pass makes all of them unsigned.

Threads that share a record update its counters atomically, and publish what they have written by setting a word exactly
once. Most processors count the bits of a word in one instruction and compare thirty-two cells of a board in two or
three. Each of these has a plain function for Python and instructions for kernels.

Called kernels are not inlined. Otherwise LLVM copies rare branches (shieldwalls, forts) into all of their callers, and
those into theirs: compilation takes three times as long, and the common path is no faster.
"""

from __future__ import annotations

import ctypes
from typing import Any

from llvmlite import ir as llvm  # type: ignore[import-untyped]
from numba.core import cgutils, ir, types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import build_definitions
from numba.core.untyped_passes import GenericRewrites
from numba.extending import intrinsic, overload


@intrinsic
def from_start(_context, index):
    """The index, or tuple of indices, as unsigned."""

    def unsigned(kind):
        return types.uintp if isinstance(kind, types.Integer) and kind.signed else kind

    def generate(context, builder, signature, arguments):
        return context.cast(builder, arguments[0], index, signature.return_type)

    if isinstance(index, types.BaseTuple):
        return types.Tuple([unsigned(kind) for kind in index])(index), generate
    return unsigned(index)(index), generate


@intrinsic
def apart(_context):
    """Mark the enclosing function as `noinline` for LLVM."""

    def generate(context, builder, _signature, _arguments):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), generate


def _call(block: Any, function: Any, arguments: tuple[Any, ...], loc: Any) -> tuple[Any, list[Any]]:
    """The variable for the result, and the statements that call `function`."""
    name, result = block.scope.redefine("$function", loc), block.scope.redefine("$result", loc)
    return result, [
        ir.Assign(ir.Global(function.__name__, function, loc), name, loc),
        ir.Assign(ir.Expr.call(name, arguments, (), loc), result, loc),
    ]


@register_pass(mutates_CFG=False, analysis_only=False)
class IndexFromStart(FunctionPass):
    """Wrap every index that is not a constant in `from_start`."""

    _name = "hnefi_index_from_start"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        for block in state.func_ir.blocks.values():
            body: list[Any] = []
            for statement in block.body:
                access = statement.value if isinstance(statement, ir.Assign) else statement
                if isinstance(access, ir.SetItem) or (isinstance(access, ir.Expr) and access.op == "getitem"):
                    access.index, call = _call(block, from_start, (access.index,), statement.loc)
                    body += call
                body.append(statement)
            block.body = body
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class StayApart(FunctionPass):
    """Insert a call of `apart` at the beginning of the function."""

    _name = "hnefi_stay_apart"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        first = state.func_ir.blocks[min(state.func_ir.blocks)]
        first.body[:0] = _call(first, apart, (), first.loc)[1]
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True


class Inlined(CompilerBase):
    """The pipeline for helpers, which are inlined."""

    PASSES: tuple[Any, ...] = (IndexFromStart,)

    def define_pipelines(self) -> list[Any]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        for added in self.PASSES:
            pipeline.add_pass_after(added, GenericRewrites)
        pipeline.finalize()
        return [pipeline]


class Called(Inlined):
    """The pipeline for kernels, which are called."""

    PASSES = (IndexFromStart, StayApart)


class Bound(Inlined):
    """The pipeline for the small functions that choose a kernel by the types of its arguments."""

    PASSES = ()


def fetch_add(record: Any, field: str, amount: int) -> int:
    """Atomically add to an integer field of a record; returns the value before. `field` is a literal."""
    before = int(record[field])
    record[field] = before + amount
    return before


def set_once(record: Any, field: str, value: int) -> int:
    """Atomically set an integer field that is 0; returns the value before, which is 0 for the one thread that has

    set it. A thread that sees the value also sees everything written before it was set.
    """
    before = int(record[field])
    if before == 0:
        record[field] = value
    return before


def ones(word: int) -> int:
    """The number of set bits of a non-negative number."""
    return int(word).bit_count()


def byte_at(address: int, index: int) -> int:
    """The byte at `address + index`. The caller makes sure that the memory is alive and the index in bounds."""
    return ctypes.c_uint8.from_address(int(address) + int(index)).value


def word_at(address: int, index: int) -> int:
    """Element `index` of the array of 64-bit numbers at `address`, with the same conditions as `byte_at`."""
    return ctypes.c_int64.from_address(int(address) + 8 * int(index)).value


def prefetch(array: Any, index: int) -> None:
    """Fetch an element of a one-dimensional array into the cache, for reading soon. It changes nothing but the time."""


def cells_between(cells: Any, start: int, low: int, high: int) -> int:
    """A 32-bit word: bit i is set if the piece code of cell `start + i` is between `low` and `high`."""
    return sum((low <= int(cell) & 15 <= high) << i for i, cell in enumerate(cells[start : start + 32]))


def _member(context: Any, builder: Any, record: Any, value: Any, field: str) -> tuple[Any, Any]:
    """The numba type of a field, and its address."""
    kind = record.typeof(field)
    return kind, cgutils.get_record_member(builder, value, record.offset(field), context.get_data_type(kind))


@intrinsic(prefer_literal=True)
def _fetch_add(_context, record, field, amount):
    if not (isinstance(record, types.Record) and isinstance(field, types.StringLiteral)):
        return None

    def generate(context, builder, _signature, arguments):
        kind, address = _member(context, builder, record, arguments[0], field.literal_value)
        more = context.cast(builder, arguments[2], amount, kind)
        before = builder.atomic_rmw("add", address, more, "seq_cst")
        return context.cast(builder, before, kind, types.int64)

    return types.int64(record, field, amount), generate


@intrinsic(prefer_literal=True)
def _set_once(_context, record, field, value):
    if not (isinstance(record, types.Record) and isinstance(field, types.StringLiteral)):
        return None

    def generate(context, builder, _signature, arguments):
        kind, address = _member(context, builder, record, arguments[0], field.literal_value)
        new = context.cast(builder, arguments[2], value, kind)
        nothing = context.get_constant(kind, 0)
        pair = builder.cmpxchg(address, nothing, new, "seq_cst", "seq_cst")
        return context.cast(builder, builder.extract_value(pair, 0), kind, types.int64)

    return types.int64(record, field, value), generate


@intrinsic
def _ones(_context, word):
    if not isinstance(word, types.Integer):
        return None

    def generate(context, builder, _signature, arguments):
        return builder.ctpop(context.cast(builder, arguments[0], word, types.int64))

    return types.int64(word), generate


@intrinsic
def _byte_at(_context, address, index):
    if not (isinstance(address, types.Integer) and isinstance(index, types.Integer)):
        return None

    def generate(context, builder, _signature, arguments):
        first, behind = (
            context.cast(builder, value, kind, types.int64)
            for value, kind in zip(arguments, (address, index), strict=True)
        )
        place = builder.inttoptr(builder.add(first, behind), llvm.IntType(8).as_pointer())
        return builder.zext(builder.load(place), llvm.IntType(64))

    return types.int64(address, index), generate


@intrinsic
def _word_at(_context, address, index):
    if not (isinstance(address, types.Integer) and isinstance(index, types.Integer)):
        return None

    def generate(context, builder, _signature, arguments):
        word = llvm.IntType(64)
        first, behind = (
            context.cast(builder, value, kind, types.int64)
            for value, kind in zip(arguments, (address, index), strict=True)
        )
        place = builder.gep(builder.inttoptr(first, word.as_pointer()), [behind])
        return builder.load(place)

    return types.int64(address, index), generate


@intrinsic
def _prefetch(_context, array, index):
    if not (isinstance(array, types.Array) and isinstance(index, types.Integer)):
        return None

    def generate(context, builder, _signature, arguments):
        byte, number = llvm.IntType(8).as_pointer(), llvm.IntType(32)
        data = context.make_array(array)(context, builder, arguments[0]).data
        place = builder.gep(data, [context.cast(builder, arguments[1], index, types.intp)])
        kind = llvm.FunctionType(llvm.VoidType(), [byte, number, number, number])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        # For reading, to be kept in all levels of the cache, as data.
        builder.call(fetch, [builder.bitcast(place, byte), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, index), generate


@intrinsic
def _cells_between(_context, cells, start, low, high):
    def generate(context, builder, _signature, arguments):
        row = llvm.VectorType(context.get_data_type(cells.dtype), 32)

        def everywhere(value):
            return llvm.Constant(row, [value] * 32)

        def lane(value, kind):
            one = builder.insert_element(everywhere(0), context.cast(builder, value, kind, cells.dtype), zero)
            return builder.shuffle_vector(
                one, one, llvm.Constant(llvm.VectorType(llvm.IntType(32), 32), [0] * 32)
            )

        zero = llvm.IntType(32)(0)
        data = context.make_array(cells)(context, builder, arguments[0]).data
        index = context.cast(builder, arguments[1], start, types.intp)
        place = builder.bitcast(builder.gep(data, [index]), row.as_pointer())
        pieces = builder.and_(builder.load(place, align=cells.dtype.bitwidth // 8), everywhere(15))
        found = builder.and_(
            builder.icmp_unsigned(">=", pieces, lane(arguments[2], low)),
            builder.icmp_unsigned("<=", pieces, lane(arguments[3], high)),
        )
        return builder.zext(builder.bitcast(found, llvm.IntType(32)), llvm.IntType(64))

    return types.int64(cells, start, low, high), generate


@overload(fetch_add, prefer_literal=True)
def _fetch_add_compiled(record, field, amount):  # noqa: ARG001 - numba matches names
    return lambda record, field, amount: _fetch_add(record, field, amount)  # noqa: PLW0108


@overload(set_once, prefer_literal=True)
def _set_once_compiled(record, field, value):  # noqa: ARG001
    return lambda record, field, value: _set_once(record, field, value)  # noqa: PLW0108


@overload(ones)
def _ones_compiled(word):  # noqa: ARG001
    return lambda word: _ones(word)  # noqa: PLW0108


@overload(byte_at)
def _byte_at_compiled(address, index):  # noqa: ARG001
    return lambda address, index: _byte_at(address, index)  # noqa: PLW0108


@overload(word_at)
def _word_at_compiled(address, index):  # noqa: ARG001
    return lambda address, index: _word_at(address, index)  # noqa: PLW0108


@overload(prefetch)
def _prefetch_compiled(array, index):  # noqa: ARG001
    return lambda array, index: _prefetch(array, index)  # noqa: PLW0108


@overload(cells_between)
def _cells_between_compiled(cells, start, low, high):  # noqa: ARG001
    return lambda cells, start, low, high: _cells_between(cells, start, low, high)  # noqa: PLW0108
