"""The live line, plain lines, the screen of a run, and events for viewers."""

from __future__ import annotations

import asyncio
import io
import json
import os
import pty
import re
import select
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import fake_arena
import patience
import pytest
from arena_results import facts, game, new_run, pairs, summary

from hnefi.protocol.hosts.text_table import width
from hnefi.tools.arena.logs import LiveLog, game_line
from hnefi.tools.arena.loop import Loop
from hnefi.tools.arena.screen import Screen, live_line, live_view
from hnefi.tools.arena.store import Store
from hnefi.tools.arena.values import Fault, PlyLog
from hnefi.tools.common.live import REDRAW, Live, duration
from hnefi.tools.common.sprt import Sprt

HOSTILE = "evil\x1b[2J\r\n\u202e日本語" * 20


class Terminal(io.StringIO):
    """A stream that says that somebody looks at it."""

    def isatty(self) -> bool:
        return True


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def screen_of(text: str, columns: int = 80) -> list[str]:
    """What a terminal shows after `text`: the few control sequences that are used, and lines that wrap."""
    rows, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[\d*[A-Za-z]|[\r\n]|[^\x1b\r\n]", text):
        if part == "\n":
            row, column = row + 1, 0
            rows += [""] * (row + 1 - len(rows))
        elif part == "\r":
            column = 0
        elif part == "\x1b[J":
            rows = [*rows[:row], rows[row][:column]]
        elif part.endswith("A"):
            row = max(0, row - int(part[2:-1]))
        elif not part.startswith("\x1b"):
            assert column < columns, "wrapped"
            rows[row] = rows[row][:column] + part + rows[row][column + 1 :]
            column += 1
    return rows


# One game, one line


def test_a_game_in_one_line() -> None:
    assert (
        game_line(game(17, 2, "d", plies=62)) == "game 17.2 simple (a) – mine (d): 0-1, king escaped, ply 62"
    )
    lost = game(3, 1, "d", fault=Fault(0, "illegal_move", "'x9' at ply 3"), plies=2)
    assert game_line(lost) == "game 3.1 mine (a) – simple (d): 0-1, illegal move ('x9' at ply 3), ply 2"
    assert "½-½, repetition" in game_line(game(1, 1, "draw"))
    assert "no result, interrupted" in game_line(game(1, 1, None))
    long = game_line(game(1, 1, "a", (HOSTILE, "b"), fault=Fault(1, "crash", HOSTILE)))
    assert long.isprintable()
    assert len(long) < 300


# The live line


def test_the_line_with_room_enough() -> None:
    known = summary(pairs("aa ad ad dd =a ad aa ad a."), test=Sprt(0, 10), fit=False)
    assert live_line(known, 60.0, 17, 200) == (
        "pairs 8/400 · mine 12 simple 4 =1 · Elo +163.0 ±207.2 · LLR 0.21 (7 % of H1) · attackers 62 % · 17 games/min"
        " · ETA ≤ 46:04 · faults 0"
    )


@pytest.mark.parametrize("columns", [20, 40, 60, 80, 100, 120])
def test_the_line_fits_and_says_first_what_matters_most(columns: int) -> None:
    for known in (
        summary(pairs("aa ad ad dd"), test=Sprt(0, 10), fit=False),
        summary(
            pairs("aa ad ad dd", names=(HOSTILE, HOSTILE + "2")), engines=(HOSTILE, HOSTILE + "2"), fit=False
        ),
        summary([], fit=False),
    ):
        line = live_line(known, 60.0, 8, columns)
        assert width(line) <= columns
        assert line.isprintable()
        assert line.startswith(f"pairs {known.pairs}/400")


def test_faults_come_early_once_there_are_some() -> None:
    bad = summary([*pairs("ad"), game(9, 1, "a", fault=Fault(1, "crash", "x"))], test=Sprt(0, 10), fit=False)
    assert "faults 1" in live_line(bad, 60.0, 8, 60)
    assert "faults" not in live_line(summary(pairs("ad ad"), fit=False), 60.0, 8, 60)


def test_all_wins_and_nothing_at_all() -> None:
    assert "Elo +inf" in live_line(summary(pairs("ad ad"), fit=False), 1.0, 4)
    assert live_line(summary([], fit=False), 0.0, 0) == "pairs 0/400 · mine 0 simple 0 =0 · faults 0"


def test_several_engines_have_a_table() -> None:
    names = tuple(f"engine{number}" for number in range(30))
    games = [game(n, g, "a", names, (n, n + 1)) for n in range(1, 20) for g in (1, 2)]  # type: ignore[arg-type]
    lines = live_view(summary(games, engines=names, fit=False), 60.0, 8)
    assert lines[0].split()[:2] == ["#", "engine"]
    assert lines[-2:] == [
        "… and 17 more",
        "pairs 19/400 · attackers 100 % · 8 games/min · ETA 1:35:15 · faults 0",
    ]
    assert len(lines) == 16


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (59.6, "1:00"), (370, "6:10"), (3970, "1:06:10"), (180_000, "2 d 2:00")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


# Terminals and others


def test_elsewhere_there_are_plain_lines() -> None:
    stream = io.StringIO()
    live = Live(stream, environment={})
    live.show(lambda: pytest.fail("nobody looks"))
    live.game(game_line(game(1, 1, "a")))
    live.heading("a heading")
    live.report(["one", HOSTILE])
    live.close()
    assert stream.getvalue().splitlines()[:3] == [
        "game 1.1 mine (a) – simple (d): 1-0, king captured, ply 20", "a heading", "one"
    ]  # fmt: skip
    assert len(stream.getvalue().splitlines()) == 4
    assert not re.search(r"[^\n\x20-\x7e–日本語?]", stream.getvalue())


@pytest.mark.parametrize(("environment", "plain"), [({"TERM": "dumb"}, False), ({}, True)])
def test_plain_terminals(environment: dict[str, str], plain: bool) -> None:
    stream = Terminal()
    live = Live(stream, plain=plain, environment=environment)
    live.show(lambda: ["live"])
    live.game(game_line(game(1, 1, "a", fault=Fault(1, "crash", "x"))), fault=True)
    assert "\x1b" not in stream.getvalue()
    assert "live" not in stream.getvalue()


def test_a_terminal_is_redrawn_at_most_five_times_a_second() -> None:
    stream, clock, asked = Terminal(), Clock(), []

    def view() -> list[str]:
        asked.append(clock.now)
        return [f"at {clock.now:.2f}"]

    live = Live(stream, clock=clock, environment={}, columns=80)
    for _ in range(1000):
        live.show(view)
        clock.now += 0.01
    assert 45 <= len(asked) <= 51
    assert min(late - soon for soon, late in pairwise(asked)) >= REDRAW - 1e-9
    assert screen_of(stream.getvalue()) == [f"at {asked[-1]:.2f}"]
    live.close()
    assert screen_of(stream.getvalue()) == [""]


def test_a_view_that_takes_long_is_asked_less_often() -> None:
    clock, asked = Clock(), []

    def view() -> list[str]:
        asked.append(clock.now)
        clock.now += 0.1
        return ["slow"]

    live = Live(Terminal(), clock=clock, environment={}, columns=80)
    for _ in range(1000):
        live.show(view)
        clock.now += 0.01
    assert 9 <= len(asked) <= 11


def test_lines_that_stay_stand_above_the_live_part() -> None:
    stream, clock = Terminal(), Clock()
    live = Live(stream, clock=clock, environment={}, columns=30)
    live.show(lambda: ["a table " * 9, "of lines"])
    live.game(game_line(game(1, 1, "a")))
    live.game(game_line(game(1, 2, "a", fault=Fault(1, "crash", "x"))), fault=True)
    clock.now += 1
    live.show(lambda: ["one line"])
    assert screen_of(stream.getvalue(), 200) == [
        "game 1.2 simple (a) – mine (d): 1-0, crash (x), ply 20", "one line"
    ]  # fmt: skip
    live.close()


def test_colour_is_for_terminals_that_want_it() -> None:
    said = {}
    for name, environment in (("colour", {}), ("none", {"NO_COLOR": "1"}), ("empty", {"NO_COLOR": ""})):
        stream = Terminal()
        live = Live(stream, environment=environment)
        live.heading("x")
        live.game(game_line(game(1, 2, "a", fault=Fault(1, "crash", "x"))), fault=True)
        said[name] = stream.getvalue()
    assert said["colour"] == said["empty"] != said["none"]
    assert said["colour"].startswith("\x1b[1mx\x1b[0m\n\x1b[31mgame")
    assert "\x1b" not in said["none"]


def test_a_stream_of_another_encoding() -> None:
    raw = io.BytesIO()
    live = Live(io.TextIOWrapper(raw, encoding="ascii"), environment={})
    live.report(["a – b ± 日"])
    assert raw.getvalue() == b"a - b +- ?\n"


# The screen of a run


def play(folder: Path, screen: Screen, pace: float = 0.0, slots: int = 3, **flags: Any) -> int:
    settings = fake_arena.config(rating__bootstrap=20, **flags)
    ready = fake_arena.prepared(settings)
    opened = Store.resume(folder) if folder.exists() else new_run(folder, ready)
    with opened:
        loop = Loop(ready, opened, fake_arena.FakePlay(slots, pace, faulty=frozenset({1})), screen)
        return asyncio.run(loop.play_on())


def test_plain_lines_keep_to_ascii() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="utf-8")
    Live(stream, plain=True, environment={}).report(["mine – simple · Elo +3.0 ±1.0"])
    stream.flush()
    assert raw.getvalue() == b"mine - simple | Elo +3.0 +-1.0\n"


