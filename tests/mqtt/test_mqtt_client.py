"""The connection to a broker: how it comes about, how fast it is, how it falls and comes back."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import subprocess
import sys
import time
import uuid
from pathlib import Path

import aiomqtt
import pytest
from mqtt_brokers import WAIT, TestBroker, free_port, password
from mqtt_parts import NAGLE, quick, quick_ones, until
from patience import PROMPTLY

from hnefi.protocol.hosts import connecting
from hnefi.protocol.hosts.broker import client, library, topics
from hnefi.protocol.hosts.broker.client import (
    Access,
    Link,
    Message,
    Offline,
    Refused,
    Unreachable,
    Will,
    parse_url,
)

pytest_plugins = ["mqtt_brokers"]

PING = "tafl/v1/user/guest/reply/ping"


def way(broker: TestBroker, user: str = "", secret: str | None = None, protocol: str = "auto") -> Access:
    return Access(parse_url(broker.url), user, secret, None, protocol)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("mqtt://127.0.0.1", "mqtt://127.0.0.1:1883"),
        ("mqtts://alice@club.example:9000", "mqtts://alice@club.example:9000"),
        ("ws://host", "ws://host:80/mqtt"),
        ("wss://host/a/b", "wss://host:443/a/b"),
        ("mqtt://[::1]:7", "mqtt://[::1]:7"),
        ("mqtt://host/", "mqtt://host:1883"),
        ("mqtts://host/club.example/a/", "mqtts://host:8883/club.example/a"),
    ],
)
def test_addresses_are_read(text: str, shown: str) -> None:
    assert str(parse_url(text)) == shown


@pytest.mark.parametrize(
    "text",
    [
        *("", "host", "http://host", "mqtt://", "mqtt://host:0", "mqtt://host:99999", "mqtt://host:x"),
        *(
            "mqtt://host/a//b",
            "mqtt://host/+/x",
            "mqtt://host/Club",
            "mqtt://host?x=1",
            "tcp://host",
            "mqtt://[::1",
        ),
    ],
)
def test_what_is_no_address_is_said(text: str) -> None:
    with pytest.raises(ValueError, match="expected mqtt://HOST"):
        parse_url(text)


def test_a_password_in_a_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(ValueError, match="passwords are not accepted") as error:
        parse_url("mqtt://alice:hunter2@host")
    assert "hunter2" not in str(error.value)
    assert "hunter2" not in repr(Access(parse_url("mqtt://alice@host"), password="hunter2"))


def test_passwords_come_from_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "secret"
    file.write_text("hunter2\nmore\n")
    file.chmod(0o600)
    monkeypatch.setenv("HNEFI_PASSWORD", "other")
    assert connecting.password(str(file)) == "hunter2"
    assert capsys.readouterr().err == ""
    assert connecting.password(None) == "other"
    file.chmod(0o644)
    assert connecting.password(str(file)) == "hunter2"
    assert "chmod 600" in capsys.readouterr().err
    with pytest.raises(ValueError, match="No such file"):
        connecting.password(str(tmp_path / "none"))


@pytest.mark.process
def test_the_protocol_is_negotiated(broker: TestBroker) -> None:
    async def connect() -> None:
        async with Link(way(broker), "test") as link:
            assert link.version == (5 if broker.kind == "mosquitto" else 4)
        async with Link(way(broker, protocol="3"), "test") as link:
            assert link.version == 4
        if broker.kind == "amqtt":
            with pytest.raises(Refused, match="does not speak MQTT 5"):
                await Link(way(broker, protocol="5"), "test").open()

    asyncio.run(connect())


@pytest.mark.process
@pytest.mark.parametrize("door", ["tcp", "websocket"])
def test_a_round_trip_is_not_held_up_by_nagle(broker: TestBroker, door: str) -> None:
    async def echo() -> float:
        came = asyncio.Event()
        url = broker.url if door == "tcp" else broker.ws_url
        times = []
        async with Link(Access(parse_url(url)), "test") as link:
            await link.subscribe(PING, lambda _: came.set())
            for _ in range(21):
                came.clear()
                began = time.perf_counter()
                await link.publish(PING, b"x")
                await came.wait()
                times.append(time.perf_counter() - began)
        return quick_ones(times)

    asyncio.run(quick(echo, 0.9 * NAGLE))


@pytest.mark.process
def test_messages_come_in_order_and_all_of_them(broker: TestBroker) -> None:
    async def flood() -> None:
        heard: list[Message] = []
        async with Link(way(broker), "test") as link:
            await link.subscribe(PING, heard.append)
            await asyncio.gather(*(link.publish(PING, b"%d" % number) for number in range(2_000)))
            await until(lambda: len(heard) == 2_000, "all messages")
        assert [int(message.payload) for message in heard] == list(range(2_000))

    asyncio.run(flood())


@pytest.mark.process
def test_a_connection_comes_back_with_its_subscriptions(own_broker: TestBroker) -> None:
    async def play() -> None:
        heard: list[Message] = []
        greeted: list[int] = []

        async def greet() -> None:
            greeted.append(link.version)

        link = Link(way(own_broker), "test", on_up=greet)
        async with link:
            await link.subscribe(PING, heard.append)
            own_broker.kill()
            await until(lambda: not link.up, "the loss of the connection")
            with pytest.raises(Offline):
                await link.publish(PING, b"nobody")
            own_broker.start()
            await asyncio.wait_for(link.wait_up(), WAIT)
            await link.publish(PING, b"back")
            await until(lambda: [message.payload for message in heard] == [b"back"], "the message")
            assert link.connections == len(greeted) == 2

    asyncio.run(play())


@pytest.mark.process
def test_a_publication_that_nobody_acknowledges_ends_with_the_connection(own_broker: TestBroker) -> None:
    async def play() -> None:
        async with Link(way(own_broker), "test") as link:
            own_broker.pause()
            waiting = [asyncio.create_task(link.publish(PING, b"x")) for _ in range(300)]
            await asyncio.sleep(0.05)
            assert not any(task.done() for task in waiting)
            own_broker.kill()
            results = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), WAIT)
            assert {type(result) for result in results} == {Offline}

    asyncio.run(play())


@pytest.mark.process
def test_a_hung_broker_does_not_hold_the_end_up(
    own_broker: TestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:

    async def play() -> None:
        link = Link(way(own_broker), "test")
        await link.open()
        own_broker.pause()
        # From here on it is silent for ever; to let us in, it may take its time.
        monkeypatch.setattr(client, "TIMEOUT", 1.0)
        began = time.monotonic()
        await link.close()
        assert time.monotonic() - began < PROMPTLY
        with pytest.raises(Unreachable):
            async with asyncio.timeout(WAIT):
                await Link(way(own_broker, protocol="3"), "test").open()

    asyncio.run(play())
    own_broker.resume()


@pytest.mark.process
def test_the_will_is_published_when_we_die_and_not_when_we_leave(broker: TestBroker) -> None:
    async def play(goodbye: bool) -> None:
        name = f"mortal-{uuid.uuid4().hex}"  # a broker keeps a will for whoever subscribes later
        topic = topics.status(name)
        heard: list[bytes] = []
        async with Link(way(broker), "watch") as watch:
            await watch.subscribe(topic, lambda message: heard.append(message.payload))
            mortal = Link(way(broker, protocol="3"), name, will=Will(topic, b"gone"))
            await mortal.open()
            await mortal.close(goodbye=goodbye)
            if goodbye:
                await watch.publish(topic, b"after")
                await until(lambda: b"after" in heard, "what is published later")
                assert heard == [b"after"]
            else:
                await until(lambda: heard == [b"gone"], "the will")

    for goodbye in (True, False):
        asyncio.run(play(goodbye))


@pytest.mark.process
def test_a_refused_login_is_final(club: TestBroker) -> None:
    async def play() -> None:
        for user, secret in (("alice", "wrong"), ("nobody", "x"), ("", None)):
            with pytest.raises(Refused, match="refuses"):
                await asyncio.wait_for(Link(way(club, user, secret), "test", patient=True).open(), WAIT)
        async with Link(way(club, "alice", password("alice")), "test") as link:
            assert link.up

    asyncio.run(play())


def test_a_patient_link_says_once_that_there_is_no_broker(caplog: pytest.LogCaptureFixture) -> None:
    async def play(url: str) -> None:
        link = Link(Access(parse_url(url)), "test", patient=True)
        opening = asyncio.create_task(link.open())
        await until(lambda: caplog.messages, "the warning")
        opening.cancel()
        await asyncio.wait([opening])

    nobody = f"mqtt://127.0.0.1:{free_port()}"
    asyncio.run(play(nobody))
    assert caplog.messages[0] == f"no MQTT broker at {nobody}: Connection refused"


def test_where_no_broker_is_a_sentence_says_so() -> None:
    async def play() -> None:
        url = f"mqtt://127.0.0.1:{free_port()}"
        with pytest.raises(Unreachable, match=f"no MQTT broker at {url}: Connection refused"):
            await Link(Access(parse_url(url)), "test").open()
        with pytest.raises(Unreachable, match="no MQTT broker at"):
            await Link(Access(parse_url(url.replace("mqtt", "ws"))), "test").open()

    asyncio.run(play())


def test_what_is_no_broker_is_not_waited_for_long() -> None:
    async def noise(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n" + b"\xff" * 4096)
        writer.close()

    async def play() -> None:
        server = await asyncio.start_server(noise, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            with pytest.raises(Unreachable):
                await asyncio.wait_for(
                    Link(Access(parse_url(f"mqtt://127.0.0.1:{port}")), "test").open(), PROMPTLY
                )

    asyncio.run(play())


def test_a_certificate_file_that_is_none_is_said(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("nothing")

    async def play() -> None:
        for name in (str(file), str(tmp_path / "none")):
            access = Access(parse_url("mqtts://127.0.0.1:1"), cafile=name)
            with pytest.raises(Refused, match="certificate file"):
                await Link(access, "test").open()

    asyncio.run(play())


@pytest.mark.process
def test_many_links_leave_nothing_behind(broker: TestBroker) -> None:
    descriptors = Path("/proc/self/fd")

    async def play() -> None:
        for _ in range(3):
            async with Link(way(broker), "test"):
                pass
        before = len(list(descriptors.iterdir())) if descriptors.is_dir() else 0
        for goodbye in (True, False) * 10:
            link = Link(way(broker), "test")
            await link.open()
            await link.close(goodbye=goodbye)
        if descriptors.is_dir():
            await until(lambda: len(list(descriptors.iterdir())) <= before + 1, "the end of all sockets")
        await until(lambda: len(asyncio.all_tasks()) == 1, "the end of all tasks")

    asyncio.run(play())


@pytest.mark.process
def test_the_room_is_light_and_no_adapter_loads_the_compiler() -> None:
    script = """
