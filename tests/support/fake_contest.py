"""Games without a board: their results follow from their seeds and from how strong contestants are by their weights.

Takes the place of `contest.Table` where a test is about evolution, not about games.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

PLIES = 30


def strength(contestant: Any) -> float:
    """Random is worth nothing; a network is worth the nearness of its first weights to 1."""
    if contestant.algorithm == "random" or contestant.params is None:
        return 0.0
    weights = np.asarray(contestant.params).reshape(())["weights"][:8]
    return float(5 - np.abs(1 - weights).sum() / 4)


class Table:
    """Who has the greater sum of strength and luck wins; near ones draw."""

    def __init__(self, variant: Any, contestants: Sequence[Any]) -> None:
        self.variant = variant
        self.seat(contestants)

    def seat(self, contestants: Sequence[Any]) -> None:
        self.contestants = contestants
        self._strengths = [strength(contestant) for contestant in contestants]

    def play(self, games: Any) -> None:
        for game in games:
            draw = np.random.default_rng(int(game["seed"]))
            margin = self._strengths[game["attackers"]] - self._strengths[game["defenders"]]
            margin += draw.standard_normal()
            winner = 2 if abs(margin) < 0.3 else 0 if margin > 0 else 1
            game["outcome"] = (winner + 1) << 8 | 1
            game["taken"] = draw.integers(0, 5, 2)
            game["plies"] = PLIES
            game["evaluations"] = 100


class SlowTable(Table):
    """The same, but whoever plays can be killed meanwhile: `HNEFI_TEST_PACE` is how many seconds it takes."""

    def play(self, games: Any) -> None:
        time.sleep(float(os.environ["HNEFI_TEST_PACE"]))
        super().play(games)
