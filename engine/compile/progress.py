"""What is being compiled, told to whoever waits: at most once a second, from a thread of its own.

A compiler that works says so even while one function keeps it busy for long, so a listener that hears nothing for
several seconds may take it for dead. This module imports neither numpy nor numba.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

INTERVAL = 1.0
"""Seconds between two reports."""
PATIENCE = 0.2
"""What takes less, such as a kernel loaded from the disk cache, is not worth a word. In seconds."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Compilation as it stands: `done` of `total` parts are ready and `part` is being worked on.

    `elapsed` and `remaining` are seconds; `remaining` is None where nobody can tell. `elsewhere` says that another
    process compiles and this one waits for it.
    """

    done: int
    total: int
    part: str
    elapsed: float
    remaining: float | None = None
    elsewhere: bool = False


Listener = Callable[[Progress], None]

_lock = threading.Lock()
_listeners: list[Listener] = []


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call `listener` with every report while the block runs; it is called from a thread of ours."""
    with _lock:
        _listeners.append(listener)
    try:
        yield
    finally:
        with _lock:
            _listeners.remove(listener)
