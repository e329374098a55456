"""Who plays as people do: agreement of moves, centipawns lost, and results compared with the judge's expectations.

Positions of one game depend on each other, so intervals come from resampling whole games.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from hnefi.engine import durable
from hnefi.protocol.hosts.text_table import markdown_table

from ..common import calibration
from ..common.svg_chart import MARGIN, Curve, Panel, Scale, Sheet, curve_of, steps
from . import published
from .ladder import Ladder
from .people import MOST, Answer, Game, Plan

RESAMPLES: Final = 2000
FITS: Final = 200
"""Resamples of a fitted line, which takes longer than a mean."""
FEWEST: Final = 10
"""The fewest games for an interval."""
BLUNDER: Final = 200
"""Centipawns whose loss makes a move a blunder."""
BINS: Final = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
SIDES: Final = ("attackers", "defenders")
PARTS: Final = ("first third", "second third", "last third")
PEOPLE: Final = "people"


class Mean(NamedTuple):
    """A mean over `n` positions with its 95 % interval, which is None for few games."""

    value: float
    interval: tuple[float, float] | None
    n: int


@dataclass(frozen=True)
class Sample:
    """Answers, with the data for means over them: `draws` is how often each game counts in each resample; the first row
    is the original sample."""

    answers: Sequence[Answer]
    names: tuple[str, ...]

    @cached_property
    def game(self) -> Any:
        _, index = np.unique([answer.line for answer in self.answers], return_inverse=True)
        return index

    @cached_property
    def draws(self) -> Any:
        count = int(self.game.max()) + 1
        rng = np.random.default_rng(2007)
        drawn = rng.multinomial(count, np.full(count, 1 / count), RESAMPLES)
        return np.vstack([np.ones(count, np.int64), drawn])

    @cached_property
    def side(self) -> Any:
        return np.array([answer.side for answer in self.answers])

    @cached_property
    def part(self) -> Any:
        """Which third of its game a move belongs to: 0, 1 or 2."""
        return np.array([3 * (answer.ply - 1) // answer.plies for answer in self.answers])

    def loss(self, name: str) -> Any:
        """Centipawns that a player, or people, lost by each move."""
        return np.array([answer.loss("" if name == PEOPLE else name) for answer in self.answers], np.float64)

    def agreed(self, name: str) -> Any:
        """Whether a player's move was that of people."""
        return np.array([name in answer.same for answer in self.answers], np.float64)

    def masks(self) -> dict[str, Any]:
        """The parts of the sample that are reported separately."""
        every = np.ones(len(self.answers), bool)
        by_side = {name: self.side == number for number, name in enumerate(SIDES)}
        return {"all": every, **by_side, **{name: self.part == number for number, name in enumerate(PARTS)}}

    def mean(self, values: Any, mask: Any = None) -> Mean | None:
        """The mean of values over positions; None if there are none."""
        mask = np.ones(len(values), bool) if mask is None else mask
        if not mask.any():
            return None
        return self._with_interval(self._means(values, mask), mask)

    def between_sides(self, values: Any) -> Mean | None:
        """The mean over attackers' moves less that over defenders'; None unless there are both."""
        sides = [self.side == number for number in range(len(SIDES))]
        if not all(mask.any() for mask in sides):
            return None
        attacking, defending = (self._means(values, mask) for mask in sides)
        return self._with_interval(attacking - defending, *sides)

    def _means(self, values: Any, mask: Any) -> Any:
        """The mean over positions in each resample; NaN where it has none of them."""
        count = self.draws.shape[1]
        sums = np.bincount(self.game[mask], values[mask], count)
        totals = self.draws @ np.bincount(self.game[mask], minlength=count)
        return np.divide(self.draws @ sums, totals, out=np.full(len(totals), np.nan), where=totals > 0)

    def _with_interval(self, means: Any, *masks: Any) -> Mean:
        """The mean of the sample and what its resamples say of it, unless one of its parts is from few games."""
        few = any(len(np.unique(self.game[mask])) < FEWEST for mask in masks)
        low, high = (0.0, 0.0) if few else np.nanquantile(means[1:], (0.025, 0.975))
        n = sum(int(mask.sum()) for mask in masks)
        return Mean(float(means[0]), None if few else (float(low), float(high)), n)


