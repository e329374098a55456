"""How often each side wins when others play, beside equal players of ours.

`people.toml` and rank correlations are about games of people; nothing is fitted to that table, and rows whose rules or
start position no source gives are listed as not compared. Tables 1 and 2 of P. Hingston, "Evolving Players for an
Ancient Game: Hnefatafl" (2007), hold games of an evolved player against another, as many on each side, so that both
sides together say what the rules favour.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from ..common.paper_hingston import MATCHES, TABLES
from ..common.statistics import wilson
from . import correlation
from .entrants import Entrant, parse
from .measures import Measures

TABLE = Path(__file__).with_name("people.toml")
COUNTED = 30
"""Games from which on a row counts as counted."""
UNCOUNTED = 100
"""Games that a row without a number is taken to have where errors are reckoned."""
FEWEST = 3
"""Rows of which a correlation is worth printing."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; shares are per cent, `rules` is empty where the row cannot be compared."""

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
        """The attackers' score, 0 to 1, among the games that ended."""
        draws = self.draws or 0.0
        return (self.attackers + draws / 2) / (self.attackers + self.defenders + draws)

    @property
    def error(self) -> float:
        """The standard error of the score, as if all games had been decided, and one more been won by either side: so
        that no row is certain."""
        games = (self.games or UNCOUNTED) + 2
        share = (self.score * (games - 2) + 1) / games
        return math.sqrt(share * (1 - share) / games)

    @property
    def counted(self) -> bool:
        """Whether there are enough games to compare with."""
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
    """The defenders' share of decided games from the signed ratio of wins, the commoner winner's for one of the
    other's, positive where defenders win more often."""
    return ratio / (1 + ratio) if ratio > 0 else 1 / (1 - ratio)


def entrants() -> list[Entrant]:
    """The rule sets of the rows that can be compared, each once."""
    labels = dict.fromkeys(row.rules for row in table() if row.rules)
    return [parse(label) for label in labels]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far one player's games order the rows as people do; None where there is nothing to say.

    `weighted` is Spearman's with rows by how much is known of people's score; `perfect` is what a judge who knew the
    truth would get (`correlation.perfect`).
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
    """The rows that a player's games say something of; `counted` leaves only those with enough games."""
    return [
        (row, measured[row.rules])
        for row in table()
        if row.rules in measured and (row.counted or not counted)
    ]


def agreement(player: str, measured: Mapping[str, Measures], *, counted: bool) -> Agreement:
    """Rank correlations of the attackers' scores of people and of a player."""
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
"""The same for every player that has played the same rows."""


def weighing(scores: Sequence[float], errors: Sequence[float]) -> list[float]:
    """Weights of rows, one on average: rows differ truly, too, so that one with many games does not count alone."""
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
"""Which of its rows is set beside which player of ours: who looks so far, and knows what its opponent knew."""


class Printed(NamedTuple):
    """Games of one row of the paper by who won, the attackers first."""

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
