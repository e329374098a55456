"""What makes a run the run it is: everything that its games follow from, item by item.

A resumed run must agree in all of it. How many pairs there are, how many games run at a time and where, and what is
written besides, are no part of it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from hnefi.engine.regular import open_regular

from . import openings, schedule
from .options import Config
from .values import EngineSpec, Opening, find_variant

RUN = ("format", "challengers", "others", "variants", "rules", "swap", "seed", "wait")
OPENINGS = ("source", "cut", "order", "first", "plies", "seed", "max_eval", "eval_by", "repeat")


def of(
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
    items |= {f"run.{key}": config.tables["run"][key] for key in RUN}
    items |= {f"openings.{key}": config.tables["openings"][key] for key in OPENINGS}
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
        items |= {f"engine {number} file {name}": digest for name, digest in files(spec).items()}
    return {
        key: value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        for key, value in items.items()
        if value not in (None, "", {}, [])
    }


def files(spec: EngineSpec) -> dict[str, str]:
    """SHA-256 of every file that makes an engine what it is, by name."""
    found = {str(path): _digest(path) for path in _engine_files(spec)}
    if spec.player:
        found["hnefi"] = _own_source()
    return found


def oracle_file(config: Config) -> dict[str, str]:
    """SHA-256 of the file of solved positions, by its name, where there is one."""
    path = config["adjudicate.oracle"]
    return {path: _digest(Path(path))} if path else {}


def changed(stored: Mapping[str, str]) -> list[str]:
    """Which of an engine's files (as `files` gave them) are missing here or different."""
    return [
        name
        for name, digest in stored.items()
        if (_own_source() if name == "hnefi" else _digest(Path(name))) != digest
    ]


def _engine_files(spec: EngineSpec) -> Iterator[Path]:
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
