"""Where a request comes from, even behind proxies, and how many requests one address may make.

What a proxy says about its client only counts if the proxy is trusted, because anybody can send such a header.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Iterable, Sequence
from typing import Final

HEADER: Final = "X-Forwarded-For"
BURST: Final = 5.0
"""Seconds of requests that may come at once; a page has about twenty files."""
KEPT: Final = 4096
"""Addresses to remember; beyond that, the ones that have been quiet longest are forgotten."""
HOST_BITS: Final = 64
"""Bits of an IPv6 address that its owner can choose freely; addresses that differ only in these count as one."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def network(text: str) -> Network:
    """An address, or a network such as 10.0.0.0/8; ValueError with a sentence."""
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        raise ValueError("expected an address such as 127.0.0.1, or a network such as 10.0.0.0/8") from None


def client_of(peer: str, forwarded: Iterable[str], trusted: Sequence[Network]) -> str:
    """The address of a client: `peer` at the other end of the connection or, if that is a trusted proxy, the client
    that the proxy names, and so on. `forwarded` are the values of the header.

    Each proxy adds its client on the right, so anything written by the client itself is left of what can be trusted.
    """
    said = [word.strip() for value in forwarded for word in value.split(",")]
    address = _address(peer)
    while address is not None and said and any(address in known for known in trusted):
        before = _address(said.pop())
        if before is None:
            break
        address = before
    if address is None:
        return peer
    if address.version == 6:
        return str(ipaddress.ip_network((address, HOST_BITS), strict=False))
    return str(address)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parse an address as proxies write it: IPv6 may be in brackets, and a port may follow."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return address if mapped is None else mapped


class Requests:
    """Allows `rate` requests a second from each address, and `BURST` seconds of that at once; 0 means no limit."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._known: dict[str, tuple[float, float]] = {}

    def admits(self, address: str) -> bool:
        """Whether one more request from there is allowed now."""
        if not self._rate:
            return True
        now = time.monotonic()
        most = BURST * self._rate
        left, then = self._known.pop(address, (most, now))
        left = min(most, left + (now - then) * self._rate)
        # The most recent address is last, so the one that is forgotten has been quiet longest.
        self._known[address] = (left - 1.0 if left >= 1.0 else left, now)
        if len(self._known) > KEPT:
            del self._known[next(iter(self._known))]
        return left >= 1.0
