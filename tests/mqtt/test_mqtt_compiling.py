"""Engines that compile behind a broker: everybody sees it, nobody ends them, and no clock runs meanwhile."""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from pathlib import Path

import pytest
from mqtt_brokers import TestBroker
from mqtt_parts import FAKE, Watcher, fake, serving, until

from hnefi.gui_adapter.mqtt.brokers import find_mosquitto
from hnefi.gui_adapter.mqtt.soak import running
from hnefi.protocol.answers import parse_compiling
from hnefi.protocol.client import Timeouts
from hnefi.protocol.hosts.broker import remote as remote_module
from hnefi.protocol.hosts.broker import topics
from hnefi.protocol.hosts.broker.client import Access, parse_url
from hnefi.protocol.hosts.broker.remote import Remote, RemoteError
from hnefi.protocol.hosts.broker.remote_session import RemoteSession
from hnefi.protocol.hosts.sessions import engine_process, questions, search_clock
from hnefi.protocol.hosts.sessions import session as session_module
from hnefi.protocol.hosts.sessions.engine_process import Policy

pytest_plugins = ["mqtt_brokers"]
pytestmark = [
    pytest.mark.process,
    pytest.mark.slow,
    # What waits for a compiler is behind the broker, whichever that is; every other module takes both.
    pytest.mark.parametrize(
        "broker", ["mosquitto" if find_mosquitto() else "amqtt"], indirect=True, scope="module"
    ),
]

SLOW = FAKE.with_name("slow_engine.py")
COLD = (sys.executable, str(SLOW), "0", "12")
"""Our engine, to which another game than tafl is new: that takes twelve seconds."""
COLD_ALL = (sys.executable, str(SLOW), "1.5", "12")
"""One that has to compile at its very start as well."""
IMPATIENT = Timeouts(start=60.0, ready=10.0, write=60.0, compiling=10.0)
"""Less than that, but many times what lies between two words of the compiler, and what a busy machine needs to start
Python and numba."""


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_process, "TIMEOUTS", IMPATIENT)
    for module in (questions, search_clock):
        monkeypatch.setattr(module, "TIMEOUTS", IMPATIENT)
    # The engine's first search loads what others have loaded by then, which takes a busy machine a while.
    monkeypatch.setattr(search_clock, "GRACE", IMPATIENT.ready)


@pytest.mark.usefixtures("impatient")
def test_a_cold_variant_in_a_session_is_compiled_and_played(broker: TestBroker) -> None:
    """`hex`, then `go`: the engine that compiles is not ended, and its clock starts when it is ready."""

    async def play() -> None:
        policy = Policy(COLD)
        async with (
            serving(broker.url, policy=policy) as service,
            Watcher(broker.url, service.settings.eid) as client,
        ):
            sid = await client.open("cold-1", seq=True)
            session = service.sessions["guest", sid]
            before = session.engine.pid
            await client.say(sid, "#1 variant hex:3\n#2 go movetime 100")
            lines = [line.partition(" ")[2] for line in await client.line(sid, ":2 bestmove")]
            told = [found for line in lines if (found := parse_compiling(line))]
            assert {progress.part for progress in told} == {"another game"}
            assert not any(line.startswith("info string error") for line in lines), lines
            assert not any("readyok" in line for line in lines), "our own questions are nobody's business"
            assert (session.engine.pid, session.restarts) == (before, 0)
            state = await client.state(sid, lambda state: bool(state["bestmove"]))
            assert (state["variant"], state["searching"]) == ("hex:3", False)

    asyncio.run(play())


@pytest.mark.usefixtures("impatient")
def test_a_stop_while_it_compiles_waits_for_the_engine(broker: TestBroker) -> None:
    async def play() -> None:
        async with (
            serving(broker.url, policy=Policy(COLD)) as service,
            Watcher(broker.url, service.settings.eid) as client,
        ):
            sid = await client.open("cold-2")
            await client.say(sid, "variant hex:3\ngo infinite")
            await client.line(sid, "another game")
            await client.say(sid, "stop")
            lines = await client.line(sid, "bestmove")
            assert not any(line.startswith("info string error") for line in lines), lines
            assert service.sessions["guest", sid].restarts == 0

    asyncio.run(play())


@pytest.mark.usefixtures("impatient")
def test_who_compiles_and_falls_silent_is_given_up(broker: TestBroker) -> None:
    """Within a search, after it was ready for it: three words, and then nothing any more."""

    async def play() -> None:
        async with (
            serving(broker.url, fake()) as service,
            Watcher(broker.url, service.settings.eid) as client,
        ):
            sid = await client.open("silent-1")
            session = service.sessions["guest", sid]
            session.policy = Policy(fake("compiler-dies"))
            session.engine.kill()
            lines = await client.line(sid, "engine failed")
            assert any(parse_compiling(line) for line in lines)
            await until(lambda: not service.sessions, "the end of the session")

    asyncio.run(play())


