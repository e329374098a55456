"""One child process and its bytes, on the running event loop: start, read, write, see it end, end it.

Everything that can go wrong with a foreign program is settled here once:

- It runs in its own session, hence its own process group, and on Linux dies with the thread that started it.
- Nothing it does can block us: its pipes are non-blocking, its errors are always drained, its lines are bounded.
- Its end is seen on the process itself, not by end of file, which a grandchild with the pipe in hand may delay; what
  it wrote before is read first. Its group is killed before it is reaped, while its number cannot have been reused;
  what has left the group is found by `orphans`.

What it writes is handed to a `Listener`. `client` turns these bytes into protocol messages.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol
from weakref import WeakSet

from . import orphans

if sys.platform == "linux":
    import fcntl

LINE_LIMIT = 65_536
"""Longer lines are skipped to their end and counted."""

ERROR_TAIL = 65_536
"""This many of the last bytes on standard error are kept for reports."""

WRITE_LIMIT = 16 * 1024 * 1024
"""More than this unread by the process is refused rather than kept."""

CHUNK = 262_144
"""Bytes read at a time, and the size of pipes where it can be set, so that an engine that writes much rarely blocks."""
DRAIN_LIMIT = 4 * 1024 * 1024
EXIT_GRACE = 0.25
KILLED = 10.0
"""Seconds after which a process that was killed is left to a system that does not let it go."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended: its exit status, or the number of the signal that killed it; `reason` where it was neither,
    such as a session on another machine that is lost."""

    status: int | None
    signal: int | None = None
    reason: str = ""

    @property
    def text(self) -> str:
        """As a person says it: `exit status 3`, `killed by SIGSEGV`."""
        if self.reason:
            return self.reason
        if self.signal is None:
            return f"exit status {self.status}"
        try:
            return f"killed by {signal.Signals(self.signal).name}"
        except ValueError:
            return f"killed by signal {self.signal}"


class Listener:
    """What a process tells its owner; every method is called on the event loop."""

    def on_line(self, line: bytes, stamp: float) -> None:
        """A line without its end; `stamp` is `time.monotonic()` when its bytes were read."""

    def on_lines(self, lines: list[bytes], stamp: float) -> None:
        """Lines that were read together, for listeners that need not see each line of a flood."""
        for line in lines:
            self.on_line(line, stamp)

    def on_read(self) -> None:
        """All lines that have been read so far were delivered."""

    def on_closed(self) -> None:
        """Standard output has ended, and `EXIT_GRACE` later the process still lives."""

    def on_exit(self, ending: Exit) -> None:
        """The process has ended; all that it wrote was delivered before."""


class LineSplitter:
    """Cuts a stream of bytes into lines of at most `LINE_LIMIT` bytes; holds no more than one of them."""

    def __init__(self) -> None:
        self._rest = b""
        self._skipping = False
        self.overlong = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes, without `\\n` or `\\r\\n`."""
        data = self._rest + chunk
        lines = data.split(b"\n")
        self._rest = lines.pop()
        if lines and self._skipping:
            del lines[0]
            self._skipping = False
        if len(self._rest) > LINE_LIMIT or self._skipping:
            self.overlong += not self._skipping
            self._skipping = True
            self._rest = b""
        if any(map(LINE_LIMIT.__lt__, map(len, lines))):
            whole = [line for line in lines if len(line) <= LINE_LIMIT]
            self.overlong += len(lines) - len(whole)
            lines = whole
        return [line.removesuffix(b"\r") for line in lines] if b"\r" in data else lines

    def rest(self) -> bytes:
        """What was written last, without an end of line."""
        rest, self._rest = self._rest, b""
        return rest


class Child(Protocol):
    """A process that has just been started, and our ends of its pipes."""

    @property
    def pid(self) -> int:
        """Its process id, which is not reused before `wait` has returned."""

    @property
    def pipes(self) -> tuple[IO[bytes] | None, IO[bytes] | None, IO[bytes] | None]:
        """Its standard input, output and error."""

    def ended(self) -> None:
        """Returns when it has ended, and leaves it a zombie where the system can do that."""

    def wait(self) -> int:
        """Returns when it has ended: its exit status, or less than 0 the number of the signal that killed it."""


