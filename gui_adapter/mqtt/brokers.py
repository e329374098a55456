"""The broker for the service: one that the user names, Mosquitto as a child process, or amqtt within this process.

`provide` finds one and says where it listens. A broker that is started here is bound to 127.0.0.1, accepts everybody on
this machine, stores nothing on disk and ends with this process, however that ends. If you want users, rights or other
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
    from amqtt.broker import Broker as Embedded

HOST = "127.0.0.1"
PORT = 1883
"""MQTT's own port; taken if it is free."""
NEIGHBOURS = 10
"""So many ports behind it are tried where it is not, before any other: what stands next to it is found again."""
START = 10.0
"""A broker must accept connections this many seconds after its start."""
ATTEMPTS = 3
"""How often another port is tried when somebody takes it before us."""
SYSTEM_FOLDERS = ("/usr/sbin", "/usr/local/sbin", "/sbin", "/opt/homebrew/sbin")
"""Where Mosquitto lies on many systems without being on an ordinary user's PATH."""
RATE = 400.0
"""Messages a second that the embedded broker takes of one user: less than a service, so that none is lost to that."""
QUEUED = 10_000
"""Messages that may wait in a broker of ours, in Mosquitto for one client, in the embedded one of one client."""
PACE = 0.02
"""Seconds between two looks whether a user who floods may go on."""
SCHEMES = ("mqtt", "mqtts", "ws", "wss")
MISSING, FAILED = 2, 3


class BrokerError(Exception):
    """There is no broker; the text is a sentence for people, `status` the exit code that goes with it."""

    def __init__(self, text: str, status: int = FAILED) -> None:
        super().__init__(text)
        self.status = status


class PortTaken(BrokerError):
    """Somebody else listens where the broker was to listen."""


class Broker:
    """A broker and where it listens. This one was named by the user: it is neither watched nor ended."""

    kind = "given"

    def __init__(self, url: str, ws_url: str = "", pid: int = 0) -> None:
        self.url = url
        self.ws_url = ws_url
        self.pid = pid
        """The process, where the broker is a child of ours."""
        self.note = ""
        """Why it does not listen where everybody looks for it, as a sentence; empty where it does."""

    async def ended(self) -> str:
        """Returns when a broker that was started here has ended by itself, with a sentence that says how."""
        await asyncio.Event().wait()
        return ""

    async def close(self) -> None:
        """End what was started here."""


