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
    for one in sieges:
        position = Position.from_fen(siege.besieged(find(one.variant)), one.fen)
        assert (position.fen(), position.outcome, position.side) == (one.fen, None, Side.ATTACKERS)
        assert [letter for _, letter in position.pieces()].count("T") <= siege.COMPANIONS
        boards.add((one.variant, repr(position.canonical())))
    assert len(boards) == len(sieges)


def test_games_are_the_same_on_every_run_and_go_on_where_they_stopped(
    capsys: pytest.CaptureFixture[str], few: Path, tmp_path: Path
) -> None:
    games = run(capsys, "--suite", str(few))
    assert [game["id"] for game in games] == ["siege-001", "siege-002"]
    assert all(game["result"] == "open" and game["plies"] == 12 for game in games)
    out = tmp_path / "games.jsonl"
    assert run(capsys, "--suite", str(few), "--out", str(out)) == games
    lines = out.read_text().splitlines(keepends=True)
    changed = lines[1].replace('"plies": 12', '"plies": 11')
    out.write_text(lines[0] + changed + lines[2][:20])
    again = run(capsys, "--suite", str(few), "--out", str(out))
    assert [game["plies"] for game in again] == [11, 12]
    assert out.read_text() == lines[0] + changed + lines[2]


def test_a_repetition_wins_nothing() -> None:
    assert siege.besieged(find("copenhagen")).rules.repetition == "draw"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "expected at least one position"),
        ("a\tb\n", "'a\\tb': expected 5 words between tabs"),
        ("a\tcopenhagen\tx\tmany\tfen\n", "ply 'many': expected a whole number"),
        ("a\tcopenhagen\tx\t1\tfen\n" * 2, ":2: id 'a': expected one of its own"),
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
