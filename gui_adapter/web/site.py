"""The sessions of all pages: opened within limits, kept for a while after a page goes away, ended with the server.

Nothing here knows HTTP. A page holds the random names of its sessions; knowing such a name means owning the session.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hnefi.protocol.hosts.journal import Journal
from hnefi.protocol.hosts.sessions.engine_process import Policy, RequestError, Wanted
from hnefi.protocol.hosts.sessions.recording import Recording

from .addresses import Network
from .fairness import Studies
from .helper import Helper
from .matches import Matches
from .runs import Runs
from .web_session import WebSession

if TYPE_CHECKING:
    from hnefi.protocol.hosts.broker.pool import Pool

LOG = logging.getLogger("hnefi.web")

RETURN: Final = 60.0
"""Seconds that a session waits for its page to come back."""
SWEEP: Final = 2.0
DRAIN: Final = 2.0
"""Seconds for running searches to answer when the server ends."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The limits of a site. `idle` and `back` are in seconds; first frames must contain `token`. Runs and charts in the
    folders `watched` are shown; at most `matches` are played at once, and are written to `match_folder`. If there is a
    pool `engines`, its hosts run the engines of sessions. One address may have `per_address` games and the same number
    of pages, and make `rate` requests a second (0: no limit); `proxies` are trusted to name their clients."""

    policy: Policy
    sessions: int = 16
    per_page: int = 4
    pages: int = 256
    idle: float = 1800.0
    back: float = RETURN
    token: str = ""
    names: tuple[str, ...] = ()
    journal: Journal | None = None
    trace: Callable[[float, str, bytes], None] | None = None
    watched: tuple[Path, ...] = ()
    matches: int = 0
    match_folder: Path = Path()
    engines: Pool | None = None
    per_address: int = 0
    rate: float = 0.0
    proxies: tuple[Network, ...] = ()


class Site:
    """All sessions by name."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.sessions: dict[str, WebSession] = {}
        self.helper = Helper()
        self.studies = Studies()
        self.runs = Runs(settings.watched)
        self.matches = Matches(self.runs, settings.match_folder, settings.matches)
        self.draining = False
        self.began = time.monotonic()
        self.counts: Counter[str] = Counter()
        """Counters: games `opened`, `refused`, `failed`, engines `restarted`; `frames_in` and `frames_out`, frames
        `dropped` because there were too many, pages `let_go` because they did not read; `pages_refused` because there
        were too many, `refused_by_address` (games and pages, which are also counted above) and `requests_refused`
        because of the limits for one address."""
        self._closings: set[asyncio.Task[None]] = set()
        self._sweeper = asyncio.create_task(self._sweep(), name="sweep")

    def open(
        self, wanted: Wanted, own: int, failed: Callable[[str, RequestError], None], address: str = ""
    ) -> WebSession:
        """A session whose engine is being started; lines may be sent to it at once. The page at `address` already has
        `own` sessions.

        `failed` is called if the engine cannot be started. RequestError if there is no room.
        """
        try:
            self._demand_room(own, address)
        except RequestError:
            self.counts["refused"] += 1
            raise
        settings = self.settings
        sid = secrets.token_urlsafe(16)
        recording = None
        if settings.journal is not None:
            recording = Recording(settings.journal, (("Service", "web"),))
        policy = settings.policy
        if settings.engines is not None:
            policy = replace(policy, starter=settings.engines.starter(wanted.variant or policy.variant))
        session = self.sessions[sid] = WebSession(wanted, sid, policy, recording)
        session.address = address
        session.opening = asyncio.create_task(self._start(session, failed), name=f"open {sid[:6]}")
        return session

    def _demand_room(self, own: int, address: str) -> None:
        settings = self.settings
        if self.draining:
            raise RequestError("draining", "the server is closing and takes no more games")
        if settings.engines is not None and settings.engines.trouble:
            raise RequestError("engine_failed", settings.engines.trouble)
        if own >= settings.per_page:
            raise RequestError("too_many", f"this page has {own} games: close one first")
        if settings.per_address:
            there = sum(session.address == address for session in self.sessions.values())
            if there >= settings.per_address:
                self.counts["refused_by_address"] += 1
                raise RequestError("too_many", f"{there} games are open from your address: close one first")
        if len(self.sessions) >= settings.sessions:
            raise RequestError(
                "too_many", f"all {settings.sessions} games of this server are taken: try again later"
            )

    async def _start(self, session: WebSession, failed: Callable[[str, RequestError], None]) -> None:
        try:
            await session.start()
        except RequestError as error:
            self.sessions.pop(session.sid, None)
            self.counts["failed"] += 1
            failed(session.sid, error)
            return
        self.counts["opened"] += 1
        session.touched = time.monotonic()
        session.on_end = lambda reason: self.close(session, reason)
        LOG.info("open session=%s variant=%s", session.sid[:6], session.variant and session.variant.name)

    def close(self, session: WebSession, reason: str) -> None:
        """End a session; this always runs to completion, so that no engine is left over."""
        if self.sessions.pop(session.sid, None) is not None:
            self.counts["restarted"] += session.restarts
            self._spawn(self._close(session, reason))

    def count(self, name: str) -> int:
        """The value of a counter; engines of open sessions count as soon as they are restarted."""
        now = sum(session.restarts for session in self.sessions.values()) if name == "restarted" else 0
        return self.counts[name] + now

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._closings.add(task)
        task.add_done_callback(self._closings.discard)

    async def _close(self, session: WebSession, reason: str) -> None:
        opening = session.opening
        assert opening is not None
        if not opening.done():
            opening.cancel()
            await asyncio.wait([opening])
        if not session.begun:
            await session.outgoing.close()
            return
        session.on_end = None
        await session.close(reason)
        LOG.info("close session=%s reason=%s", session.sid[:6], reason)

    async def _sweep(self) -> None:
        """End sessions whose pages have not come back, and unused ones."""
        while True:
            await asyncio.sleep(min(SWEEP, self.settings.idle / 2, self.settings.back / 2))
            now = time.monotonic()
            for session in list(self.sessions.values()):
                kept = self.settings.back if session.kept is None else session.kept
                if session.left is not None and now - session.left > kept:
                    self.close(session, "its page has gone")
                elif session.begun and not session.searching and now - session.touched > self.settings.idle:
                    session.outgoing.say(f"info string closing: idle for {self.settings.idle:g} s")
                    self.close(session, "idle")

    async def drain(self) -> None:
        """Accept no more sessions, let running searches answer, and close everything."""
        self.draining = True
        self._sweeper.cancel()
        others = asyncio.gather(self.helper.close(), self.matches.close(), self.runs.close())
        sessions = list(self.sessions.values())
        begun = [session for session in sessions if session.opening is not None and session.opening.done()]
        for session in begun:
            session.outgoing.say("info string closing")
        await asyncio.gather(*(session.stop() for session in begun))
        deadline = time.monotonic() + DRAIN
        while any(session.answers_soon for session in begun) and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        for session in sessions:
            self.close(session, "the server has ended")
        while self._closings:
            await asyncio.wait(self._closings)
        await others
        with contextlib.suppress(asyncio.CancelledError):
            await self._sweeper
