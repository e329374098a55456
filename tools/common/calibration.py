"""How well values predict results: the best-fitting line from centipawns to logits, and the logistic loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .svg_chart import Panel, Sheet

LOGIT = 400 / np.log(10)
"""Centipawns per logit, before scaling."""
CLIP = 1500
"""Centipawns beyond which scores say nothing about their scale."""
STEPS, RIDGE, LEAST_SLOPE = 12, 1.0, 0.05


def scale_of(scores: Any, results: Any) -> tuple[float, float]:
    """Slope and intercept of the line through scores in logits that predicts results with the least logistic loss. The
    intercept belongs to a score of 0: if one side wins more games, an even score is not an even chance."""
    near = np.abs(scores.astype(np.int64)) <= CLIP
    x = np.stack([scores[near] / LOGIT, np.ones(int(near.sum()))], axis=1)
    theta = np.array([1.0, 0.0])
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-np.clip(x @ theta, -30, 30)))
        slope = x.T @ (p - results[near]) + RIDGE * (theta - [1.0, 0.0])
        curve = (x.T * (p * (1 - p))) @ x + RIDGE * np.eye(2)
        theta = theta - np.clip(np.linalg.solve(curve, slope), -1, 1)
    return max(float(theta[0]), LEAST_SLOPE), float(theta[1])


def expected(scores: Any, scale: tuple[float, float]) -> Any:
    """Scores in centipawns as logits of the expected result."""
    slope, level = scale
    return slope * np.clip(np.asarray(scores, np.float64), -CLIP, CLIP) / LOGIT + level


def loss(logits: Any, targets: Any) -> float:
    """Mean logistic loss."""
    z = np.asarray(logits, np.float64)
    return float((np.logaddexp(0, z) - targets * z).mean())


def panel(sheet: Sheet, left: float, top: float, side: float, expected_by: str) -> tuple[Panel, float]:
    """Square axes for what happened by what was expected, in per cent, with the diagonal; and the y at which free paper
    begins below them. `expected_by` is the title of the lower axis."""
    from .svg_chart import SOFT, Panel, Scale

    scale = Scale(0, 100)
    made = Panel(sheet, left, top, side, side, scale, scale)
    ticks = [(value, str(value)) for value in range(0, 101, 20)]
    made.ticks_left(ticks)
    below = made.called_below(expected_by, made.ticks_below(ticks, grid=True))
    made.called_left("happened, per cent", left - 42)
    made.line([(0, 0), (100, 100)], SOFT, 1.0)
    return made, below
