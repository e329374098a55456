"""What tables are good for: all symmetric starts under several rules, players judged by the truth, puzzles."""

from __future__ import annotations

import json
import os
from itertools import combinations
from pathlib import Path

import pytest

from hnefi.engine import games
from hnefi.engine.games.tafl.fen import Setup
from hnefi.engine.games.tafl.symmetry import canonical, symmetries
from hnefi.engine.games.tafl.variant import load
from hnefi.engine.sides import Side
from hnefi.engine.solving.proof import Prover
from hnefi.engine.solving.table import Table
from hnefi.engine.solving.tables import SHIPPED
from hnefi.engine.squares import squares
from hnefi.protocol.hosts.puzzles import suite
from hnefi.tools.common import workers
from hnefi.tools.common.workers import BACKENDS
from hnefi.tools.solve import agreement, command, layouts

FOUR = str(SHIPPED / "mini-four.taflbase")
NINE = """\
name = "nine"
description = "Three by three squares."
start = ["1t1", "1K1", "1t1"]

[rules]
king_sides = 2
escape = "none"
throne = "none"
corners = "none"
"""


def test_symmetric_layouts_are_those_of_a_search_through_all() -> None:
    """Every set of men against the symmetries of the engine, which knows boards by other means."""
    rules = games.find("mini-four").rules  # type: ignore[union-attr]
    assert len(symmetries(rules)) == 8
    board = list(squares(5))
    middle, corners = board[12], {board[0], board[4], board[20], board[24]}
    free = [sq for sq in board if sq != middle and sq not in corners]
    expected = set()
    for a in (1, 2):
        for ours in combinations(free, a):
            rest = [sq for sq in free if sq not in ours]
            for theirs in [(), *((sq,) for sq in rest)]:
                pieces = {middle: "K", **dict.fromkeys(ours, "t"), **dict.fromkeys(theirs, "T")}
                setup = Setup(5, tuple(sorted(pieces.items())), Side.ATTACKERS)
                if len({_turned(setup, turn) for turn in range(8)}) < 8:
                    expected.add(canonical(rules, setup))
    found = layouts.layouts(5, 2, 1)
    variant = games.find("mini-four")
    seen = {games.from_fen(variant, f"{each.rows} a 0 1").canonical() for each in found if each.attackers > 1}
    assert len(found) == len(expected)
    assert seen <= expected
    assert {each.kind for each in found} == set(layouts.KINDS)


