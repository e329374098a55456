"""The table of a proof-number search as a file that outlives its process.

    8 bytes   TAFLPRUF
    u32       length of the header
    header    JSON: format, rules (the hash of the rules as they are searched), buckets
    u32       CRC-32 of all that
    zeros     up to `PAGE` bytes
    words     u64, two for each entry (`engine/solving/dfpn.py`)

The words are mapped into memory: a process that is killed leaves all entries that it has written, and an entry that was
half written is not found again. The contents of entries are not checked, so only continue files of your own.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hnefi.engine import durable
from hnefi.engine.regular import open_regular
from hnefi.engine.solving.dfpn import BYTES

from .build import reserve

if TYPE_CHECKING:
    from hnefi.engine.games.base_variant import AnyVariant

MAGIC = b"TAFLPRUF"
FORMAT = 1
PAGE = 4096
MOST_BUCKETS = 1 << 36
_WORD = struct.Struct("<I")


class ProofTableError(ValueError):
    """A file that is not a table for these rules; the message names the file and says what is wrong."""


def mapped(path: Path, played: AnyVariant, buckets: int | None) -> Any:
    """The words of the file, which is created with `buckets` buckets if it does not exist. ProofTableError if it is not
    a table for these rules; OSError if it cannot be opened or created."""
    if not path.exists():
        if buckets is None:
            raise FileNotFoundError(2, "no such file", str(path))
        _make(path, played, buckets)
    found = _buckets(path, played)
    if buckets is not None and buckets != found:
        raise ProofTableError(
            f"{path}: has {found * BYTES >> 20} MiB, expected {buckets * BYTES >> 20}; leave out --memory to continue "
            "it"
        )
    return np.memmap(path, np.uint64, "r+", PAGE, (found * BYTES // 8,))


def _head(played: AnyVariant, buckets: int) -> bytes:
    data = json.dumps({"format": FORMAT, "rules": played.hash, "buckets": buckets}).encode()
    head = MAGIC + _WORD.pack(len(data)) + data
    return head + _WORD.pack(zlib.crc32(head))


def _make(path: Path, played: AnyVariant, buckets: int) -> None:
    draft = path.with_name(f"{path.name}.new")
    try:
        reserve(draft, PAGE + buckets * BYTES)
        with draft.open("r+b") as file:
            file.write(_head(played, buckets))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        durable.sync_folder(path.absolute().parent)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None


def _buckets(path: Path, played: AnyVariant) -> int:
    """Check a file; returns its number of buckets."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        page = file.read(PAGE)
    start = len(MAGIC) + _WORD.size
    if page[: len(MAGIC)] != MAGIC:
        raise ProofTableError(f"{path}: not a proof table: expected a file that begins with {MAGIC.decode()}")
    length = int.from_bytes(page[len(MAGIC) : start], "little")
    end = start + length
    if end + _WORD.size > len(page):
        raise ProofTableError(f"{path}: its header is damaged")
    if _WORD.unpack(page[end : end + _WORD.size])[0] != zlib.crc32(page[:end]):
        raise ProofTableError(f"{path}: its header is damaged: wrong checksum")
    try:
        header = json.loads(page[start:end])
    except ValueError:
        header = None
    buckets = header.get("buckets") if isinstance(header, dict) else None
    if not isinstance(header, dict) or header.get("format") != FORMAT or type(buckets) is not int:
        raise ProofTableError(f"{path}: expected format {FORMAT} with a number of buckets")
    if not 0 < buckets <= MOST_BUCKETS or buckets & (buckets - 1) or size != PAGE + buckets * BYTES:
        raise ProofTableError(f"{path}: has {size} bytes, which does not match its {buckets} buckets")
    if header.get("rules") != played.hash:
        raise ProofTableError(
            f"{path}: has the rules {str(header.get('rules'))[:16]}…, expected {played.hash[:16]}…"
        )
    return buckets
