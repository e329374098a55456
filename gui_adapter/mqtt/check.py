"""`hnefi mqtt check URL`: what a broker can do and how fast, by testing it.

Brokers do not always do what they promise: some grant subscriptions that never deliver anything, some acknowledge
messages that they throw away. Therefore every test here looks at what arrives.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import secrets
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace

from hnefi.protocol.hosts.broker import topics
from hnefi.protocol.hosts.broker.client import Access, Link, LinkError, Message, Will
from hnefi.protocol.hosts.broker.flags import GUEST, access, add_connection
from hnefi.protocol.hosts.connecting import password
from hnefi.protocol.hosts.exit_codes import FAULTS, INTERRUPTED
from hnefi.protocol.hosts.shutdown import Asked

from .command import parser

ECHOES = 20
SLOW_MS = 20.0
"""Milliseconds above which a round trip on one machine must be waiting for something."""
ANSWER = 5.0
"""Seconds to wait for a message before it counts as lost."""
QUIET = 0.3
"""Seconds to listen where nothing may arrive, once other messages are known to arrive."""
LARGE = 64 * 1024
SHARED = 10
NOBODY = "hnefi-check"
"""The user of the sessions on whose topics we try things."""

NAGLE = (
    "a QoS 1 round trip takes {:.0f} ms on one machine: Nagle's algorithm seems to be on; set set_tcp_nodelay true in "
    "mosquitto.conf"
)
NO_SHARE = "shared subscriptions are granted but deliver nothing: --pool does not work with this broker"


@dataclass(frozen=True, slots=True)
class Row:
    """One test; `passed` is None if it was impossible, or if it is only information."""

    name: str
    passed: bool | None
    text: str
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """The results. `median_ms` is that of a QoS 1 round trip, None if no message came back."""

    rows: tuple[Row, ...]
    version: int
    median_ms: float | None
    shares: bool

    @property
    def passed(self) -> bool:
        """Whether the broker can do everything that a service needs."""
        return all(row.passed is not False for row in self.rows)

    @property
    def warnings(self) -> list[str]:
        """Sentences about things that work, but not as they should."""
        return [row.warning for row in self.rows if row.warning]


class Inbox:
    """The messages of a subscription."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._news = asyncio.Event()

    def __call__(self, message: Message) -> None:
        self.messages.append(message)
        self._news.set()

    async def wait(self, wanted: Callable[[Message], bool], seconds: float | None = None) -> Message | None:
        """The first message for which `wanted` is true; None if none arrives in time (`ANSWER`)."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ANSWER if seconds is None else seconds):
                while True:
                    for message in self.messages:
                        if wanted(message):
                            return message
                    self._news.clear()
                    await self._news.wait()
        return None


async def check(way: Access, other: Access | None = None) -> Report:
    """Run all tests. `other` logs in as a user who must not see other users' sessions. LinkError without a
    connection."""
    async with _trial(way) as trial:
        rows = [trial.connection, await trial.echoes()]
        if rows[-1].passed is False:
            # No other test could receive anything either.
            return Report(tuple(rows), trial.link.version, None, False)
        rows += [await trial.retained(), await trial.will()]
        shared = await trial.shared()
        rows += [shared, await trial.large(), await trial.engines()]
    if other is not None:
        rows.append(await trial.foreign(other))
    return Report(tuple(rows), trial.link.version, trial.median_ms, shared.passed is True)


async def short_check(way: Access) -> Report:
    """The tests for the start of a service: the broker's speed, and shared subscriptions."""
    async with _trial(way) as trial:
        rows = [trial.connection, await trial.echoes()]
        shared = await trial.shared()
    return Report((*rows, shared), trial.link.version, trial.median_ms, shared.passed is True)


