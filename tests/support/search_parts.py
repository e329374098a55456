"""Positions for searches, and one search without a session."""

from __future__ import annotations

import random
import threading
import time
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


def check_stop(searcher: Searcher, position: Position) -> None:
    """A stop ends a search that has no other end, and one that has not got going yet."""
    searcher.begin()
    results: list[SearchResult] = []
    thread = threading.Thread(
        target=lambda: results.append(searcher.search(position, Limits(infinite=True), lambda _: None))
    )
    thread.start()
    time.sleep(0.1)
    assert thread.is_alive()
    searcher.stop()
    thread.join(60)
    assert results[0].move in position.legal_moves()
    searcher.begin()
    searcher.stop()
    assert searcher.search(position, Limits(infinite=True), lambda _: None).move in position.legal_moves()


def records_of(searcher: Searcher, position: Position) -> tuple[Any, Any, Any, Any]:
    """What the first thread of an alpha-beta search works on: state, thread data, table, parameters."""
    return searcher.algorithm.prepare(searcher.context(position, Limits(), lambda _: None))[0]


def wander(name: str, seed: int, plies: int, **switches: Any) -> Position:
    """A position after random plies, undecided; with `switches` by the variant's rules so changed."""
    draw = random.Random(seed)
    variant: Any = games.find(name)
    if switches:
        variant = variant.with_switches(**switches)
    while True:
        position = games.initial(variant)
        for _ in range(plies):
            position = position.play(draw.choice(position.legal_moves()))
            if position.outcome is not None:
                break
        else:
            return position
