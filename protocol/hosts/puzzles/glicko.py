"""Glicko, a rating with its uncertainty: Mark E. Glickman, The Glicko system (1995), glicko.net/glicko/glicko.pdf.

    me = updated(Rating(1500.0, 200.0), [(Rating(1400.0, 30.0), 1.0)])

The deviation is half of the 68 % interval; one of 350 says that nothing is known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

Q: Final = math.log(10.0) / 400.0
UNKNOWN: Final = 350.0
LEAST: Final = 30.0
"""A deviation never gets smaller, so that a rating can still follow."""


@dataclass(frozen=True, slots=True)
class Rating:
    """A rating and its deviation."""

    value: float = 1500.0
    deviation: float = UNKNOWN

    def __str__(self) -> str:
        return f"{self.value:.0f} ± {1.96 * self.deviation:.0f}"

    def plain(self) -> dict[str, float]:
        """The rating as JSON writes it; `read` understands it."""
        return {"rating": round(self.value, 2), "deviation": round(self.deviation, 2)}


def read(value: Any) -> Rating:
    """The rating that `plain` has written; ValueError, KeyError or TypeError for anything else."""
    try:
        rating, deviation = float(value["rating"]), float(value["deviation"])
    except OverflowError:
        raise ValueError("not a rating") from None
    if not (math.isfinite(rating) and abs(rating) < 10_000 and 0.0 < deviation < 10_000):
        raise ValueError("not a rating")
    return Rating(rating, deviation)


def expected(one: Rating, other: Rating) -> float:
    """The score that `one` may expect against another whose rating is uncertain, too."""
    return 1.0 / (1.0 + math.exp(-Q * _weight(other) * (one.value - other.value)))


def updated(one: Rating, results: Sequence[tuple[Rating, float]]) -> Rating:
    """The rating after some results, each an opponent and a score from 0 to 1, all of one period."""
    if not results:
        return one
    information = sum(
        math.pow(Q * _weight(other), 2) * expected(one, other) * (1.0 - expected(one, other))
        for other, _ in results
    )
    surprise = sum(_weight(other) * (score - expected(one, other)) for other, score in results)
    variance = 1.0 / (1.0 / one.deviation**2 + information)
    return Rating(one.value + Q * variance * surprise, max(LEAST, math.sqrt(variance)))


def _weight(other: Rating) -> float:
    """How much a result counts: less, the less is known about the opponent."""
    return 1.0 / math.sqrt(1.0 + 3.0 * (Q * other.deviation / math.pi) ** 2)
