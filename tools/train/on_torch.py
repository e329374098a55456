"""Lessons computed by torch, on a graphics card where there is one.

Weights and moments stay where torch computes for a whole epoch, rather than travel to a card and back for each step.
"""

from __future__ import annotations

from typing import Any, SupportsFloat

import numpy as np
import torch  # type: ignore[import-not-found, unused-ignore]

from .inputs import Encoding
from .learner import BETAS, DECAY, EPSILON, LARGEST_OUTPUT, TOP, Weights, adam_rate


class TorchLessons:
    """The same as `NumpyLessons`, up to rounding."""

    def __init__(self, weights: Weights, means: Weights, squares: Weights, encoding: Encoding) -> None:
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.encoding = encoding
        self.squares = torch.arange(encoding.squares, device=self.device)
        self._arrays = (weights, means, squares)
        self.weights, self.means, self.moments = (
            {name: torch.tensor(array, device=self.device) for name, array in arrays.items()}
            for arrays in self._arrays
        )

    def step(
        self, turned: tuple[Any, Any, Any], heads: Any, targets: Any, rate: float, number: int
    ) -> SupportsFloat:
        """Step `number` of Adam, from 1 on: the loss before it."""
        loss, slopes = self.gradients(turned, heads, targets)
        first, second = BETAS
        rate_now = adam_rate(rate, number)
        with torch.no_grad():
            for name, slope in slopes.items():
                mean, square = self.means[name], self.moments[name]
                mean.lerp_(slope, 1 - first)
                square.lerp_(slope * slope, 1 - second)
                self.weights[name] -= rate_now * mean / (square.sqrt() + EPSILON)
            self.weights["own"] *= 1 - rate * DECAY
            self.weights["output"].clamp_(-LARGEST_OUTPUT, LARGEST_OUTPUT)
        return loss

    def gradients(
        self, turned: tuple[Any, Any, Any], heads: Any, targets: Any
    ) -> tuple[SupportsFloat, Weights]:
        """Mean logistic loss of some positions, and its slopes by all weights."""
        boards, places, buckets = (self._sent(array) for array in turned)
        given = {name: tensor.detach().requires_grad_() for name, tensor in self.weights.items()}
        # A row for each bucket, kind and square, and a last one for squares without a man.
        men = (given["shared"] + given["own"]).flatten(0, 1)
        blank = len(men)
        first = (buckets * len(given["shared"]))[:, None] + self.squares
        rows = torch.where(boards > 0, first + (boards.long() - 1) * self.encoding.squares, blank)
        table = torch.cat([men, men.new_zeros(1, self.encoding.units)])
        summed = torch.nn.functional.embedding_bag(rows, table, mode="sum", padding_idx=blank)
        seen = (given["king"][places] + summed).clamp(0, TOP)
        which = self._sent(heads)
        z = given["output_bias"][which] + (seen**2 * given["output"][which]).sum(1)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(z, self._sent(targets))
        loss.backward()
        return loss.detach(), {name: tensor.grad for name, tensor in given.items()}

    def bring_back(self) -> None:
        """Write what was learned into the arrays that this was begun with."""
        for arrays, tensors in zip(self._arrays, (self.weights, self.means, self.moments), strict=True):
            for name, tensor in tensors.items():
                arrays[name][:] = tensor.cpu().numpy()

    def _sent(self, array: Any) -> Any:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device, non_blocking=True)
