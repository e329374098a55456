"""The thread of a session: one job at a time, and reports of a search at a bounded rate."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from .search.types import Info, Limits

T = TypeVar("T")

INFO_RATE = 20.0
"""So many reports a second reach the callback on average; the last ones always do."""
INFO_BURST = 12.0
"""So many may come at once, after some quiet."""


class Job:
    """Something that runs in the search thread; a search is the one kind that `stop` ends."""

    def __init__(self, word: str, limits: Limits | None = None) -> None:
        self.word = word
        self.limits = limits
        self.ended = threading.Event()
        self.released = threading.Event()
        """When the answer need not be held back any more (`infinite`, `ponder`)."""
        if limits is None or not (limits.infinite or limits.ponder):
            self.released.set()


class Reporter:
    """Hands reports on, at a bounded rate; what was held back is replaced by newer reports, never lost at the end."""

    def __init__(self, on_info: Callable[[Info], None]) -> None:
        self._on_info = on_info
        self._held: dict[int, Info] = {}
        self._allowance = INFO_BURST
        self._last = time.monotonic()

    def __call__(self, info: Info) -> None:
        now = time.monotonic()
        self._allowance = min(INFO_BURST, self._allowance + (now - self._last) * INFO_RATE)
        self._last = now
        self._held[info.multipv] = info
        if self._allowance >= 1.0:
            self._allowance -= len(self._held)
            self.flush()

    def flush(self) -> None:
        """Hands on what is held back, in the order of the lines."""
        held, self._held = self._held, {}
        for number in sorted(held):
            self._on_info(held[number])


class SearchThread:
    """Runs one `Job` after the other, each in a thread; failures go to `on_error`.

    While an answer is given out the job still counts as running: a host that has seen the answer finds it ended.
    """

    def __init__(self, on_error: Callable[[Exception], None]) -> None:
        self._on_error = on_error
        self._job: Job | None = None
        self._turn = threading.RLock()

    @property
    def job(self) -> Job | None:
        """What is running; while an answer is given out, this waits until it has been."""
        with self._turn:
            return self._job

    @property
    def search(self) -> Job | None:
        """The search that is running, for those who must not wait for an answer that is given out."""
        job = self._job
        return job if job is not None and job.limits is not None else None

    def start(self, job: Job, target: Callable[[], None]) -> None:
        """Calls `target` in a thread; it has to `finish` the job."""
        self._job = job
        threading.Thread(target=target, daemon=True, name="search").start()

    def run(self, word: str, work: Callable[[], T], on_done: Callable[[T], None]) -> None:
        """Runs `work` and gives its value to `on_done`; `word` says what it is, to those who are refused meanwhile."""
        job = Job(word)
        self.start(job, lambda: self._work(job, work, on_done))

    def finish(self, job: Job, answer: Callable[[], None]) -> None:
        """Gives the answer out and ends the job."""
        with self._turn:
            try:
                answer()
            finally:
                self._job = None
                job.ended.set()

    def ended(self) -> threading.Event:
        """Set when what is running now has ended."""
        job = self._job
        if job is None:
            job = Job("")
            job.ended.set()
        return job.ended

    def _work(self, job: Job, work: Callable[[], T], on_done: Callable[[T], None]) -> None:
        try:
            value = work()
        except Exception as error:  # noqa: BLE001 - reported; the session continues
            problem = error
            self.finish(job, lambda: self._on_error(problem))
        else:
            self.finish(job, lambda: on_done(value))
