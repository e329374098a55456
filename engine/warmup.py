"""Compiling every kernel, or loading it from the disk cache, before anybody waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .position import Position


def warm(report: Callable[[str], None] | None = None, everything: bool = False) -> float:
    """Import and compile whatever a session can need; returns the seconds it took.

    `report` hears what is going on, a sentence a step. A process that finds the search in the cache is done in
    half a second; on an empty cache it takes about a minute. Counting and random games, which no `go` needs, are
    loaded only on an empty cache or when `everything` is asked for: a tenth of a second for who starts often.
    """
    begun = time.perf_counter()

    def say(text: str) -> None:
        if report is not None:
            report(f"{text} ({time.perf_counter() - begun:.1f} s)")

    say("importing numba")
    from . import variant
    from .games.tafl.position import Position as TaflPosition
    from .search import alphabeta
    from .search.searcher import Searcher
    from .search.types import Limits, Settings

    say("moves, captures and ends")
    game = variant.find("brandubh")
    position = TaflPosition.initial(game)
    move = position.legal_moves()[0]
    position.play(move)
    position.captures(move)
    position.is_legal(move & 511, move >> 9)
    position.repeats(move)
    say("search")
    searcher = Searcher(Settings(hash_mib=1))
    searcher.begin()
    searcher.search(position, Limits(depth=1), lambda _: None)
    searcher.evaluate(position)
    if everything or alphabeta.search_root.stats.cache_misses:
        say("counting and random games")
        _count(position)
    say("done")
    return time.perf_counter() - begun


def _count(position: Position) -> None:
    """Perft and playouts."""
    from .games.tafl import count
    from .perft import perft

    for bulk in (False, True):
        perft(position, 2, bulk)
    state = position.new_record()[0]
    count.playouts(state, 1, 2)
    count.walk_randomly(state, 1)
