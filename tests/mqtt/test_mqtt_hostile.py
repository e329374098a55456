"""What strangers, broken networks and broken engines can do to the service: nothing but be told so."""

from __future__ import annotations

import asyncio
import json
import random
import resource
import secrets
import socket
import sys
from pathlib import Path

import pytest
from mqtt_brokers import WAIT, TestBroker
from mqtt_parts import Watcher, serving, until

from hnefi.gui_adapter.mqtt.service import Service
from hnefi.protocol.hosts.broker import client as client_module
from hnefi.protocol.hosts.broker import topics
from hnefi.protocol.hosts.broker.client import Access, Link, Offline, parse_url

pytest_plugins = ["mqtt_brokers"]
pytestmark = pytest.mark.process

MEMORY = 50 * 1024
"""So many KiB may be used at most while we are attacked."""
FAULTS = Path(__file__).parents[1] / "support" / "fault_engine.py"


def fault(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", str(FAULTS), "a4a2,d3c3,a2a3", *words)


async def alive(client: Watcher, service: Service, sid: str) -> None:
    """A session that was there before still answers, and requests do too."""
    mark = secrets.token_hex(4)
    assert (await client.request(op="ping"))["ok"]
    await client.say(sid, f"echo {mark}")
    await client.line(sid, mark)
    assert not service.sessions["guest", sid].searching


async def told(client: Watcher, sid: str, mark: str) -> None:
    """Says it until it is heard."""
    while not any(mark in line for line in client.out(sid)):
        await client.say(sid, f"echo {mark}")
        await asyncio.sleep(0.1)


def test_garbage_is_answered_or_ignored(broker: TestBroker) -> None:
    dice = random.Random(7)
    payloads = [
        b"",
        b"\0" * 1000,
        b"\xff\xfe\xfd",
        b"\x1b[2J\x1b]0;title\x07",
        dice.randbytes(65_536),
        dice.randbytes(100),
        b"\r\r\r\n\n\n",
        b"#",
        b"#99999999999999999999 go",
        b"#" + b"9" * 60_000,
        b"go " * 20_000,
        b"position fen " + b"1" * 60_000,
        b"position startpos moves " + b"a1a1 " * 12_000,
        "position fen ٣٣٣ ü".encode(),
        b"setoption name",
        b"[" * 60_000,
    ]

    async def play() -> None:
        async with serving(broker.url) as service, Watcher(broker.url, service.settings.eid) as client:
            await client.open("calm-1")
            sid = await client.open("wild-1")
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            for payload in payloads:
                await client.say(sid, payload)
                await client.raw(payload)
            await alive(client, service, "calm-1")
            assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY
            refusals = [json.loads(m.payload) for m in client.messages if m.topic == topics.reply("guest")]
            assert sum(document["ok"] is False for document in refusals) == len(payloads)
            assert {d["error"]["code"] for d in refusals if not d["ok"]} <= {
                "bad_json",
                "bad_request",
                "unknown_op",
            }
            assert all(
                m.payload.decode().isprintable() for m in client.messages if m.topic.endswith("/default")
            )

    asyncio.run(play())


def test_a_flood_of_lines_and_requests_is_bounded(broker: TestBroker) -> None:
    async def play() -> None:
        async with (
            serving(broker.url) as service,
            Watcher(broker.url, service.settings.eid) as client,
            Watcher(broker.url, service.settings.eid, "flood") as stranger,
        ):
            await client.open("calm-2")
            sid = await stranger.open("wild-2")
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            lines = [stranger.say(sid, "echo flood\n" * 8) for _ in range(1_250)]
            asked = [stranger.raw(b'{"id":"f","op":"list"}') for _ in range(500)]
            flood = asyncio.gather(*lines, *asked)
            await alive(client, service, "calm-2")
            await flood
            await alive(client, service, "calm-2")
            assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY
            # Who has flooded is not heard for a moment.
            await told(stranger, sid, "after the flood")

    asyncio.run(play())


def test_one_client_id_for_two_hurts_nobody_else(broker: TestBroker) -> None:
    async def play() -> None:
        async with (
            serving(broker.url) as service,
            Watcher(broker.url, service.settings.eid) as client,
        ):
            sid = await client.open("twin-1", seq=True)
            await client.say(sid, "#1 go infinite")
            thief = Link(Access(parse_url(broker.url), protocol="3"), "thief")
            # A broker puts the older of two out, even the service.
            thief._identifier = service.link.identifier
            async with thief:
                await until(lambda: service.link.connections > 1 and service.link.up, "the return")
                await client.say(sid, "#2 stop\n#2 stop")
                lines = await client.line(sid, "bestmove")
                assert lines[-1].endswith(":1 bestmove b1b2")
                status = topics.status(service.settings.eid)
                await until(
                    lambda: b'"ready"' in client.payloads(status)[-1].encode(), "that the service is there"
                )

    asyncio.run(play())


def test_connections_cut_anywhere_leave_the_service_alone(broker: TestBroker) -> None:
    """A stranger's half messages: the broker's business, and none of ours."""
    connect = b"\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04half"
    topic = b"tafl/v1/session/guest/calm-3/in"
    publish = b"\x30" + bytes([2 + len(topic) + 4]) + bytes([0, len(topic)]) + topic + b"quit"

    async def play() -> None:
        async with serving(broker.url) as service, Watcher(broker.url, service.settings.eid) as client:
            await client.open("calm-3")
            whole = connect + publish
            for cut in range(1, len(whole), 7):
                with socket.create_connection(("127.0.0.1", broker.port), 5) as stranger:
                    stranger.sendall(whole[:cut])
                await asyncio.sleep(0)
            for bad in (b"\x10\xff\xff\xff\xff\xff", b"GET / HTTP/1.1\r\n\r\n", b"\0" * 1000):
                with socket.create_connection(("127.0.0.1", broker.port), 5) as stranger:
                    stranger.sendall(bad)
            await alive(client, service, "calm-3")

    asyncio.run(play())


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("exit",), "started again"),
        (("stderr-flood",), "bestmove"),
        (("info-flood",), "bestmove"),
        (("long-line",), "bestmove"),
        (("bytes",), "bestmove"),
        (("twice",), "bestmove"),
        (("illegal=a1a9\x1b[2J",), "bestmove a1a9"),
        (("early",), "bestmove"),
    ],
)
def test_an_engine_that_goes_wrong_hurts_its_own_session_only(
    broker: TestBroker, words: tuple[str, ...], expected: str
) -> None:
    async def play() -> None:
        command = fault("at=1", *words)
        async with (
            serving(broker.url, command) as service,
            Watcher(broker.url, service.settings.eid) as client,
        ):
            sid = await client.open(f"fault-{words[0][:5].rstrip('=')}")
            await client.say(sid, "utinewgame\nposition startpos\ngo depth 1")
            await client.line(sid, expected)
            if words[0] == "exit" or words[0].startswith("illegal"):
                return
            await client.say(sid, "isready")
            lines = await client.line(sid, "readyok")
            assert sum(line.startswith("bestmove") for line in lines) == 1
            assert len(lines) < 20

    asyncio.run(play())


