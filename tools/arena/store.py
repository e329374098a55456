"""A run's folder: what was played, safe from everything but a lost disk.

Two files that only grow hold the truth. `games.jsonl` has one JSON object per game with everything about it;
`log.jsonl` has one short line per game with what counting needs, a checksum, and where its object and all exports end.
A game is played when its line is in the log: the object is written and synced first, so that one line is one
transaction, and whatever lies beyond the last whole line is cut off when the run is opened next. There is no other
state that could disagree: counts are recomputed from the log, 100,000 lines of it in a second or two.

Why not a database: these files can be read, copied and repaired with any tool, a torn tail is detected and
reported, and appending needs no more than the operating system's promise about `fsync`.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

from hnefi.engine import durable
from hnefi.engine.regular import replaceable
from hnefi.engine.wording import shorten

from ..common.pairs import Winner
from .values import GameResult, from_json, image, to_json

FORMAT = 1
LOG = "log.jsonl"
GAMES = "games.jsonl"
LOCK = "lock"
CONFIG = "config.toml"
FINGERPRINT = "fingerprint.json"
OPENINGS = "openings.jsonl"


class StoreError(Exception):
    """Raised if a run's folder cannot be used; the message names the folder or file, and what was expected."""


class StoreBusy(StoreError):
    """Another arena is writing to the folder; the message says which."""


class StorageFailed(StoreError):
    """A write failed; only what the log holds counts."""


@dataclass(frozen=True, slots=True)
class Row:
    """What counting needs to know about a stored game; `engines` are the indices of attackers and defenders.

    `fault` is the side and the reason of an engine's fault; `digest` is SHA-256 over id, opening, moves, winner and
    reason; `key` is equal for games that are images of each other; `offset`, `length` and `check` say where the
    whole game is.
    """

    pair: int
    game: Literal[1, 2]
    variant: str
    engines: tuple[int, int]
    winner: Winner | None
    reason: str
    captured: tuple[int, int]
    plies: int
    fault: tuple[int, str] | None
    digest: bytes
    key: str
    seconds: float
    lateness: float
    offset: int = 0
    length: int = 0
    check: int = 0

    @property
    def id(self) -> str:
        """The name of the game in its run, as `GameTask.id`."""
        return f"{self.pair}.{self.game}"


@dataclass(frozen=True, slots=True)
class Export:
    """A file that follows the log: `render` gives the bytes that one game adds to it."""

    name: str
    path: Path
    render: Callable[[GameResult], bytes]


def summarize(result: GameResult) -> Row:
    """The row for a result that is not stored yet."""
    fault = result.fault
    return Row(
        result.task.pair,
        result.task.game,
        result.task.variant,
        result.task.engines,
        result.winner,
        result.reason,
        result.captured,
        len(result.plies),
        None if fault is None else (fault.side, fault.reason),
        game_digest(result),
        image(result),
        round(result.seconds, 3),
        round(result.lateness, 3),
    )


def game_digest(result: GameResult) -> bytes:
    """SHA-256 of what a game is: id, opening, moves, winner and reason; no times, hosts or dates."""
    moves = " ".join(ply.move for ply in result.plies)
    text = "\n".join((result.task.id, result.task.opening.text, moves, result.winner or "", result.reason))
    return hashlib.sha256(text.encode()).digest()


def run_digest(rows: Iterable[Row]) -> str:
    """The result digest: SHA-256 over the games' digests in the order of their ids."""
    digest = hashlib.sha256()
    for row in sorted(rows, key=lambda row: (row.pair, row.game)):
        digest.update(row.digest)
    return digest.hexdigest()


# Lines of the log: a checksum in eight hex digits, a blank, a JSON list


def _seal(entry: list[Any]) -> bytes:
    text = json.dumps(entry, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _unseal(line: bytes) -> list[Any] | None:
    """The entry of a line without its end; None if it is not whole."""
    text = line[9:]
    try:
        if line[8:9] != b" " or int(line[:8], 16) != zlib.crc32(text):
            return None
        entry = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, list) and entry else None