def test_a_run_on_a_plain_stream(tmp_path: Path) -> None:
    out = io.StringIO()
    # One game after the other: out of turn, several pairs may be complete at once, and a table falls out.
    assert play(tmp_path / "run", Screen(out=out), 0.01, slots=1, pairs=12, rating__every=5) == 0
    lines = out.getvalue().splitlines()
    assert sum(line.startswith("game ") for line in lines) == 24
    # One for every five pairs and one at the end; what is due while another is made falls together with it.
    assert 1 < sum(line.startswith("Elo") for line in lines) <= 3
    assert f"  hnefi arena report {tmp_path}/run --game 3.2" in lines
    assert lines[-1].startswith("result digest ")
    known = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (known["games"], known["faults"], known["state"]["ending"]) == (24, 12, "complete")
    again = io.StringIO()
    play(tmp_path / "run", Screen(out=again), pairs=12)
    assert "24 games stored" in again.getvalue()
    assert again.getvalue().splitlines()[-40:] == lines[-40:]


def test_quiet_runs_and_runs_for_programs(tmp_path: Path) -> None:
    out, err = io.StringIO(), io.StringIO()
    play(tmp_path / "quiet", Screen(quiet=True, out=out), pairs=2)
    assert "\ngame 1.1" not in out.getvalue()
    assert "#  engine" in out.getvalue()
    out = io.StringIO()
    play(tmp_path / "json", Screen(as_json=True, out=out, err=err), pairs=2)
    assert json.loads(out.getvalue()) == json.loads((tmp_path / "json" / "summary.json").read_text())
    assert "game 1.1" in err.getvalue()


