"""Games at the terminal without a terminal: what lines do, and how games end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from terminal_parts import FAKE, GAME, PATIENCE, SHUFFLE, House, Person, moves_of, parrot, script

from hnefi.engine.search.types import Limits
from hnefi.gui_adapter.terminal import controller, opponents
from hnefi.gui_adapter.terminal.opponents import at_level
from hnefi.gui_adapter.terminal.settings import Settings
from hnefi.protocol.client import Engine
from hnefi.protocol.hosts import journal

pytestmark = pytest.mark.process

WINNING = "4K2/7/7/7/t6/7/7 d 0 30"


# Playing


def test_the_board_is_there_before_the_rules_are(house: House) -> None:
    async def story(person: Person) -> None:
        view = person.view
        assert not view.ready
        assert (view.legal, view.board.rows[3], view.board.special["d4"]) == ((), "ttTKTtt", "throne")
        assert view.board.special["g7"] == "corner"
        await person.types("moves")
        assert person.view.ready
        assert len(person.view.legal) == 40

    house.talk(story)


def test_a_whole_game_of_two_persons(house: House) -> None:
    async def story(person: Person) -> None:
        await person.types(*GAME)
        view = person.view
        assert view.end is not None
        assert (view.end.result, view.end.reason) == ("d", "king_escaped")
        assert "defenders win: king escaped" in view.end.words
        assert sum("The game is over" in line for line in person.said) == 1
        assert view.prompt == "game over"
        assert not {"resign", "draw", "go", "hint", "moves"} & set(view.words)
        assert {"new", "undo", "save", "history"} <= set(view.words)
        for line in ("a4a3", "resign", "draw", "go", "hint", "analyze"):
            assert "the game is over" in await person.fails(line)
        await person.types("undo")
        assert person.view.end is None
        assert person.view.board.side == "d"

    house.talk(story)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("d1d3", "blocked at d2"),
        ("d3c3", "that is a defender, attackers are to move"),
        ("a1a2", "nothing stands on a1"),
        ("a4b5", "a4 and b5 are not in line"),
        ("a4a4", "origin and target are the same"),
        ("a4a1", "only the king may stop on a corner"),
        ("h1h2", "no square h1 on this 7x7 board"),
        ("a4z9", "no square z9 on this 7x7 board"),
    ],
)
def test_why_a_move_is_illegal(house: House, line: str, reason: str) -> None:
    async def story(person: Person) -> None:
        assert await person.fails(line) == f"{line}: {reason}"
        assert not person.view.history

    house.talk(story)


def test_spellings_of_moves(house: House) -> None:
    async def story(person: Person) -> None:
        await person.types("B4-B2", "c4 b4", "D1C1", "Kd4-c4", "f4f2xa1")
        assert moves_of(person.view) == list(GAME[:5])
        assert person.view.history[0].captures == ()

    house.talk(story)


def test_captures_are_told_and_counted(house: House) -> None:
    async def story(person: Person) -> None:
        await person.types("a4a2")
        legal = {move.text: move for move in person.view.legal}
        assert legal["d3a3"].captures == ("a2",)
        assert (await person.types("moves d3")).lines[1].startswith("d3: a3xa2 ")
        await person.types("d3a3")
        view = person.view
        assert (view.board.last, view.board.taken, view.board.captures) == (("d3", "a3"), ("a2",), (0, 1))
        assert view.history[-1].long == "d3a3xa2"
        belongs = "d4: the king belongs to the defenders, and the attackers are to move"
        assert await person.fails("moves d4") == belongs

    house.talk(story)


def test_a_game_against_an_engine(house: House) -> None:
    async def story(person: Person) -> None:
        await person.plays(*GAME[::2])
        view = person.view
        assert moves_of(view) == list(GAME)
        assert view.end is not None
        assert view.names == ("person", "Parrot")
        assert "defenders (Parrot): c4b4" in person.said
        record = person.controller.session.record()
        assert record.plies[1].cp == 20
        assert record.plies[1].depth == 3
        assert person.controller.status == 0

    house.talk(story, engine=parrot("at=99"))


def test_undo_leads_back_to_the_person(house: House) -> None:
    async def story(person: Person) -> None:
        await person.plays(*GAME[:6:2])
        await person.types("undo")
        assert moves_of(person.view)[: person.view.ply] == list(GAME[:4])
        await person.types("redo")
        assert person.view.ply == 6
        await person.types("undo 1")
        assert person.view.paused
        assert "wait for go" in person.view.prompt
        await person.plays("go")
        assert (person.view.ply, person.view.paused) == (6, False)
        await person.types("undo 6")
        assert person.view.ply == 0
        assert "nothing has been played" in await person.fails("undo")
        assert "expected a whole number" in await person.fails("redo 7")

    house.talk(story, engine=parrot("at=99"))


def test_an_answer_that_nobody_wants_any_more_is_dropped(house: House, tmp_path: Path) -> None:
    gate = tmp_path / "gate"

    async def story(person: Person) -> None:
        await person.types(GAME[0])
        await person.sees(lambda view: view.thinking is not None and view.thinking.running)
        assert "the defenders are to move, played by" in await person.fails("c4b4")
        await person.types("undo")
        gate.touch()
        opponent = person.controller.session.players["d"].opponent
        assert opponent is not None
        await opponent.idle()
        await person.controller.settled()
        assert person.view.ply == 0
        assert not any("c4b4" in line and "answered" in line for line in person.said)
        await person.plays("b4b2")
        assert moves_of(person.view) == list(GAME[:2])

    house.talk(story, engine=parrot("at=99", f"gate={gate}"))


def test_stop_makes_the_engine_move_at_once(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    # The level would move by itself before a busy machine gets round to stopping it, or be heard to stop too late.
    whole = replace(opponents.LEVELS[10], limits=Limits(movetime=600_000))
    monkeypatch.setitem(opponents.LEVELS, 10, whole)
    monkeypatch.setattr(controller, "GRACE", PATIENCE)

    async def story(person: Person) -> None:
        await person.types("level 10", "b4b2")
        await person.sees(lambda view: view.thinking is not None and view.thinking.lines)
        thinking = person.view.thinking
        assert thinking is not None
        assert (thinking.purpose, thinking.running) == ("move", True)
        reply = await person.controller.interrupt()
        assert reply.lines == ("Told to stop; if it does not, Ctrl-C again leaves.",)
        await person.sees(lambda view: view.ply == 2)
        assert (await person.controller.interrupt()).lines[0].startswith("Leave?")
        await person.types("no")
        assert person.view.question is None
        await person.controller.interrupt()
        assert (await person.controller.interrupt()).quit
        assert person.controller.status == 1

    house.talk(story, engine=at_level("9"))


def test_an_interruption_that_has_to_wait_is_heard_in_its_turn(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "GRACE", 0.01)

    async def story(person: Person) -> None:
        await person.types("moves")
        for heard in (lambda view: view.question, lambda view: view.closed):
            done = asyncio.Event()
            person.controller.events.post(done.wait)  # type: ignore[arg-type]
            assert not (await person.controller.interrupt()).quit
            assert "Ctrl-C again leaves" in person.said[-1]
            done.set()
            await person.sees(heard)
        assert person.controller.status == 1

    house.talk(story)


def test_engines_play_each_other_to_the_end(house: House) -> None:
    async def story(person: Person) -> None:
        await person.controller.settled()
        view = person.view
        assert view.mode == "watch"
        assert moves_of(view) == list(GAME)
        assert view.end is not None

    house.talk(story, engine=parrot("at=99"), sides="ad")


def test_a_watched_game_is_held_and_goes_step_by_step(house: House) -> None:
    async def story(person: Person) -> None:
        await person.sees(lambda view: view.ply >= 1)
        await person.types("pause")
        held = person.view.ply
        assert person.view.paused
        assert person.view.prompt == "paused"
        await person.plays("step")
        assert person.view.ply == held + 1
        await person.plays("step")
        assert person.view.ply == held + 2
        await person.types("speed 0", "pause")
        await person.controller.settled()
        assert person.view.end is not None
        assert "only a game of engines" in await person.fails("step")

    house.talk(story, engine=parrot("at=99", "delay=0.05"), sides="ad", settings=Settings(speed=0.05))


def test_a_person_takes_over_and_lets_go(house: House) -> None:
    async def story(person: Person) -> None:
        await person.plays(GAME[0])
        await person.types("side both")
        assert person.view.kinds == ("person", "person")
        await person.types(GAME[2], GAME[3])
        await person.plays("side a", GAME[4])
        assert person.view.ply == 6
        for word in ("z", "x", "white"):
            said = await person.fails(f"side {word}")
            assert said == f"side '{word}': expected a (attackers) or d (defenders), both or none"
        await person.plays("side attackers")
        assert person.view.kinds == ("person", "engine")

    house.talk(story, engine=parrot("at=99"))


def test_the_engine_plays_at_the_level_that_was_chosen(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Level 0 played at full strength once: 0 was taken for no level."""
    chosen = []
    set_variant = Engine.set_variant

    async def noted(engine: Engine, name: str, options: Mapping[str, str | int | bool]) -> object:
        if opponents.OPTION in options:
            chosen.append(options[opponents.OPTION])
        return await set_variant(engine, name, options)

    async def story(person: Person) -> None:
        await person.plays("level 0", "b4b2")

    monkeypatch.setattr(Engine, "set_variant", noted)
    house.talk(story, engine=at_level("9"))
    assert chosen[-1] == 0


