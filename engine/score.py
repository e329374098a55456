"""Constants that evaluators and searches share: the scale of values, and the absence of a node limit.

Values are centipawns; a win in n plies is worth `MATE - n` to the winner.
"""

from __future__ import annotations

MATE = 30000
WON = 29000
"""Values above this, or below its negative, are forced ends."""
MAX_EVAL = 9000
"""Evaluations of undecided positions are clamped to this, which keeps them apart from the values of won games."""
INFINITE = 32000
"""Greater than every value."""
NO_LIMIT = 1 << 62
"""A node limit that no search reaches."""
