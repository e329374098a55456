"""`hnefi evaluator loss`: evaluators asked about recorded games."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hnefi.engine import evaluators, games
from hnefi.engine.squares import move_name
from hnefi.tools.common.calibration import expected
from hnefi.tools.common.calibration import loss as logistic
from hnefi.tools.evaluator import loss


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
    head, _, *lines = capsys.readouterr().out.splitlines()
    assert head.startswith(f"{path}: 40 finished games of brandubh, ")
    found = {line.split()[0]: line.split() for line in lines}
    nothing, zero, default = (float(found[name][-7]) for name in ("(nothing", "zero", "default"))
    assert default < nothing - 0.05
    # The share of one half is not that of all.
    assert nothing <= zero < nothing + 0.05
    whole = loss.positions(str(path), games.find("brandubh"))  # type: ignore[arg-type]
    assert len(whole) == 40
    assert all(walked[0].ply == loss.SKIPPED for _, _, walked in whole)


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
