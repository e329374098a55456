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
"""Seconds between two measurements of memory, and between two lines of progress."""
OPEN_AT_ONCE = 4
SETTLED = 10.0
"""Seconds to wait for the end of the last sessions before leftovers are counted."""

Table = Callable[[str, str], None]
"""Called with a row: name and figure."""
PROC = Path("/proc")
FORK_SERVER = b"hnefi.protocol.fork_server"


# Resources of processes


def resident(process: int) -> float:
    """MiB of a process, with shared pages divided among their users."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in (PROC / str(process) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0


def engines(service: int) -> list[int]:
    """The engine processes of a service: its children, with its fork server replaced by that one's children."""
    own = children(service)
    return [engine for child in own for engine in (children(child) if _forks(child) else [child])]


def fork_servers(service: int) -> list[int]:
    """The fork server of a service, if any."""
    return [child for child in children(service) if _forks(child)]


def _forks(process: int) -> bool:
    with contextlib.suppress(OSError):
        return FORK_SERVER in (PROC / str(process) / "cmdline").read_bytes()
    return False


def children(process: int) -> list[int]:
    """The running children of a process."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in (PROC / str(process) / "task").iterdir():
            with contextlib.suppress(OSError, ValueError):
                found += map(int, (task / "children").read_text().split())
    return [child for child in found if running(child)]


def running(process: int) -> bool:
    """Whether a process exists and is running."""
    with contextlib.suppress(OSError, IndexError):
        # The state is after the name, which may contain anything; Z has ended but has not been reaped.
        return (PROC / str(process) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def _taken(service: int) -> tuple[list[int], tuple[float, float]]:
    """The engines of a service, and MiB of the service and of all engines, including their fork server."""
    found = engines(service)
    return found, (resident(service), sum(map(resident, (*found, *fork_servers(service)))))


def born(process: int) -> str:
    """The start time of a process in ticks, which distinguishes it from a later one with the same id."""
    with contextlib.suppress(OSError, IndexError):
        return (PROC / str(process) / "stat").read_text().rpartition(")")[2].split()[19]
    return ""


def handles(process: int) -> int:
    """The number of files, pipes and sockets that a process has open."""
    with contextlib.suppress(OSError):
        return len(list((PROC / str(process) / "fd").iterdir()))
    return 0


# Games


@dataclass(slots=True)
class Observer:
    """Counts the lines of all sessions by number, independently of the clients, which repair gaps."""

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
    """The pace of a session: milliseconds per move, and seconds between moves."""

    movetime: int = 1000
    pause: float = 0.0


class Soak:
    """Many sessions that play games against themselves for a long time."""

    def __init__(
        self, remote: Remote, eid: str, variant: str, service: int, say: Callable[[str], None], pace: Pace
    ) -> None:
        self.moves = 0
        self.reopened = 0
        self.killed = 0
        self.samples: list[tuple[float, float]] = []
        """MiB of the service and of all engines."""
        self.engines: set[tuple[int, str]] = set()
        """All engines so far, by process id and start time."""
        self.failures: list[str] = []
        self.handles = handles(service)
        """Open handles of the service before there is any session."""
        self._remote, self._eid, self._variant, self._service, self._say = remote, eid, variant, service, say
        self._pace = pace
        self._over = asyncio.Event()
        self._gate = asyncio.Semaphore(OPEN_AT_ONCE)
        self._sessions: list[RemoteSession] = []

    @property
    def _go(self) -> str:
        return f"go movetime {self._pace.movetime}"

    async def run(self, number: int, seconds: float, asked: asyncio.Event) -> None:
        """Play in `number` sessions for `seconds` seconds, or until `asked` is set."""
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
        """Open a session and search; open another one if the session is taken away."""
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
            # In a thread: the system takes long to add up the shared memory of many processes.
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
        """Every minute, kill one engine, and close and reopen another session."""
        if engines:
            with contextlib.suppress(OSError):
                os.kill(secrets.choice(engines), signal.SIGKILL)
                self.killed += 1
        if self._sessions:
            self._sessions.remove(secrets.choice(self._sessions))
            self.reopened += 1

    def report(self, observer: Observer, rows: Table, number: int, seconds: float) -> None:
        """Fill the table with the results."""
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
        # Only killed engines are a legitimate reason for errors.
        for line in [*self.failures, *observer.errors][:5]:
            rows("said", shorten(line, 120))
