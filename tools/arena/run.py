"""A run before its first game, made from a configuration or found again in its folder, and how its games are played."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shlex
import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from hnefi.engine.wording import shorten

from . import fingerprint, openings, option_reader, resolve, schedule
from .adjudication import adjudication
from .logs import LOG, TRAFFIC, Thinking, Traffic, joined
from .options import Config, ConfigError, Document, parse_cores
from .progress import Progress
from .schedule import Schedule
from .store import (
    CONFIG,
    FINGERPRINT,
    OPENINGS,
    Row,
    StorageFailed,
    Store,
    StoreError,
    differences,
    within,
    write_file,
)
from .values import EngineSpec, GameResult, GameTask, Opening, Watch, find_variant


@dataclass(frozen=True, slots=True)
class Run:
    """Everything that is known before the first game. `ids` are what the engines call themselves."""

    config: Config
    specs: tuple[EngineSpec, ...]
    schedule: Schedule
    openings: Mapping[str, Sequence[Opening]]
    ids: tuple[str, ...] = ()

    def progress(self, rows: Mapping[tuple[int, int], Row] | None = None) -> Progress:
        """The progress of this run as far as its stored games go; without `rows`, before its first game."""
        progress = Progress(self.schedule, self.config.names, self.config.test)
        progress.walk(rows or {})
        return progress


# Preparing


def prepare(
    config: Config, lists: Mapping[str, Sequence[Opening]] | None = None
) -> tuple[Run, dict[str, str]]:
    """A new run with its fingerprint, from the openings in `lists` or those that the configuration asks for; every
    engine was started once. ConfigError if it cannot be played."""
    scale = host_scale(config)
    config, ids = check_engines(config, resolve.specs(config, scale))
    specs = resolve.specs(config, scale)
    plan = schedule.make(config)
    expect_cores(config, specs)
    expect_lines(config, specs)
    adjudication(config)
    if lists is None:
        lists = openings.prepare(config, plan.openings, specs)
    return Run(config, specs, plan, lists, ids), fingerprint.of(config, specs, ids, lists)


def check_engines(config: Config, specs: Sequence[EngineSpec]) -> tuple[Config, tuple[str, ...]]:
    """Start one process of each distinct engine; the configuration with names, and what the engines call themselves.

    ConfigError with all that is wrong with them.
    """
    from .engine_slot import preflight

    if config["run.inside"]:
        from . import in_process

        if wrong := in_process.problems(specs):
            raise ConfigError("\n".join(wrong))
        ids = (in_process.IDENTITY,) * len(specs)
        return resolve.named(config, ids), ids
    checked = asyncio.run(preflight(specs, schedule.variants(config)))
    problems = [problem for one in checked for problem in one.problems]
    if problems:
        raise ConfigError("\n".join(dict.fromkeys(problems)))
    ids = tuple(one.name for one in checked)
    return resolve.named(config, ids), ids


def expect_cores(config: Config, specs: Sequence[EngineSpec]) -> None:
    """ConfigError if clocks run and there are more threads than cores."""
    from ..common.workers import usable_cores
    from .slots import threads_of

    concurrency, places = slots_of(config, specs)
    timed = any(limits.timed for spec in specs for limits in spec.limits)
    threads = concurrency * threads_of(specs)
    if timed and not config["run.oversubscribe"] and threads > len(usable_cores()) and not places:
        raise ConfigError(
            f"run.concurrency {config['run.concurrency']}: {threads} engine threads on {len(usable_cores())} usable"
            " cores with clocks: expected fewer, or --oversubscribe"
        )


def expect_lines(config: Config, specs: Sequence[EngineSpec]) -> None:
    """ConfigError if lines are to be kept that other processes see."""
    if config["output.traffic"] and elsewhere(config, specs):
        from .slots import LIMIT

        raise ConfigError(
            f"output.traffic: expected no backend and at most {LIMIT} slots: lines stay where they are read"
        )


def expect_new(config: Config) -> None:
    """ConfigError if the folder of a new run exists: better said before engines are started."""
    if config["run.out"] and Path(config["run.out"]).exists():
        raise ConfigError(f"run.out {shorten(config['run.out'])}: exists: expected a new folder")


def create(run: Run, items: Mapping[str, str], folder: Path | None = None) -> Store:
    """A new run in `folder`, or in the one that its configuration names; StoreError if it cannot be made."""
    folder = folder or Path(run.config["run.out"] or time.strftime("arena-%Y%m%d-%H%M%S"))
    folder = folder.absolute()
    files = {
        CONFIG: option_reader.to_toml(kept(run.config, folder)),
        FINGERPRINT: _json(items),
        OPENINGS: openings.to_lines({name: tuple(found) for name, found in run.openings.items()}),
    }
    return Store.create(folder, files)


def kept(config: Config, folder: Path) -> Config:
    """The configuration as it is stored in `folder`: without what concerns one start only, and with what lies in the
    folder as it is seen from there."""
    tables = {group: dict(table) for group, table in config.tables.items()}
    tables["control"] |= {"dry_run": False, "force": False}
    tables["run"]["out"] = ""
    for key in ("records", "jsonl"):
        if tables["output"][key]:
            tables["output"][key] = within(folder, Path(tables["output"][key]))
    return replace(config, tables=tables)


def _json(items: Mapping[str, str]) -> str:
    import json

    return json.dumps(items, indent=1) + "\n"


# Going on


def load_config(folder: Path, flags: Document | None = None) -> Config:
    """The configuration of a run's folder, with flags laid over it."""
    return resolve.resolve(option_reader.read_file(folder / CONFIG), flags or {})


