"""Sessions behind a broker: lines in, lines out, numbers, and engines that go wrong."""

from __future__ import annotations

import asyncio
import time

import pytest
from mqtt_brokers import TestBroker
from mqtt_parts import Watcher, fake, serving, until

from hnefi.protocol.client import FLOOD, own_command
from hnefi.protocol.hosts.broker import topics
from hnefi.protocol.hosts.filter import FORBIDDEN_OPTIONS
from hnefi.protocol.hosts.sessions import engine_process, numbering, reports, search_clock
from hnefi.protocol.hosts.sessions.engine_process import Piped, Policy

pytest_plugins = ["mqtt_brokers"]
pytestmark = pytest.mark.process


def test_a_session_opens_answers_and_closes(broker: TestBroker) -> None:
    async def play() -> None:
        async with serving(broker.url) as service, Watcher(broker.url, service.settings.eid) as client:
            reply = await client.request(op="open", sid="life-1", variant="brandubh")
            assert reply["ok"]
            assert reply["engine"] == "Fake 1.0"
            assert reply["topics"]["in"] == "tafl/v1/session/guest/life-1/in"
            await client.say("life-1", "isready")
            assert await client.line("life-1", "readyok") == ["readyok"]
            await client.say("life-1", "position startpos\ngo movetime 10")
            lines = await client.line("life-1", "bestmove")
            assert lines[-1] == "bestmove a1a2 ponder a2a1"
            assert lines[-2].startswith("info depth 2"), "the last thinking goes before the answer"
            assert lines[-3] == "info string thinking aloud"
            listed = await client.request(op="list")
            assert [session["sid"] for session in listed["sessions"]] == ["life-1"]
            closed = await client.request(op="close", sid="life-1")
            assert closed["last_out"] == len(lines)
            state = topics.session("guest", "life-1", "state")
            await until(lambda: client.payloads(state)[-1] == "", "the empty state")
            assert (await client.request(op="list"))["sessions"] == []
            assert (await client.request(op="close", sid="life-1"))["error"]["code"] == "no_session"

    asyncio.run(play())


def test_numbers_drop_what_comes_twice_and_tell_what_is_missing(broker: TestBroker) -> None:
    async def play() -> None:
        async with serving(broker.url) as service, Watcher(broker.url, service.settings.eid) as client:
            sid = await client.open("numbers-1", seq=True)
            await client.say(sid, "#1 isready")
            await client.say(sid, "#2 go depth 1")
            await client.say(sid, "#2 go depth 1")
            await client.line(sid, "bestmove")
            await client.say(sid, "#1 go depth 1\n#2 go depth 1")
            await client.say(sid, "#5 go depth 1")
            await client.line(sid, "gap: expected #3")
            await client.say(sid, "#3 isready\n#4 # a comment counts\n#5 go depth 1")
            lines = await client.line(sid, "bestmove", 2)
            await client.say(sid, "isready")
            lines = await client.line(sid, "readyok", 3)
            assert [line.split()[0].split(":")[0] for line in lines] == [
                f"#{m + 1}" for m in range(len(lines))
            ]
            answers = [line.split(" ")[:2] for line in lines if "bestmove" in line or "readyok" in line]
            assert [(number.partition(":")[2], word) for number, word in answers] == [
                ("1", "readyok"),
                ("2", "bestmove"),
                ("3", "readyok"),
                ("5", "bestmove"),
                ("", "readyok"),
            ]

    asyncio.run(play())


def test_resend_brings_lines_again_and_says_when_they_are_gone(broker: TestBroker) -> None:
    async def play() -> None:
        async with serving(broker.url) as service, Watcher(broker.url, service.settings.eid) as client:
            sid = await client.open("resend-1", seq=True)
            await client.say(sid, "echo one|two|three")
            await client.line(sid, "three")
            reply = await client.request(op="resend", sid=sid, **{"from": 2})
            assert reply["last_out"] == 3
            await client.line(sid, "three", 2)
            assert client.out(sid) == ["#1 one", "#2 two", "#3 three", "#2 two", "#3 three"]
            await client.say(sid, "many 1100")
            await client.line(sid, "#1103 ")
            reply = await client.request(op="resend", sid=sid, **{"from": 2})
            assert reply["error"]["code"] == "gone"

    asyncio.run(play())


