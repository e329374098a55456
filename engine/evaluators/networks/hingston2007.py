"""The evolved network of 2007: strips and patches of the board, one hidden layer (kernel).

Source: P. Hingston, "Evolving Players for an Ancient Game: Hnefatafl" (2007). A board of N x N cells, the top rank
first: attackers 1, defenders -1, king -2, empty 0. Sigmoid features look at N - 2 vertical strips (three files, all
ranks), N - 2 horizontal strips and (N - 2)^2 patches of 3 x 3; three raw inputs follow: men taken by the attackers, men
taken by the defenders, 1 if the attackers are to move. Sigmoid hidden units see all of these. The value is the output
unit before its sigmoid, which orders positions in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ...compile.jit import entry, inline, kernel
from ...games.tafl.codes import DEFENDING, KING, PIECE
from ...squares import STRIDE

NUMBER = 2
SOURCE = 'P. Hingston, "Evolving Players for an Ancient Game: Hnefatafl", 2007'
GAMES = ("tafl",)
SCALE = 100.0
SIZE, HIDDEN = 0, 1
"""Indices of the layout's numbers."""
OPTIONS: Mapping[str, int] = {"hidden": 10}
PATCH = 3 * 3 + 1
"""Weights of a patch, with its bias."""


def shapes(variant: Any, options: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays by name, in the order of the weights."""
    n, hidden = variant.files, options["hidden"]
    strips = n - 2
    features = 2 * strips + strips * strips + 3
    return {
        "vertical": (strips, n, 3),
        "vertical_bias": (strips,),
        "horizontal": (strips, 3, n),
        "horizontal_bias": (strips,),
        "patch": (strips * strips, 3, 3),
        "patch_bias": (strips * strips,),
        "hidden": (hidden, features),
        "hidden_bias": (hidden,),
        "output": (hidden,),
        "output_bias": (1,),
    }


def layout(variant: Any, options: Mapping[str, int]) -> tuple[int, ...]:
    """The sizes that the kernels need: up to 16 integers for `p.shape`."""
    return (variant.files, options["hidden"])


def picture(variant: Any, position: Any) -> Any:
    """The board as the network sees it, int[N, N], top rank first."""
    import numpy as np

    from ...squares import file_of, rank_of

    n = variant.files
    board = np.zeros((n, n))
    for sq, letter in position.pieces():
        board[n - 1 - rank_of(sq), file_of(sq)] = -2 if letter == "K" else -1 if letter.isupper() else 1
    return board


def naive_windows(arrays: Mapping[str, Any], board: Any) -> list[float]:
    """The features of all windows."""
    strips = range(len(board) - 2)
    windows = [board[:, s : s + 3] for s in strips]
    windows += [board[s : s + 3] for s in strips]
    windows += [board[r : r + 3, c : c + 3] for r in strips for c in strips]
    weights = [*arrays["vertical"], *arrays["horizontal"], *arrays["patch"]]
    biases = [*arrays["vertical_bias"], *arrays["horizontal_bias"], *arrays["patch_bias"]]
    return [naive_sigmoid(float((w * x).sum()) + b) for w, x, b in zip(weights, windows, biases, strict=True)]


def naive_conclusion(arrays: Mapping[str, Any], inputs: list[float]) -> float:
    """The value, from the inputs of the hidden units."""
    import numpy as np

    hidden = [
        naive_sigmoid(float(w @ np.array(inputs)) + b)
        for w, b in zip(arrays["hidden"], arrays["hidden_bias"], strict=True)
    ]
    return float(arrays["output"] @ np.array(hidden) + arrays["output_bias"][0])


def naive(variant: Any, options: Mapping[str, int], arrays: Mapping[str, Any], position: Any) -> float:
    """The value for side `a` in float64: a slow, obvious reference for the kernel."""
    seen = naive_windows(arrays, picture(variant, position))
    return naive_conclusion(arrays, [*seen, *position.taken, 1 if position.side == 0 else 0])


def naive_sigmoid(x: float) -> float:
    """The logistic function of `x`."""
    return 1 / (1 + math.exp(-x))


@inline
def sigmoid(x):
    """The logistic function of `x`."""
    return 1.0 / (1.0 + math.exp(-x))


@inline
def code(s, sq):
    """The input for a square."""
    piece = s.board[sq] & PIECE
    if piece == 0:
        return 0
    if piece == KING:
        return -2
    return -1 if piece & DEFENDING else 1


@inline
def window(p, s, n, row, column, rows, columns, at):
    """The weighted sum over a window of the board; weights begin at `at`."""
    total = 0.0
    for r in range(row, row + rows):
        base = (n - r) * STRIDE + 1
        for c in range(column, column + columns):
            total += p.weights[at] * code(s, base + c)
            at += 1
    return total


@inline
def look(p, s):
    """Write the features of all windows to `p.inputs`; returns the index of the first weight after theirs."""
    n = p["shape"][SIZE]
    strips = n - 2
    at = 0
    f = 0
    bias = strips * n * 3
    for i in range(strips):
        p.inputs[f] = sigmoid(window(p, s, n, 0, i, n, 3, at) + p.weights[bias + i])
        at += 3 * n
        f += 1
    at = bias + strips
    bias = at + strips * n * 3
    for i in range(strips):
        p.inputs[f] = sigmoid(window(p, s, n, i, 0, 3, n, at) + p.weights[bias + i])
        at += 3 * n
        f += 1
    at = bias + strips
    bias = at + strips * strips * 9
    for r in range(strips):
        for c in range(strips):
            p.inputs[f] = sigmoid(window(p, s, n, r, c, 3, 3, at) + p.weights[bias + r * strips + c])
            at += 9
            f += 1
    return bias + strips * strips


@inline
def conclude(p, f, at):
    """The value from the first `f` inputs; the weights of the hidden units begin at `at`."""
    hidden = p["shape"][HIDDEN]
    bias = at + hidden * f
    out = bias + hidden
    total = 0.0
    for h in range(hidden):
        sum_ = 0.0
        for i in range(f):
            sum_ += p.weights[at + i] * p.inputs[i]
        at += f
        total += p.weights[out + h] * sigmoid(sum_ + p.weights[bias + h])
    return total + p.weights[out + hidden]


@entry
def value(p, s):
    """The value for the attackers: the output unit before its sigmoid."""
    strips = p["shape"][SIZE] - 2
    f = 2 * strips + strips * strips
    at = look(p, s)
    p.inputs[f] = s.taken[0]
    p.inputs[f + 1] = s.taken[1]
    p.inputs[f + 2] = 1.0 if s.side == 0 else 0.0
    return conclude(p, f + 3, at)


@kernel
def window_slopes(s, g, n, row, column, rows, columns, at, error):
    """The slopes by the weights of a window, which begin at `at`; `error` is the slope by its sum."""
    for r in range(row, row + rows):
        base = (n - r) * STRIDE + 1
        for c in range(column, column + columns):
            g.slope[at] = error * code(s, base + c)
            at += 1


@kernel
def look_slopes(p, s, g):
    """The slopes by the weights of all windows, given those by their features in `g.errors[0]`."""
    n = p["shape"][SIZE]
    strips = n - 2
    f = 0
    at = 0
    for kind in range(3):
        windows = strips * strips if kind == 2 else strips
        size = 9 if kind == 2 else 3 * n
        bias = at + windows * size
        for i in range(windows):
            feature = p.inputs[f]
            error = g.errors[0, f] * feature * (1.0 - feature)
            if kind == 0:
                window_slopes(s, g, n, 0, i, n, 3, at, error)
            elif kind == 1:
                window_slopes(s, g, n, i, 0, 3, n, at, error)
            else:
                window_slopes(s, g, n, i // strips, i % strips, 3, 3, at, error)
            g.slope[bias + i] = error
            at += size
            f += 1
        at = bias + windows


@kernel
def conclude_slopes(p, g, f, at):
    """Write the slopes by the weights after the features' own to `g.slope`, and those by the features to `g.errors[0]`.

    The `f` inputs are in `p.inputs`; the weights of the hidden units begin at `at`.
    """
    hidden = p["shape"][HIDDEN]
    bias = at + hidden * f
    out = bias + hidden
    for i in range(f):
        g.errors[0, i] = 0.0
    g.slope[out + hidden] = 1.0
    for h in range(hidden):
        sum_ = p.weights[bias + h]
        for i in range(f):
            sum_ += p.weights[at + i] * p.inputs[i]
        unit = sigmoid(sum_)
        error = p.weights[out + h] * unit * (1.0 - unit)
        g.slope[out + h] = unit
        g.slope[bias + h] = error
        for i in range(f):
            g.slope[at + i] = error * p.inputs[i]
            g.errors[0, i] += error * p.weights[at + i]
        at += f


@kernel
def slopes(p, s, g):
    """Write the slopes of the value by all weights to `g.slope`; must run right after `value`."""
    n = p["shape"][SIZE]
    strips = n - 2
    f = 2 * strips + strips * strips
    conclude_slopes(p, g, f + 3, 2 * (3 * n * strips + strips) + strips * strips * PATCH)
    look_slopes(p, s, g)
