"""The arena's own cost: what is measured and said, not how much it is."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from hnefi.tools.arena import store
from hnefi.tools.bench import arena as bench_arena
from hnefi.tools.bench import command as bench

RUN = bench_arena.Run(2, 8, 0.001, 0.002, 0.0)


@pytest.fixture(autouse=True)
def uninterrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_arena, "let_interrupt_end_us", lambda: None)


@pytest.mark.process
def test_every_run_plays_the_same_games(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "arena",
        "--games",
        "3",
        "--runs",
        "2",
        "--variant",
        "hexapawn:4x4",
        "--concurrency",
        "2",
        "--json",
    ]
    assert bench.main(words) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["variant"], document["slots"], len(document["runs"])) == ("hexapawn:4x4", 2, 2)
    one, two = document["runs"]
    assert (one["games"], one["plies"]) == (two["games"], two["plies"])
    assert one["plies"] >= 3 * 4
    costs = [run["cpu"] * 1000 / run["plies"] for run in document["runs"]]
    assert document["ms_per_ply"] == pytest.approx(
        {"min": min(costs), "median": sum(costs) / 2, "max": max(costs)}
    )
    assert all(0 < run["cpu"] < run["wall"] and run["lateness"] >= 0 for run in document["runs"])


@pytest.mark.process
def test_storing_is_measured_with_and_without_syncing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, results = asyncio.run(bench_arena.measure("hexapawn:4x4", 2, 1))
    synced: list[int] = []
    known = os.fsync
    monkeypatch.setattr(store.os, "fsync", lambda file: (synced.append(file), known(file)))
    before = []
    for how in (False, True):
        bench_arena.store(results, tmp_path, synced=how)
        before.append(len(synced))
        synced.clear()
    assert before[1] - before[0] == 2 * len(results), "the game and its line in the log"
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(bench_arena, "measure", lambda *_: asyncio.sleep(0, (RUN, results)))
    assert bench_arena.main(["--runs", "2", "--folder", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "storing a game, synced: own CPU min " in said
    assert "storing a game, not synced: own CPU min " in said


def test_a_folder_that_cannot_be_written_into_is_said_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_arena.main(["--folder", "/no/such/folder"]) == 4
    assert "/no/such/folder" in capsys.readouterr().err


def test_the_sides_are_swapped_and_no_two_games_are_alike() -> None:
    tasks = list(bench_arena._tasks("brandubh", 5))
    assert [task.id for task in tasks] == ["1.1", "1.2", "2.1", "2.2", "3.1"]
    assert [task.engines for task in tasks] == [(0, 1), (1, 0), (0, 1), (1, 0), (0, 1)]
    assert len({seed for task in tasks for seed in task.seeds}) == 10


@pytest.mark.process
def test_engines_that_go_wrong_are_no_measurement(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = bench_arena._engines()[0]
    gone = type(good)("gone", ("/no/such/engine",), limits=good.limits)
    monkeypatch.setattr(bench_arena, "_engines", lambda: [gone, gone])
    with pytest.raises(bench_arena.BenchError, match=r"game 1\.1: start_failure: .*No such file"):
        asyncio.run(bench_arena.measure("brandubh", 1, 1))
    assert bench_arena.main(["--games", "1"]) == 1
    assert "cannot start /no/such/engine" in capsys.readouterr().err


def test_too_many_slots(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench_arena.main(["--concurrency", "17"])
    assert "17 slots: expected at most 16" in capsys.readouterr().err
