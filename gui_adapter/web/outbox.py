"""Frames waiting to be sent to a browser, and the output of a session.

Senders leave their frames here and do not wait. Of frames that replace each other (states, thinking) only the newest
waits. A browser that does not read is disconnected before its frames fill the memory.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from hnefi.protocol.hosts.bounded_json import encode
from hnefi.protocol.hosts.sessions.numbering import Ring
from hnefi.protocol.hosts.sessions.reports import PAUSE, Reports, ended
from hnefi.protocol.hosts.sessions.session import Facts

FRAMES_LIMIT: Final = 256
BYTES_LIMIT: Final = 1024 * 1024
KEPT_MULTIPV: Final = 64
"""Lines of play of one search. At its end each is sent as a frame, and all of them fit in the box."""

Key = tuple[str, ...]


class Box(Protocol):
    """The destination of a session's frames: a browser, or a table with several browsers."""

    @property
    def empty(self) -> bool:
        """Whether nothing is waiting there."""

    def put(self, frame: Mapping[str, Any], key: Key = ()) -> None:
        """Add a frame; while it waits, a newer one with the same `key` replaces it."""


class Outbox:
    """The frames waiting for one browser, in order. `full` is called once if there are too many."""

    def __init__(self, full: Callable[[], None]) -> None:
        self._full = full
        self._frames: dict[Key, bytes] = {}
        self._bytes = 0
        self._count = 0
        self._closed = False
        self._news = asyncio.Event()

    def put(self, frame: Mapping[str, Any], key: Key = ()) -> None:
        """Add a frame in place of a waiting one with the same `key`."""
        if self._closed:
            return
        data = encode(frame)
        self._count += 1
        self._bytes += len(data) - len(self._frames.pop(key, b""))
        self._frames[key or ("", str(self._count))] = data
        self._news.set()
        if len(self._frames) > FRAMES_LIMIT or self._bytes > BYTES_LIMIT:
            self._closed = True
            self._frames.clear()
            self._full()

    async def next(self) -> bytes:
        """The frame that has waited longest; waits for one if there is none."""
        while not self._frames:
            self._news.clear()
            await self._news.wait()
        key = next(iter(self._frames))
        data = self._frames.pop(key)
        self._bytes -= len(data)
        return data

    @property
    def empty(self) -> bool:
        """Whether nothing is waiting to be sent."""
        return not self._frames


class Voice:
    """The `Outlet` of a session: numbered lines, which are kept for a browser that comes back; thinking; state.

    `box` is None while no browser is listening.
    """

    def __init__(self, sid: str, facts: Facts) -> None:
        self.sid = sid
        self.box: Box | None = None
        self._facts = facts
        self._ring = Ring()
        self._answers: dict[int, int] = {}
        self._reports = Reports(KEPT_MULTIPV)
        self._changed = asyncio.Event()
        self._tasks = [
            asyncio.create_task(work, name=f"{sid} {name}")
            for name, work in (("state", self._write_states()), ("info", self._write_reports()))
        ]

    @property
    def last_out(self) -> int:
        """The number of the last line."""
        return self._ring.last

    def attach(self, box: Box, after: int | None) -> None:
        """Connect a browser. It has received all lines up to number `after`; None if it is new here."""
        self.box = box
        first = self._ring.first
        if after is not None:
            if after + 1 < first:
                box.put(
                    {
                        "t": "error",
                        "s": self.sid,
                        "code": "gone",
                        "text": f"lines before {first} are forgotten",
                    }
                )
            for number in range(max(after + 1, first), self._ring.last + 1):
                self._send(number)
        self._changed.set()

    def say(self, text: str, answers: int = 0) -> None:
        """Send a line; `answers` is the number of the line that it answers."""
        number = self._ring.append(text.encode("utf-8", "replace"))
        if answers:
            self._answers[number] = answers
        for old in [known for known in self._answers if known < self._ring.first]:
            del self._answers[old]
        self._send(number)

    def _send(self, number: int) -> None:
        line = self._ring.get(number)
        if self.box is not None and line is not None:
            text = line.decode("utf-8", "replace")
            frame = {"t": "line", "s": self.sid, "m": number, "n": self._answers.get(number, 0), "text": text}
            self.box.put(frame)

    def report(self, line: bytes) -> None:
        """Add a report of thinking; the newest for each line of play is sent now and then."""
        self._reports.put(line)

    def end_reports(self) -> None:
        """Send the last reports of a finished search as lines."""
        for line in self._reports.finish():
            self.say(line)

    def changed(self, _last_in: int) -> None:
        """Announce that the state has changed; what it knows of is said by the facts themselves."""
        self._changed.set()

    async def flushed(self, timeout: float) -> bool:
        """Wait until everything has been sent to the browser; returns whether that succeeded."""
        deadline = time.monotonic() + timeout
        while self.box is not None and not self.box.empty:
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.01)
        return True

    async def abandon(self) -> None:
        """Discard everything from now on."""
        await ended(self._tasks)

    async def close(self) -> bool:
        """Tell the browser that the session is over, and send nothing more."""
        await self.abandon()
        if self.box is not None:
            self.box.put({"t": "closed", "s": self.sid})
        return True

    async def _write_states(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            facts = await self._facts()
            if self.box is not None and facts:
                frame = {"t": "state", "s": self.sid, **facts, "last_out": self._ring.last}
                self.box.put(frame, ("state", self.sid))

    async def _write_reports(self) -> None:
        while True:
            await self._reports.wait()
            fresh = self._reports.fresh()
            if self.box is not None and fresh:
                lines = [line.decode("utf-8", "replace") for line in fresh]
                self.box.put({"t": "info", "s": self.sid, "lines": lines}, ("info", self.sid))
            await asyncio.sleep(PAUSE)
