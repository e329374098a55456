"""Ratings as labels of strength: which level plays like a rating. Light: the greeting reads it.

Levels are limits and a free choice (`skill.py`); how strong they play was measured on a ladder of fixed players, on
which one ply of the player Simple stands for 1000. Between two levels, fractions of a level play.
"""

from __future__ import annotations

from itertools import pairwise

MEASURED = ((1, 876), (2, 1081), (3, 1186), (4, 1335), (5, 1512), (6, 1676), (7, 1879), (8, 2068), (9, 2225))
"""Levels and their ratings on `ladder-2026.3`, both in ascending order (`hnefi ladder report` prints them)."""
LOWEST, HIGHEST = MEASURED[0][1], MEASURED[-1][1]


def level(rating: float) -> float:
    """The level, with its fraction, that plays like a rating; the lowest and the highest measured one beyond them."""
    if rating <= LOWEST:
        return float(MEASURED[0][0])
    for (below, low), (above, high) in pairwise(MEASURED):
        if rating <= high:
            return below + (above - below) * (rating - low) / (high - low)
    return float(MEASURED[-1][0])
