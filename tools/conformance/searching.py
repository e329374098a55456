"""The steps of a check about searches: limits, reports, stopping."""

from __future__ import annotations

import asyncio
import random
import statistics

from hnefi.engine.search.types import Limits
from hnefi.engine.squares import move_name
from hnefi.protocol.answers import parse_info
from hnefi.protocol.format import CLOCK_WORDS, go_line
from hnefi.protocol.messages import integer

from .engine_under_test import EngineUnderTest, names, position_line, wander, wanders
from .step import (
    AT_ONCE,
    SILENCE,
    Step,
    demand,
    in_search,
    in_time,
    into,
    legal,
    milliseconds,
    move_of,
    outcome,
    parsed,
    refused,
    reports,
    silent,
)
from .transport import Skipped

INFO_RATE = 40
"""Reports in one second that still count as about 20."""
OVERSHOOT = 1.2
"""The largest ratio of searched to requested nodes that still counts as about the same."""

STEPS: list[Step] = []
step = into(STEPS)


# Limits


@step(needs="go")
async def go_depth(engine: EngineUnderTest) -> str:
    """`go depth 3` ends on its own."""
    transport = await engine.ready()
    found = await transport.go("go depth 3")
    return f"{move_of(found)} after {milliseconds(found.seconds)}"


@step(needs="go")
async def go_nodes(engine: EngineUnderTest) -> str:
    """`go nodes 1000` ends on its own."""
    transport = await engine.ready()
    found = await transport.go("go nodes 1000")
    return f"{move_of(found)} after {milliseconds(found.seconds)}"


@step("none", "go-nodes")
async def nodes_kept(engine: EngineUnderTest) -> str:
    """`go nodes 1000` reports at most a fifth more nodes than that."""
    transport = await engine.ready()
    counts = [info.nodes for info in reports(await transport.go("go nodes 1000")) if info.nodes is not None]
    demand(counts, "no report says nodes")
    demand(counts[-1] <= 1000 * OVERSHOOT, f"{counts[-1]} nodes")
    return f"{counts[-1]} nodes"


@step(needs="go")
async def go_movetime(engine: EngineUnderTest) -> str:
    """`go movetime 100` is answered at most a second late."""
    transport = await engine.ready()
    return in_time(await transport.go("go movetime 100"), 0.1 + AT_ONCE)


@step(needs="go")
async def go_clock(engine: EngineUnderTest) -> str:
    """With 1 s on both clocks, the move comes within that second."""
    return await on_clock(engine, (1000, 1000), inc=(10, 10))


@step(needs="go")
async def go_movestogo(engine: EngineUnderTest) -> str:
    """With 1 s for two moves, the first comes within that second."""
    return await on_clock(engine, (1000, 1000), movestogo=2)


@step(needs="go")
async def go_own_clock(engine: EngineUnderTest) -> str:
    """The clock may be given for the side to move only."""
    return await on_clock(engine, (500, None))


@step("uti", "go")
async def go_other_clock(engine: EngineUnderTest) -> str:
    """The clock may be given for the other side only; a move still comes."""
    return await on_clock(engine, (None, 500))


@step(needs="go")
async def go_tiny_clock(engine: EngineUnderTest) -> str:
    """With 1 ms on the clock, a move comes at once (within a second, to allow for a busy machine)."""
    return await on_clock(engine, (1, 1))


@step(needs="go")
async def go_zero_clock(engine: EngineUnderTest) -> str:
    """With nothing on the clock a move comes at once."""
    return await on_clock(engine, (0, 0))


@step(needs="go")
async def go_negative_clock(engine: EngineUnderTest) -> str:
    """With less than nothing on the clock a move comes at once."""
    return await on_clock(engine, (-1000, -1000))


@step(needs="go")
async def go_order(engine: EngineUnderTest) -> str:
    """The words of `go` may come in any order, and the first limit that is reached ends the search."""
    transport = await engine.ready()
    a, d, a_inc, d_inc = CLOCK_WORDS[engine.proto]
    pairs = [
        f"{a_inc} 10",
        "depth 2",
        f"{d} 60000",
        "nodes 5000",
        f"{d_inc} 10",
        f"{a} 60000",
        "movetime 5000",
    ]
    for order in (pairs, pairs[::-1], pairs[3:] + pairs[:3]):
        line = " ".join(["go", *order])
        await transport.go(line)
    return "three orders"