class _Spawned:
    """A child of this process."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
        self.pid = child.pid
        self.pipes = child.stdin, child.stdout, child.stderr

    def ended(self) -> None:
        waitid: Callable[..., object] | None = getattr(os, "waitid", None)
        if waitid is None:
            self._child.wait()
            return
        with contextlib.suppress(ChildProcessError):
            waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)

    def wait(self) -> int:
        return self._child.wait()


class AnyProcess(Protocol):
    """What a client does with an engine's process, which need not run on this machine."""

    @property
    def pid(self) -> int:
        """Its number; 0 if there is none on this machine."""

    @property
    def exit(self) -> Exit | None:
        """How it ended; None while it lives."""

    @property
    def overlong(self) -> int:
        """How many lines were too long and skipped."""

    def error_tail(self) -> str:
        """The last of what it wrote to standard error."""

    def push(self, data: bytes) -> int:
        """Hand over as much of `data` as it takes at once; how many bytes that is."""

    async def write(self, data: bytes, timeout: float) -> float:
        """Hand over `data`; when that was done (`time.monotonic()`). TimeoutError, BrokenPipeError."""

    def drain(self) -> None:
        """Deliver what it has written by now."""

    async def wait(self, timeout: float) -> Exit | None:
        """How it ended, or None if it has not within `timeout` seconds."""

    async def wind_up(self, goodbye: bytes = b"", grace: float = 0.5, mercy: float = 1.0) -> Exit:
        """End it, with a word and some patience."""

    def kill(self) -> None:
        """End it at once; harmless when it has ended."""


