"""Results as printed in P. Hingston, "Evolving Players for an Ancient Game: Hnefatafl" (2007), misprints included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

RULES = ("hingston-original", "hingston-alternative")
DEPTHS = (1, 2, 3)
GENERATIONS = 300
MATCHES: Mapping[int, int] = {1: 100, 2: 20, 3: 10}
"""Matches at each depth. The text says games; the tables count this number on each side."""


class Row(NamedTuple):
    """Games of the final player at one depth against one opponent; those missing from `MATCHES` were drawn."""

    won_red: int
    won_white: int
    lost_red: int
    lost_white: int


TABLES: Mapping[str, Mapping[tuple[int, str], Row]] = {
    "hingston-original": {
        (1, "random"): Row(21, 40, 21, 1),
        (2, "random"): Row(0, 6, 1, 0),
        (3, "random"): Row(1, 10, 4, 0),
        (1, "simple"): Row(17, 69, 83, 6),
        (2, "simple"): Row(0, 0, 18, 4),
        (3, "simple"): Row(0, 9, 10, 0),
    },
    "hingston-alternative": {
        (1, "random"): Row(98, 0, 0, 0),
        (2, "random"): Row(9, 3, 4, 0),
        (3, "random"): Row(9, 10, 1, 0),
        (1, "simple"): Row(93, 14, 7, 84),
        (2, "simple"): Row(0, 0, 10, 4),
        (3, "simple"): Row(5, 5, 4, 4),
    },
}
"""Table 1 and Table 2."""

FIGURES: Mapping[tuple[str, str], tuple[int, str]] = {
    ("hingston-original", "random"): (
        4,
        "1 ply rises from around 50 % to around 80 %; 2 plies better than 90 %; 3 plies steady at 100 %",
    ),
    ("hingston-original", "simple"): (
        5,
        "1 ply rises from around 5 % to around 30 %; 2 plies lose nearly all; 3 plies about as at 1 ply",
    ),
    ("hingston-alternative", "random"): (6, "soundly ahead at every depth, with some drop at 2 plies"),
    ("hingston-alternative", "simple"): (
        7,
        "ahead at 1 ply, nearly even at 3 plies, a clear drop at 2 plies",
    ),
}
"""Number of the figure, and what the text says about its curves."""

LEVELS: Mapping[tuple[str, str, int], tuple[float | None, float | None]] = {
    ("hingston-original", "random", 1): (0.50, 0.80),
    ("hingston-original", "random", 2): (None, 0.90),
    ("hingston-original", "random", 3): (None, 1.00),
    ("hingston-original", "simple", 1): (0.05, 0.30),
    ("hingston-original", "simple", 2): (None, 0.0),
    ("hingston-original", "simple", 3): (None, 0.30),
    ("hingston-alternative", "simple", 1): (None, 0.50),
    ("hingston-alternative", "simple", 3): (None, 0.50),
}
"""Shares of matches won that the text gives for the first and for the last generation."""