def test_a_run_whose_reader_has_gone(tmp_path: Path) -> None:
    class Gone(io.StringIO):
        def write(self, _: str, /) -> int:
            raise BrokenPipeError

    assert play(tmp_path / "run", Screen(out=Gone()), pairs=2) == 0
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["games"] == 4


@pytest.mark.process
def test_a_run_on_a_terminal(tmp_path: Path) -> None:
    """The real thing: another process on a pseudo-terminal."""
    code = f"""
import sys; sys.path[:0] = [{str(Path(__file__).parent)!r}, {str(Path(patience.__file__).parent)!r}]
import test_arena_live as t, pathlib
from hnefi.tools.arena.screen import Screen, live_line, live_view
t.play(pathlib.Path({str(tmp_path / "run")!r}), Screen(), pairs=40, engines=3)
"""
    process, terminal = pty.fork()
    if process == 0:
        os.environ |= {"TERM": "xterm"}
        os.environ.pop("NO_COLOR", None)
        os.execv(sys.executable, [sys.executable, "-c", code])
    text = b""
    while select.select([terminal], [], [], 60)[0]:
        try:
            text += os.read(terminal, 65536)
        except OSError:
            break
    os.close(terminal)
    assert os.waitpid(process, 0)[1] == 0, text.decode()
    assert b"\x1b[J" in text
    shown = screen_of(text.decode().replace("\r\n", "\n"), 1000)
    assert "pairs 120/120 · games 240" in shown
    assert not [line for line in shown if "ETA" in line]
    assert shown[-2].startswith("result digest")


