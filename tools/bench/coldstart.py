"""`hnefi bench coldstart`: the cost of the first start and of later ones, here and in another checkout.

Each start is a separate process with its own cache of machine code. CPU seconds, including those of its children, are
what the operating system reports when it ends; wall time also includes whatever else the machine is doing. The two
checkouts take turns, so that anything that slows one down slows the other as well.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import mkdtemp
from typing import Any

from ..common.arguments import let_interrupt_end_us, parser, positive
from ..common.interrupts import kill_children, undone

PARTS = {
    "first": "empty cache to `readyok`",
    "warmup": "empty cache, `hnefi warmup`",
    "ready": "warm, to `readyok`",
    "greeting": "to `uciok`",
}
COLD = ("first", "warmup")
"""The slow ones."""
PATIENCE = 7200.0
"""Seconds after which a process is killed."""
ROOMS = ("engine", "gui_adapter", "players", "protocol", "tools")
_PROGRAM = "import sys; from hnefi.tools.cli import main; sys.exit(main())"


class StartError(RuntimeError):
    """A process did not do what should have been measured."""


@dataclass(frozen=True)
class State:
    """A checkout to start: its Python, and an environment in which `hnefi` is imported from this checkout."""

    name: str
    python: str
    environment: Mapping[str, str]

    def hnefi(self, *words: str) -> list[str]:
        """The command line that runs this checkout's `hnefi` with the arguments `words`."""
        return [self.python, "-c", _PROGRAM, *words]


@dataclass(frozen=True)
class Start:
    """One measurement: what was measured, in which checkout, CPU and wall time in seconds."""

    what: str
    state: str
    cpu: float
    wall: float


@dataclass
class Series:
    """Repeated measurements of the same start: CPU and wall time in seconds."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Median, least and most of each measurement, in seconds."""
        return {
            what: {
                "median": round(median(taken), 4),
                "min": round(min(taken), 4),
                "max": round(max(taken), 4),
            }
            for what, taken in (("cpu_s", self.cpu), ("wall_s", self.wall))
        } | {"times": len(self.cpu)}


@dataclass(frozen=True)
class Ratio:
    """A ratio of two medians; `most` is the largest value that meets the target, None without a target."""

    what: str
    value: float
    most: float | None


def here() -> State:
    """The checkout that is running."""
    return State("here", sys.executable, _environment())


def checkout(folder: Path, place: Path) -> State:
    """The checkout in `folder`, run by the Python of its `.venv` if it has one, else by ours; StartError if `folder`
    is no checkout.

    The links that make one package of its folders are created in `place`.
    """
    missing = [room for room in ROOMS if not (folder / room / "__init__.py").is_file()]
    if missing:
        raise StartError(f"{folder}: expected a checkout of hnefi, with {missing[0]}/__init__.py")
    own = folder / ".venv" / "bin" / "python"
    package = place / "packages" / "hnefi"
    package.mkdir(parents=True)
    for room in ROOMS:
        (package / room).symlink_to((folder / room).resolve(), target_is_directory=True)
    python = str(own) if own.exists() else sys.executable
    return State(folder.name, python, _environment(PYTHONPATH=str(package.parent)))


