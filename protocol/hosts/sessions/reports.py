"""A search's reports on their way to spectators: the newest of each line of play, none delayed for long."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from typing import Final

PAUSE: Final = 0.1
"""Seconds between two messages of thinking, at least."""

_MULTIPV: Final = re.compile(rb" multipv ([0-9]{1,6})")


class Reports:
    """Begun by a search's first report, empty after `finish`. At most `kept` lines of play are told apart."""

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._newest: dict[bytes, bytes] = {}
        self._fresh: dict[bytes, bytes] = {}
        self._arrived = asyncio.Event()

    def put(self, line: bytes) -> None:
        """A line of thinking."""
        found = _MULTIPV.search(line)
        key = found[1] if found else b"1"
        before = self._newest.get(key)
        if before is None and len(self._newest) >= self._kept:
            return
        # What only counts nodes says less than the last score.
        if before is None or b" score " in line or b" score " not in before:
            self._newest[key] = line
            self._fresh[key] = line
            self._arrived.set()

    def finish(self) -> list[str]:
        """The search is over: the last line of each line of play. Nothing of it is fresh any more."""
        last = [line.decode("utf-8", "replace") for line in self._newest.values()]
        self._newest.clear()
        self._fresh.clear()
        return last

    async def wait(self) -> None:
        """Until something new has come since the last call of `fresh`."""
        await self._arrived.wait()

    def fresh(self) -> list[bytes]:
        """What is new since the last call."""
        self._arrived.clear()
        found = list(self._fresh.values())
        self._fresh.clear()
        return found


async def ended(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel tasks, and wait until they are no more."""
    running = list(tasks)
    for task in running:
        task.cancel()
    await asyncio.wait(running)
