"""`hnefi evaluator loss`: evaluators asked about recorded games."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from hnefi.engine import evaluators, games
from hnefi.engine.squares import move_name
from hnefi.tools.common.calibration import expected
from hnefi.tools.common.calibration import loss as logistic
from hnefi.tools.evaluator import loss, loss_chart


class Moment(NamedTuple):
    """What rows ask of a position."""

    ply: int
    side: int


def recorded(folder: Path, number: int) -> Path:
    """Random games of brandubh, as a collection; who has lost fewer men has won."""
    variant, draw = games.find("brandubh"), random.Random(2)
    lines = []
    while len(lines) < number:
        position, words = games.initial(variant), []
        for _ in range(24):
            moves = position.legal_moves()
            if position.outcome is not None or not moves:
                break
            move = draw.choice(moves)
            after: Any = position.play(move)
            if after.outcome is not None:
                break
            origin, target = move_name(move)[:2], move_name(move)[2:4]
            gone = {sq for sq, _ in position.pieces()} - {sq for sq, _ in after.pieces()} - {move & 511}
            words.append(f"{origin}-{target}" + "".join(f"x{move_name(sq | sq << 9)[:2]}" for sq in gone))
            position = after
        by_attackers, by_defenders = position.taken
        if len(words) > 8 and by_attackers != by_defenders:
            lines.append(f"{' '.join(words)},0,0,{'Black' if 2 * by_attackers > by_defenders else 'White'}")
    path = folder / "games.csv"
    path.write_text("\n".join([*lines, "d6-c6,0,0,Ongoing"]) + "\n")
    return path


def test_who_knows_more_has_less_loss(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`default` is replaced by one who counts men as the results do."""
    real = loss.values

    def values(name: str, variant: Any, asked: Any) -> Any:
        if name == "zero":
            return real(name, variant, asked)
        return np.array([100.0 * (2 * position.taken[0] - position.taken[1]) for position in asked])

    monkeypatch.setattr(loss, "values", values)
    path = recorded(tmp_path, 40)
    assert loss.main([str(path), "zero", "default", "--variant", "brandubh"]) == 0
    head, _, *lines = filter(None, capsys.readouterr().out.splitlines())
    assert head.startswith(f"{path}: 40 finished games of brandubh, ")
    found = {line.split()[0]: line.removeprefix("(nothing known)").split() for line in lines[:3]}
    nothing, zero, default = float(found["(nothing"][0]), float(found["zero"][1]), float(found["default"][1])
    assert default < nothing - 0.05
    # The share of one half is not that of all.
    assert nothing <= zero < nothing + 0.05
    assert lines[3].startswith("more than zero")
    difference, error = float(lines[4].split()[1]), float(lines[4].split()[3])
    assert difference == pytest.approx(default - zero, abs=2e-4)
    # From game to game the two differ more evenly than either of them.
    assert 0 < error < float(found["default"][2]) + float(found["zero"][2])


def sample_of_three() -> loss.Sample:
    """Three games, of three, one and two positions."""
    asked: Any = [Moment(ply=20 if i < 4 else 21, side=i % 2) for i in range(6)]
    return loss.Sample(asked, np.array([0, 0, 0, 1, 2, 2]), np.array([1.0, 1, 1, 0, 1, 1]))


def test_a_game_is_one_observation() -> None:
    sample, each = sample_of_three(), np.array([1.0, 1, 1, 3, 2, 2])
    assert loss.mean(sample, each) == pytest.approx((2, 1 / 3**0.5))
    # Positions 0 and 2 of the first game and 4 of the third: their mean is 4/3, and the games' sums lie 2/3 off it.
    assert loss.mean(sample, each, sample.sides == 0) == pytest.approx(
        (4 / 3, (2 * 2 * (2 / 3) ** 2) ** 0.5 / 3)
    )
    assert np.isnan(loss.mean(sample, each, np.array([True, True, False, False, False, False]))).all()


def test_a_difference_is_that_of_the_same_positions() -> None:
    """An evaluator that loses 0.1 more on each position is 0.1 worse, without error."""
    sample = sample_of_three()
    first = np.array([0.3, 0.3, 0.3, 0.5, -0.2, -0.2])
    worse = -np.log(np.exp(loss.losses(sample, first) + 0.1) - 1) * np.where(sample.results, 1, -1)
    head, row = loss.differences(sample, {"a": first, "b": worse})
    assert head[:2] == ("more than a", "loss")
    assert row == ("b", *["+0.1000 ± 0.0000"] * 4, "-", "-")
    cells = dict(zip(*[list(loss.rows(sample, {"a": first, "b": worse}))[i] for i in (0, 3)], strict=True))
    assert cells["ply 20 (4)"] == f"{logistic(worse[:4], sample.results[:4]):.4f}"
    assert cells["ply 40 (0)"] == "-"


