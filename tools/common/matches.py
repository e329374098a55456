"""Matches between two contestants, played in kernels, and their points.

A match is two games with sides swapped. Whoever wins more games wins the match; if equal, whoever has captured more men
in both games; else it is drawn: 2, 1 or 0 points (P. Hingston, "Evolving Players for an Ancient Game: Hnefatafl",
2007).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position
    from hnefi.engine.games.base_variant import AnyVariant
    from hnefi.engine.selfplay.match import Contestant


ATTACKERS, DEFENDERS, DRAW = 0, 1, 2


class Games(NamedTuple):
    """Finished games of a schedule as arrays (matches x 2): winner (0 attackers, 1 defenders, 2 nobody), men captured
    (matches x 2 x 2: by attackers, by defenders), plies and evaluations."""

    winner: Any
    taken: Any
    plies: Any
    evaluations: Any


class Points(NamedTuple):
    """For each match, the points of the contestant named first, and whether captures decided it."""

    first: Any
    by_captures: Any

    @property
    def second(self) -> Any:
        """The points of the contestant named second; both add up to 2."""
        return 2 - self.first


class Count(NamedTuple):
    """Games, or matches, of one contestant."""

    won: int = 0
    drawn: int = 0
    lost: int = 0

    @property
    def all(self) -> int:
        """The total number."""
        return self.won + self.drawn + self.lost

    def plus(self, other: Count) -> Count:
        """The sum of both counts."""
        return Count(self.won + other.won, self.drawn + other.drawn, self.lost + other.lost)


NOTHING = Count()


@dataclass(frozen=True, slots=True)
class Tally:
    """How one player did against another: matches, matches decided by captures, games on either side."""

    matches: Count = NOTHING
    by_captures: int = 0
    attacking: Count = NOTHING
    defending: Count = NOTHING
    plies: int = 0
    evaluations: int = 0
    """Positions that the two evaluated together."""

    def plus(self, other: Tally) -> Tally:
        """The sum of both tallies."""
        return Tally(
            self.matches.plus(other.matches),
            self.by_captures + other.by_captures,
            self.attacking.plus(other.attacking),
            self.defending.plus(other.defending),
            self.plies + other.plies,
            self.evaluations + other.evaluations,
        )

    def as_json(self) -> dict[str, Any]:
        """The tally as JSON holds it; `from_json` reads it back."""
        return asdict(self)

    @classmethod
    def from_json(cls, read: dict[str, Any]) -> Tally:
        """The tally that `as_json` wrote; KeyError, TypeError or ValueError if it is none."""
        values: dict[str, Any] = {
            key: int(read[key]) for key in ("by_captures", "plies", "evaluations") if key in read
        }
        for key in ("matches", "attacking", "defending"):
            won, drawn, lost = map(int, read[key])
            values[key] = Count(won, drawn, lost)
        found = cls(**values)
        if not found.attacking.all == found.defending.all == found.matches.all:
            raise ValueError("each match has a game on either side")
        return found


def play(
    variant: AnyVariant, ours: Contestant, theirs: Contestant, matches: int, key: str, first: int = 0
) -> Tally:
    """Play matches, starting with number `first`; a match's random streams depend only on `key` and its number."""
    return count(play_games(variant, ours, theirs, [None] * matches, key, first))


def play_games(
    variant: AnyVariant,
    ours: Contestant,
    theirs: Contestant,
    starts: Sequence[Position | None],
    key: str,
    first: int = 0,
) -> Any:
    """Play one match for each of `starts`, the position with which both of its games begin (None: the variant's own);
    matches are numbered from `first`. Our player attacks in the first game of a match. Returns a GAME array, two games
    per match."""
    import numpy as np

    from hnefi.engine.selfplay import match as contest

    games = np.zeros(2 * len(starts), contest.GAME)
    games["attackers"] = np.arange(2 * len(starts)) % 2
    games["defenders"] = 1 - games["attackers"]
    games["seed"] = [seed(key, number) for number in range(2 * first, 2 * (first + len(starts)))]
    table = contest.Table(variant, (ours, theirs))
    if any(start is not None for start in starts):
        for number, start in enumerate(starts):
            table.play(games[2 * number : 2 * number + 2], start)
    else:
        table.play(games)
    return games


def seed(*words: object) -> int:
    """A seed of 64 bits made from `words`, the same on every machine."""
    return int.from_bytes(sha256(" ".join(map(str, words)).encode()).digest()[:8], "little")


def finished(games: Any) -> Games:
    """The results of games (matches x 2). An outcome is the reason plus 256 x (winner + 1), with 0 for a draw."""
    import numpy as np

    winner = np.where(games["outcome"] == 0, 2, (games["outcome"] >> 8) - 1)
    return Games(winner, games["taken"].astype(np.int64), games["plies"], games["evaluations"])


def points(games: Games) -> Points:
    """The points of the contestant named first in each match."""
    import numpy as np

    winner, taken = games.winner, games.taken
    won = (winner[:, 0] == ATTACKERS).astype(int) + (winner[:, 1] == DEFENDERS)
    lost = (winner[:, 0] == DEFENDERS).astype(int) + (winner[:, 1] == ATTACKERS)
    captures = (taken[:, 0, 0] + taken[:, 1, 1]) - (taken[:, 0, 1] + taken[:, 1, 0])
    level = won == lost
    decided = np.where(level, captures, won - lost)
    return Points(np.sign(decided) + 1, level & (captures != 0))


def count(games: Any) -> Tally:
    """The tally of games in the order of `play`: our player attacks in the even ones."""
    if (games["outcome"] == 0).any():
        raise ValueError("expected finished games")
    result = finished(games.reshape(-1, 2))
    found = points(result)
    lost, drawn, won = (int((found.first == number).sum()) for number in (0, 1, 2))
    return Tally(
        Count(won, drawn, lost),
        int(found.by_captures.sum()),
        _side(result.winner[:, 0], 0),
        _side(result.winner[:, 1], 1),
        int(result.plies.sum()),
        int(result.evaluations.sum()),
    )


def _side(winner: Any, ours: int) -> Count:
    won, drawn = int((winner == ours).sum()), int((winner == 2).sum())
    return Count(won, drawn, len(winner) - won - drawn)


def total(tallies: Sequence[Tally]) -> Tally:
    """The sum of all tallies."""
    found = Tally()
    for tally in tallies:
        found = found.plus(tally)
    return found
