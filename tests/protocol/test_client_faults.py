"""The client with engines that do not start, that fail, flood or stay behind: every wait ends, nothing is left."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from client_parts import FAKE, PATIENT, Clock, alive, run, with_engine
from patience import PROMPTLY

from hnefi.protocol import orphans
from hnefi.protocol import process as process_module
from hnefi.protocol.client import (
    Engine,
    EngineCrashed,
    EngineDisconnected,
    EngineStartError,
    EngineTimeout,
    Limits,
    Search,
)

pytestmark = pytest.mark.process

# Engines that cannot be started


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["/no/such/engine"], "cannot start /no/such/engine: No such file"),
        ([__file__], "Permission denied"),
        (
            [sys.executable, "-c", "import sys; sys.exit('no licence')"],
            "exit status 1; its last words: no licence",
        ),
        (
            [sys.executable, "-c", "import sys; sys.exit('no board\\n`bot --help` tells more')"],
            "exit status 1; its last words: no board",
        ),
    ],
)
def test_what_cannot_be_started(command: list[str], message: str) -> None:
    async def work() -> None:
        with pytest.raises(EngineStartError, match=message):
            await Engine.start(command, timeouts=PATIENT)

    run(work())


@pytest.mark.parametrize("command", [[*FAKE, "no-greeting"], ["cat"]], ids=["silent", "cat"])
def test_what_does_not_greet(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)

    async def work() -> None:
        message = "did not greet: expected utiok or uciok or ugiok within 60 s"
        with pytest.raises(EngineStartError, match=message):
            await Engine.start(command, timeouts=PATIENT, on_traffic=lambda *_: clock.leap(PATIENT.start / 2))

    run(work(), 1000 * PATIENT.start)


def test_a_folder_that_is_not_there() -> None:
    async def work() -> None:
        with pytest.raises(EngineStartError, match="No such file"):
            await Engine.start(FAKE, cwd="/no/such/folder")

    run(work())


def test_wrong_calls() -> None:
    async def work() -> None:
        with pytest.raises(ValueError, match="expected auto, uti, uci, ugi"):
            await Engine.start(FAKE, "xboard")
        with pytest.raises(ValueError, match="empty"):
            await Engine.start([])
        async with await Engine.start(FAKE, timeouts=PATIENT) as engine:
            with pytest.raises(ValueError, match="more than one line"):
                await engine.ask("echo x\nquit")
            await engine.is_ready()

    run(work())


# Engines that fail


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("exit", "Fake 1.0 has ended: exit status 3"),
        ("segv", "killed by SIGSEGV"),
        ("grandchild", "exit status 4"),
    ],
)
def test_a_crash_is_seen_at_once(fault: str, message: str) -> None:
    async def work(engine: Engine) -> None:
        began = time.monotonic()
        search = await engine.go(Limits(nodes=1))
        with pytest.raises(EngineCrashed, match=message):
            await search
        assert time.monotonic() - began < PROMPTLY
        with pytest.raises(EngineCrashed, match=message):
            await engine.is_ready()

    with_engine(work, fault)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_grandchildren_end_with_the_engine() -> None:
    async def work(engine: Engine) -> None:
        with pytest.raises(EngineCrashed):
            await (await engine.go(Limits(nodes=1)))
        until = time.monotonic() + PROMPTLY
        while time.monotonic() < until:
            if not group(engine.pid):
                return
            await asyncio.sleep(0.01)
        raise AssertionError("the group lives on")

    with_engine(work, "grandchild")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans to us")
def test_who_leaves_the_group_ends_with_the_engine() -> None:
    async def work(engine: Engine) -> None:
        with pytest.raises(EngineCrashed, match="exit status 5"):
            await (await engine.go(Limits(nodes=1)))
        said = [line.split()[-1] for _, _, line in engine.transcript if b"escaped" in line]
        assert len(said) == 3
        assert not any(alive(int(pid)) for pid in said)

    with orphans.adopting():
        with_engine(work, "escape")


LEAVER = """
import os, subprocess, sys, time
more = int(sys.argv[1]) - 1
print(os.getpid(), flush=True)
if more:
    subprocess.Popen([*sys.orig_argv[:-1], str(more)], start_new_session=True)
