"""What viewers of a run are shown, from the lines of its live file."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from arena_results import game
from live_events import TABLE, end, info, ply, start

from hnefi.protocol.hosts.run_state import ENDED_GAMES, Picture
from hnefi.protocol.hosts.tail import OPENED, Tail
from hnefi.tools.arena.logs import LiveLog
from hnefi.tools.arena.values import PlyLog


def state(picture: Picture, name: str = "1.1") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(picture.payload(f"game/{name}/state"))
    return found


# From events to documents


def test_a_game_is_one_document() -> None:
    picture = Picture()
    for event in (start(at=7.0), ply(2, captures=["b3"]), ply(3, "a4a5"), end(at=9.0)):
        picture.take(event)
    assert state(picture) == {
        "id": "1.1", "state": "ended", "variant": "brandubh", "attackers": "mine", "defenders": "simple",
        "start": None, "opening": ["d1c1"], "fen": "7/7 d 0 1", "moves": ["a1a2", "a4a5"], "captures": [["b3"], []],
        "cp": [12, 12], "mate": [None, None], "depth": [3, 3], "time": [1.5, 1.5], "clock": [900, 900],
        "started": 7.0, "winner": "a", "reason": "king_captured", "fault": None, "captured": [0, 1], "ended": 9.0,
    }  # fmt: skip
    assert list(picture.changed) == ["game/1.1/state"]


def test_standings_have_the_keys_of_the_summary() -> None:
    picture = Picture()
    picture.take(TABLE)
    found = json.loads(picture.payload("standings"))
    assert (found["pairs"], found["facts"]["pairs"], found["test"]) == (1, 2, None)
    assert found["engines"][0]["record"] == {"wins": 2, "draws": 0, "losses": 0}


def test_reports_are_the_newest_of_each_side() -> None:
    picture = Picture()
    for event in (start(), info(cp=1), info(cp=2), info(side="d"), info(side="x"), info("9.9")):
        picture.take(event)
    found = dict(picture.thoughts())
    assert list(found) == ["game/1.1/info/a", "game/1.1/info/d"]
    assert json.loads(found["game/1.1/info/a"])["cp"] == 2
    assert picture.thoughts() == []


def test_ended_games_go_after_a_while_and_when_they_are_many() -> None:
    now = 1000.0
    picture = Picture(lambda: now, keep=600.0)
    picture.take(start())
    picture.take(end(at=now))
    picture.changed.clear()
    now = 1599.0
    picture.tick()
    assert picture.games
    now = 1601.0
    picture.tick()
    assert not picture.games
    assert picture.documents == {}
    assert list(picture.changed) == ["game/1.1/state"]
    for number in range(ENDED_GAMES + 3):
        picture.take(start(f"{number}.1"))
        picture.take(end(f"{number}.1", at=now))
    picture.tick()
    assert picture.games == tuple(f"{number}.1" for number in range(3, ENDED_GAMES + 3))


def test_a_new_file_tells_which_games_run() -> None:
    picture = Picture()
    for event in (start("1.1"), ply(2, captures=["b3"]), start("1.2"), start("2.1"), end("2.1")):
        picture.take(event)
    picture.take({"event": OPENED})
    # The ply that did not fit into the old file is in the start of the new one and comes again.
    picture.take(start("1.1", moves=["a1a2", "a4a5"]))
    picture.take(start("3.1", moves=["a1a3"]))
    picture.take(ply(3, "a4a5", captures=["c3"]))
    found = state(picture)
    assert (found["moves"], found["captures"]) == (["a1a2", "a4a5"], [["b3"], ["c3"]])
    assert state(picture, "1.2")["reason"] == "unknown"
    assert state(picture, "2.1")["reason"] == "king_captured"
    assert (state(picture, "3.1")["moves"], state(picture, "3.1")["captures"]) == (["a1a3"], [None])


def test_a_game_that_is_played_again_begins_anew() -> None:
    picture = Picture()
    for event in (start(), ply(2), {"event": OPENED}, start(), ply(2, "b1b2")):
        picture.take(event)
    assert state(picture)["moves"] == ["b1b2"]


def test_a_ply_that_is_missing_leaves_a_mark() -> None:
    picture = Picture()
    for event in (start(), ply(4, "a4a5")):
        picture.take(event)
    found = state(picture)
    assert (found["moves"], found["captures"]) == (["?", "?", "a4a5"], [None, None, []])


@pytest.mark.parametrize(
    "event",
    [
        {}, {"event": "start"}, {"event": "start", "id": "../x"}, {"event": "start", "id": 7}, ply(2, name="9.9"),
        ply(10**9), ply(1), ply(2, move=None), ply("x"), {"event": "table"}, {"event": "table", "engines": [1]},  # type: ignore[arg-type]
        {"event": "end", "id": "A"}, {"event": ["start"]}, start("1.1", opening=7, moves={"a": 1}),
        ply(2, captures="b3"), end(at="x"), end(at=True),
    ],
)  # fmt: skip
def test_what_makes_no_sense_hurts_nobody(event: dict[str, Any]) -> None:
    picture = Picture()
    picture.take(start())
    picture.take(event)
    picture.take(ply(2))
    picture.tick()
    assert all(isinstance(json.loads(picture.payload(topic)), dict) for topic in picture.documents)


# From the file to events


def test_a_file_that_is_replaced_again_and_again_loses_nothing(tmp_path: Path) -> None:
    """The arena's own writer with a tiny limit, read whenever it pleases: the picture is that of an endless file."""
    pictures = []
    for limit in (6000, 1 << 30):
        folder = tmp_path / str(limit)
        folder.mkdir()
        log = LiveLog(folder / "live.jsonl", ("mine", "simple"), limit=limit, clock=lambda: 100.0)
        tail, picture = Tail(folder / "live.jsonl"), Picture(lambda: 100.0)
        games = [game(number, 1, "a", plies=0) for number in range(1, 6)]
        for result in games:
            log("start", {"slot": 0, "task": result.task, "fen": "f"})
        for number in range(2, 40):
            for result in games[: 6 - number // 8]:
                log("ply", {"slot": 0, "task": result.task, "number": number, "ply": PlyLog("a4a2", ("b3",))})
            until(lambda log=log: log._texts.empty(), "the log is not written")  # type: ignore[misc]
            for event in tail.read():
                picture.take(event)
        log("end", {"slot": 0, "result": games[0]})
        log.close()
        while events := tail.read():
            for event in events:
                picture.take(event)
        tail.close()
        pictures.append({topic: json.loads(picture.payload(topic)) for topic in picture.documents})
    assert (tmp_path / "6000" / "live.1.jsonl").exists()
    assert pictures[0] == pictures[1]
    assert pictures[0]["game/1.1/state"]["captures"] == [["b3"]] * 38


def test_what_is_written_while_the_files_change_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "live.jsonl"
    file.write_text('{"event":"a"}\n')
    tail = Tail(file)
    assert len(tail.read()) == 2
    replaced = Tail._replaced

    def late(self: Tail) -> bool:
        with file.open("a") as stream:
            stream.write('{"event":"b"}\n')
        file.rename(tmp_path / "live.1.jsonl")
        file.write_text('{"event":"c"}\n')
        monkeypatch.setattr(Tail, "_replaced", replaced)
        return replaced(self)

    monkeypatch.setattr(Tail, "_replaced", late)
    found = [*tail.read(), *tail.read()]
    assert [event["event"] for event in found] == ["b", OPENED, "c"]
    tail.close()


def test_half_lines_wait_and_nonsense_is_skipped(tmp_path: Path) -> None:
    file = tmp_path / "live.jsonl"
    tail = Tail(file)
    assert tail.read() == []
    with file.open("wb", buffering=0) as stream:
        stream.write(b'{"event":"a"}\n{"ev')
        assert [event["event"] for event in tail.read()] == [OPENED, "a"]
        for junk in (b"\xff\xfe\n", b"[1]\n", b"1" * 100_000 + b"\n", b"[" * 100_000 + b"\n"):
            stream.write(b'ent":"b"}\n' if junk == b"\xff\xfe\n" else b"")
            stream.write(junk)
        stream.write(b"x" * (3 << 20))
        found = []
        while events := tail.read() or tail.read():
            found += events
        assert [event["event"] for event in found] == ["b"]
        stream.write(b'"}\n{"event":"c"}\n')
        assert [event["event"] for event in tail.read()] == ["c"]
    tail.close()


def until(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 120
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.002)
