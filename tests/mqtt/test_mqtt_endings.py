"""Leaving: whatever a command of `hnefi mqtt` is doing, it ends when it is told to, and with it all that it started."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from mqtt_brokers import WAIT, TestBroker, free_port, require, start_dying_with_us
from mqtt_parts import FAKE, Watcher
from patience import PROMPTLY

from hnefi.gui_adapter.mqtt.soak import running

pytest_plugins = ["mqtt_brokers"]
pytestmark = pytest.mark.process

SLOW = FAKE.with_name("slow_engine.py")
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
COMPILES = f"{sys.executable} {SLOW} 600 600"
"""An engine that is going to compile for longer than anybody waits."""
HOLDS_OUT = f"{sys.executable} -I -S {FAKE} deaf"
"""One that answers no `stop`."""

linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")


@contextmanager
def command(*words: str, ears: str = "") -> Iterator[subprocess.Popen[str]]:
    """`hnefi mqtt …`; with `ears`, a program that runs before it in the same process."""
    start = [sys.executable, "-m", "hnefi.tools.cli"]
    if ears:
        start = [
            sys.executable,
            "-c",
            f"{ears}; import sys; from hnefi.tools.cli import main; sys.exit(main())",
        ]
    process = start_dying_with_us(
        [*start, "mqtt", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def silent() -> Iterator[tuple[str, socket.socket]]:
    """What takes connections and never says a word: a broker that hangs. Nobody would wait less than ten seconds."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        yield f"mqtt://127.0.0.1:{door.getsockname()[1]}", door


def told(process: subprocess.Popen[str], number: int) -> int:
    """The exit code of a process that is told to end, and does so at once."""
    began = time.monotonic()
    process.send_signal(number)
    status = process.wait(WAIT)
    assert time.monotonic() - began < PROMPTLY
    return status


def children(parent: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{parent}/task").iterdir():
        found += map(int, (task / "children").read_text().split())
    return found


def gone(*processes: int) -> None:
    """Returns when they have ended."""
    deadline = time.monotonic() + WAIT
    while any(running(process) for process in processes):
        assert time.monotonic() < deadline, processes
        time.sleep(0.01)


def line_of(process: subprocess.Popen[str], words: str, *, errors: bool = False) -> str:
    """The next line with these words."""
    stream = process.stderr if errors else process.stdout
    assert stream is not None
    for line in stream:
        if words in line:
            return line
    raise AssertionError(f"it has ended without {words!r}")


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (signal.SIGINT, ["serve", "--broker", "URL"]),
        (signal.SIGTERM, ["check", "URL"]),
        (signal.SIGHUP, ["watch", "URL"]),
        (signal.SIGTERM, ["connect", "URL"]),
        (signal.SIGINT, ["arena", "RUN", "--broker", "URL"]),
        (signal.SIGINT, ["bench", "--broker", "URL"]),
    ],
)
def test_a_broker_that_hangs_keeps_nobody(
    silent: tuple[str, socket.socket], tmp_path: Path, number: int, words: list[str]
) -> None:
    url, door = silent
    (tmp_path / "config.toml").write_text('[run]\nname = "x"\n[output]\nlive = true\n')
    words = [word.replace("URL", url).replace("RUN", str(tmp_path)) for word in words]
    with command(*words) as process:
        # It has come to us, and waits.
        door.settimeout(WAIT)
        connection, _ = door.accept()
        with connection:
            assert told(process, number) == 1
            assert process.stderr is not None
            assert "Traceback" not in process.stderr.read()


@pytest.mark.parametrize("kind", ["mosquitto", "amqtt"])
@pytest.mark.parametrize("number", SIGNALS)
def test_a_broker_of_our_own(kind: str, number: int) -> None:
    require(kind)
    with command("broker", "--broker", kind, "--port", str(port := free_port())) as process:
        line_of(process, "broker ")
        with socket.create_connection(("127.0.0.1", port)):
            assert told(process, number) == 1
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port)).close()


@linux
@pytest.mark.parametrize("number", SIGNALS)
def test_a_service_whose_engine_compiles(broker: TestBroker, number: int) -> None:
    with command("serve", "--broker", broker.url, "--eid", f"cold{number}", "--engine", COMPILES) as process:
        said = line_of(process, "compiling", errors=True)
        assert "INFO compiling 0/601 search (" in said
        engines = children(process.pid)
        assert engines
        assert told(process, number) == 1
        gone(*engines)


@linux
def test_a_second_signal_ends_at_once_what_drains(broker: TestBroker) -> None:
    """An engine that answers no `stop` is given some seconds; whoever does not want to wait says so again."""

    async def search() -> None:
        async with Watcher(broker.url, "stubborn") as client:
            sid = await client.open("drain-2")
            await client.say(sid, "go depth 1")
            await client.state(sid, lambda state: bool(state["searching"]))
            # The engine must be in the search before it can turn a deaf ear.
            engines.extend(children(process.pid))
            process.send_signal(signal.SIGTERM)
            await client.line(sid, "info string closing")
            # What comes within a moment of the first one is its echo.
            while process.poll() is None:
                process.send_signal(signal.SIGINT)
                await asyncio.sleep(0.05)

    words = ["serve", "--broker", broker.url, "--eid", "stubborn", "--no-record", "--engine", HOLDS_OUT]
    with command(*words) as process:
        line_of(process, "ready ")
        engines: list[int] = []
        asyncio.run(search())
        # A drain ends with 0, and says of each session that it was closed.
        assert process.wait(WAIT) == 1
        gone(*engines)
        assert process.stderr is not None
        assert "close user=" not in process.stderr.read()


@linux
def test_what_ignores_hangups_goes_on(broker: TestBroker) -> None:
    """As `nohup` starts it."""
    ears = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)"
    words = ["serve", "--broker", broker.url, "--eid", "nohup", "--engine", COMPILES]
    with command(*words, ears=ears) as process:
        line_of(process, "compiling", errors=True)
        process.send_signal(signal.SIGHUP)
        line_of(process, "compiling", errors=True)
        assert told(process, signal.SIGTERM) == 1


def test_a_loop_that_is_held_up_ends_too() -> None:
    code = (
        "import time, sys; from hnefi.protocol.hosts.shutdown import Asked\n"
        "async def hold(asked):\n"
        "    print('held', flush=True)\n"
        "    while True: time.sleep(0.01)\n"
        "Asked().run(hold)"
    )
    process = start_dying_with_us([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        line_of(process, "held")
        assert told(process, signal.SIGINT) == 1
    finally:
        process.kill()
        process.communicate()


def test_afterwards_signals_are_heard_as_before() -> None:
    from hnefi.protocol.hosts.shutdown import Asked

    async def nothing(asked: Asked) -> bool:
        assert signal.getsignal(signal.SIGTERM) != before[1]
        return asked.is_set()

    before = [signal.getsignal(number) for number in SIGNALS]
    assert Asked().run(nothing) is False
    assert [signal.getsignal(number) for number in SIGNALS] == before