import sys
import hnefi.gui_adapter.mqtt
import hnefi.gui_adapter.mqtt.command as command
assert not {"aiomqtt", "paho", "amqtt", "asyncio", "numpy", "numba"} & set(sys.modules), "the door is heavy"
import hnefi.gui_adapter.mqtt.serve, hnefi.gui_adapter.mqtt.service, hnefi.gui_adapter.mqtt.connect
import hnefi.protocol.hosts.broker.remote
assert not {"amqtt", "numpy", "numba", "aiohttp", "prompt_toolkit"} & set(sys.modules), sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=WAIT)


def test_a_prefix_stands_before_all_topics_and_is_seen_by_nobody_inside(broker: TestBroker) -> None:
    async def play() -> None:
        heard: dict[str, list[str]] = {"inside": [], "outside": [], "shared": []}

        def note(where: str) -> client.Handler:
            return lambda message: heard[where].append(f"{message.topic} {message.reply_to}".strip())

        shared = topics.shared("t/pool/+")
        will = client.Will("t/will", b"gone")
        there = f"{broker.url}/club/a"
        async with (
            Link(Access(parse_url(there)), "in", admit=lambda topic, _size: topic != "t/unwanted") as inside,
            Link(Access(parse_url(broker.url)), "out") as outside,
        ):
            await inside.subscribe("t/one", note("inside"))
            await inside.subscribe("t/unwanted", note("inside"))
            # Not all there is: other tests use this broker, and what they said may come late.
            await outside.subscribe("t/#", note("outside"))
            await outside.subscribe("club/#", note("outside"))
            if broker.kind == "mosquitto":
                await inside.subscribe(shared, note("shared"))
            dying = Link(Access(parse_url(there)), "dies", will=will)
            await dying.open()
            await dying.close(goodbye=False)
            await inside.publish("t/unwanted", b"")
            await inside.publish("t/pool/x", b"")
            await inside.publish("t/one", b"", reply_to="t/reply")
            await outside.publish("t/one", b"not for them")
            await until(lambda: heard["inside"] and "club/a/t/will" in heard["outside"], str(heard))
            await inside.unsubscribe("t/one")
            await inside.publish("t/one", b"")
            await inside.publish("t/last", b"")
            await until(lambda: "club/a/t/last" in heard["outside"], str(heard))
            five = inside.version == 5
        assert heard["inside"] == ["t/one t/reply" if five else "t/one"]
        assert heard["shared"] == (["t/pool/x"] if broker.kind == "mosquitto" else [])
        reply = " club/a/t/reply" if five else ""
        said = {"club/a/t/unwanted", "club/a/t/pool/x", f"club/a/t/one{reply}", "t/one", "club/a/t/last"}
        # amqtt may say a thing twice.
        assert set(heard["outside"]) == {*said, "club/a/t/one", "club/a/t/will"}

    asyncio.run(asyncio.wait_for(play(), WAIT))


def test_a_refusal_that_nobody_waits_for_is_not_logged() -> None:
    """A program that is told to end while it connects used to leave a traceback."""
    logged: list[object] = []

    async def refused() -> aiomqtt.Client:
        try:
            await asyncio.sleep(WAIT)
        except asyncio.CancelledError:
            raise aiomqtt.MqttError("refused") from None
        raise AssertionError("not ended")

    async def end() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context["message"]))
        guest = aiomqtt.Client("127.0.0.1")
        guest.__aenter__ = refused  # type: ignore[method-assign]
        entering = asyncio.create_task(library.enter(guest))
        await asyncio.sleep(0.1)
        entering.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await entering
        del entering
        gc.collect()

    asyncio.run(end())
    gc.collect()
    assert logged == []
