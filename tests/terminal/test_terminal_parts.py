"""The small parts of the terminal: words, clock, levels, moves as text, journals, saved games, commands."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from datetime import datetime, tzinfo
from pathlib import Path

import pytest

from hnefi.engine import options
from hnefi.engine.games import find
from hnefi.engine.games.tafl.variant import Variant, load
from hnefi.engine.records.record import GameRecord
from hnefi.engine.records.rule_sets import finder
from hnefi.engine.search.types import Limits, Score
from hnefi.engine.squares import move, move_name, square
from hnefi.gui_adapter.terminal import clock, opponents, saving
from hnefi.gui_adapter.terminal.commands import table
from hnefi.gui_adapter.terminal.game import Game, Node, facts_of, next_side, typed_move
from hnefi.gui_adapter.terminal.questions import as_line
from hnefi.protocol.answers import InfoLine
from hnefi.protocol.hosts import journal
from hnefi.protocol.hosts.journal import Journal, JournalError
from hnefi.protocol.hosts.rulebook import special_squares
from hnefi.tools.convert import main as convert


def test_every_word_does_something() -> None:
    for word in table.TABLE.values():
        assert word.help
        assert word.examples, word.name
        assert all(table.find(example.split()[0]).name in (word.name, "stop") for example in word.examples)


def test_unique_beginnings() -> None:
    for name in table.TABLE:
        short = table.shortest(name)
        assert table.find(short).name == name
        assert table.find(short.upper()).name == name
    assert table.find("analyse").name == "analyze"
    assert table.find("analy").name == "analyze"
    assert table.find("exit").name == "quit"
    with pytest.raises(table.UnknownWord, match="redo, replay, resign, review or rules"):
        table.find("r")
    with pytest.raises(table.UnknownWord, match="did you mean history"):
        table.find("histroy")
    with pytest.raises(table.UnknownWord, match="'zoom' is a setting: expected for example `set zoom auto`"):
        table.find("zoom")
    with pytest.raises(table.UnknownWord):
        table.find("")


def test_the_levels_are_those_of_the_engine() -> None:
    assert sorted(opponents.LEVELS) == list(range(11))
    for number in opponents.LEVELS:
        spec = opponents.at_level(str(number))
        assert (spec.own, spec.level, spec.limits) == (True, number, Limits(movetime=opponents.THINKING_MS))
    option = options.find(opponents.OPTION)
    assert option is not None
    assert (option.low, option.high, option.default) == (0, 10, "10")
    assert opponents.level_lines()[0] == "    0  for beginners: plays most of its moves at random"
    assert opponents.level_lines()[1].startswith("    1  searches 10 positions a move, often")
    assert opponents.level_lines()[-1] == "   10  the whole engine, 5 seconds a move"


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("5+3", (300_000, 3000)),
        ("0.5", (30_000, 0)),
        ("1+0.1", (60_000, 100)),
        ("off", None),
        (" None ", None),
    ],
)
def test_clocks_as_text(text: str, times: tuple[int, int] | None) -> None:
    assert clock.read(text) == times
    if times is not None:
        assert clock.read(clock.spell(*times)) == times


@pytest.mark.parametrize(
    "text", ["", "5+", "0+3", "+3", "9999+1", "1441", "5+3+1", "-5", "five", "5 + 3", "٥"]
)
def test_clocks_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        clock.read(text)


def test_a_clock_runs_for_one_side_at_a_time() -> None:
    game = clock.GameClock(10_000, 1000)
    assert game.view(0.0).left == (10_000, 10_000)
    game.run("a", 1.0)
    game.run("a", 2.0)
    assert game.left("a", 3.0) == 8000
    assert game.moved("a", 3.0) == 9000
    game.run("d", 3.0)
    assert (game.left("a", 5.0), game.left("d", 5.0)) == (9000, 8000)
    assert game.view(20.0).left == (9000, 0)
    assert game.view(5.0).running == "d"
    game.hold(5.0)
    assert game.left("d", 9.0) == 8000
    game.reset((4000, None))
    assert game.view(9.0).left == (4000, 10_000)


@pytest.mark.parametrize(
    ("line", "move"),
    [
        ("d1d3", "d1d3"), ("D1-D3", "d1d3"), ("d1 d3", "d1d3"), ("  d1   d3 ", "d1d3"), ("d1d3xd4/e3", "d1d3"),
        ("Ke5-e1--", "e5e1"), ("a10a11", "a10a11"), ("f6", "f6"), ("swap", "swap"), ("SWAP", "swap"), ("a4a4", "a4a4"),
        ("z1z2", "z1z2"), ("undo", None), ("undo 1", None), ("d1", "d1"), ("level 3", None), ("", None), ("e", None),
        ("goto 3", None), ("moves d1", None), ("d1d", None), ("help a", None),
    ],
)  # fmt: skip
def test_typed_moves(line: str, move: str | None) -> None:
    assert typed_move(line) == move


def test_a_fen_alone() -> None:
    facts = facts_of("3ttttt3/5t5/11/t4T4t/t3TTT3t/tt1TTKTT1tt/t3TTT3t/t4T4t/11/5t5/3ttttt3 d 0 7")
    assert (facts.side, facts.asked, facts.legal) == ("d", False, ())
    assert facts.rows[2] == "." * 11
    assert facts.rows[5] == "tt.TTKTT.tt"
    camps = special_squares(find("tablut-bologna").rules_lines())
    assert {"throne", "camp"} <= set(camps.values())
    assert special_squares(find("hex:5").rules_lines()) == {}


def test_scores_are_in_the_view_of_the_attackers() -> None:
    info = InfoLine(depth=3, score=Score(cp=40), wdl=(700, 100, 200), nodes=5, pv=("a1a2",))
    mine, theirs = as_line(info, "a"), as_line(info, "d")
    assert (mine.cp, mine.wdl) == (40, (700, 100, 200))
    assert (theirs.cp, theirs.wdl, theirs.pv) == (-40, (200, 100, 700), ("a1a2",))
    mate = as_line(InfoLine(score=Score(mate=-2)), "d", theirs)
    assert (mate.cp, mate.mate, mate.depth, mate.pv) == (None, 2, 3, ("a1a2",))


def test_opponents_whose_evaluator_cannot_be_read(tmp_path: Path) -> None:
    player = tmp_path / "mine.toml"
    player.write_text('evaluator = "mine.safetensors"\n')
    variant = find("brandubh")
    with pytest.raises(ValueError, match="No such file or directory"):
        opponents.by_name(str(player), variant)
    (tmp_path / "mine.safetensors").write_bytes(b"x" * 300)
    with pytest.raises(ValueError, match="a header of"):
        opponents.by_name(str(player), variant)


def test_what_an_engine_of_ours_evaluates_by(tmp_path: Path) -> None:
    """A level has an evaluator of its own unless another one is asked for, which is said."""
    player = tmp_path / "mine.toml"
    player.write_text('evaluator = "net-brandubh-2"\n')
    mine, level = opponents.Spec(str(player)), opponents.at_level("3")
    chosen = replace(level, options={"evaluator": "net-brandubh-2"})
    brandubh, fetlar = find("brandubh"), find("fetlar")
    assert [opponents.unfit(spec, brandubh) for spec in (mine, level, chosen)] == [None] * 3
    for spec in (mine, chosen):
        assert "made for brandubh" in str(opponents.unfit(spec, fetlar))
    assert opponents.unfit(level, fetlar) is None
    assert opponents.unfit(replace(chosen, command=("theirs",)), fetlar) is None
    assert [opponents.own_way(spec, brandubh) for spec in (level, chosen, opponents.at_level("10"))] == [
        "default-2026.1",
        "net-brandubh-2",
        "default",
    ]
    assert opponents.unmeasured(chosen, brandubh) == (
        "hnefi level 3 evaluates by net-brandubh-2 instead of default-2026.1, with which the strength of levels was "
        "measured."
    )
    for spec in (mine, level, replace(chosen, level=10)):
        assert opponents.unmeasured(spec, brandubh) is None


def test_opponents_by_name() -> None:
    variant = find("hex:5")
    assert opponents.at_level("7").spelled == "level 7"
    assert opponents.by_name("uct-100", variant).name == "hnefi uct-100"
    assert opponents.by_command("sh 'b c'", variant).command == ("sh", "b c")
    with pytest.raises(ValueError, match="no such program"):
        opponents.by_command("nosuch-program 'b c'", variant)
    for text in ("-1", "11", "x", "", "1e1"):
        with pytest.raises(ValueError, match="from 0 to 10"):
            opponents.at_level(text)
    with pytest.raises(ValueError, match="plays tafl only"):
        opponents.by_name("simple", variant)
    with pytest.raises(ValueError, match="no player"):
        opponents.by_name("../x", variant)


# Journals


def test_a_journal_is_read_as_it_was_written(tmp_path: Path) -> None:
    keeper = Journal("test", tmp_path)
    header = GameRecord("brandubh", players=("anna", "björn"), tags=(("Event", "a test"),))
    first, second = keeper.begin(header), keeper.begin(header)
    first.ply("a4a2", (), 1000, 5)
    second.ply("b4b2", ())
    first.ply("d3a3", ("a2",))
    first.undo(1)
    first.ply("d3b3", ())
    first.end("d", "king_escaped")
    first.ply("a2a3", ())
    second.end(None, "interrupted", "the lights went out")
    one, two = journal.read(_only(tmp_path))
    assert [ply.move for ply in one.plies] == [ply.move for ply in _plies("a4a2", "d3b3")]
    assert (one.plies[0].clock, one.plies[0].time, one.players, one.tag("Event")) == (
        1000,
        5,
        ("anna", "björn"),
        "a test",
    )
    assert one.outcome is not None
    assert one.outcome.text == "d king_escaped"
    assert (len(two.plies), two.outcome) == (1, None)


def _only(folder: Path) -> Path:
    (file,) = folder.glob("*.jsonl")
    return file


def _plies(*moves: str) -> tuple[journal.Ply, ...]:
    from hnefi.engine.moves_text import parse_move_word

    return tuple(journal.Ply(parse_move_word(move, 19)[0]) for move in moves)


def test_a_journal_is_converted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = Journal("test", tmp_path).begin(GameRecord("brandubh"))
    log.ply("a4a2", ())
    log.ply("d3a3", ("a2",))
    log.end("a", "time")
    assert convert([str(_only(tmp_path)), "-", "--from", "journal", "--to", "tafl"]) == 0
    assert "1. a4a2 d3a3xa2 a" in capsys.readouterr().out
    assert convert([str(_only(tmp_path)), "-", "--from", "jsonl", "--to", "tafl"]) == 2


def test_a_game_without_plies_leaves_nothing(tmp_path: Path) -> None:
    log = Journal("test", tmp_path / "games").begin(GameRecord("brandubh"))
    log.end(None, "interrupted")
    assert not (tmp_path / "games").exists()


@pytest.mark.parametrize(
    "line",
    [
        "[]", "{]", '{"game": 1}', '{"game": "x", "ply": 1, "move": "a1a2"}', '{"game": "g", "ply": 3, "move": "a1a2"}',
        '{"game": "g", "ply": 1, "move": "undo"}', '{"game": "g", "ply": true, "move": "a1a2"}',
        '{"game": "g", "ply": 1, "move": "a1a2", "captures": 7}', '{"game": "g", "event": "end", "reason": "joy"}',
        '{"game": "g", "ply": 1, "move": "a1a2", "clock": 1e400}', '{"game": "g", "event": "undo", "plies": -1}',
        '{"game": "g", "event": "begin", "variant": 7}', '{"game": "g", "event": "begin", "rules": "x"}',
        "[" * 100_000, '{"game": "g", "ply": ' + "9" * 10_000 + "}", '{"game":"' + "x" * 2_000_000 + '"}',
    ],
)  # fmt: skip
def test_a_journal_that_cannot_be_read(tmp_path: Path, line: str) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text('{"game": "g", "event": "begin", "variant": "brandubh"}\n' + line + "\n")
    with pytest.raises(JournalError, match=r"bad\.jsonl:2: .*") as raised:
        list(journal.read(file))
    assert len(str(raised.value)) < 600


def test_a_game_past_midnight_stays_in_one_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock(datetime):
        day = 28

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime(2026, 11, cls.day, 12, tzinfo=tz)

    monkeypatch.setattr(journal, "datetime", Clock)
    keeper = Journal("test", tmp_path)
    log = keeper.begin(GameRecord("brandubh"))
    log.ply("a4a2", ())
    Clock.day = 29
    log.ply("d3a3", ())
    log.undo(1)
    log.ply("d3b3", ())
    keeper.begin(GameRecord("brandubh")).ply("d2c2", ())
    log.end(None, "interrupted", "left")
    found = {path.stem: list(journal.read(path)) for path in sorted(tmp_path.glob("*.jsonl"))}
    lines = {
        day: [[move_name(ply.move) for ply in record.plies] for record in games]
        for day, games in found.items()
    }
    assert lines == {"2026-11-28": [["a4a2", "d3b3"]], "2026-11-29": [["d2c2"]]}


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    log = Journal("test", tmp_path).begin(GameRecord("brandubh"))
    log.ply("a4a2", ())
    with _only(tmp_path).open("ab") as file:
        file.write(b'{"game": "torn')
    (record,) = journal.read(_only(tmp_path))
    assert len(record.plies) == 1
    with pytest.raises(JournalError, match="No such file"):
        list(journal.read(tmp_path / "none"))


def test_rules_of_ones_own_travel_with_a_journal(tmp_path: Path) -> None:
    variant = find("brandubh")
    assert isinstance(variant, Variant)
    own = variant.with_switches(king_sides=4)
    game = Game(own, None, facts_of(own.startpos))
    header = saving.record_of(game, ("a", "b"))
    Journal("test", tmp_path).begin(header).ply("a4a2", ())
    (record,) = journal.read(_only(tmp_path))
    assert record.rules == header.rules
    assert record.rules is not None
    assert saving.load(_only(tmp_path), None, finder(), variant).variant.hash == own.hash


# Saved games


def test_what_programs_note_in_comments_is_kept_but_not_shown(tmp_path: Path) -> None:
    text = '[Variant "brandubh"]\n\n1. a4a2 {[%nodes 24] [%nps 0]} d3a3xa2 {[%seldepth 3] takes [%nps 5] a man} *\n'
    (tmp_path / "notes.tafl").write_text(text)
    loaded = saving.load(tmp_path / "notes.tafl", None, finder(), find("brandubh"))
    game = saving.game_of(loaded.record, loaded.variant)
    assert [entry.comment for entry in game.entries()] == ["", "takes a man"]
    assert [node.comment for node in game.root.tip().line()] == [ply.comment for ply in loaded.record.plies]
    assert "[%nodes 24]" in game.root.children[0].comment


def test_a_tree_is_written_and_read_back(tmp_path: Path) -> None:
    variant = find("brandubh")
    game = Game(variant, None, facts_of(variant.startpos))
    game.comment = "first"
    game.play("a4a2", "a", (), main=True)
    game.play("d3a3", "d", ("a2",), main=True).comment = "takes"
    after = game.at
    game.at = game.root.children[0]
    other = game.play("d3b3", "d", (), main=False)
    game.play("b4b6", "a", (), main=False)
    other.cp, other.depth = -30, 4
    record = saving.record_of(game, ("anna", ""), (("Clock", "5+3"),))
    saving.write(tmp_path / "tree.tafl", record, finder())
    loaded = saving.load(tmp_path / "tree.tafl", None, finder(), variant)
    assert loaded.record == record
    again = saving.game_of(loaded.record, loaded.variant)
    assert saving.record_of(again, ("anna", ""), (("Clock", "5+3"),)) == record
    assert (again.at.text, again.at.comment, again.size) == (after.text, "takes", 5)
    assert [node.side for node in again.at.line()] == ["a", "d"]


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "x.tafl"
    file.write_text("before")
    record = GameRecord("brandubh")
    with pytest.raises(saving.SavingError, match="expected a file ending"):
        saving.write(tmp_path / "x.doc", record, finder())
    with pytest.raises(saving.SavingError, match="expected a file that can be written"):
        saving.write(tmp_path / "nowhere" / "x.tafl", record, finder())
    assert file.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["x.tafl"]


def test_the_games_of_living_processes_are_left_alone(tmp_path: Path) -> None:
    kept = saving.Autosave(tmp_path)
    record = GameRecord("brandubh", plies=_plies("a4a2"))
    alive = tmp_path / f"game-20200101-000000-000000-{os.getppid()}.tafl"
    alive.write_text("x")
    assert kept.unfinished() is None
    dead = tmp_path / "game-20200101-000000-000000-999999999.tafl"
    dead.write_text("x")
    assert kept.unfinished() == dead
    kept.write(record, finder())
    assert kept.path is not None
    assert kept.unfinished() == dead
    mine = kept.path
    kept.leave()
    os.utime(mine, (time.time() + 10, time.time() + 10))
    assert kept.unfinished() == mine
    kept.adopt(dead)
    assert kept.path is not None
    assert not dead.exists()
    kept.forget()
    assert not kept.path
    for number in range(40):
        (tmp_path / f"game-20200101-0000{number:02}-000000-99999999{number}.tafl").write_text("x")
    saving.Autosave(tmp_path).write(record, finder())
    assert len(list(tmp_path.glob("*.tafl"))) == saving.KEPT + 1
    assert alive.exists()


def test_a_file_with_many_games(tmp_path: Path) -> None:
    file = tmp_path / "games.jsonl"
    file.write_text(
        "".join(json.dumps({"variant": "brandubh", "moves": move}) + "\n" for move in ("a4a2", "a4a3"))
    )
    variant = find("copenhagen")
    first = saving.load(file, None, finder(), variant)
    assert (first.more, first.variant.name, len(first.record.plies)) == (True, "brandubh", 1)
    second = saving.load(file, 2, finder(), variant)
    assert not second.more
    with pytest.raises(saving.SavingError, match="no game 3 in it"):
        saving.load(file, 3, finder(), variant)
    with pytest.raises(saving.SavingError, match="expected a recorded game"):
        saving.load(tmp_path / "none.tafl", None, finder(), variant)


@pytest.mark.process
def test_a_command_in_a_file_is_never_run(tmp_path: Path) -> None:
    """Seats that a record names are read as data; commands are only repeated."""
    assert load.__module__ == "hnefi.engine.games.tafl.variant"
    record = GameRecord(
        "brandubh", plies=_plies("a4a2"), tags=(("DefendersSeat", f"engine touch {tmp_path}/ran"),)
    )
    saving.write(tmp_path / "trap.tafl", record, finder())
    from terminal_parts import House, Person

    async def story(person: Person) -> None:
        reply = await person.types(f"load {tmp_path}/trap.tafl")
        assert any("`engine touch" in line for line in reply.lines)
        assert person.view.kinds == ("person", "person")

    house = House(tmp_path)
    try:
        house.talk(story)
    finally:
        house.close()
    assert not (tmp_path / "ran").exists()


def test_a_piece_that_captures_on_keeps_the_turn() -> None:
    """Only in a berserk turn does the piece that has just moved move again; another piece is the other side's."""
    root = Node()
    first = Node("a4a2", "a", root)
    assert next_side(root, move(square(0, 3), square(0, 1))) == "a"
    assert next_side(first, move(square(0, 1), square(3, 1))) == "a"
    assert next_side(first, move(square(3, 2), square(0, 2))) == "d"
