"""Every command that keeps what it finishes, ended at random moments: by kill -9, by Ctrl-C, by a full disk.

A line in `COMMANDS` is how a command is started small, and what must be the same in the end as without all that. The
same words go on with what is there. `HNEFI_KILLS` says how many moments for each signal; `make crash-only` asks for 50.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import warm_hnefi
from crash_commands import COMMANDS, Command, words_of
from leftover_processes import expect_nobody

pytestmark = [
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc"),
]

MOMENTS = int(os.environ.get("HNEFI_KILLS", "1"))
HNEFI = (sys.executable, "-m", "hnefi.tools.cli")
WARM = (sys.executable, "-P", str(Path(warm_hnefi.__file__)))
"""For runs that nobody ends: what is killed must be the process itself, and a moment be one of its whole time."""
PART = (0.0, 1.0) if MOMENTS > 1 else (0.4, 0.9)
"""Which part of a command's time the moments are drawn from; a single one is in the middle of its work."""
SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
CHOSEN = {
    name: SIGNALS if MOMENTS > 1 else (signal.SIGKILL, SIGNALS[1 + number % 2])
    for number, name in enumerate(COMMANDS)
}
"""The signals that end a command: with a single moment, no more than one of those that it can handle."""
MARK = "HNEFI_KILL_TEST"


def started(
    command: Command, where: Path, mark: str, hnefi: Sequence[str] = HNEFI, **how: Any
) -> subprocess.Popen[str]:
    command.prepare(where)
    return subprocess.Popen(
        [*hnefi, *words_of(command, where)],
        cwd=where, env={**os.environ, MARK: mark}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, **how,
    )  # fmt: skip


def finished(command: Command, where: Path, mark: str, hnefi: Sequence[str] = WARM) -> Any:
    """Go on to the end; what came of it."""
    process = started(command, where, mark, hnefi)
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
                finished(COMMANDS[name], tmp_path_factory.mktemp("cold"), "", HNEFI)
            began = time.monotonic()
            found = finished(COMMANDS[name], tmp_path_factory.mktemp("whole"), "", HNEFI)
            known[name] = found, time.monotonic() - began
        return known[name]

    return whole


@pytest.mark.parametrize("name", COMMANDS)
def test_ended_at_any_moment_it_goes_on_to_the_same_end(
    name: str, tmp_path: Path, wholes: Callable[[str], tuple[Any, float]]
) -> None:
    """By one signal after the other, and each time it goes on with what the one before has left."""
    command, mark, dice = COMMANDS[name], uuid.uuid4().hex, random.Random(name)
    expected, seconds = wholes(name)
    where = tmp_path
    for attempt, number in enumerate(CHOSEN[name] * MOMENTS):
        process = started(command, where, mark)
        try:
            process.communicate(timeout=seconds * dice.uniform(*PART))
        except subprocess.TimeoutExpired:
            process.send_signal(number)
        _, errors = process.communicate(timeout=60)
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
        process = started(command, tmp_path, mark, WARM, preexec_fn=limited(size))
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
        for made in ("out.tafl", "out.tsv"):
            (tmp_path / made).unlink(missing_ok=True)
    assert finished(command, tmp_path, mark) == expected
