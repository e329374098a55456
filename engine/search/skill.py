"""Playing weaker than one can: fewer positions looked at, and a choice among moves that look almost as good.

A level limits the nodes of a search and has it find several lines. The move is drawn among their first moves: one
that is worth `d` centipawns less than the best has a weight of exp(-d / temperature). So weak levels err as people
do: they overlook what lies deep, and now and then take the second-best way, but do not throw away what they see.

Level 0 is for somebody who has just read the rules: it plays most of its moves without looking at the board.

Players may choose so without a level, by numbers of their own (`Settings.temperature`): those that imitate people do.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..games.base_variant import AnyVariant
    from .types import Settings

BEGINNER, LOWEST, FULL = 0.0, 1.0, 10.0
"""Levels: that for beginners, the lowest that thinks about every move, the whole engine."""
_AT_RANDOM = 0.7
"""The share of its moves that the level for beginners plays at random."""
EVALUATOR = "default-2026.1"
"""What levels of tafl evaluate by instead of `default`: by hand, with the weights with which `elo_table.py` was
measured."""
PER_MILLE = 1000
LINES = 6
"""Moves among which the weakest levels choose."""
_FEWEST, _GROWTH = 10, 3.0
_WARMEST = 300.0
"""Centipawns; the temperature falls to 0 at level `_COLD`, fast at first."""
_COLD = 9.0
_APART = 20.0
"""Centipawns of temperature for which one line more is looked at."""


def evaluator(settings: Settings, variant: AnyVariant) -> str:
    """The name of what moves are chosen by: the evaluator of the settings, but `EVALUATOR` for `default` at levels."""
    level = settings.skill < FULL and settings.algorithm == "alphabeta" and variant.game == "tafl"
    return EVALUATOR if level and settings.evaluator == "default" else settings.evaluator


@dataclass(frozen=True, slots=True)
class Weakness:
    """How the engine is weakened: nodes a move (None: as its limits say), how freely it chooses (temperature in
    centipawns) among how many best lines, and the share of moves that it plays at random."""

    nodes: int | None
    temperature: float
    lines: int = 1
    at_random: float = 0.0


def weakness(level: float) -> Weakness | None:
    """How a level from 0 to 10, fractions included, weakens the engine; None at the highest."""
    if level >= FULL:
        return None
    at_random = _AT_RANDOM * max(0.0, LOWEST - max(BEGINNER, level))
    level = max(LOWEST, level)
    nodes = round(_FEWEST * _GROWTH ** (level - LOWEST))
    temperature = _WARMEST * max(0.0, (_COLD - level) / (_COLD - LOWEST)) ** 3
    # Every further line costs nodes: as many as have a chance to be chosen.
    lines = min(LINES, 2 + int(temperature / _APART)) if temperature > 0 else 1
    return Weakness(nodes, temperature, lines, at_random)


def weakened(settings: Settings) -> Weakness | None:
    """How settings weaken the engine: by a level, else by a free choice of their own; None if they do not."""
    if settings.skill < FULL:
        return weakness(settings.skill)
    if settings.temperature or settings.at_random:
        lines = settings.choices if settings.temperature else 1
        return Weakness(None, settings.temperature, lines, settings.at_random / PER_MILLE)
    return None


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
