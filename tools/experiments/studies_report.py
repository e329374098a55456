"""The report of a study: a table, curves over generations and over games, every seed visible."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from .measuring import Cell, Results
from .spread import as_columns, bootstrap, difference
from .studies import OPPONENTS, Run, Study, games_a_generation


def shares(study: Study, results: Results, way: str, generation: int, opponent: str) -> list[float]:
    """Per cent of matches won, by seed."""
    found = (results[Cell(Run(study.rules, way, seed), generation, opponent, 1)] for seed in study.seeds)
    return [100 * tally.matches.won / tally.matches.all for tally in found]


def late(study: Study, results: Results, way: str, opponent: str) -> list[float]:
    """The same, the mean of the tested generations of the last third: the fittest of one is mostly lucky."""
    generations = [generation for generation in study.tested if 3 * generation >= 2 * study.generations]
    columns = [shares(study, results, way, generation, opponent) for generation in generations]
    return [mean(column) for column in zip(*columns, strict=True)]


def table(study: Study, results: Results) -> list[list[str]]:
    """Every way against every opponent, and how it differs from the first way."""
    base = next(iter(study.ways))
    rows = [["way", "games a run", *OPPONENTS, f"against Simple, more than {base}"]]
    for way, options in study.ways.items():
        cells = []
        for opponent in OPPONENTS:
            found = late(study, results, way, opponent)
            cells.append(f"{mean(found):.1f} [{min(found):.1f}-{max(found):.1f}]")
        ours, theirs = (late(study, results, name, "simple") for name in (way, base))
        low, high = difference(ours, theirs)
        gap = "" if way == base else f"{mean(ours) - mean(theirs):+.1f} [{low:+.1f}, {high:+.1f}]"
        rows.append([way, f"{games_a_generation(options) * study.generations:,}", *cells, gap])
    return rows


def write(folder: Path, study: Study, results: Results, drawn: Sequence[Path], command: str) -> Path:
    """Write `report.md` and the numbers as CSV; the report's path."""
    lines = [f"# {study.title}", ""]
    if study.quick:
        lines += ["**QUICK: a small version that shows the chain at work. Its numbers say nothing.**", ""]
    rows = table(study, results)
    lines += [
        f"`{command}`",
        "",
        (
            f"{study.rules}, {len(study.seeds)} seeds ({', '.join(map(str, study.seeds))}), {study.generations} "
            f"generations. Tests at one ply, {study.number} matches each. Per cent of matches won: mean over seeds "
            "[least-most] of the tested generations of the last third; in the last column the difference of the means "
            "with its 95 % interval over seeds."
        ),
        "",
        *as_columns(rows),
        "",
        "| way | options |",
        "|---|---|",
    ]
    for way, options in study.ways.items():
        said = " ".join(f"`{name}={value}`" for name, value in options.items()) or "defaults"
        lines.append(f"| {way} | {said} |")
    lines += ["", *(f"![{path.stem}]({path.name})\n" for path in drawn if path.suffix == ".png")]
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
                    study.seeds, shares(study, results, way, generation, opponent), strict=True
                ):
                    found.append(((way, seed, generation, games, opponent), f"{share:.1f}"))
    return found


def draw(folder: Path, study: Study, results: Results) -> list[Path]:
    """Curves against Simple over generations and over games, as PNG and SVG; empty without matplotlib."""
    try:
        import matplotlib as mpl
    except ImportError:
        return []
    with mpl.rc_context({"svg.hashsalt": "hnefi", "svg.fonttype": "none"}):
        return [
            *_figure(folder / "against-simple", study, results, "simple"),
            *_figure(folder / "against-random", study, results, "random-terminal"),
        ]


MARKS = "osD^vPX*<>"


def _figure(path: Path, study: Study, results: Results, opponent: str) -> list[Path]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for (way, options), mark in zip(study.ways.items(), MARKS, strict=False):
        columns = [shares(study, results, way, generation, opponent) for generation in study.tested]
        means = [mean(column) for column in columns]
        low, high = zip(*(bootstrap(column) for column in columns), strict=True)
        errors = [
            [m - below for m, below in zip(means, low, strict=True)],
            [above - m for m, above in zip(means, high, strict=True)],
        ]
        games = [max(generation, 0.5) * games_a_generation(options) for generation in study.tested]
        for axes, xs in ((left, list(map(float, study.tested))), (right, games)):
            drawn = axes.errorbar(xs, means, yerr=errors, marker=mark, markersize=4, capsize=2, label=way)
            for curve in zip(*columns, strict=True):
                axes.plot(xs, curve, linewidth=0.4, alpha=0.4, color=drawn.lines[0].get_color())
    left.set_xlabel("generation")
    right.set_xlabel("games played in training (generation 0 drawn at half a generation)")
    right.set_xscale("log")
    left.set_ylabel("matches won, %")
    left.set_ylim(-3, 103)
    right.legend(fontsize=7, title="mean, 95 % over seeds", title_fontsize=7)
    figure.suptitle(
        f"{'QUICK  ' if study.quick else ''}{study.title}\n{study.rules} against {opponent}, 1 ply, "
        f"{len(study.seeds)} seeds, {2 * study.number} games a point",
        fontsize=10,
    )
    made = []
    for form in ("png", "svg"):
        file = path.with_suffix(f".{form}")
        figure.savefig(file, format=form, dpi=130, metadata={"Date": None} if form == "svg" else {})
        made.append(file)
    return made
