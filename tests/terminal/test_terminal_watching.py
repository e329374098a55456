"""Games of an arena run, followed at the terminal while they are played."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pytest
from terminal_parts import GAME, House, Person, moves_of

from hnefi.gui_adapter.terminal import command
from hnefi.gui_adapter.terminal.settings import Settings
from hnefi.gui_adapter.terminal.watching import Boards, Watcher, WatchError


def start(name: str, opening: tuple[str, ...] = (), moves: tuple[str, ...] = (), **more: Any) -> bytes:
    facts = {"variant": "brandubh", "attackers": "anna", "defenders": "b\x1b[1mo", "start": None, "slot": 0}
    return line("start", id=name, opening=opening, moves=moves, **{**facts, **more})


def line(event: str, **facts: Any) -> bytes:
    return json.dumps({"event": event, "at": 1.0, **facts}).encode() + b"\n"


def plies(name: str, *moves: str) -> bytes:
    return b"".join(line("ply", id=name, slot=0, number=0, move=move, captures=[]) for move in moves)


@pytest.mark.process
def test_a_game_is_followed_to_its_end_and_then_the_next(house: House, tmp_path: Path) -> None:
    file = tmp_path / "live.jsonl"
    file.write_bytes(
        start("1.1") + plies("1.1", *GAME[:2]) + line("end", id="1.1", winner="d", reason="crash")
    )

    def add(*data: bytes) -> None:
        with file.open("ab") as stream:
            stream.write(b"".join(data))

    async def story(person: Person) -> None:
        assert "this was the last one" in (await person.types(f"watch {tmp_path}")).lines[0]
        view = person.view
        assert (moves_of(view), view.names, view.mode) == (list(GAME[:2]), ("anna", "b [1mo"), "watch")
        assert view.end is not None
        add(start("1.2", GAME[:1], GAME[1:2]), plies("1.2", GAME[2]))
        view = await person.sees(lambda view: view.ply == 3)
        assert (view.mode, view.names, view.kinds) == ("watch", ("anna", "b [1mo"), ("engine", "engine"))
        assert view.prompt == "watching"
        assert "played elsewhere" in await person.fails("d4c4")
        assert "played elsewhere" in await person.fails("pause")
        await person.types("goto 1")
        add(plies("1.2", *GAME[3:5]))
        assert person.view.ply == 1
        await person.types("goto end")
        await person.sees(lambda view: view.ply == 5)
        add(plies("1.2", *GAME[5:]), line("end", id="1.2", winner="d", reason="king_escaped"))
        view = await person.sees(lambda view: view.end is not None)
        assert moves_of(view) == list(GAME)
        add(b"garbage\n[]\n\xff\n", start("1.3"), plies("1.3", "a4a2"))
        await person.sees(lambda view: view.ply == 1 and view.history[0].text == "a4a2")
        add(line("end", id="1.3", winner="a", reason="time"))
        view = await person.sees(lambda view: view.end is not None)
        assert view.end is not None
        assert (view.end.result, view.end.reason) == ("a", "time")
        await person.types("stop", "undo")
        assert person.view.kinds == ("person", "person")
        assert not (person.folder / "journal").exists()

    house.talk(story)


@pytest.mark.process
def test_what_cannot_be_followed_is_said(house: House, tmp_path: Path) -> None:
    file = tmp_path / "live.jsonl"
    file.write_bytes(start("1", variant="no-such-game") + start("2", moves=("a1a1",)))

    async def story(person: Person) -> None:
        assert "no such folder" in await person.fails(f"watch {tmp_path}/nowhere")
        assert "expected the folder" in await person.fails("watch")
        await person.types(f"watch {file}")
        await person.hears("Game 2 cannot be followed")
        await person.hears("Game 1 cannot be followed")
        with file.open("ab") as stream:
            stream.write(start("3") + plies("3", "a4a2"))
        await person.sees(lambda view: view.ply == 1)
        with file.open("ab") as stream:
            stream.write(plies("3", "\x1b[2J"))
        await person.hears("can no longer be followed")
        await person.types("new", "a4a2")
        assert person.view.kinds == ("person", "person")

    house.talk(story)


@pytest.mark.parametrize("flag", ["--watch", "--load"])
def test_the_first_board_is_that_of_the_game_which_is_taken_up(
    flag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "live.jsonl").write_bytes(start("1"))
    (tmp_path / "game.tafl").write_text('[Variant "brandubh"]\n\n1. a4a2 *\n')
    what = tmp_path if flag == "--watch" else tmp_path / "game.tafl"
    parser = command._parser()
    arguments = parser.parse_args([flag, str(what)])
    with ExitStack() as stack:
        controller = command._controller(parser, Settings(), arguments, stack, scripted=True)
        first = command._first(parser, controller, arguments)
        assert first == f"{flag[2:]} {what}"
        assert controller.view.variant == "brandubh", "before any engine was asked"
        if flag == "--watch":
            assert controller.view.names == ("anna", "b [1mo")


def test_a_run_that_cannot_be_watched_says_what_else_can_be_done(tmp_path: Path) -> None:
    for path, said in (
        (tmp_path / "no", "no such folder: expected the folder of a run"),
        (tmp_path, "no live.jsonl in it: expected .* with `hnefi arena … --live`$"),
        (Path(__file__), "a file: expected the folder of a run"),
    ):
        with pytest.raises(WatchError, match=said):
            Watcher(cast("Any", None), path).open()
    (tmp_path / "state.safetensors").touch()
    with pytest.raises(WatchError, match=f"`hnefi evolve curves {tmp_path}` shows"):
        Watcher(cast("Any", None), tmp_path).open()
    (tmp_path / "games.jsonl").touch()
    with pytest.raises(WatchError, match=f"`hnefi arena report {tmp_path} --records FILE` writes"):
        Watcher(cast("Any", None), tmp_path).open()


def test_lines_that_are_no_events_are_passed_over() -> None:
    boards = Boards()
    for bad in (
        {},
        {"event": "start", "id": 3},
        {"event": "ply", "id": "x"},
        {"event": "start", "id": "x", "variant": "brandubh", "opening": [1], "moves": []},
    ):
        boards.take(bad)
    assert boards.newest() is None
    for number in range(1500):
        boards.take(json.loads(start(str(number))))
    assert len(boards.running) == 1000