class Mosquitto(Broker):
    """Mosquitto as a child: on Linux it dies with us even if we are killed."""

    kind = "mosquitto"

    def __init__(self, process: Process, port: int, ws_port: int) -> None:
        super().__init__(*_urls(port, ws_port), process.pid)
        self._process = process

    async def ended(self) -> str:
        """Returns why, once the process has ended."""
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
        """Shut it down, for two seconds at most."""
        # It goes away anyhow, and on its way out it hurts nobody.
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
    """The broker that `wanted` means: a URL, `mosquitto`, `amqtt`, or `auto`.

    `auto` takes the URL in HNEFI_BROKER, else starts Mosquitto if it is found, else amqtt. Without `port` it is 1883
    if free, else another one near it, and then the broker's `note` says so; with `ws_port` there is a second door
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
    """The program's path, also where the system keeps what is not on everybody's PATH; None if it is not installed."""
    path = environment.get("PATH", os.defpath)
    return shutil.which("mosquitto", path=os.pathsep.join([path, *SYSTEM_FOLDERS]))


def mosquitto_config(port: int, ws_port: int = 0) -> str:
    """The configuration of a Mosquitto of our own."""
    doors = [f"listener {port} {HOST}"]
    if ws_port:
        # Without the domain Mosquitto 2.0 overlooks the address here and listens to the whole network.
        doors += [f"listener {ws_port} {HOST}", "socket_domain ipv4", "protocol websockets"]
    lines = [
        "per_listener_settings false",
        *doors,
        "allow_anonymous true",
        # Without it short answers wait up to 44 ms for the acknowledgement of the ones before.
        "set_tcp_nodelay true",
        "max_inflight_messages 100",
        f"max_queued_messages {QUEUED}",
        "max_packet_size 1048576",
        "persistence false",
        "log_dest stderr",
        "log_type error",
        # Started as root it would become another user, and then Linux forgets that it has to die with us.
        *(["user root"] if os.geteuid() == 0 else []),
    ]
    return "\n".join([*lines, ""])


def amqtt_config(port: int, ws_port: int = 0) -> dict[str, Any]:
    """The configuration of an embedded broker; its own default would listen to the whole network."""
    listeners = {"default": {"type": "tcp", "bind": f"{HOST}:{port}"}}
    if ws_port:
        listeners["websocket"] = {"type": "ws", "bind": f"{HOST}:{ws_port}"}
    # Without a plugin for topics amqtt never waits while it goes through its subscriptions, so none is lost.
    plugins = {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}}
    return {"listeners": listeners, "plugins": plugins}


def _urls(port: int, ws_port: int) -> tuple[str, str]:
    return f"mqtt://{HOST}:{port}", f"ws://{HOST}:{ws_port}/mqtt" if ws_port else ""


def _free_port(attempt: int) -> int:
    """1883 or the next one on which nobody listens, else one that the system gives, as from the second attempt on."""
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
        # Mosquitto would say so too, but as one of several reasons to end with status 1.
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
            for door in filter(None, (port, ws_port)):
                await _accepting(process, door)
        except BaseException:
            process.kill()
            raise
    finally:
        # It has read it.
        shutil.rmtree(folder, ignore_errors=True)
    return Mosquitto(process, port, ws_port)


async def _accepting(process: Process, port: int) -> None:
    """Returns when somebody can connect; BrokerError if the process ends before, or takes too long."""
    deadline = asyncio.get_running_loop().time() + START
    while asyncio.get_running_loop().time() < deadline:
        if process.exit is not None:
            said = _end_of(process)
            raise PortTaken(said) if "in use" in said else BrokerError(said)
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(HOST, port)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            return
        await asyncio.sleep(0.01)
    raise BrokerError(f"mosquitto does not accept connections on port {port} after {START:g} s")


def _end_of(process: Process) -> str:
    ending = process.exit.text if process.exit is not None else "unknown"
    words = [line for line in process.error_tail().splitlines() if line.strip() and "Warning:" not in line]
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
        from amqtt.broker import Broker as Embedded
    except ImportError:
        raise BrokerError(
            "no broker: install Mosquitto, or the embedded one with pip install 'hnefi[broker]', or name one "
            "with --broker URL",
            MISSING,
        ) from None
    import logging

    # It logs what strangers send as it came, and reports every lost connection as an error.
    for name in ("amqtt", "transitions", "websockets"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    for door in filter(None, (port, ws_port)):
        _require_free(door)

    class Paced(Embedded):  # type: ignore[misc]
        """Each client has a task of its own: who floods waits in it, and what others send goes past.

        Without that all that has come is handed on in one row, a millisecond or two each.
        """

        async def _handle_message_delivery(
            self, client_session: Any, handler: Any, wait_deliver: asyncio.Future[Any]
        ) -> bool:
            message = wait_deliver.result()
            topic = (message and message.topic) or ""
            if topic.endswith("/in") or "/req/" in topic:
                while not rates.admit(topic, len(message.data or b"")):
                    if client_session.delivered_message_queue.qsize() > QUEUED:
                        # It is acknowledged as soon as it is read, so that waiting alone would hold nobody back.
                        return True
                    await asyncio.sleep(PACE)
            return bool(await super()._handle_message_delivery(client_session, handler, wait_deliver))

    rates = Rates(RATE)
    try:
        embedded = Paced(amqtt_config(port, ws_port))
        await embedded.start()
    except Exception as error:  # noqa: BLE001
        # Its own exceptions hold those of its plugins and listeners; all mean that it does not stand.
        raise BrokerError(f"the embedded broker cannot start: {shorten(str(error), 200)}") from None
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
    # The variable names a broker of somebody else's; who asks for one of their own is not sent there.
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