class _Trial:
    """The tests, on separate topics."""

    def __init__(self, way: Access, link: Link, connect_ms: float) -> None:
        self.way = way
        self.link = link
        self.median_ms: float | None = None
        spoken = {5: "MQTT 5", 4: "MQTT 3.1.1"}[link.version]
        self.connection = Row("connection", True, f"{spoken}, {connect_ms:.0f} ms")
        self._name = f"check-{secrets.token_hex(4)}"
        self._user = way.login or GUEST

    def _topic(self, leaf: str) -> str:
        """A topic of a session: with access rights in force, only the service may write and read it.

        The session belongs to no user, so that no user receives our tests.
        """
        return topics.session(NOBODY, self._name, leaf)

    async def echoes(self) -> Row:
        """Round trips to another client: only these show whether something waits for acknowledgements."""
        inbox, times = Inbox(), []
        there, back = self._topic("info"), self._topic("out")
        answers: set[asyncio.Task[None]] = set()
        try:
            async with Link(self.way, "check-echo") as other:

                def echo(message: Message) -> None:
                    answers.add(asyncio.ensure_future(other.publish(back, message.payload)))

                await other.subscribe(there, echo)
                await self.link.subscribe(back, inbox)
                for number in range(ECHOES):
                    payload = b"%d" % number
                    began = time.perf_counter()
                    await self.link.publish(there, payload)
                    answer = await inbox.wait(lambda message, payload=payload: message.payload == payload)  # type: ignore[misc]
                    if answer is None:
                        return Row("QoS 1 round trip", False, self._lost())
                    times.append(1000 * (time.perf_counter() - began))
                await self.link.unsubscribe(back)
        except LinkError as error:
            return Row("QoS 1 round trip", False, str(error))
        finally:
            await asyncio.gather(*answers, return_exceptions=True)
        self.median_ms = statistics.median(times)
        text = f"median {self.median_ms:.2f} ms of {ECHOES}, slowest {max(times):.2f} ms"
        slow = self.median_ms > SLOW_MS and _loopback(self.way.address.host)
        return Row("QoS 1 round trip", True, text, NAGLE.format(self.median_ms) if slow else "")

    def _lost(self) -> str:
        return (
            f"nothing came back in {ANSWER:g} s: is user {self._user!r} allowed to read and write "
            f"{topics.ROOT}/#? (the service's own user has to be)"
        )

    async def retained(self) -> Row:
        """Retained messages: set, received by a late subscriber, cleared, no longer received."""
        name, topic = "retained messages", self._topic("state")
        try:
            await self.link.publish(topic, b"here", retain=True)
            if await self._late(topic, ANSWER) is None:
                return Row(name, False, "a late subscriber does not get the retained message")
            await self.link.publish(topic, b"", retain=True)
            if await self._late(topic, QUIET) is not None:
                return Row(name, False, "an empty message does not clear the retained message")
        except LinkError as error:
            return Row(name, False, str(error))
        return Row(name, True, "kept, given to a late subscriber, cleared")

    async def _late(self, topic: str, seconds: float) -> Message | None:
        inbox = Inbox()
        async with Link(self.way, "check-late") as late:
            await late.subscribe(topic, inbox)
            return await inbox.wait(lambda message: message.retain and bool(message.payload), seconds)

    async def will(self) -> Row:
        """The last will of a client that vanishes; with MQTT 3.1.1, where the broker does not delay it."""
        inbox, topic = Inbox(), self._topic("info")
        try:
            await self.link.subscribe(topic, inbox)
            mortal = Link(replace(self.way, protocol="3"), "check-mortal", will=Will(topic, b"gone"))
            await mortal.open()
            began = time.perf_counter()
            await mortal.close(goodbye=False)
            found = await inbox.wait(lambda message: message.payload == b"gone")
            took = 1000 * (time.perf_counter() - began)
            await self.link.publish(topic, b"", retain=True)
            await self.link.unsubscribe(topic)
        except LinkError as error:
            return Row("last will", False, str(error))
        if found is None:
            return Row("last will", False, f"not published {ANSWER:g} s after the connection was cut")
        return Row("last will", True, f"published {took:.0f} ms after the connection was cut")

    async def shared(self) -> Row:
        """Shared subscriptions: two subscribers of a group get each message once, or the broker only claims that."""
        name, topic = "shared subscriptions", self._topic("in")
        inboxes = [Inbox(), Inbox()]
        try:
            async with contextlib.AsyncExitStack() as stack:
                for inbox in inboxes:
                    member = await stack.enter_async_context(Link(self.way, "check-share"))
                    await member.subscribe(f"$share/{self._name}/{topic}", inbox)
                for number in range(SHARED):
                    # A comment, in case a service is listening.
                    await self.link.publish(topic, f"# {number}")
                until = time.monotonic() + QUIET
                while time.monotonic() < until and sum(len(inbox.messages) for inbox in inboxes) < SHARED:
                    await asyncio.sleep(0.01)
        except LinkError as error:
            return Row(name, None, f"refused: {error}", NO_SHARE)
        got = sorted(message.payload for inbox in inboxes for message in inbox.messages)
        if not got:
            return Row(name, None, "granted, but nothing is delivered", NO_SHARE)
        if got != sorted(b"# %d" % number for number in range(SHARED)):
            return Row(name, None, f"{SHARED} messages came {len(got)} times", NO_SHARE)
        parts = " + ".join(str(len(inbox.messages)) for inbox in inboxes)
        return Row(name, True, f"each of {SHARED} messages once ({parts})")

    async def large(self) -> Row:
        # Text, for people who watch all topics on a terminal; random, so that no broker could compress it.
        inbox, topic, payload = Inbox(), self._topic("out"), secrets.token_hex(LARGE // 2).encode()
        try:
            await self.link.subscribe(topic, inbox)
            await self.link.publish(topic, payload)
            found = await inbox.wait(lambda message: message.payload == payload)
            await self.link.unsubscribe(topic)
        except LinkError as error:
            return Row("64 KiB message", False, f"{error}: the broker's limit may be lower")
        return Row("64 KiB message", found is not None, "delivered whole" if found else "did not arrive")

    async def engines(self) -> Row:
        """Lists services; this cannot fail."""
        inbox = Inbox()
        with contextlib.suppress(LinkError):
            await self.link.subscribe(topics.status(topics.ANY), inbox)
            await asyncio.sleep(QUIET)
            await self.link.unsubscribe(topics.status(topics.ANY))
        names = sorted({message.topic.split("/")[3] for message in inbox.messages if message.payload})
        return Row("engines", None, ", ".join(names[:20]) or "none")

    async def foreign(self, other: Access) -> Row:
        """A user receives nothing from another user's session, while others do."""
        name, topic = f"rights of {other.login or GUEST}", self._topic("out")
        wildcard, direct, control = Inbox(), Inbox(), Inbox()
        try:
            async with (
                Link(self.way, "check") as ours,
                Link(other, "check-a") as one,
                Link(other, "check-b") as two,
            ):
                await ours.subscribe(topic, control)
                await one.subscribe(topic, direct)
                await two.subscribe("#", wildcard)
                await ours.publish(topic, b"secret")
                if await control.wait(lambda message: message.payload == b"secret") is None:
                    return Row(name, None, self._lost())
                await asyncio.sleep(QUIET)
        except LinkError as error:
            return Row(name, False, str(error))
        heard = [message for inbox in (wildcard, direct) for message in inbox.messages]
        if any(message.topic == topic for message in heard):
            return Row(
                name, False, "hears the session of another user: the broker needs an ACL (docs/mqtt.md)"
            )
        return Row(name, True, "a foreign session is mute, also for #")


@contextlib.asynccontextmanager
async def _trial(way: Access) -> AsyncIterator[_Trial]:
    began = time.perf_counter()
    async with Link(way, "check") as link:
        yield _Trial(way, link, 1000 * (time.perf_counter() - began))


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def table(report: Report) -> list[str]:
    """The report as lines."""
    signs = {True: "ok", False: "FAILED", None: "-"}
    lines = [f"{row.name:<22}{signs[row.passed]:<8}{row.text}" for row in report.rows]
    return [*lines, *(f"warning: {sentence}" for sentence in report.warnings)]


def main(argv: list[str]) -> int:
    """`hnefi mqtt check`."""
    options = parser(
        "check",
        "Tests what a broker can do and how fast: connection, round trips, retained messages, last will, shared\n"
        "subscriptions, large messages, and with --as whether a user is kept out of other users' sessions.\n"
        "Log in as the service does: the tests use its topics.",
        [
            "mqtt://127.0.0.1",
            "mqtts://broker.example --user hnefi-engine --password-file engine.password",
            "mqtt://127.0.0.1 --user hnefi-engine --as alice --as-password-file alice.password",
        ],
    )
    options.add_argument(
        "url", metavar="URL", help="mqtt://HOST, mqtts://HOST, ws://HOST/PATH or wss://HOST/PATH"
    )
    options.add_argument(
        "--as", dest="other", metavar="USER", help="a user who must not receive other users' sessions"
    )
    options.add_argument("--as-password-file", metavar="FILE", help="the password of that user")
    add_connection(options)
    arguments = options.parse_args(argv)
    way = access(options, arguments, arguments.url)
    other = None
    if arguments.other:
        try:
            other = replace(way, user=topics.level(arguments.other, "--as"), password=None)
            if arguments.as_password_file:
                other = replace(other, password=password(arguments.as_password_file))
        except ValueError as error:
            options.error(str(error))
    try:
        report = Asked().run(lambda asked: asked.unless(check(way, other)))
    except LinkError as error:
        print(f"hnefi mqtt check: {error}", file=sys.stderr)
        return FAULTS
    if report is None:
        return INTERRUPTED
    print(f"broker {way.address}", *table(report), sep="\n")
    return 0 if report.passed else FAULTS
