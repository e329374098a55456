"""Moves as text: origin and target in every accepted spelling.

It reads `d1d3`, `d1-d3`, captures behind them in either style (`d1-d3xd4/e3`, `d1-d3xd4xe3`), and OpenTafl's piece
letters, jump and berserk characters and marks at the end (`Ne6^=e8xce7/ne9`, `Ke5-e1--`). It writes `d1d3`. Records
of games in which stones are placed also hold `f6` and `swap`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from . import squares as board

NOT_A_MOVE: Final = "not a move: expected origin and target such as d1d3"
_LIMIT: Final = 512
_SQUARE: Final = "[a-z][0-9]{1,3}"
_PIECE: Final = "[tcnmgkTCNMGK]?"
_MOVE: Final = re.compile(
    rf"{_PIECE}({_SQUARE})(?:-|\^=?|=)?({_SQUARE})(x{_PIECE}{_SQUARE}(?:[x/]{_PIECE}{_SQUARE})*)?(?:\+\+?|--?)?"
)
_PLACED: Final = re.compile(rf"(swap|{_SQUARE})((?:x{_SQUARE})*)")
_CAPTURE: Final = re.compile(_SQUARE)
_SQUARES: Final = {board.name(sq): sq for sq in board.squares(board.MAX_SIZE)}


class MoveTextError(ValueError):
    """A text that is no move, or names a square off the board; the message is the sentence to show."""


def parse_move(text: str, size: int) -> tuple[int, int, tuple[int, ...] | None]:
    """Origin, target and the captured squares, None where the text names none.

    Captured squares are sorted by file, then rank, without doubles. Raises MoveTextError; whether such a move is
    legal, and whether the captures are right, is not looked at.
    """
    match = _MOVE.fullmatch(text) if len(text) <= _LIMIT else None
    if match is None:
        raise MoveTextError(NOT_A_MOVE)
    origin, target, captures = match.groups()
    found = _square(origin, size), _square(target, size)
    if captures is None:
        return *found, None
    return *found, _squares(captures, size)


def parse_move_word(text: str, size: int) -> tuple[int, tuple[int, ...] | None]:
    """The move of any game as records write it, and the captured squares, None where the text names none.

    A single square is a stone placed there, `swap` the taking over of the first one. Raises MoveTextError.
    """
    match = _PLACED.fullmatch(text) if len(text) <= _LIMIT else None
    if match is None:
        origin, target, captures = parse_move(text, size)
        return board.move(origin, target), captures
    word, taken = match.groups()
    move = board.SWAP if word == "swap" else board.move(_square(word, size), _square(word, size))
    return move, _squares(taken, size) if taken else None


def _squares(text: str, size: int) -> tuple[int, ...]:
    """The squares named in a text, sorted, each once."""
    return tuple(sorted({_square(word, size) for word in _CAPTURE.findall(text)}, key=board.sort_key))


def _square(word: str, size: int) -> int:
    sq = _SQUARES.get(word)
    if sq is None or not board.on_board(sq, size):
        raise MoveTextError(f"no square {word} on this {size}x{size} board")
    return sq


def format_move(move: int, captures: Iterable[int] = ()) -> str:
    """`d1d3xd4xe3`: the bare move, then each captured square behind an x."""
    return board.move_name(move) + "".join(f"x{board.name(sq)}" for sq in captures)