def load_openings(store: Store) -> dict[str, tuple[Opening, ...]]:
    """The openings that a run keeps; StoreError if they cannot be read."""
    try:
        found = openings.from_lines(store.text(OPENINGS))
        for name in found:
            find_variant(name)
    except ValueError as error:
        raise StoreError(f"{store.folder / OPENINGS}: {error}: expected lines as they were written") from None
    return found


def load_fingerprint(store: Store) -> dict[str, str]:
    """The fingerprint that a run keeps; StoreError if it cannot be read."""
    import json

    try:
        return {str(key): str(value) for key, value in json.loads(store.text(FINGERPRINT)).items()}
    except (ValueError, AttributeError) as error:
        raise StoreError(f"{store.folder / FINGERPRINT}: {error}: expected it as it was written") from None


def resumed(store: Store, flags: Document | None = None, *, force: bool | None = None) -> Run:
    """A stored run that can be continued (see `renew`), or only be reported if it is complete. `flags` are laid over
    its configuration; `force` is that of the configuration if None."""
    run = reopen(store, load_config(store.folder, flags))
    if run.progress(store.rows).complete:
        return run
    return renew(store, run, force=run.config["control.force"] if force is None else force)


def reopen(store: Store, config: Config) -> Run:
    """A stored run as far as it can be known without starting an engine: enough to count and to report."""
    specs = resolve.specs(config)
    return Run(config, specs, schedule.make(config), load_openings(store))


def renew(store: Store, run: Run, *, force: bool = False) -> Run:
    """A stored run that can be continued: engines were started once, the fingerprint is unchanged, and there are
    openings enough. StoreError names every difference, unless it is forced: then the log records it."""
    scale = host_scale(run.config)
    config, ids = check_engines(run.config, resolve.specs(run.config, scale))
    specs = resolve.specs(config, scale)
    expect_lines(config, specs)
    adjudication(config)
    old = load_fingerprint(store)
    unlike = differences(old, fingerprint.of(config, specs, ids, run.openings))
    lists = run.openings
    if any(len(lists.get(name, ())) < run.schedule.openings for name in run.schedule.variants):
        lists = openings.prepare(config, run.schedule.openings, specs)
        unlike += [
            f"openings of {name}: begin otherwise than the {len(found)} that were played"
            for name, found in run.openings.items()
            if tuple(lists.get(name, ())[: len(found)]) != tuple(found)
        ]
    if unlike and not force:
        listed = "\n".join(f"  {item}" for item in unlike)
        raise StoreError(
            f"{store.folder}: this is not the same run any more (--force continues anyway):\n{listed}"
        )
    for item in unlike:
        store.note("forced", item)
    try:
        write_file(store.folder / OPENINGS, openings.to_lines({name: tuple(lists[name]) for name in lists}))
        write_file(store.folder / FINGERPRINT, _json(fingerprint.of(config, specs, ids, lists)))
        write_file(store.folder / CONFIG, option_reader.to_toml(kept(config, store.folder)))
    except OSError as error:
        raise StorageFailed(f"{store.folder}: {error.strerror or error}") from None
    return Run(config, specs, run.schedule, lists, ids)


def resume_command(store: Store) -> str:
    """The command that continues an interrupted run."""
    return f"hnefi arena resume {shlex.quote(str(store.folder))}"


def host_scale(config: Config) -> float:
    """The factor for all times on this machine."""
    reference = float(config["run.scale_tc"])
    if not reference:
        return 1.0
    from hnefi.engine.bench import bench

    bench(2)
    nodes, seconds, _ = bench(4)
    return reference * seconds / nodes


def slots_of(config: Config, specs: Sequence[EngineSpec]) -> tuple[int, list[tuple[int, ...]]]:
    """How many games run at a time, and the cores of each slot (none: any). ConfigError if there are too few."""
    from ..common.workers import usable_cores
    from .slots import places, slots_for, threads_of

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
    from .cross_check import compare
    from .slots import play

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
