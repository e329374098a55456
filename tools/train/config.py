"""What the files of a training's folder say, and whether it can be: its configuration, its log, and its rounds."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hnefi.engine import durable, evaluators
from hnefi.engine.regular import open_regular
from hnefi.engine.toml_text import read_toml
from hnefi.engine.wording import shorten

from . import shards
from .learner import RATE

if TYPE_CHECKING:
    from hnefi.engine.games.tafl.variant import Variant

CONFIG, LOG, BEST, OPENINGS = "config.toml", "log.jsonl", "best.safetensors", "openings.txt"
EPOCHS, CHECKPOINT, NET, GATE = "epochs.jsonl", "checkpoint.safetensors", "net.safetensors", "gate"
FORMAT = 2

DEFAULTS: Mapping[str, Any] = {
    "network": "nnue:64",
    "init": "",
    "openings_file": "",
    "rounds": 3,
    "games": 5000,
    "nodes": [500, 1000, 2000],
    "nodes_a": [],
    "nodes_d": [],
    "strays": 1,
    "teacher": "default",
    "tables": "",
    "also": [],
    "blend": 0.7,
    "epochs": 30,
    "rate": RATE,
    "window": 3,
    "gate_pairs": 400,
    "gate_nodes": 2000,
    "elo0": 0.0,
    "elo1": 20.0,
    "seed": 1,
}
"""What a training follows from, besides the variant."""
BOUNDS: Mapping[str, tuple[Any, Any]] = {
    # The names of files and folders are in order up to these.
    "rounds": (1, 999),
    "games": (1, 999_999),
    "nodes": (1, 100_000_000),
    "nodes_a": (1, 100_000_000),
    "nodes_d": (1, 100_000_000),
    "strays": (0, 100),
    "blend": (0, 1),
    "epochs": (1, 9999),
    "rate": (1e-6, 1),
    "window": (1, 999),
    # Their openings are made before the first game, in half a minute and some hundred megabytes at most.
    "gate_pairs": (1, 100_000),
    "gate_nodes": (1, 100_000_000),
    "elo0": (-100, 100),
    "elo1": (-100, 200),
    "seed": (1, 999_999_999),
}
"""The least and the largest value of each number."""
DIGESTS: Mapping[str, str] = {name: f"{name}_sha256" for name in ("init", "teacher", "tables")}
"""Options that may name files, and where the configuration keeps the SHA-256 of those."""
NEWER = ("init", "openings_file", "rate", "nodes_a", "nodes_d")
"""Options that trainings begun with hnefi 0.2.0 do not name."""
GROWS = ("rounds",)
"""Options that may be larger when a training is continued."""


class TrainError(Exception):
    """A training that cannot be begun or continued: one sentence."""


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Only one process at a time trains in a folder, where the system has such locks; TrainError for a second one. The
    folder is made, and goes again if nothing comes into it."""
    new = not folder.exists()
    try:
        durable.make_folder(folder)
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise TrainError(f"{folder}: {error.strerror or error}: expected a folder to write to") from None
    try:
        with suppress(ImportError):
            import fcntl

            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise TrainError(f"{folder}: another process trains in it") from None
        yield
    finally:
        os.close(descriptor)
        if new:
            with suppress(OSError):
                folder.rmdir()


# The configuration


def config_text(config: Mapping[str, Any]) -> str:
    """A configuration as TOML."""
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in config.items())


def read_config(folder: Path) -> dict[str, Any]:
    """The configuration in a folder; TrainError if there is none that can be read."""
    path = folder / CONFIG
    try:
        config = read_toml(path.read_text("utf-8"))
    except OSError as error:
        raise TrainError(f"{path}: {error.strerror}: expected the folder of a training") from None
    except ValueError as error:
        raise TrainError(f"{path}: {error}: expected the configuration of a training") from None
    if "algorithm" in config:
        raise TrainError(
            f"{path}: algorithm: {shorten(config['algorithm'])}: expected the folder of a training; "
            "`hnefi evolve resume` continues this one"
        )
    if "format" not in config:
        raise TrainError(
            f"{path}: no format: expected the folder of a training, with what `hnefi train` writes"
        )
    if config["format"] != FORMAT:
        raise TrainError(f"{path}: format {shorten(config['format'])}: expected {FORMAT}")
    for name in NEWER:
        config.setdefault(name, DEFAULTS[name])
    for name in DIGESTS.values():
        config.setdefault(name, "")
    kinds = {"format": int, "variant": str, "rules_hash": str}
    kinds |= {name: type(value) for name, value in DEFAULTS.items()} | dict.fromkeys(DIGESTS.values(), str)
    for name, kind in kinds.items():
        if name not in config:
            raise TrainError(f"{path}: {name}: missing: expected the configuration of a training")
        if type(config[name]) is not kind:
            raise TrainError(f"{path}: {name} = {shorten(config[name])}: expected {kind.__name__}")
        if reason := _misfit(name, config[name]):
            raise TrainError(f"{path}: {name} = {shorten(config[name])}: expected {reason}")
    if unknown := config.keys() - kinds:
        raise TrainError(f"{path}: {shorten(min(unknown))}: expected only options of `hnefi train`")
    return config


