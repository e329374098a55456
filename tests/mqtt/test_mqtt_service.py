"""The service as a whole: what it shows, whom it serves, how it ends, and what a broker can do to it."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mqtt_brokers import TestBroker, free_port, password
from mqtt_brokers import running as brokers_running
from mqtt_parts import FAKE, NAGLE, WAIT, Watcher, quick, quick_ones, serving, until

from hnefi.gui_adapter.mqtt import service as service_module
from hnefi.gui_adapter.mqtt.check import short_check
from hnefi.gui_adapter.mqtt.command import main as mqtt
from hnefi.gui_adapter.mqtt.soak import running
from hnefi.protocol.client import own_command
from hnefi.protocol.hosts.broker import topics
from hnefi.protocol.hosts.broker.client import Access, Message, parse_url

pytest_plugins = ["mqtt_brokers"]
pytestmark = pytest.mark.process

OURS = tuple(own_command())


def last(client: Watcher, topic: str) -> dict[str, Any]:
    payloads = client.payloads(topic)
    return dict(json.loads(payloads[-1])) if payloads else {}


def test_everybody_sees_what_there_is(broker: TestBroker) -> None:
    async def play() -> None:
        async with serving(broker.url, OURS, sessions=1) as service:
            eid = service.settings.eid
            async with Watcher(broker.url, eid) as client:
                heard: list[Message] = []
                await client.link.subscribe(topics.about(eid), heard.append)
                await until(lambda: heard, "the description")
                about = json.loads(heard[0].payload)
                assert heard[0].retain
                assert about["name"].startswith("hnefi")
                assert "brandubh" in about["variants"]
                assert about["limits"]["payload_bytes"] == 65_536
                hash_option = next(option for option in about["options"] if option["name"] == "Hash")
                assert hash_option["type"] == "spin"
                assert hash_option["min"] >= 1
                status = topics.status(eid)
                await until(lambda: last(client, status).get("state") == "ready", "ready")
                await client.open("busy-1")
                await until(lambda: last(client, status).get("state") == "busy", "busy")
                assert (await client.request(op="open"))["error"]["code"] == "too_many"
                await client.request(op="close", sid="busy-1")
                await until(lambda: last(client, status).get("state") == "ready", "ready again")
                ping = await client.request(op="ping")
                assert abs(ping["time"] - time.time()) < 60
                assert ping["instance"] == last(client, status)["instance"]
            async with Watcher(broker.url, eid) as client:
                await until(lambda: last(client, status).get("state") == "ready", "the state that is kept")
        async with Watcher(broker.url, eid) as client:
            await until(lambda: last(client, status).get("state") == "offline", "offline")

    asyncio.run(play())


def test_limits_hold_for_each_user_and_for_all(broker: TestBroker) -> None:
    async def play() -> None:
        async with serving(broker.url, sessions=3, per_user=2) as service:
            eid = service.settings.eid
            async with Watcher(broker.url, eid, "anna") as anna, Watcher(broker.url, eid, "bert") as bert:
                await asyncio.gather(anna.open("anna-1"), anna.open("anna-2"))
                reply = await anna.request(op="open")
                assert (reply["error"]["code"], "anna has 2 sessions" in reply["error"]["text"]) == (
                    "too_many",
                    True,
                )
                assert (await anna.request(op="open", sid="anna-1"))["error"]["code"] == "sid_taken"
                await bert.open("anna-1")
                assert (await bert.request(op="open"))["error"]["code"] == "too_many"
                assert (await bert.request(op="close", sid="anna-2"))["error"]["code"] == "no_session"
                assert [session["sid"] for session in (await bert.request(op="list"))["sessions"]] == [
                    "anna-1"
                ]
                await bert.say("anna-1", "echo for bert")
                await bert.line("anna-1", "for bert")
                assert not anna.out("anna-1")

    asyncio.run(play())


def test_an_open_that_comes_twice_opens_once(broker: TestBroker) -> None:
    async def play() -> None:
        async with serving(broker.url) as service, Watcher(broker.url, service.settings.eid) as client:
            request = b'{"id":"twice","op":"open"}'
            await asyncio.gather(client.raw(request), client.raw(request))
            first = await client.reply("twice")
            before = len(client.messages)
            await client.raw(request)
            assert await client.reply("twice", before) == first
            assert len(service.sessions) == 1
            await client.request(op="close", sid=first["sid"])
            before = len(client.messages)
            await client.raw(request)
            assert (await client.reply("twice", before))["sid"] != first["sid"]

    asyncio.run(play())


def test_replies_go_to_their_user_only_and_never_nowhere(broker: TestBroker) -> None:
    async def play() -> None:
        async with serving(broker.url) as service:
            eid = service.settings.eid
            async with Watcher(broker.url, eid) as client, Watcher(broker.url, eid, "bob") as bob:
                reply = await client.request(op="ping", reply=topics.reply("bob", "x"))
                assert reply["error"]["code"] == "forbidden_reply"
                await client.request(op="ping", reply=topics.reply("guest", "mine"))
                assert len(client.payloads(topics.reply("guest", "mine"))) == 1
                if client.link.version == 5:
                    await client.raw(
                        b'{"id":"five","op":"ping"}',
                        reply_to=topics.reply("guest", "five"),
                        correlation=b"\0x",
                    )
                    await client.reply("five")
                    (answer,) = [m for m in client.messages if m.topic == topics.reply("guest", "five")]
                    assert answer.correlation == b"\0x"
                assert not [message for message in bob.messages if "/reply/" in message.topic]

    asyncio.run(play())


def test_old_words_that_a_broker_keeps_are_ignored(broker: TestBroker) -> None:
    async def play() -> None:
        async with Watcher(broker.url, "kept") as client:
            await client.raw(b'{"id":"kept","op":"open"}', retain=True)
            await client.say("kept-1", "go infinite", retain=True)
            async with serving(broker.url, eid="kept") as service:
                await client.request(op="ping")
                await client.open("kept-1")
                await client.say("kept-1", "isready")
                await client.line("kept-1", "readyok")
                assert not service.sessions["guest", "kept-1"].searching
                assert len(service.sessions) == 1
                for topic in (topics.session("guest", "kept-1", "in"), topics.requests("kept", "guest")):
                    await client.link.publish(topic, b"", retain=True)

    asyncio.run(play())


def test_sessions_end_when_their_client_is_gone_or_nobody_uses_them(
    broker: TestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "PRESENCE_PAUSE", 0.2)
    monkeypatch.setattr(service_module, "SWEEP", 0.2)

    async def play() -> None:
        async with (
            serving(broker.url, idle=600.0) as service,
            Watcher(broker.url, service.settings.eid, "gone") as client,
        ):
            await client.open("mine-1", cid="tab1")
            await client.open("kept-1", cid="tab1", keep=True)
            await client.open("othr-1", cid="tab2")
            await client.say("othr-1", "go infinite")
            presence = topics.presence("gone", "tab1")
            await client.link.publish(presence, b"offline")
            await client.link.publish(presence, b"online")
            await client.link.publish(presence, b"offline")
            await until(lambda: ("gone", "mine-1") not in service.sessions, "the end of mine")
            assert ("gone", "kept-1") in service.sessions
            for session in service.sessions.values():
                session.touched -= 1000.0
            await until(lambda: ("gone", "kept-1") not in service.sessions, "the end of the idle one")
            await client.line("kept-1", "info string closing: idle for 600 s")
            assert ("gone", "othr-1") in service.sessions, "one that thinks is not idle"

    asyncio.run(play())


def test_a_foreign_offline_is_contradicted(broker: TestBroker) -> None:
    async def play() -> None:
        async with serving(broker.url) as service, Watcher(broker.url, service.settings.eid) as client:
            status = topics.status(service.settings.eid)
            await until(lambda: last(client, status).get("state") == "ready", "ready")
            before = len(client.payloads(status))
            await client.link.publish(status, b'{"state":"offline","instance":"x"}', retain=True)
            await until(
                lambda: (
                    len(client.payloads(status)) >= before + 2 and last(client, status)["state"] == "ready"
                ),
                "the contradiction",
            )

    asyncio.run(play())


def test_two_services_with_one_name_are_both_warned_once(
    broker: TestBroker, caplog: pytest.LogCaptureFixture
) -> None:
    def warnings() -> int:
        return sum("another service is called twins too" in message for message in caplog.messages)

    async def play() -> None:
        status = topics.status("twins")
        async with Watcher(broker.url, "twins") as client:
            # What one has left that was killed just before, and whose will is still to come.
            await client.link.publish(status, b'{"state":"ready","instance":"dead"}', retain=True)
            async with serving(broker.url, eid="twins") as first:
                async with serving(broker.url, eid="twins") as second:
                    await until(lambda: warnings() == 2, "a warning of each")
                    await client.request(op="open", sid="twins-1")
                    await until(lambda: first.sessions and second.sessions, "a session of each")
                await until(lambda: last(client, status)["instance"] == first.instance, "who is left")
                assert last(client, status)["state"] == "ready"
                await client.link.publish(status, b'{"state":"draining","instance":"leaving"}')
                await client.request(op="ping")
                assert warnings() == 2
            await client.link.publish(status, b"", retain=True)

    asyncio.run(play())


def test_a_pool_shares_requests_where_the_broker_can(broker: TestBroker) -> None:
    async def play() -> None:
        report = await short_check(Access(parse_url(broker.url)))
        assert report.shares is (broker.kind == "mosquitto")
        if not report.shares:
            return
        services = [serving(broker.url, OURS, pool=True, shares=True) for _ in range(2)]
        async with services[0] as one, services[1] as two, Watcher(broker.url, one.settings.eid) as client:
            for number in range(4):
                await client.link.publish(
                    topics.pool_requests("brandubh", "guest"), b'{"id":"pool-%d","op":"ping"}' % number
                )
            replies = [await client.reply(f"pool-{number}") for number in range(4)]
            assert {reply["instance"] for reply in replies} == {one.instance, two.instance}
            await client.link.publish(topics.pool_requests("brandubh", "guest"), b'{"id":"game","op":"open"}')
            reply = await client.reply("game")
            assert reply["variant"] == "brandubh"
            assert reply["eid"] in (one.settings.eid, two.settings.eid)

    asyncio.run(play())


def test_who_has_left_a_pool_is_asked_no_more(tmp_path: Path) -> None:
    """Its broker would keep its session, and what is shared out to it, for whoever comes back after a fall."""

    async def play(url: str) -> None:
        async with serving(url, pool=True, shares=True):
            pass
        async with (
            serving(url, pool=True, shares=True) as service,
            Watcher(url, service.settings.eid) as client,
        ):
            for number in range(2):
                payload = b'{"id":"left-%d","op":"ping"}' % number
                await client.link.publish(topics.pool_requests("x", "guest"), payload)
            for number in range(2):
                assert (await client.reply(f"left-{number}"))["instance"] == service.instance

    for broker in brokers_running("mosquitto", tmp_path):
        asyncio.run(play(broker.url))


def test_a_broker_that_restarts_in_mid_search_loses_and_doubles_nothing(own_broker: TestBroker) -> None:
    async def play() -> None:
        async with (
            serving(own_broker.url) as service,
            Watcher(own_broker.url, service.settings.eid) as client,
        ):
            sid = await client.open("restart-1", seq=True)
            await client.say(sid, "#1 go infinite")
            session = service.sessions["guest", sid]
            await until(lambda: session.searching, "the search")
            own_broker.kill()
            await until(lambda: not service.link.up, "the loss")
            # The engine thinks on, and answers while nobody can hear it.
            await session.stop()
            await until(lambda: not session.searching, "the answer")
            own_broker.start()
            await asyncio.wait_for(asyncio.gather(client.link.wait_up(), service.link.wait_up()), WAIT)
            # Who came back later than the service sees in the state what it has missed.
            state = await client.state(sid, lambda state: state["bestmove"] == "b1b2")
            assert (state["last_in"], state["last_out"]) == (1, session.outgoing.last_out)
            if len(client.out(sid)) < state["last_out"]:
                await client.request(op="resend", sid=sid, **{"from": 1})
            await client.line(sid, "bestmove")
            lines = sorted(set(client.out(sid)))
            assert len(lines) == state["last_out"], "each number stands before one line only"
            assert [line.split()[0].split(":")[1] for line in lines if "bestmove b1b2" in line] == ["1"]

    asyncio.run(play())


def test_a_client_that_comes_back_finds_its_search(broker: TestBroker) -> None:
    async def play() -> None:
        async with serving(broker.url) as service:
            eid = service.settings.eid
            async with Watcher(broker.url, eid) as client:
                sid = await client.open("return-1", seq=True)
                await client.say(sid, "#1 echo one\n#2 go infinite")
                await client.state(sid, lambda state: bool(state["searching"]))
            session = service.sessions["guest", sid]
            await session.stop()
            await until(lambda: not session.searching, "the answer")
            async with Watcher(broker.url, eid) as client:
                state = await client.state(sid, lambda state: "last_in" in state)
                await client.request(op="resend", sid=sid, **{"from": 1})
                lines = await client.line(sid, "bestmove")
                assert len(lines) == session.outgoing.last_out
                assert state["last_in"] == 2

    asyncio.run(play())


def test_a_dead_broker_holds_no_engine_up(own_broker: TestBroker) -> None:
    async def play(hurt: Callable[[], None]) -> None:
        async with (
            serving(own_broker.url) as service,
            Watcher(own_broker.url, service.settings.eid) as client,
        ):
            sid = await client.open(f"alone-{hurt.__name__}", seq=True)
            session = service.sessions["guest", sid]
            hurt()
            for number in range(1, 20):
                answered = session.outgoing.last_out
                session.receive(b"#%d go depth 1" % number)
                await asyncio.sleep(0)
                while session.searching or session.outgoing.last_out == answered:
                    await asyncio.sleep(0.001)
            session.receive(b"#20 many 5000")
            await until(lambda: session.outgoing.last_out > 5_000, "5,000 lines")
            if hurt.__name__ == "pause":
                own_broker.resume()
            else:
                own_broker.start()
            await asyncio.wait_for(client.link.wait_up(), WAIT)
            # A restarted broker has nothing for a client that subscribes after the service has published.
            assert session.outgoing.resend(session.outgoing.last_out)
            lines = await client.line(sid, f"#{session.outgoing.last_out} ")
            assert len(lines) <= 5_000

    asyncio.run(play(own_broker.pause))
    asyncio.run(play(own_broker.kill))


def open_ends() -> tuple[int, int]:
    """Tasks and descriptors of this process."""
    return len(asyncio.all_tasks()), len(list(Path("/proc/self/fd").iterdir()))


def test_many_sessions_leave_nothing_behind(broker: TestBroker) -> None:
    async def play() -> None:
        async with (
            serving(broker.url, sessions=20, per_user=20) as service,
            Watcher(broker.url, service.settings.eid) as client,
        ):
            before = None
            pids: list[int] = []
            for turn in range(4):
                names = [f"turn-{turn}-{number}" for number in range(10)]
                await asyncio.gather(*(client.open(name) for name in names))
                pids += [session.engine.pid for session in service.sessions.values()]
                await asyncio.gather(*(client.say(name, "go depth 1") for name in names))
                for name in names:
                    await client.line(name, "bestmove")
                await asyncio.gather(*(client.request(op="close", sid=name) for name in names))
                before = before or open_ends()
            assert before is not None
            tasks, descriptors = before
            await until(
                lambda: open_ends()[0] <= tasks + 2 and open_ends()[1] <= descriptors + 2,
                f"no more than {before} tasks and descriptors",
            )
            assert len(set(pids)) == 40
            assert not service.sessions
            assert not any(running(pid) for pid in pids)

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("descriptors and processes are counted in /proc")
    asyncio.run(play())


def test_stop_and_bestmove_are_not_held_up(broker: TestBroker) -> None:
    async def play() -> None:
        async with serving(broker.url, OURS) as service, Watcher(broker.url, service.settings.eid) as client:
            sid = await client.open("fast-1", variant="brandubh")
            answered = asyncio.Event()
            session = topics.session("guest", sid, "out")
            client.link._handlers.clear()
            client.link._wildcards.clear()

            def hear(message: Message) -> None:
                if message.payload.startswith(b"bestmove"):
                    answered.set()

            client.link._handlers[session] = (hear, 1)

            async def stops() -> float:
                times = []
                for _ in range(11):
                    answered.clear()
                    await client.say(sid, "go infinite")
                    await asyncio.sleep(0.05)
                    began = time.perf_counter()
                    await client.say(sid, "stop")
                    await asyncio.wait_for(answered.wait(), WAIT)
                    times.append(time.perf_counter() - began)
                return quick_ones(times)

            await quick(stops, 0.9 * NAGLE)

    asyncio.run(play())


def test_rights_hold_between_two_users(club: TestBroker) -> None:
    async def play() -> None:
        access = Access(parse_url(club.url), "hnefi-engine", password("hnefi-engine"))
        async with serving(club.url, access=access) as service:
            eid = service.settings.eid
            async with (
                Watcher(club.url, eid, "alice", password=password("alice")) as alice,
                Watcher(club.url, eid, "bob", password=password("bob")) as bob,
            ):
                sid = await alice.open("rights-1")
                await bob.open("rights-1")
                before = service.sessions["alice", sid].outgoing.last_out
                # Bob speaks into Alice's session, asks in her name, and gives himself out as the service.
                for topic, payload in (
                    (topics.session("alice", sid, "in"), b"echo from bob"),
                    (topics.session("alice", sid, "out"), b"bestmove a1a1"),
                    (topics.requests(eid, "alice"), b'{"id":"bob","op":"close","sid":"rights-1"}'),
                    (topics.reply("alice", "default"), b'{"id":"x","ok":true}'),
                    (topics.status(eid), b'{"state":"offline"}'),
                ):
                    # amqtt never acknowledges what it drops.
                    forbidden = asyncio.create_task(bob.link.publish(topic, payload))
                    await asyncio.wait([forbidden], timeout=0.3)
                    forbidden.cancel()
                await alice.say(sid, "echo mine")
                assert (await alice.line(sid, "mine"))[before:] == ["mine"]
                assert ("alice", sid) in service.sessions
                assert not [
                    m for m in alice.messages if m.payload in (b'{"id":"x","ok":true}', b"bestmove a1a1")
                ]
                assert not [m for m in bob.messages if "/alice/" in m.topic]

    asyncio.run(play())


@contextmanager
def command(url: str, *flags: str) -> Iterator[subprocess.Popen[str]]:
    """`hnefi mqtt serve` as a process of its own, ready."""
    process = subprocess.Popen(
        [sys.executable, "-m", "hnefi.tools.cli", "mqtt", "serve", "--broker", url, *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == f"broker {url}\n"
        assert process.stdout.readline().startswith("ready ")
        yield process
    finally:
        process.kill()
        process.communicate()


ENGINE = f"{sys.executable} -I -S {FAKE}"


def test_sigterm_drains(broker: TestBroker) -> None:
    async def play(process: subprocess.Popen[str]) -> None:
        async with Watcher(broker.url, "drained") as client:
            sid = await client.open("drain-1")
            await client.say(sid, "go infinite")
            await client.state(sid, lambda state: bool(state["searching"]))
            process.send_signal(signal.SIGTERM)
            lines = await client.line(sid, "bestmove")
            assert "info string closing" in lines
            status = topics.status("drained")
            await until(lambda: last(client, status).get("state") == "offline", "offline")
            states = [json.loads(payload)["state"] for payload in client.payloads(status)]
            assert "draining" in states
            state = topics.session("guest", sid, "state")
            await until(lambda: client.payloads(state)[-1] == "", "the empty state")

    with command(broker.url, "--eid", "drained", "--engine", ENGINE) as process:
        asyncio.run(play(process))
        assert process.wait(WAIT) == 0


def test_a_killed_service_leaves_its_will_and_no_engine(broker: TestBroker) -> None:
    async def play(process: subprocess.Popen[str]) -> None:
        async with Watcher(broker.url, "killed") as client:
            sid = await client.open("kill-1")
            await client.say(sid, "environment PPID\ngo infinite")
            await client.state(sid, lambda state: bool(state["searching"]))
            engines = children(process.pid)
            assert engines
            process.kill()
            process.wait()
            status = topics.status("killed")
            await until(lambda: last(client, status).get("state") == "offline", "the will")
            await until(lambda: not any(running(pid) for pid in engines), "the end of the engines")

    if not Path("/proc/self").exists():
        pytest.skip("processes are looked for in /proc")
    with command(broker.url, "--eid", "killed", "--engine", ENGINE, "--mqtt", "3") as process:
        asyncio.run(play(process))


def children(parent: int) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                status = (folder / "stat").read_text()
            except OSError:
                continue
            if status.rpartition(")")[2].split()[1] == str(parent):
                found.append(int(folder.name))
    return found


def test_errors_begin_with_what_was_typed(capsys: pytest.CaptureFixture[str]) -> None:
    assert mqtt(["--broker", "foo", "--no-fork"]) == 2
    assert capsys.readouterr().err.startswith("hnefi mqtt: broker 'foo': expected ")
    assert mqtt(["serve", "--broker", "foo", "--no-fork"]) == 2
    assert capsys.readouterr().err.startswith("hnefi mqtt serve: broker 'foo': expected ")


@pytest.mark.parametrize(
    ("flags", "status", "words"),
    [
        (["--eid", "Big One"], 2, "expected 1 to 32 of a-z"),
        (["--broker", "http://x"], 2, "expected mqtt://"),
        (["--sessions", "0"], 2, "expected a whole number from 1 to 999999"),
        (["--option", "Hash"], 2, "expected NAME=VALUE"),
        (["--engine", "/nowhere/engine", "--broker", "mqtt://127.0.0.1:{port}"], 3, "/nowhere/engine"),
        (["--password-file", "/nowhere/file", "--broker", "mqtt://127.0.0.1:{port}"], 2, "/nowhere/file"),
    ],
)
def test_what_is_wrong_at_the_start_is_one_sentence(flags: list[str], status: int, words: str) -> None:
    flags = [flag.format(port=free_port()) for flag in flags]
    done = subprocess.run(
        [sys.executable, "-m", "hnefi.tools.cli", "mqtt", "serve", *flags],
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=False,
    )
    assert (done.returncode, words in done.stderr, "Traceback" in done.stderr) == (status, True, False), (
        done.stderr
    )
