"""A run between engine processes: what is shown before it, what is left after it, and what it refuses."""

from __future__ import annotations

import asyncio
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest
from fake_arena import config
from patience import PROMPTLY

from hnefi.protocol.hosts import exit_codes
from hnefi.tools.arena import command, logs, option_reader, report_command, run, store
from hnefi.tools.arena.engine_slot import preflight
from hnefi.tools.arena.options import ConfigError
from hnefi.tools.arena.store import Store
from hnefi.tools.arena.values import EngineSpec
from hnefi.tools.common import compiling, interrupts

ARENA = [sys.executable, "-m", "hnefi.tools.arena.command"]
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
            process.send_signal(number)
            out, err = process.communicate(timeout=100)
        finally:
            process.kill()
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


@pytest.mark.process
def test_a_run_without_any_result_says_so_and_is_no_success(small: list[str], tmp_path: Path) -> None:
    """An engine that starts for the check before the first game, and then never again."""
    engine = tmp_path / "once"
    engine.write_text(
        f"#!/bin/sh\n[ -e {tmp_path}/begun ] && exit 3\n: > {tmp_path}/begun\n"
        f"exec {sys.executable} -I -S {Path(__file__).parents[1] / 'support' / 'shuffle_engine.py'}\n"
    )
    engine.chmod(0o755)
    done = arena("--engine", f"cmd={engine}", *small[2:], "--pairs", "1", "--out", tmp_path / "run")
    assert done.returncode == exit_codes.FAULTS, done.stderr + done.stdout
    assert "games +0 =0 -0 of 0 games" in " ".join(done.stdout.split())
    assert "2 games without a result: an engine did not start" in " ".join(done.stdout.split())


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
sleep = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]
subprocess.Popen(sleep)
subprocess.Popen(sleep, start_new_session=True)  # out of the group
runpy.run_path(sys.argv[1])
time.sleep(600)
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
    engine = f"cmd={sys.executable},args=-I -S {tmp_path / 'stubborn.py'} {shuffle},env.{marker}=1,quit=600"
    engines = ["--engine", engine, "--engine", engine]
    words = [*small[4:], *engines, "--out", str(tmp_path / "run"), "--wait", "5000"]
    with subprocess.Popen([*ARENA, *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        for text in process.stdout:
            if text.startswith("game "):
                break
        assert len(engines_of(marker)) == 6
        for _ in range(interruptions):
            process.send_signal(signal.SIGINT)
            time.sleep(interrupts.TWICE)
        process.communicate(timeout=100)  # in peace it takes those ten minutes
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
    usage, failed = exit_codes.USAGE, exit_codes.FAULTS
    bad = [
        (["--each", "option.Seed=-1"], "option Seed value '-1'", usage),
        (["--engine", "player=default,option.MultiPV=0"], "option MultiPV '0'", usage),
        (
            ["--engine", f"cmd={sys.executable},args=-I -S {fake} no-greeting,start=0.3"],
            "did not",
            failed,
        ),
        (["--engine", f"cmd={sys.executable},args=-I -S {fake},option.Hash=99"], "Hash", usage),
        (
            ["--openings-source", "file", "--openings-file", str(tmp_path / "none")],
            "none: No such file",
            usage,
        ),
        (["--pairs", "9"], "file has 8 distinct openings of 'brandubh': expected 9", usage),
    ]
    for words, message, status in bad:
        assert command.main([*small, "--out", str(tmp_path / "run"), *words]) == status
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