def _environment(**more: str) -> dict[str, str]:
    """The environment of a user without settings: byte code is kept, and kernels are compiled our way for this
    processor."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("NUMBA_", "HNEFI_"))}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    return {**kept, **more}


def first(state: State, folder: Path) -> tuple[float, float]:
    """CPU and wall seconds from the start of the engine to `readyok`, with its machine code in `folder`."""
    return _conversation(state, folder, ["uci", "isready"], b"readyok")


def greeting(state: State, folder: Path) -> tuple[float, float]:
    """CPU and wall seconds from the start of the engine to `uciok`; it is killed then."""
    return _conversation(state, folder, ["uci"], b"uciok", kill=True)


def warmup(state: State, folder: Path) -> tuple[float, float]:
    """CPU and wall seconds of `hnefi warmup`."""
    return _whole(state, folder, state.hnefi("warmup", "--quiet"))


def bare(state: State, folder: Path) -> tuple[float, float]:
    """CPU and wall seconds of a Python that does nothing."""
    return _whole(state, folder, [state.python, "-c", "pass"])


def numba(state: State, folder: Path) -> tuple[float, float]:
    """CPU and wall seconds of a Python that imports numba."""
    return _whole(state, folder, [state.python, "-c", "import numba"])


def _conversation(
    state: State, folder: Path, said: list[str], word: bytes, *, kill: bool = False
) -> tuple[float, float]:
    with _started(state, folder, state.hnefi("engine")) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        begun = time.perf_counter()
        with suppress(BrokenPipeError):  # it has ended, so the missing answer is reported below
            child.stdin.write("".join(f"{line}\n" for line in said).encode())
            child.stdin.flush()
        if not any(line.split(None, 1)[:1] == [word] for line in child.stdout):
            raise StartError(f"{state.name}: the engine ended before it said {word.decode()}")
        wall = time.perf_counter() - begun
        if kill:
            child.kill()
        else:
            child.stdin.write(b"quit\n")
            child.stdin.flush()
        return _cpu(child), wall


def _whole(state: State, folder: Path, command: list[str]) -> tuple[float, float]:
    begun = time.perf_counter()
    with _started(state, folder, command) as child:
        cpu = _cpu(child)
        if child.returncode:
            raise StartError(f"{state.name}: {command[-1]} ended with status {child.returncode}")
        return cpu, time.perf_counter() - begun


@contextmanager
def _started(state: State, folder: Path, command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that keeps its machine code in `folder`; it is ended with the block."""
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={**state.environment, "NUMBA_CACHE_DIR": str(folder)},
    )  # fmt: skip
    watchdog = threading.Timer(PATIENCE, child.kill)
    watchdog.daemon = True
    watchdog.start()
    try:
        yield child
    finally:
        watchdog.cancel()
        if child.returncode is None:
            child.kill()
            child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


def _cpu(child: subprocess.Popen[bytes]) -> float:
    """Wait for the process to end; CPU seconds of the process and of the children it has waited for."""
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


def clear(place: Path) -> None:
    """Kill the running processes and remove what they have written."""
    kill_children()
    shutil.rmtree(place, ignore_errors=True)


Taken = dict[tuple[str, str], Series]
"""Measurements by part and checkout."""


def measure(
    states: Sequence[State], parts: Sequence[str], times: int, starts: int, place: Path
) -> Iterator[Start]:
    """Measure every cold start `times` times and every warm one `starts` times. Machine code goes to folders in
    `place`."""

    def start(
        what: str, how: Callable[[State, Path], tuple[float, float]], state: State, folder: Path
    ) -> Start:
        return Start(what, state.name, *how(state, folder))

    warm = {state.name: place / f"warm-{number}" for number, state in enumerate(states)}
    for state in states:
        greeting(state, warm[state.name])  # so that byte code exists from here on
    for _ in range(times if "first" in parts else 0):
        for state in states:
            shutil.rmtree(warm[state.name], ignore_errors=True)
            yield start("first", first, state, warm[state.name])
    for _ in range(times if "warmup" in parts else 0):
        for state in states:
            shutil.rmtree(place / "empty", ignore_errors=True)
            yield start("warmup", warmup, state, place / "empty")
    if "ready" in parts:
        for state in states:
            first(state, warm[state.name])
    for _ in range(starts if {"ready", "greeting"} & set(parts) else 0):
        for state in states:
            folder = warm[state.name]
            if "ready" in parts:
                yield start("ready", first, state, folder)
                yield start("numba", numba, state, folder)
            if "greeting" in parts:
                yield start("greeting", greeting, state, folder)
                yield start("python", bare, state, folder)


def ratios(taken: Taken, states: Sequence[State]) -> list[Ratio]:
    """The first checkout against the second, and its warm starts against what Python alone needs."""

    def ratio(what: str, unit: str, one: tuple[str, str], other: tuple[str, str], most: float | None) -> None:
        if one in taken and other in taken:
            values = [median(getattr(taken[key], unit)) for key in (one, other)]
            found.append(Ratio(what, values[0] / values[1], most))

    found: list[Ratio] = []
    own = states[0].name
    for other in states[1:]:
        against = f"to {other.name}"
        ratio(f"{PARTS['first']}, CPU {against}", "cpu", ("first", own), ("first", other.name), 0.30)
        ratio(f"{PARTS['first']}, wall {against}", "wall", ("first", own), ("first", other.name), 0.25)
        ratio(f"{PARTS['warmup']}, CPU {against}", "cpu", ("warmup", own), ("warmup", other.name), 0.35)
        for what in ("ready", "greeting"):
            ratio(f"{PARTS[what]}, CPU {against}", "cpu", (what, own), (what, other.name), None)
    for state in states:
        most = {"ready": 1.5, "greeting": 2.0} if state is states[0] else {}
        for what, python, words in (
            ("ready", "numba", "`import numba`"),
            ("greeting", "python", "a bare Python"),
        ):
            name = f"{state.name}: {PARTS[what]}, CPU to {words}"
            ratio(name, "cpu", (what, state.name), (python, state.name), most.get(what))
    return found


