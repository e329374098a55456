"""What games between equal players say about a rule set: pure functions of finished games.

*Score* is the attackers' share of points, with half a point for a draw; *advantage* is the attackers' wins out of all
games; *balance* is 1 minus the difference of both sides' shares of wins among all games; *decisiveness* is the share of
games without a draw. Intervals are Wilson's 95 % intervals; that of the score treats a draw as half a win, which makes
it wider than necessary.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median, stdev

from ..common.statistics import Z, wilson
from .playing import Game

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Measures:
    """Measures of the games of one rule set and one player; None where the games say nothing."""

    games: int
    attackers: int
    defenders: int
    draws: int
    score: float
    score_interval: Interval
    attackers_interval: Interval
    defenders_interval: Interval
    draws_interval: Interval
    balance: float
    balance_interval: Interval
    plies: float
    plies_attackers: float | None
    plies_defenders: float | None
    branching: float
    by_attackers: float
    by_defenders: float
    lead_changes: float | None
    reasons: tuple[tuple[str, str, int], ...]
    """Winner (`a`, `d`, `=`), reason and games, the most frequent first."""

    @property
    def advantage(self) -> float:
        """The attackers' wins out of all games, 0 to 1."""
        return self.attackers / self.games

    @property
    def decisiveness(self) -> float:
        """The share of games that somebody won, 0 to 1."""
        return 1.0 - self.draws / self.games


def measure(games: Sequence[Game]) -> Measures | None:
    """The measures of some games; None without games."""
    n = len(games)
    if n == 0:
        return None
    won = Counter(game.winner for game in games)
    score = sum(game.score for game in games) / n
    changes = [game.lead_changes for game in games if game.lead_changes is not None]
    lengths = {
        winner: median(plies) if (plies := [game.plies for game in games if game.winner == winner]) else None
        for winner in "ad"
    }
    ends = Counter((game.winner, game.reason) for game in games)
    score_interval = _wilson(score * n, n)
    return Measures(
        n,
        won["a"],
        won["d"],
        won["="],
        score,
        score_interval,
        _wilson(won["a"], n),
        _wilson(won["d"], n),
        _wilson(won["="], n),
        balance(score),
        balance_interval(score_interval),
        median(game.plies for game in games),
        lengths["a"],
        lengths["d"],
        mean(game.branching for game in games),
        mean(game.by_attackers for game in games),
        mean(game.by_defenders for game in games),
        mean(changes) if changes else None,
        tuple((*end, count) for end, count in sorted(ends.items(), key=lambda item: (-item[1], item[0]))),
    )


def _wilson(successes: float, n: int) -> Interval:
    found = wilson(successes, n)
    assert found is not None
    return found


def balance(score: float) -> float:
    """1 minus the difference of the shares of wins, which is 1 - |2 score - 1|."""
    return 1.0 - abs(2.0 * score - 1.0)


def balance_interval(score: Interval) -> Interval:
    """The interval of balances for an interval of scores."""
    low, high = sorted(map(balance, score))
    return low, 1.0 if score[0] <= 0.5 <= score[1] else high


@dataclass(frozen=True, slots=True)
class Shift:
    """The attackers' score of one rule set minus that of another, over `pairs` pairs of games with the same number."""

    pairs: int
    difference: float
    interval: Interval

    @property
    def certain(self) -> bool:
        """Whether the interval excludes 0."""
        return not self.interval[0] <= 0.0 <= self.interval[1]


def shift(base: Sequence[Game], other: Sequence[Game]) -> Shift | None:
    """The difference over games of the same number, with the 95 % interval of a mean over pairs; None for fewer than
    two.

    Games of the same number begin alike if both rule sets allow it. The interval only requires pairs to be independent
    of each other.
    """
    first, second = ({game.number: game.score for game in games} for games in (base, other))
    gaps = [second[number] - first[number] for number in first if number in second]
    if len(gaps) < 2:
        return None
    middle, error = mean(gaps), stdev(gaps) / math.sqrt(len(gaps))
    return Shift(len(gaps), middle, (middle - Z * error, middle + Z * error))
