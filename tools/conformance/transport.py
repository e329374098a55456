"""Raw lines to and from the engine process of a check; every wait has a limit.

The normal client never sends invalid commands and hides unexpected output. Here, lines are sent unchanged, and every
line that comes back is recorded with its time.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hnefi.protocol.answers import BestMove, parse_bestmove, parse_compiling
from hnefi.protocol.errors import Timeouts
from hnefi.protocol.process import Exit, Listener, Process
from hnefi.protocol.waiting import Patience as Waiting

UNREAD_LIMIT = 32 * 1024 * 1024
"""Bytes of unread lines to keep; the rest is dropped."""
OVERHEAD = 100
"""Bytes that a line costs besides its text."""
NOTED_WIDTH = 400


class Failed(Exception):
    """The engine did not do what the step expects; the text says what it did instead."""


class Skipped(Exception):
    """The engine lacks the feature that the step tests; the text names it."""


@dataclass(frozen=True, slots=True)
class Patience:
    """The longest waits, in seconds; `ready` is for the first `isready` of a process, which may compile."""

    start: float = 10.0
    ready: float = 60.0
    answer: float = 10.0
    end: float = 2.0


class Heard(NamedTuple):
    """One line from the engine, and when it was read (`time.monotonic()`)."""

    stamp: float
    text: str

    @property
    def word(self) -> str:
        """The first word of the line."""
        return self.text.partition(" ")[0]


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to one `go`: its reports, all other lines, the `bestmove`, and the seconds it took."""

    infos: tuple[str, ...]
    others: tuple[str, ...]
    best: BestMove
    seconds: float


class Wire(Process):
    """A process whose output we can close, and which counts the children that outlive it."""

    orphans: int | None = None

    def hang_up(self) -> None:
        """Close our end of its standard output, so that it can write no more."""
        self._forget(self._stdout)
        self._stdout = None

    def _reap(self) -> Exit:
        self.orphans = group_members(self.pid)
        return super()._reap()


def group_members(leader: int) -> int | None:
    """The number of live processes in the group of `leader`, without `leader`; None if the system does not say."""
    if sys.platform != "linux":
        return None
    members = 0
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, group = entry.read_text().rpartition(")")[2].split()[:3]
            members += group == str(leader) and state not in "ZX" and entry.parent.name != str(leader)
    return members


