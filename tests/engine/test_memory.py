"""Tables larger than what there is: refused when they are asked for, with what there is, and the old one stays."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path

import pytest
from conversation import Conversation
from fakes import FakeGame, FakeSearcher

from hnefi.engine import memory
from hnefi.engine.memory import MIB
from hnefi.engine.session import Session, SessionError
from hnefi.players import Player

GIB = 1 << 30


@pytest.fixture
def linux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 8 GiB left, no control groups, and a process that has touched 300 MiB."""
    monkeypatch.setattr(memory, "PROC", tmp_path / "proc")
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "groups")
    write(tmp_path / "proc/meminfo", f"MemTotal: 16777216 kB\nMemFree: 9 kB\nMemAvailable: {8 << 20} kB\n")
    write(tmp_path / "proc/self/statm", f"1000 {300 * MIB // mmap.PAGESIZE} 3 4\n")
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def group(folder: Path, **values: object) -> None:
    for name, value in values.items():
        write(folder / name.replace("memory_", "memory."), f"{value}\n")


@pytest.mark.usefixtures("linux")
def test_what_linux_says_is_available() -> None:
    assert memory.available() == 8 * GIB


@pytest.mark.parametrize("path", ["/", "/job", "/job/step"])
def test_groups_of_the_new_kind_set_limits(linux: Path, path: str) -> None:
    write(linux / "proc/self/cgroup", f"0::{path}\n")
    group(linux / "groups", memory_max=2 * GIB, memory_current=GIB)
    group(linux / "groups/job", memory_max="max", memory_current=GIB)
    group(linux / "groups/job/step", memory_max=3 * GIB, memory_current=GIB)
    assert memory.available() == GIB
    write(linux / "groups/memory.stat", f"anon 5\ninactive_file {GIB // 2}\nactive_file 7\n")
    assert memory.available() == GIB * 3 // 2


def test_groups_of_the_old_kind_set_limits(linux: Path) -> None:
    write(linux / "proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/docker/ab\n0::/\n")
    folder = linux / "groups/memory"
    group(folder, memory_limit_in_bytes=9223372036854771712, memory_usage_in_bytes=GIB)
    assert memory.available() == 8 * GIB
    group(folder / "docker/ab", memory_limit_in_bytes=2 * GIB, memory_usage_in_bytes=GIB)
    assert memory.available() == GIB
    # A container sees its own group as the root, and the path that it has outside.
    write(linux / "proc/self/cgroup", "4:memory:/docker/elsewhere\n")
    group(folder, memory_limit_in_bytes=GIB, memory_usage_in_bytes=2 * GIB)
    assert memory.available() == 0


def test_where_nobody_says_only_what_is_allocated_counts(
    linux: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (linux / "proc/meminfo").unlink()

    def unknown(name: str) -> int:
        if name == "SC_AVPHYS_PAGES":
            raise ValueError("unrecognized configuration name")
        return {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}[name]

    monkeypatch.setattr(memory.os, "sysconf", unknown)
    assert memory.available() == 4_096_000
    monkeypatch.delattr(memory.os, "sysconf")
    assert memory.available() is None
    memory.demand(2)

    class Full:
        def __init__(self, *_: object) -> None:
            raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(memory.mmap, "mmap", Full)
    with pytest.raises(MemoryError, match="refuses so many MiB"):
        memory.demand(2)


@pytest.mark.usefixtures("linux")
def test_a_tenth_is_left_and_what_comes_back_counts() -> None:
    memory.demand(7372)
    with pytest.raises(
        MemoryError, match=r"^expected at most 7372, because 8192 MiB of memory are available$"
    ):
        memory.demand(7373)
    memory.demand(7372 + 270, instead_of=1000)  # of which 300 MiB were ever touched
    with pytest.raises(MemoryError):
        memory.demand(7372 + 271, instead_of=1000)
    memory.demand(9000, instead_of=9000)
    with pytest.raises(MemoryError, match="at most 9000"):
        memory.demand(9001, instead_of=9000)


@pytest.mark.usefixtures("linux")
def test_a_session_keeps_its_table() -> None:
    session = Session(game=FakeGame(), searcher=FakeSearcher())
    session.set_option("Hash", "100")
    before = session.settings
    with pytest.raises(SessionError) as caught:
        session.set_option("Hash", "65536")
    assert str(caught.value) == (
        "setoption Hash 65536: expected at most 7462, because 8292 MiB of memory are available; it stays 100"
    )
    assert session.settings == before
    assert session.option("Hash") == 100
    session.set_option("Hash", "7000")
    assert session.settings.hash_mib == 7000
    with pytest.raises(SessionError, match=r"^setoption Hash 60000: expected at most .*; it stays 7000$"):
        session.use_player(Player("huge", options={"Hash": "60000"}))


def test_searchers_are_told_at_once() -> None:
    """Who gives memory back gives it back now."""
    searcher = FakeSearcher()
    session = Session(game=FakeGame(), searcher=searcher)
    session.set_option("Threads", "64")
    session.set_option("Threads", "1")
    assert searcher.settings is not None
    assert searcher.settings.threads == 1


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="limits a process by the shell")
def test_an_engine_refuses_and_plays_on() -> None:
    little = (
        "sh",
        "-c",
        f"ulimit -v {16 << 20} && exec {sys.executable} -m hnefi.protocol --variant brandubh",
    )
    with Conversation(command=little) as engine:
        engine.until("info string variant")
        engine.send("setoption name Hash value 65536")
        said = engine.line()
        assert said.startswith("info string error setoption Hash 65536: expected ")
        assert said.endswith("; it stays 64")
        engine.send("isready", "go nodes 100")
        assert engine.line() == "readyok"
        assert engine.until("bestmove")[-1] != "bestmove (none)"
