"""The broker that is found or started, where it listens, and that nothing of it stays behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mqtt_brokers import WAIT, free_port, require, start_dying_with_us

from hnefi.gui_adapter.mqtt import brokers

NOTHING = {"PATH": "/nowhere"}
COMMAND = "import sys; from hnefi.gui_adapter.mqtt import brokers; sys.exit(brokers.main(sys.argv[1:]))"


def start(*flags: str, **more: str) -> subprocess.Popen[Any]:
    """`hnefi mqtt broker` with these flags."""
    environment = {name: word for name, word in os.environ.items() if name != "HNEFI_BROKER"}
    return start_dying_with_us(
        [sys.executable, "-c", COMMAND, *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment | more,
    )


def line_of(process: subprocess.Popen[Any]) -> str:
    """The next line that it writes; if it has ended instead, the test fails with what it complained of."""
    assert process.stdout is not None
    assert process.stderr is not None
    line: str = process.stdout.readline()
    if not line:
        pytest.fail(f"it has ended: {process.stderr.read()}")
    return line


def connects(port: int, host: str = brokers.HOST) -> bool:
    try:
        socket.create_connection((host, port), 2.0).close()
    except OSError:
        return False
    return True


def until(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


# Which broker


@pytest.mark.parametrize("url", ["mqtt://example.org", "wss://example.org/mqtt", "MQTTS://example.org:8884"])
def test_a_broker_that_is_named_is_taken_as_it_is(url: str) -> None:
    async def ask() -> None:
        broker = await brokers.provide(url, environment=NOTHING)
        assert (broker.url, broker.kind, broker.pid) == (url, "given", 0)
        await broker.close()
        broker = await brokers.provide("auto", environment=NOTHING | {"HNEFI_BROKER": f" {url} "})
        assert broker.url == url

    asyncio.run(ask())


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("http://example.org", "expected mqtt://, mqtts://, ws:// or wss://"),
        ("mosqitto", "'mosqitto': expected auto, mosquitto, amqtt or a URL"),
        ("x" * 10_000, "…'"),
    ],
)
def test_what_is_no_broker_is_refused(wanted: str, said: str) -> None:
    with pytest.raises(brokers.BrokerError) as error:
        asyncio.run(brokers.provide(wanted, environment=NOTHING))
    assert said in str(error.value)
    assert len(str(error.value)) < 300
    assert error.value.status == 2


def test_mosquitto_is_found_off_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brokers, "SYSTEM_FOLDERS", (str(tmp_path),))
    assert brokers.find_mosquitto(NOTHING) is None
    with pytest.raises(brokers.BrokerError, match="apt-get install mosquitto") as error:
        asyncio.run(brokers.provide("mosquitto", environment=NOTHING))
    assert error.value.status == 2
    program = tmp_path / "mosquitto"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert brokers.find_mosquitto(NOTHING) == str(program)


def test_without_any_broker_a_sentence_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brokers, "SYSTEM_FOLDERS", ())
    monkeypatch.setitem(sys.modules, "amqtt.broker", None)
    monkeypatch.delitem(sys.modules, "hnefi.gui_adapter.mqtt.embedded", raising=False)
    with pytest.raises(
        brokers.BrokerError, match=r"install Mosquitto.*hnefi\[broker\].*--broker URL"
    ) as error:
        asyncio.run(brokers.provide("auto", environment=NOTHING))
    assert error.value.status == 2


@pytest.mark.process
def test_a_mosquitto_that_ends_at_once_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brokers, "SYSTEM_FOLDERS", (str(tmp_path),))
    program = tmp_path / "mosquitto"
    program.write_text("#!/bin/sh\necho 'Error: no \x1b[2Jthanks' >&2\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(
        brokers.BrokerError, match=r"mosquitto has ended \(exit status 3\): .*thanks"
    ) as error:
        asyncio.run(brokers.provide("mosquitto", environment=NOTHING, port=free_port()))
    assert "\x1b" not in str(error.value)
    assert error.value.status == 3


@pytest.mark.process
def test_nothing_heavy_is_imported() -> None:
    code = "import sys; import hnefi.gui_adapter.mqtt, hnefi.gui_adapter.mqtt.brokers; print(*sys.modules)"
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=WAIT
    )
    assert not {"aiomqtt", "paho", "amqtt", "numba", "numpy"} & set(said.stdout.split())


# A broker of our own


@pytest.mark.process
@pytest.mark.parametrize("kind", ["mosquitto", "amqtt"])
def test_a_broker_of_our_own_listens_here_alone_and_ends_with_us(kind: str) -> None:
    require(kind)
    port, ws_port = free_port(), free_port()
    command = start("--broker", kind, "--port", str(port), "--ws-port", str(ws_port))
    assert command.stdout is not None
    assert command.stdout.readline() == f"broker mqtt://127.0.0.1:{port}\n"
    assert command.stdout.readline() == f"websocket ws://127.0.0.1:{ws_port}/mqtt\n"
    for door in (port, ws_port):
        assert connects(door)
        # The whole of 127.0.0.0/8 is this machine; who listens everywhere would answer here too.
        assert not connects(door, "127.0.0.2")
    command.send_signal(signal.SIGTERM)
    out, errors = command.communicate(timeout=WAIT)
    assert (command.returncode, out, errors) == (1, "", "")
    assert not connects(port)


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_mosquitto_does_not_outlive_us() -> None:
    require("mosquitto")
    command = start("--broker", "mosquitto", "--port", str(port := free_port()))
    assert command.stdout is not None
    command.stdout.readline()
    command.kill()
    command.communicate(timeout=WAIT)
    until(lambda: not connects(port), "mosquitto lives on")


@pytest.mark.process
def test_a_mosquitto_that_dies_ends_us_with_a_sentence() -> None:
    require("mosquitto")

    async def die() -> str:
        broker = await brokers.provide("mosquitto", port=free_port())
        os.kill(broker.pid, signal.SIGKILL)
        async with asyncio.timeout(WAIT):
            return await broker.ended()

    assert asyncio.run(die()) == "mosquitto has ended (killed by SIGKILL)"


@pytest.mark.parametrize("kind", ["mosquitto", "amqtt"])
def test_a_port_that_is_taken_is_named(kind: str) -> None:
    require(kind)
    with socket.create_server((brokers.HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(brokers.PortTaken, match=f"port {port} of 127.0.0.1: address already in use"):
            asyncio.run(brokers.provide(kind, port=port))


@pytest.mark.process
@pytest.mark.parametrize("kind", ["mosquitto", "amqtt"])
def test_a_port_that_is_taken_in_the_last_moment_is_taken(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody listens there, but not our broker."""
    require(kind)
    monkeypatch.setattr(brokers, "_require_free", lambda _: None)
    with (
        socket.create_server((brokers.HOST, 0)) as taken,
        pytest.raises(brokers.PortTaken, match=r"[Aa]ddress already in use"),
    ):
        asyncio.run(brokers.provide(kind, port=taken.getsockname()[1]))


