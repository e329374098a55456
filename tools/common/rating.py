"""Ratings of several engines, and the advantage of a side, fitted to games by maximum likelihood.

The model is that of R. Bradley and M. Terry on the scale of A. Elo, with one term more: attackers are expected to score
1 / (1 + 10^(-(R_attackers - R_defenders + S_variant) / 400)), a draw being half a win. Errors come from resampling
pairs (B. Efron's bootstrap): games of one pair share an opening and are not independent. A few pairs that happen to end
alike would seem to leave no doubt, so their variance is blended with the one that the model has for independent games.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

from .pairs import DOUBLED, Ending
from .statistics import EXTREME

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

SCALE = 400 / math.log(10)
"""Elo per natural unit of log odds."""
MODEL_WEIGHT = 4.0
"""How many pairs the model's own variance counts for. With this weight 95 % intervals hold the truth in 89 to 100 % of
simulated tournaments of 1 to 40 pairs a meeting; by the bootstrap alone in 31 to 98 %
(`tests/support/interval_coverage.py`)."""
CELLS = 2_000_000
"""Resamples times games that are worked on at once: bounds the memory."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A fitted number in Elo with its interval; `error` is half the width. None without a bootstrap, and where there is
    one kind of unit alone: resamples of it are all the same and tell nothing about the error."""

    value: float
    error: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Ratings of engines that met each other, directly or through others, strongest first.

    `sides` is the attackers' advantage per variant; empty if no side term was fitted. Numbers of different tables
    cannot be compared.
    """

    ratings: dict[str, Fitted]
    sides: dict[str, Fitted]


@dataclass(frozen=True, slots=True)
class Model:
    """How ratings are fitted: the anchor (engine, Elo) instead of a mean of 0, whether there is a side term, the
    virtual draws per engine (0: no prior), the interval, the resamples of the bootstrap and their seed."""

    anchor: tuple[str, float] | None = None
    side: bool = True
    prior: float = 2.0
    interval: float = 0.95
    bootstrap: int = 1000
    seed: int = 0


def rate(
    units: Mapping[Sequence[Ending], int] | Iterable[tuple[Sequence[Ending], int]], model: Model = Model()
) -> list[Table]:
    """One table for each group of engines that met, the largest first.

    `units` are what a resample draws: pairs (or single games) with the number of times each was seen, in any order.
    ValueError if the anchor did not play.
    """
    counted: Counter[tuple[Ending, ...]] = Counter()
    for unit, count in units.items() if isinstance(units, Mapping) else units:
        counted[tuple(unit)] += count
    counted = +counted
    groups = _groups(ending for unit in counted for ending in unit)
    if model.anchor and not any(model.anchor[0] in group for group in groups):
        known = ", ".join(sorted(name for group in groups for name in group)) or "none"
        raise ValueError(f"anchor {model.anchor[0][:80]!r}: expected an engine that played ({known})")
    return [
        _table(group, sorted((unit, n) for unit, n in counted.items() if unit[0].attackers in group), model)
        for group in groups
    ]


def _groups(endings: Iterable[Ending]) -> list[list[str]]:
    """The engines, sorted, in groups that met; the largest group first."""
    group: dict[str, set[str]] = {}
    for _, attackers, defenders, _ in endings:
        joined = group.get(attackers, {attackers}) | group.get(defenders, {defenders})
        for name in joined:
            group[name] = joined
    distinct = {id(names): sorted(names) for names in group.values()}
    return sorted(distinct.values(), key=lambda names: (-len(names), names))


