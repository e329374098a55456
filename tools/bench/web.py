"""`hnefi bench web`: what the web server adds to an engine's answer, with many pages and with one that does not read.

The real server runs as a process on a free port; we talk to it through WebSockets, as pages do. Wall time is measured
from outside, as medians and maxima; on a busy machine the maxima say more about the machine than about the server.
Round trips to an engine through a pipe and through the server alternate. Linux only, for processor time and memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final, Self

from hnefi.protocol.client import Engine, own_command
from hnefi.protocol.hosts.exit_codes import FAULTS, USAGE
from hnefi.protocol.process import Exit, Listener, Process

from ..common.arguments import let_interrupt_end_us, parser, positive
from .latency import Measurement
from .sessions import cpu, memory

if TYPE_CHECKING:
    import aiohttp

OPENINGS: Final = 5
"""Games opened after the first one, which may have to wait for the fork server."""
PATIENCE: Final = 600.0
"""Seconds to wait for anything that may have to compile first."""
VARIANT: Final = "brandubh"


class Server(Listener):
    """The server as a process."""

    def __init__(self) -> None:
        self.address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.process: Process

    def on_line(self, line: bytes, _stamp: float) -> None:
        word, _, address = line.decode().partition(" ")
        if word == "web" and not self.address.done():
            self.address.set_result(address.rstrip("/"))

    def on_exit(self, ending: Exit) -> None:
        if not self.address.done():
            said = self.process.error_tail().strip() or ending.text
            self.address.set_exception(OSError(f"the server has ended: {said}"))

    @classmethod
    @contextlib.asynccontextmanager
    async def running(cls, flags: Sequence[str]) -> AsyncIterator[tuple[Self, str]]:
        """A server that ends with the block, and its address."""
        server = cls()
        words = [sys.executable, "-m", "hnefi.tools.cli", "web", "--port", "0", "--no-record", *flags]
        server.process = await Process.start(words, server)
        try:
            yield server, await asyncio.wait_for(server.address, PATIENCE)
        finally:
            await server.process.wind_up(grace=0.0, mercy=10.0)

    def family(self) -> list[int]:
        """The ids of all its processes."""
        parents: dict[int, list[int]] = {}
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                parents.setdefault(parent, []).append(int(entry.name))
        found = [self.process.pid]
        for pid in found:
            found += parents.get(pid, [])
        return found

    def work(self) -> tuple[float, float]:
        """Milliseconds of processor time used by the server, and by its engines."""
        own, *others = self.family()
        spent = 0.0
        for pid in others:
            with contextlib.suppress(OSError):  # it has ended
                spent += cpu(pid)
        return cpu(own), spent


class Page:
    """One page: a WebSocket and at most one game."""

    def __init__(self, web: aiohttp.ClientWebSocketResponse) -> None:
        self._web = web
        self.sid = ""

    async def say(self, **frame: Any) -> None:
        """Send one frame."""
        await self._web.send_str(json.dumps(frame))

    async def hear(self, kind: str, text: str = "") -> dict[str, Any]:
        """The next frame of that kind whose line begins with `text`; OSError if the server closes the socket."""
        async with asyncio.timeout(PATIENCE):
            while True:
                message = await self._web.receive()
                if not isinstance(message.data, str):
                    raise OSError(f"the server has closed a page: {self._web.close_code}")
                frame = json.loads(message.data)
                if frame["t"] == "error":
                    raise OSError(f"the server says: {frame['text']}")
                if frame["t"] == kind and frame.get("text", "").startswith(text):
                    return dict(frame)

    async def open(self) -> float:
        """Begin a game; the seconds until it can be played."""
        began = time.perf_counter()
        await self.say(t="open", id=1, variant=VARIANT, options={"Hash": "16"})
        self.sid = (await self.hear("opened"))["s"]
        await self.hear("state")
        return time.perf_counter() - began

    async def line(self, text: str) -> None:
        """Send a line to the page's session."""
        await self.say(t="line", s=self.sid, n=0, text=text)

    async def echo(self) -> float:
        """Seconds of a round trip of `isready`."""
        began = time.perf_counter()
        await self.line("isready")
        await self.hear("line", "readyok")
        return time.perf_counter() - began


class Visitor:
    """Opens pages of one server."""

    def __init__(self, client: aiohttp.ClientSession, url: str) -> None:
        self._client, self._url = client, url

    @contextlib.asynccontextmanager
    async def page(self) -> AsyncIterator[Page]:
        """An open page that the server has greeted."""
        async with self._client.ws_connect(f"{self._url}/ws", origin=self._url) as web:
            page = Page(web)
            await page.say(t="hello")
            await page.hear("welcome")
            yield page

    async def health(self) -> dict[str, Any]:
        """What the server reports about itself."""
        async with self._client.get(f"{self._url}/healthz") as answer:
            return dict(await answer.json())


def row(name: str, seconds: Sequence[float], target: str = "") -> Measurement:
    """Times as a line of the table."""
    return Measurement(name, "ms", len(seconds), 1000 * median(seconds), 1000 * max(seconds), target)


async def echoes(visitor: Visitor, tries: int, server: Server | None = None) -> AsyncIterator[Measurement]:
    """Round trips through a pipe and through the server in turn, and what the server adds."""
    pace = 0.05
    """Seconds between two round trips: the server accepts 20 frames a second from a page."""
    async with visitor.page() as page:
        yield row("the first game opens", [await page.open()])
        opened = []
        for _ in range(OPENINGS):
            async with visitor.page() as other:
                opened.append(await other.open())
        yield row("a further game opens", opened)
        async with await Engine.start(own_command(), "uti") as engine:
            await engine.set_variant(VARIANT)
            piped, through = [], []
            before = server.work()[0] if server else 0.0
            for _ in range(tries):
                began = time.perf_counter()
                await engine.is_ready()
                piped.append(time.perf_counter() - began)
                through.append(await page.echo())
                await asyncio.sleep(pace)
            spent = (server.work()[0] - before) / tries if server else 0.0
    yield row("isready by pipe", piped)
    yield row("isready through the server", through)
    yield row(
        "what the server adds", [max(0.0, b - a) for a, b in zip(piped, through, strict=True)], "median 2 ms"
    )
    if server:
        yield Measurement("processor time of that, the server", "ms", tries, spent, spent, "")


