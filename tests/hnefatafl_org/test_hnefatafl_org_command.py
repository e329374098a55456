"""`hnefi hnefatafl-org` as a command: its words, how it ends, what it leaves; JSON and clocks by themselves."""

from __future__ import annotations

import io
import json
import os
import shlex
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import engine_pool
import pytest
from hnefatafl_org.double_server import GAMES, PASSWORD, USER, DoubleServer
from leftover_processes import MARK, expect_nobody, marked, wait_until
from patience import PROMPTLY

from hnefi.engine import squares
from hnefi.engine.records.record import GameRecord
from hnefi.engine.sides import Side
from hnefi.gui_adapter.hnefatafl_org import command, game
from hnefi.protocol.hosts import journal

WAIT = 120.0
HNEFI = (*engine_pool.command(), "hnefatafl-org")
ESCAPE = [word.partition("x")[0] for word in GAMES["escape"].split()[:-1]]
FAULTY = Path(__file__).parents[1] / "support" / "fault_engine.py"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", "--user"),
        (
            "--user anna",
            "--user anna: engines are called ai-NAME there; use --yes-this-account-is-for-engines",
        ),
        ("--user ai-far-too-long-a-name", "expected at most 16 letters, digits, _ and -"),
        ("--user 'ai x'", "'ai x': expected at most 16"),
        ("--user ai-x --join seven", "--join 'seven': expected the number of an offered game"),
        ("--user ai-x --join 7 --games 2", "--games 2 with --join: expected one game"),
        ("--user ai-x --role king", "--role 'king': expected attacker or defender"),
        (
            "--user ai-x --clock 15",
            "--clock '15': expected time for the game and seconds for each move, 15m+10s",
        ),
        ("--user ai-x --clock 0m+1s", "--clock '0m+1s': expected"),
        ("--user ai-x --board 9", "invalid choice: '9'"),
        ("--user ai-x --games 0", "expected a whole number from 1 on"),
        ("--user ai-x --player nobody", "no player 'nobody'"),
        ("--user ai-x --engine ''", "--engine: "),
        ("--user ai-x --server a:b:c", "--server 'a:b:c': expected HOST or HOST:PORT"),
        ("--user ai-x --server a:70000", "--server 'a:70000': expected HOST or HOST:PORT"),
        ("--user ai-x --wire-version 'a b'", "--wire-version 'a b': expected an id such as 32d9a140"),
        ("--user ai-x --password-file /no/file", "password file '/no/file': No such file"),
    ],
)
def test_wrong_words_get_a_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: str, expected: str
) -> None:
    monkeypatch.setenv("HNEFI_PASSWORD", PASSWORD)
    with pytest.raises(SystemExit) as ended:
        command.main(shlex.split(words))
    assert ended.value.code == 2
    assert expected in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("password", ["", "x" * 33, " x", "a  b", "a\tb"])
def test_passwords_that_cannot_be_sent(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, password: str
) -> None:
    monkeypatch.setenv("HNEFI_PASSWORD", password)
    with pytest.raises(SystemExit):
        command.main(["--user", "ai-x"])
    said = capsys.readouterr().err
    assert "the password: expected at most 32 visible characters" in said
    assert not password.strip() or password not in said


