"""The board as styled text: a pure function of the view and of the available space.

Layout comes first and is only geometry. These are tried in order until one fits: cells of the requested size and of
every smaller one, cells of one column, the same with labels on only two edges, and finally a part of the board.

Without colours, brackets mark squares: `[t]` is where the last move ended, `(.)` where it began, `{.}` where a man
was captured, `<.>` where the chosen man may go. Cells of one column have no room for brackets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from hnefi.protocol.hosts.text_table import clip

from .panes import captions
from .settings import AUTO
from .theme import ASCII, Fragment, Glyphs, colourful, glyphs, plain, role
from .values import SWAP, Board, View

__all__ = ["Picture", "draw", "lay_out", "legend", "picture", "plain"]

SIZES: Final = {1: (2, 1), 2: (4, 2), 3: (8, 4)}
"""Columns and rows of a cell by zoom, including the frame that they have from zoom 2."""
SPARE: Final = 8
"""Rows that remain free with the zoom `AUTO`."""
FILES: Final = "abcdefghijklmnopqrs"
UNBOUNDED: Final = 10_000
LEAST: Final = 3
"""Minimum files and ranks of a part of the board."""
BRACKETS: Final = {
    "last": "[]",
    "source": "()",
    "taken": "{}",
    "chosen": "//",
    "target": "<>",
    "prize": "<>",
}


# Where the squares are


@dataclass(frozen=True, slots=True)
class Layout:
    """A board on the screen. `files` (0 is a) run from left to right, `ranks` (1 is the first) from top to bottom, as
    shown. Cells have `wide` columns and `high` rows; the first is at `left`, `top`, and each rank begins `shift`
    columns further right than the one above. `edges` is 2 with labels on all sides, 1 with labels on the left and at
    the bottom; `goals` leaves room for the signs of hex outside the board. `note` says what differs from what was
    requested."""

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
        """The column and row of the upper left corner of a cell, by its place on the screen (0, 0 is the first)."""
        return self.left + file * self.wide + rank * self.shift, self.top + rank * self.high

    def middle(self, file: int, rank: int) -> tuple[int, int]:
        """The column and row of the man in a cell."""
        column, row = self.corner(file, rank)
        return column + self.wide // 2, row + self.high // 2

    def square_at(self, column: int, row: int) -> str | None:
        """The square at a point of the screen."""
        rank = (row - self.top) // self.high
        if not 0 <= rank < len(self.ranks):
            return None
        file = (column - self.left - rank * self.shift) // self.wide
        if not 0 <= file < len(self.files):
            return None
        return f"{FILES[self.files[file]]}{self.ranks[rank]}"


@dataclass(frozen=True, slots=True)
class _Form:
    """A way to lay out the board: cells of `wide` x `high`, labels on `edges` edges."""

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
    """Lay out a board in `columns` x `rows` (0: no bound); None if not even a part of it fits. A part is centred on the
    square `focus`."""
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
    """A note about the zoom used in place of the requested one."""
    size = zoom - number
    return f"zoom {zoom} has no room here: zoom {size}" if size > 0 else "little room: small board"


def _measured(
    form: _Form, files: tuple[int, ...], ranks: tuple[int, ...], slanted: bool, highest: int
) -> Layout:
    """The layout of these files and ranks in a form, whether it fits or not."""
    label = len(str(highest))
    frame = int(form.framed)
    # A cell of one column has no gap before its man, a wider one includes it.
    gap = int(form.wide == 1 or form.framed)
    goals = slanted and form.edges == 2
    left = label + gap + 2 * goals
    shift = form.wide // 2 if slanted else 0
    top = form.edges - 1 + goals
    across = form.wide * len(files) + frame + shift * (len(ranks) - 1)
    right = 1 + label + 2 * goals if form.edges == 2 else 0
    below = 1 + goals
    # The labels below a slanted board are one step further right for every row.
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
    """The largest part of the board around a square that fits."""
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
    """`count` consecutive numbers, around `middle` if it is among them."""
    at = numbers.index(middle) if middle in numbers else len(numbers) // 2
    first = max(0, min(at - count // 2, len(numbers) - count))
    return numbers[first : first + count]


def _noted(layout: Layout, note: str) -> Layout:
    return replace(layout, note=note)


# What is on them


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawn board: its lines, the places of its squares (None if nothing fits), and a note about its size."""

    lines: tuple[tuple[Fragment, ...], ...]
    layout: Layout | None
    note: str = ""

    def square_at(self, column: int, row: int) -> str | None:
        """The square at a point of the screen."""
        return None if self.layout is None else self.layout.square_at(column, row)


