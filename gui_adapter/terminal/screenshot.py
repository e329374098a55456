"""Pictures of the screen as files: plain text, or one self-contained SVG.

Both show what the full screen would show in as many columns and rows; the same view gives the same file.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from hnefi.protocol.columns import width

from .screen import Screen, compose
from .theme import UNICODE, Ink, inked
from .values import View

COLUMNS: Final = 80
ROWS: Final = 24
_CELL: Final = (9, 19)
"""Columns and rows in pixels."""
_MARGIN: Final = 12
_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FONTS: Final = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"
_BOX: Final = frozenset("─│┌┬┐├┼┤└┴┘█░▒")


def shot(view: View, *, colour: bool, columns: int = COLUMNS, rows: int = ROWS) -> Screen:
    """The screen as it is shown on pictures: with signs that every reader has."""
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
    lines = list(shot(view, colour=True, columns=columns, rows=rows).lines)
    while lines and not lines[-1]:
        lines.pop()
    theme = view.settings.theme
    cell, line_height = _CELL
    wide, high = columns * cell + 2 * _MARGIN, len(lines) * line_height + 2 * _MARGIN
    screen = inked("", theme)
    made = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}">',
        f"<title>{_escape(title or f'hnefi play: {view.variant}')}</title>",
        f'<rect width="{wide}" height="{high}" rx="6" fill="{screen.back}"/>',
        f'<g font-family="{_FONTS}" font-size="15" xml:space="preserve">',
    ]
    for row, line in enumerate(lines):
        column = 0
        for style, part in line:
            ink = inked(style, theme)
            made += _run(part, column, row, ink, screen)
            column += width(part)
    return "\n".join([*made, "</g>", "</svg>", ""])


def _run(part: str, column: int, row: int, ink: Ink, screen: Ink) -> list[str]:
    """One fragment: its ground, and its text in pieces without blanks, each at its own column, so that no font can
    push the columns apart."""
    cell, line_height = _CELL
    top = _MARGIN + row * line_height
    made = []
    if ink.back != screen.back:
        left, across = _MARGIN + column * cell, width(part) * cell
        made.append(f'<rect x="{left}" y="{top}" width="{across}" height="{line_height}" fill="{ink.back}"/>')
    bold = ' font-weight="bold"' if ink.bold else ""
    for piece in re.finditer(r"\S+", part):
        left = _MARGIN + (column + width(part[: piece.start()])) * cell
        # Signs that join their neighbours fill their cells, whatever the font.
        across = width(piece[0]) * cell
        fill = ' lengthAdjust="spacingAndGlyphs"' if _BOX.issuperset(piece[0]) else ""
        made.append(
            f'<text x="{left}" y="{top + 14}" textLength="{across}"{fill} fill="{ink.fore}"{bold}>'
            f"{_escape(piece[0])}</text>"
        )
    return made


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
