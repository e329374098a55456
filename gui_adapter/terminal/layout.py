"""Where on the screen the squares of a board are: geometry alone, no men and no colours.

Tried in this order until one fits: cells of the size that was asked for and every smaller one, cells of one column,
the same with labels on two edges only, and at last a part of the board.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

SIZES: Final = {1: (2, 1), 2: (4, 2), 3: (8, 4)}
"""Columns and rows of a cell by zoom; from 2 on they are framed, and the frame counts."""
AUTO: Final = 0
"""The zoom that stands for the largest one that leaves `SPARE` rows; 1 where there is no bound."""
SPARE: Final = 8
FILES: Final = "abcdefghijklmnopqrs"
UNBOUNDED: Final = 10_000
LEAST: Final = 3
"""Files and ranks of a part of the board at least."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A board on the screen. `files` (0 is a) run left to right, `ranks` (1 is the first) top to bottom, as they are
    shown; a cell of `wide` columns and `high` rows begins at `left`, `top`, and each rank `shift` columns further
    right than the one above. `edges` is 2 with labels on all sides, 1 with labels on the left and at the bottom;
    `goals` leaves room for the signs of hex outside the board. `note` says what is not as it was asked for."""

    files: tuple[int, ...]
    ranks: tuple[int, ...]
    wide: int
    high: int
    left: int
    top: int
    columns: int
    rows: int
    edges: int = 2
    shift: int = 0
    framed: bool = False
    goals: bool = False
    note: str = ""

    def corner(self, file: int, rank: int) -> tuple[int, int]:
        """The column and row of the upper left end of a cell, by its place as shown: 0, 0 is the first one."""
        return self.left + file * self.wide + rank * self.shift, self.top + rank * self.high

    def middle(self, file: int, rank: int) -> tuple[int, int]:
        """The column and row where the man of a cell stands."""
        column, row = self.corner(file, rank)
        return column + self.wide // 2, row + self.high // 2

    def square_at(self, column: int, row: int) -> str | None:
        """The square on which a point of the screen lies."""
        rank = (row - self.top) // self.high
        if not 0 <= rank < len(self.ranks):
            return None
        file = (column - self.left - rank * self.shift) // self.wide
        if not 0 <= file < len(self.files):
            return None
        return f"{FILES[self.files[file]]}{self.ranks[rank]}"


@dataclass(frozen=True, slots=True)
class _Form:
    """A way to lay out: cells of `wide` x `high`, labels on so many edges."""

    wide: int
    high: int
    edges: int
    framed: bool = False


_TIGHT: Final = (_Form(1, 1, 2), _Form(1, 1, 1))


def lay_out(
    files: int,
    ranks: int,
    columns: int = 0,
    rows: int = 0,
    *,
    zoom: int = AUTO,
    flipped: bool = False,
    slanted: bool = False,
    focus: str = "",
) -> Layout | None:
    """The board of so many files and ranks in `columns` x `rows` (0: no bound), or None where not even a part of
    it has room. A part is laid around the square `focus`."""
    if zoom == AUTO:
        largest = max(SIZES) if columns and rows else 1
    else:
        largest = zoom
    columns, rows = columns or UNBOUNDED, rows or UNBOUNDED
    shown_files = tuple(reversed(range(files))) if flipped else tuple(range(files))
    shown_ranks = tuple(range(1, ranks + 1)) if flipped else tuple(range(ranks, 0, -1))
    forms = [_Form(*SIZES[size], 2, framed=size > 1 and not slanted) for size in range(largest, 0, -1)]
    forms += [_Form(2, 1, 1)] if slanted else _TIGHT
    for number, form in enumerate(forms):
        made = _measured(form, shown_files, shown_ranks, slanted, ranks)
        spare = SPARE if zoom == AUTO and form.framed else 0
        if made.columns <= columns and made.rows + spare <= rows:
            asked = number == 0 or (zoom == AUTO and number < largest)
            return made if asked else _noted(made, _smaller(largest, number))
    return _part(shown_files, shown_ranks, columns, rows, slanted, focus)


def _smaller(zoom: int, number: int) -> str:
    """What was taken instead of the zoom that was asked for."""
    size = zoom - number
    return f"zoom {zoom} has no room here: zoom {size}" if size > 0 else "little room: small board"


def _measured(
    form: _Form, files: tuple[int, ...], ranks: tuple[int, ...], slanted: bool, highest: int
) -> Layout:
    """The layout of these files and ranks in a form, whatever room it takes."""
    label = len(str(highest))
    frame = int(form.framed)
    # A cell of one column has no gap before its man, a wider one brings it along.
    gap = int(form.wide == 1 or form.framed)
    goals = slanted and form.edges == 2
    left = label + gap + 2 * goals
    shift = form.wide // 2 if slanted else 0
    top = form.edges - 1 + goals
    across = form.wide * len(files) + frame + shift * (len(ranks) - 1)
    right = 1 + label + 2 * goals if form.edges == 2 else 0
    below = 1 + goals
    # The labels below a slanted board stand one step further right for every row.
    beyond = max(0, shift * (1 + goals) - right)
    return Layout(
        files=files,
        ranks=ranks,
        wide=form.wide,
        high=form.high,
        left=left,
        top=top,
        columns=left + across + right + beyond,
        rows=top + form.high * len(ranks) + frame + below,
        edges=form.edges,
        shift=shift,
        framed=form.framed,
        goals=goals,
    )


def _part(
    files: tuple[int, ...], ranks: tuple[int, ...], columns: int, rows: int, slanted: bool, focus: str
) -> Layout | None:
    """As much of the board as there is room for, around a square."""
    highest = max(ranks)
    form = _Form(2, 1, 1) if slanted else _TIGHT[-1]
    whole = _measured(form, files, ranks, slanted, highest)
    tall = min(len(ranks), rows - 1)
    ways = (2,) if slanted else (2, 1)
    for wide in ways:
        form = _Form(wide, 1, 1)
        broad = len(files)
        while broad >= LEAST and tall >= LEAST:
            chosen_files = _around(files, broad, FILES.find(focus[:1]) if focus else -1)
            number = int(focus[1:]) if focus[1:].isdigit() else -1
            chosen_ranks = _around(ranks, tall, number)
            made = _measured(form, chosen_files, chosen_ranks, slanted, highest)
            if made.columns <= columns and (wide == ways[-1] or broad == len(files)):
                return _noted(made, f"part only: the board needs {whole.columns}x{whole.rows}")
            if wide != ways[-1]:
                break
            broad -= 1
    return None


def _around(numbers: tuple[int, ...], count: int, middle: int) -> tuple[int, ...]:
    """`count` of the numbers, around `middle` where it is one of them."""
    at = numbers.index(middle) if middle in numbers else len(numbers) // 2
    first = max(0, min(at - count // 2, len(numbers) - count))
    return numbers[first : first + count]


def _noted(layout: Layout, note: str) -> Layout:
    return replace(layout, note=note)
