"""How kernels are compiled, and where their machine code is kept.

Every kernel takes structured records (`numpy` dtypes, one pointer each) and is compiled once per record type.
Importing this module imports numba: nothing on the way to the protocol's greeting may do that.

The disk cache lies in a folder named by a hash over the text of all kernels. numba itself stamps only the file
that defines a function: without the hash, a helper edited in another file would silently keep running as old
machine code inside its callers.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from .intrinsics import Called, Inlined

KEPT_CACHES = 4
"""Machine code of this many source states is kept; a checkout that goes back and forth does not recompile."""


def _user_cache() -> Path:
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "hnefi"


def source_hash() -> str:
    """SHA-256 over the files that kernels are compiled from: those that use this module, and the constants' homes.

    The rest of the engine may change without compiling anything anew.
    """
    root = Path(__file__).resolve().parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        text = path.read_bytes()
        if b"jit import" in text or path.name in (
            "jit.py",
            "intrinsics.py",
            "squares.py",
            "state.py",
            "features.py",
            "verbs.py",
        ):
            digest.update(str(path.relative_to(root)).encode())
            digest.update(text)
    return digest.hexdigest()


def _prepare_cache() -> str:
    """Point numba at our cache folder unless the user named one; returns the folder in force."""
    if os.environ.get("NUMBA_CACHE_DIR"):
        return str(numba.config.CACHE_DIR)
    base = _user_cache()
    folder = base / source_hash()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        old = sorted((f for f in base.iterdir() if f.is_dir()), key=lambda f: f.stat().st_mtime)
        for stale in old[:-KEPT_CACHES]:
            shutil.rmtree(stale, ignore_errors=True)
    except OSError:
        # A read-only home: numba falls back to __pycache__ or compiles anew in every process.
        return ""
    # Not the environment variable: a child process of another build would inherit it and run our code.
    numba.config.CACHE_DIR = str(folder)
    return str(folder)


CACHE_FOLDER = _prepare_cache()

OPTIONS: dict[str, Any] = {
    "nogil": True,
    "boundscheck": False,
    "error_model": "numpy",
    # Kernels allocate nothing; without reference counting the search is a fifth faster.
    "_nrt": False,
}

entry: Callable[[Any], Any] = numba.njit(cache=True, forceinline=False, pipeline_class=Called, **OPTIONS)
"""A function that Python calls. Its machine code, with all it calls, is kept on disk.

Only these are: each cached function costs a start a millisecond, whether it is called or not.
"""

# Said aloud: a kernel first compiled for a forced-inline caller would inherit the flag, and its callees too.
kernel: Callable[[Any], Any] = numba.njit(forceinline=False, pipeline_class=Called, **OPTIONS)
"""A body large enough to be called by other kernels."""

inline: Callable[[Any], Any] = numba.njit(forceinline=True, pipeline_class=Inlined, **OPTIONS)
"""A helper that LLVM must melt into its callers."""
