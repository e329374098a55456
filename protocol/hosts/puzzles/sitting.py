"""One person's way through puzzles: which one comes next, and what counts for the rating."""

from __future__ import annotations

from collections.abc import Sequence

from .scores import Scores
from .suite import Entry


class Sitting:
    """Puzzles shown to one person one after the other, and the `scores` that they change."""

    def __init__(self, scores: Scores) -> None:
        self.scores = scores
        self.entry: Entry | None = None
        """The puzzle that is shown."""
        self.open = False
        """Whether it has no result yet."""
        self._shown: set[str] = set()

    def choose(self, entries: Sequence[Entry]) -> Entry:
        """What was tried least and not in this sitting, then what is nearest to the player's rating."""
        fresh = [entry for entry in entries if entry.id not in self._shown]
        if not fresh:
            self._shown.difference_update(entry.id for entry in entries)
            fresh = list(entries)
        mine = self.scores.player.value

        def order(entry: Entry) -> tuple[int, float, str]:
            return (
                self.scores.tries.get(entry.id, 0),
                abs(self.scores.puzzle(entry).value - mine),
                entry.id,
            )

        return min(fresh, key=order)

    def show(self, entry: Entry) -> None:
        """A puzzle is shown: its first result will count."""
        self.entry = entry
        self.open = True
        self._shown.add(entry.id)

    def result(self, solved: bool) -> float | None:
        """Count a result; by how much the rating changes, None where the puzzle has had its result. ScoresError."""
        if not self.open or self.entry is None:
            return None
        self.open = False
        before = self.scores.player.value
        self.scores.take(self.entry, solved)
        return self.scores.player.value - before

    def keep_no_more(self, solved: bool) -> float:
        """Count in memory the result that could not be written down, and all that follow; the change of the rating."""
        assert self.entry is not None
        self.scores.path = None
        before = self.scores.player.value
        self.scores.take(self.entry, solved)
        return self.scores.player.value - before
