"""The tables of a search: files given by an option, and what they know of a position and its history.

Files are opened, and their headers checked, when the option is set; their codes are unpacked when the first position
of their rules is searched.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from .. import memory
from ..regular import open_regular
from ..wording import shorten
from .proof_tree import MAGIC as TREE
from .proof_tree import Tree
from .readings import NotSolvable
from .table import MAGIC as TABLE
from .table import Table, TableError, Value

if TYPE_CHECKING:
    from ..games.base_position import Position
    from ..games.base_variant import AnyVariant

SUFFIXES = (".taflbase", ".tafltree")
"""File name suffixes of solved tables and of proof trees."""
SHIPPED = Path(__file__).resolve().parents[1] / "tablebases"
MOST_FILES = 256
_KEPT: WeakValueDictionary[tuple[object, ...], Tables] = WeakValueDictionary()
"""Tables that are open, by their files."""


def find(text: str, shipped: str = "shipped") -> list[Path]:
    """The files that a path names: files, folders of tables, names of tables that ship and the word for all of these,
    between the system's separators. ValueError where there are none."""
    found: list[Path] = []
    for part in text.split(os.pathsep):
        if not part:
            continue
        place = SHIPPED if part == shipped else Path(part)
        if place.name == part:
            # What a player names must not depend on the folder in which he is started.
            place = ships(part) or place
        if place.is_dir():
            files = sorted(path for suffix in SUFFIXES for path in place.glob(f"*{suffix}"))
            if not files:
                raise ValueError(
                    f"{part}: expected files {' or '.join(f'*{s}' for s in SUFFIXES)} in this folder"
                )
            found += files
        else:
            found.append(place)
    if len(found) > MOST_FILES:
        raise ValueError(f"{text}: {len(found)} tables, expected at most {MOST_FILES}")
    return found


def ships(name: str) -> Path | None:
    """The shipped table or proof tree of this name, such as `mini-four`; None if there is none."""
    named = (SHIPPED / f"{name}{suffix}" for suffix in SUFFIXES)
    return next((path for path in named if path.name == f"{name}{path.suffix}" and path.is_file()), None)


def open_file(path: str | os.PathLike[str], *, held: bool = False) -> Table | Tree:
    """Open a table or proof tree; raises what `Table` and `Tree` raise."""
    with open_regular(path) as file:
        begins = file.read(len(TREE))
    if begins not in (TABLE, TREE):
        raise TableError(
            f"{path}: begins with {shorten(begins.decode('latin-1'))}, expected a table or a proof tree of hnefi "
            f"solve ({TABLE.decode()} or {TREE.decode()})"
        )
    return Tree(path) if begins == TREE else Table(path, held=held)


def opened(files: Sequence[Path]) -> Tables:
    """The tables of these files, shared by all callers with the same files until one of them changes."""
    stamps = tuple((str(path), *_stamp(path)) for path in files)
    tables = _KEPT.get(stamps)
    if tables is None:
        tables = _KEPT[stamps] = Tables(files)
    return tables


