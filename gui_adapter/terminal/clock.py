"""A game's clock: two times that run down, one at a time. Whoever asks says what time it is (seconds, monotonic)."""

from __future__ import annotations

import re
from typing import Final

from hnefi.engine.wording import shorten

from .values import Clock, SideLetter

_SPELLED: Final = re.compile(r"(\d{1,4}(?:\.\d{1,3})?)(?:\+(\d{1,4}(?:\.\d{1,3})?))?", re.ASCII)
LONGEST_MINUTES: Final = 1440


def read(text: str) -> tuple[int, int] | None:
    """The time for the game and per move in milliseconds of `5+3` (minutes, seconds); None for `off`.

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
    """What both sides have left. It runs for nobody until `run` is called."""

    def __init__(self, base: int, increment: int) -> None:
        self.base = base
        self.increment = increment
        self.running: SideLetter | None = None
        self._left = [float(base), float(base)]
        self._since = 0.0

    def run(self, side: SideLetter, now: float) -> None:
        """From `now` on the clock of `side` runs; it may run already."""
        if self.running != side:
            self.hold(now)
            self.running, self._since = side, now

    def hold(self, now: float) -> None:
        """Nobody's clock runs any more."""
        if self.running is not None:
            self._left["ad".index(self.running)] -= (now - self._since) * 1000
            self.running = None

    def moved(self, side: SideLetter, now: float) -> int:
        """`side` has made its ply: its clock stops and is given the increment; returns what it has left, in ms."""
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
        """What both sides have left from now on (None: all their time); nobody's clock runs."""
        self.running = None
        self._left = [float(self.base if time is None else time) for time in left]

    def view(self, now: float) -> Clock:
        return Clock(
            self.base,
            self.increment,
            (max(0, self.left("a", now)), max(0, self.left("d", now))),
            self.running,
        )
