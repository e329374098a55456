"""Backpropagation through the residual network of `networks/residual.py` (kernels).

Each example takes one pass: forward, the loss, and backward. The slopes of a batch are summed in the order of its
examples, so that a run is bit-for-bit the same with any number of threads. The gradient of a convolution by its inputs
is a convolution with the flipped weights, so the kernel of `residual.py` computes that too.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..compile.jit import entry, kernel
from ..compile.simd_f32 import LANES, add_times, load_lanes, store_lanes
from .networks.residual import BLOCKS, CHANNELS, FILTERS, HIDDEN, PLANES, SIZE, convolve, rectify

MOST_WEIGHTS = 1 << 17
MOST_UNITS = 1 << 15
MOST_FRAMES = 32
MOST_POOLED = 1 << 9

TAPE = np.dtype(
    [
        ("shape", "i8", (5,)),  # as `residual.layout` returns it
        ("side_plane", "i8"),
        ("loss_value", "f8"),  # of the batch
        ("loss_policy", "f8"),
        ("entropy", "f8"),  # of its targets
        ("weights", "f4", (MOST_WEIGHTS,)),
        ("turned", "f4", (MOST_WEIGHTS,)),  # the convolutions as `turned` writes them, in the same places
        ("slopes", "f4", (MOST_WEIGHTS,)),  # of the loss of the batch, by each weight
        ("seen", "f4", (MOST_UNITS,)),  # the inputs, as planes in a frame
        ("frames", "f4", (MOST_FRAMES, MOST_UNITS)),  # outputs of each convolution, after ReLU
        ("back", "f4", (2, MOST_UNITS)),  # slopes by the units of a frame
        ("policy", "f4", (MOST_UNITS,)),
        ("pooled", "f4", (MOST_POOLED,)),
        ("largest", "i4", (MOST_POOLED,)),  # the cell where each plane has its maximum
        ("hidden", "f4", (HIDDEN,)),
    ],
    align=True,
)


def turned(weights: Any, layout: tuple[int, ...]) -> Any:
    """Weights for the backward pass: each convolution but the first is replaced by its transpose, without biases."""
    _, below, filters, blocks, _ = layout
    found = np.zeros_like(weights)
    at, size = 9 * below * filters + filters, 9 * filters * filters
    for _ in range(2 * blocks):
        taps = weights[at : at + size].reshape(9, filters, filters)
        found[at : at + size] = taps[::-1].transpose(0, 2, 1).ravel()
        at += size + filters
    return found


def tape(layout: tuple[int, ...], side_plane: int) -> Any:
    """A record for batches of one network; ValueError if there is no room for it."""
    n, _, filters, blocks, moves = layout
    if 2 * blocks + 1 > MOST_FRAMES or (n + 2) ** 2 * filters + 4 * filters > MOST_UNITS:
        raise ValueError(f"{blocks} blocks of {filters} filters: expected fewer")
    if n * n * moves > MOST_UNITS or 2 * filters > MOST_POOLED:
        raise ValueError(f"{n * n * moves} moves, {filters} filters: expected fewer")
    made = np.zeros(1, TAPE).view(np.recarray)
    made[0]["shape"] = layout
    made[0]["side_plane"] = side_plane
    return made


@kernel
def clear(x, n, filters):
    """Set every cell of the board to 0."""
    width = n + 2
    for r in range(1, n + 1):
        for k in range((r * width + 1) * filters, (r * width + n + 1) * filters):
            x[k] = 0.0


@kernel
def copy(x, out, n, filters):
    """Copy the inner cells of `x` to `out`, both (n + 2, n + 2, filters)."""
    width = n + 2
    for r in range(1, n + 1):
        for k in range((r * width + 1) * filters, (r * width + n + 1) * filters):
            out[k] = x[k]


@kernel
def stop_at_zero(slopes, x, n, filters):
    """Zero the slopes, in place, where the outputs `x` of a ReLU are 0."""
    width = n + 2
    for r in range(1, n + 1):
        for k in range((r * width + 1) * filters, (r * width + n + 1) * filters):
            if x[k] <= 0.0:
                slopes[k] = 0.0


@kernel
def weigh(x, back, slopes, at, n, below, filters):
    """Add the slopes by the weights and biases of a convolution with inputs `x`; `back` has those by its outputs."""
    width = n + 2
    whole = below // 4 * 4
    for part in range(0, filters, LANES):
        for tap in range(9):
            shift = (tap // 3 - 1) * width + tap % 3 - 1
            for i in range(0, whole, 4):
                to = at + (tap * below + i) * filters + part
                one = load_lanes(slopes, to)
                two = load_lanes(slopes, to + filters)
                three = load_lanes(slopes, to + 2 * filters)
                four = load_lanes(slopes, to + 3 * filters)
                for r in range(1, n + 1):
                    for cell in range(r * width + 1, r * width + n + 1):
                        source = (cell + shift) * below + i
                        d = load_lanes(back, cell * filters + part)
                        one = add_times(one, x[source], d)
                        two = add_times(two, x[source + 1], d)
                        three = add_times(three, x[source + 2], d)
                        four = add_times(four, x[source + 3], d)
                store_lanes(slopes, to, one)
                store_lanes(slopes, to + filters, two)
                store_lanes(slopes, to + 2 * filters, three)
                store_lanes(slopes, to + 3 * filters, four)
            for i in range(whole, below):
                to = at + (tap * below + i) * filters + part
                one = load_lanes(slopes, to)
                for r in range(1, n + 1):
                    for cell in range(r * width + 1, r * width + n + 1):
                        one = add_times(
                            one, x[(cell + shift) * below + i], load_lanes(back, cell * filters + part)
                        )
                store_lanes(slopes, to, one)
        to = at + 9 * below * filters + part
        one = load_lanes(slopes, to)
        for r in range(1, n + 1):
            for cell in range(r * width + 1, r * width + n + 1):
                one = add_times(one, np.float32(1.0), load_lanes(back, cell * filters + part))
        store_lanes(slopes, to, one)


@kernel
def example(t, inputs, policies, legal, results, weights, row):
    """Add the loss of one example and its slopes to the tape."""
    n = t["shape"][SIZE]
    below = t["shape"][PLANES]
    filters = t["shape"][FILTERS]
    blocks = t["shape"][BLOCKS]
    moves = t["shape"][CHANNELS]
    width = n + 2
    cells = n * n
    weight = np.float32(weights[row])
    side = 0 if inputs[row, t.side_plane * cells] != 0.0 else 1

    # Forward.
    for r in range(n):
        for c in range(n):
            to = ((r + 1) * width + c + 1) * below
            for i in range(below):
                t.seen[to + i] = inputs[row, i * cells + r * n + c]
    clear(t.frames[0], n, filters)
    at = convolve(t.seen, t.weights, 0, t.frames[0], n, below, filters)
    rectify(t.frames[0], n, filters)
    for block in range(blocks):
        clear(t.frames[2 * block + 1], n, filters)
        at = convolve(t.frames[2 * block], t.weights, at, t.frames[2 * block + 1], n, filters, filters)
        rectify(t.frames[2 * block + 1], n, filters)
        copy(t.frames[2 * block], t.frames[2 * block + 2], n, filters)
        at = convolve(t.frames[2 * block + 1], t.weights, at, t.frames[2 * block + 2], n, filters, filters)
        rectify(t.frames[2 * block + 2], n, filters)
    trunk = t.frames[2 * blocks]
    policy = at + side * filters * moves
    policy_bias = at + 2 * filters * moves + side * moves
    at += 2 * (filters + 1) * moves
    hidden = at + side * 2 * filters * HIDDEN
    hidden_bias = at + 4 * filters * HIDDEN + side * HIDDEN
    at += 4 * filters * HIDDEN + 2 * HIDDEN
    value_head = at + side * HIDDEN
    value_bias = at + 2 * HIDDEN + side

    # The policy, over legal moves only, and its loss.
    highest = np.float32(-np.inf)
    for k in range(cells * moves):
        if legal[row, k]:
            cell = k // moves
            m = k - cell * moves
            source = ((cell // n + 1) * width + cell % n + 1) * filters
            x = t.weights[policy_bias + m]
            for i in range(filters):
                x += trunk[source + i] * t.weights[policy + i * moves + m]
            t.policy[k] = x
            highest = max(highest, x)
    total = 0.0
    for k in range(cells * moves):
        if legal[row, k]:
            total += math.exp(t.policy[k] - highest)
    log_total = math.log(total)
    back = t.back[0]
    clear(back, n, filters)
    for k in range(cells * moves):
        if legal[row, k]:
            log_share = t.policy[k] - highest - log_total
            target = policies[row, k]
            if target > 0.0:
                t.loss_policy -= weight * target * log_share
                t.entropy -= weight * target * math.log(target)
            slope = np.float32((math.exp(log_share) - target) * weight)
            cell = k // moves
            m = k - cell * moves
            source = ((cell // n + 1) * width + cell % n + 1) * filters
            t.slopes[policy_bias + m] += slope
            for i in range(filters):
                t.slopes[policy + i * moves + m] += slope * trunk[source + i]
                back[source + i] += slope * t.weights[policy + i * moves + m]

    # The value.
    for i in range(filters):
        total_f = np.float32(0.0)
        largest = np.float32(-1.0)
        where = 0
        for r in range(1, n + 1):
            for cell in range(r * width + 1, r * width + n + 1):
                x = trunk[cell * filters + i]
                total_f += x
                if x > largest:
                    largest = x
                    where = cell
        t.pooled[i] = total_f / np.float32(cells)
        t.pooled[filters + i] = largest
        t.largest[i] = where
    x = t.weights[value_bias]
    for h in range(HIDDEN):
        t.hidden[h] = t.weights[hidden_bias + h]
    for i in range(2 * filters):
        for h in range(HIDDEN):
            t.hidden[h] += t.pooled[i] * t.weights[hidden + i * HIDDEN + h]
    for h in range(HIDDEN):
        t.hidden[h] = max(t.hidden[h], np.float32(0.0))
        x += t.hidden[h] * t.weights[value_head + h]
    value = math.tanh(x)
    error = value - results[row]
    t.loss_value += weight * error * error
    slope = np.float32(2.0 * error * (1.0 - value * value) * weight)
    t.slopes[value_bias] += slope
    for h in range(HIDDEN):
        t.slopes[value_head + h] += slope * t.hidden[h]
        # From here on `t.hidden` holds slopes.
        t.hidden[h] = slope * t.weights[value_head + h] if t.hidden[h] > 0.0 else np.float32(0.0)
        t.slopes[hidden_bias + h] += t.hidden[h]
    for i in range(2 * filters):
        x = np.float32(0.0)
        for h in range(HIDDEN):
            t.slopes[hidden + i * HIDDEN + h] += t.pooled[i] * t.hidden[h]
            x += t.hidden[h] * t.weights[hidden + i * HIDDEN + h]
        if i < filters:
            x = x / np.float32(cells)
            for r in range(1, n + 1):
                for cell in range(r * width + 1, r * width + n + 1):
                    back[cell * filters + i] += x
        else:
            back[t.largest[i - filters] * filters + i - filters] += x

    # Back through the blocks.
    size = 9 * filters * filters + filters
    at = 9 * below * filters + filters + 2 * blocks * size
    stop_at_zero(back, trunk, n, filters)
    inner = t.back[1]
    for block in range(blocks - 1, -1, -1):
        at -= size
        weigh(t.frames[2 * block + 1], back, t.slopes, at, n, filters, filters)
        clear(inner, n, filters)
        convolve(back, t.turned, at, inner, n, filters, filters)
        stop_at_zero(inner, t.frames[2 * block + 1], n, filters)
        at -= size
        weigh(t.frames[2 * block], inner, t.slopes, at, n, filters, filters)
        convolve(inner, t.turned, at, back, n, filters, filters)
        stop_at_zero(back, t.frames[2 * block], n, filters)
    weigh(t.seen, back, t.slopes, 0, n, below, filters)


@entry
def batch(t, inputs, policies, legal, results, weights):
    """Write the loss of a batch and its slopes to `t`, computed with `t.weights` and `t.turned`."""
    t.loss_value = 0.0
    t.loss_policy = 0.0
    t.entropy = 0.0
    for i in range(t.slopes.size):
        t.slopes[i] = 0.0
    for row in range(inputs.shape[0]):
        example(t, inputs, policies, legal, results, weights, row)


def gradient(record: Any, weights: Any, examples: Any) -> tuple[tuple[float, float, float], Any]:
    """Loss of the value, loss of the policy, entropy of the policy's targets; and the slope by every weight (float32).

    `record` is a `tape`. `examples` has arrays with one row per example, float32 except `legal` (u1): inputs, policies
    (target probabilities of the moves), legal, results for the side to move, weights.
    """
    t = record[0]
    count = len(weights)
    t["weights"][:count] = weights
    t["turned"][:count] = turned(weights, tuple(int(part) for part in t["shape"]))
    batch(t, examples.inputs, examples.policies, examples.legal, examples.results, examples.weights)
    found = (float(t["loss_value"]), float(t["loss_policy"]), float(t["entropy"]))
    return found, t["slopes"][:count].copy()
