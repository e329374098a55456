"""One `go`, as its caller sees it: reports that stream in, and one answer or one failure."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator
from dataclasses import dataclass
from typing import Any, Protocol

from .answers import BestMove, InfoLine, parse_info
from .errors import EngineError, EngineFault, EngineTimeout, Timeouts
from .waiting import Alarm, Patience

FAILED = "info string error search failed: "
"""How the line begins that our engine says before a `bestmove (none)` that is not the end of a game."""
KEPT_STRINGS = 1_024
KEPT_MULTIPV = 512
KEPT_AT_ONCE = 1_024
KEPT_PLAIN = 64
"""So many of the reports that were read at once are looked at: those with a score, and the last ones of any kind."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one `go`.

    `sent` and `received` are `time.monotonic()` at the end of our write and when the bytes of the answer were read.
    `lateness` is by how many seconds we, not the engine, missed the deadline: an answer that is read before the
    deadline could strike was in the pipe while we were busy, and is in time.
    """

    move: str | None
    ponder: str | None
    infos: tuple[InfoLine, ...]
    strings: tuple[str, ...]
    sent: float
    received: float
    lateness: float = 0.0

    @property
    def seconds(self) -> float:
        """From the end of our write to the moment the answer's bytes were read."""
        return self.received - self.sent

    @property
    def info(self) -> InfoLine | None:
        """The last report on the best line, if there was any."""
        return next((info for info in self.infos if info.multipv == 1), None)


class Asked(Protocol):
    """What a search needs of the engine that searches."""

    name: str
    timeouts: Timeouts
    alarm: Alarm

    async def send(self, line: str) -> None:
        """Write one line to the engine."""

    def look(self) -> None:
        """Take what lies in the pipe now."""

    def overdue(self, what: str, seconds: float) -> EngineTimeout:
        """The complaint that `what` did not come."""


