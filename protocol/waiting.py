"""How long to wait for an engine: one timer for its deadlines, which are extended while it compiles, and the callers
that wait for `readyok`."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from math import inf

from .errors import Timeouts

GREETING_STEP = 2.0
"""Seconds that one greeting may stay unanswered before the next is tried as well."""


def greeting_wait(left: float, others: int) -> float:
    """Seconds to wait for the answer to a greeting if `left` are left and `others` are still to be tried."""
    return min(GREETING_STEP, left / (others + 1)) if others else left


class Alarm:
    """One timer for deadlines that follow each other.

    Most are met, and the next is later: the timer stays where it is, and looks at the deadline only when it goes off.
    """

    def __init__(self) -> None:
        self.deadline = inf
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._strike: Callable[[], None]

    def set(self, deadline: float, strike: Callable[[], None]) -> None:
        """Call `strike` at `deadline` (`time.monotonic()`), and no longer what was to be called before."""
        self.deadline = deadline
        self._strike = strike
        if self._timer is None or self._timer.when() > deadline:
            self.stop()
            self._timer = self._loop.call_at(deadline, self._ring)

    def clear(self) -> None:
        """Call nothing."""
        self.deadline = inf

    def stop(self) -> None:
        """Hold no timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self) -> None:
        self._timer = None
        if self._loop.time() >= self.deadline:
            self._strike()
        elif self.deadline < inf:
            self.set(self.deadline, self._strike)


class Patience:
    """How long to wait for an engine: `seconds` from now, and longer while it says that it compiles."""

    def __init__(self, seconds: float, timeouts: Timeouts) -> None:
        self.seconds = seconds
        self.deadline = time.monotonic() + seconds
        self._timeouts = timeouts
        self._last: float | None = None

    def put_off(self) -> float:
        """It compiles: the new deadline."""
        now = time.monotonic()
        if self._last is None:
            self._last = now + self._timeouts.compiling_whole
        wanted = now + max(self.seconds, self._timeouts.compiling)
        self.deadline = max(self.deadline, min(wanted, self._last))
        return self.deadline


class Pings:
    """The callers that wait for `readyok`. Answers come in the order of the questions, including those of callers that
    have given up; while the engine compiles, all deadlines are extended."""

    def __init__(self) -> None:
        self._asked: deque[asyncio.Future[None]] = deque()
        self._limits: list[tuple[asyncio.Timeout, Patience]] = []

    def ask(self) -> asyncio.Future[None]:
        """The answer to a question that is about to be sent; wait for it with `answered`."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asked.append(waiter)
        return waiter

    async def answered(self, waiter: asyncio.Future[None], patience: Patience) -> None:
        """Wait for an answer; TimeoutError if `patience` ends first."""
        async with asyncio.timeout_at(patience.deadline) as limit:
            waiting = (limit, patience)
            self._limits.append(waiting)
            try:
                await asyncio.shield(waiter)
            finally:
                self._limits.remove(waiting)

    def take(self, error: Exception | None = None) -> bool:
        """The oldest question is answered, or refused with `error`; False if nothing was asked."""
        if not self._asked:
            return False
        waiter = self._asked.popleft()
        if not waiter.done():
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)
        return True

    def put_off(self) -> None:
        """The engine compiles: extend all deadlines."""
        for limit, patience in self._limits:
            if not limit.expired():
                limit.reschedule(patience.put_off())

    def fail(self, error: Exception) -> None:
        """Nothing is answered any more."""
        while self.take(error):
            pass
