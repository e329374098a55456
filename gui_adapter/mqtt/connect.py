"""`hnefi mqtt connect`: a remote session as a local engine, lines in and lines out, for whoever starts engines."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import threading
from typing import TYPE_CHECKING

from hnefi.protocol.process import LINE_LIMIT, LineSplitter

from .arguments import access, add_connection, parser
from .endings import INTERRUPTED, Asked

if TYPE_CHECKING:
    from .address import Access
    from .remote_session import RemoteSession

LINE_ROOM = LINE_LIMIT - 24
"""A longer line has no room in a message, with its number."""
PARTING = 2.0
"""Seconds that the last answers may take."""
BROKER_FAILED = 3
EXAMPLES = (
    "mqtt://127.0.0.1 --eid local",
    "mqtts://club.example --eid big --user alice --password-file ~/.club --variant brandubh",
)


def main(argv: list[str]) -> int:
    """Be that engine until `quit` or the end of input; the exit code."""
    options = parser(
        "connect",
        "A session of a service behind a broker, spoken to on standard input and output like an engine of this\n"
        "machine: for the arena, scripts and whatever else starts engines.",
        EXAMPLES,
    )
    options.add_argument("url", metavar="URL", help="the broker")
    options.add_argument("--eid", default="local", help="name of the service (default local)")
    options.add_argument("--variant", default="", metavar="V", help="the game to begin with")
    options.add_argument("--player", default="", metavar="NAME", help="who plays")
    options.add_argument("--option", action="append", default=[], metavar="N=V", help="repeatable")
    add_connection(options)
    arguments = options.parse_args(argv)
    from . import topics

    try:
        topics.level(arguments.eid, "--eid")
    except topics.TopicError as error:
        options.error(str(error))
    settings = {}
    for text in arguments.option:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            options.error(f"--option {text[:80]!r}: expected NAME=VALUE")
        settings[name.strip()] = value.strip()
    way = access(options, arguments, arguments.url)
    status = Asked().run(lambda asked: _connect(asked, way, arguments, settings))
    sys.stderr.flush()
    # The thread that reads may hang in a read that only its writer could end.
    os._exit(status)


async def _connect(asked: Asked, way: Access, wanted: argparse.Namespace, settings: dict[str, str]) -> int:
    status = await asked.unless(_talk(way, wanted, settings))
    return INTERRUPTED if status is None else status


async def _talk(way: Access, wanted: argparse.Namespace, settings: dict[str, str]) -> int:
    from .client import LinkError
    from .remote import Remote, RemoteError

    wire = _Wire()
    try:
        async with (
            Remote(way) as remote,
            await remote.open(
                wanted.eid,
                variant=wanted.variant,
                player=wanted.player,
                options=settings,
                on_line=wire.line,
                on_info=wire.thinking,
            ) as session,
        ):
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
    """Between a session and our standard input and output."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._done = asyncio.Event()
        self._searching = False

    async def carry(self, session: RemoteSession) -> None:
        """Until `quit`, the end of input, the end of the session, or nobody reads us any more."""
        threading.Thread(target=self._read, args=(session,), daemon=True).start()
        waits = [asyncio.create_task(event.wait()) for event in (self._done, session.ended)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def finish(self, session: RemoteSession) -> None:
        """Hear the answers to all that was sent; a search is stopped, as an engine does at its end."""
        from .remote_session import SessionEnded

        with contextlib.suppress(SessionEnded, TimeoutError):
            async with asyncio.timeout(PARTING):
                if self._searching:
                    await session.send("stop")
                await session.ready()

    def line(self, text: str) -> None:
        if text.startswith("bestmove"):
            self._searching = False
        self._write(text)

    def thinking(self, text: str) -> None:
        # What comes late belongs to a search that has been answered.
        if self._searching:
            self._write(text)

    def _write(self, text: str) -> None:
        try:
            sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")
            sys.stdout.buffer.flush()
        except OSError:
            self._done.set()

    def _read(self, session: RemoteSession) -> None:
        """In a thread of its own: a pipe, a file or a terminal can be waited for in one way only."""
        splitter = LineSplitter()
        while chunk := os.read(0, 65_536):
            before = splitter.overlong
            lines = splitter.feed(chunk)
            if splitter.overlong > before:
                self._loop.call_soon_threadsafe(self._too_long)
            for line in lines:
                if not self._hand_over(session, line):
                    return
        if rest := splitter.rest():
            self._hand_over(session, rest)
        self._loop.call_soon_threadsafe(self._done.set)

    def _hand_over(self, session: RemoteSession, line: bytes) -> bool:
        """False when there is no more to be handed over."""
        text = line.decode("utf-8", "replace").replace("\r", " ").strip()
        if text == "quit":
            self._loop.call_soon_threadsafe(self._done.set)
            return False
        if not text or text.startswith("#"):
            return True
        if len(text.encode()) > LINE_ROOM:
            self._loop.call_soon_threadsafe(self._too_long)
            return True
        try:
            asyncio.run_coroutine_threadsafe(self._send(session, text), self._loop).result()
        except Exception:  # noqa: BLE001 - the session or the loop has ended, and says so itself
            return False
        return True

    async def _send(self, session: RemoteSession, text: str) -> None:
        if "go" in text.split():
            self._searching = True
        await session.send(text)

    def _too_long(self) -> None:
        self._write(f"info string error line: expected at most {LINE_ROOM} bytes")