class Bin(NamedTuple):
    """Positions with similar expectations of the judge: the attackers' expected and actual score."""

    expected: float
    happened: Mean


def chance(values: Any) -> Any:
    """The expected score for centipawns: at 400 it is ten times the opponent's."""
    return 1 / (1 + np.exp(-np.asarray(values, np.float64) / calibration.LOGIT))


def finished(sample: Sample) -> Sample:
    """The positions of games that came to an end."""
    return Sample([answer for answer in sample.answers if answer.result is not None], sample.names)


def _for_attackers(sample: Sample) -> tuple[Any, Any]:
    """The judge's values and the results, both as the attackers see them."""
    values = np.array([answer.value * (-1 if answer.side else 1) for answer in sample.answers])
    results = np.array([{"a": 1.0, "d": 0.0, "draw": 0.5}[str(answer.result)] for answer in sample.answers])
    return values, results


def calibrated(sample: Sample, side: int) -> list[Bin | None]:
    """Results of positions in which a side was to move, by the score that the judge expected for the attackers."""
    values, results = _for_attackers(sample)
    expected = chance(values)
    places = np.clip(np.digitize(expected, BINS[1:-1]), 0, len(BINS) - 2)
    found: list[Bin | None] = []
    for number in range(len(BINS) - 1):
        mask = (places == number) & (sample.side == side)
        happened = sample.mean(results, mask)
        found.append(None if happened is None else Bin(float(expected[mask].mean()), happened))
    return found


def overrated(sample: Sample) -> list[Mean]:
    """The attackers' score that the judge expects over all positions, what they got, and by how much that is less:
    three means, none if there are no positions."""
    values, results = _for_attackers(sample)
    expected = chance(values)
    found = (sample.mean(each) for each in (expected, results, expected - results))
    return [mean for mean in found if mean is not None]


class Line(NamedTuple):
    """The line that predicts results best: its slope, and the attackers' score if the judge says even; intervals."""

    slope: float
    slopes: tuple[float, float]
    even: float
    evens: tuple[float, float]


def line(sample: Sample, side: int | None = None) -> Line | None:
    """The line through values of positions, perhaps only those with `side` to move; None for few games."""
    values, results = _for_attackers(sample)
    chosen = np.arange(len(values)) if side is None else np.flatnonzero(sample.side == side)
    if len(np.unique(sample.game[chosen])) < FEWEST:
        return None
    fits = []
    for times in sample.draws[: FITS + 1]:
        index = np.repeat(chosen, times[sample.game[chosen]])
        fits.append(calibration.scale_of(values[index], results[index]))
    slopes = [slope for slope, _ in fits]
    evens = [float(1 / (1 + np.exp(-level))) for _, level in fits]
    return Line(slopes[0], _reach(slopes[1:]), evens[0], _reach(evens[1:]))


def _reach(values: Sequence[float]) -> tuple[float, float]:
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


# The report


def write(
    folder: Path, ladder: Ladder, plan: Plan, found: Sequence[Game], answers: Sequence[Answer], *, png: bool
) -> Path:
    """Write tables, figures and a CSV file into the folder; returns the Markdown file."""
    rated = _ratings(ladder, plan)
    names = sorted((one.name for one in plan.players), key=lambda name: rated.get(name, 0.0))
    sample = Sample(answers, tuple(names))
    drawn = []
    if answers:
        for name, sheet, height in figures(sample, plan):
            sheet.save(folder / f"{name}.svg", height, png=png)
            drawn.append(name)
    path = folder / "report.md"
    text = "\n".join(markdown(sample, plan, found, rated, drawn)) + "\n"
    durable.put(path, text.encode())
    durable.put(folder / "people.csv", _csv(sample).encode())
    return path


