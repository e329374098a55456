"""Playing weaker than one can: fewer positions looked at, and a choice among moves that look almost as good.

A level limits the nodes of a search and has it find several lines. The move is drawn among their first moves: one
that is worth `d` centipawns less than the best has a weight of exp(-d / temperature). So weak levels err as people
do: they overlook what lies deep, and now and then take the second-best way, but do not throw away what they see.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

LOWEST, FULL = 1.0, 10.0
"""Levels; the highest is the whole engine."""
LINES = 6
"""Moves among which a weak level chooses."""
_FEWEST, _GROWTH = 150, 2.5
_WARMEST = 150.0
"""Centipawns; the temperature falls evenly to 0 at level `_COLD`."""
_COLD = 9.0


@dataclass(frozen=True, slots=True)
class Weakness:
    """What a level leaves of the engine: nodes a move, and how freely it chooses (temperature in centipawns)."""

    nodes: int
    temperature: float

    @property
    def lines(self) -> int:
        return LINES if self.temperature > 0 else 1


def weakness(level: float) -> Weakness | None:
    """What the engine lacks at a level from 1 to 10, fractions included; None at the highest."""
    if level >= FULL:
        return None
    level = max(LOWEST, level)
    nodes = round(_FEWEST * _GROWTH ** (level - LOWEST))
    return Weakness(nodes, max(0.0, _WARMEST * (_COLD - level) / (_COLD - LOWEST)))


def choose(values: Sequence[int], temperature: float, draw: random.Random) -> int:
    """The index of the line that is played; `values` are centipawns in the view of the side to move, best first."""
    if temperature <= 0 or len(values) < 2:
        return 0
    weights = [math.exp((value - values[0]) / temperature) for value in values]
    return draw.choices(range(len(values)), weights)[0]
