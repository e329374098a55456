"""The service: requests in, sessions and replies out, presence, limits, and a clean end.

A `Service` is one engine name (`eid`) on one broker. Sessions belong to this process and do not depend on the
connection: if the broker goes away, engines keep thinking, and when it comes back all retained messages are published
again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import math
import os
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from hnefi.engine import about
from hnefi.protocol.client import GREETINGS, Progress
from hnefi.protocol.format import compiling_line
from hnefi.protocol.hosts.bounded_json import DEPTH_LIMIT, PAYLOAD_LIMIT, encode
from hnefi.protocol.hosts.broker import topics
from hnefi.protocol.hosts.broker.client import Access, Link, LinkError, Message, Offline, Will
from hnefi.protocol.hosts.journal import Journal
from hnefi.protocol.hosts.sessions.engine_process import Piped, Policy, RequestError, new_engine
from hnefi.protocol.hosts.sessions.numbering import QUEUE_BYTES, QUEUE_LINES, RING_BYTES, RING_LINES
from hnefi.protocol.hosts.sessions.recording import Recording

from . import requests
from .client_session import ClientSession
from .fairness import MUTE, Rates, Spaced
from .requests import Rejected, Request

LOG = logging.getLogger("hnefi.mqtt.service")

PENDING_PER_USER = 64
"""Requests of one user that may wait for replies; more are refused, with at most one message about that per second."""
PRESENCE_PAUSE = 30.0
"""Seconds from a client's `offline` to the end of its sessions."""
DRAIN_LIMIT = 5.0
"""Seconds after the first request to end within which the service ends in any case."""
REPLY_PATIENCE = 30.0
"""Seconds that a reply waits for a broker that is gone."""
SWEEP = 5.0
COMPILING_PAUSE = 5.0
"""Seconds between two lines in the log about one engine's compiling."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a service. `idle` is in seconds, `rate` in messages per second of one user; games are written to
    `journal`; `trace` is passed to `Link`."""

    eid: str
    policy: Policy
    sessions: int = 8
    per_user: int = 4
    idle: float = 1800.0
    rate: float = 500.0
    pool: bool = False
    journal: Journal | None = None
    trace: Callable[[float, str, bytes], None] | None = None


@dataclass(slots=True)
class Opening:
    """A session that is being opened for the client `cid`; `unwanted` if it is closed before it is open."""

    cid: str
    unwanted: bool = False