def test_a_client_that_does_not_read_holds_nobody_up(broker: TestBroker) -> None:
    async def play() -> None:
        async with serving(broker.url) as service, Watcher(broker.url, service.settings.eid) as client:
            await client.open("calm-4")
            sid = await client.open("wild-4")
            deaf = socket.create_connection(("127.0.0.1", broker.port), 5)
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.sendall(b"\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04deaf")
            topic = f"tafl/v1/session/guest/{sid}/out".encode()
            deaf.sendall(b"\x82" + bytes([5 + len(topic), 0, 1, 0, len(topic)]) + topic + b"\x01")
            for _ in range(20):
                await client.say(sid, "many 900")
            await alive(client, service, "calm-4")
            await until(lambda: service.sessions["guest", sid].outgoing.last_out == 18_000, "all lines")
            deaf.close()

    asyncio.run(play())


def test_a_broker_that_comes_and_goes_wears_nothing_out(
    own_broker: TestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setattr(client_module, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(client_module, "LAST_PAUSE", 0.1)

    async def play() -> None:
        async with (
            serving(own_broker.url) as service,
            Watcher(own_broker.url, service.settings.eid) as client,
        ):
            sid = await client.open("again-1", seq=True)
            tasks = 0
            for turn in range(1, 5):
                await client.say(sid, f"#{turn} echo {turn}")
                await client.line(sid, f" {turn}")
                own_broker.kill()
                await until(lambda: not (service.link.up or client.link.up), "the loss")
                with pytest.raises(Offline):
                    await client.say(sid, "lost")
                own_broker.start()
                await asyncio.wait_for(asyncio.gather(service.link.wait_up(), client.link.wait_up()), WAIT)
                await client.request(op="ping")
                tasks = tasks or len(asyncio.all_tasks())
            await until(lambda: len(asyncio.all_tasks()) <= tasks + 2, "the end of what each turn began")
            numbers = [int(line.split()[0][1:]) for line in client.out(sid)]
            assert sorted(set(numbers)) == [1, 2, 3, 4]

    asyncio.run(play())
