"""Follows a file of JSON lines that another process appends to and now and then replaces by a new one."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from hnefi.engine.regular import open_regular

CHUNK = 1 << 20
"""Bytes that are read at a time."""
LINE_LIMIT = 1 << 20
"""Longer lines are skipped."""

OPENED = "opened"
"""The `event` of the object that `Tail` puts before the first one of every file."""


class Tail:
    """The objects of a file, from its beginning on; when a new file takes its place, first the rest of the old one.

    The writer is never waited for and never disturbed: the file is only read. Lines that are no JSON object are
    skipped.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None
        self._rest = b""
        self._skipping = False

    def read(self) -> list[dict[str, Any]]:
        """What has come since the last call, at most some `CHUNK` of it; empty when there is nothing more now."""
        opened = self._file is None
        if opened:
            with contextlib.suppress(OSError):
                self.open()
        if self._file is None:
            return []
        chunk = self._chunk()
        if not chunk and self._replaced():
            # What was written between our last look and the change of files.
            chunk = self._chunk()
            if not chunk:
                self.close()
                return self.read()
        events: list[dict[str, Any]] = [{"event": OPENED}] if opened else []
        return [*events, *self._objects(chunk)]

    def open(self) -> None:
        """Begin with the file that lies there now; OSError if there is none. `read` does so by itself."""
        self._file = open_regular(self._path)

    def close(self) -> None:
        """Close the file; the next read starts again at its beginning."""
        if self._file is not None:
            self._file.close()
        self._file, self._rest, self._skipping = None, b"", False

    def _chunk(self) -> bytes:
        assert self._file is not None
        with contextlib.suppress(OSError):
            return self._file.read(CHUNK)
        return b""

    def _replaced(self) -> bool:
        """Whether another file is at the path now; False while there is none."""
        assert self._file is not None
        try:
            now, ours = self._path.stat(), os.fstat(self._file.fileno())
        except OSError:
            return False
        return (now.st_dev, now.st_ino) != (ours.st_dev, ours.st_ino)

    def _objects(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            if self._skipping:
                self._skipping = False
                continue
            # A number of a hundred thousand digits is a ValueError, a line of brackets alone a RecursionError.
            with contextlib.suppress(ValueError, RecursionError):
                found = json.loads(line)
                if isinstance(found, dict):
                    yield found
        if len(self._rest) > LINE_LIMIT:
            self._rest, self._skipping = b"", True