def _ratings(ladder: Ladder, plan: Plan) -> dict[str, float]:
    """The players' ratings on the ladder in this variant, or for all variants if the ladder does not include it."""
    document = published.ratings(ladder.name, ladder.file.parent) or {"players": {}}
    return {
        name: float(entry["variants"].get(plan.variant, entry)["elo"])
        for name, entry in document["players"].items()
    }


def markdown(
    sample: Sample, plan: Plan, found: Sequence[Game], rated: dict[str, float], drawn: Sequence[str]
) -> Iterator[str]:
    """The report's lines."""
    yield f"# People and players: {plan.variant}"
    yield ""
    count = len(sample.answers)
    if not count:
        yield "None of the drawn positions offered a choice."
        return
    lines = len({answer.line for answer in sample.answers})
    yield (
        f"{count:,} positions of {lines:,} games, drawn from all {sum(len(game.moves) for game in found):,} moves of "
        f"{len(found):,} recorded games (seed {plan.seed}); those with only one legal move are left out. The judge is "
        f"{plan.judge.name}. Its values are cut off at {MOST:,} centipawns, which is also what a decided game is "
        "worth. Intervals are 95 % intervals, from resampling whole games."
    )
    parts = (
        ("The same move", "agreement", agreement_table(sample, rated)),
        ("Centipawns lost", "loss", loss_table(sample, rated)),
        ("Lost more than people", "", difference_table(sample)),
        ("Expectation and result", "calibration", calibration_tables(finished(sample))),
    )
    for heading, figure, table in parts:
        yield from ("", f"## {heading}", "")
        if figure in drawn:
            yield from (f"![{heading}]({figure}.svg)", "")
        yield from table


def agreement_table(sample: Sample, rated: dict[str, float]) -> Iterator[str]:
    """How often each player moves as people did."""
    masks = sample.masks()
    yield "The percentage of positions in which a player makes the move that was played, or its mirror image."
    yield ""
    rows = []
    for name in sample.names:
        values = sample.agreed(name)
        means = [sample.mean(values, mask) for mask in masks.values()]
        rows.append(
            (
                name,
                _rating(rated, name),
                *(_percent(mean, wide=place < 3) for place, mean in enumerate(means)),
            )
        )
    yield from markdown_table([("player", "rating", *masks), *rows])


def loss_table(sample: Sample, rated: dict[str, float]) -> Iterator[str]:
    """The loss per move of each player and of people."""
    masks = sample.masks()
    yield (
        "Mean centipawns by which the position after a move is worse than the one after the judge's own move, both in"
        f" the judge's view. Blunders lose {BLUNDER} or more. For players that resemble the judge this means little."
    )
    yield ""
    rows = []
    for name in (PEOPLE, *sample.names):
        values = sample.loss(name)
        means = [sample.mean(values, mask) for mask in masks.values()]
        blunders = sample.mean((values >= BLUNDER).astype(np.float64))
        shown = [_number(mean, wide=place < 3) for place, mean in enumerate(means)]
        rows.append((name, _rating(rated, name), *shown, _percent(blunders, wide=False)))
    yield from markdown_table([("player", "rating", *masks, "blunders %"), *rows])


def difference_table(sample: Sample) -> Iterator[str]:
    """Each player's loss minus that of people, in the same positions."""
    masks = {name: mask for name, mask in sample.masks().items() if name == "all" or name in SIDES}
    theirs = sample.loss(PEOPLE)
    yield (
        "Centipawns that a player loses more than people do in the same positions; bold where the interval contains 0. "
        "*Difference*: that of attackers less that of defenders; where it is positive, people attack better, or defend "
        "worse, than such a player."
    )
    yield ""
    rows = []
    for name in sample.names:
        more = sample.loss(name) - theirs
        cells = (sample.mean(more, mask) for mask in masks.values())
        rows.append((name, *map(_difference, (*cells, sample.between_sides(more)))))
    yield from markdown_table([("player", *masks, "difference"), *rows])


