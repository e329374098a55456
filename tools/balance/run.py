"""Plays missing games on any number of processes, which does not affect the games."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from ..common.workers import Job, carried_out
from . import playing, searching
from .entrants import Entrant
from .folder import Key, Log, Openings, Plan, Results, games_in
from .measures import Measures, measure
from .playing import Opening, Task
from .searching import Found, Terms
from .strength import Strength

JOB_MILLISECONDS = 1000.0
"""The rough duration of a job."""
MOST_IN_A_JOB = 100


class Wanted(NamedTuple):
    """Games 0 to `games - 1` of a rule set, a player and a pool."""

    entrant: Entrant
    player: Strength
    games: int
    pool: int = 0

    @property
    def key(self) -> Key:
        """The key of these games in the log."""
        return Key(self.entrant.label, self.player.label, self.pool)


Watch = Callable[[int, int, float, str], None]
"""Called with games done, games in all, the share of work done (0 to 1), and what is being played."""


@cache
def version() -> str:
    """Eight digits that change with the engine's sources: games of different versions may differ."""
    from hnefi import engine

    room = Path(str(engine.__file__)).resolve().parent
    found = hashlib.sha256()
    for file in sorted([*room.rglob("*.py"), *room.rglob("*.toml")]):
        found.update(file.relative_to(room).as_posix().encode() + b"\0" + file.read_bytes())
    return found.hexdigest()[:8]


class Runner:
    """Plays games of a plan and saves them in its folder. Finished games are never played again."""

    def __init__(self, folder: Path, plan: Plan, jobs: int, watch: Watch, backend: str = "") -> None:
        self._plan = plan
        self._jobs = jobs
        self._backend = backend
        self._watch = watch
        self._log = Log(folder, version())
        self.openings = Openings(folder)
        self.results: Results = self._log.read()
        self.began = time.monotonic()

    @property
    def versions(self) -> set[str]:
        """Versions of the engine whose games are in the folder."""
        return self._log.versions

    def play(self, wanted: Sequence[Wanted]) -> None:
        """Play the missing games; players skip rule sets that they cannot play."""
        wanted = [want for want in wanted if want.player.misfit(want.entrant.variant) is None]
        if self.complete(wanted):
            return
        self._find_openings(wanted)
        tasks = [task for want in wanted for task in self._tasks(want)]
        costs = [_cost(task) for task in tasks]
        number = sum(len(task.numbers) for task in tasks)
        all_games = sum(want.games for want in wanted)
        finished, cost_done, cost = all_games - number, 0.0, sum(costs) or 1.0
        self._watch(finished, all_games, 0.0, "")
        for index, played in carried_out(
            [partial(playing.play, task) for task in tasks], self._jobs, self._backend
        ):
            task = tasks[index]
            key = Key(task.entrant.label, task.player.label, task.pool)
            self._log.append(key, played)
            self.results.setdefault(key, {}).update({game.number: game for game in played})
            finished, cost_done = finished + len(played), cost_done + costs[index]
            self._watch(finished, all_games, cost_done / cost, f"{key.entrant} {key.player}")

    def complete(self, wanted: Sequence[Wanted]) -> bool:
        """Whether all these games have been played."""
        return not any(self._missing(want) for want in wanted)

    def _missing(self, want: Wanted) -> list[int]:
        there = self.results.get(want.key, {})
        limit = want.games
        if not want.player.varied:
            known = self.openings.get(want.entrant.label, want.pool, want.games)
            limit = want.games if known is None else len(known)
        return [number for number in range(limit) if number not in there]

    def _tasks(self, want: Wanted) -> Iterator[Task]:
        openings = self.openings.get(want.entrant.label, want.pool, want.games)
        if not openings:
            return
        missing = self._missing(want)
        each = JOB_MILLISECONDS / want.player.milliseconds(want.entrant.variant.size)
        size = max(1, min(MOST_IN_A_JOB, round(each)))
        for first in range(0, len(missing), size):
            numbers = tuple(missing[first : first + size])
            yield Task(
                want.entrant,
                want.player,
                want.pool,
                numbers,
                tuple(openings[number % len(openings)] for number in numbers),
                self._plan.seed,
                self._plan.most_plies,
            )

    def _find_openings(self, wanted: Sequence[Wanted]) -> None:
        """Find openings for all rule sets, beginning with those that others are compared with."""
        need: dict[tuple[str, int], tuple[Entrant, int]] = {}
        for want in wanted:
            place = (want.entrant.label, want.pool)
            need[place] = (want.entrant, max(want.games, need.get(place, (want.entrant, 0))[1]))
        known = {entrant.label: entrant for entrant in self._plan.entrants}
        for (_, pool), (entrant, count) in list(need.items()):
            if entrant.base:
                asked = need.get((entrant.base, pool), (entrant, 0))[1]
                need[entrant.base, pool] = (known[entrant.base], max(count, asked))
        for compared in (False, True):
            todo = [
                (entrant, pool, count)
                for (label, pool), (entrant, count) in need.items()
                if bool(entrant.base) is compared and self.openings.get(label, pool, count) is None
            ]
            jobs = [self._seeking(*place) for place in todo]
            for done, (index, found) in enumerate(carried_out(jobs, self._jobs, self._backend), 1):
                entrant, pool, count = todo[index]
                self.openings.put(entrant.label, pool, count, found)
                self._watch(done, len(todo), 0.0, "openings")

    def _seeking(self, entrant: Entrant, pool: int, count: int) -> Job:
        seed = self._plan.seed + 1_000_003 * pool
        if not entrant.base:
            return partial(playing.own_openings, entrant.variant, count, seed)
        shared: list[Opening] | None = self.openings.get(entrant.base, pool, count)
        assert shared is not None
        return partial(playing.shared_openings, entrant.variant, shared, seed)


def _cost(task: Task) -> float:
    return len(task.numbers) * task.player.milliseconds(task.entrant.variant.size)


def cells(plan: Plan) -> list[Wanted]:
    """Everything that a table or a comparison plays, weak players first."""
    return [
        Wanted(entrant, player, plan.games_of(player.label))
        for player in plan.strengths()
        for entrant in plan.entrants
    ]


def terms_of(plan: Plan) -> Terms:
    """The terms of a search from its plan."""
    return Terms(**plan.search)


def measured(runner: Runner, plan: Plan) -> searching.Measure:
    """The function with which a search measures rule sets; it plays missing games with the plan's last player."""
    player = plan.strengths()[-1]

    def play(entrants: Sequence[Entrant], games: int, pool: int) -> Mapping[str, Measures]:
        runner.play([Wanted(entrant, player, games, pool) for entrant in entrants])
        return _measures(runner.results, player.label, entrants, games, pool)

    return play


def search_results(runner: Runner, plan: Plan) -> Found | None:
    """The result of a search if all of its games are finished; None if some are missing."""
    player = plan.strengths()[-1]

    def look_up(entrants: Sequence[Entrant], games: int, pool: int) -> Mapping[str, Measures]:
        if not runner.complete([Wanted(entrant, player, games, pool) for entrant in entrants]):
            raise LookupError
        return _measures(runner.results, player.label, entrants, games, pool)

    try:
        return searching.find(plan.entrants[0], terms_of(plan), look_up)
    except LookupError:
        return None


def _measures(
    results: Results, player: str, entrants: Sequence[Entrant], games: int, pool: int
) -> dict[str, Measures]:
    found = {
        entrant.label: measure(games_in(results, Key(entrant.label, player, pool), games))
        for entrant in entrants
    }
    return {label: measures for label, measures in found.items() if measures is not None}
