"""Squares, moves and boards as hnefatafl.org and the programs around it write them, from and to ours.

A square is a letter and a number with a1 at the bottom left, no letter left out, and its spelling tells the size of
the board: `d1` on 11 x 11, `D1` on 13 x 13, `0d1` on 7 x 7. A board is `/3AAAAA3/5A5/.../3AAAAA3/`: its highest rank
first, attackers `A`, defenders `D`, the king `K`, a slash before the first rank and after the last. It looks like a
position in OpenTafl notation, which has other letters and begins with rank 1; only the order is that of a FEN.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from hnefi.engine import squares
from hnefi.engine.wording import shorten

VARIANTS: Final[Mapping[int, str]] = {7: "brandubh-org", 11: "copenhagen-org", 13: "copenhagen-org-13"}
"""The rules of hnefatafl.org, by the size of the board."""
THEIRS: Final = str.maketrans("tT", "AD")
_MOVE: Final = re.compile(r"([a-m][0-9]+)([a-m][0-9]+)", re.ASCII)


class NotationError(ValueError):
    """What is no square or move: a sentence with what was read and what was expected."""


def write_square(square: str, size: int) -> str:
    """Our `square` in their spelling."""
    return f"0{square}" if size == 7 else square.upper() if size == 13 else square


def read_square(text: str, size: int) -> str:
    """The square that `text` spells, in any case, with or without the 0 of the small board; NotationError."""
    square = text.lower()
    if size == 7:
        square = square.removeprefix("0")
    try:
        return squares.name(squares.parse(square, size))
    except ValueError:
        first, last = (write_square(name, size) for name in ("a1", f"{squares.FILES[size - 1]}{size}"))
        raise NotationError(f"{shorten(text)}: expected a square, {first} to {last}") from None


def write_move(move: str, size: int) -> str:
    """Our `move` (`d1d3`) as they write it, `d1 d3`."""
    return " ".join(write_square(square, size) for square in split_move(move))


def read_move(origin: str, target: str, size: int) -> str:
    """Our move between two squares in their spelling; NotationError."""
    return read_square(origin, size) + read_square(target, size)


def split_move(move: str) -> tuple[str, str]:
    """The squares of a move of ours, in our spelling; NotationError."""
    found = _MOVE.fullmatch(move)
    if not found:
        raise NotationError(f"{shorten(move)}: expected a move such as d1d3")
    return found[1], found[2]


def write_board(fen: str) -> str:
    """The board of a FEN, or its rows alone, as they write it."""
    return f"/{fen.split(maxsplit=1)[0].translate(THEIRS)}/"
