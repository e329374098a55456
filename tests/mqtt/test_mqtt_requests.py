"""Requests: what is granted, what is refused, and where that is said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hnefi.gui_adapter.mqtt import requests
from hnefi.gui_adapter.mqtt.requests import Rejected, Request
from hnefi.protocol.hosts.broker import topics
from hnefi.protocol.hosts.broker.values import Message


def read(payload: bytes | dict[str, Any], **message: Any) -> Request | Rejected:
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return requests.read(Message("tafl/v1/engine/local/req/alice", data, **message), "alice")


def test_a_whole_request_is_understood() -> None:
    request = read(
        {
            "id": "7",
            "op": "open",
            "variant": "brandubh",
            "player": "simple",
            "options": {"Hash": 32, "Ponder": True, "Style": "wild goose"},
            "sid": "demo1",
            "cid": "tab1",
            "seq": True,
            "keep": True,
            "reply": "tafl/v1/user/alice/reply/tab1",
            "something": ["new"],
        }
    )
    assert isinstance(request, Request)
    assert (request.variant, request.player, request.sid, request.cid) == (
        "brandubh",
        "simple",
        "demo1",
        "tab1",
    )
    assert request.options == {"Hash": "32", "Ponder": "true", "Style": "wild goose"}
    assert (request.seq, request.keep, request.reply) == (True, True, "tafl/v1/user/alice/reply/tab1")


def test_replies_go_where_the_request_says_then_mqtt_5_then_the_default() -> None:
    mine = "tafl/v1/user/alice/reply/five"
    assert read({"op": "ping"}).reply == "tafl/v1/user/alice/reply/default"
    assert read({"op": "ping"}, reply_to=mine, correlation=b"c").reply == mine
    assert read({"op": "ping"}, correlation=b"c").correlation == b"c"


@pytest.mark.parametrize(
    "reply",
    [
        "tafl/v1/user/bob/reply/tab1",
        "tafl/v1/user/alice/reply/tab1/x",
        "tafl/v1/user/alice/reply/",
        "tafl/v1/user/alice/reply/+",
        "tafl/v1/user/alice/reply/#",
        "tafl/v1/user/alice/presence/tab1",
        "tafl/v1/user/alice/reply/../../../engine/local/status",
        "tafl/v1/engine/local/status",
        "$SYS/x",
        7,
        ["tafl/v1/user/alice/reply/tab1"],
    ],
)
def test_a_forged_reply_topic_is_refused_on_the_default(reply: Any) -> None:
    for rejected in (
        read({"id": "1", "op": "ping", "reply": reply}),
        read({"op": "ping"}, reply_to=str(reply)),
    ):
        assert isinstance(rejected, Rejected)
        assert rejected.error.code == "forbidden_reply"
        assert rejected.reply == "tafl/v1/user/alice/reply/default"


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (b"", "bad_json"),
        (b"\xff\xfe", "bad_json"),
        (b"\0" * 100, "bad_json"),
        (b"[]", "bad_json"),
        (b"7", "bad_json"),
        (b'{"op":"ping"', "bad_json"),
        (b'{"op":NaN}', "bad_json"),
        (b'{"id":' + b"9" * 60_000 + b"}", "bad_json"),
        (b"[" * 60_000, "bad_json"),
        (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "bad_json"),
        (b'{"a":[[[[[[[[1]]]]]]]]}', "bad_json"),
        (b'{"a":"' + b"x" * 65_536 + b'"}', "bad_json"),
        (b'{"id":"' + b"x" * 65 + b'","op":"ping"}', "bad_request"),
        (b'{"id":[],"op":"ping"}', "bad_request"),
        (b'{"id":"1"}', "unknown_op"),
        (b'{"id":"1","op":"opne"}', "unknown_op"),
        (b'{"id":"1","op":["open"]}', "unknown_op"),
        (b'{"id":"1","op":"open","sid":"A b"}', "bad_request"),
        (b'{"id":"1","op":"open","sid":"abc"}', "bad_request"),
        (b'{"id":"1","op":"open","cid":"+"}', "bad_request"),
        (b'{"id":"1","op":"open","seq":"yes"}', "bad_request"),
        (b'{"id":"1","op":"open","options":[]}', "bad_request"),
        (b'{"id":"1","op":"open","options":{"Hash":{}}}', "bad_option"),
        (b'{"id":"1","op":"open","options":{"Hash":"1\\n2"}}', "bad_option"),
        (b'{"id":"1","op":"open","variant":7}', "bad_request"),
        (b'{"id":"1","op":"open","player":"a\\nquit"}', "bad_request"),
        (b'{"id":"1","op":"close"}', "bad_request"),
        (b'{"id":"1","op":"resend","sid":"demo1","from":-1}', "bad_request"),
        (b'{"id":"1","op":"resend","sid":"demo1","from":true}', "bad_request"),
        (b'{"id":"1","op":"resend","sid":"demo1","from":' + b"9" * 4_000 + b"}", "bad_request"),
    ],
)
def test_what_is_wrong_has_a_code_and_a_short_sentence(payload: bytes, code: str) -> None:
    rejected = read(payload)
    assert isinstance(rejected, Rejected)
    assert rejected.error.code == code
    assert code in requests.CODES
    document = json.loads(requests.failure(rejected.id, rejected.error))
    assert document["ok"] is False
    assert 0 < len(document["error"]["text"]) < 400
    assert document["error"]["text"].isprintable()


def test_a_request_without_op_is_told_so() -> None:
    for payload, text in (
        (b"{}", "op is missing: expected one of "),
        (b'{"op":7}', "op 7: expected one of "),
    ):
        rejected = read(payload)
        assert isinstance(rejected, Rejected)
        assert str(rejected.error).startswith(text)


def test_brackets_in_text_are_no_depth() -> None:
    assert isinstance(read({"id": "1", "op": "ping", "note": '[[[[[[[[[[[["\\[[['}), Request)


@given(st.binary(max_size=300))
def test_no_payload_does_harm(payload: bytes) -> None:
    assert isinstance(read(payload), Rejected | Request)


def test_topics_know_their_users_and_levels() -> None:
    assert topics.owner("tafl/v1/engine/local/req/alice") == "alice"
    assert topics.owner("tafl/v1/pool/brandubh/req/bob") == "bob"
    assert topics.owner("tafl/v1/session/alice/demo1/in") == "alice"
    assert topics.owner("tafl/v1/user/bob/reply/x") == "bob"
    assert topics.owner("tafl/v1/engine/local/status") == ""
    assert topics.slug("Über Große_Runde 7!") == "ber-gro-e-runde-7"
    with pytest.raises(topics.TopicError, match="expected 1 to 32"):
        topics.level("Alice", "user")


@pytest.mark.parametrize(
    ("wanted", "topic", "found"),
    [
        ("a/b", "a/b", True),
        ("a/+", "a/b", True),
        ("a/+", "a/b/c", False),
        ("a/#", "a/b/c", True),
        ("a/#", "b/c", False),
        ("#", "a/b", True),
        ("$share/g/a/+", "a/b", True),
        ("+/b", "a/c", False),
    ],
)
def test_filters_match_topics(wanted: str, topic: str, found: bool) -> None:
    assert topics.matches(wanted, topic) is found
