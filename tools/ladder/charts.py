"""Pictures of a ladder as plain SVG: ratings with their intervals, profiles as a heat map, strength against nodes.

Everything can be told by position, shape or number, never by colour alone; nothing has to be installed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

from ..arena.rating import Fitted
from .fitting import Cell, Fit

INK, SOFT, GRID = "#2d2a2e", "#7d6b52", "#d9d2c4"
SIZE = 13
ROW = 24
LETTER = 7.4
"""Width of a letter at most, of text of `SIZE`."""
SHAPES = ("circle", "square", "triangle", "diamond")
STROKES = ("", "6 3", "2 3", "8 3 2 3")


def _page(width: float, height: float, title: Sequence[str], body: Sequence[str]) -> str:
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}"',
        f' width="{width:.0f}" height="{height:.0f}" font-family="sans-serif" font-size="{SIZE}" fill="{INK}">',
        f"<title>{escape(title[0])}</title>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        *(_text(12, 20 + 17 * number, line, "start") for number, line in enumerate(title)),
    ]
    return "\n".join([*head, *body, "</svg>", ""])


def _text(x: float, y: float, text: str, anchor: str = "middle", extra: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str = INK, width: float = 1.0) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"'
        f' stroke-width="{width:g}"/>'
    )


def _mark(x: float, y: float, shape: str, size: float = 4.5, *, hollow: bool = False) -> str:
    look = f'fill="{"#ffffff" if hollow else INK}" stroke="{INK}"'
    match shape:
        case "square":
            drawn = f"M{x - size:.1f} {y - size:.1f}h{2 * size:.1f}v{2 * size:.1f}h{-2 * size:.1f}Z"
        case "triangle":
            drawn = f"M{x:.1f} {y - size:.1f}L{x + size:.1f} {y + size:.1f}H{x - size:.1f}Z"
        case "diamond":
            drawn = f"M{x:.1f} {y - size:.1f}l{size:.1f} {size:.1f}l{-size:.1f} {size:.1f}l{-size:.1f} {-size:.1f}Z"
        case _:
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:g}" {look}/>'
    return f'<path d="{drawn}" {look}/>'


def _steps(low: float, high: float, most: int = 7) -> list[float]:
    """Round numbers from `low` to `high`."""
    rough = (high - low) / most
    power = 10 ** math.floor(math.log10(rough)) if rough > 0 else 1.0
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough)
    first = math.ceil(low / step)
    return [step * number for number in range(first, math.floor(high / step) + 1)]


def ratings(fit: Fit, names: Sequence[str], rungs: Sequence[str], title: Sequence[str]) -> str:
    """Ratings with their intervals: a column for all variants together, then a smaller one for each. Rungs are full
    marks, others hollow ones."""
    tables = [("all variants", fit.whole), *fit.alone.items()]
    label = 16 + LETTER * max(len(name) for name in names)
    widths = [260.0] + [150.0] * (len(tables) - 1)
    top = 60 + 17 * (len(title) - 1)
    bottom = top + ROW * len(names)
    numbers = [
        end
        for _, table in tables
        for name in names
        if (fitted := table.ratings.get(name)) is not None
        for end in _ends(fitted)
    ]
    low, high = min(numbers), max(numbers)
    pad = max(20.0, 0.04 * (high - low))
    low, high = low - pad, high + pad
    body = []
    for row, name in enumerate(names):
        y = top + ROW * (row + 0.5)
        body.append(_text(label - 8, y + 4, name, "end"))
        body.append(_line(label, y, label + sum(widths) + 14 * (len(tables) - 1), y, GRID, 0.6))
    left = label
    for (heading, table), width in zip(tables, widths, strict=True):
        body += _axis(heading, left, width, top, bottom, low, high)
        for row, name in enumerate(names):
            fitted = table.ratings.get(name)
            if fitted is not None:
                y = top + ROW * (row + 0.5)
                at, *ends = (left + width * (x - low) / (high - low) for x in (fitted.value, *_ends(fitted)))
                body.append(_line(ends[0], y, ends[1], y, INK, 2))
                body.append(_mark(at, y, "circle", hollow=name not in rungs))
        left += width + 14
    return _page(left + 8, bottom + 34, title, body)


def _ends(fitted: Fitted) -> tuple[float, float]:
    low = fitted.value if fitted.low is None else fitted.low
    high = fitted.value if fitted.high is None else fitted.high
    return low, high


def _axis(
    heading: str, left: float, width: float, top: float, bottom: float, low: float, high: float
) -> list[str]:
    """A frame with round numbers below."""
    body = [_text(left + width / 2, top - 8, heading)]
    body.append(
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{bottom - top:.1f}" fill="none"'
        f' stroke="{SOFT}"/>'
    )
    for step in _steps(low, high, max(2, int(width // 45))):
        x = left + width * (step - low) / (high - low)
        body.append(_line(x, top, x, bottom, GRID, 0.6))
        body.append(_text(x, bottom + 16, f"{step:g}", extra=' font-size="11"'))
    return body


def profiles(
    found: Mapping[tuple[str, str], Cell], rows: Sequence[str], columns: Sequence[str], title: Sequence[str]
) -> str:
    """The score in percent of every row against every column: dark cells are high scores, hatched ones never met."""
    label = 16 + LETTER * max(len(name) for name in rows)
    cell = 44.0
    slant = LETTER * max(len(name) for name in columns) * 0.75
    top = 30 + 17 * len(title) + slant
    body = [
        '<defs><pattern id="none" width="6" height="6" patternUnits="userSpaceOnUse">',
        f'<path d="M0 6L6 0" stroke="{GRID}"/></pattern></defs>',
    ]
    for column, name in enumerate(columns):
        x = label + cell * (column + 0.5)
        body.append(_text(x, top - 6, name, "start", f' transform="rotate(-48 {x:.1f} {top - 6:.1f})"'))
    for row, name in enumerate(rows):
        y = top + ROW * row
        body.append(_text(label - 8, y + ROW / 2 + 4, name, "end"))
        for column, opponent in enumerate(columns):
            met = found.get((name, opponent))
            score = None if met is None else met.record.score
            fill = "url(#none)" if score is None else _grey(score)
            x = label + cell * column
            body.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{cell:.1f}" height="{ROW}" fill="{fill}" stroke="#ffffff"/>'
            )
            if score is not None:
                ink = "#ffffff" if score > 0.6 else INK
                body.append(
                    _text(x + cell / 2, y + ROW / 2 + 4, f"{100 * score:.0f}", extra=f' style="fill:{ink}"')
                )
    width = label + cell * len(columns) + max(20.0, slant * 0.9)
    return _page(max(width, 420), top + ROW * len(rows) + 16, title, body)


def _grey(share: float) -> str:
    level = round(250 - 190 * share)
    return f"#{level:02x}{level:02x}{level:02x}"


Curve = Sequence[tuple[float, float, float]]
"""x, y and half of its interval."""


def growth(curves: Mapping[str, Curve], title: Sequence[str], across: str, logarithmic: bool) -> str:
    """Ratings against something that makes stronger, a curve for each name; told apart by strokes and marks."""
    width, height = 560.0, 360.0
    left, top = 64.0, 34.0 + 17 * len(title)
    xs = [x for curve in curves.values() for x, _, _ in curve]
    ys = [y + sign * error for curve in curves.values() for _, y, error in curve for sign in (-1, 1)]
    low, high = min(ys) - 20, max(ys) + 20

    def scaled(x: float) -> float:
        return math.log2(x) if logarithmic else x

    first, last = scaled(min(xs)), scaled(max(xs))
    span = (last - first) or 1.0

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            left + 16 + (width - 32) * (scaled(x) - first) / span,
            top + height * (high - y) / (high - low),
        )

    body = [
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="{SOFT}"/>',
        _text(left + width / 2, top + height + 36, across),
    ]
    for step in _steps(low, high):
        y = at(min(xs), step)[1]
        body.append(_line(left, y, left + width, y, GRID, 0.6))
        body.append(_text(left - 6, y + 4, f"{step:g}", "end"))
    body += [_text(at(x, low)[0], top + height + 17, f"{x:g}") for x in sorted(set(xs))]
    for number, (name, curve) in enumerate(curves.items()):
        shape, stroke = SHAPES[number % len(SHAPES)], STROKES[number % len(STROKES)]
        thick = 2.4 if number == 0 else 1.2
        path = "L".join("{:.1f} {:.1f}".format(*at(x, y)) for x, y, _ in curve)
        dashes = f' stroke-dasharray="{stroke}"' if stroke else ""
        body.append(f'<path d="M{path}" fill="none" stroke="{INK}" stroke-width="{thick}"{dashes}/>')
        for x, y, error in curve:
            body.append(_line(*at(x, y - error), *at(x, y + error), SOFT, 1.2))
            body.append(_mark(*at(x, y), shape, hollow=number > 0))
        y = top + 18 + 20 * number
        place = left + width + 16
        body.append(
            f'<path d="M{place:.1f} {y:.1f}h30" stroke="{INK}" stroke-width="{thick}"{dashes} fill="none"/>'
        )
        body.append(_mark(place + 15, y, shape, hollow=number > 0))
        body.append(_text(place + 38, y + 4, name, "start"))
    legend = 60 + LETTER * max(len(name) for name in curves)
    return _page(left + width + 16 + legend, top + height + 50, title, body)
