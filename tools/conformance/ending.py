"""The last steps of a check: malformed lines, how the process ends, and response times."""

from __future__ import annotations

import asyncio
import random
import statistics
import time

from hnefi.engine.wording import shorten

from .engine_under_test import EngineUnderTest, names, wander
from .searching import stop_times
from .step import Slow, Step, demand, in_time, into, milliseconds, silent, within
from .transport import Failed, Skipped, Transport

GREETING_TARGET = 0.030
READY_TARGET = 0.5
READY_IN_SEARCH_TARGET = 0.002
STOP_TARGET = 0.005
QUERY_TARGET = 0.005
END_TARGET = 0.100
STARTS = 3

STEPS: list[Step] = []
step = into(STEPS)


# Malformed lines


@step()
async def unknown_word(engine: EngineUnderTest) -> str:
    """Unknown commands change nothing; after `uti` each gets one `info string unknown command: ...`."""
    transport = await engine.ready()
    for line in ("joho", "the quick brown fox", "isreadynot", "!$%&/()=?"):
        lines = await transport.ask(line)
        if engine.uti:
            demand(
                len(lines) == 1 and lines[0].startswith("info string unknown command: "),
                f"{line}: {shorten(lines)}",
            )
    return ""


@step("uti")
async def leading_words(engine: EngineUnderTest) -> str:
    """Unknown words before a command are skipped: `joho isready` is `isready`."""
    transport = await engine.ready()
    await transport.send("joho isready")
    await transport.until("readyok")
    return ""


@step()
async def blank_lines(engine: EngineUnderTest) -> str:
    """Empty lines are silent, and after `uti` so are lines that start with `#`."""
    transport = await engine.ready()
    lines = ["", "   ", "\t", "\t \t"]
    silent(await transport.ask(*lines, *(["# go infinite", "#isready"] if engine.uti else [])))
    return ""


@step(needs="go")
async def tabs(engine: EngineUnderTest) -> str:
    """Tabs and multiple spaces count as one space."""
    transport = await engine.ready()
    await transport.send("  position \t startpos  ", "\tgo\tdepth  1\t")
    await transport.until("bestmove")
    await transport.ask()
    return ""


@step()
async def line_ends(engine: EngineUnderTest) -> str:
    r"""Lines may end in `\r\n`."""
    transport = await engine.ready()
    await transport.send_bytes(b"position startpos\r\nisready\r\n")
    await transport.until("readyok")
    return ""


@step()
async def torn_lines(engine: EngineUnderTest) -> str:
    """A line may arrive in pieces; it is executed once it is complete."""
    transport = await engine.ready()
    await transport.send_bytes(b"isre")
    early = await transport.during(0.05)
    demand(not early, f"`{early[0].text if early else ''}` after half a line")
    await transport.send_bytes(b"ady\n")
    await transport.until("readyok")
    return ""


@step()
async def bad_bytes(engine: EngineUnderTest) -> str:
    """The engine survives bytes that are not UTF-8, and control characters."""
    transport = await engine.ready()
    for data in (b"\xff\xfe\xfd\n", b"position fen \xc3\x28 a\n", b"\0\0\0\n", b"joho\0joho\n\x1b[2J\n"):
        await transport.send_bytes(data)
        await unharmed(transport)
    return ""


@step()
async def long_lines(engine: EngineUnderTest) -> str:
    """The engine survives lines of 64 KiB and 1 MiB."""
    transport = await engine.ready()
    for size in (65_535, 65_536, 65_537, 1 << 20):
        await transport.send_bytes(b"position startpos moves ".ljust(size, b"x") + b"\n")
        await unharmed(transport)
    return ""


@step()
async def garbage(engine: EngineUnderTest) -> str:
    """The engine survives 300 lines of random words, some of them commands."""
    dice = random.Random(1)
    transport = await engine.ready()
    for _ in range(6):
        lines = [" ".join(dice.choices(GARBAGE, k=dice.randrange(1, 7))) for _ in range(50)]
        await transport.send(*lines, "stop")
        await unharmed(transport)
    return ""


GARBAGE = (
    "position", "startpos", "fen", "moves", "isread", "stop", "ponderhit", "debug", "setoption", "name", "value",
    "a1a2", "-1", "99999999999999999999", "wtime", "depth", "7/7/7/7/7/7/7", "a", "…", "NaN", "(none)", "bestmove",
)  # fmt: skip


# The end


@step(needs="isready")
async def quit_idle(engine: EngineUnderTest) -> str:
    """`quit` ends the process with exit status 0 within {end} s."""
    return await goodbye(engine, "quit_idle")


@step(needs="go-infinite")
async def quit_search(engine: EngineUnderTest) -> str:
    """`quit` during a search ends the process with exit status 0 within {end} s."""
    return await goodbye(engine, "quit_search")


@step(needs="isready")
async def end_of_input(engine: EngineUnderTest) -> str:
    """End of input ends the process with exit status 0 within {end} s."""
    return await goodbye(engine, "end_of_input")


@step(needs="go-infinite")
async def end_of_input_search(engine: EngineUnderTest) -> str:
    """End of input during a search ends the process with exit status 0 within {end} s."""
    return await goodbye(engine, "end_of_input_search")


