"""How a long-running command hears that it is to stop, and stops within its time."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext, suppress
from types import FrameType
from typing import Any, TypeVar

from ..process import kill_groups
from .exit_codes import INTERRUPTED

T = TypeVar("T")

LIMIT = 0.8
"""Seconds that a command may take to end, unless it says something else."""
ECHO = 0.2
"""Two signals within so many seconds are one: `timeout` and shells signal a process, and then its whole group."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Asked(asyncio.Event):
    """Set at the first SIGINT, SIGTERM or SIGHUP. A second one, or `limit` seconds, end the process at once.

    A command that takes longer to end well sets `limit`, and its documentation says so.
    """

    def __init__(self) -> None:
        super().__init__()
        self.limit = LIMIT
        self._heard: float | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watchdog: threading.Timer | None = None

    async def unless(self, work: Coroutine[Any, Any, T]) -> T | None:
        """The result of `work`; None if we are asked to end meanwhile: `work` is then cancelled, and has ended."""
        task, asked = asyncio.ensure_future(work), asyncio.ensure_future(self.wait())
        try:
            await asyncio.wait([task, asked], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in (task, asked):
                one.cancel()
            await asyncio.wait([task, asked])
        return None if task.cancelled() else task.result()

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        """Between two instructions of the main thread, whatever it is doing."""
        now = time.monotonic()
        if self._heard is not None:
            if now - self._heard >= ECHO:
                end_now()
            return
        self._heard = now
        # A thread, in case something blocks the loop.
        self._watchdog = threading.Timer(self.limit, end_now)
        self._watchdog.daemon = True
        self._watchdog.start()
        if self._loop is not None:
            with suppress(RuntimeError):  # it is closed: we are about to end
                self._loop.call_soon_threadsafe(self.set)

    async def _attend(self, command: Callable[[Asked], Coroutine[Any, Any, T]]) -> T:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._report)
        if self._heard is not None:
            self.set()
        return await command(self)

    def _report(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Errors in callbacks and in tasks that nobody waited for, except of work that was cancelled because we are to
        end, and except that the other side of a connection has gone: a library may still be sending to it."""
        error = context.get("exception")
        ended = self.is_set() and isinstance(error, asyncio.CancelledError)
        if not ended and not isinstance(error, ConnectionError):
            loop.default_exception_handler(context)

    def run(
        self,
        command: Callable[[Asked], Coroutine[Any, Any, T]],
        opened: AbstractContextManager[object] | None = None,
    ) -> T:
        """Run `command` on a loop of its own, then close `opened`, while the signals that end a program are heard here:
        one that came while we close would otherwise replace our exit status.

        One that is ignored (`nohup`) stays so.
        """
        before = {}
        if threading.current_thread() is threading.main_thread():
            before = {number: signal.getsignal(number) for number in SIGNALS}
        for number, handler in before.items():
            if handler != signal.SIG_IGN:
                signal.signal(number, self._hear)
        try:
            with opened or nullcontext():
                return asyncio.run(self._attend(command))
        finally:
            # Not sooner: the loop, at its end, waits for threads that may hang.
            if self._watchdog is not None:
                self._watchdog.cancel()
            for number, handler in before.items():
                signal.signal(number, handler)


def end_now() -> None:
    """End this process and all that it has started, whatever is going on."""
    kill_groups()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(INTERRUPTED)
