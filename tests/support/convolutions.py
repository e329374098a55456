"""Backpropagation through a residual network in numpy, the slow twin of its kernel.

A convolution is a product of matrices: a row for each cell of each example, with what the nine cells around it hold.
Arrays are (examples, rows, columns, planes), all float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hnefi.tools.evolve.gradients import product

Arrays = Mapping[str, Any]


def columns(x: Any) -> Any:
    """(examples * cells, 9 * planes): the neighbourhood of every cell, 0 beyond the board."""
    count, n, _, planes = x.shape
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return np.ascontiguousarray(windows.transpose(0, 1, 2, 4, 5, 3)).reshape(count * n * n, 9 * planes)


def spread(slopes: Any, shape: tuple[int, ...]) -> Any:
    """The transpose of `columns`: what every cell gets from the neighbourhoods that it is part of."""
    count, n, _, planes = shape
    parts = slopes.reshape(count, n, n, 3, 3, planes)
    found = np.zeros((count, n + 2, n + 2, planes), slopes.dtype)
    for row in range(3):
        for column in range(3):
            found[:, row : row + n, column : column + n] += parts[:, :, :, row, column]
    return found[:, 1:-1, 1:-1]


def gradient(
    arrays: Arrays, inputs: Any, planes: int, blocks: int, loss: Callable[[Any], tuple[Any, Any]]
) -> tuple[Any, dict[str, Any]]:
    """The loss of a batch and its derivatives by all arrays. `loss` takes the outputs (examples x moves and then the
    value before tanh) and returns itself and its slope by them; an example counts for the heads of the side to move."""
    count = len(inputs)
    n = round((inputs.shape[1] // planes) ** 0.5)
    seen = inputs.reshape(count, planes, n, n)
    sides = (seen[:, 4 if planes > 4 else 2, 0, 0] == 0).astype(int)
    tape: list[tuple[str, Any, tuple[int, ...]]] = []

    def convolve(x: Any, name: str) -> Any:
        weights = arrays[name]
        filters = weights.shape[-1]
        seen = columns(x)
        tape.append((name, seen, x.shape))
        flat = product(seen, weights.reshape(-1, filters).T) + arrays[f"{name}_bias"]
        return flat.reshape(count, n, n, filters)

    x = np.maximum(convolve(np.ascontiguousarray(seen.transpose(0, 2, 3, 1)), "stem"), 0)
    kept = [x]
    for block in range(1, blocks + 1):
        inner = np.maximum(convolve(x, f"block{block}_one"), 0)
        x = np.maximum(x + convolve(inner, f"block{block}_two"), 0)
        kept += [inner, x]
    trunk = x.reshape(count, n * n, -1)
    found = {name: np.zeros_like(array) for name, array in arrays.items()}
    largest = trunk.argmax(axis=1)
    pooled = np.concatenate([trunk.mean(axis=1), trunk.max(axis=1)], axis=1)
    heads = [np.flatnonzero(sides == side) for side in (0, 1)]
    outputs, hidden = None, np.zeros((count, arrays["hidden"].shape[2]), trunk.dtype)
    for side, rows in enumerate(heads):
        logits = (
            product(trunk[rows].reshape(-1, trunk.shape[2]), arrays["policy"][side].T)
            + arrays["policy_bias"][side]
        )
        hidden[rows] = np.maximum(
            product(pooled[rows], arrays["hidden"][side].T) + arrays["hidden_bias"][side], 0
        )
        value = product(hidden[rows], arrays["value"][side][None]) + arrays["value_bias"][side]
        if outputs is None:
            outputs = np.zeros((count, n * n * logits.shape[1] + 1), trunk.dtype)
        outputs[rows] = np.concatenate([logits.reshape(len(rows), -1), value], axis=1)
    result, slope = loss(outputs)

    # And back.
    back = np.zeros_like(trunk)
    for side, rows in enumerate(heads):
        logits = slope[rows, :-1].reshape(len(rows) * n * n, -1)
        below = trunk[rows].reshape(len(rows) * n * n, -1)
        found["policy"][side] = product(below.T, logits.T)
        found["policy_bias"][side] = logits.sum(axis=0)
        back[rows] += product(logits, arrays["policy"][side]).reshape(len(rows), n * n, -1)
        value = slope[rows, -1:]
        found["value"][side] = product(value.T, hidden[rows].T)[0]
        found["value_bias"][side] = value.sum()
        units = value * arrays["value"][side] * (hidden[rows] > 0)
        found["hidden"][side] = product(pooled[rows].T, units.T)
        found["hidden_bias"][side] = units.sum(axis=0)
        means, most = np.split(product(units, arrays["hidden"][side]), 2, axis=1)
        back[rows] += means[:, None] / (n * n)
        np.add.at(back, (rows[:, None], largest[rows], np.arange(back.shape[2])[None]), most)
    back = back.reshape(x.shape)

    def unconvolve(slopes: Any) -> Any:
        name, seen, shape = tape.pop()
        flat = slopes.reshape(-1, slopes.shape[-1])
        weights = arrays[name]
        found[name] = product(seen.T, flat.T).reshape(weights.shape)
        found[f"{name}_bias"] = flat.sum(axis=0)
        return spread(product(flat, weights.reshape(-1, flat.shape[1])), shape) if tape else None

    for block in range(blocks, 0, -1):
        back = back * (kept[2 * block] > 0)
        inner = unconvolve(back) * (kept[2 * block - 1] > 0)
        back = back + unconvolve(inner)
    unconvolve(back * (kept[0] > 0))
    return result, found