@step("uti", "go")
async def go_other_words(engine: EngineUnderTest) -> str:
    """The clock words of all greetings (`atime`, `wtime`, `p1time` ...) are understood."""
    transport = await engine.ready()
    for first, second, *_ in CLOCK_WORDS.values():
        in_time(await transport.go(f"go {first} 500 {second} 500"), 0.5)
    return ""


@step("uti", "go")
async def go_unknown_words(engine: EngineUnderTest) -> str:
    """Unknown words after `go` are skipped with an error line (after `uti`); the other words still apply."""
    transport = await engine.ready()
    found = await transport.go("go fast depth 2 colour blue")
    refused(engine, list(found.others), "go")
    return move_of(found)


@step("uti", "go")
async def go_bad_numbers(engine: EngineUnderTest) -> str:
    """Invalid numbers are skipped with an error line (after `uti`); the other limits still apply."""
    transport = await engine.ready()
    for words in (
        "depth two nodes 500",
        "nodes -5 depth 2",
        "depth 2 movetime",
        "depth 2 nodes 99999999999999999999999",
    ):
        found = await transport.go(f"go {words}")
        if words.startswith("depth two") or words.endswith("movetime"):
            refused(engine, list(found.others), "go")
    return ""


@step("uti", "go")
async def searchmoves(engine: EngineUnderTest) -> str:
    """`go searchmoves M` plays M."""
    transport = await engine.ready()
    for move in (engine.rules().legal_moves()[0], engine.rules().legal_moves()[-1]):
        name = move_name(move)
        found = await transport.go(f"go depth 2 searchmoves {name}")
        demand(found.best.move == name, f"bestmove {found.best.move} where only {name} was allowed")
    return name


@step("uti", "searchmoves")
async def searchmoves_illegal(engine: EngineUnderTest) -> str:
    """Illegal moves after `searchmoves` are skipped with an error line (after `uti`); if none remain, all count."""
    transport = await engine.ready()
    found = await transport.go("go searchmoves a1a1 depth 1")
    refused(engine, list(found.others), "searchmoves a1a1")
    legal(engine.rules(), found)
    return move_of(found)


# Reports


@step(needs="go")
async def info_numbers(engine: EngineUnderTest) -> str:
    """Numbers in `info` lines are integers; scores read `cp N` or `mate N`."""
    transport = await engine.ready()
    found = await transport.go("go depth 4")
    for line in found.infos:
        problem = unreadable(line)
        demand(not problem, f"{problem}: `{line}`")
    return f"{len(found.infos)} reports"


@step("uti", "go")
async def info_final(engine: EngineUnderTest) -> str:
    """At least one report with depth, score, nodes, time and pv comes before every `bestmove`."""
    transport = await engine.ready()
    for line in ("go depth 1", "go nodes 1", "go movetime 1"):
        infos = [info for info in reports(await transport.go(line)) if info.pv]
        demand(infos, f"no report with a pv before the answer to `{line}`")
        last = infos[-1]
        missing = [
            word
            for word, value in (
                ("depth", last.depth),
                ("score", last.score),
                ("nodes", last.nodes),
                ("time", last.time),
            )
            if value is None
        ]
        demand(not missing, f"no {', '.join(missing)} in the last report before the answer to `{line}`")
    return ""


@step("none", "go")
async def info_rate(engine: EngineUnderTest) -> str:
    """There are at most about 20 reports per second."""
    transport = await engine.ready()
    await transport.send("go infinite")
    lines = [heard.text for heard in await transport.during(1.0)]
    await transport.send("stop")
    await transport.until("bestmove")
    count = sum(parse_info(line) is not None for line in lines)
    demand(count <= INFO_RATE, f"{count} in one second")
    return f"{count} in one second"


@step(needs="go")
async def pv_legal(engine: EngineUnderTest) -> str:
    """Every move of every pv is legal by our rules, and none comes after the end of the game."""
    count = 0
    for position in (*wanders(engine.rules(), 0, 5), engine.winning()[0]):
        transport = await engine.at(names(position))
        for info in reports(await transport.go("go depth 4")):
            after = position
            for number, text in enumerate(info.pv, start=1):
                after = after.play(parsed(after, text, f"pv move {number}"))
            count += bool(info.pv)
    return f"{count} of them"


@step("none", "go")
async def pv_bestmove(engine: EngineUnderTest) -> str:
    """The last pv starts with the move in `bestmove`."""
    transport = await engine.ready()
    found = await transport.go("go depth 4")
    lines = [info.pv for info in reports(found) if info.pv and info.multipv == 1]
    demand(lines, "no pv was reported")
    demand(lines[-1][0] == found.best.move, f"bestmove {found.best.move} after pv {' '.join(lines[-1])}")
    return move_of(found)


