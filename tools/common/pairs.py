"""Pairs of games with sides swapped, and the tally of a run.

The match rule is that of P. Hingston, "Evolving Players for an Ancient Game: Hnefatafl": whoever wins more games wins
the match; if equal, whoever has captured more men in both games; else it is a draw. 2, 1 or 0 points.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from .statistics import wilson

Side = Literal[0, 1]
Winner = Literal["a", "d", "draw"]
"""Won by the attackers, won by the defenders, or drawn."""
Bucket = Literal["LL", "LD", "WL", "DD", "WD", "WW"]
"""A pair as one engine sees it. WL: the same side won twice; this and DD share the middle of the five counts."""
BUCKETS: tuple[Bucket, ...] = ("LL", "LD", "WL", "DD", "WD", "WW")
DOUBLED: dict[Winner, tuple[int, int]] = {"a": (2, 0), "draw": (1, 1), "d": (0, 2)}
"""The doubled points of attackers and defenders."""
_BUCKETS: dict[tuple[int, int], Bucket] = {
    (0, 0): "LL", (0, 1): "LD", (0, 2): "WL", (1, 1): "DD", (1, 2): "WD", (2, 2): "WW",
}  # fmt: skip


class Ending(NamedTuple):
    """Who attacked, who defended and who won in one game of a variant."""

    variant: str
    attackers: str
    defenders: str
    winner: Winner


@dataclass(frozen=True, slots=True)
class Played:
    """What a tally needs to know about a finished game; small, so that a long run fits in memory.

    `captured` are the men captured by attackers and by defenders; `image` is what the function of that name returns,
    empty if unknown.
    """

    pair: int
    game: Literal[1, 2]
    ending: Ending
    reason: str
    captured: tuple[int, int] = (0, 0)
    plies: int = 0
    image: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """A pair by the match rule: `points` (2, 1 or 0) of the engine named first; `captures`, its own and the
    opponent's."""

    points: int
    by: Literal["games", "captures", "none"]
    captures: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Record:
    """Wins, draws and losses."""

    wins: int = 0
    draws: int = 0
    losses: int = 0

    @property
    def games(self) -> int:
        """The number of games."""
        return self.wins + self.draws + self.losses

    @property
    def score(self) -> float | None:
        """The score from 0 to 1, with a draw as a half; None without games."""
        return (self.wins + self.draws / 2) / self.games if self.games else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's 95 % interval of the score; None without games."""
        return wilson(self.wins + self.draws / 2, self.games)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Losses, draws and wins, in the order that `statistics` expects."""
        return self.losses, self.draws, self.wins


def bucket(first: Winner, second: Winner) -> Bucket:
    """The bucket of the engine that attacks in the first game, given the winners of both games."""
    low, high = sorted((DOUBLED[first][0], DOUBLED[second][1]))
    return _BUCKETS[low, high]


def points_of(bucket: Bucket) -> int:
    """The doubled points of a pair, 0 to 4, which are also the bucket's index in the five counts of `statistics`."""
    return sum("LDW".index(letter) for letter in bucket)


def five(buckets: Counter[Bucket]) -> tuple[int, ...]:
    """The five counts of `statistics`, where WL and DD are one."""
    counts = [0] * 5
    for name, count in buckets.items():
        counts[points_of(name)] += count
    return tuple(counts)


@dataclass(frozen=True, slots=True)
class Pair:
    """Both games of a pair; `first` attacks in the first. ValueError if the games do not belong together."""

    one: Played
    two: Played

    def __post_init__(self) -> None:
        one, two = self.one, self.two
        if (one.pair, one.game, two.game) != (two.pair, 1, 2):
            raise ValueError(
                f"games {one.pair}.{one.game} and {two.pair}.{two.game}: expected 1 and 2 of one pair"
            )
        variant, attackers, defenders, _ = one.ending
        if two.ending[:3] != (variant, defenders, attackers):
            raise ValueError(f"pair {one.pair}: expected two games of one variant with sides swapped")

    @property
    def number(self) -> int:
        """The number of the pair in its run, from 1."""
        return self.one.pair

    @property
    def first(self) -> str:
        """The engine that attacks in the first game."""
        return self.one.ending.attackers

    @property
    def second(self) -> str:
        """The engine that defends in the first game."""
        return self.one.ending.defenders

    @property
    def key(self) -> tuple[str, ...] | None:
        """Equal for pairs with the same games; None if not enough is known about the games."""
        if not (self.one.image and self.two.image):
            return None
        return self.first, self.second, self.one.image, self.two.image

    @property
    def bucket(self) -> Bucket:
        """The two results from the first engine's point of view."""
        return bucket(self.one.ending.winner, self.two.ending.winner)

    @property
    def match(self) -> Match:
        """Who won the match: by games, else by men captured."""
        own = self.one.captured[0] + self.two.captured[1]
        other = self.one.captured[1] + self.two.captured[0]
        lead = points_of(self.bucket) - 2
        by: Literal["games", "captures", "none"] = "games"
        if not lead:
            lead = own - other
            by = "captures" if lead else "none"
        return Match(1 + (lead > 0) - (lead < 0), by, (own, other))

    def classes(self, unit: str) -> tuple[int, ...]:
        """The indices that the pair adds to the counts of a sequential test: one bucket, one match, or two games."""
        if unit == "pair":
            return (points_of(self.bucket),)
        if unit == "match":
            return (self.match.points,)
        return DOUBLED[self.one.ending.winner][0], DOUBLED[self.two.ending.winner][1]


