"""The decorators of kernels, `entry`, `kernel` and `inline`, and `BINDING`, the options of verb dispatch.

Every kernel takes structured records (`numpy` dtypes, one pointer each) and is compiled once per record type.
Importing this module imports numba: nothing on the way to the protocol's greeting may do that.

With a version of numba that `linking.py` supports, machine code is made for entries only. Otherwise, or with
HNEFI_COMPILER=numba, numba compiles every kernel on its own: the same machine code in three to six times the time,
cached by numba in a folder named by a hash of all sources.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from . import cache, sources
from .intrinsics import Bound, Called, Inlined

TESTED = ((0, 68), (0, 69))
"""The first version of numba that `linking.py` is known to work with, and the first that is untested."""

OPTIONS: dict[str, Any] = {
    "nogil": True,
    "boundscheck": False,
    "error_model": "numpy",
    # Kernels allocate nothing; without reference counting the search is a fifth faster.
    "_nrt": False,
}


def _linked() -> bool:
    """Whether kernels are linked by `linking.py`."""
    if numba.config.DISABLE_JIT or os.environ.get("HNEFI_COMPILER") == "numba":
        return False
    if TESTED[0] <= numba.version_info.short < TESTED[1]:
        return True
    known = ".".join(map(str, TESTED[0]))
    print(
        f"hnefi: numba {numba.__version__}: compiling takes several times as long as with numba {known}",
        file=sys.stderr,
    )
    return False


LINKED = _linked()

if LINKED:
    from .linking import BOUND, Kernel

    def entry(function: Callable[..., Any]) -> Any:
        """A function that Python calls. Its machine code, including everything that it calls, is cached on disk."""
        return Kernel(function, OPTIONS, cached=True)

    def kernel(function: Callable[..., Any]) -> Any:
        """A function that other kernels call and that is not inlined."""
        return Kernel(function, OPTIONS)

    def inline(function: Callable[..., Any]) -> Any:
        """A helper that is always inlined into its callers."""
        return Kernel(function, OPTIONS, melted=True)

    BINDING = {**OPTIONS, "pipeline_class": BOUND}
    """Options of an `overload` that chooses a kernel by the types of its arguments."""
else:
    if not os.environ.get("NUMBA_CACHE_DIR") and (_place := cache.folder()) is not None:
        # Not the environment variable: a child process of another build would inherit it and run our code.
        _stamp = sources.stamp_of_all(Path(__file__).resolve().parents[1])
        numba.config.CACHE_DIR = str(_place / f"numba-{_stamp[:16]}")
    # forceinline=False is explicit: a kernel first compiled for a forced-inline caller would inherit the flag.
    entry = numba.njit(cache=True, forceinline=False, pipeline_class=Called, **OPTIONS)
    kernel = numba.njit(forceinline=False, pipeline_class=Called, **OPTIONS)
    inline = numba.njit(forceinline=True, pipeline_class=Inlined, **OPTIONS)
    BINDING = {**OPTIONS, "pipeline_class": Bound}
