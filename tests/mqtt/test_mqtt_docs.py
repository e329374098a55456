"""docs/mqtt.md and its example files, tried as they stand there."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Literal

import pytest
from mqtt_brokers import EXAMPLES, WAIT, TestBroker, free_port, password, require, start_dying_with_us
from mqtt_parts import quick

from hnefi.gui_adapter.mqtt import brokers, check
from hnefi.protocol.hosts.broker.client import Access, Link, LinkError, Message, parse_url

pytest_plugins = ["mqtt_brokers"]

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "mqtt.md"
RECIPE = ROOT / "Containerfile"
TEXT = PAGE.read_text()
SHELL = re.findall(r"^```sh\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
CONSOLE = re.findall(r"^```console\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def block(words: str) -> str:
    """The only block of shell lines with these words."""
    (found,) = [text for text in SHELL if words in text]
    return found


def require_programs(*names: str) -> None:
    for name in names:
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")


# From a shell


@pytest.fixture(scope="module")
def service(broker: TestBroker) -> Iterator[TestBroker]:
    """A service at the broker, as `hnefi mqtt` starts it."""
    process = start_dying_with_us(
        [sys.executable, "-m", "hnefi.tools.cli", "mqtt", "--broker", broker.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == f"broker {broker.url}\n".encode()
    assert process.stdout.readline() == b"ready tafl/v1/engine/local/req/<user>\n"
    yield broker
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=WAIT)


@pytest.fixture
def at_the_broker(service: TestBroker, tmp_path: Path) -> dict[str, str]:
    """An environment in which Mosquitto's clients find the broker without a word on their command lines."""
    require_programs("mosquitto_pub", "mosquitto_sub", "sh")
    for name in ("mosquitto_pub", "mosquitto_sub"):
        (tmp_path / name).write_text(f"-h 127.0.0.1\n-p {service.port}\n")
    return {**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}


@pytest.mark.process
def test_a_move_from_a_shell(at_the_broker: dict[str, str]) -> None:
    command = block("-t 'tafl/v1/session/guest/+/out'")
    listen = subprocess.Popen(
        ["sh", "-c", f"exec {command}"],
        stdout=subprocess.PIPE,
        text=True,
        env=at_the_broker,
    )
    assert listen.stdout is not None
    try:
        # A line of our own shows that it listens, and is said until it does.
        ping = '{"id":"0","op":"ping"}'
        ask = ["mosquitto_pub", "-q", "1", "-t", "tafl/v1/engine/local/req/guest", "-m", ping]
        asking = subprocess.Popen(
            ["sh", "-c", 'while :; do "$@"; sleep 0.2; done', "sh", *ask], env=at_the_broker
        )
        while '"id":"0"' not in (answer := listen.stdout.readline()):
            assert answer
        asking.kill()
        asking.wait()
        lines = block('"sid":"demo1"').splitlines()
        expected = ['"id":"1","ok":true', "bestmove ", ""]
        assert len(lines) == len(expected)
        for line, words in zip(lines, expected, strict=True):
            subprocess.run(["sh", "-c", line], env=at_the_broker, check=True, timeout=WAIT)
            while words and words not in (answer := listen.stdout.readline()):
                assert answer, f"no answer to {line}"
    finally:
        listen.kill()
        listen.communicate()