def test_a_late_joiner_reads_where_a_game_stands(broker: TestBroker) -> None:
    async def play() -> None:
        policy = Policy(tuple(own_command()))
        async with serving(broker.url, policy=policy) as service:
            eid = service.settings.eid
            async with Watcher(broker.url, eid) as client:
                sid = await client.open("late-1", seq=True, variant="brandubh", options={"Hash": 8})
                await client.say(sid, "#1 position startpos moves a4a2\n#2 go infinite atime 5000 dtime 4000")
                await client.state(sid, lambda state: bool(state["searching"] and state["moves"]))
                async with Watcher(broker.url, eid) as late:
                    state = await late.state(sid, lambda state: bool(state["searching"]))
                    assert state["variant"] == "brandubh"
                    assert state["start"].startswith("3t3/3t3/3T3/ttTKTtt")
                    assert (state["moves"], state["side"]) == (["a4a2"], "d")
                    assert state["clock"] == {"atime": 5000, "dtime": 4000}
                    assert (state["last_in"], state["bestmove"]) == (2, None)
                    await late.say(sid, "#3 stop")
                    lines = await late.line(sid, "bestmove")
                    assert ":2 bestmove" in lines[-1]
                    assert not any("readyok" in line or "response" in line for line in lines)
                    state = await late.state(sid, lambda state: not state["searching"])
                    assert state["bestmove"] == lines[-1].split(" ", 2)[2]
                    assert state["last_out"] == int(lines[-1].split(":")[0][1:])

    asyncio.run(play())


def test_only_one_search_at_a_time_and_what_follows_a_stop_waits(broker: TestBroker) -> None:
    async def play() -> None:
        async with serving(broker.url) as service, Watcher(broker.url, service.settings.eid) as client:
            sid = await client.open("gate-1", seq=True)
            await client.say(
                sid, "#1 go infinite\n#2 go depth 1\n#3 isready\n#4 stop\n#5 position startpos\n#6 go depth 1"
            )
            lines = await client.line(sid, "bestmove", 2)
            words = [line.split(" ", 1)[1] for line in lines]
            assert words[0].startswith("info string error go depth 1: a search is running")
            assert (
                words.index("readyok")
                < words.index("bestmove b1b2")
                < words.index("bestmove a1a2 ponder a2a1")
            )
            answered = [line.split()[0].split(":")[1] for line in lines if "bestmove" in line]
            assert answered == ["1", "6"]

    asyncio.run(play())


def test_strangers_are_filtered_and_quit_closes(broker: TestBroker) -> None:
    async def play() -> None:
        async with serving(broker.url) as service, Watcher(broker.url, service.settings.eid) as client:
            sid = await client.open("filter-1")
            await client.say(sid, "debug on\nsetoption name DebugLogFile value /tmp/x\nperft 3")
            lines = await client.line(sid, "not allowed here", 3)
            assert lines[0] == "info string error debug on: not allowed here"
            await client.say(sid, "quit")
            await until(lambda: not service.sessions, "the end of the session")
            for options, code in (
                ({"DebugLogFile": "/tmp/x"}, "bad_option"),
                ({"Hash": "1000"}, "bad_option"),
                ({"Hash": "sixteen"}, "bad_option"),
                ({"Nonsense": "1"}, "bad_option"),
            ):
                reply = await client.request(op="open", options=options)
                assert reply["error"]["code"] == code, reply
            assert (await client.request(op="open", variant="../x"))["error"]["code"] == "unknown_variant"
            assert not service.sessions

    asyncio.run(play())


def test_no_error_suggests_what_is_not_allowed(broker: TestBroker) -> None:
    async def play() -> None:
        async with (
            serving(broker.url, tuple(own_command())) as service,
            Watcher(broker.url, service.settings.eid) as client,
        ):
            for name, hint in (
                ("EvalFile", "it has "),
                ("DebugLogFil", "it has "),
                ("Hsh", "did you mean Hash?"),
            ):
                text = (await client.request(op="open", options={name: "x"}))["error"]["text"]
                assert f"has no option '{name}': {hint}" in text
                assert not any(forbidden in text.partition(":")[2] for forbidden in FORBIDDEN_OPTIONS)

    asyncio.run(play())


def test_a_flood_is_bounded_and_the_session_lives_on(
    broker: TestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numbering, "COMPLAINT_PAUSE", 3600.0)

    async def play() -> None:
        async with serving(broker.url) as service, Watcher(broker.url, service.settings.eid) as client:
            sid = await client.open("flood-1")
            flood = "\n".join("echo x" for _ in range(500))
            await asyncio.gather(*(client.say(sid, flood) for _ in range(4)))
            await client.say(sid, b"x" * 65_537)
            await client.line(sid, "message of 65537 bytes")
            session = service.sessions["guest", sid]
            assert session.outgoing.last_out < 2_000
            await client.say(sid, "isready")
            lines = await client.line(sid, "readyok")
            assert sum("busy: line dropped" in line for line in lines) == 1

    asyncio.run(play())


