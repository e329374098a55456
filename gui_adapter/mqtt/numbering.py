"""Numbers before lines, so that nothing is lost or done twice on a way that may do both.

Towards the engine a line may begin with `#<n> `, n = 1, 2, 3 …; from it, with `#<m> `, or `#<m>:<n> ` where it answers
line n. `#` and a blank begin a comment, as ever.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

RING_LINES = 1_024
RING_BYTES = 256 * 1024

_NUMBERED = re.compile(r"#([0-9]{1,15})(?: (.*))?", re.DOTALL)
_ANSWER = re.compile(r"#([0-9]{1,15})(?::([0-9]{1,15}))? (.*)", re.DOTALL)


def split_number(line: str) -> tuple[int | None, str]:
    """The number and the rest of a line towards the engine; a comment has an empty rest.

    A number of more than 15 digits makes the line a comment too: nobody counts that far.
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
    """What has come so far: says of each number whether its line is the next."""

    def __init__(self) -> None:
        self.last = 0

    def judge(self, number: int) -> str:
        """`next`, `old` (it has come before) or `gap` (lines before it are missing)."""
        if number <= self.last:
            return "old"
        return "next" if number == self.last + 1 else "gap"

    def take(self, number: int) -> None:
        self.last = number


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
