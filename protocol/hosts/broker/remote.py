"""A service from the other side: what a program that wants to play needs, as a small class.

    async with Remote(Access(parse_url("mqtt://127.0.0.1"))) as remote:
        async with await remote.open("local", variant="brandubh") as session:
            await session.send("position startpos moves a4a2")
            print(await session.best_move("go movetime 500"))

Lines are numbered both ways: each comes once and in order, whatever the network does. Connections that fall come back
by themselves, and the session goes on.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Self

from ..bounded_json import decode, encode
from . import topics
from .client import Link, Message, Offline, Will
from .flags import GUEST
from .remote_session import RemoteSession
from .values import Access, RemoteError

REPLY_TIMEOUT = 5.0
OPEN_TIMEOUT = 70.0
EXPIRY = 10
"""On MQTT 5 a broker forgets a request after so many seconds."""


class Remote:
    """A client of the services at one broker. `cid` is its own word for itself, by default a fresh one."""

    def __init__(self, access: Access, cid: str = "") -> None:
        self.user = access.login or GUEST
        self.cid = cid or f"c-{secrets.token_hex(4)}"
        self._presence = topics.presence(self.user, self.cid)
        self._replies = topics.reply(self.user, self.cid)
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self.link = Link(access, self.cid, will=Will(self._presence, b"offline"), on_up=self._say_online)

    async def __aenter__(self) -> Self:
        """Connect; LinkError if that cannot be done."""
        await self.link.subscribe(self._replies, self._on_reply)
        await self.link.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Say goodbye. Sessions that were not closed live on for a while at the service."""
        try:
            async with asyncio.timeout(1.0):
                # Who closes its sessions leaves nothing behind: not even a retained word about its absence.
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
        ident = secrets.token_hex(8)
        payload = encode({"id": ident, "op": op, "reply": self._replies, **fields})
        reply: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[ident] = reply
        try:
            async with asyncio.timeout(timeout) as limit:
                if waiting is not None:
                    waiting(limit)
                await self._publish(topics.requests(eid, self.user), payload)
                answer = await reply
        except TimeoutError:
            raise RemoteError(
                "no_reply",
                f"no reply from {eid} within {timeout:g} s: the service is offline, or {self.user} is not allowed "
                "to ask it",
            ) from None
        finally:
            del self._waiting[ident]
        if answer.get("ok") is not True:
            error = answer.get("error")
            known: Mapping[str, Any] = error if isinstance(error, dict) else {}
            raise RemoteError(
                str(known.get("code", "bad_reply")), str(known.get("text", "the service said no"))
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
    ) -> RemoteSession:
        """A session of service `eid`; RemoteError with the service's reason if it grants none.

        `on_line` gets the lines of the engine as they come, instead of iteration over the session; `on_info` its
        thinking. An engine that says that it compiles is waited for. `keep` lets the session outlive this client.
        """
        # Whether anybody answers at all shows soon; to start an engine may take longer.
        alive = await self.request(eid, "ping")
        sid = f"s-{secrets.token_hex(6)}"
        session = RemoteSession(self, eid, sid, str(alive.get("instance", "")), on_line, on_info)
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
            if isinstance(error, RemoteError) and error.code == "no_reply":
                await self._take_back(eid, sid)
            raise
        session.begin(reply)
        return session

    async def _take_back(self, eid: str, sid: str) -> None:
        """A session that comes too late would be nobody's."""
        wish = {"id": secrets.token_hex(8), "op": "close", "sid": sid, "reply": self._replies}
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await self._publish(topics.requests(eid, self.user), encode(wish))

    async def services(self, seconds: float = 0.5) -> dict[str, dict[str, Any]]:
        """The services there are, by name, with the state each has published; listens for `seconds`."""
        found: dict[str, dict[str, Any]] = {}

        def note(message: Message) -> None:
            try:
                document = json.loads(message.payload)
            except (ValueError, RecursionError):
                return
            if isinstance(document, dict):
                found[message.topic.split("/")[3]] = document

        await self.link.subscribe(topics.status(topics.ANY), note)
        await asyncio.sleep(seconds)
        await self.link.unsubscribe(topics.status(topics.ANY))
        return found

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


__all__ = ["Remote", "RemoteError", "RemoteSession"]
