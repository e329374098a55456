"""The faults of amqtt that the embedded broker mends, each shown by what a client meets."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from amqtt.adapters import BufferReader, BufferWriter
from amqtt.session import Session
from mqtt_brokers import WAIT, free_port, require
from mqtt_parts import until

from hnefi.gui_adapter.mqtt import brokers, embedded
from hnefi.protocol.hosts.broker import topics
from hnefi.protocol.hosts.broker.client import Access, Link, parse_url

GOODBYE = b"\xe0\x00"
GREETED = b"\x20\x02\x00\x00"
PING, PONG = b"\xc0\x00", b"\xd0\x00"
LEAST_ONCE = 0x32
"""The first byte of a message at QoS 1."""


def words(text: str) -> bytes:
    return len(text).to_bytes(2, "big") + text.encode()


def packet(kind: int, body: bytes) -> bytes:
    assert len(body) < 128, "a length of one byte"
    return bytes([kind, len(body)]) + body


def hello(name: str, will: tuple[str, str] | None = None, *, clean: bool = True) -> bytes:
    """A greeting in MQTT 3.1.1, with a will of topic and payload; not `clean`: its filters outlive its connection."""
    flags = (0x02 if clean else 0) | (0x04 if will else 0)
    return packet(
        0x10, words("MQTT") + bytes([4, flags, 0, 60]) + b"".join(map(words, (name, *(will or ()))))
    )


def said(topic: str, number: int) -> bytes:
    return packet(LEAST_ONCE, words(topic) + number.to_bytes(2, "big") + str(number).encode())


@contextlib.asynccontextmanager
async def at_a_broker() -> AsyncIterator[Access]:
    broker = await brokers.provide("amqtt", port=free_port())
    try:
        yield Access(parse_url(broker.url))
    finally:
        await broker.close()


@contextlib.asynccontextmanager
async def stranger(way: Access) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection on which nothing has been said."""
    reader, writer = await asyncio.open_connection(way.address.host, way.address.port)
    try:
        yield reader, writer
    finally:
        writer.close()


@pytest.fixture(autouse=True)
def _amqtt() -> None:
    require("amqtt")


def test_filters_may_change_while_somebody_goes_through_them() -> None:
    """A broker with rights waits for their answer at each filter."""
    filters = embedded.Snapshots(one=1, two=2)
    for name in filters:
        filters[f"{name} more"] = 3
    for name, number in filters.items():
        assert filters.pop(name) == number
    assert not filters


@pytest.mark.parametrize("clean", [True, False], ids=["new", "returning"])
def test_who_comes_is_heard_while_others_subscribe(clean: bool) -> None:
    """Some are told first what is kept, all of them at the same time: those that return, whose filters have outlived
    their connections."""
    comers, filters = 20, 8
    kept = b"".join(words(f"t/kept/{number}") + b"\x00" for number in range(filters))

    async def play() -> None:
        heard: set[int] = set()
        async with at_a_broker() as way, Link(way, "ear") as ear:
            await ear.subscribe("t/said", lambda message: heard.add(int(message.payload)))
            for number in range(filters):
                await ear.publish(f"t/kept/{number}", b"kept", retain=True)
                await ear.subscribe(f"t/kept/{number}", lambda _: None)

            async def leave_filters(number: int) -> None:
                async with stranger(way) as (reader, writer):
                    writer.write(hello(str(number), clean=False) + packet(0x82, b"\x00\x01" + kept))
                    await reader.readexactly(len(GREETED) + 4 + filters)
                    writer.write(GOODBYE)
                    await reader.read()

            async def come(number: int) -> None:
                async with stranger(way) as (_, writer):
                    own = packet(0x82, b"\x00\x02" + words(f"t/own/{number}") + b"\x00")
                    writer.write(hello(str(number), clean=clean) + own + said("t/said", number))
                    await until(lambda: number in heard, f"client {number}")

            everybody = range(1, comers + 1)
            if not clean:
                await asyncio.gather(*map(leave_filters, everybody))
            more = (ear.subscribe(f"t/more/{number}", lambda _: None) for number in range(100))
            await asyncio.gather(*map(come, everybody), *more)

    asyncio.run(asyncio.wait_for(play(), WAIT))


