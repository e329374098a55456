"""OpenTafl's clock as the limits of a search.

A side has its main time, then overtime periods, each of which restarts with every move made within it. The protocol
does not say whether there is an increment, too; we infer it from two clocks of ours and the time used between them.
"""

from __future__ import annotations

from typing import Final

from hnefi.engine.sides import Side
from hnefi.protocol.client import Limits

from .lines import Clock

RESERVE: Final = 250
"""Milliseconds in reserve, because the host checks its clock every 100 ms."""
LEAST: Final = 50
"""Milliseconds that a search has in any case."""
LONGEST_INCREMENT: Final = 600_000
"""The largest difference between two clocks that counts as an increment."""


class OwnTime:
    """The time of the side that we play."""

    def __init__(self) -> None:
        self.clock: Clock | None = None
        """The host's last clock."""
        self._increment = 0
        self._before: tuple[Side, int] | None = None
        """Our side, and the main time that should be left after our last move."""

    def limits(self, side: Side, movetime: int) -> Limits:
        """How long we may think about this move; `movetime` (ms) where there is no clock."""
        clock = self.clock
        if clock is None:
            return Limits(movetime=movetime)
        left, periods = clock.left[side], clock.periods[side]
        if clock.overtime[side]:
            return Limits(movetime=max(LEAST, left - RESERVE))
        self._infer(side, left)
        times, increments = list(clock.left), [0, 0]
        if periods >= 1 and clock.period > 0:
            times[side] = left + clock.period
            increments[side] = clock.period * 9 // 10
        else:
            increments[side] = self._increment
        return Limits(clock=(times[0], times[1]), inc=(increments[0], increments[1]))

    def _infer(self, side: Side, left: int) -> None:
        if self._before is None or self._before[0] is not side:
            return
        gained = round((left - self._before[1]) / 1000) * 1000
        self._increment = gained if 0 < gained <= LONGEST_INCREMENT else 0

    def moved(self, side: Side, used: int) -> None:
        """Report that a move took `used` milliseconds."""
        clock = self.clock
        main = clock is not None and not clock.overtime[side]
        self._before = (side, clock.left[side] - used) if clock is not None and main else None
