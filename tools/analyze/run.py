"""Analyses recorded games position by position, with progress; skips what is known and stops cleanly."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from hnefi.protocol.hosts.assessment.values import PositionAnalysis
from hnefi.protocol.hosts.assessment.verdicts import Thresholds

from ..common.live import Live, Pace
from .analyser import Analyser
from .store import Progress
from .values import Analysed, PlayedThrough, analysed

if TYPE_CHECKING:
    from ..common.live import Stream

GIVE_UP: Final = 3
"""Positions in a row without an answer after which the engine is given up."""


class GaveUp(Exception):
    """The engine fails at every position; the text is a sentence."""


class Watch:
    """Tells how far the analysis is, on standard error: a live line at a terminal, a line now and then elsewhere."""

    def __init__(
        self, stream: Stream, total: int, *, quiet: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._live = Live(stream, plain=quiet, clock=clock)
        self._quiet = quiet
        self._pace = Pace(total, clock=clock)
        self._at = ""

    def step(self, at: str, *, asked: bool) -> None:
        """One position more is known; `asked`: the engine was asked for it."""
        self._at = at
        self._pace.add(timed=asked)
        if not self._quiet:
            self._live.step(self.line)

    def skip(self, positions: int) -> None:
        """So many positions will not be looked at."""
        self._pace.total -= positions

    def say(self, text: str) -> None:
        """A line that stays."""
        self._live.report([text])

    def end(self) -> None:
        """Nothing more happens."""
        self._live.close()

    def line(self) -> str:
        """`game 2, ply 14 · 57 of 120 positions · 1.9 a second · ETA 0:00:33`"""
        pace, rate = self._pace, self._pace.rate
        said = f"{self._at} · {pace.done} of {pace.total} positions"
        if rate:
            said += f" · {rate:.1f} a second" if rate >= 1 else f" · {1 / rate:.1f} s each"
        return said + pace.eta()


@dataclass(slots=True)
class Work:
    """Analyses games one after the other with one engine. A game that is left early keeps what was found in `looks`."""

    asker: Analyser
    watch: Watch
    thresholds: Thresholds
    store: Progress | None = None
    backward: bool = False
    looks: list[PositionAnalysis | None] = field(default_factory=list)
    _blind: int = 0

    async def game(self, walk: PlayedThrough) -> Analysed:
        """Analyse a game. GaveUp or EngineError if the engine cannot continue; cancelled, it keeps what it has."""
        count = len(walk.positions)
        known = self.store.known if self.store is not None else {}
        self.looks = [known.get((walk.number, ply)) for ply in range(count)]
        if None in self.looks:
            await self.asker.new_game(walk.variant)
        order: Sequence[int] = range(count)
        for ply in reversed(order) if self.backward else order:
            asked = self.looks[ply] is None
            if asked:
                look = await self.asker.look(walk.positions[ply])
                self.looks[ply] = look
                if self.store is not None and look.outcome is None and not look.problem:
                    self.store.add(walk.number, ply, look)
                self._count_blind(look)
            self.watch.step(f"game {walk.number}, ply {ply}", asked=asked)
        return self.result(walk)

    def _count_blind(self, look: PositionAnalysis) -> None:
        self._blind = self._blind + 1 if look.problem else 0
        if self._blind == GIVE_UP:
            raise GaveUp(
                f"{self.asker.name}: {GIVE_UP} positions in a row stay unknown, so it is not asked again"
            )

    def result(self, walk: PlayedThrough) -> Analysed:
        """What is known about the game now."""
        looks = self.looks or [None] * len(walk.positions)
        return analysed(walk, looks, self.thresholds)
