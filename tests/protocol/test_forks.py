"""Engine processes that are forks of one that has everything loaded: like any other, and nothing left behind."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from leftover_processes import MARK, expect_nobody
from patience import PROMPTLY

from hnefi.engine.search.types import Limits
from hnefi.protocol import fork_client
from hnefi.protocol.client import Engine, EngineCrashed, own_command
from hnefi.protocol.fork_client import Forks, forking
from hnefi.protocol.fork_server import NEWS, Fork, ForkServer
from hnefi.protocol.process import Exit, Listener, Process

pytestmark = [
    pytest.mark.cold,
    pytest.mark.process,
    pytest.mark.skipif(not fork_client.possible(), reason="needs Linux with descriptors for processes"),
]

PAGES_OF_A_SESSION = 40.0
"""MiB that a session with a table of 16 MiB may have for itself."""
COLD = """
import sys
from hnefi.protocol import fork_server
fork_server.load = lambda *_: False
{more}
fork_server.main(sys.argv[1:])
"""


def run(work: Callable[[], Awaitable[None]], seconds: float = 120.0) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(seconds):
            await work()

    asyncio.run(bounded())


@contextlib.asynccontextmanager
async def forks() -> AsyncIterator[Forks]:
    server = Forks()
    await server.launch()
    try:
        yield server
    finally:
        await server.close()


def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str) -> None:
    """Fork servers are this program from now on, which loads nothing."""
    script = tmp_path / "server.py"
    script.write_text(COLD.format(more=more))
    monkeypatch.setattr(fork_client, "SERVER", (sys.executable, str(script)))


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def own_pages(pid: int) -> float:
    """MiB that a process shares with nobody."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


async def until(holds: Callable[[], object]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


def test_forks_are_engines_like_others_and_share_their_memory() -> None:
    async def scene() -> None:
        async with forks() as server:
            one, other = [await Engine.start(own_command(), "uti", starter=server.start) for _ in range(2)]
            assert server.process is not None
            for engine in (one, other):
                assert parent(engine.pid) == server.process.pid
                assert os.getsid(engine.pid) == engine.pid
                assert Path(f"/proc/{engine.pid}/comm").read_text() == "hnefi engine\n"
                variant = await engine.set_variant("brandubh")
                assert variant is not None
                assert variant.name == "brandubh"
                await engine.set_option("Hash", "16")
                await engine.is_ready()
                engine.position(moves=["a4a2"])
                answer = await (await engine.go(Limits(nodes=20_000)))
                assert answer.move
                # None of the server, nor of another fork.
                assert {int(entry.name) for entry in Path(f"/proc/{engine.pid}/fd").iterdir()} == {
                    0,
                    1,
                    2,
                    NEWS,
                }
                assert own_pages(engine.pid) < PAGES_OF_A_SESSION
            one._process.close_input()
            assert await one._process.wait(PROMPTLY) == Exit(0)
            os.kill(other.pid, signal.SIGSEGV)
            await until(lambda: other.failure)
            assert "killed by SIGSEGV" in str(other.failure)
            flagged = await Engine.start(
                own_command("--variant", "tablut-bologna"), "uti", starter=server.start
            )
            assert await flagged.ask("query turn") == ["response d"]
            await flagged.quit()
            # What has been reaped is no process any more, not even a zombie.
            for engine in (one, other, flagged):
                assert not Path(f"/proc/{engine.pid}").exists()

    run(scene)


def test_whoever_does_not_end_is_killed_and_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, monkeypatch, "")

    async def scene() -> None:
        async with forks() as server:
            engine = await Engine.start(own_command(), "uti", starter=server.start)
            os.kill(engine.pid, signal.SIGSTOP)
            began = asyncio.get_running_loop().time()
            process = engine._process
            assert await process.wind_up(grace=0.05, mercy=0.05) == Exit(None, signal.SIGKILL)
            assert asyncio.get_running_loop().time() - began < PROMPTLY
            assert not Path(f"/proc/{engine.pid}").exists()
            at_once = await Engine.start(own_command(), "uti", starter=server.start)
            at_once.kill()
            assert isinstance(at_once.failure, EngineCrashed)

    run(scene)


