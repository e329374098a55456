"""A flood of one user's is theirs alone, and what is lost in it is counted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest
from mqtt_brokers import TestBroker, free_port, require
from mqtt_parts import Watcher, serving, until

from hnefi.gui_adapter.mqtt import brokers, embedded, fairness, requests
from hnefi.gui_adapter.mqtt import service as service_module
from hnefi.gui_adapter.mqtt.fairness import Rates, Spaced
from hnefi.gui_adapter.mqtt.outgoing import Outgoing
from hnefi.protocol.hosts.broker import topics
from hnefi.protocol.hosts.broker.client import Access, Link, Message, parse_url
from hnefi.protocol.hosts.sessions.numbering import Ring

pytest_plugins = ["mqtt_brokers"]

ASK = topics.requests("local", "anna")
LINES = topics.session("anna", "wild-1", "in")


# Who may send how much


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_and_then_the_rate() -> None:
    clock = Clock()
    rates = Rates(10.0, clock)
    assert [rates.admit(LINES, 10) for _ in range(25)] == [True] * 20 + [False] * 5
    clock.now += 1.0
    assert [rates.admit(ASK, 10) for _ in range(4)] == [True] * 2 + [False] * 2, "each counts for five"
    clock.now += 3600
    assert sum(rates.admit(LINES, 10) for _ in range(100)) == 20, "nothing is saved up"


def test_users_do_not_share() -> None:
    rates = Rates(10.0, Clock())
    while rates.admit(ASK, 10):
        pass
    assert rates.admit(topics.requests("local", "bert"), 10)
    assert rates.admit(topics.presence("bert", "tab1"), 10)
    while rates.admit(LINES, 10):
        pass
    assert not rates.admit(topics.presence("anna", "tab1"), 10), "one rate for all topics"
    assert rates.admit(topics.status("local"), 10), "nobody's"


def test_large_messages_count_for_several_and_even_the_largest_passes() -> None:
    rates = Rates(10.0, Clock())
    assert sum(rates.admit(LINES, fairness.UNIT) for _ in range(100)) == 10
    assert Rates(1.0, Clock()).admit(ASK, 1 << 20)


def test_users_without_end_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairness, "USERS", 8)
    clock = Clock()
    rates = Rates(10.0, clock)
    while rates.admit(ASK, 10):
        pass
    for number in range(1000):
        clock.now += 0.001
        assert rates.admit(topics.requests("local", f"user-{number}"), 10)
        assert len(rates._users) <= 8


def test_who_floods_is_told_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairness, "USERS", 8)
    clock = Clock()
    spaced = Spaced(1.0, clock)
    assert [spaced.due("anna") for _ in range(3)] == [True, False, False]
    assert spaced.due("bert"), "each for themselves"
    clock.now += 1.0
    assert [spaced.due("anna") for _ in range(2)] == [True, False]
    for number in range(100):
        assert spaced.due(f"user-{number}")
        assert len(spaced._last) <= 8


# Behind a broker


@pytest.mark.process
@pytest.mark.parametrize("where", ["requests", "lines"])
def test_no_work_is_done_for_a_flood(broker: TestBroker, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Of thousands of messages as many are looked at as everybody may send; another user's are all answered."""
    looked_at = {"anna": 0, "bert": 0}
    read = requests.read

    def counted(message: Message, user: str, variant: str = "") -> object:
        looked_at[user] += 1
        return read(message, user, variant)

    monkeypatch.setattr(service_module.requests, "read", counted)

    async def play() -> None:
        async with serving(broker.url, rate=50.0) as service:
            eid = service.settings.eid
            clock = Clock()
            service._rates = Rates(50.0, clock)
            async with Watcher(broker.url, eid, "anna") as anna, Watcher(broker.url, eid, "bert") as bert:
                sid = await anna.open("wild-1")
                session = service.sessions["anna", sid]
                heard, receive = 0, session.receive

                def count(payload: bytes) -> None:
                    nonlocal heard
                    heard += 1
                    receive(payload)

                monkeypatch.setattr(session, "receive", count)
                looked_at.update(anna=0, bert=0)
                if where == "requests":
                    flood = [anna.raw(b'{"id":"f","op":"list"}') for _ in range(3_000)]
                else:
                    flood = [anna.say(sid, "echo x") for _ in range(3_000)]
                flooding = asyncio.gather(*flood)
                asked = 0
                while not flooding.done() or not asked:
                    asked += 1
                    assert (await bert.request(op="ping"))["ok"]
                    # Bert asks as often as he may, and time stands still for who floods.
                    service._rates._users.pop("bert", None)
                await flooding
                assert (await bert.request(op="ping"))["ok"]
                # Whatever has not come to us by now has been thrown away by the broker.
                assert looked_at["bert"] == asked + 1
                assert looked_at["anna"] + heard <= 100

    asyncio.run(play())


