"""The connection to the server: lines over TCP, the login, and reconnecting."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from hnefi.engine import about
from hnefi.engine.wording import shorten
from hnefi.protocol.hosts.connecting import Pauses, keep_alive, reason_of
from hnefi.protocol.hosts.trace import Trace

LOG = logging.getLogger("hnefi.hnefatafl_org")

LINE_LIMIT: Final = 4 * 1024 * 1024
"""Bytes of a line: lists of accounts have been that long. Longer ones are skipped."""
CHUNK: Final = 65_536
UNSENT_LIMIT: Final = 65_536
"""Bytes that a server may leave unread; our own lines are short and few."""
RAW_LIMIT: Final = 256 * 1024 * 1024
"""Bytes of archived games that are skipped; more is nonsense."""
PARTING: Final = 0.2
"""Seconds for the server to read our last lines."""
ARCHIVE: Final = re.compile(rb"= archived_games ([0-9]{1,18})\r?")
TIMED_OUT: Final = "no answer"


class ServerError(Exception):
    """The server has refused us or sends nonsense; the text is a sentence. Trying again does not help."""


class Lost(Exception):
    """The connection was lost; the text is a sentence. Trying again may help."""


@dataclass(frozen=True, slots=True)
class Account:
    """Whose account it is, where, and which release of the server's protocol we speak."""

    user: str
    password: str = field(repr=False)
    host: str
    port: int
    wire: str


@dataclass(frozen=True, slots=True)
class Waits:
    """How long we wait, in seconds, and how often we try to log in."""

    ping: float = 30.0
    """Seconds between two pings; a connection is given up if a ping is not answered before the next but one."""
    answer: float = 30.0
    """For a connection, and for the answer to a login."""
    first: float = 2.0
    last: float = 300.0
    good: float = 60.0
    """Pauses between connections, see `Pauses`."""
    occupied: float = 60.0
    """After `logged_in_already`: the time that the server may need to notice the end of our last connection."""
    too_soon: float = 60.0
    too_soon_last: float = 1800.0
    """After `retried_too_soon`, doubled each time: the server doubles its own pause, up to half an hour."""
    hour: float = 3600.0
    attempts: int = 5
    """Failed logins within an hour, after which the next waits."""