def test_what_one_fork_has_loaded_the_next_ones_find(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        async with forks() as server:
            engine = await Engine.start(own_command("--variant", "hexapawn"), "uti", starter=server.start)
            await engine.is_ready()
            await until(lambda: "loaded hexapawn alphabeta default" in caplog.text)
            await engine.quit()

    with caplog.at_level(logging.DEBUG, "hnefi.forks"):
        run(scene)


def test_a_session_imports_nothing_that_the_server_has_not() -> None:
    """What a fork imports it does not share, and takes time for."""
    script = """
import sys
from hnefi.protocol import commands, fork_server, server
assert fork_server.load()
fork_server.rehearse()
known = set(sys.modules)
stage = server.Server(0, 1)
stage.warm.set()
conversation = commands.Commands(stage)
for line in sys.stdin:
    conversation.carry_out(line.split())
    conversation.session.wait()
print(*sorted(set(sys.modules) - known), file=sys.stderr)
"""
    lines = [
        "variant copenhagen",
        "setoption name SkillLevel value 5",
        "setoption name MultiPV value 3",
        "isready",
    ]
    lines += ["position startpos", "moves verbose", "rules", "query outcome", "go nodes 500", "query history"]
    done = subprocess.run(
        [sys.executable, "-c", script], input="\n".join(lines), capture_output=True, text=True, check=False
    )
    assert "bestmove" in done.stdout
    assert done.stderr == "\n"


def test_a_dead_server_takes_its_forks_along_and_gets_a_successor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, monkeypatch, "")
    monkeypatch.setattr(fork_client, "PAUSE", 0.01)

    async def scene() -> None:
        async with forks() as server:
            engine = await Engine.start(own_command(), "uti", starter=server.start)
            assert server.process is not None
            first = server.process.pid
            os.kill(first, signal.SIGKILL)
            await until(lambda: engine.failure)
            assert "killed by SIGKILL" in str(engine.failure)
            await until(lambda: not server.ready or (server.process and server.process.pid != first))
            # Nobody waits for the successor.
            between = await Engine.start(own_command(), "uti", starter=server.start)
            await until(lambda: server.ready and server.process and server.process.pid != first)
            after = await Engine.start(own_command(), "uti", starter=server.start)
            assert parent(after.pid) == server.process.pid
            await asyncio.gather(between.quit(), after.quit())

    run(scene)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            "import threading, time; threading.Thread(target=time.sleep, args=(600,), daemon=True).start()",
            "threads",
        ),
        ("import os; os.fork = lambda: os.open('/', os.O_RDWR)", "directory"),
        ("sys.exit('no fork server today')", "no fork server today"),
    ],
    ids=["threads", "no fork", "no server"],
)
def test_where_there_is_no_fork_an_engine_starts_in_the_ordinary_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, more: str, said: str
) -> None:
    program(tmp_path, monkeypatch, more)

    async def scene() -> None:
        async with forks() as server:
            engine = await Engine.start(own_command(), "uti", starter=server.start)
            assert parent(engine.pid) == os.getpid()
            await engine.quit()

    run(scene)
    assert said in caplog.text


def test_other_programs_are_not_forked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, monkeypatch, "")

    async def scene() -> None:
        async with forking() as start:
            for words in (["true"], [sys.executable, "-c", ""]):
                process = await start(words, Listener())
                assert parent_or_gone(process.pid) in (os.getpid(), 0)
                assert await process.wait(PROMPTLY) == Exit(0)
        async with forking(False) as start:
            assert start == Process.start

    run(scene)


def parent_or_gone(pid: int) -> int:
    with contextlib.suppress(OSError):
        return parent(pid)
    return 0


def test_whoever_is_killed_leaves_neither_server_nor_forks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = """
import asyncio, os, signal, sys
from hnefi.protocol import fork_client
from hnefi.protocol.client import Engine, own_command
fork_client.SERVER = sys.executable, sys.argv[1]
async def main():
    async with fork_client.forking() as start:
        engines = [await Engine.start(own_command(), "uti", starter=start) for _ in range(3)]
        # The end of input alone would not end them now.
        for engine in engines:
            os.kill(engine.pid, signal.SIGSTOP)
        print(*(engine.pid for engine in engines), flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""
    program(tmp_path, monkeypatch, "")
    mark = f"forks-{os.getpid()}"
    with subprocess.Popen(
        [sys.executable, "-c", owner, str(tmp_path / "server.py")],
        stdout=subprocess.PIPE,
        env={**os.environ, MARK: mark},
    ) as process:
        assert process.stdout is not None
        assert len(process.stdout.readline().split()) == 3
        process.kill()
    expect_nobody(mark)


def test_a_fork_without_a_group_of_its_own_is_ended_as_well() -> None:
    """Its client goes between the fork and its first step; it waited for ever, and so did whoever read its output."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with (
        ours,
        subprocess.Popen([sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE) as child,
    ):
        server = ForkServer(ours, (0, 0))
        with server.waiting:
            fork = Fork(child.pid, ours)
            server.waiting.register(ours, selectors.EVENT_READ)
            theirs.close()
            server._released(fork)
            try:
                assert child.wait(PROMPTLY) == -signal.SIGKILL
            finally:
                child.kill()
                os.close(fork.handle)
