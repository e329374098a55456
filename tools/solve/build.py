"""Builds a table: retrograde analysis over all materials in threads, in a folder that outlives the process.

The folder `FILE.part` holds the words and marks of all positions in files that are mapped into memory, and the progress
of each range of numbers. A range's kernel does not depend on what happens in other ranges at the same time, and it can
be repeated. So a process that is killed loses at most the ranges it was working on, because mapped pages belong to the
operating system. Only if the system itself crashes may pages be lost; then only synced data counts, whole materials at
a time. Mapping also lets a table be larger than memory, at the speed of the disk.
"""

from __future__ import annotations

import errno
import json
import os
import queue
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hnefi.engine import durable
from hnefi.engine.about import VERSION
from hnefi.engine.games.tafl.position import new_state
from hnefi.engine.solving import retrograde
from hnefi.engine.solving.index import Index, Material
from hnefi.engine.solving.readings import Reading
from hnefi.engine.solving.table import BLOCK, Header, Table, bits_for, write

from ..common import interrupts
from ..common.workers import in_threads

RANGE = 1 << 16
"""Numbers that one call of a kernel works on: a fraction of a second."""
BYTES = 3
"""Bytes per number while solving: a word of two bytes and a mark."""
BEGUN = 1
"""The first phase of a range; level `n` has phases `2 n` (take back moves) and `2 n + 1` (judge marked positions)."""
_RANGE = np.dtype([("phase", "i4"), ("found", "i8"), ("latest", "i8")])
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class BuildError(RuntimeError):
    """The contents of the folder do not match, or a result contradicts the rules; the message is a sentence."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a table: the material, its level, and roughly the share of all work that is done."""

    material: Material
    level: int
    share: float


