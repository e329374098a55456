"""`hnefi evaluator match`: two evaluators play in kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hnefi import players
from hnefi.engine.evaluators import files, network
from hnefi.engine.games import find
from hnefi.engine.openings import generate
from hnefi.engine.selfplay.match import Contestant, Table
from hnefi.tools.common.matches import play_games
from hnefi.tools.evaluator import command as evaluator
from hnefi.tools.evaluator import match as evaluator_match


def said(capsys: pytest.CaptureFixture[str], *argv: str) -> list[list[str]]:
    """The table's rows."""
    assert evaluator.main(["match", *argv]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:3] == ["plies", "matches", "won"]
    return [line.replace(" %", "").split() for line in lines[2:]]


def test_who_sees_something_beats_who_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    shallow, deep = said(
        capsys, "simple", "random", "--variant", "brandubh", "--depths", "1,2", "--pairs", "40"
    )
    assert shallow[:2] == ["1", "40"]
    assert deep[0] == "2"
    won, drawn, lost = map(float, shallow[2:5])
    assert won > 90
    assert won + drawn + lost == pytest.approx(100)
    low, high = map(float, shallow[5].split("-"))
    assert low < won <= high + 0.1
    assert sum(map(int, shallow[7].split("/"))) == 40


def test_a_start_of_evolutions_can_play(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = said(
        capsys, "linear-threats", "linear", "--variant", "brandubh", "--depths", "1", "--pairs", "9"
    )
    assert row[1] == "9"


def test_jobs_change_nothing_and_the_seed_does(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("simple", "linear", "--variant", "brandubh", "--depths", "1", "--pairs", "23")
    one = said(capsys, *words, "--jobs", "1")
    assert one == said(capsys, *words, "--jobs", "3")
    assert one != said(capsys, *words, "--jobs", "3", "--seed", "2")


def test_games_that_repeat_count_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Evaluators with hardly any equal moves repeat themselves from one start, and not from their own openings."""
    weights = (
        str(Path(players.__file__).with_name(f"{name}-hingston-original.safetensors"))
        for name in ("evolved", "paper")
    )
    words = (*weights, "--depths", "1", "--pairs", "30")
    (same,) = said(capsys, *words, "--openings", "0")
    (other,) = said(capsys, *words)
    assert int(same[-1]) < 55
    assert int(other[-1]) == 60
    assert same[2] == other[2] == "100.0"
    assert float(same[5].split("-")[0]) < float(other[5].split("-")[0])


def test_both_games_of_a_pair_begin_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    variant: Any = find("brandubh")
    opening = next(iter(generate(variant, 1, 5)))
    seen = []
    monkeypatch.setattr(Table, "play", lambda _, games, start=None: seen.append((len(games), start)))
    play_games(variant, Contestant("random"), Contestant("random"), [opening, None], "key")
    play_games(variant, Contestant("random"), Contestant("random"), [None, None], "key")
    assert seen == [(2, opening), (2, None), (4, None)]


def test_a_file_names_its_variant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    variant, net = find("brandubh"), network.parse("hingston2007")
    path = str(tmp_path / "random.safetensors")
    files.save(path, files.make(net, variant, np.random.default_rng(1).normal(0, 0.1, net.count(variant))))
    (row,) = said(capsys, path, "zero", "--depths", "1", "--pairs", "2", "--plies", "30")
    assert row[1] == "2"
    assert float(row[-2]) <= 30


def test_results_are_noted_in_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    variant, net = find("brandubh"), network.parse("hingston2007")
    path = str(tmp_path / "random.safetensors")
    weights = np.random.default_rng(1).normal(0, 0.1, net.count(variant))
    files.save(path, files.make(net, variant, weights, {"results": {"older": {"won": 1}}}))
    said(capsys, path, "zero", "--depths", "1,2", "--pairs", "3", "--plies", "30", "--note")
    noted = files.load(path, variant)
    assert set(noted.document["results"]) == {
        "older",
        "brandubh against zero, 1 ply",
        "brandubh against zero, 2 ply",
    }
    deep = noted.document["results"]["brandubh against zero, 2 ply"]
    assert deep["won"] + deep["drawn"] + deep["lost"] == 3
    np.testing.assert_array_equal(files.genome(noted), weights)


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["simple", "zero"], "expected --variant"),
        (["simple", "zero", "--note"], "--note with 'simple'"),
        (["simple", "nobody", "--variant", "brandubh"], "'nobody': expected a .safetensors file, or one of"),
        (["simple", "gone.safetensors", "--variant", "brandubh"], "gone.safetensors"),
        (["simple", "gone.safetensors"], "gone.safetensors: No such file"),
        (["simple", "zero", "--variant", "brandubh", "--depths", "0"], "--depths '0'"),
        (["simple", "zero", "--variant", "brandubh", "--depths", "1,,2"], "--depths '1,,2'"),
        (["simple", "zero", "--variant", "hex:5"], "expected a tafl variant"),
        (
            ["simple", "zero", "--variant", "brandubh", "--openings", "8-2"],
            "'8-2': expected plies, as 2-8, or 0",
        ),
        (["simple", "zero", "--variant", "brandubh", "--openings", "0-3"], "'0-3': expected plies"),
        (
            ["simple", "zero", "--variant", "brandubh", "--openings", "1", "--pairs", "50"],
            "--pairs 50: brandubh has",
        ),
    ],
)
def test_what_cannot_be_played_is_said(
    argv: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        evaluator_match.main(argv)
    assert expected in capsys.readouterr().err
