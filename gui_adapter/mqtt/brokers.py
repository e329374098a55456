"""The broker for the service: one that the user names, Mosquitto as a child process, or amqtt within this process.

`provide` finds one and says where it listens. A broker started here is bound to 127.0.0.1, accepts everybody on this
machine, stores nothing on disk and ends with this process in any case. If you want users, access rights or other
machines, run your own broker and name it (docs/mqtt.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hnefi.engine.wording import shorten
from hnefi.protocol.hosts.argument_types import whole
from hnefi.protocol.hosts.exit_codes import INTERRUPTED
from hnefi.protocol.hosts.shutdown import Asked
from hnefi.protocol.process import Listener, Process

from .command import parser
from .fairness import Rates

if TYPE_CHECKING:
    from .embedded import Embedded

HOST = "127.0.0.1"
PORT = 1883
"""MQTT's own port; taken if it is free."""
NEIGHBOURS = 10
"""The number of next ports to try if it is taken, before any other, because a nearby port is easier to find again."""
START = 10.0
"""Seconds within which a started broker must accept connections."""
ATTEMPTS = 3
"""Attempts with another port if somebody takes it before us."""
SYSTEM_FOLDERS = ("/usr/sbin", "/usr/local/sbin", "/sbin", "/opt/homebrew/sbin")
"""Folders with Mosquitto on many systems that are not on an ordinary user's PATH."""
RATE = 400.0
"""Messages per second that the embedded broker accepts from one user: fewer than a service, which so drops none."""
QUEUED = 10_000
"""Messages that may wait in Mosquitto for each client."""
RUNNING = " running\n"
"""What Mosquitto says once it listens everywhere."""
SCHEMES = ("mqtt", "mqtts", "ws", "wss")
MISSING, FAILED = 2, 3


class BrokerError(Exception):
    """There is no broker; the text is a sentence for the user, `status` the exit code."""

    def __init__(self, text: str, status: int = FAILED) -> None:
        super().__init__(text)
        self.status = status


class PortTaken(BrokerError):
    """Another program is listening on the broker's port."""


class Broker:
    """A broker and its address. This class is for one named by the user, which we neither watch nor end."""

    kind = "given"

    def __init__(self, url: str, ws_url: str = "", pid: int = 0) -> None:
        self.url = url
        self.ws_url = ws_url
        self.pid = pid
        """The process id if the broker is our child."""
        self.note = ""
        """A sentence about why it is not on the usual port; empty if it is."""

    async def ended(self) -> str:
        """Returns when a broker started here has ended by itself, with a sentence that says how."""
        await asyncio.Event().wait()
        return ""

    async def close(self) -> None:
        """End the broker if it was started here."""


class Mosquitto(Broker):
    """Mosquitto as a child process; on Linux it ends with us even if we are killed."""

    kind = "mosquitto"

    def __init__(self, process: Process, port: int, ws_port: int) -> None:
        super().__init__(*_urls(port, ws_port), process.pid)
        self._process = process

    async def ended(self) -> str:
        """Returns the reason once the process has ended."""
        while await self._process.wait(3600.0) is None:
            pass
        return _end_of(self._process)

    async def close(self) -> None:
        """End the process."""
        await self._process.wind_up(grace=0.0)


class Amqtt(Broker):
    """amqtt on the running event loop."""

    kind = "amqtt"

    def __init__(self, embedded: Embedded, port: int, ws_port: int) -> None:
        super().__init__(*_urls(port, ws_port))
        self._embedded = embedded

    async def close(self) -> None:
        """Shut it down within at most two seconds."""
        # It goes away in any case, so errors during the shutdown do no harm.
        with contextlib.suppress(Exception):
            async with asyncio.timeout(2.0):
                await self._embedded.shutdown()