# Events for viewers


def events(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def watched(log: LiveLog, number: int) -> None:
    """One game as the slots tell it."""
    result = game(number, 1, "a", plies=3, fault=Fault(1, "crash", "x"))
    log("start", {"slot": 0, "task": result.task, "fen": "7/7 a 0 1"})
    for ply, move in enumerate(result.plies, 1):
        log("ply", {"slot": 0, "task": result.task, "number": ply, "ply": move})
    log("end", {"slot": 0, "result": result})


def test_events(tmp_path: Path) -> None:
    log = LiveLog(tmp_path / "live.jsonl", ("mine", "simple"), clock=Clock())
    watched(log, 7)
    log.table(summary(pairs("ad ad aa"), fit=False))
    log.close()
    found = events(tmp_path / "live.jsonl")
    assert [event["event"] for event in found] == ["start", "ply", "ply", "ply", "end", "table"]
    assert found[0] == {
        "event": "start", "at": 100.0, "slot": 0, "id": "7.1", "variant": "brandubh", "attackers": "mine",
        "defenders": "simple", "start": None, "opening": ["a7b7"], "fen": "7/7 a 0 1", "moves": [],
    }  # fmt: skip
    assert found[2] == {
        "event": "ply", "at": 100.0, "slot": 0, "id": "7.1", "number": 2, "move": found[2]["move"], "captures": [],
        "cp": 1, "mate": None, "depth": 4, "nodes": 7, "time": None, "clock": None,
    }  # fmt: skip
    assert found[4]["fault"] == {"side": "d", "reason": "crash", "text": "x"}
    assert [line["name"] for line in found[5]["engines"]] == ["mine", "simple"]


def test_a_full_file_makes_room_for_one_that_begins_with_all_running_games(tmp_path: Path) -> None:
    log = LiveLog(tmp_path / "live.jsonl", ("mine", "simple"), limit=4000, clock=Clock())
    running = game(1, 1, "a")
    log("start", {"slot": 1, "task": running.task, "fen": "f"})
    log("ply", {"slot": 1, "task": running.task, "number": 1, "ply": PlyLog("a4a2")})
    for number in range(2, 40):
        watched(log, number)
    log.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["live.1.jsonl", "live.jsonl"]
    for path in tmp_path.iterdir():
        assert path.stat().st_size <= 4000
        first = events(path)[0]
        assert (first["event"], first["id"], first["moves"]) == ("start", "1.1", ["a4a2"])


def test_a_start_that_opens_a_file_is_told_once(tmp_path: Path) -> None:
    log = LiveLog(tmp_path / "live.jsonl", ("mine", "simple"), limit=1)
    for number in (1, 2):
        log("start", {"slot": number, "task": game(number, 1, "a").task, "fen": "f"})
    log.close()
    assert [event["id"] for event in events(tmp_path / "live.jsonl")] == ["1.1", "2.1"]


def test_a_disk_that_cannot_be_written_keeps_nobody_waiting(tmp_path: Path) -> None:
    log = LiveLog(tmp_path / "nowhere" / "live.jsonl", ("mine", "simple"))
    for number in range(200):
        watched(log, number + 1)
    log.close()
    assert not (tmp_path / "nowhere").exists()


@pytest.fixture(autouse=True)
def _no_threads_left() -> Iterator[None]:
    import threading

    yield
    assert [thread.name for thread in threading.enumerate() if thread.name in ("screen", "live.jsonl")] == []


def test_facts_of_games() -> None:
    assert facts(pairs=7).games == 14
    assert facts(pairs=7, swap=False).games == 7