@pytest.mark.process
def test_who_floods_is_told_and_heard_again(broker: TestBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "MUTE", 0.2)
    clock = Clock()

    async def play() -> None:
        async with (
            serving(broker.url, rate=20.0) as service,
            Watcher(broker.url, service.settings.eid) as client,
        ):
            # However slowly a flood comes here, it comes at once.
            service._rates = Rates(20.0, clock)
            sid = await client.open("loud-1")
            await asyncio.gather(*(client.say(sid, "echo x") for _ in range(200)))
            lines = await client.line(sid, "busy: more than 20 messages a second")
            assert "messages are dropped for 0.2 s" in next(line for line in lines if "busy" in line)
            await again(lambda: client.say(sid, "echo heard"), lambda: "heard" in client.out(sid))
            await asyncio.gather(*(client.raw(b'{"id":"f","op":"ping"}') for _ in range(200)))

            def refusals() -> list[str]:
                replies = map(json.loads, client.payloads(topics.reply("guest")))
                return [reply["error"]["text"] for reply in replies if not reply["ok"]]

            await until(refusals, "a refusal")
            assert refusals()[0] == "more than 20 messages a second"
            # A session that ends while it is not listened to leaves nothing behind.
            await again(
                lambda: client.raw(b'{"id":"z","op":"close","sid":"loud-1"}'), lambda: not service.sessions
            )
            await until(lambda: not any("loud-1" in name for name in service.link._handlers), "deaf ears")

    async def again(say: Callable[[], object], there: Callable[[], object]) -> None:
        while not there():
            clock.now += 1.0
            await say()  # type: ignore[misc]
            await asyncio.sleep(0.05)

    asyncio.run(play())


# What is lost


class Broken:
    """A link on which nothing gets through until it is mended."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.mended = asyncio.Event()
        self.up = True

    async def wait_up(self) -> None:
        await self.mended.wait()

    async def publish(self, topic: str, payload: bytes, **_: object) -> None:
        await asyncio.sleep(0)
        if topic.endswith("/out"):
            self.lines.append(payload)


@pytest.mark.parametrize("numbered", [False, True])
def test_lines_that_are_lost_are_counted(numbered: bool) -> None:
    async def play() -> None:
        async def facts() -> dict[str, object]:
            return {}

        link = Broken()
        outgoing = Outgoing(link, "anna", "loud-2", numbered=numbered, facts=facts)  # type: ignore[arg-type]
        room = Ring()._limit
        for number in range(1, room + 38):
            outgoing.say(f"line {number}")
        link.mended.set()
        assert await outgoing.flushed(60.0)
        if numbered:
            assert link.lines[0] == b"#38 line 38", "the numbers say it"
            assert len(link.lines) == room
        else:
            assert link.lines[:2] == [b"info string error 37 lines lost", b"line 38"]
            assert len(link.lines) == room + 1
        outgoing.say("more")
        assert await outgoing.flushed(60.0)
        assert link.lines[-1].endswith(b"more")
        await outgoing.abandon()

    asyncio.run(play())


def test_the_embedded_broker_lets_only_who_floods_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """What somebody else says meanwhile goes past. Time stands still, so that nothing more becomes due."""
    require("amqtt")
    monkeypatch.setattr(brokers, "Rates", lambda rate: Rates(rate, Clock()))

    async def play() -> None:
        broker = await brokers.provide("amqtt", port=free_port())
        heard: list[str] = []
        way = Access(parse_url(broker.url))
        async with Link(way, "ear") as ear, Link(way, "anna") as anna, Link(way, "bert") as bert:
            await ear.subscribe(topics.requests("none"), lambda message: heard.append(message.topic))
            flooding = asyncio.gather(
                *(anna.publish(ASK.replace("local", "none"), b"x") for _ in range(2_000))
            )
            await until(lambda: len(heard) >= 10, "the flood")
            await bert.publish(topics.requests("none", "bert"), b"x")
            await until(lambda: any(topic.endswith("bert") for topic in heard), "the word of the other")
            assert len(heard) <= fairness.BURST * brokers.RATE / fairness.REQUEST + 1, "a burst"
            flooding.cancel()
            await asyncio.gather(flooding, return_exceptions=True)
        await broker.close()

    asyncio.run(play())


def test_what_waits_in_the_embedded_broker_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    require("amqtt")
    monkeypatch.setattr(embedded, "QUEUED", 50)
    monkeypatch.setattr(brokers, "RATE", 1.0)

    async def play() -> None:
        broker = await brokers.provide("amqtt", port=free_port())
        assert isinstance(broker, brokers.Amqtt)
        async with Link(Access(parse_url(broker.url)), "anna") as anna:
            await asyncio.gather(*(anna.publish(LINES, b"x") for _ in range(500)))
            ((session, _),) = broker._embedded._sessions.values()
            waiting = session.delivered_message_queue
            await until(lambda: waiting.qsize() <= 50, "the end of what is too much")
        await broker.close()

    asyncio.run(play())
