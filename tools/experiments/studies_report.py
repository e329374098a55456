"""The report of a study: tables, and curves over generations, over games and over CPU seconds that show every seed."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from statistics import mean
from typing import Any

from hnefi.protocol.hosts.text_table import markdown_table

from . import figures, report
from .measuring import Cell, Results
from .spread import FEWEST, SAMPLES, difference, with_intervals
from .studies import GENERATIONS, OPPONENTS, Run, Study, games_a_generation

LEVELS = (20, 30, 40, 50, 60)
"""Percentages of matches won against Simple whose cost is reported."""


def shares(study: Study, results: Results, way: str, generation: int, opponent: str) -> list[float]:
    """The percentage of matches won, by seed."""
    found = (
        results[Cell(Run(study.rules[0], way, seed), generation, opponent, 1)] for seed in study.seeds_of(way)
    )
    return [100 * tally.matches.won / tally.matches.all for tally in found]


def late(study: Study, results: Results, way: str, opponent: str) -> list[float]:
    """The same as the mean over the tested generations in the last third, because the fittest of a single one is mostly
    lucky."""
    last = study.generations_of(way)
    generations = [generation for generation in study.tested_of(way) if 3 * generation >= 2 * last]
    columns = [shares(study, results, way, generation, opponent) for generation in generations]
    return [mean(column) for column in zip(*columns, strict=True)]


def table(study: Study, results: Results) -> list[list[str]]:
    """Every way against every opponent, and its difference from the first way."""
    base = next(iter(study.ways))
    rows = [["way", "games a run", *OPPONENTS, f"against Simple, more than {base}"]]
    for way, options in study.ways.items():
        cells = []
        for opponent in OPPONENTS:
            found = late(study, results, way, opponent)
            cells.append(f"{mean(found):.1f} [{min(found):.1f}-{max(found):.1f}]")
        ours, theirs = (late(study, results, name, "simple") for name in (way, base))
        gap = "" if way == base else f"{mean(ours) - mean(theirs):+.1f}"
        if gap and (interval := difference(ours, theirs)):
            gap += f" [{interval[0]:+.1f}, {interval[1]:+.1f}]"
        rows.append([way, f"{games_a_generation(options) * study.generations_of(way):,}", *cells, gap])
    return rows


def costs(folder: Path, study: Study, way: str) -> list[list[float]] | None:
    """The CPU seconds of each run of a way up to each of its tested generations, from the runs' logs; None if a run or
    its figures are not in the folder. The start of the program is not in them."""
    from hnefi.tools.evolve.folder import FolderError, read_log

    found = []
    for seed in study.seeds_of(way):
        try:
            log = read_log(folder / Run(study.rules[0], way, seed).folder)
        except FolderError:
            return None
        spent = list(accumulate(entry.get("cpu_seconds", 0.0) for entry in log))
        # It takes the games of generation 1 to know who was the fittest of generation 0.
        spent = [*spent[:1], *spent]
        tested = study.tested_of(way)
        if len(spent) <= tested[-1] or not spent[0]:
            return None
        found.append([spent[generation] for generation in tested])
    return found


def cost_to_reach(
    spent: Sequence[Sequence[float]], won: Sequence[Sequence[float]], level: float
) -> tuple[float, tuple[float, float] | None]:
    """The CPU seconds at which the mean of some runs first wins `level` % of its matches, on straight lines between the
    tested generations; infinite if it never does. With its 95 % interval from resampling runs, unless they are too few.

    `spent` and `won` have a row for each run, and a column for each tested generation.
    """
    import numpy as np

    cost, share = np.asarray(spent, float), np.asarray(won, float)
    first = _first(cost.mean(axis=0), share.mean(axis=0), level)
    if len(share) < FEWEST:
        return first, None
    random = np.random.default_rng(2007)
    drawn = random.integers(len(share), size=(SAMPLES, len(share)))
    others = [_first(cost[rows].mean(axis=0), share[rows].mean(axis=0), level) for rows in drawn]
    # Of infinite ones no value between two can be taken.
    low, high = np.quantile(others, (0.025, 0.975), method="nearest")
    return first, (float(low), float(high))


def _first(cost: Any, share: Any, level: float) -> float:
    """Where the curve of `share` over `cost` first is at `level`."""
    reached = (share >= level).nonzero()[0]
    if not len(reached):
        return math.inf
    at = int(reached[0])
    if at == 0:
        return float(cost[0])
    part = (level - share[at - 1]) / (share[at] - share[at - 1])
    return float(cost[at - 1] + part * (cost[at] - cost[at - 1]))


def cost_table(folder: Path, study: Study, results: Results) -> list[list[str]]:
    """What each way takes to win some shares of its matches against Simple; empty without the runs' CPU seconds."""
    rows = [["way", "CPU s a run", *(f"{level} %" for level in LEVELS)]]
    for way in study.ways:
        spent = costs(folder, study, way)
        if spent is None:
            return []
        won = list(
            zip(*(shares(study, results, way, at, "simple") for at in study.tested_of(way)), strict=True)
        )
        cells = (_cost(*cost_to_reach(spent, won, level)) for level in LEVELS)
        rows.append([way, f"{mean(run[-1] for run in spent):.0f}", *cells])
    return rows


