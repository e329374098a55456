"""What the tests of the web share: a server in this process, and a page without a browser."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
from aiohttp import web

from hnefi.gui_adapter.web.server import Server
from hnefi.gui_adapter.web.site import Settings, Site
from hnefi.protocol.client import own_command
from hnefi.protocol.hosts.sessions.engine_process import Policy

WAIT = 120.0
"""Seconds after which what has not come does not come: on however busy a machine, also where something has to be
compiled first."""


def policy(command: tuple[str, ...] | None = None, **settings: Any) -> Policy:
    return Policy(command or tuple(own_command()), proto="uti", **settings)


@contextlib.asynccontextmanager
async def serving(**settings: Any) -> AsyncIterator[tuple[Server, str]]:
    """A server on a free port, and its address without a slash at the end."""
    settings.setdefault("policy", policy())
    server = Server(Site(Settings(**settings)))
    runner = web.AppRunner(server.app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield server, f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await server.close()
        await runner.cleanup()


class Tab:
    """A page: what it sends, and all frames that it was sent."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.frames: list[dict[str, Any]] = []
        self.closed_with: int | None = None

    async def say(self, frame: dict[str, Any] | str | bytes) -> None:
        if isinstance(frame, bytes):
            await self.socket.send_bytes(frame)
        else:
            await self.socket.send_str(frame if isinstance(frame, str) else json.dumps(frame))

    async def hear(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next frame that is wanted; those before it are kept in `frames`."""
        end = time.monotonic() + WAIT
        while True:
            message = await self.socket.receive(timeout=max(0.1, end - time.monotonic()))
            if message.type is not aiohttp.WSMsgType.TEXT:
                self.closed_with = self.socket.close_code
                raise ConnectionError(f"closed with {self.closed_with}, heard {self.frames[-3:]}")
            frame = json.loads(message.data)
            self.frames.append(frame)
            if wanted(frame):
                return dict(frame)

    async def kind(self, kind: str) -> dict[str, Any]:
        return await self.hear(lambda frame: frame["t"] == kind)

    async def error(self) -> str:
        return str((await self.kind("error"))["code"])

    async def hello(self, **more: Any) -> dict[str, Any]:
        await self.say({"t": "hello", **more})
        return await self.kind("welcome")

    async def open(self, variant: str = "brandubh", **more: Any) -> str:
        """A session that is ready."""
        await self.say({"t": "open", "id": 1, "variant": variant, **more})
        sid = str((await self.kind("opened"))["s"])
        await self.hear(lambda frame: frame["t"] == "state" and frame["s"] == sid)
        return sid

    async def line(self, sid: str, text: str, n: int = 0) -> None:
        await self.say({"t": "line", "s": sid, "n": n, "text": text})

    async def state(self, sid: str, *moves: str) -> dict[str, Any]:
        """The state after these moves."""
        return await self.hear(
            lambda frame: frame["t"] == "state" and frame["s"] == sid and frame["moves"] == [*moves]
        )

    async def text(self, begin: str) -> dict[str, Any]:
        """The line that begins so."""
        return await self.hear(lambda frame: frame["t"] == "line" and frame["text"].startswith(begin))


@contextlib.asynccontextmanager
async def tab(url: str, hello: bool = True, **how: Any) -> AsyncIterator[Tab]:
    async with aiohttp.ClientSession() as client, client.ws_connect(f"{url}/ws", origin=url, **how) as socket:
        page = Tab(socket)
        if hello:
            await page.hello()
        yield page
