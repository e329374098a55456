"""Every line of a game in a file of its own, what engines think as events, and the arena's own log."""

from __future__ import annotations

import gzip
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from logging.handlers import QueueHandler
from pathlib import Path
from typing import Any

import arena_parts
import pytest
from arena_results import game

from hnefi.tools.arena import logs
from hnefi.tools.arena.logs import LOG, Lines, LiveLog, Thinking, Traffic, joined, printable, recording

NAMES = ("mine", "simple")


@pytest.fixture(autouse=True)
def _no_threads_left() -> Iterator[None]:
    yield
    assert [thread.name for thread in threading.enumerate() if thread.name == "traffic"] == []
    assert not [handler for handler in LOG.handlers if isinstance(handler, QueueHandler)]


def read(folder: Path, name: str) -> list[str]:
    return gzip.decompress((folder / f"{name}.txt.gz").read_bytes()).decode().splitlines()


@pytest.mark.process
def test_a_file_for_each_game(tmp_path: Path) -> None:
    said: list[str] = []
    traffic = Traffic(tmp_path / "traffic", ("one", "two"), said.append)
    specs = [arena_parts.spec("one"), arena_parts.spec("two")]
    found = arena_parts.collect(
        arena_parts.pair(), specs, on_event=traffic.on_event, on_traffic=traffic.on_traffic
    )
    traffic.close()
    assert said == []
    assert sorted(path.name for path in (tmp_path / "traffic").iterdir()) == ["1.1.txt.gz", "1.2.txt.gz"]
    head, *lines = read(tmp_path / "traffic", "1.1")
    assert re.fullmatch(
        r"# game 1\.1, brandubh, one \(a\) - two \(d\), \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", head
    )
    fields = [line.split("\t") for line in lines]
    stamps = [int(field[0]) for field in fields]
    assert 0 <= stamps[0] < stamps[-1] < 60_000_000
    # A fresh process is seen from its greeting on, one that was there already from the new game on. Both are
    # started side by side: either may be greeted first.
    greetings = sorted(field[1:] for field in fields if field[3] == "uti")
    assert greetings == [["one", ">", "uti"], ["two", ">", "uti"]]
    for name in ("one", "two"):
        assert next(field[2:] for field in fields if field[1] == name) == [">", "uti"]
    assert not [line for line in read(tmp_path / "traffic", "1.2") if line.endswith("\tuti")]
    answers = [field[3] for field in fields if field[2] == "<" and field[3].startswith("bestmove ")]
    assert answers == [f"bestmove {ply.move}" for ply in found[0].plies]
    assert [field[1] for field in fields if field[3].startswith("go ")][:3] == ["one", "two", "one"]
    assert {field[3] for field in fields} >= {"utinewgame", "setoption name Side value a", "readyok"}


def told(traffic: Traffic, number: int, count: int = 3, reason: str = "", data: bytes = b"x") -> None:
    """A game with so many lines."""
    result = game(number, 1, "a")
    result = replace(result, winner=None, reason=reason) if reason else result
    traffic.on_event("start", {"slot": 0, "task": result.task, "fen": ""})
    for line in range(count):
        traffic.on_traffic(result.task, line % 2, 5.0, "<", b"%d %s" % (line, data))
    traffic.on_event("end", {"slot": 0, "result": result})


def test_a_flood_is_cut_out_of_the_middle_and_that_is_said(tmp_path: Path) -> None:
    traffic = Traffic(tmp_path, NAMES, print, half=5000)
    told(traffic, 1, 100_000, data=b"y" * 40)
    traffic.close()
    lines = read(tmp_path, "1.1")[1:]
    place = next(number for number, line in enumerate(lines) if line.startswith("#"))
    kept = [int(line.split("\t")[3].split()[0]) for line in lines if not line.startswith("#")]
    cut = 100_000 - len(kept)
    assert kept == [*range(place), *range(place + cut, 100_000)]
    assert 20 < place == pytest.approx(len(kept) / 2, abs=2)
    assert re.fullmatch(rf"# {cut} lines with \d+ bytes are cut out here", lines[place])


def test_what_is_kept_of_a_game_is_bounded_by_its_bytes() -> None:
    lines = Lines(half=10_000)
    for number in range(1000):
        lines.add((float(number), 0, "<", b"z" * (7000 if number % 3 == 2 else number % 10)))
    assert [line[0] for line in lines.first] == list(range(len(lines.first)))
    assert [line[0] for line in lines.last] == list(range(1000 - len(lines.last), 1000))
    assert sum(len(line[3]) for line in (*lines.first, *lines.last)) <= 20_000
    assert lines.cut + len(lines.first) + len(lines.last) == 1000
    for _ in range(100_000):
        lines.add((0.0, 0, "<", b""))
    assert len(lines.first) + len(lines.last) < 200


def test_interrupted_games_and_strangers_leave_no_file(tmp_path: Path) -> None:
    traffic = Traffic(tmp_path, NAMES, print)
    told(traffic, 1, reason="interrupted")
    told(traffic, 2, reason="start_failure")
    traffic.on_traffic(game(3, 1, "a").task, 0, 1.0, ">", b"nobody's")
    traffic.on_event("end", {"slot": 0, "result": game(4, 1, "a")})
    traffic.close()
    assert [path.name for path in tmp_path.iterdir()] == ["2.1.txt.gz"]


