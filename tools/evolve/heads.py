"""How networks with two heads learn: their loss, its gradient, and training on examples, in numpy.

The loss is the mean squared error of the value plus the cross-entropy of the policy, both averaged over the examples
(D. Silver et al., 2017, without the regulariser). Examples with the same inputs count as one with the mean of their
targets and their number as its weight: the gradient is the same, and small games have few positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from hnefi.engine import games
from hnefi.engine.evaluators import residual_gradient
from hnefi.engine.evaluators.network import Network
from hnefi.engine.games.base_variant import AnyVariant
from hnefi.engine.selfplay.zero import Examples

from . import gradients
from .gradients import Adam, Layer

LEARNABLE = ("policy-mlp", "residual")
"""Networks whose gradients are known here."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Examples, a row each, all float32: inputs, shares of the moves, results for the side to move, and weights that
    add up to 1; and the moves that the policy covers (u1)."""

    inputs: Any
    policies: Any
    results: Any
    weights: Any
    legal: Any

    def __len__(self) -> int:
        return len(self.inputs)

    def rows(self, chosen: Any) -> Batch:
        """Some of them, all with the same weight."""
        weights = np.full(len(chosen), 1 / max(1, len(chosen)), np.float32)
        return Batch(
            self.inputs[chosen], self.policies[chosen], self.results[chosen], weights, self.legal[chosen]
        )


@dataclass(frozen=True, slots=True)
class Loss:
    """The two parts of the loss, and the part of the policy's that is entropy, which no network can avoid."""

    value: float
    policy: float
    entropy: float


@dataclass(frozen=True, slots=True)
class Kept:
    """Examples of games as batches for a policy with `moves` moves. If `masked`, its loss covers only legal moves. The
    value learns the result, mixed with a share `mix` of the search's value."""

    examples: Examples
    moves: int
    masked: bool
    mix: float

    def __len__(self) -> int:
        return self.examples.rows

    def rows(self, chosen: Any) -> Batch:
        """Some of them, all with the same weight."""
        found = self.examples
        policies, legal = found.rows_of(chosen, self.moves)
        results = found.results[chosen] * (1 - self.mix) + found.values[chosen] * self.mix
        return batch(found.inputs[chosen], policies, results, legal if self.masked else None)


def batch(inputs: Any, policies: Any, results: Any, legal: Any = None) -> Batch:
    """A batch of examples, all with the same weight. Without `legal` the policy covers all moves."""
    count = len(inputs)
    if legal is None:
        legal = np.ones(np.shape(policies), np.uint8)
    return Batch(
        np.asarray(inputs, np.float32),
        np.asarray(policies, np.float32),
        np.asarray(results, np.float32),
        np.full(count, 1 / max(1, count), np.float32),
        np.asarray(legal, np.uint8),
    )


