"""Which of our levels would be an even match for a person: a suggestion from the games of one sitting, and, for
`level auto`, a rating that is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from hnefi.engine import durable
from hnefi.engine.regular import read_regular
from hnefi.engine.search import elo_table
from hnefi.protocol.hosts.journal import data_folder
from hnefi.protocol.hosts.puzzles import glicko
from hnefi.protocol.hosts.puzzles.glicko import Rating, updated

FEWEST: Final = 3
"""Games after which a level is suggested: fewer say little."""
UNSURE: Final = 60.0
"""The deviation of a level's rating: it was measured over several variants."""
UNMEASURED: Final = {0: elo_table.LOWEST - 100, 10: elo_table.HIGHEST + 150}
"""Guesses where the ladder has no rating: level 0 scored 36 % against level 1, level 10 thinks longer than level 9."""
RATINGS: Final = {**UNMEASURED, **dict(elo_table.MEASURED)}
FIRST: Final = Rating(float(RATINGS[1]))
"""A person of whom nothing is known begins at level 1: a first win encourages, and the next game is harder."""
SUREST: Final = 150.0
"""The least deviation of a person's rating: people learn, and a few games must be able to change the level."""
FORMAT: Final = 1
FILE: Final = "standing.json"


class StandingError(ValueError):
    """A file of results that cannot be read or written; the message is a sentence."""


def nearest(rating: float) -> int:
    """The level that is nearest to a rating."""
    return min(RATINGS, key=lambda level: abs(RATINGS[level] - rating))


def _opponent(level: int) -> Rating:
    return Rating(RATINGS[level], UNSURE)


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
        results = [(_opponent(level), score) for level, score in self._results]
        near = nearest(updated(Rating(results[0][0].value), results).value)
        if near == played:
            return None
        score = sum(score for _, score in self._results)
        return (
            f"You scored {score:g} of {len(self._results)} against our levels: "
            f"level {near} would be an even match. Type `level {near}` and `new` to try it."
        )


def rated(one: Rating, level: int, score: float) -> Rating:
    """A person's rating after one more game, against a level."""
    after = updated(one, [(_opponent(level), score)])
    return Rating(after.value, max(SUREST, after.deviation))


class Ladder:
    """The level that follows a person. Each game (tafl with all its rule sets, hex, hexapawn) has its own rating.

    The file is read when a level is first asked for; without `keep` it is never written.
    """

    def __init__(self, path: Path | None = None, *, keep: bool = True) -> None:
        self.path = path or data_folder() / FILE
        self.keep = keep
        self._known: dict[str, Rating] | None = None
        self._level = 0
        self._scores: list[float] = []
        """Results of this sitting in one game, since its level became `_level`."""
        self._game = ""

    @classmethod
    def brought(cls, text: str) -> Ladder:
        """A ladder whose ratings the caller keeps, as `text` wrote them; an empty one where they cannot be read."""
        ladder = cls(keep=False)
        try:
            ladder._known = _read(text.encode())
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            ladder._known = {}
        return ladder

    def text(self) -> str:
        """The ratings, for `brought`."""
        return _text(self.known)

    @property
    def known(self) -> dict[str, Rating]:
        """The person's rating in each game; StandingError if the file cannot be read."""
        if self._known is None:
            self._known = load(self.path)
        return self._known

    def level(self, game: str) -> int:
        """The level for the next game; StandingError as above."""
        return nearest(self.known.get(game, FIRST).value)

    def take(self, game: str, level: int, score: float) -> None:
        """Rate a game and write it down; StandingError if it cannot be kept, and then it counts in this sitting only.

        What is in the file counts, not what was read at the start: another process may have written since.
        """
        if (game, level) != (self._game, self._level):
            self._game, self._level, self._scores = game, level, []
        self._scores.append(score)
        known = self.known
        self._known = {**known, game: rated(known.get(game, FIRST), level, score)}
        if not self.keep:
            return
        try:
            with durable.alone(self.path.parent):
                there = load(self.path)
                there[game] = rated(there.get(game, FIRST), level, score)
                durable.put(self.path, _text(there).encode())
        except OSError as error:
            raise StandingError(
                f"{self.path}: {error.strerror or error}: this result is not saved"
            ) from error
        self._known = there

    def news(self, game: str) -> str:
        """The message after a rated game."""
        level, played = self.level(game), len(self._scores)
        won, drawn = self._scores.count(1.0), self._scores.count(0.5)
        score = f"you won {won}{f' and drew {drawn}' if drawn else ''} of {played} at level {self._level}"
        return f"Level {level}{' again' if level == self._level else ''} for the next game: {score}."

    def words(self, game: str) -> str:
        """Why the level is what it is, before the first game."""
        level = self.level(game)
        if game not in self.known:
            return f"Level {level} to begin with: you have no rating in {game} yet."
        return f"Level {level} is nearest to your rating in {game}, {self.known[game]}."


def load(path: Path) -> dict[str, Rating]:
    """What a file says about each game, nothing if it is not there; StandingError if it is something else."""
    try:
        return _read(read_regular(path))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StandingError(f"{path}: {error.strerror or error}: expected a file of ratings") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise StandingError(
            f"{path}: expected the ratings that `hnefi play --level auto` writes; move the file away to start over"
        ) from None


def _read(text: bytes) -> dict[str, Rating]:
    found = json.loads(text)
    if found["format"] != FORMAT:
        raise ValueError("another format")
    return {game: glicko.read(value) for game, value in found["games"].items()}


def _text(known: dict[str, Rating]) -> str:
    games = {game: rating.plain() for game, rating in sorted(known.items())}
    return json.dumps({"format": FORMAT, "games": games}, indent=1) + "\n"
