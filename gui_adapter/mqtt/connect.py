"""`hnefi mqtt connect`: a remote session as a local engine, lines in and lines out, for programs that start engines."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hnefi.protocol.answers import Option
from hnefi.protocol.hosts.argument_types import setting
from hnefi.protocol.hosts.broker.flags import access, add_connection
from hnefi.protocol.hosts.exit_codes import INTERRUPTED
from hnefi.protocol.hosts.shutdown import Asked
from hnefi.protocol.process import LINE_LIMIT, LineSplitter

from .command import parser

if TYPE_CHECKING:
    from hnefi.protocol.hosts.broker.client import Message
    from hnefi.protocol.hosts.broker.remote_session import RemoteSession
    from hnefi.protocol.hosts.broker.values import Access

LINE_ROOM = LINE_LIMIT - 24
"""The longest line that fits in a message together with its number."""
PARTING = 2.0
"""Seconds to wait for the last answers."""
BROKER_FAILED = 3
EARLY = 1_024
"""Lines that may wait for the session; reading pauses after that."""
GREETINGS = frozenset({"uti", "uci", "ugi"})
EXAMPLES = (
    "mqtt://127.0.0.1 --eid local",
    "mqtts://club.example --eid big --user alice --password-file ~/.club --variant brandubh",
)


def main(argv: list[str]) -> int:
    """Act as that engine until `quit` or the end of input; returns the exit code."""
    options = parser(
        "connect",
        "Opens a session at a service behind a broker and acts as an engine on standard input and output: for the\n"
        "arena, scripts and other programs that start engines.",
        EXAMPLES,
    )
    options.add_argument("url", metavar="URL", help="the broker")
    options.add_argument("--eid", default="local", help="name of the service (default local)")
    options.add_argument("--variant", default="", metavar="V", help="the variant to begin with")
    options.add_argument("--player", default="", metavar="NAME", help="who plays")
    options.add_argument(
        "--option", action="append", default=[], type=setting, metavar="N=V", help="repeatable"
    )
    add_connection(options)
    arguments = options.parse_args(argv)
    from hnefi.protocol.hosts.broker import topics

    try:
        topics.level(arguments.eid, "--eid")
    except topics.TopicError as error:
        options.error(str(error))
    settings = dict(arguments.option)
    way = access(options, arguments, arguments.url)
    # Before anything else is loaded, so that the caller sees what it is waiting for.
    print(f"info string connecting to {way.address}", flush=True)
    status = Asked().run(lambda asked: _connect(asked, way, arguments, settings))
    sys.stderr.flush()
    # The reading thread may hang in a read that only the writer could end.
    os._exit(status)


async def _connect(asked: Asked, way: Access, wanted: argparse.Namespace, settings: dict[str, str]) -> int:
    status = await asked.unless(_talk(way, wanted, settings))
    return INTERRUPTED if status is None else status


async def _talk(way: Access, wanted: argparse.Namespace, settings: dict[str, str]) -> int:
    wire = _Wire()
    talking = asyncio.create_task(_converse(wire, way, wanted, settings))
    leaving = asyncio.create_task(wire.over.wait())
    try:
        await asyncio.wait([talking, leaving], return_when=asyncio.FIRST_COMPLETED)
        return talking.result() if talking.done() else 0
    finally:
        for task in (talking, leaving):
            task.cancel()
        await asyncio.wait([talking, leaving])


async def _converse(wire: _Wire, way: Access, wanted: argparse.Namespace, settings: dict[str, str]) -> int:
    from hnefi.protocol.hosts.broker import topics
    from hnefi.protocol.hosts.broker.client import LinkError
    from hnefi.protocol.hosts.broker.remote import Remote, RemoteError

    try:
        async with Remote(way) as remote:
            wire.line(f"info string waiting for a session of {wanted.eid}")
            await remote.link.subscribe(topics.about(wanted.eid), wire.know)
            async with await remote.open(
                wanted.eid,
                variant=wanted.variant,
                player=wanted.player,
                options=settings,
                on_line=wire.line,
                on_info=wire.thinking,
            ) as session:
                await wire.carry(session)
                await wire.finish(session)
                if session.reason:
                    print(f"hnefi mqtt connect: {session.reason}", file=sys.stderr)
                    return BROKER_FAILED
    except (LinkError, RemoteError) as error:
        print(f"hnefi mqtt connect: {error}", file=sys.stderr)
        return BROKER_FAILED
    return 0


class _Wire:
    """Connects a session to our standard input and output.

    Lines that arrive before there is a session wait for it. Greetings do not: they are answered with what the service
    publishes about its engine, and the engine's own answers to them are dropped later.
    """

    def __init__(self) -> None:
        self.over = asyncio.Event()
        """Set if no session is needed any more before there is one."""
        self._loop = asyncio.get_running_loop()
        self._done = asyncio.Event()
        self._searching = False
        self._deaf = False
        self._introduction: list[str] = []
        self._greetings: frozenset[str] = frozenset()
        self._session: RemoteSession | None = None
        self._opened = asyncio.Event()
        self._early: deque[str] = deque()
        self._greeted = 0
        """The number of waiting lines, from the first, that are greetings already answered."""
        self._answered: deque[str] = deque()
        """The last words of answers that we have given in place of the engine, and that it will give again."""
        threading.Thread(target=self._read, daemon=True).start()

    # Before there is a session

    def know(self, message: Message) -> None:
        """Receive what the service publishes about its engine."""
        from hnefi.protocol.hosts.bounded_json import decode

        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
            # If this is incomplete or nonsense, the engine answers itself.
            about = decode(message.payload)
            self._introduction = _introduction(about)
            self._greetings = GREETINGS.intersection(about["greetings"])
        self._greet()

    def _greet(self) -> None:
        """Answer the greetings that come before all other lines."""
        while self._session is None and self._greeted < len(self._early):
            word = self._early[self._greeted]
            if word not in self._greetings:
                break
            self._greeted += 1
            self._answered.append(f"{word}ok")
            for line in (*self._introduction, f"{word}ok"):
                self._write(line)
        self._judge()

    def _judge(self) -> None:
        """Set `over` if nobody is waiting for anything any more."""
        nothing = self._deaf or (self._done.is_set() and self._greeted == len(self._early))
        if self._session is None and nothing:
            self.over.set()

    async def _take(self, text: str) -> None:
        """Handle a line from our caller."""
        if self._session is None and len(self._early) < EARLY:
            self._early.append(text)
            self._greet()
            return
        await self._opened.wait()
        if self._session is not None:
            await self._send(self._session, text)

    def _end(self) -> None:
        self._done.set()
        self._judge()

    # While there is one

    async def carry(self, session: RemoteSession) -> None:
        """Pass on lines until `quit`, the end of input, the end of the session, or until nobody reads our output."""
        self._session = session
        from hnefi.protocol.hosts.broker.remote_session import SessionEnded

        with contextlib.suppress(SessionEnded):
            while self._early:
                await self._send(session, self._early.popleft())
        self._opened.set()
        waits = [asyncio.create_task(event.wait()) for event in (self._done, session.ended)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def finish(self, session: RemoteSession) -> None:
        """Wait for the answers to everything sent; a search is stopped, as an engine does at its end."""
        from hnefi.protocol.hosts.broker.remote_session import SessionEnded

        with contextlib.suppress(SessionEnded, TimeoutError):
            async with asyncio.timeout(PARTING):
                if self._searching:
                    await session.send("stop")
                await session.ready()

    def line(self, text: str) -> None:
        if self._answered and (text == self._answered[0] or text.startswith(("id ", "option "))):
            if text == self._answered[0]:
                self._answered.popleft()
            return
        if text.startswith("bestmove"):
            self._searching = False
        self._write(text)

    def thinking(self, text: str) -> None:
        # Late output belongs to a search that has been answered.
        if self._searching:
            self._write(text)

    def _write(self, text: str) -> None:
        try:
            sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")
            sys.stdout.buffer.flush()
        except OSError:
            self._deaf = True
            self._end()

    def _read(self) -> None:
        """Runs in a thread, the only way to wait for pipes, files and terminals alike."""
        splitter = LineSplitter()
        while chunk := os.read(0, 65_536):
            before = splitter.overlong
            lines = splitter.feed(chunk)
            if splitter.overlong > before:
                self._tell(self._too_long)
            for line in lines:
                if not self._hand_over(line):
                    return
        if rest := splitter.rest():
            self._hand_over(rest)
        self._tell(self._end)

    def _tell(self, what: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(what)

    def _hand_over(self, line: bytes) -> bool:
        """Pass a line to the event loop; False if no more are wanted."""
        text = line.decode("utf-8", "replace").replace("\r", " ").strip()
        if text == "quit":
            self._tell(self._end)
            return False
        if not text or text.startswith("#"):
            return True
        if len(text.encode()) > LINE_ROOM:
            self._tell(self._too_long)
            return True
        try:
            asyncio.run_coroutine_threadsafe(self._take(text), self._loop).result()
        except Exception:  # noqa: BLE001 - the session or the loop has ended and reports that itself
            return False
        return True

    async def _send(self, session: RemoteSession, text: str) -> None:
        if "go" in text.split():
            self._searching = True
        await session.send(text)

    def _too_long(self) -> None:
        self._write(f"info string error line: expected at most {LINE_ROOM} bytes")


def _introduction(about: Mapping[str, Any]) -> list[str]:
    """The engine's introduction, made from what its service publishes about it."""
    lines = [f"id {key} {about[key]}" for key in ("name", "author")]
    for option in about["options"]:
        known = {{"min": "minimum", "max": "maximum"}.get(key, key): value for key, value in option.items()}
        lines.append(Option(**{**known, "values": tuple(known.get("values", ()))}).line())
    # A name may contain line breaks.
    return [" ".join(line.split()) for line in lines]
