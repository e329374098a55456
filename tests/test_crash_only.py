"""Every command that keeps what it finishes, ended at random moments: by kill -9, by Ctrl-C, by a full disk.

A line in `COMMANDS` is how a command is started small, and what must be the same in the end as without all that. The
same words go on with what is there. `HNEFI_KILLS` says how many moments each (1); `make crash-only` asks for 50.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ladder_parts import tiny
from patience import PROMPTLY
from test_arena_kill import expect_nobody

from hnefi.tools.arena.report import Stored
from hnefi.tools.arena.store import run_digest
from hnefi.tools.experiments.hingston import Plan

pytestmark = [
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc"),
]

MOMENTS = int(os.environ.get("HNEFI_KILLS", "1"))
HNEFI = [sys.executable, "-m", "hnefi.tools.cli"]
PART = (0.0, 1.0) if MOMENTS > 1 else (0.4, 0.9)
"""Which part of a command's time the moments are drawn from; a single one is in the middle of its work."""
MARK = "HNEFI_KILL_TEST"
GAME = """[Variant "brandubh"]
[Attackers "ann"]
[Defenders "bob"]

1. d1c1 d5c5 2. c1b1 c5b5 3. b1b2 b5b6 *
"""


def sums(folder: Path, *patterns: str) -> dict[str, str]:
    """The files of these patterns by their hashes."""
    found = sorted(path for pattern in patterns for path in folder.glob(pattern))
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def balanced(where: Path) -> Any:
    lines = [json.loads(line) for line in (where / "run/games.jsonl").read_text().splitlines()]
    games = sorted(
        json.dumps([line["rules"], line["player"], game]) for line in lines for game in line["games"]
    )
    assert len(set(games)) == len(games)
    return games, sums(where, "run/report.*", "run/cells.csv", "run/plan.json")


def evolved(where: Path) -> Any:
    assert not list(where.glob("**/*.new"))
    return sums(where, "run/**/archive/*", "run/**/champion.safetensors", "run/**/config.toml")


def experimented(where: Path) -> Any:
    tests = (where / "run/tests.jsonl").read_text().splitlines()
    assert len(set(tests)) == len(tests)
    return sorted(tests), sums(where, "run/runs/**/archive/*")


def tuned(where: Path) -> Any:
    assert not list(where.glob("run/**/*.part"))
    return sums(where, "run/**/*.npy")


def climbed(where: Path) -> Any:
    return run_digest(Stored(where / "run").progress.counted)


def analysed(where: Path) -> Any:
    assert not (where / "out.tafl.progress.jsonl").exists()
    return re.sub(r"time=\d+ ?", "", (where / "out.tafl").read_text())


def analysis_done(where: Path) -> bool:
    return (where / "out.tafl").exists() and not (where / "out.tafl.progress.jsonl").exists()


def with_ladder(where: Path) -> None:
    if not (where / "tiny.toml").exists():
        tiny(where)


def with_plan(where: Path) -> None:
    """A tiny experiment; `resume` goes on with one that has not begun."""
    plan = Plan(
        rules=("brandubh",), trained=("random-blind",), seeds=(1, 2), generations=2, every=2,
        tests={1: 1, 2: 1, 3: 1}, final={1: 1, 2: 1, 3: 1}, quick=True,
    )  # fmt: skip
    (where / "run").mkdir(exist_ok=True)
    if not (where / "run/plan.json").exists():
        (where / "run/plan.json").write_text(json.dumps(plan.as_json()))


def with_game(where: Path) -> None:
    (where / "game.tafl").write_text(GAME)


class Command(NamedTuple):
    words: str
    same: Callable[[Path], Any]
    prepare: Callable[[Path], None] = lambda _: None
    again: str = ""
    """What goes on, where it is not the same words."""
    done: Callable[[Path], bool] = lambda _: False
    """Whether nothing is left to do, for a command that then refuses to begin once more."""


