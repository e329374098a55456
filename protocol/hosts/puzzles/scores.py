"""Ratings of the person who solves puzzles and of the puzzles themselves, both from play, in one JSON file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hnefi.engine import durable
from hnefi.engine.regular import read_regular

from ..journal import data_folder
from . import glicko
from .glicko import Rating, updated
from .suite import Entry

FORMAT: Final = 1
FILE: Final = "puzzles.json"
GUESSED: Final = 200.0
"""The deviation of an untried puzzle: its length says something about it."""


class ScoresError(ValueError):
    """A file of scores that cannot be read or written; the message is a sentence."""


def place() -> Path:
    """Where scores are kept."""
    return data_folder() / FILE


@dataclass(slots=True)
class Scores:
    """What is known after some puzzles; `path` None keeps it in memory."""

    path: Path | None = None
    player: Rating = field(default_factory=Rating)
    solved: int = 0
    failed: int = 0
    puzzles: dict[str, Rating] = field(default_factory=dict)
    tries: dict[str, int] = field(default_factory=dict)

    def puzzle(self, entry: Entry) -> Rating:
        """The rating of a puzzle: from play, or what its length lets expect."""
        guess = 1300.0 if entry.kind == "only" else 750.0 + 150.0 * entry.plies
        return self.puzzles.get(entry.id, Rating(guess, GUESSED))

    def take(self, entry: Entry, solved: bool) -> None:
        """Count a result, once for each time that a puzzle was shown, and write it down.

        What is in the file counts, not what was read at the start: another process may have written since. Where it
        cannot be written (ScoresError), nothing has changed here either.
        """
        if self.path is None:
            self._count(entry, solved)
            return
        try:
            with durable.alone(self.path.parent):
                there = load(self.path)
                there._count(entry, solved)
                durable.put(self.path, there.text().encode())
        except OSError as error:
            raise ScoresError(f"{self.path}: {error.strerror or error}: the score cannot be saved") from error
        self.player, self.solved, self.failed = there.player, there.solved, there.failed
        self.puzzles, self.tries = there.puzzles, there.tries

    def _count(self, entry: Entry, solved: bool) -> None:
        puzzle, player = self.puzzle(entry), self.player
        self.player = updated(player, [(puzzle, float(solved))])
        self.puzzles[entry.id] = updated(puzzle, [(player, float(not solved))])
        self.tries[entry.id] = self.tries.get(entry.id, 0) + 1
        self.solved += solved
        self.failed += not solved

    def words(self) -> str:
        """`rating 1523 ± 210: 7 solved, 2 not`."""
        return f"rating {self.player}: {self.solved} solved, {self.failed} not"

    def text(self) -> str:
        """The file's text, which `read` understands."""
        document = {
            "format": FORMAT,
            "player": {**self.player.plain(), "solved": self.solved, "failed": self.failed},
            "puzzles": {
                name: {**rating.plain(), "tries": self.tries.get(name, 0)}
                for name, rating in sorted(self.puzzles.items())
            },
        }
        return json.dumps(document, indent=1) + "\n"


def load(path: Path) -> Scores:
    """The scores in a file, none if it is not there; ScoresError if it is something else."""
    try:
        return read(read_regular(path), path)
    except FileNotFoundError:
        return Scores(path)
    except OSError as error:
        raise ScoresError(f"{path}: {error.strerror or error}: expected a file of scores") from None
    except ValueError:
        raise ScoresError(
            f"{path}: expected the scores that hnefi puzzle writes; move the file away to start over"
        ) from None


def read(text: str | bytes, path: Path | None = None) -> Scores:
    """The scores in a text, written down in `path` from now on; ValueError if they are none."""
    scores = Scores(path)
    try:
        found = json.loads(text)
        if found["format"] != FORMAT:
            raise ValueError(f"format {found['format']!r:.20}")
        player = found["player"]
        scores.player = glicko.read(player)
        scores.solved, scores.failed = _count(player["solved"]), _count(player["failed"])
        for name, value in found["puzzles"].items():
            scores.puzzles[name] = glicko.read(value)
            scores.tries[name] = _count(value["tries"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("expected scores of puzzles") from None
    return scores


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("no count")
    return value
