"""Teaching the network: its weights as real numbers, gradients, Adam, and the whole numbers that a file takes.

Rows of men are the sum of one for all squares of the king and of one for his bucket, so that a bucket with few games
leans on the others (in computer shogi and chess: factorized features). Units, weights of the output and biases are
those of `networks/nnue.py` divided by their units.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, SupportsFloat

import numpy as np

from hnefi.engine import durable
from hnefi.engine.evaluators.networks import nnue

from .inputs import Encoding, Examples

TOP = nnue.CLIP / nnue.ACTIVATION_UNIT
BATCH = 1024
RATE = 2e-3
"""The learning rate in the first epoch, unless said otherwise."""
LAST_RATE = 0.02
"""The share of the rate that is left in the last epoch; between it falls along half a cosine."""
BETAS, EPSILON = (0.9, 0.999), 1e-8
DECAY = 0.02
"""Pull of a bucket's own rows towards nothing, as a share of the rate."""
LARGEST_OUTPUT = 127 / nnue.OUTPUT_UNIT
DOCUMENT = "hnefi"

Weights = dict[str, Any]


class CheckpointError(Exception):
    """A file that is no checkpoint of this training: names it."""


def begin(encoding: Encoding, seed: str) -> Weights:
    """Random weights; most units are within their bounds to begin with."""
    digest = hashlib.sha256(seed.encode()).digest()
    draw = np.random.default_rng(int.from_bytes(digest[:8], "little"))
    rows = encoding.kinds * encoding.squares
    shapes = {
        "king": (encoding.squares, encoding.units),
        "shared": (rows, encoding.units),
        "own": (encoding.buckets, rows, encoding.units),
        "output": (nnue.HEADS, encoding.units),
        "output_bias": (nnue.HEADS,),
    }
    weights = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    weights["king"] += draw.normal(0.35, 0.1, encoding.units).astype(np.float32)
    weights["shared"] += draw.normal(0, 0.1, shapes["shared"]).astype(np.float32)
    weights["output"] += draw.normal(0, 0.1, shapes["output"]).astype(np.float32)
    return weights


def restored(arrays: Mapping[str, Any], encoding: Encoding) -> Weights:
    """The real weights of a network in whole numbers: those that `quantised` turns into these arrays again."""
    men = arrays["men"].reshape(encoding.buckets, -1, encoding.units).astype(np.float32)
    men /= nnue.ACTIVATION_UNIT
    shared = men.mean(axis=0)
    return {
        "king": arrays["king"].astype(np.float32) / nnue.ACTIVATION_UNIT,
        "shared": shared,
        "own": men - shared,
        "output": arrays["output"].astype(np.float32) / nnue.OUTPUT_UNIT,
        "output_bias": (arrays["output_bias"] / nnue.LOGIT).astype(np.float32),
    }


def parts(boards: Any, buckets: Any, encoding: Encoding) -> Iterator[tuple[int, Any, Any]]:
    """Bucket by bucket: which positions have the king there, and their inputs, 0 or 1 for each kind and square."""
    for bucket in np.unique(buckets):
        chosen = np.flatnonzero(buckets == bucket)
        found = boards[chosen]
        ones = np.concatenate([found == kind + 1 for kind in range(encoding.kinds)], axis=1)
        yield int(bucket), chosen, ones.astype(np.float32)


def sums(weights: Weights, turned: tuple[Any, Any, Any], encoding: Encoding) -> Any:
    """The units' sums, before they are cut off."""
    boards, places, buckets = turned
    found = weights["king"][places]
    for bucket, chosen, ones in parts(boards, buckets, encoding):
        found[chosen] += ones @ (weights["shared"] + weights["own"][bucket])
    return found


def logits(weights: Weights, examples: Examples, encoding: Encoding) -> Any:
    """What the network with real weights says."""
    found = [np.zeros(0, np.float32)]
    for first in range(0, len(examples), BATCH):
        batch = examples.take(slice(first, first + BATCH))
        seen = np.clip(sums(weights, encoding.turn(batch), encoding), 0, TOP)
        found.append(
            weights["output_bias"][batch.heads] + (seen * seen * weights["output"][batch.heads]).sum(axis=1)
        )
    return np.concatenate(found)


