"""Every position is worth the same, so a search sees only won and lost games.

Source: P. Hingston, "Evolving Players for an Ancient Game: Hnefatafl" (2007): the player called Random, read as one
that sees wins and losses as far as it searches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import catalogue

NUMBER = 0
SOURCE = (
    'P. Hingston, "Evolving Players for an Ancient Game: Hnefatafl", 2007: Random that sees how games end'
)
GAMES = tuple(catalogue.GAMES)
SCALE = 1.0
OUTPUT = "value"
OPTIONS: Mapping[str, int] = {}


def shapes(variant: Any, options: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """No arrays."""
    return {}


def layout(variant: Any, options: Mapping[str, int]) -> tuple[int, ...]:
    """Nothing to know."""
    return ()


def naive(variant: Any, options: Mapping[str, int], arrays: Mapping[str, Any], position: Any) -> float:
    """Every position is worth nothing."""
    return 0.0


def terms(options: Mapping[str, int], params: Any, state: Any) -> list[tuple[str, float]]:
    """The terms of the value by name, in its units."""
    return []
