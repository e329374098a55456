"""`hnefi evaluator adopt`: an evaluator for other rules on the same board."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hnefi.engine import games
from hnefi.engine.evaluators import NETWORKS, files
from hnefi.tools.evaluator import command


def test_a_copy_is_for_the_other_rules_and_values_as_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = str(tmp_path / "copy.safetensors")
    assert command.main(["adopt", "net-copenhagen-2", "--variant", "fetlar", "--out", copy]) == 0
    assert capsys.readouterr().out == (
        f"{copy}: the weights of net-copenhagen-2, made for copenhagen, as an evaluator for fetlar\n"
    )
    made = files.load(copy, games.find("fetlar"))
    (parent,) = made.document["parents"]
    assert parent["variant"] == "copenhagen"
    assert parent["sha256"] == made.sha256
    assert "results" not in made.document, "they were of the other rules"
    own = files.load(NETWORKS["net-copenhagen-2"], games.find("copenhagen"))
    assert made.output == own.output != own.network.output, "what a unit is worth comes along"
    with pytest.raises(files.EvaluatorError, match="made for fetlar"):
        files.load(copy, games.find("copenhagen"))


def test_a_file_is_replaced_only_by_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "own.safetensors"
    shutil.copy(NETWORKS["net-copenhagen-2"], own)
    words = ["adopt", str(own), "--variant", "fetlar", "--out", str(own)]
    with pytest.raises(SystemExit) as end:
        command.main(words)
    assert end.value.code == 2
    assert "already exists: expected --force to replace it" in capsys.readouterr().err
    assert own.read_bytes() == Path(NETWORKS["net-copenhagen-2"]).read_bytes()
    assert command.main([*words, "--force"]) == 0
    assert files.load(own, games.find("fetlar")).variant == "fetlar"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (
            "net-copenhagen-2 --variant brandubh --out {folder}/x.safetensors",
            "made for copenhagen, on 11 x 11 squares: expected one for 7 x 7 squares, as brandubh has",
        ),
        ("nobody --variant fetlar --out {folder}/x.safetensors", "nobody"),
        (
            "default --variant fetlar --out {folder}/x.safetensors",
            "'default': expected a .safetensors file, or a net",
        ),
        (
            "net-copenhagen-2 --variant fetlar --out {folder}/x.txt",
            "x.txt': expected a file whose name ends in .safe",
        ),
        (
            "net-copenhagen-2 --variant fetlar --out -",
            "--out '-': expected a file whose name ends in .safetensors",
        ),
        ("{folder}/nothing.safetensors --variant fetlar --out {folder}/x.safetensors", "No such file"),
        ("net-copenhagen-2 --variant fetlar --out {folder}/no/x.safetensors", "No such file"),
        ("net-copenhagen-2 --variant nosuch --out {folder}/x.safetensors", "nosuch"),
    ],
)
def test_what_cannot_be_adopted_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, complaint: str
) -> None:
    with pytest.raises(SystemExit) as end:
        raise SystemExit(command.main(["adopt", *line.format(folder=tmp_path).split()]))
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert "Traceback" not in said
    assert not list(tmp_path.rglob("*"))
