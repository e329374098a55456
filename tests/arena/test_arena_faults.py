"""Every way in which an engine can go wrong, with a clock and at fixed nodes: the game is lost for a stated reason,
in time, and nothing is left of the culprit."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from arena_parts import CLOCK, MARK, NODES, VARIANT, by_heart, collect, leftovers, pair, spec
from client_parts import PATIENT, Clock
from leftover_processes import wait_until
from patience import PROMPTLY

from hnefi.protocol.client import Engine, EngineTimeout, Limits
from hnefi.tools.arena import engine_slot
from hnefi.tools.arena.engine_slot import StartFailure, preflight
from hnefi.tools.arena.values import EngineSpec, GameResult, SideLimits

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc"),
]

LIMIT = 1.0
"""Seconds that the clock, a move without a clock and a readyok may take."""


@dataclass(frozen=True)
class Row:
    """One fault: its words, the reason with a clock and at fixed nodes ("" if the game goes on), a pattern of the
    fact in both, and whether only a deadline finds it out."""

    words: str
    clock: str
    nodes: str
    text: str = ""
    waits: bool = False


LATE = r"over by \d+ ms: no answer within \d+ ms|no answer within 1 s"
ROWS = {
    "exit": Row("exit", "crash", "crash", "exit status 3"),
    "signal": Row("segv", "crash", "crash", "killed by SIGSEGV"),
    "hang": Row("hang", "time", "stall", LATE, waits=True),
    "illegal move": Row(
        "illegal=a1a2", "illegal_move", "illegal_move", "'a1a2' at ply .*nothing stands on a1; FEN .*/"
    ),
    "garbage": Row("illegal=@#!", "illegal_move", "illegal_move", "'@#!' at ply .*not a move"),
    "no move": Row(
        "illegal=(none)", "illegal_move", "illegal_move", r"'\(none\)' at ply .*the game is not over"
    ),
    "empty move": Row("illegal=", "illegal_move", "illegal_move", "'' at ply .*not a move"),
    "late": Row("late=20", "time", "stall", LATE, waits=True),
    "closed output": Row("close-stdout", "disconnect", "disconnect", "closed its standard output"),
    "no readyok": Row("no-ready", "stall", "stall", "expected readyok within 1 s", waits=True),
    "no search": Row("no-search", "crash", "crash", "cannot search: OSError no memory"),
    "not ready": Row("unready", "crash", "crash", "cannot work: EOFError no input"),
    "reports": Row("info-flood", "", ""),
    "deaf": Row("deaf", "time", "stall", LATE, waits=True),
    "errors": Row("stderr-flood", "", ""),
    "long line": Row("long-line", "", ""),
    "endless line": Row("endless", "time", "stall", LATE, waits=True),
    "odd bytes": Row("bytes", "", ""),
    "two answers": Row("twice", "", ""),
    "early answer": Row("early", "", ""),
    "grandchild": Row("grandchild", "crash", "crash", "exit status 4"),
    "stopped process": Row("sigstop", "time", "stall", LATE, waits=True),
    "exit between games": Row("idle-exit", "crash", "crash", "exit status 0"),
    "stubborn": Row("stubborn", "", ""),
}
STRAYS = {"two answers": [2, 0], "early answer": [1, 1]}


def play_table(limits: SideLimits) -> dict[str, list[GameResult]]:
    """All rows, each engine in a pair against a good one, in four slots."""
    patient = replace(limits, time=limits.time and 30_000)
    specs = [spec(limits=(patient, patient))]
    for name, row in ROWS.items():
        if row.waits:
            # Whoever is late for its move may take its time before, on a busy machine.
            names = ("ready", "new_game") if name == "no readyok" else ("move_timeout",)
            short = dict.fromkeys(names, LIMIT)
            specs.append(spec(name, row.words, limits=(limits, limits), **short))
        else:
            specs.append(spec(name, row.words, limits=(patient, patient)))
    tasks = [task for number in range(1, len(specs)) for task in pair(number, (number, 0))]
    results = collect(tasks, specs, concurrency=4)
    found: dict[str, list[GameResult]] = {name: [] for name in ROWS}
    for result in sorted(results, key=lambda result: result.task.id):
        found[specs[result.task.pair].name].append(result)
    return found


@pytest.fixture(scope="module")
def timed() -> dict[str, list[GameResult]]:
    return play_table(CLOCK)


@pytest.fixture(scope="module")
def fixed() -> dict[str, list[GameResult]]:
    return play_table(NODES)


@pytest.mark.parametrize("name", ROWS)
def test_with_a_clock(timed: dict[str, list[GameResult]], name: str) -> None:
    check(timed[name], name, ROWS[name].clock)


@pytest.mark.parametrize("name", ROWS)
def test_at_fixed_nodes(fixed: dict[str, list[GameResult]], name: str) -> None:
    check(fixed[name], name, ROWS[name].nodes)


def check(results: list[GameResult], name: str, reason: str) -> None:
    """Both games were lost by the culprit, or by nobody, for this reason and in time."""
    row = ROWS[name]
    assert [result.task.game for result in results] == [1, 2]
    for result in results:
        culprit = result.names.index(name)
        faulty = result.fault is not None
        if not reason or (name == "exit between games" and result.task.game == 1):
            assert (faulty, result.reason) == (False, results[0].reason), result.fault
            assert [ply.move for ply in result.plies] == list(by_heart())
        else:
            assert result.fault is not None
            assert (result.fault.side, result.fault.reason) == (culprit, reason)
            assert (result.reason, result.winner) == (reason, "ad"[1 - culprit])
            assert re.search(row.text, result.fault.text), result.fault.text
            assert result.fault.reproducible == (reason not in ("time", "stall"))
        assert result.seconds < (LIMIT if row.waits else 0.0) + PROMPTLY
    assert [result.stray for result in results] == STRAYS.get(name, [0, 0])
    if row.waits:
        assert min(result.seconds for result in results) >= LIMIT * 0.95


def test_the_last_words_on_standard_error_are_kept(fixed: dict[str, list[GameResult]]) -> None:
    assert [result.extra for result in fixed["exit"]] == [{"stderr": "a reason\n"}] * 2


@pytest.mark.parametrize("words", [("stubborn",), ("stubborn", "hang"), ("sigstop",), ("grandchild",)])
def test_the_result_comes_first_and_the_cleaning_afterwards(words: tuple[str, ...]) -> None:
    silent = "hang" in words or "sigstop" in words
    specs = [spec("bad", *words, **({"move_timeout": 0.3} if silent else {})), spec()]
    living: list[int] = []

    def watch(event: str, _: object) -> None:
        if event == "end":
            living.append(len(leftovers(specs)))

    (result,) = collect(pair()[:1], specs, on_event=watch)
    assert result.seconds < PROMPTLY
    assert (result.fault is None) == (words == ("stubborn",))
    assert living[0] >= (1 if words == ("grandchild",) else 2)


def test_the_slot_goes_on_while_the_culprit_is_wound_up() -> None:
    """A second game with a fresh process begins before the first process, which ignores all but KILL, is gone."""
    specs = [spec("bad", "stubborn", "hang", move_timeout=0.3), spec()]
    first: list[str] = []

    def watch(event: str, facts: dict[str, Any]) -> None:
        task = facts["task"] if event == "start" else None
        if task is not None and task.game == 2:
            first.extend(leftovers(specs[:1]))

    results = collect(pair(), specs, on_event=watch)
    assert [result.reason for result in results] == ["stall", "stall"]
    assert len(first) == 1


def test_a_process_that_does_not_read_is_waited_for_no_longer_than_its_clock() -> None:
    async def run() -> float:
        engine = await Engine.start(spec("deaf", "deaf", "at=1").command, "uti")
        await (await engine.go(Limits(nodes=1)))
        engine.hold("position startpos moves " + "a1a2 " * 100_000)
        began = time.monotonic()
        with pytest.raises(EngineTimeout, match=r"expected reading of our commands within 0.3 s"):
            await engine.go(Limits(nodes=1), timeout=0.3)
        seconds = time.monotonic() - began
        await engine.quit()
        return seconds

    assert 0.29 < asyncio.run(run()) < PROMPTLY


def test_a_late_mover_is_told_to_stop_before_it_is_told_to_go(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)

    async def run() -> list[bytes]:
        engine = await Engine.start(spec("late", "late=1", "at=1").command, "uti", timeouts=PATIENT)
        search = await engine.go(Limits(nodes=1), timeout=60)
        clock.leap(100)
        with pytest.raises(EngineTimeout):
            await search
        # It reads on when it has answered, and is given the time for that.
        assert (await engine.quit(grace=PROMPTLY)).status == 0
        return [line for _, arrow, line in engine.transcript if arrow == ">"]

    assert asyncio.run(run())[-2:] == [b"stop", b"quit"]


def test_an_arena_that_is_killed_leaves_no_engine() -> None:
    engine = spec("hanging", "hang", "at=1", move_timeout=600.0)
    program = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parents[1] / "support")!r})
import arena_parts as parts
from dataclasses import replace
specs = [replace(parts.spec("hanging", "hang", "at=1", move_timeout=600.0), env={engine.env!r})] * 2
parts.collect(parts.pair(), specs, on_event=lambda *_: print("begun", flush=True))
"""
    arena = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    try:
        assert arena.stdout is not None
        assert arena.stdout.readline() == b"begun\n"
        wait_until(lambda: len(leftovers([engine])) == 2, seconds=120)
        arena.send_signal(signal.SIGKILL)
        arena.wait()
        wait_until(lambda: leftovers([engine]) == [])
    finally:
        arena.kill()
        arena.wait()
        arena.stdout.close()