def test_a_disk_that_cannot_be_written_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "traffic").write_text("in the way")
    said: list[str] = []
    traffic = Traffic(tmp_path / "traffic", NAMES, said.append)
    for number in range(1, 4):
        told(traffic, number)
        traffic._ended.put((game(number, 1, "a"), 0.0, Lines()))
    traffic.close()
    (text,) = [text for text in said if "traffic is lost" in text]
    assert "File exists" in text or "Not a directory" in text


def test_a_disk_that_is_too_slow_costs_lines_and_no_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, gate = threading.Event(), threading.Event()
    real = Traffic._write

    def slow(self: Traffic, *entry: Any) -> None:
        begun.set()
        gate.wait(60)
        real(self, *entry)

    monkeypatch.setattr(Traffic, "_write", slow)
    said: list[str] = []
    traffic = Traffic(tmp_path, NAMES, said.append)
    told(traffic, 1)
    assert begun.wait(60), "from here on nothing more leaves the queue"
    for number in range(2, 31):
        told(traffic, number)
    gate.set()
    traffic.close()
    assert len(said) == 30 - len(list(tmp_path.iterdir())) > 15
    assert said[-1] == "traffic of game 30.1 is dropped: the disk is too slow"


def test_lines_are_made_printable() -> None:
    assert printable("é ok".encode()) == "é ok"
    assert printable(b"\x1b[2J\0 \xff\r\t") == r"\x1b[2J\x00 \xff\r\t"


# Reports


def thinking(*lines: tuple[float, bytes], arrow: str = "<", side: int = 0) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    def tell(event: str, facts: dict[str, Any]) -> None:
        assert event == "info"
        found.append(facts)

    result = game(1, 1, "a")
    watcher = Thinking(tell)
    watcher.on_event("start", {"slot": 3, "task": result.task})
    for stamp, line in lines:
        watcher.on_traffic(result.task, side, stamp, arrow, line)
    watcher.on_event("end", {"slot": 3, "result": result})
    watcher.on_traffic(result.task, side, 1e9, arrow, b"info depth 1 score cp 1")
    return found


def test_a_report_as_an_event(tmp_path: Path) -> None:
    line = b"info depth 5 seldepth 9 score cp -12 lowerbound nodes 100 nps 50 time 7 pv a4a3 d3c3"
    (facts,) = thinking((0.0, line), side=1)
    log_of_boards = LiveLog(tmp_path / "live.jsonl", NAMES, clock=lambda: 5.0)
    log_of_boards("info", facts)
    log_of_boards.close()
    assert json.loads((tmp_path / "live.jsonl").read_text()) == {
        "event": "info", "at": 5.0, "slot": 3, "id": "1.1", "side": "d", "cp": -12, "mate": None,
        "bound": "lowerbound", "depth": 5, "seldepth": 9, "nodes": 100, "nps": 50, "time": 7, "pv": ["a4a3", "d3c3"],
    }  # fmt: skip


def test_reports_are_told_twice_a_second_and_side() -> None:
    flood = [(number / 100, b"info depth %d score cp 1" % number) for number in range(301)]
    assert [facts["depth"] for facts in thinking(*flood)] == [0, 50, 100, 150, 200, 250, 300]


@pytest.mark.parametrize(
    "line",
    [
        b"info string score cp 5",
        b"info depth 5",
        b"info depth 5 multipv 2 score cp 3",
        b"info score",
        b"info depth 5 score cp 1 pv " + b"a1a2 " * 5000,
        b"bestmove score ",
    ],
)
def test_what_says_nothing_about_the_best_line_is_not_told(line: bytes) -> None:
    assert thinking((0.0, line)) == []
    assert thinking((0.0, b"info depth 1 score cp 1"), arrow=">") == []


def test_listeners_are_joined() -> None:
    heard: list[str] = []
    assert joined(None, None) is None
    assert joined(None, heard.append) == heard.append
    everybody = joined(heard.append, None, heard.append)
    assert everybody is not None
    everybody("x")
    assert heard == ["x", "x"]


# The arena's own log


def test_the_log_tells_from_its_level_on(tmp_path: Path) -> None:
    shown: list[str] = []
    for level in ("off", "error", "warning", "info", "debug"):
        folder = tmp_path / level
        folder.mkdir()
        with recording(folder, level, shown.append):
            for word in ("debug", "info", "warning", "error"):
                getattr(LOG, word)("a %s of %s", word, level)
        lines = (folder / logs.FILE).read_text().splitlines() if (folder / logs.FILE).exists() else []
        assert [line.split()[-3] for line in lines] == {
            "off": [],
            "error": ["error"],
            "warning": ["warning", "error"],
            "info": ["info", "warning", "error"],
            "debug": ["debug", "info", "warning", "error"],
        }[level]
        LOG.error("nobody hears this")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} ERROR   a error of debug", lines[-1])
    assert [text for text in shown if not text.startswith(("warning: ", "error: "))] == []
    assert shown[:3] == [
        "error: a error of error",
        "warning: a warning of warning",
        "error: a error of warning",
    ]


def test_a_log_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    shown: list[str] = []
    with recording(tmp_path / "nowhere", "info", shown.append) as end:
        LOG.warning("still heard")
        end()
    assert shown == [
        f"warning: {tmp_path / 'nowhere' / logs.FILE}: No such file or directory: not written",
        "warning: still heard",
    ]
