"""The figures of `hnefi htp` in MEASUREMENTS.md: first answer, delay of a move, memory, idle processor (Linux).

PYTHONPATH=tests/support python tests/htp/measure.py [--games 5] [--idle 10] [--at-once 64]
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from htp_parts import COPENHAGEN, bare, by_heart, double, free_address, start
from measuring import Firsts, Turns, idle, memory, spread

from hnefi.protocol.hosts.hnefatafl_org_notation import write_move

MOVES = bare(COPENHAGEN)
QUIET = ("--no-record", "--log-level", "error")
PAUSE = 0.05
"""Seconds between moves, in which what follows a move is done."""


@contextmanager
def running(*words: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = start(*words, *QUIET, folder=folder)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ask(process: subprocess.Popen[bytes], line: str, beginning: bytes) -> None:
    """Say a line and wait for one that begins so."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line.encode() + b"\n")
    process.stdin.flush()
    while not process.stdout.readline().startswith(beginning):
        assert process.poll() is None


def first_answers(folder: Path, starts: int) -> Firsts:
    found = Firsts()
    for _ in range(starts):
        began = time.perf_counter()
        with running(folder=folder) as process:
            ask(process, "name", b"= hnefi")
            found.met(process.pid, time.perf_counter() - began)
    return found


def as_engine(folder: Path, turns: Turns) -> None:
    """A controller's waits, with an engine that answers at once."""
    with running(*by_heart(COPENHAGEN), folder=folder) as process:
        ask(process, "final_status", b"= ongoing")
        for _ in MOVES:
            turns.asked(process.pid)
            ask(process, "generate_move", b"= play")
            turns.answered(process.pid)


def as_player(folder: Path, turns: Turns) -> None:
    """A light server's waits, but the first, which is for the start of the engine."""
    address = free_address()
    with (
        socket.create_server((address, 49152)) as listener,
        running("--connect", address, *by_heart(COPENHAGEN), folder=folder) as process,
        listener.accept()[0].makefile("rwb") as link,
    ):
        for ply, move in enumerate(MOVES):
            if ply % 2:
                link.write(f"play defender {write_move(move, 11)}\n".encode())
                link.flush()
            else:
                time.sleep(PAUSE)
                turns.asked(process.pid)
                link.write(b"generate_move attacker\n")
                link.flush()
                link.readline()
                if ply:
                    turns.answered(process.pid)


def wrapped(folder: Path, turns: Turns) -> None:
    """What `go` costs with an engine that answers at once."""
    with running("--wrap", double("stdio", COPENHAGEN), folder=folder) as process:
        ask(process, "uti\nisready", b"readyok")
        game(process, turns)


def game(process: subprocess.Popen[bytes], turns: Turns) -> None:
    """From each `go` to its answer; every answer is the game's, or the double has ended."""
    for ply in range(0, len(MOVES), 2):
        moves = f" moves {' '.join(MOVES[:ply])}" if ply else ""
        ask(process, f"position startpos{moves}\nisready", b"readyok")
        turns.asked(process.pid)
        ask(process, "go movetime 100", f"bestmove {MOVES[ply]}".encode())
        turns.answered(process.pid)


def at_once(folder: Path, games: int) -> None:
    """So many wrapped doubles, each with its book of rules, and games that go on together."""
    began = time.monotonic()
    command = double("stdio", COPENHAGEN)
    with ExitStack() as stack:
        wraps = [stack.enter_context(running("--wrap", command, folder=folder)) for _ in range(games)]
        for process in wraps:
            ask(process, "uti\nisready", b"readyok")
        print(f"{games} wrapped doubles ready after {time.monotonic() - began:.1f} s")
        began = time.monotonic()
        with ThreadPoolExecutor(games) as threads:
            played = [Turns() for _ in wraps]
            list(threads.map(game, wraps, played))
        waits = [wait for turns in played for wait in turns.taken]
        print(
            f"{games} games at once: {len(waits)} moves, no fault, {time.monotonic() - began:.1f} s, {spread(waits)}"
        )
        print("memory without engines:", ", ".join(sorted({memory(process.pid) for process in wraps})))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--games", type=int, default=5)
    options.add_argument(
        "--at-once", type=int, default=0, metavar="N", help="N games at once, and nothing else"
    )
    options.add_argument("--idle", type=float, default=10.0)
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if arguments.at_once:
            at_once(folder, arguments.at_once)
            return
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        print("first answer", first_answers(folder, 2 * arguments.games))
        for what in (as_engine, as_player, wrapped):
            turns = Turns()
            for _ in range(arguments.games):
                what(folder, turns)
            print(what.__name__.replace("_", " "), turns)
        with running(folder=folder) as process:
            ask(process, "final_status", b"= ongoing")
            print("idle:", idle(process.pid, arguments.idle), "without the engine")


if __name__ == "__main__":
    main()
