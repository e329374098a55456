"""`hnefi tablut` as a command: what it is called with, how it ends, what it leaves, its two ends against each other."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from leftover_processes import MARK, expect_nobody, marked, wait_until
from patience import PROMPTLY
from tablut.double_server import GAMES, DoubleServer
from tablut_parts import WAIT, free_address, run, start

from hnefi.engine import squares
from hnefi.engine.records.record import GameRecord
from hnefi.gui_adapter.tablut import command
from hnefi.protocol.hosts import journal

if sys.platform != "linux":
    pytest.skip("every test has a loopback address of its own", allow_module_level=True)

ESCAPE = [word.partition("x")[0] for word in GAMES["escape"].split()[:-1]]
FAULTY = Path(__file__).parents[1] / "support" / "fault_engine.py"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", "expected White or Black"),
        ("Green", "side 'Green': expected White or Black"),
        ("White sixty", "seconds 'sixty': expected a whole number"),
        ("White 0", "seconds '0': expected a whole number from 1 to 100000"),
        ("White 60 host more", "'more': expected White or Black, the seconds and the host, and no more"),
        ("White --side black", "'White' and --side: expected one of them"),
        (
            "White 5 127.0.0.1:99",
            "host '127.0.0.1:99': expected a host without a port: the competition fixes the",
        ),
        ("White --host [::1]:99", "ports, 5800 for white and 5801 for black"),
        ("--serve --bind 127.0.0.1:99", "--bind '127.0.0.1:99': expected a host without a port"),
        ("--check x --address x:99", "--address 'x:99': expected a host without a port"),
        ("--serve --wrap x", "--serve and --wrap: expected one of them"),
        ("--check x White", "'White' with --check: expected flags only"),
        ("--wrap ''", "--wrap: expected a program and its arguments"),
        ('White --engine "\'"', "No closing quotation: expected a program"),
        ("White --name two-words", "expected at most 10 letters and digits"),
        ("White --name abcdefghijk", "expected at most 10 letters and digits"),
        ("White --player nobody", "no player 'nobody'"),
        ("White --player evolved-brandubh", "--player: "),
        ("White --option Hash", "expected NAME=VALUE"),
        ("White --reserve soon", "'soon': expected seconds from 0"),
        ("--serve --games 0", "expected a whole number from 1 on"),
    ],
)
def test_wrong_words_get_a_sentence(capsys: pytest.CaptureFixture[str], words: str, expected: str) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(shlex.split(words))
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert expected in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "words", ["White 60 localhost", "White 60 ::1", "white", "--side defenders", "--side D --seconds 60"]
)
def test_the_side_in_any_spelling(words: str) -> None:
    options = command._parser()
    arguments = options.parse_args(shlex.split(words))
    command._check(options, arguments, shlex.split(words))
    assert (arguments.side, arguments.seconds) == (command.Side.DEFENDERS, 60)


def records(folder: Path) -> list[GameRecord]:
    found = (folder / "hnefi" / "games" / "tablut").glob("*.jsonl")
    return [record for path in found for record in journal.read(path)]


def moves(record: GameRecord) -> list[str]:
    return [squares.move_name(ply.move) for ply in record.plies]


@pytest.mark.process
@pytest.mark.slow
def test_our_client_against_our_server(tmp_path: Path) -> None:
    """Both ends play a whole game; three journals agree, and `hnefi convert` finds every move and the end legal."""
    address = free_address()
    folders = [tmp_path / name for name in ("server", "white", "black")]
    server = start("--serve", "--bind", address, folder=folders[0])
    players = [
        start(colour, "60", address, "--player", "random-blind", "--name", colour, folder=folder)
        for colour, folder in zip(("white", "black"), folders[1:], strict=True)
    ]
    said = []
    for process in (*players, server):
        out, errors = process.communicate(timeout=WAIT)
        assert process.returncode == 0, errors
        said.append(out)
    kept = [records(folder) for folder in folders]
    (one,), (two,), (three,) = kept
    assert one.plies
    assert moves(one) == moves(two) == moves(three)
    assert [ply.captures for ply in one.plies] == [ply.captures for ply in two.plies]
    assert one.outcome == two.outcome == three.outcome
    assert one.outcome is not None
    assert one.players == ("black", "white")
    assert f"({one.outcome.reason.words})" in said[0]
    assert f"({one.outcome.reason.words})" in said[2]
    (file,) = (folders[0] / "hnefi" / "games" / "tablut").glob("*.jsonl")
    converted = subprocess.run(
        [sys.executable, "-m", "hnefi.tools.cli", "convert", str(file), str(tmp_path / "x.tafl"), "--from", "journal",
         "--strict"],
        capture_output=True, text=True, check=False, timeout=WAIT,
    )  # fmt: skip
    assert converted.returncode == 0, converted.stderr


@contextmanager
def served(**quirks: int) -> Iterator[tuple[DoubleServer, str]]:
    """A double for white, and its address."""
    address = free_address()
    double = DoubleServer("escape", "white", address, **quirks)
    try:
        yield double, address
    finally:
        double.close()


def faulty(*words: str) -> str:
    return shlex.join([sys.executable, "-I", "-S", str(FAULTY), ",".join(ESCAPE), *words])


@pytest.mark.process
@pytest.mark.parametrize(
    "fault", ["exit", "segv", "bytes", "twice", "stderr-flood", "info-flood", "close-stdout"]
)
def test_an_engine_that_fails_is_started_again(tmp_path: Path, fault: str) -> None:
    """With the whole game: it plays by the number of moves that it is told."""
    with served() as (double, address):
        ran = run("White", "60", address, "--engine", faulty(fault, "at=2"), folder=tmp_path)
        double.join()
    assert ran.returncode == 0, ran.stderr
    assert double.finished
    assert moves(records(tmp_path)[0]) == ESCAPE
    assert "Traceback" not in ran.stderr
    assert ("it is started again" in ran.stderr) == (fault in ("exit", "segv", "close-stdout"))


@pytest.mark.process
@pytest.mark.parametrize(
    "fault", ["exit", "hang", "illegal=e5e4", "resign", "endless", "no-search", "sigstop"]
)
def test_an_engine_that_fails_twice_loses_the_game(tmp_path: Path, fault: str) -> None:
    with served() as (double, address):
        mark = uuid.uuid4().hex
        ran = run("White", "2", address, "--engine", faulty(fault, "at=1"), folder=tmp_path, **{MARK: mark})
        double.join()
    assert ran.returncode == 4
    assert double.heard == ["hnefi"], "nothing illegal was sent"
    last = ran.stderr.splitlines()[-1]
    assert last.startswith("hnefi tablut: our engine failed: ")
    assert "Traceback" not in ran.stderr
    expect_nobody(mark)


@pytest.mark.process
def test_an_engine_that_does_not_start(tmp_path: Path) -> None:
    with served() as (double, address):
        ran = run("White", "60", address, "--engine", "false", folder=tmp_path)
        double.join()
    assert ran.returncode == 4
    assert "our engine failed: false has ended: exit status 1" in ran.stderr


@pytest.mark.process
def test_a_trace_has_every_message(tmp_path: Path) -> None:
    with served() as (double, address):
        trace = tmp_path / "trace"
        ran = run(
            "White",
            "60",
            address,
            "--engine",
            faulty(),
            "--trace",
            str(trace),
            "--no-record",
            folder=tmp_path,
        )
        double.join()
    assert ran.returncode == 0, ran.stderr
    lines = trace.read_text().splitlines()
    assert sum('< {"board"' in line for line in lines) == len(ESCAPE) + 1
    assert sum('> {"from"' in line for line in lines) == len(ESCAPE[::2])
    assert not (tmp_path / "hnefi").exists()


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals_end_a_client(tmp_path: Path, number: signal.Signals) -> None:
    """In the middle of a search, and the game that was played is on the disk."""
    mark = uuid.uuid4().hex
    with served() as (double, address):
        process = start(
            "White", "600", address, "--engine", faulty("hang", "at=2"), folder=tmp_path, **{MARK: mark}
        )
        wait_until(lambda: records(tmp_path) and len(moves(records(tmp_path)[0])) == 2, WAIT)
        wait_until(lambda: len(marked(mark)) >= 3)
        began = time.monotonic()
        process.send_signal(number)
        status = process.wait(PROMPTLY)
        assert time.monotonic() - began < PROMPTLY
        process.communicate()
        double.join()
    assert status == (-number if number == signal.SIGKILL else 1)
    expect_nobody(mark)
    (record,) = records(tmp_path)
    assert moves(record) == ESCAPE[:2]
    assert record.outcome is None


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals_end_a_server(tmp_path: Path, number: signal.Signals) -> None:
    mark = uuid.uuid4().hex
    address = free_address()
    process = start("--serve", "--bind", address, folder=tmp_path, **{MARK: mark})
    assert process.stdout is not None
    assert process.stdout.readline() == f"listening at {address}: white 5800, black 5801\n"
    process.send_signal(number)
    assert process.wait(PROMPTLY) == (-number if number == signal.SIGKILL else 1)
    process.communicate()
    expect_nobody(mark)


@pytest.mark.process
def test_the_port_of_another_server(tmp_path: Path) -> None:
    address = free_address()
    first = start("--serve", "--bind", address, folder=tmp_path)
    assert first.stdout is not None
    first.stdout.readline()
    second = run("--serve", "--bind", address, folder=tmp_path)
    assert second.returncode == 2
    assert f"{address}:5800: Address already in use: expected" in second.stderr
    first.terminate()
    first.communicate(timeout=WAIT)


@pytest.mark.process
def test_the_greeting_of_a_wrapped_bot_needs_nothing_heavy(tmp_path: Path) -> None:
    """What is loaded when `uti` has been answered: no numpy, no numba, and no bot is started."""
    code = (
        "import sys; from hnefi.gui_adapter.tablut import command; import hnefi.gui_adapter.tablut.wrap\n"
        "print(sorted({'numpy', 'numba', 'aiomqtt', 'prompt_toolkit'} & sys.modules.keys()))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=WAIT
    )
    assert ran.stdout == "[]\n"
    process = start("--wrap", "false", folder=tmp_path)
    out, _ = process.communicate("uti\nquit\n", timeout=WAIT)
    assert out.splitlines()[-1] == "utiok"
    assert process.returncode == 0
