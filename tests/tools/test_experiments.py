"""Experiments: counting matches, spread over seeds, folders that go on, the report."""

from __future__ import annotations

import hashlib
import json
import random
import sys
from dataclasses import replace
from itertools import product
from math import comb, exp, lgamma, log, pi, prod, sin
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hnefi.tools.common import paper_hingston
from hnefi.tools.common.matches import Count, Tally, count, seed, total
from hnefi.tools.experiments import (
    command,
    hingston,
    hingston_report,
    measuring,
    studies,
)
from hnefi.tools.experiments.hingston import Plan
from hnefi.tools.experiments.measuring import Cell, ExperimentError, Log, prepare, read_plan
from hnefi.tools.experiments.spread import bootstrap, difference, foreseen, log_likelihood, predictive

GAME = np.dtype([("outcome", "i4"), ("plies", "i4"), ("taken", "i4", (2,)), ("evaluations", "i8")])


def match(first: int, second: int, ours: int, theirs: int) -> Any:
    """Two games: winners as 1 attackers, 2 defenders, 3 nobody; men taken by us and by them, all in the first."""
    games = np.zeros(2, GAME)
    games["outcome"] = first << 8 | 1, second << 8 | 1
    games["taken"][0] = ours, theirs
    games["plies"] = 10, 20
    return games


@pytest.mark.parametrize(
    ("first", "second", "ours", "theirs", "expected"),
    [
        (1, 2, 0, 9, "won"),
        (1, 3, 3, 9, "won"),
        (1, 1, 9, 7, "won by captures"),
        (3, 3, 5, 8, "lost by captures"),
        (2, 2, 6, 6, "drawn"),
        (2, 1, 9, 0, "lost"),
        (3, 1, 9, 0, "lost"),
    ],
)
def test_matches_are_decided_by_games_then_by_captures(
    first: int, second: int, ours: int, theirs: int, expected: str
) -> None:
    tally = count(match(first, second, ours, theirs))
    word, _, captures = expected.partition(" by ")
    assert getattr(tally.matches, word) == tally.matches.all == 1
    assert tally.by_captures == (captures == "captures")
    assert tally.plies == 30


def test_captures_count_for_whoever_made_them() -> None:
    games = match(3, 3, 0, 0)
    games["taken"][1] = 4, 1  # in the second game we defend: the attackers' captures are theirs
    assert count(games).matches == Count(lost=1)


def test_games_are_counted_by_side() -> None:
    tally = count(np.concatenate([match(1, 2, 0, 0), match(2, 3, 0, 0), match(3, 1, 0, 0)]))
    assert tally.attacking == Count(1, 1, 1)
    assert tally.defending == Count(1, 1, 1)
    assert total([tally, tally]).attacking == Count(2, 2, 2)
    assert Tally.from_json(tally.as_json()) == tally
    for wrong in ({"by_captures": float("nan")}, {"attacking": [0, 0, 0]}, {"defending": [3, 1, 0]}):
        with pytest.raises(ValueError, match=r"NaN|each match has a game on either side"):
            Tally.from_json(tally.as_json() | wrong)


def test_unfinished_games_are_refused() -> None:
    with pytest.raises(ValueError, match="finished"):
        count(np.zeros(2, GAME))


def test_streams_differ_and_stay() -> None:
    assert seed("a", 1) == int.from_bytes(hashlib.sha256(b"a 1").digest()[:8], "little")
    assert len({seed("a", n) for n in range(1000)}) == 1000


def beta_binomial(k: int, n: int, a: float, b: float) -> float:
    """The law by its formula, with gamma functions."""
    return comb(n, k) * exp(
        lgamma(k + a) + lgamma(n - k + b) - lgamma(n + a + b) + lgamma(a + b) - lgamma(a) - lgamma(b)
    )


