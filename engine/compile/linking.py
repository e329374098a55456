"""Machine code for entries only: what they call is lowered once, and linked.

numba optimises every function for itself, each time with all that it calls, and emits machine code for all of it: the
time grows with the square of the depth of calls, and most of the result is never called. Here a kernel becomes only a
`Part`, simplified LLVM code that can be linked; only what Python calls becomes a `Program`: its parts, each once,
optimised and emitted together.

All this depends on numba's internal classes, which may change: `jit.py` knows the versions that it was tested with
and leaves other versions to numba's own way.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numba
from numba import _dynfunc
from numba.core import codegen, serialize, types
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult, _LowerResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import NativeLowering
from numba.core.typeinfer import TypeInferer
from numba.core.types.misc import unliteral

from . import cache, progress, sources
from .intrinsics import Bound, Called, Inlined


class Part(codegen.JITCodeLibrary):
    """One kernel as LLVM code. It knows what it calls and is never optimised, emitted or run by itself."""

    def finalize(self) -> None:
        self._raise_if_finalized()
        self._final_module.verify()
        for function in self._final_module.functions:
            if not function.is_declaration:
                function.linkage = llvm.Linkage.linkonce_odr
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """Called by numba's own libraries, which would link this part without its callees."""
        raise RuntimeError(
            f"{self.name}: a kernel can be called by kernels and by Python, not by numba's functions"
        )


class Program(codegen.JITCodeLibrary):
    """What Python calls: one function with all its parts, optimised as one module."""

    def finalize(self) -> None:
        self._raise_if_finalized()
        own = {function.name for function in self._final_module.functions if not function.is_declaration}
        for library in called_by(self):
            self._reload_init.update(library._reload_init)
            _link(self._final_module, library)
        # No other code may call them: LLVM need not keep what it has inlined into the callers.
        for function in self._final_module.functions:
            if not function.is_declaration and function.name not in own:
                function.linkage = llvm.Linkage.internal
        self._optimize_final_module()
        self._final_module.verify()
        self._finalize_final_module()

    def serialize_using_object_code(self) -> tuple[str, str, tuple[bytes, bytes]]:
        """The machine code, and for numba's reader no more than the names: nothing links a program."""
        stubs = "\n".join(
            f'define void @"{function.name}"() {{ ret void }}'
            for function in self.get_defined_functions()
            if function.linkage == llvm.Linkage.external
        )
        module = llvm.parse_assembly(f'target triple = "{self._final_module.triple}"\n{stubs}')
        return self.name, "object", (self._get_compiled_object(), module.as_bitcode())


def called_by(library: Any) -> list[Any]:
    """All libraries that this one needs, each once: through parts, whose callees stand beside them."""
    found: dict[Any, None] = {}
    waiting = list(library._linking_libraries)
    while waiting:
        one = waiting.pop()
        if one is not library and one not in found:
            found[one] = None
            if isinstance(one, Part):
                waiting += one._linking_libraries
    return list(found)


def _link(module: Any, library: Any) -> None:
    part = library._final_module if isinstance(library, Part) else library._get_module_for_linking()
    module.link_in(part, preserve=True)