@pytest.mark.process
def test_a_whole_game_from_a_shell(at_the_broker: dict[str, str], tmp_path: Path) -> None:
    # All that is said after the last `quit` has been heard before the script goes on, so that no line wakes it.
    slow = tmp_path / "slow" / "mosquitto_pub"
    slow.parent.mkdir()
    slow.write_text(f'#!/bin/sh\n{shutil.which("mosquitto_pub")} "$@"\n[ "$6" != quit ] || sleep 2\n')
    slow.chmod(0o755)
    process = subprocess.Popen(
        ["sh", "-c", block("#!/bin/sh")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=at_the_broker | {"PATH": f"{slow.parent}:{at_the_broker['PATH']}"},
        start_new_session=True,
    )
    try:
        ended = process.wait(WAIT)
    except subprocess.TimeoutExpired:
        ended = "it stood still"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        found, errors = process.communicate()
    assert ended == 0, found
    lines = found.splitlines()
    moves = [line for line in lines if line.startswith("bestmove ")]
    assert len(moves) > 5, found
    assert lines.count("response false") == len(moves) - 1
    assert lines.count("response true") == 1
    assert lines[-1] in ("response p1win", "response p2win", "response draw"), lines
    assert errors == ""


# A server for a club


class Club:
    """Mosquitto with the very example files, set up by the page's own commands; only paths and ports are others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, self.tls_port, self.ws_port = free_port(), free_port(), free_port()
        self.ca = folder / "certs" / "ca.crt"
        for name in ("certs", "data"):
            (folder / name).mkdir()
        shutil.copy(EXAMPLES / "mosquitto.acl", folder / "hnefi.acl")
        self._passwords()
        subprocess.run(
            ["sh", "-e"],
            input=self._here(block("openssl req")),
            text=True,
            capture_output=True,
            check=True,
            timeout=WAIT,
        )
        config = self._here((EXAMPLES / "mosquitto.conf.example").read_text())
        for line, port in (
            ("listener 1883 127.0.0.1", self.port),
            ("listener 8883", self.tls_port),
            ("listener 9001 127.0.0.1", self.ws_port),
        ):
            assert f"\n{line}\n" in config
            bound = line.replace("listener 8883", "listener 8883 127.0.0.1")
            config = config.replace(f"\n{line}\n", f"\n{re.sub('[0-9]+', str(port), bound, count=1)}\n")
        if os.geteuid() == 0:
            # Else it would become a user who may not look into the folder of a test.
            config += "user root\n"
        self.config = folder / "mosquitto.conf"
        self.config.write_text(config)

    def _here(self, text: str) -> str:
        for there, name in (
            ("/etc/mosquitto", ""),
            ("/var/lib/mosquitto", "data"),
            ("/var/log/mosquitto/mosquitto.log", "log"),
        ):
            text = text.replace(there, str(self.folder / name).rstrip("/"))
        text = re.sub(r"^(chown|apt-get) .*\n", "", text, flags=re.MULTILINE)
        return text.replace("broker.example", "localhost")

    def _passwords(self) -> None:
        """The page's commands, each of which asks twice."""
        for line in self._here(block("mosquitto_passwd -c")).splitlines():
            said = f"{password(line.split()[-1])}\n" * 2 if line.startswith("mosquitto_passwd") else ""
            subprocess.run(
                ["sh", "-c", line], input=said, text=True, capture_output=True, check=True, timeout=WAIT
            )

    def access(self, user: str, door: str = "mqtt", protocol: Literal["auto", "3", "5"] = "auto") -> Access:
        url = {
            "mqtt": f"mqtt://127.0.0.1:{self.port}",
            "mqtts": f"mqtts://localhost:{self.tls_port}",
            "ws": f"ws://127.0.0.1:{self.ws_port}/mqtt",
        }[door]
        cafile = str(self.ca) if door == "mqtts" else None
        return Access(parse_url(url), user, password(user), cafile, protocol)


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Club]:
    require("mosquitto")
    require_programs("mosquitto_passwd", "openssl", "sh")
    one = Club(tmp_path_factory.mktemp("club"))
    program = brokers.find_mosquitto()
    assert program is not None
    process = start_dying_with_us([program, "-c", str(one.config)], stderr=subprocess.DEVNULL)
    try:
        asyncio.run(_connectable(one.access("hnefi-engine")))
        yield one
    finally:
        process.terminate()
        process.wait(WAIT)


async def _connectable(access: Access) -> None:
    async with asyncio.timeout(WAIT):
        while True:
            try:
                async with Link(access, "try"):
                    return
            except LinkError:
                await asyncio.sleep(0.05)