@pytest.mark.process
@pytest.mark.parametrize("kind", ["mosquitto", "amqtt"])
def test_another_port_is_found_where_ours_is_taken(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require(kind)

    async def find() -> None:
        with socket.create_server((brokers.HOST, 0)) as taken:
            monkeypatch.setattr(brokers, "PORT", taken.getsockname()[1])
            broker = await brokers.provide(kind)
            port = broker.url.rpartition(":")[2]
            assert int(port) != brokers.PORT
            assert broker.note.startswith(f"port {brokers.PORT} is taken")
            assert f"this broker listens on {port}; --broker mqtt://127.0.0.1:{brokers.PORT} " in broker.note
            await broker.close()

    asyncio.run(find())


def test_the_next_port_is_taken_that_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands next to the one that everybody knows is found again at the next start."""
    with socket.create_server((brokers.HOST, 0)) as taken:
        monkeypatch.setattr(brokers, "PORT", taken.getsockname()[1])
        assert brokers._free_port(0) in range(brokers.PORT + 1, brokers.PORT + brokers.NEIGHBOURS + 1)


@pytest.mark.process
def test_a_service_beside_another_broker_says_where_it_is() -> None:
    """And what it prints can be pasted as it is."""
    require("mosquitto")
    for name in ("mosquitto_sub", "mosquitto_pub"):
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")
    with contextlib.ExitStack() as stack:
        # Somebody listens already, or we do, beside all that run this test now, or somebody only tries the port.
        while True:
            with contextlib.suppress(OSError):
                stack.enter_context(socket.create_server((brokers.HOST, brokers.PORT), reuse_port=True))
                break
            if connects(brokers.PORT):
                break
        service = start_dying_with_us(
            [sys.executable, "-m", "hnefi.tools.cli", "mqtt", "--no-record", "--eid", "beside"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={name: word for name, word in os.environ.items() if name != "HNEFI_BROKER"},
        )
        stack.callback(service.communicate)
        stack.callback(service.terminate)
        assert service.stderr is not None
        port = line_of(service).rpartition(":")[2].strip()
        assert port != "1883"
        assert (
            f"port 1883 is taken (by Debian's mosquitto, which starts by itself?): this broker listens on {port}"
            in (service.stderr.readline())
        )
        assert line_of(service).startswith("ready ")
        assert (
            line_of(service)
            == "to try it, in one terminal, and then in another, the last line once the one before is answered:\n"
        )
        listen, *say = [line_of(service).strip() for _ in range(3)]
        listener = start_dying_with_us(["sh", "-c", f"exec {listen}"], stdout=subprocess.PIPE, text=True)
        stack.callback(listener.communicate)
        stack.callback(listener.kill)
        assert listener.stdout is not None
        # A word of ours shows that it listens; a broker may lose one connection, so it is said until it is heard.
        mark = f"mosquitto_pub -h 127.0.0.1 -p {port} -t tafl/v1/user/guest/reply/mark -m listening"
        marking = start_dying_with_us(["sh", "-c", f"while :; do {mark}; sleep 0.2; done"])
        stack.callback(marking.wait)
        stack.callback(marking.kill)
        assert listener.stdout.readline() == "listening\n"
        marking.kill()
        for line, answer in zip(say, ('"id":"1","ok":true,"sid":"demo1"', "bestmove "), strict=True):
            subprocess.run(["sh", "-c", line], check=True, timeout=WAIT)
            while answer not in (heard := listener.stdout.readline()):
                assert heard


@pytest.mark.process
def test_nothing_is_left_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("mosquitto")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    async def live() -> None:
        broker = await brokers.provide("mosquitto", port=free_port())
        assert not list(tmp_path.iterdir())
        await broker.close()

    asyncio.run(live())


def test_the_configuration_is_for_this_machine_and_quick() -> None:
    lines = brokers.mosquitto_config(1883, 9001).splitlines()
    assert [line for line in lines if line.startswith(("listener", "protocol", "socket_"))] == [
        "listener 1883 127.0.0.1",
        "listener 9001 127.0.0.1",
        "socket_domain ipv4",
        "protocol websockets",
    ]
    for line in ("set_tcp_nodelay true", "max_packet_size 1048576", "max_queued_messages 10000"):
        assert line in lines
    assert brokers.amqtt_config(1883)["listeners"] == {"default": {"type": "tcp", "bind": "127.0.0.1:1883"}}


@pytest.mark.parametrize("word", ["0", "65536", "x", "١", "1" * 1000])
def test_a_port_is_a_number(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ending:
        brokers.main(["--port", word])
    assert ending.value.code == 2
    assert "expected a port from 1 to 65535" in capsys.readouterr().err


def test_the_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        brokers.main(["--help"])
    assert "hnefi mqtt broker --ws-port 9001" in capsys.readouterr().out
