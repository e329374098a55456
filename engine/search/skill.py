"""Playing weaker than one can: fewer positions looked at, and a choice among moves that look almost as good.

A level limits the nodes of a search and has it find several lines. The move is drawn among their first moves: one
that is worth `d` centipawns less than the best has a weight of exp(-d / temperature). So weak levels err as people
do: they overlook what lies deep, and now and then take the second-best way, but do not throw away what they see.

Level 0 is for somebody who has just read the rules: it plays most of its moves without looking at the board.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

BEGINNER, LOWEST, FULL = 0.0, 1.0, 10.0
"""Levels: that for beginners, the lowest that thinks about every move, the whole engine."""
_AT_RANDOM = 0.7
"""The share of its moves that the level for beginners plays at random."""
EVALUATOR = "default-2026.1"
"""What levels of tafl evaluate by instead of `default`: the weights with which `elo_table.py` was measured."""
LINES = 6
"""Moves among which the weakest levels choose."""
_FEWEST, _GROWTH = 10, 3.0
_WARMEST = 300.0
"""Centipawns; the temperature falls to 0 at level `_COLD`, fast at first."""
_COLD = 9.0
_APART = 20.0
"""Centipawns of temperature for which one line more is looked at."""


@dataclass(frozen=True, slots=True)
class Weakness:
    """What a level leaves of the engine: nodes a move, how freely it chooses (temperature in centipawns), and the share
    of moves that it plays at random."""

    nodes: int
    temperature: float
    at_random: float = 0.0

    @property
    def lines(self) -> int:
        """How many best lines are searched for a choice among them."""
        # Every further line costs nodes: as many as have a chance to be chosen.
        return min(LINES, 2 + int(self.temperature / _APART)) if self.temperature > 0 else 1


def weakness(level: float) -> Weakness | None:
    """What the engine lacks at a level from 0 to 10, fractions included; None at the highest."""
    if level >= FULL:
        return None
    at_random = _AT_RANDOM * max(0.0, LOWEST - max(BEGINNER, level))
    level = max(LOWEST, level)
    nodes = round(_FEWEST * _GROWTH ** (level - LOWEST))
    return Weakness(nodes, _WARMEST * max(0.0, (_COLD - level) / (_COLD - LOWEST)) ** 3, at_random)


def choose(values: Sequence[int], temperature: float, draw: random.Random) -> int:
    """The index of the line that is played; `values` are centipawns in the view of the side to move, best first.

    A search that was cut short may have found its first line lost, and of the others only what they were worth before:
    then the first is not the best.
    """
    if temperature <= 0 or len(values) < 2:
        return 0
    best = max(values)
    weights = [math.exp((value - best) / temperature) for value in values]
    return draw.choices(range(len(values)), weights)[0]
