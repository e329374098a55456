"""A run before its first game, made from a configuration or found again in its folder.

Its fingerprint is everything that determines its games, item by item: a resumed run must agree in all of it. How many
pairs there are, how many games run at a time and where, and what is written besides, are no part of it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shlex
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from hnefi.engine.regular import open_regular
from hnefi.engine.wording import shorten

from . import openings, option_reader, resolve, schedule
from .adjudication import adjudication
from .options import Config, ConfigError, Document, EnginesFailed
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
from .values import EngineSpec, Opening, find_variant


@dataclass(frozen=True, slots=True)
class Run:
    """Everything known before the first game. `ids` are the engines' own names."""

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
    return Run(config, specs, plan, lists, ids), fingerprint(config, specs, ids, lists)


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
        kind = EnginesFailed if any(one.failed for one in checked) else ConfigError
        raise kind("\n".join(dict.fromkeys(problems)))
    ids = tuple(one.name for one in checked)
    return resolve.named(config, ids), ids


def expect_cores(config: Config, specs: Sequence[EngineSpec]) -> None:
    """ConfigError if clocks run and there are more threads than cores."""
    from ..common.workers import usable_cores
    from .slots import slots_of, threads_of

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
    from .slots import LIMIT, elsewhere

    if config["output.traffic"] and elsewhere(config, specs):
        raise ConfigError(
            f"output.traffic: expected no backend and at most {LIMIT} slots: lines stay where they are read"
        )


def obstacles(config: Config) -> Iterator[str]:
    """What keeps a new run from being written, found out before any engine starts."""
    try:
        yield from _obstacles(config)
    except OSError as error:
        yield f"{shorten(str(error.filename))}: {error.strerror}: expected a place that can be written"


