"""The figures of `hnefi htp` in MEASUREMENTS.md: first answer, delay of a move, memory, idle processor (Linux).

PYTHONPATH=tests/support python tests/htp/measure.py [--games 5] [--idle 10]
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from htp_parts import COPENHAGEN, bare, by_heart, double, free_address, start

from hnefi.protocol.hosts.hnefatafl_org_notation import write_move

MOVES = bare(COPENHAGEN)
QUIET = ("--no-record", "--log-level", "error")
TICKS = os.sysconf("SC_CLK_TCK")
PAUSE = 0.05
"""Seconds between moves, in which what follows a move is done."""


def spread(seconds: list[float]) -> str:
    """Median, least and most, in milliseconds."""
    values = [1000 * one for one in seconds]
    return f"{statistics.median(values):.2f} ms ({min(values):.2f} to {max(values):.2f}; {len(values)})"


@contextmanager
def running(*words: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = start(*words, *QUIET, folder=folder)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ask(process: subprocess.Popen[bytes], line: str, beginning: bytes) -> float:
    """Seconds until a line comes that begins so."""
    assert process.stdin is not None
    assert process.stdout is not None
    began = time.perf_counter()
    process.stdin.write(line.encode() + b"\n")
    process.stdin.flush()
    while not process.stdout.readline().startswith(beginning):
        assert process.poll() is None
    return time.perf_counter() - began


def first_answer(folder: Path) -> float:
    began = time.perf_counter()
    with running(folder=folder) as process:
        ask(process, "name", b"= hnefi")
        return time.perf_counter() - began


def as_engine(folder: Path) -> list[float]:
    """A controller's waits, with an engine that answers at once."""
    with running(*by_heart(COPENHAGEN), folder=folder) as process:
        ask(process, "final_status", b"= ongoing")
        return [ask(process, "generate_move", b"= play") for _ in MOVES]


def as_player(folder: Path) -> list[float]:
    """A light server's waits."""
    address, waits = free_address(), []
    with (
        socket.create_server((address, 49152)) as listener,
        running("--connect", address, *by_heart(COPENHAGEN), folder=folder),
        listener.accept()[0].makefile("rwb") as link,
    ):
        for ply, move in enumerate(MOVES):
            if ply % 2:
                link.write(f"play defender {write_move(move, 11)}\n".encode())
                link.flush()
            else:
                time.sleep(PAUSE)
                began = time.perf_counter()
                link.write(b"generate_move attacker\n")
                link.flush()
                link.readline()
                waits.append(time.perf_counter() - began)
    return waits[1:]  # the first one waits for the engine


def wrapped(folder: Path) -> list[float]:
    """What `go` costs with an engine that answers at once."""
    waits = []
    with running("--wrap", double("stdio", COPENHAGEN), folder=folder) as process:
        ask(process, "uti\nisready", b"readyok")
        for ply in range(0, len(MOVES), 2):
            moves = f" moves {' '.join(MOVES[:ply])}" if ply else ""
            ask(process, f"position startpos{moves}\nisready", b"readyok")
            waits.append(ask(process, "go movetime 100", b"bestmove"))
    return waits


def cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--games", type=int, default=5)
    options.add_argument("--idle", type=float, default=10.0)
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print("first answer", spread([first_answer(folder) for _ in range(2 * arguments.games)]))
        for what in (as_engine, as_player, wrapped):
            waits = [wait for _ in range(arguments.games) for wait in what(folder)]
            print(what.__name__.replace("_", " "), spread(waits))
        with running(folder=folder) as process:
            ask(process, "final_status", b"= ongoing")
            before = cpu(process.pid)
            time.sleep(arguments.idle)
            used = (cpu(process.pid) - before) / arguments.idle
            status = Path(f"/proc/{process.pid}/status").read_text()
            memory = int(status.partition("VmRSS:")[2].split()[0]) / 1024
            print(f"idle {100 * used:.2f} % of a processor, {memory:.0f} MiB without the engine")


main()
