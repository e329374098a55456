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
    """Events wait for their turn; listeners are told of a change when the event that made it is over."""

    def __init__(self) -> None:
        self.log: deque[LogLine] = deque(maxlen=LOG_LINES)
        self.news = asyncio.Event()
        """Set by every change."""
        self.dirty = True
        """Whether something has changed that no listener was told of."""
        self.running = False
        """Whether the game is in the middle of an event."""
        self._said = 0
        self._queue: asyncio.Queue[Event] = asyncio.Queue()
        self._owner: asyncio.Task[None] | None = None
        self._listeners: list[Callable[[], None]] = []

    def start(self, before: Callable[[], None], after: Callable[[], None]) -> asyncio.Task[None]:
        """Begin with what waits; `before` and `after` are called around each event."""
        self._owner = asyncio.ensure_future(self._own(before, after))
        return self._owner

    def post(self, event: Event) -> None:
        """Let an event happen in its turn."""
        self._queue.put_nowait(event)

    async def call(self, work: Callable[[], Awaitable[T]], otherwise: T, post: Post | None = None) -> T:
        """What `work` returns in its turn; `otherwise` after the end. Work that nobody waits for any more is not begun.

        `post` is another place to wait in than the queue.
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
        """What is promised; `otherwise` after the end. If the task that owns the game has died, its error."""
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
        """Show the person a message; `news` is one that was not asked for."""
        for line in text.split("\n"):
            self._said += 1
            self.log.append(LogLine(self._said, "".join(s if s.isprintable() else " " for s in line), kind))
        self.changed()

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call `callback` after every change; in the loop, and possibly often."""
        self._listeners.append(callback)

    def changed(self) -> None:
        """Something visible has changed; listeners are told when the current event is over."""
        self.dirty = True
        self.news.set()
        if not self.running and self._queue.empty():
            self.post(_nothing)

    def tell(self) -> None:
        """Tell the listeners at once."""
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
    """An event that does nothing, so that listeners are told of a change."""