def _stamp(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


class Tables:
    """Tables and proof trees of any rule sets, their files in memory. TableError for a file of another kind, OSError
    for one that cannot be read, MemoryError for one that is too large."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.files: list[Table | Tree] = []
        self._loaded: dict[str, _Loaded] = {}
        for path in files:
            table = open_file(path, held=True)
            if isinstance(table, Table):
                table.check_sums()
            self.files.append(table)

    def __reduce__(self) -> tuple[Any, ...]:
        # Other processes read the files themselves.
        return opened, ([table.path for table in self.files],)

    def of(self, variant: AnyVariant) -> list[Table | Tree]:
        """The tables with exactly these rules and this start position."""
        return [table for table in self.files if table.variant.hash == variant.hash]

    def load(self, variant: AnyVariant) -> None:
        """Unpack the tables of a variant. TableError for a forged file, MemoryError for one that is too large; in both
        cases the variant's tables are dropped."""
        if variant.hash in self._loaded:
            return
        files = self.of(variant)
        try:
            if files:
                self._loaded[variant.hash] = _Loaded(files)
        except (TableError, NotSolvable, MemoryError) as error:
            self.files = [table for table in self.files if table not in files]
            if isinstance(error, NotSolvable):
                raise TableError(str(error)) from None
            raise

    def value(self, position: Position) -> Value:
        """The value of a position without regard to its history, as a search sees it: from a table, or else from the
        proof with the shortest win. ValueError if no file has it."""
        files = self.of(position.variant)
        if not files:
            raise ValueError(
                f"no table has the rules of {position.variant.name}, {position.variant.hash[:16]}…"
            )
        if position.outcome is not None:
            return Value(position.outcome.winner, 0)
        problem = ValueError()
        proven: list[tuple[int, Value]] = []
        for table in files:
            try:
                value = table.value(position)
            except TableError:
                raise
            except ValueError as error:
                problem = error
                continue
            if not value.at_most or value.plies is None:
                return value
            proven.append((value.plies, value))
        if not proven:
            raise problem
        return min(proven, key=lambda each: each[0])[1]

    def record(self, position: Position) -> Any:
        """The record that a search from this position probes; None if no table has its rules."""
        self.load(position.variant)
        loaded = self._loaded.get(position.variant.hash)
        if loaded is None or any(letter not in "tTK" for _, letter in position.pieces()):
            return None
        return loaded.rooted(position, self._past(position))

    def _past(self, position: Position) -> list[Value | None]:
        """The values of this position and of those before it, back to the last capture; None for positions that are in
        no table."""
        past: list[Value | None] = []
        here: Any = position
        while here is not None:
            try:
                past.append(self.value(here))
            except ValueError:
                past.append(None)
            here = here.parent if here.quiet else None
        return past


class _Loaded:
    """The codes of one variant in memory, and the record that leads to them."""

    def __init__(self, named: Sequence[Table | Tree]) -> None:
        # Imported here, because opening files does not need compiled code.
        from . import probing
        from .index import Index

        files = [table for table in named if isinstance(table, Table)]
        trees = [table for table in named if isinstance(table, Tree)]
        for table in files:
            # Before memory is allocated: a header may claim far more entries than its men have positions.
            table.index  # noqa: B018
        sizes = [table.header.entries for table in files]
        self._wide = any(table.header.bits == 16 for table in files)
        memory.demand(sum(sizes) * (2 if self._wide else 1) // memory.MIB + 1)
        variant = named[0].variant
        largest = (
            max(table.header.attackers for table in named),
            max(table.header.defenders for table in named),
        )
        self._index = Index(variant, *largest)
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
        if files:
            tables["unforced"] = {
                "draw": probing.DRAWN, "attackers": probing.ENDLESS_BY_ATTACKERS,
                "defenders": probing.ENDLESS_BY_DEFENDERS, "open": probing.NOTHING,
            }[files[0].header.endless]  # fmt: skip
        self._numbers, self._words = self._joined(trees)
        tables["proven"] = len(self._numbers)
        tables["numbers"] = self._numbers.ctypes.data
        tables["words"] = self._words.ctypes.data
        if trees:
            tables["most"] = sum(largest) + 1

    def _joined(self, trees: Sequence[Tree]) -> tuple[Any, Any]:
        """The numbers of all positions of the trees, sorted, and for each the code of its shortest win."""
        numbers, codes = [], []
        for tree in trees:
            tree.demand_proof()
            ours = tree.numbers.copy()
            for material in tree.index.materials:
                of_it = slice(*np.searchsorted(tree.numbers, (material.first, material.end)))
                begin = self._index.record["begin"][material.attackers, material.defenders]
                ours[of_it] += int(begin) - material.first
            numbers.append(ours)
            codes.append(1 + 2 * tree.plies + int(tree.header.winner))
        if not numbers:
            return np.zeros(0, np.int64), np.zeros(0, np.uint16)
        every, code = np.concatenate(numbers), np.concatenate(codes)
        order = np.lexsort((code, every))
        every, first = np.unique(every[order], return_index=True)
        return every, code[order][first].astype(np.uint16)

    def rooted(self, position: Position, past: Sequence[Value | None]) -> Any:
        """The record for a search from this position, whose values since the last capture are `past`."""
        from . import probing

        tables = self._record.copy()[0]
        pieces = [letter for _, letter in position.pieces()]
        tables["attackers"], tables["defenders"] = pieces.count("t"), pieces.count("T")
        tables["hits"] = 0
        tables["least"] = probing.NEVER
        root = past[0]
        tables["endless"] = root is not None and root.plies is None and root.winner is not None
        for value in past:
            if value is not None and value.plies is not None and value.winner is not None:
                tables["least"][value.winner] = min(tables["least"][value.winner], value.plies)
        # Otherwise a move that may lead back to a position nearer to the end has to be searched.
        tables["settled"] = root is not None and (
            int(tables["least"][root.winner]) == root.plies
            if root.winner is not None and root.plies is not None
            else root.winner is None and not root.open
        )
        return tables
