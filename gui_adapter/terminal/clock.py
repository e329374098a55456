"""Time: a game's clock, in which two times run down one at a time, and delayed events."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import replace
from typing import Final

from hnefi.engine.search.types import Limits
from hnefi.engine.wording import shorten

from .events import Event, Post
from .opponents import Spec
from .values import Clock, SideLetter

_SPELLED: Final = re.compile(r"(\d{1,4}(?:\.\d{1,3})?)(?:\+(\d{1,4}(?:\.\d{1,3})?))?", re.ASCII)
LONGEST_MINUTES: Final = 1440
TICK: Final = 0.1
"""Seconds between two checks of a running clock."""


def read(text: str) -> tuple[int, int] | None:
    """Read `5+3` (minutes, seconds) as the time for the game and per move in milliseconds; None for `off`.

    Raises ValueError saying what was expected.
    """
    word = text.strip().lower()
    if word in ("off", "none", "no"):
        return None
    match = _SPELLED.fullmatch(word)
    if match is None:
        raise ValueError(
            f"clock {shorten(text)}: expected minutes+seconds such as 5+3 (seconds are added for each move), or off"
        )
    base, increment = round(float(match[1]) * 60_000), round(float(match[2] or 0) * 1000)
    if not 0 < base <= LONGEST_MINUTES * 60_000:
        raise ValueError(f"clock {shorten(text)}: expected more than 0 and at most {LONGEST_MINUTES} minutes")
    return base, increment


def spell(base: int, increment: int) -> str:
    """`5+3`, as `read` understands it."""
    return f"{base / 60_000:.3f}".rstrip("0").rstrip(".") + f"+{increment / 1000:g}"


class GameClock:
    """The time that both sides have left. Neither clock runs until `run` is called. Callers pass the current time
    (seconds, monotonic)."""

    def __init__(self, base: int, increment: int) -> None:
        self.base = base
        self.increment = increment
        self.running: SideLetter | None = None
        self._left = [float(base), float(base)]
        self._since = 0.0

    def run(self, side: SideLetter, now: float) -> None:
        """Start the clock of `side` at `now`; it may be running already."""
        if self.running != side:
            self.hold(now)
            self.running, self._since = side, now

    def hold(self, now: float) -> None:
        """Stop both clocks."""
        if self.running is not None:
            self._left["ad".index(self.running)] -= (now - self._since) * 1000
            self.running = None

    def moved(self, side: SideLetter, now: float) -> int:
        """`side` has moved: stop its clock and add the increment; returns the ms that it has left."""
        self.hold(now)
        self._left["ad".index(side)] += self.increment
        return self.left(side, now)

    def left(self, side: SideLetter, now: float) -> int:
        """Milliseconds that `side` has left; negative if its time is over."""
        left = self._left["ad".index(side)]
        if self.running == side:
            left -= (now - self._since) * 1000
        return int(left)

    def reset(self, left: tuple[int | None, int | None]) -> None:
        """Set the time that both sides have left (None: their full time), and stop both clocks."""
        self.running = None
        self._left = [float(self.base if time is None else time) for time in left]

    def view(self, now: float) -> Clock:
        """The clock to show at `now`, in milliseconds; never below zero."""
        return Clock(
            self.base,
            self.increment,
            (max(0, self.left("a", now)), max(0, self.left("d", now))),
            self.running,
        )


class Pace:
    """The clock, if the game has one, and one delayed event. `tick` is posted ten times a second while the clock
    runs."""

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
        """Whether an event is going to happen by itself."""
        return self._timer is not None

    def think(self, side: SideLetter, *, begun: bool) -> None:
        """Begin to count the time of `side`; its clock runs only after the game has begun."""
        self._asked_at = time.monotonic()
        if self.clock is not None and begun:
            self.clock.run(side, self._asked_at)
            if self._ticker is None:
                self._ticker = asyncio.ensure_future(self._run())

    def moved(self, side: SideLetter) -> tuple[int | None, int | None]:
        """`side` has moved; returns the ms that it has left and that the ply took, None without a clock."""
        if self.clock is None:
            return None, None
        now = time.monotonic()
        taken = None if self._asked_at is None else round((now - self._asked_at) * 1000)
        return self.clock.moved(side, now), taken

    def flagged(self) -> SideLetter | None:
        """The side whose running clock has run out."""
        clock = self.clock
        if clock is None or clock.running is None or clock.left(clock.running, time.monotonic()) > 0:
            return None
        return clock.running

    def limits(self, spec: Spec) -> Limits:
        """The limits for the search of a move: the opponent's own, and the clock if there is one."""
        if self.clock is None:
            return spec.limits
        now = time.monotonic()
        own = spec.limits if spec.movetime is not None else replace(spec.limits, movetime=None)
        left = (max(1, self.clock.left("a", now)), max(1, self.clock.left("d", now)))
        return replace(own, clock=left, inc=(self.clock.increment, self.clock.increment))

    def rest(self) -> None:
        """Stop the clock and cancel the delayed event."""
        self.wait_no_more()
        self._asked_at = None
        if self.clock is not None:
            self.clock.hold(time.monotonic())
        if self._ticker is not None:
            self._ticker.cancel()
            self._ticker = None

    def after(self, seconds: float, what: Event) -> None:
        """Post `what` after some seconds, in place of any earlier delayed event."""
        self.wait_no_more()
        turn = self._turn

        async def event() -> None:
            if turn == self._turn:
                self.wait_no_more()
                await what()

        self._timer = asyncio.get_running_loop().call_later(seconds, self._post, event)

    def wait_no_more(self) -> None:
        """Cancel the delayed event."""
        self._turn += 1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            self._post(self._tick)
