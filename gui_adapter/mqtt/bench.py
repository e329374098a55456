"""`hnefi mqtt bench`: what the service costs and achieves on this machine, as a table.

The broker and the service are started as users start them, each in its own process, and everything is measured from a
client. Latencies are those of a client on the same machine. Memory is read from /proc, so it is measured only on Linux.
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
from hnefi.protocol.hosts.argument_types import number, whole
from hnefi.protocol.hosts.broker import topics
from hnefi.protocol.hosts.broker.client import Link, LinkError, Message, Offline
from hnefi.protocol.hosts.broker.flags import GUEST
from hnefi.protocol.hosts.broker.remote import Remote, RemoteError
from hnefi.protocol.hosts.broker.remote_session import SessionEnded
from hnefi.protocol.hosts.broker.values import Access, parse_url
from hnefi.protocol.hosts.exit_codes import FAULTS, INTERRUPTED, OURS_FAILED
from hnefi.protocol.hosts.shutdown import Asked
from hnefi.protocol.process import Listener, Process

from . import brokers
from .check import short_check
from .command import parser
from .soak import Observer, Pace, Soak, born, children, engines, fork_servers, resident, running

ROUNDS = 30
THINK = 0.05
"""Seconds that a search runs before it is stopped."""
LINES = 2000
MESSAGES = 5000
AT_ONCE = 100
"""Messages that one client publishes without waiting for the broker."""
BESIDE = 0.02
"""Seconds between the questions of the user who shares the service with a flooding one."""
MEMORY_GO = "go movetime 1000"
SOAK_END = 20.0
"""Seconds that the end of an interrupted soak may take; `--help` says so."""
PATIENCE = 60.0
"""Seconds that a question beside a flood may take."""
COMMAND = "import sys; from hnefi.gui_adapter.mqtt.command import main; sys.exit(main(sys.argv[1:]))"
COUNT_LIMIT = 50_000
POUR = "import asyncio, sys; from hnefi.gui_adapter.mqtt.bench import pour; asyncio.run(pour(*sys.argv[1:]))"


class BenchFailed(Exception):
    """Nothing can be measured; the text is a sentence for the user."""


class _Child(Listener):
    """One of our programs as a process; `ready` is set when it reports so, or when it has ended."""

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
    async def start(cls, what: str, program: str, *words: str) -> _Child:
        child = cls()
        child.process = await Process.start([sys.executable, "-c", program, *words], child)
        # No deadline: it may have to compile, and it gives up by itself if its engine or broker hangs.
        await child.ready.wait()
        if child.ended.is_set():
            said = child.process.error_tail().strip().splitlines()
            child.process.kill()
            raise BenchFailed(f"{what} does not start: {shorten(said[-1] if said else 'no word', 200)}")
        return child

    async def stop(self) -> float:
        """End it; returns the seconds this took."""
        began = time.monotonic()
        if self.process.exit is None:
            os.kill(self.process.pid, signal.SIGTERM)
            await self.process.wait(10.0)
        self.process.kill()
        return time.monotonic() - began


async def serve(url: str, eid: str, sessions: int) -> _Child:
    """`hnefi mqtt serve` as a process."""
    many = str(sessions)
    words = ["serve", "--broker", url, "--eid", eid, "--log-level", "error"]
    return await _Child.start("the service", COMMAND, *words, "--sessions", many, "--per-user", many)


async def pour(url: str, user: str, topic: str, number: str, payload: str) -> None:
    """The flooding program: publish `number` messages as `user`, as fast as the broker accepts them."""
    async with Link(Access(parse_url(url), user=user), "bench-flood") as link:
        print("ready", flush=True)
        with contextlib.suppress(Offline):
            for _ in range(int(number) // AT_ONCE):
                await asyncio.gather(*(link.publish(topic, payload) for _ in range(AT_ONCE)))


@dataclass(slots=True)
class Rows:
    """The table: names and figures."""

    rows: list[tuple[str, str]] = field(default_factory=list)

    def add(self, what: str, figure: str) -> None:
        """Add a row."""
        self.rows.append((what, figure))

    def times(self, what: str, seconds: Sequence[float]) -> None:
        """Add a row with the median and the slowest time in ms."""
        middle, worst = 1000 * statistics.median(seconds), 1000 * max(seconds)
        self.add(what, f"median {middle:.1f} ms, slowest {worst:.1f} ms ({len(seconds)})")

    def lines(self) -> list[str]:
        """The table in Markdown."""
        return ["| what | figure |", "|---|---|", *(f"| {what} | {figure} |" for what, figure in self.rows)]


async def latencies(remote: Remote, eid: str, variant: str, rows: Rows) -> None:
    """Measure the waiting times of the client of one session."""
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
    """Measure messages from one client to another through the broker alone."""
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
        for _ in range(MESSAGES // AT_ONCE):
            await asyncio.gather(*(other.publish(topic, b"x" * 60) for _ in range(AT_ONCE)))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(10):
                await all_here.wait()
        took = time.perf_counter() - began
    rows.add(
        "QoS 1 messages from client to client",
        f"{count / took:,.0f} /s ({MESSAGES - count} of {MESSAGES} lost)",
    )


async def flood(way: Access, remote: Remote, eid: str, variant: str, number: int, rows: Rows) -> None:
    """Measure how long one user waits for a `ping` while another floods the service from a separate process."""

    async def ping() -> float:
        began = time.perf_counter()
        await remote.request(eid, "ping", PATIENCE)
        return time.perf_counter() - began

    rows.times("`ping`", [await ping() for _ in range(ROUNDS)])
    name = f"flood-{secrets.token_hex(4)}"
    async with (
        Remote(Access(way.address, user=name)) as loud,
        await loud.open(eid, variant=variant, on_line=lambda _line: None) as session,
    ):
        for what, topic, payload in (
            ("requests", topics.requests(eid, name), '{"id":"flood","op":"list"}'),
            ("lines", topics.session(name, session.sid, "in"), "query turn"),
        ):
            url = str(way.address)
            child = await _Child.start("the flood", POUR, url, name, topic, str(number), payload)
            began = time.perf_counter()
            try:
                asked = [await ping()]
                while not child.ended.is_set():
                    await asyncio.sleep(BESIDE)
                    asked.append(await ping())
            finally:
                await child.stop()
            took = time.perf_counter() - began
            rows.times(f"`ping` while another user sends {number:,} {what} in {took:.1f} s", asked)


async def memory(remote: Remote, eid: str, variant: str, service: int, rows: Rows) -> None:
    """Measure the memory of sessions that have searched for a second."""
    sessions = [await remote.open(eid, variant=variant) for _ in range(4)]
    await asyncio.gather(*(session.best_move(MEMORY_GO) for session in sessions))
    found = [resident(process) for process in engines(service)]
    rows.add("memory of the service without engines", f"{resident(service):.0f} MiB")
    for process in fork_servers(service):
        rows.add("memory of its fork server", f"{resident(process):.0f} MiB")
    if found:
        each = statistics.mean(found)
        rows.add("memory of a session's engine", f"{each:.0f} MiB (its share of common pages included)")
        rows.add("sessions per GiB", f"{1024 / each:.1f}")
    for session in sessions:
        await session.close()


async def bench(arguments: argparse.Namespace, asked: Asked, say: Callable[[str], None], rows: Rows) -> None:
    """Measure everything requested into `rows`; after an interrupt it has what was measured by then."""
    broker = await asked.unless(brokers.provide(arguments.broker))
    if broker is None:
        return
    service: _Child | None = None
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
        service = await asked.unless(serve(broker.url, eid, max(8, arguments.sessions)))
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
    service: _Child,
) -> None:
    """Measure a service from its clients' side; stops it at the end."""
    observer = Observer()
    seen: set[tuple[int, str]] = set()

    async def figures(remote: Remote) -> None:
        say("latencies …")
        await latencies(remote, eid, arguments.variant, rows)
        say("messages per second …")
        await throughput(way, rows)
        if arguments.flood:
            say(f"two floods of {arguments.flood:,} messages …")
            await flood(way, remote, eid, arguments.variant, arguments.flood, rows)
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
            pace = Pace(arguments.movetime, arguments.pause)
            soak = Soak(remote, eid, arguments.variant, service.process.pid, say, pace)
            began = time.monotonic()
            # After an interrupt it still reports its results once the running searches have answered.
            asked.limit = SOAK_END
            await soak.run(arguments.sessions, seconds, asked)
            seen = soak.engines
            soak.report(observer, rows.add, arguments.sessions, time.monotonic() - began)
    living = (*engines(service.process.pid), *children(service.process.pid))
    seen.update((engine, born(engine)) for engine in living)
    took = await service.stop()
    left = [process for process, start in seen if running(process) and born(process) == start]
    rows.add("end of the service, engine processes left", f"{took:.1f} s, {len(left)}")


