"""The machinery of the tests themselves: kinds, order, rounds."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import conftest
import engine_pool
import pytest
from engine_pool import Pool, PooledEngine
from leftover_processes import wait_until
from patience import PROMPTLY
from steady import without_round
from warm_engines import HOOK, WARM, serving

from hnefi.engine import catalogue
from hnefi.protocol import fork_client
from hnefi.protocol.client import Engine, own_command
from hnefi.tools.common import interrupts

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("nodeid", "test"),
    [
        ("tests/a.py::test_b", "tests/a.py::test_b"),
        ("tests/a.py::test_b[round-3]", "tests/a.py::test_b"),
        ("tests/a.py::test_b[round-12-x-y]", "tests/a.py::test_b[x-y]"),
        ("tests/a.py::test_b[x-round-12-y]", "tests/a.py::test_b[x-y]"),
        ("tests/a.py::test_b[x-round-2]", "tests/a.py::test_b[x]"),
    ],
)
def test_rounds_are_counted_as_one_test(nodeid: str, test: str) -> None:
    assert without_round(nodeid) == test


def test_the_ten_variants_are_ten_that_ship() -> None:
    assert len(conftest.TEN) == 10
    assert set(catalogue.names()) >= conftest.TEN


def test_files_that_take_long_begin_first() -> None:
    """Two tests that start processes take longer than fifty that do not."""

    def item(path: str, *kinds: str) -> Any:
        return SimpleNamespace(
            path=Path(path), iter_markers=lambda: [getattr(pytest.mark, kind).mark for kind in kinds]
        )

    items = [*[item("many")] * 50, *[item("few", "process")] * 2, item("one", "slow", "process", "skipif")]
    many, few, one = conftest._seconds(items, [Path("many"), Path("few"), Path("one")])
    assert many < few < one


def collect(*words: str, **environment: str) -> list[str]:
    """What pytest would run, in its order."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *words]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={"PATH": "", **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return [line for line in done.stdout.splitlines() if "::" in line]


@pytest.mark.process
def test_files_are_shuffled_and_variants_sampled() -> None:
    files = [
        "tests/engine/test_svg.py",
        "tests/protocol/test_format.py",
        "tests/engine/test_labels.py",
        "tests/engine/test_reasons.py",
    ]
    first, second = (collect(*files, HNEFI_ORDER=word) for word in "ab")
    assert first != second
    assert sorted(first) == sorted(second)
    drawn = collect(files[0], "-m", "not exhaustive")
    assert 10 <= len(drawn) < len(catalogue.names()) < sum(files[0] in test for test in first)


GUARDED = """
import subprocess, sys
import pytest
{mark}
def test_it():
    subprocess.run([sys.executable, "-c", ""], check=True)
"""


def run_pytest(folder: Path) -> subprocess.CompletedProcess[str]:
    """What pytest says of the tests in a folder, with the settings and hooks of this suite."""
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    options = ["-q", "-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml"), str(folder)]
    command = [sys.executable, "-m", "pytest", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.process
def test_an_unmarked_process_fails(tmp_path: Path) -> None:
    for mark, status in (("", 1), ("@pytest.mark.process", 0)):
        (tmp_path / "test_guarded.py").write_text(GUARDED.format(mark=mark))
        done = run_pytest(tmp_path)
        assert done.returncode == status, done.stdout
        assert ("expected the mark pytest.mark.process" in done.stdout) == bool(status), done.stdout


BLOCKING = """
import signal

def test_it():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})

def test_after_it():
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())
"""


@pytest.mark.process
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_test_that_blocks_signals_fails(tmp_path: Path) -> None:
    """One did, and a program that a later test had started no longer ended on Ctrl-C."""
    (tmp_path / "test_blocking.py").write_text(BLOCKING)
    done = run_pytest(tmp_path)
    assert "leaves signals blocked: {<Signals.SIGINT: 2>}" in done.stdout
    assert "1 failed, 1 passed" in done.stdout


@pytest.mark.process
@pytest.mark.skipif(not fork_client.possible(), reason="cannot fork engines here")
def test_a_signal_that_finds_no_fork_any_more_changes_no_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It came between the fork's end and its status; what stood for the fork then began anew, without input, and ended
    with 0."""
    monkeypatch.setenv(WARM, str(tmp_path / "socket"))
    monkeypatch.setenv("PYTHONPATH", str(HOOK))
    with socket.socket(socket.AF_UNIX) as door, subprocess.Popen(["sleep", "600"]) as fork:
        door.bind(str(tmp_path / "socket"))
        door.listen()
        door.settimeout(PROMPTLY)
        command = [sys.executable, "-P", str(engine_pool.FOLDER / "warm_hnefi.py"), "--version"]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL) as shadow:
            lifeline, _ = door.accept()
            with lifeline:
                _, descriptors, _, _ = socket.recv_fds(lifeline, 1 << 20, 8)
                for descriptor in descriptors:
                    os.close(descriptor)
                lifeline.settimeout(PROMPTLY)
                lifeline.sendall(f"pid {fork.pid}".encode())
                opened = Path(f"/proc/{shadow.pid}/fd")
                wait_until(lambda: any("pidfd" in str(one.readlink()) for one in opened.iterdir()))
                fork.kill()
                fork.wait()
                assert lifeline.recv(16) == b""
                shadow.terminate()
                lifeline.sendall(b"status 7")
            assert shadow.wait() == 7


@pytest.mark.process
def test_a_command_that_ends_all_its_children_ends_no_engine_of_other_tests(tmp_path: Path) -> None:
    """Else all tests that come after it in its process would start engines cold, or be given dead ones."""
    with (
        contextlib.nullcontext() if os.environ.get(WARM) else serving(),
        Pool(str(tmp_path / "pool")) as pool,
    ):
        pool.idle.append(PooledEngine())
        (before,) = pool.idle
        interrupts.kill_children()
        before.process.wait(PROMPTLY)
        after = pool.engine()
        assert after._reset(), "it answers"
        assert "llvmlite" not in Path(f"/proc/{after.process.pid}/maps").read_text(), (
            "it only stands for a fork"
        )
        after.end()


@pytest.mark.process
@pytest.mark.skipif(not fork_client.possible(), reason="needs Linux with descriptors for processes")
def test_a_server_of_forks_that_has_started_warm_forks_engines(caplog: pytest.LogCaptureFixture) -> None:
    """Else what serves many engines is tested with engines that are no forks of it."""

    async def scene() -> None:
        async with fork_client.forking() as start:
            await (await Engine.start(own_command(), "uti", starter=start)).quit()

    with contextlib.nullcontext() if os.environ.get(WARM) else serving():
        asyncio.run(scene())
    assert "not forked" not in caplog.text


@pytest.mark.process
def test_an_engine_that_is_not_used_again_leaves_no_pipe_open() -> None:
    """Python would complain of it in whichever test runs when it is collected."""
    engine = PooledEngine()
    engine.end()
    assert engine.process.returncode is not None
    assert engine.process.stdin is not None
    assert engine.process.stdin.closed
    assert engine.process.stdout is not None
    assert engine.process.stdout.closed
