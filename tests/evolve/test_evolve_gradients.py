"""Backpropagation against finite differences, Adam against its formulas for one weight; the same in any process."""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from hnefi.tools.evolve import gradients

SIZES = ((5, 4, 3, 2), (6, 4))


def _params(sizes, dtype=np.float64, seed=1):
    draw = np.random.default_rng(seed)
    return [
        (draw.standard_normal((units, below)).astype(dtype), draw.standard_normal(units).astype(dtype))
        for below, units in pairwise(sizes)
    ]


def _naive(params, x, hidden, output):
    """One example, unit by unit."""
    named = {
        "linear": lambda s: s,
        "sigmoid": lambda s: 1 / (1 + math.exp(-s)),
        "tanh": math.tanh,
        "relu": lambda s: max(s, 0.0),
    }
    for number, (weights, bias) in enumerate(params, 1):
        name = output if number == len(params) else hidden
        x = [
            named[name](sum(w * v for w, v in zip(row, x, strict=True)) + b)
            for row, b in zip(weights, bias, strict=True)
        ]
    return x


@pytest.mark.parametrize("hidden", gradients.ACTIVATIONS)
@pytest.mark.parametrize("output", gradients.ACTIVATIONS)
@pytest.mark.parametrize("sizes", SIZES)
def test_forward_is_the_naive_sum_and_backward_its_finite_difference(hidden, output, sizes):
    params = _params(sizes)
    draw = np.random.default_rng(2)
    batch, worth = draw.standard_normal((3, sizes[0])), draw.standard_normal((3, sizes[-1]))

    def loss(params):
        return float((worth * gradients.forward(params, batch, hidden, output)[-1]).sum())

    given = gradients.forward(params, batch, hidden, output)
    assert np.allclose(given[-1], [_naive(params, x, hidden, output) for x in batch], rtol=1e-12, atol=1e-12)
    found = gradients.backward(params, given, worth, hidden, output)
    step = 1e-6
    for layer, pair in enumerate(params):
        for part, array in enumerate(pair):
            assert found[layer][part].shape == array.shape
            for place in np.ndindex(array.shape):
                kept = array[place]
                array[place] = kept + step
                above = loss(params)
                array[place] = kept - step
                below = loss(params)
                array[place] = kept
                assert found[layer][part][place] == pytest.approx(
                    (above - below) / (2 * step), rel=1e-5, abs=1e-6
                )


def test_adam_is_its_formulas():
    """One weight through three steps, written out."""
    params = [(np.array([[0.5]]), np.array([-1.0]))]
    state = gradients.adam_begin(params)
    x, m, v = 0.5, 0.0, 0.0
    for t, slope in enumerate((2.0, -0.3, 0.07), 1):
        params, state = gradients.adam_step(params, [(np.array([[slope]]), np.array([0.0]))], state, 0.01)
        m, v = 0.9 * m + 0.1 * slope, 0.999 * v + 0.001 * slope**2
        x -= 0.01 * (m / (1 - 0.9**t)) / (math.sqrt(v / (1 - 0.999**t)) + 1e-8)
        assert params[0][0][0, 0] == pytest.approx(x, rel=1e-12)
        assert params[0][1][0] == -1.0
    assert state.steps == 3


def test_training_learns_and_keeps_its_type():
    """Exclusive or, which no single layer can learn, in single precision."""
    params = _params((2, 8, 1), np.float32, 5)
    x = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
    wanted = np.array([[0], [1], [1], [0]], np.float32)
    state = gradients.adam_begin(params)
    for _ in range(500):
        given = gradients.forward(params, x, "tanh", "sigmoid")
        slopes = gradients.backward(params, given, given[-1] - wanted, "tanh", "sigmoid")
        params, state = gradients.adam_step(params, slopes, state, 0.05)
    assert np.abs(gradients.forward(params, x, "tanh", "sigmoid")[-1] - wanted).max() < 0.1
    assert {array.dtype for layer in [*params, *state.first, *state.second] for array in layer} == {
        np.dtype(np.float32)
    }


def digest() -> str:
    """A hash of some steps of training. Of 777 examples and more BLAS makes sums that follow the number of threads."""
    params = _params((21, 128, 29), np.float32)
    x = np.random.default_rng(3).standard_normal((1000, 21)).astype(np.float32)
    state = gradients.adam_begin(params)
    for _ in range(2):
        given = gradients.forward(params, x)
        params, state = gradients.adam_step(params, gradients.backward(params, given, given[-1]), state)
    return hashlib.sha256(b"".join(array.tobytes() for layer in params for array in layer)).hexdigest()


@pytest.mark.process
@pytest.mark.slow
def test_steps_are_the_same_with_any_number_of_threads():
    """A process whose BLAS has several threads finds what this one finds, whatever this one's has."""
    code = "import test_evolve_gradients; print(test_evolve_gradients.digest())"
    for threads in ("1", "4"):
        environment = {
            **os.environ,
            "OPENBLAS_NUM_THREADS": threads,
            "PYTHONPATH": str(Path(__file__).parent),
        }
        found = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
        assert found.stdout.strip() == digest()
