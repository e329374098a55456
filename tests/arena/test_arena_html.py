"""A run as an HTML page: everything in it, the same bytes each time, names as text; other reports as pages."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from arena_results import game, summary

from hnefi.tools.arena import command, report_command
from hnefi.tools.arena.html import page
from hnefi.tools.arena.report import Stored
from hnefi.tools.arena.resolve import resolve

NAME = '<b>mine & "x"</b>'


@pytest.fixture(scope="module")
def cup(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a short run in two variants."""
    folder = tmp_path_factory.mktemp("page") / "cup"
    run = {"variants": ["brandubh", "mini-six"], "pairs": 4, "seed": 5, "out": str(folder), "inside": True}
    engines = [{"player": "random-blind", "name": NAME}, {"player": "simple", "name": "other"}]
    config = resolve(
        {
            "run": run,
            "each": {"nodes": 1},
            "openings": {"plies": "2-4"},
            "output": {"quiet": True},
            "engine": engines,
        },
        {},
    )
    assert command.play(config) == 0
    return folder


@pytest.mark.process
def test_a_page_of_a_run(cup: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cup.html"
    made = []
    for _ in range(2):
        assert report_command.main_report([str(cup), "--html", str(file)]) == 0
        assert capsys.readouterr().err == f"{file}\n"
        made.append(file.read_bytes())
        file.write_bytes(b"older")
    assert made[0] == made[1], "the same run gives the same bytes"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cup.html"]
    text = made[0].decode()
    for words in (
        "Standings",
        "Strength",
        "Cross table",
        "Attackers and defenders",
        "How games ended",
        "Pairs",
        "Games",
    ):
        assert f"<h2>{words}</h2>" in text
    assert "<b>" not in text
    assert "&lt;b&gt;mine &amp; &quot;x&quot;&lt;/b&gt;" in text
    (data,) = re.findall(r'<script type="application/json" id="games-data">(.*?)</script>', text)
    found = json.loads(data)
    stored = Stored(cup)
    assert [one["id"] for one in found["games"]] == [result.task.id for result in stored.games()]
    assert found["names"] == [NAME, "other"]
    assert [one["name"] for one in found["boards"]] == ["brandubh", "mini-six"]
    for one, result in zip(found["games"], stored.games(), strict=True):
        moves = [ply.split(",")[0].partition("x")[0] for ply in one["plies"].split()]
        assert moves == [*result.task.opening.moves, *(ply.move for ply in result.plies)]
        assert one["winner"] == result.winner
    line = stored.summary().engine("other")
    assert line.rating is not None
    assert f"{line.rating.value:+.1f} ± {line.rating.error:.1f}" in text


def test_a_run_without_games_has_a_page() -> None:
    text = page(summary([]), (), ()).decode()
    assert "0 of 800 games" in text
    assert "<script" not in text


def test_faults_and_notes_are_told() -> None:
    from hnefi.tools.arena.summary import State
    from hnefi.tools.arena.values import Fault

    results = [game(1, 1, "a", fault=Fault(1, "crash", "exit code 3")), game(1, 2, "d")]
    text = page(summary(results, State("complete", withdrawn=(("simple", "1.1"),))), (), ()).decode()
    assert "<h2>Faults</h2>" in text
    assert "<li>simple was withdrawn after its faults up to game 1.1</li>" in text


@pytest.mark.process
@pytest.mark.parametrize("where", ["folder", "missing/cup.html"])
def test_a_page_that_cannot_be_written(
    where: str, tmp_path: Path, cup: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder").mkdir()
    assert report_command.main_report([str(cup), "--html", str(tmp_path / where)]) in (2, 4)
    said = capsys.readouterr().err
    assert f"hnefi arena report: {tmp_path / where}: " in said
    assert said.endswith(": expected a file that can be written\n")
