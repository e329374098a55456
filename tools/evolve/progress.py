"""Progress of an evolution: one live line on a terminal, elsewhere a plain line now and then."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from ..common.live import PAUSE, Live, Stream, duration

WINDOW = 20.0
"""Seconds over which speed is averaged."""


class Progress:
    """Shows runs of `generations` generations on a stream. `runs` has the generations that are finished already, by
    seed; the learner's `describe` turns a report into words. `quiet` shows nothing."""

    def __init__(
        self,
        stream: Stream,
        runs: Mapping[int, int],
        generations: int,
        *,
        describe: Callable[[Mapping[str, Any]], list[str]],
        quiet: bool = False,
        plain: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._live = Live(stream, plain=plain or quiet, clock=clock)
        self._quiet = quiet
        self._clock = clock
        self._describe = describe
        self._generations = generations
        self._at = dict(runs)
        self._shown = clock()
        self._recent: deque[tuple[float, int, int]] = deque([(clock(), 0, sum(runs.values()))])
        self._games = 0
        self._report: Mapping[str, Any] = {}

    def say(self, line: str) -> None:
        """A line that stays."""
        if not self._quiet:
            self._live.report([line])

    def step(self, seed: int, report: Mapping[str, Any]) -> None:
        """Report a finished generation of a run."""
        now = self._clock()
        self._at[seed] = report["generation"]
        self._games += report["games"]
        self._report = report
        if self._recent[0][1] == 0 and len(self._recent) > 1:
            self._recent.popleft()  # the first generation may have waited for compiled kernels
        self._recent.append((now, self._games, sum(self._at.values())))
        while len(self._recent) > 2 and now - self._recent[0][0] > WINDOW:
            self._recent.popleft()
        if self._quiet:
            return
        complete = min(self._at.values()) >= self._generations
        if self._live.terminal:
            self._live.show(lambda: [self.line()])
        elif complete or now - self._shown >= PAUSE:
            self._live.report([self.line()])
            self._shown = now

    def end(self) -> None:
        """Finish; on a terminal the last line stays."""
        if self._live.terminal and not self._quiet and self._report:
            last = self.line()
            self._report = {}
            self._live.close()
            self._live.report([last])

    def line(self) -> str:
        """`generation 37/300 · best 3.42 median 2.10 · by captures 61 % · drawn 12 % · 2,950 games/s · ETA 0:01:23`"""
        report = self._report
        low, high = min(self._at.values()), max(self._at.values())
        parts = [f"generation {low}{f'–{high}' if high > low else ''}/{self._generations}"]
        if len(self._at) > 1:
            parts.insert(0, f"{len(self._at)} runs")
        parts += self._describe(report)
        began, games, generations = self._recent[0]
        now, games_now, generations_now = self._recent[-1]
        if now > began and generations_now > generations:
            left = self._generations * len(self._at) - generations_now
            seconds = left * (now - began) / (generations_now - generations)
            parts += [f"{(games_now - games) / (now - began):,.0f} games/s", f"ETA {duration(seconds)}"]
        return " · ".join(parts)
