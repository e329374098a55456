"""Ctrl-C, TERM and HUP in every long command, also while something in C keeps its threads: soon, with all children."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ladder_parts import tiny

from hnefi.tools.common import interrupts

pytestmark = [pytest.mark.process, pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")]

STUCK = [sys.executable, str(Path(__file__).parents[1] / "support" / "stuck.py")]
GAME = Path(__file__).parents[2] / "docs/analyze/afternoon.tafl"
BALANCE = "balance brandubh --players random-terminal --games 4 --jobs 1 --out run"
KEEP = {
    "balance": ("hnefi.tools.balance.playing:own_openings", BALANCE),
    "balance, games": ("hnefi.tools.balance.playing:play", BALANCE),
    "evolve": (
        "hnefi.tools.evolve.tournament:contest",
        "evolve es --variant brandubh --generations 9 --out run",
    ),
    "experiments": (
        "hnefi.tools.evolve.contestants:_work",
        "experiments hingston --quick --jobs 1 --out run",
    ),
    "tune": ("hnefi.tools.tune.parts:play", "tune games brandubh --games 4 --nodes 5 --out run"),
    "ladder": ("hnefi.tools.arena.in_process:play_game", "ladder run --ladder LADDER --jobs 1 --out run"),
    "analyze": (
        "hnefi.tools.analyze.analyser:Analyser.look",
        f"analyze {GAME} --game 1 --nodes 1 -o out.tafl",
    ),
    "evaluator match": (
        "hnefi.tools.common.matches:play_games",
        "evaluator match zero simple --variant brandubh --pairs 2",
    ),
    "solve": ("hnefi.tools.solve.build:Builder.run", "solve mini-four --attackers 1 --out table --yes"),
    "warmup": ("hnefi.engine.warmup:warm", "warmup --quiet"),
}
"""Commands that keep what they finish: what gets stuck in them, and their words."""
END = {
    "perft": ("hnefi.engine.perft:perft", "perft brandubh 2"),
    "verify": ("hnefi.tools.verify:replay_file", "verify nothing.csv --variant copenhagen"),
    "bench": ("hnefi.engine.bench:bench", "bench"),
    "convert": ("hnefi.tools.convert:_games", f"convert {GAME} out.csv"),
}
"""Commands that simply end."""


def begun(where: Path, place: str, words: list[str]) -> subprocess.Popen[str]:
    """The command, when it is stuck."""
    event = where / "stuck"
    process = subprocess.Popen(
        [*STUCK, place, str(event), *words],
        cwd=where, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    end = time.monotonic() + 250
    while not event.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)
    return process


SOON = 60.0
"""Seconds for what ends at once: everything here is stuck for good, or for ten minutes."""


def expect_end(process: subprocess.Popen[str], status: int) -> str:
    """It ends, with everybody it has started, which by itself it never would; what it said on standard error."""
    _, errors = process.communicate(timeout=SOON)
    until = time.monotonic() + SOON
    assert process.returncode == status, errors
    assert "Traceback" not in errors
    while group := list(members(process.pid)):
        assert time.monotonic() < until, group
        time.sleep(0.02)
    return errors


def members(session: int) -> Iterator[int]:
    """Living processes of a session; engines have sessions of their own and are found by their parents."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(words[3]) == session and words[0] not in "ZX":
            yield int(entry.name)


