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
from functools import partial
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
MIXED = 16
"""A part for a thread takes every sixteenth match, because neighbouring matches are alike."""


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
        records = self.network.records(self.variant, self.weights)
        params = [*(records[i : i + 1] for i in range(networks)), *map(self._fixed_params, self.fixed)]
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
                    params[place],
                    unseen=self.unseen and ours,
                    learned=self.learned and ours,
                )
            )
        return seated

    def _fixed_params(self, purpose: Purpose) -> Any:
        """The parameters of a fixed opponent: None for Random."""
        return Network("simple").record(self.variant, np.zeros(0)) if purpose == Purpose.SIMPLE else None


def play(contestants: Contestants, games: Any) -> Any:
    """Play games between contestants (by number) in another process, at a table with those that play; returns them, an
    array of dtype `match.GAME`."""
    chosen, numbers = np.unique([games["attackers"], games["defenders"]], return_inverse=True)
    games = games.copy()
    games["attackers"], games["defenders"] = numbers.reshape(2, -1)
    contestants.table(chosen).play(games)
    return games


def _work(
    seated: Sequence[Any], variant: AnyVariant, tables: deque[Any], games: Any, parts: deque[Any]
) -> None:
    """A thread of this process: take `parts` of `games` until none is left, at a table with all contestants that is put
    back for the next generation. It writes the results itself, because a thread that collected them would be a third
    one on two cores, and the others would wait for it again and again."""
    from hnefi.engine.selfplay.match import Table

    table = None
    with suppress(IndexError):
        table = tables.pop()
    if table is None or table.variant != variant:
        table = Table(variant, seated)
    else:
        table.seat(seated)
    while True:
        try:
            part = parts.popleft()
        except IndexError:
            break
        played = games[part].ravel()
        table.play(played)
        games[part] = played.reshape(-1, 2)
    tables.append(table)


@dataclass(slots=True)
class Executor:
    """Plays the schedules of one run with `jobs` threads, or processes of a `backend` where that pays."""

    jobs: int = 1
    backend: str = ""
    _seconds_per_match: float = field(default=0.0, init=False)
    _tables: deque[Any] = field(default_factory=deque, init=False)

    def __call__(self, contestants: Contestants, schedule: Schedule) -> Games:
        """The results of all games; they depend on neither `jobs` nor `backend`."""
        from hnefi.engine.selfplay.match import GAME

        began = time.monotonic()
        count = len(schedule)
        games = np.zeros((count, 2), GAME)
        for name, column in zip(("attackers", "defenders", "seed"), schedule.games, strict=True):
            games[name] = column.reshape(-1, 2)
        seconds = self._seconds_per_match * count
        if self.backend and seconds > 2 * JOB_SECONDS:
            self._play_elsewhere(contestants, games, 2 * min(self.jobs, int(seconds / JOB_SECONDS)))
        else:
            self._play_here(contestants, games)
        self._seconds_per_match = (time.monotonic() - began) * self.jobs / max(1, count)
        return finished(games)

    def _play_elsewhere(self, contestants: Contestants, games: Any, number: int) -> None:
        parts = _equal_parts(len(games), number if self.jobs > 1 else 1)
        jobs = [partial(play, contestants, games[part].ravel()) for part in parts]
        for part, played in through_joblib(jobs, self.backend, self.jobs):
            games[parts[part]] = played.reshape(-1, 2)

    def _play_here(self, contestants: Contestants, games: Any) -> None:
        parts = deque(_falling_parts(len(games), self.jobs))
        seated = contestants.seated(range(len(contestants)))
        work = partial(_work, seated, contestants.variant, self._tables, games, parts)
        try:
            for _ in in_threads([work] * min(self.jobs, len(parts)), self.jobs):
                pass
        finally:
            parts.clear()  # after an interrupt nobody wants the rest

    def each(self, jobs: Sequence[Callable[[], Any]]) -> list[Any]:
        """Run the jobs in threads; returns their results in order."""
        found: list[Any] = [None] * len(jobs)
        for number, result in in_threads(jobs, self.jobs):
            found[number] = result
        return found


def _equal_parts(matches: int, number: int) -> list[Any]:
    """The matches of each part, by number. Neighbouring matches are alike, so every part gets some of all kinds."""
    return [np.arange(part, matches, number) for part in range(max(1, min(number, matches)))]


def _falling_parts(matches: int, workers: int) -> list[Any]:
    """The same in parts that become smaller and smaller, so that no worker waits long for the last one: each is a
    worker's share of half of what is left (C. Polychronopoulos and D. Kuck, "Guided self-scheduling", 1987)."""
    if workers == 1:
        return [np.arange(matches)]
    order = np.concatenate(_equal_parts(matches, MIXED))
    parts = []
    while len(order):
        size = max(1, len(order) // (2 * workers))
        parts.append(order[:size])
        order = order[size:]
    return parts