def test_no_password(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HNEFI_PASSWORD", raising=False)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(SystemExit):
        command.main(["--user", "ai-x"])
    assert (
        "no password: expected --password-file FILE or the variable HNEFI_PASSWORD" in capsys.readouterr().err
    )


# JSON and clocks

WHOLE = {"attackers": "anna", "defenders": "bert", "dim": 7, "moves": "0c4-0c1 0b4-0b1x0c1"}


def read(**changed: object) -> game.Game:
    return game.read_game(json.dumps({**WHOLE, **changed}))


def test_a_game_is_read() -> None:
    found = read(
        id=7,
        time_control={"main_time_seconds": 900, "increment_length": 10},
        time_remaining_ms={"attackers": 5, "defenders": 6, "last_move": "?"},
    )
    assert found.moves == ("c4c1", "b4b1")
    assert found.plies[1].captures == ("c1",)
    assert (found.id, found.side, found.clock, found.add) == ("7", Side.DEFENDERS, (5, 6), 10)
    assert read(time_remaining_ms=[5, -6]).clock == (5, 0)
    assert read(moves="").side == Side.DEFENDERS
    assert read(dim=11, moves="d1-d3").side == Side.DEFENDERS
    assert read(dim=13, moves="G1-H1").moves == ("g1h1",)
    assert read(moves="0c4-0c1 ---").resigned


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"dim": True}, "dim True: expected a board of 7, 11, 13"),
        ({"dim": "7"}, "dim '7': expected"),
        ({"dim": 10**100}, "dim a huge number: expected"),
        ({"moves": None}, "expected a game with attackers, defenders and moves"),
        ({"moves": "c4c1"}, "move 'c4c1': expected one such as d1-d3xd4"),
        ({"moves": "0c4-0c9"}, "move '0c4-0c9': '0c9': expected a square"),
        ({"moves": "--- 0c4-0c1"}, "move '---': "),
        ({"moves": "0c4-0c1 " * 2_001}, "a game of 2001 plies: expected at most 2000"),
        ({"attackers": 3}, "expected a game with attackers"),
    ],
)
def test_what_is_no_game(changed: dict[str, object], expected: str) -> None:
    with pytest.raises(game.GameError) as error:
        read(**changed)
    assert expected in str(error.value)
    assert len(str(error.value)) < 300


def test_clocks() -> None:
    assert game.read_clock("15m+10s") == game.Clock(900_000, 10)
    assert game.read_clock("3d+21600") == game.Clock(259_200_000, 21_600)
    assert game.read_clock("untimed") is None
    assert game.thinking(None, 0, None, 5_000) == 5_000
    assert game.thinking(None, 0, 70, 5_000) == 70
    assert game.thinking(900_000, 10_000, None, 5_000) < 90_000
    assert game.thinking(900_000, 10_000, 200, 5_000) == 200
    assert game.thinking(2_000, 10_000, None, 5_000) <= 200
    assert game.thinking(0, 0, None, 5_000) == 50


# The command


@contextmanager
def served(**quirks: int) -> Iterator[DoubleServer]:
    double = DoubleServer("escape", "attacker", **quirks)
    try:
        yield double
    finally:
        double.close()


def faulty(*words: str) -> str:
    return shlex.join([sys.executable, "-I", "-S", str(FAULTY), ",".join(ESCAPE), *words])


def words_for(double: DoubleServer, folder: Path, *words: str) -> list[str]:
    file = folder / "password"
    file.write_text(f"{PASSWORD}\n")
    file.chmod(0o600)
    server = f"127.0.0.1:{double.port}"
    return [*HNEFI, "--user", USER, "--password-file", str(file), "--server", server, "--board", "7", *words]


def environment(folder: Path, **how: str) -> dict[str, str]:
    return {**os.environ, "XDG_DATA_HOME": str(folder), **how}


def run(double: DoubleServer, folder: Path, *words: str, **how: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words_for(double, folder, *words), capture_output=True, text=True, timeout=WAIT, check=False,
        env=environment(folder, **how), stdin=subprocess.DEVNULL,
    )  # fmt: skip


def records(folder: Path) -> list[GameRecord]:
    found = (folder / "hnefi" / "games" / "hnefatafl-org").glob("*.jsonl")
    return [record for path in found for record in journal.read(path)]


@pytest.mark.process
def test_a_game_from_the_command_line(tmp_path: Path) -> None:
    """Played, written down so that `hnefi convert` finds every move and the end legal, and traced without the
    password."""
    trace = tmp_path / "trace"
    with served() as double:
        ran = run(double, tmp_path, "--engine", faulty(), "--trace", str(trace), "--log-level", "debug")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[1] == f"game 7: attackers {USER}, defenders anna, brandubh-org"
    assert ran.stdout.splitlines()[-1] == "game 7 is over: defenders win (king escaped)"
    for text in (ran.stdout, ran.stderr, trace.read_text()):
        assert PASSWORD not in text
    assert f"> 32d9a140 login {USER} ***" in trace.read_text()
    (file,) = (tmp_path / "hnefi" / "games" / "hnefatafl-org").glob("*.jsonl")
    converted = subprocess.run(
        [sys.executable, "-m", "hnefi.tools.cli", "convert", str(file), str(tmp_path / "x.tafl"), "--from", "journal",
         "--strict"],
        capture_output=True, text=True, check=False, timeout=WAIT,
    )  # fmt: skip
    assert converted.returncode == 0, converted.stderr