held = bytearray(more * 100_000_000)  # whose memory the system has to take back first is dead later
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans to us")
def test_who_leaves_the_group_ends_with_us() -> None:
    """Also if we end in the next moment and wait for nothing: their parents must be dead before they are ours."""

    class Heard(process_module.Listener):
        def on_line(self, line: bytes, stamp: float) -> None:  # noqa: ARG002
            pids.append(int(line))
            if len(pids) == 3:
                there.set()

    async def work() -> None:
        await process_module.Process.start([sys.executable, "-I", "-S", "-c", LEAVER, "3"], Heard())
        await there.wait()
        process_module.kill_groups()
        assert not any(running(pid) for pid in pids)
        process_module.kill_all()

    pids: list[int] = []
    there = asyncio.Event()
    with orphans.adopting():
        run(work())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans to us")
def test_only_what_descends_from_engines_is_taken_for_theirs() -> None:
    """Also if we ourselves descend from an engine, and are the parent of others."""

    async def work() -> None:
        ours = subprocess.Popen(["sleep", "600"], start_new_session=True)
        try:
            one = await Engine.start(FAKE, timeouts=PATIENT)
            other = await Engine.start(FAKE, timeouts=PATIENT)
            await one.quit()
            await other.is_ready()
            process_module.kill_all()
            assert ours.poll() is None
        finally:
            ours.kill()
            ours.wait()

    with orphans.adopting():
        run(work())
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv(orphans.MARK, "/1.1")
            run(work())


def test_an_answer_before_the_end_counts() -> None:
    async def work(engine: Engine) -> None:
        assert (await (await engine.go(Limits(nodes=1)))).move == "a1a2"
        with pytest.raises(EngineCrashed, match="exit status 0"):
            await engine.is_ready()

    with_engine(work, "exit-after-answer")


def test_a_closed_output_is_a_disconnection() -> None:
    async def work(engine: Engine) -> None:
        with pytest.raises(EngineDisconnected, match="closed its standard output"):
            await (await engine.go(Limits(nodes=1)))

    with_engine(work, "close-stdout", "no-quit", "no-term")


@pytest.mark.parametrize("fault", ["hang", "sigstop", "endless"])
def test_silence_ends_at_the_deadline(fault: str) -> None:
    async def work(engine: Engine) -> None:
        began = time.monotonic()
        search = await engine.go(Limits(nodes=1), timeout=0.3)
        with pytest.raises(EngineTimeout, match=r"expected bestmove within 0\.3 s"):
            await search
        assert time.monotonic() - began < PROMPTLY

    with_engine(work, fault, "no-term")


def test_no_answer_to_isready() -> None:
    async def work(engine: Engine) -> None:
        with pytest.raises(EngineTimeout, match=r"expected readyok within 0\.2 s"):
            await engine.is_ready(timeout=0.2)
        with pytest.raises(EngineTimeout):
            await engine.ask("echo x", timeout=0.2)

    with_engine(work, "no-ready")


def test_a_late_answer_answers_nothing_else() -> None:
    async def work(engine: Engine) -> None:
        with pytest.raises(EngineTimeout):
            await (await engine.go(Limits(nodes=1), timeout=0.1))
        await engine.send("now")
        await engine.is_ready()
        assert engine.stray_answers == 1
        search = await engine.go(Limits(nodes=2))
        await engine.send("now")
        assert (await search).move == "a1a2"

    assert with_engine(work, "late").stray_answers == 1


def test_answers_that_nobody_asked_for() -> None:
    async def work(engine: Engine) -> None:
        await engine.is_ready()
        for _ in range(3):
            assert (await (await engine.go(Limits(nodes=1)))).move == "a1a2"
            await engine.is_ready()

    assert with_engine(work, "twice", "early").stray_answers == 4


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    return clock


