"""Charts: shapes on a sheet, written as plain SVG without any dependency, or as PNG with matplotlib.

A `Sheet` has a title that wraps and is never clipped; `Panel`s are its axes, with points, lines, bars, bands and error
bars in their own coordinates. Text widths assume the widest of the usual fonts, so that text fits in any viewer's
font. Only elements that all renderers draw the same way are used: no style sheets, no clip paths, no patterns
(hatching is lines). The same chart gives the same file, byte for byte.
"""

from __future__ import annotations

import io
import math
import unicodedata
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from hnefi.engine import durable

INK, SOFT, RULE, PAPER = "#24222a", "#66616e", "#dcd8e0", "#ffffff"
FORMATS: Final = (".svg", ".png")
COLOURS: Final = ("#0a64a4", "#c8500a", "#0b7a58", "#8a3a8f", "#9a6c00", "#3b3b44", "#b02035", "#2d7f93")
"""Colours of curves: distinguishable for colour-blind readers, and dark enough on white."""
SHAPES: Final = ("circle", "square", "triangle", "diamond", "down", "cross", "plus", "star")
DASHES: Final = ("", "7 3", "2 3", "9 3 2 3", "12 3", "4 2 1 2")
SIZE: Final = 12
MARGIN: Final = 12
LEADING: Final = 1.35
FONTS: Final = "DejaVu Sans, Verdana, Arial, sans-serif"
PNG_SCALE: Final = 2
NO_PNG: Final = (
    "a PNG needs matplotlib, which is not installed: pip install 'hnefi[plots]' (SVG needs nothing)"
)

Point = tuple[float, float]


class ChartError(ValueError):
    """A picture cannot be drawn or written; the text is a sentence for people."""


_WIDTHS: Final = {
    **dict.fromkeys("ijlI.,:;'|/ ·", 0.34),
    **dict.fromkeys('frt()[]-!"', 0.43),
    **dict.fromkeys("scz_–", 0.56),
    **dict.fromkeys("ABCDEFGHKLNOPQRSTUVXYZ+=<>~#", 0.8),
    **dict.fromkeys("mwMW@%&…—", 1.0),
}


def width_of(text: str, size: float = SIZE) -> float:
    """The maximum width of a line of text."""
    return size * sum(map(_width, text))


def _width(sign: str) -> float:
    known = _WIDTHS.get(sign)
    if known is not None:
        return known
    if unicodedata.combining(sign):
        return 0.0
    return 0.64 if sign < "\u0250" else 1.05


def wrapped(text: str, width: float, size: float = SIZE) -> list[str]:
    """`text` in lines of at most `width`, broken between words if possible, else after punctuation, else anywhere."""
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        joined = f"{line} {word}" if line else word
        if line and width_of(joined, size) > width:
            lines.append(line)
            joined = word
        while width_of(joined, size) > width and len(joined) > 1:
            fits = next(
                n for n in range(len(joined) - 1, 0, -1) if n == 1 or width_of(joined[:n], size) <= width
            )
            sign = max((joined.rfind(sign, 1, fits) for sign in "+-_/:,@"), default=-1)
            cut = sign + 1 if sign > fits // 2 else fits
            lines.append(joined[:cut])
            joined = joined[cut:]
        line = joined
    return [*lines, line]