def calibration_tables(sample: Sample) -> Iterator[str]:
    """The judge's expectations and the actual results."""
    if not sample.answers:
        yield "None of these games has a result."
        return
    yield (
        f"The attackers' score in {len({answer.line for answer in sample.answers}):,} finished games, where a draw"
        " is half a point, by the score that the judge expected in the position."
    )
    yield ""
    columns = [calibrated(sample, side) for side in (0, 1)]
    rows = []
    for number, (low, high) in enumerate(pairwise(BINS)):
        cells: list[str] = []
        for column in columns:
            found = column[number]
            cells += (
                ("-", "-", "-")
                if found is None
                else (str(found.happened.n), f"{100 * found.expected:.0f}", _percent(found.happened))
            )
        rows.append((f"{100 * low:.0f} to {100 * high:.0f}", *cells))
    head = ["expected %"]
    for name in SIDES:
        head += [f"{name} to move: positions", "expected", "happened"]
    yield from markdown_table([head, *rows])
    yield ""
    expected, happened, more = overrated(sample)
    sign, word = (100, "less") if more.value >= 0 else (-100, "more")
    ends = sorted(sign * end for end in more.interval or ())
    least_most = " [{:.1f} to {:.1f}]".format(*ends) if ends else ""
    yield (
        f"Over all of these positions the judge expects {100 * expected.value:.1f} % for the attackers, who got"
        f" {100 * happened.value:.1f} %: {sign * more.value:.1f} points {word}{least_most}."
    )
    yield ""
    lines = [
        (name, line(sample, side)) for name, side in (("either", None), ("attackers", 0), ("defenders", 1))
    ]
    rows = [
        (
            name,
            f"{found.slope:.2f} [{found.slopes[0]:.2f} to {found.slopes[1]:.2f}]",
            f"{100 * found.even:.0f} [{100 * found.evens[0]:.0f} to {100 * found.evens[1]:.0f}]",
        )
        for name, found in lines
        if found is not None
    ]
    if rows:
        yield from markdown_table(
            [("to move", "slope", "attackers' score % where the judge says even"), *rows]
        )
        yield ""
        yield (
            "The slope is 1 if results are as certain as the judge's values say, and less than 1 if they are less"
            " certain. The line is fitted to all positions, in logits."
        )


def _ends(mean: Mean) -> tuple[float, float]:
    """The ends of its interval, if there is one."""
    return mean.interval or (mean.value, mean.value)


def _rating(rated: dict[str, float], name: str) -> str:
    return f"{rated[name]:.0f}" if name in rated else "-"


def _percent(mean: Mean | None, *, wide: bool = True) -> str:
    return _shown(mean and mean._replace(value=100 * mean.value), wide, 100.0)


def _number(mean: Mean | None, *, wide: bool = True) -> str:
    return _shown(mean, wide, 1.0)


def _shown(mean: Mean | None, wide: bool, times: float) -> str:
    if mean is None:
        return "-"
    if not wide or mean.interval is None:
        return f"{round(mean.value)}"
    low, high = mean.interval
    return f"{round(mean.value)} [{round(times * low)} to {round(times * high)}]"


def _difference(mean: Mean | None) -> str:
    if mean is None:
        return "-"
    if mean.interval is None:
        return f"{round(mean.value):+}"
    low, high = mean.interval
    text = f"{round(mean.value):+} [{round(low):+} to {round(high):+}]"
    return f"**{text}**" if low <= 0 <= high else text


def _csv(sample: Sample) -> str:
    """Every number of the first three tables."""
    out = io.StringIO()
    told = csv.writer(out, lineterminator="\n")
    told.writerow(("player", "part", "measure", "mean", "low", "high", "positions"))
    for name in (PEOPLE, *sample.names) if sample.answers else ():
        measures = {"loss": sample.loss(name)}
        if name != PEOPLE:
            measures |= {
                "agreement": sample.agreed(name),
                "more_than_people": measures["loss"] - sample.loss(PEOPLE),
            }
        for measure, values in measures.items():
            for part, mask in sample.masks().items():
                mean = sample.mean(values, mask)
                if mean is not None:
                    low, high = mean.interval or ("", "")
                    told.writerow((name, part, measure, mean.value, low, high, mean.n))
    return out.getvalue()


