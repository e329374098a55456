"""Ctrl-C, TERM and HUP in commands that save finished work: a flag that is set on a signal, and a deadline.

An exception raised by a signal (`KeyboardInterrupt`) appears in whatever line happens to run, for example inside a
library that swallows it, and not at all while a call in C occupies the main thread. So no signal raises anything here.
The system writes its number to a socket (`signal.set_wakeup_fd`), which works at any time; a thread reads it, sets the
flag and wakes everything that waits. After the first interrupt the command has a moment to end by itself, through
`check` or a listener (`told`). If it does not, because LLVM is compiling or a disk is slow, or if there is a second
interrupt, that thread ends the process with all its children. Nothing is lost: finished work is on the disk.
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
"""Seconds that a command has after the first interrupt to end by itself; then it is ended."""
LONGER = 10.0
"""The same while it saves its results (`finishing`)."""
TWICE = 0.2
"""Seconds within which interrupts count as one: `timeout` and shells signal a process and then its whole group."""
BY_SIGNAL = 128
"""What a shell adds to the number of the signal that ended a command."""
SAYING = 2.0
"""Seconds to write the last words, from the moment at which the system runs the thread that writes them."""
SCHEDULED = 10.0
"""Seconds to wait until the system runs that thread, however busy it is."""

Words = Callable[[], Sequence[str]]


class Interrupted(Exception):
    """The command was asked to end. Raised only by `check`, never by a signal."""


class Caught:
    """The interrupts of one command while they are caught. `ended` says whether one has ended it."""

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
        """Raise Interrupted if a signal has asked the command to end."""
        if self.asked.is_set():
            raise Interrupted

    def say(self) -> None:
        """Write the last words once. A second caller returns only after they are written, because it may be about to
        end the process."""
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
        """Stop calling `listener`; no effect if it was not registered."""
        with self._lock, contextlib.suppress(ValueError):
            self._listeners.remove(listener)

    def patient(self, seconds: float) -> None:
        """If there was an interrupt, allow `seconds` more from now."""
        with self._changed:
            if self._until is not None:
                self._until = time.monotonic() + seconds
                self._changed.notify_all()

    def interrupt(self) -> None:
        """Handle an interrupt; a second one ends the process."""
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
        """The command has ended, but this process continues."""
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
        # Writing may block: nobody may be reading standard error, or the main thread may hold the stream's lock.
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
    """State of this process: whose interrupts are caught now, and whether an interrupt has ended a command."""

    caught: Caught | None = None
    interrupted: object = None
    """The `caught` block that an interrupt ended; kept so that its socket stays open."""
    program = False
    """Whether this process does nothing but run the command."""


def _exit(status: int) -> None:
    os._exit(status)


class caught:  # noqa: N801 - used as a function
    """Catch interrupts in the block and end it at the first one. `ended` of the yielded `Caught` is then true after the
    block, and the lines of `words` (what was saved, how to continue) have been printed on standard error.

    Only `check` ends the block; if it is not called within `grace` seconds (0: `GRACE`), the process ends. `grace` is
    None for a command that listens itself and may take its time: then the second interrupt gives it `GRACE` seconds.
    Inside another command's block, the words and grace of that outer block apply.
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
            # Until the process has ended, the deadline holds and the next interrupt still ends it at once.
            _State.interrupted = self
        else:
            mine.over()
            self._release()
        return mine.ended


def check() -> None:
    """Raise Interrupted if a signal has asked the running command to end."""
    if _State.caught is not None:
        _State.caught.check()


@contextlib.contextmanager
def told(listener: Callable[[], object]) -> Iterator[bool]:
    """Call `listener` at every interrupt in the block, from another thread, and at once if there was one before. Yields
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
    """If there was an interrupt, allow more time, because the command is now saving its results."""
    if _State.caught is not None:
        _State.caught.patient(LONGER)


def let_them_end_us() -> None:
    """Let interrupts end the process at once and silently: for commands with nothing to save, or nothing to save yet.

    Under `nohup`, closing the terminal is still ignored.
    """
    with contextlib.suppress(ValueError):  # not in the main thread
        for number in _heard():
            signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def undone(undo: Callable[[], object]) -> Iterator[None]:
    """Call `undo` at the end of the block, also if an interrupt ends the process in it (`let_them_end_us`)."""

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
            # Errors in the block are consequences of `undo` and not worth reporting.
            threading.Event().wait()
        undo()
        release()


def gone_with_us(half: Path) -> contextlib.AbstractContextManager[None]:
    """If an interrupt ends the process in the block (`let_them_end_us`), remove the half-written file `half`."""
    return undone(lambda: half.unlink(missing_ok=True))


def is_program() -> None:
    """This process only runs the command, so a deadline holds until the process has ended."""
    _State.program = True


def ended(status: int) -> int:
    """The exit status of a finished command. After an interrupt, exit without waiting for work that still runs in
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
    """The signals to handle: `NUMBERS`, without HUP under `nohup`."""
    return [
        number
        for number in NUMBERS
        if number == signal.SIGINT or signal.getsignal(number) not in (signal.SIG_IGN, None)
    ]


def _catch(heard: Callable[[int], object]) -> Callable[[], None]:
    """Call `heard` with the number of every signal; returns a function that restores the previous state. Does nothing
    outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    fd_before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    # The system writes to the socket only for signals with a handler; the handler itself has nothing to do.
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
    """Kill all processes that we have started, with their descendants, except joblib's trackers: those clean up and
    exit by themselves when we do."""
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
    """Ids of the descendants of `root`, and whether each leads its own process group."""
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
    """The id of every process, with those of its parent and its group."""
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
