"""Captures and the king's distance to a corner, without parameters (kernel).

Source: P. Hingston, "Evolving Players for an Ancient Game: Hnefatafl" (2007): the difference of captures plus a tenth
of the king's Manhattan distance to the nearest corner, for the attackers. Counted in tenths, so that equal values are
exactly equal: ties are drawn at random.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...compile.jit import kernel

NUMBER = 1
SOURCE = 'P. Hingston, "Evolving Players for an Ancient Game: Hnefatafl", 2007: the player called Simple'
GAMES = ("tafl",)
SCALE = 10.0
OUTPUT = "value"
OPTIONS: Mapping[str, int] = {}


def shapes(variant: Any, options: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """No arrays."""
    return {}


def layout(variant: Any, options: Mapping[str, int]) -> tuple[int, ...]:
    """No sizes."""
    return ()


def naive(variant: Any, options: Mapping[str, int], arrays: Mapping[str, Any], position: Any) -> float:
    """The value for side `a` in float64: a slow, obvious reference for the kernel."""
    from ...games.tafl.tables import goal_distance

    king = next(sq for sq, letter in position.pieces() if letter == "K")
    return float(10 * (position.taken[0] - position.taken[1]) + goal_distance(variant.rules, king))


def terms(options: Mapping[str, int], params: Any, state: Any) -> list[tuple[str, float]]:
    """The terms of the value by name, in tenths of a man."""
    by_attackers, by_defenders = state["taken"].tolist()
    return [
        ("captures", 10.0 * (by_attackers - by_defenders)),
        ("distance", float(state["goal_distance"][state["king"]])),
    ]


@kernel
def value(p, s):
    """The value for the attackers, in tenths of a man; where corners are not goals, the nearest goal counts instead."""
    return float(10 * (s.taken[0] - s.taken[1]) + s.goal_distance[s.king])
