"""The lines of OTEP, OpenTafl's engine protocol: what both sides write, as values.

A line is known by how it begins. OpenTafl takes what one `read` returns for whole commands, so a line must leave in one
write, and a pipe takes no more than `LINE_LIMIT` bytes undivided. One command, `dump`, comes without an end of line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from hnefi.engine.games.tafl.fen import SetupError
from hnefi.engine.games.tafl.otn import parse_board
from hnefi.engine.sides import Side

LINE_LIMIT: Final = 4_000
STATUS_LIMIT: Final = 100
"""Characters of a `status`."""
ANALYSIS_MOVES: Final = 10
"""Moves of one line of play."""
CP_LIMIT: Final = 5_000
WIN: Final = 6_000
"""A forced win in N moves is worth this less N."""
SIDE_WORDS: Final = {Side.ATTACKERS: "attackers", Side.DEFENDERS: "defenders"}
RESULTS: Final = {0: None, 1: "draw", 2: "a", 3: "d"}
"""What the number of `finish` says; None for a game that was broken off."""

_DUMP = re.compile(r"\s*dump\s*-?\d{0,18}\s*")
_MOVE = re.compile(r"([a-s](?:1\d|[1-9]))-?([a-s](?:1\d|[1-9]))(?![0-9])")
_NUMBER = re.compile(r"-?\d{1,15}")


class LineError(ValueError):
    """A line that cannot be understood: what was read, and what was expected."""


@dataclass(frozen=True, slots=True)
class Clock:
    """A `clock` line: what each side has left in ms (attackers, defenders), whether that is its running overtime
    period, how long a period is in ms, and how many each side still has."""

    left: tuple[int, int]
    overtime: tuple[bool, bool]
    period: int
    periods: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Played:
    """An `opponent-move`: moves in the order in which they were played, and the board (rows of a FEN) after them, None
    where it is missing or cannot be read."""

    moves: tuple[str, ...]
    rows: str | None


def without_dump(line: str) -> str:
    """A line without the `dump N` that it may be glued to."""
    found = _DUMP.match(line)
    return line[found.end() :] if found else line


def parse_side(text: str) -> Side:
    """`attackers` or `defenders`; LineError."""
    words = text.split()
    for side, word in SIDE_WORDS.items():
        if words[:1] == [word]:
            return side
    raise LineError(f"{text[:80]!r}: expected attackers or defenders")


def parse_clock(text: str) -> Clock:
    """What follows the word `clock`; LineError."""
    words = text.split()
    starred = tuple(word.endswith("*") for word in words[:2])
    numbers = [parse_number(word.removesuffix("*")) for word in words]
    if len(numbers) != 5:
        raise LineError(f"{text[:80]!r}: expected two times, a period in seconds and two numbers of periods")
    attackers, defenders, seconds, *periods = numbers
    return Clock(
        (max(0, attackers), max(0, defenders)),
        (starred[0], starred[1]),
        max(0, min(seconds, 10**9)) * 1000,
        (max(0, periods[0]), max(0, periods[1])),
    )


def parse_number(text: str) -> int:
    """A whole number of at most 15 digits; LineError."""
    if not _NUMBER.fullmatch(text):
        raise LineError(f"{text[:80]!r}: expected a whole number")
    return int(text)


def parse_rows(text: str) -> str | None:
    """The rows, from the highest rank down, of a board that begins at rank 1; None if it cannot be read."""
    try:
        return "/".join(parse_board(text).rows)
    except SetupError:
        return None


def parse_played(text: str) -> Played:
    """What follows the word `opponent-move`; LineError if there is no move."""
    line, _, board = text.strip().partition(" ")
    moves = tuple(move for word in line.split("|") if word and (move := parse_move(word)))
    if not moves:
        raise LineError(f"{text[:80]!r}: expected moves such as a4-a2 and a board")
    return Played(moves, parse_rows(board) if board.strip() else None)


def parse_move(word: str) -> str:
    """A move of ours from one such as `a4-a2xa3`; LineError."""
    found = _MOVE.match(word.strip())
    if found is None:
        raise LineError(f"{word[:80]!r}: expected a move such as a4-a2")
    return found[1] + found[2]


def format_move(move: str) -> str:
    """A move as OpenTafl writes it, without captures: `a4-a2`."""
    found = _MOVE.fullmatch(move)
    assert found is not None, move
    return f"{found[1]}-{found[2]}"


def is_move(word: str) -> bool:
    """Whether a word of a line of play is a move of tafl."""
    return _MOVE.fullmatch(word) is not None


def format_moves(moves: Iterable[str]) -> str:
    """Moves in the order in which they are played."""
    return "|".join(format_move(move) for move in moves)


def format_rows(rows: str) -> str:
    """The board record of rows of a FEN: rank 1 first."""
    return f"/{'/'.join(reversed(rows.split('/')))}/"


def plain(text: str) -> str:
    """Text for people: printable ASCII, cut to its limit."""
    return "".join(sign if sign.isascii() and sign.isprintable() else "?" for sign in text[:STATUS_LIMIT])


def format_status(text: str) -> str:
    """What is shown at the host."""
    return f"status {plain(text)}"


def format_analysis(lines: Sequence[tuple[Sequence[str], int]]) -> str:
    """An `analysis` of lines of play with their values for the attackers, as many as fit."""
    pairs: list[str] = []
    for moves, value in lines:
        pair = f"{format_moves(moves[:ANALYSIS_MOVES])} {value}"
        if sum(map(len, pairs)) + len(pairs) + len(pair) + 20 > LINE_LIMIT:
            break
        pairs.append(pair)
    return " ".join(["analysis", str(len(pairs)), *pairs])


def value_for_attackers(side: Side, cp: int | None, mate: int | None) -> int:
    """The value of a line whose score is the side to move's."""
    sign = 1 if side is Side.ATTACKERS else -1
    if mate is not None:
        return sign * (WIN - mate if mate > 0 else -WIN - mate)
    return sign * max(-CP_LIMIT, min(CP_LIMIT, cp or 0))


def parse_analysis(text: str) -> list[tuple[tuple[str, ...], int]]:
    """What follows the word `analysis`: lines of play with their values for the attackers; LineError."""
    words = text.split()
    count = parse_number(words[0]) if words else -1
    found = []
    for line, value in zip(words[1::2], words[2::2], strict=False):
        found.append((tuple(parse_move(word) for word in line.split("|") if word), parse_value(value)))
    if count != len(found):
        raise LineError(f"{text[:80]!r}: expected a number of lines, and each with its value")
    return found


def parse_value(text: str) -> int:
    """A value, which may have decimals; LineError."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < 10**9:
        raise LineError(f"{text[:80]!r}: expected a value such as -120")
    return round(value)
