"""Games between our own players inside this process: no engine processes, no lines, no clocks; the same games.

A process takes a second to start, and most players need a millisecond a move. Searches here have the settings that
an engine process would have, from the same positions with the same seeds, so moves and results, and with them the
result digest of a run, are those of processes at fixed nodes or depth.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from hnefi import players
from hnefi.engine import about, squares
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.search.types import Info, Limits
from hnefi.engine.session import Session
from hnefi.engine.sides import Reason
from hnefi.engine.wording import shorten

from .adjudication import NONE, Adjudication, Scores
from .options import ConfigError
from .referee import End, over
from .values import EngineSpec, GameResult, GameTask, PlyLog, find_variant

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position
    from hnefi.engine.games.base_variant import AnyVariant

WatchPly = Callable[[GameTask, int, PlyLog], None]
"""Called with a game, the number of a ply (from 1), and the ply."""

IDENTITY = f"{about.NAME} {about.VERSION}"
"""Our engine's name, as in its greeting."""


def expect_own(config: Mapping[str, Mapping[str, Any]], engines: Sequence[Mapping[str, Any]]) -> None:
    """ConfigError unless all engines are our players without clocks, and nothing is asked that only lines show."""
    for engine in engines:
        name = shorten(engine["name"])
        if "player" not in engine:
            raise ConfigError(f"run.inside: engine {name} is a program: expected players only")
        sides = (engine, engine["limits_a"], engine["limits_d"])
        timed = [key for key in ("tc", "movetime") for side in sides if side.get(key) is not None]
        if timed:
            raise ConfigError(f"run.inside: engine {name}: {timed[0]}: expected fixed nodes or depth")
        for key in ("init", "env", "letters", "clock"):
            if engine[key]:
                raise ConfigError(f"run.inside: engine {name}: {key}: expected only with engine processes")
    for group, key in (("output", "traffic"), ("output", "keep_lines"), ("control", "cross_check")):
        if config[group][key]:
            raise ConfigError(f"run.inside: {group}.{key}: expected only with engine processes")


def problems(specs: Iterable[EngineSpec]) -> list[str]:
    """The problems with the engines' options, one sentence each."""
    found = []
    for spec in specs:
        try:
            InProcessEngine(spec)
        except ValueError as error:
            found.append(f"{spec.name}: {error}")
    return found


class InProcessEngine:
    """One of our players at a board; for one thread, but for `stop`. ValueError for options it does not take."""

    def __init__(self, spec: EngineSpec) -> None:
        self.name = spec.name
        self._session = Session(load_player=players.load)
        self._session.set_option("Player", spec.player)
        for name, value in spec.options:
            self._session.set_option(name, value or None)
        own = self._session.player_limits
        self._limits = tuple(
            Limits(depth=side.depth, nodes=side.nodes).tightened(own) for side in spec.limits
        )
        self._searcher = Searcher(self._session.settings)
        self._last: Info | None = None

    def new_game(self, variant: str, seed: int) -> None:
        """Ready for a new game."""
        self.ready(find_variant(variant), seed)

    def ready(self, variant: AnyVariant, seed: int) -> None:
        """The same for rules that may be unnamed."""
        self._session.use_variant(variant)
        self._session.set_option("Seed", str(seed))
        self._searcher.configure(self._session.effective)
        self._searcher.clear()

    def move(self, position: Position) -> tuple[int, Info | None]:
        """The move in an unfinished position, and the last report about it."""
        self._last = None
        self._searcher.begin()
        result = self._searcher.search(position, self._limits[position.side], self._hear)
        assert result.move is not None
        return result.move, self._last

    def stop(self) -> None:
        """End a running search soon; its move is to be discarded."""
        self._searcher.stop()

    def _hear(self, info: Info) -> None:
        if info.multipv == 1:
            self._last = info


def play_game(
    task: GameTask,
    engines: tuple[InProcessEngine, InProcessEngine],
    rule: Adjudication = NONE,
    *,
    broken_off: threading.Event | None = None,
    on_ply: WatchPly | None = None,
) -> GameResult:
    """One game; interrupted soon after `broken_off` is set. `on_ply` gets every ply with its number from 1."""
    began, started = time.monotonic(), time.time()
    variant = find_variant(task.variant)
    position = task.opening.position(variant)
    for engine, seed in zip(engines, task.seeds, strict=True):
        engine.new_game(task.variant, seed)
    scores = Scores(rule)
    plies: list[PlyLog] = []
    length = len(task.opening.moves)
    while (end := over(position, length, scores, rule)) is None:
        side = int(position.side)
        move, info = engines[side].move(position)
        if broken_off is not None and broken_off.is_set():
            end = End(None, Reason.INTERRUPTED)
            break
        position = position.play(move)
        length += 1
        plies.append(_ply(move, position, info))
        scores.add(side, plies[-1].cp, plies[-1].mate)
        if on_ply is not None:
            on_ply(task, length, plies[-1])
    return GameResult(
        task=task,
        names=(engines[0].name, engines[1].name),
        winner=end.winner,
        reason=end.reason.value,
        plies=tuple(plies),
        captured=position.taken,
        ids=(IDENTITY, IDENTITY),
        final=position.fen(),
        rules_hash=variant.hash,
        started=started,
        seconds=round(time.monotonic() - began, 6),
        extra={"fact": end.fact} if end.fact else {},
    )


def _ply(move: int, position: Position, info: Info | None) -> PlyLog:
    """A ply that led to `position`, without times, which are not measured."""
    captures = tuple(squares.name(sq) for sq in position.last_captures)
    ply = PlyLog(squares.move_name(move), captures)
    if info is None:
        return ply
    score = info.score
    return replace(
        ply, cp=score.cp, mate=score.mate, depth=info.depth, seldepth=info.seldepth, nodes=info.nodes
    )


class InProcessBoard:
    """Games between our own players, each in a thread; players stay from game to game.

    Kernels run in parallel, the Python code around them does not: for many short games use processes (`run.backend`).
    """

    def __init__(self, specs: Sequence[EngineSpec], rule: Adjudication) -> None:
        self._specs = specs
        self._rule = rule
        self._broken_off = threading.Event()
        self._engines: dict[tuple[int, int], InProcessEngine] = {}

    async def play(
        self, task: GameTask, tell: Callable[..., None] | None, aborted: asyncio.Future[Any]
    ) -> GameResult:
        """Play a game; see `slots.Board`."""
        loop = asyncio.get_running_loop()
        tell_ply: WatchPly | None = None
        if tell is not None:
            tell("start", task=task, fen=task.opening.position(find_variant(task.variant)).fen())

            def tell_ply(task: GameTask, number: int, ply: PlyLog) -> None:
                loop.call_soon_threadsafe(partial(tell, "ply", task=task, number=number, ply=ply))

        playing = asyncio.ensure_future(asyncio.to_thread(self._play, task, tell_ply))
        try:
            await asyncio.wait({playing, aborted}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not playing.done():
                self._broken_off.set()
                for engine in list(self._engines.values()):
                    engine.stop()
                await asyncio.wait({playing})
        return playing.result()

    def _play(self, task: GameTask, on_ply: WatchPly | None) -> GameResult:
        one, two = task.engines
        # A player that meets himself needs two engines.
        keys = ((one, 0), (two, int(one == two)))
        for key in keys:
            if key not in self._engines:
                self._engines[key] = InProcessEngine(self._specs[key[0]])
        engines = (self._engines[keys[0]], self._engines[keys[1]])
        return play_game(task, engines, self._rule, broken_off=self._broken_off, on_ply=on_ply)

    async def close(self) -> None:
        """Nothing to end."""
