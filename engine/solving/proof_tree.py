"""Proofs as files, `*.tafltree`: the positions that a forced win can pass through, with the plies it takes.

    8 bytes   TAFLTREE
    u32       length of the header
    header    JSON: rules (all that differ from defaults, start, hash), men, winner, positions, digest
    u32       CRC-32 of all that
    u32       CRC-32 of the body
    body      LZMA2 of the numbers, as differences, and the plies

All numbers are little-endian. Positions are stored by their canonical numbers (`index.py`), in rising order, as
differences: first the lowest bytes of all of them, then the next higher ones, up to eight; then two bytes of plies in
the same way. If the winner is to move, one move leads to a position of the tree with one ply less, or ends the game; if
the other side is, every move does, with at least one ply less. The plies are therefore an upper bound for the win, and
nothing is known of positions that are not in the tree.

A tree is small enough to be checked completely: its bytes when it is opened, its proof before the first answer.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .. import durable, memory
from ..about import NAME, VERSION
from ..games.tafl.variant import Variant
from ..regular import open_regular, replaceable
from ..sides import Side
from .numbering import MOST_MEN
from .readings import NotSolvable, reading
from .table import Claims, TableError, Value, compressed, described, numbered, read_head, unpacked

if TYPE_CHECKING:
    from ..games.base_position import Position
    from .index import Index

MAGIC = b"TAFLTREE"
FORMAT = 1
MOST_POSITIONS = 1 << 17
"""So that the worst file of this length is unpacked or refused within a tenth of a second, and compared with its moves
within another half; the proof of mini-edge has 34,261."""
MOST_PLIES = (1 << 14) - 1
_NUMBER = 8
_PLIES = 2
_WORD = struct.Struct("<I")
_RANGE = 1 << 12
"""Positions per kernel call."""


@dataclass(frozen=True, slots=True)
class TreeHeader:
    """The header of a tree."""

    variant: Variant
    attackers: int
    defenders: int
    winner: Side
    positions: int
    digest: str

    def as_json(self) -> bytes:
        return json.dumps(
            {
                "format": FORMAT,
                **described(self.variant),
                "attackers": self.attackers,
                "defenders": self.defenders,
                "winner": self.winner.letter,
                "positions": self.positions,
                "digest": self.digest,
                "program": f"{NAME} {VERSION}",
            }
        ).encode()


def write(path: Path, variant: Variant, index: Index, winner: Side, numbers: Any, plies: Any) -> TreeHeader:
    """Write a tree of at most MOST_POSITIONS, whole or not at all: canonical numbers in rising order and the plies of
    each."""
    body = _planes(np.diff(numbers, prepend=0), _NUMBER) + _planes(plies, _PLIES)
    digest = hashlib.sha256(body).hexdigest()
    header = TreeHeader(variant, index.attackers, index.defenders, winner, len(numbers), digest)
    data = header.as_json()
    head = MAGIC + _WORD.pack(len(data)) + data
    packed = compressed(body)
    durable.put(
        replaceable(path), head + _WORD.pack(zlib.crc32(head)) + _WORD.pack(zlib.crc32(packed)) + packed
    )
    return header


def _planes(values: Any, size: int) -> bytes:
    """The lowest bytes of all values, then the next higher ones, up to `size` bytes each."""
    return np.ascontiguousarray(values.astype("<u8").view("u1").reshape(-1, 8)[:, :size].T).tobytes()


def _from_planes(data: bytes, size: int) -> Any:
    planes = np.frombuffer(data, "u1").reshape(size, -1)
    wide = np.zeros((planes.shape[1], 8), np.uint8)
    wide[:, :size] = planes.T
    return wide.view("<u8").reshape(-1).astype(np.int64)


def by_material(
    kernel: Callable[..., int],
    s: Any,
    index: Index,
    winner: int,
    numbers: Any,
    plies: Any,
    on_range: Callable[[], None] = lambda: None,
) -> int:
    """The sum of what a kernel of `branches` returns for all positions of a tree; `s` is a record to work in, and
    `on_range` is called every few milliseconds."""
    found = 0
    for material in index.materials:
        begin, end = np.searchsorted(numbers, (material.first, material.end))
        for first in range(begin, end, _RANGE):
            on_range()
            last = min(first + _RANGE, end)
            men = material.attackers, material.defenders
            found += int(kernel(s, index.record, numbers, plies, *men, first, last, winner))
    return found


class Tree:
    """An open tree, completely in memory, its bytes checked. TableError if the file is not a tree, OSError if it cannot
    be read, MemoryError if it is too large."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            read, begin = read_head(file, MAGIC, "a proof tree", self._wrong)
            self.header = self._parse(read)
            # LZMA2 adds a few bytes to every 64 KiB that it cannot make smaller.
            plain = self.header.positions * (_NUMBER + _PLIES)
            most = begin + _WORD.size + plain + plain // 1024 + 64
            if size > most:
                raise self._wrong(
                    f"has {size} bytes, expected at most {most} for {self.header.positions} positions"
                )
            memory.demand((size >> 20) + 1)
            file.seek(begin)
            checksum, body = file.read(_WORD.size), file.read(size)
        if len(checksum) < _WORD.size or zlib.crc32(body) != _WORD.unpack(checksum)[0]:
            raise self._wrong("was changed or cut off: the checksum of its positions is wrong")
        positions = self.header.positions
        memory.demand((positions * 4 * _NUMBER >> 20) + 1)
        try:
            data = unpacked(body, positions * (_NUMBER + _PLIES), f"{positions} positions")
        except ValueError as error:
            raise self._wrong(str(error)) from None
        if hashlib.sha256(data).hexdigest() != self.header.digest:
            raise self._wrong("its positions do not have the digest of its header")
        gaps = _from_planes(data[: positions * _NUMBER], _NUMBER)
        self.numbers = np.cumsum(gaps)
        """Canonical numbers, int64, in rising order."""
        self.plies = _from_planes(data[positions * _NUMBER :], _PLIES)
        """The most plies that the winner needs in each position, int64."""
        # The first may be 0; a sum that is too large for its word would be below one before it.
        if (gaps[1:] <= 0).any() or self.numbers[0] < 0 or (np.diff(self.numbers) <= 0).any():
            raise self._wrong("its positions are not in order")
        if (self.plies > MOST_PLIES).any():
            raise self._wrong(f"says {int(self.plies.max())} plies, expected at most {MOST_PLIES}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Does nothing: no file stays open. For use like a `Table`."""

    def _parse(self, read: dict[str, Any]) -> TreeHeader:
        claims = Claims(read, self._wrong)
        claims.number("format", FORMAT, FORMAT)
        variant = claims.variant()
        letter = claims.expect("winner", "a or d", lambda value: value in ("a", "d"))
        return TreeHeader(
            variant,
            claims.number("attackers", 0, MOST_MEN),
            claims.number("defenders", 0, MOST_MEN),
            Side.of(letter),
            claims.number("positions", 1, MOST_POSITIONS),
            claims.digest(),
        )

    @property
    def variant(self) -> Variant:
        """The rules of the tree."""
        return self.header.variant

    @cached_property
    def index(self) -> Any:
        """The numbers of positions."""
        index = numbered(self.variant, self.header.attackers, self.header.defenders, self._wrong)
        if self.numbers[-1] >= index.entries:
            raise self._wrong(
                f"has the number {self.numbers[-1]}, expected less than {index.entries} for these rules and men"
            )
        return index

    def faults(self, on_range: Callable[[], None] = lambda: None) -> int:
        """How many positions have plies that do not follow from their moves. If there are none, the winner wins every
        position, by induction on the plies."""
        # Compiled, as the index is.
        from ..games.tafl.position import new_state
        from . import branches

        index = self.index
        try:
            state = new_state(reading(self.variant).played, "tTK")[0]
        except NotSolvable as error:
            raise self._wrong(f"header: {error}") from None
        return by_material(
            branches.check, state, index, self.header.winner, self.numbers, self.plies, on_range
        )

    def demand_proof(self) -> None:
        """TableError if the positions do not prove each other, as in a forged file. Checked once."""
        if self._faults:
            raise self._wrong(
                f"{self._faults} of {len(self.numbers)} positions disagree with their moves: it proves nothing"
            )

    @cached_property
    def _faults(self) -> int:
        return self.faults()

    def value(self, position: Position) -> Value:
        """The winner and the most plies needed; ValueError for a position that is not in the tree."""
        if position.variant.hash != self.variant.hash:
            raise ValueError(
                f"{position.variant.name} has the rules hash {position.variant.hash[:16]}…, expected that of "
                f"{self.variant.name}, {self.variant.hash[:16]}…"
            )
        if position.outcome is not None:
            return Value(position.outcome.winner, 0)
        self.demand_proof()
        number = self.index.canonical(self.index.number(position))
        at = int(np.searchsorted(self.numbers, number))
        if at == len(self.numbers) or self.numbers[at] != number:
            raise ValueError(f"{position.fen()}: not in the proof tree {self.path.name}")
        return Value(self.header.winner, int(self.plies[at]), at_most=True)

    def _wrong(self, what: str) -> TableError:
        return TableError(f"{self.path}: {what}")
