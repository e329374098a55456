"""The report of a study: a table, and curves over generations and over games that show every seed."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from hnefi.protocol.hosts.text_table import markdown_table

from . import figures, report
from .measuring import Cell, Results
from .spread import difference, with_intervals
from .studies import OPPONENTS, Run, Study, games_a_generation


def shares(study: Study, results: Results, way: str, generation: int, opponent: str) -> list[float]:
    """The percentage of matches won, by seed."""
    found = (
        results[Cell(Run(study.rules[0], way, seed), generation, opponent, 1)] for seed in study.seeds_of(way)
    )
    return [100 * tally.matches.won / tally.matches.all for tally in found]


def late(study: Study, results: Results, way: str, opponent: str) -> list[float]:
    """The same as the mean over the tested generations in the last third, because the fittest of a single one is mostly
    lucky."""
    generations = [generation for generation in study.tested if 3 * generation >= 2 * study.generations]
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
        rows.append([way, f"{games_a_generation(options) * study.generations:,}", *cells, gap])
    return rows


def write(folder: Path, study: Study, results: Results, drawn: Sequence[Path], command: str) -> Path:
    """Write `report.md` and the numbers as CSV; returns the report's path."""
    rows = table(study, results)
    lines = [
        *report.head(study.title, command, quick=study.quick),
        (
            f"{study.rules[0]}, {len(study.seeds)} seeds ({', '.join(map(str, study.seeds))}), {study.generations} "
            f"generations. Tests at one ply, {study.number[1]} matches each. The table has the percentage of matches "
            "won: mean over seeds [least-most] of the tested generations of the last third. The last column is the "
            f"difference of the means{with_intervals(len(study.seeds))}."
        ),
        "",
        *markdown_table(rows),
        "",
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


def _curves(study: Study, results: Results) -> list[tuple[tuple[Any, ...], str]]:
    found = []
    for way, options in study.ways.items():
        for generation in study.tested:
            games = generation * games_a_generation(options)
            for opponent in OPPONENTS:
                for seed, share in zip(
                    study.seeds_of(way), shares(study, results, way, generation, opponent), strict=True
                ):
                    found.append(((way, seed, generation, games, opponent), f"{share:.1f}"))
    return found


def draw(folder: Path, study: Study, results: Results, *, png: bool = False) -> list[Path]:
    """Curves against Simple over generations and over games, as SVG; `png` needs matplotlib."""
    made = []
    for name, opponent in {"against-simple": "simple", "against-random": "random-terminal"}.items():
        games = {way: games_a_generation(options) for way, options in study.ways.items()}
        generations = list(map(float, study.tested))
        axes = [
            figures.Axes("generation", dict.fromkeys(study.ways, generations)),
            figures.Axes(
                "games played in training (generation 0 drawn at half a generation)",
                {way: [max(at, 0.5) * number for at in generations] for way, number in games.items()},
                log=True,
            ),
        ]
        columns = {
            way: [shares(study, results, way, at, opponent) for at in study.tested] for way in study.ways
        }
        curves = {way: list(zip(*found, strict=True)) for way, found in columns.items()}
        sheet, height = figures.figure(heading(study, opponent), axes, curves, {})
        made += figures.write(folder / name, sheet, height, png=png)
    return made


def heading(study: Study, opponent: str) -> tuple[str, str]:
    """The title lines of a figure."""
    return (
        f"{'QUICK  ' if study.quick else ''}{study.title}",
        (
            f"{study.rules[0]} against {opponent}, 1 ply, {len(study.seeds)} seeds, {2 * study.number[1]} games a "
            f"point; mean{with_intervals(len(study.seeds))}, thin lines single seeds"
        ),
    )