def _game_entry(row: Row, ends: Mapping[str, int]) -> list[Any]:
    return [
        "game", row.pair, row.game, row.variant, row.engines, row.winner, row.reason, row.captured, row.plies,
        row.fault, row.digest.hex(), row.key, row.seconds, row.lateness, row.offset, row.length, row.check, ends,
    ]  # fmt: skip


def _row(entry: list[Any], words: dict[str, str]) -> Row:
    _, pair, game, variant, engines, winner, reason, captured, plies, fault, digest, *rest = entry
    key, seconds, lateness, offset, length, check, _ = rest
    return Row(
        pair,
        game,
        # A hundred thousand rows share the same few words.
        words.setdefault(variant, variant),
        (engines[0], engines[1]),
        winner,
        words.setdefault(reason, reason),
        (captured[0], captured[1]),
        plies,
        None if fault is None else (fault[0], fault[1]),
        bytes.fromhex(digest),
        key,
        seconds,
        lateness,
        offset,
        length,
        check,
    )


class Store:
    """An open run. Make one with `create` or `resume`; `read` opens it for looking only.

    `rows` are the stored games by pair and game; `notes` what else the log says, as (word, data); `repairs` are
    sentences about what had to be cut off or written again. What is cut off is kept in a file beside.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.exports: tuple[Export, ...] = ()
        self.sync: Callable[[int], None] = os.fsync
        """Writes a file through to the disk; replaced only to see what that costs."""
        self.rows: dict[tuple[int, int], Row] = {}
        self.notes: list[tuple[str, Any]] = []
        self.repairs: list[str] = []
        self._ends: dict[str, int] = {GAMES: 0}
        self._log_end = 0
        self._files: dict[str, int] = {}
        self._lock: int | None = None
        self._broken = False

    # Opening

    @classmethod
    def create(cls, folder: Path, files: Mapping[str, str]) -> Store:
        """A new run with its `files` (name: text), all of it or nothing; StoreError if there is such a folder."""
        if folder.exists():
            raise StoreError(f"{folder}: exists: expected a new folder (hnefi arena resume continues a run)")
        made = folder.with_name(f"{folder.name}.new-{os.getpid()}")
        try:
            durable.make_folder(made)
            for name, text in {**files, LOG: "", GAMES: ""}.items():
                write_file(made / name, text)
            made.rename(folder)
            durable.sync_folder(folder.parent)
        except OSError as error:
            shutil.rmtree(made, ignore_errors=True)
            raise StorageFailed(
                f"{folder}: {error.strerror or error}: expected a folder to write into"
            ) from None
        return cls.resume(folder)

    @classmethod
    def resume(cls, folder: Path) -> Store:
        """An existing run, locked, with torn tails cut off. Games that never began are forgotten: they are tried
        again."""
        _expect_run(folder)
        store = cls(folder)
        try:
            store._take_lock()
            store._load()
            store._cut(folder / LOG, store._log_end)
            store._cut(folder / GAMES, store._ends[GAMES])
            store._open(LOG, folder / LOG)
            store._open(GAMES, folder / GAMES)
        except OSError as error:
            store.close()
            raise StorageFailed(f"{error.filename or folder}: {error.strerror or error}") from None
        except BaseException:
            store.close()
            raise
        store.rows = {place: row for place, row in store.rows.items() if row.winner is not None}
        return store

    def follow(self, exports: Sequence[Export]) -> None:
        """Make these files follow the log from now on; first they are brought up to date. StorageFailed otherwise."""
        self.exports = tuple(exports)
        try:
            for export in exports:
                self._mend(export)
                self._open(export.name, export.path)
        except OSError as error:
            raise StorageFailed(f"{error.filename or self.folder}: {error.strerror or error}") from None

    @classmethod
    def read(cls, folder: Path) -> Store:
        """A run opened for reading, even while another process plays it; nothing is changed."""
        _expect_run(folder)
        store = cls(folder)
        try:
            store._load()
        except OSError as error:
            raise StoreError(f"{folder}: {error.strerror or error}: expected a readable run") from None
        return store

    def _take_lock(self) -> None:
        path = self.folder / LOCK
        self._lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            _lock(self._lock)
        except OSError:
            holder = os.read(self._lock, 1000).decode("utf-8", "replace").strip() or "another arena"
            raise StoreBusy(
                f"{self.folder}: in use by {holder}: expected a run that is not being played"
            ) from None
        os.ftruncate(self._lock, 0)
        host = os.uname().nodename if hasattr(os, "uname") else "this machine"
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        os.write(self._lock, f"process {os.getpid()} on {host} since {since}\n".encode())

    def _load(self) -> None:
        data = (self.folder / LOG).read_bytes()
        stored = (self.folder / GAMES).stat().st_size
        words: dict[str, str] = {}
        end = 0
        for number, line in enumerate(data.split(b"\n")[:-1], 1):
            entry = _unseal(line)
            if entry is None:
                self._expect_tail(data, end, number)
                break
            if entry[0] == "game":
                row = _row(entry, words)
                known = self.rows.get((row.pair, row.game))
                if known is not None and (known.winner is not None or known == row):
                    # Neither the game nor its ends are taken: they may be those of long ago.
                    self.repairs.append(f"{LOG}:{number}: game {row.id} again: not counted")
                elif row.offset < self._ends[GAMES]:
                    raise StoreError(
                        f"{self.folder / LOG}:{number}: damaged: game {row.id} begins at byte {row.offset} of {GAMES},"
                        f" the one before it ends at {self._ends[GAMES]}: expected games one after the other"
                    )
                elif row.offset + row.length > stored:
                    self._expect_whole_games()
                    self.repairs.append(
                        f"{GAMES} ends within game {row.id}: cut off with all that came later"
                    )
                    break
                else:
                    self.rows[row.pair, row.game] = row
                    self._ends = {**self._ends, **entry[-1], GAMES: row.offset + row.length}
            else:
                self.notes.append((entry[1], entry[2]))
            end += len(line) + 1
        torn = len(data) - end
        if torn:
            self.repairs.append(f"{LOG}: {torn} bytes of a record that was not finished: cut off")
        if stored > self._ends[GAMES]:
            # Only what came after whole games is the tail that a crash leaves.
            self._expect_whole_games()
            self.repairs.append(
                f"{GAMES}: {stored - self._ends[GAMES]} bytes of a game that was not stored: cut off"
            )
        self._log_end = end

    def _expect_whole_games(self) -> None:
        with (self.folder / GAMES).open("rb") as stream:
            for row in self._stored():
                stream.seek(row.offset)
                if zlib.crc32(stream.read(row.length)) != row.check:
                    raise StoreError(
                        f"{self.folder / GAMES}: damaged: at byte {row.offset} it does not have game {row.id} as it was"
                        f" written: expected every game once, in the order of {LOG}. Nothing was changed"
                    )

    def _expect_tail(self, data: bytes, end: int, number: int) -> None:
        """Only what was written last can be torn; a hole with whole lines behind it is damage."""
        if any(_unseal(line) is not None for line in data[end:].split(b"\n")[1:]):
            raise StoreError(f"{self.folder / LOG}:{number}: damaged: expected a line as it was written")

    def _mend(self, export: Export) -> None:
        """Cut off what the log lacks, and rewrite what the file lacks."""
        end = self._ends.setdefault(export.name, 0)
        size = export.path.stat().st_size if export.path.exists() else -1
        place = within(self.folder, export.path)
        if size > 0 and not self._wrote(export.name, place):
            raise StoreError(
                f"{export.path}: exists, and is not of this run: expected a new file for {export.name}"
            )
        self.note("export", [export.name, place])
        if size > end:
            self.repairs.append(f"{export.path}: {size - end} bytes too many: cut off")
            self._cut(export.path, end)
        elif size < end or (self.rows and end == 0):
            if size < end and end:
                self.repairs.append(f"{export.path}: incomplete: written again")
            self._ends[export.name] = self.rebuild(export)

    def _wrote(self, name: str, place: str) -> bool:
        """Whether the log says that the file at `place` is ours. Old runs recorded where it lay when they began, which
        is another place when the whole folder was moved, or is reached by another path."""
        noted = [data[1] for word, data in self.notes if word == "export" and data[0] == name]
        return place in noted or (
            not Path(place).is_absolute()
            and any(Path(old).is_absolute() and Path(old).name == place for old in noted)
        )

    def _cut(self, path: Path, end: int) -> None:
        """Truncate a file to `end` bytes; the rest is first saved beside it."""
        if path.stat().st_size <= end:
            return
        kept = _unused(path)
        with path.open("r+b") as stream:
            stream.seek(end)
            with kept.open("xb") as copy:
                shutil.copyfileobj(stream, copy)
                copy.flush()
                os.fsync(copy.fileno())
            durable.sync_folder(path.parent)
            stream.truncate(end)
            os.fsync(stream.fileno())
        self.repairs.append(f"{path.name}: what was cut off is in {kept.name}")

    def _open(self, name: str, path: Path) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._files[name] = os.open(path, flags, 0o644)

    # Writing

    def append(self, results: Sequence[GameResult]) -> list[Row]:
        """Store finished games, each in one transaction; the rows of those that were not stored before.

        Raises StorageFailed, and then nothing of them counts.
        """
        fresh: list[Row] = []
        begun = dict(self._ends)
        try:
            games, lines, exported = self._prepare(results, fresh)
            if not fresh:
                return []
            self._write(GAMES, games)
            self.sync(self._files[GAMES])
            for name, data in exported.items():
                self._write(name, data)
            self._write(LOG, lines)
            self.sync(self._files[LOG])
        except OSError as error:
            self._ends = begun
            self._retreat()
            raise StorageFailed(
                f"{self.folder}: {error.strerror or error}: {len(results)} games not stored"
            ) from None
        self._log_end += len(lines)
        self.rows |= {(row.pair, row.game): row for row in fresh}
        return fresh

    def _prepare(
        self, results: Sequence[GameResult], fresh: list[Row]
    ) -> tuple[bytes, bytes, dict[str, bytes]]:
        games: list[bytes] = []
        lines: list[bytes] = []
        exported: dict[str, list[bytes]] = {export.name: [] for export in self.exports}
        known: set[tuple[int, int]] = set()
        for result in results:
            place = (result.task.pair, result.task.game)
            stored = self.rows.get(place)
            if place in known or (
                stored is not None and (stored.winner is not None or result.winner is None)
            ):
                continue
            known.add(place)
            data = json.dumps(to_json(result), separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
            row = replace(
                summarize(result), offset=self._ends[GAMES], length=len(data), check=zlib.crc32(data)
            )
            games.append(data)
            self._ends[GAMES] += len(data)
            for export in self.exports if result.counts else ():
                text = export.render(result)
                exported[export.name].append(text)
                self._ends[export.name] += len(text)
            ends = {name: end for name, end in self._ends.items() if name != GAMES}
            lines.append(_seal(_game_entry(row, ends)))
            fresh.append(row)
        return b"".join(games), b"".join(lines), {name: b"".join(parts) for name, parts in exported.items()}

    def note(self, word: str, data: Any) -> None:
        """Add an entry that is not a game to the log, once; StorageFailed if it cannot be written."""
        if (word, data) in self.notes:
            return
        line = _seal(["note", word, data])
        try:
            self._write(LOG, line)
            os.fsync(self._files[LOG])
        except OSError as error:
            self._retreat()
            raise StorageFailed(f"{self.folder}: {error.strerror or error}") from None
        self._log_end += len(line)
        self.notes.append((word, data))

    def _write(self, name: str, data: bytes) -> None:
        if self._broken:
            raise OSError(5, "an earlier write failed")
        view = memoryview(data)
        while view:
            view = view[os.write(self._files[name], view) :]
        if not os.fstat(self._files[name]).st_nlink:
            # The system goes on writing to a file without a name, and all of it would be lost.
            raise FileNotFoundError(errno.ENOENT, f"{name} was removed during the run")

    def _retreat(self) -> None:
        """After a failed write: back to the last whole transaction, as far as the disk allows."""
        self._broken = True
        ends = {**self._ends, LOG: self._log_end}
        for name, descriptor in self._files.items():
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, ends[name])

    # Reading

    def result(self, row: Row) -> GameResult:
        """The whole game of a row; StoreError if it is damaged."""
        with (self.folder / GAMES).open("rb") as stream:
            return self._result(row, stream)

    def results(self, rows: Iterable[Row] | None = None) -> Iterator[GameResult]:
        """Whole games, in the order in which they were stored unless `rows` are given."""
        with (self.folder / GAMES).open("rb") as stream:
            for row in self._stored() if rows is None else rows:
                yield self._result(row, stream)

    def _stored(self) -> list[Row]:
        return sorted(self.rows.values(), key=lambda row: row.offset)

    def _result(self, row: Row, stream: Any) -> GameResult:
        stream.seek(row.offset)
        data = stream.read(row.length)
        if zlib.crc32(data) != row.check:
            raise StoreError(
                f"{self.folder / GAMES}: game {row.id} is damaged: expected it as it was written"
            )
        return from_json(json.loads(data))

    def rebuild(self, export: Export) -> int:
        """Write an export again from the log; its length in bytes."""
        length = 0
        place = replaceable(export.path)
        made = place.with_name(f"{place.name}.new-{os.getpid()}")
        try:
            with made.open("wb") as stream:
                for result in self.results():
                    if result.counts:
                        length += stream.write(export.render(result))
                stream.flush()
                os.fsync(stream.fileno())
            made.replace(place)
        except (OSError, StoreError) as error:
            with contextlib.suppress(OSError):
                made.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise OSError(error.errno, error.strerror, str(export.path)) from None
            raise
        durable.sync_folder(place.parent)
        return length

    def text(self, name: str) -> str:
        """One of the run's own small files; StoreError if it cannot be read."""
        try:
            return (self.folder / name).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise StoreError(f"{self.folder / name}: {error}: expected a file of a run") from None

    def close(self) -> None:
        """Close all files and release the lock."""
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files.clear()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _expect_run(folder: Path) -> None:
    for name in (LOG, GAMES, CONFIG):
        if not (folder / name).is_file():
            raise StoreError(f"{shorten(str(folder))}: expected the folder of a run, with {name}")


def _lock(descriptor: int) -> None:
    try:
        import fcntl
    except ImportError:
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def write_file(path: Path, text: str) -> None:
    """Replace a file by `text` in one step that survives a crash; OSError if that fails."""
    durable.put(path, text.encode(), draft=path.with_name(f"{path.name}.new-{os.getpid()}"))


def _unused(path: Path) -> Path:
    """An unused name beside `path`, for what is cut off."""
    number = 1
    while (kept := path.with_name(f"{path.name}.cut-{number}")).exists():
        number += 1
    return kept


def within(folder: Path, path: Path) -> str:
    """The recorded name of a run's file: relative to the run's folder if it lies there, so that the folder can be
    moved and reached by any path."""
    try:
        return str((path.parent.resolve() / path.name).relative_to(folder.resolve()))
    except ValueError:
        return str(path)


def differences(stored: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Where two fingerprints disagree, a sentence for each item."""
    return [
        f"{item}: was {shorten(stored.get(item, 'not there'))}, is {shorten(now.get(item, 'not there'))}"
        for item in {**stored, **now}
        if stored.get(item) != now.get(item)
    ]
