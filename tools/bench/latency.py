"""`hnefi bench latency`: how fast the engine process starts, answers, stops and leaves, and how much memory it keeps.

Measured from outside through pipes, as a program that drives the engine would see it: medians and maxima of the wall
time of many tries. On a busy machine the maxima say more about the machine than about the engine.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from random import Random
from statistics import median

from hnefi.protocol.client import own_command
from hnefi.protocol.hosts.registry import engine_of

from ..common.arguments import parser, positive

SEED = 1
PATIENCE = 600.0
"""Seconds after which an engine that does not answer is killed; the first start may have to compile everything."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One line of the table: milliseconds, or MiB for memory, over `tries` tries; `target` says what `median` or `max`
    should be."""

    name: str
    unit: str
    tries: int
    median: float
    max: float
    target: str


class Engine:
    """An engine process behind blocking pipes."""

    def __init__(self, command: list[str]) -> None:
        self.began = time.perf_counter()
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._input = self._child.stdin
        self._output = self._child.stdout
        self._watchdog = threading.Timer(PATIENCE, self._child.kill)
        self._watchdog.daemon = True
        self._watchdog.start()

    def send(self, *lines: str) -> float:
        """Send lines in one write; returns the time just before it."""
        data = "".join(f"{line}\n" for line in lines).encode()
        now = time.perf_counter()
        self._input.write(data)
        self._input.flush()
        return now

    def wait_for(self, word: bytes) -> float:
        """Read up to a line that begins with `word`; returns the time just after. OSError if the engine ends first."""
        for line in self._output:
            if line.split(None, 1)[:1] == [word]:
                return time.perf_counter()
        raise OSError(f"the engine ended before it said {word.decode()}")

    def end_input(self) -> float:
        """Close the engine's input and wait for it to end; returns the seconds this took."""
        began = time.perf_counter()
        self._input.close()
        self._child.wait()
        return time.perf_counter() - began

    def memory(self) -> float:
        """Resident memory in MiB."""
        listed = subprocess.run(
            ["ps", "-o", "rss=", "-p", str(self._child.pid)], capture_output=True, text=True, check=True
        )
        return int(listed.stdout) / 1024

    def close(self) -> None:
        """Kill the process."""
        self._watchdog.cancel()
        self._child.kill()
        self._child.wait()
        self._input.close()
        self._output.close()


@contextmanager
def running(command: list[str]) -> Iterator[Engine]:
    """An engine process that ends with the block."""
    engine = Engine(command)
    try:
        yield engine
    finally:
        engine.close()


def measure_greeting(command: list[str], tries: int) -> Measurement:
    """From the start of the process to `uciok`."""
    times = []
    for _ in range(tries):
        with running(command) as engine:
            engine.send("uci")
            times.append(engine.wait_for(b"uciok") - engine.began)
    return in_milliseconds("start to uciok", times, "median <= 30")


def measure_ready(command: list[str], tries: int) -> Measurement:
    """From the start of the process to `readyok`, with everything compiled beforehand."""
    times = []
    for _ in range(tries):
        with running(command) as engine:
            engine.send("uci", "isready")
            times.append(engine.wait_for(b"readyok") - engine.began)
    return in_milliseconds("start to readyok", times, "median <= 500")


def measure_stop(command: list[str], tries: int) -> Measurement:
    """From `stop` to `bestmove`, at random moments of a search."""
    times = []
    random = Random(SEED)
    with running(command) as engine:
        engine.send("uci", "isready")
        engine.wait_for(b"readyok")
        for _ in range(tries):
            engine.send("ucinewgame", "position startpos", "go infinite")
            time.sleep(random.uniform(0.001, 0.06))
            sent = engine.send("stop")
            times.append(engine.wait_for(b"bestmove") - sent)
    return in_milliseconds("stop to bestmove", times, "median <= 5, max <= 50")


def measure_ping(command: list[str], tries: int) -> Measurement:
    """From `isready` to `readyok` in the middle of a search."""
    times = []
    with running(command) as engine:
        engine.send("uci", "isready")
        engine.wait_for(b"readyok")
        engine.send("position startpos", "go infinite")
        for _ in range(tries):
            time.sleep(0.005)
            sent = engine.send("isready")
            times.append(engine.wait_for(b"readyok") - sent)
    return in_milliseconds("isready in a search", times, "median <= 2")


def measure_end_of_input(command: list[str], tries: int) -> Measurement:
    """From the end of input during `go infinite` to the end of the process."""
    times = []
    for _ in range(tries):
        with running(command) as engine:
            engine.send("uci", "isready")
            engine.wait_for(b"readyok")
            engine.send("position startpos", "go infinite")
            time.sleep(0.1)
            times.append(engine.end_input())
    return in_milliseconds("end of input to exit", times, "max <= 100")


def measure_memory(command: list[str]) -> Measurement:
    """Memory of an idle engine with a table of 64 MiB, after a search has used the table."""
    with running(command) as engine:
        engine.send("uci", "setoption name Hash value 64", "isready", "position startpos", "go nodes 200000")
        engine.wait_for(b"bestmove")
        size = engine.memory()
    return Measurement("idle memory, Hash 64", "MiB", 1, round(size, 1), round(size, 1), "<= 300")


def in_milliseconds(name: str, seconds: list[float], target: str) -> Measurement:
    """The summary of times taken in seconds."""
    return Measurement(
        name, "ms", len(seconds), round(median(seconds) * 1000, 2), round(max(seconds) * 1000, 2), target
    )


def measure(command: list[str], tries: int, starts: int) -> Iterator[Measurement]:
    """All measurements, one after another; the first start is only a warm-up."""
    with running(command) as engine:
        engine.send("uci", "isready")
        engine.wait_for(b"readyok")
    yield measure_greeting(command, starts)
    yield measure_ready(command, starts)
    yield measure_stop(command, tries)
    yield measure_ping(command, tries)
    yield measure_end_of_input(command, starts)
    yield measure_memory(command)


def main(argv: list[str]) -> int:
    """Measure and print a table; the exit status is 2 if the engine cannot be run."""
    options = parser(
        "bench latency",
        "Measures how fast the engine process starts, answers, stops and exits, and how much memory it uses.",
        ["", "--json", "--engine 'other-engine --fast'"],
    )
    options.add_argument("--engine", metavar="CMD", help="another engine that speaks uci, instead of ours")
    options.add_argument(
        "--tries", type=positive, default=200, metavar="N", help="measurements of stops and pings (200)"
    )
    options.add_argument(
        "--starts", type=positive, default=20, metavar="N", help="starts of the process (20)"
    )
    options.add_argument("--json", action="store_true", help="a JSON list instead of the table")
    arguments = options.parse_args(argv)
    try:
        command = list(engine_of(arguments.engine).words) if arguments.engine else own_command()
    except ValueError as error:
        options.error(f"--engine: {error}")
    found = []
    if not arguments.json:
        print(f"{'':<22} {'tries':>5} {'median':>9} {'max':>9}      target")
    try:
        for line in measure(command, arguments.tries, arguments.starts):
            found.append(line)
            if not arguments.json:
                numbers = f"{line.tries:>5} {line.median:>9.2f} {line.max:>9.2f} {line.unit:<4}"
                print(f"{line.name:<22} {numbers} {line.target}", flush=True)
    except OSError as error:
        options.error(f"{shlex.join(command)}: {error}")
    if arguments.json:
        print(json.dumps([asdict(line) for line in found], indent=2))
    return 0