def test_the_next_run_is_foreseen_by_bayes_rule_over_beta_laws() -> None:
    counts, played, n = (3, 9, 0, 14, 5), (20, 30, 20, 30, 20), 7
    weights, laws = [], []
    for step in range(60):
        mean = sin(pi / 2 * (step + 0.5) / 60) ** 2
        for other in range(16):
            size = 1 / ((other + 0.5) / 16) ** 3 - 1
            a, b = mean * size, (1 - mean) * size
            weights.append(
                prod(beta_binomial(k, games, a, b) for k, games in zip(counts, played, strict=True))
            )
            laws.append([beta_binomial(k, n, a, b) for k in range(n + 1)])
    expected = [
        sum(w * law[k] for w, law in zip(weights, laws, strict=True)) / sum(weights) for k in range(n + 1)
    ]
    assert predictive(counts, played, n) == pytest.approx(expected)
    assert sum(expected) == pytest.approx(1)
    won_and_lost = log(expected[2]) + log(predictive((1, 1, 1, 1, 1), (17, 21, 20, 16, 15), 5)[1])
    assert log_likelihood((2, 1), n, counts, (1,) * 5, played) == pytest.approx(won_and_lost)


@pytest.mark.parametrize(("mean", "size"), [(0.1, 49), (0.4, 9), (0.8, 19), (0.4, 999)])
def test_foreseen_holds_as_many_new_runs_as_it_says(mean: float, size: float) -> None:
    """Of simulated new runs; a mixture of the seeds' own binomial laws held 0.83 to 0.91 of the first three."""
    draw = np.random.default_rng(7)
    inside, rounds, n = 0, 250, 100
    for _ in range(rounds):
        *shares, new = draw.beta(mean * size, (1 - mean) * size, 6)
        counts = draw.binomial(400, shares).tolist()
        interval = foreseen(counts, [400] * 5, n)
        assert interval is not None
        inside += interval[0] <= draw.binomial(n, new) <= interval[1]
    assert 0.92 <= inside / rounds <= 1


def test_too_few_seeds_have_no_interval() -> None:
    assert foreseen((10, 12, 9, 11), (20,) * 4, 20) is None
    assert bootstrap((0.1, 0.4, 0.5, 0.6)) is None
    assert difference((0.1, 0.2), (0.3,) * 5) is None
    assert foreseen((0,) * 5, (400,) * 5, 10) == (0, 3), "nothing in five runs does not mean never"


