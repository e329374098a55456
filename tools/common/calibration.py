"""How well values predict results: the best-fitting line from centipawns to logits, and the logistic loss."""

from __future__ import annotations

from typing import Any

import numpy as np

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
