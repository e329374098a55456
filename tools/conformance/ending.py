"""The last steps of a check: odd lines, how the process ends, and how fast everything should be."""

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


# Odd lines


@step()
async def unknown_word(walk: EngineUnderTest) -> str:
    """Lines that nobody knows do no harm; after `uti` each gets one `info string unknown command: ...`."""
    talk = await walk.ready()
    for line in ("joho", "the quick brown fox", "isreadynot", "!$%&/()=?"):
        lines = await talk.ask(line)
        if walk.uti:
            demand(
                len(lines) == 1 and lines[0].startswith("info string unknown command: "),
                f"{line}: {shorten(lines)}",
            )
    return ""


@step("uti")
async def leading_words(walk: EngineUnderTest) -> str:
    """Unknown words before a command are skipped: `joho isready` is `isready`."""
    talk = await walk.ready()
    await talk.send("joho isready")
    await talk.until("readyok")
    return ""


@step()
async def blank_lines(walk: EngineUnderTest) -> str:
    """Empty lines, and after `uti` lines that begin with `#`, are silent."""
    talk = await walk.ready()
    lines = ["", "   ", "\t", "\t \t"]
    silent(await talk.ask(*lines, *(["# go infinite", "#isready"] if walk.uti else [])))
    return ""


@step(needs="go")
async def tabs(walk: EngineUnderTest) -> str:
    """Tabs and runs of blanks are one blank."""
    talk = await walk.ready()
    await talk.send("  position \t startpos  ", "\tgo\tdepth  1\t")
    await talk.until("bestmove")
    await talk.ask()
    return ""


@step()
async def line_ends(walk: EngineUnderTest) -> str:
    r"""Lines may end in `\r\n`."""
    talk = await walk.ready()
    await talk.send_bytes(b"position startpos\r\nisready\r\n")
    await talk.until("readyok")
    return ""


@step()
async def torn_lines(walk: EngineUnderTest) -> str:
    """A line may come in pieces: it is carried out when its end is there."""
    talk = await walk.ready()
    await talk.send_bytes(b"isre")
    early = await talk.during(0.05)
    demand(not early, f"`{early[0].text if early else ''}` after half a line")
    await talk.send_bytes(b"ady\n")
    await talk.until("readyok")
    return ""


@step()
async def bad_bytes(walk: EngineUnderTest) -> str:
    """Bytes that are not UTF-8, and control characters, do no harm."""
    talk = await walk.ready()
    for data in (b"\xff\xfe\xfd\n", b"position fen \xc3\x28 a\n", b"\0\0\0\n", b"joho\0joho\n\x1b[2J\n"):
        await talk.send_bytes(data)
        await unharmed(talk)
    return ""


@step()
async def long_lines(walk: EngineUnderTest) -> str:
    """Lines of 64 KiB and of 1 MiB do no harm."""
    talk = await walk.ready()
    for size in (65_535, 65_536, 65_537, 1 << 20):
        await talk.send_bytes(b"position startpos moves ".ljust(size, b"x") + b"\n")
        await unharmed(talk)
    return ""


@step()
async def garbage(walk: EngineUnderTest) -> str:
    """300 lines of shuffled words, some of them commands, do no harm."""
    dice = random.Random(1)
    talk = await walk.ready()
    for _ in range(6):
        lines = [" ".join(dice.choices(GARBAGE, k=dice.randrange(1, 7))) for _ in range(50)]
        await talk.send(*lines, "stop")
        await unharmed(talk)
    return ""


GARBAGE = (
    "position", "startpos", "fen", "moves", "isread", "stop", "ponderhit", "debug", "setoption", "name", "value",
    "a1a2", "-1", "99999999999999999999", "wtime", "depth", "7/7/7/7/7/7/7", "a", "…", "NaN", "(none)", "bestmove",
)  # fmt: skip


# The end


@step(needs="isready")
async def quit_idle(walk: EngineUnderTest) -> str:
    """`quit` ends the process with exit status 0 within {end} s."""
    return await goodbye(walk, "quit_idle")


@step(needs="go-infinite")
async def quit_search(walk: EngineUnderTest) -> str:
    """`quit` during a search ends the process with exit status 0 within {end} s."""
    return await goodbye(walk, "quit_search")


@step(needs="isready")
async def end_of_input(walk: EngineUnderTest) -> str:
    """The end of its input ends the process with exit status 0 within {end} s."""
    return await goodbye(walk, "end_of_input")


@step(needs="go-infinite")
async def end_of_input_search(walk: EngineUnderTest) -> str:
    """The end of its input during a search ends the process with exit status 0 within {end} s."""
    return await goodbye(walk, "end_of_input_search")


