"""Random openings: a few uniformly random plies that leave an open game, no two alike."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial

from . import games
from .games.base_position import Position
from .games.base_variant import AnyVariant
from .search.searcher import Searcher
from .search.types import Limits, Settings

VERSION = 2
"""Grows whenever the same seed would give other openings."""
MAX_EVAL = 300
"""A position that a shallow search finds better for one side by more centipawns is no opening."""
_TRIES = 200
_TWO_PLIES = Limits(depth=2)


Judge = Callable[[Position], int | None]
"""A position's value for the attackers in centipawns; None if the judge sees one side win."""


def generate(
    variant: AnyVariant,
    count: int,
    seed: int,
    plies: tuple[int, int] = (2, 8),
    max_eval: int = MAX_EVAL,
    judge: Judge | None = None,
) -> Iterator[Position]:
    """Up to `count` openings after a random number of random plies in the range `plies`, both ends included.

    Distinct up to the symmetries of the board that keep the game. Not over, not won within two plies for either
    side, and of the start position's value give or take `max_eval` centipawns, as `judge` says (our own search of two
    plies if not given). The list for a larger `count` begins with that for a smaller one. There are fewer only where
    no more can be found.
    """
    draw = random.Random(f"openings {VERSION} {variant.hash} {seed}")
    start = games.initial(variant)
    if start.outcome is not None:
        return
    if judge is None:
        # The textbook search and one set of weights: openings must not change with every change of the engine.
        evaluator = "default-2026.1" if variant.game == "tafl" else "default"
        judge = partial(_value, Searcher(Settings(hash_mib=1, features="none", evaluator=evaluator)))
    usual = judge(start)
    seen: set[tuple[object, ...]] = set()
    found = failed = 0
    while found < count and failed < _TRIES:
        position = _walk(start, draw.randint(*plies), draw)
        failed += 1
        if position is None:
            continue
        canon = position.canonical()
        if canon in seen:
            continue
        value = judge(position)
        if value is None or usual is None or abs(value - usual) > max_eval:
            continue
        seen.add(canon)
        found += 1
        failed = 0
        yield position


def _walk(start: Position, plies: int, draw: random.Random) -> Position | None:
    """The position after random plies, None if the game ended on the way."""
    position = start
    for _ in range(plies):
        position = position.play(draw.choice(position.legal_moves()))
        if position.outcome is not None:
            return None
    return position


def _value(searcher: Searcher, position: Position, limits: Limits = _TWO_PLIES) -> int | None:
    """The value for the attackers of a limited search; None if it sees one side win."""
    scores: list[int | None] = [None]
    searcher.begin()
    searcher.search(position, limits, lambda info: scores.append(info.score.cp))
    value = scores[-1]
    if value is None:
        return None
    return value if position.side == 0 else -value