@pytest.mark.parametrize("name", KEEP)
def test_what_keeps_its_work_ends_soon_although_it_is_stuck(name: str, tmp_path: Path) -> None:
    place, text = KEEP[name]
    words = text.replace("LADDER", str(tiny(tmp_path)) if "LADDER" in text else "").split()
    process = begun(tmp_path, place, words)
    process.send_signal(signal.SIGINT)
    said = expect_end(process, 1)
    assert "interrupted" in said
    assert ("nothing was done yet" in said) == (name == "solve")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_mean_the_same(number: signal.Signals, tmp_path: Path) -> None:
    process = begun(tmp_path, *split(*KEEP["balance"]))
    process.send_signal(number)
    assert "hnefi balance resume run" in expect_end(process, 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_whole_group_ends_only_the_command_itself(
    number: signal.Signals, tmp_path: Path
) -> None:
    """A terminal and `timeout` signal the whole process group: the workers, which are starting here, ignore it and are
    ended by the command."""
    process = subprocess.Popen(
        [sys.executable, "-m", "hnefi.tools.cli", "warmup", "--jobs", "2"],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    end = time.monotonic() + 250
    while not any("popen_loky" in command_of(pid) for pid in members(process.pid)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)
    os.killpg(process.pid, number)
    said, errors = process.communicate(timeout=250)
    assert (process.returncode, said) == (1, ""), errors
    assert errors.endswith("interrupted: what is compiled is kept, the same command continues\n"), errors
    assert "Traceback" not in errors


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def split(place: str, text: str) -> tuple[str, list[str]]:
    return place, text.split()


@pytest.mark.parametrize(
    ("name", "number"),
    [*((name, signal.SIGINT) for name in END), ("perft", signal.SIGTERM), ("perft", signal.SIGHUP)],
)
def test_what_keeps_nothing_is_ended_by_the_signal(name: str, number: signal.Signals, tmp_path: Path) -> None:
    process = begun(tmp_path, *split(*END[name]))
    process.send_signal(number)
    # Convert removes what it has half written first; to a shell that is the same.
    assert expect_end(process, 128 + number if name == "convert" else -number) == ""


def script(text: str) -> subprocess.Popen[str]:
    """A program that prints a line when it is ready to be interrupted."""
    process = subprocess.Popen(
        [sys.executable, "-c", "from hnefi.tools.common import interrupts\nimport time\n" + text],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", process.communicate()
    return process


def test_who_swallows_exceptions_ends_all_the_same() -> None:
    process = script(
        "with interrupts.caught(lambda: ['kept']):\n"
        "    print('ready', flush=True)\n"
        "    while True:\n"
        "        try: time.sleep(0.01)\n"
        "        except BaseException: pass\n"
    )
    process.send_signal(signal.SIGINT)
    assert expect_end(process, 1) == "kept\n"


def test_the_first_ends_the_block_and_the_second_the_process() -> None:
    text = (
        "interrupts.GRACE = 600.0\n"
        "interrupts.is_program()\n"
        "with interrupts.caught(lambda: ['kept']) as caught:\n"
        "    print('ready', flush=True)\n"
        "    while True:\n"
        "        interrupts.check(); time.sleep(0.01)\n"
        "print(caught.ended, flush=True)\n"
    )
    process = script(text + "raise SystemExit(interrupts.ended(1))")
    process.send_signal(signal.SIGINT)
    assert expect_end(process, 1) == "kept\n"

    process = script(text + "time.sleep(600)")
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"
    time.sleep(0.3)  # nearer to each other they are one
    process.send_signal(signal.SIGINT)
    assert expect_end(process, 1) == "kept\n"


def test_two_at_once_are_one() -> None:
    """As `timeout` sends them: to the process, then to its group."""
    process = script(
        # However long this machine takes for each of them.
        "interrupts.GRACE = interrupts.TWICE = 600.0\n"
        "with interrupts.caught(lambda: ['kept']) as caught:\n"
        "    print('ready', flush=True)\n"
        "    while True:\n"
        "        time.sleep(0.05); interrupts.check()\n"
        "print('ended', caught.ended, flush=True)\n"
        "raise SystemExit(7)\n"
    )
    process.send_signal(signal.SIGINT)
    os.killpg(process.pid, signal.SIGINT)
    assert expect_end(process, 7) == "kept\n"


def test_who_ends_the_process_waits_for_last_words_that_others_have_begun(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The main thread had taken them on and was held up before it printed them: the process ended without a word."""
    begun, go_on = threading.Event(), threading.Event()

    def words() -> list[str]:
        begun.set()
        go_on.wait()
        return ["the last words"]

    caught = interrupts.Caught(words)
    first, second = threading.Thread(target=caught.say), threading.Thread(target=caught.say)
    first.start()
    begun.wait()
    second.start()
    second.join(0.1)
    early = not second.is_alive()
    go_on.set()
    first.join()
    second.join()
    assert not early
    assert capsys.readouterr().err == "the last words\n"


def test_what_fails_because_an_interrupt_undoes_it_says_nothing() -> None:
    process = script(
        "import threading\n"
        "undoing, failed = threading.Event(), threading.Event()\n"
        "def undo():\n"
        "    undoing.set(); failed.wait(); time.sleep(0.2)\n"
        "with interrupts.undone(undo):\n"
        "    print('ready', flush=True)\n"
        "    undoing.wait(); failed.set()\n"
        "    raise ValueError('the child has gone')\n"
    )
    process.send_signal(signal.SIGINT)
    assert expect_end(process, 130) == ""


def test_the_end_of_the_terminal_is_ignored_under_nohup() -> None:
    process = script(
        "import os, signal, sys\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "with interrupts.caught(lambda: ['kept']):\n"
        "    print('ready', flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n"
        "    for _ in range(20): time.sleep(0.01); interrupts.check()\n"
        "raise SystemExit(7)\n"
    )
    assert expect_end(process, 7) == ""


def test_children_and_their_children_end_too(tmp_path: Path) -> None:
    told = tmp_path / "pids"
    process = script(
        "import subprocess, sys\n"
        "with interrupts.caught(lambda: ['kept']):\n"
        f"    subprocess.Popen(['sh', '-c', 'sleep 600 & echo $! $$ > {told}.new; mv {told}.new {told}; wait'],"
        " start_new_session=True)\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(600)\n"
    )
    end = time.monotonic() + 60
    while not told.exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    expect_end(process, 1)
    for pid in map(int, re.findall(r"\d+", told.read_text())):
        while alive(pid):
            assert time.monotonic() < end + SOON, pid
            time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
