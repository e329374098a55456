"""Learning by gradients as runs: what a generation is, that runs come out the same, and what may be asked of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hnefi.engine import games
from hnefi.engine.evaluators import files
from hnefi.tools.evolve import command, curves
from hnefi.tools.evolve.folder import Folder, config_of, read_log
from hnefi.tools.evolve.options import OptionError
from hnefi.tools.evolve.run import Plan, begin, plan, steps

VARIANT = games.find("mini-four")
SMALL = {"network": "mlp:3", "generations": 3, "generation_games": 6, "ply_limit": 20}
RUNS: list[tuple[str, dict[str, Any]]] = [
    ("td", {**SMALL, "opponent": "random-coded", "side": "defenders"}),
    ("td", {**SMALL, "opponent": "mix", "lambda": 0.7, "optimizer": "adam", "chain": "plies"}),
    ("tdleaf", {**SMALL, "network": "linear"}),
    ("treestrap", {**SMALL, "network": "linear-threats", "opponent": "simple", "side": "attackers"}),
]


def planned(algorithm: str, said: dict[str, Any], name: str = "mini-four", seed: int = 7) -> Plan:
    return plan(algorithm, games.find(name), seed, said)


def nobody(*_: object) -> Any:
    raise AssertionError("games are played in the kernel")


@pytest.mark.parametrize(("algorithm", "said"), RUNS)
def test_a_run_goes_on_bit_for_bit(algorithm: str, said: dict[str, Any], tmp_path: Path) -> None:
    run = planned(algorithm, said)
    config = config_of(run, VARIANT.name)
    whole = list(steps(run, begin(run), nobody))
    assert [step.checkpoint.generation for step in whole] == [1, 2, 3]
    with Folder(tmp_path / "run", run, config) as folder:
        folder.commit(whole[0])
    with Folder(tmp_path / "run", run, config) as folder:
        for step in steps(run, folder.checkpoint, nobody):
            folder.commit(step)
    with Folder(tmp_path / "run", run, config) as folder:
        for name, array in whole[-1].checkpoint.state.items():
            np.testing.assert_array_equal(folder.checkpoint.state[name], array)
    weights = [step.checkpoint.state["weights"][0] for step in whole]
    assert not np.array_equal(weights[0], weights[1])
    champion = files.load(tmp_path / "run" / "champion.safetensors", VARIANT)
    np.testing.assert_array_equal(files.genome(champion), weights[-1])
    drawn, _ = curves.write(tmp_path / "run", [tmp_path / "run"])
    assert "mean squared error" in drawn.read_text()


def test_a_report_counts_every_game() -> None:
    for algorithm, said in RUNS:
        run = planned(algorithm, said)
        step = next(steps(run, begin(run), nobody))
        report = step.report
        assert report["games"] == sum(report["winners"]) == sum(report["reasons"].values()) == 6
        # In a mix one of five opponents is the learner itself, and nobody wins against himself.
        assert sum(report["results"]) == {"mix": 6, "self": 0}.get(said.get("opponent", "self"), 6)
        assert [champion.generation for champion in step.champions] == [0, 1]
        assert run.build().describe(report)


def test_sides_and_opponents_take_turns() -> None:
    run = planned("td", {**SMALL, "opponent": "mix", "generation_games": 20})
    played, sides = run.build()._games(1, ("random", "simple", "self"))  # type: ignore[attr-defined]
    assert sides.tolist() == [0, 1] * 10
    pairs = list(zip(played["attackers"].tolist(), played["defenders"].tolist(), strict=True))
    assert pairs[:8] == [(0, 1), (1, 0), (0, 2), (2, 0), (0, 0), (0, 0), (0, 1), (1, 0)]


@pytest.mark.parametrize(
    ("algorithm", "said", "words"),
    [
        ("td", {"opponent": "simple"}, "opponent: 'simple' with hex:4: expected 'random' or 'self'"),
        ("td", {"network": "linear"}, "network: 'linear' with hex:4: expected a network for hex: mlp$"),
    ],
)
def test_what_a_game_does_not_know_is_refused(algorithm: str, said: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        planned(algorithm, said, "hex:4")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hex:3", "hexapawn:3x3"])
def test_other_games_are_learnt_too(name: str) -> None:
    run = planned(
        "td", {"network": "mlp:4", "opponent": "self", "generations": 1, "generation_games": 4}, name
    )
    (step,) = steps(run, begin(run), nobody)
    assert step.report["games"] == 4
    assert step.report["error"] > 0


@pytest.mark.slow
def test_lessons_teach() -> None:
    """White against Random wins more often than with the weights that it began with."""
    won = []
    for alpha in (1e-9, 0.1):
        said = {"side": "defenders", "generations": 2, "alpha": alpha, "alpha_end": alpha, "epsilon": 0.0}
        run = planned("td", said, "tablut-herr-7", seed=4)
        won.append([step.report["results"][0] for step in steps(run, begin(run), nobody)][-1])
    assert won[1] > won[0] + 15


def test_rank_is_for_evolutions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = planned("td", SMALL)
    with Folder(tmp_path / "run", run, config_of(run, VARIANT.name)) as folder:
        for step in steps(run, folder.checkpoint, nobody):
            folder.commit(step)
    assert len(read_log(tmp_path / "run")) == 3
    assert command.main(["rank", str(tmp_path / "run")]) == 2
    assert "a run of td: expected one of es or cma" in capsys.readouterr().err