def hold_up(engine: Engine, clock: Clock, seconds: float) -> None:
    """The loop stands still; meanwhile an answer comes, and it grows late."""
    readable, _, _ = select.select([engine._process._stdout], [], [], PROMPTLY)
    assert readable
    clock.leap(seconds)


def test_a_lying_timer_does_not_cost_the_game(clock: Clock) -> None:
    """The loop was held up beyond the deadline, the answer lay in the pipe: it counts, and is marked."""

    async def work(engine: Engine) -> None:
        search = await engine.go(Limits(nodes=1), timeout=60.0)
        await asyncio.sleep(0)
        hold_up(engine, clock, 100.0)
        answer = await search
        assert answer.move == "a1a2"
        assert 40.0 <= answer.lateness < 40.0 + PROMPTLY

    with_engine(work, seconds=600.0)


def test_a_lying_timer_does_not_make_an_engine_unready(clock: Clock) -> None:
    """As with an answer: the loop was held up, `readyok` lay in the pipe."""

    async def work(engine: Engine) -> None:
        waiting = asyncio.ensure_future(engine.is_ready(timeout=60.0))
        await asyncio.sleep(0)
        hold_up(engine, clock, 100.0)
        await waiting

    with_engine(work, seconds=600.0)


def test_it_stops_reading() -> None:
    async def work(engine: Engine) -> None:
        search = await engine.go(Limits(nodes=1))
        began = time.monotonic()

        async def talk() -> None:
            for _ in range(100):
                await engine.send("echo " + "x" * 50_000)

        with pytest.raises(EngineTimeout, match="reading of our commands"):
            await talk()
        assert time.monotonic() - began < PROMPTLY
        assert not search.done

    with_engine(work, "deaf", "no-term", timeouts=replace(PATIENT, write=0.5))


def test_a_flood_of_reports() -> None:
    async def work(engine: Engine) -> None:
        search = await engine.go(Limits(nodes=1))
        seen = [info async for info in search]
        answer = await search
        assert answer.move == "a1a2"
        assert len(answer.infos) == 3
        assert len(seen) < 300_000

    with_engine(work, "info-flood")


def test_a_flood_that_is_read_at_once_says_what_its_lines_say() -> None:
    lines = [b"info depth %d multipv %d score cp %d pv a1a2" % (d, d % 5 + 1, d) for d in range(1000)]
    lines += [
        b"info string and now",
        *(b"info nodes %d" % n for n in range(3000)),
        b"info multipv 2 currmove a1a2",
    ]
    lines += [b"readyok", b"info depth 9 multipv 3 score cp 7", b"bestmove a1a2"]

    async def heard(*, at_once: bool) -> tuple[object, ...]:
        engine = Engine(["nobody"], PATIENT)
        search = Search(engine)
        engine._searches.append(search)
        if at_once:
            engine.on_lines(lines, 1.0)
        else:
            for line in lines:
                engine.on_line(line, 1.0)
        engine.on_read()
        return search.result(), list(engine.transcript), search._fresh

    assert asyncio.run(heard(at_once=True)) == asyncio.run(heard(at_once=False))


def test_errors_long_lines_and_garbage() -> None:
    async def work(engine: Engine) -> None:
        answer = await (await engine.go(Limits(nodes=1)))
        assert answer.move == "a1a2"
        await engine.is_ready()
        tail = engine.error_tail()
        assert tail.endswith("the last words\n")
        assert len(tail) <= process_module.ERROR_TAIL
        assert engine.overlong_lines == 1

    with_engine(work, "stderr-flood", "long-line", "bytes")


def test_too_many_lines_are_dropped() -> None:
    async def work(engine: Engine) -> None:
        lines = await engine.ask("many 70000")
        assert len(lines) == 65_536

    with_engine(work)


def test_quit_is_ignored() -> None:
    async def work(engine: Engine) -> None:
        await engine.is_ready()

    engine = with_engine(work, "no-quit", "no-term")
    assert engine.exit is not None
    assert engine.exit.signal == signal.SIGKILL


