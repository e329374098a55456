"""The full screen above the typed line, put together: a pure function of the view and of the room there is.

From the top: a status line; the board with everything else beside it, or below it where the screen is narrow; what
was said last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from hnefi.protocol.hosts.text_table import clip, pad, safe, width

from .drawing import Picture, meanings, picture
from .panes import Row, captions, clock_rows, headline, history_pane, status, thinking_pane
from .theme import ASCII, Glyphs
from .values import LogLine, View

SIDE: Final = 24
"""Columns that the pane beside the board is given before the board is made larger."""
NARROW: Final = 16
"""Columns below which there is no pane beside the board."""
TALK: Final = 6
"""Lines said last that are shown at most."""
LOW: Final = 13
"""Rows below which there is no status line."""
_GAP: Final = re.compile(r"\s*\S.*?\s{2,}(?=\S)")
"""The left column of a line in two columns, such as those of the help."""


@dataclass(frozen=True, slots=True)
class Screen:
    """Lines of styled text, and the board among them, `left` columns and `top` rows from the corner."""

    lines: tuple[Row, ...]
    board: Picture
    left: int = 0
    top: int = 0

    def square_at(self, column: int, row: int) -> str | None:
        """The square below a point of the screen."""
        return self.board.square_at(column - self.left, row - self.top)


def compose(
    view: View,
    columns: int,
    rows: int,
    *,
    signs: Glyphs = ASCII,
    colour: bool = True,
    chosen: str = "",
    talk: bool = True,
) -> Screen:
    """The screen in exactly `rows` rows; `talk` is whether to show what was said."""
    top = int(rows >= LOW)
    least = int(talk)
    shown = _fitting(view, columns, rows - top - least, signs, colour, chosen)
    high = len(shown.lines)
    wide = shown.layout.columns if shown.layout is not None else columns
    beside = columns - wide - 2
    said = _talk(view.log, columns, max(1, min(TALK, rows // 4, rows - top - high)), signs) if talk else []
    body = rows - top - len(said)
    below: list[Row] = []
    pane: list[Row] = []
    if beside >= NARROW:
        pane = side_pane(view, beside, body, signs)
    else:
        below = captions(view, columns, signs)[: max(0, body - high)]
    lines: list[Row] = []
    if top:
        notes = [shown.note] if shown.layout is not None and shown.note else []
        if not pane and not below:
            # Nowhere else is room for it; that a part is missing matters even more.
            notes.insert(int(_is_part(view, shown)), headline(view))
        lines.append(status(view, columns, signs, notes))
    left = 1 if beside >= NARROW else 0
    for index in range(body):
        line: Row = ()
        if index < high:
            line = (("", " " * left), *shown.lines[index])
        elif index - high < len(below):
            line = below[index - high]
        if index < len(pane):
            gap = left + wide + 1 - sum(len(text) for _, text in line)
            line = (*line, ("", " " * gap), *pane[index])
        lines.append(line)
    return Screen((*lines, *said)[:rows], shown, left, top)


def _is_part(view: View, shown: Picture) -> bool:
    """Whether some of the board is not on the screen."""
    layout = shown.layout
    return layout is not None and (len(layout.files), len(layout.ranks)) != (
        view.board.files,
        view.board.ranks,
    )


def _fitting(view: View, columns: int, rows: int, signs: Glyphs, colour: bool, chosen: str) -> Picture:
    """The board beside a pane, or over the whole width where it is better so."""
    made = picture(view, max(1, columns - SIDE - 2), max(1, rows), colour=colour, signs=signs, chosen=chosen)
    if not made.note:
        return made
    other = picture(view, columns, max(1, rows), colour=colour, signs=signs, chosen=chosen)
    return made if made.note == other.note and made.layout is not None else other


def side_pane(view: View, columns: int, rows: int, signs: Glyphs) -> list[Row]:
    """What stands beside the board: whose turn, captures, clocks; thinking; the moves."""
    made: list[Row] = [(("class:title", text),) for text in wrapped(headline(view), columns)[:3]]
    if view.game == "tafl":
        taken = [f"{name} {count}" for name, count in zip(view.sides, view.board.captures, strict=True)]
        text = f"captures: {', '.join(taken)}"
        made += [(("class:dim", text),) for text in wrapped(text, columns)]
    if view.clock is not None:
        made += clock_rows(view.clock, view.sides, columns, signs)
    rest = rows - len(made)
    thinking = thinking_pane(view, columns, max(0, rest - 1), signs)
    history = history_pane(view, columns, rows, signs)
    if thinking:
        # Half of what is left for either, and what one does not need for the other.
        room = max(rest - 1 - min(len(history) + 1, rest // 2), 0)
        made += [(), *thinking[:room]]
    rest = rows - len(made) - 1
    if history and rest > 0:
        made += [(), *history_pane(view, columns, rest, signs)]
    if not history and not thinking:
        # Before the first move there is room to say what is on the board.
        told = [(("class:dim", clip(text, columns, signs.more)),) for text in meanings(view, signs)]
        made += [(), *told] if len(told) <= rest else []
    return made[:rows]


def _talk(log: Sequence[LogLine], columns: int, rows: int, signs: Glyphs) -> list[Row]:
    """The last messages in exactly `rows` rows, the newest at the end; a long one is cut at its end."""
    made: list[Row] = []
    for line in reversed(log[-rows:]):
        told = talk_rows([line], columns)
        if len(made) + len(told) > rows:
            if not made:
                style = f"class:{line.kind}"
                last = clip(told[rows - 1][0][1] + " " * columns, columns, signs.more)
                made = [*told[: rows - 1], ((style, last),)]
            break
        made = [*told, *made]
    return [*([()] * (rows - len(made))), *made]


def talk_rows(log: Iterable[LogLine], columns: int) -> list[Row]:
    """All messages, in rows of at most `columns` columns; text after a gap is wrapped below itself."""
    made: list[Row] = []
    for line in log:
        gap = _GAP.match(line.text)
        hang = gap.end() if gap is not None and gap.end() <= columns // 2 else 0
        first, *more = wrapped(line.text, columns)
        texts = [first]
        if more:
            rest = wrapped(line.text[len(first) :].lstrip(), columns - hang)
            texts += [" " * hang + text for text in rest]
        made += [((f"class:{line.kind}", text),) for text in texts]
    return made


def wrapped(text: str, columns: int) -> list[str]:
    """A text in lines of limited width, broken at blanks where there are any; leading blanks stay."""
    text = safe(text).rstrip()
    made: list[str] = []
    while width(text) > columns > 0:
        size = 1  # a wide sign has to go somewhere, however narrow it is
        while width(text[: size + 1]) <= columns:
            size += 1
        cut = text.rfind(" ", 0, size + 1)
        head = text[:cut] if cut >= 0 and text[:cut].strip() else text[:size]
        made.append(head.rstrip())
        text = text[len(head) :].lstrip()
    return [*made, text] if text or not made else made


def reader(
    log: Sequence[LogLine], columns: int, rows: int, number: int, offset: int
) -> tuple[tuple[Row, ...], int]:
    """Everything said over the whole screen, from the line of this number and `offset` rows on; and the offset that
    was possible."""
    room = max(1, rows - 1)
    before = len(talk_rows((line for line in log if line.number < number), columns))
    every = talk_rows(log, columns)
    top = max(0, min(before + offset, len(every) - room))
    shown = every[top : top + room]
    title = f" {top + 1}-{top + len(shown)} of {len(every)} lines: PageUp, PageDown, Escape"
    head: Row = (("class:status", pad(title, columns)),)
    return (head, *shown, *([()] * (room - len(shown)))), top - before
