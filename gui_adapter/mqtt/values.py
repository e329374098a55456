"""What goes through a connection, and what can be wrong with one."""

from __future__ import annotations

from dataclasses import dataclass


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
