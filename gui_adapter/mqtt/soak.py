"""Many sessions that play for a long time, measured from outside: `hnefi mqtt bench --sessions`.

The resources of processes are read from Linux's /proc; on other systems they are reported as zero or left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hnefi.engine.wording import shorten
from hnefi.protocol.hosts.broker.client import Message
from hnefi.protocol.hosts.broker.remote import Remote, RemoteError
from hnefi.protocol.hosts.broker.remote_session import LOST, RemoteSession, SessionEnded
from hnefi.protocol.hosts.sessions.numbering import parse_numbered

SAMPLE = 30.0
"""Seconds between two looks at memory, and two lines of progress."""
OPEN_AT_ONCE = 4
SETTLED = 10.0
"""Seconds for which the last sessions are waited for until what they leave is counted."""

Table = Callable[[str, str], None]
"""Takes a row: what, its figure."""
PROC = Path("/proc")
FORK_SERVER = b"hnefi.protocol.fork_server"


# What processes take


def resident(process: int) -> float:
    """MiB of a process, pages that it shares with others counted by its share."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in (PROC / str(process) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0


def engines(service: int) -> list[int]:
    """The engine processes of a service: its children, and the children of its fork server instead of that."""
    own = children(service)
    return [engine for child in own for engine in (children(child) if _forks(child) else [child])]


def fork_servers(service: int) -> list[int]:
    """The one that it has, if any."""
    return [child for child in children(service) if _forks(child)]


def _forks(process: int) -> bool:
    with contextlib.suppress(OSError):
        return FORK_SERVER in (PROC / str(process) / "cmdline").read_bytes()
    return False