async def provide(
    wanted: str = "auto",
    *,
    port: int | None = None,
    ws_port: int = 0,
    environment: Mapping[str, str] = os.environ,
) -> Broker:
    """The broker that `wanted` names: a URL, `mosquitto`, `amqtt`, or `auto`.

    `auto` uses the URL in HNEFI_BROKER, else starts Mosquitto if it is installed, else amqtt. Without `port` it listens
    on 1883 if that is free, else on a port near it, which the broker's `note` then says; with `ws_port` it also listens
    there for WebSockets. Raises BrokerError.
    """
    named = environment.get("HNEFI_BROKER", "").strip() if wanted == "auto" else ""
    if named:
        wanted = named
    if "://" in wanted:
        if wanted.partition("://")[0].lower() not in SCHEMES:
            raise BrokerError(
                f"broker {shorten(wanted)}: expected mqtt://, mqtts://, ws:// or wss://", MISSING
            )
        return Broker(wanted)
    program = find_mosquitto(environment) if wanted in ("auto", "mosquitto") else None
    if wanted == "mosquitto" and program is None:
        raise BrokerError(
            "mosquitto is not installed: install it (Debian: apt-get install mosquitto)", MISSING
        )
    if wanted not in ("auto", "mosquitto", "amqtt"):
        raise BrokerError(f"broker {shorten(wanted)}: expected auto, mosquitto, amqtt or a URL", MISSING)
    attempts = 0
    while True:
        chosen = _free_port(attempts) if port is None else port
        try:
            broker = await (
                _amqtt(chosen, ws_port) if program is None else _mosquitto(program, chosen, ws_port)
            )
            if port is None and chosen != PORT:
                broker.note = (
                    f"port {PORT} is taken (by Debian's mosquitto, which starts by itself?): this broker listens on "
                    f"{chosen}; --broker mqtt://{HOST}:{PORT} uses the other one"
                )
            return broker
        except PortTaken:
            attempts += 1
            if port is not None or attempts == ATTEMPTS:
                raise


def find_mosquitto(environment: Mapping[str, str] = os.environ) -> str | None:
    """The program's path, also in system folders outside an ordinary PATH; None if it is not installed."""
    path = environment.get("PATH", os.defpath)
    return shutil.which("mosquitto", path=os.pathsep.join([path, *SYSTEM_FOLDERS]))


def mosquitto_config(port: int, ws_port: int = 0) -> str:
    """The configuration for our own Mosquitto."""
    doors = [f"listener {port} {HOST}"]
    if ws_port:
        # Without the domain Mosquitto 2.0 ignores the address here and listens to the whole network.
        doors += [f"listener {ws_port} {HOST}", "socket_domain ipv4", "protocol websockets"]
    lines = [
        "per_listener_settings false",
        *doors,
        "allow_anonymous true",
        # Without it short answers wait up to 44 ms for the acknowledgement of earlier ones.
        "set_tcp_nodelay true",
        "max_inflight_messages 100",
        f"max_queued_messages {QUEUED}",
        "max_packet_size 1048576",
        "persistence false",
        "log_dest stderr",
        "log_type error",
        # That it runs is one of them.
        "log_type information",
        # Started as root it would change its user, and then Linux no longer ends it with us.
        *(["user root"] if os.geteuid() == 0 else []),
    ]
    return "\n".join([*lines, ""])


def amqtt_config(port: int, ws_port: int = 0) -> dict[str, Any]:
    """The configuration of an embedded broker; its own default would listen to the whole network."""
    listeners = {"default": {"type": "tcp", "bind": f"{HOST}:{port}"}}
    if ws_port:
        listeners["websocket"] = {"type": "ws", "bind": f"{HOST}:{ws_port}"}
    plugins = {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}}
    return {"listeners": listeners, "plugins": plugins}


def _urls(port: int, ws_port: int) -> tuple[str, str]:
    return f"mqtt://{HOST}:{port}", f"ws://{HOST}:{ws_port}/mqtt" if ws_port else ""


def _free_port(attempt: int) -> int:
    """1883 or the next free port; if there is none, and from the second attempt, a port chosen by the system."""
    near = () if attempt else range(PORT, min(PORT + NEIGHBOURS, 65_535) + 1)
    for port in (*near, 0):
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                trial.bind((HOST, port))
                return int(trial.getsockname()[1])
    raise BrokerError(f"no port of {HOST} is free for a broker")


async def _mosquitto(program: str, port: int, ws_port: int) -> Broker:
    for door in filter(None, (port, ws_port)):
        # Mosquitto would fail, too, but with status 1, which has several meanings.
        _require_free(door)
    folder = Path(tempfile.mkdtemp(prefix="hnefi-mosquitto-"))
    try:
        file = folder / "mosquitto.conf"
        file.write_text(mosquitto_config(port, ws_port))
        try:
            process = await Process.start([program, "-c", str(file)], Listener())
        except (OSError, TimeoutError) as error:
            raise BrokerError(f"cannot start {program}: {error or 'it takes too long'}") from None
        try:
            await _running(process)
        except BaseException:
            process.kill()
            raise
    finally:
        # It has read its configuration by now.
        shutil.rmtree(folder, ignore_errors=True)
    return Mosquitto(process, port, ws_port)


