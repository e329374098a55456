"""Vectors of sixteen numbers: in kernels as in Python, and how exact their sums and sigmoids are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hnefi.engine.compile import simd_x16
from hnefi.engine.compile.jit import entry


def vectors(number: str) -> np.dtype[Any]:
    return np.dtype(
        [
            ("a", number, (128,)),
            ("rows", number, (2048,)),
            ("v", number, (16,)),
            ("w", number, (16,)),
            ("out", number, (160,)),
            ("doubles", "f8", (16,)),
        ]
    )


PRECISIONS = {"f8": (1e-12, simd_x16.SIGMOID_ERROR), "f4": (2e-6, simd_x16.SINGLE_SIGMOID_ERROR)}
"""By type of number: the relative error of sums, the error of a sigmoid."""


@entry
def everything(s: Any, i: int, j: int, k: int, x: float) -> Any:
    v = simd_x16.load(s.v, 0)
    w = simd_x16.load(s.w, 0)
    simd_x16.store(s.out, 0, v + w)
    simd_x16.store(s.out, 16, v - w)
    simd_x16.store(s.out, 32, v * w)
    simd_x16.store(s.out, 48, simd_x16.times(v, x))
    simd_x16.store(s.out, 64, simd_x16.triples(s.a, i, j, k))
    simd_x16.store(s.out, 80, simd_x16.sigmoid(v))
    first, second = simd_x16.sigmoids(v, w)
    simd_x16.store(s.out, 96, first)
    simd_x16.store(s.out, 112, second)
    simd_x16.store(s.out, 128, simd_x16.add_rows(v, w, s.rows, i, j, k))
    simd_x16.put_triples(s.a, i, j, k, v)
    simd_x16.store(s.doubles, 0, simd_x16.double(v) * simd_x16.spread(x))
    return simd_x16.dot(simd_x16.double(v), simd_x16.double(w))


@entry
def round_to_single(doubles: Any, singles: Any) -> None:
    simd_x16.store(singles, 0, simd_x16.single(simd_x16.load(doubles, 0)))


@pytest.mark.parametrize("number", PRECISIONS)
def test_vectors_are_what_they_are_in_python(number: str) -> None:
    numbers = np.random.default_rng(4)
    rounding, sigmoid = PRECISIONS[number]
    for spread in (0.1, 1.0, 100.0):
        made = np.zeros(1, vectors(number)).view(np.recarray)
        for name in ("a", "rows", "v", "w"):
            made[0][name] = numbers.normal(0, spread, made[0][name].shape)
        plain = made.copy()
        found = everything(made[0], 9, 20, 40, 1.5)
        function = getattr(everything, "py_func", everything)
        scale = float(np.abs(plain[0]["v"].astype(float)) @ np.abs(plain[0]["w"].astype(float)))
        assert found == pytest.approx(function(plain[0], 9, 20, 40, 1.5), abs=1e-12 * scale)
        # The sixteenth lane of triples is anything.
        made[0]["out"][79] = plain[0]["out"][79] = 0
        summed = slice(128, 144)
        np.testing.assert_allclose(
            made[0]["out"][summed],
            plain[0]["out"][summed],
            rtol=0,
            atol=20 * rounding * spread * (1 + spread),
        )
        made[0]["out"][summed] = plain[0]["out"][summed]
        np.testing.assert_allclose(made[0]["out"], plain[0]["out"], rtol=rounding, atol=2 * sigmoid)
        np.testing.assert_array_equal(made[0]["a"], plain[0]["a"])
        np.testing.assert_array_equal(made[0]["doubles"], plain[0]["doubles"])
        singles, expected = np.zeros(16, np.float32), np.zeros(16, np.float32)
        doubles = numbers.normal(0, spread, 16)
        round_to_single(doubles, singles)
        getattr(round_to_single, "py_func", round_to_single)(doubles, expected)
        np.testing.assert_array_equal(singles, expected)
        np.testing.assert_array_equal(singles, doubles.astype(np.float32))


@pytest.mark.parametrize("number", PRECISIONS)
def test_sigmoid_is_as_exact_as_it_says(number: str) -> None:
    made = np.zeros(1, vectors(number)).view(np.recarray)
    worst = 0.0
    far = [-1e30, -750, 750, 1e30] * 4
    tried = [np.linspace(-45, 45, 16 * 4000), np.random.default_rng(1).normal(0, 1, 16 * 1000), far]
    for x in np.concatenate(tried).astype(number).reshape(-1, 16):
        made[0]["v"] = x
        everything(made[0], 9, 20, 40, 0.0)
        with np.errstate(over="ignore"):
            worst = max(
                worst, float(np.abs(made[0]["out"][80:96] - 1 / (1 + np.exp(-x.astype(float)))).max())
            )
    assert PRECISIONS[number][1] / 4 < worst < PRECISIONS[number][1]
