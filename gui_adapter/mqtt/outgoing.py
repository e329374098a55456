"""What a session publishes: its lines in order and without loss, its thinking at a readable rate, its state.

Callers leave their lines here and do not wait; three tasks publish them. A slow or absent broker only fills a ring of
bounded size and delays nobody.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

from hnefi.protocol.hosts.bounded_json import encode
from hnefi.protocol.hosts.broker import topics
from hnefi.protocol.hosts.broker.client import Link, Offline
from hnefi.protocol.hosts.sessions.numbering import Ring
from hnefi.protocol.hosts.sessions.reports import PAUSE, Reports, ended
from hnefi.protocol.hosts.sessions.session import Facts

STATE_PAUSE = 0.2
"""Minimum seconds between two states."""
KEPT_MULTIPV = 512


class Outgoing:
    """The publishing half of the session `sid` of `user`. `facts` returns its state without numbers of lines."""

    def __init__(self, link: Link, user: str, sid: str, *, numbered: bool, facts: Facts) -> None:
        self._link = link
        self._numbered = numbered
        self._facts = facts
        self._out = topics.session(user, sid, "out")
        self._info = topics.session(user, sid, "info")
        self._state = topics.session(user, sid, "state")
        self._ring = Ring()
        self._sent = 0
        self._news = asyncio.Event()
        self._delivered = asyncio.Event()
        self._reports = Reports(KEPT_MULTIPV)
        self._changed = asyncio.Event()
        self._last_in = 0
        self._known: Mapping[str, Any] = {}
        self._tasks = [
            asyncio.create_task(task, name=f"{sid} {name}")
            for name, task in (
                ("out", self._write_lines()),
                ("info", self._write_reports()),
                ("state", self._write_states()),
            )
        ]

    @property
    def last_out(self) -> int:
        """The number of the last line."""
        return self._ring.last

    def say(self, text: str, answers: int = 0) -> None:
        """Publish a line on `out`; `answers` is the number of the line that it answers."""
        if self._numbered:
            number = self._ring.last + 1
            text = f"#{number}:{answers} {text}" if answers else f"#{number} {text}"
        self._ring.append(text.encode("utf-8", "replace"))
        self._delivered.clear()
        self._news.set()

    def report(self, line: bytes) -> None:
        """Add a report of thinking; the newest for each line of play is published now and then."""
        self._reports.put(line)

    def end_reports(self) -> None:
        """Publish the last reports of a finished search as lines, and none of them as thinking any more."""
        for line in self._reports.finish():
            self.say(line)

    def changed(self, last_in: int) -> None:
        """Announce that the state has changed; `last_in` is the number of the last line received."""
        self._last_in = last_in
        self._changed.set()

    def resend(self, start: int) -> bool:
        """Publish the lines from number `start` again; False if they are no longer kept."""
        if start < self._ring.first:
            return False
        self._sent = min(self._sent, start - 1)
        self._news.set()
        return True

    async def announce(self) -> None:
        """Publish the last known state; Offline."""
        await self._link.publish(self._state, self._document(), retain=True)

    async def flushed(self, timeout: float) -> bool:
        """Wait until all lines are acknowledged; returns whether they are."""
        if self._sent >= self._ring.last:
            return True
        try:
            async with asyncio.timeout(timeout):
                await self._delivered.wait()
        except TimeoutError:
            return False
        return True

    async def abandon(self) -> None:
        """Publish nothing more."""
        await ended(self._tasks)

    async def close(self) -> bool:
        """Publish nothing more, and clear the state; False if that could not be done."""
        await self.abandon()
        try:
            async with asyncio.timeout(1.0):
                await self._link.publish(self._state, b"", retain=True)
        except (Offline, TimeoutError):
            return False
        return True

    @property
    def state_topic(self) -> str:
        """The topic with the retained state of the session."""
        return self._state

    def _document(self) -> bytes:
        return encode({**self._known, "last_in": self._last_in, "last_out": self._ring.last})

    async def _write_lines(self) -> None:
        while True:
            if self._sent >= self._ring.last:
                self._delivered.set()
                self._news.clear()
                await self._news.wait()
            await self._link.wait_up()
            asked = self._sent
            number = max(asked + 1, self._ring.first)
            line = self._ring.get(number)
            if line is None:
                continue
            if number > asked + 1 and not self._numbered:
                # If lines have numbers, the gap shows in these.
                number -= 1
                line = b"info string error %d lines lost" % (number - asked)
            try:
                await self._link.publish(self._out, line)
            except Offline:
                # Wait until the link is up again, then send this line again.
                continue
            # A resend that was requested meanwhile begins further back.
            if self._sent == asked:
                self._sent = number

    async def _write_reports(self) -> None:
        while True:
            await self._reports.wait()
            # While the link is down, only the newest is kept.
            await self._link.wait_up()
            fresh = self._reports.fresh()
            if fresh:
                with contextlib.suppress(Offline):
                    await self._link.publish(self._info, b"\n".join(fresh), qos=0)
                    await asyncio.sleep(PAUSE)

    async def _write_states(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            self._known = await self._facts()
            await self._link.wait_up()
            try:
                await self.announce()
            except Offline:
                self._changed.set()
                continue
            await asyncio.sleep(STATE_PAUSE)
