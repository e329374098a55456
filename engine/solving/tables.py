"""The tables of a search: files that an option names, and what they know of a position and its history.

Files are opened, and what they say of themselves is checked, when they are named; their codes are unpacked when the
first position of their rules is searched.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from .. import memory
from .table import Table, TableError, Value

if TYPE_CHECKING:
    from ..games.base_position import Position
    from ..games.base_variant import AnyVariant

SUFFIX = ".taflbase"
SHIPPED = Path(__file__).resolve().parents[1] / "tablebases"
MOST_FILES = 256
_KEPT: WeakValueDictionary[tuple[object, ...], Tables] = WeakValueDictionary()
"""Tables that somebody has open, by their files."""


def find(text: str, shipped: str = "shipped") -> list[Path]:
    """The files that a path names: files, folders of tables, names of tables that ship and the word for all of these,
    between the system's separators. ValueError where there are none."""
    found: list[Path] = []
    for part in text.split(os.pathsep):
        if not part:
            continue
        place = SHIPPED if part == shipped else Path(part)
        if place.name == part and (named := SHIPPED / f"{part}{SUFFIX}").is_file():
            # What a player names must not depend on the folder in which he is started.
            place = named
        if place.is_dir():
            files = sorted(place.glob(f"*{SUFFIX}"))
            if not files:
                raise ValueError(f"{part}: expected files *{SUFFIX} in this folder")
            found += files
        else:
            found.append(place)
    if len(found) > MOST_FILES:
        raise ValueError(f"{text}: {len(found)} tables, expected at most {MOST_FILES}")
    return found


def opened(files: Sequence[Path]) -> Tables:
    """The tables of these files, read once for all who name the same, as long as the files stay what they are."""
    stamps = tuple((str(path), *_stamp(path)) for path in files)
    tables = _KEPT.get(stamps)
    if tables is None:
        tables = _KEPT[stamps] = Tables(files)
    return tables


def _stamp(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


class Tables:
    """Tables of any rule sets, their files in memory. TableError where a file is none, OSError where one cannot be
    read, MemoryError where one is too large."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.files: list[Table] = []
        self._loaded: dict[str, _Loaded] = {}
        for path in files:
            table = Table(path, held=True)
            table.check_sums()
            self.files.append(table)

    def __reduce__(self) -> tuple[Any, ...]:
        # Other processes read the files themselves.
        return opened, ([table.path for table in self.files],)

    def of(self, variant: AnyVariant) -> list[Table]:
        """The tables of just these rules and this start."""
        return [table for table in self.files if table.variant.hash == variant.hash]

    def load(self, variant: AnyVariant) -> None:
        """Unpack the tables of a variant. TableError where a file was made to deceive, MemoryError where it is too
        large; its tables are forgotten then."""
        if variant.hash in self._loaded:
            return
        files = self.of(variant)
        try:
            if files:
                self._loaded[variant.hash] = _Loaded(files)
        except (TableError, MemoryError):
            self.files = [table for table in self.files if table not in files]
            raise

    def value(self, position: Position) -> Value:
        """What a position is worth, its history left aside; ValueError where no table has it."""
        files = self.of(position.variant)
        if not files:
            raise ValueError(
                f"no table has the rules of {position.variant.name}, {position.variant.hash[:16]}…"
            )
        if position.outcome is not None:
            return Value(position.outcome.winner, 0)
        problem = ValueError()
        for table in files:
            try:
                return table.value(position)
            except TableError:
                raise
            except ValueError as error:
                problem = error
        raise problem

    def record(self, position: Position) -> Any:
        """What a search from this position asks, for kernels; None where no table has its rules."""
        self.load(position.variant)
        loaded = self._loaded.get(position.variant.hash)
        if loaded is None or any(letter not in "tTK" for _, letter in position.pieces()):
            return None
        return loaded.rooted(position, self._past(position))

    def _past(self, position: Position) -> list[Value]:
        """The values of this position and of those before it, back to the last capture; empty where the position is
        in no table."""
        past = []
        here: Any = position
        try:
            while here is not None:
                past.append(self.value(here))
                here = here.parent if here.quiet else None
        except ValueError:
            return []
        return past


class _Loaded:
    """The codes of one variant in memory, and the record that leads to them."""

    def __init__(self, files: Sequence[Table]) -> None:
        # Compiled code is not imported for those who only open files.
        from . import probing
        from .index import Index

        sizes = [table.header.entries for table in files]
        self._wide = any(table.header.bits == 16 for table in files)
        memory.demand(sum(sizes) * (2 if self._wide else 1) // memory.MIB + 1)
        variant = files[0].variant
        men = max(table.header.attackers for table in files), max(table.header.defenders for table in files)
        self._index = Index(variant, *men)
        self._codes = np.zeros(sum(sizes), np.uint16 if self._wide else np.uint8)
        self._record = np.zeros(1, probing.TABLES).view(np.recarray)
        tables = self._record[0]
        tables["first"] = -1
        tables["index"] = self._index.record
        first = 0
        for table in files:
            table.unpack(self._codes[first : first + table.header.entries])
            for material in table.index.materials:
                men = material.attackers, material.defenders
                if tables["first"][men] < 0:
                    tables["first"][men] = first + material.first
                    tables["most"] = max(tables["most"], sum(men) + 1)
            first += table.header.entries
        tables["codes"] = self._codes.ctypes.data
        tables["wide"] = self._wide
        tables["unforced"] = {
            "draw": probing.DRAWN, "attackers": probing.ENDLESS_BY_ATTACKERS,
            "defenders": probing.ENDLESS_BY_DEFENDERS, "open": probing.NOTHING,
        }[files[0].header.endless]  # fmt: skip

    def rooted(self, position: Position, past: Sequence[Value]) -> Any:
        """The record for a search from this position, whose values since the last capture are `past`."""
        from . import probing

        tables = self._record.copy()[0]
        pieces = [letter for _, letter in position.pieces()]
        tables["attackers"], tables["defenders"] = pieces.count("t"), pieces.count("T")
        tables["hits"] = 0
        tables["least"] = probing.NEVER
        tables["endless"] = bool(past) and past[0].plies is None and past[0].winner is not None
        for value in past:
            if value.plies is not None and value.winner is not None:
                tables["least"][value.winner] = min(tables["least"][value.winner], value.plies)
        # Otherwise a move that leads back to what was nearer to the end has to be searched.
        root = past[0] if past else None
        tables["settled"] = root is not None and (
            int(tables["least"][root.winner]) == root.plies
            if root.winner is not None and root.plies is not None
            else root.winner is None and not root.open
        )
        return tables