class Connection:
    """Lines over one connection. What is read is bounded, and control characters never leave this class."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        trace: Trace | None,
        secret: tuple[bytes, bytes] | None = None,
    ) -> None:
        """`secret` is a text that is never passed on, and its replacement, because a server may repeat what we sent."""
        self._reader = reader
        self._writer = writer
        self._trace = trace
        self._rest = bytearray()
        self._unread: list[str] = []
        self._skipping = False
        self._raw = 0
        self._secret = secret

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        timeout: float,
        trace: Trace | None,
        secret: tuple[bytes, bytes] | None = None,
    ) -> Connection:
        """Connect; Lost where nobody answers, ServerError where the address does not exist."""
        try:
            async with asyncio.timeout(timeout):
                reader, writer = await asyncio.open_connection(host, port, limit=CHUNK)
        except socket.gaierror as error:
            raise ServerError(f"{host}:{port}: {error.strerror}: expected the address of a server") from None
        except TimeoutError:
            raise Lost(f"{host}:{port}: {TIMED_OUT} within {timeout:g} s") from None
        except OSError as error:
            raise Lost(f"{host}:{port}: {reason_of(error)}") from None
        keep_alive(writer.get_extra_info("socket"))
        return cls(reader, writer, trace, secret)

    def send(self, line: str, shown: str | None = None) -> None:
        """Send one line; the trace has `shown` in its place. An empty one would end the session. Lost."""
        assert line.split()
        if self._trace is not None:
            self._trace(time.monotonic(), ">", (shown or line).encode())
        if self._writer.is_closing():
            raise Lost("the connection is closed")
        self._writer.write(line.encode() + b"\n")
        if self._writer.transport.get_write_buffer_size() > UNSENT_LIMIT:
            raise Lost("the server does not read our messages")

    async def lines(self) -> list[str]:
        """The complete lines received, perhaps none. Lost at the end of the stream."""
        if self._unread:
            unread, self._unread = self._unread, []
            return unread
        try:
            data = await self._reader.read(CHUNK)
        except OSError as error:
            raise Lost(f"the connection broke: {reason_of(error)}") from None
        if not data:
            raise Lost("the server closed the connection")
        found = self._split(data)
        if self._secret is not None:
            found = [line.replace(*self._secret) for line in found]
        if self._trace is not None:
            now = time.monotonic()
            for line in found:
                self._trace(now, "<", line)
        texts = (line.decode("utf-8", "replace") for line in found)
        return ["".join(sign if sign.isprintable() else " " for sign in text) for text in texts]

    def unread(self, lines: list[str]) -> None:
        """Let `lines` begin with these."""
        self._unread = lines

    def _split(self, data: bytes) -> list[bytes]:
        """Whole lines, without raw bytes between them and without those that are too long."""
        found = []
        while data:
            if self._raw:
                skipped = min(self._raw, len(data))
                self._raw -= skipped
                data = data[skipped:]
                continue
            head, end, data = data.partition(b"\n")
            if not self._skipping:
                self._rest += head
                if len(self._rest) > LINE_LIMIT:
                    LOG.warning("skipped a line of more than %d bytes", LINE_LIMIT)
                    self._rest.clear()
                    self._skipping = True
            if end:
                line = bytes(self._rest)
                self._rest.clear()
                if self._skipping:
                    self._skipping = False
                elif archive := ARCHIVE.fullmatch(line):
                    self._raw = int(archive[1])
                    if self._raw > RAW_LIMIT:
                        raise Lost(f"the server announces {self._raw} bytes of archived games")
                else:
                    found.append(line)
        return found

    async def close(self) -> None:
        """End the connection when everything has been sent, or soon in any case."""
        try:
            async with asyncio.timeout(PARTING):
                self._writer.transport.set_write_buffer_limits(0)
                await self._writer.drain()
        except (OSError, TimeoutError):
            self._writer.transport.abort()
        self._writer.close()


class Link:
    """Keeps us logged in."""

    def __init__(self, account: Account, waits: Waits | None = None, trace: Trace | None = None) -> None:
        self.waits = waits or Waits()
        self._account = account
        self._trace = trace
        self._failures: deque[float] = deque(maxlen=self.waits.attempts)
        self._too_soon = self.waits.too_soon
        self._been_in = False

    async def keep(self, use: Callable[[Connection], Awaitable[int]]) -> int:
        """Call `use` with a connection on which we are logged in and return its result; if the connection is lost, call
        it with another.

        ServerError if the server refuses us, or if the first connection cannot be made.
        """
        pauses = Pauses(self.waits.first, self.waits.last, self.waits.good)
        while True:
            await self._await_attempt()
            began = time.monotonic()
            try:
                return await self._once(use)
            except Lost as error:
                if not self._been_in:
                    raise ServerError(f"{error}: expected the server of hnefatafl.org") from None
                pause = pauses.after(time.monotonic() - began)
                LOG.warning("%s: connecting again in %.0f s", error, pause)
                await asyncio.sleep(pause)

    async def _await_attempt(self) -> None:
        """Wait as long as there have been too many failed logins within an hour."""
        if len(self._failures) == self.waits.attempts:
            wait = self._failures[0] + self.waits.hour - time.monotonic()
            if wait > 0:
                LOG.warning("%d logins have failed: the next is in %.0f s", len(self._failures), wait)
                await asyncio.sleep(wait)

    async def _once(self, use: Callable[[Connection], Awaitable[int]]) -> int:
        account = self._account
        while True:
            secret = f"{account.user} {account.password}".encode(), f"{account.user} ***".encode()
            connection = await Connection.open(
                account.host, account.port, self.waits.answer, self._trace, secret
            )
            try:
                pause = await self._log_in(connection)
                if pause is None:
                    return await use(connection)
            finally:
                await connection.close()
            await asyncio.sleep(pause)
            await self._await_attempt()

    async def _log_in(self, connection: Connection) -> float | None:
        """Log in; returns None on success, or the seconds after which to try again. ServerError if that cannot help,
        Lost."""
        account = self._account
        self._failures.append(time.monotonic())
        head = f"{account.wire} login {account.user}"
        connection.send(f"{head} {account.password}", f"{head} ***")
        try:
            async with asyncio.timeout(self.waits.answer):
                refusal = await _answer(connection)
        except TimeoutError:
            raise Lost(f"the server did not answer our login within {self.waits.answer:g} s") from None
        if refusal is None:
            self._failures.clear()
            self._too_soon = self.waits.too_soon
            self._been_in = True
            connection.send(f"software_id hnefi-{about.VERSION}")
            return None
        # The server received the login some time after we sent it, so count the hour from now.
        self._failures[-1] = time.monotonic()
        return self._pause_after(refusal)

    def _pause_after(self, refusal: str) -> float:
        account = self._account
        if refusal == "logged_in_already":
            LOG.warning("%s is logged in already, perhaps by a connection that was lost: trying again in %.0f s",
                        account.user, self.waits.occupied)  # fmt: skip
            self._been_in = True
            return self.waits.occupied
        if refusal == "retried_too_soon":
            pause = self._too_soon
            self._too_soon = min(2 * pause, self.waits.too_soon_last)
            LOG.warning("the server wants a pause between logins: trying again in %.0f s", pause)
            self._been_in = True
            return pause
        if refusal == "wrong_version":
            raise ServerError(
                f"the server does not accept our version {account.wire}: expected that of its current release, "
                "VERSION_ID in its source; set it with --wire-version"
            )
        known = {
            "wrong_password": f"wrong password for {account.user}",
            "account_not_in_database": f"no account {account.user}: expected one that you created there",
        }
        raise ServerError(f"login refused: {known.get(refusal, shorten(refusal or 'no reason given'))}")


async def _answer(connection: Connection) -> str | None:
    """Why our login is refused; None if it is not."""
    while True:
        lines = await connection.lines()
        for at, line in enumerate(lines):
            sign, word, *reasons = [*line.split()[:8], "", ""]
            if word == "login" and sign in ("=", "?"):
                connection.unread(lines[at + 1 :])
                reason = " ".join(reasons).removeprefix("multiple_possible_errors").strip()
                return None if sign == "=" else reason
