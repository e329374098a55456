"""`compiling 3/9 search (12 s, about 40 s left)` on standard error while kernels are compiled: in this process, in its
workers, or in an engine that it has started.

On a terminal the line is redrawn in place and disappears before other output; elsewhere a line is printed now and then.
Nothing goes to standard output, and kernels from the cache are not mentioned.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from hnefi.engine.compile.progress import Progress, listening

PAUSE = 10.0
"""Minimum seconds between two plain lines."""
STALE = 2.5
"""Seconds after the last report after which compiling counts as finished."""
BAR = 20


class Line:
    """The progress line on a stream. Call it with every report, from any thread."""

    def __init__(self, stream: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self.terminal = bool(stream.isatty()) and os.environ.get("TERM") != "dumb"
        self._lock = threading.RLock()
        self._drawn = False
        self._said = -PAUSE
        self._own = -STALE
        self._timer: threading.Timer | None = None

    def __call__(self, progress: Progress) -> None:
        with self._lock, contextlib.suppress(OSError, ValueError):
            now = self._clock()
            if not progress.elsewhere:
                self._own = now
            elif now - self._own < STALE:
                return  # one process compiles and the others wait for it
            if self.terminal:
                self._draw(progress)
            elif now - self._said >= PAUSE:
                self._said = now
                print(words(progress), file=self._stream, flush=True)

    def erase(self) -> None:
        """Remove the line, because something else is about to be written."""
        with self._lock, contextlib.suppress(OSError, ValueError):
            if self._drawn:
                self._drawn = False
                self._stream.write("\r\x1b[K")
                self._stream.flush()

    def end(self) -> None:
        """Compiling has finished."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self.erase()

    def _draw(self, progress: Progress) -> None:
        done = BAR * progress.done // max(1, progress.total)
        columns = _columns(self._stream) - 1
        line = f"[{'#' * done}{'.' * (BAR - done)}] {words(progress)}"
        self._stream.write(f"\r\x1b[K{line[:columns]}")
        self._stream.flush()
        self._drawn = True
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(STALE, self.erase)
        self._timer.daemon = True
        self._timer.start()


def words(progress: Progress) -> str:
    """`compiling 3/9 search (12 s, about 40 s left)`"""
    facts = [f"{progress.elapsed:.0f} s"]
    if progress.elsewhere:
        facts.append("in another process")
    elif progress.remaining is not None:
        facts.append(f"about {progress.remaining:.0f} s left")
    return f"compiling {progress.done}/{progress.total} {progress.part} ({', '.join(facts)})"


def _columns(stream: Any) -> int:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return max(20, os.get_terminal_size(stream.fileno()).columns)
    return 80


class _State:
    line: Line | None = None


def report(progress: Progress) -> None:
    """Show how far an engine or a worker is with compiling, if such lines are shown at all; say once if the results
    cannot be cached."""
    if _State.line is not None:
        if progress.unkept:
            from hnefi.engine.compile.cache import tell_unkept
            from hnefi.protocol.hosts.text_table import safe

            tell_unkept(safe(progress.unkept))
        _State.line(progress)


@contextlib.contextmanager
def shown_on_stderr(*, quiet: bool = False) -> Iterator[None]:
    """Show during the block that kernels are being compiled; `quiet` shows nothing."""
    if quiet or _State.line is not None or sys.stderr is None:
        yield
        return
    line = Line(sys.stderr)
    before = sys.stdout, sys.stderr
    if line.terminal:
        # Printed text always begins on an empty line.
        sys.stdout, sys.stderr = (_Above(stream, line) for stream in before)
    _State.line = line
    try:
        with listening(line):
            yield
    finally:
        _State.line = None
        line.end()
        sys.stdout, sys.stderr = before


class _Above:
    """A stream that removes the progress line before it writes."""

    def __init__(self, stream: Any, line: Line) -> None:
        self._stream = stream
        self._line = line

    def write(self, text: str) -> Any:
        self._line.erase()
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
