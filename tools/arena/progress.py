"""Counts a run's stored games in the order of their ids, not of their arrival.

One walk over the schedule decides everything that depends on order: which pairs repeat earlier ones, who is withdrawn
after too many faults in a row, and where a sequential test ends. It waits at the first game that is not known, so its
answers are the same for any number of slots, with or without interruptions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..common.pairs import DOUBLED, Ending, Pair, Played
from ..common.sprt import Sprt, Walk
from .schedule import Schedule
from .store import Row
from .values import GameTask

FAULTS = 3
"""Consecutive faults after which an engine is withdrawn."""


class Progress:
    """The games of a run, counted in the order of the schedule. `withdrawn` maps each withdrawn engine to the game that
    decided it, `duplicates` each repeated pair to the earlier one; `counted` are the games that count so far, `test`
    is the sequential test."""

    def __init__(self, schedule: Schedule, names: Sequence[str], test: Sprt | None = None) -> None:
        self.schedule = schedule
        self.names = tuple(names)
        self.test = None if test is None else Walk(test)
        self.withdrawn: dict[int, str] = {}
        self.duplicates: dict[int, int] = {}
        self.counted: list[Row] = []
        self.pairs = 0
        """Pairs finished or skipped."""
        self._games = 2 if schedule.swap else 1
        self._rows: Mapping[tuple[int, int], Row] = {}
        self._next = (1, 1)
        self._open: list[Row] = []
        self._streaks = [0] * len(self.names)
        self._firsts: dict[tuple[object, ...], int] = {}

    @property
    def complete(self) -> bool:
        """Whether nothing is left to play."""
        return self.decided or self._next[0] > len(self.schedule)

    @property
    def decided(self) -> bool:
        """Whether the test has accepted a hypothesis."""
        return self.test is not None and self.test.verdict is not None

    @property
    def stopped_by_faults(self) -> bool:
        """Whether fewer than two engines can still play."""
        return bool(self.withdrawn) and len(self.names) - len(self.withdrawn) < 2

    def needs(self, task: GameTask) -> bool:
        """Whether a game still has to be played, as far as known."""
        return not (self.withdrawn.keys() & set(task.engines)) and not self.decided

    def walk(self, rows: Mapping[tuple[int, int], Row]) -> list[str]:
        """Count as far as the stored `rows` allow; returns sentences about what was found."""
        self._rows = rows
        said: list[str] = []
        while not self.complete:
            number, game = self._next
            pair = self.schedule.pair(number)
            if not self.withdrawn.keys() & set(pair.engines):
                row = rows.get((number, game))
                if row is None:
                    break
                said += self._judge(row)
                self._open.append(row)
            if game == self._games:
                said += self._close(number)
                self._next = (number + 1, 1)
            else:
                self._next = (number, game + 1)
        return said

    def _judge(self, row: Row) -> Iterator[str]:
        """Faults in a row."""
        if row.winner is not None:
            self.counted.append(row)
        for side, engine in enumerate(row.engines):
            if row.fault is None or row.fault[0] != side:
                self._streaks[engine] = 0
                continue
            self._streaks[engine] += 1
            if self._streaks[engine] == FAULTS and engine not in self.withdrawn:
                self.withdrawn[engine] = row.id
                words = row.fault[1].replace("_", " ")
                yield (
                    f"{self.names[engine]} is withdrawn after {FAULTS} faults in a row,"
                    f" the last in game {row.id}: {words}"
                )

    def _close(self, number: int) -> list[str]:
        """All games of a pair are known, or will never be."""
        rows, self._open = tuple(self._open), []
        self.pairs += 1
        if len(rows) < self._games or any(row.winner is None for row in rows):
            self._count(number, ())
            return []
        # Both games alike, up to symmetry, between the same engines.
        first = self._firsts.setdefault((rows[0].engines, *(row.key for row in rows)), number)
        if first != number:
            self.duplicates[number] = first
            self._count(number, ())
            return [f"pair {number} repeats pair {first} and is left out of the statistics"]
        self._count(number, rows)
        return []

    def _count(self, number: int, rows: tuple[Row, ...]) -> None:
        """The results that a pair adds to the test; none if `rows` are missing."""
        if self.test is None:
            return
        classes: tuple[int, ...] = ()
        if len(rows) == 2:
            classes = Pair(self.played(rows[0]), self.played(rows[1])).classes(self.test.test.unit)
        elif rows and rows[0].winner is not None:
            classes = (DOUBLED[rows[0].winner][0],)
        self.test.add(number, classes)

    def played(self, row: Row) -> Played:
        """A row that is a result, as the tallies take it."""
        assert row.winner is not None
        attackers, defenders = (self.names[engine] for engine in row.engines)
        ending = Ending(row.variant, attackers, defenders, row.winner)
        return Played(row.pair, row.game, ending, row.reason, row.captured, row.plies, row.key)

    def games(self) -> Iterator[Played]:
        """The games that count, in the order of their ids, those of repeated pairs among them."""
        return map(self.played, self.counted)

    @property
    def unstarted(self) -> int:
        """Games without a result, because an engine did not start."""
        return sum(row.winner is None for row in self._rows.values())

    @property
    def surplus(self) -> int:
        """Games stored beyond what counts: after the deciding pair, or of an engine already withdrawn."""
        if not self.complete:
            return 0
        stored = sum(row.winner is not None for row in self._rows.values())
        return stored - len(self.counted)
