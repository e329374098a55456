"""What engines leave behind: processes that left their engine's group, and outlived it.

A process that calls `setsid` is in no group that could be killed. On Linux this process can ask to become the parent of
whatever is orphaned below it (a child subreaper, `adopting`), and knows its engines' descendants by a word in the
environment in which they were started. A second process (`guarded`) finds them by that word where this one is itself
killed by SIGKILL. On other systems, and where a descendant cleared its environment, they live on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

MARK = "HNEFI_ENGINE"
"""In the environment of everything that descends from an engine: whose it is."""

PR_SET_CHILD_SUBREAPER = 36
GENERATIONS = 20
"""How many times we look: the children of a killed process become ours, and so do theirs."""
DYING = 2.0
"""Seconds that one generation has to vanish after SIGKILL; what hangs in the kernel is reaped later. On a busy machine
a process is dead long after it was killed, and its children are left to us only then."""

_children: set[int] = set()
"""Orphans of engines that were killed and are not reaped yet: a zombie has no environment any more."""


class _State:
    """How many blocks of this process are adopting."""

    depth = 0


@contextlib.contextmanager
def adopting() -> Iterator[None]:
    """In the block orphans below this process become its children, where the system can do that, and what an engine
    leaves behind ends with it. Only for commands that run engines: a process that adopts has to reap."""
    able = sys.platform == "linux" and _subreaper(True)
    _State.depth += able
    try:
        yield
    finally:
        _State.depth -= able
        if able and not _State.depth:
            _subreaper(False)


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """As `adopting`, and what engines leave behind ends also where this process is killed by SIGKILL in the block."""
    with adopting():
        if not adopts():
            yield
            return
        script = str(Path(__file__).with_name("guard.py"))
        # Nothing of ours in its hands but the pipe whose end it waits for.
        with subprocess.Popen(
            [sys.executable, "-I", "-S", script, MARK, _marks()], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, cwd="/", start_new_session=True,
        ) as guard:  # fmt: skip
            try:
                yield
            finally:
                guard.kill()


def adopts() -> bool:
    """Whether orphans become our children now."""
    return _State.depth > 0


def _subreaper(on: bool) -> bool:
    import ctypes

    try:
        return int(ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0)) == 0
    except (OSError, AttributeError):
        return False


def mark(number: int) -> str:
    """What the environment of our engine `number` says, and so that of all that it starts."""
    return f"{_marks()}{number}"


def _marks() -> str:
    """How the marks of all our engines begin."""
    return f"{os.environ.get(MARK, '')}/{os.getpid()}."


def end_orphans(started: Collection[int], marked: str = "", session: int = 0) -> None:
    """Kill and reap what was left to us by engines; `started` are children that have an owner and are left alone.

    With `marked` only descendants of that engine, and those of its `session`; without it those of all that ever were
    started below this process.
    """
    if not adopts():
        return
    wanted = marked or f"{os.environ.get(MARK, '')}/"

    def theirs(child: int) -> bool:
        if child in started:
            return False
        if child in _children or (session and _session(child) == session):
            return True
        word = _marked(child)
        return word == wanted or word.startswith(wanted if wanted.endswith("/") else f"{wanted}/")

    for _ in range(GENERATIONS):
        found = list(_ours(theirs))
        if not found:
            return
        for child in found:
            _children.add(child)
            _kill(child)
        end = time.monotonic() + DYING
        while not all(map(_reaped, found)):
            if time.monotonic() > end:
                return
            time.sleep(0.001)


def _ours(wanted: Callable[[int], bool]) -> Iterator[int]:
    """The children of this process, those of all its threads."""
    for thread in Path("/proc/self/task").iterdir():
        try:
            text = (thread / "children").read_text()
        except OSError:
            continue
        yield from filter(wanted, map(int, text.split()))


def _session(child: int) -> int:
    try:
        return int(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[3])
    except (OSError, IndexError, ValueError):
        return 0


def _marked(child: int) -> str:
    """The mark in a process's environment; empty if it has none, or has ended."""
    begin = f"{MARK}=".encode()
    try:
        words = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    return next(
        (word[len(begin) :].decode("utf-8", "replace") for word in words if word.startswith(begin)), ""
    )


def _kill(child: int) -> None:
    try:
        os.kill(child, signal.SIGKILL)
    except ProcessLookupError:
        return


def _reaped(child: int) -> bool:
    try:
        done, _ = os.waitpid(child, os.WNOHANG)
    except ChildProcessError:
        done = child
    if done:
        _children.discard(child)
    return bool(done)
