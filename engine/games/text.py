"""Boards of any width and height as FEN, for the games that have a size. Knows letters and squares, no rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ..squares import MAX_SIZE, square
from ..wording import counted, shorten
from .base_position import PositionError

NUMBER_LIMIT = 999_999
"""Largest counter that is read."""
_TEXT_LIMIT = 4096


def parse_fen(text: str, files: int, ranks: int, letters: str) -> tuple[dict[int, str], str | None, int, int]:
    """Pieces by square, the side to move (None if not said), plies since the last capture (0), move number (1).

    Rows run from the top rank down. PositionError if the text cannot be such a board.
    """
    if len(text) > _TEXT_LIMIT:
        raise PositionError(f"{shorten(text)}: expected at most {_TEXT_LIMIT} characters")
    board, *tail = text.split() or [""]
    rows = board.split("/")
    if len(rows) != ranks:
        raise PositionError(f"board {shorten(board)}: {counted(len(rows), 'row')}: expected {ranks}")
    pieces: dict[int, str] = {}
    for rank, row in zip(reversed(range(ranks)), rows, strict=True):
        pieces |= {square(file, rank): letter for file, letter in _parse_row(row, files, letters).items()}
    if len(tail) > 3:
        raise PositionError(f"{shorten(tail[3])} after the move number: expected nothing more")
    if tail and tail[0] not in ("a", "d"):
        raise PositionError(f"side {shorten(tail[0])}: expected a or d")
    quiet = whole_number(tail[1], 0, "plies since the last capture", PositionError) if len(tail) > 1 else 0
    move_number = whole_number(tail[2], 1, "move number", PositionError) if len(tail) > 2 else 1
    return pieces, tail[0] if tail else None, quiet, move_number


def _parse_row(row: str, files: int, letters: str) -> dict[int, str]:
    """The letters of one row by file, counted from 0."""
    found, squares = row_letters(row, PositionError)
    for _, sign in found:
        if sign not in letters:
            raise PositionError(
                f"row {shorten(row)}: {sign!r} is no piece: expected letters out of {letters}"
            )
    if squares != files:
        raise PositionError(f"row {shorten(row)} has {counted(squares, 'square')}: expected {files}")
    return dict(found)


def row_letters(row: str, error: type[ValueError]) -> tuple[list[tuple[int, str]], int]:
    """The letters of one row with their files, counted from 0, and how many squares the row has.

    `error` is raised for a run of digits that no board can mean.
    """
    found: list[tuple[int, str]] = []
    file = 0
    for run in re.findall("[0-9]+|[^0-9]", row, re.DOTALL):
        if not "0" <= run[0] <= "9":
            found.append((file, run))
            file += 1
        # Longer runs of digits are no board row; converting them would only cost time.
        elif len(run) > 2 or run[0] == "0":
            raise error(
                f"row {shorten(row)}: {shorten(run, 20)} is no number of empty squares: expected 1 to {MAX_SIZE}"
            )
        else:
            file += int(run)
    return found, file


def row_text(letters: Iterable[str | None]) -> str:
    """What `row_letters` reads: the letter of each square of a row, or None where it is empty."""
    return re.sub("0+", lambda run: str(len(run[0])), "".join(letter or "0" for letter in letters))


def whole_number(text: str, low: int, what: str, error: type[ValueError], high: int = NUMBER_LIMIT) -> int:
    """The number that a field holds; `error`, which calls it `what`, if it is none from `low` to `high`."""
    if text.isascii() and text.isdigit() and len(text) <= 7 and low <= int(text) <= high:
        return int(text)
    raise error(f"{what} {shorten(text)}: expected a whole number from {low} to {high}")


def format_fen(
    pieces: Mapping[int, str], files: int, ranks: int, side: str, quiet: int, move_number: int
) -> str:
    """The FEN with all fields, which `parse_fen` reads back."""
    rows = [
        row_text(pieces.get(square(file, rank)) for file in range(files)) for rank in reversed(range(ranks))
    ]
    return f"{'/'.join(rows)} {side} {quiet} {move_number}"
