"""Who plays each side: an engine, or nobody, and then a person moves; and the engines for hints and analysis."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, ItemsView, ValuesView
from typing import Any, Final

from hnefi.engine.games.base_variant import AnyVariant
from hnefi.protocol.client import EngineError

from . import strength
from .opponents import Opponent, Spec
from .rules_process import Traffic
from .values import SideLetter

PERSON: Final = "person"


class Seat:
    """One side of the table. `score` is what its engine saw last, for itself, in centipawns (a forced end counts as
    very much)."""

    def __init__(self) -> None:
        self.opponent: Opponent | None = None
        self.score: int | None = None

    @property
    def name(self) -> str:
        return PERSON if self.opponent is None else self.opponent.name


class Players:
    """Both sides. `rival` is who takes a side that a person leaves, `helper` our engine for hints and analysis,
    `substitute` moves for a person who says `go`."""

    def __init__(
        self,
        changed: Callable[[], None],
        compiling: Callable[[], None],
        seed: int | None,
        traffic: Traffic | None,
    ) -> None:
        self.seed = seed
        self.rival = Spec(player="default", level=strength.DEFAULT)
        self._changed = changed
        self._compiling = compiling
        self._traffic = traffic
        self.helper = self._opponent(Spec())
        self.substitute = self._opponent(self.rival)
        self._seats: dict[SideLetter, Seat] = {"a": Seat(), "d": Seat()}
        self._leaving: set[asyncio.Task[None]] = set()
        self._warming: set[asyncio.Task[None]] = set()

    def __getitem__(self, side: SideLetter) -> Seat:
        return self._seats[side]

    def values(self) -> ValuesView[Seat]:
        return self._seats.values()

    def items(self) -> ItemsView[SideLetter, Seat]:
        return self._seats.items()

    @property
    def persons(self) -> list[SideLetter]:
        """The sides that persons play."""
        return [side for side, seat in self._seats.items() if seat.opponent is None]

    @property
    def engines(self) -> list[Opponent]:
        """The engines that sit here."""
        return [seat.opponent for seat in self._seats.values() if seat.opponent is not None]

    def forget_scores(self) -> None:
        """Another game begins."""
        for seat in self._seats.values():
            seat.score = None

    def assign(self, side: SideLetter, spec: Spec | None) -> None:
        """Let an engine sit on a side, or a person; an engine of ours that sits there becomes the new one."""
        seat = self._seats[side]
        seat.score = None
        if spec is not None and seat.opponent is not None and seat.opponent.become(spec):
            seat.opponent.failures = 0
            return
        if seat.opponent is not None:
            self._spawn(seat.opponent.close(), self._leaving)
        seat.opponent = None if spec is None else self._opponent(spec)

    def _opponent(self, spec: Spec) -> Opponent:
        return Opponent(spec, self._traffic, lambda _: self._compiling())

    @property
    def everybody(self) -> list[Opponent]:
        """All engines: those that play and those that help."""
        return [*self.engines, self.helper, self.substitute]

    def release(self, opponent: Opponent) -> None:
        """An engine leaves its seat: a person may move there."""
        for seat in self._seats.values():
            if seat.opponent is opponent:
                seat.opponent = None

    def warm_up(self, variant: AnyVariant, game: int) -> None:
        """Start the engines before they are asked; what goes wrong is told when they are."""

        async def prepare(side: SideLetter, opponent: Opponent) -> None:
            try:
                await opponent.prepare(variant, game, side, self.seed)
            except (EngineError, ValueError, OSError):
                await opponent.rest()
            self._changed()

        for side, seat in self._seats.items():
            if seat.opponent is not None:
                self._spawn(prepare(side, seat.opponent), self._warming)

    def _spawn(self, work: Coroutine[Any, Any, None], among: set[asyncio.Task[None]]) -> None:
        task = asyncio.ensure_future(work)
        among.add(task)
        task.add_done_callback(among.discard)

    async def close(self) -> None:
        """End every process."""
        for task in self._warming:
            task.cancel()
        closing = [opponent.close() for opponent in self.everybody]
        await asyncio.gather(*self._warming, *closing, *self._leaving, return_exceptions=True)
