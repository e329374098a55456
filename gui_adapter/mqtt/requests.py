"""Requests and their replies: JSON within limits, and an error code for every kind of error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hnefi.engine.wording import nearest, shorten
from hnefi.protocol.hosts.bounded_json import decode, encode
from hnefi.protocol.hosts.broker import topics
from hnefi.protocol.hosts.broker.values import Message
from hnefi.protocol.hosts.sessions.engine_process import RequestError, Wanted

ID_LIMIT = 64
OPTIONS_LIMIT = 64
WORD_LIMIT = 1_024

OPERATIONS = ("open", "close", "list", "resend", "ping")
CODES = (
    "bad_json",
    "bad_request",
    "unknown_op",
    "unknown_variant",
    "bad_option",
    "forbidden_reply",
    "too_many",
    "draining",
    "no_session",
    "sid_taken",
    "gone",
    "engine_failed",
)


@dataclass(frozen=True, slots=True)
class Request:
    """A valid request. `reply` is a topic of `user`, and `correlation` is echoed (MQTT 5).

    Fields of operations other than `op` have their defaults.
    """

    id: str
    op: str
    user: str
    reply: str
    correlation: bytes = b""
    variant: str = ""
    player: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    cid: str = ""
    sid: str = ""
    seq: bool = False
    keep: bool = False
    start: int = 1

    @property
    def wanted(self) -> Wanted:
        """The engine that an `open` asks for."""
        return Wanted(self.variant, self.player, self.options)


@dataclass(frozen=True, slots=True)
class Rejected:
    """An invalid request, with the data for a reply."""

    id: str
    reply: str
    correlation: bytes
    error: RequestError


def read(message: Message, user: str, variant: str = "") -> Request | Rejected:
    """The request of `user` in a message; `variant` is that of the pool that received it."""
    ident, reply = "", topics.reply(user)
    try:
        document = _document(message.payload)
        ident = _ident(document)
        reply = _reply(document, message, user)
        return _request(document, ident, user, reply, message.correlation, variant)
    except RequestError as error:
        return Rejected(ident, reply, message.correlation, error)


def success(ident: str, **facts: Any) -> bytes:
    """The reply to a granted request."""
    return encode({"id": ident, "ok": True, **facts})


def failure(ident: str, error: RequestError) -> bytes:
    """The reply to a rejected request."""
    return encode({"id": ident, "ok": False, "error": {"code": error.code, "text": str(error)}})


def _document(payload: bytes) -> dict[str, Any]:
    try:
        return decode(payload)
    except ValueError as error:
        raise RequestError("bad_json", f"request: {error}") from None


def _ident(document: Mapping[str, Any]) -> str:
    value = document.get("id", "")
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**18:
        return str(value)
    if not isinstance(value, str) or len(value) > ID_LIMIT:
        raise RequestError(
            "bad_request", f"id {shorten(value)}: expected text of at most {ID_LIMIT} characters"
        )
    return value


def _reply(document: Mapping[str, Any], message: Message, user: str) -> str:
    value = document.get("reply") or message.reply_to or topics.reply(user)
    if not isinstance(value, str) or not topics.is_reply_of(value, user):
        raise RequestError(
            "forbidden_reply", f"reply {shorten(value)}: expected {topics.reply(user, '<word>')}"
        )
    return value


def _request(
    document: Mapping[str, Any], ident: str, user: str, reply: str, correlation: bytes, variant: str
) -> Request:
    op = document.get("op")
    if op not in OPERATIONS:
        read = f"op {shorten(op)}" if "op" in document else "op is missing"
        hint = nearest(op, OPERATIONS) if isinstance(op, str) else ""
        raise RequestError("unknown_op", f"{read}: expected one of {', '.join(OPERATIONS)}{hint}")
    start = document.get("from", 1)
    if isinstance(start, bool) or not isinstance(start, int) or not 0 <= start < 10**15:
        raise RequestError("bad_request", f"from {shorten(start)}: expected the number of a line")
    request = Request(
        id=ident,
        op=op,
        user=user,
        reply=reply,
        correlation=correlation,
        variant=_word(document, "variant") or variant,
        player=_word(document, "player"),
        options=_options(document),
        cid=_level(document, "cid"),
        sid=_sid(document),
        seq=_flag(document, "seq"),
        keep=_flag(document, "keep"),
        start=start,
    )
    if op in ("close", "resend") and not request.sid:
        raise RequestError("bad_request", f"{op}: expected the sid of a session")
    return request


def _word(document: Mapping[str, Any], key: str) -> str:
    value = document.get(key, "")
    if not isinstance(value, str) or len(value) > WORD_LIMIT or not value.isprintable():
        raise RequestError("bad_request", f"{key} {shorten(value)}: expected one line of text")
    return value


def _flag(document: Mapping[str, Any], key: str) -> bool:
    value = document.get(key, False)
    if not isinstance(value, bool):
        raise RequestError("bad_request", f"{key} {shorten(value)}: expected true or false")
    return value


def _level(document: Mapping[str, Any], key: str) -> str:
    value = _word(document, key)
    try:
        return topics.level(value, key) if value else ""
    except topics.TopicError as error:
        raise RequestError("bad_request", str(error)) from None


def _sid(document: Mapping[str, Any]) -> str:
    value = _word(document, "sid")
    if value and not topics.is_session(value):
        raise RequestError("bad_request", f"sid {shorten(value)}: expected 4 to 32 of a-z, 0-9 and '-'")
    return value


def _options(document: Mapping[str, Any]) -> dict[str, str]:
    value = document.get("options", {})
    if not isinstance(value, dict) or len(value) > OPTIONS_LIMIT:
        raise RequestError(
            "bad_request",
            f"options {shorten(value)}: expected an object of at most {OPTIONS_LIMIT} names and values",
        )
    options = {}
    for name, setting in value.items():
        text = str(setting).lower() if isinstance(setting, bool) else setting
        text = str(text) if isinstance(text, int) and abs(text) < 10**18 else text
        if not isinstance(text, str) or len(text) > WORD_LIMIT or not (name + text).isprintable():
            raise RequestError(
                "bad_option", f"option {shorten(name)} {shorten(setting)}: expected one line of text"
            )
        options[name] = text
    return options
