"""The endgame against a bare king: what the suite is, and how it is played out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hnefi.engine.games.tafl.position import Position
from hnefi.engine.games.tafl.variant import find
from hnefi.engine.sides import Side
from hnefi.tools.bench import command as bench
from hnefi.tools.bench import siege

PERPETUAL = "3t7/1t8t/5t1t3/t3t1t4/7t3/2t4T2t/3tt6/t10/4t5t/1t1t3T1t1/5t2K2 a 12 50"
"""The king goes to and fro before a corner, and one man with him."""


@pytest.fixture(autouse=True)
def uninterrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(siege, "let_interrupt_end_us", lambda: None)


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """Two positions of the shipped suite."""
    path = tmp_path / "few.tsv"
    siege.write(path, siege.read(siege.SHIPPED)[:2])
    return path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert bench.main(["siege", *words, "--nodes", "300", "--plies", "12", "--json"]) == 0
    return json.loads(capsys.readouterr().out)["games"]


def test_the_suite_is_what_its_page_says() -> None:
    sieges = siege.read(siege.SHIPPED)
    assert [sum(one.attackers >= siege.MANY for one in sieges), len(sieges)] == [100, 124]
    assert min(one.attackers for one in sieges) == siege.FEW
    boards = set()
    shut_off = 0
    for one in sieges:
        variant = siege.besieged(find(one.variant))
        position = Position.from_fen(variant, one.fen)
        assert (position.fen(), position.outcome, position.side) == (one.fen, None, Side.ATTACKERS)
        assert [letter for _, letter in position.pieces()].count("T") <= siege.COMPANIONS
        boards.add((one.variant, repr(position.canonical())))
        shut_off += one.attackers >= siege.MANY and siege.open_goals(one, variant) == 0
    assert len(boards) == len(sieges)
    assert shut_off == 55


def test_games_are_the_same_on_every_run_and_go_on_where_they_stopped(
    capsys: pytest.CaptureFixture[str], few: Path, tmp_path: Path
) -> None:
    games = run(capsys, "--suite", str(few))
    assert [game["id"] for game in games] == ["siege-001", "siege-002"]
    assert all(game["result"] == "unfinished" and game["plies"] == 12 for game in games)
    out = tmp_path / "games.jsonl"
    assert run(capsys, "--suite", str(few), "--out", str(out)) == games
    lines = out.read_text().splitlines(keepends=True)
    changed = lines[1].replace('"plies": 12', '"plies": 11')
    out.write_text(lines[0] + changed + lines[2][:20])
    again = run(capsys, "--suite", str(few), "--out", str(out))
    assert [game["plies"] for game in again] == [11, 12]
    assert out.read_text() == lines[0] + changed + lines[2]
    out.write_text("".join(lines).replace("unfinished", "open"))
    assert run(capsys, "--suite", str(few), "--out", str(out)) == games


def test_a_network_meets_the_positions_of_its_variant(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Only under its own rule for repetition. What is asked of others, or of none, is refused in a sentence."""
    sieges = {one.variant: one for one in siege.read(siege.SHIPPED)}
    path = tmp_path / "two.tsv"
    siege.write(path, list(sieges.values()))
    words = ("--suite", str(path), "--own-repetition", "--attackers", "net-copenhagen-2")
    games = run(capsys, *words, "--variant", "copenhagen")
    assert [game["id"] for game in games] == [sieges["copenhagen"].id]
    for more, expected in (
        ((), "expected an evaluator for fetlar"),
        (("--variant", "brandubh"), "--variant 'brandubh': expected one of the suite: copenhagen, fetlar"),
    ):
        with pytest.raises(SystemExit):
            bench.main(["siege", *words, *more])
        assert expected in capsys.readouterr().err


def test_a_repetition_wins_nothing_unless_the_variant_is_asked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert siege.besieged(find("copenhagen")).rules.repetition == "draw"
    path, out = tmp_path / "one.tsv", tmp_path / "games.jsonl"
    path.write_text(f"one\tcopenhagen\tx\t1\t{PERPETUAL}\n")
    words = ["siege", "--suite", str(path), "--nodes", "300", "--out", str(out), "--json"]
    found = []
    for more in ([], ["--own-repetition"]):
        assert bench.main([*words, *more]) == 0
        found.append(json.loads(capsys.readouterr().out)["games"][0])
        with pytest.raises(SystemExit):
            bench.main([*words, *([] if more else ["--own-repetition"])])
        out.unlink()
    assert [(game["result"], game["reason"]) for game in found] == [
        ("drawn", "repetition"),
        ("won", "repetition"),
    ]


def test_goals_that_are_open_are_told_apart() -> None:
    games = [
        siege.Played("a", 16, "won", "king_captured", 9),
        siege.Played("b", 20, "won", "no_legal_move", 9),
        siege.Played("c", 16, "drawn", "repetition", 9),
        siege.Played("d", 12, "lost", "king_escaped", 9),
        siege.Played("e", 12, "unfinished", "plies", 9),
    ]
    table = siege.table(games, {"a": 0, "b": 4, "c": 1, "d": 2, "e": 0})
    assert table[3].endswith("lost 1, drawn 0, unfinished 1")
    lines = [line.split("(")[0].split() for line in table]
    assert [line[:-2] for line in lines] == [
        ["16", "attackers", "and", "more", "3", "won", "2", "="],
        ["goals", "shut", "off", "1", "won", "1", "="],
        ["goals", "open", "2", "won", "1", "="],
        ["12", "to", "15", "attackers", "2", "won", "0", "="],
        ["goals", "shut", "off", "1", "won", "0", "="],
        ["goals", "open", "1", "won", "0", "="],
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "expected at least one position"),
        ("a\tb\n", "'a\\tb': expected 5 words between tabs"),
        ("a\tcopenhagen\tx\tmany\tfen\n", "ply 'many': expected a whole number"),
        ("a\tcopenhagen\tx\t1\tfen\n" * 2, ":2: id 'a': expected a different one for each line"),
        ("a\tcopenhagen\tx\t1\t3t3/x a\n", "a: board '3t3/x': 2 rows"),
        ("a\tcopenhagen\tx\t1\t3/3/3 a\n", "a: "),
        ("a\tnosuch\tx\t1\tfen\n", "nosuch"),
        ("\xff", "expected ASCII"),
        ("#" * (siege.MOST_BYTES + 1), f"expected at most {siege.MOST_BYTES} bytes"),
    ],
)
def test_suites_that_cannot_be_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, expected: str
) -> None:
    path = tmp_path / "suite.tsv"
    path.write_text(text, "latin-1")
    with pytest.raises(SystemExit) as ended:
        bench.main(["siege", "--suite", str(path)])
    assert ended.value.code == 2
    assert expected in capsys.readouterr().err


def test_a_file_of_other_games_is_kept(capsys: pytest.CaptureFixture[str], few: Path, tmp_path: Path) -> None:
    out = tmp_path / "games.jsonl"
    out.write_text("something else\n")
    with pytest.raises(SystemExit) as ended:
        bench.main(["siege", "--suite", str(few), "--out", str(out)])
    assert ended.value.code == 2
    assert "expected a new file, or one of the same suite" in capsys.readouterr().err
    assert out.read_text() == "something else\n"
