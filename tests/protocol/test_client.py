"""The client against engines that behave and engines that do not: every wait ends, nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from patience import PROMPTLY

from hnefi.engine.search.types import Score
from hnefi.protocol import orphans
from hnefi.protocol import process as process_module
from hnefi.protocol.answers import InfoLine
from hnefi.protocol.client import (
    Engine,
    EngineBusy,
    EngineCrashed,
    EngineDisconnected,
    EngineError,
    EngineFault,
    EngineProtocolError,
    EngineStartError,
    EngineTimeout,
    EngineUnready,
    Limits,
    Progress,
    Search,
    Timeouts,
)

pytestmark = pytest.mark.process

FAKE = [sys.executable, "-I", "-S", str(Path(__file__).parents[1] / "support" / "fake_engine.py")]
QUICK = Timeouts(start=5.0, ready=5.0, new_game=5.0, answer=5.0, move=5.0, stop=1.0, write=0.5)


def run(work: Coroutine[Any, Any, None], seconds: float = 30.0) -> None:
    asyncio.run(asyncio.wait_for(work, seconds))


def with_engine(
    work: Callable[[Engine], Awaitable[None]], *faults: str, timeouts: Timeouts = QUICK, seconds: float = 30.0
) -> Engine:
    """Start the fake engine with `faults`, do `work`, wind it up in time, and see that its process is gone."""
    engines = []

    async def play() -> None:
        engine = await Engine.start([*FAKE, *faults], timeouts=timeouts)
        engines.append(engine)
        try:
            await work(engine)
        finally:
            began = time.monotonic()
            await engine.quit()
            assert time.monotonic() - began < PROMPTLY
        assert not alive(engine.pid)

    run(play(), seconds)
    return engines[0]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# An engine that behaves


def test_a_conversation() -> None:
    async def work(engine: Engine) -> None:
        assert (engine.name, engine.author, engine.proto) == ("Fake 1.0", "nobody at all", "uti")
        assert engine.options["style"].values == ("calm", "wild goose")
        await engine.is_ready()
        await engine.new_game()
        await engine.set_option("hash", 32)
        await engine.set_option("Ponder", True)
        await engine.set_option("Style", "WILD GOOSE")
        await engine.set_option("Clear")
        line = await engine.set_variant("brandubh")
        assert line is not None
        assert (line.name, line.files, line.first, line.startpos) == (
            "brandubh",
            7,
            "a",
            "7/7 a 0 1",
        )
        assert await engine.ask("echo one|two words||three") == ["one", "two words", "three"]
        engine.position(moves=["a1a2"])
        answer = await (await engine.go(Limits(nodes=5, clock=(100, None))))
        assert (answer.move, answer.ponder) == ("a1a2", "a2a1")
        assert answer.info == InfoLine(
            depth=2, seldepth=3, score=Score(mate=-2), wdl=(0, 0, 1000), nodes=40, time=2, pv=("a1a2",)
        )
        assert answer.strings == ("info string thinking aloud",)
        assert 0 < answer.seconds < 5
        sent = [line for _, arrow, line in engine.transcript if arrow == ">"]
        assert sent[-2:] == [b"position startpos moves a1a2", b"go atime 100 nodes 5"]

    engine = with_engine(work)
    assert engine.exit is not None
    assert engine.exit.status == 0
    assert engine.stray_answers == 0


@pytest.mark.parametrize(
    ("proto", "words"),
    [
        ("uci", b"go wtime 1 btime 2 winc 3 binc 4 movestogo 9"),
        ("ugi", b"go p1time 1 p2time 2 p1inc 3 p2inc 4 movestogo 9"),
    ],
)
def test_clock_words_follow_the_greeting(proto: str, words: bytes) -> None:
    async def work() -> None:
        async with await Engine.start([*FAKE, f"proto={proto}"], proto, timeouts=QUICK) as engine:
            await (await engine.go(Limits(clock=(1, 2), inc=(3, 4), movestogo=9)))
            assert words in [line for _, _, line in engine.transcript]
            await engine.new_game()
            assert any(line == f"{proto}newgame".encode() for _, _, line in engine.transcript)
            assert await engine.set_variant("y") is None
            assert any(line == b"setoption name UCI_Variant value y" for _, _, line in engine.transcript)

    run(work())


# An engine that cannot


def test_a_search_that_failed_is_no_answer() -> None:
    async def work(engine: Engine) -> None:
        for _ in range(2):
            search = await engine.go(Limits(movetime=1))
            with pytest.raises(
                EngineFault, match=r"^Fake 1.0 cannot search: OSError no memory: this is a fault"
            ):
                await search
        assert engine.stray_answers == 0
        await engine.is_ready()

    with_engine(work, "no-search")


def test_who_cannot_work_is_not_waited_for() -> None:
    async def work(engine: Engine) -> None:
        for wait in (engine.is_ready, engine.new_game, lambda: engine.set_variant("brandubh")):
            with pytest.raises(
                EngineUnready, match=r"Fake 1.0 cannot work: EOFError Ran out of input: this is"
            ):
                await wait()

    with_engine(work, "unready", timeouts=Timeouts())


# An engine that compiles

HASTY = Timeouts(start=60.0, ready=2.0, new_game=2.0, answer=2.0, move=2.0, stop=2.0, compiling=60.0)
"""Too short for an engine that compiles for two and a half seconds, if it did not say so."""


@pytest.mark.parametrize(
    "wait",
    [
        pytest.param(lambda engine: engine.is_ready(), id="isready"),
        pytest.param(lambda engine: engine.new_game(), id="newgame"),
        pytest.param(lambda engine: engine.set_variant("brandubh"), id="variant"),
        pytest.param(lambda engine: engine.ask("echo one"), id="ask"),
    ],
)
def test_who_compiles_and_says_so_is_waited_for(wait: Callable[[Engine], Awaitable[object]]) -> None:
    async def work(engine: Engine) -> None:
        heard: list[Progress] = []
        engine.on_compiling = heard.append
        assert engine.compiling is None
        answer = await wait(engine)
        assert heard == [Progress(n, 12, "the rules", float(n), float(12 - n)) for n in range(12)]
        assert engine.compiling is None
        if isinstance(answer, list):
            assert not [line for line in answer if "compiling" in line]

    with_engine(work, "compiles", timeouts=HASTY)


def test_who_asks_hears_of_it_from_the_start() -> None:
    async def work() -> None:
        heard: list[tuple[Progress, Progress | None]] = []

        def hear(progress: Progress) -> None:
            heard.append((progress, engine.compiling))

        engine = await Engine.start([*FAKE, "compiles"], timeouts=HASTY, on_compiling=hear)
        async with engine:
            await engine.is_ready()
        assert len(heard) == 12
        assert all(progress == known for progress, known in heard)

    run(work())


def test_a_search_that_must_compile_first_is_waited_for() -> None:
    async def work(engine: Engine) -> None:
        answer = await (await engine.go(Limits(movetime=1)))
        assert answer.move == "a1a2"
        assert answer.strings == ("info string thinking aloud",)
        # The clock of a game waits for nobody.
        done = asyncio.Event()
        found: list[Search] = []
        engine.post("go movetime 1", 1.0, lambda search: (found.append(search), done.set()))
        await done.wait()
        with pytest.raises(EngineTimeout):
            found[0].result()

    with_engine(work, "compiles", timeouts=HASTY)


@pytest.mark.parametrize("limits", [Limits(movetime=1), None], ids=["go", "isready"])
def test_who_stops_saying_that_it_compiles_is_too_late(limits: Limits | None) -> None:
    async def work(engine: Engine) -> None:
        async def wait() -> object:
            return await (engine.is_ready() if limits is None else await engine.go(limits))

        with pytest.raises(EngineTimeout) as caught:
            await wait()
        what = "readyok within 2 s" if limits is None else "bestmove within 2.001 s"
        assert str(caught.value).startswith(f"Fake 1.0 did not answer: expected {what};")
        assert str(caught.value).endswith("; it last said that it compiles the rules (2/12)")

    with_engine(work, "compiler-dies", timeouts=replace(HASTY, compiling=1.0))


def test_other_words_are_no_reason_to_wait() -> None:
    async def work(engine: Engine) -> None:
        for wait in (engine.is_ready, engine.new_game):
            with pytest.raises(EngineTimeout, match=r"expected readyok within 1 s$"):
                await wait()

    with_engine(work, "chatters", timeouts=replace(HASTY, ready=1.0, new_game=1.0))


def test_compiling_has_an_end_too() -> None:
    async def work(engine: Engine) -> None:
        with pytest.raises(EngineTimeout, match="it last said that it compiles"):
            await engine.is_ready()

    with_engine(work, "compiles", timeouts=replace(HASTY, ready=1.0, compiling_whole=0.5))


@pytest.mark.parametrize("proto", ["uci", "ugi"])
def test_auto_finds_the_greeting(proto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hnefi.protocol.client.GREETING_STEP", 0.2)

    async def work(engine: Engine) -> None:
        assert engine.proto == proto

    with_engine(work, f"proto={proto}")


def test_reports_stream_while_it_searches() -> None:
    async def work(engine: Engine) -> None:
        search = await engine.go(Limits(infinite=True))
        depths = []
        async for info in search:
            depths.append(info.depth)
            await engine.is_ready()
            assert await engine.ask("echo still here") == ["still here"]
            assert engine.searching
            with pytest.raises(EngineBusy, match="stop it before go"):
                await engine.go(Limits(nodes=1))
            with pytest.raises(EngineBusy):
                await engine.set_option("Hash", 1)
            await engine.send("stop")
        assert depths == [1]
        assert (await search).move == "b1b2"
        assert await engine.stop() is None

    with_engine(work)


def test_stop_and_ponderhit() -> None:
    async def work(engine: Engine) -> None:
        search = await engine.go(Limits(ponder=True))
        await search.ponderhit()
        assert (await search).move == "b1b2"
        search = await engine.go(Limits(infinite=True))
        answer = await engine.stop()
        assert answer is not None
        assert answer.move == "b1b2"
        assert (await search) is answer
        assert not engine.searching

    with_engine(work)


def test_an_abandoned_answer_is_dropped() -> None:
    async def work(engine: Engine) -> None:
        first = await engine.go(Limits(infinite=True))
        await first.abandon()
        second = await engine.go(Limits(nodes=1))
        assert (await second).move == "a1a2"
        with pytest.raises(EngineError, match="nobody wants"):
            await first

    assert with_engine(work).stray_answers == 1


def test_environment_and_folder(tmp_path: Path) -> None:
    async def work() -> None:
        command = [*FAKE]
        async with await Engine.start(command, cwd=tmp_path, env={"LEVEL": "3"}, timeouts=QUICK) as engine:
            assert await engine.ask("environment LEVEL") == ["LEVEL=3", f"cwd={tmp_path}"]

    run(work())


def test_options_are_checked_before_they_are_sent() -> None:
    async def work(engine: Engine) -> None:
        for name, value, message in [
            ("Hash", 65, "expected a whole number from 1 to 64"),
            ("Hash", "many", "expected a whole number"),
            ("Hash", None, "expected a value"),
            ("Ponder", "yes", "expected true or false"),
            ("Style", "rude", "expected one of calm, wild goose"),
            ("Clear", "1", "a button takes no value"),
            ("Hahs", 1, "has no option 'Hahs': did you mean Hash"),
        ]:
            with pytest.raises(EngineProtocolError, match=message):
                await engine.set_option(name, value)
        await engine.set_option("Late", -5)

    with_engine(work, "late-option")


def test_a_refusal_is_an_error() -> None:
    async def work(engine: Engine) -> None:
        with pytest.raises(EngineProtocolError, match="expected something else"):
            await engine.set_option("Hash", 2)

    with_engine(work, "refuse")


def test_traffic_is_shown() -> None:
    seen: list[tuple[str, bytes]] = []

    async def work() -> None:
        def note(_stamp: float, arrow: str, line: bytes) -> None:
            seen.append((arrow, line))

        async with await Engine.start(FAKE, "uti", timeouts=QUICK, on_traffic=note) as engine:
            await engine.is_ready()

    run(work())
    assert seen[0] == (">", b"uti")
    assert seen[-3:] == [(">", b"isready"), ("<", b"readyok"), (">", b"quit")]


# Question upon answer

COUNTING = """
import sys, time
asked = 0
for line in sys.stdin:
    if line.startswith("uti"):
        print("utiok", flush=True)
    elif line.startswith("go"):
        asked += 1
        if "slow" in line:
            time.sleep(1.2)
        if "silent" not in line:
            sys.stdout.write(f"info depth {asked}\\nbestmove m{asked}\\ninfo depth 99\\nbestmove stray\\n")
            sys.stdout.flush()