class _Canvas:
    """Cells of a screen, each a character and its style."""

    def __init__(self, columns: int, rows: int) -> None:
        self._signs = [[" "] * columns for _ in range(rows)]
        self._styles = [[""] * columns for _ in range(rows)]

    def put(self, column: int, row: int, text: str, style: str) -> None:
        """Put text at a place; anything outside the canvas is cut off."""
        for at, sign in enumerate(text, column):
            if 0 <= row < len(self._signs) and 0 <= at < len(self._signs[row]):
                self._signs[row][at] = sign
                self._styles[row][at] = style

    def lines(self) -> tuple[tuple[Fragment, ...], ...]:
        """Rows as fragments, merged if adjacent and of the same style, without trailing blanks."""
        return tuple(_joined(signs, styles) for signs, styles in zip(self._signs, self._styles, strict=True))


def _joined(signs: list[str], styles: list[str]) -> tuple[Fragment, ...]:
    last = len(signs)
    while last and signs[last - 1] == " " and not styles[last - 1]:
        last -= 1
    made: list[Fragment] = []
    for sign, style in zip(signs[:last], styles[:last], strict=True):
        if made and made[-1][0] == style:
            made[-1] = (style, made[-1][1] + sign)
        else:
            made.append((style, sign))
    return tuple(made)


def picture(
    view: View,
    columns: int = 0,
    rows: int = 0,
    *,
    colour: bool = True,
    signs: Glyphs = ASCII,
    chosen: str = "",
    zoom: int | None = None,
) -> Picture:
    """The view's board in `columns` x `rows` (0: no bound). `chosen` is the square of the man about to move; `zoom`
    overrides the settings."""
    board = view.board
    focus = chosen or (board.last[-1] if board.last else "")
    layout = lay_out(
        board.files,
        board.ranks,
        columns,
        rows,
        zoom=view.settings.zoom if zoom is None else zoom,
        flipped=view.flipped,
        slanted=view.game == "hex",
        focus=focus,
    )
    if layout is None:
        note = f"no room for a board of {board.files}x{board.ranks} in {columns}x{rows}"
        return Picture(
            ((("class:error", clip(f"{note}: please make the terminal larger", columns)),),), None, note
        )
    canvas = _Canvas(layout.columns, layout.rows)
    if layout.framed:
        _draw_frame(canvas, layout, signs)
    _draw_labels(canvas, layout)
    if layout.goals:
        _draw_goals(canvas, layout, signs)
    # Brackets are in the gaps between cells, so the next cell must not paint over them.
    marks = _marks(view, chosen)
    for rank, number in enumerate(layout.ranks):
        for file, index in enumerate(layout.files):
            square = f"{FILES[index]}{number}"
            _draw_cell(canvas, layout, file, rank, _sign(board, square, signs), marks.get(square, ""))
    if not colour:
        for rank, number in enumerate(layout.ranks):
            for file, index in enumerate(layout.files):
                _draw_brackets(canvas, layout, file, rank, marks.get(f"{FILES[index]}{number}", ""))
    return Picture(canvas.lines(), layout, layout.note)


