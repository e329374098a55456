"""Openings of a rule set: distinct random ones, and where rule sets are compared, the same for both.

The k-th opening of a rule set is the same however many are asked for. One that is compared with another takes over
the other's openings, so that game k begins alike in both; where an opening cannot be played, or decides the game at
once, it has one of its own.
"""

from __future__ import annotations

from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.openings import generate
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.search.types import Info, Limits, Settings
from hnefi.engine.squares import move_name

from .playing import after

Opening = tuple[str, ...]
AHEAD = 2
"""Plies within which nobody may have won by force."""


def own(variant: Variant, count: int, seed: int) -> list[Opening]:
    """Up to `count` distinct openings of a rule set, as moves; fewer only where it has no more."""
    return [tuple(map(move_name, position.moves)) for position in generate(variant, count, seed)]


def taken_over(variant: Variant, openings: list[Opening], seed: int) -> list[Opening]:
    """The same openings for another rule set, with one of its own in place of each that is none there."""
    searcher = Searcher(Settings(hash_mib=1, features="none"))
    good = [is_open(variant, opening, searcher) for opening in openings]
    spare = iter(own(variant, good.count(False), seed) if not all(good) else [])
    found = [opening if fits else next(spare, None) for opening, fits in zip(openings, good, strict=True)]
    return [opening for opening in found if opening is not None]


def is_open(variant: Variant, opening: Opening, searcher: Searcher) -> bool:
    """Whether an opening can be played and leaves a game that nobody has won within two plies."""
    try:
        position = after(variant, opening)
    except ValueError:
        return False
    if position.outcome is not None:
        return False
    infos: list[Info] = []
    searcher.begin()
    searcher.search(position, Limits(depth=AHEAD), infos.append)
    return infos[-1].score.cp is not None
