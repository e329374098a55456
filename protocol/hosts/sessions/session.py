"""One session: one engine process, the lines that go to it, and the lines that come from it.

Lines pass as they are. What a session adds is order and bounds: numbers, the filter for strangers, one search at a
time, a queue that never grows without end, and a second process with the same game where the first one dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from ...answers import VariantLine, parse_compiling, parse_variant
from ...client import UNREADY, EngineError, Progress
from ...commands import TABLE
from ...format import compiling_line, error_line, shown
from ...messages import command_of, words_of
from .engine_process import Memory, Piped, Policy, Wanted, new_engine, set_up
from .numbering import Incoming
from .questions import OURS, START, Questions
from .recording import Recording
from .search_clock import SearchClock

LAST_ANSWERS = 0.5
"""Seconds for which the end of a session waits for what the engine has to say of the last lines."""
STATEFUL = frozenset(
    {"position", "play", "undo", "variant", "rules", "setoption", "go", "stop", "ponderhit"}
    | {"utinewgame", "ucinewgame", "uginewgame"}
)
"""Words after which the state is another."""


Facts = Callable[[], Awaitable[Mapping[str, Any]]]
"""Gives the state of a session, without numbers of lines."""


class Outlet(Protocol):
    """Where a session leaves its messages. Nothing here waits for a reader."""

    @property
    def last_out(self) -> int:
        """The number of the last line."""

    def say(self, text: str, answers: int = 0) -> None:
        """A line; `answers` is the number of the line that it answers, 0 for none."""

    def report(self, line: bytes) -> None:
        """A line of thinking, of which only the newest counts."""

    def end_reports(self) -> None:
        """The search is over: its last thinking becomes lines."""

    def changed(self, last_in: int) -> None:
        """The state is another; `last_in` is the number of the last line taken."""

    async def flushed(self, timeout: float) -> bool:
        """Wait until everything said is on its way; whether it is."""

    async def abandon(self) -> None:
        """Publish nothing more."""

    async def close(self) -> bool:
        """Publish nothing more, and clear the state; False if that could not be done."""


O = TypeVar("O", bound=Outlet)


class Session(Generic[O]):
    """Begun by `start`; ends by `close`, or by itself, and then calls `on_end` with the reason."""

    def __init__(
        self,
        wanted: Wanted,
        sid: str,
        policy: Policy,
        outlet: Callable[[Facts], O],
        recording: Recording | None = None,
    ) -> None:
        """`outlet` makes where it speaks, given where the state can be asked for."""
        self.wanted = wanted
        self.sid = sid
        self.policy = policy
        self.touched = time.monotonic()
        self.on_end: Callable[[str], None] | None = None
        self.on_compiling: Callable[[Progress], None] | None = None
        self.engine: Piped
        self.memory: Memory
        self.variant: VariantLine | None = None
        self.last_bestmove = ""
        self.restarts = 0
        self._recording = recording
        self._writing = asyncio.Lock()
        self._questions = Questions(self._writing)
        self._clock = SearchClock(policy.max_search, self._overdue)
        self._reason = ""
        self._queries = True
        self._deaths = 0
        self.begun = False
        """Whether there is an engine that can be asked."""
        self._closing = False
        self._tasks: set[asyncio.Task[None]] = set()
        self.outgoing = outlet(self.facts)
        self._incoming = Incoming(self.outgoing.say)
        self.last_passed = 0
        """The number of the last line that was dealt with: what the engine is asked from then on knows of it."""

    # Beginning and end

    async def start(self) -> None:
        """Start and set up the engine; RequestError with the code of what is wrong.

        What it compiles meanwhile is said; lines that are received wait until it is ready.
        """
        try:
            ready = await set_up(self.policy, self.wanted, self._compiling)
        except BaseException:
            self._closing = True
            await self.outgoing.abandon()
            raise
        self.engine, self.variant, self._queries = ready.engine, ready.variant, ready.queries
        self.memory = Memory(ready.settings)
        self._attach()
        self._spawn(self._feed())
        self.outgoing.changed(0)

    def _attach(self) -> None:
        self.begun = True
        engine = self.engine
        engine.heard = self._heard
        engine.ended = lambda how: self._ended(engine, how)

    async def close(self, why: str, grace: float = 0.5) -> bool:
        """End the engine, publish what is left and clear the state; False if the state could not be cleared."""
        self._closing = True
        self._clock.rest()
        # A task may close the session it works for.
        others = {task for task in self._tasks if task is not asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others)
        await self._end_recording(why)
        self.engine.heard = self.engine.ended = None
        await asyncio.gather(self.engine.quit(grace), self.outgoing.flushed(1.0))
        return await self.outgoing.close()

    async def _end_recording(self, why: str) -> None:
        """The game of the session is closed, with what its last lines have led to."""
        if self._recording is None:
            return
        if self.engine.failure is None:
            await self._questions.settled(LAST_ANSWERS)
        self._recording.close(why)

    def end(self, reason: str) -> None:
        """Tell the owner that this session is over; it closes it."""
        if not self._closing and self.on_end is not None:
            self._closing = True
            self.on_end(reason)

    @property
    def searching(self) -> bool:
        """Whether a search runs."""
        return self._clock.search is not None

    @property
    def answers_soon(self) -> bool:
        """Whether a search runs that a `stop` ends: an engine that compiles hears none."""
        search = self._clock.search
        return search is not None and search.ready and self.engine.compiling is None

    @property
    def last_in(self) -> int:
        """The number of the last line that was taken."""
        return self._incoming.last

    # Lines in

    def receive(self, payload: bytes) -> None:
        """One or more lines for the engine."""
        if self._closing:
            return
        self.touched = time.monotonic()
        self._incoming.take(payload)

    async def _feed(self) -> None:
        """Hand the lines on, one after the other."""
        while True:
            number, text = await self._incoming.next()
            try:
                await self._pass_on(number, text)
            except EngineError as error:
                # An engine that ended is reported elsewhere; one that merely stopped reading has to be ended.
                if self.engine.failure is None:
                    self._give_engine_up(str(error))
            finally:
                # What `_pass_on` announced is asked for only after this: nothing waits in between.
                self.last_passed = number or self.last_passed

    async def _pass_on(self, number: int, text: str) -> None:
        words = command_of(words_of(text.encode()), TABLE)
        command = words[0] if words else ""
        if command == "quit":
            self.end("quit")
            return
        refusal = self.policy.filter.refusal(text)
        if refusal is not None:
            self.outgoing.say(refusal)
            return
        search = self._clock.search
        if search is not None and search.stopping and not (command and TABLE[command].always):
            # An engine holds back what follows a stop until it has answered; not all engines do.
            await self._clock.idle.wait()
        is_search = command == "go" and words[1:2] != ["perft"]
        if is_search and self.searching:
            self.outgoing.say(error_line(text, "a search is running: expected stop first"))
            return
        async with self._writing:
            if is_search:
                self._clock.begin(number, text)
                # It may have to load or compile something first, which counts on neither side's clock.
                self._questions.before_search()
                await self.engine.send("isready")
            elif command == "isready":
                self._questions.client_asks(number)
            elif command in ("stop", "ponderhit") and self.searching:
                self._clock.hurry(command)
            self.memory.note(words, text)
            await self.engine.send(text)
            await self._record(words)
        if command in STATEFUL:
            self.outgoing.changed(self.last_in)

    def _compiling(self, progress: Progress) -> None:
        """The engine compiles: it is alive, and must not be ended for being slow."""
        self.touched = time.monotonic()
        self.outgoing.say(compiling_line(progress))
        if self.on_compiling is not None:
            self.on_compiling(progress)
        self._questions.put_off()
        self._clock.put_off()

    # Lines out

    def _heard(self, line: bytes) -> None:
        if line.startswith(b"info ") and not line.startswith(b"info string") and self.searching:
            self.outgoing.report(line)
            return
        whole = line.decode("utf-8", "replace").rstrip()
        text = whole.lstrip()
        word = text.partition(" ")[0]
        if word == "bestmove":
            self._answered(text)
        elif word == "readyok":
            self._ready(text)
        elif text.startswith(UNREADY):
            # What our engine says in its place.
            self._ready(text)
        elif text and parse_compiling(text) is None and not self._questions.takes(text):
            if text.startswith("info string variant "):
                self.variant = parse_variant(text) or self.variant
            # A board is drawn with blanks.
            self.outgoing.say(whole)

    def _answered(self, text: str) -> None:
        search = self._clock.search
        if search is None or not search.ready:
            return  # an answer to a question that nobody asked
        self._clock.end()
        self._deaths = 0
        self.touched = time.monotonic()
        self.last_bestmove = text.partition(" ")[2]
        self.outgoing.end_reports()
        self.outgoing.say(text, search.number)
        self.outgoing.changed(self.last_in)

    def _ready(self, text: str) -> None:
        number = self._questions.ready()
        if number == START:
            self._clock.start()
        if number not in (OURS, START):
            self.outgoing.say(text, number)
        elif text != "readyok":
            self.outgoing.say(text)

    # The state

    async def facts(self) -> Mapping[str, Any]:
        """The state for late joiners; what the engine does not say is null."""
        answers = (
            await self._questions.ask(self.engine, "query history", "query turn") if self._queries else []
        )
        history, side = answers if len(answers) == 2 else ("", "")
        start, _, moves = history.partition(" moves ")
        if start == "startpos":
            start = self.variant.startpos if self.variant else ""
        return {
            "engine": self.engine.name,
            "variant": self.variant.name if self.variant else self.wanted.variant or None,
            "start": start.removeprefix("fen ") or None,
            "moves": moves.split(),
            "side": side or None,
            "searching": self.searching,
            "clock": self._clock.times,
            "bestmove": self.last_bestmove or None,
        }

    async def _record(self, words: Sequence[str]) -> None:
        """After a line: what it made of the game goes to the journal; only while `_writing` is held."""
        recording = self._recording
        if recording is None:
            return
        if not self._queries:
            recording.told(words, self.variant)
        elif questions := recording.questions(words):
            await self._questions.put(
                self.engine, questions, lambda answers: recording.answered(words, self.variant, answers)
            )

    # Time, and what engines do wrong

    def _overdue(self) -> None:
        search = self._clock.search
        if search is None:
            return
        self.engine.look()
        if self._clock.search is not search:
            return
        if time.monotonic() < search.patience.deadline:
            # What lay in the pipe has put it off.
            self._clock.watch()
        elif self._clock.too_long:
            self.outgoing.say(f"info string search stopped after {self.policy.max_search:g} s")
            self._clock.hurry("stop")
            self._spawn(self._stop())
        else:
            self._give_engine_up(f"{self.engine.name} did not answer in time")

    async def _stop(self) -> None:
        async with self._writing:
            with contextlib.suppress(EngineError):
                await self.engine.send("stop")

    async def stop(self) -> None:
        """End the search, if there is one, as a `stop` of the client does."""
        search = self._clock.search
        if search is not None and not search.stopping:
            self._clock.hurry("stop")
            await self._stop()

    def _give_engine_up(self, why: str) -> None:
        self._reason = why
        self.engine.kill()

    def _ended(self, engine: Piped, how: str) -> None:
        """The engine's process is no more, or of no use any more."""
        if self._closing or engine is not self.engine:
            return
        engine.heard = engine.ended = None
        # No clock runs for the next one before it has come so far.
        self._clock.rest()
        why, self._reason = self._reason or f"{engine.name} has ended: {how}", ""
        self._deaths += 1
        if self._deaths > 1 or not self.memory.complete:
            self.outgoing.say(f"info string error engine failed: {shown(why, 200)}: the session is closed")
            self.end("engine failed")
        else:
            self._spawn(self._restart(engine, why))

    async def _restart(self, dead: Piped, why: str) -> None:
        """Another engine, brought to where the first one was, with the search and the questions that are open."""
        self.restarts += 1
        async with self._writing:
            dead.kill()
            open_ones = self._questions.forget()
            try:
                engine = await new_engine(self.policy, self._compiling)
            except EngineError as error:
                self.outgoing.say(f"info string error engine failed: {shown(str(error), 200)}")
                self.end("engine failed")
                return
            self.engine = engine
            if self._closing:
                await engine.quit(grace=0.0)
                return
            self.outgoing.say(f"info string error {shown(why, 200)}: started again, the game continues")
            try:
                for line in self.memory.lines():
                    await engine.send(line)
                # What the replay says has been said before.
                await engine.is_ready()
                self._attach()
                for _ in range(open_ones):
                    await engine.send("isready")
                await self._record(["position"])
                await self._search_again()
                # Questions about its state that the dead engine left without an answer.
                self.outgoing.changed(self.last_in)
            except EngineError:
                self._attach()
                self._ended(engine, "in its second beginning")

    async def _search_again(self) -> None:
        search = self._clock.search
        if search is None:
            return
        self._clock.begin_again(search)
        self._questions.before_search()
        await self.engine.send("isready")
        await self.engine.send(search.line)
        if search.stopping:
            await self.engine.send("stop")
        self._clock.watch()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name=f"session {self.sid}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
