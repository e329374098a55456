"""Weights of the hand-written evaluator of tafl: which file a variant reads, and what stands in it.

One file for each fitted rule set lies in `weights/`, named as the variant it was fitted on. A variant without one
takes that of its nearest relative: the same kind of goal first, then the king's strength, then the size of the board,
then the number of men. Folders of `weights/` are sets that are never changed again: older ones, complete, so that
what was measured with them can still be played, and one of a single file for rules where `default` picks it. An empty
name is the newest complete set's.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ..games.tafl.variant import Variant
from ..squares import file_of, rank_of, squares

FOLDER = Path(__file__).with_name("weights")
ENDGAME_TERMS = ("siege", "progress")
"""Terms of `tafl_siege.py` whose weights have a table of their own in a file."""
KINDS = 15
"""Kinds of squares: those alike under the symmetries of the board, five and more steps from an edge taken as one."""


@lru_cache(maxsize=32)
def squares_alike(size: int) -> Mapping[int, int]:
    """Square -> its kind, by the distances from the nearest edge along both axes, each at most 4."""
    kinds = {}
    for sq in squares(size):
        near, far = sorted(min(at, size - 1 - at, 4) for at in (file_of(sq), rank_of(sq)))
        kinds[sq] = far * (far + 1) // 2 + near
    return kinds


class Family(NamedTuple):
    """What tells relatives apart."""

    edge: bool
    """Whether the king escapes at the edge."""
    king_sides: int
    """Hostile sides that take him."""
    size: int
    attackers: int
    defenders: int


@lru_cache(maxsize=4)
def fitted(weights: str = "") -> Mapping[str, Family]:
    """Names of the files of a set, each with the family that its weights were fitted for."""
    paths = sorted((FOLDER / weights).glob("*.toml"))
    return {path.stem: Family(**_table(path)["family"]) for path in paths}


def family(variant: Variant) -> Family:
    """What tells a variant from its relatives."""
    rules = variant.rules
    return Family(rules.escape == "edge", rules.king_sides, rules.size, variant.attackers, variant.defenders)


def file_for(variant: Variant, weights: str = "") -> str:
    """The name of the file whose weights a variant takes."""
    own = family(variant)
    files = fitted(weights)
    if files.get(variant.name) == own:
        return variant.name
    importance = (10_000, 1_000, 100, 2, 1)
    return min(
        files,
        key=lambda name: sum(abs(a - b) * w for a, b, w in zip(files[name], own, importance, strict=True)),
    )


def weights_for(variant: Variant, weights: str = "") -> Mapping[str, Any]:
    """The weights for a variant, by name, in sixteenths of a centipawn."""
    return read(file_for(variant, weights), weights)


def endgame_weights_for(variant: Variant, term: str, weights: str = "") -> Mapping[str, int]:
    """The weights of a term of `tafl_siege.py`, `siege` or `progress`, for a variant; empty where its file has none."""
    return read_endgame(file_for(variant, weights), term, weights)


@lru_cache(maxsize=16)
def read(name: str, weights: str = "") -> Mapping[str, Any]:
    """The weights in one file of a set, without those of the endgame terms."""
    table = _table(FOLDER / weights / f"{name}.toml")
    del table["family"]
    for term in ENDGAME_TERMS:
        table.pop(term, None)
    return table


@lru_cache(maxsize=32)
def read_endgame(name: str, term: str, weights: str = "") -> Mapping[str, int]:
    """The weights of an endgame term in one file of a set."""
    return _table(FOLDER / weights / f"{name}.toml").get(term, {})


def _table(path: Path) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(path.read_text("ascii"))
