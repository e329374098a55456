"""How a training went, as pictures: losses by epoch, and what came of each round's test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..common.statistics import wilson
from ..common.svg_chart import MARGIN, Curve, Panel, Scale, Sheet, curve_of, steps
from .config import EPOCHS, TrainError, place_of, read_epochs

LOSSES, STRENGTH = "losses.svg", "strength.svg"
LEFT, WIDE, HEIGHT = 70, 560, 300
SHARES = [(share, str(share)) for share in range(0, 101, 25)]


def write(folder: Path, name: str, log: Sequence[Mapping[str, Any]]) -> tuple[list[Path], list[str]]:
    """Draw the finished rounds of a training into its folder: the files, and a sentence for each round whose losses
    cannot be read, which are left out. OSError if a file cannot be written."""
    parts, left_out = [], []
    for entry in log:
        try:
            parts.append(read_epochs(place_of(folder, entry["round"]) / EPOCHS))
        except TrainError as error:
            left_out.append(f"{error}; round {entry['round']} is left out of {LOSSES}")
    drawn = [(LOSSES, losses(f"Losses of {name}", parts))] if parts else []
    made = []
    for file, (sheet, height) in (*drawn, (STRENGTH, strength(f"Tests of {name}", log))):
        sheet.save(folder / file, height)
        made.append(folder / file)
    return made, left_out


def losses(title: str, parts: Sequence[Sequence[tuple[float, float]]]) -> tuple[Sheet, float]:
    """Mean logistic loss after each epoch (`read_epochs`), one round after the other."""
    values = [value for part in parts for line in part for value in line]
    ticks = [(value, f"{value:g}") for value in steps(min(values), max(values))]
    sheet = Sheet(
        LEFT + WIDE + 2 * MARGIN,
        [title, "mean logistic loss of the targets, by epoch; a curve for each round"],
    )
    looks = [curve_of("positions learned from", 0), curve_of("games held out", 1)]
    top = sheet.legend_below(looks, sheet.top + 4, LEFT) + 4
    count = sum(map(len, parts))
    low, high = min(values), max(values)
    margin = 0.05 * (high - low or 1)
    panel = Panel(sheet, LEFT, top, WIDE, HEIGHT, Scale(1, max(2, count)), Scale(low - margin, high + margin))
    panel.ticks_left([tick for tick in ticks if low - margin <= tick[0] <= high + margin])
    marks = [(value, f"{value:g}") for value in steps(1, max(2, count)) if value == int(value)]
    lowest = panel.ticks_below(marks, grid=True)
    below = panel.called_below("epoch", lowest)
    first = 1
    for part in parts:
        for look, line in zip(looks, zip(*part, strict=True), strict=True):
            panel.line(
                [(first + i, value) for i, value in enumerate(line)], look.colour, look.width, look.dash
            )
        first += len(part)
    panel.frame()
    panel.called_left("loss", LEFT - 52)
    return sheet, below + MARGIN


def strength(title: str, log: Sequence[Mapping[str, Any]]) -> tuple[Sheet, float]:
    """The candidate's score on each side against the best before, with intervals, round by round."""
    sheet = Sheet(
        LEFT + WIDE + 2 * MARGIN,
        [
            title,
            "score of the candidate against the best before, per cent, with 95 % intervals; sides swapped in pairs",
        ],
    )
    looks = {"attacking": curve_of("as attackers", 0), "defending": curve_of("as defenders", 1)}
    top = sheet.legend_below(list(looks.values()), sheet.top + 4, LEFT) + 4
    panel = Panel(sheet, LEFT, top, WIDE, HEIGHT, Scale(0.5, max(2, len(log)) + 0.5), Scale(-3, 103))
    panel.ticks_left(SHARES)
    panel.level(50)
    marks = [(entry["round"], _mark(entry)) for entry in log]
    lowest = panel.ticks_below(marks)
    below = panel.called_below("round", lowest)
    for offset, (side, look) in zip((-0.06, 0.06), looks.items(), strict=True):
        for entry in log:
            _bar(panel, entry["round"] + offset, entry["gate"][side], look)
    panel.frame()
    panel.called_left("score", LEFT - 52)
    return sheet, below + MARGIN


def _mark(entry: Mapping[str, Any]) -> str:
    verdict = {"H1": "taken", "H0": "not stronger"}.get(entry["gate"]["verdict"], "undecided")
    return f"{entry['round']} ({verdict})"


def _bar(panel: Panel, x: float, side: Mapping[str, int], look: Curve) -> None:
    games = side["won"] + side["drawn"] + side["lost"]
    if not games:
        return
    share = (side["won"] + side["drawn"] / 2) / games
    low, high = wilson(games * share, games) or (0.0, 1.0)
    panel.error(x, 100 * low, 100 * high, look.colour)
    panel.points([(x, 100 * share)], look)
