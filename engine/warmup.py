"""Compiling kernels, or loading them from the disk cache, before anybody waits for one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from . import catalogue
from .compile import cache, progress
from .squares import move_name

if TYPE_CHECKING:
    from .games.base_position import Position
    from .games.base_variant import AnyVariant
    from .search.types import Settings

BARE = {"loaded": "zero", "policy": "uniform"}
"""Evaluators that are data and fit every game, one for each record that such evaluators have."""
NET = "nnue"
"""The record of efficiently updatable networks. Each fits its own rules: `default` is one in the variant that is played
if nothing else is asked for."""
SMALL = {name: game.small for name, game in catalogue.GAMES.items()}
"""A small variant of every game: kernels are compiled per game, not per variant."""

ALGORITHMS = ("alphabeta", "minimax", "mcts")
RANDOM = ("random", "random-coded")
"""Algorithms that evaluate nothing."""
OTHERS = "others"
"""Counting, evaluating, and whole games in one kernel."""
PORTIONS = {"tafl": 50.0, "hex": 13.0, "hexapawn": 11.0}
"""All games, for several processes, the longest first, and the seconds that each takes. Two processes for one game
would compile the same parts twice: 15 of 112 seconds of CPU time, when there were four for tafl."""
EVERYTHING = 1.35
"""How many times as long everything takes as what is usually needed."""

Kind = tuple[str, str, str]

SHARED = {
    "tafl": {
        "set up": 7.4,
        "legal moves": 0.8,
        "victims": 0.3,
        "advance": 1.8,
        "lawful": 0.8,
        "occurrences": 0.1,
        "age history": 0.2,
    }
}
"""Seconds that the parts take which every kind of a game needs, as `USUAL`."""
USUAL: dict[Kind, dict[str, float]] = {
    ("tafl", "alphabeta", NET): {"search root": 11.4, "value": 1.2},
    ("tafl", "alphabeta", "default"): {"search root": 11.2, "terms": 0.9},
    ("tafl", "alphabeta", "loaded"): {"search root": 9.2, "tafl value": 0.8},
    ("tafl", "minimax", "default"): {"deepen": 3.5},
    ("tafl", "minimax", "loaded"): {"deepen": 2.5},
    ("tafl", "mcts", "default"): {"reuse tree": 0.4, "init root": 0.8, "simulate": 3.9, "line": 1.1},
    ("tafl", "mcts", "loaded"): {"init root": 0.7, "simulate": 2.5},
    ("hex", "alphabeta", "default"): {"generate": 0.2, "make": 0.6, "search root": 4.7, "terms": 0.1},
    ("hexapawn", "alphabeta", "default"): {"set up": 0.5, "make": 0.2, "search root": 4.5, "terms": 0.1},
}
"""Seconds that the other parts of each kind take, in their order, where this machine has not compiled them yet. Kinds
that are left out take a few seconds."""

USUAL_KIND: Kind = ("tafl", "alphabeta", NET)
"""What a session needs that asks for nothing."""

_prepared: set[Kind] = set()
_preparing = threading.Lock()
_hearers: list[Callable[[Kind], None]] = []


def kind(variant: AnyVariant, settings: Settings) -> Kind:
    """What decides which machine code a session needs: game, algorithm, and whether the evaluator is written by hand
    ("default") or data: an efficiently updatable network ("nnue"), another network with a policy ("policy") or without
    one ("loaded")."""
    from .evaluators import record_kind
    from .search import skill

    evaluator = skill.evaluator(settings, variant)
    return variant.game, settings.algorithm, record_kind(evaluator, variant)


def prepare(variant: AnyVariant, settings: Settings | None = None) -> None:
    """Compile or load what a session with these settings needs; at once where this process has done so before."""
    from .search.types import Settings

    needed = kind(variant, settings := settings or Settings())
    with _preparing:
        if needed not in _prepared:
            with _compiling(needed):
                warm_game(variant, settings)
            _prepared.add(needed)
            for tell in _hearers:
                tell(needed)


def hear(tell: Callable[[Kind], None]) -> None:
    """From now on `tell` is called with each kind that this process has prepared."""
    _hearers.append(tell)


def example(needed: Kind) -> tuple[AnyVariant, Settings]:
    """A variant and settings of this kind."""
    from . import games
    from .evaluators import HAND
    from .search.types import Settings

    game, algorithm, evaluator = needed
    if evaluator == NET:
        return games.find(catalogue.DEFAULT), Settings(algorithm=algorithm)
    return games.find(SMALL[game]), Settings(algorithm=algorithm, evaluator=BARE.get(evaluator, HAND))


def load(needed: Kind = USUAL_KIND) -> bool:
    """Load what sessions of this kind need, if all of it is in the cache; nothing is compiled.

    Returns whether it was. Nothing is compiled before it is known what will be played.
    """
    try:
        with cache.loading_only():
            prepare(*example(needed))
    except cache.NotCompiled:
        return False
    return True


def warm(*, everything: bool = False) -> None:
    """Compile or load what playing, analysing and counting usually need, in all games, in this process; `everything`:
    also the other algorithms with evaluators that are data, and the games of an evolution."""
    with cache.LOCK.session():
        for game in PORTIONS:
            warm_portion(game, everything=everything)


def warm_portion(game: str, *, everything: bool = False) -> None:
    """Compile or load one of `PORTIONS`."""
    from . import games
    from .evaluators import HAND
    from .search.types import Settings

    variant = games.find(SMALL[game])
    with cache.LOCK.session():
        for algorithm in ALGORITHMS:
            for evaluator in (HAND, *BARE.values()):
                # Who asks for these can wait for them.
                seldom = evaluator != HAND and algorithm != "alphabeta"
                if seldom and not everything:
                    continue
                if evaluator == BARE["policy"] and algorithm != "mcts":
                    continue
                if (game, algorithm, evaluator) == ("tafl", "minimax", HAND):
                    continue
                prepare(variant, Settings(algorithm=algorithm, evaluator=evaluator))
        if game == USUAL_KIND[0]:
            prepare(*example(USUAL_KIND))
        with _compiling((game, OTHERS, "")):
            position = games.initial(variant)
            _count(position)
            _evaluate(position, (HAND, BARE["loaded"], *([BARE["policy"]] if everything else [])))
            if everything:
                _contest(variant)


@contextmanager
def _compiling(needed: Kind) -> Iterator[None]:
    """Hold the lock while the block compiles, and report its progress."""
    parts = USUAL.get(needed, {})
    if all(game != needed[0] for game, _, _ in _prepared):
        parts = SHARED.get(needed[0], {}) | parts
    learned = cache.times()
    expected = {part: learned.get(f"{part}/{needed[0]}", seconds) for part, seconds in parts.items()}
    with cache.LOCK.session(), progress.plan(expected, needed):
        yield


def warm_game(variant: AnyVariant, settings: Settings | None = None) -> Position:
    """Play, search and evaluate a little by these settings, so that every kernel they need is there; a position."""
    from . import games
    from .evaluators import HAND
    from .search.searcher import Searcher
    from .search.types import Limits, Settings

    settings = settings or Settings()
    needed = kind(variant, settings)[2]
    # To the compiler an evaluator is its record. There are some that fit every variant; a net fits its own.
    if needed == NET:
        evaluator, position = settings.evaluator, games.initial(variant)
    else:
        evaluator = BARE.get(needed, HAND)
        position = games.initial(games.find(SMALL[variant.game]))
    move = position.legal_moves_with_captures()[0][0]
    position.play(move)
    position.parse_move(move_name(move))
    _ = position.repetitions
    searcher = Searcher(replace(settings, hash_mib=1, evaluator=evaluator))
    searcher.begin()
    searcher.search(position, Limits(depth=1), lambda _: None)
    if settings.algorithm not in RANDOM:
        searcher.evaluate(position)
    return position


def _evaluate(position: Position, names: Iterable[str]) -> None:
    """Every verb of these evaluators, called from Python."""
    from . import evaluators
    from .games import interface as verbs

    state = position.new_record()[0]
    for name in names:
        params = evaluators.parameters(name, position.variant)[0]
        verbs.evaluate(params, state)
        verbs.value(params, state)


def _contest(variant: AnyVariant) -> None:
    """A game between players that are data."""
    import numpy as np

    from .selfplay import match as contest

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