def merged(whole: Batch) -> Batch:
    """The same batch with equal inputs merged into one example, in an order that depends only on the inputs."""
    _, first, place, times = np.unique(
        whole.inputs, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    place = place.reshape(-1)
    policies = np.zeros((len(first), whole.policies.shape[1]))
    results = np.zeros(len(first))
    np.add.at(policies, place, whole.policies)
    np.add.at(results, place, whole.results)
    return Batch(
        whole.inputs[first],
        (policies / times[:, None]).astype(np.float32),
        (results / times).astype(np.float32),
        (times / times.sum()).astype(np.float32),
        whole.legal[first],
    )


# Symmetries


def images(network: Network, variant: AnyVariant) -> list[tuple[Any, Any]]:
    """For every symmetry of the game, the identity first, the inputs and the moves of the policy in the order of the
    image."""
    moves = games.policy_moves(variant)
    place = {move: index for index, move in enumerate(moves) if move}
    cells = variant.files * variant.ranks
    width = network.module.inputs(variant)
    planes = width // cells
    found = [(np.arange(width), np.arange(len(moves)))]
    for squares in games.initial(variant).symmetries():
        source = np.empty(cells, np.int64)
        for sq, image in squares.items():
            source[_cell(image, variant)] = _cell(sq, variant)
        seen = np.arange(width)
        for plane in range(planes):
            seen[plane * cells : (plane + 1) * cells] = plane * cells + source
        policy = np.arange(len(moves))
        for move, index in place.items():
            origin, target = move & 511, move >> 9
            if origin in squares:  # the swap of Hex has no square
                policy[place[squares[origin] | squares[target] << 9]] = index
        found.append((seen, policy))
    return found


def _cell(sq: int, variant: AnyVariant) -> int:
    """The number of a square in rows from the top left."""
    from hnefi.engine.squares import file_of, rank_of

    return (variant.ranks - 1 - rank_of(sq)) * variant.files + file_of(sq)


def with_images(whole: Batch, symmetries: list[tuple[Any, Any]]) -> Batch:
    """Every example with all of its images."""
    return batch(
        np.concatenate([whole.inputs[:, seen] for seen, _ in symmetries]),
        np.concatenate([whole.policies[:, policy] for _, policy in symmetries]),
        np.tile(whole.results, len(symmetries)),
        np.concatenate([whole.legal[:, policy] for _, policy in symmetries]),
    )


# Gradients


def starting_weights(network: Network, variant: AnyVariant, random: np.random.Generator) -> Any:
    """Random weights and biases to begin with, float32: uniform within ±1 / sqrt(inputs of the unit)."""
    parts = []
    spread = 1.0
    for name, shape in network.shapes(variant).items():
        if not name.endswith("_bias"):
            spread = 1 / np.sqrt(_fan_in(network, shape))
        parts.append(random.uniform(-spread, spread, int(np.prod(shape))))
    return np.concatenate(parts).astype(np.float32)


def _fan_in(network: Network, shape: tuple[int, ...]) -> int:
    """The number of inputs of each unit of an array."""
    if network.name != "residual":
        return shape[0]
    if len(shape) > 3:
        return int(np.prod(shape[:-1]))
    return shape[1]  # the first index is the side


def gradient(network: Network, variant: AnyVariant, weights: Any, examples: Batch) -> tuple[Loss, Any]:
    """The loss, and its derivative with respect to every weight (float32)."""
    if network.name == "residual":
        layout = network.module.layout(variant, network.sizes)
        tape = residual_gradient.tape(layout, network.module.side_plane(variant))
        losses, slopes = residual_gradient.gradient(tape, weights, examples)
        return Loss(*losses), slopes
    layers = _layers(network.split(variant, weights))
    given = gradients.forward(layers, examples.inputs)
    loss, slope = loss_of(given[-1], examples)
    slopes = gradients.backward(layers, given, slope)
    return loss, network.join(variant, _arrays(network, variant, slopes)).astype(np.float32)


def _layers(arrays: Mapping[str, Any]) -> list[Layer]:
    """The layers of a perceptron; its two heads form the last one, with the value after the moves."""
    names = [name for name in arrays if not name.endswith("_bias")]
    pairs = [(arrays[name].T, arrays[f"{name}_bias"]) for name in names]
    (policy, policy_bias), (value, value_bias) = pairs[-2:]
    return [*pairs[:-2], (np.concatenate([policy, value]), np.concatenate([policy_bias, value_bias]))]


def _arrays(network: Network, variant: AnyVariant, layers: list[Layer]) -> dict[str, Any]:
    """The inverse of `_layers`."""
    names = [name for name in network.shapes(variant) if not name.endswith("_bias")]
    heads, biases = layers[-1]
    pairs = [*layers[:-1], (heads[:-1], biases[:-1]), (heads[-1:], biases[-1:])]
    found = {}
    for name, (matrix, bias) in zip(names, pairs, strict=True):
        found[name], found[f"{name}_bias"] = matrix.T, bias
    return found


def loss_of(outputs: Any, examples: Batch) -> tuple[Loss, Any]:
    """The loss of outputs (moves, then the value before tanh), and its derivative with respect to them."""
    logits = np.where(examples.legal, outputs[:, :-1], outputs.dtype.type(-1e30))
    value = np.tanh(outputs[:, -1])
    shifted = logits - logits.max(axis=1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    weights, targets = examples.weights, examples.policies
    error = value - examples.results
    slope = np.empty_like(outputs)
    slope[:, :-1] = (np.exp(logs) - targets) * weights[:, None]
    slope[:, -1] = 2 * error * (1 - value * value) * weights
    entropy = -(targets * np.log(np.maximum(targets, np.float32(1e-30)))).sum(axis=1)
    return Loss(
        float((weights * error * error).sum()),
        float(-(weights[:, None] * targets * logs).sum()),
        float((weights * entropy).sum()),
    ), slope


def train(
    network: Network,
    variant: AnyVariant,
    weights: Any,
    examples: Batch | Kept,
    *,
    epochs: int,
    size: int,
    steps: int = 0,
    rate: float,
    random: np.random.Generator,
    symmetries: list[tuple[Any, Any]],
    adam: Adam | None = None,
) -> tuple[Any, Loss, Adam]:
    """Train for some passes over the examples, starting with the state `adam` or a fresh one; returns the weights, the
    loss of the last pass, and the state of Adam.

    With `size` 0 all examples form one step; else there are at most `steps` batches of that size, drawn in a new order
    in each pass, with each example as one of its images.
    """
    empty = np.zeros(0, np.float32)
    layers: list[Layer] = [(weights, empty)]
    adam = adam or gradients.adam_begin(layers)
    whole = examples if size else merged(with_images(examples.rows(np.arange(len(examples))), symmetries))
    losses: list[Loss] = []
    for _ in range(epochs):
        losses = []
        for part in islice(_parts(whole, size, random, symmetries), steps or None):
            loss, slope = gradient(network, variant, layers[0][0], part)
            layers, adam = gradients.adam_step(layers, [(slope, empty)], adam, rate)
            losses.append(loss)
    mean = [
        float(np.mean([getattr(loss, name) for loss in losses])) for name in ("value", "policy", "entropy")
    ]
    return layers[0][0], Loss(*mean), adam


def _parts(whole: Any, size: int, random: np.random.Generator, symmetries: list[tuple[Any, Any]]) -> Any:
    """The batches of one pass."""
    if not size:
        yield whole
        return
    order = random.permutation(len(whole))
    for at in range(0, len(order), size):
        part = whole.rows(order[at : at + size])
        which = random.integers(len(symmetries), size=len(part.inputs))
        seen = np.stack([one for one, _ in symmetries])[which]
        policy = np.stack([one for _, one in symmetries])[which]
        yield Batch(
            np.take_along_axis(part.inputs, seen, axis=1),
            np.take_along_axis(part.policies, policy, axis=1),
            part.results,
            part.weights,
            np.take_along_axis(part.legal, policy, axis=1),
        )
