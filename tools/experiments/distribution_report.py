"""The report of the study `distribution`: which reading explains the paper best, and how much the luck of a run is."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from math import comb, exp
from pathlib import Path
from statistics import mean, pstdev, stdev
from typing import NamedTuple

from hnefi.engine.wording import counted
from hnefi.protocol.hosts.text_table import markdown_table

from ..common import paper_hingston as paper
from ..common.matches import Tally
from ..common.svg_chart import MARGIN, Curve, Panel, Scale, Sheet
from . import figures, report, tests_csv
from .hingston_report import COUNTS, READINGS, explained, matches_by_depth
from .measuring import Cell, Results
from .spread import foreseen, predictive, with_intervals
from .studies import OPPONENTS, Run, Study

CHOICES = 60
"""How many choices of seeds are compared at most."""
SHOWN = 12
"""The number of best combinations of readings in the first table."""
OURS = Curve("mean of our seeds, and where 95 % of single runs lie", "#2f6d8a", "circle")
PAPER = Curve("the paper's run", "#b5432a", "diamond")


class Reading(NamedTuple):
    """One way to read the text on training, and the kind of Random in the tests at each depth."""

    way: str
    random: tuple[str, ...]


def finals(
    study: Study,
    results: Results,
    rules: str,
    way: str,
    opponent: str,
    depth: int,
    seeds: Iterable[int] | None = None,
) -> list[Tally]:
    """The tests of the last generation, one for each seed: those of `seeds`, else of all."""
    return [
        results[Cell(Run(rules, way, seed), study.generations, opponent, depth)]
        for seed in seeds or study.seeds_of(way)
    ]


def likelihoods(study: Study, results: Results) -> dict[Reading, float]:
    """How well each combination of readings explains all numbers of the paper: natural logarithms, best first.

    Rows of the tables are treated as independent, although one run played them all.
    """
    found = {
        reading: value
        for way in study.ways
        for reading, value in _likelihoods_of(study, results, way, study.seeds_of(way)).items()
    }
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _likelihoods_of(study: Study, results: Results, way: str, seeds: Sequence[int]) -> dict[Reading, float]:
    """The same for one way of training, by some of its seeds."""
    value = {
        (opponent, depth): sum(
            explained(
                paper.TABLES[rules][depth, "simple" if opponent == "simple" else "random"],
                paper.MATCHES[depth],
                finals(study, results, rules, way, opponent, depth, seeds),
            )
            for rules in study.rules
        )
        for opponent in OPPONENTS
        for depth in paper.DEPTHS
    }
    simple = sum(value["simple", depth] for depth in paper.DEPTHS)
    return {
        Reading(way, words): simple
        + sum(value[word, depth] for word, depth in zip(words, paper.DEPTHS, strict=True))
        for words in product(READINGS["random"], repeat=len(paper.DEPTHS))
    }


def by_choice_of_seeds(study: Study, results: Results) -> list[float]:
    """The log-likelihood of the first way's best combination by parts of its seeds, as many as the other ways have: how
    much of a difference between ways may be their seeds. Empty if the others have as many seeds as the first."""
    base, *others = study.ways
    some = min((len(study.seeds_of(way)) for way in others), default=len(study.seeds))
    if not 1 < some < len(study.seeds):
        return []
    if comb(len(study.seeds), some) <= CHOICES:
        chosen = list(combinations(study.seeds, some))
    else:
        draw = random.Random("choices of seeds")
        chosen = [tuple(draw.sample(study.seeds, some)) for _ in range(CHOICES)]
    return [max(_likelihoods_of(study, results, base, seeds).values()) for seeds in chosen]


def by_training(study: Study, found: Mapping[Reading, float], choices: Sequence[float]) -> list[list[str]]:
    """A row for each way: its best combination, and what it costs to read Random the other way at one of the depths.

    `found` is in descending order, as `likelihoods` returns it. If there are `choices` of seeds, the last column has
    how many of them explain the paper better than the way does.
    """
    last = [f"better choices, of {len(choices)}"] if choices else []
    costs = [f"the other Random at {counted(depth, 'ply', 'plies')}" for depth in paper.DEPTHS]
    rows = [["training", "seeds", "Random at 1, 2, 3 plies", "log-likelihood", *costs, *last]]
    best: dict[str, Reading] = {}
    for reading in found:
        best.setdefault(reading.way, reading)
    for reading in best.values():
        value, words = found[reading], reading.random
        others = [
            (*words[:place], word, *words[place + 1 :])
            for place, here in enumerate(words)
            for word in READINGS["random"]
            if word != here
        ]
        rows.append(
            [
                reading.way,
                str(len(study.seeds_of(reading.way))),
                _shortly(words),
                f"{value:.1f}",
                *(f"{found[Reading(reading.way, other)] - value:+.1f}" for other in others),
                *([str(sum(one > value for one in choices))] if choices else []),
            ]
        )
    return rows


def _shortly(words: Sequence[str]) -> str:
    """The readings of Random without what they have in common."""
    return ", ".join(word.removeprefix("random-") for word in words)


def probabilities(logarithms: Mapping[Reading, float]) -> dict[Reading, float]:
    """The probability of each reading, if one of them is true and all were equally likely beforehand."""
    best = max(logarithms.values())
    weights = {reading: exp(value - best) for reading, value in logarithms.items()}
    whole = sum(weights.values())
    return {reading: weight / whole for reading, weight in weights.items()}


def tables(study: Study) -> Iterator[tuple[int, str]]:
    """The rule sets with the numbers of their tables in the paper."""
    return ((paper.RULES.index(rules) + 1, rules) for rules in study.rules)


class Comparison(NamedTuple):
    """One number of the paper beside our runs of one configuration; counts out of `n` games."""

    opponent: str
    depth: int
    counted: str
    paper: int
    n: int
    mean: float
    interval: tuple[int, int] | None
    tail: float
    """The two-sided probability that a run deviates at least as much as the paper's number."""


