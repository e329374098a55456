"""Which of our levels would be an even match for a person, from the games of one sitting."""

from __future__ import annotations

from typing import Final

from hnefi.engine.search import elo_table
from hnefi.protocol.hosts.puzzles.glicko import Rating, updated

FEWEST: Final = 3
"""Games after which a level is suggested: fewer say little."""
UNSURE: Final = 60.0
"""The deviation of a level's rating: it was measured over several variants."""
UNMEASURED: Final = {0: elo_table.LOWEST - 100, 10: elo_table.HIGHEST + 150}
"""Guesses where the ladder has no rating: level 0 scored 36 % against level 1, level 10 thinks longer than level 9."""
RATINGS: Final = {**UNMEASURED, **dict(elo_table.MEASURED)}


class Standing:
    """Results of a person against our levels."""

    def __init__(self) -> None:
        self._results: list[tuple[int, float]] = []

    def add(self, level: int, score: float) -> None:
        """A game at a level, with the person's score: 1 for a win, 0.5 for a draw, 0."""
        self._results.append((level, score))

    def suggestion(self) -> str | None:
        """A sentence about a level that would be nearer to the person than that of the last game; None if none is, or
        nothing can be said yet."""
        if len(self._results) < FEWEST:
            return None
        played = self._results[-1][0]
        results = [(Rating(RATINGS[level], UNSURE), score) for level, score in self._results]
        mine = updated(Rating(results[0][0].value), results).value
        near = min(RATINGS, key=lambda level: abs(RATINGS[level] - mine))
        if near == played:
            return None
        score = sum(score for _, score in self._results)
        return (
            f"You scored {score:g} of {len(self._results)} against our levels: "
            f"level {near} would be an even match. `level {near}` and `new` try it."
        )
