"""Who plays each side: an engine, or nobody, and then a person moves; and the engines for hints and analysis."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, ItemsView, ValuesView
from dataclasses import replace
from typing import Any, Final

from hnefi.engine.compile.progress import Progress
from hnefi.engine.games.base_variant import AnyVariant
from hnefi.protocol.client import EngineError

from .events import Events
from .opponents import DEFAULT_LEVEL, Opponent, Spec
from .rules_process import Traffic
from .values import SideLetter

PERSON: Final = "person"


class Player:
    """One side: a person, or an engine. `score` is what its engine saw last, for itself, in centipawns (a forced
    end counts as very much)."""

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
        events: Events,
        traffic: Traffic | None,
        on_compiling: Callable[[Progress], None],
    ) -> None:
        self.seed: int | None = None
        self.book = False
        self.rival = Spec(player="default", level=DEFAULT_LEVEL)
        self._events = events
        self._traffic = traffic
        self._on_compiling = on_compiling
        self.helper = self._opponent(Spec())
        self.substitute = self._opponent(self.rival)
        self._players: dict[SideLetter, Player] = {"a": Player(), "d": Player()}
        self._leaving: set[asyncio.Task[None]] = set()
        self._warming: set[asyncio.Task[None]] = set()

    def __getitem__(self, side: SideLetter) -> Player:
        return self._players[side]

    def values(self) -> ValuesView[Player]:
        return self._players.values()

    def items(self) -> ItemsView[SideLetter, Player]:
        return self._players.items()

    @property
    def persons(self) -> list[SideLetter]:
        """The sides that persons play."""
        return [side for side, player in self._players.items() if player.opponent is None]

    @property
    def engines(self) -> list[Opponent]:
        """The engines that play."""
        return [player.opponent for player in self._players.values() if player.opponent is not None]

    def forget_scores(self) -> None:
        """Another game begins."""
        for player in self._players.values():
            player.score = None

    def assign(self, side: SideLetter, spec: Spec | None) -> None:
        """Let an engine play a side, or a person; an engine of ours that plays it already becomes the new one."""
        player = self._players[side]
        player.score = None
        if spec is not None and player.opponent is not None and player.opponent.become(spec):
            player.opponent.failures = 0
            return
        if player.opponent is not None:
            self._spawn(player.opponent.close(), self._leaving)
        player.opponent = None if spec is None else self._opponent(spec)

    @property
    def follows(self) -> bool:
        """Whether anybody's level follows the person's results."""
        return self.rival.auto or any(opponent.spec.auto for opponent in self.engines)

    def follow(self, level: int) -> None:
        """Whoever's level follows the person's results plays at this one from now on."""
        if self.rival.auto:
            self.rival = replace(self.rival, level=level)
        for opponent in self.engines:
            if opponent.spec.auto:
                opponent.become(replace(opponent.spec, level=level))

    def _opponent(self, spec: Spec) -> Opponent:
        return Opponent(spec, self._traffic, self._on_compiling)

    @property
    def everybody(self) -> list[Opponent]:
        """All engines: those that play and those that help."""
        return [*self.engines, self.helper, self.substitute]

    def release(self, opponent: Opponent) -> None:
        """An engine leaves its side to a person."""
        for player in self._players.values():
            if player.opponent is opponent:
                player.opponent = None

    def warm_up(self, variant: AnyVariant, game: int) -> None:
        """Start the engines before they are asked; what goes wrong is told when they are."""

        async def prepare(side: SideLetter, opponent: Opponent) -> None:
            try:
                await opponent.prepare(variant, game, side, self.seed, self.book)
            except (EngineError, ValueError, OSError):
                await opponent.rest()
            self._events.changed()

        for side, player in self._players.items():
            if player.opponent is not None:
                self._spawn(prepare(side, player.opponent), self._warming)

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
