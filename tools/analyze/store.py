"""The results of an unfinished analysis, in a file beside its output: JSON lines, each written as a whole.

The first line says what is analysed, by which engine and how; every further one is the look at one position. A line
that was torn by a crash is ignored, and cut off when the analysis continues.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Final

from hnefi.engine import durable
from hnefi.engine.regular import open_regular
from hnefi.engine.wording import shorten
from hnefi.protocol.hosts.assessment.values import PositionAnalysis

from ..arena.store import write_file
from .values import look_from_json, look_to_json

FORMAT: Final = 1
SUFFIX: Final = ".progress.jsonl"
_LIMIT: Final = 1 << 20


class StoreError(ValueError):
    """An unfinished analysis that cannot be gone on with, or a file that cannot be written; a sentence for people."""


def beside(output: Path) -> Path:
    """Where the unfinished analysis of an output lies."""
    return output.with_name(output.name + SUFFIX)


def digest(path: Path) -> str:
    """SHA-256 of a file as hex digits."""
    with open_regular(path) as stream:
        return _sum(stream)


def _sum(stream: IO[bytes]) -> str:
    found = sha256()
    while block := stream.read(1 << 20):
        found.update(block)
    return found.hexdigest()


class Progress:
    """The looks of one analysis on disk. `known` are those that were there, by game and ply."""

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        self.path = path
        self.about = {"analysis": FORMAT, **about}
        self.known: dict[tuple[int, int], PositionAnalysis] = {}
        self._stream: IO[bytes] | None = None

    def open(self, *, size: int, fresh: bool = False) -> None:
        """Begin, or continue what is there; StoreError if that is another analysis, or cannot be read.

        `size` is that of the largest board.
        """
        try:
            if fresh or not self.path.exists():
                write_file(self.path, json.dumps(self.about) + "\n")
            else:
                self._read(size)
            self._stream = self.path.open("ab", buffering=0)
        except OSError as error:
            raise StoreError(
                f"{self.path}: {error.strerror or error}: expected a file to keep progress in"
            ) from None

    def _read(self, size: int) -> None:
        with open_regular(self.path) as stream:
            first = stream.readline(_LIMIT)
            self._compare(first)
            whole = stream.tell()
            number = 1
            while line := stream.readline(_LIMIT):
                number += 1
                if not line.endswith(b"\n"):
                    break
                try:
                    value = json.loads(line)
                    place = int(value["game"]), int(value["ply"])
                    self.known[place] = look_from_json(value, size)
                except (ValueError, KeyError, TypeError, AttributeError):
                    raise StoreError(
                        f"{self.path}:{number}: {shorten(line.decode('utf-8', 'replace'), 40)}: expected the "
                        "analysis of a position; --fresh starts over"
                    ) from None
                whole = stream.tell()
        os.truncate(self.path, whole)

    def _compare(self, first: bytes) -> None:
        """StoreError unless the first line is of this very analysis."""
        try:
            there = json.loads(first)
        except ValueError:
            there = None
        if not isinstance(there, dict) or "analysis" not in there:
            raise StoreError(f"{self.path}: expected an unfinished analysis; --fresh starts over")
        for key, here in self.about.items():
            if there.get(key) != here:
                raise StoreError(
                    f"{self.path}: an unfinished analysis with {key} {shorten(there.get(key), 60)}, here it is "
                    f"{shorten(here, 60)}: expected the same command as before; --fresh starts over"
                )

    def add(self, game: int, ply: int, look: PositionAnalysis) -> None:
        """Keep a look; StoreError if it cannot be written."""
        if self._stream is None:
            return
        line = json.dumps({"game": game, "ply": ply, **look_to_json(look)}, separators=(",", ":")) + "\n"
        try:
            durable.write(self._stream.fileno(), line.encode())
        except OSError as error:
            self.close(done=False)
            raise StoreError(f"{self.path}: {error.strerror or error}: progress cannot be saved") from None

    def close(self, *, done: bool) -> None:
        """Write no more; the file goes when the analysis is `done`."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None
            if done:
                self.path.unlink(missing_ok=True)
