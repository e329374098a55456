"""What all formats share: text read line by line within limits, errors with a place, and losses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from ..wording import shorten
from .record import GameRecord

LINE_LIMIT: Final = 1 << 20
"""Bytes of one line."""
JSON_LINE_LIMIT: Final = 1 << 24
"""Bytes of one line of JSON, which is a whole game."""
_KINDS: Final = 200
_BOM: Final = b"\xef\xbb\xbf"


class RecordError(ValueError):
    """A record that cannot be read or written: names file, line and column as far as known, and what was expected."""


class Stream(Protocol):
    """A file of bytes being read."""

    def readline(self, size: int = -1, /) -> bytes:
        """The next line with its end, at most `size` bytes; empty at the end of the file."""


@dataclass(frozen=True, slots=True)
class Game:
    """A game as read: the record, the line where it begins, and the lines of its plies by `id` where they are known."""

    record: GameRecord
    line: int
    places: Mapping[int, int] = field(default_factory=dict)


class Losses(Counter[str]):
    """What a format could not hold, by kind, with counts."""

    def add(self, kind: str, count: int = 1) -> None:
        """Count a loss; kinds beyond a limit share one count, so that hostile input cannot fill the memory."""
        if count:
            self[kind if kind in self or len(self) < _KINDS else "others"] += count


def lines(stream: Stream, name: str, limit: int = LINE_LIMIT) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 stream with their numbers, without line ends; RecordError at the first that is no text."""
    number = 0
    try:
        while data := stream.readline(limit + 1):
            number += 1
            if len(data) > limit:
                raise RecordError(f"{name}:{number}: expected a line of at most {limit} bytes")
            if number == 1:
                data = data.removeprefix(_BOM)
            try:
                text = data.decode()
            except UnicodeDecodeError as error:
                raise RecordError(f"{name}:{number}: byte {error.start}: expected UTF-8") from None
            yield number, text.removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise RecordError(f"{name}: {error.strerror or error}: expected readable text") from None


def at(name: str, line: int, message: str, column: int | None = None) -> RecordError:
    """The error at a place; columns count characters from 1."""
    where = f"{name}:{line}" if column is None else f"{name}:{line}:{column}"
    return RecordError(f"{where}: {message}")


def shown(text: str) -> str:
    """A bad piece of text, as errors quote it."""
    return shorten(text, 40)
