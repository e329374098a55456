"""The experiments on Tablut by temporal differences: the chain, what rows mean, and verdicts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hnefi.engine import games
from hnefi.tools.experiments import command, tablut, tablut_report
from hnefi.tools.experiments.measuring import ExperimentError, prepare, read_plan
from hnefi.tools.experiments.tablut import ROWS, Plan, Played, Row, Test, read_results

Test.__test__ = False  # type: ignore[attr-defined]


@pytest.mark.slow
def test_the_whole_chain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs, tests, report; the same command again plays nothing and writes the same."""
    monkeypatch.setattr(
        tablut, "QUICK", replace(tablut.QUICK, generations=1, generation_games=2, share=0.001)
    )
    out = tmp_path / "out"
    assert command.main(["tablut", "--quick", "--jobs", "1", "--plain", "--out", str(out)]) == 0
    assert f"report {out / 'report.md'}" in capsys.readouterr().out
    text = (out / "report.md").read_text()
    assert "QUICK" in text
    assert "figures/learning.svg)" in text
    for row in ROWS:
        assert row.name in text
    assert "| the author's program | 48.2 | 48.3 | 3.5 | 58.3 |" in text
    assert (out / "early.csv").read_text().count("\n") == 1 + len(tablut.KINDS)
    tests = (out / "tests.jsonl").read_bytes()
    assert tests.count(b"\n") == len(list(read_plan(out, Plan()).tests()))
    assert command.main(["resume", str(out), "--jobs", "1", "--plain"]) == 0
    assert (out / "tests.jsonl").read_bytes() == tests
    assert (out / "report.md").read_text() == text


def test_players_are_who_their_rows_say(tmp_path: Path) -> None:
    """The hand-tuned player on either side beats Random at once; no run is needed for these."""
    plan = Plan(seeds=(1, 2))
    for white, black, best in (("minimax:text", "random", "white"), ("random", "minimax:text", "black")):
        played = tablut.play(tmp_path, plan, Test(Row("try", tablut.SMALL, white, black, 30), 0, 30))
        assert played.games == 30 == sum(played.reasons.values())
        assert getattr(played, best) > 22
        assert played.different > 25
    # Who sees ends takes the king or reaches a corner at once.
    sees, blind = (
        tablut.play(tmp_path, plan, Test(Row("try", tablut.SMALL, white, "random", 60), 0, 60))
        for white in ("minimax:text", "minimax:text!")
    )
    assert sees.white > blind.white + 10
    assert Row("try", tablut.SMALL, "net:white@3!", "random", 1).depth == 3
    first = Test(Row("try", tablut.SMALL, "random", "random", 30), 0, 30)
    assert tablut.play(tmp_path, plan, first) == tablut.play(tmp_path, plan, first)


def test_a_test_of_a_net_needs_its_run(tmp_path: Path) -> None:
    from hnefi.engine.evaluators.files import EvaluatorError

    with pytest.raises(EvaluatorError):
        tablut.play(tmp_path, Plan(), Test(Row("try", tablut.SMALL, "net:white", "random", 1), 201, 1))


def test_moves_of_a_position_are_counted() -> None:
    assert tablut.width(5 + 25 + 125) == pytest.approx(5)
    found = tablut.branching(tablut.SMALL, 2)
    start = games.initial(games.find(tablut.SMALL))
    assert 1 < found.searched < len(start.legal_moves()) < found.legal < 49


def test_verdicts_allow_for_chance_and_for_seeds() -> None:
    printed = tablut_report.Printed("row", 92, 7, 1, 41, ())
    near = Played(910, 80, 10, 82_000, 1000, {})
    far = Played(600, 390, 10, 82_000, 1000, {})
    assert tablut_report.inside(printed, [near]) == "inside"
    assert tablut_report.inside(printed, [far]) == "outside: white, black"
    assert tablut_report.inside(printed, [near, far, near]) == "inside"
    assert tablut_report.by(Played(4, 0, 0, 9, 4, {"w king_escaped": 3, "w all_captured": 1}), "w") == (
        "corner 75 %, all captured 25 %"
    )


def test_folders_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tablut.QUICK
    prepare(tmp_path, plan)
    assert read_plan(tmp_path, Plan()) == plan
    (tmp_path / "tests.jsonl").write_text('{"test": "nobody 1"}\n')
    with pytest.raises(ExperimentError, match="line 1"):
        read_results(tmp_path, plan)
    (tmp_path / "tests.jsonl").write_text('{"test": "half of a li')
    assert read_results(tmp_path, plan) == {}
    (tmp_path / "plan.json").write_text('{"experiment": "tablut", "seeds": "x"}')
    assert command.main(["resume", str(tmp_path)]) == 2
    assert "expected the plan of an experiment (invalid literal" in capsys.readouterr().err
    (tmp_path / "plan.json").write_text('{"experiment": "tablut", "seeds": [1, 2]}')
    assert command.main(["resume", str(tmp_path)]) == 2
    assert "expected the plan of an experiment (no 'generations')" in capsys.readouterr().err