# Ends


def test_resigning_is_asked_about(house: House) -> None:
    async def story(person: Person) -> None:
        await person.types("b4b2")
        reply = await person.types("resign")
        assert person.view.question == reply.lines[0]
        assert person.view.words == ("yes", "no")
        await person.types("no")
        assert person.view.end is None
        await person.types("resign", "moves")  # anything else drops the question
        assert person.view.question is None
        await person.types("resign")
        assert "neither a move nor a word" in await person.fails("what?")
        assert person.view.question is not None
        assert (await person.types("n")).lines == ("Nothing was done.",)
        assert person.view.question is None
        await person.types("resign")
        reply = await person.controller.interrupt()
        assert not reply.quit
        assert reply.lines[0].startswith("Nothing was done. Leave? An unfinished game is saved.")
        assert person.view.end is None
        await person.types("no", "resign", "y")
        assert person.view.end is not None
        assert (person.view.end.result, person.view.end.reason) == ("a", "resignation")
        reply = await person.controller.interrupt()
        assert reply.lines == ("Leave? (yes or no; Ctrl-C again leaves)",)
        await person.types("no")
        await person.types("undo")
        assert person.view.end is None

    house.talk(story)


def test_a_game_that_is_resigned_after_a_takeback_keeps_its_result(house: House, tmp_path: Path) -> None:
    async def story(person: Person) -> None:
        await person.types("b4b2", "c4b4", "undo", "resign", "yes")
        await person.types(f"save {tmp_path / 'game.tafl'}")
        assert "redo" not in person.view.words

    person = house.talk(story)
    saved = (tmp_path / "game.tafl").read_text()
    assert '[Result "a resignation"]' in saved
    assert saved.rstrip().endswith("1. b4b2 a")
    (record,) = journal.read(person.journal)
    assert record.outcome is not None
    assert (record.outcome.text, len(record.plies)) == ("a resignation", 1)


