"""Measures how fair rules are: the engine plays itself from random openings, and the page gets the score after each."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Any, Final

from hnefi.engine.games.tafl import variant as variants
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.search.types import Limits
from hnefi.protocol.client import Engine, EngineError, own_command
from hnefi.protocol.hosts.sessions.engine_process import TIMEOUTS, RequestError

from . import frames, records
from .frames import FrameError

GAMES: Final = 400
"""Most games of a study."""
NODES: Final = 10_000
"""Most nodes of a move."""
PLIES: Final = 400
"""Plies after which a game is a draw, as in `hnefi balance`."""
OPENING: Final = 4
"""Random plies at the beginning, so that games differ."""
HASH: Final = 4
TRIES: Final = 50
"""Random openings to try until one is new."""
SEED: Final = 1
STUDIES: Final = 2
"""Studies at once on all pages; each uses a core."""


class Studies:
    """The studies of all pages."""

    def __init__(self) -> None:
        self.running = 0

    async def run(self, frame: Mapping[str, Any], tell: Callable[[dict[str, Any]], None]) -> None:
        """Play the games that a `fair` frame asks for, and `tell` the score after each; FrameError or RequestError."""
        ident = frame.get("id")
        variant = _variant(frame)
        games = min(GAMES, frames.number(frame, "games"))
        nodes = min(NODES, max(1, frames.number(frame, "nodes")))
        if self.running >= STUDIES:
            raise RequestError("too_many", f"{STUDIES} studies are running: try again later")
        self.running += 1
        try:
            async with await Engine.start(own_command(), "uti", timeouts=TIMEOUTS) as engine:
                await self._play(
                    engine, variant, games, nodes, lambda told: tell({"t": "fair", "id": ident, **told})
                )
        except EngineError as error:
            raise RequestError("engine_failed", str(error)) from None
        finally:
            self.running -= 1

    async def _play(
        self, engine: Engine, variant: Variant, games: int, nodes: int, tell: Callable[[dict[str, Any]], None]
    ) -> None:
        await engine.set_option("Hash", HASH)
        await engine.ask(f"rules switches {variants.as_words(variant)}", TIMEOUTS.ready)
        dice = random.Random(SEED)
        score = {"a": 0, "d": 0, "draw": 0}
        plies = 0
        begun: set[str] = set()
        for _ in range(games):
            opening = await _opening(engine, dice, begun)
            if opening is None:
                break
            begun.add(opening)
            result, length = await _game(engine, opening, nodes)
            score[result] += 1
            plies += length
            tell({**score, "plies": plies, "of": games, "done": False})
        tell({**score, "plies": plies, "of": games, "done": True})


async def _opening(engine: Engine, dice: random.Random, begun: set[str]) -> str | None:
    """A `position` line with random first moves that no game has begun with; None if hardly any are left."""
    for _ in range(TRIES):
        line, sign = "position startpos", " moves "
        for _ in range(OPENING):
            (answer,) = await engine.ask(line, more=["moves"])
            moves = answer.split()[2:]
            if not moves:
                break
            line, sign = f"{line}{sign}{dice.choice(moves)}", " "
        else:
            (answer,) = await engine.ask(line, more=["moves"])
            if line not in begun and answer.split()[2:]:
                return line
    return None


async def _game(engine: Engine, opening: str, nodes: int) -> tuple[str, int]:
    """Play a game of the engine against itself; returns its result (`a`, `d` or `draw`) and plies."""
    await engine.new_game()
    line = opening
    for ply in range(OPENING, PLIES):
        engine.hold(line)
        answer = await (await engine.go(Limits(nodes=nodes)))
        if answer.move is None:
            (outcome,) = await engine.ask("query outcome")
            return outcome.removeprefix("response "), ply
        line = f"play {answer.move}"
    return "draw", PLIES


def _variant(frame: Mapping[str, Any]) -> Variant:
    variant = records.known_variant(frame)
    if not isinstance(variant, Variant):
        raise FrameError("unknown_variant", f"{variant.name}: expected a variant of tafl", frame.get("id"))
    return variant


class Study:
    """The study of one page, if it has one."""

    def __init__(
        self, studies: Studies, tell: Callable[[dict[str, Any]], None], failed: Callable[[FrameError], None]
    ) -> None:
        self._studies = studies
        self._tell = tell
        self._failed = failed
        self._task: asyncio.Task[None] | None = None

    def begin(self, frame: Mapping[str, Any]) -> None:
        """Begin a study in place of the current one; with `games` 0 only end that."""
        self.end()
        if frames.number(frame, "games"):
            self._task = asyncio.create_task(self._run(frame), name="study")

    async def _run(self, frame: Mapping[str, Any]) -> None:
        try:
            await self._studies.run(frame, self._tell)
        except FrameError as error:
            self._failed(error)
        except RequestError as error:
            self._failed(FrameError(error.code, str(error), frame.get("id")))

    def end(self) -> None:
        """End the running study."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