def main(argv: list[str]) -> int:
    """`hnefi mqtt bench`."""
    options = parser(
        "bench",
        "Measures the service on this machine: round trips, the time from `stop` to `bestmove`, messages per second\n"
        "and memory. With --flood, measures how long one user waits during another's flood; with --sessions and\n"
        "--minutes, plays many sessions for a long time.\n"
        "Progress goes to standard error, the table to standard output.\n"
        "Ctrl-C ends the sessions, which takes a few seconds, and shows their results; a second one exits at once.",
        ["", "--broker amqtt --flood 10000", "--sessions 64 --minutes 60 --movetime 50 --pause 5"],
    )
    options.add_argument(
        "--broker",
        default="auto",
        metavar="WHICH",
        help="auto, mosquitto, amqtt or a URL without users (default auto)",
    )
    options.add_argument("--variant", default="brandubh", metavar="V", help="default brandubh")
    count, seconds, minutes = (
        whole(0, COUNT_LIMIT), number(0, 3600, "seconds"), number(0.01, 10_000, "minutes"),
    )  # fmt: skip
    options.add_argument(
        "--flood",
        type=count,
        default=0,
        metavar="N",
        help="messages in a flood (default none; 10000)",
    )
    options.add_argument(
        "--sessions",
        type=count,
        default=0,
        metavar="N",
        help="number of sessions that search at once",
    )
    options.add_argument(
        "--movetime",
        type=count,
        default=1000,
        metavar="MS",
        help="time for each of their moves (default 1000)",
    )
    options.add_argument(
        "--pause",
        type=seconds,
        default=0.0,
        metavar="S",
        help="seconds between two moves (default 0)",
    )
    options.add_argument(
        "--minutes",
        type=minutes,
        default=10.0,
        metavar="M",
        help="how long (default 10)",
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
        return FAULTS
    except (RemoteError, SessionEnded) as error:
        say(f"hnefi mqtt bench: {error}")
        return OURS_FAILED
