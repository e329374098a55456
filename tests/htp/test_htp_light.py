"""`hnefi htp --connect`: a double of the light server plays whole games with our engine, in both roles."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from htp_parts import COPENHAGEN, DOUBLES, WAIT, bare, by_heart, free_address, records, run, start
from leftover_processes import MARK, expect_nobody, marked, wait_until
from patience import PROMPTLY

pytestmark = pytest.mark.process

ROLES = {"attacker": "defender", "defender": "attacker"}
QUICK = ("--movetime", "60000", "--log-level", "warning")


@contextmanager
def server(*words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server that listens; its address and its process."""
    address = free_address()
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(DOUBLES / "double_server.py"), address, COPENHAGEN, *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "listening\n"
        yield address, process
    finally:
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen[str]) -> list[str]:
    """What a server that ends by itself, and was content, has printed."""
    out, errors = process.communicate(timeout=WAIT)
    assert process.returncode == 0, errors
    return out.splitlines()


@pytest.mark.parametrize(
    ("ours", "quirk"), [("attacker", ""), ("attacker", "blank"), ("defender", ""), ("defender", "bytes")]
)
def test_a_whole_game(tmp_path: Path, ours: str, quirk: str) -> None:
    """Our role is learned from the first line, and each of ours is exactly as it must be."""
    with server(f"we={ROLES[ours]}", f"quirk={quirk}") as (address, process):
        done = run("--connect", address, *by_heart(COPENHAGEN), *QUICK, folder=tmp_path)
        assert ended(process)[-1] == "done"
    assert done.returncode == 0, done.stderr
    said = done.stdout.decode().splitlines()
    assert said[0].startswith(f"connected to {address}:49152")
    assert said[1:] == [f"we are the {ours}s", "the game is over: defender wins (king escaped)"]
    (record,) = records(tmp_path)
    assert record.players == (("hnefi", "opponent") if ours == "attacker" else ("opponent", "hnefi"))
    assert record.outcome is not None
    assert record.outcome.text == "d king_escaped"
    assert len(record.plies) == len(bare(COPENHAGEN))


def test_two_of_ours(tmp_path: Path) -> None:
    """The first of two clients defends."""
    with server() as (address, process):
        clients = [
            start(
                "--connect", f"{address}:49152", *by_heart(COPENHAGEN), *QUICK, "--no-record", folder=tmp_path
            )
            for _ in range(2)
        ]
        outputs = [client.communicate(timeout=WAIT)[0].decode() for client in clients]
        assert ended(process)[-1] == "done"
    assert [client.returncode for client in clients] == [0, 0]
    assert sorted(line.splitlines()[1] for line in outputs) == [
        "we are the attackers",
        "we are the defenders",
    ]


def test_the_opponent_resigns(tmp_path: Path) -> None:
    with server("we=attacker", "quirk=resigns", "at=4") as (address, process):
        done = run("--connect", address, *by_heart(COPENHAGEN), *QUICK, folder=tmp_path)
        assert ended(process)[-2:] == ["resigned", "done"]
    assert done.returncode == 0
    assert b"the game is over: defender wins (resignation)" in done.stdout
    (record,) = records(tmp_path)
    assert record.outcome is not None
    assert record.outcome.text == "d resignation"


@pytest.mark.parametrize(("fault", "status"), [("resign", 0), ("illegal=a1a2", 4), ("exit=3", 4)])
def test_we_resign(tmp_path: Path, fault: str, status: int) -> None:
    """Our engine gives up, or fails twice: the word of the convention, with its third word."""
    with server("we=defender", "quirk=resigned") as (address, process):
        flags = by_heart(COPENHAGEN, fault, "plies=2") if status else by_heart("resign")
        done = run("--connect", address, *flags, *QUICK, folder=tmp_path)
        assert ended(process)[-2:] == ["resigned", "done"]
    assert done.returncode == status, done.stderr
    for record in records(tmp_path):
        assert record.outcome is not None
        assert record.outcome.text == "d resignation"


def test_our_engine_never_starts(tmp_path: Path) -> None:
    """Nothing is known of the game then but that it is our turn."""
    with server("we=defender", "quirk=resigned") as (address, process):
        done = run("--connect", address, "--option", "Evaluator=missing.safetensors", *QUICK, folder=tmp_path)
        assert ended(process)[-2:] == ["resigned", "done"]
    assert done.returncode == 4
    assert "our engine failed: " in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()


FAULTS = {
    "closes": "in the middle of the game: the opponent has left, or the server refused a move",
    "asked": "in the middle of the game",
    "out-of-turn": "defender: expected attacker, whose turn it is",
    "illegal": "play attacker a1 a2: nothing stands on a1",
    "unreadable": "'d99': expected a square, a1 to k11",
    "wrong-side": "generate_move defender: expected the other role, which is ours",
    "endless": "100000 lines in a row that we do not understand: expected generate_move or play",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_server_that_fails(tmp_path: Path, fault: str) -> None:
    """A sentence, our code for the others' failures, and the game so far."""
    ours = "attacker" if fault == "illegal" else "defender"
    with server(f"we={ours}", f"quirk={fault}") as (address, _):
        done = run("--connect", address, *by_heart(COPENHAGEN), *QUICK, folder=tmp_path)
    assert done.returncode == 3
    assert FAULTS[fault] in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
    (record,) = records(tmp_path)
    assert record.outcome is None
    assert len(record.plies) in ((2, 3) if fault == "asked" else (2,))


def test_a_flood_of_nonsense(tmp_path: Path) -> None:
    """Told once."""
    with server("we=defender", "quirk=many") as (address, process):
        done = run("--connect", address, *by_heart(COPENHAGEN), *QUICK, folder=tmp_path)
        assert ended(process)[-1] == "done"
    assert done.returncode == 0
    assert re.findall(r"(?m)^.*hello.*$", done.stderr.decode()) == [
        "hnefi htp: 'hello there': expected generate_move or play: skipped"
    ]


def test_the_opponent_s_connection_is_cut_while_we_think(tmp_path: Path) -> None:
    with server("we=defender", "quirk=asked", "at=1") as (address, _):
        process = start("--connect", address, *by_heart(COPENHAGEN, "delay=3600"), folder=tmp_path)
        try:
            assert process.wait(3 * PROMPTLY) == 3
        finally:
            process.kill()
            process.communicate()


def test_nobody_listens(tmp_path: Path) -> None:
    address = free_address()
    done = run("--connect", address, "--wait", "0", folder=tmp_path)
    assert done.returncode == 3
    said = f"hnefi htp: {address}:49152: Connection refused: expected a light server\n"
    assert done.stderr.decode() == said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_behind(tmp_path: Path, number: signal.Signals) -> None:
    """A server that is silent: we wait, and end when we are told."""
    mark = uuid.uuid4().hex
    with server("we=defender", "quirk=silent") as (address, _):
        process = start("--connect", address, folder=tmp_path, **{MARK: mark})
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"connected to ")
        wait_until(lambda: len(marked(mark)) >= 2)
        process.send_signal(number)
        assert process.wait(PROMPTLY) == (1 if number == signal.SIGTERM else -9)
        expect_nobody(mark)
        process.communicate()