def _table(engines: list[str], units: list[tuple[tuple[Ending, ...], int]], model: Model) -> Table:
    import numpy as np

    variants = sorted({ending.variant for unit, _ in units for ending in unit})
    meetings = sorted({ending[:3] for unit, _ in units for ending in unit})
    fit = _Fit(engines, variants, meetings, model)
    # The games of all units, those of one (variant, attackers, defenders) together.
    column = {meeting: index for index, meeting in enumerate(meetings)}
    entries = sorted(
        (column[ending[:3]], line, DOUBLED[ending.winner][0] / 2.0)
        for line, (unit, _) in enumerate(units)
        for ending in unit
    )
    meeting_of, unit_of, points = (np.array(part) for part in zip(*entries, strict=True))
    starts = np.searchsorted(meeting_of, np.arange(len(meetings)))

    def summed(counts: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Games and points of the attackers per meeting, from how often each unit was drawn."""
        drawn = counts[:, unit_of].astype(float)
        return np.add.reduceat(drawn, starts, axis=1), np.add.reduceat(drawn * points, starts, axis=1)

    seen = np.array([count for _, count in units])
    best = fit(*summed(seen[None, :]), np.zeros(fit.rows.shape[1]))
    # The legacy generator: its stream is promised never to change.
    draw = np.random.RandomState(model.seed & 0xFFFFFFFF)
    total, chunk = int(seen.sum()), max(1, CELLS // len(entries))
    resampled = [
        fit(*summed(draw.multinomial(total, seen / total, size=min(chunk, model.bootstrap - done))), best[0])
        for done in range(0, model.bootstrap if len(units) > 1 else 0, chunk)
    ]
    samples = np.concatenate(resampled) * SCALE if resampled else None
    deviations = fit.deviations(summed(seen[None, :])[0], best) * SCALE
    best *= SCALE
    # In how many units each number has a part: those of the engine, those of the variant.
    played: Counter[tuple[str, str]] = Counter()
    for unit, count in units:
        for part in {("engine", name) for ending in unit for name in ending[1:3]} | {
            ("variant", ending.variant) for ending in unit
        }:
            played[part] += count
    parts = [played["engine", name] for name in engines] + [played["variant", name] for name in variants]
    numbers = [
        _fitted(float(best[0, index]), parts[index], None if samples is None else samples[:, index],
                float(deviations[index]), model.interval)
        for index in range(best.shape[1])
    ]  # fmt: skip
    ratings = dict(zip(engines, numbers, strict=False))
    return Table(
        dict(sorted(ratings.items(), key=lambda item: (-item[1].value, item[0]))),
        dict(zip(variants, numbers[len(engines) :], strict=True)) if model.side else {},
    )


def _fitted(value: float, units: int, samples: Floats | None, deviation: float, interval: float) -> Fitted:
    """The bootstrap's interval, stretched as far as `units` are few and the model's `deviation` is larger."""
    import numpy as np

    if samples is None:
        return Fitted(value)
    tail = (1.0 - interval) / 2.0
    low, high = (float(end) for end in np.quantile(samples, [tail, 1.0 - tail]))
    supposed = NormalDist().inv_cdf(1.0 - tail) * deviation

    def stretched(seen: float) -> float:
        return math.sqrt((units * max(seen, 0.0) ** 2 + MODEL_WEIGHT * supposed**2) / (units + MODEL_WEIGHT))

    low, high = value - stretched(value - low), value + stretched(high - value)
    return Fitted(value, (high - low) / 2.0, low, high)


class _Fit:
    """Newton's method on many data sets of one tournament at once."""

    def __init__(
        self, engines: list[str], variants: list[str], meetings: list[tuple[str, str, str]], model: Model
    ) -> None:
        import numpy as np

        size = len(engines)
        sides = len(variants) if model.side else 0
        self.engines = size
        self.model = model
        self.anchor = engines.index(model.anchor[0]) if model.anchor and model.anchor[0] in engines else None
        rows = np.zeros((len(meetings), size + sides))
        for index, (variant, attackers, defenders) in enumerate(meetings):
            rows[index, engines.index(attackers)] += 1.0
            rows[index, engines.index(defenders)] -= 1.0
            if sides:
                rows[index, size + variants.index(variant)] = 1.0
        # Each engine's virtual draws, one on each side, against an engine of mean rating; spread over the variants it
        # played, so that a side term stays finite, too.
        virtual, weights = [], []
        for index, name in enumerate(engines):
            own = sorted({meeting[0] for meeting in meetings if name in meeting[1:]})
            for variant in own:
                for sign in (1.0, -1.0):
                    line = np.zeros(size + sides)
                    line[:size] = -sign / size
                    line[index] += sign
                    if sides:
                        line[size + variants.index(variant)] = 1.0
                    virtual.append(line)
                    weights.append(model.prior / 2.0 / len(own))
        self.rows = np.vstack([rows, *virtual])
        self.weights = np.array(weights)
        # Ratings are determined up to a constant: this pins their mean, and whatever no game tells, to 0.
        self.pin = 1e-9 * np.eye(size + sides)
        self.pin[:size, :size] += 1.0

    def __call__(self, games: Floats, points: Floats, start: Floats) -> Floats:
        """Ratings, then side terms, in natural units: one line per line of `games` and `points` (of the attackers)."""
        import numpy as np

        many, rows = len(games), self.rows
        n = np.hstack([games, np.tile(self.weights, (many, 1))])
        score = np.hstack([points, np.tile(self.weights / 2.0, (many, 1))])
        score = np.clip(score, EXTREME * n, (1.0 - EXTREME) * n)
        found = np.tile(start, (many, 1))
        for _ in range(100):
            expected = 1.0 / (1.0 + np.exp(-found @ rows.T))
            slope = (score - n * expected) @ rows
            curve = self._curve(n, expected)
            step = np.linalg.solve(curve, slope[:, :, None])[:, :, 0]
            step *= np.minimum(1.0, 1.0 / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1e-300))
            found += step
            if np.abs(step).max() < 1e-9:
                break
        if self.anchor is not None and self.model.anchor:
            ratings = found[:, : self.engines]
            ratings += self.model.anchor[1] / SCALE - ratings[:, self.anchor : self.anchor + 1]
        return found

    def deviations(self, games: Floats, found: Floats) -> Floats:
        """Standard deviations of the numbers `found`, in natural units, if all games were independent: the inverse of
        the likelihood's curvature (R. Fisher), seen from the mean rating or the anchor."""
        import numpy as np

        n = np.hstack([games, self.weights[None, :]])
        expected = 1.0 / (1.0 + np.exp(-found @ self.rows.T))
        seen_from = np.eye(len(self.pin))
        if self.anchor is None:
            seen_from[: self.engines, : self.engines] -= 1.0 / self.engines
        else:
            seen_from[: self.engines, self.anchor] -= 1.0
        covariance = seen_from @ np.linalg.inv(self._curve(n, expected)[0]) @ seen_from.T
        return np.sqrt(np.maximum(np.diag(covariance), 0.0))

    def _curve(self, n: Floats, expected: Floats) -> Floats:
        """The curvature of the likelihood: one matrix per line of games and of expected scores."""
        import numpy as np

        weight = n * expected * (1.0 - expected)
        return np.stack([(self.rows.T * line) @ self.rows for line in weight]) + self.pin