class Builder:
    """Builds one table. `on_progress` is called after every range."""

    def __init__(
        self,
        reading: Reading,
        men: tuple[int, int],
        path: Path,
        *,
        threads: int = 1,
        on_progress: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        self.reading = reading
        self.index = Index(reading.played, *men)
        self.path = path
        self.folder = folder_of(path)
        self._threads = threads
        self._on_progress = on_progress
        self._records = queue.SimpleQueue[Any]()
        for _ in range(threads):
            self._records.put(new_state(reading.played, "tTK"))
        self._finished = 0

    def run(self) -> Header:
        """Build the table, or continue building it; interrupts.Interrupted after an interrupt."""
        with self._alone():
            return self._run()

    def _run(self) -> Header:
        if self.path.exists():
            # Written by a process that ended before it had removed the folder.
            self._old_plan(self.folder / "plan.json")
            with Table(self.path) as table:
                header = table.header
            shutil.rmtree(self.folder)
            return header
        self._open()
        materials = self.index.materials
        for number, material in enumerate(materials):
            if number >= self._finished:
                self._solve(number, material)
                self._finish(number + 1)
        header = self._write()
        self._close()
        shutil.rmtree(self.folder)
        return header

    # The folder

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Lock the folder for one process, if the system has such locks; BuildError for a second process.

        Two processes would delete each other's files. An empty folder is removed at the end.
        """
        durable.make_folder(self.folder)
        descriptor: int | None = None
        try:
            with suppress(ImportError):
                import fcntl

                descriptor = os.open(self.folder, os.O_RDONLY)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise BuildError(f"{self.folder}: another process is working on this table") from None
            yield
        finally:
            with suppress(OSError):
                self.folder.rmdir()
            if descriptor is not None:
                os.close(descriptor)

    def _plan(self, finished: int) -> dict[str, Any]:
        return {
            "program": VERSION,
            "rules": self.reading.variant.hash,
            "men": [self.index.attackers, self.index.defenders],
            "entries": self.index.entries,
            "finished": finished,
            "boot": boot(),
        }

    def _open(self) -> None:
        """Map the files, created now or left by an earlier process."""
        plan = self.folder / "plan.json"
        entries = self.index.entries
        old = self._old_plan(plan)
        if old is None:
            for left in self.folder.iterdir():
                left.unlink()
            # Before listing the ranges: those of a table too large for any disk would fill the memory.
            self._expect_room(BYTES * entries)
        self._ranges = [
            [(at, min(at + RANGE, m.end)) for at in range(m.first, m.end, RANGE)]
            for m in self.index.materials
        ]
        count = sum(map(len, self._ranges))
        sizes = {"words": 2 * entries, "marks": entries, "ranges": count * _RANGE.itemsize}
        if old is None:
            for name, size in sizes.items():
                reserve(self.folder / name, size)
            durable.put(plan, json.dumps(self._plan(0)).encode())
        elif any((self.folder / name).stat().st_size != size for name, size in sizes.items()):
            raise BuildError(
                f"{self.folder}: its files do not have the expected sizes; remove the folder to start over"
            )
        try:
            self._words = np.memmap(self.folder / "words", np.uint16, "r+")
            self._marks = np.memmap(self.folder / "marks", np.uint8, "r+")
            self._state = np.memmap(self.folder / "ranges", _RANGE, "r+")
        except OSError as error:
            if error.errno != errno.ENOMEM:
                raise
            raise MemoryError(
                f"{BYTES * entries >> 20} MiB of address space needed, more than this process may have"
            ) from None
        self._finished = int(old["finished"]) if old else 0
        if old and (old["boot"] is None or old["boot"] != boot()):
            self._forget_unsynced()

    def _expect_room(self, size: int) -> None:
        """OSError unless `size` bytes are free on the disk."""
        free = shutil.disk_usage(self.path.parent).free
        if size > free:
            need = f"{size >> 20} MiB needed, {free >> 20} MiB free on this disk"
            raise OSError(errno.ENOSPC, need, str(self.path))

    def _old_plan(self, plan: Path) -> dict[str, Any] | None:
        """The plan of the unfinished table; BuildError if the folder has a different table."""
        try:
            old = json.loads(plan.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError:
            old = None
        expected = self._plan(0)
        keys = ("program", "rules", "men", "entries")
        if not isinstance(old, dict) or any(old.get(key) != expected[key] for key in keys):
            raise BuildError(
                f"{self.folder}: contains another unfinished table; remove the folder to start over"
            )
        finished = old.get("finished")
        if type(finished) is not int or not 0 <= finished <= len(self.index.materials) or "boot" not in old:
            raise BuildError(
                f"{plan}: finished: expected a number of materials; remove the folder to start over"
            )
        return old

    def _forget_unsynced(self) -> None:
        """Drop everything but finished materials: the system has crashed since, and only these were synced."""
        materials = self.index.materials
        first = materials[self._finished].first if self._finished < len(materials) else self.index.entries
        self._words[first:] = 0
        self._marks[first:] = 0
        self._state[sum(map(len, self._ranges[: self._finished])) :] = (0, 0, 0)
        self._sync(self._finished)

    def _finish(self, finished: int) -> None:
        self._finished = finished
        self._sync(finished)

    def _sync(self, finished: int) -> None:
        for mapped in (self._words, self._marks, self._state):
            mapped.flush()
        durable.put(self.folder / "plan.json", json.dumps(self._plan(finished)).encode())

    def _close(self) -> None:
        del self._words, self._marks, self._state

    # The work

    def _solve(self, number: int, material: Material) -> None:
        """Solve every position of one material; materials with fewer men are finished."""
        before = sum(map(len, self._ranges[:number]))
        ranges = list(enumerate(self._ranges[number], before))
        state = self._state[before : before + len(ranges)]
        men = (material.attackers, material.defenders)
        ix, words, marks = self.index.record, self._words, self._marks

        def begin(s: Any, at: tuple[int, int], report: Any) -> None:
            retrograde.begin(s, ix, words, *men, *at, report)

        def step(n: int, s: Any, at: tuple[int, int], report: Any) -> None:
            retrograde.step(s, ix, words, marks, *men, *at, n, report)

        def judge(n: int, s: Any, at: tuple[int, int], _: Any) -> None:
            retrograde.judge(s, ix, words, marks, *men, *at, n)

        self._phase(BEGUN, ranges, begin, lambda done: Progress(material, 0, self._share(number, done / 2)))
        most = 1
        # Findings count for one level only, so continue with the phase that all ranges have reached.
        level = (int(state["phase"].min()) + 1) // 2
        while True:
            found = int(state["found"].sum()) if level > 1 else 0
            most = max(most, found)
            share = self._share(number, 1 - found / most / 2 if level > 2 else 0.5)
            shown = partial(_always, Progress(material, level, share))
            self._phase(2 * level, ranges, partial(step, level), shown)
            if not state["found"].sum() and level > state["latest"].max():
                return
            if level == retrograde.LEVEL:
                raise BuildError(f"a win takes more than {level} plies, which is more than a table can store")
            self._phase(2 * level + 1, ranges, partial(judge, level), shown)
            level += 1

    def _share(self, number: int, of_this: float) -> float:
        materials = self.index.materials
        return (materials[number].first + of_this * materials[number].positions) / self.index.entries

    def _phase(
        self,
        phase: int,
        ranges: list[tuple[int, tuple[int, int]]],
        work: Callable[[Any, tuple[int, int], Any], None],
        shown: Callable[[float], Progress],
    ) -> None:
        """Advance every range to this phase."""
        left = [(which, at) for which, at in ranges if self._state[which]["phase"] < phase]
        done = len(ranges) - len(left)
        if not left:
            return
        jobs = [partial(self._one, phase, which, at, work) for which, at in left]
        if self._threads == 1 or len(jobs) == 1:
            for job in jobs:
                interrupts.check()
                job()
                done += 1
                self._on_progress(shown(done / len(ranges)))
        else:
            for _ in in_threads(jobs, self._threads):
                done += 1
                self._on_progress(shown(done / len(ranges)))
                interrupts.check()

    def _one(self, phase: int, which: int, at: tuple[int, int], work: Callable[..., None]) -> None:
        record = self._records.get()
        try:
            report = new_report()
            work(record[0], at, report)
        finally:
            self._records.put(record)
        mine = self._state[which]
        if phase == BEGUN:
            mine["latest"] = report["latest"]
        elif phase % 2 == 0:
            mine["found"] = report["found"]
        # Last, so that a range counts as done only after everything is written.
        mine["phase"] = phase

    # The table

    def _write(self) -> Header:
        words = self._words
        longest = 0
        for part in _parts(words):
            plies = part[part & retrograde.DECIDED != 0] & retrograde.PLIES
            longest = max(longest, int(plies.max(initial=0)))
        bits = bits_for(longest)

        def codes() -> Iterator[Any]:
            for part in _parts(words):
                interrupts.check()
                yield encode(part, bits)

        return write(self.path, self.reading, self.index, bits, codes)


def folder_of(path: Path) -> Path:
    """The folder of a table that is being built."""
    return path.with_name(f"{path.name}.part")


def is_finished(path: Path) -> bool:
    """Whether a table is there and whoever built it has removed its folder, too."""
    return path.exists() and not folder_of(path).exists()


def _always(progress: Progress, _: float) -> Progress:
    """The same progress, however many ranges are done."""
    return progress


def new_report() -> Any:
    """An empty report for a kernel."""
    return np.zeros(1, retrograde.REPORT).view(np.recarray)[0]


def _parts(words: Any) -> Iterator[Any]:
    for at in range(0, len(words), BLOCK):
        yield np.asarray(words[at : at + BLOCK])


def encode(words: Any, bits: int) -> Any:
    """Turn words into the codes of a table."""
    wide = words.astype(np.uint32)
    plies = wide & retrograde.PLIES
    codes = 1 + 2 * plies + ((wide >> retrograde.WON_BY) & 1)
    codes[wide & retrograde.DECIDED == 0] = 0
    codes[wide == retrograde.OVER] = (1 << bits) - 1
    return codes


def decode(codes: Any, bits: int) -> Any:
    """Turn codes into words; 0 if nobody can force a win."""
    wide = codes.astype(np.uint32)
    words = retrograde.DECIDED | ((wide - 1) & 1) << retrograde.WON_BY | ((wide - 1) >> 1)
    words[wide == 0] = 0
    words[wide == (1 << bits) - 1] = retrograde.OVER
    return words.astype(np.uint16)


def load(table: Table, on_progress: Callable[[float], None] = lambda _: None) -> Any:
    """All words of a table; TableError if a block has been changed."""
    words = np.zeros(table.header.entries, np.uint16)
    for which in range(table.blocks):
        interrupts.check()
        at = which * BLOCK
        words[at : at + BLOCK] = decode(table.block(which), table.header.bits)
        on_progress((which + 1) / table.blocks)
    table.index.restore(words)
    return words


def boot() -> str | None:
    """An identifier of the current boot of the system; None if unknown."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return None


def reserve(path: Path, size: int) -> None:
    """Create a file of zeros with all blocks allocated: a mapped file that outgrew the disk would kill the process."""
    try:
        with path.open("wb") as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                zeros = bytes(1 << 20)
                for at in range(0, size, len(zeros)):
                    file.write(zeros[: size - at])
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


class Clock:
    """Estimates how long the rest takes from the progress so far."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun: tuple[float, float] | None = None

    def left(self, share: float) -> float | None:
        """Seconds left; None while unknown."""
        now = self._clock()
        if self._begun is None:
            self._begun = now, share
            return None
        begun, first = self._begun
        return (now - begun) * (1 - share) / (share - first) if share > first else None
