"""What a player other than our own default thinks of positions: his engine is asked, one position after another."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hnefi.engine.search.types import Limits
from hnefi.engine.squares import move_name
from hnefi.engine.wording import shorten
from hnefi.protocol.client import Engine, EngineError, Timeouts, own_command

from .engine_slot import set_variant
from .options import ConfigError

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position

LOOK = Limits(depth=2, nodes=100_000)
"""How far he looks: far enough to see a win of either side in the next two plies."""


class OpeningEvaluator:
    """A player's process that gives values of positions."""

    def __init__(self, player: str, engine: Engine, runner: asyncio.Runner) -> None:
        self._player = player
        self._engine = engine
        self._runner = runner

    def value(self, position: Position) -> int | None:
        """Centipawns for the attackers, None where one side wins soon; ConfigError if he does not say."""
        return self._runner.run(self._ask(position))

    async def _ask(self, position: Position) -> int | None:
        engine = self._engine
        engine.position(f"fen {position.start_fen}", list(map(move_name, position.moves)))
        try:
            answer = await (await engine.go(LOOK))
        except EngineError as error:
            raise ConfigError(f"openings.eval_by {shorten(self._player)}: {error}") from None
        score = answer.info.score if answer.info is not None else None
        if score is None:
            raise ConfigError(
                f"openings.eval_by {shorten(self._player)}: gives no score: expected a player who does"
            )
        if score.cp is None:
            return None
        return score.cp if position.side == 0 else -score.cp


@contextmanager
def judge(player: str, variant: str) -> Iterator[OpeningEvaluator]:
    """A player who judges positions of a variant; his process ends with the context."""
    with asyncio.Runner() as runner:
        try:
            engine = runner.run(Engine.start(own_command("--player", player), "uti", timeouts=Timeouts()))
        except EngineError as error:
            raise ConfigError(f"openings.eval_by {shorten(player)}: {error}") from None
        try:
            try:
                runner.run(set_variant(engine, variant))
            except EngineError as error:
                raise ConfigError(f"openings.eval_by {shorten(player)}: {error}") from None
            yield OpeningEvaluator(player, engine, runner)
        finally:
            runner.run(engine.quit())
