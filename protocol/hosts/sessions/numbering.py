"""Numbers before lines, so that nothing is lost or done twice on a way that may do both.

Towards the engine a line may begin with `#<n> `, n = 1, 2, 3 …; from it, with `#<m> `, or `#<m>:<n> ` where it answers
line n. `#` and a blank begin a comment, as ever.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..bounded_json import PAYLOAD_LIMIT

QUEUE_LINES = 256
QUEUE_BYTES = 256 * 1024
COMPLAINT_PAUSE = 1.0
"""Seconds between two complaints of the same kind, at least: a flood is not answered by a flood."""
RING_LINES = 1_024
RING_BYTES = 256 * 1024

_NUMBERED = re.compile(r"#([0-9]{1,15})(?: (.*))?", re.DOTALL)
_ANSWER = re.compile(r"#([0-9]{1,15})(?::([0-9]{1,15}))? (.*)", re.DOTALL)


def split_number(line: str) -> tuple[int | None, str]:
    """The number and the rest of a line towards the engine; a comment has an empty rest.

    A number of more than 15 digits makes the line a comment too: no client counts that far.
    """
    if not line.startswith("#"):
        return None, line
    found = _NUMBERED.fullmatch(line)
    if found is None:
        return None, ""
    return int(found[1]), found[2] or ""


@dataclass(frozen=True, slots=True)
class Numbered:
    """A line from the engine: its number, the line it answers (0: none) and its text."""

    number: int
    answers: int
    text: str


def parse_numbered(line: str) -> Numbered | None:
    """A line of a session that numbers; None if it has no number."""
    found = _ANSWER.fullmatch(line)
    return Numbered(int(found[1]), int(found[2] or 0), found[3]) if found else None


class Incoming:
    """The lines of a client: in order, none twice, never more than fit. `complain` hears what is wrong with them."""

    def __init__(self, complain: Callable[[str], None]) -> None:
        self.last = 0
        """The number of the last line taken."""
        self._say = complain
        self._complained: dict[str, tuple[int, float]] = {}
        self._lines: deque[tuple[int, str]] = deque()
        self._bytes = 0
        self._arrived = asyncio.Event()

    async def next(self) -> tuple[int, str]:
        """The number (0: none) and the text of the line that has waited longest."""
        while not self._lines:
            self._arrived.clear()
            await self._arrived.wait()
        number, text = self._lines.popleft()
        self._bytes -= len(text)
        return number, text

    def take(self, payload: bytes) -> None:
        """A message: one or more lines."""
        if len(payload) > PAYLOAD_LIMIT:
            self._complain(
                "size",
                f"message of {len(payload)} bytes: expected at most {PAYLOAD_LIMIT}, none of it is used",
            )
            return
        for line in payload.decode("utf-8", "replace").split("\n"):
            self._take_line(line.replace("\r", " ").strip())

    def _take_line(self, line: str) -> None:
        number, text = split_number(line)
        if number is not None:
            if number > self.last + 1:
                self._complain("gap", f"gap: expected #{self.last + 1}", self.last)
            if number != self.last + 1:
                return
        elif not text:
            return
        if len(self._lines) >= QUEUE_LINES or self._bytes + len(line) > QUEUE_BYTES:
            self._complain("busy", "busy: line dropped")
            return
        if number is not None:
            self.last = number
        if text:
            self._lines.append((number or 0, text))
            self._bytes += len(text)
            self._arrived.set()

    def _complain(self, kind: str, text: str, about: int = 0) -> None:
        """An error line, but not the same one again and again."""
        known = self._complained.get(kind)
        now = time.monotonic()
        if known is None or known[0] != about or now - known[1] >= COMPLAINT_PAUSE:
            self._complained[kind] = (about, now)
            self._say(f"info string error {text}")


class Ring:
    """The last lines by number, at most 1,024 of them and 256 KiB; older ones are forgotten."""

    def __init__(self, lines: int = RING_LINES, size: int = RING_BYTES) -> None:
        self.last = 0
        """The number of the newest line."""
        self._lines: deque[bytes] = deque()
        self._limit = lines
        self._size_limit = size
        self._size = 0

    @property
    def first(self) -> int:
        """The number of the oldest line that is still there; one more than `last` if there is none."""
        return self.last - len(self._lines) + 1

    def append(self, line: bytes) -> int:
        """Keep a line; returns its number. The newest is kept whatever its size."""
        self.last += 1
        self._lines.append(line)
        self._size += len(line)
        while len(self._lines) > 1 and (len(self._lines) > self._limit or self._size > self._size_limit):
            self._size -= len(self._lines.popleft())
        return self.last

    def get(self, number: int) -> bytes | None:
        """The line with that number; None if it is forgotten or yet to come."""
        at = number - self.first
        return self._lines[at] if 0 <= at < len(self._lines) else None

    def since(self, number: int) -> Iterator[bytes]:
        """All lines from that number on that are there."""
        for known in range(max(number, self.first), self.last + 1):
            line = self.get(known)
            if line is not None:
                yield line
