"""The paper's question by its own games: who won in tables 1 and 2 of P. Hingston, "Evolving Players for an Ancient
Game: Hnefatafl" (2007), the attackers (red) or the defenders (white), beside equal players of ours.

Its games are an evolved player's against another, as many on each side, so that both sides together say what the rules
favour; ours are a player's with itself.
"""

from __future__ import annotations

from typing import NamedTuple

from ..common.statistics import wilson
from ..experiments.paper_hingston import MATCHES, TABLES

PLAYERS = {
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
        return (self.attackers + self.draws / 2) / sum(self)

    @property
    def interval(self) -> tuple[float, float]:
        found = wilson(self.score * sum(self), sum(self))
        assert found is not None
        return found


def printed(rules: str, player: str) -> Printed | None:
    """The row beside which a player of ours stands; None where there is none."""
    if rules not in TABLES or player not in PLAYERS:
        return None
    depth, opponent = PLAYERS[player]
    row = TABLES[rules][depth, opponent]
    attackers = row.won_red + row.lost_white
    defenders = row.won_white + row.lost_red
    return Printed(attackers, 2 * MATCHES[depth] - attackers - defenders, defenders)