class Tally:
    """All counts of a run's games; the order in which games arrive makes no difference.

    A game counts once, even if it is added again. A pair that repeats another is left out with both its games; since
    such pairs have equal results, it does not matter which of them is left out.
    """

    def __init__(self) -> None:
        self.games: Counter[Ending] = Counter()
        self.pairs: Counter[tuple[Ending, Ending]] = Counter()
        self.matches: Counter[tuple[str, str, str, int, str]] = Counter()
        """By variant, engine named first, engine named second, the first one's points, and what decided the match."""
        self.reasons: Counter[tuple[str, Winner, str]] = Counter()
        """By variant, winner and reason."""
        self.plies: Counter[str] = Counter()
        """All plies played, by variant."""
        self.shortest: tuple[int, int, int] | None = None
        """Plies, pair and game of the shortest game; `longest` likewise."""
        self.longest: tuple[int, int, int] | None = None
        self.duplicates = 0
        self.open: dict[int, Played] = {}
        """Games whose pair is incomplete: they count as games, not as pairs."""
        self._complete: set[int] = set()
        self._keys: set[tuple[str, ...]] = set()

    def add(self, game: Played) -> Pair | None:
        """Count a game; returns its pair if that is now complete. ValueError if the two games do not match."""
        other = self.open.get(game.pair)
        if game.pair in self._complete or (other and other.game == game.game):
            return None
        here = (game.plies, game.pair, game.game)
        self.shortest = min(here, self.shortest or here)
        self.longest = min(here, self.longest or here, key=lambda known: (-known[0], *known[1:]))
        if other is None:
            self.open[game.pair] = game
            self._count(game, 1)
            return None
        pair = Pair(game, other) if game.game == 1 else Pair(other, game)
        del self.open[game.pair]
        self._complete.add(game.pair)
        if pair.key is not None and pair.key in self._keys:
            self._count(other, -1)
            self.duplicates += 1
            return pair
        if pair.key is not None:
            self._keys.add(pair.key)
        self._count(game, 1)
        self.pairs[pair.one.ending, pair.two.ending] += 1
        match = pair.match
        self.matches[game.ending.variant, pair.first, pair.second, match.points, match.by] += 1
        return pair

    def _count(self, game: Played, by: int) -> None:
        ending = game.ending
        self.games[ending] += by
        self.reasons[ending.variant, ending.winner, game.reason] += by
        self.plies[ending.variant] += by * game.plies

    @property
    def engines(self) -> list[str]:
        """The engines that have played, sorted by name."""
        return sorted({name for ending in self.games for name in ending[1:3]})

    @property
    def variants(self) -> list[str]:
        """The variants that were played, sorted by name."""
        return sorted({ending.variant for ending in self.games})

    def record(
        self, side: Side | None = None, engine: str | None = None, variant: str | None = None
    ) -> Record:
        """Wins, draws and losses of a side, of an engine, or of an engine on one side; in all variants if None."""
        counts = [0, 0, 0]
        for ending, count in self.games.items():
            if variant not in (None, ending.variant):
                continue
            for here in (0, 1):
                if side in (None, here) and engine in (None, ending[1 + here]):
                    counts[DOUBLED[ending.winner][here]] += count
        return Record(counts[2], counts[1], counts[0])

    def buckets(
        self, engine: str, opponent: str | None = None, variant: str | None = None
    ) -> Counter[Bucket]:
        """The pairs of `engine` from its point of view, with WL and DD apart; `five` turns them into five counts."""
        found: Counter[Bucket] = Counter()
        for (one, two), count in self.pairs.items():
            if variant in (None, one.variant):
                if engine == one.attackers and opponent in (None, one.defenders):
                    found[bucket(one.winner, two.winner)] += count
                if engine == one.defenders and opponent in (None, one.attackers):
                    found[bucket(two.winner, one.winner)] += count
        return found

    def match_record(self, engine: str, opponent: str | None = None, variant: str | None = None) -> Record:
        """Matches of `engine` by the match rule."""
        counts = [0, 0, 0]
        for (here, first, second, points, _), count in self.matches.items():
            if variant in (None, here):
                if engine == first and opponent in (None, second):
                    counts[points] += count
                if engine == second and opponent in (None, first):
                    counts[2 - points] += count
        return Record(counts[2], counts[1], counts[0])

    def by_captures(self, engine: str | None = None, variant: str | None = None) -> float | None:
        """The share of all matches (of `engine`) that captures decided; None without matches."""
        of = {
            key: count
            for key, count in self.matches.items()
            if engine in (None, *key[1:3]) and variant in (None, key[0])
        }
        total = sum(of.values())
        return sum(count for key, count in of.items() if key[4] == "captures") / total if total else None

    def units(self) -> Iterator[tuple[tuple[Ending, ...], int]]:
        """The units to which ratings are fitted and from which they are resampled: pairs and single games, each with
        its count."""
        yield from self.pairs.items()
        yield from Counter((game.ending,) for game in self.open.values()).items()
