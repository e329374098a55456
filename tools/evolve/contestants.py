"""The players, which are networks given by their weights and fixed opponents; whole games between them in kernels.

Kernels release the GIL, so a single run on one machine uses threads: a generation may take just a tenth of a second,
too little for other processes.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np

from hnefi.engine.evaluators.network import Network
from hnefi.engine.games.base_variant import AnyVariant

from ..common.matches import Games, finished
from ..common.workers import in_threads, through_joblib
from .algorithm import Purpose
from .fitness import Schedule

JOB_SECONDS = 1.0
"""Minimum seconds of a job in another process."""
PARTS = 8
"""Parts of a generation per thread."""


@dataclass(frozen=True, slots=True)
class Contestants:
    """The contestants of a schedule in order: networks (a row of `weights` each), then the `fixed` opponents. This list
    is repeated for each of `depths`, the number of plies that its contestants look ahead; if Random is `terminal`, it
    sees wins and losses that far. Networks that are `unseen` see no wins, `learned` ones have to learn what is legal
    (`engine.selfplay.match.Contestant`)."""

    variant: AnyVariant
    network: Network
    weights: Any
    fixed: tuple[Purpose, ...]
    depths: tuple[int, ...] = (1,)
    terminal: bool = False
    unseen: bool = False
    learned: bool = False

    def __len__(self) -> int:
        return (len(self.weights) + len(self.fixed)) * len(self.depths)

    def table(self, chosen: Iterable[int]) -> Any:
        """A `contest.Table` of the contestants with the numbers `chosen`."""
        from hnefi.engine.selfplay.match import Table

        return Table(self.variant, self.seated(chosen))

    def seated(self, chosen: Iterable[int]) -> list[Any]:
        """The contestants with the numbers `chosen`, each a `match.Contestant`."""
        from hnefi.engine.selfplay.match import Contestant

        networks = len(self.weights)
        row = networks + len(self.fixed)
        params = cache(self._params)
        seated = []
        for seat in chosen:
            level, place = divmod(int(seat), row)
            if place >= networks and self.fixed[place - networks] == Purpose.RANDOM and not self.terminal:
                seated.append(Contestant("random"))
                continue
            ours = place < networks
            seated.append(
                Contestant(
                    "minimax",
                    self.depths[level],
                    params(place),
                    unseen=self.unseen and ours,
                    learned=self.learned and ours,
                )
            )
        return seated

    def _params(self, place: int) -> Any:
        """The parameters of a player at the first depth."""
        if place < len(self.weights):
            return self.network.record(self.variant, self.weights[place])
        if self.fixed[place - len(self.weights)] == Purpose.SIMPLE:
            return Network("simple").record(self.variant, np.zeros(0))
        return None


def play(contestants: Contestants, attackers: Any, defenders: Any, seeds: Any) -> Any:
    """Play games between contestants (by number); returns an array of dtype `contest.GAME`. Only contestants that play
    are built."""
    chosen, numbers = np.unique(np.concatenate([attackers, defenders]), return_inverse=True)
    return _play(contestants.table(chosen), numbers[: len(seeds)], numbers[len(seeds) :], seeds)


def at_tables(contestants: Contestants, tables: deque[Any]) -> Callable[[Any, Any, Any], Any]:
    """The same for threads of this process. Each takes a `contest.Table` with all contestants and puts it back, for
    the next part or generation."""
    from hnefi.engine.selfplay.match import Table

    seated = contestants.seated(range(len(contestants)))

    def play(attackers: Any, defenders: Any, seeds: Any) -> Any:
        table = None
        with suppress(IndexError):
            table = tables.pop()
        if table is None or table.variant != contestants.variant:
            table = Table(contestants.variant, seated)
        elif table.contestants is not seated:
            table.seat(seated)
        games = _play(table, attackers, defenders, seeds)
        tables.append(table)
        return games

    return play


def _play(table: Any, attackers: Any, defenders: Any, seeds: Any) -> Any:
    from hnefi.engine.selfplay import match as contest

    games = np.zeros(len(seeds), contest.GAME)
    games["attackers"], games["defenders"], games["seed"] = attackers, defenders, seeds
    table.play(games)
    return games


@dataclass(slots=True)
class Executor:
    """Plays the schedules of one run with `jobs` threads, or processes of a `backend` where that pays."""

    jobs: int = 1
    backend: str = ""
    _seconds_per_match: float = field(default=0.0, init=False)
    _tables: deque[Any] = field(default_factory=deque, init=False)

    def __call__(self, contestants: Contestants, schedule: Schedule) -> Games:
        """The results of all games; they depend on neither `jobs` nor `backend`."""
        began = time.monotonic()
        count = len(schedule)
        seconds = self._seconds_per_match * count
        remote = bool(self.backend) and seconds > 2 * JOB_SECONDS
        # Local parts cost nothing, so there are enough of them that no worker waits long for the last one.
        number = 2 * min(self.jobs, int(seconds / JOB_SECONDS)) if remote else PARTS * self.jobs
        parts = _parts(count, number if self.jobs > 1 else 1)
        pairs = [column.reshape(-1, 2) for column in schedule.games]
        carry_out = partial(play, contestants) if remote else at_tables(contestants, self._tables)
        jobs = [partial(carry_out, *(column[part].ravel() for column in pairs)) for part in parts]
        found = None
        results = through_joblib(jobs, self.backend, self.jobs) if remote else in_threads(jobs, self.jobs)
        for number, games in results:
            if found is None:
                found = np.zeros((count, 2), games.dtype)
            found[parts[number]] = games.reshape(-1, 2)
        self._seconds_per_match = (time.monotonic() - began) * self.jobs / max(1, count)
        return finished(found)

    def each(self, jobs: Sequence[Callable[[], Any]]) -> list[Any]:
        """Run the jobs in threads; returns their results in order."""
        found: list[Any] = [None] * len(jobs)
        for number, result in in_threads(jobs, self.jobs):
            found[number] = result
        return found


def _parts(matches: int, number: int) -> list[Any]:
    """The matches of each part, by number. Neighbouring matches are alike, so every part gets some of all kinds."""
    return [np.arange(part, matches, number) for part in range(max(1, min(number, matches)))]
