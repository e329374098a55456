"""The study `distribution`: many seeds of each reading, parts of it, and results that are taken over."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from hnefi.tools.common import paper_hingston
from hnefi.tools.common.matches import Count, Tally, total
from hnefi.tools.experiments import command, distribution_report, measuring, studies, tests_csv
from hnefi.tools.experiments.measuring import Cell, ExperimentError


def like_the_paper(study: studies.Study, truth: str) -> dict[Cell, Tally]:
    """Results in which one way plays as the paper's player did, the others with the sides swapped."""
    results = {}
    for cell in study.cells():
        n = study.matches(cell)
        row = paper_hingston.TABLES[cell.run.rules][cell.depth, cell.opponent.partition("-")[0]]
        if cell.run.way != truth:
            row = paper_hingston.Row(*reversed(row))
        won, white, lost, lost_white = (n * games // paper_hingston.MATCHES[cell.depth] for games in row)
        results[cell] = Tally(
            Count(won, n - won - lost, lost),
            0,
            Count(won, n - won - lost, lost),
            Count(white, n - white - lost_white, lost_white),
        )
    return results


def test_a_distribution_finds_the_reading_that_the_paper_used(tmp_path: Path) -> None:
    study = replace(
        studies.DISTRIBUTION,
        ways={name: studies.DISTRIBUTION.ways[name] for name in ("as-printed", "plies-200", "tau-schwefel")},
        seeds=tuple(range(1, 8)),
        others=5,
    )
    results = like_the_paper(study, "plies-200")
    assert sum(1 for run in study.runs() if run.way == "as-printed") == 2 * 7
    assert sum(1 for run in study.runs() if run.way == "plies-200") == 2 * 5
    found = distribution_report.likelihoods(study, results)
    assert len(found) == 3 * 8
    assert next(iter(found)).way == "plies-200"
    likely = distribution_report.probabilities(found)
    assert sum(likely.values()) == pytest.approx(1)
    assert sum(share for reading, share in likely.items() if reading.way == "plies-200") > 0.99

    drawn = distribution_report.draw(tmp_path, study, results)
    text = distribution_report.write(
        tmp_path, study, results, drawn, "hnefi experiments distribution"
    ).read_text()
    assert text.count(".svg)") == 2
    assert "7 seeds from 1 for as-printed, 5 for each other reading" in text
    # All seeds of a way are alike here, so 21 choices of five of seven come to the same.
    choices = distribution_report.by_choice_of_seeds(study, results)
    assert len(choices) == 21
    least = min(choices)
    assert (
        f"by 5 of the 7 seeds of as-printed, the log-likelihood of its best combination lies between {least:.1f}"
        in text
    )
    assert f"(mean {least:.1f}, standard deviation 0.0, 21 choices)" in text
    # Against a Random who sees wins, the way that plays as the paper did now plays the other side.
    sighted = like_the_paper(study, "as-printed")
    uneven = {
        cell: (sighted if cell.opponent == "random-terminal" else results)[cell] for cell in study.cells()
    }
    found = distribution_report.likelihoods(study, uneven)
    choices = distribution_report.by_choice_of_seeds(study, uneven)
    head, *rows = distribution_report.by_training(study, found, choices)
    assert head[-1] == "better choices, of 21"
    assert sorted(row[:2] for row in rows) == [["as-printed", "7"], ["plies-200", "5"], ["tau-schwefel", "5"]]
    assert rows[0][:3] == ["plies-200", "5", "blind, blind, blind"]
    for way, _, words, value, *costs, better in rows:
        kinds = [f"random-{word}" for word in words.split(", ")]
        best = found[distribution_report.Reading(way, tuple(kinds))]
        assert best == max(one for reading, one in found.items() if reading.way == way)
        assert value == f"{best:.1f}"
        assert better == str(sum(one > best for one in choices))
        for place, cost in enumerate(costs):
            other = kinds.copy()
            other[place] = {"random-blind": "random-terminal"}.get(kinds[place], "random-blind")
            there = found[distribution_report.Reading(way, tuple(other))]
            assert float(cost) == pytest.approx(there - float(value), abs=0.11)
            assert float(cost) < 0 or way == "tau-schwefel"
    # Seed 1 plays as the paper's player did: the fifteen choices with it explain the paper better than the other six.
    as_paper = like_the_paper(study, "as-printed")
    mixed = {cell: (as_paper if cell.run.seed == 1 else results)[cell] for cell in results}
    better = sorted(distribution_report.by_choice_of_seeds(study, mixed))
    assert better[5] < better[6]
    assert better[0] == pytest.approx(least)
    assert distribution_report.by_choice_of_seeds(replace(study, others=None), as_paper | results) == []
    row = next(
        row
        for row in distribution_report.comparisons(study, results, "hingston-original", "plies-200")
        if (row.opponent, row.depth, row.counted) == ("simple", 1, "won as white")
    )
    assert (row.paper, row.n, row.mean) == (69, 100, 69)
    assert row.interval is not None
    assert row.interval[0] < 69 < row.interval[1]
    assert row.tail > 0.5
    rows = (tmp_path / "tests.csv").read_text().splitlines()
    assert len(rows) == 1 + len(results)
    assert rows[1].startswith("hingston-original,as-printed,1,300,random-blind,1,2,118,80,2,118,80,42,")


def test_a_report_on_what_is_finished(tmp_path: Path) -> None:
    """Seeds up to the first gap, in all rule sets alike; ways and rule sets with one run wait."""
    study = replace(
        studies.DISTRIBUTION,
        ways={name: studies.DISTRIBUTION.ways[name] for name in ("as-printed", "plies-200", "tau-schwefel")},
        seeds=(11, 12, 13, 14, 15, 16),
        others=4,
    )

    def finish(rules: str, way: str, *numbers: int) -> None:
        for number in numbers:
            file = tmp_path / studies.Run(rules, way, number).folder / "archive" / "gen-0300.safetensors"
            file.parent.mkdir(parents=True)
            file.touch()

    one, other = study.rules
    finish(one, "as-printed", 11, 12, 13, 14, 16)
    finish(other, "as-printed", 11)
    found = studies.finished(tmp_path, study)
    assert (found.rules, list(found.ways), found.seeds) == ((one,), ["as-printed"], (11, 12, 13, 14))
    finish(other, "as-printed", 12, 13)
    finish(one, "plies-200", 11, 12, 13)
    finish(other, "plies-200", 11, 12)
    finish(one, "tau-schwefel", 11, 12)
    finish(other, "tau-schwefel", 11)
    found = studies.finished(tmp_path, study)
    assert (found.rules, list(found.ways), found.seeds) == (
        study.rules,
        ["as-printed", "plies-200"],
        (11, 12, 13),
    )
    assert found.seeds_of("plies-200") == (11, 12)
    assert found.title == f"{study.title} (not finished: tau-schwefel)"
    with pytest.raises(ExperimentError, match="expected 2 finished runs of as-printed"):
        studies.finished(tmp_path / "nothing", study)


def test_a_part_of_a_distribution_has_a_report(tmp_path: Path) -> None:
    study = replace(studies.DISTRIBUTION, ways={"as-printed": {}}, seeds=(1, 2, 3), others=None)
    results = like_the_paper(replace(study, ways={"as-printed": {}, "plies-200": {}}), "plies-200")
    for rules in study.rules:
        part = replace(study, rules=(rules,))
        text = distribution_report.write(tmp_path, part, results, [], "").read_text()
        assert f"## Table {1 + study.rules.index(rules)}: {rules}, as-printed" in text
        assert "3 seeds from 1 for as-printed, under" in text


def small_distribution(monkeypatch: pytest.MonkeyPatch) -> studies.Study:
    """What `--quick` now means: four runs of two generations."""
    study = replace(
        studies.quick(studies.DISTRIBUTION),
        rules=("hingston-alternative",),
        generations=2,
        tested=(2,),
        number={1: 4, 2: 1, 3: 1},
    )
    monkeypatch.setattr(studies, "quick", lambda _: study)
    return study


def test_finished_runs_are_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From nothing, from a part and from the whole file: the same tests, and only what is missing evolves."""
    small_distribution(monkeypatch)

    def run(name: str, *more: str) -> tuple[str, str]:
        line = ["distribution", "--quick", "--jobs", "1", "--plain", "--out", str(tmp_path / name), *more]
        assert command.main(line) == 0
        return capsys.readouterr().out, (tmp_path / name / "tests.csv").read_text()

    whole, tests = run("whole")
    assert whole.count("champion.safetensors") == 4
    file = tmp_path / "whole" / "tests.csv"
    said, again = run("all", "--merge", str(file))
    assert f"{file}: 36 tests added; {tmp_path / 'all'} had 0" in said
    report = (tmp_path / "all" / "report.md").read_text()
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert f"36 tests were taken over from tests.csv (SHA-256 {digest}), not run here.\n" in report
    assert "`hnefi experiments distribution --quick --merge tests.csv --out all`" in report
    assert "taken over" not in (tmp_path / "whole" / "report.md").read_text()
    assert "champion" not in said
    assert again == tests
    part = tmp_path / "part.csv"
    part.write_text("".join(line for line in tests.splitlines(True) if "tau-schwefel,1001" not in line))
    said, again = run("part", "--merge", str(part))
    assert said.count("champion.safetensors") == 1
    assert (tmp_path / "part/runs/hingston-alternative/tau-schwefel/seed-1001/archive").is_dir()
    assert again == tests
    said, again = run("part", "--merge", str(file))
    assert f"0 tests added; {tmp_path / 'part'} had 36" in said
    assert again == tests
    notes = [(one.file, one.tests) for one in tests_csv.merged(tmp_path / "part")]
    assert notes == [("part.csv", 27)]
    # Killed between the note and the tests, the same command writes no second one.
    tests_csv.note_merged(tmp_path / "part", part, 27)
    assert len(tests_csv.merged(tmp_path / "part")) == 1


def test_what_is_missing_evolves_in_folders_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seeds in a row by one command, which makes their folders, and a single one in the folder that it would have."""
    study = replace(
        studies.DISTRIBUTION,
        ways={"as-printed": {}, "plies-200": {"ply_limit": 200}},
        seeds=(1, 2, 3, 4, 5, 6),
        rules=("hingston-original",),
        others=2,
    )
    results = like_the_paper(study, "plies-200")
    missing = ("as-printed", 2), ("as-printed", 3), ("as-printed", 5), ("plies-200", 2)
    kept = {cell: results[cell] for cell in results if (cell.run.way, cell.run.seed) not in missing}
    measuring.log_of(tmp_path).append(kept)
    seen: list[tuple[str, str, Path]] = []

    def evolve(arguments: list[str]) -> int:
        given = dict(zip(arguments[1::2], arguments[2::2], strict=False))
        seen.append((given["--seed"], given["--seeds"], Path(given["--out"])))
        return 0

    monkeypatch.setattr("hnefi.tools.evolve.command.main", evolve)
    assert studies.evolve(tmp_path, study, 2) == 0
    runs = tmp_path / "runs" / "hingston-original"
    assert seen == [
        ("2", "2", runs / "as-printed"),
        ("5", "1", runs / "as-printed" / "seed-5"),
        ("2", "1", runs / "plies-200" / "seed-2"),
    ]


def test_taken_over_runs_can_be_reported(tmp_path: Path) -> None:
    """Without archives of their own, and with more seeds of a reading than the report has."""
    study = replace(
        studies.DISTRIBUTION,
        ways={name: studies.DISTRIBUTION.ways[name] for name in ("as-printed", "plies-200", "tau-schwefel")},
        seeds=(1, 2, 3, 4),
        others=3,
    )
    measuring.prepare(tmp_path, study)
    results = like_the_paper(study, "plies-200")
    missing = ("as-printed", 4), ("tau-schwefel", 3)
    log = measuring.log_of(tmp_path)
    log.append({cell: results[cell] for cell in results if (cell.run.way, cell.run.seed) not in missing})
    assert command.main(["resume", str(tmp_path), "--report", "--plain", "--jobs", "1"]) == 0
    text = (tmp_path / "report.md").read_text()
    assert "3 seeds from 1 for as-printed, 2 for each other reading" in text


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("rules,", "rule,"), r"line 1: expected a study's tests.csv, which begins with rules,training"),
        ((",as-printed,1001,2,simple,3,", ",as-printed,1001,2,simple,three,"), r"expected a test \(invalid"),
        ((",as-printed,1001,2,simple,3,", ",as-printed,1001,2,simple,3,1,"), r"expected a test \("),
        (
            (",as-printed,1001,2,simple,3,1,0,0,", ",as-printed,1001,2,simple,3,2,0,0,"),
            "each match has a game",
        ),
        ((",as-printed,1001,2,simple,3,1,0,0,1", ",as-printed,1001,2,simple,3,-1,0,2,1"), "each match has"),
        (("\r\n", "\0"), "tests.csv"),
    ],
)
def test_a_wrong_file_of_tests_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: tuple[str, str], said: str
) -> None:
    study = small_distribution(monkeypatch)
    won = Tally(Count(1, 0, 0), 0, Count(1, 0, 0), Count(1, 0, 0))
    results = {cell: total([won] * study.matches(cell)) for cell in study.cells()}
    path = tmp_path / "tests.csv"
    tests_csv.write(path, study, results)
    assert tests_csv.read(path, study) == results
    with path.open(newline="") as file:
        text = file.read()
    assert wrong[0] in text
    path.write_text(text.replace(*wrong), newline="")
    with pytest.raises(ExperimentError, match=said):
        tests_csv.read(path, study)


