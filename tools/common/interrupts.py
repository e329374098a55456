"""Ctrl-C, TERM and HUP in commands that keep what they finish: a flag that a handler sets, and a deadline.

An exception that a signal raises (`KeyboardInterrupt`) comes up in whatever line runs just then, in the middle of
libraries that swallow it; and it does not come up at all while a call in C keeps the main thread. So nothing is raised
by a signal here. The system writes its number to a socket (`signal.set_wakeup_fd`), which works at any moment; a thread
reads that, sets the flag and wakes whoever waits. The first interrupt lets the command end by itself within a moment:
it comes past `check`, or waits by `told`. If it does not, because LLVM compiles or a disk is slow, or if it is asked
once more, that thread ends the process with all its children. Nothing is lost by that: what is finished is on the disk.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hnefi.protocol.hosts.exit_codes import INTERRUPTED

GRACE = 0.7
"""Seconds after the first interrupt in which a command ends by itself, or is ended."""
LONGER = 10.0
"""The same while it writes down what it has found (`finishing`)."""
TWICE = 0.2
"""Interrupts so near to each other are one: `timeout`, and shells, signal a process and then its whole group."""
BY_SIGNAL = 128
"""A shell adds this to the number of the signal that ended a command."""
SAYING = 2.0
"""Seconds in which the last words must be out, counted from when the system lets the thread that says them run."""
SCHEDULED = 10.0
"""Seconds in which it does so, however busy it is."""

Words = Callable[[], Sequence[str]]


class Interrupted(Exception):
    """Somebody asked this command to end. Raised by `check` only, never by a signal."""


class Caught:
    """The interrupts of one command, while they are caught. `ended` says that it ended by one."""

    def __init__(self, words: Words, grace: float | None = 0.0) -> None:
        self.ended = False
        self.asked = threading.Event()
        self._words = words
        self._grace = grace
        self._listeners: list[Callable[[], object]] = []
        self._lock = threading.Lock()
        self._saying = threading.Lock()
        self._said = False
        self._until: float | None = None
        self._last = -TWICE
        self._changed = threading.Condition()

    def check(self) -> None:
        """Interrupted if a signal asked for an end."""
        if self.asked.is_set():
            raise Interrupted

    def say(self) -> None:
        """The last words, once. Whoever comes second returns when they are out: it may be about to end the process."""
        with self._saying:
            if self._said:
                return
            self._said = True
            with contextlib.suppress(OSError, ValueError):
                lines = self._words()
                print("\n".join(lines), file=sys.stderr, flush=True)

    def listen(self, listener: Callable[[], object]) -> None:
        """Call `listener` at every interrupt, from another thread; at once if there was one."""
        with self._lock:
            self._listeners.append(listener)
        if self.asked.is_set():
            listener()

    def forget(self, listener: Callable[[], object]) -> None:
        """Call `listener` no longer; nothing happens if it was not listening."""
        with self._lock, contextlib.suppress(ValueError):
            self._listeners.remove(listener)

    def patient(self, seconds: float) -> None:
        """Whoever was interrupted has so many seconds from now on."""
        with self._changed:
            if self._until is not None:
                self._until = time.monotonic() + seconds
                self._changed.notify_all()

    def interrupt(self) -> None:
        """An interrupt has come; a second one ends the process."""
        now = time.monotonic()
        if now - self._last < TWICE:
            return
        self._last = now
        again = self.asked.is_set()
        self.asked.set()
        with self._lock:
            listeners = list(self._listeners)
        if again and self._grace is not None:
            self.leave()
        seconds = GRACE if again else self._grace
        if seconds is not None:
            with self._changed:
                waits = self._until is not None
                self._until = now + (seconds or GRACE)
                self._changed.notify_all()
            if not waits:
                threading.Thread(target=self._wait, name="interrupts-deadline", daemon=True).start()
        for listener in listeners:
            with contextlib.suppress(RuntimeError):  # a closed event loop
                listener()

    def over(self) -> None:
        """The command has ended, and this process goes on."""
        with self._changed:
            self._until = None
            self._changed.notify_all()

    def _wait(self) -> None:
        """End the process at the deadline."""
        with self._changed:
            while True:
                if self._until is None:
                    return
                left = self._until - time.monotonic()
                if left <= 0.0:
                    break
                self._changed.wait(left)
        self.leave()

    def leave(self) -> None:
        """End the process and its children at once, after the last words."""
        # The reader of standard error may have stopped, or the main thread may hold the stream's lock.
        running = threading.Event()

        def say() -> None:
            running.set()
            self.say()

        words = threading.Thread(target=say, daemon=True)
        words.start()
        kill_children()
        running.wait(SCHEDULED)
        words.join(SAYING)
        _exit(INTERRUPTED)


class _State:
    """Of this process: whose interrupts are caught now, and whether a command has ended by one."""

    caught: Caught | None = None
    interrupted: object = None
    """By which the command has ended; its socket stays open."""
    program = False
    """Whether the command is all that this process does."""


def _exit(status: int) -> None:
    os._exit(status)


class caught:  # noqa: N801 - used as a function
    """Catch interrupts in the block, and end it by the first one: `ended` of what it gives is true behind it then, and
    the lines of `words` (what is kept, how to go on) have been printed on standard error.

    Only `check` ends the block; where nobody comes past it within `grace` seconds (0: `GRACE`), the process ends. None
    for a command that listens itself and may take its time: the second interrupt gives it `GRACE` seconds. In such
    a block of another command that one's words and grace hold.
    """

    def __init__(self, words: Words, grace: float | None = 0.0) -> None:
        self._mine = Caught(words, grace)
        self._release: Callable[[], None] | None = None

    def __enter__(self) -> Caught:
        if _State.caught is not None:
            return _State.caught
        self._release = _catch(lambda _: self._mine.interrupt())
        _State.caught = self._mine
        return self._mine

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> bool:
        if self._release is None:
            return False
        mine = self._mine
        mine.ended = kind is Interrupted
        if mine.ended:
            mine.say()
        _State.caught = None
        if mine.asked.is_set() and _State.program:
            # The next one still ends the process at once, and the deadline holds until it has ended.
            _State.interrupted = self
        else:
            mine.over()
            self._release()
        return mine.ended


def check() -> None:
    """Interrupted if a signal asked the running command to end."""
    if _State.caught is not None:
        _State.caught.check()


@contextlib.contextmanager
def told(listener: Callable[[], object]) -> Iterator[bool]:
    """Call `listener` at every interrupt in the block, from another thread; at once if there was one before. Gives
    whether interrupts are caught here at all."""
    where = _State.caught
    if where is None:
        yield False
        return
    where.listen(listener)
    try:
        yield True
    finally:
        where.forget(listener)


def finishing() -> None:
    """Whoever was interrupted writes down now what it has found, and may take longer."""
    if _State.caught is not None:
        _State.caught.patient(LONGER)


def let_them_end_us() -> None:
    """Interrupts end the process at once, without a word: for commands with nothing to keep, and until there is.

    With `nohup` the end of the terminal stays ignored.
    """
    with contextlib.suppress(ValueError):  # not in the main thread
        for number in _heard():
            signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def undone(undo: Callable[[], object]) -> Iterator[None]:
    """Call `undo` at the end of the block, also where interrupts end the process (`let_them_end_us`) in it."""

    ending = threading.Event()

    def end(number: int) -> None:
        ending.set()
        try:
            undo()
        finally:
            _exit(BY_SIGNAL + number)

    release = _catch(end)
    try:
        yield
    finally:
        if ending.is_set():
            # What went wrong in the block did so because of `undo`: there is nothing to be said about it.
            threading.Event().wait()
        undo()
        release()


def gone_with_us(half: Path) -> contextlib.AbstractContextManager[None]:
    """Where interrupts end the process (`let_them_end_us`), this half-written file goes with it."""
    return undone(lambda: half.unlink(missing_ok=True))


def is_program() -> None:
    """The command is all that this process does: a deadline holds until it has ended."""
    _State.program = True


def ended(status: int) -> int:
    """The exit status of a command that is over. After an interrupt it does not wait for work that still runs in
    threads."""
    if _State.interrupted is not None:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        kill_children()
        _exit(status)
    return status


# Signals


NUMBERS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)
)


def _heard() -> list[int]:
    """All of these but HUP under `nohup`."""
    return [
        number
        for number in NUMBERS
        if number == signal.SIGINT or signal.getsignal(number) not in (signal.SIG_IGN, None)
    ]


def _catch(heard: Callable[[int], object]) -> Callable[[], None]:
    """Let signals interrupt `mine`; what takes that back. Nothing outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    fd_before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    # A handler there must be for the system to write to the socket; it has nothing to do.
    before = {number: signal.signal(number, lambda *_: None) for number in _heard()}

    def read() -> None:
        while came := ours.recv(64):
            for number in came:
                if number in before:
                    heard(number)
        ours.close()

    threading.Thread(target=read, name="interrupts", daemon=True).start()

    def release() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(fd_before)
        theirs.close()

    return release


