"""The queue of events of the task that owns the game; the log of messages, and the listeners.

Typed lines, what engines say and the ticking of the clock all reach the game through this queue.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from .values import LineKind, LogLine

LOG_LINES: Final = 2000
Event = Callable[[], Awaitable[None]]
Post = Callable[[Event], None]
T = TypeVar("T")


class Events:
    """A queue of events. Listeners are notified of changes after the event that made them."""

    def __init__(self) -> None:
        self.log: deque[LogLine] = deque(maxlen=LOG_LINES)
        self.news = asyncio.Event()
        """Set on every change."""
        self.dirty = True
        """Whether something has changed since listeners were last notified."""
        self.running = False
        """Whether the game is in the middle of an event."""
        self._said = 0
        self._queue: asyncio.Queue[Event] = asyncio.Queue()
        self._owner: asyncio.Task[None] | None = None
        self._listeners: list[Callable[[], None]] = []

    def start(self, before: Callable[[], None], after: Callable[[], None]) -> asyncio.Task[None]:
        """Start handling events; `before` and `after` are called around each."""
        self._owner = asyncio.ensure_future(self._own(before, after))
        return self._owner

    def post(self, event: Event) -> None:
        """Add an event to the queue."""
        self._queue.put_nowait(event)

    async def call(self, work: Callable[[], Awaitable[T]], otherwise: T, post: Post | None = None) -> T:
        """Run `work` in its turn and return its result; `otherwise` after the end. It is not begun if the caller has
        stopped waiting.

        `post` is a place to wait other than the queue.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def event() -> None:
            if future.done():
                return
            result = await work()
            if not future.done():
                future.set_result(result)

        (post or self.post)(event)
        try:
            return await self.outlived(future, otherwise)
        finally:
            future.cancel()

    async def outlived(self, future: asyncio.Future[T], otherwise: T) -> T:
        """The result of a future; `otherwise` after the end. Raises the error of the task that owns the game if that
        has died."""
        waiting: set[asyncio.Future[Any]] = {future}
        if self._owner is not None:
            waiting.add(self._owner)
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if future.done():
            return future.result()
        if self._owner is not None and not self._owner.cancelled():
            self._owner.result()
        return otherwise

    def say(self, text: str, kind: LineKind = "news") -> None:
        """Show the user a message; `news` is an unsolicited one."""
        for line in text.split("\n"):
            self._said += 1
            self.log.append(LogLine(self._said, "".join(s if s.isprintable() else " " for s in line), kind))
        self.changed()

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call `callback` in the event loop after every change, possibly often."""
        self._listeners.append(callback)

    def changed(self) -> None:
        """Something visible has changed; listeners are notified after the current event."""
        self.dirty = True
        self.news.set()
        if not self.running and self._queue.empty():
            self.post(_nothing)

    def tell(self) -> None:
        """Notify the listeners now."""
        self.dirty = True
        for listener in self._listeners:
            listener()

    async def _own(self, before: Callable[[], None], after: Callable[[], None]) -> None:
        while True:
            event = await self._queue.get()
            before()
            self.running = True
            try:
                await event()
                after()
            finally:
                self.running = False
            if self.dirty:
                self.tell()


async def _nothing() -> None:
    """An empty event, after which listeners are notified of a change."""
