"""Pictures of the screen as files: plain text, or one self-contained SVG.

Both show what the full screen would show in as many columns and rows; the same view gives the same file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hnefi.protocol.hosts.text_table import width

from .drawing import Layout
from .screen import Screen, compose
from .theme import UNICODE, Fragment, Ink, inked
from .values import View

COLUMNS: Final = 80
ROWS: Final = 24
_CELL: Final = (9, 19)
"""Columns and rows in pixels."""
_MARGIN: Final = 12
_BOARD: Final = "class:board"
_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FONTS: Final = "'DejaVu Sans Mono',Menlo,Consolas,'Liberation Mono',monospace"
"""The first is the one that most renderers without a browser look at, and find."""
_DRAWN: Final = "●○♚◇╳▶█░▒"
"""Characters that are drawn as shapes: fonts have them in different sizes or not at all."""
_SHADES: Final = {"█": 1.0, "▒": 0.55, "░": 0.25}
_CROWN: Final = ((-0.8, 0.75), (-1.0, -0.5), (-0.5, 0.1), (0.0, -0.85), (0.5, 0.1), (1.0, -0.5), (0.8, 0.75))
_DIAMOND: Final = ((0.0, -0.9), (0.9, 0.0), (0.0, 0.9), (-0.9, 0.0))
_ARROW: Final = ((-0.7, -0.8), (0.8, 0.0), (-0.7, 0.8))


@dataclass(frozen=True, slots=True)
class _Box:
    """A piece of the picture in pixels."""

    left: float
    top: float
    wide: float
    high: float

    @property
    def middle(self) -> tuple[float, float]:
        return self.left + self.wide / 2, self.top + self.high / 2

    def filled(self, colour: str, opacity: float = 1.0) -> str:
        seen = "" if opacity == 1.0 else f' fill-opacity="{opacity:g}"'
        size = f'width="{self.wide:g}" height="{self.high:g}"'
        return f'<rect x="{self.left:g}" y="{self.top:g}" {size} fill="{colour}"{seen}/>'


def shot(view: View, *, colour: bool, columns: int = COLUMNS, rows: int = ROWS) -> Screen:
    """The screen as it is shown on pictures: with characters that every font has."""
    return compose(view, columns, rows, signs=UNICODE, colour=colour, talk=bool(view.log))


def text(view: View, columns: int = COLUMNS, rows: int = ROWS) -> str:
    """The screen as plain text; brackets stand for colours. Empty rows at the end are left out."""
    lines = [
        "".join(part for _, part in line).rstrip()
        for line in shot(view, colour=False, columns=columns, rows=rows).lines
    ]
    return "\n".join(lines).rstrip("\n") + "\n"


def svg(view: View, columns: int = COLUMNS, rows: int = ROWS, title: str = "") -> str:
    """The screen in the colours of its theme, as the text of an SVG file."""
    shown = shot(view, colour=True, columns=columns, rows=rows)
    lines = list(shown.lines)
    while lines and not lines[-1]:
        lines.pop()
    theme = view.settings.theme
    wide = columns * _CELL[0] + 2 * _MARGIN
    high = len(lines) * _CELL[1] + 2 * _MARGIN
    screen = inked("", theme)
    grounds, texts = _written(lines, theme)
    made = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}">',
        f"<title>{_escape(title or f'hnefi play: {view.variant}')}</title>",
        f'<rect width="{wide}" height="{high}" rx="6" fill="{screen.back}"/>',
        f'<g font-family="{_FONTS}" font-size="15">',
        *grounds,
        *_board(shown, theme),
        *texts,
    ]
    return "\n".join([*made, "</g>", "</svg>", ""])


def _box(column: float, row: float, columns: float = 1, rows: float = 1) -> _Box:
    """So many columns and rows of the screen."""
    across, down = _CELL
    return _Box(_MARGIN + column * across, _MARGIN + row * down, columns * across, rows * down)


def _written(lines: Sequence[Sequence[Fragment]], theme: str) -> tuple[list[str], list[str]]:
    """The grounds and the signs of everything but the board; no ground can hide a sign."""
    grounds: list[str] = []
    texts: list[str] = []
    screen = inked("", theme)
    for row, line in enumerate(lines):
        column = 0
        for style, part in line:
            ink = inked(style, theme)
            if _BOARD not in style.split():
                if ink.back != screen.back:
                    grounds.append(_box(column, row, width(part)).filled(ink.back))
                texts += _signs(part, column, row, ink)
            column += width(part)
    return grounds, texts


def _signs(part: str, column: int, row: int, ink: Ink) -> list[str]:
    """One fragment in pieces without blanks, each at its own column, so that no font can push the columns apart."""
    made = []
    for piece in re.finditer(rf"(?P<sign>[{_DRAWN}])(?P=sign)*|[^\s{_DRAWN}]+", part):
        box = _box(column + width(part[: piece.start()]), row, width(piece[0]))
        sign = piece["sign"]
        if sign in _SHADES:
            made.append(box.filled(ink.fore, _SHADES[sign]))
        elif sign:
            each = box.wide / len(piece[0])
            made += [
                _shape(sign, _Box(box.left + at * each, box.top, each, box.high), ink)
                for at in range(len(piece[0]))
            ]
        else:
            made.append(_text(piece[0], box.left, box.top + 14, ink, f'textLength="{box.wide:g}"'))
    return made


def _text(words: str, left: float, base: float, ink: Ink, more: str) -> str:
    bold = ' font-weight="bold"' if ink.bold else ""
    return f'<text x="{left:g}" y="{base:g}" {more} fill="{ink.fore}"{bold}>{_escape(words)}</text>'


def _shape(sign: str, box: _Box, ink: Ink) -> str:
    """A character, drawn as large as its box allows."""
    across, down = box.middle
    size = 0.36 * min(max(box.wide, 13), box.high)
    if sign in "●○":
        edge = max(1.5, size / 5)
        inside = (
            f'fill="{ink.fore}"'
            if sign == "●"
            else f'fill="none" stroke="{ink.fore}" stroke-width="{edge:g}"'
        )
        reach = size if sign == "●" else size - edge / 2
        return f'<circle cx="{across:g}" cy="{down:g}" r="{reach:g}" {inside}/>'
    if sign == "╳":
        start = f"M{across - size:g} {down - size:g}"
        ends = f"{start}l{2 * size:g} {2 * size:g}m0 {-2 * size:g}l{-2 * size:g} {2 * size:g}"
        return f'<path d="{ends}" fill="none" stroke="{ink.fore}" stroke-width="{max(1.2, size / 7):g}"/>'
    corners = {"♚": _CROWN, "◇": _DIAMOND, "▶": _ARROW}[sign]
    points = " ".join(f"{across + x * size:g},{down + y * size:g}" for x, y in corners)
    if sign == "◇":
        inside = f'fill="none" stroke="{ink.fore}" stroke-width="{max(1.2, size / 7):g}"'
    else:
        inside = f'fill="{ink.fore}" stroke="{ink.fore}" stroke-width="1" stroke-linejoin="round"'
    return f'<polygon points="{points}" {inside}/>'


def _board(shown: Screen, theme: str) -> list[str]:
    """The board: its squares, its lines, and men as large as a square has room for."""
    layout = shown.board.layout
    if layout is None:
        return []
    cells = _cells(shown.board.lines)
    plain = inked(_BOARD, theme)
    squares: list[str] = []
    men: list[str] = []
    edge = 0.5 if layout.framed else 0.0
    for rank in range(len(layout.ranks)):
        for file in range(len(layout.files)):
            column, row = layout.corner(file, rank)
            box = _box(shown.left + column + edge, shown.top + row + edge, layout.wide, layout.high)
            if not layout.framed and layout.wide > 1:
                # The man of such a square stands in its second column.
                box = _box(shown.left + column + 0.5, shown.top + row, layout.wide, layout.high)
            style, sign = cells.get(layout.middle(file, rank), ("", " "))
            ink = inked(style, theme)
            squares.append(box.filled(ink.back))
            if sign in _SHADES:
                squares.append(box.filled(ink.fore, _SHADES[sign]))
            elif sign in _DRAWN:
                men.append(_shape(sign, box, ink))
            elif sign != " ":
                across, down = box.middle
                size = 15 if box.high < 30 else 24
                words = f'font-size="{size}" text-anchor="middle"'
                men.append(_text(sign, across, down + size / 3, ink, words))
    return [
        *_ground(shown, layout, plain),
        *squares,
        *_grid(shown, layout, inked(f"{_BOARD} class:grid", theme)),
        *men,
    ]


def _cells(lines: Sequence[Sequence[Fragment]]) -> dict[tuple[int, int], Fragment]:
    """The style and sign at every column and row of a drawn board."""
    made = {}
    for row, line in enumerate(lines):
        signs = [(style, sign) for style, part in line for sign in part]
        made.update({(column, row): fragment for column, fragment in enumerate(signs)})
    return made


def _ground(shown: Screen, layout: Layout, ink: Ink) -> list[str]:
    """A little of the board's colour around all squares, where they are no slanted rows."""
    if layout.shift:
        return []
    column, row = layout.corner(0, 0)
    edge = 0.5 if layout.framed or layout.wide > 1 else 0.0
    down = 0.5 if layout.framed else 0.0
    files, ranks = len(layout.files) * layout.wide, len(layout.ranks) * layout.high
    box = _box(shown.left + column + edge, shown.top + row + down, files, ranks)
    rim = 4
    return [_Box(box.left - rim, box.top - rim, box.wide + 2 * rim, box.high + 2 * rim).filled(ink.back)]


