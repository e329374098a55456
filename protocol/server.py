"""The engine process: lines from standard input, answers to standard output.

Three threads share the work. One only reads: it cuts the input into lines and notices its end. One carries the
lines out, in order. One searches, as long as there is something to search. A fourth warms up: it starts when the
greeting has been answered, never before, because importing numpy at the same time would delay it.

Nothing on the way to the greeting's last word imports more than this module does; `commands`, the table of all
other words, is loaded with the first of them.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
import threading
import time
from collections import deque
from contextlib import suppress

from hnefi.engine import about, options

from .hosts.exit_codes import DONE, OURS_FAILED, SIGNALLED, STORAGE, USAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from hnefi.engine.compile.progress import Progress

    from .commands import Commands

LINE_LIMIT = 64 * 1024
"""Longer lines, in bytes without their end, are skipped and answered with an error."""
BACKLOG_LIMIT = 4 * 1024 * 1024
"""So many bytes of lines may wait before nothing more is read."""
GRACE = 0.05
"""Seconds that a search gets to say its last word after the end of input."""
LAST_WORK = 600.0
"""Seconds for everything else to finish after the end of input."""
GREETINGS = {b"uti": "uti", b"uci": "uci", b"ugi": "ugi"}


def greeting(dialect: str) -> Iterator[str]:
    """The answer to `uti`, `uci` or `ugi`."""
    yield f"id name {about.NAME} {about.VERSION}"
    yield f"id author {about.AUTHORS}"
    for option in options.TABLE:
        yield option.line()
    yield f"{dialect}ok"


class Output:
    """Lines to a file descriptor: each is one write under one lock. A reader that has gone ends the process,
    and so does a full disk that standard output was to be kept on."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        self._log: int | None = None

    def line(self, text: str) -> None:
        """Write one line at once, whatever thread it comes from."""
        if "\n" in text or "\r" in text:
            text = " ".join(text.split())
        data = text.encode("utf-8", "replace") + b"\n"
        with self._lock:
            try:
                written = os.write(self._fd, data)
                while written < len(data):
                    written += os.write(self._fd, data[written:])
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    os._exit(DONE)
                with suppress(OSError):
                    os.write(2, f"hnefi engine: standard output: {error.strerror}\n".encode())
                os._exit(STORAGE)
            self._write_log(b"< " + data)

    def reader_gone(self) -> bool:
        """Whether our output has lost its reader, as far as the system tells without writing."""
        import select

        if not hasattr(select, "poll"):
            return False
        watch = select.poll()
        watch.register(self._fd, 0)
        return any(event & (select.POLLERR | select.POLLNVAL) for _, event in watch.poll(0))

    def set_log(self, path: str) -> None:
        """Copy every line in both directions to the end of this file; "" ends that. OSError as from `open`."""
        log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644) if path else None
        with self._lock:
            self._log, log = log, self._log
        if log is not None:
            os.close(log)

    def log_input(self, line: bytes) -> None:
        """Add a line that was read to the log file, if there is one."""
        if self._log is not None:
            with self._lock:
                self._write_log(b"> " + line + b"\n")

    def _write_log(self, data: bytes) -> None:
        if self._log is not None:
            try:
                os.write(self._log, data)
            except OSError as error:
                self._log = None
                print(f"hnefi: DebugLogFile: {error.strerror}: logging stops", file=sys.stderr)


class Line(bytes):
    """One line of input without its end.

    `cut` if there was more of it than `LINE_LIMIT`; lines with the same `batch` number were written at once.
    """

    cut = False
    batch = 0


def read_lines(fd: int) -> Iterator[list[Line]]:
    """The lines of a file descriptor, those of one read together, the last one even without its end.

    Never holds more than one long line besides.
    """
    rest = b""
    skipping = False
    batch = 0
    while True:
        try:
            chunk = os.read(fd, LINE_LIMIT)
        except OSError:
            chunk = b""
        if not chunk:
            if rest and not skipping:
                yield _numbered([Line(rest)], batch)
            return
        *texts, rest = (rest + chunk).split(b"\n")
        if skipping and texts:
            skipping = False
            del texts[0]
        lines = [Line(text) if len(text) <= LINE_LIMIT else _cut(text) for text in texts]
        if len(rest) > LINE_LIMIT and not skipping:
            lines.append(_cut(rest))
            skipping = True
        if skipping:
            rest = b""
        yield _numbered(lines, batch)
        # A full buffer is taken for a part of something longer.
        if len(chunk) < LINE_LIMIT:
            batch += 1