@pytest.mark.process
@pytest.mark.parametrize("fault", ["exit", pytest.param("hang", marks=pytest.mark.slow)])
def test_an_engine_that_fails_twice_resigns(tmp_path: Path, fault: str) -> None:
    mark = uuid.uuid4().hex
    with served(short=0) as double:
        ran = run(double, tmp_path, "--engine", faulty(fault, "at=1"), **{MARK: mark})
    assert ran.returncode == 4, ran.stderr
    assert [line for line in double.heard if line.startswith("game ")] == ["game 7 play attacker resigns _"]
    assert "Traceback" not in ran.stderr
    expect_nobody(mark)


def held(gate: Path, *words: str) -> str:
    """An engine that does not start before there is this file."""
    wait = f"until [ -e {shlex.quote(str(gate))} ]; do sleep 0.05; done; exec {shlex.join(words)}"
    return shlex.join(["sh", "-c", wait])


def start(double: DoubleServer, folder: Path, *words: str, **how: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        words_for(double, folder, *words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env=environment(folder, **how),
    )  # fmt: skip


@pytest.mark.process
def test_the_login_does_not_wait_for_the_engine(tmp_path: Path) -> None:
    """The offer does: a clock may run from then on."""
    gate = tmp_path / "gate"
    with served() as double:
        process = start(double, tmp_path, "--engine", held(gate, *shlex.split(faulty())))
        wait_until(lambda: double.pings, WAIT)
        assert [line.split("-")[0] for line in double.heard] == ["software_id hnefi"]
        gate.touch()
        output, errors = process.communicate(timeout=WAIT)
    assert process.returncode == 0, errors
    assert output.splitlines()[-1] == "game 7 is over: defenders win (king escaped)"


@pytest.mark.process
def test_an_engine_that_does_not_start_resigns_nothing(tmp_path: Path) -> None:
    """The game goes on on the server, and can be played with another engine."""
    gate = tmp_path / "gate"
    with served(open=0) as double:
        process = start(double, tmp_path, "--engine", held(gate, "false"))
        wait_until(lambda: "resume_game_json 7" in double.heard, WAIT)
        gate.touch()
        _, errors = process.communicate(timeout=WAIT)
    assert process.returncode == 4, errors
    assert "game 7 and its clock continue without us" in errors
    assert not any(line.startswith("game ") for line in double.heard)


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals_end_it(tmp_path: Path, number: signal.Signals) -> None:
    """In the middle of a search, and what was played is on the disk."""
    mark = uuid.uuid4().hex
    with served() as double:
        process = subprocess.Popen(
            words_for(double, tmp_path, "--engine", faulty("hang", "at=2")), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(tmp_path, **{MARK: mark}),
        )  # fmt: skip
        wait_until(lambda: records(tmp_path) and len(records(tmp_path)[0].plies) == 3, WAIT)
        wait_until(lambda: len(marked(mark)) >= 3)
        process.send_signal(number)
        status = process.wait(PROMPTLY)
        _, errors = process.communicate()
    if number != signal.SIGKILL:
        assert b"game 7 and its clock continue without us: the same command resumes it" in errors
    assert status == (-number if number == signal.SIGKILL else 1)
    expect_nobody(mark)
    (record,) = records(tmp_path)
    assert [squares.move_name(ply.move) for ply in record.plies] == ESCAPE[:3]
    assert record.outcome is None


@pytest.mark.process
def test_a_refused_login_ends_it_with_its_code(tmp_path: Path) -> None:
    with served(wire=0) as double:
        ran = run(double, tmp_path, "--engine", faulty())
    assert ran.returncode == 3
    assert ran.stderr.count("\n") == 1
    assert "--wire-version" in ran.stderr


@pytest.mark.process
def test_the_command_line_needs_nothing_heavy() -> None:
    """What is loaded before an engine is started: no numpy, no numba."""
    code = (
        "import sys; from hnefi.gui_adapter.hnefatafl_org import command, connection, play\n"
        "print(sorted({'numpy', 'numba', 'aiomqtt', 'prompt_toolkit'} & sys.modules.keys()))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=WAIT
    )
    assert ran.stdout == "[]\n"