def draw(view: View, width: int, height: int = 0, colour: bool = True) -> list[Fragment]:
    """The board with its captions, as printed by the prompt and by scripts; lines end with line feeds."""
    signs = glyphs(view.settings)
    coloured = colour and colourful(view.settings)
    below = captions(view, width, signs)
    zoom = _zoom_of_lines(view, width, height)
    room = max(1, height - len(below)) if height else 0
    shown = picture(view, width, room, colour=coloured, signs=signs, zoom=zoom)
    if shown.note and len(below) > 1:
        # Showing the whole board is more important than captions in several lines.
        words = signs.between.join(" ".join(plain(row).split()) for row in below)
        below = [(("class:title", clip(words, width, signs.more)),)]
        shown = picture(
            view, width, max(1, height - 1) if height else 0, colour=coloured, signs=signs, zoom=zoom
        )
    notes = [(("class:dim", clip(shown.note, width, signs.more)),)] if shown.layout and shown.note else []
    made: list[Fragment] = []
    for line in (*shown.lines, *notes, *below):
        made += [*line, ("", "\n")]
    return made


def _zoom_of_lines(view: View, width: int, height: int) -> int:
    """The zoom of a printed board: if the user has not set it, the largest that takes half of the height."""
    if view.settings.zoom != AUTO:
        return view.settings.zoom
    slanted = view.game == "hex"
    for zoom in sorted(SIZES, reverse=True):
        made = lay_out(view.board.files, view.board.ranks, width, height // 2, zoom=zoom, slanted=slanted)
        if height and made is not None and not made.note:
            return zoom
    return min(SIZES)


def _marks(view: View, chosen: str) -> dict[str, str]:
    """The classes of highlighted squares; later ones win."""
    board = view.board
    made = dict.fromkeys(board.taken, "taken")
    if board.last:
        made.update(dict.fromkeys(board.last[:-1], "source"))
        made[board.last[-1]] = "last"
    if chosen:
        for move in view.legal:
            if move.source == chosen and move.text != SWAP:
                made[move.target] = "prize" if move.captures else "target"
        made[chosen] = "chosen"
    return made


def _sign(board: Board, square: str, signs: Glyphs) -> Fragment:
    """The sign on a square, and its class."""
    letter = board.at(square)
    if letter != ".":
        return role(letter), signs.men.get(letter, letter)
    kind = board.special.get(square, "")
    return (kind, signs.squares[kind]) if kind in signs.squares else ("", signs.empty)


def _classes(*names: str) -> str:
    return " ".join(f"class:{name}" for name in names if name)


def _draw_cell(canvas: _Canvas, layout: Layout, file: int, rank: int, sign: Fragment, mark: str) -> None:
    column, row = layout.corner(file, rank)
    ground = _classes("board", mark)
    if layout.framed:
        for line in range(1, layout.high):
            canvas.put(column + 1, row + line, " " * (layout.wide - 1), ground)
    else:
        for line in range(layout.high):
            canvas.put(column, row + line, " " * layout.wide, ground)
            if file == len(layout.files) - 1 and layout.wide > 1:
                # A gap after the last cell, so that both edges look alike.
                canvas.put(column + layout.wide, row + line, " ", _classes("board"))
    canvas.put(*layout.middle(file, rank), sign[1], _classes("board", sign[0], mark))


def _draw_brackets(canvas: _Canvas, layout: Layout, file: int, rank: int, mark: str) -> None:
    if mark and layout.wide > 1:
        column, row = layout.middle(file, rank)
        brackets = BRACKETS[mark]
        canvas.put(column - 1, row, brackets[0], _classes("board", mark))
        canvas.put(column + 1, row, brackets[1], _classes("board", mark))


def _draw_labels(canvas: _Canvas, layout: Layout) -> None:
    """Draw files above and below and ranks left and right, or only two of these if there is little room."""
    style = "class:label"
    reach = max(len(str(rank)) for rank in layout.ranks)
    outside = 1 + int(layout.goals)
    for file, index in enumerate(layout.files):
        column, _ = layout.middle(file, 0)
        steps = (len(layout.ranks) - 1) * layout.shift
        step = layout.shift // layout.high
        if layout.edges == 2:
            canvas.put(column - outside * step, 0, FILES[index], style)
        canvas.put(column + steps + outside * step, layout.rows - 1, FILES[index], style)
    for rank, number in enumerate(layout.ranks):
        _, row = layout.middle(0, rank)
        away = rank * layout.shift
        gap = layout.left - 2 * layout.goals
        label = str(number).rjust(reach).ljust(gap)
        canvas.put(away, row, label, style)
        if layout.edges == 2:
            column, _ = layout.corner(len(layout.files), rank)
            column += int(layout.framed) + 2 * layout.goals
            canvas.put(column, row, f" {number}", style)


def _draw_goals(canvas: _Canvas, layout: Layout, signs: Glyphs) -> None:
    """Draw each side's symbol along the two edges that it has to connect in hex."""
    step = layout.shift // layout.high
    for file in range(len(layout.files)):
        column, _ = layout.middle(file, 0)
        canvas.put(column - step, layout.top - 1, signs.men.get("x", "x"), "class:attacker")
        column += (len(layout.ranks) - 1) * layout.shift + step
        canvas.put(column, layout.rows - 2, signs.men.get("x", "x"), "class:attacker")
    for rank in range(len(layout.ranks)):
        column, row = layout.middle(0, rank)
        canvas.put(layout.corner(0, rank)[0] - 1, row, signs.men.get("o", "o"), "class:defender")
        column, _ = layout.corner(len(layout.files), rank)
        canvas.put(column + 1, row, signs.men.get("o", "o"), "class:defender")


def _draw_frame(canvas: _Canvas, layout: Layout, signs: Glyphs) -> None:
    """The lines between cells and around them."""
    style = "class:board class:grid"
    files, ranks = len(layout.files), len(layout.ranks)
    for rank in range(ranks + 1):
        joints = signs.corners[0 if rank == 0 else 2 if rank == ranks else 1]
        lines = joints[1].join([signs.across * (layout.wide - 1)] * files)
        column, row = layout.corner(0, rank)
        canvas.put(column, row, joints[0] + lines + joints[2], style)
    for rank in range(ranks):
        for file in range(files + 1):
            column, row = layout.corner(file, rank)
            for line in range(1, layout.high):
                canvas.put(column, row + line, signs.down, style)


def legend(view: View, *, colour: bool, signs: Glyphs) -> list[str]:
    """What the symbols on this board mean: men and squares, and without colours the brackets."""
    made = [signs.between.join(meanings(view, signs))]
    if not colour:
        made.append(
            signs.between.join(("[ ] last move", "( ) where it began", "{ } taken", "< > may go there"))
        )
    return made


def meanings(view: View, signs: Glyphs) -> list[str]:
    """The symbols of the men and special squares on this board, each with its meaning."""
    board = view.board
    attackers, defenders = view.sides
    if view.game == "hex":
        first, second = (signs.men.get(letter, letter) for letter in "xo")
        return [f"{first} {attackers} (top to bottom)", f"{second} {defenders} (left to right)"]
    letters = sorted({letter for row in board.rows for letter in row if letter != "."}, key=_rank_of_letter)
    whose = {"attacker": attackers, "defender": defenders, "king": "the king"}
    made = [f"{signs.men.get(letter, letter)} {whose[role(letter)]}" for letter in letters]
    words = {"throne": "throne", "corner": "corner", "camp": f"camp of the {attackers}"}
    words["fort"] = f"camp of the {defenders}"
    kinds = dict.fromkeys(kind for kind in board.special.values() if kind in signs.squares)
    return made + [f"{signs.squares[kind]} {words[kind]}" for kind in kinds]


def _rank_of_letter(letter: str) -> tuple[int, str]:
    """Attackers, defenders, the king; within a side soldiers last."""
    return ("attacker", "defender", "king").index(role(letter)), letter
