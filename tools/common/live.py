"""Progress display: lines that stay, and below them, on a terminal, a live part that is redrawn.

`Live` writes in the calling thread; programs with running clocks call it from a separate thread.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from hnefi.protocol.hosts.text_table import WIDTH, clip, encodable, safe

REDRAW = 0.2
"""Minimum seconds between two drawings of the live part."""
PAUSE = 2.0
"""Minimum seconds between two lines of progress without a terminal."""
STEP = 10.0
"""Seconds between two lines of `Live.step` without a terminal."""
TALLEST = 16
"""Maximum number of lines of the live part."""

BOLD, RED, PLAIN = "\x1b[1m", "\x1b[31m", "\x1b[0m"


class Stream(Protocol):
    """A stream to write to."""

    def write(self, text: str, /) -> Any: ...
    def flush(self) -> Any: ...


class Live:
    """Lines that stay on a stream and, on a terminal, a live part below them that is redrawn.

    `plain` turns off the live part and colours, and keeps to ASCII; `quiet` writes nothing. `clock` returns seconds;
    `columns` is the width.
    """

    def __init__(
        self,
        stream: Stream,
        *,
        plain: bool = False,
        quiet: bool = False,
        clock: Callable[[], float] = time.monotonic,
        columns: int = 0,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._stream = stream
        self.quiet = quiet
        self._plain = plain
        self.terminal = not (plain or quiet) and is_terminal(stream) and environment.get("TERM") != "dumb"
        self.colour = self.terminal and not environment.get("NO_COLOR")
        self._clock = clock
        self._columns = columns
        self._drawn = 0
        self._last = -math.inf
        self._pause = REDRAW
        self._stepped = clock()
        self._view: Callable[[], Sequence[str]] | None = None

    def game(self, line: str, hint: str = "", *, fault: bool = False) -> None:
        """Print a line about a finished game; on a terminal only if something went wrong in it. `hint` is a command to
        type after a fault."""
        if fault or hint:
            self.report([line], colour=RED)
            self.report([hint] if hint else [])
        elif not self.terminal:
            self.report([line])

    def report(self, lines: Sequence[str], *, colour: str = "") -> None:
        """Lines that stay. On a terminal with colours they are in `colour`."""
        said = [self._fitting(safe(line)) for line in lines]
        if self.colour and colour:
            said = [f"{colour}{line}{PLAIN}" for line in said]
        self._put(self._erased() + "".join(f"{line}\n" for line in said) + self._frame())

    def heading(self, line: str) -> None:
        """A line that stays and stands out."""
        self.report([line], colour=BOLD)

    def show(self, view: Callable[[], Sequence[str]]) -> None:
        """Show what `view` returns as the live part from now on; it is called at most five times a second."""
        self._view = view
        if self.terminal and self._clock() - self._last >= self._pause:
            self._put(self._erased() + self._frame())

    def step(self, line: Callable[[], str], *, last: bool = False) -> None:
        """Report finished work: on a terminal, `line` becomes the live part; elsewhere it is printed every `STEP`
        seconds, and if it is the `last`."""
        if self.terminal:
            self.show(lambda: [line()])
        elif last or self._clock() - self._stepped >= STEP:
            self._stepped = self._clock()
            self.report([line()])

    def tick(self) -> None:
        """Time has passed."""
        if self._view is not None:
            self.show(self._view)

    def close(self) -> None:
        """Remove the live part; printed lines stay."""
        self._view = None
        self._put(self._erased())

    def _frame(self) -> str:
        """The live part as it is drawn now."""
        if not self.terminal or self._view is None:
            return ""
        began = self._clock()
        columns = self.columns - 1
        lines = [clip(self._fitting(safe(line)), columns) for line in list(self._view())[:TALLEST]]
        self._drawn = len(lines)
        self._last = self._clock()
        # Spend at most a tenth of our time on a slow view.
        self._pause = max(REDRAW, 10 * (self._last - began))
        return "\n".join(lines)

    def _erased(self) -> str:
        """The characters that erase the live part."""
        lines, self._drawn = self._drawn, 0
        if not lines:
            return ""
        up = f"\x1b[{lines - 1}A" if lines > 1 else ""
        return f"\r{up}\x1b[J"

    @property
    def columns(self) -> int:
        """The width of the stream."""
        if self._columns:
            return self._columns
        with suppress(OSError, ValueError, AttributeError):
            return max(20, os.get_terminal_size(self._stream.fileno()).columns)  # type: ignore[attr-defined]
        return WIDTH

    def _fitting(self, line: str) -> str:
        return encodable(line, "ascii" if self._plain else getattr(self._stream, "encoding", "utf-8"))

    def _put(self, text: str) -> None:
        if text and not self.quiet:
            self._stream.write(text)
            self._stream.flush()


class Pace:
    """How fast pieces of work get done, and how long the rest of `total` will take."""

    def __init__(self, total: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.total = total
        self.done = 0
        self._clock = clock
        self._began = clock()
        self._timed = 0

    def add(self, pieces: int = 1, *, timed: bool = True) -> None:
        """Count finished pieces; `timed` is False for those that took no time now, such as those of an earlier run."""
        self.done += pieces
        self._timed += pieces if timed else 0

    @property
    def rate(self) -> float:
        """Pieces per second; 0 if unknown."""
        passed = self._clock() - self._began
        return self._timed / passed if passed > 0 else 0.0

    def eta(self) -> str:
        """` · ETA 6:10`; empty if unknown."""
        return f" · ETA {duration((self.total - self.done) / self.rate)}" if self.rate else ""


class Counter:
    """Reports how many of something are done: call it with the number done and the total."""

    def __init__(self, live: Live, what: str) -> None:
        self._live = live
        self._what = what
        self._pace: Pace | None = None

    def __call__(self, done: int, whole: int) -> None:
        first, pace = self._pace is None, self._pace or Pace(whole)
        self._pace = pace
        pace.add(done - pace.done, timed=not first)
        rate = f" · {pace.rate:.1f}/s" if pace.rate else ""
        self._live.step(lambda: f"{self._what} {done:,}/{whole:,}{rate}{pace.eta()}", last=done == whole)


def is_terminal(stream: Stream) -> bool:
    """Whether it is a terminal."""
    asked = getattr(stream, "isatty", None)
    try:
        return bool(asked and asked())
    except ValueError:
        return False


def duration(seconds: float) -> str:
    """`6:10`, `1:06:10`, `2 d 1:06`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours}:{minutes:02}"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
