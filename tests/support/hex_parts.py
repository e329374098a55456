"""Positions of hex."""

from __future__ import annotations

import random
from typing import Any

from hnefi.engine import games


def start(name: str) -> Any:
    return games.initial(games.find(name))


def after(name: str, moves: str) -> Any:
    position = start(name)
    for word in moves.split():
        position = position.play(position.parse_move(word))
    return position


def wander(name: str, seed: int, plies: int) -> Any:
    """A position after random plies; shorter if the game ends."""
    draw = random.Random(f"{name} {seed}")
    position = start(name)
    for _ in range(plies):
        if position.outcome is not None:
            break
        position = position.play(draw.choice(position.legal_moves()))
    return position
