"""Compiling every kernel, or loading it from the disk cache, before anybody waits for one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from .squares import move_name

if TYPE_CHECKING:
    from .game import AnyVariant
    from .position import Position
    from .search.types import Settings

BARE = "zero"
SMALL = {"tafl": "brandubh", "hex": "hex:3", "hexapawn": "hexapawn:3x3"}
"""A small variant of every game: kernels are compiled per game, not per variant."""


def warm(report: Callable[[str], None] | None = None, everything: bool = False) -> float:
    """Import and compile whatever a session of tafl can need; returns the seconds it took.

    `report` hears what is going on, a sentence a step. A process that finds the search in the cache is done in
    half a second; on an empty cache it takes a minute or two. Counting and random games, which no `go` needs, are
    loaded only on an empty cache or when `everything` is asked for: a tenth of a second for who starts often.
    `everything` includes the games that are not tafl.
    """
    begun = time.perf_counter()

    def say(text: str) -> None:
        if report is not None:
            report(f"{text} ({time.perf_counter() - begun:.1f} s)")

    say("importing numba")
    from . import games
    from .search import alphabeta
    from .search.types import Settings

    for game in SMALL if everything else ("tafl",):
        say(f"{game}: moves and search")
        position = warm_game(games.find(SMALL[game]))
        if everything or alphabeta.search_root.stats.cache_misses:
            say(f"{game}: counting and random games")
            _count(position)
        if everything:
            say(f"{game}: plain minimax, and search by evaluators that are data")
            for settings in (
                Settings(evaluator=BARE),
                Settings(algorithm="minimax"),
                Settings(algorithm="minimax", evaluator=BARE),
            ):
                warm_game(position.variant, settings)
            _evaluate(position)
            say(f"{game}: tree search, and games of players that are data")
            for evaluator in ("default", BARE):
                warm_game(position.variant, Settings(algorithm="mcts", evaluator=evaluator))
            _contest(position.variant)
    say("done")
    return time.perf_counter() - begun


def warm_game(variant: AnyVariant, settings: Settings | None = None) -> Position:
    """Import and compile what a session with these settings needs to play the variant's game; a position of it."""
    from . import games
    from .evaluators import BY_HAND
    from .search.searcher import Searcher
    from .search.types import Limits, Settings

    position = games.initial(games.find(SMALL[variant.game]))
    move = position.legal_moves_with_captures()[0][0]
    position.play(move)
    position.parse_move(move_name(move))
    _ = position.repetitions
    settings = settings or Settings()
    # All evaluators that are data are one to the compiler, and this one fits every game.
    evaluator = "default" if settings.evaluator in BY_HAND else BARE
    searcher = Searcher(replace(settings, hash_mib=1, evaluator=evaluator))
    searcher.begin()
    searcher.search(position, Limits(depth=1), lambda _: None)
    searcher.evaluate(position)
    return position


def _evaluate(position: Position) -> None:
    """Every verb of an evaluator, called from Python."""
    from . import evaluators, verbs

    state = position.new_record()[0]
    for name in ("default", BARE):
        params = evaluators.parameters(name, position.variant)[0]
        verbs.evaluate(params, state)
        verbs.value(params, state)


def _contest(variant: AnyVariant) -> None:
    """A game between players that are data."""
    import numpy as np

    from . import contest

    contest.play(
        variant, [contest.Contestant("random"), contest.Contestant("minimax")], np.zeros(1, contest.GAME)
    )


def _count(position: Position) -> None:
    """Perft and playouts."""
    from . import count
    from .perft import perft

    for bulk in (False, True):
        perft(position, 2, bulk)
    state = position.new_record()[0]
    count.playouts(state, 1, 2)
    count.walk_randomly(state, 1)
