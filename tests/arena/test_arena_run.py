"""A run from end to end: the same result however it is played, interrupted or killed, and how it stops."""

from __future__ import annotations

import asyncio
import errno
import io
import json
import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import fake_arena
import pytest
from fake_arena import FakePlay, Plain, config, play
from patience import PROMPTLY

from hnefi.protocol.hosts import exit_codes
from hnefi.tools.arena import command, logs, option_reader, report_command, run, store
from hnefi.tools.arena.engine_slot import preflight
from hnefi.tools.arena.logs import LOG
from hnefi.tools.arena.loop import Loop
from hnefi.tools.arena.options import ConfigError
from hnefi.tools.arena.store import Store
from hnefi.tools.arena.values import EngineSpec, GameResult, GameTask
from hnefi.tools.common import compiling, interrupts

FAKE = [sys.executable, str(Path(fake_arena.__file__))]
ARENA = [sys.executable, "-m", "hnefi.tools.arena.command"]


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    """An interrupted run ignores further signals to its end; this process has others to play."""
    before = {number: signal.getsignal(number) for number in interrupts.NUMBERS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def output(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


# The same result


@pytest.mark.parametrize("slots", [1, 3, 7])
def test_the_digest_does_not_depend_on_the_number_of_slots(tmp_path: Path, slots: int) -> None:
    code, loop = play(config(pairs=12), tmp_path / "one", FakePlay(1))
    again, other = play(config(pairs=12), tmp_path / "many", FakePlay(slots, 0.01))
    assert (code, again) == (0, 0)
    assert len(loop.progress.counted) == 24
    assert loop.digest == other.digest


class Interrupting(Plain):
    """Interrupts the run after so many games."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after = after
        self.loop: Loop

    def game(self, result: GameResult) -> None:
        super().game(result)
        self.after -= 1
        if self.after == 0:
            self.loop.interrupt()


def interrupted(settings: run.Config, folder: Path, after: int, fake: FakePlay | None = None) -> int:
    screen = Interrupting(after)
    ready = fake_arena.prepared(settings)
    opened = Store.resume(folder) if folder.exists() else fake_arena.create(folder)
    with opened:

        async def everything() -> int:
            screen.loop = Loop(ready, opened, fake or FakePlay(3, 0.02), screen)
            return await screen.loop.play_on()

        return asyncio.run(everything())


def test_an_interrupted_run_goes_on_to_the_same_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = config(pairs=60)
    _, whole = play(settings, tmp_path / "whole", FakePlay())
    for after in (1, 4, 3):
        capsys.readouterr()
        assert interrupted(settings, tmp_path / "run", after) == exit_codes.INTERRUPTED
        assert output(capsys)[-1] == f"hnefi arena resume {tmp_path / 'run'}"
    code, loop = play(settings, tmp_path / "run", fake := FakePlay())
    assert (code, loop.digest) == (0, whole.digest)
    assert 0 < len(fake.played) <= 120 - 8
    assert len(set(fake.played)) == len(fake.played)


def test_of_an_open_pair_only_the_second_game_is_played(tmp_path: Path) -> None:
    class Endless(FakePlay):
        async def _wait(self, task: GameTask, abort: asyncio.Event) -> None:
            if task.game == 2:
                await abort.wait()

    settings = config(pairs=1)
    assert interrupted(settings, tmp_path / "run", 1, Endless()) == exit_codes.INTERRUPTED
    play(settings, tmp_path / "run", fake := FakePlay())
    assert fake.played == ["1.2"]


def test_more_pairs_append_to_a_complete_run(tmp_path: Path) -> None:
    play(config(pairs=4), tmp_path / "run", FakePlay())
    code, loop = play(config(pairs=9), tmp_path / "run", fake := FakePlay())
    assert code == 0
    assert fake.played[0] == "5.1"
    assert loop.digest == play(config(pairs=9), tmp_path / "whole", FakePlay())[1].digest
    play(config(pairs=9), tmp_path / "run", fake := FakePlay())
    assert fake.played == []


@pytest.mark.process
def test_a_run_killed_at_any_moment_loses_nothing_that_was_stored(tmp_path: Path) -> None:
    """50 kills of a process that plays and writes, each at a seeded moment, each followed by going on."""
    dice = random.Random("kill")
    words = ["pairs=600", "slots=3", "pace=0.04", f"output__jsonl={tmp_path / 'out.jsonl'}"]
    zygote = subprocess.Popen(
        [*FAKE, str(tmp_path / "run"), *words, "serve=51"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with zygote:
        assert zygote.stdin
        assert zygote.stdout
        stored = kills = 0
        while kills < 50 and stored < 1000:  # whoever reads late finds more games played
            kills += 1
            zygote.stdin.write("go\n")
            zygote.stdin.flush()
            child = 0
            for text in zygote.stdout:
                if text.startswith("pid"):
                    child = int(text.split()[1])
                elif text.startswith("game "):
                    break
            time.sleep(dice.uniform(0, 0.04))
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            while zygote.stdout.readline() != "ended\n":
                pass
            with Store.read(tmp_path / "run") as opened:
                assert len(opened.rows) > stored
                stored = len(opened.rows)
        zygote.kill()
    settings = config(pairs=600, output__jsonl=str(tmp_path / "out.jsonl"))
    code, loop = play(settings, tmp_path / "run", FakePlay(), Plain(quiet=True))
    _, whole = play(config(pairs=600), tmp_path / "whole", FakePlay(), Plain(quiet=True))
    assert (code, loop.digest) == (0, whole.digest)
    # Every id once, in the log, in the games and in what follows them.
    ids = [f"{number}.{game}" for number in range(1, 601) for game in (1, 2)]
    with Store.read(tmp_path / "run") as opened:
        assert sorted(row.id for row in opened.rows.values()) == sorted(ids)
        assert sorted(result.task.id for result in opened.results()) == sorted(ids)
    assert (tmp_path / "out.jsonl").read_bytes().count(b"\n") == 1200


# How a run stops


def test_a_sequential_test_ends_with_the_first_prefix_that_decides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = config(sprt__elo0=-10, sprt__elo1=100, sprt__max_pairs=2000, sprt__alpha=0.2, sprt__beta=0.2)
    ends = []
    for slots in (1, 4, 9):
        code, loop = play(settings, tmp_path / str(slots), fake := FakePlay(slots, 0.003))
        assert loop.progress.test
        assert code == 0
        assert loop.progress.test.deciding == loop.progress.pairs < 300
        assert len(fake.played) < 4000
        ends.append((loop.digest, loop.progress.test.verdict, loop.progress.test.deciding))
        assert loop.progress.surplus == len(loop.store.rows) - 2 * loop.progress.pairs
    assert ends[0] == ends[1] == ends[2]
    assert any(line.startswith(f"{ends[0][1]} accepted: random-blind is ") for line in output(capsys))


def test_running_games_are_broken_off_when_a_test_has_decided(tmp_path: Path) -> None:
    class Long(FakePlay):
        async def _wait(self, task: GameTask, abort: asyncio.Event) -> None:
            if task.pair == 4:
                with suppress(TimeoutError):
                    await asyncio.wait_for(abort.wait(), 5)

    settings = config(sprt__elo0=-200, sprt__elo1=199, sprt__alpha=0.4, sprt__beta=0.4, sprt__max_pairs=5000)
    assert play(settings, tmp_path / "run", Long(2))[1].progress.pairs < 4
    with Store.read(tmp_path / "run") as opened:
        assert (4, 1) not in opened.rows


def test_the_exit_code_of_a_test(tmp_path: Path) -> None:
    bounds = {"sprt__alpha": 0.2, "sprt__beta": 0.2, "control__sprt_exit": True, "sprt__max_pairs": 300}
    h0 = config(sprt__elo0=100, sprt__elo1=200, **bounds)
    h1 = config(sprt__elo0=-200, sprt__elo1=-100, **bounds)
    open_ended = config(sprt__elo0=0, sprt__elo1=1, **(bounds | {"sprt__max_pairs": 5}))
    codes = [play(one, tmp_path / str(n), FakePlay())[0] for n, one in enumerate((h0, h1, open_ended))]
    assert codes == [exit_codes.H0_ACCEPTED, exit_codes.DONE, exit_codes.INCONCLUSIVE]


@pytest.mark.parametrize("slots", [1, 3])
def test_three_faults_in_a_row_end_a_match(
    tmp_path: Path, slots: int, capsys: pytest.CaptureFixture[str]
) -> None:
    # Its games as attackers are lost by a fault, those as defenders are not: never three in a row.
    code, loop = play(config(pairs=5), tmp_path / "every other", FakePlay(slots, faulty=frozenset({0})))
    assert (code, loop.progress.withdrawn) == (0, {})
    code, loop = play(
        config(pairs=9, swap=False), tmp_path / "always", FakePlay(slots, 0.01, faulty=frozenset({0}))
    )
    assert (code, loop.progress.withdrawn) == (exit_codes.FAULTS, {0: "3.1"})
    assert len(loop.progress.counted) == 3
    assert "random-blind is withdrawn after 3 faults in a row, the last in game 3.1: crash" in output(capsys)
    assert play(config(pairs=9, swap=False), tmp_path / "always", fake := FakePlay())[0] == exit_codes.FAULTS
    assert fake.played == []


def test_a_tournament_goes_on_without_the_withdrawn(tmp_path: Path) -> None:
    settings = config(3, pairs=8, swap=False)
    digests = set()
    for slots in (1, 4):
        code, loop = play(settings, tmp_path / str(slots), FakePlay(slots, 0.01, faulty=frozenset({0})))
        assert code == 0
        # Meetings 0-1, 0-2 and 1-2 in every round: the third game of engine 0 is the fourth of the run.
        assert loop.progress.withdrawn == {0: "4.1"}
        assert len(loop.progress.counted) == 3 + 8
        digests.add(loop.digest)
    assert len(digests) == 1


def test_any_fault_may_end_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = config(pairs=50, control__fail_on_fault=True)
    code, loop = play(settings, tmp_path / "run", FakePlay(1, 0.01, faulty=frozenset({1})))
    assert code == exit_codes.FAULTS
    assert len(loop.store.rows) < 50
    assert output(capsys)[-1].startswith("hnefi arena resume ")


def test_a_repeated_pair_is_logged_and_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pairs 2 and 5 are pair 1 again: in pair-number order, although the first comes last."""

    class Same(FakePlay):
        def _end(self, task: GameTask, ready: run.Run, *, aborted: bool) -> GameResult:
            if task.pair in (1, 2, 5):
                first = ready.schedule.tasks(1, ready.openings)[task.game - 1]
                return replace(
                    super()._end(first, ready, aborted=aborted), task=replace(task, opening=first.opening)
                )
            return super()._end(task, ready, aborted=aborted)

        async def _wait(self, task: GameTask, abort: asyncio.Event) -> None:  # noqa: ARG002
            await asyncio.sleep(0.1 if task.pair == 1 else 0)

    settings = config(pairs=6, sprt__elo1=5, sprt__max_pairs=6)
    _, loop = play(settings, tmp_path / "run", Same(2))
    assert next(iter(loop.store.rows)) != (1, 1)
    assert loop.progress.duplicates == {2: 1, 5: 1}
    assert loop.progress.test
    assert loop.progress.test.pairs == 4
    assert ("duplicate_of", [5, 1]) in loop.store.notes
    assert "pair 5 repeats pair 1 and is left out of the statistics" in output(capsys)


def test_a_full_disk_stops_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    left = [4000]

    def full(descriptor: int, data: bytes) -> int:
        if len(data) > 1:  # not what wakes event loops
            left[0] -= len(data)
            if left[0] < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data)

    settings = config(pairs=50)
    fake_arena.create(tmp_path / "run").close()
    monkeypatch.setattr(store.os, "write", full)
    code, loop = play(settings, tmp_path / "run", FakePlay(2, 0.001))
    monkeypatch.undo()
    assert code == exit_codes.STORAGE
    lines = output(capsys)
    assert any("No space left on device" in line for line in lines)
    assert len(loop.progress.counted) <= len(loop.store.rows) < 100
    with Store.read(tmp_path / "run") as opened:
        assert opened.rows == loop.store.rows
        assert opened.repairs == []
    assert play(settings, tmp_path / "run", FakePlay())[0] == 0


# Ctrl-C


@contextmanager
def fake_process(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A fake arena that has stored its first game."""
    with subprocess.Popen([*FAKE, str(folder), *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        for text in process.stdout:
            if text.startswith("game "):
                break
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_interruption_breaks_games_off_and_says_how_to_go_on(tmp_path: Path, number: int) -> None:
    folder = tmp_path / "the run"
    with fake_process(folder, "pairs=500", "pace=0.2") as process:
        process.send_signal(number)
        out, _ = process.communicate(timeout=100)
    assert process.returncode == exit_codes.INTERRUPTED
    assert out.splitlines()[-1] == f"hnefi arena resume '{folder}'"
    assert "interrupted: running games are stopped" in out
    with Store.read(folder) as opened:
        assert 1 <= len(opened.rows) < 1000
        assert all(row.winner for row in opened.rows.values())


@pytest.mark.process
def test_games_may_be_finished_and_a_second_interruption_does_not_wait(tmp_path: Path) -> None:
    words = ("pairs=500", "pace=30", "control__finish_games=true", "slots=3", "deaf=true")
    with fake_process(tmp_path / "run", *words) as process:
        process.send_signal(signal.SIGINT)
        assert process.stdout
        for text in process.stdout:
            if text.startswith("interrupted: running games are finished first"):
                break
        time.sleep(interrupts.TWICE)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=100)
    assert time.monotonic() - begun < PROMPTLY
    assert process.returncode == exit_codes.INTERRUPTED
    assert out.splitlines()[-1] == "hurried"
    assert out.splitlines()[-2] == f"hnefi arena resume {tmp_path / 'run'}"
    with fake_process(tmp_path / "finished", "pairs=500", "pace=0.3", *words[2:]) as process:
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=100)
    assert process.returncode == exit_codes.INTERRUPTED
    assert "\ngame " in out.partition("interrupted:")[2]


def test_what_ends_by_a_second_interruption_is_no_result(tmp_path: Path) -> None:
    """Engines that are killed then have not lost."""

    class Killed(FakePlay):
        def _end(self, task: GameTask, ready: run.Run, *, aborted: bool) -> GameResult:
            del aborted
            return fake_arena.result(task, ready.config.names, "" if task.pair == 1 else "crash")

        async def _wait(self, task: GameTask, abort: asyncio.Event) -> None:
            if task.pair > 1:
                await abort.wait()

    class Twice(Interrupting):
        def game(self, result: GameResult) -> None:
            super().game(result)
            if self.after == 0:
                self.loop.interrupt()

    screen = Twice(2)
    settings = config(pairs=9, control__finish_games=True)
    with fake_arena.create(tmp_path / "run") as opened:

        async def everything() -> int:
            screen.loop = Loop(fake_arena.prepared(settings), opened, Killed(3), screen)
            return await screen.loop.play_on()

        assert asyncio.run(everything()) == exit_codes.INTERRUPTED
        assert {row.id for row in opened.rows.values()} == {"1.1", "1.2"}


# What the log tells


def test_oddities_are_kept_once_for_each_kind_and_engine(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Odd(FakePlay):
        def _end(self, task: GameTask, ready: run.Run, *, aborted: bool) -> GameResult:
            one, two = (ready.config.names[engine] for engine in task.engines)
            told = (f"{one}: no score before bestmove (ply 3)", f"{two}: pv a1a2: not so (ply {task.pair})")
            return replace(super()._end(task, ready, aborted=aborted), advisories=told, lateness=task.pair)

    monkeypatch.setattr(LOG, "level", logging.DEBUG)
    with caplog.at_level(logging.DEBUG):
        LOG.addHandler(caplog.handler)
        try:
            play(config(pairs=7), tmp_path / "run", Odd(1))
        finally:
            LOG.removeHandler(caplog.handler)
    with Store.read(tmp_path / "run") as opened:
        kept = [data for word, data in opened.notes if word == "advisory"]
    one, two = config().names
    assert sorted(data[:3] for data in kept) == [
        [one, "no", "1.1"], [one, "pv", "1.2"], [two, "no", "1.2"], [two, "pv", "1.1"]
    ]  # fmt: skip
    assert f"{two}: pv a1a2: not so (ply 1)" in [data[3] for data in kept]
    said = {record.getMessage() for record in caplog.records if record.levelno == logging.WARNING}
    assert f"game 1.1, {one}: no score before bestmove (ply 3)" in said
    assert {text for text in said if "late" in text} == {
        f"game {number}.1: the arena was late by {number}.0 ms" for number in (6, 7)
    }
    assert len(said) == 4 + 2
    play(config(pairs=9), tmp_path / "run", Odd(1))
    with Store.read(tmp_path / "run") as opened:
        assert len([word for word, _ in opened.notes if word == "advisory"]) == 4


# Kernels before engines


FAKE_ENGINE = ["-I", "-S", str(Path(__file__).parents[1] / "support" / "fake_engine.py")]


@pytest.mark.process
def test_what_engines_compile_is_shown_before_the_first_game(capsys: pytest.CaptureFixture[str]) -> None:
    """Each brought to the variants that will be played, and given the time for that."""
    spec = EngineSpec("slow", (sys.executable, *FAKE_ENGINE, "compiles"), proto="uti", ready=0.5)
    with compiling.shown_on_stderr():
        (checked,) = asyncio.run(preflight([spec], ["brandubh"]))
    assert checked.problems == ()
    assert capsys.readouterr().err.startswith("compiling 0/12 the rules (0 s, about 12 s left)\n")


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption_while_engines_are_prepared_leaves_nothing(tmp_path: Path, number: int) -> None:
    marker = f"HNEFI_TEST_PREPARED_{os.getpid()}"
    words = f"cmd={sys.executable},args={' '.join([*FAKE_ENGINE, 'no-ready', 'no-term'])},env.{marker}=1,ready=600"
    line = [*ARENA, "--engine", words, "--engine", words, "--out", str(tmp_path / "run"), "--nodes", "1"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            _wait_for(lambda: len(engines_of(marker)) == 1, seconds=120)
            begun = time.monotonic()
            process.send_signal(number)
            out, err = process.communicate(timeout=100)
        finally:
            process.kill()
    assert time.monotonic() - begun < 45
    assert (process.returncode, out, err) == (exit_codes.INTERRUPTED, "", f"{command.NOTHING}\n")
    _wait_for(lambda: not engines_of(marker))
    assert list(tmp_path.iterdir()) == []


def test_engines_that_an_interrupt_takes_away_are_nobody_s_fault(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They end a moment before the process does, and somebody notices."""
    caught = interrupts.Caught(lambda: [command.NOTHING])
    caught.asked.set()
    monkeypatch.setattr(command._State, "caught", caught)

    def fail() -> int:
        raise ConfigError("the engine has ended: killed by SIGKILL")

    assert command._guarded(fail) == exit_codes.INTERRUPTED
    assert capsys.readouterr().err == f"{command.NOTHING}\n"


# With engines


class Done(NamedTuple):
    """How a command ended and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def arena(*words: object) -> Done:
    """`hnefi arena` in this process, where kernels are loaded already."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = command.main(list(map(str, words)))
    return Done(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The words for a run of two fast engines that play twelve games."""
    file = tmp_path_factory.mktemp("openings") / "openings.txt"
    file.write_text("a4a3\na4a2\na4a3 d3c3\na4a2 d3c3\na4a3 d5c5\na4a2 d5c5\na4a3 d5e5\na4a2 d5e5\n")
    engine = [
        "--engine",
        f"cmd={sys.executable},args=-I -S {Path(__file__).parents[1] / 'support' / 'shuffle_engine.py'}",
    ]
    words = ["--variant", "brandubh", "--pairs", "6", "--seed", "5", "--concurrency", "1", "--nodes", "5"]
    openings = ["--openings-source", "file", "--openings-file", str(file)]
    return [*engine, *engine, *words, *openings, "--adjudicate-max-plies", "30"]


def digest(done: Done | subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr + done.stdout
    assert done.stdout.splitlines()[-1].startswith("result digest ")
    return done.stdout.splitlines()[-1]


def engines_of(marker: str) -> list[int]:
    """Processes with this word in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.fixture(scope="module")
def undisturbed(small: list[str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest of the small run."""
    return digest(arena(*small, "--out", tmp_path_factory.mktemp("whole") / "run"))


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_killed_or_interrupted_nothing_is_left_and_the_run_goes_on(
    tmp_path: Path, small: list[str], undisturbed: str
) -> None:
    dice = random.Random("kill engines")
    marker = f"HNEFI_TEST_MARK_{os.getpid()}"
    words = [*ARENA, *small, "--out", str(tmp_path / "run"), "--each", f"env.{marker}=1", "--wait", "1000"]
    for signals in ([signal.SIGKILL], [signal.SIGINT], [signal.SIGINT, signal.SIGINT]):
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            for text in process.stdout:
                if text.startswith("game "):
                    break
            time.sleep(dice.uniform(0, 0.1))
            assert len(engines_of(marker)) == 2
            for number in signals:
                process.send_signal(number)
                # Two within less time are one.
                time.sleep(interrupts.TWICE)
            out, _ = process.communicate(timeout=100)
        if signals[0] == signal.SIGINT:
            assert process.returncode == exit_codes.INTERRUPTED
            assert out.splitlines()[-1] == f"hnefi arena resume {tmp_path / 'run'}"
        _wait_for(lambda: not engines_of(marker))
        words = [*ARENA, "resume", str(tmp_path / "run")]
    done = arena("resume", tmp_path / "run", "--concurrency", 2)
    assert digest(done) == undisturbed
    assert "games stored" in done.stdout
    assert digest(arena("resume", tmp_path / "run")) == undisturbed


def _wait_for(condition: object, seconds: float = PROMPTLY) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


STUBBORN = """
import pathlib, runpy, signal, subprocess, sys, time
seen = pathlib.Path(__file__).with_suffix(".seen")
if not seen.exists():  # looked at before the run
    seen.touch()
    runpy.run_path(sys.argv[1])
    sys.exit()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sleep = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"]
subprocess.Popen(sleep)
subprocess.Popen(sleep, start_new_session=True)  # out of the group
runpy.run_path(sys.argv[1])
time.sleep(60)
"""


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize("interruptions", [1, 2])
def test_engines_that_do_not_end_are_killed_with_all_that_they_started(
    tmp_path: Path, small: list[str], interruptions: int
) -> None:
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    marker = f"HNEFI_TEST_STUBBORN_{os.getpid()}"
    shuffle = Path(__file__).parents[1] / "support" / "shuffle_engine.py"
    engine = f"cmd={sys.executable},args=-I -S {tmp_path / 'stubborn.py'} {shuffle},env.{marker}=1,quit=90"
    engines = ["--engine", engine, "--engine", engine]
    words = [*small[4:], *engines, "--out", str(tmp_path / "run"), "--wait", "5000"]
    with subprocess.Popen([*ARENA, *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        for text in process.stdout:
            if text.startswith("game "):
                break
        assert len(engines_of(marker)) == 6
        begun = time.monotonic()
        for _ in range(interruptions):
            process.send_signal(signal.SIGINT)
            time.sleep(interrupts.TWICE)
        process.communicate(timeout=100)
    assert time.monotonic() - begun < 45  # in peace it takes those ninety seconds
    assert process.returncode == exit_codes.INTERRUPTED
    _wait_for(lambda: not engines_of(marker))
    with Store.read(tmp_path / "run") as opened:
        assert opened.rows
        assert all(row.fault is None for row in opened.rows.values())


@pytest.mark.process
def test_everything_that_may_be_kept_of_a_run(
    tmp_path: Path,
    small: list[str],
    undisturbed: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logs, "PENDING", 12)  # a busy machine is no slow disk
    folder = tmp_path / "run"
    extras = ["--traffic", "--live", "--cross-check", 2, "--log", "info", "--cross-check", "final"]
    assert digest(arena(*small, "--out", folder, *extras)) == undisturbed
    games = {f"{number}.{game}" for number in range(1, 7) for game in (1, 2)}
    assert {path.name.removesuffix(".txt.gz") for path in (folder / "traffic").iterdir()} == games
    events = [json.loads(line) for line in (folder / "live.jsonl").read_text().splitlines()]
    thoughts = [event for event in events if event["event"] == "info"]
    assert {(event["side"], event["depth"]) for event in thoughts} == {("a", 1), ("d", 1)}
    assert {event["id"] for event in thoughts} == games
    lines = (folder / "arena.log").read_text().splitlines()
    assert sum(" INFO    game " in line for line in lines) == 12
    assert lines[-1].endswith(f"complete: {undisturbed}")
    assert report_command.main_report([str(folder), "--game", "2.1"]) == 0
    assert f"zcat {folder}/traffic/2.1.txt.gz" in capsys.readouterr().err
    # What is kept may change on the way.
    assert digest(arena("resume", folder, "--no-traffic", "--log", "off", "--pairs", 7)) != undisturbed
    assert len(list((folder / "traffic").iterdir())) == 12


@pytest.mark.process
def test_lines_stay_where_they_are_read(tmp_path: Path, small: list[str]) -> None:
    for words in (["--backend", "loky"], ["--concurrency", "17"]):
        done = arena(*small, "--out", tmp_path / "run", "--traffic", *words)
        assert done.returncode == exit_codes.USAGE
        assert "output.traffic: expected no backend" in done.stderr
    assert not (tmp_path / "run").exists()


def test_files_in_the_folder_of_a_run_are_written_down_as_seen_from_there(tmp_path: Path) -> None:
    folder, out = tmp_path / "run", tmp_path / "out.jsonl"
    settings = config(output__records=str(folder / "games.tafl"), output__jsonl=str(out))
    folder.mkdir()
    (folder / store.CONFIG).write_text(option_reader.to_toml(run.kept(settings, folder)))
    moved = folder.rename(tmp_path / "moved")
    again = run.load_config(moved)
    assert (again["output.records"], again["output.jsonl"]) == (str(moved / "games.tafl"), str(out))


@pytest.mark.process
def test_a_changed_run_is_refused_item_by_item(tmp_path: Path, small: list[str], undisturbed: str) -> None:
    arena(*small, "--out", tmp_path / "run")
    done = arena("resume", tmp_path / "run", "--pairs", 7, "--seed", 6)
    assert done.returncode == exit_codes.USAGE
    assert "  run.seed: was '5', is '6'" in done.stderr
    assert digest(arena("resume", tmp_path / "run")) == undisturbed
    more = arena("resume", tmp_path / "run", "--pairs", 7)
    assert "game 7.2" in more.stdout
    assert "game 6.2" not in more.stdout
    assert digest(more) != undisturbed
    forced = arena("resume", tmp_path / "run", "--pairs", 8, "--seed", 6, "--force")
    assert forced.returncode == 0
    with Store.read(tmp_path / "run") as opened:
        assert ("forced", "run.seed: was '5', is '6'") in opened.notes


@pytest.mark.process
def test_nothing_is_half_created(
    tmp_path: Path, small: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    fake = Path(__file__).parents[1] / "support" / "fake_engine.py"
    bad = [
        (["--each", "option.Seed=-1"], "option Seed value '-1'"),
        (["--engine", "player=default,option.MultiPV=0"], "option MultiPV '0'"),
        (["--engine", f"cmd={sys.executable},args=-I -S {fake} no-greeting,start=0.3"], "did not"),
        (["--engine", f"cmd={sys.executable},args=-I -S {fake},option.Hash=99"], "Hash"),
        (["--openings-source", "file", "--openings-file", str(tmp_path / "none")], "none: No such file"),
        (["--pairs", "9"], "file has 8 distinct openings of 'brandubh': expected 9"),
    ]
    for words, message in bad:
        assert command.main([*small, "--out", str(tmp_path / "run"), *words]) == exit_codes.USAGE
        assert message in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []


@pytest.mark.process
def test_a_foreign_engine_is_called_what_it_calls_itself(tmp_path: Path) -> None:
    fake = Path(__file__).parents[1] / "support" / "fake_engine.py"
    engine = f"cmd={sys.executable},args=-I -S {fake}"
    words = ["--engine", engine, "--engine", engine, "--variant", "brandubh", "--pairs", 3, "--no-swap"]
    done = arena(
        *words, "--out", tmp_path / "run", "--nodes", 5, "--openings-source", "start", "--openings-repeat", 3
    )
    # Its only move is illegal in brandubh.
    assert done.returncode == exit_codes.FAULTS, done.stderr
    assert "Fake 1.0 (a) – Fake 1.0 2 (d): 0-1, illegal move" in done.stdout
    assert 'name = "Fake 1.0 2"' in (tmp_path / "run" / "config.toml").read_text()


def test_subcommands_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["--help"])
    assert ended.value.code == 0
    assert "hnefi arena resume RUN" in capsys.readouterr().out
    assert command.main(["resume", "/no/such/run"]) == exit_codes.USAGE
    assert "expected the folder of a run" in capsys.readouterr().err
    assert command.main(["resume", "/no/such/run", "--pears", "3"]) == exit_codes.USAGE
    assert "did you mean --pairs?" in capsys.readouterr().err


@pytest.mark.process
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_tables_that_a_disk_did_not_take_are_told(tmp_path: Path) -> None:
    line = [
        *ARENA,
        "random-blind",
        "random-blind",
        "--variant",
        "brandubh",
        "--pairs",
        "1",
        "--nodes",
        "1",
        "--plain",
    ]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*line, "--out", "run"], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == exit_codes.STORAGE
    assert done.stderr == (
        "hnefi arena: standard output: No space left on device: all games are stored, and "
        f"hnefi arena report {tmp_path}/run shows the tables\n"
    )
    assert len((tmp_path / "run" / "games.jsonl").read_text().splitlines()) == 2