class Process:
    """A running child. Make one with `start`; use `wind_up` or `kill` to end it."""

    def __init__(self, child: Child, listener: Listener, mark: str = "") -> None:
        self._child = child
        self._mark = mark
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._lines = LineSplitter()
        self._errors = bytearray()
        self._unsent = bytearray()
        self._sent: asyncio.Event = asyncio.Event()
        self._sent.set()
        self._ended: asyncio.Event = asyncio.Event()
        stdin, stdout, stderr = child.pipes
        self._stdin: int | None = self._adopt(stdin)
        self._stdout: int | None = self._adopt(stdout)
        self._stderr: int | None = self._adopt(stderr)
        self._written = select.poll()
        if self._stdout is not None:
            self._written.register(self._stdout, select.POLLIN)
            _widen(self._stdout)
        self._handle: int | None = None
        self.exit: Exit | None = None
        self.received = 0
        """Bytes that it has written to its standard output and that were read."""
        self.write_error: str | None = None
        _started.add(self)

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        listener: Listener,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        errors: IO[bytes] | None = None,
        timeout: float = 10.0,
        cores: Collection[int] = (),
        fds: Collection[int] = (),
    ) -> Process:
        """Run `command` (no shell) and return once it really runs; OSError with a sentence if it cannot.

        `env` is added to a copy of our environment (as is `orphans.MARK`). `errors` takes its standard error instead
        of `error_tail`. It and all that it starts run on `cores` only, where there are any and the system can do that.
        It inherits the descriptors `fds` under their numbers.
        """
        if os.name != "posix":
            raise OSError("engine processes can be driven on Linux, macOS and other Unix systems only")
        report, failed = os.pipe()
        mark = orphans.mark(next(_numbers)) if orphans.adopts() else ""
        marked = {orphans.MARK: mark} if mark else {}
        try:
            launcher: list[str] = []
            if sys.platform == "linux":
                script = str(Path(__file__).with_name("launch.py"))
                pinned = ",".join(map(str, cores))
                launcher = [sys.executable, "-I", "-S", script, str(os.getpid()), str(failed), pinned]
            child = subprocess.Popen(
                [*launcher, *command],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors or subprocess.PIPE,
                cwd=cwd,
                env={**os.environ, **(env or {}), **marked},
                start_new_session=True,
                pass_fds=(*fds, failed) if launcher else tuple(fds),
            )
        except BaseException:
            os.close(report)
            raise
        finally:
            os.close(failed)
        process = cls(_Spawned(child), listener, mark)
        try:
            async with asyncio.timeout(timeout):
                problem = await process._launched(report)
        except BaseException:
            process.kill()
            raise
        if problem:
            process.kill()
            raise OSError(problem)
        process.watch()
        return process

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._child.pid

    @property
    def overlong(self) -> int:
        """How many lines were too long and skipped."""
        return self._lines.overlong

    def error_tail(self) -> str:
        """The last of what the process wrote to standard error."""
        self._read_errors()
        return self._errors.decode("utf-8", "replace")

    # Writing

    def push(self, data: bytes) -> int:
        """Hand over as much of `data` as the process takes at once; how many bytes that is.

        Of the rest nothing is kept, and why it was not taken, `write` says.
        """
        if self._stdin is None or self._unsent:
            return 0
        try:
            return os.write(self._stdin, data)
        except OSError:
            return 0

    async def write(self, data: bytes, timeout: float) -> float:
        """Hand `data` to the process in one write; returns when that was done (`time.monotonic()`).

        TimeoutError if the process does not read, BrokenPipeError if it no longer can.
        """
        if self._stdin is None:
            raise BrokenPipeError(self.write_error or "its input is closed")
        if len(self._unsent) + len(data) > WRITE_LIMIT:
            raise TimeoutError
        self._unsent += data
        self._flush()
        if self._unsent:
            async with asyncio.timeout(timeout):
                await self._sent.wait()
        if self.write_error:
            raise BrokenPipeError(self.write_error)
        return time.monotonic()

    def close_input(self) -> None:
        """End of input for the process, at once; what it has not read of ours is given up."""
        self._unsent.clear()
        self._sent.set()
        if self._stdin is not None:
            self._loop.remove_writer(self._stdin)
            os.close(self._stdin)
            self._stdin = None

    def _flush(self) -> None:
        if self._stdin is None:
            return
        try:
            written = os.write(self._stdin, self._unsent)
        except BlockingIOError:
            written = 0
        except OSError as error:
            self.write_error = error.strerror or str(error)
            self.close_input()
            return
        del self._unsent[:written]
        if self._unsent and self._sent.is_set():
            self._sent.clear()
            self._loop.add_writer(self._stdin, self._flush)
        elif not self._unsent and not self._sent.is_set():
            self._loop.remove_writer(self._stdin)
            self._sent.set()

    # Reading

    def drain(self) -> None:
        """Deliver what is in the pipe now. Bounded, so that an engine that writes faster than we read cannot block us.

        Everything is read before anything is handled: the time that handling takes makes no answer late.
        """
        chunks = []
        for _ in range(DRAIN_LIMIT // CHUNK):
            # Mostly there is nothing, and to be told so by an exception is dear.
            if self._stdout is None or not self._written.poll(0) or (chunk := self._read_chunk()) is None:
                break
            chunks.append((chunk, time.monotonic()))
            if not chunk:
                break
        for chunk, stamp in chunks:
            self._deliver(chunk, stamp)

    def _read_output(self) -> None:
        """Read one chunk, if there is one."""
        chunk = self._read_chunk()
        if chunk is not None:
            self._deliver(chunk, time.monotonic())

    def _read_chunk(self) -> bytes | None:
        """What can be read at once; nothing at the end, None if there is nothing yet."""
        if self._stdout is None:
            return None
        try:
            return os.read(self._stdout, CHUNK)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def _deliver(self, chunk: bytes, stamp: float) -> None:
        if not chunk:
            self._close_output(stamp)
            return
        self.received += len(chunk)
        lines = self._lines.feed(chunk)
        if lines:
            self._listener.on_lines(lines, stamp)
        self._listener.on_read()

    def _close_output(self, stamp: float) -> None:
        if self._stdout is None:
            return
        self._forget(self._stdout)
        self._stdout = None
        rest = self._lines.rest()
        if rest:
            self._listener.on_line(rest, stamp)
            self._listener.on_read()
        if self.exit is None:
            self._loop.call_later(EXIT_GRACE, self._report_closed)

    def _report_closed(self) -> None:
        if self.exit is None:
            self._listener.on_closed()

    def _read_errors(self) -> None:
        if self._stderr is None:
            return
        try:
            chunk = os.read(self._stderr, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._forget(self._stderr)
            self._stderr = None
        self._errors += chunk
        del self._errors[:-ERROR_TAIL]

    def _adopt(self, pipe: IO[bytes] | None) -> int | None:
        """Take the descriptor out of Popen's hands: only we read, write and close it."""
        if pipe is None:
            return None
        descriptor = os.dup(pipe.fileno())
        pipe.close()
        os.set_blocking(descriptor, False)
        return descriptor

    def _forget(self, descriptor: int | None) -> None:
        if descriptor is not None:
            self._loop.remove_reader(descriptor)
            os.close(descriptor)

    # Beginning and end

    async def _launched(self, report: int) -> str:
        """What the launcher could not do, or nothing once the process is what was asked for."""
        told: asyncio.Future[str] = self._loop.create_future()

        def read() -> None:
            if not told.done():
                told.set_result(os.read(report, 1024).decode("utf-8", "replace"))

        self._loop.add_reader(report, read)
        try:
            return await told
        finally:
            self._loop.remove_reader(report)
            os.close(report)

    def watch(self) -> None:
        """From now on its lines and its end are told to the listener; `start` has done so."""
        if self._stdout is not None:
            self._loop.add_reader(self._stdout, self._read_output)
        if self._stderr is not None:
            self._loop.add_reader(self._stderr, self._read_errors)
        try:
            self._handle = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            self._watch_by_thread()
        else:
            self._loop.add_reader(self._handle, self._exited)

    def _watch_by_thread(self) -> None:
        """Where the system has no descriptors for processes: a thread that waits."""

        def wait() -> None:
            self._child.ended()
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is interested any more
                self._loop.call_soon_threadsafe(self._exited)

        threading.Thread(target=wait, name=f"wait-{self.pid}", daemon=True).start()

    def _exited(self) -> None:
        """The process has ended: deliver its last words, end its group, reap it, tell the listener."""
        if self.exit is not None:
            return
        self.drain()
        self.exit = self._reap()
        self._listener.on_exit(self.exit)
        self._ended.set()

    def _reap(self) -> Exit:
        signal_group(self.pid, signal.SIGKILL)
        code = self._child.wait()
        self._read_errors()
        self.close_input()
        for descriptor in (self._stdout, self._stderr, self._handle):
            self._forget(descriptor)
        self._stdout = self._stderr = self._handle = None
        if self._mark:
            orphans.end_orphans(_living(), self._mark, self.pid)
        return Exit(None, -code) if code < 0 else Exit(code)

    async def wait(self, timeout: float) -> Exit | None:
        """How the process ended, or None if it has not within `timeout` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._ended.wait()
        return self.exit

    async def wind_up(self, goodbye: bytes = b"", grace: float = 0.5, mercy: float = 1.0) -> Exit:
        """End the process and its whole group: `goodbye` and end of input, TERM after `grace` seconds, KILL after
        `mercy` more, at once if cancelled. No process is left when this returns."""
        if self.exit is None:
            if self._stdin is not None and not self._unsent:
                self._unsent += goodbye
                self._flush()
            self.close_input()
            try:
                if await self.wait(grace) is None:
                    signal_group(self.pid, signal.SIGTERM)
                    if await self.wait(mercy) is None:
                        signal_group(self.pid, signal.SIGKILL)
                        await self.wait(KILLED)
            except asyncio.CancelledError:
                self.kill()
                raise
        return self.exit or Exit(None, signal.SIGKILL)

    def kill(self) -> None:
        """End the process and its group at once and reap it; harmless when it has ended."""
        if self.exit is None:
            signal_group(self.pid, signal.SIGKILL)
            self._child.ended()
            self._exited()


_started: WeakSet[Process] = WeakSet()
_numbers = itertools.count(1)


def _living() -> list[int]:
    return [process.pid for process in list(_started) if process.exit is None]


def kill_all() -> None:
    """Kill every process that was started here, with its group and the descendants that left the group."""
    for process in list(_started):
        process.kill()
    if _started:
        orphans.end_orphans(_living())


def kill_groups() -> None:
    """The same from any thread, just before this process ends: nothing is read, reaped or reported any more."""
    living = _living()
    for pid in living:
        signal_group(pid, signal.SIGKILL)
    if orphans.adopts():
        # Whom they have started in other groups is left to us when they are dead, and not sooner.
        end = time.monotonic() + orphans.DYING
        while not all(map(_is_dead, living)) and time.monotonic() < end:
            time.sleep(0.001)
    if _started:
        orphans.end_orphans(living)


def _is_dead(child: int) -> bool:
    """Whether a child has ended; it stays a zombie until its owner reaps it."""
    try:
        return os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
    except ChildProcessError:
        return True


def _widen(pipe: int) -> None:
    """Let a pipe hold a whole `CHUNK`, where that can be asked for and is granted."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, CHUNK)


def signal_group(leader: int, number: int) -> None:
    """Send a signal to every process of the group that `leader` founded; harmless if there is none."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
