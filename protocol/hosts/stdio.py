"""Lines on our own standard input and output, for an adapter that another program starts and drives.

A pipe, a file or a terminal can be waited for in one way only, so a thread reads. What has been read and not taken is
bounded: beyond that nothing more is read. Each line is written at once and whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, TextIO

from ..format import printable
from ..process import LINE_LIMIT, LineSplitter
from .exit_codes import FULL

BACKLOG_LIMIT: Final = 4 * 1024 * 1024
"""Bytes of lines that may wait before nothing more is read."""
WRITE_TIMEOUT: Final = 5.0
"""Seconds within which the program that started us must read."""
POLL: Final = 0.01
Traffic = Callable[[float, str, bytes], None]
LOG = logging.getLogger("hnefi.stdio")


class Diagnostics(logging.StreamHandler[TextIO]):
    """Log lines on standard error, dropped if nobody reads it: programs that start engines may not."""

    @classmethod
    def begin(cls, name: str, level: str) -> None:
        """Log from now on as the command `name`."""
        handler = cls(sys.stderr)
        handler.setFormatter(logging.Formatter(f"{name}: %(message)s"))
        logging.basicConfig(level=level.upper(), handlers=[handler])

    def format(self, record: logging.LogRecord) -> str:
        """Foreign programs may say what a terminal obeys; what it cannot show, standard error spells out itself."""
        return "\n".join(map(printable, super().format(record).split("\n")))

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record that can be written at once."""
        watch = select.poll()
        watch.register(2, select.POLLOUT)
        if watch.poll(0):
            super().emit(record)


class Line(bytes):
    """A line of input without its end; `cut` for what stands in the place of one that was longer than 64 KiB."""

    cut = False


class Deaf(Exception):
    """The program that started us does not read our output."""


class Output:
    """The state of standard output."""

    full = False
    """Whether the disk that it goes to was full: the command then ends with STORAGE."""

    @classmethod
    def failed(cls, error: OSError) -> None:
        """A write has failed. A full disk is reported once; a closed pipe is not, as its reader has gone."""
        if error.errno in FULL and not cls.full:
            cls.full = True
            LOG.error("standard output: %s", error.strerror)


class Stdio:
    """Line by line. `over` is set at the end of the input, when a line of `last_words` is read, and when our output has
    lost its reader: work that is still running then is not needed. `encoding` is that of our output."""

    reads = False
    """Whether a thread of this process has begun to read standard input."""

    def __init__(
        self,
        traffic: Traffic | None = None,
        last_words: frozenset[bytes] = frozenset(),
        encoding: str = "ascii",
    ) -> None:
        self.over = asyncio.Event()
        self._traffic = traffic
        self._last_words = last_words
        self._encoding = encoding
        self._loop = asyncio.get_running_loop()
        self._lines: deque[Line] = deque()
        self._news = asyncio.Event()
        self._ended = False
        self.deaf = False
        """Whether our output has lost its reader."""
        self._waiting = 0
        self._room = threading.Condition()
        self._poll = select.poll()
        self._poll.register(1, select.POLLOUT)
        Stdio.reads = True
        threading.Thread(target=self._read, daemon=True, name="stdin").start()

    async def line(self) -> Line | None:
        """The next line, `cut` if it was too long; None when there will be no more."""
        while not self._lines:
            if self._ended:
                return None
            self._news.clear()
            await self._news.wait()
        line = self._lines.popleft()
        with self._room:
            self._waiting -= len(line) + 64
            self._room.notify()
        if self._traffic is not None:
            self._traffic(time.monotonic(), "<", line)
        return line

    @property
    def more(self) -> bool:
        """Whether lines wait that have been read, or will be."""
        return bool(self._lines) or not (self._ended or self.deaf)

    async def say(self, text: str) -> None:
        """Write a line; Deaf if there is no room for it within `WRITE_TIMEOUT`."""
        deadline = time.monotonic() + WRITE_TIMEOUT
        while not self.mention(text) and not self.over.is_set():
            if time.monotonic() > deadline:
                raise Deaf(f"nobody has read our output for {WRITE_TIMEOUT:g} s")
            await asyncio.sleep(POLL)

    def mention(self, text: str) -> bool:
        """Write a line if there is room for it now; whether there was."""
        said = printable(text.replace("\n", " ")).encode(self._encoding, "replace")
        data = said + b"\n"
        ready = self._poll.poll(0)
        if not ready:
            return False
        try:
            if ready[0][1] & (select.POLLERR | select.POLLNVAL):
                raise BrokenPipeError
            while data:  # all of it at once, but on a disk that is full or a terminal
                data = data[os.write(1, data) :]
        except OSError as error:
            Output.failed(error)
            self.deaf = True
            self.over.set()
        if self._traffic is not None:
            self._traffic(time.monotonic(), ">", said)
        return True

    def _read(self) -> None:
        splitter = LineSplitter()
        while chunk := self._chunk():
            before = splitter.overlong
            lines = list(map(Line, splitter.feed(chunk)))
            if splitter.overlong > before:
                cut = Line()
                cut.cut = True
                lines.append(cut)
            if not self._hand_over(lines):
                return
        self._hand_over([Line(rest)] if (rest := splitter.rest()) else [])
        self._tell(self._end)

    def _chunk(self) -> bytes:
        try:
            return os.read(0, LINE_LIMIT)
        except OSError:
            return b""

    def _hand_over(self, lines: list[Line]) -> bool:
        """False when our output has lost its reader."""
        last = any(line.strip() in self._last_words for line in lines)
        if not self._tell(self._take, lines) or (last and not self._tell(self.over.set)):
            return False
        with self._room:
            self._waiting += sum(len(line) + 64 for line in lines)
            while self._waiting > BACKLOG_LIMIT:
                self._room.wait()
        return True

    def _take(self, lines: list[Line]) -> None:
        self._lines.extend(lines)
        self._news.set()

    def _end(self) -> None:
        self._ended = True
        self._news.set()
        self.over.set()

    def _tell(self, what: Callable[..., None], *arguments: object) -> bool:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(what, *arguments)
            return True
        return False