# Figures

HIGH, EACH, LEFT, SLANT = 250, 34, 62, 55


def figures(sample: Sample, plan: Plan) -> Iterator[tuple[str, Sheet, float]]:
    """All figures with their names and heights."""
    title = f"{plan.variant}, {len(sample.answers)} positions of people's games"
    agreed = {name: sample.agreed(name) for name in sample.names}
    yield (
        "agreement",
        *_by_player(sample, agreed, 100, (f"The move that people made: {title}", "per cent"), False),
    )
    lost = {name: sample.loss(name) for name in sample.names}
    yield (
        "loss",
        *_by_player(sample, lost, 1, (f"Centipawns lost a move: {title}", f"judge {plan.judge.name}"), True),
    )
    over = finished(sample)
    if over.answers:
        yield "calibration", *_calibration(over, plan)


def _by_player(
    sample: Sample, values: dict[str, Any], times: float, title: Sequence[str], people: bool
) -> tuple[Sheet, float]:
    """A mean of each player, from weak to strong, for either side, with people's as a horizontal line."""
    looks = [curve_of(name, number) for number, name in enumerate(SIDES)]
    masks = [sample.side == number for number in range(len(SIDES))]
    curves = [
        [
            (place, mean)
            for place, name in enumerate(sample.names)
            if (mean := sample.mean(values[name], mask))
        ]
        for mask in masks
    ]
    theirs = [sample.mean(sample.loss(PEOPLE), mask) if people else None for mask in masks]
    ends = [times * end for curve in curves for _, mean in curve for end in _ends(mean)]
    ends += [times * mean.value for mean in theirs if mean is not None]
    sheet = Sheet(max(560.0, LEFT + EACH * len(sample.names) + 2 * MARGIN), title)
    named = list(looks)
    if people:
        named += [
            Curve(f"{PEOPLE} as {name}", look.colour, dash="7 4")
            for name, look in zip(SIDES, looks, strict=True)
        ]
    top = sheet.legend_below(named, sheet.top + 4)
    marks = steps(min(0.0, *ends), max(ends))
    panel = Panel(
        sheet,
        LEFT,
        top + 8,
        sheet.width - LEFT - MARGIN,
        HIGH,
        Scale(-0.5, len(sample.names) - 0.5),
        Scale(min(marks[0], *ends), max(marks[-1], *ends)),
    )
    panel.ticks_left([(value, f"{value:g}") for value in marks])
    for look, curve, level in zip(looks, curves, theirs, strict=True):
        if level is not None:
            panel.level(times * level.value, look.colour, 1.4, "7 4")
        shift = 0.09 * (1 if look is looks[1] else -1)
        points = [(place + shift, times * mean.value) for place, mean in curve]
        errors = [(times * low, times * high) for _, mean in curve for low, high in [_ends(mean)]]
        if points:
            panel.curve(points, look, errors)
    panel.frame()
    below = panel.ticks_below(list(enumerate(sample.names)), turn=SLANT)
    return sheet, below + MARGIN


def _calibration(sample: Sample, plan: Plan) -> tuple[Sheet, float]:
    """The attackers' actual score against the expected one, for either side to move."""
    side = 320
    sheet = Sheet(
        LEFT + side + 3 * MARGIN,
        (
            f"{plan.variant}: what was expected, what came",
            f"attackers' score, {len(sample.answers)} positions of finished games, judge {plan.judge.name}",
        ),
    )
    looks = [curve_of(f"{name} to move", number) for number, name in enumerate(SIDES)]
    top = sheet.legend_below(looks, sheet.top + 4)
    panel, below = calibration.panel(sheet, LEFT, top + 8, side, "expected by the judge, per cent")
    for number, look in enumerate(looks):
        found = [each for each in calibrated(sample, number) if each is not None]
        if not found:
            continue
        panel.curve(
            [(100 * each.expected, 100 * each.happened.value) for each in found],
            look,
            [(100 * low, 100 * high) for each in found for low, high in [_ends(each.happened)]],
        )
    panel.frame()
    return sheet, below + MARGIN
