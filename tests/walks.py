"""Positions along random games."""

from __future__ import annotations
import random
from typing import Any
import numpy as np
import pytest
from hnefi.engine import evaluators, games
from hnefi.engine.evaluators import loaded, network
from hnefi.engine.evaluators.networks import linear, linear_tablut
from hnefi.engine.games import interface as verbs
from hnefi.engine.games.base_position import Position
from hnefi.engine.games.base_variant import AnyVariant
from hnefi.engine.games.hex.state import X
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.search.types import Limits, Settings

def walk(variant: AnyVariant, plies: int, seed: int = 7) -> list[Position]:
    """The undecided positions of random games in which who can capture does."""
    draw, position, found = random.Random(seed), games.initial(variant), []
    while len(found) < plies:
        found.append(position)
        moves = position.legal_moves_with_captures()
        taking = [move for move, taken in moves if taken]
        position = position.play(draw.choice(taking or [move for move, _ in moves]))
        if position.outcome is not None or not position.legal_moves():
            position = games.initial(variant)
    return found
