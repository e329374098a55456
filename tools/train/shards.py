"""The games of a round on disk: files of positions, and a list that says which of them are whole.

    games-00000.npy     the positions of some games (`games.row_type`)
    shards.jsonl        one line for each such file: its SHA-256, games, positions and results

A file counts once the list says so; what was written before that is played again, and comes out the same.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hnefi.engine import durable

from .games import UNKNOWN, row_type

LIST = "shards.jsonl"
COUNTS = ("games", "positions", "attackers", "draws", "defenders")


class ShardError(Exception):
    """Positions on disk that are not what was written: names the file and says what was expected."""


def name_of(first: int) -> str:
    """The file that begins with game `first`."""
    return f"games-{first:06}.npy"


def listed(folder: Path) -> dict[str, dict[str, Any]]:
    """What the list of a round says of each file; a last line that a crash has torn is cut off."""
    path = folder / LIST
    found: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(durable.whole_lines(path), 1):
        try:
            entry = json.loads(line)
            name, digest = entry["file"], entry["sha256"]
            if not (
                isinstance(name, str)
                and name == Path(name).name
                and isinstance(digest, str)
                and all(type(entry[key]) is int and entry[key] >= 0 for key in COUNTS)
            ):
                raise ValueError
        except (ValueError, TypeError, KeyError):
            raise ShardError(f"{path}: line {number}: expected a file of positions and its SHA-256") from None
        found[name] = entry
    return found


def keep(folder: Path, first: int, games: int, data: bytes) -> dict[str, Any]:
    """Write a file of positions and list it; its line in the list."""
    rows = np.load(io.BytesIO(data), allow_pickle=False)
    name = name_of(first)
    durable.put(folder / name, data)
    ends = {int(row["game"]): int(row["result"]) for row in rows[rows["result"] != UNKNOWN]}
    results = list(ends.values())
    entry = {
        "file": name,
        "sha256": hashlib.sha256(data).hexdigest(),
        "games": games,
        "positions": len(rows),
        "attackers": results.count(2),
        "draws": results.count(1),
        "defenders": results.count(0),
    }
    durable.append_line(folder / LIST, json.dumps(entry).encode())
    return entry


def read(folder: Path, size: int) -> Any:
    """All positions of a round; ShardError where one of its files is missing or altered."""
    return np.concatenate([np.zeros(0, row_type(size)), *_parts(folder, size)])


def check(folder: Path, size: int) -> None:
    """ShardError as `read`."""
    for _ in _parts(folder, size):
        pass


def _parts(folder: Path, size: int) -> Iterator[Any]:
    kind = row_type(size)
    for name, entry in sorted(listed(folder).items()):
        path = folder / name
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ShardError(
                f"{path}: {error.strerror}: expected the positions that {LIST} lists; put the file back"
            ) from None
        if hashlib.sha256(data).hexdigest() != entry["sha256"]:
            raise ShardError(
                f"{path}: altered: expected SHA-256 {entry['sha256']}; put back the file as it was"
            )
        rows = np.load(io.BytesIO(data), allow_pickle=False)
        if rows.dtype != kind:
            raise ShardError(f"{path}: expected positions on {size} x {size} squares, of this version")
        yield rows