def test_a_slow_engine_drops_what_it_cannot_take_in_order(broker: TestBroker) -> None:
    async def play() -> None:
        async with (
            serving(broker.url, fake("deaf")) as service,
            Watcher(broker.url, service.settings.eid) as client,
        ):
            sid = await client.open("slow-1", seq=True)
            await client.say(sid, "#1 go depth 1\n#2 stop")
            lines = "\n".join(f"#{n} d" for n in range(3, 400))
            await client.say(sid, lines)
            await client.line(sid, "busy: line dropped")
            await client.line(sid, "gap: expected #")
            assert service.sessions["guest", sid].last_in < 300

    asyncio.run(play())


@pytest.mark.parametrize("fault", ["segv", "exit", "close-stdout", "grandchild"])
def test_a_dead_engine_is_started_again_once(broker: TestBroker, fault: str) -> None:
    async def play() -> None:
        async with (
            serving(broker.url, fake(fault)) as service,
            Watcher(broker.url, service.settings.eid) as client,
        ):
            sid = await client.open("dead-1")
            await client.say(sid, "position startpos\ngo depth 1")
            lines = await client.line(sid, "engine failed")
            assert "started again, the game continues" in lines[0]
            await until(lambda: not service.sessions, "the end of the session")

    asyncio.run(play())


def test_after_a_death_the_game_goes_on(broker: TestBroker) -> None:
    async def play() -> None:
        policy = Policy(tuple(own_command()))
        async with (
            serving(broker.url, policy=policy) as service,
            Watcher(broker.url, service.settings.eid) as client,
        ):
            sid = await client.open("reborn-1", seq=True, variant="brandubh", options={"Hash": "8"})
            await client.say(
                sid, "#1 setoption name MultiPV value 2\n#2 position startpos\n#3 play a4a2\n#4 go infinite"
            )
            session = service.sessions["guest", sid]
            await client.state(sid, lambda state: bool(state["searching"] and state["moves"]))
            before = session.engine.pid
            session.engine.kill()
            await client.line(sid, "started again")
            await until(lambda: session.engine.pid != before and session.engine.proto, "another engine")
            await client.say(sid, "#5 isready\n#6 query history\n#7 stop")
            lines = await client.line(sid, "bestmove")
            assert any("response startpos moves a4a2" in line for line in lines)
            assert ":4 bestmove" in lines[-1]
            assert sum("multipv 2" in line for line in lines) == 1

    asyncio.run(play())


def test_a_hung_engine_is_given_up_in_time(broker: TestBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_clock, "GRACE", 0.3)

    async def play() -> None:
        async with (
            serving(broker.url, fake("hang")) as service,
            Watcher(broker.url, service.settings.eid) as client,
        ):
            sid = await client.open("hung-1")
            await client.say(sid, "go movetime 50")
            await client.line(sid, "did not answer in time")
            await client.line(sid, "engine failed")
            await until(lambda: not service.sessions, "the end of the session")

    asyncio.run(play())


def test_a_search_without_end_is_stopped(broker: TestBroker) -> None:
    async def play() -> None:
        policy = Policy(fake(), max_search=0.2)
        async with (
            serving(broker.url, policy=policy) as service,
            Watcher(broker.url, service.settings.eid) as client,
        ):
            sid = await client.open("endless-1")
            await client.say(sid, "go infinite")
            lines = await client.line(sid, "bestmove")
            assert "info string search stopped after 0.2 s" in lines

    asyncio.run(play())


def test_thinking_is_heard_however_many_lines_are_read_at_once() -> None:
    """A busy machine reads late, and then much; the last thinking belongs on `out` all the same."""

    async def play() -> None:
        heard: list[bytes] = []
        engine = Piped(("none",), engine_process.TIMEOUTS)
        engine.heard = heard.append
        before = [b"%d" % number for number in range(2 * FLOOD)]
        engine.on_lines(lines := [*before, b"info depth 2 score cp 1", b"bestmove a1a2"], 0.0)
        assert heard == lines

    asyncio.run(play())


def test_thinking_is_throttled(broker: TestBroker) -> None:
    async def play() -> None:
        async with (
            serving(broker.url, fake("info-flood")) as service,
            Watcher(broker.url, service.settings.eid) as client,
        ):
            sid = await client.open("info-1")
            heard = topics.session("guest", sid, "info")
            await client.say(sid, "go infinite")
            await until(lambda: client.payloads(heard), "some thinking")
            await client.say(sid, "stop")
            await client.line(sid, "bestmove")
            began, before = time.monotonic(), len(client.out(sid))
            # 300,000 reports.
            await client.say(sid, "go depth 1")
            await client.line(sid, "bestmove", 2)
            thinking = client.payloads(heard)
            assert len(thinking) <= 3 + (time.monotonic() - began) / reports.PAUSE
            assert all(1 <= len(payload.split("\n")) <= 3 for payload in thinking)
            assert len(client.out(sid)) <= before + 6

    asyncio.run(play())
