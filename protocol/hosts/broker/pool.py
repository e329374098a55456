"""Engine hosts behind a broker as a place where engines are started: `Pool.starter` is what a session's `Policy` needs.

    async with Pool(Access(parse_url("mqtt://127.0.0.1"))) as pool:
        engine = await Engine.start(own_command(), "uti", starter=pool.starter("brandubh"))

The hosts are services that were started with `--pool`. The broker passes a request to any of them; one that is full is
passed over for the one with the most room. A session whose host dies, drains or forgets it ends as a process does that
crashes, with the reason: its owner starts another one, which is then on another host.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections import defaultdict
from collections.abc import Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Self

from ...client import Starter
from ...errors import EngineStartError
from ...process import LINE_LIMIT, Exit, Listener
from ..bounded_json import decode
from . import topics
from .client import Message
from .remote import Remote
from .remote_session import RemoteSession, SessionEnded
from .values import Access, LinkError, Refused, RemoteError

LOG = logging.getLogger("hnefi.pool")

FIRST_WAIT: Final = 3.0
"""Seconds for which a pool waits for its broker before it continues without it."""
PING: Final = 2.0
"""Seconds for a host of the pool to answer whether it is there."""
PINGS: Final = 2
"""So often the whole pool is asked: a host that hangs may have got the first request."""
REFUSED_PAUSE: Final = 30.0
"""Seconds until a broker that has refused us is asked again."""
SETTLING: Final = 30.0
"""Seconds after a connection in which hosts may still be coming back to the broker."""
MOMENT: Final = 1.0
"""Seconds for which a session waits for room at hosts that are all full."""
SHORT_CUT: Final = 1.0
"""A connection that is lost for fewer seconds is not reported."""
RELEASE: Final = "release"
"""The name of tasks that a pool waits for at its end."""
LINE_ROOM: Final = LINE_LIMIT - 24
"""A longer line has no room in a message, with its number."""
OTHERWISE: Final = frozenset({"too_many", "draining", "no_reply", "engine_failed", "bad_reply"})
"""Codes of refusals after which another host may say yes."""


@dataclass(slots=True)
class Host:
    """An engine host, as it describes itself. `most` sessions at once, `each` of them for one user."""

    pooled: bool = False
    variants: frozenset[str] = frozenset()
    each: int = 1
    state: str = "offline"
    instance: str = ""
    sessions: int = 0
    most: int = 0


class Pool:
    """The hosts at one broker. It may be entered while the broker is away, and continues when it is back.

    Refused if the broker does not let us in at the beginning; later that is logged, and tried again.
    """

    def __init__(self, access: Access) -> None:
        self.hosts: dict[str, Host] = defaultdict(Host)
        self._remote = Remote(
            access, patient=True, on_status=self._hear_status, on_up=self._up, on_down=self._down
        )
        self._processes: set[RemoteProcess] = set()
        self._orphans: dict[str, set[str]] = defaultdict(set)
        """Abandoned sessions by host, where the host does not know yet."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._notice: asyncio.TimerHandle | None = None
        self._told = False
        self._narrow: set[str] = set()
        self._news = asyncio.Event()
        self._since = 0.0
        """When the connection came about."""
        self._missing: asyncio.TimerHandle | None = None

    # Beginning and end

    async def __aenter__(self) -> Self:
        entering = asyncio.create_task(self._enter())
        await asyncio.wait([entering], timeout=FIRST_WAIT)
        if entering.done():
            try:
                entering.result()
            except LinkError:
                await self._remote.link.close()
                raise
        else:
            LOG.warning("%s; retrying", self._remote.link.trouble or "the broker does not answer")
        self._spawn(self._keep(entering))
        return self

    async def _enter(self) -> None:
        await self._remote.link.subscribe(topics.about(topics.ANY), self._hear_about)
        await self._remote.__aenter__()

    async def _keep(self, entering: asyncio.Task[None]) -> None:
        """A broker that refuses us may think better of it: its passwords may just be being changed."""
        link = self._remote.link
        while True:
            try:
                await entering
                failure: LinkError | None = await link.closed()
            except Refused as error:
                failure = error
            LOG.error("%s; retrying in %g s", failure, REFUSED_PAUSE)
            await asyncio.sleep(REFUSED_PAUSE)
            await link.close()
            entering = asyncio.create_task(link.open())

    async def __aexit__(self, *_: object) -> None:
        for process in list(self._processes):
            process.kill()
        self._quiet()
        tasks = [task for task in self._tasks if task.get_name() != RELEASE]
        for task in tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)
        await self._remote.close()

    @property
    def connected(self) -> bool:
        """Whether there is a connection to the broker."""
        return self._remote.link.up

    @property
    def trouble(self) -> str:
        """Why no session can be started now, for people; empty if the broker is there."""
        link = self._remote.link
        if link.up:
            return ""
        why = link.trouble or f"{link.access.address} does not answer"
        return f"the engine hosts cannot be reached: {why}"

    @property
    def ready(self) -> list[Host]:
        """The hosts that take sessions, or would if they were not full."""
        return [host for host in self.hosts.values() if host.pooled and host.state in ("ready", "busy")]

    # Sessions

    def starter(self, variant: str) -> Starter:
        """Starts an engine that can play `variant` on one of the hosts, as `Process.start` does one here."""

        async def start(
            _command: Sequence[str],
            listener: Listener,
            _cwd: str | Path | None = None,
            _env: Mapping[str, str] | None = None,
            _errors: IO[bytes] | None = None,
            timeout: float = 10.0,
            _cores: Collection[int] = (),
        ) -> RemoteProcess:
            return await self._start(variant, listener, timeout)

        return start

    async def _start(self, variant: str, listener: Listener, timeout: float) -> RemoteProcess:
        try:
            async with asyncio.timeout(timeout):
                await self._remote.link.wait_up()
        except TimeoutError:
            raise EngineStartError(self.trouble) from None
        tried: dict[str, RemoteError] = {}
        while True:
            eid, instance = await self._choose(variant, tried, time.monotonic() + timeout)
            process = RemoteProcess(self, listener)
            try:
                process.session = await self._remote.open(
                    eid, on_line=process.hear, on_info=process.think, instance=instance, patience=0.0
                )
            except RemoteError as error:
                tried[eid] = error
                LOG.warning("engine host %s: %s", eid, error)
                if error.code not in OTHERWISE:
                    raise EngineStartError(f"engine host {eid}: {error}") from None
            else:
                self._processes.add(process)
                process.begin()
                return process

    async def _choose(
        self, variant: str, tried: Mapping[str, RemoteError], deadline: float
    ) -> tuple[str, str]:
        """Name and instance of a host that is not among the `tried`; the instance is empty if the host has not been
        asked whether it is there. EngineStartError."""
        # After a restart of the broker its hosts do not all return at once.
        coming = min(deadline, self._since + SETTLING)
        # A session that was given up a moment ago leaves room that its host has not told of yet.
        leaving = time.monotonic() + MOMENT
        while True:
            there = self._able(variant)
            if there and not tried and (found := await self._ask_pool(variant)):
                return found
            able = [
                (eid, host)
                for eid, host in there.items()
                if host.state == "ready" and eid not in tried and host.sessions < host.most
            ]
            if able:
                return max(able, key=lambda known: known[1].most - known[1].sessions)[0], ""
            left = (leaving if there else coming) - time.monotonic()
            if left <= 0:
                raise EngineStartError(self._none(variant, tried))
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._news.wait()

    async def _ask_pool(self, variant: str) -> tuple[str, str] | None:
        """The host that the broker chooses, if it has room."""
        for _ in range(PINGS):
            with suppress(RemoteError):
                alive = await self._remote.ask_pool(self._topic(variant), "ping", PING)
                eid, instance = str(alive.get("eid", "")), str(alive.get("instance", ""))
                free = topics.is_level(eid) and instance and alive.get("state") == "ready"
                return (eid, instance) if free else None
        return None

    def _able(self, variant: str) -> dict[str, Host]:
        """The hosts that play a variant; all hosts if none knows it, as any engine will say what is wrong."""
        known = self._known(variant)
        return {
            eid: host
            for eid, host in self.hosts.items()
            if host.pooled and host.state in ("ready", "busy") and (variant in host.variants or not known)
        }

    def _known(self, variant: str) -> bool:
        return any(variant in host.variants for host in self.ready)

    def _topic(self, variant: str) -> str:
        """The variant whose pool is asked."""
        if self._known(variant) and topics.is_level(variant):
            return variant
        offered = sorted(word for host in self.ready for word in host.variants if topics.is_level(word))
        return offered[0] if offered else "none"

    def _none(self, variant: str, tried: Mapping[str, RemoteError]) -> str:
        """Why there is no host for a session."""
        able = self._able(variant).values()
        failures = [error for error in tried.values() if error.code != "too_many"]
        if failures:
            return f"no engine host can start an engine: {failures[0]}"
        if not able:
            return (
                f"no engine host at {self._remote.link.access.address} answers: expected at least one, "
                "started with hnefi mqtt serve --pool"
            )
        most = sum(min(host.most, host.each) for host in able)
        hosts = "the engine host" if len(able) == 1 else f"the {len(able)} engine hosts"
        return f"all {most} games of {hosts} are taken: try again later"

    # Ends

    def ended(self, process: RemoteProcess) -> None:
        """A session is over here, and its host may not know that."""
        self._processes.discard(process)
        self._spawn(self._release(process.session), RELEASE)

    async def _release(self, session: RemoteSession) -> None:
        """A session is no longer wanted: tell its host now, or when it is back."""
        await session.forget()
        await self._take_back(session.eid, session.sid)

    async def _take_back(self, eid: str, sid: str) -> None:
        if not self.connected or self.hosts[eid].state == "offline":
            self._orphans[eid].add(sid)
            return
        try:
            await self._remote.request(eid, "close", PING, sid=sid)
        except RemoteError as error:
            if error.code == "no_reply":
                self._orphans[eid].add(sid)

    # What hosts say

    def _hear_about(self, message: Message) -> None:
        eid = message.topic.split("/")[3]
        try:
            about = decode(message.payload)
            limits = about["limits"]
            host = self.hosts[eid]
            host.pooled = about["pool"] is True
            host.variants = frozenset(map(str, about["variants"]))
            host.each = int(limits["sessions_per_user"])
        except (ValueError, KeyError, TypeError):
            return
        if host.pooled and host.each < int(limits["sessions"]) and eid not in self._narrow:
            self._narrow.add(eid)
            LOG.warning(
                "engine host %s gives one user %d of its %d sessions, and this server is one user: start it with "
                "--per-user %d",
                *(eid, host.each, limits["sessions"], limits["sessions"]),
            )

    def _hear_status(self, eid: str, status: Mapping[str, Any]) -> None:
        host = self.hosts[eid]
        try:
            host.state, host.instance = str(status["state"]), str(status["instance"])
            host.sessions, host.most = int(status["sessions"]), int(status["max"])
        except (KeyError, TypeError, ValueError):
            return
        self._news.set()
        if host.state != "offline":
            for sid in self._orphans.pop(eid, ()):
                self._spawn(self._take_back(eid, sid), RELEASE)

    def _up(self) -> None:
        self._quiet()
        self._since = time.monotonic()
        self._missing = asyncio.get_running_loop().call_later(SETTLING, self._miss)
        if self._told:
            self._told = False
            LOG.info("connected again to %s", self._remote.link.access.address)
            self._tell("info string connected to the engine hosts again")

    def _down(self) -> None:
        self._quiet()
        for host in self.hosts.values():
            # Each host announces itself again; what the dead broker retained is lost.
            host.state = "offline"
        self._notice = asyncio.get_running_loop().call_later(SHORT_CUT, self._say_down)

    def _say_down(self) -> None:
        self._told = True
        self._tell(
            "info string error lost the connection to the engine hosts: the game continues when it is back"
        )

    def _miss(self) -> None:
        """Hosts that have not come back by now died together with the broker."""
        for process in list(self._processes):
            if self.hosts[process.session.eid].state == "offline":
                process.end("it has not reconnected to the broker")

    def _tell(self, line: str) -> None:
        for process in list(self._processes):
            process.hear(line)

    def _quiet(self) -> None:
        for handle in (self._notice, self._missing):
            if handle is not None:
                handle.cancel()
        self._notice = self._missing = None

    def _spawn(self, work: Coroutine[Any, Any, None], name: str = "pool") -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class RemoteProcess:
    """A session at an engine host, with what `Engine` uses of a `Process`."""

    pid: Final = 0
    """There is none on this machine."""
    overlong: Final = 0
    """Hosts skip lines that are too long."""

    def __init__(self, pool: Pool, listener: Listener) -> None:
        self.session: RemoteSession
        self.exit: Exit | None = None
        self._pool = pool
        self._listener = listener
        self._ended = asyncio.Event()
        self._searching = False
        self._watch: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """The session is open: from now on its end is reported."""
        self._watch = asyncio.create_task(self._await_end(), name=f"end of {self.session.sid}")

    async def _await_end(self) -> None:
        await self.session.ended.wait()
        self.end(self.session.why)

    def end(self, why: str) -> None:
        """The session is lost."""
        self._end(Exit(None, None, f"engine host {self.session.eid}: {why}"))

    def _end(self, ending: Exit) -> None:
        if self.exit is not None:
            return
        self.exit = ending
        if self._watch is not None and self._watch is not asyncio.current_task():
            self._watch.cancel()
        self._pool.ended(self)
        self._listener.on_exit(ending)
        self._ended.set()

    # Lines

    def hear(self, text: str) -> None:
        """A line of the engine."""
        if self.exit is None:
            if text.startswith("bestmove"):
                self._searching = False
            self._listener.on_line(text.encode("utf-8", "replace"), time.monotonic())
            self._listener.on_read()

    def think(self, text: str) -> None:
        """A line of its thinking, which takes another way and may come when the search is over."""
        if self._searching:
            self.hear(text)

    def push(self, _data: bytes) -> int:
        """Nothing is written at once; `write` does it."""
        return 0

    async def write(self, data: bytes, timeout: float) -> float:
        """Send the lines of `data`; TimeoutError, BrokenPipeError."""
        try:
            async with asyncio.timeout(timeout):
                for line in data.decode("utf-8", "replace").split("\n"):
                    if len(line.encode()) > LINE_ROOM:
                        self.hear(f"info string error line: expected at most {LINE_ROOM} bytes")
                    elif line:
                        self._searching |= line.split()[:1] == ["go"]
                        await self.session.send(line)
        except SessionEnded as error:
            raise BrokenPipeError(str(error)) from None
        return time.monotonic()

    def drain(self) -> None:
        """Lines are told as they come."""

    def error_tail(self) -> str:
        """What it writes to standard error stays at its host."""
        return ""

    # End

    async def wait(self, timeout: float) -> Exit | None:
        """How it ended, or None if it has not within `timeout` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._ended.wait()
        return self.exit

    async def wind_up(self, goodbye: bytes = b"", grace: float = 0.5, mercy: float = 1.0) -> Exit:  # noqa: ARG002
        """End the session here at once; its host is told to end the engine."""
        self._end(Exit(0))
        assert self.exit is not None
        return self.exit

    def kill(self) -> None:
        """End the session here at once, and at its host soon."""
        self._end(Exit(None, signal.SIGKILL))