COMMANDS = {
    "balance": Command(
        "balance brandubh --players random-terminal,simple --games 24 --jobs 2 --plain --out run", balanced
    ),
    "evolve": Command(
        "evolve es --variant brandubh --random-matches 1 --generations 4 --seeds 2 --jobs 2 --plain --out run",
        evolved,
    ),
    "evolve, one": Command(
        "evolve es --variant brandubh --random-matches 1 --generations 8 --jobs 1 --plain --out run", evolved
    ),
    "experiments": Command("experiments resume run --jobs 2 --plain", experimented, with_plan),
    "tune": Command("tune games brandubh --games 24 --nodes 5 --jobs 2 --out run", tuned),
    "ladder": Command("ladder run --ladder tiny.toml --jobs 2 --plain --out run", climbed, with_ladder),
    "analyze": Command(
        "analyze game.tafl --nodes 2000 --independent -o out.tafl", analysed, with_game, done=analysis_done
    ),
    "arena": Command(
        "arena random-blind random-terminal --variants brandubh --pairs 4 --nodes 50 --concurrency 2 --seed 3"
        " --plain --out run",
        climbed,
        again="arena resume run --plain",
    ),
}


def words_of(command: Command, where: Path) -> list[str]:
    return (command.again if command.again and (where / "run").exists() else command.words).split()


def started(command: Command, where: Path, mark: str, **how: Any) -> subprocess.Popen[str]:
    command.prepare(where)
    return subprocess.Popen(
        [*HNEFI, *words_of(command, where)],
        cwd=where, env={**os.environ, MARK: mark}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, **how,
    )  # fmt: skip


def finished(command: Command, where: Path, mark: str) -> Any:
    """Go on to the end; what came of it."""
    process = started(command, where, mark)
    _, errors = process.communicate(timeout=250)
    assert process.returncode == 0, errors
    return command.same(where)


@pytest.fixture(scope="module")
def wholes(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Any, float]]:
    """What comes of a command that nobody disturbs, and how long it takes."""
    known: dict[str, tuple[Any, float]] = {}

    def whole(name: str) -> tuple[Any, float]:
        if name not in known:
            if MOMENTS > 1:
                # What the first of all runs still has to compile or to read would make many moments too late.
                finished(COMMANDS[name], tmp_path_factory.mktemp("cold"), "")
            began = time.monotonic()
            found = finished(COMMANDS[name], tmp_path_factory.mktemp("whole"), "")
            known[name] = found, time.monotonic() - began
        return known[name]

    return whole


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", COMMANDS)
def test_ended_at_any_moment_it_goes_on_to_the_same_end(
    name: str, number: signal.Signals, tmp_path: Path, wholes: Callable[[str], tuple[Any, float]]
) -> None:
    command, mark, dice = COMMANDS[name], uuid.uuid4().hex, random.Random(f"{name} {number}")
    expected, seconds = wholes(name)
    where = tmp_path
    for attempt in range(MOMENTS):
        process = started(command, where, mark)
        try:
            process.communicate(timeout=seconds * dice.uniform(*PART))
        except subprocess.TimeoutExpired:
            process.send_signal(number)
        asked = time.monotonic()
        _, errors = process.communicate(timeout=60)
        assert time.monotonic() - asked < PROMPTLY
        if number != signal.SIGKILL and process.returncode not in (0, -number):
            # Before our first line runs, Python ends in its own way.
            assert process.returncode == 1 or "KeyboardInterrupt" in errors or errors == "interrupted\n", (
                errors
            )
            assert "Traceback" not in errors or errors.endswith("KeyboardInterrupt\n"), errors
        expect_nobody(mark)
        if process.returncode == 0 or command.done(where):
            assert command.same(where) == expected
            where = tmp_path / f"again-{attempt}"
            where.mkdir()
    assert finished(command, where, mark) == expected
    expect_nobody(mark)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_is_said_and_nothing_is_lost(
    name: str, tmp_path: Path, wholes: Callable[[str], tuple[Any, float]]
) -> None:
    """No file may grow beyond so many bytes, as under a quota: at first too few for anything."""
    command, mark = COMMANDS[name], uuid.uuid4().hex
    expected, _ = wholes(name)

    def limited(size: int) -> Callable[[], None]:
        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

        return limit

    codes = []
    for size in (64, 400, 1500) if MOMENTS > 1 else (64, 1500):
        process = started(command, tmp_path, mark, preexec_fn=limited(size))
        said, errors = process.communicate(timeout=250)
        codes.append(process.returncode)
        assert process.returncode in (0, 4), said + errors
        if process.returncode:
            assert "File too large" in said + errors
            assert "Traceback" not in errors, errors
        expect_nobody(mark)
    assert 4 in codes
    if codes[-1] == 0:
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        (tmp_path / "out.tafl").unlink(missing_ok=True)
    assert finished(command, tmp_path, mark) == expected
