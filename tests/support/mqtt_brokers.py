"""Brokers for tests, real Mosquitto and embedded amqtt, each a process of its own on free ports of 127.0.0.1.

A test module says `pytest_plugins = ["mqtt_brokers"]` and takes a fixture; each test then runs once for either kind.
`broker` is shared by the tests of a module, `own_broker` may be stopped, killed and paused, `club` knows users and
rights. (PYTEST_DONT_REWRITE: test modules import this one before pytest does.)

Run as a program, with a configuration as JSON, it is an amqtt broker.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hnefi.gui_adapter.mqtt import brokers
from hnefi.protocol import process

KINDS = ("amqtt", "mosquitto")
USERS = ("hnefi-engine", "alice", "bob")
"""Who is known to a club's broker; the password is the name with `-secret` behind it."""
EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
LAUNCHER = Path(process.__file__).with_name("launch.py")
WAIT = 120.0


_ports = itertools.count(os.getpid() * 1009)


def free_port() -> int:
    """A port on which nobody listens: below those that the system gives to connections, so that none of them takes it
    while its broker is down, and hardly one that another test process has in mind."""
    while True:
        port = 10_000 + next(_ports) % 20_000
        with socket.socket() as trial, contextlib.suppress(OSError):
            trial.bind((brokers.HOST, port))
            return port


def require(kind: str) -> None:
    """Skip the test where this kind of broker is not installed."""
    if kind == "mosquitto" and brokers.find_mosquitto() is None:
        pytest.skip("mosquitto is not installed (Debian: apt-get install mosquitto)")
    if kind == "amqtt":
        pytest.importorskip("amqtt.broker", reason="amqtt is not installed (pip install 'hnefi[broker]')")


def start_dying_with_us(command: list[str], **more: Any) -> subprocess.Popen[bytes]:
    """A child process that on Linux does not outlive this one, however this one ends."""
    if sys.platform != "linux":
        return subprocess.Popen(command, **more)
    report, failed = os.pipe()
    try:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(LAUNCHER), str(os.getpid()), str(failed), "", *command],
            pass_fds=(failed,),
            **more,
        )
    finally:
        os.close(failed)
        os.close(report)


@dataclass
class TestBroker:
    """A broker process; `folder` holds its configuration, and what it writes on standard error, in `errors.txt`."""

    __test__ = False

    kind: str
    folder: Path
    club: bool = False
    port: int = field(default_factory=free_port)
    ws_port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"mqtt://{brokers.HOST}:{self.port}"

    @property
    def ws_url(self) -> str:
        return f"ws://{brokers.HOST}:{self.ws_port}/mqtt"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def errors(self) -> str:
        """What it has complained of."""
        return (self.folder / "errors.txt").read_text()

    def password_file(self, user: str) -> Path:
        """A file with the password of a user of the club."""
        file = self.folder / f"{user}.password"
        file.write_text(password(user) + "\n")
        file.chmod(0o600)
        return file

    def start(self) -> None:
        """Run it, on the same ports as before; returns once it accepts connections."""
        assert self.process is None, "it runs"
        command = self._mosquitto() if self.kind == "mosquitto" else self._amqtt()
        with (self.folder / "errors.txt").open("wb") as errors:
            self.process = start_dying_with_us(command, stdin=subprocess.DEVNULL, stderr=errors)
        for port in (self.port, self.ws_port):
            self._await(port)

    def stop(self) -> None:
        """End it as an administrator would."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once: no goodbye, all that it knew is lost."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        self.kill()
        self.start()

    def pause(self) -> None:
        """It keeps its connections and does nothing: a broker that hangs."""
        os.kill(self.pid, signal.SIGSTOP)
        # It may be in the middle of something, on another processor.
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOWAIT)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def _end(self, number: int) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        process.send_signal(number)
        process.send_signal(signal.SIGCONT)
        try:
            process.wait(WAIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _await(self, port: int) -> None:
        deadline = time.monotonic() + WAIT
        while True:
            try:
                socket.create_connection((brokers.HOST, port), 1.0).close()
                return
            except OSError:
                assert self.process is not None
                if self.process.poll() is not None or time.monotonic() > deadline:
                    pytest.fail(f"{self.kind} does not start: {self.errors}")
                time.sleep(0.01)

    def _mosquitto(self) -> list[str]:
        text = brokers.mosquitto_config(self.port, self.ws_port)
        if self.club:
            passwords = self.folder / "passwords"
            mosquitto_passwords(passwords)
            shutil.copy(EXAMPLES / "mosquitto.acl", self.folder)
            text = text.replace("allow_anonymous true", "allow_anonymous false")
            text += f"password_file {passwords}\nacl_file {self.folder / 'mosquitto.acl'}\n"
        file = self.folder / "mosquitto.conf"
        file.write_text(text)
        program = brokers.find_mosquitto()
        assert program is not None
        return [program, "-c", str(file)]

    def _amqtt(self) -> list[str]:
        config = brokers.amqtt_config(self.port, self.ws_port)
        if self.club:
            passwords = self.folder / "passwords"
            amqtt_passwords(passwords)
            config["plugins"] = {
                "amqtt.plugins.authentication.FileAuthPlugin": {"password_file": str(passwords)},
                "amqtt.plugins.topic_checking.TopicAccessControlListPlugin": amqtt_rights(),
            }
        return [sys.executable, __file__, json.dumps(config)]


def password(user: str) -> str:
    return f"{user}-secret"


def mosquitto_passwords(file: Path) -> None:
    """The club's users as `mosquitto_passwd` keeps them; skips where that is missing."""
    program = shutil.which("mosquitto_passwd")
    if program is None:
        pytest.skip("mosquitto_passwd is not installed (Debian: apt-get install mosquitto)")
    file.write_text("".join(f"{user}:{password(user)}\n" for user in USERS))
    file.chmod(0o600)
    subprocess.run([program, "-U", str(file)], check=True, timeout=WAIT)


