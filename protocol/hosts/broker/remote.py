"""A service from the other side: what a program that wants to play needs, as a small class.

    async with Remote(Access(parse_url("mqtt://127.0.0.1"))) as remote:
        async with await remote.open("local", variant="brandubh") as session:
            await session.send("position startpos moves a4a2")
            print(await session.best_move("go movetime 500"))

Lines are numbered both ways: each comes once and in order, whatever the network does. Connections that fall come back
by themselves, and the session continues.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Self

from ..bounded_json import decode, encode
from . import topics
from .client import Link, Message, Offline, Will
from .flags import GUEST
from .remote_session import OFFLINE_PATIENCE, RemoteSession
from .values import Access, RemoteError

REPLY_TIMEOUT = 5.0
OPEN_TIMEOUT = 70.0
EXPIRY = 10
"""Seconds after which an MQTT 5 broker forgets a request."""


class Remote:
    """A client of the services at one broker. `cid` is its own word for itself, by default a fresh one.

    `on_status` hears what services publish about their state, after the sessions have heard it; `patient`, `on_up` and
    `on_down` are those of `Link`.
    """

    def __init__(
        self,
        access: Access,
        cid: str = "",
        *,
        patient: bool = False,
        on_status: Callable[[str, Mapping[str, Any]], None] | None = None,
        on_up: Callable[[], None] | None = None,
        on_down: Callable[[], None] | None = None,
    ) -> None:
        self.user = access.login or GUEST
        self.cid = cid or f"c-{secrets.token_hex(4)}"
        self._presence = topics.presence(self.user, self.cid)
        self._replies = topics.reply(self.user, self.cid)
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self.sessions: dict[str, RemoteSession] = {}
        """Those that listen, by their names."""
        self._statuses: dict[str, Mapping[str, Any]] = {}
        self._on_status = on_status
        self._on_up = on_up
        self.link = Link(
            access,
            self.cid,
            will=Will(self._presence, b"offline"),
            on_up=self._say_online,
            on_down=on_down,
            patient=patient,
        )

    async def __aenter__(self) -> Self:
        """Connect; LinkError if that cannot be done."""
        await self.link.subscribe(self._replies, self._on_reply)
        await self.link.subscribe(topics.status(topics.ANY), self._hear_status)
        await self.link.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Say goodbye. Sessions that were not closed live on for a while at the service."""
        try:
            async with asyncio.timeout(1.0):
                # A host that closes its sessions leaves nothing behind, not even a retained message that it is away.
                await self.link.publish(self._presence, b"offline", retain=True)
                await self.link.publish(self._presence, b"", retain=True)
        except (Offline, TimeoutError):
            pass
        await self.link.close()

    async def request(
        self,
        eid: str,
        op: str,
        timeout: float = REPLY_TIMEOUT,
        *,
        waiting: Callable[[asyncio.Timeout], None] | None = None,
        **fields: Any,
    ) -> dict[str, Any]:
        """The reply of service `eid` to one request; RemoteError if it says no, or nothing within `timeout` seconds.

        `waiting` is handed what ends the wait, and may put it off.
        """
        return await self._ask(topics.requests(eid, self.user), eid, op, timeout, waiting, fields)

    async def ask_pool(self, variant: str, op: str, timeout: float = REPLY_TIMEOUT) -> dict[str, Any]:
        """The same from any service of the pool for `variant`; the broker chooses which one."""
        topic = topics.pool_requests(variant, self.user)
        return await self._ask(topic, f"the pool for {variant}", op, timeout, None, {})

    async def _ask(
        self,
        topic: str,
        whom: str,
        op: str,
        timeout: float,
        waiting: Callable[[asyncio.Timeout], None] | None,
        fields: Mapping[str, Any],
    ) -> dict[str, Any]:
        ident = secrets.token_hex(8)
        payload = encode({"id": ident, "op": op, "reply": self._replies, **fields})
        reply: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[ident] = reply
        try:
            async with asyncio.timeout(timeout) as limit:
                if waiting is not None:
                    waiting(limit)
                await self._publish(topic, payload)
                answer = await reply
        except TimeoutError:
            raise RemoteError(
                "no_reply",
                f"no reply from {whom} within {timeout:g} s: the service is offline, or {self.user} is not allowed "
                "to ask it",
            ) from None
        finally:
            del self._waiting[ident]
        if answer.get("ok") is not True:
            error = answer.get("error")
            known: Mapping[str, Any] = error if isinstance(error, dict) else {}
            raise RemoteError(
                str(known.get("code", "bad_reply")), str(known.get("text", "the service refused"))
            )
        return answer

    async def open(
        self,
        eid: str = "local",
        *,
        variant: str = "",
        player: str = "",
        options: Mapping[str, str] | None = None,
        keep: bool = False,
        on_line: Callable[[str], None] | None = None,
        on_info: Callable[[str], None] | None = None,
        instance: str = "",
        patience: float = OFFLINE_PATIENCE,
    ) -> RemoteSession:
        """A session of service `eid`; RemoteError with the service's reason if it grants none.

        `on_line` gets the lines of the engine as they come, instead of iteration over the session; `on_info` its
        thinking. An engine that says that it compiles is waited for. `keep` lets the session outlive this client.
        `instance` is what the service said last in answer to `ping`, if it was asked; the session counts as lost when
        the service has been offline for `patience` seconds.
        """
        if not instance:
            # Whether anybody answers at all shows soon; to start an engine may take longer.
            alive = await self.request(eid, "ping")
            instance = str(alive.get("instance", ""))
        sid = f"s-{secrets.token_hex(8)}"
        session = RemoteSession(self, eid, sid, instance, patience, on_line, on_info)
        # Subscribed before there is anything to hear, so that nothing of it is missed.
        await session.listen()
        wanted = {"variant": variant, "player": player}
        fields = {name: word for name, word in wanted.items() if word}
        try:
            reply = await self.request(
                eid,
                "open",
                OPEN_TIMEOUT,
                waiting=session.opening,
                sid=sid,
                cid=self.cid,
                seq=True,
                keep=keep,
                options=dict(options or {}),
                **fields,
            )
        except BaseException as error:
            await session.forget()
            if not isinstance(error, RemoteError) or error.code == "no_reply":
                await self._take_back(eid, sid)
            raise
        session.begin(reply)
        return session

    async def _take_back(self, eid: str, sid: str) -> None:
        """A session that comes too late would have no owner."""
        wish = {"id": secrets.token_hex(8), "op": "close", "sid": sid, "reply": self._replies}
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await self._publish(topics.requests(eid, self.user), encode(wish))

    async def services(self, seconds: float = 0.5) -> dict[str, dict[str, Any]]:
        """The services there are, by name, with the state each has published; listens for `seconds`."""
        await asyncio.sleep(seconds)
        return {eid: dict(status) for eid, status in self._statuses.items()}

    def status(self, eid: str) -> Mapping[str, Any] | None:
        """What service `eid` has said last about its state."""
        return self._statuses.get(eid)

    def _hear_status(self, message: Message) -> None:
        try:
            document = decode(message.payload)
        except ValueError:
            return
        eid = message.topic.split("/")[3]
        self._statuses[eid] = document
        for session in list(self.sessions.values()):
            if session.eid == eid:
                session.hear_status(document)
        if self._on_status is not None:
            self._on_status(eid, document)

    async def _publish(self, topic: str, payload: bytes) -> None:
        """Publish, after a reconnect once more; a request that comes twice is answered twice and done once."""
        while True:
            await self.link.wait_up()
            try:
                await self.link.publish(topic, payload, expiry=EXPIRY)
            except Offline:
                continue
            return

    def _on_reply(self, message: Message) -> None:
        try:
            document = decode(message.payload)
        except ValueError:
            return
        waiting = self._waiting.get(str(document.get("id")))
        if waiting is not None and not waiting.done():
            waiting.set_result(document)

    async def _say_online(self) -> None:
        await self.link.publish(self._presence, b"online", retain=True)
        if self._on_up is not None:
            self._on_up()


__all__ = ["Remote", "RemoteError", "RemoteSession"]