def gradients(
    weights: Weights, turned: tuple[Any, Any, Any], heads: Any, targets: Any, encoding: Encoding
) -> tuple[float, Weights]:
    """Mean logistic loss of some positions, and its slopes by all weights."""
    boards, places, buckets = turned
    whole = sums(weights, turned, encoding)
    seen = np.clip(whole, 0, TOP)
    squares = seen * seen
    output = weights["output"][heads]
    z = weights["output_bias"][heads] + (squares * output).sum(axis=1)
    loss = float((np.logaddexp(0, z) - targets * z).mean())
    error = ((1 / (1 + np.exp(-z)) - targets) / len(z)).astype(weights["king"].dtype)
    slopes = {name: np.zeros_like(array) for name, array in weights.items()}
    slopes["output_bias"] += np.bincount(heads, error, nnue.HEADS).astype(error.dtype)
    for head in np.unique(heads):
        chosen = heads == head
        slopes["output"][head] = error[chosen] @ squares[chosen]
    back = error[:, None] * output * 2 * seen * ((whole > 0) & (whole < TOP))
    for place in np.unique(places):
        slopes["king"][place] = back[places == place].sum(axis=0)
    for bucket, chosen, ones in parts(boards, buckets, encoding):
        slopes["own"][bucket] = ones.T @ back[chosen]
    slopes["shared"] = slopes["own"].sum(axis=0)
    return loss, slopes


def adam_rate(rate: float, number: int) -> float:
    """The rate of step `number` from 1 on, corrected for moments that began at 0 (Kingma and Ba, "Adam", 2015)."""
    first, second = BETAS
    return float(rate * np.sqrt(1 - second**number) / (1 - first**number))


class Lessons(Protocol):
    """An epoch of a training, computed somewhere: begun with weights and moments, which hold what was learned after
    `bring_back`."""

    def __init__(self, weights: Weights, means: Weights, squares: Weights, encoding: Encoding) -> None: ...

    def step(
        self, turned: tuple[Any, Any, Any], heads: Any, targets: Any, rate: float, number: int
    ) -> SupportsFloat:
        """Step `number` of Adam, from 1 on: the loss before it."""

    def bring_back(self) -> None:
        """Write what was learned into the arrays that this was begun with."""


class NumpyLessons:
    """Lessons in the arrays themselves."""

    def __init__(self, weights: Weights, means: Weights, squares: Weights, encoding: Encoding) -> None:
        self.weights, self.means, self.squares, self.encoding = weights, means, squares, encoding

    def step(self, turned: tuple[Any, Any, Any], heads: Any, targets: Any, rate: float, number: int) -> float:
        """Step `number` of Adam, from 1 on: the loss before it."""
        loss, slopes = gradients(self.weights, turned, heads, targets, self.encoding)
        first, second = BETAS
        rate_now = adam_rate(rate, number)
        for name, slope in slopes.items():
            mean, square = self.means[name], self.squares[name]
            mean += (1 - first) * (slope - mean)
            square += (1 - second) * (slope * slope - square)
            self.weights[name] -= np.float32(rate_now) * mean / (np.sqrt(square) + np.float32(EPSILON))
        self.weights["own"] *= np.float32(1 - rate * DECAY)
        np.clip(self.weights["output"], -LARGEST_OUTPUT, LARGEST_OUTPUT, out=self.weights["output"])
        return loss

    def bring_back(self) -> None:
        """They were never anywhere else."""