def _cost(first: float, interval: tuple[float, float] | None) -> str:
    if interval is None or math.isinf(interval[0]):
        return _seconds(first)
    return f"{_seconds(first)} ({_seconds(interval[0])} to {_seconds(interval[1])})"


def _seconds(seconds: float) -> str:
    return "never" if math.isinf(seconds) else f"{seconds:.{0 if seconds >= 10 else 1}f}"


def write(folder: Path, study: Study, results: Results, drawn: Sequence[Path], command: str) -> Path:
    """Write `report.md` and the numbers as CSV; returns the report's path."""
    rows = table(study, results)
    own = " where the options say nothing else" if _have_own_generations(study) else ""
    lines = [
        *report.head(study.title, command, quick=study.quick),
        (
            f"{study.rules[0]}, {len(study.seeds)} seeds ({', '.join(map(str, study.seeds))}), {study.generations} "
            f"generations{own}. Tests at one ply, {study.number[1]} matches each. The table has the percentage of "
            "matches won: mean over seeds [least-most] of the tested generations of the last third. The last column is "
            f"the difference of the means{with_intervals(len(study.seeds))}."
        ),
        "",
        *markdown_table(rows),
        "",
        *_cost_section(folder, study, results),
        "| way | options |",
        "|---|---|",
    ]
    for way, options in study.ways.items():
        said = " ".join(f"`{name}={value}`" for name, value in options.items()) or "defaults"
        lines.append(f"| {way} | {said} |")
    lines += ["", *(f"![{path.stem}]({path.name})\n" for path in drawn if path.suffix == ".svg")]
    with (folder / "curves.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["way", "seed", "generation", "games", "opponent", "matches won, %"])
        for cell, value in _curves(study, results):
            writer.writerow([*cell, value])
    path = folder / "report.md"
    path.write_text("\n".join(lines).rstrip() + "\n")
    return path


def _cost_section(folder: Path, study: Study, results: Results) -> list[str]:
    """The section about CPU seconds, if they are known."""
    rows = cost_table(folder, study, results)
    if not rows:
        return []
    return [
        "## The same strength in how many CPU seconds",
        "",
        (
            "The CPU seconds of training at which the mean over seeds first wins this percentage of its matches "
            "against Simple at one ply, on straight lines between the tested generations, and the 95 % interval of "
            "that from resampling seeds (from five seeds on). Tests and the start of the program are not in them. Only "
            "times of one machine under the same load can be compared."
        ),
        "",
        *markdown_table(rows),
        "",
    ]


def _curves(study: Study, results: Results) -> list[tuple[tuple[Any, ...], str]]:
    found = []
    for way, options in study.ways.items():
        for generation in study.tested_of(way):
            games = generation * games_a_generation(options)
            for opponent in OPPONENTS:
                for seed, share in zip(
                    study.seeds_of(way), shares(study, results, way, generation, opponent), strict=True
                ):
                    found.append(((way, seed, generation, games, opponent), f"{share:.1f}"))
    return found


def draw(folder: Path, study: Study, results: Results, *, png: bool = False) -> list[Path]:
    """Curves against Simple over generations, games and CPU seconds, as SVG; `png` needs matplotlib."""
    made = []
    for name, opponent in {"against-simple": "simple", "against-random": "random-terminal"}.items():
        games = {way: games_a_generation(options) for way, options in study.ways.items()}
        axes = [
            figures.Axes(
                "games played in training (generation 0 drawn at half a generation)",
                {way: [max(at, 0.5) * games[way] for at in study.tested_of(way)] for way in study.ways},
                log=True,
            )
        ]
        if not _have_own_generations(study):
            axes.insert(
                0,
                figures.Axes("generation", {way: [*map(float, study.tested_of(way))] for way in study.ways}),
            )
        if seconds := _places(folder, study):
            axes.append(figures.Axes("CPU seconds of training (mean over seeds)", seconds, log=True))
        columns = {
            way: [shares(study, results, way, at, opponent) for at in study.tested_of(way)]
            for way in study.ways
        }
        curves = {way: list(zip(*found, strict=True)) for way, found in columns.items()}
        sheet, height = figures.figure(heading(study, opponent), axes, curves, {})
        made += figures.write(folder / name, sheet, height, png=png)
    return made


def _places(folder: Path, study: Study) -> dict[str, list[float]]:
    """The mean CPU seconds of each way's tested generations; empty if not known."""
    found = {}
    for way in study.ways:
        spent = costs(folder, study, way)
        if spent is None:
            return {}
        found[way] = [mean(column) for column in zip(*spent, strict=True)]
    return found


def _have_own_generations(study: Study) -> bool:
    return any(GENERATIONS in way for way in study.ways.values())


def heading(study: Study, opponent: str) -> tuple[str, str]:
    """The title lines of a figure."""
    return (
        f"{'QUICK  ' if study.quick else ''}{study.title}",
        (
            f"{study.rules[0]} against {opponent}, 1 ply, {len(study.seeds)} seeds, {2 * study.number[1]} games a "
            f"point; mean{with_intervals(len(study.seeds))}, thin lines single seeds"
        ),
    )
