"""`hnefi experiments methods`: other methods for the paper's network, and what a strength costs in CPU seconds."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hnefi.tools.common.matches import Count, Tally
from hnefi.tools.evolve.folder import read_log
from hnefi.tools.experiments import command, studies, studies_report
from hnefi.tools.experiments.measuring import Cell

WAYS: dict[str, studies.Way] = {
    "5+5": {},
    "cma": {**studies.METHODS.ways["cma"], "lambda": 3, "generations": 3},
    "treestrap": {**studies.METHODS.ways["treestrap"], "generation_games": 2, "generations": 2},
}
SMALL = replace(
    studies.METHODS,
    ways=WAYS,
    seeds=(401, 402),
    generations=4,
    tested=(0, 1, 2, 4),
    number={1: 2},
    quick=True,
)


def test_each_method_is_run_by_its_algorithm_for_its_own_generations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, list[str]] = {}

    def evolve(arguments: list[str]) -> int:
        given = dict(itertools.pairwise(arguments))
        seen[Path(given["--out"]).name] = arguments
        return 0

    monkeypatch.setattr("hnefi.tools.evolve.command.main", evolve)
    assert studies.evolve(tmp_path, SMALL, 1) == 0
    assert [words[0] for words in seen.values()] == ["es", "cma", "treestrap"]
    assert [words[words.index("--generations") + 1] for words in seen.values()] == ["4", "3", "2"]
    for words in seen.values():
        said = [word for flag, word in itertools.pairwise(words) if flag == "--set"]
        assert not [word for word in said if word.startswith(("algorithm=", "generations="))]
    assert "depth=1" in seen["treestrap"]


def test_a_missing_package_is_named_before_anything_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(studies, "find_spec", lambda _: None)
    monkeypatch.setattr("hnefi.tools.evolve.command.main", lambda _: pytest.fail("nothing may be run"))
    assert command.main(["methods", "--ways", "cma,treestrap", "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert (
        "cma: the package cma is missing: expected pip install 'hnefi[cma]', or --ways 5+5,treestrap" in said
    )
    monkeypatch.setattr("hnefi.tools.evolve.command.main", lambda _: 7)
    assert command.main(["methods", "--ways", "treestrap", "--out", str(tmp_path / "other")]) == 7


def test_a_method_is_tested_after_the_same_shares_of_its_generations() -> None:
    assert SMALL.tested_of("5+5") == (0, 1, 2, 4)
    assert SMALL.tested_of("cma") == (0, 1, 2, 3)
    assert SMALL.tested_of("treestrap") == (0, 1, 2)
    tested = {(cell.run.way, cell.generation) for cell in SMALL.cells()}
    assert len(tested) == 4 + 4 + 3
    assert studies.METHODS.tested_of("500+500-alone")[-1] == 10
    for way in studies.METHODS.ways:
        assert studies.METHODS.tested_of(way)[-1] == studies.METHODS.generations_of(way)
    assert not any("generations" in way for way in studies.quick(studies.METHODS).ways.values())


def test_a_run_is_finished_after_its_own_generations(tmp_path: Path) -> None:
    for way in ("5+5", "cma"):
        for seed in SMALL.seeds:
            file = tmp_path / studies.Run(SMALL.rules[0], way, seed).folder / "archive"
            file.mkdir(parents=True)
            (file / f"gen-{SMALL.generations_of(way):04}.safetensors").touch()
    assert list(studies.finished(tmp_path, SMALL).ways) == ["5+5", "cma"]


@pytest.mark.parametrize(
    ("way", "games"),
    [({"algorithm": "cma", "pair_games": 0}, 400), ({"algorithm": "cma", "pair_games": 0, "lambda": 7}, 140),
     ({"algorithm": "treestrap", "generation_games": 20}, 20)],
)  # fmt: skip
def test_games_of_other_algorithms(way: studies.Way, games: int) -> None:
    assert studies.games_a_generation(way) == games


def test_the_cost_to_reach_a_strength() -> None:
    """On straight lines between what was measured, and with an interval that says if a strength may never come."""
    spent = [[0.0, 10.0, 20.0]] * 5
    won = [[10.0, 30.0, 50.0]] * 5
    assert studies_report.cost_to_reach(spent, won, 20) == (pytest.approx(5), pytest.approx((5, 5)))
    assert studies_report.cost_to_reach(spent, won, 50) == (pytest.approx(20), pytest.approx((20, 20)))
    assert studies_report.cost_to_reach(spent, won, 10) == (0, (0, 0))
    assert studies_report.cost_to_reach(spent, won, 51) == (math.inf, (math.inf, math.inf))
    # Too few seeds have no interval, but a mean.
    assert studies_report.cost_to_reach(spent[:4], won[:4], 20) == (pytest.approx(5), None)
    # Two seeds of five come to 60 %, the others to 40: the mean is 48.
    unlike = [[10.0, 30.0, 60.0]] * 2 + [[10.0, 30.0, 40.0]] * 3
    first, (low, high) = studies_report.cost_to_reach(spent, unlike, 45)
    assert first == pytest.approx(10 + 10 * 15 / 18)
    assert low < first < high == math.inf
    # A curve that falls again has come there all the same.
    assert studies_report.cost_to_reach(spent, [[10.0, 50.0, 20.0]] * 5, 30)[0] == pytest.approx(5)


def test_the_interval_of_a_cost_is_that_of_all_resamples() -> None:
    random = np.random.default_rng(1)
    spent = (np.arange(4) * 10 + random.random((5, 4))).tolist()
    won = np.sort(random.random((5, 4)) * 60, axis=1).tolist()
    found = []
    for rows in itertools.product(range(5), repeat=5):
        mean_spent = [sum(spent[row][at] for row in rows) / 5 for at in range(4)]
        mean_won = [sum(won[row][at] for row in rows) / 5 for at in range(4)]
        at = next((at for at in range(4) if mean_won[at] >= 25), None)
        if at is None:
            found.append(math.inf)
        elif at == 0:
            found.append(mean_spent[0])
        else:
            found.append(float(np.interp(25, mean_won[at - 1 : at + 1], mean_spent[at - 1 : at + 1])))
    low, high = np.quantile(found, (0.025, 0.975))
    _, interval = studies_report.cost_to_reach(spent, won, 25)
    assert interval == (pytest.approx(low, abs=0.3), pytest.approx(high, abs=0.3))


def made_up(study: studies.Study) -> dict[Cell, Tally]:
    """Every run wins more the longer it goes on."""
    found = {}
    for cell in study.cells():
        size = study.matches(cell)
        won = size * cell.generation // study.generations_of(cell.run.way)
        both = Count(won, 0, size - won)
        found[cell] = Tally(both, 0, both, both)
    return found


def write_log(folder: Path, generations: int, seconds: float, **more: Any) -> None:
    folder.mkdir(parents=True)
    lines = (
        json.dumps({"generation": at, "cpu_seconds": seconds, "files": {}, **more})
        for at in range(1, generations + 1)
    )
    (folder / "log.jsonl").write_text("".join(line + "\n" for line in lines))


def test_the_report_has_costs_if_the_runs_are_there(tmp_path: Path) -> None:
    study = replace(
        SMALL, ways={name: WAYS[name] for name in ("5+5", "cma")}, seeds=(1, 2, 3, 4, 5), number={1: 12}
    )
    results = made_up(study)
    assert studies_report.cost_table(tmp_path, study, results) == []
    for way, seconds in (("5+5", 2.5), ("cma", 4.0)):
        for seed in study.seeds:
            folder = tmp_path / studies.Run(study.rules[0], way, seed).folder
            write_log(folder, study.generations_of(way), seconds)
    assert studies_report.costs(tmp_path, study, "5+5") == [[2.5, 2.5, 5, 10]] * 5, (
        "who was fittest first is known later"
    )
    rows = studies_report.cost_table(tmp_path, study, results)
    assert rows[0][:3] == ["way", "CPU s a run", "20 %"]
    assert rows[1][:2] == ["5+5", "10"]
    assert rows[1][5] == "5.0 (5.0 to 5.0)", "half of its matches after half of its four generations"
    assert rows[2][:2] == ["cma", "12"]
    drawn = studies_report.draw(tmp_path, study, results)
    text = studies_report.write(tmp_path, study, results, drawn, "hnefi").read_text()
    assert "## The same strength in how many CPU seconds" in text
    assert "4 generations where the options say nothing else" in text
    assert "| cma | `algorithm=cma`" in text
    picture = (tmp_path / "against-simple.svg").read_text()
    assert "CPU seconds of training" in picture
    assert ">generation<" not in picture, "their numbers of generations cannot be compared"
    # A run of an older version does not say what it took.
    (tmp_path / studies.Run(study.rules[0], "cma", 3).folder / "log.jsonl").write_text(
        "".join(json.dumps({"generation": at, "files": {}}) + "\n" for at in (1, 2, 3))
    )
    assert studies_report.cost_table(tmp_path, study, results) == []


@pytest.mark.slow
def test_the_whole_chain_with_three_algorithms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cma")
    monkeypatch.setattr(studies, "quick", lambda _: SMALL)
    out = tmp_path / "methods"
    assert command.main(["methods", "--quick", "--jobs", "1", "--plain", "--out", str(out)]) == 0
    assert f"report {out / 'report.md'}" in capsys.readouterr().out
    for way in WAYS:
        for seed in SMALL.seeds:
            log = read_log(out / studies.Run(SMALL.rules[0], way, seed).folder)
            assert len(log) == SMALL.generations_of(way)
            assert all(0 < entry["cpu_seconds"] < 60 for entry in log)
    assert studies.read_study(out) == SMALL
    assert "The same strength" in (out / "report.md").read_text()