"""


def chain(engine: Engine, *questions: tuple[str, float]) -> asyncio.Future[list[str]]:
    """Ask one after the other, each in the moment in which the last is answered; moves or complaints."""
    told: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()
    found: list[str] = []
    left = iter(questions)

    def ask(search: Search | None = None) -> None:
        if search is not None:
            try:
                answer = search.result()
                found.append(f"{answer.move} {[info.depth for info in answer.infos]}")
            except EngineError as error:
                found.append(f"{type(error).__name__}: {error}")
        line, timeout = next(left, ("", 0.0))
        if line:
            engine.post(line, timeout, ask)
        else:
            told.set_result(found)

    ask()
    return told


def ask_counting(*questions: tuple[str, float]) -> tuple[list[str], Engine]:
    async def work() -> None:
        async with await Engine.start([sys.executable, "-c", COUNTING], "uti", timeouts=QUICK) as engine:
            found.extend(await chain(engine, *questions))
            engines.append(engine)

    found: list[str] = []
    engines: list[Engine] = []
    run(work())
    return found, engines[0]


def test_what_was_read_with_an_answer_answers_no_later_question() -> None:
    found, engine = ask_counting(*[("go", 5.0)] * 20)
    assert found == [f"m{number} [{number}]" for number in range(1, 21)]
    assert engine.stray_answers == 20


def test_every_question_has_its_own_deadline() -> None:
    began = time.monotonic()
    found, _ = ask_counting(("go", 1.0), ("go slow", 5.0), ("go silent", 0.2))
    assert found[:2] == ["m1 [1]", "m2 [2]"]
    assert found[2:] == [
        f"EngineTimeout: {Path(sys.executable).name} did not answer: expected bestmove within 0.2 s"
    ]
    assert 1.4 <= time.monotonic() - began < PROMPTLY


def test_a_question_that_is_not_read() -> None:
    async def work() -> None:
        program = "import time; input(); print('utiok', flush=True); time.sleep(60)"
        async with await Engine.start([sys.executable, "-c", program], "uti", timeouts=QUICK) as engine:
            engine.hold("position " + "x" * 1_000_000)
            began = time.monotonic()
            (found,) = await chain(engine, ("go nodes 1", 0.3))
            assert "expected reading of our commands within 0.3 s" in found
            assert time.monotonic() - began < PROMPTLY

    run(work())


def test_a_question_to_an_engine_that_has_ended() -> None:
    async def work(engine: Engine) -> None:
        (found,) = await chain(engine, ("go nodes 1", 5.0))
        assert found.endswith("exit status 3")
        with pytest.raises(EngineCrashed, match="exit status 3"):
            engine.post("go nodes 1", 5.0, lambda _: None)

    with_engine(work, "exit-on-go")


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
        ([*FAKE, "no-greeting"], "did not greet: expected utiok or uciok or ugiok within 0.5 s"),
        (["cat"], "did not greet"),
    ],
)
def test_what_cannot_be_started(command: list[str], message: str) -> None:
    async def work() -> None:
        with pytest.raises(EngineStartError, match=message):
            await Engine.start(command, timeouts=Timeouts(start=0.5))

    run(work())


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
        async with await Engine.start(FAKE, timeouts=QUICK) as engine:
            with pytest.raises(ValueError, match="more than one line"):
                await engine.ask("echo x\nquit")
            await engine.is_ready()

    run(work())


# Engines that fail


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("exit-on-go", "Fake 1.0 has ended: exit status 3"),
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


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans to us")
def test_only_what_descends_from_engines_is_taken_for_theirs() -> None:
    """Also if we ourselves descend from an engine, and are the parent of others."""

    async def work() -> None:
        ours = subprocess.Popen(["sleep", "600"], start_new_session=True)
        try:
            one = await Engine.start(FAKE, timeouts=QUICK)
            other = await Engine.start(FAKE, timeouts=QUICK)
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


@pytest.mark.parametrize("fault", ["hang", "stopped", "endless"])
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
        until = time.monotonic() + PROMPTLY
        while not engine.stray_answers and time.monotonic() < until:
            await asyncio.sleep(0.01)
        assert engine.stray_answers == 1
        assert (await (await engine.go(Limits(nodes=2)))).move == "a1a2"

    assert with_engine(work, "late").stray_answers == 1


def test_answers_that_nobody_asked_for() -> None:
    async def work(engine: Engine) -> None:
        await engine.is_ready()
        for _ in range(3):
            assert (await (await engine.go(Limits(nodes=1)))).move == "a1a2"
            await engine.is_ready()

    assert with_engine(work, "twice", "early").stray_answers == 4


def test_a_lying_timer_does_not_cost_the_game() -> None:
    """The loop was held up beyond the deadline, the answer lay in the pipe: it counts, and is marked."""

    async def work(engine: Engine) -> None:
        search = await engine.go(Limits(nodes=1), timeout=0.2)
        await asyncio.sleep(0)
        time.sleep(0.5)
        select.select([engine._process._stdout], [], [], PROMPTLY)
        answer = await search
        assert answer.move == "a1a2"
        assert 0.2 < answer.lateness < PROMPTLY

    with_engine(work)


def test_it_stops_reading() -> None:
    async def work(engine: Engine) -> None:
        search = await engine.go(Limits(nodes=1), timeout=20)
        began = time.monotonic()

        async def talk() -> None:
            for _ in range(100):
                await engine.send("echo " + "x" * 50_000)

        with pytest.raises(EngineTimeout, match="reading of our commands"):
            await talk()
        assert time.monotonic() - began < PROMPTLY
        assert not search.done

    with_engine(work, "deaf", "no-term")


def test_a_flood_of_reports() -> None:
    async def work(engine: Engine) -> None:
        search = await engine.go(Limits(nodes=1))
        seen = [info async for info in search]
        answer = await search
        assert answer.move == "a1a2"
        assert len(answer.infos) == 3
        assert len(seen) < 300_000

    with_engine(work, "flood")


def test_a_flood_that_is_read_at_once_says_what_its_lines_say() -> None:
    lines = [b"info depth %d multipv %d score cp %d pv a1a2" % (d, d % 5 + 1, d) for d in range(1000)]
    lines += [
        b"info string and now",
        *(b"info nodes %d" % n for n in range(3000)),
        b"info multipv 2 currmove a1a2",
    ]
    lines += [b"readyok", b"info depth 9 multipv 3 score cp 7", b"bestmove a1a2"]

    async def heard(*, at_once: bool) -> tuple[object, ...]:
        engine = Engine(["nobody"], QUICK)
        search = Search(1, engine)
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

    with_engine(work, "errors", "long-line", "garbage-bytes")


def test_too_many_lines_are_dropped() -> None:
    async def work(engine: Engine) -> None:
        lines = await engine.ask("many 70000")
        assert len(lines) == 65_536
        assert engine.dropped_lines == 70_000 - 65_536

    with_engine(work)


def test_quit_is_ignored() -> None:
    async def work(engine: Engine) -> None:
        await engine.is_ready()

    engine = with_engine(work, "no-quit", "no-term")
    assert engine.exit is not None
    assert engine.exit.signal == signal.SIGKILL


def test_all_are_killed_at_once_even_while_they_greet() -> None:
    async def work() -> None:
        greeted = asyncio.Event()
        playing = await Engine.start(FAKE, timeouts=QUICK)
        greeting = asyncio.ensure_future(
            Engine.start([*FAKE, "no-greeting"], timeouts=QUICK, on_traffic=lambda *_: greeted.set())
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

    with_engine(work, "exit-on-go")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills a child with its parent")
def test_the_engine_dies_with_us() -> None:
    program = (
        "import asyncio, sys, time\n"
        "from hnefi.protocol.client import Engine, Limits\n"
        "async def main():\n"
        f"    engine = await Engine.start({[*FAKE, 'hang', 'no-term', 'no-quit']!r})\n"
        "    await engine.go(Limits(nodes=1))\n"
        "    print(engine.pid, flush=True)\n"
        "    await asyncio.sleep(60)\n"
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
        child = await process_module.Process.start(["sleep", "60"], process_module.Listener())
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
