"""The HTTP side: pages, each with one WebSocket, and protection against foreign pages.

Every request must name this server (`Host`), so that no foreign page can reach it through another name that resolves to
this machine, and every WebSocket must come from a page of this server (`Origin`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from aiohttp import WSCloseCode, WSMsgType, web

from hnefi.engine import about

from . import addresses, frames
from .addresses import Requests
from .page import Page
from .site import Site
from .tables import Tables

LOG = logging.getLogger("hnefi.web")

PAGES: Final = Path(__file__).with_name("pages")
TYPES: Final = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
HEARTBEAT: Final = 20.0
HELLO: Final = 10.0
"""Seconds to wait for the first frame."""
PARTING: Final = 2.0
"""Seconds to close the connection to a browser that may not be reading."""

COUNTS: Final = (
    *("opened", "refused", "failed", "restarted"),
    *("frames_in", "frames_out", "dropped", "let_go"),
    *("pages_refused", "refused_by_address", "requests_refused"),
)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """The routes of a `Site`."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.tables = Tables(site)
        self.pages: set[Page] = set()
        self._requests = Requests(site.settings.rate)
        self._sockets: set[web.WebSocketResponse] = set()
        self._files = {path.name: path.read_bytes() for path in PAGES.iterdir() if path.suffix in TYPES}
        self._names = {*LOOPBACK, *(name.lower() for name in site.settings.names)}
        self.app = web.Application(middlewares=[self._guard], client_max_size=1024)
        self.app.router.add_get("/", self._index)
        self.app.router.add_get("/static/{name}", self._static)
        self.app.router.add_get("/healthz", self._health)
        self.app.router.add_get("/ws", self._socket)

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not self._requests.admits(self._address(request)):
            self.site.counts["requests_refused"] += 1
            response: web.StreamResponse = _said(429, "expected fewer requests from your address")
            response.headers["Retry-After"] = "1"
        elif _host_name(request.headers.get("Host", "")) not in self._names:
            response = _said(403, "this server is known by another name: see hnefi web --host-name")
        else:
            try:
                response = await handler(request)
            except web.HTTPException as error:
                response = _said(error.status, error.reason)
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    def _address(self, request: web.Request) -> str:
        """The address that a request comes from."""
        said = request.headers.getall(addresses.HEADER, [])
        return addresses.client_of(request.remote or "", said, self.site.settings.proxies)

    async def _index(self, _request: web.Request) -> web.Response:
        return self._file("index.html")

    async def _static(self, request: web.Request) -> web.Response:
        return self._file(request.match_info["name"])

    def _file(self, name: str) -> web.Response:
        data = self._files.get(name)
        if data is None:
            raise web.HTTPNotFound
        response = web.Response(body=data, content_type=TYPES[Path(name).suffix], charset="utf-8")
        response.enable_compression()  # if the browser accepts it
        return response

    async def _health(self, _request: web.Request) -> web.Response:
        site = self.site
        document: dict[str, Any] = {
            "state": "draining" if site.draining else "ready",
            "version": about.VERSION,
            "uptime": round(time.monotonic() - site.began),
            "pages": len(self.pages),
            "sessions": len(site.sessions),
            "tables": len(self.tables),
            "spectators": self.tables.watching(),
            "searching": sum(session.searching for session in site.sessions.values()),
            "max": site.settings.sessions,
            "counts": {name: site.count(name) for name in COUNTS},
        }
        engines = site.settings.engines
        if engines is not None:
            document["engines"] = {
                "connected": engines.connected,
                "hosts": len(engines.ready),
                "sessions": sum(host.sessions for host in engines.ready),
                "max": sum(host.most for host in engines.ready),
            }
        return web.Response(text=json.dumps(document), content_type="application/json")

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        host = request.headers.get("Host", "").lower()
        if request.headers.get("Origin", "").lower() not in (f"http://{host}", f"https://{host}"):
            return _said(403, "expected a page of this server")
        settings, counts = self.site.settings, self.site.counts
        if self.site.draining or len(self.pages) >= settings.pages:
            counts["pages_refused"] += 1
            return _said(503, "this server takes no more pages now")
        address = self._address(request)
        if settings.per_address and sum(p.address == address for p in self.pages) >= settings.per_address:
            counts["pages_refused"] += 1
            counts["refused_by_address"] += 1
            return _said(429, "your address has too many pages: close one first")
        socket = web.WebSocketResponse(
            heartbeat=HEARTBEAT, max_msg_size=frames.FRAME_LIMIT, timeout=PARTING, compress=True
        )
        full = asyncio.Event()
        page = Page(self.site, self.tables, full.set, address)
        # It counts from now on, because other requests may arrive while this one is being answered.
        self.pages.add(page)
        try:
            await socket.prepare(request)
        except BaseException:
            self.pages.discard(page)
            raise
        await self._converse(request, socket, page, full)
        return socket

    async def _converse(
        self, request: web.Request, socket: web.WebSocketResponse, page: Page, full: asyncio.Event
    ) -> None:
        """Exchange frames until one side ends the connection."""
        self._sockets.add(socket)
        reading = asyncio.create_task(self._read(socket, page))
        writing = asyncio.create_task(self._write(socket, page))
        flooded = asyncio.create_task(full.wait())
        code: int = WSCloseCode.OK
        why = b""
        try:
            await asyncio.wait({reading, writing, flooded}, return_when=asyncio.FIRST_COMPLETED)
            if full.is_set():
                self.site.counts["let_go"] += 1
                code, why = WSCloseCode.TRY_AGAIN_LATER, b"too many frames are waiting to be read"
            elif reading.done() and not reading.cancelled() and reading.exception() is None:
                code, why = reading.result()
                await self._last_words(socket, page)
        finally:
            tasks: set[asyncio.Task[Any]] = {reading, writing, flooded}
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            page.leave()
            self.pages.discard(page)
            self._sockets.discard(socket)
        await _part(request, socket, code, why)

    async def _read(self, socket: web.WebSocketResponse, page: Page) -> tuple[int, bytes]:
        """Handle the browser's frames; returns how to close the socket afterwards."""
        while True:
            try:
                async with asyncio.timeout(None if page.known else HELLO):
                    message = await socket.receive()
            except TimeoutError:
                return WSCloseCode.POLICY_VIOLATION, b"expected hello"
            if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                # The first frame may contain the token, which must not appear in a trace.
                self._trace(">", message.data if page.known else "hello")
                self.site.counts["frames_in"] += 1
                if not await page.take(message.data):
                    return WSCloseCode.POLICY_VIOLATION, b"refused"
            else:
                return WSCloseCode.OK, b""

    async def _write(self, socket: web.WebSocketResponse, page: Page) -> None:
        while True:
            await self._send(socket, await page.box.next())

    async def _last_words(self, socket: web.WebSocketResponse, page: Page) -> None:
        """Send what is still waiting, such as the reason for the disconnection."""
        with contextlib.suppress(TimeoutError, ConnectionError, RuntimeError):
            async with asyncio.timeout(PARTING):
                while not page.box.empty and not socket.closed:
                    await asyncio.sleep(0.01)

    async def _send(self, socket: web.WebSocketResponse, data: bytes) -> None:
        self._trace("<", data)
        self.site.counts["frames_out"] += 1
        await socket.send_str(data.decode())

    def _trace(self, arrow: str, data: str | bytes) -> None:
        trace = self.site.settings.trace
        if trace is not None:
            line = data.encode("utf-8", "replace") if isinstance(data, str) else data
            trace(asyncio.get_running_loop().time(), arrow, line.replace(b"\n", b" "))

    async def close(self) -> None:
        """End all games, then say goodbye to all pages."""
        await self.site.drain()
        await asyncio.gather(*(_sent(page) for page in self.pages))
        await asyncio.gather(
            *(
                asyncio.wait_for(socket.close(code=WSCloseCode.GOING_AWAY), PARTING)
                for socket in list(self._sockets)
            ),
            return_exceptions=True,
        )


async def _sent(page: Page) -> None:
    """Wait at most half a second until everything has been sent to a browser."""
    for _ in range(50):
        if page.box.empty:
            return
        await asyncio.sleep(0.01)


async def _part(request: web.Request, socket: web.WebSocketResponse, code: int, why: bytes) -> None:
    """Close a socket, even if nobody reads from it."""
    if not socket.closed:
        with contextlib.suppress(TimeoutError, ConnectionError, RuntimeError):
            async with asyncio.timeout(PARTING):
                await socket.close(code=code, message=why)
                return
    if request.transport is not None:
        request.transport.abort()


def _host_name(host: str) -> str:
    """The name in a Host header, in lower case and without the port, which differs behind a proxy or a tunnel."""
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdigit() else host.lower()


def _said(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=text + "\n")
