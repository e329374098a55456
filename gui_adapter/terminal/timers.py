"""What time does: whose clock runs, and what happens by itself after a while."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Final

from hnefi.engine.search.types import Limits

from .clock import GameClock
from .opponents import Spec
from .questions import Event, Post
from .values import SideLetter

TICK: Final = 0.1
"""Seconds between two looks at a clock that runs."""


class Pace:
    """One clock, if the game has one, and one thing that is waited for. `tick` is posted ten times a second while the
    clock runs."""

    def __init__(self, post: Post, tick: Event) -> None:
        self.clock: GameClock | None = None
        self._post = post
        self._tick = tick
        self._ticker: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._turn = 0
        self._asked_at: float | None = None

    @property
    def waiting(self) -> bool:
        """Whether something is going to happen by itself."""
        return self._timer is not None

    def think(self, side: SideLetter, *, begun: bool) -> None:
        """The time of `side` counts from now on; its clock runs once the game has begun."""
        self._asked_at = time.monotonic()
        if self.clock is not None and begun:
            self.clock.run(side, self._asked_at)
            if self._ticker is None:
                self._ticker = asyncio.ensure_future(self._run())

    def moved(self, side: SideLetter) -> tuple[int | None, int | None]:
        """`side` has moved: what it has left and what the ply took, in ms; None without a clock."""
        if self.clock is None:
            return None, None
        now = time.monotonic()
        taken = None if self._asked_at is None else round((now - self._asked_at) * 1000)
        return self.clock.moved(side, now), taken

    def flagged(self) -> SideLetter | None:
        """The side whose clock runs and has run out."""
        clock = self.clock
        if clock is None or clock.running is None or clock.left(clock.running, time.monotonic()) > 0:
            return None
        return clock.running

    def limits(self, spec: Spec) -> Limits:
        """What ends the search of a move: the opponent's own limits, and the clock if there is one."""
        if self.clock is None:
            return spec.limits
        now = time.monotonic()
        own = spec.limits if spec.movetime is not None else replace(spec.limits, movetime=None)
        left = (max(1, self.clock.left("a", now)), max(1, self.clock.left("d", now)))
        return replace(own, clock=left, inc=(self.clock.increment, self.clock.increment))

    def rest(self) -> None:
        """No clock runs and nothing happens by itself."""
        self.wait_no_more()
        self._asked_at = None
        if self.clock is not None:
            self.clock.hold(time.monotonic())
        if self._ticker is not None:
            self._ticker.cancel()
            self._ticker = None

    def after(self, seconds: float, what: Event) -> None:
        """Post `what` after a while, instead of what was waited for before."""
        self.wait_no_more()
        turn = self._turn

        async def event() -> None:
            if turn == self._turn:
                self.wait_no_more()
                await what()

        self._timer = asyncio.get_running_loop().call_later(seconds, self._post, event)

    def wait_no_more(self) -> None:
        """What was waited for does not happen."""
        self._turn += 1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            self._post(self._tick)
