"""Ratings of several engines, and the advantage of a side, fitted to games by maximum likelihood.

The model is that of R. Bradley and M. Terry on the scale of A. Elo, with an additional term: attackers are expected to
score 1 / (1 + 10^(-(R_attackers - R_defenders + S_variant) / 400)), with a draw as half a win. With `Model.slope` the
advantage depends on the strength of the two: S_variant + slope_variant (mean of R_attackers and R_defenders - mean of
all) / 400. Errors come from resampling pairs (B. Efron's bootstrap), because games of one pair share an opening and are
not independent. A few pairs that happen to end alike would seem to leave no doubt, so the bootstrap's variance is
blended with the variance that the model gives for independent games.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

from .pairs import DOUBLED, Ending
from .statistics import EXTREME

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

SCALE = 400 / math.log(10)
"""Elo per unit of natural log odds."""
MODEL_WEIGHT = 4.0
"""The weight of the model's own variance, in pairs. With this weight 95 % intervals contain the truth in 89 to 100 % of
simulated tournaments with 1 to 40 pairs per meeting; with the bootstrap alone in 31 to 98 %
(`tests/support/interval_coverage.py`)."""
SLOPE_ROUNDS = 8
"""Fits after which models with slopes have converged to a hundredth of a point."""
CELLS = 2_000_000
"""Maximum of resamples times games processed at once, to limit memory."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A fitted number in Elo with its interval; `error` is half its width. They are None without a bootstrap, and if
    there is only one kind of unit: its resamples are all the same and say nothing about the error."""

    value: float
    error: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Ratings of engines that met each other, directly or through others, strongest first.

    `sides` is the attackers' advantage per variant; empty if no side term was fitted. `slopes` is the increase of that
    advantage when both players are 400 points stronger; empty if the advantage was assumed to be the same at all
    strengths. With slopes, `sides` holds for the mean of all ratings, `centre`. Numbers of different tables cannot be
    compared.
    """

    ratings: dict[str, Fitted]
    sides: dict[str, Fitted]
    slopes: dict[str, Fitted] = field(default_factory=dict)
    centre: float = 0.0

    def gap(self, variant: str, attackers: str, defenders: str) -> float:
        """The attackers' expected lead in a game in Elo, including the advantage of their side."""
        ours, theirs = self.ratings[attackers].value, self.ratings[defenders].value
        gap = ours - theirs
        if variant in self.sides:
            gap += self.sides[variant].value
        if variant in self.slopes:
            gap += self.slopes[variant].value * ((ours + theirs) / 2 - self.centre) / 400
        return gap


@dataclass(frozen=True, slots=True)
class Model:
    """How ratings are fitted: the anchor (engine, Elo) in place of a mean of 0, whether there is a side term and
    whether it depends on strength, the virtual draws per engine (0: no prior) and their opponents, the interval, the
    resamples of the bootstrap and their seed.

    Virtual draws against an engine of mean rating pull the strongest engines down, the more the farther they are from
    the mean; draws against the opponents that an engine `met`, in proportion to the games, hardly do.
    """

    anchor: tuple[str, float] | None = None
    side: bool = True
    slope: bool = False
    prior: float = 2.0
    prior_against: Literal["mean", "met"] = "mean"
    interval: float = 0.95
    bootstrap: int = 1000
    seed: int = 0


