"""What is being compiled, reported to a listener at most once a second, from a thread of its own.

Reports come even while a single function takes long, so a listener that hears nothing for
several seconds may take it for dead. This module imports neither numpy nor numba.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

INTERVAL = 1.0
"""Seconds between two reports."""
PATIENCE = 0.3
"""Seconds before the first report: shorter compilations are not reported."""
SLOWEST = 8.0
"""How many times slower than usual an estimate takes a machine to be: one part that was held up says little."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Compilation as it stands: `done` of `total` parts are ready and `part` is being worked on.

    `elapsed` and `remaining` are seconds; `remaining` is None if it cannot be estimated. `elsewhere` says that another
    process compiles and this one waits for it. `unkept` says where nothing that is compiled can be kept, and why: `in
    /cache/hnefi (Read-only file system)`.
    """

    done: int
    total: int
    part: str
    elapsed: float
    remaining: float | None = None
    elsewhere: bool = False
    unkept: str = ""


def unkept_text(unkept: str) -> str:
    """The sentence about a `Progress.unkept`."""
    return f"machine code cannot be stored {unkept}, so every start compiles again"


Listener = Callable[[Progress], None]

_lock = threading.RLock()
_listeners: list[Listener] = []


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call `listener` with every report while the block runs, from a thread of its own."""
    with _lock:
        _listeners.append(listener)
    try:
        yield
    finally:
        with _lock:
            _listeners.remove(listener)


class _State:
    """What is going on in this process: the parts that are expected, and the one being compiled."""

    def __init__(self) -> None:
        self.expected: dict[str, float] = {}
        """Seconds that each part of the plan should take."""
        self.done: dict[str, float] = {}
        """Parts of the plan that are ready, and the seconds they took: 0 for one that was loaded."""
        self.name: object = None
        self.ready: frozenset[str] = frozenset()
        """The last plan, and its parts that were ready at its end."""
        self.part = ""
        self.begun = 0.0
        self.part_begun = 0.0
        self.elsewhere: Progress | None = None
        self.unkept = ""
        self.ticker: threading.Thread | None = None


_state = _State()


@contextlib.contextmanager
def plan(parts: Mapping[str, float], name: object = None) -> Iterator[None]:
    """Expect these parts, each with the seconds it usually takes; reports count them while the block runs.

    Parts that were ready at the end of the last plan of this name count as ready: an engine first loads what is
    compiled, as far as it comes, and then plans to compile the rest.
    """
    with _lock:
        ready = _state.ready if name is not None and name == _state.name else ()
        _state.name = name
        _state.expected, _state.done = dict(parts), dict.fromkeys(ready, 0.0)
        _state.begun = time.monotonic()
    try:
        yield
    finally:
        with _lock:
            _state.ready = frozenset(_state.done)
            _state.expected, _state.done = {}, {}


def loaded(part: str) -> None:
    """A part was found in the cache."""
    with _lock:
        _state.done.setdefault(part, 0.0)


@contextlib.contextmanager
def waiting(part: str) -> Iterator[Callable[[Progress | None], None]]:
    """Report that another process compiles what we wait for; the function given takes what that one says."""
    begin(part)

    def heard(progress: Progress | None) -> None:
        with _lock:
            elapsed = time.monotonic() - _state.part_begun
            known = progress or Progress(0, 1, part, elapsed)
            _state.elsewhere = Progress(
                known.done, known.total, known.part, elapsed, known.remaining, elsewhere=True
            )

    heard(None)
    try:
        yield heard
    finally:
        end()


def current() -> Progress | None:
    """How things stand, None where nothing is compiled."""
    with _lock:
        if not _state.part:
            return None
        if _state.elsewhere is not None:
            return _state.elsewhere
        now = time.monotonic()
        parts = dict.fromkeys([*_state.expected, *_state.done, _state.part])
        done = [part for part in parts if part in _state.done and part != _state.part]
        elapsed = now - min(_state.begun, _state.part_begun)
        return Progress(len(done), len(parts), _state.part, elapsed, _remaining(now), unkept=_state.unkept)


def _remaining(now: float) -> float | None:
    """Seconds left by what the parts usually take, scaled by how fast this machine is today."""
    if _state.part not in _state.expected:
        return None
    here = now - _state.part_begun
    compiled = {part: seconds for part, seconds in _state.done.items() if seconds and part in _state.expected}
    usual = sum(_state.expected[part] for part in compiled)
    scale = min(SLOWEST, sum(compiled.values()) / usual) if usual > 1.0 else 1.0
    left = max(0.0, _state.expected[_state.part] * scale - here)
    return left + scale * sum(
        seconds
        for part, seconds in _state.expected.items()
        if part not in _state.done and part != _state.part
    )


def cannot_keep(unkept: str) -> None:
    """From now on reports say that nothing is kept."""
    with _lock:
        _state.unkept = unkept


def begin(part: str) -> None:
    """`part` is being compiled from now on."""
    with _lock:
        _state.part, _state.part_begun = part, time.monotonic()
        if not _state.expected:
            _state.begun = _state.part_begun
        if _state.ticker is None:
            _state.ticker = threading.Thread(target=_tick, daemon=True, name="compilation reports")
            _state.ticker.start()


def end() -> float:
    """The part that was begun is ready, or given up; returns the seconds it took, 0 if there was none."""
    with _lock:
        part, _state.part = _state.part, ""
        if not part:
            return 0.0
        seconds = time.monotonic() - _state.part_begun
        if _state.elsewhere is None:
            _state.done[part] = seconds
        _state.elsewhere = None
        if not _state.expected:
            _state.done = {}
        return seconds


def _tick() -> None:
    time.sleep(PATIENCE)
    while True:
        with _lock:
            report, told = current(), list(_listeners)
            if report is None and not _state.expected:
                _state.ticker = None
                return
        if report is not None:
            for listener in told:
                with contextlib.suppress(Exception):  # an error of a listener must not stop the compiler
                    listener(report)
        time.sleep(INTERVAL)


def as_numbers(progress: Progress) -> Sequence[object]:
    """A report as JSON can hold it; `of_numbers` reads it."""
    return [progress.done, progress.total, progress.part, progress.elapsed, progress.remaining]


def of_numbers(values: object) -> Progress | None:
    """What `as_numbers` has written, None if it is anything else."""
    match values:
        case [
            int(done),
            int(total),
            str(part),
            int() | float() as elapsed,
            None | int() | float() as remaining,
        ]:
            return Progress(done, total, part[:40], float(elapsed), remaining)
    return None