class Search:
    """A running search: ``async for info in search`` streams its reports, ``await search`` gives its `Answer`.

    A slow reader of the stream misses reports, newest per multipv wins; nothing queues up. Made by `Engine.go` and
    `Engine.post`.
    """

    def __init__(self, engine: Asked) -> None:
        self.sent = 0.0
        self._engine = engine
        self._latest: dict[bytes, bytes] = {}
        self._fresh: dict[bytes, bytes] = {}
        self._strings: deque[str] = deque(maxlen=KEPT_STRINGS)
        self._news: asyncio.Event | None = None
        self._outcome: Answer | EngineError | None = None
        self._callbacks: list[Callable[[], None]] = []
        self._patience: Patience | None = None
        self._fault = ""

    @property
    def done(self) -> bool:
        """Whether the answer (or the failure) is there."""
        return self._outcome is not None

    def result(self) -> Answer:
        """The answer of a search that is done; EngineError if it failed."""
        assert self._outcome is not None
        if isinstance(self._outcome, Answer):
            return self._outcome
        raise self._outcome

    def when_done(self, callback: Callable[[], None]) -> None:
        """Call `callback` when this is done; at once if it already is."""
        if self.done:
            callback()
        else:
            self._callbacks.append(callback)

    def __await__(self) -> Generator[Any, None, Answer]:
        return self._wait().__await__()

    async def _wait(self) -> Answer:
        """A task that waits may be cancelled; the result never is."""
        if not self.done:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.when_done(lambda: None if waiter.done() else waiter.set_result(None))
            await waiter
        return self.result()

    async def __aiter__(self) -> AsyncIterator[InfoLine]:
        news = self._news = self._news or asyncio.Event()
        while True:
            if not (self._fresh or self.done):
                await news.wait()
            news.clear()
            reports, self._fresh = self._fresh, {}
            for line in reports.values():
                info = parse_info(line.decode("utf-8", "replace"))
                if info is not None:
                    yield info
            if self.done and not self._fresh:
                self.result()
                return

    async def stop(self, timeout: float | None = None) -> Answer:
        """Ask for the answer now, and return it; EngineTimeout if it does not come within `timeout` seconds."""
        if not self.done:
            await self._engine.send("stop")
            self.expect_within(self._engine.timeouts.stop if timeout is None else timeout)
        return await self

    async def ponderhit(self, timeout: float | None = None) -> None:
        """The pondered move was played: continue as an ordinary search."""
        if not self.done:
            await self._engine.send("ponderhit")
            self.expect_within(self._engine.timeouts.move if timeout is None else timeout)

    async def abandon(self) -> None:
        """The answer is no longer wanted: stop the engine and discard its reply to this `go`."""
        if not self.done:
            self.fail(EngineError("nobody wants the answer to this search any more"))
            await self._engine.send("stop")

    def expect_within(self, seconds: float, *, firm: bool = False) -> None:
        """From now on the answer must come within `seconds`; `firm`: also if the engine has to compile first."""
        if not self.done:
            patience = Patience(seconds, self._engine.timeouts)
            self._patience = None if firm else patience
            self._engine.alarm.set(patience.deadline, lambda: self._strike(seconds))

    def put_off(self) -> None:
        """The engine compiles, and thinks only when it has done that."""
        patience = self._patience
        if patience is not None and not self.done:
            self._engine.alarm.set(patience.put_off(), lambda: self._strike(patience.seconds))

    def _strike(self, seconds: float) -> None:
        """The deadline has struck; what lies in the pipe already, and only we have not read, counts."""
        deadline = self._engine.alarm.deadline
        self._engine.look()
        overdue = self._engine.overdue("bestmove", seconds)
        overdue.lateness = time.monotonic() - deadline
        self.fail(overdue)

    def text(self, line: str) -> None:
        """The engine wrote a line during the search that is neither a report nor an answer."""
        self._strings.append(line)
        if line.startswith(FAILED):
            self._fault = line.removeprefix(FAILED)

    def report(self, line: bytes) -> None:
        """The engine wrote an `info` line for this search."""
        key = _multipv(line)
        before = self._latest.get(key)
        if before is None and len(self._latest) == KEPT_MULTIPV:
            return
        # What only counts nodes or names the move being looked at says less than the last score.
        if before is None or b" score " in line or b" score " not in before:
            self._latest[key] = line
        self._fresh[key] = line
        if self._news is not None:
            self._news.set()

    def report_all(self, lines: list[bytes]) -> None:
        """The engine wrote many `info` lines at once: what `report` would have kept of them, of a flood its end."""
        for line in [line for line in lines if b" score " in line][-KEPT_AT_ONCE:]:
            self.report(line)
        for line in lines[-KEPT_PLAIN:]:
            self.report(line)

    def answer(self, best: BestMove, stamp: float) -> None:
        """The engine answered."""
        if self._fault and best.move is None:
            self.fail(EngineFault(f"{self._engine.name} cannot search: {self._fault}"))
            return
        infos = [parse_info(line.decode("utf-8", "replace")) for line in self._latest.values()]
        known = [info for info in infos if info is not None]
        if len(known) > 1:
            known.sort(key=lambda info: info.multipv)
        lateness = max(0.0, stamp - self._engine.alarm.deadline)
        self._end(
            Answer(best.move, best.ponder, tuple(known), tuple(self._strings), self.sent, stamp, lateness)
        )

    def fail(self, error: EngineError) -> None:
        """There will be no answer, or none in time."""
        self._end(error)

    def _end(self, outcome: Answer | EngineError) -> None:
        """What came first stays."""
        if self.done:
            return
        self._engine.alarm.clear()
        self._outcome = outcome
        if self._news is not None:
            self._news.set()
        for callback in self._callbacks:
            callback()


def _multipv(line: bytes) -> bytes:
    """The text behind `multipv`, `1` if there is none: reports with the same one replace each other."""
    at = line.find(b" multipv ")
    if at < 0:
        return b"1"
    return line[at + 9 : at + 24].partition(b" ")[0]
