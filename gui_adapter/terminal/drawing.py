"""The board as styled text: a pure function of the view and of the room there is.

Without colours, brackets mark squares: `[t]` is where the last move ended, `(.)` where it began, `{.}` where a man
was taken, `<.>` where the chosen man may go. Cells of one column have no room for brackets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hnefi.protocol.hosts.text_table import clip

from .layout import AUTO, FILES, SIZES, Layout, lay_out
from .panes import captions
from .theme import ASCII, Fragment, Glyphs, colourful, glyphs, plain, role
from .values import SWAP, Board, View

__all__ = ["Picture", "draw", "legend", "picture", "plain"]

BRACKETS: Final = {
    "last": "[]",
    "source": "()",
    "taken": "{}",
    "chosen": "//",
    "target": "<>",
    "prize": "<>",
}


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawn board: its lines, where its squares are (None where there was no room at all), and what is to be said
    about its size."""

    lines: tuple[tuple[Fragment, ...], ...]
    layout: Layout | None
    note: str = ""

    def square_at(self, column: int, row: int) -> str | None:
        """The square below a point of the screen."""
        return None if self.layout is None else self.layout.square_at(column, row)


class _Canvas:
    """Cells of a screen, each a character and its style."""

    def __init__(self, columns: int, rows: int) -> None:
        self._signs = [[" "] * columns for _ in range(rows)]
        self._styles = [[""] * columns for _ in range(rows)]

    def put(self, column: int, row: int, text: str, style: str) -> None:
        """Text at a place; what leaves the canvas is lost."""
        for at, sign in enumerate(text, column):
            if 0 <= row < len(self._signs) and 0 <= at < len(self._signs[row]):
                self._signs[row][at] = sign
                self._styles[row][at] = style

    def lines(self) -> tuple[tuple[Fragment, ...], ...]:
        """Rows as fragments, neighbours of one style together; blanks at the ends of rows go."""
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
    """The view's board in `columns` x `rows` (0: no bound). `chosen` is a square whose man is about to move, `zoom`
    another one than the settings have."""
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
    # Brackets stand in the gaps between cells, which the next cell must not paint over.
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
    """The board with what is said below it, lines ended by line feeds: what the prompt and scripts print."""
    signs = glyphs(view.settings)
    coloured = colour and colourful(view.settings)
    below = captions(view, width, signs)
    zoom = _zoom_of_lines(view, width, height)
    room = max(1, height - len(below)) if height else 0
    shown = picture(view, width, room, colour=coloured, signs=signs, zoom=zoom)
    if shown.note and len(below) > 1:
        # A whole board is worth more than captions in several lines.
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
    """The zoom of a board that scrolls by: where the person left it open, the largest that takes half of the height."""
    if view.settings.zoom != AUTO:
        return view.settings.zoom
    slanted = view.game == "hex"
    for zoom in sorted(SIZES, reverse=True):
        made = lay_out(view.board.files, view.board.ranks, width, height // 2, zoom=zoom, slanted=slanted)
        if height and made is not None and not made.note:
            return zoom
    return min(SIZES)


def _marks(view: View, chosen: str) -> dict[str, str]:
    """The classes of the squares that stand out; later ones win."""
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
    """What stands on a square, and its class."""
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
                # The last cell's gap on the right, so that the board ends as it begins.
                canvas.put(column + layout.wide, row + line, " ", _classes("board"))
    canvas.put(*layout.middle(file, rank), sign[1], _classes("board", sign[0], mark))


def _draw_brackets(canvas: _Canvas, layout: Layout, file: int, rank: int, mark: str) -> None:
    if mark and layout.wide > 1:
        column, row = layout.middle(file, rank)
        brackets = BRACKETS[mark]
        canvas.put(column - 1, row, brackets[0], _classes("board", mark))
        canvas.put(column + 1, row, brackets[1], _classes("board", mark))


def _draw_labels(canvas: _Canvas, layout: Layout) -> None:
    """Files above and below, ranks left and right; on two edges only where room is short."""
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
    """Hex: each side's symbol along the two edges that it joins."""
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
