"""How games are played as a configuration says: how many at a time, on which cores, by processes or in this one."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hnefi.engine.wording import shorten

from . import option_types, schedule
from .log import LOG
from .options import Config, ConfigError
from .traffic import FOLDER as TRAFFIC
from .traffic import Thinking, Traffic, joined
from .values import EngineSpec, GameResult, GameTask

if TYPE_CHECKING:
    from .run import Run

Watch = Callable[[str, dict[str, Any]], None]
"""Hears events of games: their kind and what they say."""


def host_scale(config: Config) -> float:
    """By what times are multiplied on this machine."""
    reference = float(config["run.scale_tc"])
    if not reference:
        return 1.0
    from hnefi.engine.bench import bench

    bench(2)
    nodes, seconds, _ = bench(4)
    return reference * seconds / nodes


def slots_of(config: Config, specs: Sequence[EngineSpec]) -> tuple[int, list[tuple[int, ...]]]:
    """How many games run at a time, and the cores of each slot (none: any). ConfigError if there are too few."""
    from .slots import places, slots_for, threads_of, usable_cores

    cores = usable_cores()
    affinity = config["run.affinity"]
    if affinity not in ("auto", "off"):
        cores = option_types.parse_cores(affinity)
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
    from .slots import LIMIT

    return bool(config["run.backend"]) or slots_of(config, specs)[0] > LIMIT


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
    """`slots.play` in the manner of a configuration."""
    if config["run.inside"]:
        from . import in_process

        return in_process.play(
            tasks,
            specs,
            concurrency=concurrency,
            adjudication=adjudication(config),
            on_event=on_event,
            abort=abort,
        )
    from .cross_check import compare
    from .slots import play

    wanted = config["control.cross_check"]
    every = 0 if wanted in (None, "final") else int(wanted)
    keep = config["output.keep_lines"]
    games = play(
        tasks,
        specs,
        concurrency=concurrency,
        cores=cores,
        adjudication=adjudication(config),
        wait=config["run.wait"],
        keep=re.compile(keep) if keep else None,
        on_event=on_event,
        on_traffic=on_traffic,
        after=partial(compare, every=every) if wanted is not None else None,
        abort=abort,
    )
    assert isinstance(games, AsyncGenerator)
    return games


async def play_in_slots(
    tasks: Iterable[GameTask],
    run: Run,
    *,
    abort: asyncio.Event,
    on_event: Watch | None = None,
    folder: Path | None = None,
) -> AsyncGenerator[GameResult, None]:
    """Play in this process, on this machine. With a run's `folder`, lines are kept there if the run wants that."""
    concurrency, cores = slots_of(run.config, run.specs)
    thinking = Thinking(on_event) if on_event is not None else None
    traffic = None
    if folder is not None and run.config["output.traffic"]:
        traffic = Traffic(folder / TRAFFIC, run.config.names, LOG.warning)
    told = [watcher for watcher in (thinking, traffic) if watcher is not None]
    games = play_with(
        tasks,
        run.config,
        run.specs,
        concurrency,
        cores,
        abort=abort,
        on_event=joined(on_event, *(watcher.on_event for watcher in told)),
        on_traffic=joined(*(watcher.on_traffic for watcher in told)),
    )
    try:
        async with contextlib.aclosing(games):
            async for result in games:
                yield result
    finally:
        if traffic is not None:
            await asyncio.to_thread(traffic.close)


def adjudication(config: Config) -> Any:
    """When the arena ends games by itself, as the referee takes it; ConfigError for an oracle that cannot be used."""
    from . import oracle
    from .referee import Adjudication

    table = config.tables["adjudicate"]
    resign, draw = table["resign"], table["draw"]
    return Adjudication(
        resign_cp=resign.get("cp", 0),
        resign_moves=resign.get("moves", 0),
        draw_cp=draw.get("cp", 0),
        draw_moves=draw.get("moves", 0),
        draw_after=draw.get("after", 0),
        draw_no_capture=draw.get("no_capture", 0),
        mates=table["mates"],
        max_plies=table["max_plies"],
        oracle=oracle.load(table["oracle"], schedule.variants(config)) if table["oracle"] else None,
    )
