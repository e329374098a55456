"""The folder of a run: configuration, log, state and archive. One process writes, and replaces every file atomically.

    config.toml                     everything that determines the results
    log.jsonl                       one line for each generation
    state.safetensors               the state of the run: arrays, and a JSON document in the header
    archive/gen-0000.safetensors    the champion of each generation, an evaluator file
    champion.safetensors            the last of them

A generation counts once the state says so; files written before that are written again, byte for byte.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self

import numpy as np

from hnefi.engine import durable
from hnefi.engine.regular import open_regular, read_regular
from hnefi.engine.toml_text import read_toml
from hnefi.engine.wording import shorten

from . import options
from .algorithm import Champion
from .run import Checkpoint, Plan, Step, begin, code_version

CONFIG, LOG, STATE, CHAMPION, ARCHIVE = (
    "config.toml", "log.jsonl", "state.safetensors", "champion.safetensors", "archive",
)  # fmt: skip
FORMAT = 1
STATE_LIMIT = 1 << 32
DOCUMENT = "hnefi"
_HEAD = ("format", "code", "algorithm", "variant", "path", "rules_hash", "seed")


class FolderError(Exception):
    """The folder of a run cannot be used; the message names the file and says what was expected."""


# The configuration


def config_of(plan: Plan, variant: str, path: str = "") -> dict[str, Any]:
    """The complete configuration; `variant` and `path` say where to find the variant."""
    head = {
        "format": FORMAT,
        "code": code_version(),
        "algorithm": plan.algorithm,
        "variant": variant,
        "path": path,
        "rules_hash": plan.variant.hash,
        "seed": plan.seed,
    }
    return {**head, "weights": plan.encoding.size, **plan.values}


def config_text(config: Mapping[str, Any]) -> str:
    """A configuration as TOML."""
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in config.items())


def read_config(folder: Path) -> dict[str, Any]:
    """The configuration in a folder; FolderError if it is missing or unreadable."""
    path = folder / CONFIG
    try:
        config = read_toml(read_regular(path).decode())
    except OSError as error:
        raise FolderError(f"{path}: {error.strerror}: expected the folder of a run") from None
    except ValueError as error:
        raise FolderError(f"{path}: {error}: expected the configuration of a run") from None
    algorithm = config.get("algorithm")
    if config.get("format") != FORMAT or algorithm not in options.ALGORITHMS:
        raise FolderError(
            f"{path}: expected format = {FORMAT} and an algorithm of {', '.join(options.ALGORITHMS)}"
        )
    known = options.of(algorithm)
    kinds: dict[str, type] = dict.fromkeys(_HEAD, str) | {"format": int, "seed": int, "weights": int}
    for name in [*kinds, *known]:
        if name not in config:
            raise FolderError(
                f"{path}: {name}: missing: expected every option; a run of an older version of hnefi without this "
                "option cannot be continued"
            )
    for name, value in config.items():
        try:
            if name in known:
                known[name].check(value)
            elif type(value) is not kinds.get(name):
                raise options.OptionError(
                    f"{shorten(name)}: {shorten(value)}: expected no such option, or another kind of value"
                )
        except options.OptionError as error:
            raise FolderError(f"{path}: {error}") from None
    return config


def differences(stored: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The items in which two configurations differ, a sentence for each; the number of generations does not count."""
    return [
        f"{name}: was {shorten(stored.get(name))}, is {shorten(now.get(name))}"
        for name in {**stored, **now}
        if name != "generations" and stored.get(name) != now.get(name)
    ]


# The folder


