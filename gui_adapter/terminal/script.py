"""Lines from a file or a pipe: one answer after the other, without colours, stable enough to be compared."""

from __future__ import annotations

import asyncio
import queue
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Final, Protocol

from hnefi.protocol.hosts.exit_codes import STORAGE, USAGE

from . import drawing
from .controller import LINE_LIMIT, Controller
from .values import LogLine

AT_ONCE: Final = frozenset({"stop", "pause"})
"""Words that do not wait until what runs has ended."""
WIDTH: Final = 100


class Output(Protocol):
    """Where answers go."""

    def write(self, text: str, /) -> object: ...
    def flush(self) -> object: ...


class Script:
    """Every line is answered before the next is read; what engines do is waited for."""

    def __init__(
        self, controller: Controller, source: IO[bytes], out: Output, *, strict: bool = False
    ) -> None:
        self._controller = controller
        self._source = source
        self._out = out
        self._strict = strict
        self._said = 0
        self._failed = False
        self._unwritten = False
        self._left = False

    async def run(self, first: str | None = None) -> int:
        """Carry out all lines; the exit status is 2 after an error where errors count, 4 after a file that could not be
        written, 1 after an interruption."""
        controller = self._controller
        controller.on_change(self._flush)
        controller.start(held=first is not None)
        work = asyncio.ensure_future(self._lines(first))
        self._catch_signals(work)
        try:
            status = await work
        except asyncio.CancelledError:
            controller.interrupted = True
            status = 0
        finally:
            await controller.close()
            self._flush()
        return status or (STORAGE if self._unwritten else controller.status)

    async def _lines(self, first: str | None) -> int:
        reader = Reader(self._source)
        if first is not None:
            await self._carry_out(first, beginning=True)
            if self._left:
                return 0
        line = None
        while True:
            if line is not None:
                await self._carry_out(line)
                if self._failed and self._strict:
                    return STORAGE if self._unwritten else USAGE
                if self._left:
                    return 0
            line = await reader.line()
            if line is None:
                await self._controller.settled()
                return 0

    async def _carry_out(self, line: str, *, beginning: bool = False) -> None:
        controller = self._controller
        # What it begins with is not waited for: no engine shall move before.
        if not beginning and line.split()[:1] and line.split(maxsplit=1)[0].lower() not in AT_ONCE:
            await controller.settled()
        reply = await (controller.begin_with if beginning else controller.submit)(line)
        self._failed = self._failed or reply.failed
        self._unwritten = self._unwritten or reply.unwritten
        self._flush()
        if reply.show and not reply.failed:
            board = drawing.plain(drawing.draw(controller.view, WIDTH, colour=False))
            self._out.write("".join(f"{row.rstrip()}\n" for row in board.rstrip("\n").split("\n")))
        self._out.flush()
        self._left = reply.quit

    def _flush(self) -> None:
        lines = [line for line in self._controller.view.log if line.number > self._said]
        for line in lines:
            self._said = line.number
            self._out.write(f"{_shown(line)}\n")
        if lines:
            self._out.flush()

    def _catch_signals(self, work: asyncio.Future[int]) -> None:
        """Interrupted or told to end: engines are ended, too."""
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError, RuntimeError, ValueError):
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                loop.add_signal_handler(number, work.cancel)


class Reader:
    """Lines of a file, read by a thread that does not delay the end of the program."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._wanted: queue.SimpleQueue[Callable[[bytes], None]] = queue.SimpleQueue()
        threading.Thread(target=self._read, name="script", daemon=True).start()

    async def line(self) -> str | None:
        """The next line without its end, cut where it is longer than a line may be; None at the end."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bytes] = loop.create_future()

        def take(data: bytes) -> None:
            if not future.done():
                future.set_result(data)

        def deliver(data: bytes) -> None:
            with suppress(RuntimeError):  # the loop is closed: the program ends
                loop.call_soon_threadsafe(take, data)

        self._wanted.put(deliver)
        data = await future
        return data.decode("utf-8", "replace").rstrip("\r\n") if data else None

    def _read(self) -> None:
        while True:
            deliver = self._wanted.get()
            try:
                data = self._source.readline(LINE_LIMIT + 2)
                more = data
                while more and not more.endswith(b"\n"):
                    more = self._source.readline(LINE_LIMIT)
            except (OSError, ValueError):
                data = b""
            deliver(data)


def _shown(line: LogLine) -> str:
    return f"error: {line.text}" if line.kind == "error" else line.text
