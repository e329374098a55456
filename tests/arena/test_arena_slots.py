"""Many games: pairs stay in their slot, processes stay until they are spent, and everything can be ended at once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from arena_parts import VARIANT, by_heart, collect, leftovers, pair, spec
from patience import PROMPTLY

from hnefi.tools.arena.engine_slot import EngineSlots
from hnefi.tools.arena.slots import in_pairs, places, play, slots_for, threads_of
from hnefi.tools.arena.values import EngineSpec, GameResult, GameTask
from hnefi.tools.common.workers import usable_cores


def slow(name: str, **fields: Any) -> EngineSpec:
    """An engine that needs some time for its moves."""
    return spec(name, "delay=0.02", **fields)


@pytest.mark.process
def test_both_games_of_a_pair_stay_in_one_slot_in_order() -> None:
    begun: list[tuple[int, str]] = []

    def watch(event: str, facts: dict[str, Any]) -> None:
        if event == "start":
            begun.append((facts["slot"], facts["task"].id))

    tasks = [task for number in range(1, 6) for task in pair(number)]
    results = collect(tasks, [slow("a"), slow("b")], concurrency=2, on_event=watch)
    assert sorted(result.task.id for result in results) == sorted(task.id for task in tasks)
    assert {slot for slot, _ in begun} == {0, 1}
    for slot in (0, 1):
        ids = [name for where, name in begun if where == slot]
        assert ids == [f"{name.split('.')[0]}.{game}" for name in ids[::2] for game in (1, 2)]
    assert {result.winner for result in results} == {results[0].winner}


def test_a_whole_pair_is_taken_without_a_look_at_the_next() -> None:
    taken = []

    def tasks() -> Iterator[GameTask]:
        for number in (1, 2):
            for task in pair(number):
                taken.append(task.id)
                yield task

    source = in_pairs(tasks())
    assert [task.id for task in next(source)] == ["1.1", "1.2"]
    assert taken == ["1.1", "1.2"]
    assert [[task.id for task in group] for group in source] == [["2.1", "2.2"]]
    alone = [pair(1)[0], pair(2)[1], pair(3)[0]]
    assert [[task.id for task in group] for group in in_pairs(alone)] == [["1.1"], ["2.2"], ["3.1"]]


@pytest.mark.process
def test_tasks_are_read_when_a_slot_is_free() -> None:
    taken: list[int] = []
    ended: list[str] = []

    def tasks() -> Iterator[GameTask]:
        for number in range(1, 100):
            taken.append(number)
            assert number <= 2 + len(ended) // 2
            yield from pair(number)

    def watch(event: str, facts: dict[str, Any]) -> None:
        if event == "end":
            ended.append(facts["result"].task.id)

    async def run() -> None:
        games = play(tasks(), [spec(), spec()], concurrency=2, on_event=watch)
        async for _ in games:
            if taken[-1] >= 5:
                break
        await games.aclose()  # type: ignore[attr-defined]

    asyncio.run(run())
    assert taken == list(range(1, taken[-1] + 1))


@pytest.mark.process
@pytest.mark.parametrize(("restart", "processes"), [("auto", 1), ("off", 1), ("on", 4)])
def test_processes_stay_unless_they_shall_not(restart: Any, processes: int) -> None:
    log: list[int] = []

    async def run() -> None:
        slots = EngineSlots([spec(restart=restart), spec(restart=restart)])
        for engines in ((0, 1), (1, 0)) * 2:
            taken = slots.take(engines)
            for side, slot in enumerate(taken):
                await slot.prepare(VARIANT, side, 1)
            log.append(taken[engines.index(0)].process.pid)
        await slots.close()

    asyncio.run(run())
    assert len(set(log)) == processes


@pytest.mark.process
def test_only_engines_of_the_game_at_hand_hold_a_process() -> None:
    specs = [spec("one"), spec("two"), spec("three")]

    async def run() -> None:
        slots = EngineSlots(specs)
        for slot in slots.take((0, 1)):
            await slot.prepare(VARIANT, 0, 1)
        assert len(leftovers(specs[:2])) == 2
        for slot in slots.take((2, 1)):
            await slot.prepare(VARIANT, 0, 1)
        until = time.monotonic() + PROMPTLY
        while leftovers(specs[:1]) and time.monotonic() < until:
            await asyncio.sleep(0.01)
        assert (leftovers(specs[:1]), len(leftovers(specs[1:]))) == ([], 2)
        await slots.close()
        assert leftovers(specs) == []

    asyncio.run(run())


@pytest.mark.process
def test_an_engine_may_play_itself() -> None:
    results = collect(pair(engines=(0, 0)), [spec()])
    assert [result.fault for result in results] == [None, None]


@pytest.mark.process
def test_an_engine_that_is_not_to_be_restarted_is_out_after_a_fault() -> None:
    results = collect(pair(), [spec("bad", "exit", restart="off"), spec()])
    assert [result.reason for result in results] == ["crash", "start_failure"]
    assert results[1].fault is not None
    assert results[1].fault.text == "bad is not started again after a fault (restart off)"


@pytest.mark.process
def test_a_process_that_died_between_games_is_replaced() -> None:
    specs = [spec("a"), spec("b", restart="off")]

    async def run() -> None:
        slots = EngineSlots(specs)
        pids = []
        for _ in range(2):
            taken = slots.take((0, 1))
            for side, slot in enumerate(taken):
                await slot.prepare(VARIANT, side, 1)
                pids.append(slot.process.pid)
                os.kill(slot.process.pid, signal.SIGKILL)
            # Not the process's end counts but that the slot has learnt of it.
            until = time.monotonic() + PROMPTLY
            while not all(slot.spent for slot in taken) and time.monotonic() < until:
                await asyncio.sleep(0.01)
        await slots.close()
        assert len(set(pids)) == 4

    asyncio.run(run())
    assert leftovers(specs) == []


@pytest.mark.process
def test_abort_hands_out_what_there_is_and_leaves_nothing() -> None:
    specs = [slow("a"), spec("b", "hang", "at=3", move_timeout=600.0)]

    async def run() -> tuple[list[GameResult], float]:
        abort = asyncio.Event()
        began = 0.0

        def watch(event: str, facts: dict[str, Any]) -> None:
            nonlocal began
            if event == "ply" and facts["number"] == 5:
                thinking.add(facts["slot"])
            if len(thinking) == 2 and not abort.is_set():
                began = time.monotonic()
                abort.set()

        thinking: set[int] = set()
        tasks = (task for number in range(1, 100) for task in pair(number))
        results = [result async for result in play(tasks, specs, concurrency=2, abort=abort, on_event=watch)]
        return results, time.monotonic() - began

    results, seconds = asyncio.run(run())
    assert [(result.reason, result.winner, result.fault) for result in results] == [
        ("interrupted", None, None)
    ] * 2
    assert all(result.plies for result in results)
    assert seconds < PROMPTLY
    assert leftovers(specs) == []


@pytest.mark.process
def test_leaving_early_leaves_nothing() -> None:
    specs = [spec("a"), spec("b", "delay=0.05")]

    async def run() -> None:
        games = play((task for number in range(1, 9) for task in pair(number)), specs, concurrency=2)
        async for _ in games:
            break
        await games.aclose()  # type: ignore[attr-defined]

    asyncio.run(run())
    assert leftovers(specs) == []


@pytest.mark.process
def test_a_mistake_of_the_caller_leaves_nothing() -> None:
    specs = [slow("a"), slow("b")]
    wrong = GameTask(9, 1, "chess", pair()[0].opening, (0, 1), (1, 2))
    with pytest.raises(ValueError, match="chess"):
        collect([*pair(), *pair(2), wrong], specs, concurrency=2)
    assert leftovers(specs) == []
    with pytest.raises(ValueError, match="17 slots: expected 1 to 16"):
        collect([], specs, concurrency=17)


@pytest.mark.process
def test_a_mistake_of_the_watcher_leaves_nothing() -> None:
    specs = [spec("a"), spec("b")]

    def watch(event: str, facts: dict[str, Any]) -> None:
        if event == "ply" and facts["number"] == 3:
            raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        collect(pair(), specs, on_event=watch)
    assert leftovers(specs) == []


@pytest.mark.process
def test_pauses_between_games() -> None:
    began = time.monotonic()
    moments = []
    collect(
        pair(),
        [spec(), spec()],
        wait=400,
        on_event=lambda kind, _: moments.append((kind, time.monotonic() - began)),
    )
    ends = [moment for kind, moment in moments if kind == "end"]
    begins = [moment for kind, moment in moments if kind == "start"]
    assert begins[1] - ends[0] >= 0.39


@pytest.mark.process
def test_what_a_watcher_is_told() -> None:
    told: list[tuple[str, dict[str, Any]]] = []
    (result,) = collect(pair()[:1], [spec(), spec()], on_event=lambda kind, facts: told.append((kind, facts)))
    assert [kind for kind, _ in told] == ["start", *["ply"] * len(by_heart()), "end"]
    assert told[0][1]["fen"] == "3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3 a 0 1"
    assert [facts["ply"] for _, facts in told[1:-1]] == list(result.plies)
    assert [facts["number"] for _, facts in told[1:-1]] == list(range(1, len(by_heart()) + 1))
    assert told[-1][1] == {"slot": 0, "result": result}


@pytest.mark.process
def test_the_same_games_in_one_slot_and_in_three() -> None:
    tasks = [task for number in range(1, 7) for task in pair(number)]
    specs = [spec("good"), spec("bad", "illegal=a1a2", "at=5")]

    def digest(results: list[GameResult]) -> list[tuple[object, ...]]:
        return sorted((r.task.id, r.winner, r.reason, tuple(p.move for p in r.plies)) for r in results)

    assert digest(collect(tasks, specs)) == digest(collect(tasks, specs, concurrency=3))


# Cores


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="processes are pinned on Linux only")
def test_engines_run_on_the_cores_of_their_slot() -> None:
    core = max(os.sched_getaffinity(0))
    seen = []
    specs = [spec("a"), spec("b")]

    def watch(kind: str, _: object) -> None:
        if kind == "ply":
            seen.extend(os.sched_getaffinity(int(entry.split()[0])) for entry in leftovers(specs))

    collect(pair()[:1], specs, cores=[(core,)], on_event=watch)
    assert len(seen) >= 2 * len(by_heart())
    assert all(cores == {core} for cores in seen)


def system(folder: Path, siblings: dict[int, str], **files: str) -> Path:
    """A file system with these hyperthreads, and files by their names with blanks for slashes."""
    for core, text in siblings.items():
        file = folder / f"sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list"
        file.parent.mkdir(parents=True)
        file.write_text(text + "\n")
    for name, text in files.items():
        file = folder / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    return folder


def test_one_processor_of_each_core_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3, 5, 6}, raising=False)
    found = usable_cores(system(tmp_path, {0: "0,4", 1: "1,5", 2: "2-3", 3: "2-3", 5: "1,5"}))
    assert found == (0, 1, 2, 6, 3, 5)


@pytest.mark.parametrize(
    ("files", "count"),
    [
        ({"sys__fs__cgroup__cpu.max": "max 100000"}, 4),
        ({"sys__fs__cgroup__cpu.max": "250000 100000"}, 2),
        ({"sys__fs__cgroup__cpu.max": "50000 100000"}, 1),
        ({"proc__self__cgroup": "0::/user/job", "sys__fs__cgroup__user__cpu.max": "300000 100000"}, 3),
        (
            {
                "sys__fs__cgroup__cpu__cpu.cfs_quota_us": "200000",
                "sys__fs__cgroup__cpu__cpu.cfs_period_us": "100000",
            },
            2,
        ),
        (
            {
                "sys__fs__cgroup__cpu__cpu.cfs_quota_us": "-1",
                "sys__fs__cgroup__cpu__cpu.cfs_period_us": "100000",
            },
            4,
        ),
        ({"sys__fs__cgroup__cpu.max": "nonsense 0"}, 4),
        ({}, 4),
    ],
)
def test_a_containers_quota_limits_the_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], count: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    assert usable_cores(system(tmp_path, {}, **files)) == (0, 1, 2, 3)[:count]


def test_places_and_numbers_of_slots() -> None:
    assert places((0, 2, 1, 3), 2) == [(0,), (2,)]
    assert places((0, 2, 1, 3), 2, threads=2) == [(0, 2), (1, 3)]
    with pytest.raises(ValueError, match="3 slots of 2 threads: expected at most 4 threads"):
        places((0, 1, 2, 3), 3, threads=2)
    assert [slots_for(*asked) for asked in ((0, 8), (-1, 8), (-9, 8), (3, 8), (0, 8, 3), (0, 64))] == [
        8,
        7,
        1,
        3,
        2,
        16,
    ]
    threaded = spec(options=(("threads", "4"),))
    assert (threads_of([spec(), threaded]), threads_of([spec()])) == (4, 1)
