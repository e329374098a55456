"""Positions as text: pieces on a board, the side to move and the counters, read from and written to FEN.

Rows run from the highest rank down to rank 1. Three alphabets are read: OpenTafl's (`t T K` and the special men),
`a d k`, and `A D K`; they do not mix in one board. A board that begins with `/` runs from rank 1 up, except in
the letters `A D`, whose program writes the leading slash too but starts at the top rank. Symmetric boards hide a
mistake here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ... import squares as board
from ...sides import Side
from ...wording import counted, shorten
from ..text import row_letters, row_text, whole_number
from .rules import Rules
from .switches import DEFENDER_PIECES, PIECES

RowOrder = Literal["auto", "top", "bottom"]
_BOARD_LIMIT: Final = board.MAX_SIZE * (2 * board.MAX_SIZE + 1) + 2
_TEXT_LIMIT: Final = 4096

_LOWER: Final = {"a": "t", "d": "T", "k": "K"}
_UPPER: Final = {"A": "t", "D": "T", "K": "K"}
_FROM_ADK: Final = str.maketrans(_LOWER)
_TO_ADK: Final = str.maketrans({ours: theirs for theirs, ours in _LOWER.items()})
_OWN: Final = {letter: letter for letter in PIECES}


class SetupError(ValueError):
    """A position that cannot be read or cannot stand; the message repeats the bad text."""


@dataclass(frozen=True, slots=True)
class Setup:
    """A position as text says it, not yet tied to a rule set.

    `pieces` are (square, letter) pairs sorted by square; `side` is None where the text does not say it; `quiet`
    counts plies since the last capture; `move_number` starts at 1; `berserk` is the square of the piece that must
    go on; `caps` overrides the men taken by attackers and by defenders.
    """

    size: int
    pieces: tuple[tuple[int, str], ...]
    side: Side | None = None
    quiet: int = 0
    move_number: int = 1
    berserk: int | None = None
    caps: tuple[int, int] | None = None

    @property
    def rows(self) -> tuple[str, ...]:
        """The rows from the top rank down, empties as decimal numbers."""
        standing = dict(self.pieces)
        return tuple(
            row_text(standing.get(board.square(file, rank)) for file in range(self.size))
            for rank in reversed(range(self.size))
        )

    def count(self, letters: str) -> int:
        """How many pieces have one of these letters."""
        return sum(letter in letters for _, letter in self.pieces)


def owner(letter: str) -> Side:
    """The side that a piece letter belongs to."""
    return Side.DEFENDERS if letter in DEFENDER_PIECES else Side.ATTACKERS


def rows_to_pieces(rows: Sequence[str], size: int | None = None) -> tuple[int, tuple[tuple[int, str], ...]]:
    """The size and the pieces of rows given from the top rank down; SetupError for anything but a square board."""
    side_length = len(rows) if size is None else size
    if not board.MIN_SIZE <= len(rows) <= board.MAX_SIZE:
        raise SetupError(f"{counted(len(rows), 'row')}: expected {board.MIN_SIZE} to {board.MAX_SIZE}")
    if len(rows) != side_length:
        raise SetupError(f"{counted(len(rows), 'row')}: expected {side_length}")
    alphabet = _alphabet(rows)
    pieces: list[tuple[int, str]] = []
    for index, row in enumerate(rows):
        rank = side_length - 1 - index
        letters, squares = row_letters(row, SetupError)
        if squares != side_length:
            raise SetupError(
                f"row {shorten(row)} has {counted(squares, 'square')}: expected {side_length}, as many as rows"
            )
        pieces += [(board.square(file, rank), alphabet[sign]) for file, sign in letters]
    pieces.sort()
    return side_length, tuple(pieces)


def in_adk(fen: str) -> str:
    """A FEN of attackers, defenders and king in the letters `a d k`, for programs that know no others."""
    board, blank, rest = fen.partition(" ")
    return board.translate(_TO_ADK) + blank + rest


def from_adk(fen: str) -> str:
    """What `in_adk` wrote, in our letters."""
    board, blank, rest = fen.partition(" ")
    return board.translate(_FROM_ADK) + blank + rest


def _alphabet(rows: Sequence[str]) -> dict[str, str]:
    """The one alphabet that all letters of these rows belong to; SetupError for unknown letters or a mixture."""
    left = [_OWN, _UPPER, _LOWER]
    seen: set[str] = set()
    for row in rows:
        letters = {sign for sign in row if not "0" <= sign <= "9"}
        seen |= letters
        for letter in sorted(letters):
            if not any(letter in alphabet for alphabet in (_OWN, _UPPER, _LOWER)):
                raise SetupError(
                    f"row {shorten(row)}: {shorten(letter)} is no piece: expected letters out of {PIECES}"
                )
        left = [alphabet for alphabet in left if letters <= alphabet.keys()]
        if not left:
            raise SetupError(
                f"row {shorten(row)}: the letters {shorten(''.join(sorted(seen)))} mix two alphabets: "
                f"expected {PIECES}, or a d k, or A D K"
            )
    return left[0]


def split_rows(text: str, order: RowOrder = "auto") -> list[str]:
    """The rows of a board text from the top rank down; SetupError if the text cannot be a board.

    `order` says which rank the text begins with: the `top`, the `bottom` (the letters A and D overrule this:
    their program starts at the top whatever it writes), or `auto`, bottom if there is a leading slash.
    """
    if len(text) > _BOARD_LIMIT:
        raise SetupError(
            f"{shorten(text)}: expected rows such as 3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3, "
            f"at most {board.MAX_SIZE} of {board.MAX_SIZE} squares"
        )
    from_bottom = order == "bottom" or (order == "auto" and text.startswith("/"))
    rows = text.removeprefix("/").removesuffix("/").split("/")
    if not all(rows):
        raise SetupError(f"{shorten(text)}: expected no empty row")
    if from_bottom and not ("A" in text or "D" in text):
        rows.reverse()
    return rows


def parse_rows(text: str, size: int | None = None, order: RowOrder = "auto") -> Setup:
    """The position of a board text alone, nothing behind it."""
    found_size, pieces = rows_to_pieces(split_rows(text, order), size)
    return Setup(found_size, pieces)


def parse_fen(text: str, size: int | None = None, order: RowOrder = "auto") -> Setup:
    """A FEN: the board, then side, plies since the last capture, move number and `key=value` fields, all optional.

    `size` is the size that the board must have, if any; `order` as in `split_rows`. Raises SetupError.
    """
    if len(text) > _TEXT_LIMIT:
        raise SetupError(f"{shorten(text)}: expected at most {_TEXT_LIMIT} characters")
    words = text.split()
    if not words:
        raise SetupError("no position: expected rows such as 3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3")
    try:
        placed = parse_rows(words[0], size, order)
    except SetupError as error:
        raise SetupError(
            f"board {shorten(words[0])}: {error}" if len(words[0]) <= 80 else str(error)
        ) from None
    plain = 1
    while plain < len(words) and "=" not in words[plain]:
        plain += 1
    tail, extras = words[1:plain], words[plain:]
    if len(tail) > 3:
        raise SetupError(f"{shorten(tail[3])} after the move number: expected nothing more, or key=value")
    side: Side | None = None
    if tail:
        if tail[0] not in ("a", "d"):
            raise SetupError(f"side {shorten(tail[0])}: expected a or d")
        side = Side.of(tail[0])
    quiet = whole_number(tail[1], 0, "plies since the last capture", SetupError) if len(tail) > 1 else 0
    move_number = whole_number(tail[2], 1, "move number", SetupError) if len(tail) > 2 else 1
    berserk: int | None = None
    caps: tuple[int, int] | None = None
    seen: set[str] = set()
    for word in extras:
        key, equals, value = word.partition("=")
        if not equals or key not in ("berserk", "caps"):
            raise SetupError(f"field {shorten(word)}: expected berserk=<square> or caps=<by a>,<by d>")
        if key in seen:
            raise SetupError(f"field {shorten(word)}: expected each field once")
        seen.add(key)
        if key == "berserk":
            try:
                berserk = board.parse(value[:20], placed.size)
            except ValueError as error:
                raise SetupError(f"field {shorten(word)}: {error}") from None
            if berserk not in dict(placed.pieces):
                raise SetupError(f"field {shorten(word)}: expected the square of a piece")
        else:
            taken = value.split(",")
            if len(taken) != 2:
                raise SetupError(f"field {shorten(word)}: expected two numbers such as caps=3,1")
            by_attackers, by_defenders = (
                whole_number(number, 0, "men taken", SetupError, board.MAX_SIZE**2) for number in taken
            )
            caps = (by_attackers, by_defenders)
    return Setup(placed.size, placed.pieces, side, quiet, move_number, berserk, caps)


def format_fen(setup: Setup) -> str:
    """The FEN that `parse_fen` reads back; without counters where the side to move is not known."""
    words = ["/".join(setup.rows)]
    if setup.side is not None:
        words += [setup.side.letter, str(setup.quiet), str(setup.move_number)]
    if setup.berserk is not None:
        words.append(f"berserk={board.name(setup.berserk)}")
    if setup.caps is not None:
        words.append("caps={},{}".format(*setup.caps))
    return " ".join(words)


def check_setup(rules: Rules, setup: Setup) -> None:
    """Refuse, with a SetupError, a position that cannot stand under these rules.

    At most one king (none means he has been captured), no man on a throne or corner square where it may not stop,
    the board's size, and a berserk piece only where berserk moves exist, belonging to the side to move.
    """
    if setup.size != rules.size:
        raise SetupError(f"a {setup.size}x{setup.size} board: expected {rules.size}x{rules.size}")
    kings = [sq for sq, letter in setup.pieces if letter == "K"]
    if len(kings) > 1:
        raise SetupError(
            f"{len(kings)} kings, on {board.name(kings[0])} and {board.name(kings[1])}: expected one"
        )
    for sq, letter in setup.pieces:
        for terrain, allowed, words in (
            (rules.throne, rules.throne_stop, "the throne"),
            (rules.corners, rules.corner_stop, "a corner"),
        ):
            if sq in terrain and letter != "K" and letter not in allowed:
                raise SetupError(
                    f"{letter} on {board.name(sq)}: expected no {letter} on {words}, where it may not stop"
                )
    if setup.berserk is not None:
        where = board.name(setup.berserk)
        if rules.berserk == "off":
            raise SetupError(f"berserk={where}: expected no berserk field in a game without berserk moves")
        letter = dict(setup.pieces).get(setup.berserk, "")
        side = Side.of(rules.first) if setup.side is None else setup.side
        if not letter or owner(letter) is not side:
            raise SetupError(f"berserk={where}: expected the square of a piece of the side to move")
