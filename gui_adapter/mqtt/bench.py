"""`hnefi mqtt bench`: what the service takes and gives on this machine, as a table to keep.

A broker and a service are started as users start them, each a process; everything is measured from a client. Latencies
are those of a client on the same machine. Memory is read from /proc, so only on Linux.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import secrets
import signal
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hnefi.engine.wording import shorten
from hnefi.protocol.process import Listener, Process

from . import brokers, topics
from .address import Access, parse_url
from .arguments import GUEST, parser
from .check import short_check
from .client import Link, LinkError, Message
from .endings import INTERRUPTED, Asked
from .memory_use import children, resident, running
from .numbering import parse_numbered
from .remote import Remote, RemoteError
from .remote_session import RemoteSession, SessionEnded

ROUNDS = 30
THINK = 0.05
"""Seconds that a search runs before it is stopped."""
LINES = 2000
MESSAGES = 5000
SAMPLE = 10.0
"""Seconds between two looks at memory, and two lines of progress."""
SOAK_GO = "go movetime 1000"
OPEN_AT_ONCE = 4
SOAK_END = 20.0
"""Seconds that the end of an interrupted soak may take; `--help` says so."""
FAILED, ENGINE_FAILED = 3, 4
COMMAND = "import sys; from hnefi.gui_adapter.mqtt.command import main; sys.exit(main(sys.argv[1:]))"


class BenchFailed(Exception):
    """Nothing can be measured; the text is a sentence for people."""


class _Service(Listener):
    """`hnefi mqtt serve` as a process."""

    def __init__(self) -> None:
        self.ready = asyncio.Event()
        self.ended = asyncio.Event()
        self.process: Process

    def on_line(self, line: bytes, _stamp: float) -> None:
        if line.startswith(b"ready"):
            self.ready.set()

    def on_exit(self, _ending: object) -> None:
        self.ended.set()
        self.ready.set()

    @classmethod
    async def start(cls, url: str, eid: str, sessions: int) -> _Service:
        service = cls()
        many = str(sessions)
        command = [
            sys.executable,
            "-c",
            COMMAND,
            "serve",
            "--broker",
            url,
            "--eid",
            eid,
            "--log-level",
            "error",
        ]
        service.process = await Process.start([*command, "--sessions", many, "--per-user", many], service)
        # No deadline: it may have to compile, and gives itself up where its engine or its broker hangs.
        await service.ready.wait()
        if service.ended.is_set():
            words = service.process.error_tail().strip().splitlines()
            service.process.kill()
            raise BenchFailed(
                f"the service does not start: {shorten(words[-1] if words else 'no word', 200)}"
            )
        return service

    async def stop(self) -> float:
        """Seconds until it had ended."""
        began = time.monotonic()
        if self.process.exit is None:
            os.kill(self.process.pid, signal.SIGTERM)
            await self.process.wait(10.0)
        self.process.kill()
        return time.monotonic() - began


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


@dataclass(slots=True)
class Rows:
    """The table: what, its figure."""

    rows: list[tuple[str, str]] = field(default_factory=list)

    def add(self, what: str, figure: str) -> None:
        self.rows.append((what, figure))

    def times(self, what: str, seconds: Sequence[float]) -> None:
        """Median and slowest in ms."""
        middle, worst = 1000 * statistics.median(seconds), 1000 * max(seconds)
        self.add(what, f"median {middle:.1f} ms, slowest {worst:.1f} ms ({len(seconds)})")

    def lines(self) -> list[str]:
        return ["| what | figure |", "|---|---|", *(f"| {what} | {figure} |" for what, figure in self.rows)]


async def latencies(remote: Remote, eid: str, variant: str, rows: Rows) -> None:
    """One session and what its client waits for."""
    opened = []
    for _ in range(3):
        began = time.perf_counter()
        session = await remote.open(eid, variant=variant)
        opened.append(time.perf_counter() - began)
        await session.close()
    rows.times("`open` until the engine is ready", opened)
    async with await remote.open(eid, variant=variant) as session:
        stopped = []
        for _ in range(ROUNDS):
            answer = asyncio.ensure_future(session.best_move("go infinite"))
            await asyncio.sleep(THINK)
            began = time.perf_counter()
            await session.send("stop")
            await answer
            stopped.append(time.perf_counter() - began)
        rows.times("`stop` until `bestmove`", stopped)
        answer = asyncio.ensure_future(session.best_move("go infinite"))
        await asyncio.sleep(THINK)
        asked = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            await session.ready()
            asked.append(time.perf_counter() - began)
        await session.send("stop")
        await answer
        rows.times("`isready` during a search", asked)
        began = time.perf_counter()
        for _ in range(LINES):
            await session.send("query turn")
        await session.ready()
        took = time.perf_counter() - began
        rows.add("questions answered by one session", f"{LINES / took:,.0f} /s ({LINES} `query turn`)")


async def throughput(way: Access, rows: Rows) -> None:
    """Messages through the broker alone, from one client to another."""
    count, all_here = 0, asyncio.Event()

    def take(_message: Message) -> None:
        nonlocal count
        count += 1
        if count == MESSAGES:
            all_here.set()

    topic = topics.session(way.login or GUEST, f"bench-{secrets.token_hex(4)}", "out")
    async with Link(way, "bench-in") as one, Link(way, "bench-out") as other:
        await one.subscribe(topic, take)
        began = time.perf_counter()
        for _ in range(MESSAGES // 100):
            await asyncio.gather(*(other.publish(topic, b"x" * 60) for _ in range(100)))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(10):
                await all_here.wait()
        took = time.perf_counter() - began
    rows.add(
        "QoS 1 messages from client to client",
        f"{count / took:,.0f} /s ({MESSAGES - count} of {MESSAGES} lost)",
    )


async def memory(remote: Remote, eid: str, variant: str, service: int, rows: Rows) -> None:
    """What sessions that have searched for a second take."""
    sessions = [await remote.open(eid, variant=variant) for _ in range(4)]
    await asyncio.gather(*(session.best_move(SOAK_GO) for session in sessions))
    engines = [resident(process) for process in children(service)]
    rows.add("memory of the service without engines", f"{resident(service):.0f} MiB")
    if engines:
        each = statistics.mean(engines)
        rows.add("memory of a session's engine", f"{each:.0f} MiB (its share of common pages included)")
        rows.add("sessions per GiB", f"{1024 / each:.1f}")
    for session in sessions:
        await session.close()


class Soak:
    """Many sessions that play games against themselves without a pause, for long."""

    def __init__(
        self, remote: Remote, eid: str, variant: str, service: int, say: Callable[[str], None]
    ) -> None:
        self.moves = 0
        self.reopened = 0
        self.killed = 0
        self.samples: list[tuple[float, float]] = []
        """MiB of the service and of all engines."""
        self.engines: set[int] = set()
        self.failures: list[str] = []
        self._remote, self._eid, self._variant, self._service, self._say = remote, eid, variant, service, say
        self._over = asyncio.Event()
        self._gate = asyncio.Semaphore(OPEN_AT_ONCE)
        self._sessions: list[RemoteSession] = []

    async def run(self, number: int, seconds: float, asked: asyncio.Event) -> None:
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

    async def _work(self) -> None:
        """Open, search, and open again when the session was taken away."""
        while not self._over.is_set():
            try:
                async with self._gate:
                    session = await self._remote.open(
                        self._eid, variant=self._variant, on_line=lambda _line: None
                    )
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
                        move = (await session.best_move(SOAK_GO)).partition(" ")[0]
                        if move == "(none)":
                            break
                        self.moves += 1
                        await session.send(f"play {move}")
            except SessionEnded as error:
                self._fail(str(error))
            finally:
                if session in self._sessions:
                    self._sessions.remove(session)
                await session.close()

    def _fail(self, why: str) -> None:
        if len(self.failures) < 20:
            self.failures.append(why)

    async def _watch(self, began: float, seconds: float) -> None:
        minute = 0
        while (passed := time.monotonic() - began) < seconds:
            await asyncio.sleep(min(SAMPLE, max(0.1, seconds - passed)))
            engines = children(self._service)
            self.engines.update(engines)
            self.samples.append((resident(self._service), sum(map(resident, engines))))
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

    def report(self, observer: Observer, rows: Rows, number: int, seconds: float) -> None:
        rows.add("sessions, for", f"{number}, {seconds / 60:.1f} minutes, games with `{SOAK_GO}`")
        rows.add("moves answered", f"{self.moves:,}")
        rows.add("engines killed, sessions reopened meanwhile", f"{self.killed}, {self.reopened}")
        rows.add(
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
                rows.add(f"memory of {who}, second third and last third", f"{early:.0f}, {late:.0f} MiB")
        # A killed engine is the only reason for one.
        for line in [*self.failures, *observer.errors][:5]:
            rows.add("said", shorten(line, 120))


async def bench(arguments: argparse.Namespace, asked: Asked, say: Callable[[str], None], rows: Rows) -> None:
    """Everything that was asked for, into `rows`; what is there by then, if we are asked to end."""
    broker = await asked.unless(brokers.provide(arguments.broker))
    if broker is None:
        return
    service: _Service | None = None
    eid = f"bench-{secrets.token_hex(4)}"
    try:
        say(f"broker {broker.url} ({broker.kind})")
        way = Access(parse_url(broker.url))
        report = await asked.unless(short_check(way))
        if report is None:
            return
        rows.add("broker, protocol", f"{broker.kind}, {'MQTT 5' if report.version == 5 else 'MQTT 3.1.1'}")
        if report.median_ms is not None:
            rows.add("QoS 1 round trip", f"median {report.median_ms:.2f} ms")
        say("starting the service …")
        service = await asked.unless(_Service.start(broker.url, eid, max(8, arguments.sessions)))
        if service is not None:
            await _measure(arguments, asked, say, rows, way, eid, service)
    finally:
        if service is not None:
            if asked.is_set():
                service.process.kill()
            await service.stop()
        await broker.close()


async def _measure(
    arguments: argparse.Namespace,
    asked: Asked,
    say: Callable[[str], None],
    rows: Rows,
    way: Access,
    eid: str,
    service: _Service,
) -> None:
    """What a service shows its clients; at the end it is stopped."""
    observer = Observer()
    engines: set[int] = set()

    async def figures(remote: Remote) -> None:
        say("latencies …")
        await latencies(remote, eid, arguments.variant, rows)
        say("messages per second …")
        await throughput(way, rows)
        say("memory …")
        await memory(remote, eid, arguments.variant, service.process.pid, rows)

    async with Link(way, "bench-observer") as link, Remote(way) as remote:
        await link.subscribe(topics.session(remote.user, topics.ANY, "out"), observer)
        await asked.unless(figures(remote))
        if asked.is_set():
            return
        if arguments.sessions:
            observer.lines = observer.missing = observer.repeated = 0
            seconds = 60 * arguments.minutes
            soak = Soak(remote, eid, arguments.variant, service.process.pid, say)
            began = time.monotonic()
            # Interrupted it still says what it has seen, when the searches that run have answered.
            asked.limit = SOAK_END
            await soak.run(arguments.sessions, seconds, asked)
            engines = soak.engines
            soak.report(observer, rows, arguments.sessions, time.monotonic() - began)
    engines.update(children(service.process.pid))
    took = await service.stop()
    left = [process for process in engines if running(process)]
    rows.add("end of the service, engine processes left", f"{took:.1f} s, {len(left)}")


def main(argv: list[str]) -> int:
    """`hnefi mqtt bench`."""
    options = parser(
        "bench",
        "Measures the service on this machine: round trips, `stop` until `bestmove`, messages per second, memory;\n"
        "with --sessions and --minutes many sessions for long. Progress goes to standard error, the table to\n"
        "standard output. Ctrl-C ends the sessions, which takes some seconds, and shows what they did; twice: at once.",
        ["", "--broker amqtt", "--sessions 64 --minutes 10"],
    )
    options.add_argument(
        "--broker",
        default="auto",
        metavar="WHICH",
        help="auto, mosquitto, amqtt or a URL without users (default auto)",
    )
    options.add_argument("--variant", default="brandubh", metavar="V", help="default brandubh")
    options.add_argument(
        "--sessions", type=_count, default=0, metavar="N", help="so many that search at once"
    )
    options.add_argument(
        "--minutes", type=_minutes, default=10.0, metavar="M", help="for so long (default 10)"
    )
    arguments = options.parse_args(argv)

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    async def run(asked: Asked) -> int:
        rows = Rows()
        await bench(arguments, asked, say, rows)
        print("\n".join(rows.lines()))
        return INTERRUPTED if asked.is_set() else 0

    try:
        return Asked().run(run)
    except brokers.BrokerError as error:
        say(f"hnefi mqtt bench: {error}")
        return error.status
    except (LinkError, BenchFailed, ValueError) as error:
        say(f"hnefi mqtt bench: {error}")
        return FAILED
    except (RemoteError, SessionEnded) as error:
        say(f"hnefi mqtt bench: {error}")
        return ENGINE_FAILED


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 5):
        raise argparse.ArgumentTypeError(f"{shorten(text)}: expected a number of sessions up to 9999")
    return int(text)


def _minutes(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 < number <= 10_000:
        raise argparse.ArgumentTypeError(f"{shorten(text)}: expected minutes")
    return number