def test_who_stops_waiting_for_the_end_of_an_engine_leaves_none() -> None:
    async def work(engine: Engine) -> None:
        await engine.is_ready()
        ending = asyncio.create_task(engine.quit(grace=1000.0))
        await asyncio.sleep(0)
        ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending
        assert engine.exit is not None

    engine = with_engine(work, "no-quit", "no-term")
    assert engine.exit is not None
    assert engine.exit.signal == signal.SIGKILL


def test_all_are_killed_at_once_even_while_they_greet() -> None:
    async def work() -> None:
        greeted = asyncio.Event()
        playing = await Engine.start(FAKE, timeouts=PATIENT)
        greeting = asyncio.ensure_future(
            Engine.start([*FAKE, "no-greeting"], timeouts=PATIENT, on_traffic=lambda *_: greeted.set())
        )
        await greeted.wait()
        pids = [child.pid for child in process_module._started if child.exit is None]
        assert len(pids) == 2
        process_module.kill_all()
        assert not any(map(alive, pids))
        with pytest.raises(EngineStartError, match="killed by SIGKILL"):
            await greeting
        assert isinstance(playing.failure, EngineCrashed)

    run(work())


def test_a_resignation_is_an_answer() -> None:
    async def work(engine: Engine) -> None:
        assert (await (await engine.go(Limits(nodes=1)))).move == "resign"

    with_engine(work, "resign")


def test_the_watching_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system cannot hand out descriptors for processes."""

    def refuse(*_: object) -> int:
        raise OSError("not here")

    monkeypatch.setattr(os, "pidfd_open", refuse, raising=False)

    async def work(engine: Engine) -> None:
        with pytest.raises(EngineCrashed, match="exit status 3"):
            await (await engine.go(Limits(nodes=1)))

    with_engine(work, "exit")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills a child with its parent")
def test_the_engine_dies_with_us() -> None:
    program = (
        "import asyncio, sys, time\n"
        "from hnefi.protocol.client import Engine, Limits\n"
        "async def main():\n"
        f"    engine = await Engine.start({[*FAKE, 'hang', 'no-term', 'no-quit']!r})\n"
        "    await engine.go(Limits(nodes=1))\n"
        "    print(engine.pid, flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert alive(pid)
        parent.kill()
    until = time.monotonic() + PROMPTLY
    while time.monotonic() < until:
        if not running(pid):
            return
        time.sleep(0.01)
    raise AssertionError("the engine outlived us")


@pytest.mark.skipif(sys.platform != "linux", reason="only there a launcher stands between")
def test_an_engine_begins_with_the_usual_signals() -> None:
    """Python ignores SIGPIPE, and whoever it starts would go on writing where nobody reads."""

    async def work() -> None:
        child = await process_module.Process.start(["sleep", "600"], process_module.Listener())
        try:
            text = Path(f"/proc/{child.pid}/status").read_text()
            ignored = int(text.partition("SigIgn:")[2].split()[0], 16)
            assert not ignored & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1))
        finally:
            child.kill()

    run(work())


def running(pid: int) -> bool:
    """Whether the process lives; a zombie, which waits for whoever inherited it, does not."""
    return (status(pid) or ["Z"])[0] != "Z"


def group(leader: int) -> list[int]:
    """The living processes of the group that `leader` founded."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if running(pid) and (status(pid) or ["", "", "0"])[2] == str(leader)]


def status(pid: int) -> list[str]:
    """State, parent, group ... of a process as Linux tells them; empty if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


@pytest.mark.parametrize("turns", range(4))
def test_a_cancellation_that_comes_with_the_end_is_not_lost(turns: int) -> None:
    """Python 3.11's `asyncio.wait_for` swallows one: a Ctrl-C was lost that way."""

    async def scenario() -> None:
        ended = process_module.Process.__new__(process_module.Process)
        ended._ended, ended.exit = asyncio.Event(), None
        waiting = asyncio.create_task(ended.wait(10))
        await asyncio.sleep(0.01)
        ended._ended.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        if waiting.cancel():
            with pytest.raises(asyncio.CancelledError):
                await waiting

    asyncio.run(scenario())