@step(needs="go-infinite")
async def closed_output(engine: EngineUnderTest) -> str:
    """After its output is closed, the process ends within {end} s of its next write."""
    transport = await engine.ready()
    await transport.send("go infinite")
    transport.hang_up()
    deadline = time.monotonic() + engine.patience.end
    while transport.exit is None and time.monotonic() < deadline:
        try:
            await transport.send("isready")
        except Failed:
            break
        await transport.ended(0.02)
    ending = transport.exit or await transport.ended(max(0.0, deadline - time.monotonic()))
    demand(ending is not None, f"still running after {engine.patience.end:g} s")
    errors = engine.errors
    await engine.drop()
    engine.errors = errors  # complaints about the closed output do not count
    return "" if ending is None else ending.text


@step("none")
async def no_orphans(engine: EngineUnderTest) -> str:
    """No process started by the engine outlives it."""
    if engine.orphans is None:
        await goodbye(engine, "quit_idle")
        await engine.drop()
    if engine.orphans is None:
        raise Skipped("this system does not report process groups")
    demand(engine.orphans == 0, f"{engine.orphans} processes were left behind")
    return ""


# Targets


@step("none", "greeting")
async def greeting_time(engine: EngineUnderTest) -> str:
    """The ok word comes within 30 ms of the start of the process (best of at least three starts): load heavy parts
    after it."""
    while engine.starts < STARTS:
        await engine.drop()
        await engine.greeted()
    return within(engine.greeting_seconds, GREETING_TARGET)


@step("none")
async def isready_time(engine: EngineUnderTest) -> str:
    """The first `isready` after the greeting is answered within 0.5 s (best of all starts so far)."""
    await engine.ready()
    return within(engine.ready_seconds, READY_TARGET)


@step("none", "isready-search")
async def isready_search_time(engine: EngineUnderTest) -> str:
    """During a search, `isready` is answered within 2 ms (median of 21)."""
    transport = await engine.ready()
    await transport.send("go infinite")
    times = []
    for _ in range(21):
        await asyncio.sleep(0.005)
        sent = await transport.send("isready")
        times.append((await transport.until("readyok"))[-1].stamp - sent)
    await transport.send("stop")
    await transport.until("bestmove")
    return within(statistics.median(times), READY_IN_SEARCH_TARGET)


@step("none", "query", after=("uti", "ugi"))
async def query_time(engine: EngineUnderTest) -> str:
    """`query gameover` is answered within 5 ms (median of 21)."""
    transport = await engine.at(names(wander(engine.rules(), 6)))
    times = []
    for _ in range(21):
        sent = await transport.send("query gameover")
        times.append((await transport.until("response"))[-1].stamp - sent)
    return within(statistics.median(times), QUERY_TARGET)


@step("none", "stop")
async def stop_time(engine: EngineUnderTest) -> str:
    """`bestmove` follows `stop` within 5 ms (median of 11)."""
    return within(statistics.median(await stop_times(engine, 11)), STOP_TARGET)


@step("none", "go-movetime")
async def movetime_kept(engine: EngineUnderTest) -> str:
    """`go movetime 100` is answered within 120 ms."""
    transport = await engine.ready()
    return in_time(await transport.go("go movetime 100"), 0.12)


@step("none")
async def end_time(engine: EngineUnderTest) -> str:
    """`quit` and end of input, idle or during a search, take at most 100 ms each."""
    for way in ("quit_idle", "quit_search", "end_of_input", "end_of_input_search"):
        if way not in engine.exits:
            await goodbye(engine, way)
    slowest = max(engine.exits, key=engine.exits.__getitem__)
    taken = engine.exits[slowest]
    if taken > END_TARGET:
        raise Slow(
            f"{slowest.replace('_', '-')} took {milliseconds(taken)}, more than {END_TARGET * 1000:g} ms"
        )
    return f"at most {milliseconds(taken)}"


@step("none", "greeting")
async def errors_quiet(engine: EngineUnderTest) -> str:
    """Nothing was written to standard error during the whole check."""
    await engine.drop()
    last = engine.errors.strip().splitlines()[-1:]
    demand(not last, f"its last line there: {shorten(''.join(last))}")
    return ""


async def unharmed(transport: Transport) -> None:
    """Failed unless the engine still answers `isready`."""
    await transport.ask()
    await transport.ask()


async def goodbye(engine: EngineUnderTest, way: str) -> str:
    """End the engine by `quit` or end of input, idle or searching, and measure how long that takes."""
    transport = await engine.ready()
    if way.endswith("search"):
        await transport.send("go infinite")
        await asyncio.sleep(0.05)
    began = time.monotonic()
    if way.startswith("quit"):
        await transport.send("quit")
    else:
        transport.close_input()
    ending = await transport.ended(engine.patience.end)
    demand(ending is not None, f"still running after {engine.patience.end:g} s")
    demand(ending is not None and ending.status == 0, "" if ending is None else ending.text)
    engine.exits[way] = transport.ended_at - began
    return f"after {milliseconds(engine.exits[way])}"
