"""The experiment on HexapawnZero: the exact solution it is measured by, chances, the chain from runs to report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hnefi import players
from hnefi.engine import games
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.session import Session
from hnefi.tools.experiments import command, hexapawn, hexapawn_report
from hnefi.tools.experiments.hexapawn import Run, agreement, asked, best_of, uniform, wins, worst
from hnefi.tools.experiments.measuring import ExperimentError

POSITIONS = asked(hexapawn.USUAL, 100)
START = POSITIONS[0].position


def even(one: hexapawn.Asked) -> dict[int, float]:
    legal = one.position.legal_moves()
    return dict.fromkeys(legal, 1 / len(legal))


def test_the_positions_of_the_game_are_as_many_as_are_known() -> None:
    assert len(POSITIONS) == 70
    assert sum(one.winner == int(one.position.side) for one in POSITIONS) == 55
    critical = [one for one in POSITIONS if one.critical]
    assert [sum(int(one.position.side) == side for one in critical) for side in (0, 1)] == [8, 19]
    assert POSITIONS[0].winner == 1
    assert len(asked("hexapawn:4x4", 40)) == 40
    assert [one.position.key for one in asked("hexapawn:4x4", 40)] == [
        one.position.key for one in asked("hexapawn:4x4", 40)
    ]


def test_chances_are_exact() -> None:
    assert wins(START, (uniform, uniform), 0) == pytest.approx(0.59954, abs=5e-6)
    assert wins(START, (uniform, best_of(POSITIONS)), 1) == 1.0
    assert wins(START, (best_of(POSITIONS), uniform), 0) > 0.6
    perfect = {one.position.key: dict.fromkeys(one.keeping, 1 / len(one.keeping)) for one in POSITIONS}
    blind = {one.position.key: even(one) for one in POSITIONS}
    assert worst(START, 1, perfect) == worst(START, 1, perfect, sampled=True) == 1.0
    assert worst(START, 0, perfect) == 0.0
    assert worst(START, 1, blind, sampled=True) < wins(START, (uniform, uniform), 1)


def test_agreement_is_that_of_the_moves() -> None:
    perfect = {
        one.position.key: dict.fromkeys(sorted(one.keeping), 1 / len(one.keeping)) for one in POSITIONS
    }
    assert set(agreement(POSITIONS, perfect).values()) == {1.0}
    found = agreement(POSITIONS, {one.position.key: even(one) for one in POSITIONS})
    assert found["mass"] > found["mass_critical"]
    assert 0.3 < found["mass_critical"] < 0.7
    wrong = {}
    for one in POSITIONS:
        bad = [move for move in one.position.legal_moves() if move not in one.keeping]
        wrong[one.position.key] = {bad[0]: 1.0} if bad else even(one)
    found = agreement(POSITIONS, wrong)
    assert found["best_critical"] == found["mass_critical"] == 0.0
    assert found["best"] == pytest.approx((70 - 27) / 70)


def network(generation: int, *, perfect: bool) -> dict[str, Any]:
    return {"generation": generation, "black_perfect": perfect}


@pytest.mark.parametrize(
    ("perfect", "first"), [([0, 1, 1], 1), ([0, 1, 0], None), ([1, 1, 1], 0), ([1, 0, 1], 2)]
)
def test_black_is_perfect_once_it_stays_so(perfect: list[int], first: int | None) -> None:
    networks = [network(number, perfect=bool(one)) for number, one in enumerate(perfect)]
    assert hexapawn_report.first_perfect(networks) == first


def test_the_quick_chain_from_runs_to_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert command.main(["hexapawn", "--quick", "--jobs", "1", "--plain", "--out", "quick"]) == 0
    out = tmp_path / "quick"
    report = (out / "report.md").read_text()
    assert "**QUICK" in report
    assert "| 1 | white | 4 |" in report
    assert "70 undecided positions" in report
    assert "QUICK" in (out / "figures" / "agreement.svg").read_text()
    assert {path.name for path in out.glob("*.csv")} >= {"log.csv", "agreement.csv", "boards.csv"}
    lines = (out / "measures.jsonl").read_bytes()
    # Half a line of a crash is cut off, and what it told is measured again.
    (out / "measures.jsonl").write_bytes(lines[: len(lines) - 40])
    assert command.main(["resume", "quick", "--jobs", "1", "--plain"]) == 0
    assert (out / "measures.jsonl").read_bytes() == lines
    assert (out / "report.md").read_text() == report


def test_measures_of_another_plan_are_refused(tmp_path: Path) -> None:
    entry = {"board": hexapawn.USUAL, "seed": 1, "networks": [network(0, perfect=True)]}
    (tmp_path / "measures.jsonl").write_text(json.dumps(entry) + "\n")
    with pytest.raises(ExperimentError, match=r"line 1: .*expected a run of this plan"):
        hexapawn.measure(tmp_path, hexapawn.QUICK, 1, lambda *_: None)


def test_the_boards_are_those_of_the_game() -> None:
    plan = hexapawn.Plan()
    assert list(plan.runs())[10] == Run("hexapawn:4x3", 3001)
    assert all(games.find(board).game == "hexapawn" for board in plan.boards)
    assert len(plan.seeds) == 10


@pytest.mark.parametrize(("name", "least"), [("hexapawn-perfect", 70), ("hexapawn-zero", 70)])
def test_the_players_of_hexapawn_keep_the_value_of_positions(name: str, least: int) -> None:
    session = Session(load_player=players.load)
    session.set_option("Player", name)
    searcher = Searcher(session.settings)
    kept = 0
    for one in POSITIONS:
        searcher.begin()
        result = searcher.search(one.position, session.player_limits, lambda _: None)
        kept += result.move in one.keeping
    assert kept >= least