@step(needs="go-infinite")
async def closed_output(walk: EngineUnderTest) -> str:
    """When nobody can read its output any more, the process ends within {end} s of its next words."""
    talk = await walk.ready()
    await talk.send("go infinite")
    talk.hang_up()
    deadline = time.monotonic() + walk.patience.end
    while talk.exit is None and time.monotonic() < deadline:
        try:
            await talk.send("isready")
        except Failed:
            break
        await talk.ended(0.02)
    ending = talk.exit or await talk.ended(max(0.0, deadline - time.monotonic()))
    demand(ending is not None, f"it still runs after {walk.patience.end:g} s")
    errors = walk.errors
    await walk.drop()
    walk.errors = errors  # what it says there about its closed output is no fault
    return "" if ending is None else ending.text


@step("none")
async def no_orphans(walk: EngineUnderTest) -> str:
    """No process that the engine has started outlives it."""
    if walk.orphans is None:
        await goodbye(walk, "quit_idle")
        await walk.drop()
    if walk.orphans is None:
        raise Skipped("this system does not tell which processes belong together")
    demand(walk.orphans == 0, f"{walk.orphans} processes were left behind")
    return ""


# Targets


@step("none", "greeting")
async def greeting_time(walk: EngineUnderTest) -> str:
    """The ok word comes within 30 ms of the start of the process (best of all starts so far, of three at least): load
    what is heavy behind it."""
    while walk.starts < STARTS:
        await walk.drop()
        await walk.greeted()
    return within(walk.greeting_seconds, GREETING_TARGET)


@step("none")
async def isready_time(walk: EngineUnderTest) -> str:
    """The first `isready` behind the greeting is answered within 0.5 s (best of all starts so far)."""
    await walk.ready()
    return within(walk.ready_seconds, READY_TARGET)


@step("none", "isready-search")
async def isready_search_time(walk: EngineUnderTest) -> str:
    """During a search `isready` is answered within 2 ms (median of 21)."""
    talk = await walk.ready()
    await talk.send("go infinite")
    times = []
    for _ in range(21):
        await asyncio.sleep(0.005)
        sent = await talk.send("isready")
        times.append((await talk.until("readyok"))[-1].stamp - sent)
    await talk.send("stop")
    await talk.until("bestmove")
    return within(statistics.median(times), READY_IN_SEARCH_TARGET)


@step("none", "query", after=("uti", "ugi"))
async def query_time(walk: EngineUnderTest) -> str:
    """`query gameover` is answered within 5 ms (median of 21)."""
    talk = await walk.at(names(wander(walk.rules(), 6)))
    times = []
    for _ in range(21):
        sent = await talk.send("query gameover")
        times.append((await talk.until("response"))[-1].stamp - sent)
    return within(statistics.median(times), QUERY_TARGET)


@step("none", "stop")
async def stop_time(walk: EngineUnderTest) -> str:
    """From `stop` to `bestmove` it takes 5 ms (median of eleven)."""
    return within(statistics.median(await stop_times(walk, 11)), STOP_TARGET)


@step("none", "go-movetime")
async def movetime_kept(walk: EngineUnderTest) -> str:
    """`go movetime 100` is answered within 100 ms, or little more: 20 ms."""
    talk = await walk.ready()
    return in_time(await talk.go("go movetime 100"), 0.12)


@step("none")
async def end_time(walk: EngineUnderTest) -> str:
    """Each of these ends takes at most 100 ms."""
    for way in ("quit_idle", "quit_search", "end_of_input", "end_of_input_search"):
        if way not in walk.exits:
            await goodbye(walk, way)
    slowest = max(walk.exits, key=walk.exits.__getitem__)
    taken = walk.exits[slowest]
    if taken > END_TARGET:
        raise Slow(
            f"{slowest.replace('_', '-')} took {milliseconds(taken)}, more than {END_TARGET * 1000:g} ms"
        )
    return f"at most {milliseconds(taken)}"


@step("none", "greeting")
async def errors_quiet(walk: EngineUnderTest) -> str:
    """Nothing was written to standard error during the whole check."""
    await walk.drop()
    last = walk.errors.strip().splitlines()[-1:]
    demand(not last, f"its last words there: {shorten(''.join(last))}")
    return ""


async def unharmed(talk: Transport) -> None:
    """The engine answers `isready`, whatever else it says before."""
    await talk.ask()
    await talk.ask()


async def goodbye(walk: EngineUnderTest, way: str) -> str:
    """Ends the engine by `quit` or the end of its input, idle or searching, and measures how long that takes."""
    talk = await walk.ready()
    if way.endswith("search"):
        await talk.send("go infinite")
        await asyncio.sleep(0.05)
    began = time.monotonic()
    if way.startswith("quit"):
        await talk.send("quit")
    else:
        talk.close_input()
    ending = await talk.ended(walk.patience.end)
    demand(ending is not None, f"it still runs after {walk.patience.end:g} s")
    demand(ending is not None and ending.status == 0, "" if ending is None else ending.text)
    walk.exits[way] = talk.ended_at - began
    return f"after {milliseconds(walk.exits[way])}"
