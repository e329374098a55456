"""Where a broker is, and how to get in: URLs, users, certificates."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, urlsplit

from hnefi.engine.wording import shorten

PORTS = {"mqtt": 1883, "mqtts": 8883, "ws": 80, "wss": 443}
Protocol = Literal["auto", "3", "5"]


@dataclass(frozen=True, slots=True)
class Address:
    """Where a broker is. As text it is a URL, never with a password."""

    scheme: str
    host: str
    port: int
    path: str = ""
    user: str = ""

    @property
    def secure(self) -> bool:
        return self.scheme in ("mqtts", "wss")

    @property
    def websocket(self) -> bool:
        return self.scheme in ("ws", "wss")

    def __str__(self) -> str:
        user = f"{self.user}@" if self.user else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{user}{host}:{self.port}{self.path}"


def parse_url(text: str) -> Address:
    """`mqtt://`, `mqtts://`, `ws://` or `wss://`, a host, and where wanted `user@`, a port and (websockets) a path.

    ValueError with a sentence, which never repeats a password.
    """
    expected = "expected mqtt://HOST[:PORT], mqtts://…, ws://HOST[:PORT][/PATH] or wss://…"
    shown = shorten(text if "@" not in text else text.rpartition("@")[2])
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError(f"broker {shown}: {expected}") from None
    if parts.password is not None:
        raise ValueError(
            f"broker {shown}: a password has no place in a URL: expected --password-file or HNEFI_PASSWORD"
        )
    if parts.scheme not in PORTS or not parts.hostname or port == 0:
        raise ValueError(f"broker {shown}: {expected}")
    if parts.query or parts.fragment or (parts.path.strip("/") and parts.scheme not in ("ws", "wss")):
        raise ValueError(f"broker {shown}: {expected}")
    path = (parts.path or "/mqtt") if parts.scheme in ("ws", "wss") else ""
    return Address(
        parts.scheme, parts.hostname, port or PORTS[parts.scheme], path, unquote(parts.username or "")
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
        return self.user or self.address.user

    def tls(self) -> ssl.SSLContext | None:
        """The context of a secure connection; OSError if `cafile` cannot be read or holds no certificate."""
        return ssl.create_default_context(cafile=self.cafile) if self.address.secure else None

    def __repr__(self) -> str:
        return f"Access({self.address}, user={self.login!r})"