@pytest.mark.process
@pytest.mark.parametrize("door", ["mqtt", "mqtts", "ws"])
def test_the_club_lets_members_in_and_nobody_else(town: Club, door: str) -> None:
    async def enter(access: Access) -> None:
        async with Link(access, "member"):
            pass

    asyncio.run(enter(town.access("alice", door)))
    for wrong in (
        replace(town.access("alice", door), password="guessed"),
        replace(town.access("alice", door), user="", password=None),
        replace(town.access("alice", door), user="mallory"),
    ):
        with pytest.raises(LinkError):
            asyncio.run(enter(wrong))


@pytest.mark.process
def test_an_unknown_authority_is_not_believed(town: Club) -> None:
    # In a process of its own: where a handshake fails the library leaves its socket to the collector.
    command = [
        sys.executable,
        "-m",
        "hnefi.tools.cli",
        "mqtt",
        "check",
        str(town.access("alice", "mqtts").address),
    ]
    found = subprocess.run(command, capture_output=True, text=True, timeout=WAIT, check=False)
    assert (found.returncode, found.stdout) == (3, "")
    assert "certificate verify failed" in found.stderr
    assert len(found.stderr.splitlines()) == 1


@pytest.mark.process
@pytest.mark.parametrize("door", ["mqtt", "mqtts"])
def test_the_club_passes_the_check(town: Club, door: str, monkeypatch: pytest.MonkeyPatch) -> None:
    way = town.access("hnefi-engine", door)

    async def median() -> float:
        report = await check.short_check(way)
        return report.median_ms or inf

    asyncio.run(quick(median, check.SLOW_MS))
    monkeypatch.setattr(check, "SLOW_MS", inf)
    report = asyncio.run(check.check(way, town.access("alice", door)))
    assert report.passed
    assert report.shares
    assert report.warnings == []


@pytest.mark.process
def test_no_door_stands_open_that_should_be_closed(town: Club) -> None:
    """The whole of 127.0.0.0/8 is this machine; who listens everywhere answers at any of its addresses."""
    for port in (town.port, town.ws_port):
        with pytest.raises(ConnectionRefusedError):
            asyncio.run(asyncio.open_connection("127.0.0.2", port))


WRITABLE = ["engine/{e}/req/alice", "pool/brandubh/req/alice", "user/alice/presence/x", "session/alice/s1/in"]
READABLE = [
    "user/alice/reply/x", "session/alice/s1/out", "session/alice/s1/info", "session/alice/s1/state",
    "engine/{e}/status", "engine/{e}/about", "arena/cup/meta", "arena/cup/game/1.1/state",
]  # fmt: skip
FOREIGN = [
    "engine/{e}/req/bob", "pool/brandubh/req/bob", "user/bob/reply/x", "user/bob/presence/x", "session/bob/s1/in",
    "session/bob/s1/out", "session/bob/s1/info", "session/bob/s1/state", "other/topic",
]  # fmt: skip


@pytest.mark.process
@pytest.mark.parametrize("protocol", ["3", "5"])
def test_rights_by_what_is_delivered(town: Club, protocol: Literal["3", "5"]) -> None:
    """Acknowledgements say nothing: Mosquitto grants and acknowledges what it then throws away."""
    name = f"rights{protocol}"

    def full(topic: str) -> str:
        return f"tafl/v1/{topic.format(e=name)}"

    heard: dict[str, set[str]] = {"engine": set(), "direct": set(), "wide": set(), "root": set()}

    def note(who: str) -> object:
        def take(message: Message) -> None:
            if message.payload == name.encode():
                heard[who].add(message.topic)

        return take

    async def talk() -> None:
        async with (
            Link(town.access("hnefi-engine", protocol=protocol), "engine") as engine,
            Link(town.access("alice", protocol=protocol), "direct") as direct,
            Link(town.access("alice", protocol=protocol), "wide") as wide,
            Link(town.access("alice", protocol=protocol), "root") as root,
        ):
            await engine.subscribe("tafl/v1/#", note("engine"))  # type: ignore[arg-type]
            for topic in [*WRITABLE, *READABLE, *FOREIGN]:
                await direct.subscribe(full(topic), note("direct"))  # type: ignore[arg-type]
            await wide.subscribe("#", note("wide"))  # type: ignore[arg-type]
            await root.subscribe("tafl/v1/#", note("root"))  # type: ignore[arg-type]
            for topic in [*READABLE, *FOREIGN]:
                await engine.publish(full(topic), name)
            # What alice writes, last of all something she may, after which nothing is on its way any more.
            by_engine = set(map(full, [*READABLE, *FOREIGN]))
            await _until(lambda: heard["engine"] >= by_engine)
            heard["engine"].clear()
            for topic in [*READABLE, *FOREIGN, *WRITABLE]:
                await direct.publish(full(topic), name)
            await _until(lambda: full(WRITABLE[-1]) in heard["engine"])
            readable = set(map(full, READABLE))
            await _until(lambda: all(heard[who] >= readable for who in ("direct", "wide", "root")))
            await asyncio.sleep(0.2)

    asyncio.run(talk())
    assert heard["engine"] == set(map(full, WRITABLE))
    for who in ("direct", "wide", "root"):
        assert heard[who] == set(map(full, READABLE)), who


