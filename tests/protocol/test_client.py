"""The client with engines that behave, refuse or compile: questions, searches, options, and every wait ends."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from client_parts import FAKE, PATIENT, Clock, run, with_engine
from patience import PROMPTLY

from hnefi.engine.search.types import Score
from hnefi.protocol.answers import InfoLine
from hnefi.protocol.client import (
    Engine,
    EngineBusy,
    EngineCrashed,
    EngineError,
    EngineFault,
    EngineProtocolError,
    EngineTimeout,
    EngineUnready,
    Limits,
    Progress,
    Search,
    Timeouts,
)
from hnefi.protocol.waiting import greeting_wait

pytestmark = pytest.mark.process

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
        sent = len(engine.transcript)
        line = await engine.set_variant("brandubh", {"hash": 64, "Ponder": False})
        assert [data for _, arrow, data in list(engine.transcript)[sent:] if arrow == ">"] == [
            b"setoption name Hash value 64",
            b"setoption name Ponder value false",
            b"variant brandubh",
            b"isready",
        ]
        with pytest.raises(EngineProtocolError, match="no option 'Hsah'"):
            await engine.set_variant("brandubh", {"Hsah": 64})
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
        assert 0 < answer.seconds < PATIENT.move
        sent = [line for _, arrow, line in engine.transcript if arrow == ">"]
        assert sent[-2:] == [b"position startpos moves a1a2", b"go atime 100 nodes 5"]
        await engine.quit(grace=PATIENT.answer)

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
        async with await Engine.start([*FAKE, f"proto={proto}"], proto, timeouts=PATIENT) as engine:
            await (await engine.go(Limits(clock=(1, 2), inc=(3, 4), movestogo=9)))
            assert words in [line for _, _, line in engine.transcript]
            await engine.new_game()
            assert any(line == f"{proto}newgame".encode() for _, _, line in engine.transcript)
            assert await engine.set_variant("y", {"Hash": 64}) is None
            assert any(line == b"setoption name Hash value 64" for _, _, line in engine.transcript)
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

PART = PATIENT.ready / 2
"""Seconds of a `Clock` that each part takes: all of them more than anybody would wait, if the engine said nothing."""
AGES = 100 * PART


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time of this process, which a test lets pass."""
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    return clock


@pytest.mark.parametrize(
    "wait",
    [
        pytest.param(lambda engine: engine.is_ready(), id="isready"),
        pytest.param(lambda engine: engine.new_game(), id="newgame"),
        pytest.param(lambda engine: engine.set_variant("brandubh"), id="variant"),
        pytest.param(lambda engine: engine.ask("echo one"), id="ask"),
    ],
)
def test_who_compiles_and_says_so_is_waited_for(
    wait: Callable[[Engine], Awaitable[object]], clock: Clock
) -> None:
    async def work(engine: Engine) -> None:
        heard: list[Progress] = []
        engine.on_compiling = lambda progress: (heard.append(progress), clock.leap(PART))[0]
        assert engine.compiling is None
        answer = await wait(engine)
        assert heard == [Progress(n, 12, "the rules", float(n), float(12 - n)) for n in range(12)]
        assert engine.compiling is None
        if isinstance(answer, list):
            assert not [line for line in answer if "compiling" in line]

    with_engine(work, "compiles", seconds=AGES)


def test_who_asks_hears_of_it_from_the_start(clock: Clock) -> None:
    async def work() -> None:
        heard: list[tuple[Progress, Progress | None]] = []

        def hear(progress: Progress) -> None:
            heard.append((progress, engine.compiling))
            clock.leap(PART)

        engine = await Engine.start([*FAKE, "compiles"], timeouts=PATIENT, on_compiling=hear)
        async with engine:
            await engine.is_ready()
        assert len(heard) == 12
        assert all(progress == known for progress, known in heard)

    run(work(), AGES)


def test_a_search_that_must_compile_first_is_waited_for(clock: Clock) -> None:
    async def work(engine: Engine) -> None:
        engine.on_compiling = lambda _: clock.leap(PART)
        answer = await (await engine.go(Limits(movetime=1)))
        assert answer.move == "a1a2"
        assert answer.strings == ("info string thinking aloud",)

    with_engine(work, "compiles", seconds=AGES)


def test_the_clock_of_a_game_waits_for_no_compiler(clock: Clock) -> None:
    async def work(engine: Engine) -> None:
        engine.on_compiling = lambda _: clock.leap(PART)
        done = asyncio.Event()
        found: list[Search] = []
        engine.post("go movetime 1", 1.5 * PART, lambda search: (found.append(search), done.set()))
        await done.wait()
        with pytest.raises(EngineTimeout):
            found[0].result()
        engine.on_compiling = None

    with_engine(work, "compiles-on", seconds=AGES)


