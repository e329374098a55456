"""Analysis of a pool of games: ratings, profiles, what ratings do not explain, and cycles of players.

Ratings are fitted by maximum likelihood with a term for the advantage of a side in every variant (`arena.rating`), for
all variants together and for each alone; the anchor's rating is fixed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from ..common.pairs import DOUBLED, Record, Tally
from ..common.rating import Fitted, Model, Table, rate
from ..common.statistics import expected_score
from .ladder import LadderError
from .pool import Pool

BOOTSTRAP = 1000
LARGE = 3.0
"""Standard errors from which a deviation is reported."""


@dataclass(frozen=True, slots=True)
class Fit:
    """The ratings of a pool: `whole` for all variants together, `alone` for each by itself, with counts of games."""

    whole: Table
    alone: Mapping[str, Table]
    tally: Tally
    tallies: Mapping[str, Tally]
    model: Model


def fit(pool: Pool, model: Model, *, bootstrap: int = BOOTSTRAP, seed: int = 0, each: bool = True) -> Fit:
    """Fit a model with an anchor to all variants together and, with `each`, to every variant alone. LadderError if the
    anchor did not play."""
    variants = sorted({game.variant for game in pool.games})
    tallies = {name: pool.tally(name) for name in variants}
    tally = pool.tally()
    model = replace(model, bootstrap=bootstrap, seed=seed)
    return Fit(
        whole=_table(tally, model),
        alone={name: _table(tallies[name], model) for name in variants} if each else {},
        tally=tally,
        tallies=tallies,
        model=model,
    )


def _table(tally: Tally, model: Model) -> Table:
    """The table that contains the anchor."""
    assert model.anchor is not None
    name = model.anchor[0]
    try:
        tables = rate(tally.units(), model)
    except ValueError as error:
        raise LadderError(str(error)) from None
    return next(table for table in tables if name in table.ratings)


# Profiles


@dataclass(frozen=True, slots=True)
class Cell:
    """One player against another, in one variant or in all: the record, the score expected from the ratings, and the
    deviation of the record from it in standard errors."""

    player: str
    opponent: str
    record: Record
    expected: float
    residual: float


def cells(fit: Fit, variant: str | None = None) -> dict[tuple[str, str], Cell]:
    """All meetings, from both points of view. With a variant, expected scores come from its own ratings."""
    table, tally = _of(fit, variant)
    found = _Sums()
    for (place, attackers, defenders, winner), count in tally.games.items():
        if attackers not in table.ratings or defenders not in table.ratings or not count:
            continue
        hope = expected_score(table.gap(place, attackers, defenders))
        found.add((attackers, defenders), DOUBLED[winner][0], count, hope)
        found.add((defenders, attackers), DOUBLED[winner][1], count, 1.0 - hope)
    return {(one, two): found.cell((one, two)) for one, two in found.counts}


def directed(fit: Fit) -> dict[tuple[str, str, str], Cell]:
    """All meetings by variant, attackers and defenders, from the attackers' point of view, compared with the ratings
    for all variants. This shows deviations that cancel out between the two sides and so are hidden in `cells`."""
    found = _Sums()
    for (variant, attackers, defenders, winner), count in fit.tally.games.items():
        if attackers in fit.whole.ratings and defenders in fit.whole.ratings and count:
            hope = expected_score(fit.whole.gap(variant, attackers, defenders))
            found.add((variant, attackers, defenders), DOUBLED[winner][0], count, hope)
    return {(place, one, two): found.cell((place, one, two)) for place, one, two in found.counts}


def _of(fit: Fit, variant: str | None) -> tuple[Table, Tally]:
    return (fit.whole, fit.tally) if variant is None else (fit.alone[variant], fit.tallies[variant])


class _Sums:
    """Results of meetings and their expected values."""

    def __init__(self) -> None:
        self.counts: defaultdict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0, 0])
        self._expected: defaultdict[tuple[str, ...], float] = defaultdict(float)
        self._spread: defaultdict[tuple[str, ...], float] = defaultdict(float)

    def add(self, meeting: tuple[str, ...], doubled: int, count: int, hope: float) -> None:
        """Add `count` games with `doubled` half points each, where `hope` points were expected."""
        self.counts[meeting][doubled] += count
        self._expected[meeting] += count * hope
        # Draws reduce the variance: this is the largest possible for a game.
        self._spread[meeting] += count * hope * (1.0 - hope)

    def cell(self, meeting: tuple[str, ...]) -> Cell:
        player, opponent = meeting[-2:]
        losses, draws, wins = self.counts[meeting]
        record, expected, spread = Record(wins, draws, losses), self._expected[meeting], self._spread[meeting]
        residual = (wins + draws / 2 - expected) / math.sqrt(spread) if spread > 0 else 0.0
        return Cell(player, opponent, record, expected / record.games, residual)


def misfit(found: Mapping[tuple[str, str], Cell], free: int) -> tuple[float, int]:
    """Chi-square of all meetings and its degrees of freedom, with `free` fitted numbers. Their ratio is 1 if the model
    holds, and less if many games are drawn."""
    once = [cell for (one, two), cell in found.items() if one < two]
    return sum(cell.residual**2 for cell in once), max(1, len(once) - free)


# Cycles


@dataclass(frozen=True, slots=True)
class Cycle:
    """Three players, each of whom beats the next and the last one the first, with the three scores."""

    players: tuple[str, str, str]
    scores: tuple[float, float, float]


def cycles(found: Mapping[tuple[str, str], Cell]) -> list[Cycle]:
    """Every cycle in which each score is significantly above a half (Wilson's 95 % interval), the clearest first."""
    beats: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for (one, two), cell in found.items():
        interval, score = cell.record.interval, cell.record.score
        if interval is not None and score is not None and interval[0] > 0.5:
            beats[one][two] = score
    cycled = []
    for one, prey in beats.items():
        for two, score in prey.items():
            for three, other in beats.get(two, {}).items():
                # Each cycle is found from each of its players; it is listed for the first in the alphabet.
                if one == min(one, two, three) and one in beats.get(three, {}):
                    cycled.append(Cycle((one, two, three), (score, other, beats[three][one])))
    return sorted(cycled, key=lambda cycle: (-min(cycle.scores), cycle.players))


def significant(found: Mapping[tuple[str, str], Cell]) -> int:
    """The number of triples of players whose three meetings are all significant, among which cycles are counted."""
    clear = {
        pair
        for pair, cell in found.items()
        if (interval := cell.record.interval) is not None and (interval[0] > 0.5 or interval[1] < 0.5)
    }
    names = sorted({name for pair in clear for name in pair})
    return sum(
        (one, two) in clear and (two, three) in clear and (one, three) in clear
        for one, two, three in permutations(names, 3)
        if one < two < three
    )


# Two fits


@dataclass(frozen=True, slots=True)
class Difference:
    """A rating in two fits: the second minus the first, and half the width of the joint 95 % interval."""

    name: str
    one: Fitted
    two: Fitted
    value: float
    error: float

    @property
    def outside(self) -> bool:
        """Whether the two differ by more than chance explains in 95 of 100 cases."""
        return abs(self.value) > self.error


def differences(one: Table, two: Table) -> list[Difference]:
    """How two tables with the same anchor differ, in the order of the first; the anchor itself is left out."""
    found = []
    for name, first in one.ratings.items():
        second = two.ratings.get(name)
        # The anchor is not fitted and has no error.
        if second is None or not first.error or not second.error:
            continue
        error = math.hypot(first.error, second.error)
        found.append(Difference(name, first, second, second.value - first.value, error))
    return found


def rising(measured: Sequence[tuple[float, float]]) -> list[int]:
    """The strictly rising whole numbers nearest to measured ones (value, error) by weighted squares: neighbours in the
    wrong order get their weighted mean, plus one more each (pool adjacent violators)."""
    blocks: list[list[float]] = []  # sum of weights, sum of weighted values, count
    for value, error in measured:
        blocks.append([error**-2, value * error**-2, 1])
        while len(blocks) > 1 and blocks[-2][1] / blocks[-2][0] >= blocks[-1][1] / blocks[-1][0]:
            last = blocks.pop()
            blocks[-1] = [one + other for one, other in zip(blocks[-1], last, strict=True)]
    found: list[int] = []
    for weight, summed, many in blocks:
        for place in range(int(many)):
            number = round(summed / weight) - (int(many) - 1) // 2 + place
            found.append(number if not found else max(number, found[-1] + 1))
    return found