@step("none", "go")
async def mate_in_one(engine: EngineUnderTest) -> str:
    """`go depth 3` plays an immediate win if there is one."""
    position, wins = engine.winning()
    transport = await engine.at(names(position))
    found = await transport.go("go depth 3")
    demand(found.best.move in wins, f"bestmove {found.best.move} where {' '.join(sorted(wins))} wins")
    return move_of(found)


@step("none", "mate-in-one")
async def mate_score(engine: EngineUnderTest) -> str:
    """An immediate win is reported as `score mate 1`: from the side to move's view, in the winner's own moves."""
    position, _ = engine.winning()
    transport = await engine.at(names(position))
    scores = [info.score for info in reports(await transport.go("go depth 3")) if info.score is not None]
    demand(scores, "no score was reported")
    demand(scores[-1].mate == 1, f"score {scores[-1]}")
    return ""


# Start and end of a search


@step(needs="go")
async def go_infinite(engine: EngineUnderTest) -> str:
    """`go infinite` sends no `bestmove` before `stop`, then exactly one."""
    transport = await engine.ready()
    sent = await transport.send("go infinite")
    await transport.no_bestmove("before stop", SILENCE)
    await transport.send("stop")
    found = await transport.answer(sent)
    await transport.no_bestmove("after the first one")
    return move_of(found)


@step("uti", "go")
async def go_bare(engine: EngineUnderTest) -> str:
    """`go` without limits means `go infinite`."""
    transport = await engine.ready()
    sent = await transport.send("go")
    await transport.no_bestmove("before stop", SILENCE)
    await transport.send("stop")
    return move_of(await transport.answer(sent))


@step(needs="go")
async def stop_idle(engine: EngineUnderTest) -> str:
    """`stop` is silent if no search is running."""
    transport = await engine.ready()
    silent(await transport.ask("stop", "stop"))
    return ""


@step(needs="go")
async def stop_at_once(engine: EngineUnderTest) -> str:
    """`go infinite` and `stop` in one write get one legal move."""
    transport = await engine.ready()
    for _ in range(5):
        sent = await transport.send("go infinite", "stop")
        found = await transport.answer(sent)
        await transport.no_bestmove("after the first one")
        if engine.variant is not None:
            legal(engine.rules(), found)
    return "five times"


@step(needs="go")
async def stop_crossing(engine: EngineUnderTest) -> str:
    """A `stop` that crosses a `bestmove` does nothing: every `go` has exactly one answer."""
    transport = await engine.ready()
    dice = random.Random(1)
    for _ in range(10):
        sent = await transport.send("go depth 2")
        await asyncio.sleep(dice.random() * 0.004)
        await transport.send("stop")
        await transport.answer(sent)
        await transport.no_bestmove("after the first one")
    return "ten times"


@step(needs="go-infinite")
async def stop(engine: EngineUnderTest) -> str:
    """`bestmove` follows `stop` within a second."""
    return f"median {milliseconds(statistics.median(await stop_times(engine, 3)))}"


@step("uti", "stop")
async def stop_and_on(engine: EngineUnderTest) -> str:
    """With `stop`, `position` and `go` in one write, the old search is answered first, then the new one."""
    position = wander(engine.rules(), 3)
    transport = await engine.ready()
    await transport.send("go infinite")
    await asyncio.sleep(0.05)
    sent = await transport.send("stop", position_line(names(position)), "go depth 1")
    legal(engine.rules(), await transport.answer(sent))
    legal(position, await transport.answer(sent))
    return ""


@step(needs="stop")
async def double_go(engine: EngineUnderTest) -> str:
    """A `go` during a search is rejected (after `uti` with an error line); one `stop` gives one `bestmove`."""
    if engine.uti:
        return await in_search(engine, "go infinite")
    transport = await engine.ready()
    await transport.send("go infinite", "go infinite")
    await asyncio.sleep(0.05)
    await transport.send("stop")
    await transport.until("bestmove")
    await transport.send("stop")
    answers = 1 + sum(heard.word == "bestmove" for heard in await transport.during(SILENCE))
    demand(answers <= 2, f"{answers} times bestmove")
    await transport.ask()
    return f"{answers} bestmove"


@step("uti", "stop")
async def position_search(engine: EngineUnderTest) -> str:
    """During a search, `position` is rejected with an error line (after `uti`), and the search continues."""
    return await in_search(engine, position_line(names(wander(engine.rules(), 1))))


