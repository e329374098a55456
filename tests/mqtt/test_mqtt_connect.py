"""A remote session as a local engine, and the class behind it."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mqtt_brokers import WAIT, TestBroker, free_port
from mqtt_parts import FAKE, fake, serving, until

from hnefi.gui_adapter.mqtt import service as service_module
from hnefi.gui_adapter.mqtt.client_session import ClientSession
from hnefi.gui_adapter.mqtt.service import Service
from hnefi.protocol.answers import parse_compiling
from hnefi.protocol.client import Engine, Timeouts, own_command
from hnefi.protocol.hosts.broker import remote_session, topics
from hnefi.protocol.hosts.broker.client import Access, Message, parse_url
from hnefi.protocol.hosts.broker.remote import Remote, RemoteError
from hnefi.protocol.hosts.broker.remote_session import RemoteSession, SessionEnded
from hnefi.protocol.hosts.sessions.engine_process import Policy

pytest_plugins = ["mqtt_brokers"]
pytestmark = pytest.mark.process

OURS = Policy(tuple(own_command()))
STEPS = """greeting isready-search stop-at-once double-go ponder bad-bytes quit-search end-of-input-search
    closed-output no-orphans
"""


def connect(url: str, *flags: str) -> list[str]:
    return [sys.executable, "-m", "hnefi.tools.cli", "mqtt", "connect", url, "--mqtt", "3", *flags]


def remote(broker: TestBroker) -> Remote:
    return Remote(Access(parse_url(broker.url), protocol="3"))


def test_it_passes_the_check_of_engines(broker: TestBroker) -> None:
    async def play() -> tuple[int | None, str]:
        async with serving(broker.url, policy=OURS) as service:
            only = [word for step in STEPS.split() for word in ("--only", step)]
            words = ["check", "--timeout", str(int(WAIT)), *only]
            words += connect(broker.url, "--eid", service.settings.eid)
            # A process of its own: at its end an arena ends every engine that was started in it.
            arena = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "hnefi.tools.cli", "arena", *words),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            said, _ = await arena.communicate()
            return arena.returncode, said.decode()

    status, said = asyncio.run(play())
    assert status == 0, said
    assert " fail " not in said.lower()


def test_it_is_driven_like_any_engine(broker: TestBroker) -> None:
    async def play() -> None:
        async with serving(broker.url, policy=OURS) as service:
            words = connect(
                broker.url, "--eid", service.settings.eid, "--variant", "brandubh", "--option", "Hash=8"
            )
            patient = Timeouts(start=WAIT, answer=WAIT, stop=WAIT, write=WAIT)
            async with await Engine.start(words, "uti", timeouts=patient) as engine:
                assert engine.name.startswith("hnefi")
                engine.position("startpos", ["a4a2"])
                search = await engine.go()
                answer = await search.stop()
                assert answer.move
                assert await engine.ask("query turn") == ["response d"]
                assert service.sessions
            await until(lambda: not service.sessions, "the end of the session")

    asyncio.run(play())


def cold(gate: Path) -> Policy:
    """Our engine, to which another game than tafl is new: it compiles until there is such a file."""
    return Policy((sys.executable, str(FAKE.with_name("slow_engine.py")), "0", "0", f"game-gate={gate}"))


@asynccontextmanager
async def connecting(broker: TestBroker, service: Service) -> AsyncIterator[asyncio.subprocess.Process]:
    words = connect(broker.url, "--eid", service.settings.eid, "--variant", "hex:3")
    process = await asyncio.create_subprocess_exec(
        *words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def heard_until(process: asyncio.subprocess.Process, last: str = "") -> list[str]:
    """All lines up to `last`; without it, up to a word of the compiler."""
    assert process.stdout is not None
    lines: list[str] = []
    while last not in lines if last else not any(map(parse_compiling, lines)):
        line = await process.stdout.readline()
        assert line, lines
        lines.append(line.decode().rstrip("\n"))
    return lines


def tell(process: asyncio.subprocess.Process, *lines: str) -> None:
    assert process.stdin is not None
    process.stdin.write("".join(f"{line}\n" for line in lines).encode())


def test_a_greeting_is_answered_before_there_is_a_session(broker: TestBroker, tmp_path: Path) -> None:
    """Programs that start engines wait a few seconds for it, and a game that has to be compiled takes longer."""
    gate = tmp_path / "gate"

    async def play() -> None:
        async with serving(broker.url, policy=cold(gate)) as service, connecting(broker, service) as process:
            tell(process, "uci", "isready", "d", "uti")
            lines = await heard_until(process, "uciok")
            # The embedded broker drops a connection now and then; the next one is made by itself, and said.
            lines = [line for line in lines if not line.startswith("connection lost ")]
            assert not service.sessions
            assert lines[0] == f"info string connecting to {broker.url}"
            assert lines[1] == f"info string waiting for a session of {service.settings.eid}"
            assert lines[2].startswith("id name hnefi")
            assert "option name Hash type spin default 64 min 1 max 65536" in lines
            lines = await heard_until(process)
            gate.touch()
            lines += await heard_until(process, "readyok")
            assert not any(line.startswith(("id ", "option ", "uciok")) for line in lines), "once is enough"
            lines = await heard_until(process, "utiok")
            assert any(line.startswith(" ") for line in lines), "the board as it was drawn"
            assert "option name Hash type spin default 64 min 1 max 65536" in lines, "asked again"
            tell(process, "quit")
            assert await process.wait() == 0

    asyncio.run(asyncio.wait_for(play(), WAIT))


@pytest.mark.parametrize(
    ("killed", "reason"), [(False, "closed by the client"), (True, "its client has gone")]
)
def test_who_leaves_before_the_session_is_there_waits_for_nobody(
    broker: TestBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: bool, reason: str
) -> None:
    monkeypatch.setattr(service_module, "PRESENCE_PAUSE", 0.1)
    gate = tmp_path / "gate"

    async def play() -> None:
        async with serving(broker.url, policy=cold(gate)) as service:
            async with connecting(broker, service) as process:
                tell(process, "uci")
                await heard_until(process, "uciok")
                await until(lambda: service._opening, "the request")
                if killed:
                    process.kill()
                else:
                    tell(process, "quit")
                assert await process.wait() == (-signal.SIGKILL if killed else 0)
            assert not service.sessions, "it is still being opened"
            opened: list[str] = []
            close = service._begin_close

            def begin_close(session: ClientSession, why: str) -> asyncio.Task[None]:
                opened.append(why)
                task = close(session, why)
                # That its client has gone may be noticed before the closing has taken its first step.
                session.end("its client has gone")
                return task

            monkeypatch.setattr(service, "_begin_close", begin_close)
            gate.touch()
            await until(lambda: opened, "the session")
            assert opened == [reason]
            await until(lambda: not service.sessions, "its end")

    asyncio.run(asyncio.wait_for(play(), WAIT))


@pytest.mark.parametrize(
    ("flags", "status", "words"),
    [
        (["mqtt://127.0.0.1:{port}"], 3, "no MQTT broker at"),
        (["mqtt://u:p@127.0.0.1"], 2, "passwords are not accepted"),
        (["mqtt://127.0.0.1", "--eid", "A B"], 2, "expected 1 to 32"),
        (["mqtt://127.0.0.1", "--option", "x"], 2, "expected NAME=VALUE"),
        ([], 2, "URL"),
    ],
)
def test_what_is_wrong_is_one_sentence(flags: list[str], status: int, words: str) -> None:
    flags = [flag.format(port=free_port()) for flag in flags]
    command = [sys.executable, "-m", "hnefi.tools.cli", "mqtt", "connect", *flags]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=WAIT, check=False, input="uti\nquit\n"
    )
    assert (done.returncode, words in done.stderr, "Traceback" in done.stderr) == (status, True, False), (
        done.stderr
    )


def test_without_a_service_it_says_so_soon(broker: TestBroker) -> None:
    async def play() -> None:
        async with remote(broker) as here:
            with pytest.raises(RemoteError, match=r"no reply from nobody within .* or guest is not"):
                await here.request("nobody", "ping", timeout=0.3)

    asyncio.run(play())


def test_a_game_in_few_lines(broker: TestBroker) -> None:
    async def play() -> None:
        thinking: list[str] = []
        async with serving(broker.url, policy=OURS) as service, remote(broker) as here:
            while service.settings.eid not in (services := await here.services(0.2)):
                pass
            assert services[service.settings.eid]["state"] == "ready"
            async with await here.open(
                service.settings.eid, variant="brandubh", on_info=thinking.append
            ) as session:
                assert (session.engine[:5], session.variant) == ("hnefi", "brandubh")
                moves: list[str] = []
                for _ in range(4):
                    await session.send(
                        f"position startpos moves {' '.join(moves)}" if moves else "position startpos"
                    )
                    moves.append((await session.best_move("go depth 2")).split()[0])
                await session.ready()
                await session.send("query history")
                async for line in session:
                    if line.startswith("response"):
                        assert line == f"response startpos moves {' '.join(moves[:3])}"
                        break
            assert not service.sessions
            with pytest.raises(RemoteError, match="nonsense") as error:
                await here.open(service.settings.eid, variant="nonsense")
            assert error.value.code == "unknown_variant"
            with pytest.raises(RemoteError) as error:
                await here.open(service.settings.eid, options={"DebugLogFile": "x"})
            assert error.value.code == "bad_option"

    asyncio.run(play())


def test_many_lines_wait_for_the_engine_and_none_is_lost(broker: TestBroker) -> None:
    async def play() -> None:
        async with (
            serving(broker.url) as service,
            remote(broker) as here,
            await here.open(service.settings.eid) as session,
        ):
            for number in range(400):
                await session.send(f"echo {number}")
            await session.ready()
            heard = [line async for line in limited(session, 400)]
            assert heard == [str(number) for number in range(400)]

    asyncio.run(play())


async def limited(session: RemoteSession, count: int) -> AsyncIterator[str]:
    async for line in session:
        yield line
        count -= 1
        if not count:
            return


def test_lines_that_are_lost_or_doubled_on_the_way_are_asked_for(
    broker: TestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_session, "PATIENCE", 0.05)

    async def play() -> None:
        async with (
            serving(broker.url) as service,
            remote(broker) as here,
            await here.open(service.settings.eid) as session,
        ):
            inside = service.sessions["guest", session.sid]
            receive, count = inside.receive, 0

            def lossy(payload: bytes) -> None:
                nonlocal count
                count += 1
                if count % 14:
                    receive(payload)
                if count % 2:
                    receive(payload)

            handlers = service.link._handlers
            topic = topics.session("guest", session.sid, "in")
            handlers[topic] = (lambda message: lossy(message.payload), 1)
            hear, deaf = here.link._handlers[topics.session("guest", session.sid, "out")][0], 0

            def forgetful(message: Message) -> None:
                nonlocal deaf
                deaf += 1
                if deaf % 16:
                    hear(message)

            here.link._handlers[topics.session("guest", session.sid, "out")] = (forgetful, 1)
            for number in range(60):
                await session.send(f"echo {number}")
            assert await session.best_move("go depth 1") == "a1a2 ponder a2a1"
            await session.ready()
            heard = [line async for line in limited(session, 63)]
            assert heard[:60] == [str(number) for number in range(60)]
            assert sum("bestmove" in line for line in heard) == 1

    asyncio.run(asyncio.wait_for(play(), WAIT))


def test_broker_and_client_come_back_in_mid_search(own_broker: TestBroker) -> None:
    async def play() -> None:
        async with (
            serving(own_broker.url) as service,
            remote(own_broker) as here,
            await here.open(service.settings.eid) as session,
        ):
            await session.send("position startpos")
            move = asyncio.create_task(session.best_move("go infinite"))
            inside = service.sessions["guest", session.sid]
            await until(lambda: inside.searching, "the search")
            own_broker.kill()
            await until(lambda: not service.link.up and not here.link.up, "the loss")
            await session.send("stop")
            await session.send("echo still here")
            own_broker.start()
            assert await asyncio.wait_for(move, WAIT) == "b1b2"
            await session.ready()
            heard = [line async for line in limited(session, 3)]
            assert sum("bestmove" in line for line in heard) == 1
            assert heard[-1] == "still here"

    asyncio.run(play())


def test_a_session_that_the_service_ends_says_why(broker: TestBroker) -> None:
    async def play() -> None:
        async with serving(broker.url, fake("segv")) as service, remote(broker) as here:
            session = await here.open(service.settings.eid)
            with pytest.raises(SessionEnded, match="the service has closed the session"):
                await session.best_move("go depth 1")
            heard = [line async for line in session]
            assert "engine failed" in heard[-1]
            with pytest.raises(SessionEnded):
                await session.send("isready")
            await session.close()

    asyncio.run(play())