def steps(low: float, high: float, most: int = 7) -> list[float]:
    """Round numbers from `low` to `high`."""
    rough = (high - low) / most
    power = 10 ** math.floor(math.log10(rough)) if rough > 0 else 1.0
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough)
    return [step * number for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def grey(share: float) -> tuple[str, str]:
    """A colour for a cell, darker for larger shares, and a colour for text that is readable on it."""
    level = round(250 - 190 * share)
    return f"#{level:02x}{level:02x}{level:02x}", PAPER if level < 125 else INK


@dataclass(frozen=True, slots=True)
class Outline:
    """A line through points, or a filled shape."""

    points: tuple[Point, ...]
    stroke: str = INK
    width: float = 1.0
    dash: str = ""
    fill: str = "none"
    closed: bool = False

    def svg(self) -> str:
        """The element."""
        (x, y), *rest = self.points
        path = f"M{_number(x)} {_number(y)}" + "".join(f"L{_number(a)} {_number(b)}" for a, b in rest)
        dash = f' stroke-dasharray="{self.dash}"' if self.dash else ""
        look = f' stroke="{self.stroke}" stroke-width="{self.width:g}"{dash}' if self.width else ""
        return f'<path d="{path}{"Z" if self.closed else ""}" fill="{self.fill}"{look}/>'


@dataclass(frozen=True, slots=True)
class Disc:
    """A filled circle."""

    x: float
    y: float
    radius: float
    stroke: str
    fill: str

    def svg(self) -> str:
        """The element."""
        return (
            f'<circle cx="{_number(self.x)}" cy="{_number(self.y)}" r="{self.radius:g}" fill="{self.fill}"'
            f' stroke="{self.stroke}"/>'
        )


@dataclass(frozen=True, slots=True)
class Word:
    """A line of text on its base line, rotated in degrees around its anchor."""

    x: float
    y: float
    text: str
    size: float = SIZE
    anchor: str = "start"
    turn: float = 0.0
    colour: str = INK

    def svg(self) -> str:
        """The element."""
        x, y = _number(self.x), _number(self.y)
        turned = f' transform="rotate({self.turn:g} {x} {y})"' if self.turn else ""
        size = f' font-size="{self.size:g}"' if self.size != SIZE else ""
        colour = f' fill="{self.colour}"' if self.colour != INK else ""
        return f'<text x="{x}" y="{y}" text-anchor="{self.anchor}"{size}{colour}{turned}>{_safe(self.text)}</text>'


Shape = Outline | Disc | Word


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _safe(text: str) -> str:
    """Text for XML, without the few characters that XML does not allow at all."""
    allowed = "".join(
        sign if sign >= " " and not "\ud800" <= sign <= "\udfff" and sign not in "\ufffe\uffff" else "\ufffd"
        for sign in text
    )
    return escape(allowed)


_STAR = tuple(
    (radius * math.sin(math.pi * k / 5), -radius * math.cos(math.pi * k / 5))
    for k, radius in enumerate((1.35, 0.55) * 5)
)
_CROSS = ((-1, -0.5), (-0.5, -1), (0, -0.5), (0.5, -1), (1, -0.5), (0.5, 0), (1, 0.5), (0.5, 1), (0, 0.5), (-0.5, 1),
          (-1, 0.5), (-0.5, 0))  # fmt: skip
_PLUS = ((-0.35, -1), (0.35, -1), (0.35, -0.35), (1, -0.35), (1, 0.35), (0.35, 0.35), (0.35, 1), (-0.35, 1),
         (-0.35, 0.35), (-1, 0.35), (-1, -0.35), (-0.35, -0.35))  # fmt: skip
_FORMS: Final[dict[str, tuple[Point, ...]]] = {
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "triangle": ((0, -1.1), (1, 0.9), (-1, 0.9)),
    "down": ((0, 1.1), (1, -0.9), (-1, -0.9)),
    "diamond": ((0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)),
    "cross": _CROSS,
    "plus": _PLUS,
    "star": _STAR,
}


def mark(x: float, y: float, shape: str, size: float = 4.5, *, fill: str = INK, stroke: str = INK) -> Shape:
    """A point of a chart, in one of the `SHAPES`."""
    if shape == "circle":
        return Disc(x, y, size, stroke, fill)
    return Outline(
        tuple((x + size * a, y + size * b) for a, b in _FORMS[shape]), stroke, fill=fill, closed=True
    )


def box(
    left: float, top: float, width: float, height: float, fill: str, stroke: str = "", line: float = 1.0
) -> Outline:
    """A rectangle."""
    right, bottom = left + width, top + height
    corners = ((left, top), (right, top), (right, bottom), (left, bottom))
    return Outline(corners, stroke, line if stroke else 0.0, fill=fill, closed=True)


def hatching(left: float, top: float, width: float, height: float, colour: str = "#b8b2c0") -> list[Shape]:
    """A white field with slanting lines, for what is unknown."""
    made: list[Shape] = [box(left, top, width, height, PAPER)]
    for number in range(1, int((width + height) // 7) + 1):
        along = 7.0 * number
        made.append(
            Outline(
                (
                    (left + max(0.0, along - height), top + min(along, height)),
                    (left + min(along, width), top + max(0.0, along - width)),
                ),
                colour,
                0.8,
            )
        )
    return made


@dataclass(frozen=True, slots=True)
class Curve:
    """How a curve looks, here and in the legend."""

    name: str
    colour: str = INK
    shape: str = ""
    dash: str = ""
    width: float = 1.8
    fill: str = ""
    size: float = 4.5

    def sample(self, x: float, y: float) -> list[Shape]:
        """A piece of the curve, 30 wide, for the legend."""
        made: list[Shape] = (
            [Outline(((x, y), (x + 30, y)), self.colour, self.width, self.dash)] if self.width else []
        )
        return [*made, *([self.mark(x + 15, y)] if self.shape else [])]

    def mark(self, x: float, y: float) -> Shape:
        """One point of the curve."""
        stroke = INK if self.fill and not self.width else self.colour
        return mark(x, y, self.shape, self.size, fill=self.fill or self.colour, stroke=stroke)


def curve_of(name: str, number: int) -> Curve:
    """The look of the curve with this number: colour, shape and dashes all differ."""
    return Curve(
        name, COLOURS[number % len(COLOURS)], SHAPES[number % len(SHAPES)], DASHES[number % len(DASHES)]
    )


class Sheet:
    """The paper: a title, drawings below it, and as much height as they need."""

    def __init__(self, width: float, title: Sequence[str]) -> None:
        """`title` is a list of lines, which are wrapped if too long."""
        self.width = width
        self._title = title[0] if title else ""
        self.shapes: list[Shape] = []
        self.top = float(MARGIN)
        """The y at which free paper begins below the title."""
        for number, line in enumerate(title):
            size, colour = (SIZE + 2, INK) if number == 0 else (SIZE, SOFT)
            for part in wrapped(line, width - 2 * MARGIN, size):
                self.top += LEADING * size
                self.shapes.append(Word(MARGIN, self.top - 0.3 * size, part, size, colour=colour))
        self.height = self.top

    def add(self, *shapes: Shape) -> None:
        """Draw on top of existing shapes."""
        self.shapes += shapes

    def legend_below(self, curves: Sequence[Curve], top: float, left: float = MARGIN) -> float:
        """Draw samples and names in rows; returns the y at which free paper begins below them."""
        x, y = left, top + SIZE
        for curve in curves:
            wide = 38 + width_of(curve.name) + 18
            if x > left and x + wide > self.width:
                x, y = left, y + LEADING * SIZE + 3
            self.add(*curve.sample(x, y - 4), Word(x + 38, y, curve.name))
            x += wide
        return y + MARGIN

    def legend_beside(self, curves: Sequence[Curve], left: float, top: float) -> float:
        """Draw samples and names below each other, with names wrapped at the margin; returns the y at which free paper
        begins below them."""
        y = top + SIZE
        for curve in curves:
            self.add(*curve.sample(left, y - 4))
            for part in wrapped(curve.name, self.width - MARGIN - left - 38):
                self.add(Word(left + 38, y, part))
                y += LEADING * SIZE
            y += 3
        return y

    def svg(self, height: float) -> str:
        """The picture, `height` pixels high."""
        wide, high = math.ceil(self.width), math.ceil(height)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}"'
            f' font-family="{FONTS}" font-size="{SIZE}" fill="{INK}">'
        )
        ground = f'<rect width="{wide}" height="{high}" fill="{PAPER}"/>'
        body = [shape.svg() for shape in self.shapes]
        return "\n".join([head, f"<title>{_safe(self._title)}</title>", ground, *body, "</svg>", ""])

    def save(self, path: Path, height: float, *, png: bool = False) -> list[Path]:
        """Write the picture to `path` (`.svg`), with `png` also beside it as a PNG; returns the files. OSError."""
        durable.put(path, self.svg(height).encode())
        if not png:
            return [path]
        durable.put(path.with_suffix(".png"), self.png(height))
        return [path, path.with_suffix(".png")]

    def write(self, path: Path, height: float) -> None:
        """Write the picture to a file that is `expect_drawable`, whole or not at all; ChartError."""
        data = self.png(height) if path.suffix.lower() == ".png" else self.svg(height).encode()
        try:
            durable.put(path, data)
        except OSError as error:
            raise ChartError(
                f"{path}: {error.strerror or error}: expected a file that can be written"
            ) from None

    def png(self, height: float) -> bytes:
        """The same picture as PNG, drawn by matplotlib; ImportError without it."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(self.width / 72, math.ceil(height) / 72), dpi=72 * PNG_SCALE)
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(0, self.width)
        axes.set_ylim(math.ceil(height), 0)
        axes.set_axis_off()
        for order, shape in enumerate(self.shapes):
            _draw(axes, shape, order)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fonts may lack characters of names and show boxes
            figure.savefig(data := io.BytesIO(), format="png")
        return data.getvalue()


def _draw(axes, shape: Shape, order: int) -> None:  # type: ignore[no-untyped-def]  # matplotlib is untyped
    from matplotlib.patches import Circle, PathPatch
    from matplotlib.path import Path as Curved

    match shape:
        case Word():
            axes.text(
                shape.x, shape.y, shape.text, fontsize=shape.size, color=shape.colour, rotation=-shape.turn,
                ha={"start": "left", "middle": "center", "end": "right"}[shape.anchor], va="baseline",
                rotation_mode="anchor", parse_math=False, zorder=order,
            )  # fmt: skip
        case Disc():
            look = {"facecolor": shape.fill, "edgecolor": shape.stroke, "zorder": order}
            axes.add_patch(Circle((shape.x, shape.y), shape.radius, **look))
        case Outline():
            # A closed path ignores its last point.
            points = [*shape.points, shape.points[0]] if shape.closed else list(shape.points)
            # matplotlib measures dashes in line widths.
            dashes = tuple(float(part) / shape.width for part in shape.dash.split())
            style = (0, dashes) if dashes else "solid"
            axes.add_patch(
                PathPatch(
                    Curved(points, closed=shape.closed), facecolor=shape.fill, linewidth=shape.width,
                    edgecolor=shape.stroke if shape.width else "none", linestyle=style, zorder=order,
                    capstyle="butt",
                )
            )  # fmt: skip


def expect_png() -> None:
    """Raise ImportError with a readable message if no PNG can be drawn."""
    try:
        import matplotlib  # noqa: F401, ICN001
    except ImportError:
        raise ImportError(NO_PNG) from None


def expect_drawable(path: Path) -> None:
    """ChartError unless the file's ending is `.svg` or, with matplotlib installed, `.png`."""
    if path.suffix.lower() not in FORMATS:
        raise ChartError(f"{path}: expected a file ending in {' or '.join(FORMATS)}")
    if path.suffix.lower() == ".png":
        try:
            expect_png()
        except ImportError as error:
            raise ChartError(f"{path}: {error}") from None


@dataclass(frozen=True, slots=True)
class Scale:
    """The scale of an axis; logarithmic if `log`."""

    low: float
    high: float
    log: bool = False

    def share(self, value: float) -> float:
        """The place of a value on the axis, from 0 to 1."""
        low, high, value = (math.log(x) if self.log else x for x in (self.low, self.high, value))
        return (value - low) / ((high - low) or 1.0)


class Panel:
    """Axes on a sheet; everything is drawn at given values."""

    def __init__(
        self, sheet: Sheet, left: float, top: float, width: float, height: float, x: Scale, y: Scale
    ) -> None:
        """`left`, `top` and so on describe the field inside the axes, without labels."""
        self._sheet = sheet
        self.left, self.top, self.width, self.height = left, top, width, height
        self._x, self._y = x, y

    @property
    def bottom(self) -> float:
        """The lower edge of the field."""
        return self.top + self.height

    @property
    def right(self) -> float:
        """The right edge of the field."""
        return self.left + self.width

    def at(self, x: float, y: float) -> Point:
        """The place of two values on the sheet."""
        return self.left + self.width * self._x.share(x), self.bottom - self.height * self._y.share(y)

    def ground(self, fill: str = PAPER) -> None:
        """Fill the background."""
        self._sheet.add(box(self.left, self.top, self.width, self.height, fill))

    def frame(self) -> None:
        """The axes."""
        self._sheet.add(box(self.left, self.top, self.width, self.height, "none", SOFT))

    def ticks_below(
        self, ticks: Iterable[tuple[float, str]], *, grid: bool = False, turn: float = 0, size: float = SIZE
    ) -> float:
        """Draw values with labels below the field; returns the y at which free paper begins below them."""
        below = 0.0
        for value, said in ticks:
            x, _ = self.at(value, self._y.low)
            if grid:
                self._sheet.add(Outline(((x, self.top), (x, self.bottom)), RULE, 0.8))
            self._sheet.add(Outline(((x, self.bottom), (x, self.bottom + 4)), SOFT))
            if turn:
                self._sheet.add(Word(x + 4, self.bottom + 12, said, size, "end", -turn))
                below = max(below, width_of(said, size) * math.sin(math.radians(turn)) + size)
            elif said:
                self._sheet.add(Word(x, self.bottom + 6 + size, said, size, "middle"))
                below = max(below, 8 + size)
        return self.bottom + below

    def ticks_left(
        self, ticks: Iterable[tuple[float, str]], *, grid: bool = True, size: float = SIZE
    ) -> None:
        """Draw values with labels on the left."""
        for value, said in ticks:
            _, y = self.at(self._x.low, value)
            if grid:
                self._sheet.add(Outline(((self.left, y), (self.right, y)), RULE, 0.8))
            self._sheet.add(Outline(((self.left - 4, y), (self.left, y)), SOFT))
            if said:
                self._sheet.add(Word(self.left - 7, y + 0.35 * size, said, size, "end"))

    def called_below(self, text: str, top: float) -> float:
        """Draw the title of the axis below, wrapped at the margins; returns the y at which free paper begins."""
        middle = self.left + self.width / 2
        room = 2 * min(middle - MARGIN, self._sheet.width - MARGIN - middle)
        for part in wrapped(text, room):
            top += LEADING * SIZE
            self._sheet.add(Word(middle, top - 2, part, anchor="middle"))
        return top + 4

    def called_left(self, text: str, x: float) -> None:
        """Draw the title of the left axis upwards, with its base line at `x`."""
        self._sheet.add(Word(x, self.top + self.height / 2, text, anchor="middle", turn=-90))

    def line(self, points: Iterable[Point], colour: str = INK, width: float = 1.8, dash: str = "") -> None:
        """A line through points; a single point is invisible."""
        self._sheet.add(Outline(tuple(self.at(*point) for point in points), colour, width, dash))

    def level(self, y: float, colour: str = SOFT, width: float = 1.0, dash: str = "") -> None:
        """A line across the whole field."""
        self.line([(self._x.low, y), (self._x.high, y)], colour, width, dash)

    def points(self, points: Iterable[Point], look: Curve) -> None:
        """A mark at every point."""
        self._sheet.add(*(look.mark(*self.at(*point)) for point in points))

    def error(self, x: float, low: float, high: float, colour: str = INK) -> None:
        """An error bar at `x` with a cap at both ends."""
        (at, bottom), (_, top) = self.at(x, low), self.at(x, high)
        caps = [Outline(((at - 3, end), (at + 3, end)), colour, 1.2) for end in (bottom, top)]
        self._sheet.add(Outline(((at, bottom), (at, top)), colour, 1.2), *caps)

    def curve(self, points: Sequence[Point], look: Curve, errors: Sequence[tuple[float, float]] = ()) -> None:
        """A line through points, each with a mark and an error bar."""
        self.line(points, look.colour, look.width, look.dash)
        for (x, _), (low, high) in zip(points, errors, strict=False):
            self.error(x, low, high, look.colour)
        self.points(points, look)

    def bar(self, x: float, width: float, low: float, high: float, fill: str = RULE) -> None:
        """A bar centred at `x` from `low` to `high`."""
        (left, top), (right, bottom) = self.at(x - width / 2, high), self.at(x + width / 2, low)
        self._sheet.add(box(left, top, right - left, bottom - top, fill))

    def area(self, points: Sequence[Point], base: float, fill: str) -> None:
        """Fill the area between a line and a level."""
        whole = [(points[0][0], base), *points, (points[-1][0], base)]
        self._sheet.add(Outline(tuple(self.at(*point) for point in whole), width=0, fill=fill, closed=True))

    def unknown(self, low: float, high: float) -> None:
        """Hatching from one value to another, over the whole height."""
        (left, _), (right, _) = self.at(low, self._y.low), self.at(high, self._y.low)
        self._sheet.add(*hatching(left, self.top, right - left, self.height))