@pytest.mark.parametrize("backend", ["", "loky"])
def test_what_engines_have_started_ends_when_the_arena_is_killed(tmp_path: Path, backend: str) -> None:
    """Processes in sessions of their own, whose engine the system ends with the arena, or with its worker."""
    asked = tmp_path / "asked"
    engine = spec("leaver", "hang", "at=1", f"asked={asked}")
    line = f"setsid sleep 3600 & exec {shlex.join(engine.command)}"
    entry = f"[[engine]]\ncmd = 'sh'\nargs = ['-c', {json.dumps(line)}]\n"
    (tmp_path / "run.toml").write_text(entry * 2)
    words = [
        "--config",
        str(tmp_path / "run.toml"),
        "--variant",
        VARIANT,
        "--pairs",
        "1",
        "--nodes",
        "9",
        "--quiet",
    ]
    words += ["--move-timeout", "600", *(["--backend", backend] if backend else [])]
    arena = subprocess.Popen(
        [sys.executable, "-m", "hnefi.tools.arena.command", *words, "--out", tmp_path / "run"],
        env={**os.environ, **dict(engine.env)}, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        # Not only their processes: engines are also started to be looked at before the first game.
        wait_until(lambda: arena.poll() is not None or asked.exists(), 120)
        assert sum("b'sleep" in one for one in leftovers([engine])) == 2
        assert arena.poll() is None
    finally:
        arena.kill()
        arena.wait()
    wait_until(lambda: leftovers([engine]) == [])


# Before the first game


def problems(one: EngineSpec) -> tuple[str, ...]:
    (checked,) = asyncio.run(preflight([one], [VARIANT]))
    assert leftovers([one]) == []
    return checked.problems


def test_preflight_says_what_an_engine_is() -> None:
    good = spec(options=(("Hash", "16"), ("Button", "")))
    same = replace(good, name="twin")
    found = asyncio.run(preflight([good, same], [VARIANT]))
    assert [(one.name, one.proto, one.problems) for one in found] == [("Parrot", "uti", ())] * 2
    assert "Seed" in found[0].options
    assert leftovers([good]) == []


def test_preflight_finds_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program")
    assert problems(replace(spec("gone"), command=("/no/such/file",))) == (
        "gone: cannot start /no/such/file: No such file or directory",
    )
    assert problems(replace(spec("plain"), command=(str(plain),))) == (
        f"plain: cannot start {plain}: Permission denied",
    )
    assert "expected readyok within 1 s" in problems(spec("silent", "no-ready", ready=1.0))[0]
    greet = Engine._greet

    async def hurried(engine: Engine, greetings: Sequence[str]) -> None:
        """Starting may take what it takes; only the greeting is waited for no longer than this."""
        engine.timeouts = replace(engine.timeouts, start=engine.timeouts.start / 60)
        await greet(engine, greetings)

    monkeypatch.setattr(Engine, "_greet", hurried)
    assert "did not greet: expected utiok within 2 s" in problems(spec("dumb", "no-greeting"))[0]


@pytest.mark.parametrize("variant", ["hex:3", "dim:7 name:Brandubh"])
def test_our_own_engine_hears_the_game_before_anything_that_it_answers(variant: str) -> None:
    """On an empty cache it would otherwise compile tafl for whoever plays hex."""
    told: list[str] = []

    def hear(_: float, arrow: str, line: bytes) -> None:
        if arrow == ">":
            told.append(line.decode().strip())

    async def begin() -> None:
        ours = replace(spec(options=(("Hash", "2"),)), player="default")
        engine = await engine_slot.start(ours, on_traffic=hear, variant=variant)
        await engine.quit(0.5)

    asyncio.run(begin())
    word = "rules" if variant.startswith("dim:") else "variant"
    assert (
        told.index(f"{word} {variant}") < told.index("setoption name Hash value 2") < told.index("isready")
    ), told


def test_preflight_and_slots_start_engines_with_the_game(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    async def start(*_: object, variant: str = "", **__: object) -> Engine:
        begun.append(variant)
        raise StartFailure("enough")

    monkeypatch.setattr(engine_slot, "start", start)
    asyncio.run(preflight([spec()], ["hex:3", "brandubh"]))
    with pytest.raises(StartFailure):
        asyncio.run(engine_slot.EngineSlot(spec()).prepare("hexapawn:3x3", 0, 1))
    assert begun == ["hex:3", "hexapawn:3x3"]


def test_preflight_lists_all_wrong_options_at_once() -> None:
    found = problems(spec("wrong", options=(("Hsh", "1"), ("Hash", "lots"), ("Hash", "2"))))
    assert found == (
        "wrong: Parrot has no option 'Hsh': did you mean Hash?",
        "wrong: Parrot: option Hash value 'lots': expected a whole number from 1 to 64",
    )


def test_an_engine_that_cannot_start_costs_no_game() -> None:
    specs = [spec("gone", command=("/no/such/file",)), spec()]
    results = collect(pair(), specs)
    assert [(result.reason, result.winner) for result in results] == [("start_failure", None)] * 2
    assert [result.fault.side for result in results if result.fault] == [0, 1]
    assert not any(result.counts for result in results)
    assert os.environ.get(MARK) is None
