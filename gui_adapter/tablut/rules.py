"""What this adapter asks of engine processes: the rules as its own values, and moves before a deadline."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Collection, Sequence
from typing import Final

from hnefi.engine.games.tafl.variant import find
from hnefi.engine.records.record import GameRecord
from hnefi.protocol.client import Engine, EngineError, EngineProtocolError, Limits
from hnefi.protocol.hosts import rulebook
from hnefi.protocol.hosts.rulebook import Facts, IllegalPosition, Line, Rules
from hnefi.protocol.hosts.trace import Trace

from .frames import board_of

__all__ = ["EngineSlot", "Facts", "IllegalPosition", "Line", "Rules", "Thinker", "header"]

VARIANT: Final = find("tablut-bologna")
START_BOARD: Final = board_of(VARIANT.startpos)


def header(players: tuple[str, str], start: str | None = None) -> GameRecord:
    """How a game is written down; `players` are the attackers and the defenders."""
    return GameRecord(VARIANT.name, start=start, players=players, rules_hash=VARIANT.hash)


class EngineSlot(rulebook.EngineSlot):
    """An engine process that plays the variant of the competition."""

    def __init__(
        self,
        command: Sequence[str] = (),
        *,
        player: str = "",
        options: Sequence[tuple[str, str]] = (),
        trace: Trace | None = None,
    ) -> None:
        game = f"variant {VARIANT.name}"
        super().__init__(command, game=game, player=player, options=options, trace=trace)


class Thinker:
    """An engine that chooses moves."""

    def __init__(self, slot: EngineSlot) -> None:
        self._slot = slot

    async def warm_up(self) -> None:
        """Have the engine ready; EngineError."""
        await self._slot.warm_up()

    async def best(
        self,
        line: Line,
        deadline: float,
        grace: float,
        legal: Collection[str],
        among: Sequence[str] = (),
        movetime: int | None = None,
    ) -> str:
        """Its move, of those `among` which it may choose (none: of all), within the deadline (`time.monotonic()`).

        An engine that has not answered `grace` seconds after it is started again. EngineError.
        """

        async def think(engine: Engine) -> str:
            left = max(LEAST_MS, round((deadline - time.monotonic()) * 1000))
            engine.position(line.start or "startpos", line.moves)
            limits = Limits(movetime=left if movetime is None else min(left, movetime))
            search = await engine.go(limits, searchmoves=among, timeout=left / 1000 + grace)
            try:
                answer = await search
            except asyncio.CancelledError:
                with contextlib.suppress(EngineError):
                    await search.abandon()
                raise
            if answer.move is None or answer.move not in (among or legal):
                raise EngineProtocolError(f"{engine.name} answered {answer.move}: expected a legal move")
            return answer.move

        return await self._slot.use(think)


LEAST_MS: Final = 50
"""So long an engine may think even where the time is up: a late move may still be in time, none never is."""
