"""The scale of values, once for evaluators and searches; in a module of its own below both.

Values are centipawns; a win in n plies is worth `MATE - n` to the winner.
"""

from __future__ import annotations

MATE = 30000
WON = 29000
"""Values beyond this are forced ends."""
MAX_EVAL = 9000
"""No evaluation of an undecided position exceeds this: far from the values of won games."""
INFINITE = 32000
"""Greater than every value."""
NO_LIMIT = 1 << 62
"""A number of nodes that no search reaches."""
