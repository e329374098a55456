"""A small program with kernels, for tests of how they are compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba import config

from hnefi.engine.compile import jit

compiled = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")
linked = pytest.mark.skipif(not jit.LINKED, reason="this version of numba links its own way")

SMALL = """
import sys
import numpy as np
from hnefi.engine.compile import progress
from hnefi.engine.compile.jit import entry, kernel

RECORD = np.dtype([("cells", "i4", (8,)), ("n", "i8")], align=True)

@kernel
def added(s, i):
    return 0 if i == 8 else s.cells[i] + added(s, i + 1)

@entry
def count(s):
    s.n = added(s, 0)
    return s.n

made = np.zeros(1, RECORD).view(np.recarray)
made[0]["cells"] = range(8)
assert count(made[0]) == 28
stats = count.entry.stats
# At once: processes that share a pipe would mix what `print` writes piece by piece.
sys.stdout.write(f"{sum(stats.cache_misses.values())} {sum(stats.cache_hits.values())}\\n")
"""


def run(script: Path, home: Path, **extra: str) -> subprocess.CompletedProcess[str]:
    # The modules of other users' caches do not matter: each test has a cache of its own.
    env = {**os.environ, "XDG_CACHE_HOME": str(home.parent), **extra}
    return subprocess.run(
        [sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=800, check=False
    )