def test_results_that_contradict_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study = small_distribution(monkeypatch)
    won = Tally(Count(1, 0, 0), 0, Count(1, 0, 0), Count(1, 0, 0))
    lost = Tally(Count(0, 0, 1), 0, Count(0, 0, 1), Count(0, 0, 1))
    for name, tally in (("won", won), ("lost", lost)):
        results = {cell: total([tally] * study.matches(cell)) for cell in study.cells()}
        tests_csv.write(tmp_path / f"{name}.csv", study, results)
    line = ["distribution", "--quick", "--plain", "--out", str(tmp_path / "out")]
    files = [tmp_path / "won.csv", tmp_path / "lost.csv"]
    merge = [word for file in files for word in ("--merge", str(file))]
    assert command.main([*line, *merge]) == 2
    assert "were made by different programs" in capsys.readouterr().err
    kept = measuring.log_of(tmp_path / "out").read(study)
    assert {tally.matches.lost for tally in kept.values()} == {0}
    both = tmp_path / "both.csv"
    both.write_text(files[0].read_text() + files[1].read_text().split("\n", 1)[1])
    for path, said in (
        (both, "expected the same result as in an earlier line"),
        (tmp_path / "none.csv", "No such file or directory: expected a study's tests.csv"),
    ):
        with pytest.raises(ExperimentError, match=said):
            tests_csv.read(path, study)
    with pytest.raises(ExperimentError, match="4 matches: expected 5, as in this study"):
        tests_csv.read(files[0], replace(study, number={1: 5, 2: 1, 3: 1}))
    line = ["distribution", "--plain", "--out", str(tmp_path / "never")]
    assert command.main([*line, "--quick", "--merge", str(both)]) == 2
    assert command.main([*line, "--merge", str(files[0])]) == 2
    assert "expected tests of this study" in capsys.readouterr().err
    assert not (tmp_path / "never").exists()
    with pytest.raises(SystemExit):
        command.main(["hingston", "--merge", str(both)])
    assert "--merge: expected with distribution" in capsys.readouterr().err
