"""The search that an engine is asked for, and how long it may take."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hnefi.engine.session import SessionError

from ...commands import TABLE
from ...messages import Go, command_of, parse_go, words_of
from ...waiting import Patience
from .engine_process import GRACE, TIMEOUTS


@dataclass(slots=True)
class Running:
    """The search that is on: the number and text of its `go`, and how long the engine may take.

    Until `ready` the engine may load and compile what the search needs; no clock runs. `allowed` are the seconds that
    the `go` grants by itself, None if nothing but a `stop` ends it.
    """

    number: int
    line: str
    allowed: float | None
    began: float
    patience: Patience
    ready: bool = False
    stopping: bool = False


class SearchClock:
    """One search at a time, within `most` seconds. `overdue` is called when the engine has had its time."""

    def __init__(self, most: float, overdue: Callable[[], None]) -> None:
        self.search: Running | None = None
        self.times: Mapping[str, int] = {}
        """What the last `go` said of both sides' times, in milliseconds."""
        self.idle = asyncio.Event()
        """Set while no search runs."""
        self.idle.set()
        self._most = most
        self._overdue = overdue
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, number: int, line: str) -> None:
        """The engine is going to be asked for the search of a `go`."""
        go = _parsed(line)
        if go is not None:
            names = ("atime", "dtime", "ainc", "dinc")
            numbers = (*go.limits.clock, *go.limits.inc)
            self.times = {name: value for name, value in zip(names, numbers, strict=True) if value}
            if go.limits.movetime is not None:
                self.times = {**self.times, "movetime": go.limits.movetime}
        held = go is None or go.limits.infinite or go.limits.ponder
        allowed = None if go is None or held else _allowed(go)
        self.search = Running(number, line, allowed, time.monotonic(), Patience(TIMEOUTS.ready, TIMEOUTS))
        self.idle.clear()
        self.watch()

    def start(self) -> None:
        """The engine is ready for the search, and from now on in it."""
        search = self.search
        if search is None or search.ready:
            return
        search.ready = True
        search.began = time.monotonic()
        self._give_time(search)

    def hurry(self, command: str) -> None:
        """The engine is told `stop` or `ponderhit`."""
        search = self.search
        assert search is not None
        if command == "stop":
            search.stopping = True
        else:
            go = _parsed(search.line)
            search.allowed = None if go is None or go.limits.infinite else _allowed(go)
        if search.ready:
            self._give_time(search)

    def put_off(self) -> None:
        """The engine compiles meanwhile."""
        if self.search is not None:
            self.search.patience.put_off()
            if self._timer is not None:
                self.watch()

    def begin_again(self, search: Running) -> None:
        """Another engine is going to be asked for the same."""
        search.ready = False
        search.patience = Patience(TIMEOUTS.ready, TIMEOUTS)

    def end(self) -> None:
        """The engine has answered."""
        self.search = None
        self.idle.set()
        self.rest()

    def rest(self) -> None:
        """No time runs."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def watch(self) -> None:
        """The time of the search, if there is one, runs."""
        self.rest()
        if self.search is not None:
            pause = max(0.0, self.search.patience.deadline - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(pause, self._overdue)

    @property
    def too_long(self) -> bool:
        """Whether the search has had all the time that any search may have, and has not been told to stop."""
        search = self.search
        return (
            search is not None
            and search.ready
            and not search.stopping
            and time.monotonic() - search.began >= self._most
        )

    def _give_time(self, search: Running) -> None:
        """How long a search may take from now on."""
        seconds = self._most
        if search.stopping:
            seconds = GRACE
        elif search.allowed is not None:
            seconds = min(seconds, search.allowed + GRACE)
        search.patience = Patience(seconds, TIMEOUTS)
        self.watch()


def _parsed(line: str) -> Go | None:
    """What a `go` says; None if it cannot be understood."""
    try:
        return parse_go(command_of(words_of(line.encode()), TABLE))
    except SessionError:
        return None


def _allowed(go: Go) -> float | None:
    """How long the limits of a `go` let it last, in seconds; None if they do not say."""
    limits = go.limits
    times = [limits.movetime, *limits.clock]
    known = [max(0, milliseconds) / 1000 for milliseconds in times if milliseconds is not None]
    return max(known) if known else None