def comparisons(study: Study, results: Results, rules: str, way: str) -> Iterator[Comparison]:
    """Every number of the paper's table, against Random in both readings."""
    for (depth, opponent), row in paper.TABLES[rules].items():
        n = paper.MATCHES[depth]
        for reading in READINGS[opponent]:
            tallies = finals(study, results, rules, way, reading, depth)
            played = [tally.matches.all for tally in tallies]
            for (name, of), printed in zip(COUNTS.items(), row, strict=True):
                counts = list(map(of, tallies))
                law = predictive(counts, played, n)
                tail = min(1.0, 2 * float(min(law[: printed + 1].sum(), law[printed:].sum())))
                yield Comparison(
                    reading,
                    depth,
                    name,
                    printed,
                    n,
                    n * sum(counts) / sum(played),
                    foreseen(counts, played, n),
                    tail,
                )


def luck(study: Study, results: Results, rules: str) -> list[list[str]]:
    """How much the luck of a seed changes the share of matches won, and how much the choice of reading does."""
    rows = [
        [
            "opponent",
            "plies",
            "between seeds",
            "of it luck in games",
            "between readings",
            "lowest and highest reading",
        ]
    ]
    base = next(iter(study.ways))
    for opponent, depth in product(OPPONENTS, paper.DEPTHS):
        won = {
            way: [
                tally.matches.won / tally.matches.all
                for tally in finals(study, results, rules, way, opponent, depth)
            ]
            for way in study.ways
        }
        means = {way: mean(shares) for way, shares in won.items()}
        chance = mean(share * (1 - share) for share in won[base]) / study.number[depth]
        low, high = (end(means, key=means.__getitem__) for end in (min, max))
        rows.append(
            [
                opponent,
                str(depth),
                f"{100 * pstdev(won[base]):.1f}",
                f"{100 * chance**0.5:.1f}",
                f"{100 * pstdev(means.values()):.1f}",
                "all alike"
                if means[low] == means[high]
                else f"{low} {100 * means[low]:.0f}, {high} {100 * means[high]:.0f}",
            ]
        )
    return rows


