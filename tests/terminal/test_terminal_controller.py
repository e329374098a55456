"""Games at the terminal without a terminal: what lines do, how games end, and that nothing is lost."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from terminal_parts import FAKE, GAME, PATIENCE, SHUFFLE, House, Person, moves_of, parrot, script

from hnefi.engine.games.tafl.variant import load as load_variant
from hnefi.engine.search.types import Limits
from hnefi.gui_adapter.terminal import controller, opponents, questions
from hnefi.gui_adapter.terminal import settings as preferences
from hnefi.gui_adapter.terminal.commands.files import goodbye
from hnefi.gui_adapter.terminal.opponents import Opponent, Spec, at_level
from hnefi.gui_adapter.terminal.settings import Settings, load
from hnefi.protocol.answers import InfoLine
from hnefi.protocol.client import Answer, Engine
from hnefi.protocol.hosts import journal

pytestmark = pytest.mark.process

WINNING = "4K2/7/7/7/t6/7/7 d 0 30"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    built = House(tmp_path_factory.mktemp("terminal"))
    yield built
    built.close()


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
        assert reply.lines == ("Stopped.",)
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
    set_option = Engine.set_option

    async def noted(engine: Engine, name: str, value: str | int | bool | None = None) -> None:
        if name == opponents.OPTION:
            chosen.append(value)
        await set_option(engine, name, value)

    async def story(person: Person) -> None:
        await person.plays("level 0", "b4b2")

    monkeypatch.setattr(Engine, "set_option", noted)
    house.talk(story, engine=at_level("9"))
    assert chosen == [0]


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
        await person.types("resign", "y")
        assert person.view.end is not None
        assert (person.view.end.result, person.view.end.reason) == ("a", "resignation")
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
    (record,) = journal.read(_journal(person))
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


# Looking and thinking


def test_going_through_a_game_and_trying_something_else(house: House) -> None:
    async def story(person: Person) -> None:
        await person.types(*GAME[:6], "goto 2")
        view = person.view
        assert (view.mode, view.ply, len(view.history)) == ("replay", 2, 6)
        assert view.prompt == "ply 2 of 6"
        assert [entry.is_current for entry in view.history] == [False, True, False, False, False, False]
        await person.types("annotate now \x1b[31m it begins", "f4f2", "annotate too timid")
        assert moves_of(person.view) == [*GAME[:2], "f4f2"]
        assert person.view.history[2].variations == 1
        assert person.view.history[1].comment == "now  [31m it begins"
        listed = (await person.types("variation")).lines
        assert listed[0] == "0  d1c1 d4c4 f4f2 c4c7  (main line)"
        assert listed[1] == "1  f4f2  *"
        await person.types("variation 0")
        assert moves_of(person.view) == list(GAME[:6])
        await person.types("variation 1", "variation main", "goto end")
        assert moves_of(person.view) == [*GAME[:2], "f4f2"]
        await person.types("variation delete")
        assert moves_of(person.view) == list(GAME[:6])
        await person.types("goto start", "goto next", "goto next", "goto back", "goto end")
        assert (person.view.ply, person.view.mode) == (6, "play")
        assert "whole number from 0 to 6" in await person.fails("goto 7")
        assert "whole number" in await person.fails("variation 3")

    house.talk(story)


def test_what_was_taken_back_stays_as_a_variation(house: House) -> None:
    async def story(person: Person) -> None:
        await person.types(*GAME[:4], "undo 2", "f4f2")
        assert moves_of(person.view) == [*GAME[:2], "f4f2"]
        assert person.view.history[2].variations == 1
        assert (await person.types("history")).lines == ("  1. b4b2  c4b4", "  2. f4f2(+1)*")

    house.talk(story)


def test_a_replay_runs_to_the_end(house: House) -> None:
    async def story(person: Person) -> None:
        await person.types(*GAME, "replay 0")
        await person.controller.settled()
        assert person.view.ply == len(GAME)
        await person.types("replay 5")
        assert (person.view.mode, person.view.ply) == ("replay", 0)
        await person.types("step", "step", "pause", "stop")
        assert person.view.mode == "replay"
        assert "nothing is running" in await person.fails("stop")
        assert "seconds from 0 to 60" in await person.fails("replay x")
        await person.types("goto end")
        assert person.view.end is not None

    house.talk(story)


def test_solved_positions_are_shown_move_by_move(house: House) -> None:
    async def story(person: Person) -> None:
        assert "8 attackers against 4 defenders: expected one king" in await person.fails("tb")
        assert "nowhere.taflbase: No such file" in await person.fails("tb nowhere.taflbase")
        await person.plays("side none")
        await person.plays("paste 7/7/7/7/t6/T6/1tKt3 a")
        said = (await person.types("tb")).lines
        assert said[:3] == ("Attackers: win in 7", "  * a3c3     win in 7", "    a3a4     loss in 4")
        assert len(said) == 23

    house.talk(story)


def test_hint_evaluation_and_analysis(house: House) -> None:
    async def story(person: Person) -> None:
        assert "no engine has thought" in await person.fails("pv")
        await person.plays("hint")
        assert any(line.startswith("Hint: ") and "attackers " in line for line in person.said)
        assert (await person.types("eval")).lines[-1].split()[0] == "total"
        await person.types("analyze 2")
        view = await person.sees(lambda view: view.thinking is not None and len(view.thinking.lines) == 2)
        assert view.mode == "analysis"
        assert view.thinking is not None
        assert view.thinking.lines[0].wdl is not None
        assert [line.multipv for line in view.thinking.lines] == [1, 2]
        await person.types("a4a2")
        view = await person.sees(lambda view: view.thinking is not None and view.thinking.lines)
        assert view.thinking is not None
        first = view.thinking.lines[0]
        assert first.cp is None or first.cp < 100  # in the view of the attackers, who are about to lose a man
        await person.types("pv", "stop")
        assert person.view.mode == "play"
        assert person.view.thinking is not None
        assert not person.view.thinking.running
        await person.plays("hint")
        await person.types("undo")
        assert person.view.thinking is None

    house.talk(story)


def test_analysing_against_an_engine_leaves_it_waiting(house: House) -> None:
    async def story(person: Person) -> None:
        await person.plays("b4b2", "analyze 1", "d1c1")
        assert person.view.board.side == "d"
        await person.types("stop")
        assert person.view.paused
        await person.plays("go")
        assert moves_of(person.view) == list(GAME[:4])

    house.talk(story, engine=parrot("at=99"), interactive=False)


def test_a_hint_that_comes_too_late_is_not_dropped_silently(house: House) -> None:
    async def story(person: Person) -> None:
        await person.types("hint", "b4b2")
        assert "No hint: the game went on before it was found." in person.said
        await person.plays("hint")
        assert sum(line.startswith("Hint: ") for line in person.said) == 1

    house.talk(story)


def test_why_nothing_can_be_played_from_a_square(house: House) -> None:
    async def story(person: Person) -> None:
        await person.types("b4b2")
        assert (await person.fails("moves d4")).startswith("d4: the king has no move here: ")
        assert (await person.fails("moves a1")).startswith("a1: nothing stands there")
        assert await person.fails("moves z9") == "moves 'z9': no such square on this 7x7 board"
        assert (await person.fails("moves a4")).startswith("a4: this man belongs to the attackers")

    house.talk(story)


def test_a_weaker_level_says_where_it_leaves_its_best_line() -> None:
    played = InfoLine(multipv=1, pv=("c4c5", "d1c1"))

    def answer(*strings: str) -> Answer:
        return Answer("c4c5", None, (played,), strings, 0.0, 0.0)

    weak, strong = Opponent(at_level("2")), Opponent(Spec())
    best = "info string note a weaker level leaves its best line c4b4 d1c1 a2a3"
    assert questions._instead(weak, answer("info string note of another kind")) == ""
    assert questions._instead(weak, answer(best)).startswith(" (its best line was c4b4 d1c1: ")
    assert questions._instead(strong, answer(best)) == ""


# Other games


@pytest.mark.parametrize(
    ("variant", "moves", "sides"),
    [
        ("hex:3", ("b2", "a1", "b3", "a2", "b1"), ("x", "o")),
        ("hex-swap:3", ("b2", "swap", "a1"), ("x", "o")),
        ("hexapawn", ("b1b2", "a3b2", "a1b2"), ("white", "black")),
        ("alea-evangelii", ("c1c2", "j9j8"), ("attackers", "defenders")),
    ],
)
def test_other_games(house: House, variant: str, moves: tuple[str, ...], sides: tuple[str, str]) -> None:
    async def story(person: Person) -> None:
        await person.types(*moves)
        assert moves_of(person.view) == list(moves)
        assert person.view.sides == sides
        await person.types("rules", "copy", "history", "moves")
        if variant == "hex:3":
            assert person.view.end is not None
            assert person.view.end.words == "x win: connected"
        person.folder.mkdir(parents=True, exist_ok=True)
        rows = person.view.board.rows
        await person.types(f"save {person.folder}/game.tafl", "new", f"load {person.folder}/game.tafl")
        assert person.view.board.rows == rows

    house.talk(story, variant=variant)


def test_another_variant_and_back(house: House) -> None:
    async def story(person: Person) -> None:
        await person.types("b4b2", "variant tablut")
        assert (person.view.variant, person.view.board.files) == ("tablut-linnaeus", 9)
        await person.types("new hex:5", "new brandubh")
        assert "did you mean brandubh?" in await person.fails("variant brandubhh")
        assert person.view.variant == "brandubh"
        assert (await person.types("variant")).lines[0].startswith("This is brandubh")

    house.talk(story)


def test_rules_of_ones_own(house: House, tmp_path: Path) -> None:
    file = tmp_path / "tiny.toml"
    rows = "start = ['2t2', '5', 't1K1t', '5', '2t2']"
    file.write_text(f"name = 'tiny'\n{rows}\n[rules]\nescape = 'edge'\ncorners = 'none'\n")

    async def story(person: Person) -> None:
        await person.controller.session.begin(load_variant(file))
        await person.types("c1b1", "c3c2")
        record = f"{tmp_path}/tiny.tafl"
        await person.types(f"save {record}", "new brandubh", f"load {record}")
        assert (person.view.variant, person.view.ply) == ("tiny", 2)
        assert person.view.legal

    house.talk(story)


def test_what_is_set_is_kept_alone(house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    async def story(person: Person) -> None:
        await person.types("set theme light", "set speed 2")
        assert (person.view.settings.theme, person.view.settings.glyphs) == ("light", "ascii")
        assert person.controller.session.speed == 2
        assert "expected one of" in await person.fails("set theme pink")
        assert "`settings` lists them" in await person.fails("set theme")

    house.talk(story, settings=Settings(glyphs="ascii"))
    kept, complaints = load()
    assert (kept.theme, kept.speed, kept.glyphs, complaints) == ("light", 2.0, "auto", [])


def test_settings_are_written_once_for_many_changes(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As somebody does it who holds a key; and the file is named."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(preferences, "KEPT_AFTER", 600.0)
    written: list[int] = []
    save = preferences.save

    def counted(kept: Settings, file: Path | None = None) -> Path:
        written.append(kept.zoom)
        return save(kept, file)

    monkeypatch.setattr(preferences, "save", counted)

    async def story(person: Person) -> None:
        assert str(preferences.path()) in (await person.types("settings")).lines[-1]
        for number in range(9):
            await person.types(f"set zoom {number % 3 + 1}")
        assert str(tmp_path) in person.said[-1]

    house.talk(story)
    assert written == [3], "at the end"


# Hostile lines


def test_no_line_does_harm(house: House) -> None:
    rng = random.Random(7)
    pool = [
        "", " ", "#", "\x00\x1b[2J", "a" * 70_000, "undo -1", "undo 99999999999999999999", "goto 1e9", "level 0",
        "level d", "level x y", "player", "player ../../etc/passwd", "engine", 'engine "', "clock 1+", "clock 9999+1",
        "clock \u0660+1", "set", "set x", "set theme", "set level 99", "load", "load /", "load /nowhere/x.tafl",
        "load 3", "save", "save /nowhere/x.tafl",
        "save x.exe", "copy x", "paste", "paste x", "paste 9/9/9 a", "paste {",
        "paste [Variant", "paste a4a2 a4a2", "help zzz", "help", "variation -1", "annotate " + "z" * 1000, "moves z9",
        "replay nan", "speed inf", "speed -1", "analyze 99", "yes", "no", "r", "variant hex:99", "new hexapawn:1x1",
        "swap", "f6", "d1d1d1", "K", "\ud800", "\u202eabc", "step", "pause", "stop", "redo", "draw x", "continue",
    ]  # fmt: skip

    async def story(person: Person) -> None:
        for _ in range(250):
            line = rng.choice(pool)
            if rng.random() < 0.2:
                line = "".join(chr(rng.randrange(1, 0x3000)) for _ in range(rng.randrange(1, 40)))
            reply = await person.controller.submit(line)
            assert all(text.isprintable() for text in reply.lines), (line, reply)
            assert all(len(text) < 3000 for text in reply.lines), line
        await person.types("new brandubh", "b4b2")
        assert person.view.ply == 1

    house.talk(story, interactive=False)


# Nothing is lost


def test_a_journal_is_written_ply_by_ply(house: House) -> None:
    async def story(person: Person) -> None:
        await person.types(*GAME[:3], "undo 1", "f4f2")
        lines = [json.loads(line) for line in _journal(person).read_text().splitlines()]
        assert [line.get("event", line.get("move")) for line in lines] == [
            "begin", "b4b2", "c4b4", "d1c1", "undo", "f4f2",
        ]  # fmt: skip
        assert lines[0]["variant"] == "brandubh"

    person = house.talk(story)
    (record,) = journal.read(_journal(person))
    assert [ply.captures for ply in record.plies] == [(), (), ()]
    assert record.outcome is None
    last = json.loads(_journal(person).read_text().splitlines()[-1])
    assert (last["event"], last["reason"]) == ("end", "interrupted")


def test_a_finished_game_in_the_journal(house: House) -> None:
    async def story(person: Person) -> None:
        await person.types(*GAME, "new", "a4a2")
        await person.types(f"load {_journal(person)} 1")
        assert moves_of(person.view) == list(GAME)
        assert person.view.end is not None

    person = house.talk(story)
    first, second = journal.read(_journal(person))
    assert first.outcome is not None
    assert first.outcome.text == "d king_escaped"
    assert len(second.plies) == 1


def _journal(person: Person) -> Path:
    (file,) = (person.folder / "journal").glob("*.jsonl")
    return file


def test_an_unfinished_game_is_gone_on_with(house: House, tmp_path: Path) -> None:
    async def leave(person: Person) -> None:
        await person.plays("level 1", "clock 5+3", "b4b2", "annotate hm")
        assert (await person.types("quit")).quit
        assert goodbye(person.controller)[0].startswith("The game is saved")

    async def come_back(person: Person) -> None:
        assert "continue" in person.view.words
        await person.plays("continue")
        view = person.view
        assert (view.ply, view.names[1]) == (2, "hnefi level 1")
        assert view.clock is not None
        assert view.clock.base == 300_000
        assert view.history[1].comment == "hm"
        assert "continue" not in view.words
        await person.types("side both")
        for _ in range(200):
            if person.view.end is not None:
                break
            await person.types(person.view.legal[-1].text)
        await person.types(*(() if person.view.end else ("resign", "yes")))

    async def nothing_left(person: Person) -> None:
        assert "no unfinished game" in await person.fails("continue")

    house.talk(leave, engine=at_level("1"), folder=tmp_path)
    house.talk(come_back, folder=tmp_path)
    house.talk(nothing_left, folder=tmp_path)


def test_a_folder_that_cannot_be_written_harms_no_game(house: House, tmp_path: Path) -> None:
    (tmp_path / "journal").write_text("a file where a folder should be")
    (tmp_path / "unfinished").write_text("the same")

    async def story(person: Person) -> None:
        await person.types(*GAME)
        assert person.view.end is not None
        assert sum("not written down" in line for line in person.said) == 1

    house.talk(story, folder=tmp_path)


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