@register_pass(mutates_CFG=True, analysis_only=False)
class PartLowering(NativeLowering):
    """Lower a kernel to a `Part`."""

    _name = "hnefi_part_lowering"

    def run_pass(self, state: Any) -> bool:
        context, flags = state.targetctx, state.flags
        state.library = Part(context.codegen(), state.func_id.func_qualname)
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
        super().run_pass(state)
        flags.no_compile = False
        state.library.finalize()
        lowered = state["cr"]
        # numba knows compiled functions by such an object. This one is a key, never called.
        key = _dynfunc.make_function(
            lowered.fndesc.lookup_module(), state.func_id.func_name, "", 0, lowered.env, (state.library,)
        )
        context.insert_user_function(key, lowered.fndesc, [state.library])
        state["cr"] = _LowerResult(lowered.fndesc, lowered.call_helper, cfunc=key, env=lowered.env)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class ProgramLowering(NativeLowering):
    """Lower an entry to a `Program`."""

    _name = "hnefi_program_lowering"

    def run_pass(self, state: Any) -> bool:
        state.flags.no_cfunc_wrapper = True
        state.library = Program(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().run_pass(state)


_return_types = TypeInferer.return_types_from_partial


def _return_types_once(self: Any) -> Any:
    """What a recursive function returns, found once: numba infers the whole function again at every recursive call.

    The answer cannot differ, since each time numba starts from a copy that knows nothing but the arguments.
    """
    if (known := getattr(self, "_hnefi_return_types", None)) is None:
        known = self._hnefi_return_types = _return_types(self)
    return known


TypeInferer.return_types_from_partial = _return_types_once


def _pipeline(base: type[Inlined], lowering: type[NativeLowering]) -> type[Inlined]:
    """A compiler like `base` that lowers its functions by `lowering`."""

    class Pipeline(base):  # type: ignore[valid-type, misc]
        def define_pipelines(self) -> list[Any]:
            (made,) = super().define_pipelines()
            made.passes = [
                (lowering if one is NativeLowering else one, description) for one, description in made.passes
            ]
            made._finalized = False
            made.finalize()
            return [made]

    return Pipeline


_KERNEL = _pipeline(Called, PartLowering)
_MELTED = _pipeline(Inlined, PartLowering)
BOUND = _pipeline(Bound, PartLowering)
_PROGRAM = _pipeline(Bound, ProgramLowering)


def _widest(kind: Any) -> Any:
    """The one type of all integers: narrow ones and constants would each compile everything once more."""
    plain = unliteral(kind)
    return types.int64 if isinstance(plain, types.Integer) and getattr(plain, "bitwidth", 64) < 64 else plain


class _Entry(CPUDispatcher):
    """The function around a kernel that Python calls."""

    def compile(self, sig: Any) -> Any:
        # Numba's own lock is released too early for us: a thread that has finished would release what the next one has
        # just taken.
        with global_compiler_lock:
            try:
                return super().compile(tuple(_widest(kind) for kind in sig))
            finally:
                # Nothing is left to do where all went well; after a failure others must not wait.
                progress.end()
                cache.LOCK.release()


class Kernel(CPUDispatcher):
    """A function that other kernels link, and that Python can call: only then is machine code made."""

    def __init__(
        self,
        function: Callable[..., Any],
        options: dict[str, Any],
        *,
        melted: bool = False,
        cached: bool = False,
    ) -> None:
        # forceinline is explicit: a kernel first compiled for a forced-inline caller would inherit the flag.
        self._options = {"nopython": True, "forceinline": False, **options}
        super().__init__(
            function,
            targetoptions={**self._options, "forceinline": melted},
            pipeline_class=_MELTED if melted else _KERNEL,
        )
        self._cached = cached

    def get_call_template(self, args: Iterable[Any], kws: Any) -> Any:
        """Called by numba with the argument types of a call inside another kernel."""
        return super().get_call_template(tuple(_widest(kind) for kind in args), kws)

    @cached_property
    def entry(self) -> Any:
        """What Python calls: a function that only calls the kernel, with machine code of its own."""
        function = self.py_func
        code = function.__code__
        names = ", ".join(code.co_varnames[: code.co_argcount])
        space = {"kernel": self, "__name__": function.__module__}
        exec(f"def {function.__name__}({names}):\n    return kernel({names})", space)  # noqa: S102 - our own names
        made = _Entry(space[function.__name__], targetoptions=self._options, pipeline_class=_PROGRAM)
        if self._cached:
            made._cache = MachineCode(function)
        return made

    def __call__(self, *arguments: Any) -> Any:
        return self.entry(*arguments)


class MachineCode(_Cache):
    """The machine code of one entry in our folder, in the form in which numba keeps the results of its compiler."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._label = function.__name__.strip("_").replace("_", " ")

    @property
    def cache_path(self) -> str:
        """The folder of the cache, empty where there is none."""
        return str(cache.folder() or "")

    def enable(self) -> None:
        """Numba's word; ours is always enabled."""

    disable = flush = enable

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function for these argument types; None, and the lock taken, if it must be compiled here.

        Numba would import its whole library of functions first, a third of a start. Its compiler does so by itself,
        and machine code without reference counting needs none of it.
        """
        label = self._label
        found = self._load(sig, target_context)
        if found is None:
            if cache.only_loading():
                raise cache.NotCompiled(label)
            # Whoever held the lock until now may have compiled it, also if it was released before we had to wait.
            cache.LOCK.acquire(label)
            found = self._load(sig, target_context)
        if found is None:
            progress.begin(label)
        else:
            progress.loaded(label)
        return found

    def _load(self, sig: Any, target_context: Any) -> Any:
        for magic in _processors(target_context.codegen().magic_tuple()):
            name = self._name(sig, magic)
            if (content := cache.load(name)) is not None:
                try:
                    return CompileResult._rebuild(target_context, *pickle.loads(content))  # noqa: S301 - see `cache`
                except Exception:  # noqa: BLE001 - whatever is wrong with it, it can be compiled again
                    cache.drop(name)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        cache.save(self._name(sig, data.codegen.magic_tuple()), serialize.dumps(data._reduce()))
        cache.note_time(f"{self._label}/{_game(sig)}", progress.end())

    def _name(self, sig: Any, magic: tuple[str, ...]) -> str:
        function = self._function
        parts = (sources.stamp(function.__module__, _bound(sig)), *map(str, sig), *_VERSIONS, *magic)
        digest = sha256("\n".join(parts).encode()).hexdigest()
        return f"{function.__module__.rpartition('.')[2]}.{function.__name__}-{digest[:24]}"


def _bound(sig: Any) -> set[str]:
    """Modules of the kernels that may stand for a verb where the arguments have these types."""
    return {
        one.__module__
        for (_, *dtypes), one in sources.KERNELS.items()
        if all(_record(dtype) in sig for dtype in dtypes)
    }


def _game(sig: Any) -> str:
    """The game whose records are among the arguments: how long a search takes to compile depends on it."""
    return next((name.split(".")[3] for name in sorted(_bound(sig)) if ".games." in name), "")


@lru_cache
def _record(dtype: Any) -> Any:
    """The type that numba gives to records of a dtype."""
    return numba.from_dtype(dtype)


SHIPPED_FOR = "x86-64-v3"
"""The processors for which machine code is shipped: those with all of `_NEEDED`, most since 2013."""
_NEEDED = {
    *("+cmov", "+cx8", "+fxsr", "+mmx", "+sse", "+sse2"),  # every 64-bit processor
    *("+crc32", "+cx16", "+popcnt", "+sahf", "+sse3", "+sse4.1", "+sse4.2", "+ssse3"),  # v2
    *("+avx", "+avx2", "+bmi", "+bmi2", "+f16c", "+fma", "+lzcnt", "+movbe", "+xsave"),  # v3
}
"""What LLVM may use under that name, as it names the features of a processor."""


def _processors(magic: tuple[str, ...]) -> list[tuple[str, ...]]:
    """For whom machine code may have been made that runs here: system, processor and features, as numba names them."""
    system, _, features = magic
    fits = system.startswith("x86_64") and _NEEDED.issubset(features.split(","))
    return [magic, (system, SHIPPED_FOR, "")] if fits else [magic]


_VERSIONS = (
    EXTENSION_SUFFIXES[0],  # what numba's own machine code is chosen by
    numba.__version__,
    ".".join(map(str, llvm.llvm_version_info)),
    *(
        f"{name} {getattr(numba.config, name)}"
        for name in ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "USING_SVML")
    ),
)
"""Whose machine code it is: of this Python, compiler and the compiler's settings."""
