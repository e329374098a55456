"""`hnefi evaluator show`, `verify` and `diff`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from hnefi.engine import evaluators, games
from hnefi.engine.evaluators import files, network
from hnefi.engine.evaluators.files import Evaluator
from hnefi.engine.games import interface as verbs
from hnefi.tools import cli

DOCUMENT = {"trainer": {"name": "none", "sigma": 0.25}, "seed": 7, "generation": 12}


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """A network for brandubh."""
    net, variant = network.parse("hingston2007"), games.find("brandubh")
    genome = np.random.default_rng(5).normal(0, 0.3, net.count(variant))
    file = tmp_path / "good.safetensors"
    files.save(file, files.make(net, variant, genome, DOCUMENT))
    return file


@pytest.mark.parametrize("name", [*evaluators.NETWORKS, "evolved-brandubh"])
def test_show_names_the_players_of_a_file(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Also those of a network that ships with the engine, which needs no path."""
    shipped = Path(__file__).parents[2] / "players" / f"{name}.safetensors"
    for file in {name, evaluators.NETWORKS[name]} if name in evaluators.NETWORKS else {str(shipped)}:
        assert cli.main(["evaluator", "show", file]) == 0
        assert re.search(f"^  players  +{name}$", capsys.readouterr().out, re.MULTILINE)


def test_show(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["evaluator", "show", str(good), "--picture"]) == 0
    out = capsys.readouterr().out
    for expected in (
        "hingston2007",
        "brandubh (tafl), as they are here",
        '"sigma": 0.25',
        "5 x 7 x 3",
        "patch: ",
    ):
        assert expected in out
    assert cli.main(["evaluator", "show", str(good), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["generation"] == 12
    assert shown["arrays"]["hidden"] == {"dtype": "float64", "shape": [10, 38]}


def test_verify(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = good.with_name("bad.safetensors")
    bad.write_bytes(good.read_bytes()[:-8])
    assert cli.main(["evaluator", "verify", str(bad), str(good), "--positions", "50"]) == 1
    said = capsys.readouterr()
    assert "good.safetensors: all right: hingston2007 for brandubh" in said.out
    assert "in 50 positions" in said.out
    assert "bad.safetensors: " in said.err
    assert cli.main(["evaluator", "verify", str(good), "--variant", "copenhagen"]) == 1
    with pytest.raises(SystemExit):
        cli.main(["evaluator", "verify", str(good), "--positions", "0"])
    assert "--positions: '0': expected a whole number from 1 on" in capsys.readouterr().err


def test_networks_that_ship_are_taken_by_their_names(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "net-brandubh-2"
    copy = good.with_name("copy.safetensors")
    copy.write_bytes(Path(evaluators.NETWORKS[name]).read_bytes())
    assert cli.main(["evaluator", "verify", name, "--positions", "2"]) == 0
    assert cli.main(["evaluator", "diff", name, str(copy)]) == 0
    assert capsys.readouterr().out.endswith("no difference\n")
    with pytest.raises(SystemExit):
        cli.main(["evaluator", "match", name, "simple"])
    assert "expected a network that is no nnue and has no policy; this one meets" in capsys.readouterr().err
    for words in (["show", "default"], ["diff", "default", str(copy)], ["verify", "default"]):
        assert cli.main(["evaluator", *words]) > 0
        assert "'default': expected a .safetensors file, or a network that ships" in capsys.readouterr().err


def test_verify_sees_a_kernel_that_is_wrong(
    good: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verbs, "value", lambda *_: 0.125)
    assert cli.main(["evaluator", "verify", str(good), "--positions", "3"]) == 1
    assert "the kernel says 0.125: expected " in capsys.readouterr().err


def test_diff(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["evaluator", "diff", str(good), str(good)]) == 0
    assert "no difference" in capsys.readouterr().out
    other, evaluator = good.with_name("other.safetensors"), files.load(good)
    arrays = {name: array + (0.5 if name == "output" else 0) for name, array in evaluator.arrays.items()}
    changed = Evaluator(
        evaluator.network, evaluator.variant, evaluator.rules_hash, evaluator.game, arrays, {"seed": 8}
    )
    files.save(other, changed)
    assert cli.main(["evaluator", "diff", str(good), str(other), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["document"]["seed"] == [7, 8]
    assert found["arrays"]["output"]["largest"] == pytest.approx(0.5)
    assert found["arrays"]["output"]["distance"] == pytest.approx(0.5 * 10**0.5)
    assert found["arrays"]["hidden"] == {
        "largest": 0.0,
        "mean": 0.0,
        "distance": 0.0,
        "cosine": pytest.approx(1.0),
    }
    assert cli.main(["evaluator", "diff", str(good), "nowhere"]) == 2
    assert cli.main(["evaluator", "show", "nowhere", str(good)]) == 2