async def crowd(visitor: Visitor, sockets: int, tries: int) -> AsyncIterator[Measurement]:
    """Many pages at once."""
    async with contextlib.AsyncExitStack() as stack:
        greeted = []
        for _ in range(sockets - 1):
            began = time.perf_counter()
            await stack.enter_async_context(visitor.page())
            greeted.append(time.perf_counter() - began)
        yield row(f"{sockets} pages: connection to welcome", greeted)
        page = await stack.enter_async_context(visitor.page())
        await page.open()
        times = []
        for _ in range(tries):
            times.append(await page.echo())
            await asyncio.sleep(0.05)
        yield row(f"isready beside {sockets - 1} pages", times)


async def bad_reader(visitor: Visitor, server: Server) -> AsyncIterator[Measurement]:
    """A page that asks but does not read the answers, until it is disconnected, and another page meanwhile."""
    async with visitor.page() as deaf, visitor.page() as other:
        await other.open()
        before = most = memory(server.process.pid)[0]
        began = time.perf_counter()
        times = []
        while not (await visitor.health())["counts"]["let_go"]:
            if time.perf_counter() - began > PATIENCE:
                raise OSError("a page that does not read is not disconnected")
            with contextlib.suppress(ConnectionError):
                for ident in (1, 2):
                    await deaf.say(t="workshop", id=ident)
            times.append(await other.echo())
            most = max(most, memory(server.process.pid)[0])
            await asyncio.sleep(0.05)
        took = time.perf_counter() - began
    yield row("a page that does not read is disconnected", [took])
    yield row("isready of another page meanwhile", times)
    yield Measurement("the server's memory meanwhile, more", "MiB", 1, most - before, most - before, "")


async def moves(visitor: Visitor, server: Server, tries: int) -> AsyncIterator[Measurement]:
    """The processor time of a level's move besides its search: position, search of ten nodes, state."""
    async with visitor.page() as page:
        await page.open()
        await page.line("setoption name SkillLevel value 0")
        own, engines = server.work()
        for _ in range(tries):
            await page.line("position startpos moves d1c1")
            await page.hear("state")
            await page.line("go movetime 1000")
            await page.hear("line", "bestmove")
            await page.hear("state")
            await asyncio.sleep(0.15)
        own_after, engines_after = server.work()
    for name, spent in (("the server", own_after - own), ("the engine", engines_after - engines)):
        yield Measurement(f"processor time of a move, {name}", "ms", tries, spent / tries, spent / tries, "")


async def measure(flags: Sequence[str], sockets: int, tries: int) -> AsyncIterator[Measurement]:
    """All figures, one after another."""
    import aiohttp

    limits = ["--pages", str(sockets + 8), "--sessions", "64"]
    async with (
        Server.running([*flags, *limits]) as (server, url),
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client,
    ):
        visitor = Visitor(client, url)
        for figures in (
            echoes(visitor, tries, server),
            crowd(visitor, sockets, tries),
            moves(visitor, server, tries),
            bad_reader(visitor, server),
        ):
            async for figure in figures:
                yield figure


def main(argv: list[str]) -> int:
    """The command line."""
    options = parser(
        "bench web",
        "Starts `hnefi web` and talks to it as pages do. Measures what the server adds to the round trip of a line, "
        "many pages at once, the CPU time of a move, and what happens to a page that does not read. Linux only.",
        ["", "--sockets 1000 --tries 300", "--engines mqtt://127.0.0.1"],
    )
    options.add_argument(
        "--sockets", metavar="N", type=positive, default=200, help="pages at once (default 200)"
    )
    options.add_argument(
        "--tries", metavar="N", type=positive, default=100, help="measurements of each figure (default 100)"
    )
    options.add_argument(
        "--engines", metavar="URL", help="the broker of engine hosts (default: engines of this machine)"
    )
    options.add_argument("--json", action="store_true", help="the figures as JSON")
    arguments = options.parse_args(argv)
    try:
        import aiohttp  # noqa: F401
    except ImportError:
        options.exit(
            USAGE,
            "hnefi bench web: error: the package aiohttp is missing: `pip install 'hnefi[web]'` brings it\n",
        )
    if sys.platform != "linux":
        options.exit(USAGE, "hnefi bench web: error: processor time is read from /proc: expected Linux\n")
    let_interrupt_end_us()
    flags = ["--engines", arguments.engines] if arguments.engines else []

    async def whole() -> list[Measurement]:
        found = []
        async for figure in measure(flags, arguments.sockets, arguments.tries):
            found.append(figure)
            if not arguments.json:
                print(_shown(figure), flush=True)
        return found

    try:
        found = asyncio.run(whole())
    except OSError as error:
        options.exit(FAULTS, f"hnefi bench web: error: {error}\n")
    if arguments.json:
        print(json.dumps([asdict(figure) for figure in found]))
    return 0


def _shown(figure: Measurement) -> str:
    if figure.tries == 1 or figure.median == figure.max:
        return f"{figure.name:44} {figure.median:9.2f} {figure.unit}"
    line = f"{figure.name:44} {figure.median:9.2f} {figure.unit}, at most {figure.max:.2f} ({figure.tries} tries)"
    return f"{line}, goal: {figure.target}" if figure.target else line
