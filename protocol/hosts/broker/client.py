"""The connection to a broker: with `library` the only module that knows the MQTT library.

    async with Link(Access(parse_url("mqtt://127.0.0.1:1883")), "demo") as link:
        await link.subscribe("tafl/v1/engine/+/status", lambda message: print(message.payload))
        await link.publish("tafl/v1/engine/local/req/guest", b'{"id": "1", "op": "ping"}')

A `Link` keeps itself connected: it subscribes again at each connection, waits 0.5 s to 30 s between attempts, and a
refused login is final. Messages are handed to their handlers as they are read; there is no queue here. Nothing is
published again after a reconnect: `publish` raises `Offline` when the
connection falls before the broker has acknowledged, and the publisher decides what to do.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import secrets
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Self

import aiomqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from hnefi.engine.wording import shorten

from ..connecting import Pauses
from . import topics
from .library import (
    CLOSED,
    LIBRARY_LOG,
    choose,
    enter,
    leave_nothing,
    mend_writing,
    no_delay,
    part,
    plain,
)
from .values import (
    Access,
    Address,
    LinkError,
    Message,
    Offline,
    Protocol,
    Refused,
    Unreachable,
    Will,
    parse_url,
    traced,
)

__all__ = [
    "Access",
    "Address",
    "Handler",
    "Link",
    "LinkError",
    "Message",
    "Offline",
    "Protocol",
    "Refused",
    "Unreachable",
    "Will",
    "parse_url",
]

LOG = logging.getLogger("hnefi.mqtt.client")

KEEPALIVE = 15
TIMEOUT = 10.0
"""How long one attempt to connect may take, in seconds."""
SILENCE = "Operation timed out"
"""What the library says when the broker took our connection and then nothing came."""
PROBE = 2.0
"""How long the first question, which MQTT the broker speaks, may take, in seconds."""
INFLIGHT = 100
"""Messages that may be on the way to the broker unacknowledged; the library keeps the others in their order."""
WILL_DELAY = 5
"""Seconds for which an MQTT 5 broker waits for our return before it publishes the will."""
FIRST_PAUSE, LAST_PAUSE, GOOD_AFTER = 0.5, 30.0, 60.0
"""Pauses between attempts to connect, in seconds, and after how long a connection was a good one."""

UNSUPPORTED_VERSION = 132
TAKEN_OVER = 142
FINAL_REFUSALS = frozenset({134, 135, 138, 140})
"""Wrong password, not authorised, banned, wrong method: trying again cannot help."""


Handler = Callable[[Message], None]
"""Called on the event loop for each message; must be quick. What it raises is logged."""


class Link:
    """One client of a broker that stays connected until it is closed.

    `label` becomes part of the client id, which is fresh for each link. `on_up` runs after each (re)connection, when
    everything is subscribed and before `up`; it may publish. `on_down` is called when a connection has fallen.
    A `patient` link waits for a broker that is not there at its beginning; others raise Unreachable. `trace` sees every
    message: monotonic time, `>` sent or `<` received, topic with QoS and payload. Logins are no messages. `admit`
    decides by topic and size, before anything else is done, whether a message is heard at all.
    """

    def __init__(
        self,
        access: Access,
        label: str,
        *,
        will: Will | None = None,
        on_up: Callable[[], Awaitable[None]] | None = None,
        on_down: Callable[[], None] | None = None,
        patient: bool = False,
        trace: Callable[[float, str, bytes], None] | None = None,
        admit: Callable[[str, int], bool] | None = None,
    ) -> None:
        self.access = access
        self.version = 0
        """The protocol spoken: 5, or 4 for MQTT 3.1.1; 0 before the first connection."""
        self.connections = 0
        """How often a connection came about."""
        self.trouble = ""
        """Why there is no connection, empty while there is one or before it was tried."""
        self._label = label
        self._will = will
        self._on_up = on_up
        self._on_down = on_down
        self._patient = patient
        self._trace = trace
        self._admit = admit
        self._tls: ssl.SSLContext | None = None
        self._identifier = self._fresh_identifier()
        self._handlers: dict[str, tuple[Handler, int]] = {}
        self._wildcards: dict[str, Handler] = {}
        self._client: aiomqtt.Client | None = None
        self._calls: set[asyncio.Task[Any]] = set()
        self._up = asyncio.Event()
        self._goodbye = True
        self._keeper: asyncio.Task[None] | None = None
        self._started: asyncio.Future[None] | None = None
        self._ended: asyncio.Future[LinkError | None] | None = None

    # Beginning and end

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Connect; returns when `on_up` has run. Refused, or (unless patient) Unreachable. Harmless when it is open."""
        if self._keeper is not None:
            return
        loop = asyncio.get_running_loop()
        try:
            self._tls = self.access.tls()
        except OSError as error:
            reason = error.strerror or str(error)
            raise Refused(f"certificate file {shorten(self.access.cafile)}: {reason}") from None
        self._started, self._ended = loop.create_future(), loop.create_future()
        self._keeper = asyncio.create_task(self._keep(), name=f"link {self._label}")
        try:
            await asyncio.wait([self._started, self._keeper], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self.close()
            raise
        if self._keeper.done():
            self._keeper = None
            failure = self._ended.result() if self._ended.done() else None
            raise failure or Unreachable(f"{self.access.address}: closed before it was connected")

    async def close(self, *, goodbye: bool = True) -> None:
        """Disconnect, within 2 s; harmless when it has been done. Without `goodbye` as if we had died."""
        self._goodbye = goodbye
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait([self._keeper])
            self._keeper = None
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    async def closed(self) -> LinkError | None:
        """Wait for the end of the link; what ended it, None if that was `close`."""
        assert self._ended is not None
        return await asyncio.shield(self._ended)

    @property
    def up(self) -> bool:
        """Whether there is a connection and `on_up` has run on it."""
        return self._up.is_set()

    async def wait_up(self) -> None:
        """Returns when there is a connection."""
        await self._up.wait()

    @property
    def identifier(self) -> str:
        """The client identifier of the connection."""
        return self._identifier

    # What is said and heard

    async def publish(
        self,
        topic: str,
        payload: bytes | str,
        *,
        qos: int = 1,
        retain: bool = False,
        expiry: int | None = None,
        reply_to: str = "",
        correlation: bytes = b"",
    ) -> None:
        """Publish; at QoS 1 this returns when the broker has acknowledged, at QoS 0 when it is on the wire.

        Calls go out in the order in which they are made. `expiry` (seconds), `reply_to` and `correlation` are said on
        MQTT 5 only. Raises Offline if there is no connection, or none any more before it was acknowledged.
        """
        client = self._connected()
        properties = None
        if self.version == 5 and (expiry is not None or reply_to or correlation):
            properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
            if expiry is not None:
                properties.MessageExpiryInterval = expiry
            if reply_to:
                properties.ResponseTopic = self._outside(reply_to)
            if correlation:
                properties.CorrelationData = correlation
        if self._trace is not None:
            self._trace(time.monotonic(), ">", traced(topic, payload, qos, retain))
        await self._call(
            client.publish(self._outside(topic), payload, qos, retain, properties, timeout=math.inf)
        )

    async def subscribe(self, topic_filter: str, handler: Handler, qos: int = 1) -> None:
        """Hand all messages of `topic_filter` to `handler`, in this connection (it is acknowledged when this returns)
        and all later ones. Filters of one link must not overlap: brokers differ in what they deliver then."""
        self._handlers[topic_filter] = (handler, qos)
        if "+" in topic_filter or "#" in topic_filter or topic_filter.startswith("$"):
            self._wildcards[topic_filter] = handler
        if self._client is not None:
            # A connection that falls meanwhile is followed by one that subscribes it.
            with contextlib.suppress(Offline):
                await self._subscribe(self._client, [(topic_filter, qos)])

    async def unsubscribe(self, topic_filter: str) -> None:
        """Stop receiving messages of `topic_filter`."""
        if self._handlers.pop(topic_filter, None) is None:
            return
        self._wildcards.pop(topic_filter, None)
        if self._client is not None:
            with contextlib.suppress(Offline):
                await self._call(self._client.unsubscribe(self._outside(topic_filter), timeout=TIMEOUT))

    async def _subscribe(self, client: aiomqtt.Client, wanted: list[tuple[str, int]]) -> None:
        if not wanted:
            return
        wanted = [(self._outside(name), qos) for name, qos in wanted]
        if self.version == 5:
            options = [(name, SubscribeOptions(qos=qos)) for name, qos in wanted]
            await self._call(client.subscribe(options, timeout=TIMEOUT))
        else:
            await self._call(client.subscribe(wanted, timeout=TIMEOUT))

    def _outside(self, topic: str) -> str:
        """A topic or filter of ours as the broker knows it."""
        prefix = self.access.address.prefix
        if not prefix:
            return topic
        if topic.startswith("$share/"):
            share, group, ours = topic.split("/", 2)
            return f"{share}/{group}/{prefix}/{ours}"
        return f"{prefix}/{topic}"

    def _inside(self, topic: str) -> str:
        """A topic of the broker as we know it."""
        prefix = self.access.address.prefix
        return topic.removeprefix(f"{prefix}/") if prefix else topic

    def _connected(self) -> aiomqtt.Client:
        if self._client is None:
            raise Offline(f"{self.access.address}: not connected")
        return self._client

    async def _call(self, call: Coroutine[Any, Any, Any]) -> None:
        """The library's calls wait on when the connection falls; ours end then, with Offline."""
        task = asyncio.ensure_future(call)
        self._calls.add(task)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            task.cancel()
            raise
        finally:
            self._calls.discard(task)
        if task.cancelled():
            raise Offline(f"{self.access.address}: the connection was lost")
        error = task.exception()
        if isinstance(error, aiomqtt.MqttError):
            raise Offline(f"{self.access.address}: {error}")
        if error is not None:
            raise error

    def _hand_on(self, message: aiomqtt.Message) -> None:
        topic = self._inside(message.topic.value)
        entry = self._handlers.get(topic)
        handlers = [entry[0]] if entry else []
        handlers += [handler for wanted, handler in self._wildcards.items() if topics.matches(wanted, topic)]
        payload = (
            message.payload if isinstance(message.payload, bytes) else bytes(str(message.payload), "utf-8")
        )
        properties = message.properties
        said = Message(
            topic,
            payload,
            message.qos,
            message.retain,
            self._inside(getattr(properties, "ResponseTopic", "")),
            getattr(properties, "CorrelationData", b""),
        )
        if self._trace is not None:
            self._trace(time.monotonic(), "<", traced(topic, payload, message.qos, message.retain))
        for handler in handlers:
            try:
                handler(said)
            except Exception:
                LOG.exception("a message on %s could not be handled", topic)

    # Staying connected

    async def _keep(self) -> None:
        """Connect, hear until the connection falls, and once more."""
        assert self._started is not None
        assert self._ended is not None
        pauses = Pauses(FIRST_PAUSE, LAST_PAUSE, GOOD_AFTER)
        while True:
            began = time.monotonic()
            try:
                client = await self._connect()
                self.connections += 1
                self.trouble = ""
                error = await self._hear(client)
                self.trouble = f"the connection to {self.access.address} was lost: {error}"
                LOG.warning(
                    "connection lost broker=%s id=%s reason=%s", self.access.address, self._identifier, error
                )
            except Refused as error:
                self.trouble = str(error)
                self._ended.set_result(error)
                return
            except Unreachable as error:
                self.trouble = str(error)
                if not (self._patient or self.connections):
                    self._ended.set_result(error)
                    return
                LOG.warning("%s", error)
            await asyncio.sleep(pauses.after(time.monotonic() - began))

    async def _hear(self, client: aiomqtt.Client) -> str:
        """What a connection is good for, until it falls; why it did."""
        assert self._started is not None
        self._client = client
        greeting = asyncio.create_task(self._greet(client))
        began = time.monotonic()
        reason = "unknown"
        try:
            # Messages take another way, this waits for the end.
            async for _ in client.messages:
                pass
        except aiomqtt.MqttError as error:
            cause = error.__cause__ or error
            reason = str(cause)
            code = getattr(getattr(cause, "rc", None), "value", None)
            if code == TAKEN_OVER or time.monotonic() - began < WILL_DELAY:
                # Another client may use our id: two that displace each other would never settle.
                self._identifier = self._fresh_identifier()
        finally:
            self._client = None
            was_up = self._up.is_set()
            self._up.clear()
            greeting.cancel()
            for call in self._calls:
                call.cancel()
            if was_up and self._on_down is not None:
                self._on_down()
            await part(client, goodbye=self._goodbye)
        return reason

    async def _greet(self, client: aiomqtt.Client) -> None:
        assert self._started is not None
        try:
            await self._subscribe(client, [(name, qos) for name, (_, qos) in self._handlers.items()])
            if self._on_up is not None:
                await self._on_up()
        except Offline:
            return
        except Exception as error:
            LOG.exception("the connection cannot be used")
            assert self._ended is not None
            assert self._keeper is not None
            if not self._ended.done():
                self._ended.set_result(LinkError(f"{self.access.address}: {error}"))
            self._keeper.cancel()
            return
        self._up.set()
        if not self._started.done():
            self._started.set_result(None)

    async def _connect(self) -> aiomqtt.Client:
        """One attempt; with `auto` the first one finds out what the broker speaks, which then stays."""
        if self.access.protocol == "auto":
            version = self.version or await self._probe()
        else:
            version = 5 if self.access.protocol == "5" else 4
        try:
            return await self._attempt(version)
        except _OtherVersion:
            self.version = 0
            spoken = "MQTT 5" if version == 5 else "MQTT 3.1.1"
            if self.access.protocol == "auto":
                raise Unreachable(f"{self.access.address} no longer speaks {spoken}") from None
            raise Refused(f"{self.access.address} does not speak {spoken}: try --mqtt auto") from None

    async def _probe(self) -> int:
        """5 if the broker understands MQTT 5, else 4.

        Asked without will, properties or password: a broker of the older protocol may lose its way in a longer
        request and then never answer.
        """
        client = self._new_client(5, probe=True)
        try:
            await enter(client)
        except aiomqtt.MqttCodeError as error:
            # Any other complaint comes in MQTT 5's own packets.
            return 4 if getattr(error.rc, "value", None) == UNSUPPORTED_VERSION else 5
        except aiomqtt.MqttError as error:
            if str(error) in (SILENCE, CLOSED):
                return 4
            raise Unreachable(f"no MQTT broker at {self.access.address}: {plain(error)}") from None
        except (OSError, ValueError) as error:
            raise Unreachable(f"no MQTT broker at {self.access.address}: {plain(error)}") from None
        else:
            return 5
        finally:
            await part(client)

    async def _attempt(self, version: int) -> aiomqtt.Client:
        client = self._new_client(version)
        address = self.access.address
        try:
            await enter(client)
        except aiomqtt.MqttError as error:
            await part(client)
            code = getattr(getattr(error, "rc", None), "value", None)
            if code == UNSUPPORTED_VERSION:
                raise _OtherVersion from None
            if code in FINAL_REFUSALS:
                who = f"user {shorten(self.access.login)}" if self.access.login else "a client without a name"
                raise Refused(f"{address} refuses {who}: {error}") from None
            raise Unreachable(f"no MQTT broker at {address}: {plain(error)}") from None
        except (OSError, ValueError) as error:
            await part(client)
            raise Unreachable(f"no MQTT broker at {address}: {plain(error)}") from None
        except asyncio.CancelledError:
            await part(client)
            raise
        self.version = version
        no_delay(client)
        return client

    def _new_client(self, version: int, *, probe: bool = False) -> aiomqtt.Client:
        class Straight(asyncio.Queue[aiomqtt.Message]):
            """A queue that holds nothing: what is put into it is handed on in the same moment."""

            def put_nowait(queue, item: aiomqtt.Message) -> None:  # noqa: N805
                self._hand_on(item)

        address = self.access.address
        properties = will = None
        if self._will is not None and not probe:
            delay = None
            if version == 5:
                # Without a session that outlives its connection the broker would not wait with the will.
                properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
                properties.SessionExpiryInterval = 2 * WILL_DELAY
                delay = Properties(PacketTypes.WILLMESSAGE)  # type: ignore[no-untyped-call]
                delay.WillDelayInterval = WILL_DELAY
            will = aiomqtt.Will(self._outside(self._will.topic), self._will.payload, 1, True, delay)
        client = aiomqtt.Client(
            address.host,
            address.port,
            identifier=self._fresh_identifier() if probe else self._identifier,
            username=None if probe else self.access.login or None,
            password=None if probe else self.access.password,
            protocol=aiomqtt.ProtocolVersion(version),
            clean_session=None if version == 5 else True,
            properties=properties,
            will=will,
            keepalive=KEEPALIVE,
            timeout=PROBE if probe else TIMEOUT,
            max_inflight_messages=INFLIGHT,
            transport="websockets" if address.websocket else "tcp",
            websocket_path=address.path or None,
            tls_context=self._tls,
            queue_type=Straight,
            socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
            logger=LIBRARY_LOG,
        )
        if properties is not None:
            leave_nothing(client)
        client.pending_calls_threshold = 1_000_000
        mend_writing(client)
        if self._admit is not None:
            admit = self._admit
            choose(client, lambda topic, size: admit(self._inside(topic), size))
        return client

    def _fresh_identifier(self) -> str:
        return f"hnefi-{self._label}-{secrets.token_hex(4)}"


class _OtherVersion(Exception):
    """The broker does not speak the version we asked in."""
