"""What waits to be sent to a browser, and what a session says to it.

Whoever has something to say leaves it here and goes on. What a newer one replaces (states, thinking) waits once; a
browser that does not read is let go before its frames fill the memory.
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
"""Lines of play of one search: when it ends each is a frame, and all of them have room in the box."""

Key = tuple[str, ...]


class Box(Protocol):
    """Where a session's frames go: a browser, or the table at which several of them play."""

    @property
    def empty(self) -> bool:
        """Whether nothing waits there."""

    def put(self, frame: Mapping[str, Any], key: Key = ()) -> None:
        """A frame; a newer one with the same `key` replaces it while it waits."""


class Outbox:
    """The frames that wait for one browser, in order. `full` is called once when it has let too many wait."""

    def __init__(self, full: Callable[[], None]) -> None:
        self._full = full
        self._frames: dict[Key, bytes] = {}
        self._bytes = 0
        self._count = 0
        self._closed = False
        self._news = asyncio.Event()

    def put(self, frame: Mapping[str, Any], key: Key = ()) -> None:
        """A frame; one with the same `key` that still waits is dropped for it."""
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
        """The frame that has waited longest."""
        while not self._frames:
            self._news.clear()
            await self._news.wait()
        key = next(iter(self._frames))
        data = self._frames.pop(key)
        self._bytes -= len(data)
        return data

    @property
    def empty(self) -> bool:
        """Whether nothing waits to be sent."""
        return not self._frames


class Voice:
    """The `Outlet` of a session: its lines by number, kept for a browser that comes back; its thinking; its state.

    `box` is None while no browser listens.
    """

    def __init__(self, sid: str, facts: Facts) -> None:
        self.sid = sid
        self.box: Box | None = None
        self._facts = facts
        self._ring = Ring()
        self._answers: dict[int, int] = {}
        self._reports = Reports(KEPT_MULTIPV)
        self._last_in = 0
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
        """A browser listens from now on. It has heard all lines up to number `after`, None if it is new here."""
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
        """A line; `answers` is the number of the line that it answers."""
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
        """A line of thinking: the newest of each line of play is sent now and then."""
        self._reports.put(line)

    def end_reports(self) -> None:
        """The search is over: its last thinking becomes lines."""
        for line in self._reports.finish():
            self.say(line)

    def changed(self, last_in: int) -> None:
        """The state is another."""
        self._last_in = last_in
        self._changed.set()

    async def flushed(self, timeout: float) -> bool:
        """Wait until the browser has been sent everything; whether it has."""
        deadline = time.monotonic() + timeout
        while self.box is not None and not self.box.empty:
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.01)
        return True

    async def abandon(self) -> None:
        """Send nothing more of what comes."""
        await ended(self._tasks)

    async def close(self) -> bool:
        """Send nothing more; the browser is told that the session is over."""
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
                numbers = {"last_in": self._last_in, "last_out": self._ring.last}
                self.box.put({"t": "state", "s": self.sid, **facts, **numbers}, ("state", self.sid))

    async def _write_reports(self) -> None:
        while True:
            await self._reports.wait()
            fresh = self._reports.fresh()
            if self.box is not None and fresh:
                lines = [line.decode("utf-8", "replace") for line in fresh]
                self.box.put({"t": "info", "s": self.sid, "lines": lines}, ("info", self.sid))
            await asyncio.sleep(PAUSE)
