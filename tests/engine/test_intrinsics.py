"""What kernels ask of the compiler: indices count from the start, called kernels stay apart, helpers melt in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import config

from hnefi.engine.compile.jit import inline, kernel

pytestmark = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")

RECORD = np.dtype([("cells", "i8", (4,)), ("table", "i4", (3, 5))], align=True)


@inline
def helper(s: Any, i: int) -> Any:
    return s.cells[i]


@kernel
def reads(s: Any, i: int, j: int) -> Any:
    return helper(s, i) + s.table[j, i] + s.cells[0]


@kernel
def writes(s: Any, i: int, j: int) -> None:
    s.cells[i] = 7
    s.table[j, i] += 2


def record() -> Any:
    made = np.zeros(1, RECORD).view(np.recarray)
    made[0]["cells"] = range(4)
    made[0]["table"] = np.arange(15).reshape(3, 5)
    return made


def test_same_values_as_in_python() -> None:
    made, plain = record(), record()
    for i in range(4):
        for j in range(3):
            assert reads(made[0], i, j) == reads.py_func(plain[0], i, j)
            writes(made[0], i, j)
            writes.py_func(plain[0], i, j)
    assert made.tobytes() == plain.tobytes()


def test_no_index_is_tested_for_being_negative() -> None:
    made = record()
    reads(made[0], 1, 2)
    writes(made[0], 1, 2)
    for function in (reads, writes):
        # With all it calls melted in: before that there is a choice of errors of what is called.
        (text,) = getattr(function, "entry", function).inspect_llvm().values()
        (name,) = (overload.fndesc.mangled_name for overload in function.overloads.values())
        (body,) = (part for part in text.split("\ndefine ") if f"@{name}(" in part.partition("\n")[0])
        assert "getelementptr" in body
        assert "icmp slt" not in body.partition("\n}")[0]
        assert "select" not in body.partition("\n}")[0]


def test_kernels_stay_in_one_piece() -> None:
    reads(record()[0], 1, 2)
    (text,) = reads.inspect_llvm().values()
    (name,) = (overload.fndesc.mangled_name for overload in reads.overloads.values())
    head = next(line for line in text.splitlines() if line.startswith("define") and f"@{name}(" in line)
    number = head.partition("#")[2].split()[0]
    attributes = next(line for line in text.splitlines() if line.startswith(f"attributes #{number} "))
    assert "noinline" in attributes
