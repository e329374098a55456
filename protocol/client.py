"""Drives an engine process, ours or anybody's, through its text protocol; used by arena, terminal and adapters.

    async with await Engine.start(["hnefi", "engine"]) as engine:
        await engine.set_variant("brandubh")
        engine.position(moves=["a4a2"])
        answer = await (await engine.go(Limits(depth=4)))

It knows processes and lines, no game: positions and moves are text. Every wait has an end, everything that is kept is
bounded, and what goes wrong is an `EngineError` that says which engine, what was expected and what happened instead.

A `bestmove` answers the oldest `go` that is still unanswered, and if nobody wants that answer any more, or nothing was
asked, it is dropped and counted in `stray_answers`.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import IO, Any, Self

from hnefi.engine.compile.progress import Progress
from hnefi.engine.search.types import Limits

from .answers import Option, VariantLine, parse_bestmove, parse_compiling, parse_option, parse_variant
from .errors import (
    EngineBusy,
    EngineCrashed,
    EngineDisconnected,
    EngineError,
    EngineFault,
    EngineProtocolError,
    EngineStartError,
    EngineTimeout,
    EngineUnready,
    Timeouts,
    last_line,
)
from .format import go_line, position_line, setoption_line
from .messages import SetOption, SetPosition
from .process import AnyProcess, Exit, Listener, Process
from .search import Answer, Search
from .waiting import Alarm, Patience, Pings, greeting_wait

__all__ = [
    "Answer",
    "Engine",
    "EngineBusy",
    "EngineCrashed",
    "EngineDisconnected",
    "EngineError",
    "EngineFault",
    "EngineProtocolError",
    "EngineStartError",
    "EngineTimeout",
    "EngineUnready",
    "Exit",
    "Limits",
    "Progress",
    "Search",
    "Starter",
    "Timeouts",
    "own_command",
]

GREETINGS = ("uti", "uci", "ugi")
VARIANT_OPTIONS = ("uci_variant", "variant")
"""Options that choose what is played, in lower case."""

_UNLIMITED = Limits()

UNREADY = "info string error isready: "
"""How the line begins that our engine says in the place of `readyok`."""
ANSWER_LINES = 65_536
ANSWER_BYTES = 16 * 1024 * 1024
TRANSCRIPT_LINES = 256
FLOOD = 64
"""So many lines read at once are looked at together."""


Starter = Callable[..., Coroutine[Any, Any, AnyProcess]]
"""Starts a process as `Process.start` does, which it is called like."""


def own_command(*flags: str) -> list[str]:
    """The command that starts our own engine in this installation, with flags such as `--variant`, `brandubh`."""
    return [sys.executable, "-m", "hnefi.protocol", *flags]


class Engine(Listener):
    """One engine process. `name` and `author` are what it calls itself, `options` what it announced (by small name).

    `compiling` is what it says it is compiling now, or None; `on_compiling` is called with every such report. Meanwhile
    deadlines are extended, see `Timeouts`.
    """

    def __init__(self, command: Sequence[str], timeouts: Timeouts) -> None:
        self.command = tuple(command)
        self.timeouts = timeouts
        self.proto = ""
        self.name = Path(command[0]).name
        self.author = ""
        self.options: dict[str, Option] = {}
        self.failure: EngineError | None = None
        self.stray_answers = 0
        self.transcript: deque[tuple[float, str, bytes]] = deque(maxlen=TRANSCRIPT_LINES)
        self.on_traffic: Callable[[float, str, bytes], None] | None = None
        self.on_compiling: Callable[[Progress], None] | None = None
        self.compiling: Progress | None = None
        self._process: AnyProcess
        self._held: list[str] = []
        self._searches: deque[Search] = deque()
        self._pings = Pings()
        self._answer: Callable[[], None] | None = None
        self._greeted: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._asking = asyncio.Lock()
        self._collected: list[str] | None = None
        self._collected_bytes = 0
        self._writing: asyncio.Task[None] | None = None
        self.alarm = Alarm()

    # Beginning and end

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        proto: str = "auto",
        *,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        errors: IO[bytes] | None = None,
        timeouts: Timeouts | None = None,
        on_traffic: Callable[[float, str, bytes], None] | None = None,
        on_compiling: Callable[[Progress], None] | None = None,
        cores: Collection[int] = (),
        starter: Starter = Process.start,
    ) -> Engine:
        """Run `command` (a list of words, no shell) and greet it.

        `proto` is `uti`, `uci`, `ugi` or `auto`, which tries them in turn and takes the first that is answered.
        `env` is added to our environment; `errors` takes its standard error (else its end is in `error_tail`).
        `on_traffic(stamp, arrow, line)` sees every line, `>` sent and `<` received; `on_compiling` hears what the
        engine compiles, about once a second while it does.
        `cores` are the processors it may use (Linux; empty: all). `starter` makes the process, see `fork_client`.
        Raises EngineStartError; no process is left then.
        """
        if proto != "auto" and proto not in GREETINGS:
            raise ValueError(f"protocol {proto!r}: expected auto, {', '.join(GREETINGS)}")
        if not command:
            raise ValueError("the engine's command is empty: expected a program and its arguments")
        engine = cls(command, timeouts or Timeouts())
        engine.on_traffic = on_traffic
        engine.on_compiling = on_compiling
        try:
            engine._process = await starter(command, engine, cwd, env, errors, engine.timeouts.start, cores)
        except TimeoutError:
            raise EngineStartError(f"cannot start {shlex.join(command)}: it takes too long") from None
        except OSError as error:
            raise EngineStartError(f"cannot start {shlex.join(command)}: {error.strerror or error}") from None
        try:
            await engine._greet((proto,) if proto != "auto" else GREETINGS)
        except BaseException:
            await engine.quit(grace=0.0)
            raise
        return engine

    async def _greet(self, greetings: Sequence[str]) -> None:
        deadline = time.monotonic() + self.timeouts.start
        try:
            for index, greeting in enumerate(greetings):
                await self._send(greeting)
                left = deadline - time.monotonic()
                wait = greeting_wait(left, len(greetings) - 1 - index)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await asyncio.shield(self._greeted)
                self.look()  # if we were late ourselves, the answer lies in the pipe
                if self._greeted.done():
                    self.proto = self._greeted.result()
                    return
        except EngineError as error:
            raise EngineStartError(f"{error}{self._last_words()}") from error
        words = " or ".join(f"{greeting}ok" for greeting in greetings)
        raise EngineStartError(
            f"{self.name} did not greet: expected {words} within {self.timeouts.start:g} s{self._last_words()}"
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.quit()

    async def quit(self, grace: float = 0.5) -> Exit:
        """End the engine: `quit` and end of input, after `grace` seconds TERM, then KILL to all its processes.

        An engine that still searches is told to stop first.

        Takes 2 s at most, if the system ends what is killed, and never fails; returns how the process ended.
        """
        words = [b"stop", b"quit"] if self._searches else [b"quit"]
        for word in words:
            self._note(">", word)
        ending = await self._process.wind_up(b"\n".join([*words, b""]), grace)
        self._break(EngineCrashed(f"{self.name} was told to quit", ending))
        return ending

    def kill(self) -> None:
        """End the engine's processes at once, without a word."""
        self._process.kill()

    @property
    def pid(self) -> int:
        """The number of the engine's process."""
        return self._process.pid

    @property
    def exit(self) -> Exit | None:
        """How the process ended; None while it lives."""
        return self._process.exit

    @property
    def overlong_lines(self) -> int:
        """How many lines were longer than 64 KiB and skipped."""
        return self._process.overlong

    def error_tail(self) -> str:
        """The last 64 KiB of its standard error."""
        return self._process.error_tail()

    # Questions and settings

    async def is_ready(self, timeout: float | None = None) -> None:
        """Returns when the engine says `readyok`; allowed at any moment, also during a search."""
        await self._ping(["isready"], self.timeouts.ready if timeout is None else timeout)

    async def ask(
        self, question: str, timeout: float | None = None, *, more: Sequence[str] = ()
    ) -> list[str]:
        """All lines the engine answers to `question`, and to `more` of them in the same write: the first 65,536 of
        them, or 16 MiB. Reports and answers of a search are not among them."""
        seconds = self.timeouts.answer if timeout is None else timeout
        async with self._asking:
            self._collected, self._collected_bytes = [], 0
            try:
                await self._ping([question, *more, "isready"], seconds)
                return self._collected
            finally:
                self._collected = None

    async def new_game(self, timeout: float | None = None) -> None:
        """Tell the engine that the next position belongs to another game, and wait until it is ready."""
        self._not_searching("newgame")
        await self._ping(
            [f"{self.proto}newgame", "isready"], self.timeouts.new_game if timeout is None else timeout
        )

    async def set_option(self, name: str, value: str | int | bool | None = None) -> list[str]:
        """Set one announced option and return what the engine said to it; EngineProtocolError if it cannot be."""
        self._not_searching("setoption")
        line = await self._setoption(name, value)
        return self._accepted(await self.ask(line, self.timeouts.ready))

    async def set_variant(
        self, name: str, options: Mapping[str, str | int | bool] = MappingProxyType({})
    ) -> VariantLine | None:
        """Choose the game or rule set; returns what the engine says about it, if it says anything.

        A `uci` or `ugi` engine without an option for it is left alone: it plays what it plays. `options` are set just
        before, so that ours gets ready for all of that at once, and compiles nothing for what is between.
        """
        self._not_searching("variant")
        settings = [await self._setoption(*option) for option in options.items()]
        if self.proto == "uti":
            question = [*settings, f"variant {name}"]
            lines = self._accepted(await self.ask(question[0], self.timeouts.ready, more=question[1:]))
        else:
            for line in settings:
                self._accepted(await self.ask(line, self.timeouts.ready))
            if self.options.keys().isdisjoint(VARIANT_OPTIONS):
                await self.is_ready()  # some announce their options only after the ok word
            option = next((option for option in VARIANT_OPTIONS if option in self.options), None)
            if option is None:
                return None
            lines = await self.set_option(option, name)
        return next((known for known in map(parse_variant, lines) if known), None)

    async def _setoption(self, name: str, value: str | int | bool | None) -> str:
        """The line that sets an announced option; EngineProtocolError if it cannot be set so."""
        option = await self._announced(name)
        text = str(value).lower() if isinstance(value, bool) else None if value is None else str(value)
        objection = option.objection(text)
        if objection:
            raise EngineProtocolError(f"{self.name}: option {option.name} value {text!r}: {objection}")
        return setoption_line(SetOption(option.name, text))

    def suggests(self, option: Option) -> bool:  # noqa: ARG002
        """Whether an error may name `option` to whoever has misspelt one."""
        return True

    async def _announced(self, name: str) -> Option:
        """The option called `name` in any case; some engines announce theirs only after the ok word."""
        if name.casefold() not in self.options:
            await self.is_ready()
        option = self.options.get(name.casefold())
        if option is None:
            known = {key: option.name for key, option in self.options.items() if self.suggests(option)}
            near = get_close_matches(name.casefold(), known, n=1)
            hint = (
                f"did you mean {known[near[0]]}?" if near else f"it has {', '.join(known.values()) or 'none'}"
            )
            raise EngineProtocolError(f"{self.name} has no option {name!r}: {hint}")
        return option

    def _accepted(self, lines: list[str]) -> list[str]:
        for line in lines:
            if line.startswith("info string error "):
                raise EngineProtocolError(f"{self.name}: {line.removeprefix('info string error ')}")
        return lines

    # Play

    def position(self, start: str = "startpos", moves: Sequence[str] = ()) -> None:
        """The position to think about: `startpos`, `fen ...`, `otn ...` or a bare FEN, and the moves since.

        Goes out in one write with the next command, so that no time passes between the two.
        """
        kind, _, text = start.partition(" ")
        if kind not in ("startpos", "fen", "otn"):
            kind, text = "fen", start
        self.hold(position_line(SetPosition(kind, text, tuple(moves))))

    def hold(self, line: str) -> None:
        """Like `position`, for callers that already have the whole line."""
        self._held = [line]

    async def go(
        self, limits: Limits = _UNLIMITED, *, searchmoves: Sequence[str] = (), timeout: float | None = None
    ) -> Search:
        """Start thinking within `limits`; `searchmoves` are text, those of `limits` are not looked at.

        The answer must come within `timeout` seconds, by default the time the limits allow and `timeouts.move` on top.
        Where nothing but a `stop` ends the search, the clock starts with `Search.stop` or `Search.ponderhit`.
        An engine that does not read is waited for just as long, and one that compiles until it has done that.
        """
        search, data = self._begin(go_line(limits, searchmoves, dialect=self.proto))
        await self._ask(search, data, timeout)
        if limits.bounded and not (limits.infinite or limits.ponder):
            allowed = max(limits.movetime or 0, *(left or 0 for left in limits.clock)) / 1000
            search.expect_within(allowed + self.timeouts.move if timeout is None else timeout)
        return search

    def post(self, line: str, timeout: float, then: Callable[[Search], None]) -> None:
        """`go` for callers that play a whole game: `line` is sent unchanged, and this does not wait.

        `then` is called with the search when the engine's answer is read, or given up: `timeout` seconds after the
        write (the clock of the game, which is not extended for compiling), or earlier if the engine does not read or
        ends. Raises EngineError if it has already ended.
        """
        search, data = self._begin(line)
        search.when_done(partial(then, search))
        written = self._process.push(data)
        if written == len(data):
            search.sent = time.monotonic()
            search.expect_within(timeout, firm=True)
        else:
            self._writing = asyncio.ensure_future(self._post_rest(search, data[written:], timeout))

    async def _post_rest(self, search: Search, data: bytes, timeout: float) -> None:
        with contextlib.suppress(EngineError):
            await self._ask(search, data, timeout)
            search.expect_within(timeout, firm=True)

    def _begin(self, line: str) -> tuple[Search, bytes]:
        """A search for a `go` line, and what to write: nothing that the engine has said before can answer it."""
        self._not_searching("go")
        self.look()
        data = self._encode([line])
        search = Search(self)
        self._searches.append(search)
        return search, data

    async def _ask(self, search: Search, data: bytes, timeout: float | None) -> None:
        try:
            search.sent = await self._write(data, timeout)
        except EngineError as error:
            search.fail(error)
            raise

    def look(self) -> None:
        """Read what lies in the pipe now."""
        self._process.drain()

    @property
    def searching(self) -> bool:
        """Whether an answer is awaited that has not been abandoned."""
        return any(not search.done for search in self._searches)

    async def stop(self, timeout: float | None = None) -> Answer | None:
        """Stop the running search and return its answer; None if there is none."""
        for search in self._searches:
            if not search.done:
                return await search.stop(timeout)
        return None

    def _not_searching(self, what: str) -> None:
        if self._searches and self.failure is None and self.searching:
            raise EngineBusy(f"{self.name} is searching: stop it before {what}")

    # Lines out

    async def send(self, line: str) -> None:
        """Send one line as it is; what the engine answers appears only in the transcript."""
        await self._send(line)

    async def _send(self, *lines: str) -> float:
        """Send lines in one write, after a position that was held for them; returns when that was done."""
        return await self._write(self._encode(lines))

    def _encode(self, lines: Sequence[str]) -> bytes:
        """The held position and `lines` as bytes; ValueError if one of them is more than one line."""
        everything = [line.encode() for line in (*self._held, *lines)]
        self._held = []
        for line in everything:
            if b"\n" in line or b"\r" in line:
                raise ValueError(f"{line[:80].decode('utf-8', 'replace')!r} is more than one line")
        if self.failure is not None:
            raise self.failure
        for line in everything:
            self._note(">", line)
        return b"\n".join([*everything, b""])

    async def _write(self, data: bytes, timeout: float | None = None) -> float:
        seconds = self.timeouts.write if timeout is None else timeout
        try:
            return await self._process.write(data, seconds)
        except TimeoutError:
            raise self.overdue("reading of our commands", seconds) from None
        except BrokenPipeError:
            # Its end, if it has ended, is about to be known and says more than the broken pipe.
            await self._process.wait(timeout=1.0)
            raise self._break(EngineDisconnected(f"{self.name} closed its standard input")) from None

    async def _ping(self, lines: Sequence[str], seconds: float) -> None:
        """Send lines that end in `isready` and wait for its answer."""
        data = self._encode(lines)
        patience = Patience(seconds, self.timeouts)
        waiter = self._pings.ask()
        try:
            await self._write(data)
            await self._pings.answered(waiter, patience)
        except TimeoutError:
            self.look()  # if we were late ourselves, the answer lies in the pipe
            if not waiter.done():
                raise self.overdue("readyok", seconds) from None
            waiter.result()
        finally:
            waiter.cancel()

    # Lines in

    def on_line(self, line: bytes, stamp: float) -> None:
        """Take one line of the engine; `stamp` is when its bytes were read."""
        self._note("<", line, stamp)
        if line.startswith(b"info ") and not line.startswith(b"info string"):
            if self._searches:
                self._searches[0].report(line)
            return
        self._control(line.decode("utf-8", "replace").strip(), stamp)

    def on_lines(self, lines: list[bytes], stamp: float) -> None:
        """Take the lines of one read; of a flood of reports only the last ones of a line of play."""
        if len(lines) < FLOOD or self.on_traffic is not None:
            super().on_lines(lines, stamp)
            return
        begin = 0
        for index, line in enumerate(lines):
            if line[:5] != b"info " or line[5:11] == b"string":
                self._take_reports(lines[begin:index], stamp)
                self.on_line(line, stamp)
                begin = index + 1
        self._take_reports(lines[begin:] if begin else lines, stamp)

    def _take_reports(self, lines: list[bytes], stamp: float) -> None:
        for line in lines[-TRANSCRIPT_LINES:]:
            self._note("<", line, stamp)
        if lines and self._searches:
            self._searches[0].report_all(lines)

    def _control(self, line: str, stamp: float) -> None:
        word, _, rest = line.partition(" ")
        if word == "bestmove":
            self._take_answer(line, stamp)
        elif word == "readyok":
            self.compiling = None
            self._pings.take()
        elif word in ("utiok", "uciok", "ugiok"):
            if not self._greeted.done():
                self._greeted.set_result(word.removesuffix("ok"))
        elif word == "option":
            option = parse_option(line)
            if option is not None and len(self.options) < ANSWER_LINES:
                self.options[option.name.casefold()] = option
        elif word == "id":
            self._identify(rest)
        elif line.startswith(UNREADY) and self._pings.take(
            EngineUnready(f"{self.name} cannot work: {line.removeprefix(UNREADY)}")
        ):
            self.compiling = None
        elif (progress := parse_compiling(line)) is not None:
            self._take_progress(progress)
        elif line:
            self._take_text(line)

    def _take_progress(self, progress: Progress) -> None:
        """The engine compiles: extend the deadlines of those who wait for it."""
        self.compiling = progress
        self._pings.put_off()
        if self._searches:
            self._searches[0].put_off()
        if self.on_compiling is not None:
            self.on_compiling(progress)

    def _take_answer(self, line: str, stamp: float) -> None:
        best = parse_bestmove(line)
        self.compiling = None
        search = self._searches.popleft() if self._searches else None
        if search is None or best is None or search.done:
            self.stray_answers += 1
        else:
            self._answer = partial(search.answer, best, stamp)

    def on_read(self) -> None:
        """Hand out an answer when everything that was read together with it has been taken."""
        # Not sooner: what was read together with an answer is no answer to what is asked upon it.
        if self._answer is not None:
            answer, self._answer = self._answer, None
            answer()

    def _take_text(self, line: str) -> None:
        if self._searches:
            self._searches[0].text(line)
        if self._collected is None:
            return
        self._collected_bytes += len(line)
        if len(self._collected) < ANSWER_LINES and self._collected_bytes < ANSWER_BYTES:
            self._collected.append(line)

    def _identify(self, rest: str) -> None:
        key, _, value = rest.partition(" ")
        if key == "name" and value:
            self.name = value[:200]
        elif key == "author":
            self.author = value[:200]

    def on_closed(self) -> None:
        """The engine closed its output, but its process is still there."""
        self._break(EngineDisconnected(f"{self.name} closed its standard output but is still running"))

    def on_exit(self, ending: Exit) -> None:
        """The process has ended: whatever waits for it fails with `EngineCrashed`."""
        self._break(EngineCrashed(f"{self.name} has ended: {ending.text}", ending))

    # Failure

    def _break(self, error: EngineError) -> EngineError:
        """From now on every call fails with `error`, those that wait included; the first failure stays."""
        if self.failure is None:
            self.failure = error
        self.alarm.stop()
        searches = [*self._searches]
        self._searches.clear()
        for search in searches:
            search.fail(self.failure)
        self._pings.fail(self.failure)
        if not self._greeted.done():
            self._greeted.set_exception(self.failure)
            self._greeted.exception()
        return self.failure

    def overdue(self, what: str, seconds: float) -> EngineTimeout:
        """The time-out error for `what`, which did not come within `seconds`."""
        last = self.compiling
        more = (
            "" if last is None else f"; it last said that it compiles {last.part} ({last.done}/{last.total})"
        )
        return EngineTimeout(f"{self.name} did not answer: expected {what} within {seconds:g} s{more}")

    def _last_words(self) -> str:
        words = last_line(self.error_tail())
        return f"; its last words: {words[:200]}" if words else ""

    def _note(self, arrow: str, line: bytes, stamp: float | None = None) -> None:
        at = time.monotonic() if stamp is None else stamp
        self.transcript.append((at, arrow, line[:1024]))
        if self.on_traffic is not None:
            self.on_traffic(at, arrow, line)