def rate(
    units: Mapping[Sequence[Ending], int] | Iterable[tuple[Sequence[Ending], int]], model: Model = Model()
) -> list[Table]:
    """One table for each group of engines that met, the largest first.

    `units` are what is resampled: pairs (or single games), each with the number of times it was seen, in any order.
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
    """Groups of engines that met, largest first; the engines of each are sorted."""
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
    # The games of all units, grouped by (variant, attackers, defenders).
    column = {meeting: index for index, meeting in enumerate(meetings)}
    entries = sorted(
        (column[ending[:3]], line, DOUBLED[ending.winner][0] / 2.0)
        for line, (unit, _) in enumerate(units)
        for ending in unit
    )
    meeting_of, unit_of, points = (np.array(part) for part in zip(*entries, strict=True))
    starts = np.searchsorted(meeting_of, np.arange(len(meetings)))

    def summed(counts: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Games and attackers' points per meeting, given how often each unit was drawn."""
        drawn = counts[:, unit_of].astype(float)
        return np.add.reduceat(drawn, starts, axis=1), np.add.reduceat(drawn * points, starts, axis=1)

    seen = np.array([count for _, count in units])
    best = fit(*summed(seen[None, :]), np.zeros(fit.rows.shape[1]))
    for _ in range(SLOPE_ROUNDS if model.slope else 0):
        fit.linearize(best[0])
        best = fit(*summed(seen[None, :]), best[0])
    # The legacy generator: numpy guarantees that its stream never changes.
    draw = np.random.RandomState(model.seed & 0xFFFFFFFF)
    total, chunk = int(seen.sum()), max(1, CELLS // len(entries))
    resampled = [
        fit(*summed(draw.multinomial(total, seen / total, size=min(chunk, model.bootstrap - done))), best[0])
        for done in range(0, model.bootstrap if len(units) > 1 else 0, chunk)
    ]
    samples = np.concatenate(resampled) * SCALE if resampled else None
    deviations = fit.deviations(summed(seen[None, :])[0], best) * SCALE
    best *= SCALE
    # The number of units that involve each engine and each variant.
    played: Counter[tuple[str, str]] = Counter()
    for unit, count in units:
        for part in {("engine", name) for ending in unit for name in ending[1:3]} | {
            ("variant", ending.variant) for ending in unit
        }:
            played[part] += count
    parts = [played["engine", name] for name in engines] + 2 * [played["variant", name] for name in variants]
    numbers = [
        _fitted(float(best[0, index]), parts[index], None if samples is None else samples[:, index],
                float(deviations[index]), model.interval)
        for index in range(best.shape[1])
    ]  # fmt: skip
    ratings, terms = dict(zip(engines, numbers, strict=False)), numbers[len(engines) :]
    return Table(
        dict(sorted(ratings.items(), key=lambda item: (-item[1].value, item[0]))),
        dict(zip(variants, terms, strict=False)) if model.side else {},
        dict(zip(variants, terms[len(variants) :], strict=True)) if model.slope else {},
        float(np.mean([rating.value for rating in ratings.values()])),
    )


def _fitted(value: float, units: int, samples: Floats | None, deviation: float, interval: float) -> Fitted:
    """The bootstrap's interval, widened towards the model's `deviation` if that is larger; the fewer `units`, the
    more."""
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
    """Newton's method on many resamples of one tournament at once."""

    def __init__(
        self, engines: list[str], variants: list[str], meetings: list[tuple[str, str, str]], model: Model
    ) -> None:
        import numpy as np

        size = len(engines)
        sides = len(variants) if model.side else 0
        slopes = len(variants) if model.slope else 0
        if slopes and not sides:
            raise ValueError("slope: expected a side term that can depend on strength")
        columns = size + sides + slopes
        self.engines = size
        self.model = model
        self.anchor = engines.index(model.anchor[0]) if model.anchor and model.anchor[0] in engines else None
        rows = np.zeros((len(meetings), columns))
        for index, (variant, attackers, defenders) in enumerate(meetings):
            rows[index, engines.index(attackers)] += 1.0
            rows[index, engines.index(defenders)] -= 1.0
            if sides:
                rows[index, size + variants.index(variant)] = 1.0
        # Each engine's virtual draws, one on each side, against an engine of mean rating. They are spread over the
        # variants that it played, so that side terms stay finite, too.
        virtual, weights = [], []
        for index, name in enumerate(engines if model.prior_against == "mean" else ()):
            own = sorted({meeting[0] for meeting in meetings if name in meeting[1:]})
            for variant in own:
                for sign in (1.0, -1.0):
                    line = np.zeros(columns)
                    line[:size] = -sign / size
                    line[index] += sign
                    if sides:
                        line[size + variants.index(variant)] = 1.0
                    virtual.append(line)
                    weights.append(model.prior / 2.0 / len(own))
        self.rows = np.vstack([rows, *virtual])
        self.weights = np.array(weights)
        self.linear = rows
        self.offset = np.zeros(len(self.rows))
        # Which engines play in a meeting (meetings, engines); which meetings have slopes, and in which columns.
        self.taking_part = np.abs(rows[:, :size])
        columns_of = [size + sides + variants.index(meeting[0]) for meeting in meetings] if slopes else []
        self.slopes = np.arange(len(columns_of)), np.array(columns_of, int)
        # Ratings are determined only up to a constant: this pins their mean, and anything that no game determines, to
        # 0.
        self.pin = 1e-9 * np.eye(columns)
        self.pin[:size, :size] += 1.0

    def linearize(self, found: Floats) -> None:
        """From now on, replace strength times slope, the only nonlinear term, by its tangent at the numbers `found`.
        After a few fits this is the tangent at the solution, and the resamples of a bootstrap are not far from it."""

        unit = SCALE / 400
        meetings, columns = self.slopes
        ratings, slope = found[: self.engines], found[columns]
        strength = unit * (self.taking_part @ ratings / 2 - ratings.mean())
        self.rows[meetings, columns] = strength
        self.rows[meetings, : self.engines] = self.linear[:, : self.engines] + (unit * slope)[:, None] * (
            self.taking_part / 2 - 1 / self.engines
        )
        self.offset[meetings] = -slope * strength

    def _with_prior(self, games: Floats, points: Floats) -> tuple[Floats, Floats]:
        """Games and points including virtual draws: one row per row of `games`."""
        import numpy as np

        many = len(games)
        if self.model.prior_against == "mean":
            n = np.hstack([games, np.tile(self.weights, (many, 1))])
            return n, np.hstack([points, np.tile(self.weights / 2.0, (many, 1))])
        # A meeting gets the same share of an engine's draws as it has of the engine's games.
        per_game = self.model.prior / np.maximum(games @ self.taking_part, 1e-300)
        draws = games * (per_game @ self.taking_part.T)
        return games + draws, points + draws / 2.0

    def __call__(self, games: Floats, points: Floats, start: Floats) -> Floats:
        """Ratings, then side terms, in natural units: one row per row of `games` and `points` (of the attackers)."""
        import numpy as np

        rows = self.rows
        n, score = self._with_prior(games, points)
        if self.model.prior_against == "mean" or not self.model.prior:
            # A perfect score would mean an infinite rating, so it counts as `EXTREME` short of perfect. With draws in
            # every meeting no score is perfect.
            score = np.clip(score, EXTREME * n, (1.0 - EXTREME) * n)
        found = np.tile(start, (len(games), 1))
        for _ in range(100):
            expected = 1.0 / (1.0 + np.exp(-(found @ rows.T + self.offset)))
            slope = (score - n * expected) @ rows
            curve = self._curve(n, expected)
            step = np.linalg.solve(curve, slope[:, :, None])[:, :, 0]
            step *= np.minimum(1.0, 1.0 / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1e-300))
            found += step
            if np.abs(step).max() < 1e-9:
                break
        if self.anchor is not None and self.model.anchor:
            ratings = found[:, : self.engines]
            fixed = self.model.anchor[1] / SCALE
            ratings += fixed - ratings[:, self.anchor : self.anchor + 1]
            # Rounding would leave a trace, on some processors, and the anchor would be shown with an error of ± 0.
            ratings[:, self.anchor] = fixed
        return found

    def deviations(self, games: Floats, found: Floats) -> Floats:
        """Standard deviations of the numbers `found`, in natural units, if all games were independent: from the inverse
        of the likelihood's curvature (R. Fisher), relative to the mean rating or the anchor."""
        import numpy as np

        n, _ = self._with_prior(games, np.zeros_like(games))
        expected = 1.0 / (1.0 + np.exp(-(found @ self.rows.T + self.offset)))
        seen_from = np.eye(len(self.pin))
        if self.anchor is None:
            seen_from[: self.engines, : self.engines] -= 1.0 / self.engines
        else:
            seen_from[: self.engines, self.anchor] -= 1.0
        covariance = seen_from @ np.linalg.inv(self._curve(n, expected)[0]) @ seen_from.T
        return np.sqrt(np.maximum(np.diag(covariance), 0.0))

    def _curve(self, n: Floats, expected: Floats) -> Floats:
        """The curvature of the likelihood: one matrix per row of games and of expected scores."""
        import numpy as np

        weight = n * expected * (1.0 - expected)
        return np.stack([(self.rows.T * line) @ self.rows for line in weight]) + self.pin