@pytest.mark.process
@pytest.mark.parametrize("protocol", ["3", "5"])
def test_who_shows_tournaments_may_do_nothing_else(town: Club, protocol: Literal["3", "5"]) -> None:
    heard: list[str] = []

    async def talk() -> None:
        async with (
            Link(town.access("hnefi-engine", protocol=protocol), "engine") as engine,
            Link(town.access("hnefi-arena", protocol=protocol), "arena") as arena,
        ):
            await engine.subscribe("tafl/v1/#", lambda message: heard.append(message.topic))
            await arena.publish("tafl/v1/engine/club/status", "x")
            await arena.publish("tafl/v1/session/alice/s1/out", "x")
            await arena.publish("tafl/v1/arena/cup/game/1.1/state", "x")
            await _until(lambda: bool(heard))

    asyncio.run(talk())
    assert heard == ["tafl/v1/arena/cup/game/1.1/state"]


async def _until(true: object) -> None:
    async with asyncio.timeout(WAIT):
        while not true():  # type: ignore[operator]
            await asyncio.sleep(0.01)


# The other files


@pytest.mark.process
def test_the_unit_is_one(tmp_path: Path) -> None:
    require_programs("systemd-analyze")
    unit = tmp_path / "hnefi-mqtt.service"
    program = shutil.which("true")
    assert program is not None
    unit.write_text((EXAMPLES / "hnefi-mqtt.service").read_text().replace("/opt/hnefi/bin/hnefi", program))
    found = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=WAIT, check=False
    )
    assert (found.returncode, found.stdout) == (0, "")
    assert unit.name not in found.stderr


def test_the_recipe_starts_the_service() -> None:
    text = RECIPE.read_text()
    assert 'ENTRYPOINT ["hnefi"]\nCMD ["engine"]' in text
    assert re.search(r"^USER [1-9]\d*\n(?s:.*)^ENTRYPOINT", text, re.MULTILINE), "not as root"


COMMANDS = sorted(
    {
        line
        for text in [
            *SHELL,
            *CONSOLE,
            (EXAMPLES / "hnefi-mqtt.service").read_text(),
            RECIPE.read_text(),
        ]
        for line in re.findall(r"hnefi (mqtt[^'\n]*)", text)
    }
)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_the_page_exists(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = line.replace('"', " ").split()
    verb = words[1] if len(words) > 1 and not words[1].startswith(("-", "(")) else "serve"
    module = import_module(f"hnefi.gui_adapter.mqtt.{'brokers' if verb == 'broker' else verb}")
    with pytest.raises(SystemExit):
        module.main(["--help"])
    text = capsys.readouterr().out
    for flag in re.findall(r"(?<= )--[a-z-]+", line):
        assert flag in text, f"{flag} of {line}"


def test_links_lead_somewhere() -> None:
    def anchors(file: Path) -> set[str]:
        heads = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
        return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}

    for target in re.findall(r"\]\(([^)\s]+)\)", TEXT):
        name, _, anchor = target.partition("#")
        file = (PAGE.parent / name).resolve() if name else PAGE
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target