class Transport(Listener):
    """One engine process and the lines exchanged. `note(stamp, arrow, text)` receives each line; the arrow `*` marks an
    event."""

    def __init__(self, note: Callable[[float, str, str], None], patience: Patience) -> None:
        self._note = note
        self._patience = patience
        self._unread: deque[Heard] = deque()
        self._unread_bytes = 0
        self._news = asyncio.Event()
        self._wire: Wire
        self.closed = False
        self.ended_at = 0.0
        self.started = 0.0
        self.ready = False
        """Whether it has answered its first `isready` and plays the variant of the check."""

    @classmethod
    async def start(
        cls, command: Sequence[str], note: Callable[[float, str, str], None], patience: Patience
    ) -> Transport:
        """Start the engine; OSError or TimeoutError if that fails."""
        transport = cls(note, patience)
        wire = await Wire.start(command, transport, timeout=patience.start)
        assert isinstance(wire, Wire)
        transport._wire = wire
        transport.started = time.monotonic()
        note(transport.started, "*", "the engine was started")
        return transport

    # The end

    @property
    def exit(self) -> Exit | None:
        """How the process ended; None while it lives."""
        return self._wire.exit

    @property
    def orphans(self) -> int | None:
        """How many processes it left behind; None if the system does not say."""
        return self._wire.orphans

    @property
    def errors(self) -> str:
        """The end of its standard error."""
        return self._wire.error_tail()

    async def ended(self, seconds: float) -> Exit | None:
        """How the process ended; None if it is still running after `seconds`."""
        return await self._wire.wait(seconds)

    def close_input(self) -> None:
        """Close its standard input, as happens when a host disappears."""
        self._note(time.monotonic(), "*", "its input was closed")
        self._wire.close_input()

    def hang_up(self) -> None:
        """Close our end of its standard output."""
        self._note(time.monotonic(), "*", "its output was closed")
        self._wire.hang_up()

    async def wind_up(self) -> None:
        """End the process and its group, first by `quit`; takes less than 2 s."""
        await self._wire.wind_up(b"stop\nquit\n", grace=0.3, mercy=0.5)

    # Lines

    def on_line(self, line: bytes, stamp: float) -> None:
        text = line.decode("utf-8", "replace").strip()
        self._note(stamp, "<", text)
        if self._unread_bytes < UNREAD_LIMIT:
            self._unread_bytes += len(text) + OVERHEAD
            self._unread.append(Heard(stamp, text))
        self._news.set()

    def on_closed(self) -> None:
        self.closed = True
        self._news.set()

    def on_exit(self, ending: Exit) -> None:
        self.ended_at = time.monotonic()
        self._note(self.ended_at, "*", f"the engine has ended: {ending.text}")
        self._news.set()

    async def send(self, *lines: str) -> float:
        """Send lines in one write; returns the time of the write."""
        return await self.send_bytes("".join(f"{line}\n" for line in lines).encode())

    async def send_bytes(self, data: bytes) -> float:
        """Send bytes unchanged; returns the time of the write."""
        now = time.monotonic()
        for line in data.removesuffix(b"\n").split(b"\n"):
            self._note(now, ">", line[:NOTED_WIDTH].decode("utf-8", "backslashreplace"))
        try:
            return await self._wire.write(data, self._patience.answer)
        except TimeoutError:
            raise Failed(f"it did not read its input for {self._patience.answer:g} s") from None
        except BrokenPipeError:
            await self.ended(1.0)
            raise Failed(self._end() or "it closed its input") from None

    async def next(self, deadline: float, what: str) -> Heard | None:
        """The next line, or None at `deadline`; Failed, naming `what`, if the engine has ended."""
        while not self._unread:
            end = self._end()
            if end:
                raise Failed(f"{end} before {what}")
            if time.monotonic() >= deadline:
                return None
            await self._hear(deadline)
        return self._take()

    async def until(self, word: str, seconds: float | None = None) -> list[Heard]:
        """The lines up to and including the next one whose first word is `word`; Failed if it does not come."""
        limit = self._patience.answer if seconds is None else seconds
        waiting = Waiting(limit, Timeouts())
        lines: list[Heard] = []
        size = 0
        while (heard := await self.next(waiting.deadline, word)) is not None:
            if parse_compiling(heard.text) is not None:
                # Compiling extends the deadline, and its messages are not part of an answer.
                waiting.put_off()
                continue
            lines.append(heard)
            if heard.word == word:
                return lines
            size += len(heard.text) + OVERHEAD
            if size > UNREAD_LIMIT:
                raise Failed(f"more than {UNREAD_LIMIT >> 20} MiB of lines before {word}")
        raise Failed(f"no {word} within {limit:g} s")

    async def during(self, seconds: float) -> list[Heard]:
        """The lines that arrive within `seconds`."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self._end() is None:
            await self._hear(deadline)
        lines = []
        while self._unread:
            lines.append(self._take())
        return lines

    async def ask(self, *lines: str, seconds: float | None = None) -> list[str]:
        """The answer to lines that start no search: everything up to the `readyok` of an `isready` sent after them."""
        await self.send(*lines, "isready")
        return [heard.text for heard in (await self.until("readyok", seconds))[:-1]]

    async def answer(self, since: float, seconds: float | None = None) -> Found:
        """The answer to a `go` sent at `since`."""
        *before, last = await self.until("bestmove", seconds)
        texts = [heard.text for heard in before]
        infos = tuple(text for text in texts if text.startswith("info ") and text.split()[1] != "string")
        others = tuple(text for text in texts if text not in infos)
        best = parse_bestmove(last.text)
        assert best is not None
        return Found(infos, others, best, last.stamp - since)

    async def go(self, line: str, seconds: float | None = None) -> Found:
        """The only answer to `line`, a `go`; Failed if there is a second."""
        found = await self.answer(await self.send(line), seconds)
        await self.no_bestmove("after the first one")
        return found

    async def no_bestmove(self, when: str, seconds: float = 0.0) -> None:
        """Failed if a `bestmove` comes before the next `readyok`, or within `seconds`."""
        lines = [heard.text for heard in await self.during(seconds)] if seconds else await self.ask()
        for line in lines:
            if line.partition(" ")[0] == "bestmove":
                raise Failed(f"`{line}` {when}")

    def _take(self) -> Heard:
        heard = self._unread.popleft()
        self._unread_bytes -= len(heard.text) + OVERHEAD
        return heard

    async def _hear(self, deadline: float) -> None:
        self._news.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                await self._news.wait()
        self._wire.drain()

    def _end(self) -> str | None:
        if self.exit is not None:
            return f"it ended ({self.exit.text})"
        return "it closed its output" if self.closed else None
