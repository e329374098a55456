"""Openings: legal, open, no two alike, enough of them, and the same list every time."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path

import arena_parts
import fake_arena
import pytest

from hnefi.engine import games
from hnefi.engine.moves_text import parse_move_word
from hnefi.engine.openings import _value
from hnefi.engine.records.formats import format_of, write
from hnefi.engine.records.record import GameRecord, Ply
from hnefi.engine.records.rule_sets import finder
from hnefi.engine.records.text import Losses
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.search.types import Limits, Settings
from hnefi.protocol import client
from hnefi.protocol.client import Timeouts
from hnefi.tools.arena import openings, resolve
from hnefi.tools.arena.openings import from_lines, list_hash, parse, prepare, to_lines
from hnefi.tools.arena.options import Config, ConfigError
from hnefi.tools.arena.values import Opening


def config(**flags: object) -> Config:
    return fake_arena.config(**{f"openings__{key}": value for key, value in flags.items()})


def from_file(folder: Path, text: str, needed: int = 1, **flags: object) -> tuple[Opening, ...]:
    file = folder / "openings.txt"
    file.write_text(text)
    return prepare(config(source="file", file=str(file), **flags), needed)["brandubh"]


def test_random_openings_are_distinct_open_and_of_the_wanted_length() -> None:
    told = config(plies="3-5", seed=3)
    found = prepare(told, 40)["brandubh"]
    variant = games.find("brandubh")
    reached = [opening.position(variant) for opening in found]
    assert len({one.canonical() for one in reached}) == len(found) == 40
    assert all(one.outcome is None for one in reached)
    assert {len(opening.moves) for opening in found} == {3, 4, 5}
    assert all(opening.start is None for opening in found)
    assert prepare(told, 10)["brandubh"] == found[:10]
    assert prepare(config(plies="3-5", seed=4), 10)["brandubh"] != found[:10]


def test_too_few_openings_are_an_error_that_says_how_many_there_are() -> None:
    # One ply of brandubh, up to symmetry: the outer man goes one or two squares, the inner one up to three.
    told = config(plies="1", max_eval=100_000)
    assert len(prepare(told, 5)["brandubh"]) == 5
    expected = r"random has 5 distinct openings of 'brandubh': expected 6 .* or openings\.max_eval"
    with pytest.raises(ConfigError, match=expected):
        prepare(told, 6)


def test_a_file_holds_fens_and_moves_and_comments(tmp_path: Path) -> None:
    start = games.find("brandubh").startpos
    text = f"# ours\n\na4a3 # a comment\n{start} moves a4a2\nstartpos moves d6c6 ; another\n  {start}\n"
    assert from_file(tmp_path, text, 4) == (
        Opening(None, ("a4a3",)),
        Opening(start, ("a4a2",)),
        Opening(None, ("d6c6",)),
        Opening(start),
    )


def test_images_of_an_opening_are_left_out(tmp_path: Path) -> None:
    mirrored = "a4a3\na4a5\ng4g3\nd1c1\nb4b3\n"
    assert from_file(tmp_path, mirrored) == (Opening(None, ("a4a3",)), Opening(None, ("b4b3",)))
    with pytest.raises(ConfigError, match="file has 2 distinct openings of 'brandubh': expected 3"):
        from_file(tmp_path, mirrored, 3)


def test_a_shuffled_file_keeps_its_order_for_a_seed(tmp_path: Path) -> None:
    text = "a4a3\nb4b3\nb4b2\nb4b1\na4a2\n"
    given = from_file(tmp_path, text, 5)
    shuffled = from_file(tmp_path, text, 5, order="shuffled", seed=1)
    assert shuffled != given
    assert sorted(shuffled, key=str) == sorted(given, key=str)
    assert from_file(tmp_path, text, 3, order="shuffled", seed=1) == shuffled


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a4a3\na1a2\n", r"openings.txt:2: .*"),
        ("nonsense\n", r"openings.txt:1: not a move"),
        ("8/8 a\n", r"openings.txt:1: "),
        ("\xff", r"openings.txt: byte 0: expected UTF-8"),
        ("a" * 70_000, r"openings.txt:1: expected at most 65536 characters"),
        ("3kt2/7/7/7/7/7/t6 a moves a1\n", r"openings.txt:1: "),
    ],
)
def test_what_is_no_opening_is_named_by_its_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "openings.txt").write_bytes(text.encode("latin-1"))
    told = config(source="file", file=str(tmp_path / "openings.txt"))
    with pytest.raises(ConfigError, match=message):
        prepare(told, 1)


def test_a_finished_game_is_no_opening(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"openings.txt:1: the game is over: d king_escaped"):
        from_file(tmp_path, "K6/7/7/7/7/t6/7 a\n")


def test_recorded_games_are_cut(tmp_path: Path) -> None:
    file = tmp_path / "games.csv"
    file.write_text("a4a3 d3c3 a3a2,0,0,White\nb4b3,0,0,White\na4a3 d3c3 b4b3,0,0,Draw\n")
    found = prepare(config(source="file", file=str(file), cut=2), 1)["brandubh"]
    assert found == (Opening(None, ("a4a3", "d3c3")),)


def recorded(folder: Path, name: str, *games_played: tuple[str, str | None, str]) -> Path:
    """A file of records: variant, start and moves of each."""
    losses, find = Losses(), finder()
    texts = []
    for variant, start, moves in games_played:
        plies = tuple(Ply(parse_move_word(word, 19)[0]) for word in moves.split())
        texts.append(write(GameRecord(variant, start, plies), format_of(name), find, losses))
    (folder / name).write_text("".join(texts))
    return folder / name


@pytest.mark.parametrize("name", ["games.tafl", "games.otg", "games.jsonl"])
def test_records_of_any_format_are_cut(tmp_path: Path, name: str) -> None:
    file = recorded(tmp_path, name, ("brandubh", None, "a4a3 d3c3 a3a2"))
    found = prepare(config(source="file", file=str(file), cut=2), 1)["brandubh"]
    assert [one.position(games.find("brandubh")).fen() for one in found] == [
        Opening(None, ("a4a3", "d3c3")).position(games.find("brandubh")).fen()
    ]
    assert len(found[0].moves) == 2


def test_records_begin_where_they_say_and_only_those_of_the_variant_count(tmp_path: Path) -> None:
    start = "3t3/3t3/3T3/ttTKTt1/3T3/3t3/3t3 a 0 1"
    file = recorded(
        tmp_path,
        "games.tafl",
        ("brandubh", start, "a4a3 d3c3"),
        ("tablut", None, "a4a3 d4c4"),
        # Over after one ply: nothing to play on.
        ("brandubh", "K6/7/7/7/7/t6/6t a 0 1", "a2a3"),
        ("brandubh", None, "b4b3 d3c3"),
    )
    found = prepare(config(source="file", file=str(file), cut=1), 2)["brandubh"]
    assert [one.moves for one in found] == [("a4a3",), ("b4b3",)]
    assert found[0].start is not None
    assert found[0].start.partition(" ")[0] == start.partition(" ")[0]


def test_a_broken_record_is_named_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "games.tafl").write_text('[Variant "brandubh"]\n\n1. nonsense\n')
    with pytest.raises(ConfigError, match=r"games\.tafl:3"):
        prepare(config(source="file", file=str(tmp_path / "games.tafl")), 1)
    with pytest.raises(ConfigError, match=r"none\.tafl: No such file"):
        prepare(config(source="file", file=str(tmp_path / "none.tafl")), 1)


@pytest.mark.process
def test_another_player_judges_openings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    variant = games.find("brandubh")
    own = Searcher(Settings(hash_mib=1))
    with openings.player_judge("default", "brandubh") as judge:
        for moves in ((), ("a4a3",), ("a4a3", "d3c3"), ("a4a3", "d3g3", "b4b3")):
            reached = Opening(None, moves).position(variant)
            assert judge(reached) == _value(own, reached)
        lost = games.from_fen(variant, "7/7/7/2K4/7/t6/7 d 0 1")
        assert judge(lost) is _value(own, lost) is None
    player = tmp_path / "judge.toml"
    player.write_text('description = "Looks further than two plies ahead."\n[limits]\ndepth = 4\n')
    with openings.player_judge(str(player), "brandubh") as judge:
        reached = Opening(None, ("a4a3", "d3g3", "b4b3")).position(variant)
        assert judge(reached) == _value(own, reached, Limits(depth=4)) != _value(own, reached)
    player.write_text('description = "Looks one ply ahead."\n[limits]\ndepth = 1\n')
    told = config(eval_by=str(player), plies="4-6", max_eval=60)
    ours = config(plies="4-6", max_eval=60)
    found = prepare(told, 12)["brandubh"]
    # A judge may take a minute.
    assert f"openings of brandubh, judged by {player}: 12/12" in capsys.readouterr().err
    assert prepare(told, 6)["brandubh"] == found[:6]
    assert found != prepare(ours, 12)["brandubh"]


def test_many_openings_are_counted_while_they_are_made(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(openings, "FORESEEN", 20)
    assert len(prepare(config(plies="3-5"), 20)["brandubh"]) == 20
    assert capsys.readouterr().err == ""
    assert len(prepare(config(plies="3-5"), 21)["brandubh"]) == 21
    assert "openings of brandubh: 21/21" in capsys.readouterr().err


def test_a_player_of_another_game_is_no_judge() -> None:
    with pytest.raises(
        ConfigError, match=r"openings\.eval_by 'hex-uct-100': .*expected a player of brandubh"
    ):
        prepare(config(eval_by="hex-uct-100"), 1)


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("score=none",), "gives no score"),
        (("no-greeting",), "did not greet"),
        (("exit", "at=1"), "has ended: exit status 3"),
    ],
)
def test_who_gives_no_scores_is_no_judge(
    words: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = arena_parts.spec("x", *words).command
    monkeypatch.setattr(client, "own_command", lambda *_: command)
    # Only who is silent for ever is waited for in vain: the others need more than that to start on a busy machine.
    start = 0.5 if words == ("no-greeting",) else 60.0
    monkeypatch.setattr(client, "Timeouts", partial(Timeouts, start=start))
    with pytest.raises(ConfigError, match=rf"openings\.eval_by 'random-blind': .*{message}"):
        prepare(config(eval_by="random-blind"), 1)


def test_the_start_repeats_itself_only_with_repeat() -> None:
    assert prepare(config(source="start"), 3)["brandubh"] == (Opening(),) * 3


@pytest.mark.process
def test_an_engine_proposes_openings() -> None:
    told = config(source="genfens", plies="2", seed=7)
    found = prepare(told, 3, resolve.specs(told))["brandubh"]
    variant = games.find("brandubh")
    assert len({opening.position(variant).canonical() for opening in found}) == 3


@pytest.mark.process
def test_an_engine_without_openings_says_so() -> None:
    fake = str(Path(__file__).parents[1] / "support" / "fake_engine.py")
    told = config(source="genfens")
    spec = resolve.specs(told)[0]
    command = (spec.command[0], "-I", "-S", fake)
    deaf = dataclasses.replace(spec, command=command, player="", ready=0.3)
    with pytest.raises(ConfigError, match="genfens: random-blind proposed nothing"):
        prepare(told, 1, [deaf])


def test_lists_are_kept_word_for_word() -> None:
    lists = {"x": (Opening(), Opening("7/7 a", ("a1a2", "b1b2"))), "y": (Opening(None, ("a1a2",)),)}
    assert from_lines(to_lines(lists)) == lists
    assert list_hash(lists["x"]) != list_hash(lists["x"][:1])
    for opening in (*lists["x"], *lists["y"]):
        assert parse(opening.text) == opening


@pytest.mark.process
def test_the_subcommand_prints_a_file_that_is_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert openings.main(["--variant", "brandubh", "--openings-count", "5", "--seed", "2"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("# 5 openings of brandubh, seed 2, ")
    assert from_file(tmp_path, text, 5) == prepare(config(seed=2), 5)["brandubh"]
    assert openings.main(["--openings-pliess", "5"]) == 2
    assert "did you mean --openings-plies?" in capsys.readouterr().err