# Children


def kill_children() -> None:
    """End every process that we have started, and what those have started. Trackers of joblib end by themselves when
    we do, and clean up before."""
    spared = _trackers()
    for pid, leads in _descendants(os.getpid(), spared):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if leads:
                os.killpg(pid, signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)


def _trackers() -> set[int]:
    names = ("multiprocessing.resource_tracker", "joblib.externals.loky.backend.resource_tracker")
    found = (getattr(sys.modules.get(name), "_resource_tracker", None) for name in names)
    return {pid for tracker in found if (pid := getattr(tracker, "_pid", None))}


def _descendants(root: int, spared: set[int]) -> list[tuple[int, bool]]:
    """Numbers of processes below `root`, and whether each leads a group of its own."""
    children: dict[int, list[tuple[int, bool]]] = {}
    for pid, parent, group in _processes():
        if pid not in spared:
            children.setdefault(parent, []).append((pid, pid == group))
    found, waiting = [], [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += [pid for pid, _ in below]
    return found


def _processes() -> Iterator[tuple[int, int, int]]:
    """Every process: its number, its parent's, its group's."""
    if sys.platform == "linux":
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                words = (entry / "stat").read_text().rpartition(")")[2].split()
                yield int(entry.name), int(words[1]), int(words[2])
    elif os.name == "posix":
        import subprocess

        with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError):
            listed = subprocess.run(
                ["ps", "-A", "-o", "pid=,ppid=,pgid="],
                capture_output=True,
                text=True,
                timeout=GRACE,
                check=True,
            )
            for line in listed.stdout.splitlines():
                pid, parent, group = map(int, line.split())
                yield pid, parent, group
