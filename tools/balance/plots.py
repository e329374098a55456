"""Figures of a run: the attackers' score against strength for every rule set, and beside people; PNG and SVG.

They need matplotlib (the extra `plots`), which is imported when something is drawn. Nothing is told by colour alone.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hnefi.protocol.columns import clip

from . import people
from .measures import Interval
from .report import Outcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("svg", "png")
ACROSS = 4
NAME = 30


def draw(outcome: Outcome, folder: Path) -> list[Path]:
    """Draw what there is into `folder`; the files, none without matplotlib or without cells."""
    try:
        import matplotlib as mpl
    except ImportError:
        return []
    if not outcome.cells:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    # A fixed salt and no date: the same run gives the same files. Fonts may lack signs of names: boxes do.
    with mpl.rc_context({"svg.hashsalt": "hnefi", "svg.fonttype": "none"}), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, figure in _figures(outcome):
            for form in FORMATS:
                path = folder / f"{name}.{form}"
                figure.savefig(path, format=form, dpi=150, metadata={"Date": None} if form == "svg" else {})
                made.append(path)
    return made


def _figures(outcome: Outcome) -> Iterator[tuple[str, Figure]]:
    yield "strength", _strength(outcome)
    if len(people.compared(outcome.of(outcome.plan.players[-1]), counted=False)) >= people.FEWEST:
        yield "people", _people(outcome)


def _figure(size: tuple[float, float], heading: str) -> Figure:
    """An empty figure with a heading; nothing global is touched."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(heading, x=0.01, ha="left", fontsize=9, parse_math=False)
    return figure


def _strength(outcome: Outcome) -> Figure:
    """A panel for each rule set: score with interval over players, draws as bars, people as a dashed line."""
    players = outcome.plan.players
    labels = list(dict.fromkeys(cell.entrant.label for cell in outcome.cells))
    down = math.ceil(len(labels) / ACROSS)
    across = min(ACROSS, len(labels))
    games = f"{outcome.plan.games} games a point, {outcome.plan.strongest} of {players[-1]}"
    heading = (
        "Attackers' score of equal players (dots, 95 % intervals), share of draws (bars), people (dashes)\n"
        f"{games}, random openings, seed {outcome.plan.seed}"
    )
    figure = _figure((1.2 + 2.6 * across, 1.6 + 2.0 * down), heading)
    theirs = people.table()
    grid = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
    for place, axes in enumerate(grid.flat):
        if place >= len(labels):
            axes.set_visible(False)
            continue
        label = labels[place]
        found = [(i, m) for i, player in enumerate(players) if (m := outcome.at(label, player)) is not None]
        xs = [i for i, _ in found]
        axes.bar(xs, [100 * m.draws / m.games for _, m in found], color="0.85", width=0.8, zorder=1)
        axes.axhline(50, color="0.6", linewidth=0.8, zorder=2)
        for row in theirs:
            if row.rules == label:
                axes.axhline(100 * row.score, color="0.2", linewidth=1.0, linestyle=(0, (5, 3)), zorder=2)
        scores = [100 * m.score for _, m in found]
        errors = _errors([m.score for _, m in found], [m.score_interval for _, m in found])
        axes.errorbar(
            xs, scores, yerr=errors, color="black", marker="o", markersize=4, linewidth=1.2, capsize=2, zorder=3
        )  # fmt: skip
        axes.set_title(clip(label, NAME), fontsize=8, parse_math=False)
        axes.set_ylim(0, 100)
        axes.set_xticks(range(len(players)), labels=players, rotation=60, ha="right", fontsize=7)
        axes.tick_params(labelbottom=place >= across * (down - 1), labelsize=7)
    figure.supylabel("per cent", fontsize=8)
    return figure


def _people(outcome: Outcome) -> Figure:
    """People's scores against the strongest player's, a number for each row with its name beside the picture."""
    player = outcome.plan.players[-1]
    pairs = people.compared(outcome.of(player), counted=False)
    figure = _figure(
        (7.0, 4.4), f"Attackers' score: people and {player}; filled: {people.COUNTED} games or more"
    )
    axes = figure.add_subplot()
    axes.plot([20, 80], [20, 80], color="0.7", linewidth=0.8)
    for place, (row, m) in enumerate(pairs, 1):
        error = _errors([m.score], [m.score_interval])
        axes.errorbar(
            [100 * row.score], [100 * m.score], yerr=error, color="black", marker="o", markersize=6, capsize=2,
            markerfacecolor="black" if row.counted else "white", linestyle="",
            label=f"{place} {clip(row.name, NAME)}",
        )  # fmt: skip
        axes.annotate(
            str(place),
            (100 * row.score, 100 * m.score),
            xytext=(6, 4),
            textcoords="offset points",
            fontsize=8,
        )
    axes.set_xlabel("people, per cent")
    axes.set_ylabel(f"{player}, per cent", parse_math=False)
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure


def _errors(scores: Sequence[float], intervals: Sequence[Interval]) -> list[list[float]]:
    """How far intervals reach below and above, in per cent."""
    below = [100 * (score - low) for score, (low, _) in zip(scores, intervals, strict=True)]
    above = [100 * (high - score) for score, (_, high) in zip(scores, intervals, strict=True)]
    return [below, above]
