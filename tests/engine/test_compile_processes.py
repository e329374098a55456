"""Compiling seen from outside: one process compiles and others wait, progress is reported, the warm-up makes all."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from compile_parts import SMALL, compiled, linked, run

import hnefi.engine
from hnefi.engine import evaluators, warmup
from hnefi.engine.compile import cache, jit, progress
from hnefi.engine.compile.progress import Progress


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "hnefi"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "small_kernels.py"
    path.write_text(SMALL)
    return path


# One compiles, the others wait


@contextlib.contextmanager
def held(home: Path, says: list[Any]) -> Iterator[int]:
    """Another process' lock, as far as anybody can tell: locks belong to open files."""
    home.mkdir(parents=True, exist_ok=True)
    file = os.open(home / cache._lock_name(), os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.pwrite(file, json.dumps(says).encode(), 0)
        yield file
    finally:
        os.close(file)


def test_whoever_comes_second_waits_and_says_what_the_other_does(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "INTERVAL", 0.01)
    lock = cache.Lock()
    heard: list[Progress] = []
    told = threading.Event()

    def listen(report: Progress) -> None:
        heard.append(report)
        if report.part == "search":
            told.set()

    waited: list[bool] = []
    with progress.listening(listen), held(home, [3, 9, "search", 12.0, 40.0]):
        waiting = threading.Thread(target=lambda: waited.append(lock.acquire("moves")))
        waiting.start()
        assert told.wait(100)
        assert waiting.is_alive()
    waiting.join(100)
    assert waited == [True]
    assert heard[-1].elsewhere
    assert (heard[-1].done, heard[-1].total, heard[-1].remaining) == (3, 9, 40.0)
    assert not lock.acquire("another")
    lock.release()
    with held(home, []):
        pass


def test_a_stopped_compiler_is_waited_for_no_longer(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_STALE", 0.3)
    lock = cache.Lock()
    with held(home, []) as file:
        os.utime(file, (1, 1))
        assert lock.acquire("moves")
        assert lock._file is None


def test_a_session_keeps_the_lock(home: Path) -> None:
    lock = cache.Lock()
    with lock.session():
        lock.acquire("part")
        lock.release()
        assert lock._file is not None
        with lock.session():
            pass
        assert lock._file is not None
    assert lock._file is None
    assert home.is_dir()


@pytest.mark.process
@compiled
@linked
def test_six_at_once_on_an_empty_cache_compile_once(script: Path, home: Path) -> None:
    env = {**os.environ, "XDG_CACHE_HOME": str(home.parent)}
    env.pop("NUMBA_CACHE_DIR", None)
    processes = [
        subprocess.Popen([sys.executable, str(script)], env=env, stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    answers = sorted(process.communicate(timeout=200)[0] for process in processes)
    # All missed at first; whoever found it after the wait has a hit and compiled nothing.
    assert len(list(home.glob("*.code"))) == 1
    assert answers.count("1 0\n") == 1
    assert answers.count("0 1\n") == 5


BETWEEN = """
import os, subprocess, sys
from hnefi.engine.compile import cache
if os.environ.pop("HNEFI_TEST_FIRST", ""):
    acquire = cache.LOCK.acquire
    def late(part):
        subprocess.run([sys.executable, __file__], check=True, stdout=subprocess.DEVNULL)
        return acquire(part)
    cache.LOCK.acquire = late
"""
"""Before the first process takes the lock, another one compiles and is gone: nobody has to wait."""


@pytest.mark.process
@compiled
@linked
def test_what_was_compiled_between_the_look_and_the_lock_is_found(script: Path, home: Path) -> None:
    script.write_text(BETWEEN + SMALL)
    env = {**os.environ, "XDG_CACHE_HOME": str(home.parent), "HNEFI_TEST_FIRST": "yes"}
    env.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "0 1\n"


WAITS = """
import contextlib
from hnefi.engine.compile import progress

@contextlib.contextmanager
def waiting(part, known=progress.waiting):
    print("waits", flush=True)
    with known(part) as heard:
        yield heard

progress.waiting = waiting
"""


@pytest.mark.process
@compiled
@linked
@pytest.mark.parametrize("name", ["engine/search/alphabeta.py", "engine/session.py"])
def test_only_who_would_compile_the_same_waits(name: str, home: Path, tmp_path: Path, script: Path) -> None:
    """Another checkout in the same cache, with an edited kernel or with an edited file that has none."""
    shutil.copytree(Path(hnefi.engine.__file__).parent, tmp_path / "hnefi" / "engine", symlinks=False)
    with (tmp_path / "hnefi" / name).open("a") as file:
        file.write("\n# edited\n")
    script.write_text(WAITS + SMALL)
    env = {**os.environ, "XDG_CACHE_HOME": str(home.parent), "PYTHONPATH": str(tmp_path)}
    same = name == "engine/session.py"
    lock = cache.Lock()
    assert not lock.acquire("search")
    with subprocess.Popen([sys.executable, str(script)], env=env, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == ("waits\n" if same else "1 0\n")
        lock.release()
        assert other.communicate(timeout=200)[0] == ("1 0\n" if same else "")


def test_locks_of_versions_that_are_gone_go(home: Path) -> None:
    home.mkdir(parents=True)
    for name in ("old.lock", "new.lock"):
        (home / name).touch()
    old = time.time() - (cache.KEPT_DAYS + 1) * 86400
    os.utime(home / "old.lock", (old, old))
    cache.save("an_entry-1", b"x")
    assert [path.name for path in home.glob("*.lock")] == ["new.lock"]


@pytest.mark.process
@compiled
@linked
def test_a_killed_compiler_leaves_the_lock_and_what_it_finished(
    home: Path, tmp_path: Path, script: Path
) -> None:
    slow = tmp_path / "slow.py"
    slow.write_text(
        textwrap.dedent(
            """
            import time
            from hnefi.engine.compile import cache
            cache.save("finished-1", b"x")
            cache.LOCK.acquire("search")
            print("compiling", flush=True)
            time.sleep(600)
            """
        )
    )
    env = {**os.environ, "XDG_CACHE_HOME": str(home.parent)}
    with subprocess.Popen([sys.executable, str(slow)], env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "compiling\n"
        process.send_signal(signal.SIGKILL)
    assert run(script, home).stdout == "1 0\n"
    assert cache.load("finished-1") == b"x"


# What is told


def test_a_plan_counts_its_parts_and_knows_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.plan({"moves": 4.0, "search": 10.0, "terms": 2.0}):
        progress.begin("moves")
        now[0] += 8.0
        assert progress.current() == Progress(0, 3, "moves", 8.0, remaining=12.0)
        progress.end()
        progress.loaded("terms")
        progress.begin("search")
        now[0] += 5.0
        # This machine takes twice the usual time.
        assert progress.current() == Progress(2, 3, "search", 13.0, remaining=15.0)
        progress.end()
        progress.begin("unheard of")
        assert progress.current() == Progress(3, 4, "unheard of", 13.0, remaining=None)
        progress.end()
    assert progress.current() is None
    progress.begin("alone")
    assert progress.current() == Progress(0, 1, "alone", 0.0)
    assert progress.end() == 0.0
    assert progress.end() == 0.0


@pytest.mark.parametrize(("name", "ready"), [("tafl", 1), ("hex", 0)])
def test_parts_that_were_loaded_before_are_counted(name: str, ready: int) -> None:
    """As by an engine that was killed while it compiled: nothing that was finished seems lost."""
    parts = {"moves": 2.0, "search": 10.0}
    with progress.plan(parts, "tafl"):
        progress.loaded("moves")
    with progress.plan(parts, name):
        progress.begin("search")
        now = progress.current()
        assert now is not None
        assert (now.done, now.total) == (ready, 2)
        progress.end()


def test_a_part_that_was_held_up_does_not_make_hours_of_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.plan({"moves": 2.0, "search": 10.0}):
        progress.begin("moves")
        now[0] += 400.0
        progress.end()
        progress.begin("search")
        left = progress.current()
        assert left is not None
        assert left.remaining == 10.0 * progress.SLOWEST
        progress.end()


def test_listeners_hear_of_it_and_their_faults_stop_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "INTERVAL", 0.01)
    heard = threading.Event()

    def broken(_: Progress) -> None:
        raise ValueError("a fault of the listener")

    with progress.listening(broken), progress.listening(lambda _: heard.set()):
        progress.begin("part")
        assert heard.wait(100)
        heard.clear()
        assert heard.wait(100)
        progress.end()


@pytest.mark.parametrize("values", [None, [], {}, [1], [1, 2, 3, 4, 5], ["1", 2, "x", 0.0, None], "text"])
def test_foreign_reports_are_none(values: object) -> None:
    assert progress.of_numbers(values) is None


def test_reports_survive_the_way_through_the_lock_file() -> None:
    report = Progress(3, 9, "search", 12.5, remaining=None)
    assert progress.of_numbers(json.loads(json.dumps(progress.as_numbers(report)))) == report


def test_times_are_learned(home: Path) -> None:
    assert cache.times() == {}
    cache.note_time("search root/tafl", 12.345)
    cache.note_time("make/hex", 1.0)
    assert cache.times() == {"search root/tafl": 12.35, "make/hex": 1.0} or cache.times() == {
        "search root/tafl": 12.34,
        "make/hex": 1.0,
    }
    (home / "times.json").write_text("[not json")
    assert cache.times() == {}


# Warming up


@pytest.mark.process
def test_loading_compiles_nothing(home: Path) -> None:
    """What is in no cache stays uncompiled: whoever has not said what is to be played need not wait for all of it."""
    script = (
        "from hnefi.engine import warmup\n"
        "from hnefi.engine.compile import cache\n"
        "print(warmup.load(), cache.kept())\n"
    )
    env = {**os.environ, "XDG_CACHE_HOME": str(home.parent)}
    env.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=200, check=True
    )
    assert done.stdout == ("False []\n" if jit.LINKED else "True []\n")


@pytest.mark.process
@compiled
@linked
def test_usual_parts_are_those_that_are_compiled() -> None:
    """The table behind the estimates names the parts that there are."""
    script = (
        "from hnefi.engine import warmup\n"
        "from hnefi.engine.compile import progress\n"
        "seen = {}\n"
        "progress.loaded = progress.begin = lambda part: seen[kind].add(part)\n"
        "for kind in warmup.USUAL:\n"
        "    seen[kind] = set()\n"
        "    first = all(one[0] != kind[0] for one in seen if one != kind)\n"
        "    variant, settings = warmup.example(kind)\n"
        "    assert warmup.kind(variant, settings) == kind\n"
        "    warmup.prepare(variant, settings)\n"
        "    named = {**warmup.USUAL[kind], **(warmup.SHARED.get(kind[0], {}) if first else {})}\n"
        "    extra = set(named) - seen[kind]\n"
        "    if extra: print(kind, extra)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout == ""
    assert sum(map(len, warmup.USUAL.values())) > 20


def test_shared_parts_are_expected_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the first kind of a game; what another kind needs besides does not include them."""
    plans: list[set[str]] = []

    @contextlib.contextmanager
    def plan(parts: dict[str, float], _: object) -> Iterator[None]:
        plans.append(set(parts))
        yield

    monkeypatch.setattr(progress, "plan", plan)
    other, asked = ("tafl", "alphabeta", "nnue"), ("tafl", "alphabeta", "default")
    for prepared in (set(), {other}, {("hex", "alphabeta", "default")}):
        monkeypatch.setattr(warmup, "_prepared", prepared)
        with warmup._compiling(asked):
            pass
    own = set(warmup.USUAL[asked])
    assert plans == [own | set(warmup.SHARED["tafl"]), own, own | set(warmup.SHARED["tafl"])]


def test_what_is_seldom_asked_for_is_compiled_when_everything_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all kinds that the table knows, with counting and evaluating; an evolution's games with everything else."""
    seen: set[tuple[str, ...]] = set()
    monkeypatch.setattr(warmup, "prepare", lambda *how: seen.add(warmup.kind(*how)))
    monkeypatch.setattr(warmup, "_count", lambda position: seen.add((position.variant.game, "count")))
    monkeypatch.setattr(
        warmup, "_evaluate", lambda position, names: seen.add((position.variant.game, "values", *names))
    )
    monkeypatch.setattr(warmup, "_contest", lambda variant: seen.add((variant.game, "games")))
    warmup.warm()
    usual, more = set(seen), set(warmup.USUAL) - {("tafl", "minimax", "default")}
    warmup.warm(everything=True)
    assert usual < seen
    for game in warmup.SMALL:
        assert (game, "count") in usual
        assert (game, "values", evaluators.HAND, "zero") in usual
        assert {
            (game, "alphabeta", "default"),
            (game, "alphabeta", "loaded"),
            (game, "mcts", "default"),
        } <= usual
        assert {(game, "games"), (game, "mcts", "policy"), (game, "mcts", "loaded")} <= seen - usual
    assert more <= seen
    assert warmup.USUAL_KIND in usual


def test_portions_are_all_there_is_to_compile() -> None:
    algorithms = {*warmup.ALGORITHMS, warmup.OTHERS}
    assert set(warmup.PORTIONS) == set(warmup.SMALL)
    assert {kind[:2] for kind in warmup.USUAL} <= {(game, one) for game in warmup.SMALL for one in algorithms}


PORTIONS = """
import importlib
from hnefi.engine import warmup

warmup.PORTIONS = {"first": 1.0, "second": 1.0}
warmup.warm_portion = lambda portion, everything: importlib.import_module(portion)
"""
"""In every process: a portion is no more than a small module of kernels."""


@compiled
@linked
@pytest.mark.process
@pytest.mark.slow
def test_several_processes_warm_up_together(home: Path, tmp_path: Path) -> None:
    """They compile under the one lock that the first holds; afterwards everything is there."""
    (tmp_path / "sitecustomize.py").write_text(PORTIONS)
    for name in ("first", "second"):
        (tmp_path / f"{name}.py").write_text(SMALL)
    script = (
        "from hnefi.engine import warmup\n"
        "from hnefi.engine.compile import cache\n"
        "from hnefi.tools import warmup as command\n"
        "command.warm(2)\n"
        "assert sorted(one.entry for one in cache.kept()) == ['first.count', 'second.count']\n"
        "with cache.loading_only():\n"
        "    warmup.warm()\n"
    )
    env = {**os.environ, "XDG_CACHE_HOME": str(home.parent), "PYTHONPATH": str(tmp_path)}
    env.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout == "1 0\n1 0\n0 1\n0 1\n"
    assert done.stderr == ""
