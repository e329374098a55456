"""What kernels ask of the compiler beyond numba's language: one more compilation pass for each wish.

An index counts from the start. numba lets every signed index count from the end too if it is negative, and pays
for that with a comparison and a selection at each access; in the inner loops of move generation that is a quarter of
the time. No kernel uses negative indices (NUMBA_BOUNDSCHECK=1 shows it), so their indices become unsigned, without
a cast in every bracket.

A called kernel stays in one piece. Left alone LLVM copies rare branches (shieldwalls, forts) into all of their
callers and those into theirs: compiling takes three times as long, and the common path is no faster.
"""

from __future__ import annotations

from typing import Any

from numba.core import ir, types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import build_definitions
from numba.core.untyped_passes import GenericRewrites
from numba.extending import intrinsic


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
    """Forbid LLVM to copy the function around this call into its callers."""

    def generate(context, builder, _signature, _arguments):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), generate


def _call(block: Any, function: Any, arguments: tuple[Any, ...], loc: Any) -> tuple[Any, list[Any]]:
    """The variable that takes the result, and the statements that call `function`."""
    name, result = block.scope.redefine("$function", loc), block.scope.redefine("$result", loc)
    return result, [
        ir.Assign(ir.Global(function.__name__, function, loc), name, loc),
        ir.Assign(ir.Expr.call(name, arguments, (), loc), result, loc),
    ]


@register_pass(mutates_CFG=False, analysis_only=False)
class IndexFromStart(FunctionPass):
    """Put `from_start` around every index that is not a constant."""

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
    """Let the function begin with a call of `apart`."""

    _name = "hnefi_stay_apart"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        first = state.func_ir.blocks[min(state.func_ir.blocks)]
        first.body[:0] = _call(first, apart, (), first.loc)[1]
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True


class Inlined(CompilerBase):
    """How helpers are compiled."""

    PASSES: tuple[Any, ...] = (IndexFromStart,)

    def define_pipelines(self) -> list[Any]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        for added in self.PASSES:
            pipeline.add_pass_after(added, GenericRewrites)
        pipeline.finalize()
        return [pipeline]


class Called(Inlined):
    """How kernels are compiled."""

    PASSES = (IndexFromStart, StayApart)
