"""Positions for searches, and one search without a session."""

from __future__ import annotations

import random
from typing import Any

from hnefi.engine import games
from hnefi.engine.games.base_position import Position
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.search.types import Info, Limits, SearchResult, Settings


def start(name: str) -> Position:
    return games.initial(games.find(name))


def think(
    position: Position, limits: Limits, searcher: Searcher | None = None, **settings: Any
) -> tuple[SearchResult, list[Info]]:
    searcher = searcher or Searcher(Settings(hash_mib=4, **settings))
    infos: list[Info] = []
    searcher.begin()
    return searcher.search(position, limits, infos.append), infos


def wander(name: str, seed: int, plies: int) -> Position:
    """A position after random plies, undecided."""
    draw = random.Random(seed)
    while True:
        position = start(name)
        for _ in range(plies):
            position = position.play(draw.choice(position.legal_moves()))
            if position.outcome is not None:
                break
        else:
            return position
