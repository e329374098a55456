"""`hnefi tune`: games with itself, kept part by part, and weights fitted to them."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hnefi.engine import games
from hnefi.engine.evaluators import tafl
from hnefi.engine.games.tafl.variant import Variant
from hnefi.tools.tune import command, parts, regression, selfplay

NODES = (40, 80)
SERIES = parts.Series(7, NODES)


def brandubh() -> Variant:
    found = games.find("brandubh")
    assert isinstance(found, Variant)
    return found


@pytest.fixture(scope="module")
def rows() -> Any:
    return selfplay.play(brandubh(), 30, 0, 7, NODES)


def test_rules_whose_default_is_a_network_have_games_by_hand_too() -> None:
    copenhagen = games.find("copenhagen")
    assert isinstance(copenhagen, Variant)
    assert len(selfplay.play(copenhagen, 1, 0, 7, NODES)) > 5


@pytest.mark.slow
def test_games_are_the_same_however_they_are_cut(rows: Any) -> None:
    later = selfplay.play(brandubh(), 10, 20, 7, NODES)
    assert len(later) > 20
    assert later.tobytes() == rows[rows["game"] >= 20].tobytes()
    assert selfplay.play(brandubh(), 10, 20, 8, NODES).tobytes() != later.tobytes()


def test_rows_hold_what_the_evaluator_sees(rows: Any) -> None:
    """Counts times weights are the evaluation: no term is missing, none is counted twice."""
    variant = brandubh()
    x = regression.design(rows, variant)
    assert len(set(rows["game"].tolist())) == 30
    assert set(rows["result"].tolist()) <= {0, 1, 2}
    men = rows["posts"].sum(axis=2)
    assert (men[:, 0] + rows["counts"][:, 0] == variant.attackers).all()
    assert (men[:, 1] + rows["counts"][:, 1] == variant.defenders).all()
    seen = x @ regression.in_force(variant)
    params = tafl.parameters(variant)[0]
    position = games.initial(variant)
    state = position.new_record()[0]
    total = int(tafl.terms(params, state))
    start = np.array([selfplay._row(state, params, variant, 0, 0)], selfplay.ROW)
    value = float(regression.design(start, variant)[0] @ regression.in_force(variant))
    # Every term is rounded down.
    assert total <= value < total + len(tafl.TERMS)
    assert len(set(np.round(seen).tolist())) > 20


def test_a_series_goes_on_where_it_was_cut_short(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hnefi.tools.common.arguments.let_interrupt_end_us", lambda: None)
    words = ["games", "brandubh", "--out", str(tmp_path), "--nodes", "40,80", "--seed", "7"]
    assert command.main([*words, "--games", "20"]) == 0
    first = parts.path(tmp_path, "brandubh", SERIES, 0)
    before = first.stat().st_mtime_ns
    assert command.main([*words, "--games", "30"]) == 0
    assert first.stat().st_mtime_ns == before
    assert "30 games of brandubh" in capsys.readouterr().out
    found = parts.read(tmp_path, "brandubh")
    assert len(np.unique(found["game"])) == 30
    out = tmp_path / "weights"
    assert command.main(["fit", str(tmp_path), "--out", str(out), "--blend", "0.5"]) == 0
    assert "brandubh" in capsys.readouterr().out
    text = (out / "brandubh.toml").read_text()
    assert text.startswith("family = { edge = false, king_sides = 2, size = 7,")
    document = tomllib.loads(text)
    assert list(document) == ["family", *(name for name, _ in tafl.WEIGHTS)]
    for name, shape in tafl.WEIGHTS:
        assert np.array(document[name]).shape == shape
    assert command.main(["check", str(tmp_path)]) == 0
    assert "held out" in capsys.readouterr().out


def test_newton_finds_the_weights_that_made_the_results() -> None:
    draw = np.random.default_rng(3)
    x = draw.normal(0, 2, (20_000, 4))
    true = np.array([40.0, -90.0, 10.0, 0.0])
    p = 1 / (1 + np.exp(-regression.UNIT * (x @ true)))
    results = (draw.random(len(x)) < p).astype(float)
    weight = np.ones(len(x))
    # From far off, and with columns that are worth nothing.
    found = regression.newton(x, results, weight, np.array([4000.0, 4000.0, 0.0, 0.0]), 1e-9)
    assert np.abs(found - true).max() < 6
    held = regression.newton(
        x, results, weight, np.array([0.0, 0.0, 0.0, 500.0]), np.array([1e-9] * 3 + [1e9])
    )
    assert abs(held[3] - 500) < 1
    assert regression.loss(x @ found, p, weight) < regression.loss(x @ held, p, weight)


def test_the_scale_of_scores_is_found() -> None:
    draw = np.random.default_rng(4)
    score = draw.integers(-800, 800, 20_000)
    results = (draw.random(len(score)) < 1 / (1 + np.exp(-regression.UNIT * 0.5 * score))).astype(float)
    assert regression.stretch_of(score, results, np.ones(len(score))) == pytest.approx(0.5, abs=0.05)


def test_posts_are_centred_without_changing_a_value(rows: Any) -> None:
    x = regression.design(rows, brandubh())
    weights = np.random.default_rng(5).normal(0, 50, regression.WIDTH)
    centred = regression.centred(weights, x)
    assert x @ centred == pytest.approx(x @ weights, abs=1e-3)
    for side in range(2):
        at = regression.COLUMNS["post"].start + side * 15
        part = slice(at, at + 15)
        assert float(x[:, part].sum(axis=0) @ centred[part]) == pytest.approx(0, abs=1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fit"], "required"),
        (["nonsense"], "expected one of games, fit, check"),
        (["games", "hex:5", "--out", "x"], "expected a tafl variant"),
        (["games", "brandubh", "--out", "x", "--nodes", "1,x"], "expected a whole number"),
        (["check", "/nowhere"], "expected a folder"),
        (["check", "x", "--blend", "2"], "expected a number from 0 to 1"),
    ],
)
def test_wrong_words_are_answered(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = command.main(words)
    except SystemExit as end:
        status = int(end.code or 0)
    assert status == 2
    assert said in capsys.readouterr().err


def test_files_that_are_none_of_ours_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "brandubh"
    folder.mkdir()
    for wrong in (b"", b"no array", b"\x93NUMPY"):
        (folder / "1-40.0.npy").write_bytes(wrong)
        with pytest.raises(SystemExit):
            command.main(["check", str(tmp_path)])
        assert "expected positions of `hnefi tune games`" in capsys.readouterr().err
    np.save(folder / "1-40.0.npy", np.zeros(3))
    with pytest.raises(SystemExit):
        command.main(["check", str(tmp_path)])
    assert "of this version" in capsys.readouterr().err


@pytest.mark.process
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_drafts_of_the_dead_go_and_those_of_the_living_stay(tmp_path: Path) -> None:
    """Who was killed and is not reaped yet is dead, too."""
    killed = subprocess.Popen(["sleep", "600"])
    killed.kill()
    os.waitid(os.P_PID, killed.pid, os.WEXITED | os.WNOWAIT)
    (tmp_path / "brandubh").mkdir()
    mine, theirs = (tmp_path / f"brandubh/7-60.0.{pid}.part" for pid in (os.getpid(), killed.pid))
    mine.touch()
    theirs.touch()
    parts.clear(tmp_path, "brandubh")
    assert mine.exists()
    assert not theirs.exists()
    killed.wait()
