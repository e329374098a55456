"""The calibration of evaluators on recorded games as a picture: what they expected and what happened, by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..common import calibration
from ..common.statistics import wilson
from ..common.svg_chart import MARGIN, Sheet, curve_of

if TYPE_CHECKING:
    from .loss import Sample

BINS = 10
"""Expectations are sorted into this many equally wide bins."""
LEAST_GAMES = 10
"""Bins with fewer games say nothing."""
LEFT, FIELD = 62, 300
SIDES = ("attackers", "defenders")


class Bin(NamedTuple):
    """Positions with similar expectations: the attackers' mean expected and actual score, and its 95 % interval."""

    expected: float
    happened: float
    interval: tuple[float, float]


def calibrated(expected: Any, results: Any, game: Any) -> Iterator[Bin]:
    """The bins with enough games, from the least expectation on.

    All positions of a game share one result, so the interval counts games: n positions of which game g has n_g count as
    n**2 / sum of n_g**2 of them (L. Kish, "Survey Sampling", 1965).
    """
    bins = np.minimum((expected * BINS).astype(int), BINS - 1)
    for number in range(BINS):
        here = bins == number
        sizes = np.unique(game[here], return_counts=True)[1]
        if len(sizes) < LEAST_GAMES:
            continue
        happened = float(results[here].mean())
        count = float(sizes.sum() ** 2 / (sizes**2).sum())
        interval = wilson(happened * count, count)
        assert interval is not None
        yield Bin(float(expected[here].mean()), happened, interval)


def draw(path: Path, sample: Sample, logits: Mapping[str, Any], what: str) -> None:
    """Draw the picture into a file; ChartError."""
    sheet = Sheet(
        2 * (LEFT + FIELD) + 3 * MARGIN,
        (
            f"{what}: what was expected, what happened",
            "The attackers' score by what an evaluator expected without any search; 95 % intervals count games",
        ),
    )
    looks = [curve_of(Path(name).name, number) for number, name in enumerate(logits)]
    top = sheet.legend_below(looks, sheet.top + 4) + MARGIN
    below = top
    for side, name in enumerate(SIDES):
        left = LEFT + side * (LEFT + FIELD + MARGIN)
        panel, below = calibration.panel(sheet, left, top, FIELD, f"expected, per cent ({name} to move)")
        here = sample.sides == side
        for look, said in zip(looks, logits.values(), strict=True):
            chances = 1 / (1 + np.exp(-said[here]))
            found = list(calibrated(chances, sample.results[here], sample.game[here]))
            panel.curve(
                [(100 * each.expected, 100 * each.happened) for each in found],
                look,
                [(100 * low, 100 * high) for each in found for low, high in [each.interval]],
            )
        panel.frame()
    sheet.write(path, below + MARGIN)