class Learner:
    """A training: weights, the moments of Adam, and how many epochs are done. It follows from its seed, its first
    weights (random unless `init` gives them) and its examples alone, wherever it was interrupted between epochs."""

    def __init__(
        self,
        encoding: Encoding,
        seed: str,
        epochs: int,
        lessons: type[Lessons],
        init: Weights | None = None,
        rate: float = RATE,
    ) -> None:
        self.encoding, self.seed, self.epochs, self.rate = encoding, seed, epochs, rate
        self._lessons = lessons
        self.weights = begin(encoding, seed) if init is None else init
        self.means = {name: np.zeros_like(array) for name, array in self.weights.items()}
        self.squares = {name: np.zeros_like(array) for name, array in self.weights.items()}
        self.epoch = 0
        self.steps = 0

    def learn(self, examples: Examples) -> Iterator[SupportsFloat]:
        """One epoch, batch by batch: the loss of each before its step."""
        digest = hashlib.sha256(f"{self.seed} {self.epoch}".encode()).digest()
        draw = np.random.default_rng(int.from_bytes(digest[:8], "little"))
        order = draw.permutation(len(examples))
        share = self.epoch / max(1, self.epochs - 1)
        rate = self.rate * (LAST_RATE + (1 - LAST_RATE) * (1 + np.cos(np.pi * min(1, share))) / 2)
        lessons = self._lessons(self.weights, self.means, self.squares, self.encoding)
        for first in range(0, len(order), BATCH):
            batch = examples.take(order[first : first + BATCH])
            self.steps += 1
            yield lessons.step(self.encoding.turn(batch, draw), batch.heads, batch.targets, rate, self.steps)
        lessons.bring_back()
        self.epoch += 1

    def save(self, path: Path) -> None:
        """Keep where the training stands."""
        from safetensors.numpy import save

        document = {"kind": "nnue training", "seed": self.seed, "epoch": self.epoch, "steps": self.steps}
        arrays = self._arrays()
        document["sha256"] = _digest(arrays)
        durable.put(path, save(arrays, {DOCUMENT: json.dumps(document)}))

    def load(self, path: Path) -> None:
        """Go on where a training of the same seed stood; CheckpointError if the file does not say."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, "np") as file:
                document = json.loads((file.metadata() or {}).get(DOCUMENT, "null"))
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
            mine = self._arrays()
            if (
                document["kind"] != "nnue training"
                or document["seed"] != self.seed
                or document["sha256"] != _digest(arrays)
                or {name: array.shape for name, array in arrays.items()}
                != {name: array.shape for name, array in mine.items()}
            ):
                raise ValueError
            self.epoch, self.steps = int(document["epoch"]), int(document["steps"])
        except (OSError, ValueError, TypeError, KeyError, SafetensorError):
            raise CheckpointError(f"{path}: expected the checkpoint of this training") from None
        for kind, into in (("", self.weights), ("mean.", self.means), ("square.", self.squares)):
            for name in into:
                into[name] = arrays[kind + name]

    def _arrays(self) -> dict[str, Any]:
        return {
            **self.weights,
            **{f"mean.{name}": array for name, array in self.means.items()},
            **{f"square.{name}": array for name, array in self.squares.items()},
        }


def _digest(arrays: Mapping[str, Any]) -> str:
    found = hashlib.sha256()
    for name in sorted(arrays):
        found.update(name.encode() + arrays[name].tobytes())
    return found.hexdigest()


def quantised(weights: Weights, encoding: Encoding) -> dict[str, Any]:
    """The arrays of an evaluator file, rounded to whole numbers; what does not fit is cut off."""
    men = weights["shared"][None] + weights["own"]
    real = {
        "king": weights["king"] * nnue.ACTIVATION_UNIT,
        "men": men.reshape(encoding.buckets, encoding.kinds, encoding.squares, encoding.units)
        * nnue.ACTIVATION_UNIT,
        "output": weights["output"] * nnue.OUTPUT_UNIT,
        "output_bias": weights["output_bias"].astype(np.float64) * nnue.LOGIT,
    }
    arrays = {}
    for name, array in real.items():
        kind = np.iinfo(nnue.TYPES[name])
        arrays[name] = np.clip(np.rint(array), kind.min, kind.max).astype(nnue.TYPES[name])
    return arrays


def whole_logits(arrays: Mapping[str, Any], examples: Examples, encoding: Encoding) -> Any:
    """What the network with whole weights says, as its kernel does."""
    found = [np.zeros(0)]
    men = arrays["men"].reshape(encoding.buckets, -1, encoding.units).astype(np.float32)
    for first in range(0, len(examples), BATCH):
        batch = examples.take(slice(first, first + BATCH))
        boards, places, buckets = encoding.turn(batch)
        # Whole numbers of this size are exact in single precision.
        total = arrays["king"][places].astype(np.float32)
        for bucket, chosen, ones in parts(boards, buckets, encoding):
            total[chosen] += ones @ men[bucket]
        seen = np.clip(total.astype(np.int64).astype(np.int16), 0, nnue.CLIP).astype(np.int64)
        output = arrays["output"][batch.heads].astype(np.int64)
        found.append(((seen * seen * output).sum(axis=1) + arrays["output_bias"][batch.heads]) / nnue.LOGIT)
    return np.concatenate(found)
