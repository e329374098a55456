"""The lines of the Hnefatafl Text Protocol as values, in both directions.

A command is a line of words, and `#` begins a comment. An answer is `= text`, or `? message` and an empty line. Squares
are spelled as `protocol.hosts.hnefatafl_org_notation` says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hnefi.engine.sides import Side
from hnefi.engine.squares import FILES
from hnefi.engine.wording import shorten
from hnefi.protocol.hosts.hnefatafl_org_notation import (
    THEIRS,
    VARIANTS,
    NotationError,
    read_move,
    write_move,
    write_square,
)

PORT: Final = 49152
"""The port of light servers."""
LINE_LIMIT: Final = 65_536
"""Bytes of one line on a connection."""
PROTOCOL_VERSION: Final = "1-beta"
COMMANDS: Final = (
    "board_size", "final_status", "first_move", "generate_move", "known_command", "list_commands", "name", "play",
    "play_from", "play_to", "play_undo", "protocol_version", "quit", "show_board", "show_board_open_tafl",
    "time_settings", "version",
)  # fmt: skip
ROLES: Final = {Side.ATTACKERS: "attacker", Side.DEFENDERS: "defender"}
STATUS: Final = {"a": "attacker_wins", "d": "defender_wins", "draw": "draw", None: "ongoing"}
"""The words for the state of a game, by result."""
RESIGNED: Final = ("resigns", "resign")
"""Both are accepted; the first is written, because their program accepts nothing else."""

_SIDES: Final = {
    "a": Side.ATTACKERS, "attacker": Side.ATTACKERS, "d": Side.DEFENDERS, "defender": Side.DEFENDERS,
}  # fmt: skip
_CELL: Final = re.compile(r"\d+|.", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]{1,6}", re.ASCII)
SIZES: Final = ", ".join(map(str, VARIANTS))


class LineError(NotationError):
    """An invalid or impossible line; the message says what was read and what was expected."""


@dataclass(frozen=True, slots=True)
class Played:
    """A move of a side; None if it resigns."""

    side: Side
    move: str | None


@dataclass(frozen=True, slots=True)
class Fischer:
    """A clock: milliseconds of each side, and the increment of each move."""

    main: int
    increment: int


def words_of(line: bytes) -> list[str]:
    """The words of a line without its comment; LineError if it is not UTF-8."""
    try:
        return line.partition(b"#")[0].decode().split()
    except UnicodeDecodeError:
        raise LineError(f"{shorten(line.decode('utf-8', 'replace'))}: expected UTF-8") from None


def read_role(text: str) -> Side:
    """The side that a word means, in any case; LineError."""
    side = _SIDES.get(text.lower())
    if side is None:
        raise LineError(f"{shorten(text)}: expected a role, attacker or defender")
    return side


def read_play(words: Sequence[str], size: int) -> Played:
    """Parse `play ROLE FROM TO` or `play ROLE resigns`; LineError."""
    if len(words) >= 3 and words[0] == "play":
        side = read_role(words[1])
        if words[2] in RESIGNED:
            return Played(side, None)
        if len(words) >= 4:
            return Played(side, read_move(words[2], words[3], size))
    raise LineError(f"{shorten(' '.join(words))}: expected play ROLE FROM TO, or play ROLE resigns")


def write_play(side: Side, move: str | None, size: int) -> str:
    """`play ROLE FROM TO`, or `play ROLE resigns`."""
    return f"play {ROLES[side]} {RESIGNED[0] if move is None else write_move(move, size)}"


def read_clock(words: Sequence[str]) -> Fischer | None:
    """Parse the arguments of `time_settings`; None for games without a clock. LineError."""
    if list(words) == ["un-timed"]:
        return None
    numbers = words[1:]
    if (
        len(numbers) != 2
        or words[0] != "fischer"
        or not all(map(_NUMBER.fullmatch, numbers))
        or not any(map(int, numbers))
    ):
        raise LineError(
            f"time_settings {shorten(' '.join(words))}: expected un-timed, or fischer MINUTES SECONDS"
        )
    return Fischer(int(numbers[0]) * 60_000, int(numbers[1]) * 1_000)


def read_size(words: Sequence[str]) -> int:
    """Parse the argument of `board_size`; LineError."""
    if len(words) != 1 or words[0] not in map(str, VARIANTS):
        raise LineError(f"board_size {shorten(' '.join(words))}: expected {SIZES}")
    return int(words[0])


def picture(fen: str, size: int) -> list[str]:
    """The board of a FEN with its ranks and files, as lines."""
    ranks = fen.split(maxsplit=1)[0].split("/")
    lines = []
    for number, rank in zip(range(size, 0, -1), ranks, strict=True):
        cells = "".join("." * int(part) if part.isdigit() else part for part in _CELL.findall(rank))
        lines.append(f"{number:2} {' '.join(cells.translate(THEIRS))}")
    files = [write_square(f"{file}1", size).removesuffix("1")[-1] for file in FILES[:size]]
    return [*lines, f"   {' '.join(files)}"]
