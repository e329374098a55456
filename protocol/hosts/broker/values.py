"""Where a broker is and how to get in, what goes through a connection, and what can be wrong with one."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, urlsplit

from hnefi.engine.wording import shorten

from . import topics

PORTS = {"mqtt": 1883, "mqtts": 8883, "ws": 80, "wss": 443}
Protocol = Literal["auto", "3", "5"]


@dataclass(frozen=True, slots=True)
class Address:
    """Where a broker is, and the `prefix` of all our topics there. As text it is a URL, never with a password."""

    scheme: str
    host: str
    port: int
    path: str = ""
    user: str = ""
    prefix: str = ""

    @property
    def secure(self) -> bool:
        """Whether the connection is encrypted."""
        return self.scheme in ("mqtts", "wss")

    @property
    def websocket(self) -> bool:
        """Whether MQTT goes through a WebSocket."""
        return self.scheme in ("ws", "wss")

    def __str__(self) -> str:
        user = f"{self.user}@" if self.user else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{user}{host}:{self.port}{self.path or (self.prefix and f'/{self.prefix}')}"


def parse_url(text: str) -> Address:
    """`mqtt://`, `mqtts://`, `ws://` or `wss://`, a host, and where wanted `user@`, a port and a path: that of the
    WebSocket, otherwise a prefix of all topics.

    ValueError with a sentence, which never repeats a password.
    """
    expected = "expected mqtt://HOST[:PORT][/PREFIX], mqtts://…, ws://HOST[:PORT][/PATH] or wss://…"
    shown = shorten(text if "@" not in text else text.rpartition("@")[2])
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError(f"broker {shown}: {expected}") from None
    if parts.password is not None:
        raise ValueError(
            f"broker {shown}: passwords are not accepted in URLs: expected --password-file or HNEFI_PASSWORD"
        )
    if parts.scheme not in PORTS or not parts.hostname or port == 0:
        raise ValueError(f"broker {shown}: {expected}")
    if parts.query or parts.fragment:
        raise ValueError(f"broker {shown}: {expected}")
    path, prefix = parts.path or "/mqtt", ""
    if parts.scheme not in ("ws", "wss"):
        path, prefix = "", parts.path.strip("/")
        if prefix and not all(map(topics.is_level, prefix.split("/"))):
            raise ValueError(
                f"broker {shown}: prefix {shorten(prefix)}: expected mqtt://HOST/PREFIX of a-z, 0-9, '.', '-' and '/'"
            )
    return Address(
        parts.scheme, parts.hostname, port or PORTS[parts.scheme], path, unquote(parts.username or ""), prefix
    )


@dataclass(frozen=True, slots=True)
class Access:
    """How to get in. `user` overrides that of the address; `cafile` replaces the system's authorities (TLS)."""

    address: Address
    user: str = ""
    password: str | None = None
    cafile: str | None = None
    protocol: Protocol = "auto"

    @property
    def login(self) -> str:
        """The user name for the broker; empty for none."""
        return self.user or self.address.user

    def tls(self) -> ssl.SSLContext | None:
        """The context of a secure connection; OSError if `cafile` cannot be read or holds no certificate."""
        return ssl.create_default_context(cafile=self.cafile) if self.address.secure else None

    def __repr__(self) -> str:
        return f"Access({self.address}, user={self.login!r})"


class LinkError(Exception):
    """Something is wrong with the broker or the way to it; the text is a sentence for people."""


class Unreachable(LinkError):
    """There is no broker, or it does not answer."""


class Refused(LinkError):
    """The broker does not let us in; trying again would not help."""


class Offline(LinkError):
    """There is no connection now, or it fell before the broker acknowledged."""


@dataclass(frozen=True, slots=True)
class Will:
    """What the broker publishes (QoS 1, retained) when we vanish without a goodbye."""

    topic: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Message:
    """What a subscription brought. `reply_to` and `correlation` exist on MQTT 5 only."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    reply_to: str = ""
    correlation: bytes = b""


def traced(topic: str, payload: bytes | str, qos: int, retain: bool) -> bytes:
    """A message as one line: topic, ``[q1]`` or ``[q1 retained]``, and the payload with signs that are not printable as
    escapes."""
    text = payload if isinstance(payload, str) else payload.decode("utf-8", "backslashreplace")
    line = f"{topic} [q{qos}{' retained' if retain else ''}] {text}"
    if not line.isprintable():
        line = "".join(sign if sign.isprintable() else _escape(sign) for sign in line)
    return line.encode()


def _escape(sign: str) -> str:
    return sign.encode("unicode_escape").decode()


class RemoteError(Exception):
    """A request failed: `code` is the service's, or `no_reply`."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
