"""Compiling every kernel, or loading it from the disk cache, before anybody waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable


def warm(report: Callable[[str], None] | None = None) -> float:
    """Import and compile whatever a session can need; returns the seconds it took.

    `report` hears what is going on, a sentence a step. A process that finds everything in the cache is done in
    a fraction of a second; on an empty cache it takes about a minute.
    """
    begun = time.perf_counter()

    def say(text: str) -> None:
        if report is not None:
            report(f"{text} ({time.perf_counter() - begun:.1f} s)")

    say("importing numba")
    from . import variant
    from .games.tafl import count
    from .games.tafl.position import Line, Position
    from .search.searcher import Searcher
    from .search.types import Limits, Settings

    say("moves, captures and ends")
    game = variant.find("brandubh")
    position = Position.initial(game)
    move = position.legal_moves()[0]
    position.play(move)
    position.captures(move)
    line = Line(game)
    line.play(move)
    say("counting and random games")
    record = position.new_record()
    state = record[0]
    count.perft(state, 1, 0)
    count.perft_plain(state, 1, 0)
    count.playouts(state, 1, 2)
    count.walk_randomly(state, 1)
    say("search")
    searcher = Searcher(Settings(hash_mib=1))
    searcher.begin()
    searcher.search(position, Limits(depth=1), lambda _: None)
    searcher.evaluate(position)
    say("done")
    return time.perf_counter() - begun
