"""Games at the terminal without a terminal: a game that is looked at, other games, and that nothing is lost."""

from __future__ import annotations

import asyncio
import json
import random
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from terminal_parts import GAME, House, Person, moves_of, parrot

from hnefi.engine.evaluators import NETWORKS
from hnefi.engine.games.tafl.variant import load as load_variant
from hnefi.gui_adapter.terminal import questions
from hnefi.gui_adapter.terminal import settings as preferences
from hnefi.gui_adapter.terminal.commands.files import goodbye
from hnefi.gui_adapter.terminal.opponents import Opponent, Spec, at_level
from hnefi.gui_adapter.terminal.settings import Settings, load
from hnefi.protocol.answers import InfoLine
from hnefi.protocol.client import Answer
from hnefi.protocol.hosts import journal

pytestmark = pytest.mark.process


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
        assert await person.fails("variation 3") == "variation '3': nothing else was tried at this ply"

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
        assert "tb: nowhere.taflbase: No such file" in await person.fails("tb nowhere.taflbase")
        await person.plays("side none")
        await person.plays("paste 7/7/7/7/t6/T6/1tKt3 a")
        said = (await person.types("tb")).lines
        assert said[:3] == ("Attackers: win in 7", "  * a3c3     win in 7", "    a3a4     loss in 4")
        assert len(said) == 23
        assert (await person.types("tb brandubh-4v1")).lines[0] == "Attackers: win in 7"

    house.talk(story)


def test_hint_evaluation_and_analysis(house: House) -> None:
    async def story(person: Person) -> None:
        assert "no engine has searched" in await person.fails("pv")
        await person.plays("hint")
        assert any(re.match(r"Hint: .*\((attackers|defenders) ", line) for line in person.said)
        assert "total" in [line.split()[0] for line in (await person.types("eval")).lines]
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


def test_an_engine_is_not_taken_to_rules_that_its_evaluator_is_not_for(house: House, tmp_path: Path) -> None:
    """Neither by a word nor with a file; what it evaluates by is shown."""
    file, player = tmp_path / "net.safetensors", tmp_path / "mine.toml"
    shutil.copy(NETWORKS["net-brandubh-2"], file)
    player.write_text('evaluator = "net.safetensors"\n')
    (tmp_path / "old.tafl").write_text('[Variant "tablut-linnaeus"]\n\n*\n')

    async def story(person: Person) -> None:
        said = (await person.types("eval")).lines
        assert said[0] == f"Seen by the attackers, before any search ({file}):"
        assert "chooses its moves" not in said[-1]
        for line in ("variant tablut-linnaeus", "new tablut-linnaeus", f"load {tmp_path}/old.tafl"):
            failed = await person.fails(line)
            assert "tablut-linnaeus: " in failed
            assert f"{file}: made for brandubh" in failed
            assert failed.endswith(": `level 5` plays instead")
        assert person.view.variant == "brandubh"
        await person.types("side both", "variant tablut-linnaeus")
        for line in ("side a", "go", "eval", f"player {player}"):
            assert f"{file}: made for brandubh" in await person.fails(line)
        await person.types("level 5", "side a")
        assert (await person.types("eval")).lines[-1] == "hnefi level 5 chooses its moves by default-2026.1."

    house.talk(story, engine=replace(at_level("3"), options={"Evaluator": str(file)}))


def test_an_evaluation_says_whose_it_is(house: House) -> None:
    """By hand it has many terms; a network has one, and the men that matter most to it."""

    async def story(person: Person) -> None:
        await person.types("new ard-ri")
        first, *terms = (await person.types("eval")).lines
        assert first == "Seen by the attackers, before any search (default-2026.3):"
        assert [terms[0].split()[0], terms[-2].split()[0]] == ["material", "total"]
        assert terms[-1] == "hnefi level 5 chooses its moves by default-2026.1."
        await person.types("new copenhagen")
        first, network, total, without, *men, _ = (await person.types("eval")).lines
        assert first == "Seen by the attackers, before any search (net-copenhagen-7):"
        assert network.split()[1] == total.split()[1]
        assert without == "What the position would lose without these:"
        assert all(re.fullmatch(r"  (attacker|defender) [a-k]\d+ +[+-]\d+\.\d\d", line) for line in men), men
        assert len(men) == 8

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


def test_a_hint_while_the_engine_is_to_move_comes_after_its_move(house: House) -> None:
    """Typed while the rules are loaded; the engine is asked in the moment in which all three lines are carried out."""

    async def story(person: Person) -> None:
        waiting = [asyncio.ensure_future(person.types(line)) for line in ("b4b2", "hint", "eval")]
        await asyncio.sleep(0)
        assert not person.view.ready
        moved, told, _ = await asyncio.gather(*waiting)
        assert moved.lines == ()
        assert told.lines[0].startswith("The hint comes after the move of ")
        await person.controller.settled()
        assert moves_of(person.view) == list(GAME[:2])
        assert sum(line.startswith("Hint: ") for line in person.said) == 1

    house.talk(story, engine=parrot("at=99"))


def test_a_hint_is_given_whenever_it_is_typed(house: House) -> None:
    async def story(person: Person) -> None:
        asked = asyncio.ensure_future(person.types("hint"))
        await asyncio.sleep(0)
        assert not person.view.ready
        await asked
        await person.hears("Hint: ")

    house.talk(story, engine=parrot("at=99"))


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


def test_what_is_pasted(house: House) -> None:
    async def story(person: Person) -> None:
        expected = "expected a FEN, moves, or a recorded game"
        for text in ("garbage", "d1 garbage", "fen 9"):
            assert f"{text!r}: {expected}" in await person.fails(f"paste {text}")
        assert "board '9/9/9': 3 rows: expected 7" in await person.fails("paste 9/9/9 a")
        await person.types("new brandubh", "side both")
        assert (await person.types("paste b4b2")).lines == ("1 ply from the start of brandubh.",)
        assert person.view.ply == 1

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
        lines = [json.loads(line) for line in person.journal.read_text().splitlines()]
        assert [line.get("event", line.get("move")) for line in lines] == [
            "begin", "b4b2", "c4b4", "d1c1", "undo", "f4f2",
        ]  # fmt: skip
        assert lines[0]["variant"] == "brandubh"

    person = house.talk(story)
    (record,) = journal.read(person.journal)
    assert [ply.captures for ply in record.plies] == [(), (), ()]
    assert record.outcome is None
    last = json.loads(person.journal.read_text().splitlines()[-1])
    assert (last["event"], last["reason"]) == ("end", "interrupted")


def test_a_finished_game_in_the_journal(house: House) -> None:
    async def story(person: Person) -> None:
        await person.types(*GAME, "new", "a4a2")
        await person.types(f"load {person.journal} 1")
        assert moves_of(person.view) == list(GAME)
        assert person.view.end is not None

    person = house.talk(story)
    first, second = journal.read(person.journal)
    assert first.outcome is not None
    assert first.outcome.text == "d king_escaped"
    assert len(second.plies) == 1


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
        assert sum("not recorded" in line for line in person.said) == 1

    house.talk(story, folder=tmp_path)
