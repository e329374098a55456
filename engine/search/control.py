"""Stopping a running search from outside: the stop word, the timer, and pondering until the clock starts.

A search is begun by the thread that also sends `stop` and `ponderhit`, and runs in another one.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from .clock import Budget


class SearchControl:
    """How one searcher's searches are stopped; `signal` writes the word that every node reads, 1 to stop and 0 to go.

    `begin`, `stop` and `ponderhit` may be called while a search runs in another thread.
    """

    def __init__(self, signal: Callable[[int], None]) -> None:
        self._signal = signal
        self._stopped = False
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._pondering: Budget | None = None
        self._hit = False

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called since the last `begin`; not where the time was up."""
        return self._stopped

    @property
    def pondering(self) -> bool:
        """Whether the clock has not started yet."""
        with self._lock:
            return self._pondering is not None

    def begin(self) -> None:
        """Reset an earlier `stop` or `ponderhit`."""
        self._stopped = False
        self._hit = False
        self._signal(0)

    def stop(self) -> None:
        """Stop the running search as soon as possible."""
        self._stopped = True
        self._signal(1)

    def ponderhit(self) -> None:
        """The expected move was played: start the clock."""
        with self._lock:
            self._hit = True
            waiting, self._pondering = self._pondering, None
            if waiting is not None:
                waiting.start()
                self._watch(waiting)

    @contextlib.contextmanager
    def watching(self, budget: Budget, *, ponder: bool) -> Iterator[None]:
        """Within the block, stop the search when its time is up; with `ponder`, the clock starts at `ponderhit`."""
        with self._lock:
            if ponder and not self._hit:
                self._pondering = budget
            else:
                budget.start()
                self._watch(budget)
        try:
            yield
        finally:
            with self._lock:
                self._pondering = None
                if self._timer is not None:
                    self._timer.cancel()
                    self._timer = None

    def _watch(self, budget: Budget) -> None:
        if budget.hard is None:
            return
        seconds = max(0.0, budget.hard - budget.elapsed()) / 1000
        self._timer = threading.Timer(seconds, self._signal, args=(1,))
        self._timer.daemon = True
        self._timer.start()