def test_bootstrap_is_that_of_all_resamples() -> None:
    values = (0.1, 0.4, 0.5, 0.7, 0.9)
    means = sorted(sum(sample) / 5 for sample in product(values, repeat=5))
    interval = bootstrap(values, 0.8)
    assert interval == pytest.approx((means[len(means) // 10], means[-len(means) // 10]), abs=0.02)


SMALL = Plan(seeds=(1, 2), generations=2, every=1, tests={1: 2, 2: 2, 3: 2}, final={1: 4, 2: 4, 3: 4})


def made_up(plan: Plan) -> dict[Cell, Tally]:
    """Results of any kind, all of the right size."""
    draw, results = random.Random(5), {}
    for cell in plan.cells():
        n = plan.matches(cell)
        games = [
            match(draw.choice((1, 2, 3)), draw.choice((1, 2, 3)), draw.randrange(9), draw.randrange(9))
            for _ in range(n)
        ]
        results[cell] = count(np.concatenate(games))
    return results


def test_a_folder_goes_on_where_it_stopped(tmp_path: Path) -> None:
    results = made_up(SMALL)
    log = Log(tmp_path / "tests.jsonl")
    cells = list(results)
    for cell in cells[:-1]:
        log.append({cell: results[cell]})
    with (tmp_path / "tests.jsonl").open("ab") as file:
        file.write(b'{"cell": "torn')
    assert log.read(SMALL) == {cell: results[cell] for cell in cells[:-1]}
    log.append({cells[-1]: results[cells[-1]]})
    assert log.read(SMALL) == results
    assert measuring.pending(SMALL, results) == []


def test_a_foreign_line_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tests.jsonl").write_text('{"cell": "of another plan", "tally": {}}\n')
    with pytest.raises(ExperimentError, match="line 1"):
        Log(tmp_path / "tests.jsonl").read(SMALL)


def test_another_plan_is_refused_by_name(tmp_path: Path) -> None:
    prepare(tmp_path, SMALL)
    prepare(tmp_path, SMALL)
    assert read_plan(tmp_path, Plan()) == SMALL
    with pytest.raises(ExperimentError, match="generations"):
        prepare(tmp_path, Plan(seeds=(1, 2), generations=3, every=1, tests=SMALL.tests, final=SMALL.final))
    (tmp_path / "plan.json").write_text('{"rules": 3}')
    with pytest.raises(ExperimentError, match="plan"):
        read_plan(tmp_path, Plan())


def test_the_papers_tables_add_up_as_printed() -> None:
    totals = {"hingston-original": (39, 134, 137, 11), "hingston-alternative": (214, 32, 26, 92)}
    for rules, rows in paper_hingston.TABLES.items():
        sums = tuple(map(sum, zip(*rows.values(), strict=True)))
        assert sums == totals[rules]
        for (depth, _), row in rows.items():
            assert row.won_red + row.lost_red <= paper_hingston.MATCHES[depth]
            assert row.won_white + row.lost_white <= paper_hingston.MATCHES[depth]


def test_the_report_has_every_number_and_says_quick(tmp_path: Path) -> None:
    import dataclasses

    plan = dataclasses.replace(SMALL, quick=True)
    results = made_up(plan)
    text = hingston_report.write(tmp_path, plan, results, [], "hnefi experiments hingston").read_text()
    assert "QUICK" in text
    assert "hnefi experiments hingston" in text
    for number in (1, 2):
        assert f"## Table {number}" in text
        rows = (tmp_path / f"table-{number}.csv").read_text().splitlines()
        assert len(rows) == 1 + 9 * 4  # three opponents, three depths, four counts
    held = hingston_report.table(plan, results, "hingston-original")
    one = next(
        cell for cell in held if (cell.depth, cell.opponent, cell.counted) == (1, "simple", "lost as red")
    )
    tallies = [
        results[Cell(hingston.Run("hingston-original", "random-blind", s), 2, "simple", 1)]
        for s in plan.seeds
    ]
    assert one.paper == 83
    assert one.mean == pytest.approx(100 * sum(t.attacking.lost for t in tallies) / 8)


def test_the_reading_that_made_the_papers_numbers_explains_them_best() -> None:
    """Seeds that play as the paper's player did against one reading of Random, and otherwise against the other."""
    plan = Plan(seeds=(1, 2, 3, 4, 5), generations=2, every=1)
    truth = {1: "random-blind", 2: "random-terminal", 3: "random-terminal"}
    results = {}
    for cell in plan.cells():
        n = plan.matches(cell)
        row = paper_hingston.TABLES[cell.run.rules][cell.depth, cell.opponent.partition("-")[0]]
        if cell.opponent != truth[cell.depth] and cell.opponent != "simple":
            row = paper_hingston.Row(*reversed(row))
        won, white, lost, lost_white = (n * games // paper_hingston.MATCHES[cell.depth] for games in row)
        results[cell] = Tally(
            Count(n), 0, Count(won, n - won - lost, lost), Count(white, n - white - lost_white, lost_white)
        )
    found = hingston_report.readings(plan, results)
    assert len(found) == 8
    assert next(iter(found)) == tuple(truth.values())
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_figures_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    plan = Plan(seeds=(1, 2), generations=2, every=1, tests=SMALL.tests, final=SMALL.final)
    drawn = hingston_report.draw(tmp_path, plan, made_up(plan))
    assert len(drawn) == 6  # figures 4 to 7, those against Random in both readings
    assert all(path.suffix == ".svg" and path.stat().st_size > 5000 for path in drawn)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hingston", "readings", "scaling"])
def test_the_whole_chain(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evolution, tests, report; the same command again plays nothing and writes the same. One rule set of the paper
    is enough: games some plies deep take long, and the report of both is looked at above."""
    quicker = replace(
        hingston.QUICK,
        rules=("hingston-alternative",),
        generations=2,
        every=2,
        tests={1: 4, 2: 1, 3: 1},
        final={1: 4, 2: 1, 3: 1},
    )
    monkeypatch.setattr(hingston, "QUICK", quicker)
    out = tmp_path / name
    assert command.main([name, "--quick", "--jobs", "2", "--plain", "--out", str(out)]) == 0
    assert f"report {out / 'report.md'}" in capsys.readouterr().out
    text = (out / "report.md").read_text()
    assert "QUICK" in text
    assert ".svg)" in text, "the figures"
    tests = (out / "tests.jsonl").read_bytes()
    plan = hingston.QUICK if name == "hingston" else studies.quick(studies.STUDIES[name])
    assert tests.count(b"\n") == len(list(plan.cells()))
    assert command.main(["resume", str(out), "--jobs", "1", "--plain"]) == 0
    assert (out / "tests.jsonl").read_bytes() == tests
    assert (out / "report.md").read_text() == text


def test_a_part_of_a_study_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ways = ["--ways", "inherit-first,plies-200"]
    seen: list[studies.Study] = []

    def conduct(folder: Path, plan: studies.Study, *_: Any, **__: Any) -> int:
        assert studies.read_study(folder) == plan
        seen.append(plan)
        return 0

    monkeypatch.setattr(command, "_conduct", conduct)
    line = ["distribution", "--seeds", "8", "--others", "3", *ways]
    assert command.main([*line, "--out", str(tmp_path / "part")]) == 0
    (study,) = seen
    assert list(study.ways) == ["as-printed", "inherit-first", "plies-200"]
    assert [len(study.seeds_of(way)) for way in study.ways] == [8, 3, 3]
    for wrong, said in (
        (
            ["distribution", "--ways", "plies-200,plies"],
            "--ways: 'plies': expected some of as-printed, tau-schwefel",
        ),
        (
            ["distribution", "--quick", "--ways", "plies-200"],
            "expected some of as-printed, tau-schwefel, which are all that --quick has",
        ),
        (["hingston", *ways], "--ways: expected with readings, distribution, scaling"),
        (["hex", "--others", "3"], "--others: expected with readings, distribution, scaling"),
        (["distribution", "--others", "1"], "--others 1: expected at least 2"),
        (["distribution", "--seeds", "3", "--others", "5"], "--others 5: expected at most 3"),
        (["resume", str(tmp_path / "part"), *ways], "resume: expected no --ways: the folder's plan decides"),
    ):
        with pytest.raises(SystemExit):
            command.main(wrong)
        assert said in capsys.readouterr().err


def test_a_study_of_another_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = studies.quick(studies.SCALING)
    prepare(tmp_path, study)
    assert studies.read_study(tmp_path) == study
    assert command.main(["scaling", "--out", str(tmp_path)]) == 2
    assert "expected another --out" in capsys.readouterr().err
    whole = study.as_json()
    for wrong in ({"generations": -4}, {"number": {"1": 0}}, {"seeds": [1]}, {"ways": {}}, {"number": {}}):
        (tmp_path / "plan.json").write_text(json.dumps(whole | wrong))
        assert command.main(["resume", str(tmp_path)]) == 2
        assert "expected the plan of a study" in capsys.readouterr().err
    (tmp_path / "plan.json").write_text('{"study": "nothing"}')
    assert command.main(["resume", str(tmp_path)]) == 2
    assert "expected the plan of a study" in capsys.readouterr().err


def test_games_of_a_generation_are_those_played() -> None:
    assert studies.games_a_generation({}) == 290
    assert studies.games_a_generation(studies.SCALING.ways["250+250"]) == 10_000
    assert studies.games_a_generation({"hall": 16}) == 290 + 10 * 16 * 2