def write(folder: Path, study: Study, results: Results, drawn: Sequence[Path], command: str) -> Path:
    """Write `report.md`, and every test as a row of `tests.csv`; returns the report's path."""
    base, *others = study.ways
    found = likelihoods(study, results)
    likely = probabilities(found)
    best = max(found.values())
    lines = [
        *report.head(study.title, command, quick=study.quick),
        (
            f"{len(study.seeds)} seeds from {study.seeds[0]} for {base}"
            + (f", {len(study.seeds_of(others[-1]))} for each other reading" if others else "")
            + f", under {' and '.join(study.rules)}; {study.generations} generations. Tests of the last: "
            + f"{matches_by_depth(study.number)}."
        ),
        "",
        *(
            f"{counted(one.tests, 'test')} were taken over from {one.file} (SHA-256 {one.sha256}), not run here.\n"
            for one in tests_csv.merged(folder)
        ),
        "## Which reading explains the paper's numbers?",
        "",
        (
            "*Log-likelihood*: the natural logarithm of the probability of all numbers of the paper's tables under "
            "these rules, each row by the distribution that our seeds suggest for one more run. *Probability*: if one "
            "of the combinations is true and all were equally likely beforehand. Rows are treated as independent, "
            "although one run played them all, so the differences are overstated."
        ),
        "",
    ]
    if len(choices := by_choice_of_seeds(study, results)) > 1:
        some = len(study.seeds_of(others[-1]))
        lines += [
            (
                f"The seeds: by {some} of the {len(study.seeds)} seeds of {base}, the log-likelihood of "
                f"its best combination lies between {min(choices):.1f} and {max(choices):.1f} (mean "
                f"{mean(choices):.1f}, standard deviation {stdev(choices):.1f}, {len(choices)} choices). Differences "
                f"of this size between readings with {some} seeds say nothing, and the probabilities do not know of "
                "them."
            ),
            "",
        ]
    rows = [["training", "Random at 1, 2, 3 plies", "log-likelihood", "below the best", "probability"]]
    rows += [
        [
            reading.way,
            _shortly(reading.random),
            f"{value:.1f}",
            f"{best - value:.1f}",
            f"{likely[reading]:.2g}",
        ]
        for reading, value in list(found.items())[:SHOWN]
    ]
    lines += [
        *markdown_table(rows),
        "",
        "The same by training, and by reading of Random, summed over everything else:",
        "",
    ]
    rows = [["reading", "probability"]]
    for way in study.ways:
        rows.append([way, f"{sum(share for reading, share in likely.items() if reading.way == way):.2g}"])
    for place, depth in enumerate(paper.DEPTHS):
        for word in READINGS["random"]:
            share = sum(share for reading, share in likely.items() if reading.random[place] == word)
            rows.append([f"{word} at {counted(depth, 'ply', 'plies')}", f"{share:.2g}"])
    lines += [
        *markdown_table(rows),
        "",
        (
            "The best combination of each training, and how the log-likelihood changes if Random is read the other "
            "way at one depth:"
        ),
        "",
        *markdown_table(by_training(study, found, choices)),
        "",
    ]
    lines += ["## The luck of a seed, and the choice of a reading", ""]
    lines += [
        (
            f"Standard deviations of the share of matches won, in points: between the seeds of {base}, the part of it "
            "that the luck in so many matches explains, and between the means of all readings."
        ),
        "",
    ]
    for rules in study.rules:
        lines += [f"{rules}:", "", *markdown_table(luck(study, results, rules)), ""]
    for number, rules in tables(study):
        rows = [["plies", "opponent", "", "paper", "ours: mean", "foreseen", "chance of a run as far out"]]
        rows += [
            [
                str(one.depth),
                one.opponent,
                one.counted,
                f"{one.paper} of {one.n}",
                f"{one.mean:.1f}",
                "-".join(map(str, one.interval or ())),
                f"{one.tail:.2g}",
            ]
            for one in comparisons(study, results, rules, base)
        ]
        lines += [f"## Table {number}: {rules}, {base}", "", *markdown_table(rows), ""]
    lines += ["| training | options |", "|---|---|"]
    for way, options in study.ways.items():
        said = " ".join(f"`{name}={value}`" for name, value in options.items()) or "defaults"
        lines.append(f"| {way} | {said} |")
    lines += ["", *(f"![{path.stem}]({path.name})\n" for path in drawn if path.suffix == ".svg")]
    tests_csv.write(folder / "tests.csv", study, results)
    path = folder / "report.md"
    path.write_text("\n".join(lines).rstrip() + "\n")
    return path


# Figures

STEP, HEIGHT, LEFT = 23, 300, 62


def draw(folder: Path, study: Study, results: Results, *, png: bool = False) -> list[Path]:
    """Draw every number of the paper within its distribution, one SVG figure per rule set; `png` needs matplotlib."""
    made = []
    base = next(iter(study.ways))
    for number, rules in tables(study):
        found = list(comparisons(study, results, rules, base))
        sheet = Sheet(
            LEFT + STEP * len(found) + 2 * MARGIN,
            (
                f"{'QUICK  ' if study.quick else ''}Table {number} of the paper among single runs",
                f"{rules}, {base}: mean of {len(study.seeds)} seeds{with_intervals(len(study.seeds))}",
            ),
        )
        top = sheet.legend_below([OURS, PAPER], sheet.top + 4, LEFT) + 4
        panel = Panel(
            sheet, LEFT, top, STEP * len(found), HEIGHT, Scale(-0.5, len(found) - 0.5), Scale(-3, 103)
        )
        panel.ticks_left([(share, str(share)) for share in range(0, 101, 20)])
        words = (f"{one.opponent}, {one.depth}: {one.counted}" for one in found)
        below = panel.ticks_below(list(enumerate(words)), turn=62, size=10)
        for column, one in enumerate(found):
            if one.interval is not None:
                low, high = one.interval
                panel.bar(column, 0.5, 100 * low / one.n, 100 * high / one.n)
        panel.points([(column, 100 * one.mean / one.n) for column, one in enumerate(found)], OURS)
        panel.points([(column, 100 * one.paper / one.n) for column, one in enumerate(found)], PAPER)
        panel.frame()
        panel.called_left("games, %", 20)
        made += figures.write(folder / f"table-{number}", sheet, below + MARGIN, png=png)
    return made
