"""OpenTafl's engine behind `protocol.hosts.guest`: a process that speaks OTEP, with allowance for its quirks.

It must never be asked about a finished position, for more lines than there are moves, or for a move while an aborted
search is still writing: each of these kills it. Its output has no end marks, so we wait for silence.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from hnefi.engine.games.base_variant import VariantError
from hnefi.engine.games.tafl.fen import SetupError, parse_fen
from hnefi.engine.games.tafl.otn import OtnError, export_rules, import_rules
from hnefi.engine.games.tafl.variant import Variant, find, names
from hnefi.engine.session import SessionError
from hnefi.engine.sides import Side
from hnefi.engine.wording import shorten
from hnefi.protocol import format as protocol
from hnefi.protocol.answers import Option
from hnefi.protocol.errors import last_line
from hnefi.protocol.hosts.guest import GameState, Guest, GuestFailed
from hnefi.protocol.hosts.rulebook import Line
from hnefi.protocol.hosts.trace import Trace
from hnefi.protocol.messages import Go
from hnefi.protocol.process import Exit, Listener, Process

from . import lines as say
from .lines import LineError

T = TypeVar("T")

DEFAULT: Final = "copenhagen"
START: Final = 60.0
"""Seconds until it must have said hello."""
GRACE: Final = 0.5
"""Seconds that it has to end by itself, and then from TERM to KILL."""
PAUSE, LONG_PAUSE = 0.02, 0.2
"""Seconds of silence to wait for after a move, and after an aborted search."""
NOISE: Final = 5.0
"""Seconds after which we stop waiting for silence."""
STOPPED: Final = 5.0
"""Seconds within which an aborted search must answer."""
LEAST: Final = 1_000
"""Milliseconds below which single moves take many times as long."""
SURPLUS: Final = 750
"""Milliseconds of an overtime period that it does not use."""
INFINITE: Final = 600_000
PARTS: Final = 25
"""The number of moves over which a clock is divided."""
WON: Final = 5_050
"""The value from which a score is a win."""


@dataclass(frozen=True, slots=True)
class Command:
    """How to start it, and how to tell it the time."""

    words: tuple[str, ...]
    fresh: bool = False
    """Start a new process for each game, because its tables persist between games."""
    own_clock: bool = False


class OpenTafl(Guest, Listener):
    """One process of OpenTafl's engine."""

    def __init__(self, command: Command, name: str, trace: Trace | None) -> None:
        self.name = name
        self.options = (
            Option("Variant", "combo", DEFAULT, values=tuple(names())),
            Option("Rules", "string", ""),
            Option("MultiPV", "spin", "1", 1, 512),
            Option("MoveTime", "spin", "1000", 1, 3_600_000),
            Option("Side", "combo", "auto", values=("auto", "a", "d")),
        )
        self._command = command
        self._trace = trace
        self._variant = find(DEFAULT)
        self._lines = 1
        self._movetime = 1_000
        self._process: Process | None = None
        self._starting: asyncio.Lock = asyncio.Lock()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._hello: asyncio.Future[None] | None = None
        self._answer: asyncio.Future[str] | None = None
        self._failure: str | None = None
        self._ending = False
        """Whether its end is ours."""
        self._shown: Line | None = None
        """The moves that it knows, including its own last one."""
        self._heard = 0.0
        self._silence = 0.0
        """Seconds of silence required before the next question."""
        self._said: set[str] = set()

    @property
    def variant(self) -> Variant:
        """What it plays now."""
        return self._variant

    async def set(self, name: str, value: str | None) -> str | None:
        """Set an option; the line that chooses the game, if that is another now."""
        text = value or ""
        if name == "MultiPV":
            self._lines = int(text)
        elif name == "MoveTime":
            self._movetime = int(text)
        elif name == "Variant":
            try:
                self._variant = find(text)
            except VariantError as error:
                raise SessionError("variant", str(error)) from None
            self._warn_of_losses()
            return f"variant {self._variant.name}"
        elif name == "Rules" and text:
            return self._take_rules(text)
        return None

    def _take_rules(self, text: str) -> str:
        like_opentafl, otn = text.startswith("opentafl "), text.removeprefix("opentafl ")
        try:
            self._variant, problems = import_rules(otn, like_opentafl)
        except OtnError as error:
            raise SessionError("setoption Rules", str(error)) from None
        for problem in problems:
            self.tell(protocol.error_line("setoption Rules", problem))
        self._warn_of_losses()
        return f"rules {text}"

    def _warn_of_losses(self) -> None:
        """Warn about rules that OpenTafl plays differently, because its rules strings cannot express them."""
        _, lost = export_rules(_as_opentafl_reads(self._variant))
        if lost:
            self.tell(
                f"info string note {self.name} does not know {', '.join(lost)}: its rules differ from ours"
            )

    # The process

    async def prepare(self, side: Side | None = None) -> None:  # noqa: ARG002
        """Have a process that has said hello, and writes nothing of an earlier game any more."""
        async with self._starting:
            if self._process is None and self._failure is None:
                await self._start()
        if self._failure is not None:
            raise GuestFailed(self._failure)
        await self._quiet()

    async def _start(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hnefi-otep-", ignore_cleanup_errors=True)
        # Without this it thinks for at most ten seconds, whatever the clock says.
        Path(self._folder.name, "settings.ini").write_text("[config]\nthinktime=0\n", encoding="ascii")
        self._hello = asyncio.get_running_loop().create_future()
        self._shown = None
        self._ending = False
        words = self._command.words
        try:
            self._process = await Process.start(words, self, cwd=self._folder.name)
            async with asyncio.timeout(START):
                await self._hello
        except TimeoutError:
            self._break(f"{self.name} did not say hello within {START:g} s{self._last_words()}")
        except OSError as error:
            self._failure = f"cannot start {shorten(words[0])}: {error.strerror or error}"
        except GuestFailed:
            pass  # which is noted
        self._heard = time.monotonic()
        self._silence = PAUSE

    def on_line(self, line: bytes, stamp: float) -> None:
        """Handle a line of its output; unknown lines are ignored."""
        self._heard = stamp
        if self._trace is not None:
            self._trace(stamp, "<", b"OpenTafl " + line)
        text = line.decode("ascii", "replace").strip()
        word, _, rest = text.partition(" ")
        if word == "hello" and self._hello is not None and not self._hello.done():
            self._hello.set_result(None)
        elif word in ("move", "analysis"):
            if self._answer is not None and not self._answer.done():
                self._answer.set_result(rest)
        elif word == "error" and rest.startswith("-1"):
            self._break(f"{self.name} gave up: {shorten(text)}")
        elif self.talkative and text:
            self.tell(f"info string {protocol.shown(text.removeprefix('status '), 200)}")

    def on_closed(self) -> None:
        """It closed its output and lives on."""
        self._break(f"{self.name} closed its output")

    def on_exit(self, ending: Exit) -> None:
        """Its process has ended."""
        self._break(f"{self.name} has ended: {ending.text}{self._last_words()}")

    def _break(self, why: str) -> None:
        if self._ending:
            return
        self._failure = self._failure or why
        for waiting in (self._hello, self._answer):
            if waiting is not None and not waiting.done():
                waiting.set_exception(GuestFailed(self._failure))
                waiting.exception()  # nobody may be waiting

    def _last_words(self) -> str:
        words = last_line(self._process.error_tail()) if self._process else ""
        return f"; its last words: {shorten(words, 200)}" if words else ""

    async def _send(self, line: str) -> None:
        """Write a line in one piece: it would take a part of one for a command."""
        if self._failure is not None or self._process is None:
            raise GuestFailed(self._failure or f"{self.name} is not running")
        data = line.encode("ascii", "replace")
        if self._trace is not None:
            self._trace(time.monotonic(), ">", b"OpenTafl " + data)
        try:
            await self._process.write(data + b"\n", NOISE)
        except TimeoutError:
            raise GuestFailed(f"{self.name} has read nothing for {NOISE:g} s") from None
        except BrokenPipeError:
            await self._process.wait(1.0)
            raise GuestFailed(self._failure or f"{self.name} closed its input") from None

    async def _quiet(self) -> None:
        """Wait until it has been silent for as long as the last question requires."""
        deadline = time.monotonic() + NOISE
        while (left := self._heard + self._silence - time.monotonic()) > 0 and time.monotonic() < deadline:
            await asyncio.sleep(left)
        self._silence = 0.0

    # Thinking

    async def think(self, state: GameState, go: Go, stopped: asyncio.Event) -> str | None:
        """Its move, or the first move of its best line where more than one is wanted."""
        await self.prepare()
        self._refuse(go)
        limits = go.limits
        if self._lines > 1 and limits.bounded and limits.clock == (None, None):
            return await self._analyze(state, self._movetime if limits.movetime is None else limits.movetime)
        await self._show(state.line)
        clock = self._clock(state.facts.side, go)
        await self._send(clock)
        text = await self._ask(f"play {say.SIDE_WORDS[state.facts.side]}", stopped)
        move = _read(self.name, say.parse_move, text)
        self._silence = max(self._silence, PAUSE)
        if self._shown is not None:
            self._shown = self._shown.play(move)
        return move

    async def _ask(self, question: str, stopped: asyncio.Event | None = None) -> str:
        """What it answers; if it is stopped meanwhile, the answer that it has by then."""
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._answer = answer
        stopping = asyncio.ensure_future((stopped or asyncio.Event()).wait())
        try:
            await self._send(question)
            both: set[asyncio.Future[Any]] = {answer, stopping}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                await self._finish()
                await asyncio.wait({answer}, timeout=STOPPED)
            if not answer.done():
                raise GuestFailed(f"{self.name} did not answer within {STOPPED:g} s when it was told to stop")
            return answer.result()
        finally:
            stopping.cancel()
            self._answer = None

    async def _finish(self) -> None:
        """End its game. It forgets the moves, but its old thread may still write."""
        self._shown = None
        self._heard, self._silence = time.monotonic(), LONG_PAUSE
        await self._send("finish 0")

    async def _show(self, line: Line) -> None:
        """Bring it to the end of this line."""
        await self._quiet()
        shown = self._shown
        if shown is not None and shown.begins(line) and len(line.moves) == len(shown.moves) + 1:
            new: Sequence[str] = line.moves[-1:]
        else:
            if shown is not None:
                await self._finish()
                await self._quiet()
            await self._send(f"rules {self._otn(line.start)}")
            new = line.moves
        # A line of theirs has an end; a game may be longer.
        for at in range(0, len(new), MOVES_AT_ONCE):
            await self._send(f"opponent-move {say.format_moves(new[at : at + MOVES_AT_ONCE])}")
        self._shown = line

    def _otn(self, start: str | None) -> str:
        variant = self._variant
        if start is not None:
            try:
                setup = parse_fen(start, variant.size)
                side = setup.side if setup.side is not None else Side.of(variant.first)
                rules = variant.rules.replace(first=side.letter)
                variant = replace(variant, rules=rules, start=replace(setup, side=side))
            except (SetupError, ValueError) as error:
                raise GuestFailed(f"{self.name} cannot be shown {shorten(start)}: {error}") from None
        return export_rules(_as_opentafl_reads(variant))[0]

    def _clock(self, side: Side, go: Go) -> str:
        limits = go.limits
        own, increment = limits.clock[side], limits.inc[side]
        if self._command.own_clock and limits.movetime is None and own is not None:
            left = [own if time is None else time for time in limits.clock]
            return f"clock {max(left[0], 1)} {max(left[1], 1)} 0 0 0"
        if limits.movetime is not None:
            budget = limits.movetime
        elif own is not None:
            budget = max(1, own // (limits.movestogo or PARTS) + increment * 4 // 5)
            if budget < LEAST <= own // 2:
                self._once(f"thinks for at least {LEAST} ms: with less, single moves take much longer")
                budget = LEAST
        elif not limits.bounded or limits.infinite:
            budget = INFINITE
        else:
            self._once(f"does not support depth, nodes or mate: it thinks for MoveTime, {self._movetime} ms")
            budget = self._movetime
        if budget < LEAST:
            self._once(f"was given less than {LEAST} ms: single moves may take much longer")
        return f"clock {budget + SURPLUS}* {budget + SURPLUS}* 1 9 9"

    def _refuse(self, go: Go) -> None:
        for word, given in (("searchmoves", go.searchmoves), ("ponder", go.limits.ponder)):
            if given:
                self.tell(protocol.error_line(f"go {word}", f"{self.name} does not support it"))

    def _once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self.tell(f"info string note {self.name} {text}")

    async def _analyze(self, state: GameState, movetime: int) -> str | None:
        await self._quiet()
        if self._shown is not None:
            await self._finish()
            await self._quiet()
        side = state.facts.side
        await self._send(f"rules {self._otn(state.line.start)}")
        await self._send(f"position {say.format_rows(state.facts.rows)}")
        await self._send(f"side {say.SIDE_WORDS[side]}")
        self._shown = state.line
        count, seconds = min(self._lines, len(state.facts.legal)), max(1, round(movetime / 1000))
        found = _read(self.name, say.parse_analysis, await self._ask(f"analyze {count} {seconds}"))
        self._shown = Line("-")  # not a game to which moves can be added
        self._silence = PAUSE
        for number, (moves, value) in enumerate(found, 1):
            score = value if side is Side.ATTACKERS else -value
            cp = max(-WON, min(WON, score))
            self.tell(f"info depth {len(moves)} multipv {number} score cp {cp} pv {' '.join(moves)}")
        return found[0][0][0] if found and found[0][0] else None

    # Ends

    async def end_game(self, state: GameState | None) -> None:  # noqa: ARG002
        """Its game is over; with `fresh` its process, too."""
        if self._command.fresh:
            await self.close()
        elif self._process is not None and self._shown is not None:
            await self._finish()

    async def close(self) -> None:
        """Say goodbye, and end its processes if they do not end upon that."""
        process, self._process = self._process, None
        self._shown, self._ending = None, True
        if process is not None:
            with contextlib.suppress(OSError):
                await process.wind_up(b"goodbye\n", GRACE, GRACE)
        folder, self._folder = self._folder, None
        if folder is not None:
            folder.cleanup()


MOVES_AT_ONCE: Final = 500


def _as_opentafl_reads(variant: Variant) -> Variant:
    """The same rules in the words that OpenTafl understands as these rules."""
    return variant.with_switches(opentafl=True)


def _read(name: str, parse: Callable[[str], T], text: str) -> T:
    """What an answer says; GuestFailed if it says nothing."""
    try:
        return parse(text)
    except LineError as error:
        raise GuestFailed(f"{name} answered {error}") from None
