"""The real program behind a terminal of our own: keys go in, what a person would see comes out.

Nothing here sleeps: `wait` reads what the program writes until a predicate of the screen holds, or a deadline passes.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, Self

import pexpect
import pyte

PATIENCE = 60.0
"""Seconds until a screen that does not come is a failure; engines may have to load on a busy machine."""
COMPILING = re.compile(r"compiling \d+/\d+ .*")
UP, DOWN, LEFT, RIGHT, HOME, END = "\x1b[A", "\x1b[B", "\x1b[D", "\x1b[C", "\x1b[H", "\x1b[F"
TAB, ENTER, ESCAPE, CONTROL_C, CONTROL_D = "\t", "\r", "\x1b", "\x03", "\x04"
PAGE_UP, PAGE_DOWN = "\x1b[5~", "\x1b[6~"
F1, F2, F3, F4, F8, F9 = "\x1bOP", "\x1bOQ", "\x1bOR", "\x1bOS", "\x1b[19~", "\x1b[20~"


class Terminal:
    """A program started on a terminal of `rows` x `columns`; a context manager that leaves no process behind."""

    def __init__(
        self, command: list[str], folder: Path, *, rows: int = 24, columns: int = 80, **environment: str
    ) -> None:
        self._screen = pyte.HistoryScreen(columns, rows, history=100_000, ratio=0.5)
        self._stream = pyte.ByteStream(self._screen)
        self._above: list[str] = []
        self.raw = b""
        kept = {
            name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")
        }
        self.child: Any = pexpect.spawn(
            command[0],
            command[1:],
            dimensions=(rows, columns),
            cwd=str(folder),
            timeout=PATIENCE,
            env={
                **kept,
                "TERM": "xterm-256color",
                "LC_ALL": "C.UTF-8",
                "PYTHONUTF8": "1",
                "XDG_CONFIG_HOME": str(folder / "config"),
                "XDG_DATA_HOME": str(folder / "data"),
                "XDG_STATE_HOME": str(folder / "state"),
                **environment,
            },
        )
        # The program asks where the cursor is, and draws no toolbar until somebody answers.
        self._screen.write_process_input = self._answer

    def _answer(self, data: str) -> None:
        if self.child.isalive():
            self.child.send(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.child.close(force=True)

    # What a person does

    def type(self, text: str) -> None:
        """Press keys."""
        self.child.send(text)

    def enter(self, line: str) -> None:
        """Type a line and send it."""
        self.child.send(line + ENTER)

    def say(self, line: str) -> None:
        """Type a line at the prompt and wait until another one is asked for. Whatever is typed before that is echoed
        by the terminal itself, in the middle of what the program writes."""
        asked = f"> {line}"
        before = self.everything.count(asked)
        self.enter(line)
        self.wait(lambda: self.prompt != "" and self.typed == "" and self.everything.count(asked) > before)

    def click_at(self, column: int, row: int) -> None:
        """Press and release the left button, in the way of current terminals."""
        place = f"{column + 1};{row + 1}"
        self.child.send(f"\x1b[<0;{place}M\x1b[<0;{place}m")

    def resize(self, rows: int, columns: int) -> None:
        """Make the window another size."""
        self._screen.resize(rows, columns)
        self.child.setwinsize(rows, columns)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program."""
        self.child.kill(number)

    def hang_up(self) -> None:
        """Close the window: the program has no terminal any more."""
        self.child.ptyproc.fileobj.close()

    # What a person sees

    @property
    def lines(self) -> list[str]:
        """The rows of the screen."""
        return [row.rstrip() for row in self._screen.display]

    @property
    def text(self) -> str:
        """The screen."""
        return "\n".join(self.lines)

    @property
    def everything(self) -> str:
        """The screen with what has scrolled away above it."""
        gone = self._screen.history.top
        self._above += [
            "".join(row[column].data for column in range(self._screen.columns)).rstrip()
            for row in islice(gone, len(self._above), None)
        ]
        return "\n".join([*self._above, *self.lines])

    @property
    def cursor_line(self) -> str:
        """The row in which the cursor stands."""
        return self._screen.display[self._screen.cursor.y].rstrip()

    @property
    def prompt(self) -> str:
        """What stands before the `>` of the line that is typed; nothing where the cursor is elsewhere."""
        line = self._screen.display[self._screen.cursor.y]
        return line.partition("> ")[0] if "> " in line else ""

    @property
    def typed(self) -> str:
        """What is typed so far."""
        line = self._screen.display[self._screen.cursor.y][: self._screen.cursor.x]
        return line.partition("> ")[2]

    def style_at(self, column: int, row: int) -> Any:
        """The sign at a place with its colours."""
        return self._screen.buffer[row][column]

    def coloured(self) -> bool:
        """Whether anything on the screen has a colour."""
        signs = (
            self._screen.buffer[row][column]
            for row in range(self._screen.lines)
            for column in range(self._screen.columns)
        )
        return any(sign.fg != "default" or sign.bg != "default" for sign in signs)

    def wait(self, wanted: str | Callable[[], bool], patience: float = PATIENCE) -> str:
        """Read until a text is on the screen, or a predicate holds; what is on the screen then.

        Compiling takes as long as it takes: while its progress is seen to move, patience begins anew.
        """
        holds = (lambda: wanted in self.text) if isinstance(wanted, str) else wanted
        deadline = time.monotonic() + patience
        progress: list[str] = []
        while not holds():
            if time.monotonic() > deadline or not self._read(deadline):
                assert holds(), f"waited for {wanted!r}\n{self.everything}"
            seen = COMPILING.findall(self.text)
            if seen != progress:
                progress = seen
                deadline = time.monotonic() + patience
        return self.text

    def asked(self, prompt: str, patience: float = PATIENCE) -> None:
        """Read until this prompt asks for a line."""
        self.wait(lambda: self.prompt == prompt, patience)

    def wait_for(self, pattern: str, patience: float = PATIENCE) -> re.Match[str]:
        """Read until a pattern is on the screen or above it."""
        self.wait(lambda: re.search(pattern, self.everything) is not None, patience)
        found = re.search(pattern, self.everything)
        assert found is not None
        return found

    def end(self, patience: float = PATIENCE) -> int:
        """Read to the end of the program; its exit status, or minus the signal that ended it."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and self._read(deadline):
            pass
        assert time.monotonic() < deadline, self.everything
        self.child.wait()
        self.child.close()
        status = self.child.exitstatus
        return -int(self.child.signalstatus) if status is None else int(status)

    def _read(self, deadline: float) -> bool:
        """Take in what the program writes next; False if it has ended."""
        try:
            data = self.child.read_nonblocking(
                65536, timeout=max(0.01, min(1.0, deadline - time.monotonic()))
            )
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += data
        self._stream.feed(data)
        return True


def play(folder: Path, *words: str, rows: int = 24, columns: int = 80, **environment: str) -> Terminal:
    """`hnefi play` on a terminal; settings and games are kept below `folder`."""
    command = [sys.executable, "-m", "hnefi.tools.cli", "play", *words]
    return Terminal(command, folder, rows=rows, columns=columns, **environment)
