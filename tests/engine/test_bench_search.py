"""What the parts of the search save, as the benchmark tells it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from hnefi.engine.games.tafl import variant
from hnefi.engine.search import features
from hnefi.tools.bench import search as bench_search
from hnefi.tools.bench.search import Deepening, Row


def test_growth_is_the_mean_factor_of_a_ply() -> None:
    assert Deepening("a", (10, 30, 90, 270), 1.0, 1.0).growth == pytest.approx(3.0)
    assert math.isnan(Deepening("a", (10,), 1.0, 1.0).growth)


def test_threads_are_compared_at_each_position() -> None:
    one = Row("1", [Deepening("a", (1, 20), 2.0, 2.0), Deepening("b", (1, 30), 6.0, 6.0)])
    two = Row("2", [Deepening("a", (1, 20), 3.0, 1.0), Deepening("b", (1, 60), 6.0, 4.0)])
    assert bench_search.speedup(one, two, 2) == (1.75, 1.5, 1.25)


def test_every_feature_is_left_out_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_search.main(["brandubh", "--depth", "4", "--positions", "2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document["features"]) == [
        "default",
        "none",
        *(
            f"default {'-' if features.read(name) & features.DEFAULT else ''}{name}"
            for name in features.NAMES
        ),
    ]
    nodes = {way: sum(s["nodes"][-1] for s in searches) for way, searches in document["features"].items()}
    assert nodes["none"] > nodes["default"]
    assert all(len(s["nodes"]) == 4 for searches in document["features"].values() for s in searches)


def test_a_search_that_costs_too_much_counts_to_the_depth_before(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["brandubh", "--depth", "9", "--nodes", "3000", "--positions", "1", "--only", "proven"]
    assert bench_search.main(arguments) == 0
    head, whole, *_, without = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["features", "depth", "nodes"]
    assert whole.split()[0] == "default"
    assert 1 < int(whole.split()[1]) < 9
    assert without.startswith("default -proven")


def test_threads_and_stability(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_search.main(["brandubh", "--depth", "5", "--positions", "2", "--threads", "1,2"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["threads", "1", "2"]
    assert bench_search.main(["brandubh", "--stability", "60000", "--positions", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["stability"]
    assert found["nodes"] >= 60_000
    assert [found[word] for word in ("strays", "changed", "wrong keys", "bad lines")] == [0, 0, 0, 0]


def test_torn_tables_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    places = bench_search.positions(variant.find("brandubh"), 1)
    monkeypatch.setattr(bench_search, "_playable", lambda _position, _line: False)
    assert bench_search.stability(places, 2000, 2, lambda _: None)["bad lines"] >= 1


def test_words_that_are_not_understood(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, wanted in (
        (["--threads", "two"], "--threads two: expected numbers"),
        (["--only", "speed"], "--only speed: expected one of mate_in_one"),
    ):
        with pytest.raises(SystemExit) as ended:
            bench_search.main(arguments)
        assert ended.value.code == 2
        assert wanted in capsys.readouterr().err
    assert bench_search.main(["--chart", "nodes.txt"]) == 2
    assert "ends in .svg or .png" in capsys.readouterr().err


def test_a_chart_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    rows = [Row("all", [Deepening("a", (10, 20, 40), 1.0, 1.0)])]
    bench_search.draw(rows, "nodes", tmp_path / "nodes.svg")
    assert (tmp_path / "nodes.svg").read_text().count("<path")
