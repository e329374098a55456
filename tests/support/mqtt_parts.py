"""What the tests of the MQTT service share: a service in this process, and a client that sees every message."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Self

from hnefi.gui_adapter.mqtt.service import Service, Settings
from hnefi.protocol.hosts.broker import topics
from hnefi.protocol.hosts.broker.client import Access, Link, Message, parse_url
from hnefi.protocol.hosts.sessions.engine_process import Policy

FAKE = Path(__file__).with_name("fake_engine.py")
WAIT = 120.0
"""Seconds after which what has not come does not come: on however busy a machine, also where something has to be
compiled first."""


def fake(*faults: str) -> tuple[str, ...]:
    """The command of an engine that plays nothing and starts fast."""
    return (sys.executable, "-I", "-S", str(FAKE), *faults)


@contextlib.asynccontextmanager
async def serving(
    url: str, command: tuple[str, ...] | None = None, **settings: Any
) -> AsyncIterator[Service]:
    """A service with an engine that does not think, unless another is named; without `eid` its own
    name is a fresh one."""
    policy = settings.pop("policy", None) or Policy(command or fake())
    access = settings.pop("access", None) or Access(parse_url(url))
    shares = settings.pop("shares", False)
    eid = settings.pop("eid", f"e-{secrets.token_hex(4)}")
    service = Service(access, Settings(eid, policy, **settings))
    ending, ready = asyncio.Event(), asyncio.Event()
    work = asyncio.create_task(service.run(ending.wait(), ready.set, shares=shares))
    try:
        first = asyncio.create_task(ready.wait())
        # It may have to compile; how long that takes is no test's business.
        await asyncio.wait([work, first], return_when=asyncio.FIRST_COMPLETED)
        first.cancel()
        if work.done():
            raise AssertionError(f"the service has ended: {work.result()}")
        assert ready.is_set()
        yield service
    finally:
        ending.set()
        await asyncio.wait([work], timeout=WAIT)
    assert work.done()
    work.result()


class Watcher:
    """A user at the broker who hears everything that is told to them, and says whatever they like."""

    def __init__(self, url: str, eid: str, user: str = "guest", **access: Any) -> None:
        self.eid = eid
        self.user = user
        self.link = Link(Access(parse_url(url), user=user, **access), f"test-{secrets.token_hex(2)}")
        self.messages: list[Message] = []

    async def __aenter__(self) -> Self:
        await self.link.subscribe(topics.reply(self.user, "+"), self.messages.append)
        for leaf in ("out", "info", "state"):
            await self.link.subscribe(topics.session(self.user, "+", leaf), self.messages.append)
        await self.link.subscribe(f"{topics.ROOT}/engine/+/status", self.messages.append)
        await self.link.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.link.close()

    async def request(self, **fields: Any) -> dict[str, Any]:
        """The reply to a request."""
        fields.setdefault("id", secrets.token_hex(4))
        await self.raw(json.dumps(fields).encode())
        return await self.reply(fields["id"])

    async def raw(self, payload: bytes, **how: Any) -> None:
        await self.link.publish(topics.requests(self.eid, self.user), payload, **how)

    async def reply(self, ident: str, after: int = 0) -> dict[str, Any]:
        def wanted() -> dict[str, Any] | None:
            for message in self.messages[after:]:
                if "/reply/" in message.topic:
                    document = json.loads(message.payload)
                    if document["id"] == ident:
                        return dict(document)
            return None

        return await until(wanted, f"the reply to {ident}")

    async def open(self, sid: str, **fields: Any) -> str:
        reply = await self.request(op="open", sid=sid, **fields)
        assert reply["ok"], reply
        return sid

    async def say(self, sid: str, text: str | bytes, **how: Any) -> None:
        payload = text.encode() if isinstance(text, str) else text
        await self.link.publish(topics.session(self.user, sid, "in"), payload, **how)

    def out(self, sid: str) -> list[str]:
        """All lines of a session so far."""
        return self.payloads(topics.session(self.user, sid, "out"))

    def payloads(self, topic: str) -> list[str]:
        return [message.payload.decode() for message in self.messages if message.topic == topic]

    async def line(self, sid: str, wanted: str, count: int = 1) -> list[str]:
        """All lines of a session as soon as `count` of them have `wanted` in them."""

        def there() -> list[str] | None:
            lines = self.out(sid)
            return lines if sum(wanted in line for line in lines) >= count else None

        return await until(there, f"{count} times {wanted!r} among {self.out(sid)[-5:]}")

    async def state(self, sid: str, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        topic = topics.session(self.user, sid, "state")

        def there() -> dict[str, Any] | None:
            for payload in reversed(self.payloads(topic)):
                if payload and wanted(json.loads(payload)):
                    return dict(json.loads(payload))
            return None

        return await until(there, "a state")


NAGLE = 0.040
"""What Nagle's algorithm costs at least in each round trip, in seconds."""


def quick_ones(round_trips: list[float]) -> float:
    """What a quarter of some round trips took at most: where one waits for acknowledgements, all but the first do."""
    return sorted(round_trips)[len(round_trips) // 4]


async def quick(measured: Callable[[], Awaitable[float]], limit: float) -> None:
    """What is measured is below `limit` in one of many tries: a busy machine is slow at times, whoever waits for
    acknowledgements always."""
    deadline = time.monotonic() + WAIT
    found: list[float] = []
    while not found or found[-1] >= limit:
        assert time.monotonic() < deadline, found
        found.append(await measured())


async def until(there: Callable[[], Any], what: str, seconds: float = WAIT) -> Any:
    """The first true value of `there`."""
    deadline = time.monotonic() + seconds
    while True:
        value = there()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come within {seconds:g} s")
        await asyncio.sleep(0.01)
