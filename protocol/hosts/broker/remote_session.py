"""One session at a service, as its client sees it: numbers before lines, and what is done when one is missing."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from ...answers import COMPILING
from ..sessions.numbering import Ring, parse_numbered
from . import topics
from .client import Message, Offline
from .values import RemoteError

if TYPE_CHECKING:
    from .remote import Remote

WINDOW_LINES, WINDOW_BYTES = 64, 64 * 1024
"""Lines that may be on their way, and their bytes, before the engine is asked whether it has come so far."""
PATIENCE = 0.5
"""Seconds that something may be on its way before it counts as lost."""
OFFLINE_PATIENCE = 30.0
"""Seconds that a service may be offline before its session counts as lost."""
TOGETHER = 4096
"""Bytes of lines that go out as one message, if there is more than one."""
BACKLOG = 10_000
"""Lines kept for an iterating reader; older ones are dropped and counted."""
EARLY = 1_024
LOST = "info string error lines lost: "
GAP = "info string error gap: expected #"


class SessionEnded(Exception):
    """The service has closed the session, or is gone; the text says which."""


class RemoteSession:
    """Made by `Remote.open`. Iterate over it for the engine's lines, or give `on_line`."""

    def __init__(
        self,
        remote: Remote,
        eid: str,
        sid: str,
        instance: str,
        patience: float,
        on_line: Callable[[str], None] | None,
        on_info: Callable[[str], None] | None,
    ) -> None:
        self.eid = eid
        self.sid = sid
        self.engine = ""
        self.variant = ""
        self.state: Mapping[str, Any] = {}
        """The last state that the service has published."""
        self.why = ""
        """What ended it, without its name."""
        self._remote = remote
        self._instance = instance
        self._patience = patience
        self._on_line = on_line
        self._on_info = on_info
        self._topics = {
            leaf: topics.session(remote.user, sid, leaf) for leaf in ("in", "out", "info", "state")
        }
        self._sent = Ring()
        self._published = 0
        self._confirmed = 0
        self._unasked_lines = 0
        self._unasked_bytes = 0
        self._own_readies: set[int] = set()
        self._news = asyncio.Event()
        self._progress = asyncio.Event()
        self._heard = 0
        self._early: dict[int, tuple[int, str]] = {}
        self._asked_again = 0
        self._answers: dict[int, asyncio.Future[str]] = {}
        self._lines: deque[str] = deque(maxlen=BACKLOG)
        self._line_news = asyncio.Event()
        self._end: SessionEnded | None = None
        self.ended = asyncio.Event()
        self._open = False
        self._opening: tuple[asyncio.Timeout, float] | None = None
        self._offline: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    # Beginning and end

    async def listen(self) -> None:
        """Subscribe to what the session is going to publish."""
        link = self._remote.link
        await link.subscribe(self._topics["out"], self._on_out)
        await link.subscribe(self._topics["info"], self._on_thinking, qos=0)
        await link.subscribe(self._topics["state"], self._on_state)
        self._remote.sessions[self.sid] = self
        status = self._remote.status(self.eid)
        if status is not None:
            self.hear_status(status)

    def opening(self, limit: asyncio.Timeout) -> None:
        """Until `limit` the reply to the request for this session is waited for; an engine that compiles gets more."""
        self._opening = (limit, (limit.when() or 0.0) - asyncio.get_running_loop().time())

    def begin(self, reply: Mapping[str, Any]) -> None:
        """The service has opened it."""
        self.engine = str(reply.get("engine") or "")
        self.variant = str(reply.get("variant") or "")
        self._open = True
        self._opening = None
        self._spawn(self._write())

    async def forget(self) -> None:
        """Hear nothing more."""
        for task in list(self._tasks):
            task.cancel()
        if self._offline is not None:
            self._offline.cancel()
        self._remote.sessions.pop(self.sid, None)
        for leaf in ("out", "info", "state"):
            await self._remote.link.unsubscribe(self._topics[leaf])
        self._finish("closed")

    async def close(self, timeout: float = 5.0) -> None:
        """Close the session at the service as well, if it still has it; takes `timeout` seconds at most."""
        if self._open and self._end is None:
            self._open = False
            with suppress(RemoteError):
                reply = await self._remote.request(self.eid, "close", timeout, sid=self.sid)
                await self._hear_until(reply.get("last_out"), min(timeout, 1.0))
        await self.forget()

    async def _hear_until(self, last: object, timeout: float) -> None:
        """What the session said at its end may still be on its way."""
        if isinstance(last, int):
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    while self._heard < last:
                        self._line_news.clear()
                        await self._line_news.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Lines to the engine

    async def send(self, line: str) -> int:
        """Send one line; its number. Waits while too much is on the way. SessionEnded if there is no session."""
        if "\n" in line or "\r" in line:
            raise ValueError(f"{line[:80]!r} is more than one line")
        number = self._put(line)
        self._unasked_lines += 1
        self._unasked_bytes += len(line)
        if self._unasked_lines >= WINDOW_LINES or self._unasked_bytes >= WINDOW_BYTES:
            self._unasked_lines = self._unasked_bytes = 0
            mark = self._put("isready")
            self._own_readies.add(mark)
            while self._confirmed < mark and self._end is None:
                self._progress.clear()
                await self._patiently(self._progress.is_set, self._progress.wait())
        return number

    def _put(self, line: str) -> int:
        if self._end is not None:
            raise self._end
        number = self._sent.last + 1
        self._sent.append(f"#{number} {line}".encode("utf-8", "replace"))
        self._news.set()
        return number

    async def ready(self) -> None:
        """Return when the engine has done everything that was sent before."""
        await self._asked("isready", quiet=True)

    async def best_move(self, go: str) -> str:
        """Send a `go` line; the words behind `bestmove` in its answer. The line itself comes by iteration as well."""
        return (await self._asked(go)).partition(" ")[2]

    async def _asked(self, line: str, *, quiet: bool = False) -> str:
        number = self._put(line)
        if quiet:
            self._own_readies.add(number)
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        try:
            await self._patiently(answer.done, answer)
            return answer.result()
        finally:
            self._answers.pop(number, None)

    async def _patiently(self, done: Callable[[], bool], what: Awaitable[Any]) -> None:
        """Wait for `what`; as long as it does not come, ask the service now and then whether something is lost."""
        waiting = asyncio.ensure_future(what)
        pause = 4 * PATIENCE
        try:
            while not done() and self._end is None:
                await asyncio.wait([waiting], timeout=pause)
                if waiting.done():
                    return
                await self._take_stock()
                pause = min(2 * pause, OFFLINE_PATIENCE)
        finally:
            if waiting is not what:
                waiting.cancel()

    async def _take_stock(self) -> None:
        """Compare what the service has with what was sent and heard."""
        published = self._published
        try:
            reply = await self._remote.request(self.eid, "list")
        except RemoteError:
            return  # its status says whether it lives
        for known in reply.get("sessions", ()):
            if known["sid"] == self.sid:
                self._confirm(known["last_in"])
                self._compare(published, known["last_out"])
                return
        self._finish("the service has closed the session")

    async def _write(self) -> None:
        """Publish the lines in order, and again those that a lost connection may have swallowed."""
        link = self._remote.link
        while True:
            if self._published >= self._sent.last:
                self._news.clear()
                await self._news.wait()
            await link.wait_up()
            before = self._published
            lines: list[bytes] = []
            size = 0
            # Lines that wait together are one message: services count those.
            for line in self._sent.since(before + 1):
                size += len(line) + 1
                if lines and size > TOGETHER:
                    break
                lines.append(line)
            number = max(before, self._sent.first - 1) + len(lines)
            try:
                await link.publish(self._topics["in"], b"\n".join(lines))
            except Offline:
                continue
            if self._published == before:
                self._published = number

    def _repeat_from(self, number: int) -> None:
        """The service misses our lines from that number on."""
        if number < self._sent.first:
            self._finish(f"the service has not received line {number}, which is no longer stored")
            return
        self._published = min(self._published, number - 1)
        self._news.set()

    # Lines from the engine

    def __aiter__(self) -> AsyncIterator[str]:
        return self._iterate()

    async def _iterate(self) -> AsyncIterator[str]:
        while True:
            while self._lines:
                yield self._lines.popleft()
            if self._end is not None:
                return
            self._line_news.clear()
            await self._line_news.wait()

    def _on_out(self, message: Message) -> None:
        numbered = parse_numbered(message.payload.decode("utf-8", "replace"))
        if message.retain or numbered is None or numbered.number <= self._heard:
            return
        if numbered.number > self._heard + 1:
            if len(self._early) < EARLY:
                self._early[numbered.number] = (numbered.answers, numbered.text)
            self._ask_again()
            return
        self._deliver(numbered.number, numbered.answers, numbered.text)
        self._deliver_early()

    def _deliver_early(self) -> None:
        while self._heard + 1 in self._early:
            answers, text = self._early.pop(self._heard + 1)
            self._deliver(self._heard + 1, answers, text)

    def _deliver(self, number: int, answers: int, text: str) -> None:
        self._heard = number
        if self._opening is not None and text.startswith(COMPILING):
            limit, seconds = self._opening
            with suppress(RuntimeError):  # it is over
                limit.reschedule(asyncio.get_running_loop().time() + seconds)
        if answers:
            self._confirm(answers)
        waiting = self._answers.get(answers)
        if waiting is not None and not waiting.done():
            waiting.set_result(text)
        if answers in self._own_readies:
            self._own_readies.discard(answers)
        elif text.startswith(GAP) and text[len(GAP) :].isdigit():
            self._repeat_from(int(text[len(GAP) :][:15]))
        else:
            if self._on_line is not None:
                self._on_line(text)
            else:
                self._lines.append(text)
        self._line_news.set()

    def _on_thinking(self, message: Message) -> None:
        if self._on_info is not None:
            for line in message.payload.decode("utf-8", "replace").split("\n"):
                self._on_info(line)

    def _confirm(self, number: int) -> None:
        if number > self._confirmed:
            self._confirmed = number
            self._progress.set()

    def _ask_again(self) -> None:
        """Lines before one that has come are missing."""
        if self._asked_again != self._heard + 1:
            self._asked_again = self._heard + 1
            self._spawn(self._resend(self._heard + 1))

    async def _resend(self, start: int) -> None:
        try:
            start_there: dict[str, Any] = {"from": start}
            await self._remote.request(self.eid, "resend", sid=self.sid, **start_there)
        except RemoteError as error:
            if error.code == "gone":
                self._skip()
            elif error.code == "no_session":
                self._finish("the service has closed the session")
        finally:
            self._asked_again = 0

    def _skip(self) -> None:
        """What is missing is lost for good."""
        if self._early:
            first = min(self._early)
            self._deliver(first - 1, 0, f"{LOST}{first - 1 - self._heard}")
            self._deliver_early()

    # What the service says about itself

    def _on_state(self, message: Message) -> None:
        if not message.payload:
            if self._open:
                self._spawn(self._ended_by_service())
            return
        try:
            document = json.loads(message.payload)
        except (ValueError, RecursionError):
            return
        if not isinstance(document, dict):
            return
        self.state = document
        last_in, last_out = document.get("last_in"), document.get("last_out")
        if isinstance(last_in, int) and isinstance(last_out, int):
            self._confirm(last_in)
            if last_in < self._published or last_out > self._heard:
                loop = asyncio.get_running_loop()
                loop.call_later(PATIENCE, self._compare, self._published, last_out)

    def _compare(self, published: int, last_out: int) -> None:
        """What was on its way when the state came should have arrived by now."""
        if self._end is not None:
            return
        if self._confirmed < published:
            self._repeat_from(self._confirmed + 1)
        if self._heard < last_out:
            self._ask_again()

    async def _ended_by_service(self) -> None:
        # Its last lines may come behind the state that ends it.
        await asyncio.sleep(PATIENCE)
        self._finish("the service has closed the session")

    def hear_status(self, status: Mapping[str, Any]) -> None:
        """The service says what state it is in."""
        state, instance = status.get("state"), status.get("instance")
        if not isinstance(state, str) or not isinstance(instance, str):
            return
        if self._offline is not None:
            self._offline.cancel()
            self._offline = None
        if state == "offline":
            self._offline = asyncio.get_running_loop().call_later(
                self._patience, self._finish, "the service is offline"
            )
        elif self._instance and instance != self._instance:
            self._finish("the service was restarted")

    def _finish(self, why: str) -> None:
        if self._end is not None:
            return
        self.why = why
        self._end = SessionEnded(f"session {self.sid} at {self.eid}: {why}")
        self.ended.set()
        self._news.set()
        self._progress.set()
        self._line_news.set()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(self._end)

    @property
    def reason(self) -> str:
        """Why it has ended; empty while it lives."""
        return str(self._end or "")

    def _spawn(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
