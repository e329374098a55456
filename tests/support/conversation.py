"""A real engine process at the other end of two pipes, and the examples of a text as a script for it."""

from __future__ import annotations

import contextlib
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self

PATIENCE = 120.0
"""Seconds until a missing answer is a failure: a cold start compiles everything."""

ENGINE = (sys.executable, "-m", "hnefi.protocol")
_MOVE = r"[a-s]\d+[a-s]\d+"


class Conversation:
    """An engine process; the end of the `with` block is the end of its input."""

    tells_compiling = False
    """Whether lines that say what is compiled are seen."""

    def __init__(self, *flags: str, command: Sequence[str] = ENGINE) -> None:
        self.process = subprocess.Popen(
            [*command, *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._errors: list[bytes] = []
        self._threads = [
            threading.Thread(target=self._read, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            status = self.end()
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        if kind is None:
            assert status == 0, self.errors
            assert self.errors == "", self.errors[-2000:]

    @property
    def errors(self) -> str:
        """What it has written to standard error."""
        return b"".join(self._errors).decode()

    def send(self, *lines: str | bytes) -> None:
        """Sends lines in one write."""
        assert self.process.stdin is not None
        data = b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines)
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def line(self, patience: float = PATIENCE) -> str | None:
        """The next line; None at the end of its output; queue.Empty if there is none in time."""
        return self._lines.get(timeout=patience)

    def until(self, beginning: str, patience: float = PATIENCE) -> list[str]:
        """All lines up to the first that begins so."""
        lines: list[str] = []
        while not lines or not lines[-1].startswith(beginning):
            line = self.line(patience)
            assert line is not None, f"the engine has ended: {lines[-3:]} {self.errors}"
            assert not line.startswith("info string error isready") or line.startswith(beginning), line
            lines.append(line)
        return lines

    def ask(self, *lines: str | bytes) -> list[str]:
        """All that is answered to lines that start no search."""
        self.send(*lines, "isready")
        return self.until("readyok")[:-1]

    def heard(self, seconds: float) -> list[str]:
        """All lines until it has been silent for so long."""
        lines: list[str] = []
        with contextlib.suppress(queue.Empty):
            while (line := self.line(seconds)) is not None:
                lines.append(line)
        return lines

    def rest(self) -> list[str]:
        """All lines up to the end of its output."""
        lines = []
        while (line := self.line()) is not None:
            lines.append(line)
        return lines

    def end(self, patience: float = PATIENCE) -> int:
        """Closes its input and waits; the exit status."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        status = self.process.wait(patience)
        for thread in self._threads:
            thread.join(patience)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        return status

    def _read(self) -> None:
        assert self.process.stdout is not None
        try:
            for line in self.process.stdout:
                # What is compiled depends on who has run what before.
                if self.tells_compiling or not line.startswith(b"info string compiling "):
                    self._lines.put(line.decode().removesuffix("\n"))
        except ValueError:
            pass  # closed by a test
        self._lines.put(None)

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._errors.append(line)


def examples(text: str) -> Iterator[tuple[str, list[str]]]:
    """The session blocks of a text in Markdown, each behind the heading above it."""
    heading = ""
    block: list[str] | None = None
    for line in text.splitlines():
        if block is not None:
            if line == "```":
                yield heading, block
                block = None
            else:
                block.append(line)
        elif line == "```session":
            block = []
        elif line.startswith("#"):
            heading = line.lstrip("# ")


def run_example(engine: Conversation, lines: Sequence[str]) -> None:
    """Says what the example says and demands the answers that it shows."""
    skipping = False
    for line in lines:
        mark, text = line[:1], line[2:]
        assert mark in "<>", line
        if mark == ">":
            if skipping:
                engine.ask()
            skipping = False
            engine.send(text)
        elif text == "…":
            skipping = True
        else:
            pattern = expected(text)
            while True:
                answer = engine.line()
                assert answer is not None, f"the engine has ended, expected {text!r}"
                if pattern.fullmatch(answer):
                    break
                assert skipping or answer.startswith("info depth "), f"{answer!r}, expected {text!r}"
            skipping = False
    if skipping:
        engine.ask()


def expected(text: str) -> re.Pattern[str]:
    """What an answer must look like: `…` is anything; behind `~ ` numbers are any numbers and moves any moves."""
    if not text.startswith("~ "):
        return re.compile(".*".join(re.escape(part) for part in text.split("…")))
    before, pv, _ = text[2:].partition(" pv ")
    pattern = " ".join(_loosely(word) for word in before.split())
    pattern = pattern.replace(f" ponder {_MOVE}", f"(?: ponder {_MOVE})?").replace(
        "score cp", "score (?:cp|mate)"
    )
    return re.compile(f"{pattern} pv {_MOVE}(?: {_MOVE})*" if pv else pattern)


def _loosely(word: str) -> str:
    if re.fullmatch(r"-?\d+", word):
        return r"-?\d+"
    return _MOVE if re.fullmatch(_MOVE, word) else re.escape(word)
