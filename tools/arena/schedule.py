"""Which games a run consists of: pair by pair, every fact of pair n fixed by configuration, seed and n alone.

Rounds are the outermost loop: in each of them every meeting plays one pair of every variant, all from the same
opening of that variant. More pairs therefore only append.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import TYPE_CHECKING, Literal

from .options import Config
from .values import EngineSpec, GameTask, Opening, is_rules

if TYPE_CHECKING:
    from ..common.sprt import Sprt

VERSION = 1
"""Increased whenever the same configuration would give different games."""

PLIES = 200
"""A long game, for the longest duration of a run."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One pair: its number from 1, its round from 1, which engines meet (the first attacks in the first game), the
    variant and the place of its opening in that variant's list, from 0."""

    number: int
    round: int
    engines: tuple[int, int]
    variant: str
    opening: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """All pairs of a run, computed on demand."""

    meetings: tuple[tuple[int, int], ...]
    variants: tuple[str, ...]
    rounds: int
    seed: int
    swap: bool = True
    repeat: int = 1
    first: int = 0
    often: int | None = None
    """The number of meetings played in every round; all others are played only in the first `seldom` rounds.
    None: all."""
    seldom: int = 0

    def __len__(self) -> int:
        """The number of pairs."""
        return self._whole * len(self.meetings) * len(self.variants) + (
            (self.rounds - self._whole) * len(self._later) * len(self.variants)
        )

    @property
    def _whole(self) -> int:
        """Rounds in which every meeting is played."""
        return self.rounds if self.often is None else min(self.rounds, self.seldom)

    @property
    def _later(self) -> tuple[tuple[int, int], ...]:
        """The meetings of all later rounds."""
        return self.meetings[: self.often]

    @property
    def games(self) -> int:
        """The number of games."""
        return len(self) * (2 if self.swap else 1)

    @property
    def openings(self) -> int:
        """The number of openings that every variant needs, counted from the start of the list."""
        return self.first + -(-self.rounds // self.repeat)

    def pair(self, number: int) -> Pair:
        """Pair `number`; IndexError if there is none."""
        if not 1 <= number <= len(self):
            raise IndexError(f"pair {number}: expected 1 to {len(self)}")
        rest, variant = divmod(number - 1, len(self.variants))
        meetings, begun = self.meetings, 0
        if rest >= self._whole * len(meetings):
            rest -= self._whole * len(meetings)
            meetings, begun = self._later, self._whole
        played, meeting = divmod(rest, len(meetings))
        played += begun
        return Pair(
            number,
            played + 1,
            meetings[meeting],
            self.variants[variant],
            self.first + played // self.repeat,
        )

    def tasks(self, number: int, openings: Mapping[str, Sequence[Opening]]) -> tuple[GameTask, ...]:
        """The games of pair `number`: two with sides swapped, or one where sides are not swapped."""
        pair = self.pair(number)
        games: tuple[Literal[1, 2], ...] = (1, 2) if self.swap else (1,)
        return tuple(self._task(pair, game, openings[pair.variant][pair.opening]) for game in games)

    def _task(self, pair: Pair, game: Literal[1, 2], opening: Opening) -> GameTask:
        one, two = pair.engines
        engines = (one, two) if game == 1 else (two, one)
        seeds = (
            seed(self.seed, f"{pair.number}.{game}", engines[0]),
            # An engine may play itself.
            seed(self.seed, f"{pair.number}.{game}", engines[1]),
        )
        return GameTask(pair.number, game, pair.variant, opening, engines, seeds)

    def all_tasks(self, openings: Mapping[str, Sequence[Opening]]) -> Iterator[GameTask]:
        """Every game in the order of its id."""
        for number in range(1, len(self) + 1):
            yield from self.tasks(number, openings)


def make(config: Config) -> Schedule:
    """The schedule of a configuration."""
    run = config.tables["run"]
    test = config.test
    rounds = run["pairs"] if test is None else config["sprt.max_pairs"] or longest_test(test)
    ladder = run["format"] == "ladder"
    return Schedule(
        meetings=meetings(run["format"], len(config.engines), run["challengers"]),
        variants=variants(config),
        rounds=rounds,
        seed=run["seed"],
        swap=run["swap"],
        repeat=config["openings.repeat"],
        first=config["openings.first"] - 1,
        often=len(config.engines) - 1 if ladder else None,
        seldom=run["others"] if ladder else 0,
    )


def variants(config: Config) -> tuple[str, ...]:
    """What is played: names, or one rules string."""
    rules: str = config["run.rules"]
    return (rules,) if rules else tuple(config["run.variants"])


def meetings(form: str, engines: int, challengers: int = 1) -> tuple[tuple[int, int], ...]:
    """Which engines meet, as indices; the one named first is first. Neighbours come first in a ladder."""
    if form == "gauntlet":
        return tuple((one, two) for one in range(challengers) for two in range(challengers, engines))
    if form == "ladder":
        return tuple(sorted(combinations(range(engines), 2), key=lambda pair: pair[1] - pair[0] > 1))
    return tuple(combinations(range(engines), 2))


def longest_test(test: Sprt) -> int:
    """The number of pairs after which a sequential test ends in any case."""
    expected = test.expected or replace(test, model="normalized").expected
    assert expected is not None
    return max(100, round(3 * max(expected)))


def seed(run: int, game: str, engine: int) -> int:
    """What an engine's `Seed` is in one game: 32 bits of a hash."""
    return int.from_bytes(hashlib.sha256(f"{run} {game} {engine}".encode()).digest()[:4], "big")


def longest(schedule: Schedule, specs: Sequence[EngineSpec], slots: int) -> float | None:
    """Seconds that the run takes at most if no game has more than `PLIES` plies; None where no clock runs."""
    if not all(limits.timed for spec in specs for limits in spec.limits):
        return None
    per_round = 0.0
    for one, two in schedule.meetings:
        games = ((one, two), (two, one)) if schedule.swap else ((one, two),)
        for attackers, defenders in games:
            per_round += _thinking(specs[attackers], 0) + _thinking(specs[defenders], 1)
    return schedule.rounds * len(schedule.variants) * per_round / max(1, slots)


def _thinking(spec: EngineSpec, side: int) -> float:
    """Seconds that one side thinks at most in `PLIES` plies."""
    limits = spec.limits[side]
    moves = PLIES // 2
    if limits.time is None:
        return moves * ((limits.movetime or 0) + spec.margin) / 1000
    periods = -(-moves // limits.moves) if limits.moves else 1
    allowed = periods * limits.time + moves * limits.increment
    if limits.movetime is not None:
        allowed = min(allowed, moves * limits.movetime)
    return (allowed + moves * spec.margin) / 1000


def listing(
    schedule: Schedule, names: Sequence[str], openings: Mapping[str, Sequence[Opening]], limit: int = 200
) -> Iterator[str]:
    """The games as lines for people: id, sides, variant, opening, seeds; only the first `limit` and the last pair, if
    there are many more."""
    tasks = schedule.all_tasks(openings)
    last = schedule.tasks(len(schedule), openings)
    left_out = schedule.games - limit - len(last)
    yield from _game_lines(tasks if left_out <= 0 else islice(tasks, limit), names)
    if left_out > 0:
        yield f"... and {left_out} more games, up to"
        yield from _game_lines(last, names)


def _game_lines(tasks: Iterable[GameTask], names: Sequence[str]) -> Iterator[str]:
    for task in tasks:
        attackers, defenders = (names[engine] for engine in task.engines)
        yield (
            f"{task.id:<7} {attackers} (a) - {defenders} (d)  {'by rules' if is_rules(task.variant) else task.variant}"
            f"  opening {task.opening.text}  seeds {task.seeds[0]} {task.seeds[1]}"
        )


def expected_pairs(test: Sprt | None) -> list[str]:
    """What a sequential test is expected to take, as a line of text if that is known."""
    if test is None or test.expected is None:
        return []
    h0, h1, midway = (f"{round(number):,}" for number in test.expected)
    unit = {"pair": "pairs", "game": "games", "match": "matches"}[test.unit]
    return [f"expected {unit}: {h0} if H0 is true, {h1} if H1 is true, {midway} midway"]
