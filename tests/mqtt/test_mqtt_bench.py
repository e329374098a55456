"""The parts of `hnefi mqtt bench` that count; what it measures is no test's business."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hnefi.gui_adapter.mqtt import bench
from hnefi.gui_adapter.mqtt.bench import Observer, Rows
from hnefi.gui_adapter.mqtt.soak import born, children, handles, resident, running
from hnefi.protocol.hosts.broker.client import Message

linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from Linux's /proc")


def heard(observer: Observer, *lines: str, session: str = "s1", retain: bool = False) -> None:
    for line in lines:
        observer(Message(f"tafl/v1/session/guest/{session}/out", line.encode(), 1, retain))


def test_lost_and_repeated_lines_are_counted_by_number() -> None:
    observer = Observer()
    heard(observer, "#1 a", "#2:7 bestmove a1a2", "#2 again", "#5 b", "no number", "#3 late")
    heard(observer, "#1 a", "#2 info string error gap: expected #4", session="s2")
    heard(observer, "#9 kept", session="s3", retain=True)
    assert (observer.lines, observer.missing, observer.repeated) == (7, 2, 2)
    assert observer.errors == ["info string error gap: expected #4"]


def test_the_table_can_be_pasted() -> None:
    rows = Rows()
    rows.add("what it was", "7 MiB")
    rows.times("how long", [0.001, 0.002, 0.009])
    assert rows.lines() == [
        "| what | figure |",
        "|---|---|",
        "| what it was | 7 MiB |",
        "| how long | median 2.0 ms, slowest 9.0 ms (3) |",
    ]


@pytest.mark.process
@linux
def test_memory_and_children() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert child.pid in children(os.getpid())
        assert running(child.pid)
        assert 5 < resident(os.getpid()) < 5000
        assert int(born(child.pid)) >= int(born(os.getpid())) > 0
        assert child.stdin is not None
        child.stdin.close()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        # It has ended, and nobody has asked how.
        assert not running(child.pid)
        assert child.pid not in children(os.getpid())
    assert (resident(child.pid), children(child.pid), born(child.pid), handles(child.pid)) == (0.0, [], "", 0)


@linux
def test_open_files_are_counted() -> None:
    gc.collect()  # what others have left open would go meanwhile
    before = handles(os.getpid())
    with Path(os.devnull).open():
        assert handles(os.getpid()) == before + 1
    assert handles(os.getpid()) == before


@pytest.mark.parametrize(
    "wrong",
    [
        ["--sessions", "-1"],
        ["--sessions", "99999"],
        ["--flood", "1e4"],
        ["--minutes", "0"],
        ["--minutes", "x"],
        ["--pause", "-1"],
    ],
)
def test_wrong_flags_are_refused(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ending:
        bench.main(wrong)
    assert ending.value.code == 2
    assert "expected" in capsys.readouterr().err


def test_a_broker_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["--broker", "mqtt://127.0.0.1:1"]) == 3
    assert "no MQTT broker at mqtt://127.0.0.1:1" in capsys.readouterr().err