def _grid(shown: Screen, layout: Layout, ink: Ink) -> list[str]:
    """The lines between the squares of a framed board, and around them."""
    if not layout.framed:
        return []
    files, ranks = len(layout.files), len(layout.ranks)
    column, row = layout.corner(0, 0)
    box = _box(shown.left + column + 0.5, shown.top + row + 0.5, files * layout.wide, ranks * layout.high)
    across, down = box.wide / files, box.high / ranks
    lines = [f"M{box.left:g} {box.top + at * down:g}h{box.wide:g}" for at in range(ranks + 1)]
    lines += [f"M{box.left + at * across:g} {box.top:g}v{box.high:g}" for at in range(files + 1)]
    return [
        f'<path d="{"".join(lines)}" fill="none" stroke="{ink.fore}" stroke-width="1.5" stroke-linecap="square"/>'
    ]


def write(view: View, path: Path | str) -> None:
    """Write the screen to a file by the ending of its name, `.svg` or `.txt`; ValueError for another ending, OSError
    where it cannot be written."""
    path = Path(path)
    if path.suffix == ".svg":
        content = svg(view)
    elif path.suffix == ".txt":
        content = text(view)
    else:
        raise ValueError(f"{path.name!r}: expected a name that ends in .svg or .txt")
    path.write_text(content, "utf-8")


def _escape(words: str) -> str:
    """Text that may stand in XML, whatever it was."""
    return _NOT_XML.sub("\ufffd", words).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