def children(process: int) -> list[int]:
    """The processes that it started and that still run."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in (PROC / str(process) / "task").iterdir():
            with contextlib.suppress(OSError, ValueError):
                found += map(int, (task / "children").read_text().split())
    return [child for child in found if running(child)]


def running(process: int) -> bool:
    """Whether there is such a process."""
    with contextlib.suppress(OSError, IndexError):
        # Behind the name, which may hold anything: the state; Z has ended and was not yet fetched.
        return (PROC / str(process) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def _taken(service: int) -> tuple[list[int], tuple[float, float]]:
    """The engines of a service, and MiB of the service and of all of them, their fork server included."""
    found = engines(service)
    return found, (resident(service), sum(map(resident, (*found, *fork_servers(service)))))


def born(process: int) -> str:
    """When it was started, in ticks of the system: another that is given the same number has another."""
    with contextlib.suppress(OSError, IndexError):
        return (PROC / str(process) / "stat").read_text().rpartition(")")[2].split()[19]
    return ""


def handles(process: int) -> int:
    """The files, pipes and sockets that it has open."""
    with contextlib.suppress(OSError):
        return len(list((PROC / str(process) / "fd").iterdir()))
    return 0


# What is played


@dataclass(slots=True)
class Observer:
    """Counts by their numbers the lines of all sessions, apart from the clients that repair what is missing."""

    last: dict[str, int] = field(default_factory=dict)
    lines: int = 0
    missing: int = 0
    repeated: int = 0
    errors: list[str] = field(default_factory=list)

    def __call__(self, message: Message) -> None:
        numbered = parse_numbered(message.payload.decode("utf-8", "replace"))
        if numbered is None or message.retain:
            return
        session = message.topic.split("/")[4]
        expected = self.last.get(session, 0) + 1
        self.lines += 1
        if numbered.number < expected:
            self.repeated += 1
            return
        self.missing += numbered.number - expected
        self.last[session] = numbered.number
        if numbered.text.startswith("info string error") and len(self.errors) < 20:
            self.errors.append(numbered.text)


@dataclass(frozen=True, slots=True)
class Pace:
    """How each session plays: milliseconds of a move, and seconds between two."""

    movetime: int = 1000
    pause: float = 0.0


class Soak:
    """Many sessions that play games against themselves, for long."""

    def __init__(
        self, remote: Remote, eid: str, variant: str, service: int, say: Callable[[str], None], pace: Pace
    ) -> None:
        self.moves = 0
        self.reopened = 0
        self.killed = 0
        self.samples: list[tuple[float, float]] = []
        """MiB of the service and of all engines."""
        self.engines: set[tuple[int, str]] = set()
        """All that there were, by number and start."""
        self.failures: list[str] = []
        self.handles = handles(service)
        """Of the service, before there is any session."""
        self._remote, self._eid, self._variant, self._service, self._say = remote, eid, variant, service, say
        self._pace = pace
        self._over = asyncio.Event()
        self._gate = asyncio.Semaphore(OPEN_AT_ONCE)
        self._sessions: list[RemoteSession] = []

    @property
    def _go(self) -> str:
        return f"go movetime {self._pace.movetime}"

    async def run(self, number: int, seconds: float, asked: asyncio.Event) -> None:
        """Play in so many sessions for so many seconds, or until somebody asks us to end."""
        began = time.monotonic()
        workers = [asyncio.create_task(self._work()) for _ in range(number)]
        watcher = asyncio.create_task(self._watch(began, seconds))
        waiting = asyncio.create_task(asked.wait())
        try:
            await asyncio.wait([watcher, waiting], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._over.set()
            for task in (watcher, waiting):
                task.cancel()
            await asyncio.wait(workers, timeout=60)
            for worker in workers:
                worker.cancel()
            await asyncio.wait(workers)
            deadline = time.monotonic() + SETTLED
            while engines(self._service) and time.monotonic() < deadline:
                await asyncio.sleep(0.1)

    async def _work(self) -> None:
        """Open, search, and open again when the session was taken away."""
        while not self._over.is_set():
            try:
                async with self._gate:
                    session = await self._remote.open(self._eid, variant=self._variant, on_line=self._hear)
            except RemoteError as error:
                self._fail(str(error))
                await asyncio.sleep(1.0)
                continue
            self._sessions.append(session)
            try:
                while not self._over.is_set() and session in self._sessions:
                    await session.send("newgame")
                    await session.send("position startpos")
                    while not self._over.is_set() and session in self._sessions:
                        move = (await session.best_move(self._go)).partition(" ")[0]
                        if move == "(none)":
                            break
                        self.moves += 1
                        await session.send(f"play {move}")
                        if self._pace.pause:
                            await asyncio.sleep(self._pace.pause)
            except SessionEnded as error:
                self._fail(str(error))
            finally:
                if session in self._sessions:
                    self._sessions.remove(session)
                await session.close()

    def _hear(self, line: str) -> None:
        if line.startswith(LOST):
            self._fail(line)

    def _fail(self, why: str) -> None:
        if len(self.failures) < 20:
            self.failures.append(why)

    async def _watch(self, began: float, seconds: float) -> None:
        minute = 0
        while (passed := time.monotonic() - began) < seconds:
            await asyncio.sleep(min(SAMPLE, max(0.1, seconds - passed)))
            # Beside the loop: the system takes long to add up what many processes share.
            engines, sample = await asyncio.to_thread(_taken, self._service)
            self.engines.update((engine, born(engine)) for engine in engines)
            self.samples.append(sample)
            service, sum_of_engines = self.samples[-1]
            self._say(
                f"{time.monotonic() - began:6.0f} s  {len(engines)} engines  {self.moves} moves  service "
                f"{service:.0f} MiB  engines {sum_of_engines:.0f} MiB"
            )
            if int(passed // 60) > minute:
                minute = int(passed // 60)
                self._disturb(engines)

    def _disturb(self, engines: Sequence[int]) -> None:
        """Every minute one engine is killed, and another session is closed and opened anew."""
        if engines:
            with contextlib.suppress(OSError):
                os.kill(secrets.choice(engines), signal.SIGKILL)
                self.killed += 1
        if self._sessions:
            self._sessions.remove(secrets.choice(self._sessions))
            self.reopened += 1

    def report(self, observer: Observer, rows: Table, number: int, seconds: float) -> None:
        """Fill the table with what was counted."""
        pause = f" and {self._pace.pause:g} s between two" if self._pace.pause else ""
        rows("sessions, for", f"{number}, {seconds / 60:.1f} minutes, games with `{self._go}`{pause}")
        rows("moves answered", f"{self.moves:,}")
        rows("engines killed, sessions reopened meanwhile", f"{self.killed}, {self.reopened}")
        rows(
            "lines, of them lost (by number), repeated",
            f"{observer.lines:,}, {observer.missing}, {observer.repeated}",
        )
        if self.samples:
            third = max(1, len(self.samples) // 3)
            for index, who in enumerate(("service", "all engines")):
                early = statistics.median(
                    sample[index] for sample in self.samples[third : 2 * third] or self.samples
                )
                late = statistics.median(sample[index] for sample in self.samples[-third:])
                rows(f"memory of {who}, second third and last third", f"{early:.0f}, {late:.0f} MiB")
        rows("file handles of the service before, after", f"{self.handles}, {handles(self._service)}")
        # A killed engine is the only reason for one.
        for line in [*self.failures, *observer.errors][:5]:
            rows("said", shorten(line, 120))