class Compiling:
    """Logs what an engine is compiling: at once, and then now and then."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._next = 0.0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + COMPILING_PAUSE
            LOG.info("%s%s", compiling_line(progress).removeprefix("info string "), self._who)


class Service:
    """Made with `run`; everything else is internal."""

    def __init__(self, access: Access, settings: Settings) -> None:
        self.settings = settings
        self.instance = secrets.token_hex(4)
        self.sessions: dict[tuple[str, str], ClientSession] = {}
        self.link = Link(
            access,
            settings.eid,
            will=Will(topics.status(settings.eid), self._status("offline")),
            on_up=self._announce,
            patient=True,
            trace=settings.trace,
            admit=self._admit,
        )
        self._rates = Rates(settings.rate)
        self._about: dict[str, Any] = {}
        self._variants: tuple[str, ...] = ()
        self._opening: dict[tuple[str, str], Opening] = {}
        self._opened_by: dict[tuple[str, bytes], tuple[ClientSession, bytes]] = {}
        self._in_work: set[tuple[str, bytes]] = set()
        self._pending: Counter[str] = Counter()
        self._complaints = Spaced(MUTE)
        self._namesakes = Spaced(math.inf)
        self._presence: dict[tuple[str, str], asyncio.TimerHandle] = {}
        self._to_clear: set[str] = set()
        self._status_news = asyncio.Event()
        self._draining = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._closings: set[asyncio.Task[None]] = set()

    # Beginning and end

    async def run(
        self, ending: Awaitable[object], ready: Callable[[], None] | None = None, *, shares: bool = False
    ) -> LinkError | None:
        """Serve until `ending` is set, then drain; if the broker refuses us, returns what ended the service instead.

        `ready` is called after the first connection. `shares`: the broker delivers shared subscriptions.
        EngineError if the engine cannot be started at all.
        """
        await self.learn()
        await self.link.subscribe(topics.requests(self.settings.eid), self._on_request)
        await self.link.subscribe(topics.status(self.settings.eid), self._on_status)
        await self.link.subscribe(topics.presence(), self._on_presence)
        pooled = self.settings.pool and shares
        self._about["pool"] = pooled
        if pooled:
            for variant in self._variants:
                if topics.is_level(variant):
                    await self.link.subscribe(topics.shared(topics.pool_requests(variant)), self._on_request)
        end = asyncio.ensure_future(ending)
        opening = asyncio.create_task(self.link.open())
        lost: asyncio.Task[LinkError | None] | None = None
        try:
            await asyncio.wait([end, opening], return_when=asyncio.FIRST_COMPLETED)
            if not opening.done():
                return None
            opening.result()
            if ready is not None:
                ready()
            self._spawn(self._sweep())
            self._spawn(self._write_status())
            lost = asyncio.create_task(self.link.closed())
            await asyncio.wait([end, lost], return_when=asyncio.FIRST_COMPLETED)
            return lost.result() if lost.done() else None
        except LinkError as error:
            return error
        finally:
            end.cancel()
            opening.cancel()
            await self._drain()
            if lost is not None:
                lost.cancel()

    async def learn(self) -> None:
        """Start one engine to see what it can do; `run` does this if it has not been done. EngineError."""
        if self._about:
            return
        policy = self.settings.policy
        engine = await new_engine(policy, Compiling(""))
        try:
            await engine.is_ready()
            lines = [] if engine.proto != "uti" else await engine.ask("variants", timeout=30.0)
            names = [line.split()[3] for line in lines if line.startswith("info string variant ")]
            option = engine.options.get("variant") or engine.options.get("uci_variant")
            self._variants = tuple(names or (option.values if option else ()))
            self._about = {
                "name": engine.name,
                "author": engine.author,
                "service": f"{about.NAME} {about.VERSION}",
                "protocol": engine.proto,
                "greetings": await _greetings(engine),
                "topics": topics.ROOT,
                "variants": list(self._variants),
                "options": [_option(option) for option in engine.options.values()],
                "limits": {
                    "sessions": self.settings.sessions,
                    "sessions_per_user": self.settings.per_user,
                    "idle_s": self.settings.idle,
                    "max_search_s": policy.max_search,
                    "messages_per_second": self.settings.rate,
                    "payload_bytes": PAYLOAD_LIMIT,
                    "json_depth": DEPTH_LIMIT,
                    "queue_lines": QUEUE_LINES,
                    "queue_bytes": QUEUE_BYTES,
                    "resend_lines": RING_LINES,
                    "resend_bytes": RING_BYTES,
                    "hash_mib": policy.filter.hash_mib,
                    "threads": policy.filter.threads,
                },
            }
        finally:
            await engine.quit()

    async def _drain(self) -> None:
        """Accept no more sessions, let searches answer, and end; takes little more than `DRAIN_LIMIT`."""
        self._draining = True
        LOG.info("draining sessions=%d", len(self.sessions))
        others = list(self._tasks)
        for task in others:
            task.cancel()
        if others:
            # Engines that were being started for sessions must end before we do.
            await asyncio.wait(others, timeout=DRAIN_LIMIT - 3.0)
        with contextlib.suppress(Offline, TimeoutError):
            async with asyncio.timeout(1.0):
                await self.link.publish(
                    topics.status(self.settings.eid), self._status("draining"), retain=True
                )
        sessions = [*self.sessions.values()]
        for session in sessions:
            session.outgoing.say("info string closing")
        await asyncio.gather(*(session.stop() for session in sessions))
        deadline = time.monotonic() + DRAIN_LIMIT - 2.0
        while any(session.answers_soon for session in sessions) and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        for session in sessions:
            self._begin_close(session, "draining")
        if self._closings:
            await asyncio.wait(self._closings)
        with contextlib.suppress(Offline, TimeoutError):
            async with asyncio.timeout(1.0):
                await self.link.publish(
                    topics.status(self.settings.eid), self._status("offline"), retain=True
                )
        await self.link.close()
        for handle in self._presence.values():
            handle.cancel()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # What everybody may see

    def _status(self, state: str = "") -> bytes:
        return encode(self._said(state))

    def _said(self, state: str = "") -> dict[str, Any]:
        if not state:
            full = len(self.sessions) + len(self._opening) >= self.settings.sessions
            state = "draining" if self._draining else "busy" if full else "ready"
        return {
            "state": state,
            "sessions": 0 if state == "offline" else len(self.sessions),
            "max": self.settings.sessions,
            "instance": self.instance,
        }

    async def _announce(self) -> None:
        """After each connection, publish everything retained, before any line of a session."""
        LOG.info(
            "connected broker=%s version=%s id=%s",
            self.link.access.address,
            "5" if self.link.version == 5 else "3.1.1",
            self.link.identifier,
        )
        await self.link.publish(topics.status(self.settings.eid), self._status(), retain=True)
        await self.link.publish(topics.about(self.settings.eid), encode(self._about), retain=True)
        for topic in list(self._to_clear):
            await self.link.publish(topic, b"", retain=True)
            self._to_clear.discard(topic)
        for session in list(self.sessions.values()):
            await session.outgoing.announce()

    async def _write_status(self) -> None:
        while True:
            await self._status_news.wait()
            self._status_news.clear()
            await self.link.wait_up()
            with contextlib.suppress(Offline):  # the next connection announces it
                await self.link.publish(topics.status(self.settings.eid), self._status(), retain=True)

    def _on_status(self, message: Message) -> None:
        """Handle a status that is not ours: an old will of ours, or another service with our name.

        A retained one says nothing about now: it may be that of a service killed just before.
        """
        try:
            said = json.loads(message.payload)
            state, instance = said["state"], str(said["instance"])
        except (ValueError, KeyError, TypeError, RecursionError):
            state, instance = "offline", ""
        if self._draining or message.retain:
            return
        if state == "offline":
            self._status_news.set()
        elif state != "draining" and instance != self.instance and self._namesakes.due(instance):
            # One that has just come knows of us only if we speak.
            self._status_news.set()
            LOG.warning(
                "another service is called %s too: clients are answered by both; choose another --eid",
                self.settings.eid,
            )

    # Floods

    def _admit(self, topic: str, size: int) -> bool:
        """Whether to handle a message: not if its user sends more than anybody may."""
        if self._rates.admit(topic, size):
            return True
        user = topics.owner(topic)
        if self._complaints.due(user):
            self._spawn(self._refuse(topic, user))
        return False

    async def _refuse(self, topic: str, user: str) -> None:
        """Tell the user, and let the broker drop further messages if that affects nobody else."""
        levels = topic.split("/")
        session = self.sessions.get((user, levels[4])) if levels[2] == "session" else None
        rate = f"more than {self.settings.rate:g} messages a second"
        if session is None:
            error = RequestError("too_many", rate)
            await self._reply(topics.reply(user), requests.failure("", error), b"")
            return
        session.outgoing.say(f"info string error busy: {rate}: messages are dropped for {MUTE:g} s")
        await self.link.unsubscribe(topic)
        await asyncio.sleep(MUTE)
        if self.sessions.get((user, session.sid)) is session:
            await self.link.subscribe(topic, session.hear)
        if self.sessions.get((user, session.sid)) is not session:
            await self.link.unsubscribe(topic)

    # Requests

    def _on_request(self, message: Message) -> None:
        user = topics.owner(message.topic)
        if message.retain or not topics.is_level(user):
            return
        if self._pending[user] >= PENDING_PER_USER:
            self._refuse_many(user)
            return
        levels = message.topic.split("/")
        variant = levels[3] if levels[2] == "pool" else ""
        request = requests.read(message, user, variant)
        self._pending[user] += 1
        self._spawn(self._answer(request, user, message.payload))

    def _refuse_many(self, user: str) -> None:
        if self._complaints.due(user):
            error = RequestError("too_many", f"more than {PENDING_PER_USER} requests at once")
            self._spawn(self._reply(topics.reply(user), requests.failure("", error), b""))

    async def _answer(self, request: Request | Rejected, user: str, payload: bytes) -> None:
        try:
            if isinstance(request, Rejected):
                LOG.info("request user=%s refused=%s", user, request.error.code)
                document = requests.failure(request.id, request.error)
            else:
                answer = await self._granted(request, payload)
                if answer is None:
                    return
                document = answer
            await self._reply(request.reply, document, request.correlation)
        finally:
            self._pending[user] -= 1
            if not self._pending[user]:
                del self._pending[user]

    async def _reply(self, topic: str, document: bytes, correlation: bytes) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(REPLY_PATIENCE):
                while True:
                    await self.link.wait_up()
                    with contextlib.suppress(Offline):
                        await self.link.publish(topic, document, correlation=correlation)
                        return

    async def _granted(self, request: Request, payload: bytes) -> bytes | None:
        """Carry out a request and return the reply; None if the same request is already being handled."""
        key = (request.user, payload)
        try:
            match request.op:
                case "open":
                    # A request that is delivered twice must not open two sessions: it gets the same answer again.
                    known = self._opened_by.get(key)
                    if known is not None and request.id:
                        return known[1]
                    if key in self._in_work and request.id:
                        return None
                    self._in_work.add(key)
                    try:
                        return await self._open(request, key)
                    finally:
                        self._in_work.discard(key)
                case "close" if (request.user, request.sid) in self._opening:
                    self._opening[request.user, request.sid].unwanted = True
                    return requests.success(request.id, sid=request.sid, last_out=0)
                case "close":
                    session = self._session(request)
                    session.on_end = None
                    last_out = await self._close(session, "closed by the client")
                    return requests.success(request.id, sid=request.sid, last_out=last_out)
                case "list":
                    own = [
                        session.facts_of()
                        for session in self.sessions.values()
                        if session.user == request.user
                    ]
                    return requests.success(request.id, sessions=own)
                case "resend":
                    session = self._session(request)
                    if not session.outgoing.resend(max(1, request.start)):
                        raise RequestError("gone", f"line {request.start} is no longer stored")
                    return requests.success(request.id, sid=request.sid, last_out=session.outgoing.last_out)
            return requests.success(
                request.id,
                time=round(time.time(), 3),
                load=round(os.getloadavg()[0], 2),
                eid=self.settings.eid,
                **self._said(),
            )
        except RequestError as error:
            LOG.info("request user=%s op=%s refused=%s", request.user, request.op, error.code)
            return requests.failure(request.id, error)

    def _session(self, request: Request) -> ClientSession:
        session = self.sessions.get((request.user, request.sid))
        if session is None:
            raise RequestError("no_session", f"there is no session {request.sid} of {request.user}")
        return session

    async def _open(self, request: Request, key: tuple[str, bytes]) -> bytes:
        user = request.user
        sid = request.sid or f"s-{secrets.token_hex(6)}"
        if self._draining:
            raise RequestError("draining", "the service is closing and takes no more sessions")
        if (user, sid) in self.sessions or (user, sid) in self._opening:
            raise RequestError("sid_taken", f"session {sid} exists: expected another sid, or a close first")
        settings = self.settings
        if len(self.sessions) + len(self._opening) >= settings.sessions:
            raise RequestError("too_many", f"all {settings.sessions} sessions of this service are taken")
        own = sum(owner == user for owner, _ in (*self.sessions, *self._opening))
        if own >= settings.per_user:
            raise RequestError("too_many", f"{user} has {own} sessions: close one first")
        opening = self._opening[user, sid] = Opening(request.cid)
        recording = None
        if settings.journal is not None:
            recording = Recording(
                settings.journal, (("Service", settings.eid), ("User", user), ("Session", sid))
            )
        session = ClientSession(request, sid, settings.policy, self.link, recording)
        session.on_compiling = Compiling(f" user={user} sid={sid}")

        lines = topics.session(user, sid, "in")
        try:
            # First, so that lines from clients who do not wait for the reply are received, too.
            await self.link.subscribe(lines, session.hear)
            await session.start()
            self.sessions[user, sid] = session
        except BaseException:
            await asyncio.shield(self.link.unsubscribe(lines))
            raise
        finally:
            del self._opening[user, sid]
        LOG.info("open user=%s sid=%s variant=%s pid=%d", user, sid, request.variant, session.engine.pid)
        self._status_news.set()
        if opening.unwanted:
            await self._close(session, "closed by the client")
            raise RequestError("no_session", f"session {sid} was closed before it was open")
        session.on_end = lambda reason: self._on_session_end(session, reason)
        document = requests.success(
            request.id,
            sid=sid,
            eid=settings.eid,
            engine=session.engine.name,
            variant=session.variant.name if session.variant else None,
            seq=request.seq,
            topics={leaf: topics.session(user, sid, leaf) for leaf in ("in", "out", "info", "state")},
        )
        self._opened_by[key] = (session, document)
        return document

    def _on_session_end(self, session: ClientSession, reason: str) -> None:
        self._begin_close(session, reason)

    def _begin_close(self, session: ClientSession, reason: str) -> asyncio.Task[None]:
        """End a session; this always runs to completion, so that no engine is left over."""
        task = asyncio.create_task(self._close_whole(session, reason))
        self._closings.add(task)
        task.add_done_callback(self._closings.discard)
        return task

    async def _close(self, session: ClientSession, reason: str) -> int:
        """End a session; returns the number of its last line."""
        await asyncio.shield(self._begin_close(session, reason))
        return session.outgoing.last_out

    async def _close_whole(self, session: ClientSession, reason: str) -> None:
        if self.sessions.pop((session.user, session.sid), None) is None:
            return
        for key in [key for key, (known, _) in self._opened_by.items() if known is session]:
            del self._opened_by[key]
        await self.link.unsubscribe(topics.session(session.user, session.sid, "in"))
        if not await session.close(reason):
            self._to_clear.add(session.outgoing.state_topic)
        LOG.info(
            "close user=%s sid=%s reason=%s lines=%d",
            session.user,
            session.sid,
            json.dumps(reason),
            session.outgoing.last_out,
        )
        self._status_news.set()

    # Clients that go

    def _on_presence(self, message: Message) -> None:
        said = message.payload.strip()
        if not said:
            # An empty message only clears the retained status of a client that has said goodbye.
            return
        levels = message.topic.split("/")
        who = (levels[3], levels[5])
        handle = self._presence.pop(who, None)
        if handle is not None:
            handle.cancel()
        if said == b"offline" and (self._of_client(who) or self._opens_for(who)):
            self._await_return(who)

    def _await_return(self, who: tuple[str, str]) -> None:
        loop = asyncio.get_running_loop()
        self._presence[who] = loop.call_later(PRESENCE_PAUSE, self._client_gone, who)

    def _client_gone(self, who: tuple[str, str]) -> None:
        self._presence.pop(who, None)
        if self._opens_for(who):
            # An engine that is still being started is not yet a session that could be ended.
            self._await_return(who)
        for session in self._of_client(who):
            session.end("its client has gone")

    def _opens_for(self, who: tuple[str, str]) -> bool:
        return any((user, opening.cid) == who for (user, _), opening in self._opening.items())

    def _of_client(self, who: tuple[str, str]) -> Sequence[ClientSession]:
        user, cid = who
        return [
            session
            for session in self.sessions.values()
            if session.user == user and session.request.cid == cid and not session.request.keep
        ]

    async def _sweep(self) -> None:
        """End unused sessions."""
        while True:
            await asyncio.sleep(min(SWEEP, self.settings.idle / 2))
            now = time.monotonic()
            for session in list(self.sessions.values()):
                if not session.searching and now - session.touched > self.settings.idle:
                    session.outgoing.say(f"info string closing: idle for {self.settings.idle:g} s")
                    session.end("idle")


async def _greetings(engine: Piped) -> list[str]:
    """The greetings that an engine answers."""
    said: list[bytes] = []
    engine.heard = said.append
    for word in GREETINGS:
        if word != engine.proto:
            await engine.ask(word, timeout=30.0)
    engine.heard = None
    return [word for word in GREETINGS if word == engine.proto or f"{word}ok".encode() in said]


def _option(option: Any) -> dict[str, Any]:
    """An option in the form used in `about`."""
    shown = {"name": option.name, "type": option.type, "default": option.default}
    if option.type == "spin":
        shown |= {"min": option.minimum, "max": option.maximum}
    if option.type == "combo":
        shown["values"] = list(option.values)
    return shown
