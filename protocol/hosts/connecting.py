"""What adapters share that talk over TCP: passwords, pauses between attempts, lost connections, errors in words."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import random
import re
import socket
import stat
import sys
from pathlib import Path

from hnefi.engine.wording import shorten

PASSWORD_LIMIT = 4096
_HOST = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
_PORT = re.compile(r"[0-9]{1,5}", re.ASCII)
ALIVE = 30
"""Seconds between two questions of the system whether the other side still exists."""


def password(file: str | None) -> str | None:
    """The password from `file`, else from HNEFI_PASSWORD, else none; ValueError with a sentence.

    It is the first line of the file; a warning says if others can read it.
    """
    if file is None:
        return os.environ.get("HNEFI_PASSWORD")
    path = Path(file)
    try:
        with path.open(encoding="utf-8") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            line = stream.readline(PASSWORD_LIMIT)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "expected text in UTF-8"
        raise ValueError(f"password file {shorten(file)}: {reason}") from None
    if stat.S_ISREG(mode) and mode & (stat.S_IRGRP | stat.S_IROTH):
        print(f"warning: others can read {shorten(file)}: chmod 600 would help", file=sys.stderr)
    return line.rstrip("\r\n")


def host_and_port(text: str, default: int) -> tuple[str, int]:
    """The parts of HOST, HOST:PORT, [ADDRESS]:PORT or an IPv6 address alone; ValueError that says what was expected."""
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]") or (":" in host and not host.startswith("[")):
        host, port = text, str(default)
    host = host.removeprefix("[").removesuffix("]")
    if (
        not (_HOST.fullmatch(host) or _is_ipv6(host))
        or not _PORT.fullmatch(port)
        or not 0 < int(port) < 65_536
    ):
        raise ValueError(f"{shorten(text)}: expected HOST or HOST:PORT, as in localhost:{default}")
    return host, int(port)


def _is_ipv6(host: str) -> bool:
    try:
        ipaddress.IPv6Address(host)
    except ValueError:
        return False
    return True


class Pauses:
    """Seconds between attempts to connect: doubled from `first` to `last`, and small again after a connection that
    has held for `good` seconds.

    Each is changed by up to a fifth at random, so that many clients do not come back at the same moment.
    """

    def __init__(self, first: float, last: float, good: float = 60.0) -> None:
        self._first, self._last, self._good = first, last, good
        self._pause = first

    def after(self, lasted: float) -> float:
        """Seconds to wait before the next attempt, after an attempt or a connection that lasted so long."""
        if lasted >= self._good:
            self._pause = self._first
        pause, self._pause = self._pause, min(2 * self._pause, self._last)
        return pause * random.uniform(0.8, 1.2)


def keep_alive(link: socket.socket) -> None:
    """Notice when the other side has vanished without closing the connection, where the system can."""
    with contextlib.suppress(OSError):
        link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL"):
            if hasattr(socket, name):
                link.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), ALIVE)


def reason_of(error: OSError) -> str:
    """Why a connection failed. asyncio puts addresses into its messages, and joins those of several attempts."""
    if isinstance(error, socket.gaierror):
        return "no such host"
    if error.errno:
        return os.strerror(error.errno)
    if isinstance(error, ConnectionError):
        return "connection lost"
    return "no answer" if isinstance(error, TimeoutError) else "nobody listens there"