def table(taken: Taken) -> str:
    """Median and spread of every measurement."""
    names = {**PARTS, "numba": "`import numba`", "python": "a bare Python"}
    lines = [f"{'':<30} {'':<12} {'times':>5}   {'CPU s':<24} wall s"]
    for what, name in names.items():
        for (measured, name_of_state), series in taken.items():
            if measured == what:
                cpu, wall = _spread(series.cpu), _spread(series.wall)
                lines.append(f"{name:<30} {name_of_state:<12} {len(series.cpu):>5}   {cpu:<24} {wall}")
    return "\n".join(lines)


def _spread(seconds: Sequence[float]) -> str:
    digits = 1 if median(seconds) >= 10 else 3
    shown = (f"{value:.{digits}f}" for value in (median(seconds), min(seconds), max(seconds)))
    return "{} ({} to {})".format(*shown)


def main(argv: list[str]) -> int:
    """Measure and print a table and ratios; the exit status is 2 if something could not be started."""
    options = parser(
        "bench coldstart",
        "Measures starts of the engine: with an empty cache of machine code, where it compiles, and with a warm one "
        "against a Python that imports numba. CPU seconds do not depend on what else the machine does; wall times are "
        "only meaningful on idle cores. An empty cache takes about half a minute of CPU to `readyok` and a minute and "
        "a half for `hnefi warmup`, and a checkout from before linked kernels six times that.",
        ["", "ready greeting --starts 40", "--against ../before --times 3", "first --json"],
    )
    options.add_argument(
        "parts",
        metavar="PART",
        nargs="*",
        default=[],
        help="; ".join(f"{part}: {words}" for part, words in PARTS.items()) + " (all)",
    )
    options.add_argument(
        "--against", metavar="DIR", type=Path, help="a checkout of another version; measurements alternate"
    )
    options.add_argument(
        "--times", type=positive, default=1, metavar="N", help="starts of each with an empty cache (1)"
    )
    options.add_argument("--starts", type=positive, default=20, metavar="N", help="other starts of each (20)")
    options.add_argument("--json", action="store_true", help="a JSON object instead of the table")
    arguments = options.parse_args(argv)
    for part in arguments.parts:
        if part not in PARTS:
            options.error(f"{part[:80]!r}: expected {', '.join(PARTS)}")
    if not hasattr(os, "wait4"):
        options.error(
            "this system does not report the CPU time of a process: expected Linux, macOS or another Unix"
        )
    let_interrupt_end_us()
    parts = arguments.parts or list(PARTS)
    place = Path(mkdtemp(prefix="hnefi-coldstart-"))
    taken: Taken = {}
    failure = ""
    with undone(lambda: clear(place)):
        try:
            states = [here()]
            if arguments.against is not None:
                states.append(checkout(arguments.against, place))
            for one in measure(states, parts, arguments.times, arguments.starts, place):
                series = taken.setdefault((one.what, one.state), Series())
                series.cpu.append(one.cpu)
                series.wall.append(one.wall)
                if one.what in COLD:
                    print(
                        f"{one.state}: {PARTS[one.what]}: {one.cpu:.1f} s of CPU, {one.wall:.1f} s",
                        file=sys.stderr,
                    )
        except (OSError, StartError) as error:
            failure = str(error)
    if failure:
        options.error(failure)
    found = ratios(taken, states)
    if arguments.json:
        measured = [
            {"what": what, "state": state, **series.as_dict()} for (what, state), series in taken.items()
        ]
        compared = [
            {"what": ratio.what, "ratio": round(ratio.value, 3), "most": ratio.most} for ratio in found
        ]
        print(json.dumps({"measured": measured, "ratios": compared}, indent=2))
        return 0
    print(table(taken))
    for ratio in found:
        asked = f" (at most {ratio.most:.2f})" if ratio.most is not None else ""
        print(f"{ratio.value:5.2f}  {ratio.what}{asked}")
    return 0