@step(needs="go")
async def ponder(engine: EngineUnderTest) -> str:
    """`go ponder` sends no `bestmove` before `ponderhit` or `stop`."""
    if not engine.uti and engine.option("ponder") is None:
        raise Skipped("it has no option Ponder")
    transport = await engine.ready()
    line = go_line(Limits(ponder=True, clock=(300, 300)), dialect=engine.proto)
    for word in ("ponderhit", "stop"):
        sent = await transport.send(line)
        await transport.no_bestmove(f"before {word}", SILENCE)
        await transport.send(word)
        found = await transport.answer(sent)
        await transport.no_bestmove("after the first one")
    return move_of(found)


@step(needs="go")
async def finished_game(engine: EngineUnderTest) -> str:
    """When the game is over, `go` answers `bestmove (none)`, after `uti` preceded by the score and the outcome."""
    position = engine.finished()
    transport = await engine.at(names(position))
    found = await transport.go("go movetime 100")
    demand(found.best.move is None, f"bestmove {found.best.move}, but the game is over: {outcome(position)}")
    if engine.uti:
        won = position.outcome is not None and position.outcome.winner == position.side
        expected = f"info depth 0 score mate {int(won)}"
        demand(expected in found.infos, f"no `{expected}`")
        expected = f"info string outcome {outcome(position)}"
        demand(expected in found.others, f"no `{expected}`")
    return outcome(position)


@step("uti", "finished-game")
async def finished_infinite(engine: EngineUnderTest) -> str:
    """Even when the game is over, `go infinite` sends no `bestmove` before `stop`."""
    transport = await engine.at(names(engine.finished()))
    sent = await transport.send("go infinite")
    await transport.no_bestmove("before stop", SILENCE)
    await transport.send("stop")
    found = await transport.answer(sent)
    demand(found.best.move is None, f"bestmove {found.best.move}")
    return ""


@step("uti", "go-nodes")
async def reproducible(engine: EngineUnderTest) -> str:
    """With one thread, `go nodes 2000` gives the same move, score and nodes in two new games."""
    threads = engine.option("threads")
    seen = []
    for _ in range(2):
        transport = await engine.ready()
        if threads is not None:
            await transport.ask(f"setoption name {threads.name} value 1")
        found = await transport.go("go nodes 2000")
        last = reports(found)[-1:]
        seen.append((found.best.move, *((info.score, info.nodes, info.pv) for info in last)))
    demand(seen[0] == seen[1], f"first {seen[0]}, then {seen[1]}")
    return move_of(found)


@step(needs="bestmove-legal")
async def short_game(engine: EngineUnderTest) -> str:
    """Twelve plies of a game, with the whole game sent before each move, are all legal."""
    position = engine.rules()
    transport = await engine.ready()
    while position.outcome is None and position.ply < 12:
        await transport.send(position_line(names(position)))
        position = position.play(legal(position, await transport.go("go depth 2")))
    return f"{position.ply} plies"


async def on_clock(
    engine: EngineUnderTest,
    clock: tuple[int | None, int | None],
    inc: tuple[int, int] = (0, 0),
    movestogo: int | None = None,
) -> str:
    """`go` with these clocks (side to move first; ms) is answered in time."""
    transport = await engine.ready()
    first = engine.variant is None or engine.variant.first == "a"
    limits = Limits(clock=clock if first else (clock[1], clock[0]), inc=inc, movestogo=movestogo)
    found = await transport.go(go_line(limits, dialect=engine.proto))
    return in_time(found, max([AT_ONCE, *(left / 1000 for left in clock if left)]))


def unreadable(line: str) -> str | None:
    """The first field of an `info` line that cannot be parsed; None if all can."""
    words = line.split()
    for word, value in zip(words[1:], [*words[2:], ""], strict=True):
        if word in ("pv", "string", "refutation", "currline"):
            return None
        if (
            word in ("depth", "seldepth", "multipv", "nodes", "nps", "hashfull", "time")
            and integer(value) is None
        ):
            return f"{word} {value}"
        if word in ("cp", "mate") and integer(value) is None:
            return f"score {word} {value}"
        if word == "score" and value not in ("cp", "mate"):
            return f"score {value}"
    return None


async def stop_times(engine: EngineUnderTest, count: int) -> list[float]:
    """Seconds from `stop` to `bestmove` in `count` searches."""
    transport = await engine.ready()
    times = []
    for _ in range(count):
        await transport.send("go infinite")
        await asyncio.sleep(0.02)
        sent = await transport.send("stop")
        times.append((await transport.answer(sent, AT_ONCE)).seconds)
    return times
