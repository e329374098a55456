"""Captures and the king's way home, without parameters (kernel).

Source: P. Hingston, "Evolving Players for an Ancient Game: Hnefatafl" (2007): the difference of captures plus a tenth
of the king's Manhattan distance to the nearest corner, for the attackers. Counted in tenths, since ties matter.
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
    """Nothing to know."""
    return ()


def naive(variant: Any, options: Mapping[str, int], arrays: Mapping[str, Any], position: Any) -> float:
    """The value for side `a` in float64, slow and obvious: what the kernel must agree with."""
    from ...games.tafl.tables import goal_distance

    king = next(sq for sq, letter in position.pieces() if letter == "K")
    return float(10 * (position.taken[0] - position.taken[1]) + goal_distance(variant.rules, king))


def terms(options: Mapping[str, int], params: Any, state: Any) -> list[tuple[str, float]]:
    """The terms of the value by name, in its units."""
    by_attackers, by_defenders = state["taken"].tolist()
    return [
        ("captures", 10.0 * (by_attackers - by_defenders)),
        ("distance", float(state["goal_distance"][state["king"]])),
    ]


@kernel
def value(p, s):
    """The value for the attackers, in tenths of a man; where corners do not count the nearest goal does."""
    return float(10 * (s.taken[0] - s.taken[1]) + s.goal_distance[s.king])
