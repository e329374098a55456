"""Backpropagation and Adam for perceptrons of any number of layers: plain functions over numpy arrays.

The parameters of a network are a list of layers (W, b), W of shape (units, inputs) and b of shape (units,), as
`engine/evaluators/networks/mlp.py` has them; all in one floating-point type, which every result keeps. A batch is an
array with a row for each example. Nothing is random and nothing is changed in place.

Matrix products use numpy's own loops (`einsum`) instead of BLAS, whose order of summation depends on the number of
threads: a run must give the same bits in any process. They reach a fifth of the speed of BLAS on one core.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Layer = tuple[Any, Any]
Params = Sequence[Layer]


@dataclass(frozen=True, slots=True)
class Activation:
    """A function of a unit's sum, and its derivative as a function of the unit's output."""

    function: Callable[[Any], Any]
    slope: Callable[[Any], Any]


def _sigmoid(x: Any) -> Any:
    half = x.dtype.type(0.5)
    return half + half * np.tanh(half * x)  # never overflows


ACTIVATIONS = {
    "linear": Activation(lambda x: x, np.ones_like),
    "sigmoid": Activation(_sigmoid, lambda y: y * (1 - y)),
    "tanh": Activation(np.tanh, lambda y: 1 - y * y),
    "relu": Activation(lambda x: np.maximum(x, 0), lambda y: (y > 0).astype(y.dtype)),
}


def product(one: Any, other: Any) -> Any:
    """The inner products of every row of one matrix with every row of the other."""
    return np.einsum("ik,jk->ij", np.ascontiguousarray(one), np.ascontiguousarray(other))


def forward(params: Params, x: Any, hidden: str = "relu", output: str = "linear") -> list[Any]:
    """The outputs of every layer for a batch; the inputs come first, the network's output last."""
    given = [x]
    for number, (weights, bias) in enumerate(params, 1):
        activation = ACTIVATIONS[output if number == len(params) else hidden]
        given.append(activation.function(product(given[-1], weights) + bias))
    return given


def backward(
    params: Params, given: Sequence[Any], slope: Any, hidden: str = "relu", output: str = "linear"
) -> list[Layer]:
    """The gradients of a loss, summed over the batch. `given` is the result of `forward`; `slope` is the derivative of
    the loss with respect to the network's output, a row for each example."""
    found: list[Layer] = []
    for number in range(len(params), 0, -1):
        activation = ACTIVATIONS[output if number == len(params) else hidden]
        slope = slope * activation.slope(given[number])
        found.append((product(slope.T, given[number - 1].T), slope.sum(axis=0)))
        if number > 1:
            slope = product(slope, params[number - 1][0].T)
    return found[::-1]


@dataclass(frozen=True, slots=True)
class Adam:
    """The state of Adam: steps so far, and means of gradients and of their squares."""

    steps: int
    first: list[Layer]
    second: list[Layer]


def adam_begin(params: Params) -> Adam:
    """The state before the first step."""
    return Adam(0, [(w * 0, b * 0) for w, b in params], [(w * 0, b * 0) for w, b in params])


def adam_step(
    params: Params,
    gradients: Params,
    state: Adam,
    rate: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    epsilon: float = 1e-8,
) -> tuple[list[Layer], Adam]:
    """Parameters and state after one step (D. Kingma, J. Ba, "Adam: a method for stochastic optimization", 2015)."""
    steps = state.steps + 1
    one, two = betas
    scale = rate / (1 - one**steps)
    root = (1 - two**steps) ** -0.5
    arrays = [
        _adam_array(*each, one, two, scale, root, epsilon)
        for each in zip(_flat(params), _flat(gradients), _flat(state.first), _flat(state.second), strict=True)
    ]
    moved, first, second = (
        list(zip(column[::2], column[1::2], strict=True)) for column in zip(*arrays, strict=True)
    )
    return moved, Adam(steps, first, second)


def _flat(layers: Params) -> list[Any]:
    return [array for layer in layers for array in layer]


def _adam_array(
    x: Any,
    slope: Any,
    first: Any,
    second: Any,
    one: float,
    two: float,
    scale: float,
    root: float,
    epsilon: float,
) -> tuple[Any, Any, Any]:
    # Python's floats do not change the type of the arrays.
    first = one * first + (1 - one) * slope
    second = two * second + (1 - two) * (slope * slope)
    return x - scale * first / (root * np.sqrt(second) + epsilon), first, second
