"""Solved boards as files, `*.taflbase`: a one- or two-byte code for each position, protected by checksums.

    8 bytes   TAFLBASE
    u32       length of the header
    header    JSON: rules (all that differ from defaults, start, hash), men, entries, bits, block, endless, digest
    u32       CRC-32 of all that
    u32 u32   for each block: its length in the file, CRC-32 of these bytes
    u32       CRC-32 of that list
    blocks    LZMA2, `block` codes each, the last one the rest

All numbers are little-endian. A code is 0 if neither side can force an end, the largest number of its bits if the game
is over before anyone moves, else `1 + 2 * plies + (1 if the defenders win)`. Only codes of canonical positions
(`index.py`) are meaningful; the others repeat the code before them, which compresses to almost nothing.

Length, header and list are checked when a file is opened, a block when it is first used. A truncated file or one that
is not a table is rejected at once, and no code is read from a damaged block.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import os
import struct
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

import numpy as np

from .. import durable, memory
from ..about import NAME, VERSION
from ..games.base_variant import VariantError
from ..games.tafl.variant import Variant
from ..regular import open_regular, replaceable
from ..sides import Side
from ..wording import shorten
from .numbering import LARGEST, MOST_MEN
from .readings import ENDLESS, Endless, NotSolvable, Reading

if TYPE_CHECKING:
    from ..games.base_position import Position
    from .index import Index

MAGIC = b"TAFLBASE"
FORMAT = 2
BLOCK = 1 << 20
"""Codes in a block: larger blocks compress slightly better, and make reading a single code slower."""
LARGEST_HEADER = 1 << 16
MOST_BLOCKS = 1 << 20
FILTERS: list[dict[str, int]] = [
    {
        "id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 2 * BLOCK,
        # Codes are no text: neither the code before nor the place modulo 4 tells more of them.
        "lc": 0, "lp": 0, "pb": 0,
    }
]  # fmt: skip
"""Filters are not part of the file, so that no file can demand more memory than this."""
KEPT = 16
"""Unpacked blocks that are cached."""
UNFORCED = 0
_WORD = struct.Struct("<I")
_PAIR = struct.Struct("<II")
_BITS: dict[int, np.dtype[Any]] = {8: np.dtype("u1"), 16: np.dtype("<u2")}


class TableError(ValueError):
    """A file that is not a table, or is damaged; the message names the file and the fault."""


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a position: who wins, in how many plies; `plies` is None if neither side can force an end.

    `winner` is None for a draw, and if the value depends on the history of the game (`open`). A proof only bounds the
    plies of a win (`at_most`).
    """

    winner: Side | None
    plies: int | None
    open: bool = False
    at_most: bool = False

    @property
    def text(self) -> str:
        """`attackers win in 7`, `draw`."""
        if self.winner is None:
            return "open: depends on the history" if self.open else "draw"
        side = "attackers" if self.winner is Side.ATTACKERS else "defenders"
        if self.plies is None:
            return f"{side} win by repetition"
        return f"{side} win in {'at most ' if self.at_most else ''}{self.plies}"


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a table."""

    variant: Variant
    attackers: int
    defenders: int
    entries: int
    bits: int
    endless: Endless
    digest: str

    @property
    def over(self) -> int:
        """The code of a board on which the game is over."""
        return (1 << self.bits) - 1

    def as_json(self) -> bytes:
        """The header of the file."""
        variant = self.variant
        return json.dumps(
            {
                "format": FORMAT,
                **described(variant),
                "attackers": self.attackers,
                "defenders": self.defenders,
                "entries": self.entries,
                "bits": self.bits,
                "block": BLOCK,
                "endless": self.endless,
                "digest": self.digest,
                "program": f"{NAME} {VERSION}",
            }
        ).encode()


def described(variant: Variant) -> dict[str, Any]:
    """Rules and start position for a header."""
    return {
        "name": variant.name,
        "rules": variant.hash,
        "start": list(variant.start.rows),
        "switches": variant.rules.changes(),
    }


class Claims:
    """The fields of a header, each checked before use: a correct checksum does not make a file trustworthy."""

    def __init__(self, read: dict[str, Any], wrong: Callable[[str], TableError]) -> None:
        self._read = read
        self._wrong = wrong

    def expect(self, key: str, what: str, fits: Callable[[Any], bool]) -> Any:
        """The value of a key; TableError if it is not as expected."""
        value = self._read.get(key)
        if not fits(value):
            raise self._wrong(f"header: {key}: {shorten(str(value))}: expected {what}")
        return value

    def number(self, key: str, low: int, high: int, what: str = "") -> int:
        """A whole number from `low` to `high`."""
        if not what:
            what = str(low) if low == high else f"a number from {low} to {high}"
        found: int = self.expect(key, what, lambda value: type(value) is int and low <= value <= high)
        return found

    def digest(self) -> str:
        """The digest of what follows."""
        found: str = self.expect(
            "digest", "64 hex digits", lambda value: isinstance(value, str) and len(value) == 64
        )
        return found

    def variant(self) -> Variant:
        """The rules, checked against the hash in the header."""
        rows = self.expect(
            "start", "the rows of a board",
            lambda value: isinstance(value, list) and 0 < len(value) <= LARGEST
            and all(isinstance(row, str) for row in value),
        )  # fmt: skip
        switches = self.expect(
            "switches", "switches of the rules",
            lambda value: isinstance(value, dict) and all(isinstance(text, str) for text in value.values()),
        )  # fmt: skip
        name = self.expect("name", "a name", lambda value: isinstance(value, str))
        try:
            variant = Variant.build(name, rows, switches)
        except VariantError as error:
            raise self._wrong(f"header: {error}") from None
        self.expect(
            "rules", f"the hash of its rules, {variant.hash[:16]}…", lambda value: value == variant.hash
        )
        return variant


def read_head(
    file: IO[bytes], magic: bytes, what: str, wrong: Callable[[str], TableError]
) -> tuple[dict[str, Any], int]:
    """The header of a file that begins with `magic`, if its checksum fits, and where it ends; `what` the file should
    be."""

    def read(length: int) -> bytes:
        data = file.read(length)
        if len(data) != length:
            raise wrong(f"ends after {file.tell()} bytes, in the header")
        return data

    start = file.read(len(magic))
    if start != magic:
        shown = shorten(start.decode("latin-1"))
        raise wrong(f"begins with {shown}, expected {what} of hnefi solve ({magic.decode()})")
    start += read(_WORD.size)
    (length,) = _WORD.unpack_from(start, len(magic))
    if length > LARGEST_HEADER:
        raise wrong(f"says that its header has {length} bytes, expected at most {LARGEST_HEADER}")
    data = read(length)
    (said,) = _WORD.unpack(read(_WORD.size))
    if zlib.crc32(start + data) != said:
        raise wrong("the header was changed: its checksum is wrong")
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise wrong("the header is not JSON") from None
    if not isinstance(found, dict):
        raise wrong("the header is not a JSON object")
    return found, len(start) + length + _WORD.size


def numbered(variant: Variant, attackers: int, defenders: int, wrong: Callable[[str], TableError]) -> Index:
    """The numbering of positions with up to this many men, as given in a header."""
    # This imports compiled code, so not before a position is looked up.
    from .index import Index

    try:
        return Index(variant, attackers, defenders)
    except NotSolvable as error:
        raise wrong(f"header: {error}") from None


def bits_for(longest: int) -> int:
    """The bits per code for a longest win of `longest` plies."""
    return 8 if 2 * longest + 2 < 255 else 16


def packed(codes: Any, bits: int) -> bytes:
    """Codes as the bytes of a block, before it is compressed."""
    data: bytes = codes.astype(_BITS[bits]).tobytes()
    return data


def compressed(data: bytes) -> bytes:
    """The bytes of a block as they are in the file."""
    return lzma.compress(data, lzma.FORMAT_RAW, filters=FILTERS)


def unpacked(data: bytes, size: int, what: str) -> bytes:
    """The `size` bytes (`what`, for errors) that were packed by `compressed`; ValueError if there are more or fewer, or
    the data is damaged."""
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=FILTERS)
    try:
        # One byte more than expected, to notice data that is too long.
        data = unpacker.decompress(data, size + 1)
    except lzma.LZMAError as error:
        raise ValueError(f"cannot be unpacked ({error})") from None
    if len(data) != size or not unpacker.eof:
        raise ValueError(f"does not have {what}")
    return data


def write(
    path: Path, reading: Reading, index: Index, bits: int, codes: Callable[[], Iterator[Any]]
) -> Header:
    """Write a table atomically. Each call of `codes` iterates over all codes in order, `BLOCK` at a time."""
    digest = hashlib.sha256()
    for block in codes():
        digest.update(packed(block, bits))
    entries = index.entries
    header = Header(
        reading.variant, index.attackers, index.defenders, entries, bits, reading.endless, digest.hexdigest()
    )
    data = header.as_json()
    head = MAGIC + _WORD.pack(len(data)) + data
    head += _WORD.pack(zlib.crc32(head))
    blocks = -(-entries // BLOCK)
    place = replaceable(path)
    draft = place.with_name(f"{place.name}.new")
    try:
        with draft.open("wb") as file:
            file.write(head)
            file.write(bytes(_PAIR.size * blocks + _WORD.size))
            listed = []
            for which, block in enumerate(codes()):
                data = compressed(packed(index.thinned(block, which * BLOCK), bits))
                file.write(data)
                listed.append(_PAIR.pack(len(data), zlib.crc32(data)))
            directory = b"".join(listed)
            file.seek(len(head))
            file.write(directory + _WORD.pack(zlib.crc32(directory)))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(place)
        durable.sync_folder(place.parent)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None
    return header


class Table:
    """An open table. With `held`, its bytes are in memory and it need not be closed. TableError if the file is not a
    table, OSError if it cannot be read, MemoryError if it is too large to be held."""

    def __init__(self, path: str | os.PathLike[str], *, held: bool = False) -> None:
        self.path = Path(path)
        self._file: IO[bytes] = open_regular(path)
        try:
            self._size = os.fstat(self._file.fileno()).st_size
            read, begin = read_head(self._file, MAGIC, "a table", self._wrong)
            self.header = self._parse(read)
            self._offsets, self._sums = self._read_directory(begin)
            if held:
                # Only now has the length of the file been checked.
                memory.demand((self._size >> 20) + 1)
                with self._file as file:
                    file.seek(0)
                    self._file = io.BytesIO(file.read(self._size))
        except BaseException:
            self._file.close()
            raise
        self._blocks: OrderedDict[int, Any] = OrderedDict()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def variant(self) -> Variant:
        """The rules of the table."""
        return self.header.variant

    @cached_property
    def index(self) -> Any:
        """The numbering of its positions."""
        header = self.header
        index = numbered(header.variant, header.attackers, header.defenders, self._wrong)
        if index.entries != header.entries:
            raise self._wrong(
                f"says {header.entries} entries, expected {index.entries} for these rules and men"
            )
        return index

    def value(self, position: Position) -> Value:
        """The value of a position; ValueError if it is not in the table.

        The history of the position is ignored: this is its value if no later position has occurred before.
        """
        if position.variant.hash != self.variant.hash:
            raise ValueError(
                f"{position.variant.name} has the rules hash {position.variant.hash[:16]}…, expected that of "
                f"{self.variant.name}, {self.variant.hash[:16]}…"
            )
        if position.outcome is not None:
            winner = position.outcome.winner
            return Value(winner, 0)
        number = self.index.number(position)
        value = self.decode(self.code(number))
        if value is None:
            raise self._wrong(f"says that entry {number} is over, which it is not")
        return value

    def decode(self, code: int) -> Value | None:
        """The value for a code; None for a board on which the game is over."""
        endless = self.header.endless
        if code == self.header.over:
            return None
        if code != UNFORCED:
            return Value(Side((code - 1) & 1), (code - 1) >> 1)
        if endless in ("draw", "open"):
            return Value(None, None, endless == "open")
        return Value(Side.ATTACKERS if endless == "attackers" else Side.DEFENDERS, None)

    def code(self, number: int) -> int:
        """The code of an entry."""
        number = self.index.canonical(number)
        which = number // BLOCK
        block = self._blocks.get(which)
        if block is None:
            block = self._blocks[which] = self.block(which)
            if len(self._blocks) > KEPT:
                self._blocks.popitem(last=False)
        return int(block[number % BLOCK])

    def check_sums(self) -> None:
        """Check all blocks; TableError if one is damaged."""
        for which in range(self.blocks):
            self._packed(which)

    def unpack(self, codes: Any) -> None:
        """Write all codes to an array, whose type may be wider; only those of canonical positions are meaningful."""
        for which in range(self.blocks):
            block = self.block(which)
            part = codes[which * BLOCK : which * BLOCK + len(block)]
            part[:] = block
            if part.itemsize > block.itemsize:
                part[block == self.header.over] = (1 << 8 * part.itemsize) - 1

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return len(self._sums)

    def block(self, which: int) -> Any:
        """The codes of a block; only those of canonical positions are meaningful."""
        data = self._packed(which)
        kind = _BITS[self.header.bits]
        codes = min(BLOCK, self.header.entries - which * BLOCK)
        size = codes * kind.itemsize
        try:
            data = unpacked(data, size, f"{codes} codes")
        except ValueError as error:
            raise self._wrong(f"block {which} of {self.blocks} {error}") from None
        return np.frombuffer(data, kind)

    def _packed(self, which: int) -> bytes:
        """The bytes of a block, checked against its checksum."""
        offset, end = self._offsets[which], self._offsets[which + 1]
        data = self._read(offset, end - offset)
        if zlib.crc32(data) != self._sums[which]:
            raise self._wrong(f"block {which} of {self.blocks} was changed: its checksum does not fit")
        return data

    def _wrong(self, what: str) -> TableError:
        return TableError(f"{self.path}: {what}")

    def _read(self, offset: int, length: int) -> bytes:
        self._file.seek(offset)
        data = self._file.read(length)
        if len(data) != length:
            raise self._wrong(f"ends after {offset + len(data)} bytes, expected {offset + length}")
        return data

    def _parse(self, read: dict[str, Any]) -> Header:
        claims = Claims(read, self._wrong)
        claims.number("format", FORMAT, FORMAT, f"{FORMAT} (`hnefi solve` makes the table anew)")
        variant = claims.variant()
        claims.number("block", BLOCK, BLOCK)
        endless = ENDLESS[variant.rules.repetition]
        claims.expect("endless", endless, lambda value: value == endless)
        men = f"a number up to {MOST_MEN}"
        return Header(
            variant,
            claims.number("attackers", 0, MOST_MEN, men),
            claims.number("defenders", 0, MOST_MEN, men),
            claims.number("entries", 1, BLOCK * MOST_BLOCKS, "a number of entries"),
            claims.expect("bits", "8 or 16", lambda value: type(value) is int and value in _BITS),
            endless,
            claims.digest(),
        )

    def _read_directory(self, begin: int) -> tuple[list[int], list[int]]:
        """The offsets of the blocks (and the end of the last), and their checksums."""
        blocks = -(-self.header.entries // BLOCK)
        length = blocks * _PAIR.size
        if begin + length + _WORD.size > self._size:
            raise self._wrong(f"ends after {self._size} bytes, in the list of its {blocks} blocks")
        directory = self._read(begin, length)
        (said,) = _WORD.unpack(self._read(begin + length, _WORD.size))
        if zlib.crc32(directory) != said:
            raise self._wrong("the list of blocks was changed: its checksum does not fit")
        pairs = np.frombuffer(directory, "<u4").reshape(-1, 2)
        ends = begin + length + _WORD.size + np.cumsum(pairs[:, 0], dtype=np.int64)
        if int(ends[-1]) != self._size:
            raise self._wrong(f"has {self._size} bytes, expected {int(ends[-1])}")
        return [begin + length + _WORD.size, *map(int, ends)], pairs[:, 1].tolist()