def _obstacles(config: Config) -> Iterator[str]:
    folder = _folder(config)
    if folder.exists():
        yield f"run.out {shorten(str(folder))}: exists: expected a new folder"
        return
    above = next(path for path in folder.parents if path.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        yield f"run.out {shorten(str(folder))}: {above} cannot be written: expected a folder that can"
    for name in ("records", "jsonl"):
        path = config[f"output.{name}"]
        if path and Path(path).exists() and Path(path).stat().st_size:
            yield f"output.{name} {shorten(path)}: exists: expected a new file; move it away, or choose another name"


def expect_new(config: Config) -> None:
    """ConfigError if a new run cannot be written."""
    for obstacle in obstacles(config):
        raise ConfigError(obstacle)


def _folder(config: Config) -> Path:
    return Path(config["run.out"] or time.strftime("arena-%Y%m%d-%H%M%S")).absolute()


def create(run: Run, items: Mapping[str, str], folder: Path | None = None) -> Store:
    """A new run in `folder`, or in the one that its configuration names; StoreError if it cannot be made."""
    folder = (folder or _folder(run.config)).absolute()
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
    return json.dumps(items, indent=1) + "\n"


# Continuing


def load_config(folder: Path, flags: Document | None = None) -> Config:
    """The configuration in a run's folder, with flags applied."""
    return resolve.resolve(option_reader.read_file(folder / CONFIG), flags or {})


def load_openings(store: Store) -> dict[str, tuple[Opening, ...]]:
    """The stored openings of a run; StoreError if they cannot be read."""
    try:
        found = openings.from_lines(store.text(OPENINGS))
        for name in found:
            find_variant(name)
    except ValueError as error:
        raise StoreError(f"{store.folder / OPENINGS}: {error}: expected lines as they were written") from None
    return found


def load_fingerprint(store: Store) -> dict[str, str]:
    """The stored fingerprint of a run; StoreError if it cannot be read."""
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
    """A stored run, read without starting an engine: enough to count and report."""
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
    unlike = differences(old, fingerprint(config, specs, ids, run.openings))
    lists = run.openings
    if any(len(lists.get(name, ())) < run.schedule.openings for name in run.schedule.variants):
        lists = openings.prepare(config, run.schedule.openings, specs)
        unlike += [
            f"openings of {name}: differ from the {len(found)} that were played"
            for name, found in run.openings.items()
            if tuple(lists.get(name, ())[: len(found)]) != tuple(found)
        ]
    if unlike and not force:
        listed = "\n".join(f"  {item}" for item in unlike)
        raise StoreError(f"{store.folder}: the run has changed (--force continues anyway):\n{listed}")
    for item in unlike:
        store.note("forced", item)
    try:
        write_file(store.folder / OPENINGS, openings.to_lines({name: tuple(lists[name]) for name in lists}))
        write_file(store.folder / FINGERPRINT, _json(fingerprint(config, specs, ids, lists)))
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


# The fingerprint


RUN_KEYS = ("format", "challengers", "others", "variants", "rules", "swap", "seed", "wait")
OPENINGS_KEYS = ("source", "cut", "order", "first", "plies", "seed", "max_eval", "eval_by", "repeat")


def fingerprint(
    config: Config,
    specs: Sequence[EngineSpec],
    ids: Sequence[str],
    lists: Mapping[str, Sequence[Opening]],
) -> dict[str, str]:
    """The fingerprint: items and their values as text; `ids` are what the engines call themselves."""
    items: dict[str, object] = {
        "schedule version": schedule.VERSION,
        "openings generator": openings.generator_version(config),
    }
    items |= {f"run.{key}": config.tables["run"][key] for key in RUN_KEYS}
    items |= {f"openings.{key}": config.tables["openings"][key] for key in OPENINGS_KEYS}
    items |= {f"adjudicate.{key}": value for key, value in config.tables["adjudicate"].items()}
    if config["adjudicate.oracle"]:
        # What it says counts, not where it lies.
        items["adjudicate.oracle"] = _digest(Path(config["adjudicate.oracle"]))
    if config["openings.source"] == "random" and config["openings.eval_by"] != "default":
        for path in _player_files(config["openings.eval_by"]):
            items[f"openings.eval_by file {path}"] = _digest(path)
    items |= {f"sprt.{key}": value for key, value in config.tables["sprt"].items() if key != "max_pairs"}
    for name, found in lists.items():
        items[f"rules of {name[:60]}"] = find_variant(name).hash
        items[f"openings of {name[:60]}"] = openings.list_hash(found)
    for number, (engine, spec, called) in enumerate(zip(config.engines, specs, ids, strict=True), 1):
        items |= {f"engine {number} {key}": value for key, value in engine.items()}
        items[f"engine {number} id"] = called
        items |= {f"engine {number} file {name}": digest for name, digest in engine_files(spec).items()}
    return {
        key: value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        for key, value in items.items()
        if value not in (None, "", {}, [])
    }


def engine_files(spec: EngineSpec) -> dict[str, str]:
    """SHA-256 of every file that makes an engine what it is, by name."""
    found = {str(path): _digest(path) for path in _paths(spec)}
    if spec.player:
        found["hnefi"] = _own_source()
    return found


def oracle_file(config: Config) -> dict[str, str]:
    """SHA-256 of the file of solved positions, by its name, where there is one."""
    path = config["adjudicate.oracle"]
    return {path: _digest(Path(path))} if path else {}


def changed_files(stored: Mapping[str, str]) -> list[str]:
    """Which of an engine's files (as `engine_files` gave them) are missing here or different."""
    return [
        name
        for name, digest in stored.items()
        if (_own_source() if name == "hnefi" else _digest(Path(name))) != digest
    ]


def _paths(spec: EngineSpec) -> Iterator[Path]:
    program = shutil.which(spec.command[0]) or spec.command[0]
    folder = Path(spec.cwd or ".")
    if spec.player:
        yield from _player_files(spec.player)
        return
    yield Path(program)
    for word in spec.command[1:]:
        path = folder / word
        # A word may be anything: a text too long for a name, or one with a NUL in it.
        try:
            if path.is_file():
                yield path.resolve()
        except (OSError, ValueError):
            continue


def _player_files(name: str) -> Iterator[Path]:
    from hnefi import players

    player = players.load(name)
    yield Path(name) if name.endswith(players.SUFFIX) else players.FOLDER / f"{name}{players.SUFFIX}"
    if player.evaluator.endswith(".safetensors"):
        yield Path(player.evaluator)


def _digest(path: Path) -> str:
    try:
        with open_regular(path) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
    except OSError:
        return "unreadable"


@lru_cache(maxsize=1)
def _own_source() -> str:
    """SHA-256 over what our own engine consists of."""
    from hnefi import players

    house = Path(players.__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for room in ("engine", "players", "protocol"):
        for path in sorted((house / room).rglob("*")):
            if path.suffix in (".py", ".toml") and path.is_file():
                digest.update(str(path.relative_to(house)).encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()
