"""Boards of any width and height as FEN, for the games that have a size. Knows letters and squares, no rules."""

from __future__ import annotations

from collections.abc import Mapping

from ..squares import square
from ..wording import shorten
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
        raise PositionError(f"board {shorten(board)}: {len(rows)} rows: expected {ranks}")
    pieces: dict[int, str] = {}
    for rank, row in zip(reversed(range(ranks)), rows, strict=True):
        pieces |= {square(file, rank): letter for file, letter in _parse_row(row, files, letters).items()}
    if len(tail) > 3:
        raise PositionError(f"{shorten(tail[3])} after the move number: expected nothing more")
    if tail and tail[0] not in ("a", "d"):
        raise PositionError(f"side {shorten(tail[0])}: expected a or d")
    quiet = _number(tail[1], 0, "plies since the last capture") if len(tail) > 1 else 0
    move_number = _number(tail[2], 1, "move number") if len(tail) > 2 else 1
    return pieces, tail[0] if tail else None, quiet, move_number


def _parse_row(row: str, files: int, letters: str) -> dict[int, str]:
    """The letters of one row by file, counted from 0."""
    found: dict[int, str] = {}
    file = 0
    run = ""
    for sign in row + "\n":
        if "0" <= sign <= "9":
            run += sign
            continue
        if run:
            # Longer runs of digits are no board row; converting them would only cost time.
            if len(run) > 2 or run[0] == "0":
                raise PositionError(f"row {shorten(row)}: {shorten(run, 20)} is no number of empty squares")
            file += int(run)
            run = ""
        if sign == "\n":
            break
        if sign not in letters:
            raise PositionError(
                f"row {shorten(row)}: {sign!r} is no piece: expected letters out of {letters}"
            )
        found[file] = sign
        file += 1
    if file != files:
        raise PositionError(f"row {shorten(row)} has {file} squares: expected {files}")
    return found


def _number(text: str, low: int, what: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 7 and low <= int(text) <= NUMBER_LIMIT:
        return int(text)
    raise PositionError(f"{what} {shorten(text)}: expected a whole number from {low} to {NUMBER_LIMIT}")


def format_fen(
    pieces: Mapping[int, str], files: int, ranks: int, side: str, quiet: int, move_number: int
) -> str:
    """The FEN with all fields, which `parse_fen` reads back."""
    rows = []
    for rank in reversed(range(ranks)):
        row = ""
        empty = 0
        for file in range(files):
            letter = pieces.get(square(file, rank))
            if letter is None:
                empty += 1
            else:
                row += (str(empty) if empty else "") + letter
                empty = 0
        rows.append(row + (str(empty) if empty else ""))
    return f"{'/'.join(rows)} {side} {quiet} {move_number}"
