"""How games are played as a configuration says: how many at a time, on which cores, by processes or in this one."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from functools import partial
from typing import Any

from hnefi.engine.wording import shorten

from . import option_types, schedule
from .options import Config, ConfigError
from .values import EngineSpec, GameResult, GameTask

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
