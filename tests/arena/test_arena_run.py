"""A run from end to end: the same result however it is played, interrupted or killed, and how it stops."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import fake_arena
import pytest
from fake_arena import FakePlay, Plain, config, play
from patience import PROMPTLY

from hnefi.protocol.hosts import exit_codes
from hnefi.tools.arena import run, store
from hnefi.tools.arena.logs import LOG
from hnefi.tools.arena.loop import Loop
from hnefi.tools.arena.store import Store
from hnefi.tools.arena.values import GameResult, GameTask
from hnefi.tools.common import interrupts

FAKE = [sys.executable, str(Path(fake_arena.__file__))]


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
                    await asyncio.wait_for(abort.wait(), PROMPTLY)

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
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=100)
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
