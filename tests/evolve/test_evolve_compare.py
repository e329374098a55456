"""Curves while a run goes on, and runs of any learner compared."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from hnefi.tools.evolve import command, compare, curves

ES = [
    {
        "games": 40 * at,
        "seconds": 2.0,
        "best": 1.0 + at,
        "median": 0.5 * at,
        "kinds": {"simple": {"matches": [at, 1, 2]}},
    }
    for at in (1, 2, 3)
]
ZERO = [
    {
        "games": 10,
        "seconds": 4.0,
        "loss_value": 1.0 / at,
        "loss_policy": 2.0 / at,
        "accepted": at > 1,
        "name": "x",
    }
    for at in (1, 2)
]


def run(folder: Path, entries: Sequence[Mapping[str, Any]], seed: int = 1) -> Path:
    """A folder with the log of a run, as far as it is looked at."""
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(f"seed = {seed}\n")
    lines = [json.dumps({"generation": at, **entry, "files": {}}) for at, entry in enumerate(entries, 1)]
    (folder / "log.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return folder


def words(picture: Path) -> set[str]:
    return {
        "".join(one.itertext())
        for one in ET.fromstring(picture.read_text()).iter()
        if one.tag.endswith("text")
    }


def table(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_every_number_of_a_log_is_a_column() -> None:
    found = compare.columns(ES)
    assert found["best"] == [2, 3, 4]
    assert found["kinds.simple.matches.0"] == [1, 2, 3]
    assert found[compare.SPEED] == [20, 40, 60]
    assert compare.columns(ZERO)["accepted"] == [0, 1]
    assert "name" not in compare.columns(ZERO)
    assert compare.columns([{"games": 3, "seconds": 0.0}]) == {"games": [3], "seconds": [0]}
    assert compare.columns([{"a": 1, "b": float("nan")}, {"a": 2, "b": 1}]) == {"a": [1, 2]}


def test_runs_of_different_learners_are_compared_by_what_they_share(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = run(tmp_path / "es", ES)
    for seed in (1, 2):
        run(tmp_path / "zero" / f"seed-{seed}", ZERO, seed)
    out = tmp_path / "versus.svg"
    assert (
        command.main(["compare", str(one), str(tmp_path / "zero"), "--by", "games", "--out", str(out)]) == 0
    )
    assert capsys.readouterr().out == f"{out}\n{out.with_suffix('.csv')}\n"
    assert {str(one), str(tmp_path / "zero"), "games a second", "games so far"} <= words(out)
    assert not {"best", "loss of the value", compare.SPEED} & words(out)
    rows = table(out.with_suffix(".csv"))
    assert [(row["folder"], row["run"], row["generation"]) for row in rows] == [
        *((str(one), "es", str(at)) for at in (1, 2, 3)),
        *((str(tmp_path / "zero"), f"seed-{seed}", str(at)) for seed in (1, 2) for at in (1, 2)),
    ]
    assert [row["best"] for row in rows] == ["2", "3", "4", "", "", "", ""]
    assert rows[-1]["loss_policy"] == "1"
    assert rows[0][compare.SPEED] == "20"


def test_curves_over_cpu_seconds(tmp_path: Path) -> None:
    one = run(tmp_path / "es", [{**entry, "cpu_seconds": 3.0} for entry in ES])
    out = tmp_path / "versus.svg"
    assert command.main(["compare", str(one), "--by", "cpu_seconds", "--out", str(out)]) == 0
    assert "CPU seconds so far" in words(out)
    assert table(out.with_suffix(".csv"))[0]["cpu_seconds"] == "3"


def test_the_axis_below_counts_what_was_spent() -> None:
    assert compare._places(compare.columns(ES), "games") == [40, 120, 240]
    assert compare._places(compare.columns(ES), "seconds") == [2, 4, 6]
    assert compare._places(compare.columns(ES), "generation") == [1, 2, 3]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--column", "besst"], "did you mean best?"),
        (["--column", "loss_value"], "not a column that all of these runs have"),
        (["--out", "x.png"], "expected a name that ends in .svg"),
        (["--by", "moves"], "invalid choice"),
        (["nowhere"], "expected the log of a run"),
    ],
)
def test_what_cannot_be_compared(
    more: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    run(tmp_path / "es", ES)
    try:
        status: object = command.main(["compare", "es", *more])
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.glob("*.svg"))


def test_an_empty_log_has_no_curve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["compare", str(run(tmp_path / "new", [])), "--out", str(tmp_path / "x.svg")]) == 2
    assert "no generation is finished" in capsys.readouterr().err


def test_curves_are_drawn_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    written: list[Path] = []
    monkeypatch.setattr(curves, "write", lambda out, _: written.append(out))
    redrawn = curves.Redrawn(tmp_path, [tmp_path], lambda: now[0])
    for at in (0.0, curves.REDRAWN - 1, curves.REDRAWN, curves.REDRAWN + 1, 2 * curves.REDRAWN):
        now[0] = at
        redrawn.tick()
    assert len(written) == 2


def test_what_cannot_be_drawn_now_ends_no_run(tmp_path: Path) -> None:
    now = [0.0]
    redrawn = curves.Redrawn(tmp_path, [tmp_path / "nowhere"], lambda: now[0])
    now[0] = 2 * curves.REDRAWN
    redrawn.tick()
