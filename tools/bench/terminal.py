"""`hnefi bench terminal`: how fast `hnefi play` shows its first board, and a typed key while the engine searches.

The real program runs on a pseudo-terminal, in both faces. Wall time is measured from outside: medians and maxima of
many tries. On a busy machine the maxima say more about the machine than about the program.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from random import Random
from typing import Final

from ..common.arguments import parser, positive
from .latency import Measurement, in_milliseconds

SEED: Final = 1
PATIENCE: Final = 120.0
"""Seconds after which we give up waiting; the first start may have to load much."""
SIZE: Final = (24, 80)
FACES: Final = {"prompt": [], "full screen": ["--tui"]}
KEYS: Final = b"zyxwvu"
"""Letters that occur on no board of 11 files and in no number, so that they can only come from the typed line."""
BOARD: Final = b"to move"
"""What the program writes after the first board."""
QUESTION, PLACE = b"\x1b[6n", b"\x1b[1;1R"
"""The program asks for the position of the cursor, and we answer."""


class Screen:
    """A program on its own terminal. Its output is read, and all but the last part forgotten."""

    def __init__(self, words: list[str], folder: str) -> None:
        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *SIZE, 0, 0))
        self._seen = b""
        self.began = time.perf_counter()
        self._child = subprocess.Popen(
            [sys.executable, "-m", "hnefi.tools.cli", "play", *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env={
                **os.environ,
                "TERM": "xterm-256color",
                "XDG_CONFIG_HOME": folder,
                "XDG_DATA_HOME": folder,
            },
        )
        os.close(slave)

    def press(self, keys: bytes) -> float:
        """Send keys; returns the time just before."""
        now = time.perf_counter()
        os.write(self._master, keys)
        return now

    def wait_for(self, wanted: bytes) -> float:
        """Read until new output contains `wanted`; returns the time just after. OSError if it does not come."""
        self._seen = b""
        deadline = time.perf_counter() + PATIENCE
        while wanted not in self._seen:
            left = deadline - time.perf_counter()
            if left <= 0 or not self._read(left):
                raise OSError(f"hnefi play did not show {wanted.decode()!r}")
        return time.perf_counter()

    def idle(self, seconds: float) -> None:
        """Read for a while."""
        until = time.perf_counter() + seconds
        while (left := until - time.perf_counter()) > 0 and self._read(left):
            pass

    def _read(self, seconds: float) -> bool:
        """Read what arrives within `seconds`; False after the end."""
        ready, _, _ = select.select([self._master], [], [], seconds)
        if ready:
            try:
                data = os.read(self._master, 1 << 16)
            except OSError:
                return False
            if QUESTION in data:
                os.write(self._master, PLACE)
            self._seen = self._seen[-4096:] + data
        return True

    def close(self) -> None:
        """Kill the program and everything it started."""
        os.close(self._master)
        try:
            self._child.wait(5.0)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()


@contextmanager
def running(words: list[str]) -> Iterator[Screen]:
    """A game that ends with the block; its settings and records are thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        screen = Screen([*words, "--side", "both"], folder)
        try:
            yield screen
        finally:
            screen.close()


def measure_start(face: str, starts: int) -> Measurement:
    """From the start of the process to its first board."""
    times = []
    for _ in range(starts):
        with running(FACES[face]) as screen:
            times.append(screen.wait_for(BOARD) - screen.began)
    return in_milliseconds(f"first board, {face}", times, "median <= 500")


def measure_keys(face: str, tries: int) -> Measurement:
    """From a key press to its letter on the screen, while the engine analyses and its reports are drawn."""
    times = []
    random = Random(SEED)
    with running(FACES[face]) as screen:
        screen.wait_for(BOARD)
        screen.press(b"analyze 3\r")
        screen.wait_for(b"depth")
        for number in range(tries):
            screen.idle(random.uniform(0.02, 0.12))
            letter = bytes([KEYS[number % len(KEYS)]])
            sent = screen.press(letter)
            times.append(screen.wait_for(letter) - sent)
            if number % 20 == 19:
                screen.press(b"\x15")  # empty the line before it is full
    return in_milliseconds(f"key to redraw, {face}", times, "median <= 50")


def measure(tries: int, starts: int) -> Iterator[Measurement]:
    """All measurements; the first start is only a warm-up."""
    with running([]) as screen:
        screen.wait_for(BOARD)
    for face in FACES:
        yield measure_start(face, starts)
    for face in FACES:
        yield measure_keys(face, tries)


def main(argv: list[str]) -> int:
    """Measure and print a table; the exit status is 2 if the game cannot be played."""
    options = parser(
        "bench terminal",
        "Measures how fast `hnefi play` shows its first board, and how fast it draws a typed letter while the engine "
        "searches, at the prompt and in the full screen.",
        ["", "--json", "--tries 500 --starts 50"],
    )
    options.add_argument("--tries", type=positive, default=100, metavar="N", help="keys in each face (100)")
    options.add_argument("--starts", type=positive, default=15, metavar="N", help="starts of each face (15)")
    options.add_argument("--json", action="store_true", help="a JSON list instead of the table")
    arguments = options.parse_args(argv)
    found = []
    if not arguments.json:
        print(f"{'':<28} {'tries':>5} {'median':>9} {'max':>9}      target")
    try:
        for line in measure(arguments.tries, arguments.starts):
            found.append(line)
            if not arguments.json:
                numbers = f"{line.tries:>5} {line.median:>9.2f} {line.max:>9.2f} {line.unit:<4}"
                print(f"{line.name:<28} {numbers} {line.target}", flush=True)
    except OSError as error:
        options.error(str(error))
    if arguments.json:
        print(json.dumps([asdict(line) for line in found], indent=2))
    return 0