def test_a_calibrated_evaluator_lies_on_the_diagonal() -> None:
    draw = np.random.default_rng(4)
    truth = draw.random(4000)
    results = (draw.random(4000) < truth).astype(float)
    alone = list(loss_chart.calibrated(truth, results, np.arange(4000)))
    assert len(alone) == loss_chart.BINS
    outside = [each for each in alone if not each.interval[0] <= each.expected <= each.interval[1]]
    assert len(outside) <= 2
    # Nine positions of each game: the same shares, and intervals that know of no more games than there are.
    nine = list(
        loss_chart.calibrated(np.repeat(truth, 9), np.repeat(results, 9), np.repeat(np.arange(4000), 9))
    )
    assert [each.interval for each in nine] == [pytest.approx(each.interval) for each in alone]
    assert [each[:2] for each in nine] == [pytest.approx(each[:2]) for each in alone]
    # Too few games in each bin, however many positions.
    assert not list(
        loss_chart.calibrated(
            np.repeat(truth[:20], 99), np.repeat(results[:20], 99), np.repeat(np.arange(20), 99)
        )
    )


def test_a_chart_shows_both_sides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[int] = []
    real = loss_chart.calibrated
    monkeypatch.setattr(loss_chart, "calibrated", lambda *given: asked.append(len(given[0])) or real(*given))
    path = recorded(tmp_path, 60)
    chart = tmp_path / "c.svg"
    words = [str(path), "zero", "default", "--variant", "brandubh", "--chart"]
    assert loss.main([*words, str(chart)]) == 0
    said = {part.strip() for part in ET.parse(chart).getroot().itertext()}
    assert {"zero", "default", "expected, per cent (attackers to move)", "happened, per cent"} <= said
    assert any("brandubh, 60 games of games.csv" in part for part in said)
    sides = loss.sample_of(loss.positions(str(path), games.find("brandubh"))).sides  # type: ignore[arg-type]
    attackers, defenders = np.bincount(sides).tolist()
    assert asked == [attackers, attackers, defenders, defenders]
    assert attackers != defenders
    capsys.readouterr()
    for bad, reason in (("c.gif", "expected a file ending in .svg or .png"), ("no/c.svg", "No such file")):
        with pytest.raises(SystemExit) as end:
            loss.main([*words, str(tmp_path / bad)])
        assert end.value.code == 2
        assert reason in capsys.readouterr().err


def test_values_are_for_the_attackers() -> None:
    variant: Any = games.find("brandubh")
    asked = [games.initial(variant)]
    asked.append(asked[0].play(asked[0].legal_moves()[0]))
    own = [dict(evaluators.terms("default", position))["total"] for position in asked]
    assert loss.values("default", variant, asked).tolist() == own


def test_each_half_is_judged_by_the_other() -> None:
    """Scores that mean the opposite in the two halves tell nothing, and are not found to."""
    draw = np.random.default_rng(1)
    scores = draw.integers(-600, 600, 4000).astype(float)
    halves = np.arange(4000) % 2
    results = (scores * np.where(halves, 1, -1) > 0).astype(float)
    assert logistic(loss.crosswise(scores, results, halves), results) > 0.69
    results = (scores > 0).astype(float)
    assert logistic(loss.crosswise(scores, results, halves), results) < 0.4


def test_scores_become_chances_by_a_line() -> None:
    assert expected([0, 174, 10**6], (0.5, -1.0)) == pytest.approx(
        [-1.0, -0.499, -1 + 0.5 * 1500 / 173.72], abs=1e-2
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["{}/none.csv", "default", "--variant", "brandubh"], "none.csv: No such file"),
        (["{}/bad.csv", "default", "--variant", "brandubh"], "bad.csv:1"),
        (["{}/bad.csv", "nobody", "--variant", "brandubh"], "evaluator 'nobody'"),
        (["{}/empty.csv", "default", "--variant", "brandubh"], "expected at least two finished games"),
        (["{}/bad.csv", "default"], "--variant"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.csv").write_text("d9-e9,0,0,White\n")
    (tmp_path / "empty.csv").write_text("\n")
    try:
        status = loss.main([word.format(tmp_path) for word in words])
    except SystemExit as end:
        status = int(end.code or 0)
    assert status == 2
    assert said in capsys.readouterr().err