async def _running(process: Process) -> None:
    """Returns when the broker says that it listens; BrokerError if the process ends first or takes too long.

    To connect would prove nothing: another broker may have just taken the port, and ours be about to find that out.
    """
    deadline = asyncio.get_running_loop().time() + START
    while asyncio.get_running_loop().time() < deadline:
        if process.exit is not None:
            said = _end_of(process)
            raise PortTaken(said) if "in use" in said else BrokerError(said)
        if RUNNING in process.error_tail():
            return
        await asyncio.sleep(0.01)
    raise BrokerError(f"mosquitto does not listen after {START:g} s")


def _end_of(process: Process) -> str:
    ending = process.exit.text if process.exit is not None else "unknown"
    said = process.error_tail().rpartition(RUNNING)[2].splitlines()
    words = [
        line for line in said if line.strip() and not line.endswith(" terminating") and "Warning:" not in line
    ]
    return f"mosquitto has ended ({ending})" + (f": {shorten(words[-1], 200)}" if words else "")


def _require_free(port: int) -> None:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((HOST, port))
        except OSError as error:
            raise PortTaken(f"port {port} of {HOST}: {(error.strerror or str(error)).lower()}") from None


async def _amqtt(port: int, ws_port: int) -> Broker:
    try:
        from .embedded import Embedded
    except ImportError:
        raise BrokerError(
            "no broker: install Mosquitto, or the embedded one with pip install 'hnefi[broker]', or name one "
            "with --broker URL",
            MISSING,
        ) from None
    import logging

    # It logs unfiltered data from strangers, and reports every lost connection as an error.
    for name in ("amqtt", "transitions", "websockets"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    for door in filter(None, (port, ws_port)):
        _require_free(door)
    try:
        embedded = Embedded(amqtt_config(port, ws_port), Rates(RATE))
        await embedded.start()
    except Exception as error:  # noqa: BLE001
        # Its exceptions wrap those of its plugins and listeners; all mean that it has not started.
        said = f"the embedded broker cannot start: {shorten(str(error), 200)}"
        raise PortTaken(said) if "in use" in str(error) else BrokerError(said) from None
    return Amqtt(embedded, port, ws_port)


# The command


def main(argv: list[str]) -> int:
    """`hnefi mqtt broker`: only a broker, until it is interrupted."""
    options = parser(
        "broker",
        "A broker for this machine only, for trying things out and for games at home. The first line on standard\n"
        "output says where it listens. It has no users and no rights; docs/mqtt.md shows how to set up one with both.",
        ["", "--ws-port 9001", "--broker amqtt --port 1884"],
    )
    options.add_argument(
        "--broker",
        choices=("auto", "mosquitto", "amqtt"),
        default="auto",
        help="which program (default: auto)",
    )
    options.add_argument(
        "--port", type=whole(1, 65535, "a port"), metavar="N", help="default: 1883, or the next free one"
    )
    options.add_argument(
        "--ws-port",
        type=whole(1, 65535, "a port"),
        default=0,
        metavar="N",
        help="a second port, for WebSockets",
    )
    arguments = options.parse_args(argv)
    try:
        return Asked().run(lambda asked: _serve(asked, arguments.broker, arguments.port, arguments.ws_port))
    except BrokerError as error:
        print(f"hnefi mqtt broker: {error}", file=sys.stderr)
        return error.status


async def _serve(asked: Asked, wanted: str, port: int | None, ws_port: int) -> int:
    # The variable names somebody else's broker, which is not what this command is for.
    environment = {name: value for name, value in os.environ.items() if name != "HNEFI_BROKER"}
    broker = await asked.unless(provide(wanted, port=port, ws_port=ws_port, environment=environment))
    if broker is None:
        return INTERRUPTED
    try:
        print(f"broker {broker.url}", flush=True)
        if broker.ws_url:
            print(f"websocket {broker.ws_url}", flush=True)
        if broker.note:
            print(f"hnefi mqtt broker: {broker.note}", file=sys.stderr)
        ending = await asked.unless(broker.ended())
        if ending is not None:
            raise BrokerError(ending)
    finally:
        await broker.close()
    return INTERRUPTED
