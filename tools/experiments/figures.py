"""Curves of matches won: a mean with its interval over seeds, every seed as a thin line; as SVG, and PNG if wanted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from ..common.svg_chart import MARGIN, Outline, Panel, Scale, Sheet, curve_of, steps
from .spread import bootstrap

LEFT, GAP, HEIGHT = 62, 34, 320
WIDTHS = {1: 620, 2: 430}
"""The width of a panel, by the number of panels side by side."""
PAD = 0.04


@dataclass(frozen=True, slots=True)
class Axes:
    """The x axis of the curves: for every name the x values, which are the same for all its seeds."""

    label: str
    values: Mapping[str, Sequence[float]]
    log: bool = False


def figure(
    title: Sequence[str],
    axes: Sequence[Axes],
    curves: Mapping[str, Sequence[Sequence[float]]],
    levels: Mapping[str, tuple[float | None, float | None]],
    label: str = "matches won, %",
    span: tuple[int, int] = (0, 100),
) -> tuple[Sheet, float]:
    """The sheet and its height.

    `curves` are percentages by name, seed and value, drawn over `span`; `levels` are published values at both ends of
    the x axis.
    """
    wide = WIDTHS[min(2, len(axes))]
    sheet = Sheet(LEFT + len(axes) * (wide + GAP) - GAP + 2 * MARGIN, title)
    looks = {name: curve_of(name, number) for number, name in enumerate(curves)}
    top = sheet.legend_below(list(looks.values()), sheet.top + 4, LEFT) + 4
    below = top
    room = 0.03 * (span[1] - span[0])
    ticks = [(share, f"{share:g}") for share in steps(*span, 5)]
    for column, over in enumerate(axes):
        low, high = (end(value for row in over.values.values() for value in row) for end in (min, max))
        panel = Panel(
            sheet,
            LEFT + column * (wide + GAP),
            top,
            wide,
            HEIGHT,
            _padded(low, high, over.log),
            Scale(span[0] - room, span[1] + room),
        )
        panel.ticks_left(ticks if column == 0 else [(share, "") for share, _ in ticks])
        lowest = panel.ticks_below(_powers(low, high) if over.log else _round(low, high), grid=True)
        below = max(below, panel.called_below(over.label, lowest))
        for name, seeds in curves.items():
            xs, look = over.values[name], looks[name]
            for seed in seeds:
                panel.line(zip(xs, seed, strict=True), look.colour, 0.5)
        for name, seeds in curves.items():
            columns = list(zip(*seeds, strict=True))
            points = list(zip(over.values[name], map(mean, columns), strict=True))
            panel.curve(points, looks[name], [found for each in columns if (found := bootstrap(each))])
        for name, ends in levels.items():
            for level, end in zip(ends, (low, high), strict=True):
                if level is not None:
                    x, y = panel.at(end, level)
                    sheet.add(Outline(((x - 14, y), (x + 14, y)), looks[name].colour, 4))
        panel.frame()
        if column == 0:
            panel.called_left(label, 20)
    return sheet, below + MARGIN


def _padded(low: float, high: float, log: bool) -> Scale:
    """A scale with some room beside the first and the last point."""
    if log:
        more = (high / low) ** PAD if high > low else 2.0
        return Scale(low / more, high * more, log)
    more = PAD * (high - low) or 1.0
    return Scale(low - more, high + more)


def _round(low: float, high: float) -> list[tuple[float, str]]:
    return [(value, f"{value:g}") for value in steps(low, high, 8)]


def _powers(low: float, high: float) -> list[tuple[float, str]]:
    """Ticks at powers of ten, and ticks without a number between them."""
    ticks = []
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        ticks += [(digit * 10.0**power, f"{10**power:,}" if digit == 1 else "") for digit in range(1, 10)]
    return [(value, said) for value, said in ticks if low <= value <= high]


def write(path: Path, sheet: Sheet, height: float, *, png: bool) -> list[Path]:
    """Write `path.svg`, with `png` also `path.png`; creates the folder and returns the files."""
    path.parent.mkdir(exist_ok=True)
    return sheet.save(path.with_suffix(".svg"), height, png=png)