def _numbered(lines: list[Line], batch: int) -> list[Line]:
    for line in lines:
        line.batch = batch
    return lines


def _cut(text: bytes) -> Line:
    line = Line(text[:200])
    line.cut = True
    return line


class Inbox:
    """The lines between the thread that reads and the thread that carries out.

    `closed`: no more will come. `told_to_quit`: because of `quit`, which came in the batch `last_batch`.
    """

    def __init__(self) -> None:
        self._lines: deque[Line] = deque()
        self._waiting_bytes = 0
        self._changed = threading.Condition(threading.Lock())
        self.closed = False
        self.told_to_quit = False
        self.last_batch = 0

    def put(self, lines: Sequence[Line]) -> None:
        """Adds the lines of one read, up to `quit`; blocks while far too much is waiting.

        Whoever takes one of them knows already whether `quit` is among them.
        """
        with self._changed:
            while self._waiting_bytes > BACKLOG_LIMIT:
                self._changed.wait()
            for line in lines:
                self._lines.append(line)
                self._waiting_bytes += len(line) + 64
                if line.split() == [b"quit"]:
                    self.closed = self.told_to_quit = True
                    self.last_batch = line.batch
                    break
            self._changed.notify_all()

    def close(self) -> None:
        """Nothing more will be read; what was read is still handed out."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def get(self) -> Line | None:
        """The next line; None when all have been taken and no more will come."""
        with self._changed:
            while not self._lines:
                if self.closed:
                    return None
                self._changed.wait()
            line = self._lines.popleft()
            self._waiting_bytes -= len(line) + 64
            self._changed.notify_all()
            return line


class Server:
    """One conversation: the lines, the greeting, the warm-up. What the words mean is in `commands`."""

    def __init__(self, input_fd: int = 0, output_fd: int = 1) -> None:
        self.output = Output(output_fd)
        self.dialect = "uti"
        self.inbox = Inbox()
        self.warm = threading.Event()
        self.warm_error: Exception | None = None
        self._input_fd = input_fd
        self._warming: threading.Thread | None = None
        self._commands: Commands | None = None
        self._hearing: AbstractContextManager[None] | None = None
        self._hearing_lock = threading.Lock()
        self._finished = threading.Event()
        self._batch = 0
        self._waiting = False

    @property
    def input_has_ended(self) -> bool:
        """Whether the line being carried out is one of the last, which are all answered.

        A `quit` that was written later than the line ends what the line began, however late the line was taken.
        """
        return self.inbox.closed and self._batch >= self.inbox.last_batch

    @property
    def commands(self) -> Commands:
        """The table of commands with the session behind it, loaded at the first use."""
        if self._commands is None:
            from .commands import Commands

            self._hear_compiler()
            self._commands = Commands(self)
        return self._commands

    def run(self, settings: Sequence[tuple[str, str]] = ()) -> None:
        """Serves until `quit` or the end of input. `settings` are options set before the first line is read."""
        threading.Thread(target=self._carry_out, args=(settings,), daemon=True, name="commands").start()
        for lines in read_lines(self._input_fd):
            self.inbox.put(lines)
            if self.inbox.closed:
                break
        self.inbox.close()
        # Lines that came before the end are still answered: a whole script may have come in one write. But a
        # search that was waiting for `stop` when the end came, or whose answer has no reader, would wait for ever.
        deadline = time.monotonic() + LAST_WORK
        while not self._finished.wait(GRACE):
            if self._waiting or self.output.reader_gone():
                return
            if time.monotonic() > deadline:
                self.output.line(f"info string error end of input: expected the rest within {LAST_WORK:g} s")
                return

    def greet(self, dialect: str) -> None:
        """Answers a greeting and begins to warm up."""
        self.dialect = dialect
        for line in greeting(dialect):
            self.output.line(line)
        self.start_warming()

    def start_warming(self) -> None:
        """Lets a thread import the kernels and load what is compiled already, once.

        What is not waits for `Session.warm`: by then it is known what is to be played, and how.
        """
        if self._warming is None:
            self._warming = threading.Thread(target=self._warm, daemon=True, name="warm-up")
            self._warming.start()

    def wait_until_warm(self, *, again: bool = False) -> None:
        """Returns when everything is imported and compiled; at once, if it is.

        `warm_error` says why it could not be. With `again` what went wrong before is tried once more.
        """
        if again and self.warm.is_set() and self.warm_error is not None:
            self._warming = self.warm_error = None
            self.warm.clear()
        if not self.warm.is_set():
            self.start_warming()
            self.wait_for(self.warm)

    def settle(self) -> None:
        """Waits for a warm-up that has begun: two threads must not import numba at once."""
        if self._warming is not None:
            self.wait_for(self.warm)

    def wait_for(self, event: threading.Event) -> None:
        """Holds the following lines until `event`, unless the input ends meanwhile."""
        self.load(event.wait)

    def load(self, work: Callable[[], object]) -> None:
        """Do `work`, which may take long; after the end of input nothing waits for it."""
        self._waiting = not self.input_has_ended
        try:
            work()
        finally:
            self._waiting = False

    def _warm(self) -> None:
        # Nothing that is imported is ever garbage: searching it for some would make a start a tenth longer.
        gc.disable()
        try:
            # What the next line needs comes first: beside the import of numba it would take many times as long.
            _import_commands()
            self._hear_compiler()
            from hnefi.engine.warmup import load

            load()
        except Exception as error:  # noqa: BLE001 - reported by whoever waits for it
            self.warm_error = error
        gc.freeze()
        gc.enable()
        self.warm.set()

    def _hear_compiler(self) -> None:
        """From now on tells what is being compiled."""
        from hnefi.engine.compile import progress

        with self._hearing_lock:
            if self._hearing is None:
                self._hearing = progress.listening(self._tell_compiling)
                self._hearing.__enter__()

    def _tell_compiling(self, progress: Progress) -> None:
        from .format import compiling_line

        self.output.line(compiling_line(progress))

    def _begin_with(self, settings: Sequence[tuple[str, str]]) -> None:
        """The options of the command line; a wrong one ends the process, as nobody may have asked for what is left."""
        try:
            for name, value in settings:
                self.commands.setoption(["setoption", "name", name, "value", value])
        except Exception as error:  # noqa: BLE001 - out of here, any would leave a process that answers nobody
            fault = (
                "" if isinstance(error, ValueError) else f"{type(error).__name__}, a fault of the engine: "
            )
            print(
                f"hnefi engine: error: {fault}{error}\nSee `hnefi engine --help`.",
                file=sys.stderr,
                flush=True,
            )
            os._exit(OURS_FAILED if fault else USAGE)

    def _carry_out(self, settings: Sequence[tuple[str, str]]) -> None:
        self._begin_with(settings)
        while (line := self.inbox.get()) is not None:
            self.output.log_input(line)
            self._batch = line.batch
            dialect = GREETINGS.get(line.strip())
            if dialect is not None and self._commands is None:
                self.greet(dialect)
            elif not self.commands.line(line):
                break
        if self._commands is not None:
            self._commands.close(GRACE)
        self._finished.set()
        if not self.inbox.closed:
            # A `quit` behind other words is noticed only here, and the reading thread does not wake by itself.
            os._exit(0)


def _import_commands() -> None:
    from . import commands  # noqa: F401


def main(argv: list[str] | None = None) -> int:
    """Serve standard input and output; the process ends here, whatever its other threads are doing."""
    arguments = sys.argv[1:] if argv is None else argv
    settings: list[tuple[str, str]] = []
    if arguments:
        from .flags import parse

        settings = parse(arguments)
    try:
        os.fstat(1)
        Server().run(settings)
    except OSError:
        pass  # no standard output to begin with
    except KeyboardInterrupt:
        os._exit(SIGNALLED)
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