class Folder:
    """A run's folder, locked for one writer."""

    def __init__(self, path: Path, plan: Plan, config: Mapping[str, Any]) -> None:
        """Open or create the folder of a run; FolderError if it belongs to another run or is damaged."""
        self.path = path
        self._plan = plan
        self._lock = -1
        try:
            durable.make_folder(path / ARCHIVE)
            self._lock = _locked(path)
            self.checkpoint = self._open(config)
        except OSError as error:
            self.close()
            raise FolderError(
                f"{shorten(str(path))}: {error.strerror or error}: expected a folder to write to"
            ) from None
        except BaseException:
            self.close()
            raise

    def _open(self, config: Mapping[str, Any]) -> Checkpoint:
        generations = config["generations"]
        if (self.path / CONFIG).exists():
            stored = read_config(self.path)
            generations = max(generations, stored["generations"])
            unlike = differences(stored, config)
            if unlike:
                raise FolderError("\n  ".join([f"{self.path}: the folder of another run:", *unlike]))
        elif any((self.path / name).exists() for name in (LOG, STATE)):
            raise FolderError(f"{self.path / CONFIG}: missing: expected it beside {LOG} and {STATE}")
        durable.put(self.path / CONFIG, config_text({**config, "generations": generations}).encode())
        if not (self.path / STATE).exists():
            if (self.path / LOG).exists() and (self.path / LOG).read_bytes().count(b"\n") > 1:
                raise FolderError(
                    f"{self.path / STATE}: missing: expected it beside a log of finished generations"
                )
            checkpoint = begin(self._plan)
            self._log = _cut_log(self.path / LOG, 0)
            return checkpoint
        checkpoint = load_state(self.path / STATE, self._plan)
        self._check(checkpoint.generation)
        self._log = _cut_log(self.path / LOG, checkpoint.generation)
        return checkpoint

    def _check(self, generation: int) -> None:
        """FolderError unless log and archive are complete and unchanged up to a generation."""
        entries = read_log(self.path)[:generation]
        if len(entries) < generation:
            raise FolderError(f"{self.path / LOG}: {len(entries)} generations: expected {generation}")
        for entry in entries:
            for name, digest in entry["files"].items():
                if _digest(self.path / name) != digest:
                    raise FolderError(f"{self.path / name}: missing or altered: expected SHA-256 {digest}")

    def commit(self, step: Step) -> None:
        """Save a finished generation; FolderError if that fails."""
        try:
            self._commit(step)
        except OSError as error:
            reason = error.strerror or error
            raise FolderError(f"{self.path}: {reason}: expected a folder that can be written to") from None

    def _commit(self, step: Step) -> None:
        files = {}
        for champion in step.champions:
            save_champion(self.path / CHAMPION, self._plan, champion)
            if champion.generation % self._plan.values["archive_every"] == 0:
                data = (self.path / CHAMPION).read_bytes()
                name = f"{ARCHIVE}/gen-{champion.generation:04}.safetensors"
                durable.put(self.path / name, data)
                files[name] = hashlib.sha256(data).hexdigest()
        self._log.write(json.dumps({**step.report, "files": files}) + "\n")
        self._log.flush()
        os.fsync(self._log.fileno())
        durable.put(self.path / STATE, state_bytes(step.checkpoint, self._plan))
        self.checkpoint = step.checkpoint

    def close(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # a full disk has been reported already
            self._log.close()
        self.close()


def _locked(folder: Path) -> int:
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            import fcntl
        except ImportError:
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise FolderError(f"{shorten(str(folder))}: another process is writing to it") from None
    return descriptor


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


# The log


def read_log(folder: Path) -> list[dict[str, Any]]:
    """The finished generations in the log, in order; FolderError if it is damaged."""
    path = folder / LOG
    found: list[dict[str, Any]] = []
    try:
        lines = read_regular(path).split(b"\n")[:-1]
    except OSError as error:
        raise FolderError(f"{path}: {error.strerror}: expected the log of a run") from None
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
            good = entry["generation"] == number and all(
                name.startswith(f"{ARCHIVE}/gen-") and ".." not in name and isinstance(value, str)
                for name, value in entry["files"].items()
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            good = False
        if not good:
            raise FolderError(
                f"{path}: line {number}: {shorten(line.decode('utf-8', 'replace'))}: expected generation {number}"
            )
        found.append(entry)
    return found


def _cut_log(path: Path, lines: int) -> IO[str]:
    """The log, opened and cut off after its first `lines` lines."""
    data = path.read_bytes() if path.exists() else b""
    kept = b"".join(line + b"\n" for line in data.split(b"\n")[:lines])
    if kept != data:
        durable.put(path, kept)
    return path.open("a", encoding="utf-8")


# The state


def state_bytes(checkpoint: Checkpoint, plan: Plan) -> bytes:
    """A checkpoint as a safetensors file."""
    from safetensors.numpy import save

    arrays = {name: np.ascontiguousarray(array) for name, array in checkpoint.state.items()}
    document = {
        "kind": "evolution state",
        "format": FORMAT,
        "generation": checkpoint.generation,
        "seed": plan.seed,
        "options_sha256": _options_digest(plan),
        "sha256": _arrays_digest(arrays),
    }
    return save(arrays, {DOCUMENT: json.dumps(document)})


def load_state(path: Path, plan: Plan) -> Checkpoint:
    """The checkpoint in a file; FolderError unless it is complete and belongs to this run."""
    from safetensors import SafetensorError, safe_open

    try:
        with open_regular(path) as stream:
            if os.fstat(stream.fileno()).st_size > STATE_LIMIT:
                raise ValueError(f"more than {STATE_LIMIT} bytes")
        with safe_open(path, "np") as file:
            document = json.loads((file.metadata() or {}).get(DOCUMENT, "null"))
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
        if not isinstance(document, dict) or document.get("kind") != "evolution state":
            raise ValueError("no state of a run")
        if document.get("sha256") != _arrays_digest(arrays):
            raise ValueError("it was changed")
        generation = document.get("generation")
        if type(generation) is not int or generation < 1 or document.get("seed") != plan.seed:
            raise ValueError("the state of another run")
        if document.get("options_sha256", _options_digest(plan)) != _options_digest(plan):
            raise ValueError(f"written with other options than those in {CONFIG}")
        _expect_like(arrays, begin(plan).state)
    except (OSError, ValueError, TypeError, KeyError, RecursionError, SafetensorError) as error:
        raise FolderError(
            f"{path}: {shorten(str(error), 200)[1:-1]}: expected the state of this run"
        ) from None
    return Checkpoint(generation, arrays)


def _expect_like(arrays: Mapping[str, Any], model: Mapping[str, Any]) -> None:
    for name in {**arrays, **model}:
        one, other = arrays.get(name), model.get(name)
        if one is None or other is None or one.dtype != other.dtype or one.shape[1:] != other.shape[1:]:
            raise ValueError(f"array {shorten(name)}: not that of this algorithm and network")


def _options_digest(plan: Plan) -> str:
    """A digest of everything that determines a run's results, except for the seed and the number of generations, which
    may still change."""
    kept = {name: value for name, value in plan.values.items() if name != "generations"}
    text = json.dumps([plan.algorithm, plan.variant.hash, kept], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _arrays_digest(arrays: Mapping[str, Any]) -> str:
    found = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        found.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


# Evaluators


def save_champion(
    path: Path, plan: Plan, champion: Champion, results: Mapping[str, Any] | None = None
) -> str:
    """Write a champion as an evaluator file that says where it comes from; returns its SHA-256."""
    from hnefi.engine.evaluators import files

    weights = plan.encoding.weights(champion.genome)
    document = {
        "trainer": {
            "name": f"evolve {plan.algorithm}",
            "source": options.ALGORITHMS[plan.algorithm],
            "code": code_version(),
            "free_weights": plan.encoding.size,
            **{name: value for name, value in plan.values.items() if name != "generations"},
        },
        "seed": plan.seed,
        "generation": champion.generation,
        "born": champion.born,
        "fitness": champion.fitness,
        "opponents": plan.opponents,
        "genome": champion.digest,
        "parents": champion.parents,
        "results": dict(results or {}),
    }
    evaluator = files.Evaluator(
        plan.network,
        plan.variant.name,
        plan.variant.hash,
        plan.variant.game,
        plan.network.split(plan.variant, weights),
        document,
    )
    try:
        return files.save(path, evaluator)
    except files.EvaluatorError as error:
        raise FolderError(str(error)) from None


def expect_player(name: str) -> Path:
    """The path of the player called `name`: a file name, perhaps with a folder. OptionError if it is unusable."""
    path = Path(name)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", path.name) or path.suffix in (
        ".toml",
        ".safetensors",
    ):
        raise options.OptionError(
            f"--save-player {name[:80]!r}: expected letters, digits, - _ or ., without a suffix"
        )
    if not path.parent.is_dir():
        raise options.OptionError(f"--save-player {name[:80]!r}: expected a folder that is there")
    return path


def save_player(name: str, plan: Plan, champion: Path, generation: int) -> Path:
    """Save a champion as a player: a TOML file, and the evaluator file beside it; returns the path of the former."""
    path = expect_player(name)
    evaluator, file = path.with_name(f"{path.name}.safetensors"), path.with_name(f"{path.name}.toml")
    how = f"Evolved ({plan.algorithm}) on {plan.variant.name}, seed {plan.seed}, generation {generation}."
    search, limit = ("minimax", f"depth = {plan.values.get('depth')}")
    if plan.network.has_policy:
        search, limit = ("puct", f"nodes = {plan.values['simulations']}")
        limit += f"\n\n[options]\nExploration = {min(1000, round(100 * plan.values['c']))}"
    unseen = plan.values.get("wins") == "unseen" and plan.variant.game == "hex"
    text = (
        f"description = {json.dumps(how)}\n"
        f"algorithm = {json.dumps(search)}\n"
        f"evaluator = {json.dumps(evaluator.name)}\n"
        f"variant = {json.dumps(plan.variant.name)}\n"
        f"\n[limits]\n{limit}\n" + ('\n[options]\nWins = "unseen"\n' if unseen else "")
    )
    durable.put(evaluator, champion.read_bytes())
    durable.put(file, text.encode())
    return file