def test_the_service_says_what_it_compiles_and_an_open_waits(
    broker: TestBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(engine_process, "TIMEOUTS", IMPATIENT)
    longer: list[float] = []
    opening = RemoteSession.opening

    def watched(session: RemoteSession, limit: asyncio.Timeout) -> None:
        opening(session, limit)
        monkeypatch.setattr(
            limit, "reschedule", lambda when: longer.append(when - asyncio.get_running_loop().time())
        )

    # Whether a line is in time depends on the machine; that it allows as many seconds again does not.
    monkeypatch.setattr(RemoteSession, "opening", watched)

    async def play() -> None:
        async with (
            serving(broker.url, policy=Policy(COLD_ALL)) as service,
            Remote(Access(parse_url(broker.url), protocol="3")) as here,
        ):
            said: list[str] = []
            async with await here.open(service.settings.eid, variant="hex:3", on_line=said.append) as session:
                assert session.variant == "hex:3"
                assert [line for line in said if parse_compiling(line)]
                assert longer
                assert all(abs(seconds - remote_module.OPEN_TIMEOUT) < 1 for seconds in longer)
                await session.ready()

    with caplog.at_level(logging.INFO, "hnefi.mqtt.service"):
        asyncio.run(play())
    told = [record.getMessage() for record in caplog.records if "compiling" in record.getMessage()]
    assert re.match(r"compiling [012]/2 search \(", told[0])
    assert any("another game" in line and " user=guest sid=s-" in line for line in told)


def test_lines_that_come_before_the_engine_is_ready_wait_for_it(broker: TestBroker, tmp_path: Path) -> None:
    """Whoever does not wait for the reply is heard all the same."""
    gate = tmp_path / "gate"

    async def play() -> None:
        async with (
            serving(
                broker.url, policy=Policy((sys.executable, str(SLOW), "0", "0", f"game-gate={gate}"))
            ) as service,
            Watcher(broker.url, service.settings.eid) as client,
        ):
            lines = topics.session("guest", "early-1", "in")
            await client.raw(b'{"id":"e","op":"open","variant":"hex:3","sid":"early-1"}')
            await until(lambda: lines in service.link._handlers, "the ear of the session")
            await client.line("early-1", "compiling")
            await client.say("early-1", "go nodes 1")
            assert not any("/reply/" in message.topic for message in client.messages)
            gate.touch()
            assert (await client.reply("e"))["ok"]
            await client.line("early-1", "bestmove")
            # Of one that cannot be opened nothing stays behind.
            reply = await client.request(op="open", sid="early-2", variant="nonsense")
            assert reply["error"]["code"] == "unknown_variant"
            assert topics.session("guest", "early-2", "in") not in service.link._handlers

    asyncio.run(play())


def test_closing_and_draining_do_not_wait_for_a_compiler(broker: TestBroker) -> None:
    async def play() -> None:
        command = (sys.executable, str(SLOW), "0.1", "600")
        pids = []
        async with (
            serving(broker.url, policy=Policy(command)) as service,
            Watcher(broker.url, service.settings.eid) as client,
        ):
            for sid in ("close-1", "quit-1", "drain-1"):
                await client.open(sid)
                pids.append(service.sessions["guest", sid].engine.pid)
                await client.say(sid, "variant hex:3\ngo movetime 10")
                await client.line(sid, "another game")
            assert (await client.request(op="close", sid="close-1"))["ok"]
            await client.say("quit-1", "quit")
            await until(lambda: len(service.sessions) == 1, "the end of two sessions")
            # One more, which is about to be opened when the service ends.
            await client.raw(b'{"id":"late","op":"open","variant":"hex:3","sid":"late-1"}')
            await client.line("late-1", "another game")
        if Path("/proc/self").exists():
            await until(lambda: not any(running(pid) for pid in pids), "the end of all engines")

    asyncio.run(play())


def test_an_engine_that_cannot_work_says_so(broker: TestBroker) -> None:
    """Where `readyok` should be, an error: it is handed on, and questions are not mixed up by it."""

    async def play() -> None:
        async with (
            serving(broker.url, fake()) as service,
            Watcher(broker.url, service.settings.eid) as client,
        ):
            sid = await client.open("unfit-1", seq=True)
            error = "info string error isready: EOFError: this is a fault of the engine"
            session = service.sessions["guest", sid]
            await client.state(sid, lambda state: "variant" in state)
            await until(lambda: not session._questions._readies, "that nothing is asked")
            session._questions.client_asks(7)
            session._heard(error.encode())
            assert (await client.line(sid, "EOFError"))[-1] == f"#1:7 {error}"
            await client.say(sid, "#1 isready")
            await client.line(sid, ":1 readyok")

    asyncio.run(play())


def test_who_does_not_wait_for_an_open_leaves_no_session(
    broker: TestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[asyncio.Timeout] = []
    # Its time is up as soon as the service has begun with it, on a machine however busy.
    monkeypatch.setattr(RemoteSession, "opening", lambda _, limit: limits.append(limit))

    async def play() -> None:
        async with serving(broker.url) as service, Remote(Access(parse_url(broker.url))) as here:
            started: list[str] = []
            start = session_module.Session.start

            async def slow(session: session_module.Session) -> None:
                started.append(session.sid)
                limits[0].reschedule(asyncio.get_running_loop().time())
                await until(
                    lambda: any(one.unwanted for one in service._opening.values()), "the wish to close it"
                )
                await start(session)

            monkeypatch.setattr(session_module.Session, "start", slow)
            with pytest.raises(RemoteError, match="no reply"):
                await here.open(service.settings.eid)
            await until(lambda: started and not service._opening and not service.sessions, "its end")

    asyncio.run(play())
