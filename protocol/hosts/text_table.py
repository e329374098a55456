"""Text in columns of a terminal: names from anywhere made harmless, and tables whose rows line up."""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Sequence

WIDTH = 80
"""Columns that suffice for everything that is shown."""
PIPED = 160
"""Columns where there is no terminal: room for long names, and none for endless ones."""
ELLIPSIS = "…"
ASCII = {"·": "|", "±": "+-", "–": "-", "…": "~", "≤": "<=", "½": "1/2", "−": "-"}


def safe(text: str) -> str:
    """`text` without what could move a cursor or turn the line around: such characters become `?`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join("?" if unicodedata.category(sign)[0] in "CZ" and sign != " " else sign for sign in text)


def width(text: str) -> int:
    """The columns that a safe text takes: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(sign) or unicodedata.category(sign) in ("Mn", "Me") else 1 + _wide(sign)
        for sign in text
    )


def _wide(sign: str) -> bool:
    return unicodedata.east_asian_width(sign) in "WF"


def clip(text: str, columns: int, more: str = ELLIPSIS) -> str:
    """A safe text in at most `columns`; `more` stands for what is missing."""
    text = safe(text)
    if width(text) <= columns:
        return text
    kept, used = [], 0
    for sign in text:
        used += width(sign)
        if used > columns - 1:
            break
        kept.append(sign)
    return ("".join(kept) + more)[: max(0, columns)]


def pad(text: str, columns: int, more: str = ELLIPSIS, *, right: bool = False) -> str:
    """A text clipped or filled to exactly `columns`."""
    text = clip(text, columns, more)
    blanks = " " * (columns - width(text))
    return blanks + text if right else text + blanks


def room(piped: int = PIPED) -> int:
    """The columns of the terminal, at least `WIDTH`; `piped` where output goes elsewhere."""
    shown = "COLUMNS" in os.environ or (sys.stdout is not None and sys.stdout.isatty())
    return max(WIDTH, shutil.get_terminal_size().columns) if shown else piped


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    left: Sequence[int],
    free: int,
    spare: Sequence[int] = (),
    columns: int | None = None,
) -> list[str]:
    """Rows below a head, columns two blanks apart; those in `left` begin where the head begins, the others end there.

    A table that is wider than `columns` (None: `room`) loses its `spare` columns, one after the other; then column
    `free` is cut.
    """
    limit = room() if columns is None else columns
    cells = [tuple(head), *(tuple(map(safe, row)) for row in rows)]
    widths = [max(width(row[column]) for row in cells) for column in range(len(head))]
    kept = list(range(len(head)))
    for column in spare:
        if sum(widths[index] for index in kept) + 2 * (len(kept) - 1) <= limit:
            break
        kept.remove(column)
    others = sum(widths[index] for index in kept) - widths[free] + 2 * (len(kept) - 1)
    widths[free] = max(4, min(widths[free], limit - others))
    return [
        "  ".join(pad(row[index], widths[index], right=index not in left) for index in kept).rstrip()
        for row in cells
    ]


def aligned(rows: Sequence[Sequence[str]], *, left: Sequence[int] | None = None) -> list[str]:
    """Rows, their cells below each other and two blanks apart: columns in `left` (None: all) begin together, the others
    end together."""
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            pad(cell, size, right=left is not None and at not in left)
            for at, (cell, size) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def markdown_table(rows: Sequence[Sequence[object]]) -> list[str]:
    """A Markdown table; the first row is its head."""
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return [lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]


def flow(parts: Iterable[str], *, between: str = " · ", indent: str = "") -> list[str]:
    """Parts one after another, on as many lines as it takes; each line but the first is indented."""
    lines: list[str] = []
    line = ""
    for part in parts:
        part = clip(part, WIDTH - len(indent))
        if line and width(line) + len(between) + width(part) > WIDTH:
            lines.append(line)
            line = indent + part
        else:
            line = line + between + part if line else part
    return [*lines, line] if line else lines


def encodable(text: str, encoding: str | None) -> str:
    """`text` as far as a stream's encoding goes (None: any): our own signs spelled out, foreign ones as `?`."""
    if encoding is None or text.isascii():
        return text
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        for sign, plain in ASCII.items():
            text = text.replace(sign, plain)
        return text.encode("ascii", "replace").decode("ascii")
    return text
