"""Positions of random games."""

from __future__ import annotations

import random

from hnefi.engine import games
from hnefi.engine.games.base_position import Position
from hnefi.engine.games.base_variant import AnyVariant


def positions(variant: AnyVariant, plies: int, seed: int = 7) -> list[Position]:
    """The undecided positions of random games in which a side captures whenever it can."""
    draw, position, found = random.Random(seed), games.initial(variant), []
    while len(found) < plies:
        found.append(position)
        moves = position.legal_moves_with_captures()
        taking = [move for move, taken in moves if taken]
        position = position.play(draw.choice(taking or [move for move, _ in moves]))
        if position.outcome is not None or not position.legal_moves():
            position = games.initial(variant)
    return found