@pytest.mark.parametrize("limits", [Limits(movetime=1), None], ids=["go", "isready"])
def test_who_stops_saying_that_it_compiles_is_too_late(limits: Limits | None, clock: Clock) -> None:
    async def work(engine: Engine) -> None:
        engine.on_compiling = lambda progress: clock.leap(4 * PART if progress.done == 2 else 0)

        async def wait() -> object:
            return await (engine.is_ready() if limits is None else await engine.go(limits))

        with pytest.raises(EngineTimeout) as caught:
            await wait()
        what = "readyok within 60 s" if limits is None else "bestmove within 60.001 s"
        assert str(caught.value).startswith(f"Fake 1.0 did not answer: expected {what};")
        assert str(caught.value).endswith("; it last said that it compiles the rules (2/12)")

    with_engine(work, "compiler-dies", seconds=AGES)


def test_other_words_are_no_reason_to_wait() -> None:
    async def work(engine: Engine) -> None:
        for wait in (engine.is_ready, engine.new_game):
            with pytest.raises(EngineTimeout, match=r"expected readyok within 1 s$"):
                await wait()

    with_engine(work, "chatters", timeouts=replace(PATIENT, ready=1.0, new_game=1.0))


def test_compiling_has_an_end_too(clock: Clock) -> None:
    async def work(engine: Engine) -> None:
        engine.on_compiling = lambda _: clock.leap(PART)
        with pytest.raises(EngineTimeout, match="it last said that it compiles"):
            await engine.is_ready()
        engine.on_compiling = None

    with_engine(work, "compiles-on", timeouts=replace(PATIENT, compiling_whole=4 * PART), seconds=AGES)


def test_every_greeting_gets_its_share_of_the_time() -> None:
    """Of a short time, too: a correct engine of another protocol would fail."""
    assert [greeting_wait(60.0, 2), greeting_wait(58.0, 1), greeting_wait(56.0, 0)] == [2.0, 2.0, 56.0]
    assert [greeting_wait(1.5, 2), greeting_wait(1.0, 1), greeting_wait(0.5, 0)] == [0.5, 0.5, 0.5]


@pytest.mark.parametrize("proto", ["uci", "ugi"])
def test_auto_finds_the_greeting(proto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hnefi.protocol.waiting.GREETING_STEP", 0.2)

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
        async with await Engine.start(command, cwd=tmp_path, env={"LEVEL": "3"}, timeouts=PATIENT) as engine:
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

        async with await Engine.start(FAKE, "uti", timeouts=PATIENT, on_traffic=note) as engine:
            await engine.is_ready()

    run(work())
    assert seen[0] == (">", b"uti")
    assert seen[-3:] == [(">", b"isready"), ("<", b"readyok"), (">", b"quit")]


# Question upon answer

COUNTING = """
import sys
asked = 0
for line in sys.stdin:
    if line.startswith("uti"):
        print("utiok", flush=True)
    elif line.startswith("go"):
        asked += 1
        if "slow" in line:
            print("info string what now", flush=True)
            sys.stdin.readline()
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


def ask_counting(
    *questions: tuple[str, float], waiting: Callable[[Engine], object] = lambda _: None
) -> tuple[list[str], Engine]:
    """The answers to these; `waiting` is called when a slow one waits for a word."""

    async def work() -> None:
        async with await Engine.start([sys.executable, "-c", COUNTING], "uti", timeouts=PATIENT) as engine:
            engine.on_traffic = lambda _stamp, _arrow, line: waiting(engine) if b"what now" in line else None
            found.extend(await chain(engine, *questions))
            engines.append(engine)

    found: list[str] = []
    engines: list[Engine] = []
    run(work())
    return found, engines[0]


def test_what_was_read_with_an_answer_answers_no_later_question() -> None:
    found, engine = ask_counting(*[("go", 60.0)] * 20)
    assert found == [f"m{number} [{number}]" for number in range(1, 21)]
    assert engine.stray_answers == 20


def test_every_question_has_its_own_deadline(clock: Clock) -> None:
    """The answer to the second comes when the time of the first is over."""
    tasks = []

    def wait(engine: Engine) -> None:
        clock.leap(100)
        tasks.append(asyncio.ensure_future(engine.send("here")))

    began = clock()
    found, _ = ask_counting(("go", 60.0), ("go slow", 900.0), ("go silent", 0.2), waiting=wait)
    assert found[:2] == ["m1 [1]", "m2 [2]"]
    assert found[2:] == [
        f"EngineTimeout: {Path(sys.executable).name} did not answer: expected bestmove within 0.2 s"
    ]
    assert clock() - began < 100 + PROMPTLY


def test_a_question_that_is_not_read() -> None:
    async def work() -> None:
        program = "import time; input(); print('utiok', flush=True); time.sleep(600)"
        async with await Engine.start([sys.executable, "-c", program], "uti", timeouts=PATIENT) as engine:
            engine.hold("position " + "x" * 1_000_000)
            began = time.monotonic()
            (found,) = await chain(engine, ("go nodes 1", 0.3))
            assert "expected reading of our commands within 0.3 s" in found
            assert time.monotonic() - began < PROMPTLY

    run(work())


def test_a_question_to_an_engine_that_has_ended() -> None:
    async def work(engine: Engine) -> None:
        (found,) = await chain(engine, ("go nodes 1", 60.0))
        assert found.endswith("exit status 3")
        with pytest.raises(EngineCrashed, match="exit status 3"):
            engine.post("go nodes 1", 60.0, lambda _: None)

    with_engine(work, "exit")