def _turned(setup: Setup, turn: int) -> frozenset[tuple[tuple[int, int], str]]:
    where = {sq: (i % 5, i // 5) for i, sq in enumerate(squares(5))}
    found = set()
    for sq, letter in setup.pieces:
        file, rank = where[sq]
        for _ in range(turn % 4):
            file, rank = rank, 4 - file
        found.add(((4 - file if turn > 3 else file, rank), letter))
    return frozenset(found)


def test_kinds_of_symmetry() -> None:
    variant = games.find("mini-four")

    def image(rows: str) -> tuple[object, ...]:
        return games.from_fen(variant, f"{rows} a 0 1").canonical()

    kinds = {image(each.rows): each.kind for each in layouts.layouts(5, 4, 2) if each.attackers > 2}
    assert kinds[image("2t2/2T2/t1K1t/2T2/2t2")] == "both mirrors"
    assert kinds[image("1t3/5/t1K1t/5/3t1")] == "half turn"
    assert kinds[image("5/t1T1t/t1K1t/5/5")] == "one mirror"
    assert image("5/t1T1t/t1K2/5/5") not in kinds


def test_the_value_of_every_symmetric_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    board = tmp_path / "nine.toml"
    board.write_text(NINE)
    out = tmp_path / "out"
    words = ["layouts", str(board), "--out", str(out), "--switch", "escape=edge", "--switch", "king_sides=4"]
    assert command.main([*words, "--json", "--quiet"]) == 0
    answer = json.loads(capsys.readouterr().out)
    values = {start["rows"]: start["values"] for start in answer["starts"]}
    assert set(values["3/tKt/3"]) == {"as it is", "escape=edge", "king_sides=4"}
    decided = 0
    for label, switches in (
        ("as it is", {}),
        ("escape=edge", {"escape": "edge"}),
        ("king_sides=4", {"king_sides": 4}),
    ):
        prover = Prover(load(str(board)).with_switches(**switches), 1 << 8)
        for rows, found in values.items():
            for side, value in found[label].items():
                fen = f"{rows} {side} 0 1"
                wins = {winner: prover.shortest(fen, "ad".index(winner), 9) for winner in "ad"}
                expected = next((f"{winner}{plies}" for winner, plies in wins.items() if plies), "=")
                assert value == expected, (label, fen)
                decided += value != "="
    assert decided > 6
    assert command.main(words) == 0
    assert "3 rule sets, all of them solved." in capsys.readouterr().err

    # What was found is read again: no table is needed any more.
    for table in out.glob("*.taflbase"):
        table.unlink()
    assert command.main([*words, "--list", "--plain"]) == 0
    said = capsys.readouterr()
    assert "escape=edge               0              1        0     0        1" in said.out
    assert "solved in" not in said.err


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "dask", "ray"])
def test_rule_sets_side_by_side_come_to_the_same(
    backend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if backend != "loky":
        if not os.environ.get("HNEFI_CLUSTERS"):
            pytest.skip("make test-clusters runs it")
        pytest.importorskip(BACKENDS[backend])
    board = tmp_path / "nine.toml"
    board.write_text(NINE)
    words = ["layouts", str(board), "--switch", "escape=edge", "--switch", "king_sides=4", "--quiet"]
    assert command.main([*words, "--out", str(tmp_path / "one")]) == 0
    said = capsys.readouterr().out
    assert command.main([*words, "--out", str(tmp_path / "two"), "--backend", backend, "--jobs", "2"]) == 0
    assert capsys.readouterr().out == said
    one, two = (
        {file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("one", "two")
    )
    assert len(one) == 6
    assert one == two
    # What a worker finds wrong is said here.
    (tmp_path / "two/king_sides-4.json").unlink()
    (tmp_path / "two/king_sides-4.taflbase").write_bytes(one["escape-edge.taflbase"])
    assert command.main([*words, "--out", str(tmp_path / "two"), "--backend", backend]) == 2
    assert "king_sides-4.taflbase: has other rules" in capsys.readouterr().err


def test_a_backend_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "find_spec", lambda _: None)
    with pytest.raises(SystemExit, match="2"):
        command.main(["layouts", "mini-four", "--backend", "dask", "--out", str(tmp_path / "out"), "--yes"])
    assert (
        "--backend dask: the package distributed is missing: expected pip install 'hnefi[dask]'"
        in capsys.readouterr().err
    )
    assert not (tmp_path / "out").exists()


def test_layouts_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out", str(tmp_path / "out")]
    assert command.main(["layouts", "mini-six", *out]) == 2
    said = capsys.readouterr().err
    assert "--yes: expected" in said
    assert "9 rule sets" in said
    for switch, reason in (
        ("king_sides", "expected NAME=VALUE"),
        ("king_sides=7", "king_sides"),
        ("x=1", "x"),
    ):
        with pytest.raises(SystemExit, match="2"):
            command.main(["layouts", "mini-six", *out, "--switch", switch])
        assert reason in capsys.readouterr().err
    # Brandubh itself can be solved, but not with a change that nobody named.
    assert command.main(["layouts", "brandubh", *out]) == 2
    assert "; no_move=draw is tried unless --switch names other changes" in capsys.readouterr().err
    assert command.main(["layouts", "brandubh", *out, "--switch", "no_move=draw"]) == 2
    assert "unless" not in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_flip_is_another_winner() -> None:
    assert layouts.is_flipped("a8", "d6")
    assert layouts.is_flipped("a8", "=")
    assert not layouts.is_flipped("a8", "a2")
    assert not layouts.is_flipped("a8", ".")


def test_players_are_judged_by_the_truth(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        command.main(["agreement", FOUR, "mini-four-perfect", "random-blind", "--positions", "40", "--json"])
        == 0
    )
    chance, blind, perfect = json.loads(capsys.readouterr().out)
    assert (perfect["player"], perfect["kept"], perfect["best"]) == ("mini-four-perfect", 40, 40)
    assert 8 < blind["kept"] < 32
    assert 8 < chance["kept"] < 32
    assert chance["positions"] == chance["attackers"]["positions"] + chance["defenders"]["positions"] == 40


def test_cases_are_positions_in_which_a_move_matters() -> None:
    with Table(FOUR) as table:
        found = agreement.cases(table, 20, 5)
        assert len({case.position.fen() for case in found}) == 20
        for case in found:
            now = table.value(case.position).winner
            keeping = {
                m for m in case.position.legal_moves() if table.value(case.position.play(m)).winner is now
            }
            assert case.keeping == keeping
            assert 0 < len(keeping) < len(case.position.legal_moves())
            assert case.best <= case.keeping
        for case in agreement.cases(table, 5, 6, least=9):
            value = table.value(case.position)
            assert value.plies is None or (value.plies >= 9 and value.winner is case.position.side)


def test_agreement_names_who_cannot_play(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        command.main(["agreement", FOUR, "evolved-brandubh"])
    assert "plays brandubh only, not mini-four" in capsys.readouterr().err
    with Table(FOUR) as table:
        everybody = agreement.everybody(table)
    assert {"simple", "default", "mini-four-perfect", "default:400"} <= set(everybody)
    assert "evolved-brandubh" not in everybody


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["agreement", FOUR, "--positions", "5", "simple:0"],
            "simple:0: expected a number of nodes from 1 on",
        ),
        (
            ["puzzles", FOUR, "--out", "x", "--least", "9", "--most", "5"],
            "--least 9: expected at most --most, 5",
        ),
    ],
)
def test_numbers_that_make_no_sense(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_puzzles_of_a_table_are_proven_by_search(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "mine.tsv"
    assert (
        command.main(["puzzles", FOUR, "--count", "3", "--least", "3", "--most", "5", "--out", str(out)]) == 0
    )
    assert capsys.readouterr().out == f"{out}: 3 puzzles\n"
    entries = suite.read(out)
    prover = Prover(games.find("mini-four"), 1 << 12)  # type: ignore[arg-type]
    for entry in entries:
        side = "ad".index(entry.fen.split()[1])
        assert prover.shortest(entry.fen, side, 6) == entry.plies
        assert len(prover.winning(entry.fen, side, entry.plies + 2)) == 1
    with pytest.raises(SystemExit, match="2"):
        command.main(["puzzles", FOUR, "--out", str(out)])
    assert "already exists" in capsys.readouterr().err
