"""The hostile set that every adapter has to live through, or to end of with a sentence, whoever the other side is.

An adapter's tests say how its conversation begins (`Far`, `Near`); what then goes wrong is the same for all. It has
passed when the adapter lives on or has ended with the status that was expected of it, said at most a few lines, without
a traceback and nothing that a terminal obeys, needed no more than `ROOM`, left no process, and kept records that can be
loaded.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import engine_pool
import hostile_peer
from leftover_processes import MARK, expect_nobody, wait_until

from hnefi.protocol.hosts import journal

WAIT = 60.0
ROOM = 80 * 1024
"""KiB of an adapter process: 30 without a game, and 50."""
LINES = 20
"""Of standard error."""
PEER = Path(hostile_peer.__file__)
LIVES = -1
"""The status of what goes on until it is told to end."""
EITHER = -2
"""Of what goes on, or ends because the other side failed: that depends on who is faster. Who has just ended may be told
to end, too, before its process is gone, and is then ended by our signal."""


@dataclass(frozen=True)
class Far:
    """An adapter whose other side is a program that it starts, or a server that it connects to.

    `words` are its command line; `{peer}` in it is the command of the peer, which is else started first.
    `says` goes to its standard input, `exchange` is what the peer does before it turns (see `hostile_peer`), and
    `status` what becomes of the adapter for each kind; `LIVES` if it has to be told to end.
    """

    words: Sequence[str]
    where: str
    exchange: Sequence[str]
    status: Mapping[str, int]
    says: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


def far(case: Far, kind: str, folder: Path) -> str:
    """Try one kind of hostility; what it said on standard error."""
    mark = uuid.uuid4().hex
    done = folder / "done"
    environment = {**os.environ, "XDG_DATA_HOME": str(folder), MARK: mark, **case.environment}
    peer = [sys.executable, "-I", "-S", str(PEER), case.where, kind, str(done), *case.exchange]
    server = None
    if not any("{peer}" in word for word in case.words):
        server = subprocess.Popen(peer, stdout=subprocess.PIPE, env={**environment, MARK: ""})
        assert server.stdout is not None
        assert server.stdout.readline() == b"listening\n"
    words = [word.replace("{peer}", shlex.join(peer)) for word in case.words]
    process = subprocess.Popen(
        [*engine_pool.command(), *words], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, env=environment,
    )  # fmt: skip
    assert process.stdin is not None
    try:
        process.stdin.write(case.says.encode())
        process.stdin.flush()
        most = 0

        def over() -> bool:
            nonlocal most
            most = max(most, peak(process.pid))
            return process.poll() is not None

        expected = case.status[kind]
        allowed = {LIVES: (1,), EITHER: (1, 3, -signal.SIGTERM)}.get(expected, (expected,))
        wait_until(lambda: over() or (expected < 0 and done.exists()), WAIT)
        if expected < 0 and not over():
            process.send_signal(signal.SIGTERM)
            wait_until(over, WAIT)
        errors = process.communicate()[1].decode()
        assert process.returncode in allowed, (process.returncode, errors)
        assert most < ROOM, most
        _inspect(errors, folder)
        expect_nobody(mark)
        return errors
    finally:
        process.kill()
        process.communicate()
        if server is not None:
            server.kill()
            server.communicate()


def peak(number: int) -> int:
    """The most memory that a process has had, in KiB; 0 if it is gone."""
    try:
        lines = Path(f"/proc/{number}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


def _inspect(errors: str, folder: Path) -> None:
    assert "Traceback" not in errors, errors
    assert all(line.isprintable() for line in errors.splitlines()), errors
    assert len(errors.splitlines()) <= LINES, errors
    for path in folder.rglob("*.jsonl"):
        list(journal.read(path))


@dataclass(frozen=True)
class Near:
    """An adapter that is driven by its standard input: a question and how its answer begins."""

    words: Sequence[str]
    question: str
    answer: str


GARBAGE = hostile_peer.GARBAGE.replace(b"quit", b"").replace(b"goodbye", b"")
HOSTILE_INPUT: Mapping[str, bytes] = {
    "garbage": GARBAGE,
    "overlong": b"y" * (1 << 20) + b"\n",
    "endless": b"z" * (16 << 20) + b"\n",
    "deep": b"position " + b"[" * 10_000 + b"\n",
    "digits": b"clock " + b"9" * 60_000 + b" 1 0 0 0\nposition startpos moves a" + b"9" * 60_000 + b"\n",
    "blank": b"\n" * 20_000,
    "order": b"stop\nplay\nmove\nopponent-move\nfinish 1\nfinish 1\nstop\nbestmove a1a2\nreadyok\n= \n",
}
"""What comes in lines that no adapter asked for."""


def near(case: Near, folder: Path) -> None:
    """All of the hostile input in one conversation, with a question behind each; then half a line and the end."""
    mark = uuid.uuid4().hex
    environment = {**os.environ, "XDG_DATA_HOME": str(folder), MARK: mark}
    errors = folder / "errors"
    with errors.open("wb") as told:
        process = subprocess.Popen(
            [*engine_pool.command(), *case.words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=told, env=environment,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            for name, data in HOSTILE_INPUT.items():
                process.stdin.write(data)
                for byte in case.question.encode() if name == "garbage" else ():
                    process.stdin.write(bytes([byte]))
                    process.stdin.flush()
                if name != "garbage":
                    process.stdin.write(case.question.encode())
                    process.stdin.flush()
                while not (line := process.stdout.readline()).startswith(case.answer.encode()):
                    assert line, (name, errors.read_text())
            assert peak(process.pid) < ROOM, peak(process.pid)
            process.stdin.write(case.question.encode()[:-2])
            process.stdin.close()
            process.stdout.read()
            assert process.wait(WAIT) == 0, errors.read_text()
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
    expect_nobody(mark)
    text = errors.read_text()
    assert "Traceback" not in text, text
    assert all(line.isprintable() for line in text.splitlines()), text


def unread(words: Sequence[str], flood: bytes, folder: Path, status: int = 3) -> None:
    """Nobody reads what it answers: it waits a few seconds, and ends."""
    environment = {**os.environ, "XDG_DATA_HOME": str(folder)}
    process = subprocess.Popen(
        [*engine_pool.command(), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=environment,
    )  # fmt: skip
    assert process.stdin is not None
    began = time.monotonic()
    try:
        os.set_blocking(process.stdin.fileno(), False)

        def over() -> bool:
            with contextlib.suppress(OSError):
                os.write(process.stdin.fileno(), flood)  # type: ignore[union-attr]
            return process.poll() is not None

        wait_until(over, WAIT)
        assert process.returncode == status
        assert time.monotonic() - began < WAIT
    finally:
        process.kill()
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            stream.close()
        process.wait()
