"""Pictures of a ladder: ratings with their intervals, profiles as a heat map, strength against nodes.

Everything is distinguished by position, shape or number, never by colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..common.rating import Fitted
from ..common.svg_chart import (
    INK,
    MARGIN,
    PAPER,
    RULE,
    SIZE,
    Curve,
    Outline,
    Panel,
    Scale,
    Sheet,
    Word,
    box,
    curve_of,
    grey,
    hatching,
    mark,
    steps,
    width_of,
)
from .fitting import Cell, Fit

ROW = 24
GAP = 14
WHOLE, ALONE = 260.0, 150.0
"""Widths of the column for all variants, and of the columns for single ones."""
CELL = 44.0
SLANT = 45


def ratings(fit: Fit, names: Sequence[str], rungs: Sequence[str], title: Sequence[str]) -> str:
    """Ratings with their intervals: a column for all variants together, then a smaller one for each. Rungs are full
    marks, others hollow ones."""
    tables = [("all variants", fit.whole), *fit.alone.items()]
    label = 2 * MARGIN + max(map(width_of, names))
    widths = [WHOLE] + [max(ALONE, width_of(name)) for name, _ in tables[1:]]
    numbers = [
        end
        for _, table in tables
        for name in names
        if (fitted := table.ratings.get(name)) is not None
        for end in _ends(fitted)
    ]
    low, high = min(numbers), max(numbers)
    pad = max(20.0, 0.04 * (high - low))
    across = label + sum(widths) + GAP * len(tables) + MARGIN
    sheet = Sheet(across, title)
    top = sheet.top + 34
    for row, name in enumerate(names):
        y = top + ROW * (row + 0.5)
        sheet.add(Word(label - 8, y + 4, name, anchor="end"))
        sheet.add(Outline(((label, y), (across - GAP - MARGIN, y)), RULE, 0.8))
    left = label
    for (heading, table), width in zip(tables, widths, strict=True):
        panel = Panel(
            sheet, left, top, width, ROW * len(names), Scale(low - pad, high + pad), Scale(len(names), 0)
        )
        round_ones = steps(low - pad, high + pad, max(2, int(width // 45)))
        panel.ticks_below([(value, f"{value:g}") for value in round_ones], grid=True, size=11)
        panel.frame()
        sheet.add(Word(left + width / 2, top - 8, heading, anchor="middle"))
        for row, name in enumerate(names):
            fitted = table.ratings.get(name)
            if fitted is not None:
                panel.line([(end, row + 0.5) for end in _ends(fitted)], INK, 2)
                x, y = panel.at(fitted.value, row + 0.5)
                sheet.add(mark(x, y, "circle", fill=INK if name in rungs else PAPER))
        left += width + GAP
    bottom = top + ROW * len(names)
    sheet.add(Word(label + WHOLE / 2, bottom + 38, "rating", anchor="middle"))
    return sheet.svg(bottom + 38 + MARGIN)


def _ends(fitted: Fitted) -> tuple[float, float]:
    low = fitted.value if fitted.low is None else fitted.low
    high = fitted.value if fitted.high is None else fitted.high
    return low, high


def profiles(
    found: Mapping[tuple[str, str], Cell], rows: Sequence[str], columns: Sequence[str], title: Sequence[str]
) -> str:
    """The score in percent of every row against every column; dark cells are high scores, hatched pairs never met."""
    label = 2 * MARGIN + max(map(width_of, rows))
    slant = 0.72 * max(map(width_of, columns)) + SIZE
    sheet = Sheet(max(420.0, label + CELL * len(columns) + slant), title)
    top = sheet.top + slant + 10
    for column, name in enumerate(columns):
        sheet.add(Word(label + CELL * (column + 0.5), top - 8, name, turn=-SLANT))
    for row, name in enumerate(rows):
        y = top + ROW * row
        sheet.add(Word(label - 8, y + ROW / 2 + 4, name, anchor="end"))
        for column, opponent in enumerate(columns):
            met = found.get((name, opponent))
            score = None if met is None else met.record.score
            x = label + CELL * column
            if score is None:
                sheet.add(*hatching(x + 0.5, y + 0.5, CELL - 1, ROW - 1, RULE))
                continue
            fill, ink = grey(score)
            sheet.add(
                box(x, y, CELL, ROW, fill, PAPER),
                Word(x + CELL / 2, y + ROW / 2 + 4, f"{100 * score:.0f}", anchor="middle", colour=ink),
            )
    return sheet.svg(top + ROW * len(rows) + 16)


Growth = Sequence[tuple[float, float, float]]
"""x, y and half the width of y's interval."""


def growth(curves: Mapping[str, Growth], title: Sequence[str], across: str, logarithmic: bool) -> str:
    """Ratings against something that increases strength, a curve for each name, with different strokes and marks."""
    left, width, height = 64.0, 560.0, 360.0
    xs = [x for curve in curves.values() for x, _, _ in curve]
    ys = [y + sign * error for curve in curves.values() for _, y, error in curve for sign in (-1, 1)]
    legend = 60 + max(map(width_of, curves))
    sheet = Sheet(left + width + 16 + legend, title)
    first, last = min(xs), max(xs)
    pad = 0.03
    if logarithmic:
        more = (last / first) ** pad if last > first else 2.0
        scale = Scale(first / more, last * more, log=True)
    else:
        more = pad * (last - first) or 1.0
        scale = Scale(first - more, last + more)
    low, high = min(ys) - 20, max(ys) + 20
    panel = Panel(sheet, left, sheet.top + 14, width, height, scale, Scale(low, high))
    panel.ticks_left([(value, f"{value:g}") for value in steps(low, high)])
    below = panel.ticks_below([(x, f"{x:g}") for x in sorted(set(xs))])
    below = panel.called_below(across, below)
    panel.called_left("rating", 20)
    looks = []
    for number, (name, curve) in enumerate(curves.items()):
        plain = curve_of(name, number)
        looks.append(
            Curve(
                name,
                INK if number == 0 else plain.colour,
                plain.shape,
                plain.dash,
                2.4 if number == 0 else 1.4,
            )
        )
        panel.curve([(x, y) for x, y, _ in curve], looks[-1], [(y - e, y + e) for _, y, e in curve])
    panel.frame()
    beside = sheet.legend_beside(looks, panel.right + 16, panel.top)
    return sheet.svg(max(below, beside) + MARGIN)
