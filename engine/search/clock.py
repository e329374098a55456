"""Time management: how much time a move may take."""

from __future__ import annotations

import time

from ..sides import Side
from .types import Limits

_MOVES_TO_GO = 30
"""Moves that the game is expected to last, if the time control does not say."""
_MOVES_LEFT = 25
"""The same for an engine whose time another program manages: it may finish what it began."""
_KEPT = 50
"""Milliseconds of the clock that are withheld from such an engine."""
_LATEST = 0.4
"""A move may take at most this fraction of the clock, however unstable the search is."""
_LONGEST = 7 * 24 * 3600 * 1000.0
"""A week, the longest timer."""


class Budget:
    """Milliseconds of one move: no new depth after `soft`, the end at `hard`; both None without a clock."""

    def __init__(self, soft: float | None, hard: float | None) -> None:
        self.soft = soft
        self.hard = hard
        self._begun = time.perf_counter()

    def start(self) -> None:
        """Start the clock."""
        self._begun = time.perf_counter()

    def elapsed(self) -> float:
        """Milliseconds since the start."""
        return (time.perf_counter() - self._begun) * 1000

    @property
    def timed(self) -> bool:
        """Whether the search has a time limit."""
        return self.hard is not None

    def spent(self, part: float = 1.0) -> bool:
        """Whether another depth is not worth beginning, for a move that deserves this part of its usual time."""
        if self.soft is None or self.hard is None:
            return False
        return self.elapsed() >= (self.soft if self.soft == self.hard else min(self.soft * part, self.hard))


def budget(limits: Limits, side: Side, overhead: int) -> Budget:
    """The time that `side` may take for its next move.

    `overhead` milliseconds are kept back for the way between the programs. A clock at or below zero still leaves
    a millisecond: a legal move comes at once.
    """
    soft: float | None = None
    hard: float | None = None
    if limits.movetime is not None:
        soft = hard = min(max(1.0, limits.movetime - overhead), _LONGEST)
    clock = limits.clock[side]
    if clock is not None:
        increment = min(max(0, limits.inc[side]), _LONGEST)
        usable = min(max(1.0, clock - overhead), _LONGEST)
        moves = max(1, min(limits.movestogo or _MOVES_TO_GO, _MOVES_TO_GO))
        fair = usable / moves + 0.75 * increment
        latest = usable if moves == 1 else min(usable * _LATEST + 0.5 * increment, usable)
        clock_hard = min(latest, 4 * fair)
        # A depth takes a few times as long as the one before: half of the fair share is when to stop beginning.
        clock_soft = min(0.5 * fair, clock_hard)
        hard = clock_hard if hard is None else min(hard, clock_hard)
        soft = clock_soft if soft is None else min(soft, clock_soft)
    return Budget(soft, hard)


def movetime(left: float, increment: float, moves: int | None = None) -> float:
    """Milliseconds for the next move of an engine that is told no clock: never so many that its clock runs out.

    `left` and `increment` are its clock in milliseconds, `moves` those that it must last for (None: not known).
    """
    share = left / ((moves or _MOVES_LEFT) + 1) + 0.8 * increment
    return min(share, left - _KEPT)