def amqtt_passwords(file: Path) -> None:
    """The same as amqtt keeps them, with a hash that is cheap to compute."""
    from pwdlib.hashers.argon2 import Argon2Hasher

    cheap = Argon2Hasher(time_cost=1, memory_cost=64, parallelism=1)
    file.write_text("".join(f"{user}:{cheap.hash(password(user))}\n" for user in USERS))


def amqtt_rights() -> dict[str, Any]:
    """The rights of `mosquitto.acl`, user by user, as amqtt wants them."""
    everything = ["tafl/v1/#"]
    may_write, may_read = {"hnefi-engine": everything}, {"hnefi-engine": everything}
    for user in USERS[1:]:
        rights = [
            line.split()[1:]
            for line in (EXAMPLES / "mosquitto.acl").read_text().replace("%u", user).splitlines()
            if line.startswith("pattern ")
        ]
        may_write[user] = [topic for right, topic in rights if right == "write"]
        may_read[user] = [topic for right, topic in rights if right == "read"]
    return {"publish_acl": may_write, "acl": may_read}


@pytest.fixture(scope="module", params=KINDS)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestBroker]:
    """A broker for all tests of a module, which therefore each use names of their own."""
    yield from running(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(params=KINDS)
def own_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TestBroker]:
    """A broker for one test, which may do to it what it likes."""
    yield from running(request.param, tmp_path)


@pytest.fixture(scope="module", params=KINDS)
def club(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestBroker]:
    """A broker that lets only `USERS` in, with the rights of the example file."""
    yield from running(request.param, tmp_path_factory.mktemp(f"club-{request.param}"), club=True)


def running(kind: str, folder: Path, *, club: bool = False) -> Iterator[TestBroker]:
    """One broker from its start to its end."""
    require(kind)
    one = TestBroker(kind, folder, club)
    try:
        one.start()
        yield one
    finally:
        one.stop()


# The program


async def serve(config: dict[str, Any]) -> None:
    from hnefi.gui_adapter.mqtt.embedded import Embedded

    await Embedded(config).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    import logging

    for name in ("amqtt", "transitions", "websockets"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    asyncio.run(serve(json.loads(sys.argv[1])))
