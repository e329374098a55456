"""Engines of the Hnefatafl Text Protocol behind `protocol.hosts.guest`: two kinds with the same lines.

Most are driven on their standard input and output. Others can only connect to a light server, so we act as one. Neither
kind can be stopped or set to a position: they follow whole games from the start, with the moves of both sides.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from hnefi.engine.games.tafl.variant import Variant, VariantError, find
from hnefi.engine.session import SessionError
from hnefi.engine.sides import Side
from hnefi.engine.wording import shorten
from hnefi.protocol import format as protocol
from hnefi.protocol.answers import Option
from hnefi.protocol.errors import last_line
from hnefi.protocol.hosts.adapter import fill
from hnefi.protocol.hosts.connecting import reason_of
from hnefi.protocol.hosts.guest import GameState, Guest, GuestFailed
from hnefi.protocol.hosts.hnefatafl_org_notation import VARIANTS, NotationError
from hnefi.protocol.hosts.rulebook import Line
from hnefi.protocol.hosts.trace import Trace
from hnefi.protocol.messages import Go
from hnefi.protocol.process import Exit, Listener, Process

from . import lines as say
from .game import RESIGN

DEFAULT: Final = VARIANTS[11]
NEEDED: Final = ("board_size", "play", "generate_move")
"""Commands that an engine must have."""
START: Final = 60.0
"""Seconds within which it must answer for the first time, or connect."""
PATIENCE: Final = 10.0
"""Seconds for an answer that needs no thinking, and for reading our lines."""
GRACE: Final = 1.0
"""Seconds that an engine has to end by itself."""
MERCY: Final = 0.4
"""Seconds from TERM to KILL."""
TALK: Final = 16 * 1024 * 1024
"""Bytes that an engine may print before it answers; one that prints more will never answer."""
ADDRESSES: Final = 20
"""Loopback addresses to try until one is free."""
PLACES: Final = ("{host}", "{port}")
"""Placeholders for the address in the command of an engine that connects."""
HOST, PORT = PLACES


@dataclass(frozen=True, slots=True)
class Command:
    """The command that starts an engine, with the placeholders `{host}` and `{port}` for one that connects."""

    words: tuple[str, ...]
    address: str = ""
    """Where to listen; empty: a free loopback address for each game."""

    @property
    def connects(self) -> bool:
        """Whether the engine connects to a light server."""
        return any(HOST in word for word in self.words)

    @property
    def name(self) -> str:
        """The default name of an engine: its program, or the file that an interpreter runs."""
        files = [word for word in self.words if word.endswith((".jar", ".py", ".sh"))]
        return PurePath((files or self.words)[0]).name


class HtpEngine(Guest, Listener):
    """One process at a time."""

    variants: tuple[str, ...]

    def __init__(self, command: Command, name: str, variant: str, trace: Trace | None) -> None:
        self.name = name or command.name
        self.options = (
            Option("Variant", "combo", variant, values=self.variants),
            Option("Side", "combo", "auto", values=("auto", "a", "d")),
        )
        self._command = command
        self._variant = find(variant)
        self._trace = trace
        self._process: Process | None = None
        self._failure: str | None = None
        self._ending = False
        """Whether we are ending it ourselves."""
        self._starting: asyncio.Lock = asyncio.Lock()
        self._awaited: tuple[asyncio.Future[str], Callable[[str], bool]] | None = None
        self._shown: Line | None = None
        """The moves that it has been told; None before a game has begun."""
        self._told = False
        self._talk = 0
        """Bytes since the last question."""
        self._received = 0
        """Bytes of the process that have been counted."""

    @property
    def variant(self) -> Variant:
        """The variant that it is playing."""
        return self._variant

    async def set(self, name: str, value: str | None) -> str | None:
        """Set an option; the line that chooses the game, if that is another now."""
        if name != "Variant":
            return None
        text = value or ""
        with contextlib.suppress(VariantError):
            variant = find(text)
            if variant.name in self.variants:
                self._variant, self._shown = variant, None
                return f"variant {variant.name}"
        raise SessionError(f"variant {protocol.shown(text)}", f"expected one of {', '.join(self.variants)}")

    @property
    def _size(self) -> int:
        return self._variant.size

    async def prepare(self, side: Side | None = None) -> None:  # noqa: ARG002
        """Get a process ready to play from the start."""
        async with self._starting:
            if self._failure is None and self._process is None:
                self._ending = False
                self._shown = None
                try:
                    await self._begin()
                except GuestFailed as error:
                    self._failure = self._failure or str(error)
            if self._failure is not None:
                raise GuestFailed(self._failure)

    async def think(self, state: GameState, go: Go, stopped: asyncio.Event) -> str | None:  # noqa: ARG002
        """Its move, whenever it comes."""
        for word, given in (("searchmoves", go.searchmoves), ("ponder", go.limits.ponder)):
            if given:
                expected = f"{self.name} does not support it"
                self.tell(protocol.error_line(f"go {word}", expected))
        if not self._told:
            self._told = True
            self.tell(f"info string note {self.name} takes no limits and cannot be stopped")
        line = state.line
        if line.start is not None:
            if line.start.split()[:2] != self._variant.startpos.split()[:2]:
                self.tell(
                    protocol.error_line(
                        "position fen", f"expected startpos: {self.name} plays whole games only"
                    )
                )
                return None
            line = Line(None, line.moves)
        await self._show(line)
        answer = await self._generate(state.facts.side)
        try:
            played = say.read_play(say.words_of(answer.encode()), self._size)
        except NotationError as error:
            raise GuestFailed(f"{self.name} answered {error}") from None
        if played.move is None:
            return RESIGN
        self._shown = line.play(played.move)
        return played.move

    async def _show(self, line: Line) -> None:
        """Tell it the moves up to the end of a line of play."""
        await self.prepare()
        if self._shown is None or not self._shown.begins(line):
            await self._restart()
            self._shown = Line()
        side = Side.of(self._variant.first)
        for ply, move in enumerate(line.moves):
            if ply >= len(self._shown.moves):
                await self._tell_move(say.write_play(side, move, self._size))
            side = side.other
        self._shown = line

    @abstractmethod
    async def _begin(self) -> None:
        """Start a process and wait until it can play from the start; GuestFailed, also by `_failure`."""

    @abstractmethod
    async def _restart(self) -> None:
        """Go back to the start of a game."""

    @abstractmethod
    async def _tell_move(self, line: str) -> None:
        """Tell it a move, of either side."""

    @abstractmethod
    async def _generate(self, side: Side) -> str:
        """Its answer when asked for a move: `play ROLE FROM TO`, if it is correct."""

    # The process

    async def _launch(self, words: Sequence[str]) -> None:
        self._received = 0
        try:
            self._process = await Process.start(words, self)
        except OSError as error:
            self._failure = f"cannot start {shorten(words[0])}: {error.strerror or error}"
            raise GuestFailed(self._failure) from None

    def on_line(self, line: bytes, stamp: float) -> None:
        """Handle a line of its output."""
        self._heard(line, stamp)

    def _heard(self, line: bytes, stamp: float) -> None:
        """Handle a line of the engine, which is an answer if one of this kind is awaited."""
        if self._trace is not None:
            self._trace(stamp, "<", self._tag + line)
        text = line.decode("utf-8", "replace").strip()
        if self._awaited is not None and self._awaited[1](text) and not self._awaited[0].done():
            self._awaited[0].set_result(text)
        elif self.talkative and text:
            self.tell(f"info string {protocol.shown(text, 200)}")

    @property
    def _tag(self) -> bytes:
        return protocol.printable(self.name).encode("utf-8", "replace") + b" "

    def on_read(self) -> None:
        """Something was read of what it prints, perhaps a part of a line that never ends."""
        if self._process is not None:
            self._talked(self._process.received - self._received)
            self._received = self._process.received

    def _talked(self, size: int) -> None:
        """Count bytes of its output."""
        self._talk += size
        if self._talk > TALK:
            self._break(f"{self.name} printed {TALK >> 20} MiB without an answer")

    def on_closed(self) -> None:
        """It closed its output but is still running."""

    def on_exit(self, ending: Exit) -> None:
        """Its process has ended."""
        if not self._ending:
            self._break(f"{self.name} has ended: {ending.text}{self._last_words()}")

    def _break(self, why: str) -> None:
        self._failure = self._failure or why
        if self._awaited is not None and not self._awaited[0].done():
            self._awaited[0].set_exception(GuestFailed(self._failure))

    def _last_words(self) -> str:
        words = last_line(self._process.error_tail()) if self._process else ""
        return f"; its last words: {shorten(words, 200)}" if words else ""

    async def _ask(self, line: str, wanted: Callable[[str], bool], seconds: float | None = PATIENCE) -> str:
        """The first line after `line` that is `wanted`; GuestFailed."""
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._awaited = answer, wanted
        self._talk = 0
        try:
            await self._send(line)
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError:
            asked = line.partition("\n")[0]
            raise GuestFailed(f"{self.name} did not answer {asked} within {seconds:g} s") from None
        finally:
            self._awaited = None
            if answer.done() and not answer.cancelled():
                answer.exception()  # sending may have failed first

    async def _send(self, line: str) -> None:
        if self._failure is not None or self._process is None:
            raise GuestFailed(self._failure or f"{self.name} is not running")
        if self._trace is not None:
            self._trace(time.monotonic(), ">", self._tag + line.encode())
        try:
            await self._write(line.encode() + b"\n")
        except TimeoutError:
            raise GuestFailed(f"{self.name} has read nothing for {PATIENCE:g} s") from None
        except OSError:
            await self._process.wait(GRACE)
            raise GuestFailed(self._failure or f"{self.name} no longer reads") from None

    @abstractmethod
    async def _write(self, data: bytes) -> None: ...

    async def close(self) -> None:
        """End its processes, if they do not end by themselves."""
        self._ending = True
        process, self._process = self._process, None
        self._shown = None
        if process is not None:
            with contextlib.suppress(OSError):
                await process.wind_up(b"quit\n", GRACE, MERCY)


class StdioEngine(HtpEngine):
    """An engine that is driven on its standard input and output. It may print what it likes around its answers."""

    variants = tuple(VARIANTS.values())

    async def _begin(self) -> None:
        await self._launch(self._command.words)
        known: list[str] = []
        # The list of commands has no end mark, so the answer to another question marks it.
        answers: list[str] = []

        def collect(text: str) -> bool:
            answers.extend([text] if _is_answer(text) else [])
            if len(answers) == 1 and len(known) < _MANY:
                known.extend(text.removeprefix("=").split())
            return len(answers) == 2

        await self._ask("list_commands\nprotocol_version", collect, START)
        missing = [] if answers[0].startswith("?") else [name for name in NEEDED if name not in known]
        if missing:
            raise GuestFailed(
                f"{self.name} does not know {missing[0]}: expected a program of the text protocol"
            )
        await self._restart()

    async def _restart(self) -> None:
        await self._accepted(f"board_size {self._size}")

    async def _tell_move(self, line: str) -> None:
        await self._accepted(line)

    async def _accepted(self, line: str) -> None:
        answer = await self._ask(line, _is_answer)
        if answer.startswith("?"):
            raise GuestFailed(f"{self.name} answered {line} with {shorten(answer)}")

    async def _generate(self, side: Side) -> str:  # noqa: ARG002
        answer = await self._ask(
            "generate_move", lambda text: text.startswith("?") or text.split()[:2] == ["=", "play"], None
        )
        if answer.startswith("?"):
            raise GuestFailed(f"{self.name} answered generate_move with {shorten(answer)}")
        return answer.removeprefix("=").strip()

    async def _write(self, data: bytes) -> None:
        assert self._process is not None
        await self._process.write(data, PATIENCE)

    def on_closed(self) -> None:
        """It closed its output but is still running."""
        self._break(f"{self.name} closed its output")

    async def end_game(self, state: GameState | None) -> None:
        """The next game begins with its `board_size`."""


_MANY: Final = 1_000


def _is_answer(text: str) -> bool:
    return text.startswith(("=", "?"))


class ConnectingEngine(HtpEngine):
    """An engine that connects to a light server, which we are: one process and one connection for each game."""

    variants = (DEFAULT,)

    def __init__(self, command: Command, name: str, variant: str, trace: Trace | None) -> None:
        super().__init__(command, name, variant, trace)
        self._server: asyncio.Server | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._arrived: asyncio.Event = asyncio.Event()

    async def _begin(self) -> None:
        self._arrived.clear()
        address = await self._listen()
        values = {HOST: address, PORT: str(say.PORT)}
        await self._launch([fill(word, values) for word in self._command.words])
        assert self._process is not None
        arrival = asyncio.ensure_future(self._arrived.wait())
        end = asyncio.ensure_future(self._process.wait(START))
        await asyncio.wait({arrival, end}, return_when=asyncio.FIRST_COMPLETED)
        came = arrival.done()
        for waiting in (arrival, end):
            waiting.cancel()
        if not came:
            ending = self._process.exit
            how = f"ended ({ending.text})" if ending else f"has run for {START:g} s"
            self._failure = (
                f"{self.name} {how} and never connected to {address}:{say.PORT}{self._last_words()}"
            )

    async def _listen(self) -> str:
        """Listen, on a loopback address of its own where the system has more than one; the address. GuestFailed."""
        address = self._command.address or "127.0.0.1"
        if not self._command.address and sys.platform == "linux":
            for _ in range(ADDRESSES):
                numbers = (random.randrange(1, 255) for _ in range(3))
                free = f"127.{'.'.join(map(str, numbers))}"
                with contextlib.suppress(OSError):
                    self._server = await asyncio.start_server(
                        self._accept, free, say.PORT, limit=say.LINE_LIMIT
                    )
                    return free
        try:
            self._server = await asyncio.start_server(self._accept, address, say.PORT, limit=say.LINE_LIMIT)
        except OSError as error:
            self._failure = f"no place for {self.name}: {address}:{say.PORT}: {reason_of(error)}"
            raise GuestFailed(self._failure) from None
        return address

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._writer is not None:
            writer.close()
            return
        self._writer = writer
        self._reading = asyncio.create_task(self._read(reader))
        self._arrived.set()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        why = "closed the connection"
        with contextlib.suppress(OSError):
            try:
                while (line := await reader.readline()).endswith(b"\n"):
                    self._talked(len(line))
                    self._heard(line.rstrip(b"\r\n"), time.monotonic())
            except ValueError:
                why = f"sent a line of more than {say.LINE_LIMIT} bytes"
        # It disconnects before it ends, and its exit is more informative.
        if not self._ending and self._process is not None:
            await self._process.wait(GRACE)
        if not self._ending:
            self._break(f"{self.name} {why}{self._last_words()}")

    def on_line(self, line: bytes, stamp: float) -> None:  # noqa: ARG002
        """Ignore what it prints."""
        if self.talkative:
            self.tell(f"info string {protocol.shown(line.decode('utf-8', 'replace').strip(), 200)}")

    async def _restart(self) -> None:
        if self._shown is not None:
            await self.close()
            await self.prepare()

    async def _tell_move(self, line: str) -> None:
        await self._send(line)

    async def _generate(self, side: Side) -> str:
        answer = await self._ask(f"generate_move {say.ROLES[side]}", bool, None)
        return answer.removeprefix("=").strip()

    async def _write(self, data: bytes) -> None:
        assert self._writer is not None
        self._writer.write(data)
        async with asyncio.timeout(PATIENCE):
            await self._writer.drain()

    async def end_game(self, state: GameState | None) -> None:
        """Send it the opponent's last move, as a server does, and end it."""
        shown = self._shown
        if state is not None and shown is not None and shown.begins(state.line) and self._failure is None:
            with contextlib.suppress(GuestFailed):
                await self._show(state.line)
        await self.close()

    async def close(self) -> None:
        """End its connection and its processes."""
        self._ending = True
        if self._server is not None:
            self._server.close()
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
        if self._reading is not None:
            self._reading.cancel()
        await super().close()
        self._failure = None  # of its game; the next has a process of its own


def engine(command: Command, name: str, variant: str, trace: Trace | None) -> HtpEngine:
    """The engine that a command starts; SessionError if it does not play the variant."""
    kind = ConnectingEngine if command.connects else StdioEngine
    if variant not in kind.variants:
        raise SessionError(f"variant {variant}", f"expected {', '.join(kind.variants)}")
    return kind(command, name, variant, trace)