def test_a_draw_between_persons(house: House) -> None:
    async def story(person: Person) -> None:
        await person.types("draw", "b4b2", "c4b4", "draw", "d1c1", "no", "d4c4", "draw", "f4f2")
        assert person.view.end is None
        await person.types("draw")
        assert person.view.end is not None
        assert (person.view.end.result, person.view.end.reason) == ("draw", "agreed_draw")

    house.talk(story)


def test_an_engine_declines_a_draw_in_the_opening(house: House) -> None:
    async def story(person: Person) -> None:
        await person.plays("b4b2")
        assert (await person.types("draw")).lines == ("Parrot declines.",)
        person.controller.session.players["d"].score = 5
        person.controller.session.game.at.ply = 30
        await person.types("draw")
        assert person.view.end is not None

    house.talk(story, engine=parrot("at=99"))


def test_an_engine_resigns(house: House) -> None:
    async def story(person: Person) -> None:
        await person.plays("b4b2")
        assert person.view.end is not None
        assert (person.view.end.result, person.view.end.reason) == ("a", "resignation")

    house.talk(story, engine=parrot("resign", "at=1"))


def test_who_has_no_time_left_has_lost(house: House) -> None:
    async def story(person: Person) -> None:
        await person.types("clock 0.005+0", "b4b2")
        view = await person.sees(lambda view: view.end is not None)
        assert view.end is not None
        assert (view.end.result, view.end.reason) == ("a", "time")
        assert view.clock is not None
        assert (view.clock.running, view.clock.left[1]) == (None, 0)
        assert "the game is over" in await person.fails("c4b4")

    house.talk(story)


def test_an_engine_that_thinks_for_ever_loses_on_time(house: House) -> None:
    async def story(person: Person) -> None:
        await person.types("clock 0.005+0", "b4b2")
        view = await person.sees(lambda view: view.end is not None)
        assert view.end is not None
        assert (view.end.result, view.end.reason) == ("a", "time")

    house.talk(story, engine=script(FAKE, "forever"))


def test_the_clock_runs_from_the_first_ply_and_is_written_down(house: House) -> None:
    async def story(person: Person) -> None:
        await person.plays("clock 5+60")
        assert person.view.clock is not None
        assert (person.view.clock.left, person.view.clock.running) == ((300_000, 300_000), None)
        await person.plays("b4b2")
        clock = person.view.clock
        assert clock is not None
        assert clock.running == "a"
        plies = person.controller.session.record().plies
        assert plies[0].clock == 360_000
        assert 300_000 < (plies[1].clock or 0) <= 360_000
        await person.types("undo")
        assert person.view.clock is not None
        assert person.view.clock.left == (300_000, 300_000)
        assert "expected minutes+seconds" in await person.fails("clock soon")
        await person.types("clock off")
        assert person.view.clock is None

    house.talk(story, engine=parrot("at=99"))


def test_a_game_ends_while_nobody_looks(house: House) -> None:
    """Whatever is typed while an engine makes the last ply comes after the end."""

    async def story(person: Person) -> None:
        await person.types("paste " + WINNING)
        await person.types("side a")
        replies = await asyncio.gather(
            *(person.controller.submit(line) for line in ("moves", "a3a2", "resign"))
        )
        await person.sees(lambda view: view.end is not None)
        assert len(replies) == 3
        assert sum("The game is over" in line for line in person.said) == 1

    house.talk(story, engine=at_level("3"))


def test_shuffling_engines_are_stopped_by_the_rules(house: House) -> None:
    async def story(person: Person) -> None:
        await person.controller.settled()
        assert person.view.end is not None
        assert person.view.end.reason == "repetition"

    house.talk(story, engine=script(SHUFFLE), sides="ad")
