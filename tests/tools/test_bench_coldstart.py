"""What starts cost: what is measured and said, not how much it is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hnefi.tools.bench import coldstart as bench_coldstart
from hnefi.tools.bench import command as bench

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def uninterrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_coldstart, "let_interrupt_end_us", lambda: None)


@pytest.mark.process
def test_the_greeting_here_and_in_a_checkout(capsys: pytest.CaptureFixture[str]) -> None:
    """This very checkout is the other state as well: all that the measurement does, but nothing is compiled."""
    words = ["coldstart", "greeting", "--starts", "2", "--json", "--against", str(ROOT)]
    assert bench.main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["what"], one["state"], one["times"]) for one in found["measured"]] == [
        (what, state, 2) for state in ("here", ROOT.name) for what in ("greeting", "python")
    ]
    assert all(0 < one["cpu_s"]["min"] <= one["cpu_s"]["max"] for one in found["measured"])
    assert [one["most"] for one in found["ratios"]] == [None, 2.0, None]


def test_what_is_asked_is_reckoned_from_medians_of_states_that_take_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cpu = {"first": [30.0, 29.0, 40.0], "warmup": [90.0], "ready": [0.5], "numba": [0.4], "greeting": [0.02]}
    asked: list[tuple[str, str]] = []

    def fake(what: str) -> object:
        def start(state: bench_coldstart.State, folder: Path) -> tuple[float, float]:
            assert not (what in bench_coldstart.COLD and folder.exists()), "an empty cache"
            folder.mkdir(exist_ok=True)
            asked.append((what, state.name))
            number = asked.count((what, state.name)) - 1
            slower = 1.0 if state.name == "here" else 5.0
            values = cpu.get(what, [0.01])
            return values[number % len(values)] * slower, 2.0 * slower * slower

        return start

    for name in ("first", "warmup", "numba", "greeting", "bare"):
        monkeypatch.setattr(bench_coldstart, name, fake(name))
    monkeypatch.setattr(
        bench_coldstart, "checkout", lambda folder, _: bench_coldstart.State(folder.name, "", {})
    )
    monkeypatch.setattr(bench_coldstart, "mkdtemp", lambda prefix: str(tmp_path / prefix))
    (tmp_path / "hnefi-coldstart-").mkdir()
    words = ["coldstart", "first", "warmup", "greeting", "--times", "3", "--starts", "2", "--against", "old"]
    assert bench.main(words) == 0
    assert [state for what, state in asked if what == "first"] == 3 * ["here", "old"]
    said = capsys.readouterr()
    assert said.err.splitlines()[0] == "here: empty cache to `readyok`: 30.0 s of CPU, 2.0 s"
    assert "empty cache to `readyok`       here             3   30.0 (29.0 to 40.0)" in said.out
    assert " 0.20  empty cache to `readyok`, CPU to old (at most 0.30)" in said.out
    assert " 0.04  empty cache to `readyok`, wall to old (at most 0.25)" in said.out
    assert " 0.20  empty cache, `hnefi warmup`, CPU to old (at most 0.35)" in said.out
    assert " 2.00  here: to `uciok`, CPU to a bare Python (at most 2.00)" in said.out
    assert not any(tmp_path.iterdir()), "nothing is left behind"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nosuch"], "'nosuch': expected first, warmup, ready, greeting"),
        (["greeting", "--against", "/no/such/folder"], "/no/such/folder: expected a checkout of hnefi"),
    ],
)
def test_what_cannot_be_measured(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        bench.main(["coldstart", *words])
    assert end.value.code == 2
    assert message in capsys.readouterr().err


class Ended(subprocess.Popen[bytes]):
    """A process that has ended before anybody speaks to it."""

    def __init__(self, *args: Any, **how: Any) -> None:
        super().__init__(*args, **how)
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)


@pytest.mark.process
@pytest.mark.parametrize("popen", [subprocess.Popen, Ended])
def test_an_engine_that_fails_is_told(
    popen: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(subprocess, "Popen", popen)
    monkeypatch.setattr(bench_coldstart, "_PROGRAM", "raise SystemExit(3)")
    with pytest.raises(SystemExit) as end:
        bench.main(["coldstart", "greeting"])
    assert end.value.code == 2
    assert "here: the engine ended before it said uciok" in capsys.readouterr().err


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_neither_a_process_nor_a_folder(number: int, tmp_path: Path) -> None:
    engine = tmp_path / "engine.py"
    engine.write_text(
        "import os, pathlib, time\n"
        f"pathlib.Path({str(tmp_path / 'new')!r}).write_text(str(os.getpid()))\n"
        f"os.replace({str(tmp_path / 'new')!r}, {str(tmp_path / 'pid')!r})\n"
        "time.sleep(600)\n"
    )
    script = (
        "import pathlib, sys\n"
        "from hnefi.tools.bench import coldstart, command\n"
        f"coldstart._PROGRAM = pathlib.Path({str(engine)!r}).read_text()\n"
        "sys.exit(command.main(['coldstart', 'first']))\n"
    )
    (tmp_path / "temporary").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    process = subprocess.Popen([sys.executable, "-c", script], env=environment)
    noted = tmp_path / "pid"
    while not noted.exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    assert process.wait(60) == 128 + number
    assert not any((tmp_path / "temporary").iterdir())
    while alive(int(noted.read_text())):
        time.sleep(0.05)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