def _misfit(name: str, value: Any) -> str:
    """What was expected of an option, if its value is out of its bounds."""
    if name == "also":
        return "" if all(type(item) is str for item in value) else "names of folders"
    if name not in BOUNDS:
        return ""
    low, high = BOUNDS[name]
    if name == "nodes" and not value:
        return "at least one number"
    if all(type(item) in (int, float) and low <= item <= high for item in _items(value)):
        return ""
    return f"{'numbers' if isinstance(value, list) else 'a number'} from {low} to {high}"


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def digests(config: Mapping[str, Any]) -> dict[str, str]:
    """The SHA-256 of the files that a configuration names, empty where it names none; OSError or ValueError for files
    that cannot be read."""
    from hnefi.engine.solving import tables

    found = {
        name: [Path(config[name])] if evaluators.is_file(config[name]) else [] for name in ("init", "teacher")
    }
    # Tables that ship may be others in another version, like evaluators that ship.
    found["tables"] = [path for path in tables.find(config["tables"]) if path.parent != tables.SHIPPED]
    return {key: _digest(found[name]) for name, key in DIGESTS.items()}


def _digest(paths: list[Path]) -> str:
    whole = hashlib.sha256()
    for path in paths:
        with open_regular(path) as stream:
            whole.update(hashlib.file_digest(stream, "sha256").digest())  # type: ignore[arg-type]
    return whole.hexdigest() if paths else ""


# The log


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a log, one JSON object each; a last one that a crash has torn is cut off."""
    try:
        found = [json.loads(line) for line in durable.whole_lines(path)]
    except ValueError as error:
        raise TrainError(f"{path}: {error}: expected a JSON object in each line") from None
    if not all(isinstance(line, dict) for line in found):
        raise TrainError(f"{path}: expected a JSON object in each line")
    return found


def read_log(folder: Path) -> list[dict[str, Any]]:
    """The finished rounds, from 1 on; TrainError if they are not."""
    path = folder / LOG
    found = read_lines(path)
    if [line.get("round") for line in found] != list(range(1, len(found) + 1)):
        raise TrainError(f"{path}: expected the rounds from 1 on, one in each line")
    for line in found:
        try:
            games = [
                line["gate"][side][end]
                for side in ("attacking", "defending")
                for end in ("won", "drawn", "lost")
            ]
            whole = isinstance(line["gate"]["verdict"], str) and all(type(n) is int and n >= 0 for n in games)
        except (KeyError, TypeError):
            whole = False
        if not whole:
            raise TrainError(f"{path}: line {line['round']}: gate: expected the outcome of the round's test")
    return found


def read_epochs(path: Path) -> list[tuple[float, float]]:
    """The losses after each epoch of a round: of what was learned from, and held out; TrainError if there are none."""
    try:
        lines = read_lines(path)
    except OSError as error:
        raise TrainError(f"{path}: {error.strerror or error}: expected the losses of each epoch") from None
    found: list[tuple[float, float]] = []
    for number, line in enumerate(lines, 1):
        losses: tuple[Any, Any] = (line.get("learned"), line.get("held_out"))
        if not all(type(value) in (int, float) and math.isfinite(value) for value in losses):
            raise TrainError(f"{path}: line {number}: expected the losses of an epoch, learned and held_out")
        found.append(losses)
    if not found:
        raise TrainError(f"{path}: no epochs: expected the losses of each")
    return found


# Rounds


def place_of(folder: Path, number: int) -> Path:
    """The folder of a round."""
    return folder / f"round-{number:03}"


def expect_games(folder: Path, numbers: range, games: int) -> None:
    """TrainError where games of a finished round are missing from its list."""
    for number in numbers:
        place = place_of(folder, number)
        there = sum(entry["games"] for entry in shards.listed(place).values())
        if there != games:
            raise TrainError(
                f"{place / shards.LIST}: {there} games: expected all {games} of a finished round; put the files back "
                "as they were, or begin another training"
            )


def rounds_of(folder: Path, variant: Variant) -> list[Path]:
    """The rounds of a training whose games begin on the board of a variant; TrainError if there are none, or if games
    of finished ones are missing."""
    stored = read_config(folder)
    if stored["rules_hash"] != variant.hash and not _same_board(stored, variant):
        raise TrainError(
            f"{folder}: games of {stored['variant']}: expected a training that begins on the board of {variant.name}, "
            "with the same throne and corners"
        )
    there = [
        int(name[1]) for place in folder.iterdir() if (name := re.fullmatch(r"round-(\d{3})", place.name))
    ]
    last = max(there, default=0)
    # A round begins when the one before it is finished.
    expect_games(folder, range(1, max(len(read_log(folder)), last - 1) + 1), stored["games"])
    found = [place for number in range(1, last + 1) if shards.listed(place := place_of(folder, number))]
    if not found:
        raise TrainError(f"{folder}: no games: expected the folder of a training with some")
    return found


def _same_board(config: Mapping[str, Any], variant: Variant) -> bool:
    """Whether the games of a training for other rules begin like those of `variant` and end on the same squares."""
    from hnefi.engine.games import named
    from hnefi.engine.games.base_variant import VariantError

    try:
        other: Any = named(config["variant"])
    except VariantError:
        return False
    boards = [(one.start, one.rules.throne, one.rules.corners) for one in (other, variant)]
    return other.hash == config["rules_hash"] and boards[0] == boards[1]
