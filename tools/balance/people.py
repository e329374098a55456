"""How often each side wins in other people's games, compared with games of our equal players.

`people.toml` and the rank correlations are about games of people; nothing is fitted to that table, and rows whose rules
or start position no source gives are listed as not compared. Tables 1 and 2 of P. Hingston, "Evolving Players for an
Ancient Game: Hnefatafl" (2007), have games of an evolved player against another, with equally many on each side, so
that both sides together show which one the rules favour.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from ..common import correlation
from ..common.paper_hingston import MATCHES, TABLES
from ..common.statistics import wilson
from .entrants import Entrant, parse
from .measures import Measures

TABLE = Path(__file__).with_name("people.toml")
COUNTED = 30
"""Games from which a row counts as well-founded."""
UNCOUNTED = 100
"""Games that a row without a number is assumed to have when computing errors."""
FEWEST = 3
"""Rows needed for a correlation to be worth printing."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; shares are percentages, `rules` is empty if the row cannot be compared."""

    name: str
    rules: str
    games: int | None
    attackers: float
    defenders: float
    draws: float | None
    complement: str
    ratio: float | None
    source: str
    why: str

    @property
    def score(self) -> float:
        """The attackers' score, 0 to 1, in finished games."""
        draws = self.draws or 0.0
        return (self.attackers + draws / 2) / (self.attackers + self.defenders + draws)

    @property
    def error(self) -> float:
        """The standard error of the score, as if all games had been decisive and each side had won one more, so that no
        row is certain."""
        games = (self.games or UNCOUNTED) + 2
        share = (self.score * (games - 2) + 1) / games
        return math.sqrt(share * (1 - share) / games)

    @property
    def counted(self) -> bool:
        """Whether there are enough games for a comparison."""
        return self.games is not None and self.games >= COUNTED


def table() -> list[Row]:
    """All rows, in the order of the file."""
    return [_row(row) for row in tomllib.loads(TABLE.read_text())["row"]]


def _row(row: Mapping[str, object]) -> Row:
    values = {"rules": "", "games": None, "draws": None, "complement": "", "ratio": None, "why": "", **row}
    ratio = values["ratio"]
    if isinstance(ratio, float):
        share = 100 * defenders_share(ratio)
        values |= {"attackers": 100 - share, "defenders": share}
    return Row(**values)  # type: ignore[arg-type]


def defenders_share(ratio: float) -> float:
    """The defenders' share of decisive games, from the ratio of the more frequent winner's wins to the other's, which
    is positive if defenders win more often."""
    return ratio / (1 + ratio) if ratio > 0 else 1 / (1 - ratio)


def entrants() -> list[Entrant]:
    """The rule sets of the rows that can be compared, each once."""
    labels = dict.fromkeys(row.rules for row in table() if row.rules)
    return [parse(label) for label in labels]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well one player's games order the rows as people's do; None where that cannot be said.

    `weighted` is Spearman's correlation with rows weighted by the certainty of people's scores; `perfect` is what a
    judge who knew the truth would get (`correlation.perfect`).
    """

    player: str
    rows: int
    spearman: float | None
    spearman_interval: tuple[float, float] | None
    kendall: float | None
    kendall_interval: tuple[float, float] | None
    weighted: float | None
    weighted_interval: tuple[float, float] | None
    perfect: tuple[float, float, float] | None


def compared(measured: Mapping[str, Measures], *, counted: bool) -> list[tuple[Row, Measures]]:
    """The rows with games of a player; with `counted` only those with enough games of people."""
    return [
        (row, measured[row.rules])
        for row in table()
        if row.rules in measured and (row.counted or not counted)
    ]


def agreement(player: str, measured: Mapping[str, Measures], *, counted: bool) -> Agreement:
    """Rank correlations between the attackers' scores of people and those of a player."""
    pairs = compared(measured, counted=counted)
    theirs = [row.score for row, _ in pairs]
    ours = [found.score for _, found in pairs]
    if len(pairs) < FEWEST:
        return Agreement(player, len(pairs), *[None] * 7)
    errors = [row.error for row, _ in pairs]
    weights = weighing(theirs, errors)
    return Agreement(
        player,
        len(pairs),
        correlation.spearman(theirs, ours),
        correlation.bootstrap(correlation.spearman, theirs, ours),
        correlation.kendall(theirs, ours),
        correlation.bootstrap(correlation.kendall, theirs, ours),
        correlation.weighted_spearman(theirs, ours, weights),
        correlation.bootstrap(correlation.weighted_spearman, theirs, ours, weights),
        _perfect(tuple(theirs), tuple(errors), tuple(weights)),
    )


_perfect = lru_cache(maxsize=4)(correlation.perfect)
"""Cached, because it is the same for all players that have played the same rows."""


def weighing(scores: Sequence[float], errors: Sequence[float]) -> list[float]:
    """Weights of rows, 1 on average. They allow for true differences between rows, so that a row with many games does
    not dominate."""
    middle = sum(scores) / len(scores)
    spread = sum((score - middle) ** 2 for score in scores) / (len(scores) - 1)
    found = [1 / (error**2 + spread) for error in errors]
    return [weight * len(found) / sum(found) for weight in found]


PAPER_PLAYERS = {
    "random-terminal": (1, "random"),
    "random-terminal-d2": (2, "random"),
    "random-terminal-d3": (3, "random"),
    "simple": (1, "simple"),
    "simple-d2": (2, "simple"),
    "simple-d3": (3, "simple"),
}
"""The row of the paper (depth, opponent) for each of our players: one that looks as far and knows what the paper's
opponent knew."""


class Printed(NamedTuple):
    """Games of one row of the paper by winner, attackers first."""

    attackers: int
    draws: int
    defenders: int

    @property
    def score(self) -> float:
        """The attackers' points, 0 to 1."""
        return (self.attackers + self.draws / 2) / sum(self)

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the score."""
        found = wilson(self.score * sum(self), sum(self))
        assert found is not None
        return found


def printed(rules: str, player: str) -> Printed | None:
    """The row to compare one of our players with, if there is one."""
    if rules not in TABLES or player not in PAPER_PLAYERS:
        return None
    depth, opponent = PAPER_PLAYERS[player]
    row = TABLES[rules][depth, opponent]
    attackers = row.won_red + row.lost_white
    defenders = row.won_white + row.lost_red
    return Printed(attackers, 2 * MATCHES[depth] - attackers - defenders, defenders)
