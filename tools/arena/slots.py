"""Games in slots: each plays one game at a time with its two engines and its cores, both games of a pair in a row.

    async for result in play(tasks, specs, concurrency=2, cores=places(usable_cores(), 2)):
        ...

A result is handed out as soon as it is known; processes are ended in the background.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from hnefi.engine.sides import Reason
from hnefi.engine.wording import shorten

from .adjudication import NONE, Adjudication, adjudication
from .engine_slot import EngineSlots
from .options import Config, ConfigError, parse_cores
from .referee import Game, WatchTraffic
from .values import EngineSpec, GameResult, GameTask, PlyLog, Watch

LIMIT = 16
"""With more slots in one process, its clocks would be late."""

After = Callable[[Game, GameResult], Awaitable[GameResult]]
"""Examines a game that ended by itself while its engines are there; returns its result, perhaps with advisories."""


class Board(Protocol):
    """Plays games one after the other: between engine processes, or inside this process (`in_process`)."""

    async def play(
        self, task: GameTask, tell: Callable[..., None] | None, aborted: asyncio.Future[Any]
    ) -> GameResult:
        """Play a game; `tell` hears `start` and `ply` (see `Watch`). Soon after `aborted` the game is interrupted."""

    async def close(self) -> None:
        """No game follows."""


async def play(
    tasks: Iterable[GameTask],
    specs: Sequence[EngineSpec],
    *,
    concurrency: int = 1,
    inside: bool = False,
    cores: Sequence[Collection[int]] = (),
    adjudication: Adjudication = NONE,
    wait: int = 0,
    keep: re.Pattern[str] | None = None,
    on_event: Watch | None = None,
    on_traffic: WatchTraffic | None = None,
    after: After | None = None,
    abort: asyncio.Event | None = None,
) -> AsyncGenerator[GameResult, None]:
    """Play all `tasks`, read as slots become free; results as they come. Afterwards no process is left.

    `inside`: our own players play in threads of this process. Otherwise `cores` are those of each slot (empty: any),
    and `keep` chooses the `info string` lines that are stored with their ply. `wait` ms pass between two games of a
    slot. After `abort` no game begins, and those that run are handed out as interrupted. To leave the loop early,
    close the generator: running games have no result then.
    """
    if not 1 <= concurrency <= LIMIT:
        raise ValueError(f"{concurrency} slots: expected 1 to {LIMIT}")
    board: Callable[[int], Board]
    if inside:
        from .in_process import InProcessBoard

        def board(_: int) -> Board:
            return InProcessBoard(specs, adjudication)
    else:

        def board(number: int) -> Board:
            engines = EngineSlots(specs, cores[number] if cores else ())
            return _ProcessBoard(engines, adjudication, keep, on_traffic, after)

    aborted = asyncio.ensure_future((abort or asyncio.Event()).wait())
    pairs = in_pairs(tasks)
    slots = [_Slot(number, board(number), pairs, wait, on_event, aborted) for number in range(concurrency)]
    running = {asyncio.ensure_future(slot.next_game()): slot for slot in slots}
    try:
        while running:
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for game in done:
                slot = running.pop(game)
                result = game.result()
                if result is not None:
                    running[asyncio.ensure_future(slot.next_game())] = slot
                    yield result
    finally:
        for waiting in (aborted, *running):
            waiting.cancel()
        await asyncio.gather(aborted, *running, return_exceptions=True)
        await asyncio.gather(*(slot.board.close() for slot in slots))


def play_with(
    tasks: Iterable[GameTask],
    config: Config,
    specs: Sequence[EngineSpec],
    concurrency: int,
    cores: Sequence[tuple[int, ...]],
    *,
    abort: asyncio.Event,
    on_event: Watch | None = None,
    on_traffic: Any = None,
) -> AsyncGenerator[GameResult, None]:
    """`play` with the settings of a configuration."""
    from .cross_check import compare

    wanted = config["control.cross_check"]
    every = 0 if wanted in (None, "final") else int(wanted)
    keep = config["output.keep_lines"]
    return play(
        tasks,
        specs,
        concurrency=concurrency,
        inside=config["run.inside"],
        cores=cores,
        adjudication=adjudication(config),
        wait=config["run.wait"],
        keep=re.compile(keep) if keep else None,
        on_event=on_event,
        on_traffic=on_traffic,
        after=partial(compare, every=every) if wanted is not None else None,
        abort=abort,
    )


def in_pairs(tasks: Iterable[GameTask]) -> Iterator[list[GameTask]]:
    """The tasks in their order, those of one pair together; a whole pair is handed out without a look at the next."""
    pair: list[GameTask] = []
    for task in tasks:
        if pair and pair[0].pair != task.pair:
            yield pair
            pair = []
        pair.append(task)
        if task.game == 2:
            yield pair
            pair = []
    if pair:
        yield pair


@dataclass(slots=True, eq=False)
class _Slot:
    """Plays the games of one pair after another on its board, one at a time."""

    number: int
    board: Board
    pairs: Iterator[list[GameTask]]
    wait: int
    on_event: Watch | None
    aborted: asyncio.Future[Any]
    open: list[GameTask] | None = None

    async def next_game(self) -> GameResult | None:
        """The next game for this slot, if any."""
        if self.open is not None and self.wait:
            await asyncio.wait({self.aborted}, timeout=self.wait / 1000)
        if not self.aborted.done():
            self.open = self.open or next(self.pairs, [])
        if self.aborted.done() or not self.open:
            await self.board.close()
            return None
        tell = None if self.on_event is None else partial(self._tell, self.on_event)
        result = await self.board.play(self.open.pop(0), tell, self.aborted)
        if tell is not None:
            tell("end", result=result)
        return result

    def _tell(self, on_event: Watch, event: str, **facts: object) -> None:
        on_event(event, {"slot": self.number, **facts})


@dataclass(frozen=True, slots=True)
class _ProcessBoard:
    """Games between engine processes; the fields are the arguments of `play` of the same names."""

    engines: EngineSlots
    adjudication: Adjudication
    keep: re.Pattern[str] | None
    on_traffic: WatchTraffic | None
    after: After | None

    async def play(
        self, task: GameTask, tell: Callable[..., None] | None, aborted: asyncio.Future[Any]
    ) -> GameResult:
        def tell_ply(game: Game, ply: PlyLog) -> None:
            assert tell is not None
            tell("ply", task=task, number=game.length, ply=ply)

        game = Game(
            task,
            self.engines.take(task.engines),
            self.adjudication,
            keep=self.keep,
            on_ply=None if tell is None else tell_ply,
            on_traffic=self.on_traffic,
        )
        if tell is not None:
            tell("start", task=task, fen=game.position.fen())
        playing = asyncio.ensure_future(game.play())
        try:
            await asyncio.wait({playing, aborted}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not playing.done():
                playing.cancel()
                with suppress(asyncio.CancelledError):
                    await playing
        result = game.interrupted() if playing.cancelled() else playing.result()
        if self.after is not None and result.counts:
            result = await self.after(game, result)
        # A process that misbehaved or was cut short plays no other game.
        if result.fault is not None:
            self.engines.retire(game.slots[result.fault.side], faulted=True)
        elif result.reason == Reason.INTERRUPTED:
            for slot in game.slots:
                self.engines.retire(slot)
        return result

    async def close(self) -> None:
        await self.engines.close()


# Cores


def slots_for(concurrency: int, cores: int, threads: int = 1) -> int:
    """How many slots `concurrency` means on so many cores, with engines of so many threads: 0 is as many as fit,
    -k leaves k cores free; at least one, at most `LIMIT`."""
    if concurrency > 0:
        return concurrency
    return min(LIMIT, max(1, (cores + concurrency) // threads))


def places(cores: Sequence[int], concurrency: int, threads: int = 1) -> list[tuple[int, ...]]:
    """The cores of each slot, `threads` for each; ValueError if there are too few."""
    needed = concurrency * threads
    if needed > len(cores):
        each = f" of {threads} threads" if threads > 1 else ""
        raise ValueError(
            f"{concurrency} slots{each}: expected at most {len(cores)} threads, one for each usable core"
        )
    return [tuple(cores[index : index + threads]) for index in range(0, needed, threads)]


def threads_of(specs: Iterable[EngineSpec]) -> int:
    """The largest `Threads` of any engine."""
    given = [value for spec in specs for name, value in spec.options if name.casefold() == "threads"]
    return max((int(value) for value in given if value.isascii() and value.isdigit()), default=1) or 1


def slots_of(config: Config, specs: Sequence[EngineSpec]) -> tuple[int, list[tuple[int, ...]]]:
    """How many games run at a time, and the cores of each slot (none: any). ConfigError if there are too few."""
    from ..common.workers import usable_cores

    cores = usable_cores()
    affinity = config["run.affinity"]
    if affinity not in ("auto", "off"):
        cores = parse_cores(affinity)
    threads = threads_of(specs)
    concurrency = slots_for(config["run.concurrency"], len(cores), threads)
    if affinity == "off":
        return concurrency, []
    try:
        return concurrency, places(cores, concurrency, threads)
    except ValueError as error:
        if affinity != "auto":
            raise ConfigError(f"run.affinity {shorten(affinity)}: {error}") from None
        return concurrency, []


def elsewhere(config: Config, specs: Sequence[EngineSpec]) -> bool:
    """Whether other processes play the games."""
    return bool(config["run.backend"]) or slots_of(config, specs)[0] > LIMIT
