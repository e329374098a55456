"""Lessons computed by torch, on a graphics card where there is one.

Weights and moments stay where torch computes for a whole epoch: to copy them to a card and back for each step took
longer than the step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch  # type: ignore[import-not-found, unused-ignore]

from .inputs import Encoding
from .learner import BETAS, DECAY, EPSILON, LARGEST_OUTPUT, TOP, Weights, adam_rate


class TorchLessons:
    """The same as `NumpyLessons`, up to rounding."""

    def __init__(self, weights: Weights, means: Weights, squares: Weights, encoding: Encoding) -> None:
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.encoding = encoding
        self._arrays = (weights, means, squares)
        self.weights, self.means, self.squares = (
            {name: torch.tensor(array, device=self.device) for name, array in arrays.items()}
            for arrays in self._arrays
        )

    def step(self, turned: tuple[Any, Any, Any], heads: Any, targets: Any, rate: float, number: int) -> float:
        """Step `number` of Adam, from 1 on: the loss before it."""
        loss, slopes = self.gradients(turned, heads, targets)
        first, second = BETAS
        rate_now = adam_rate(rate, number)
        with torch.no_grad():
            for name, slope in slopes.items():
                mean, square = self.means[name], self.squares[name]
                mean.lerp_(slope, 1 - first)
                square.lerp_(slope * slope, 1 - second)
                self.weights[name] -= rate_now * mean / (square.sqrt() + EPSILON)
            self.weights["own"] *= 1 - rate * DECAY
            self.weights["output"].clamp_(-LARGEST_OUTPUT, LARGEST_OUTPUT)
        return loss

    def gradients(self, turned: tuple[Any, Any, Any], heads: Any, targets: Any) -> tuple[float, Weights]:
        """Mean logistic loss of some positions, and its slopes by all weights."""
        boards, places, buckets = turned
        # Positions with the king in one bucket are multiplied together, so they have to follow each other.
        order = np.argsort(buckets, kind="stable")
        given = {name: tensor.detach().requires_grad_() for name, tensor in self.weights.items()}
        codes = self._sent(boards[order])
        ones = torch.cat([codes == kind + 1 for kind in range(self.encoding.kinds)], 1).to(torch.float32)
        pieces, first = [], 0
        for bucket, count in enumerate(np.bincount(buckets).tolist()):
            if count:
                pieces.append(ones[first : first + count] @ (given["shared"] + given["own"][bucket]))
                first += count
        whole = given["king"][self._sent(places[order])] + torch.cat(pieces)
        which = self._sent(heads[order])
        z = given["output_bias"][which] + (whole.clamp(0, TOP) ** 2 * given["output"][which]).sum(1)
        wanted = self._sent(targets[order])
        loss = torch.nn.functional.binary_cross_entropy_with_logits(z, wanted)
        loss.backward()
        return float(loss), {name: tensor.grad for name, tensor in given.items()}

    def bring_back(self) -> None:
        """Write what was learned into the arrays that this was begun with."""
        for arrays, tensors in zip(self._arrays, (self.weights, self.means, self.squares), strict=True):
            for name, tensor in tensors.items():
                arrays[name][:] = tensor.cpu().numpy()

    def _sent(self, array: Any) -> Any:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device, non_blocking=True)
