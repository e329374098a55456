"""One `go`, as whoever asked sees it: reports that stream in, and one answer or one failure."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Any

from .answers import BestMove, InfoLine, parse_info
from .failures import EngineError, EngineTimeout, Timeouts

KEPT_STRINGS = 1_024
KEPT_MULTIPV = 512


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
        return self.received - self.sent

    @property
    def info(self) -> InfoLine | None:
        """The last report on the best line, if there was any."""
        return next((info for info in self.infos if info.multipv == 1), None)


class Search:
    """A running search: ``async for info in search`` streams its reports, ``await search`` gives its `Answer`.

    A slow reader of the stream misses reports, newest per multipv wins; nothing queues up. Made by `Engine.go`.
    """

    def __init__(
        self,
        ticket: int,
        timeouts: Timeouts,
        send: Callable[[str], Awaitable[float]],
        look: Callable[[], None],
        overdue: Callable[[float], EngineTimeout],
    ) -> None:
        """`send` sends a line, `look` takes what lies in the pipe now, `overdue` words the complaint."""
        self.ticket = ticket
        self.sent = 0.0
        self._timeouts = timeouts
        self._send = send
        self._look = look
        self._overdue = overdue
        self._latest: dict[bytes, bytes] = {}
        self._fresh: dict[bytes, bytes] = {}
        self._strings: deque[str] = deque(maxlen=KEPT_STRINGS)
        self._news = asyncio.Event()
        self._result: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = float("inf")

    @property
    def done(self) -> bool:
        """Whether the answer (or the failure) is there."""
        return self._result.done()

    def __await__(self) -> Generator[Any, None, Answer]:
        return self._wait().__await__()

    async def _wait(self) -> Answer:
        """Who waits may be cancelled, the result never is: like `asyncio.shield`, but a turn of the loop sooner."""
        if not self.done:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            await waiter
        return self._result.result()

    def _wake(self) -> None:
        self._news.set()
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)

    async def __aiter__(self) -> AsyncIterator[InfoLine]:
        while True:
            await self._news.wait()
            self._news.clear()
            reports, self._fresh = self._fresh, {}
            for line in reports.values():
                info = parse_info(line.decode("utf-8", "replace"))
                if info is not None:
                    yield info
            if self._result.done() and not self._fresh:
                self._news.set()
                await self
                return

    async def stop(self, timeout: float | None = None) -> Answer:
        """Ask for the answer now, and return it; EngineTimeout if it does not come within `timeout` seconds."""
        if not self.done:
            await self._send("stop")
            self.expect_within(self._timeouts.stop if timeout is None else timeout)
        return await self

    async def ponderhit(self, timeout: float | None = None) -> None:
        """The pondered move was played: the search goes on as an ordinary one."""
        if not self.done:
            await self._send("ponderhit")
            self.expect_within(self._timeouts.move if timeout is None else timeout)

    async def abandon(self) -> None:
        """Nobody wants the answer any more: stop the engine and drop what it says to this `go`."""
        if not self.done:
            self.fail(EngineError("nobody wants the answer to this search any more"))
            await self._send("stop")

    def expect_within(self, seconds: float) -> None:
        """From now on the answer must come within `seconds`."""
        self._cancel_timer()
        if not self.done:
            loop = asyncio.get_running_loop()
            self._deadline = time.monotonic() + seconds
            self._timer = loop.call_later(max(0.0, seconds), self._strike, seconds)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _strike(self, seconds: float) -> None:
        """The deadline has struck; what lies in the pipe already, and only we have not read, counts."""
        self._look()
        if not self.done:
            self.fail(self._overdue(seconds))

    def text(self, line: str) -> None:
        """The engine wrote something else while it searched."""
        self._strings.append(line)

    def report(self, line: bytes) -> None:
        """The engine wrote an `info` line for this search."""
        key = _multipv(line)
        if key in self._latest:
            # What only counts nodes or names the move being looked at says less than the last score.
            if b" score " in line or b" score " not in self._latest[key]:
                self._latest[key] = line
            self._fresh[key] = line
            self._news.set()
        elif len(self._latest) < KEPT_MULTIPV:
            self._latest[key] = self._fresh[key] = line
            self._news.set()

    def answer(self, best: BestMove, stamp: float) -> None:
        """The engine answered."""
        if self.done:
            return
        self._cancel_timer()
        infos = [parse_info(line.decode("utf-8", "replace")) for line in self._latest.values()]
        known = sorted((info for info in infos if info is not None), key=lambda info: info.multipv)
        self._result.set_result(
            Answer(
                best.move,
                best.ponder,
                tuple(known),
                tuple(self._strings),
                self.sent,
                stamp,
                max(0.0, stamp - self._deadline),
            )
        )
        self._wake()

    def fail(self, error: EngineError) -> None:
        """There will be no answer, or none in time."""
        if not self.done:
            self._cancel_timer()
            self._result.set_exception(error)
            self._result.exception()  # whoever awaits it gets it; nobody has to
            self._wake()


def _multipv(line: bytes) -> bytes:
    """The text behind `multipv`, `1` if there is none: reports with the same one replace each other."""
    at = line.find(b" multipv ")
    if at < 0:
        return b"1"
    return line[at + 9 : at + 24].partition(b" ")[0]
