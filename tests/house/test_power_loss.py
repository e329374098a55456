"""The power fails while a command runs: what it said it had stored is on the disk, and the same command continues.
And a disk that takes no more, for whatever reason: a clear end, and the same command continues when there is room.

A file system keeps in memory what nobody synced: contents of files, and names in folders. `Disk` looks on while a
command runs, and keeps what each sync has made sure of. Each such moment is a disk on which the command can be found
again. `torn` ones have some more: of what was not synced, the beginning, and zeros.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest
from crash_commands import COMMANDS, words_of

from hnefi.engine.records.record import GameRecord
from hnefi.protocol.hosts.journal import Journal, JournalError, read
from hnefi.tools.cli import main

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds files by /proc")

REASONS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
TRIED = int(os.environ.get("HNEFI_KILLS", "2"))


@dataclass
class Disk:
    """What of `folder` would be there after a power failure: contents by inode, names by folder's inode."""

    folder: Path
    contents: dict[int, bytes] = field(default_factory=dict)
    names: dict[int, dict[str, int]] = field(default_factory=dict)
    folders: set[int] = field(default_factory=set)
    moments: list[tuple[dict[int, bytes], dict[int, dict[str, int]], dict[int, bytes]]] = field(
        default_factory=list
    )
    held: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.root = self._know(self.folder)

    def _know(self, path: Path) -> int:
        """The inode at a path, which is held open, so that no other file gets its number."""
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        self.held.append(descriptor)
        about = os.fstat(descriptor)
        if stat.S_ISDIR(about.st_mode):
            self.folders.add(about.st_ino)
        return about.st_ino

    def synced(self, descriptor: int) -> None:
        """A file or a folder was synced; another thread may take others away meanwhile."""
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if not path.is_relative_to(self.folder):
            return
        number = os.fstat(descriptor).st_ino
        if path.is_dir():
            self.names[number] = {}
            for entry in path.iterdir():
                with contextlib.suppress(FileNotFoundError):
                    self.names[number][entry.name] = self._know(entry)
        else:
            self._know(path)
            self.contents[number] = path.read_bytes()
        self.moments.append((dict(self.contents), dict(self.names), self._now()))

    def _now(self) -> dict[int, bytes]:
        """All contents as they are."""
        found = {}
        for entry in self.folder.rglob("*"):
            with contextlib.suppress(FileNotFoundError, IsADirectoryError):
                found[entry.stat().st_ino] = entry.read_bytes()
        return found

    def restore(self, moment: int, to: Path, dice: random.Random | None = None) -> None:
        """Make the disk of a moment; with `dice` a torn one."""
        contents, names, now = self.moments[moment]

        def fill(inode: int, folder: Path) -> None:
            folder.mkdir(exist_ok=True)
            for name, child in names.get(inode, {}).items():
                if child in self.folders:
                    fill(child, folder / name)
                    continue
                data = contents.get(child, b"")
                more = now.get(child, b"")
                if dice is not None and more.startswith(data):
                    # Pages reach the disk as they like; a longer file may have been zeros until then.
                    end = dice.randint(len(data), len(more))
                    data = more[:end] + b"\0" * dice.choice([0, len(more) - end])
                (folder / name).write_bytes(data)

        fill(self.root, to)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    found = Disk(folder)
    really = os.fsync

    def fsync(descriptor: int) -> None:
        really(descriptor)
        found.synced(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    yield found
    for descriptor in found.held:
        os.close(descriptor)


NAMES = ("arena", "ladder", "balance", "evolve, one", "experiments", "tune", "analyze")


def run(name: str, where: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """A command in this process, in a folder, to its end; what came of it."""
    command = COMMANDS[name]
    command.prepare(where)
    monkeypatch.chdir(where)
    # Workers are other processes, whose syncs nobody here would see.
    words = " ".join(words_of(command, where)).replace("--jobs 2", "--jobs 1")
    assert main(words.split()) == 0
    return command.same(where)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], object]:
    """What comes of a command that nothing goes wrong with; found out once."""

    @cache
    def found(name: str) -> object:
        with pytest.MonkeyPatch.context() as patch:
            return run(name, tmp_path_factory.mktemp("whole"), patch)

    return found


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_what_was_stored_is_there_and_the_command_goes_on(
    name: str, disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    COMMANDS[name].prepare(disk.folder)
    for path in (disk.folder, *disk.folder.rglob("*")):
        # What was there before the command began is safe.
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
    disk.moments.clear()
    expected = run(name, disk.folder, monkeypatch)
    dice, last = random.Random(f"power {name}"), len(disk.moments) - 1
    if (disk.folder / "run").exists():
        disk.restore(last, tmp_path / "last")
        assert COMMANDS[name].same(tmp_path / "last") == expected
    for number, moment in enumerate(dice.sample(range(last), min(last, TRIED))):
        where = tmp_path / str(moment)
        disk.restore(moment, where, dice if number % 2 else None)
        assert run(name, where, monkeypatch) == expected, moment


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param(name, reason, id=f"{name}-{errno.errorcode[reason]}")
        for at, name in enumerate(NAMES)
        # One for each, all of them by the thorough way.
        for reason in (REASONS if TRIED > 2 else REASONS[at % len(REASONS) :][:1])
    ],
)
def test_a_disk_that_takes_no_more_ends_it_clearly(
    name: str,
    reason: int,
    tmp_path: Path,
    whole: Callable[[str], object],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A quota and the like cannot be had on every machine: every write from one of the first on fails."""
    COMMANDS[name].prepare(tmp_path)
    left = random.Random(f"{name} {reason}").randint(0, 2)
    really = os.write

    def write(descriptor: int, data: bytes) -> int:
        nonlocal left
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        left -= path.is_relative_to(tmp_path)
        if left < 0 and path.is_relative_to(tmp_path):
            raise OSError(reason, os.strerror(reason), str(path))
        return really(descriptor, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(AssertionError, match="assert 4 == 0"):
            run(name, tmp_path, patch)
    said = "".join(capfd.readouterr())
    assert os.strerror(reason) in said
    assert "Traceback" not in said
    assert run(name, tmp_path, monkeypatch) == whole(name)


def test_a_journal_with_torn_lines_is_read(tmp_path: Path) -> None:
    """Of a full disk or a failure of power: what is torn is left out, by whoever it was written."""
    journal = Journal("mqtt", tmp_path)
    first = journal.begin(GameRecord("brandubh"))
    first.ply("a4a2", ())
    first.ply("d3a3", ("a2",))
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-9])
    second = Journal("mqtt", tmp_path).begin(GameRecord("brandubh"))
    second.ply("d1c1", ())
    assert [len(record.plies) for record in read(path)] == [1, 1]
    with path.open("ab") as file:
        file.write(b'{"game": "0\0\0\0\0')
    second.ply("d5c5", ())
    with path.open("ab") as file:
        file.write(b"\0\0\0")
    assert [len(record.plies) for record in read(path)] == [1, 2]
    path.write_bytes(b"somebody's own\n" + path.read_bytes())
    with pytest.raises(JournalError, match=":1: "):
        list(read(path))