def test_what_was_said_before_a_goodbye_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """However far the broker is behind: here it lets through only a part of it at once."""
    monkeypatch.setattr(brokers, "RATE", 100.0)
    topic = topics.session("guest", "hasty", "in")

    async def play() -> None:
        heard: list[int] = []
        async with at_a_broker() as way, Link(way, "ear") as ear:
            await ear.subscribe(topic, lambda message: heard.append(int(message.payload)))
            async with stranger(way) as (reader, writer):
                writer.write(hello("hasty"))
                assert await reader.readexactly(4) == GREETED
                writer.write(b"".join(said(topic, number) for number in range(1, 231)) + GOODBYE)
                await until(lambda: 230 in heard, "the last")
        assert heard == list(range(1, 231))

    asyncio.run(asyncio.wait_for(play(), WAIT))


@pytest.mark.parametrize("goodbye", [GOODBYE, b""], ids=["leaves", "dies"])
def test_a_goodbye_right_after_the_greeting_is_no_death(goodbye: bytes) -> None:
    async def play() -> None:
        heard: list[str] = []
        async with at_a_broker() as way, Link(way, "ear") as ear:
            await ear.subscribe("t/#", lambda message: heard.append(message.topic))
            async with stranger(way) as (reader, writer):
                writer.write(hello("mortal", ("t/will", "gone")) + goodbye)
                if not goodbye:
                    writer.write_eof()
                assert await reader.read() == GREETED, "it is greeted, then its connection ends"
            await ear.publish("t/after", b"")
            await until(lambda: "t/after" in heard, "what is said later")
            if not goodbye:
                await until(lambda: "t/will" in heard, "the will")
            assert ("t/will" in heard) == (not goodbye)

    asyncio.run(asyncio.wait_for(play(), WAIT))


def test_only_who_subscribes_is_told_what_is_kept() -> None:
    async def play() -> None:
        async with at_a_broker() as way, Link(way, "ear") as ear:
            heard: list[bytes] = []
            await ear.publish("t/kept", b"kept", retain=True)
            await ear.subscribe("t/kept", lambda message: heard.append(message.payload))
            await until(lambda: heard == [b"kept"], "what is kept")
            async with stranger(way) as (reader, writer):
                writer.write(hello("curious") + said("t/other", 1))
                assert await reader.readexactly(8) == GREETED + packet(0x40, b"\x00\x01")
                writer.write(GOODBYE)
                assert await reader.read() == b""

    asyncio.run(asyncio.wait_for(play(), WAIT))


def test_of_two_with_one_name_the_older_is_put_out_and_returns_with_another() -> None:
    async def play() -> None:
        async with at_a_broker() as way, Link(way, "older") as older:
            heard: list[bytes] = []
            await older.subscribe("t/told", lambda message: heard.append(message.payload))
            async with stranger(way) as (reader, writer):
                writer.write(hello(older.identifier))
                assert await reader.readexactly(4) == GREETED
                await until(lambda: older.connections == 2 and older.up, "the return")
                writer.write(said("t/told", 1))
                await until(lambda: heard == [b"1"], "the younger")

    asyncio.run(asyncio.wait_for(play(), WAIT))


def test_who_puts_out_one_that_is_speaking_is_greeted() -> None:
    """In twenty turns at least one is put out in the moment in which some of its words are read."""

    async def play() -> None:
        async with at_a_broker() as way, contextlib.AsyncExitStack() as guests:
            older: asyncio.StreamReader | None = None
            for _ in range(20):
                reader, writer = await guests.enter_async_context(stranger(way))
                writer.write(hello("twin"))
                assert await reader.readexactly(4) == GREETED
                if older is not None:
                    assert not (await older.read()).strip(PONG), "the older is put out"
                older = reader
                writer.write(PING * 1_000)

    asyncio.run(asyncio.wait_for(play(), WAIT))


def test_who_has_only_just_come_can_be_put_out() -> None:
    """Before the broker reads any of its words."""

    async def play() -> None:
        handler = embedded.Handler(None)
        handler.attach(Session(), BufferReader(b""), BufferWriter())
        await asyncio.gather(handler.start(), handler.stop())
        assert await handler.wait_disconnect() is None

    asyncio.run(asyncio.wait_for(play(), WAIT))


def test_who_publishes_as_the_broker_is_put_out() -> None:
    async def play() -> None:
        async with at_a_broker() as way, stranger(way) as (reader, writer):
            writer.write(hello("wild") + said("$SYS/broker", 1))
            assert await reader.read() == GREETED + packet(0x40, b"\x00\x01")

    asyncio.run(asyncio.wait_for(play(), WAIT))
