"""The steps of a check about searches: what ends them, what they report, how they are stopped."""

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
"""Reports in one second that are still believed to be about 20."""
OVERSHOOT = 1.2
"""So many times the nodes that were asked for are still believed to be about them."""

STEPS: list[Step] = []
step = into(STEPS)


# Limits


@step(needs="go")
async def go_depth(walk: EngineUnderTest) -> str:
    """`go depth 3` ends by itself."""
    talk = await walk.ready()
    found = await talk.go("go depth 3")
    return f"{move_of(found)} after {milliseconds(found.seconds)}"


@step(needs="go")
async def go_nodes(walk: EngineUnderTest) -> str:
    """`go nodes 1000` ends by itself."""
    talk = await walk.ready()
    found = await talk.go("go nodes 1000")
    return f"{move_of(found)} after {milliseconds(found.seconds)}"


@step("none", "go-nodes")
async def nodes_kept(walk: EngineUnderTest) -> str:
    """`go nodes 1000` ends with about that many nodes reported: at most a fifth more."""
    talk = await walk.ready()
    counts = [info.nodes for info in reports(await talk.go("go nodes 1000")) if info.nodes is not None]
    demand(counts, "no report says nodes")
    demand(counts[-1] <= 1000 * OVERSHOOT, f"{counts[-1]} nodes")
    return f"{counts[-1]} nodes"


@step(needs="go")
async def go_movetime(walk: EngineUnderTest) -> str:
    """`go movetime 100` is answered after about that time: at most a second later."""
    talk = await walk.ready()
    return in_time(await talk.go("go movetime 100"), 0.1 + AT_ONCE)


@step(needs="go")
async def go_clock(walk: EngineUnderTest) -> str:
    """With 1 s on both clocks the move comes within that second."""
    return await on_clock(walk, (1000, 1000), inc=(10, 10))


@step(needs="go")
async def go_movestogo(walk: EngineUnderTest) -> str:
    """With 1 s for two moves the first comes within that second."""
    return await on_clock(walk, (1000, 1000), movestogo=2)


@step(needs="go")
async def go_own_clock(walk: EngineUnderTest) -> str:
    """The clock may be given for the side to move alone."""
    return await on_clock(walk, (500, None))


@step("uti", "go")
async def go_other_clock(walk: EngineUnderTest) -> str:
    """The clock may be given for the other side alone: a move still comes."""
    return await on_clock(walk, (None, 500))


@step(needs="go")
async def go_tiny_clock(walk: EngineUnderTest) -> str:
    """With 1 ms on the clock a move comes at once: within a second, however busy the machine is."""
    return await on_clock(walk, (1, 1))


@step(needs="go")
async def go_zero_clock(walk: EngineUnderTest) -> str:
    """With nothing on the clock a move comes at once."""
    return await on_clock(walk, (0, 0))


@step(needs="go")
async def go_negative_clock(walk: EngineUnderTest) -> str:
    """With less than nothing on the clock a move comes at once."""
    return await on_clock(walk, (-1000, -1000))


@step(needs="go")
async def go_order(walk: EngineUnderTest) -> str:
    """The words of `go` may come in any order, and the first limit that is reached ends the search."""
    talk = await walk.ready()
    a, d, a_inc, d_inc = CLOCK_WORDS[walk.proto]
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
        await talk.go(line)
    return "three orders"


@step("uti", "go")
async def go_other_words(walk: EngineUnderTest) -> str:
    """The clock words of all greetings (`atime`, `wtime`, `p1time` ...) are understood."""
    talk = await walk.ready()
    for first, second, *_ in CLOCK_WORDS.values():
        in_time(await talk.go(f"go {first} 500 {second} 500"), 0.5)
    return ""


@step("uti", "go")
async def go_unknown_words(walk: EngineUnderTest) -> str:
    """Words that `go` does not know are skipped, with an error line (after `uti`), and the others hold."""
    talk = await walk.ready()
    found = await talk.go("go fast depth 2 colour blue")
    refused(walk, list(found.others), "go")
    return move_of(found)


@step("uti", "go")
async def go_bad_numbers(walk: EngineUnderTest) -> str:
    """Numbers that are none are skipped, with an error line (after `uti`), and the other limits hold."""
    talk = await walk.ready()
    for words in (
        "depth two nodes 500",
        "nodes -5 depth 2",
        "depth 2 movetime",
        "depth 2 nodes 99999999999999999999999",
    ):
        found = await talk.go(f"go {words}")
        if words.startswith("depth two") or words.endswith("movetime"):
            refused(walk, list(found.others), "go")
    return ""


@step("uti", "go")
async def searchmoves(walk: EngineUnderTest) -> str:
    """`go searchmoves M` answers M."""
    talk = await walk.ready()
    for move in (walk.rules().legal_moves()[0], walk.rules().legal_moves()[-1]):
        name = move_name(move)
        found = await talk.go(f"go depth 2 searchmoves {name}")
        demand(found.best.move == name, f"bestmove {found.best.move} where only {name} was allowed")
    return name


@step("uti", "searchmoves")
async def searchmoves_illegal(walk: EngineUnderTest) -> str:
    """Illegal moves behind `searchmoves` are skipped, with an error line (after `uti`); if none is left, all count."""
    talk = await walk.ready()
    found = await talk.go("go searchmoves a1a1 depth 1")
    refused(walk, list(found.others), "searchmoves a1a1")
    legal(walk.rules(), found)
    return move_of(found)


# Reports


@step(needs="go")
async def info_numbers(walk: EngineUnderTest) -> str:
    """The numbers of `info` lines are whole ones, scores read `cp N` or `mate N`."""
    talk = await walk.ready()
    found = await talk.go("go depth 4")
    for line in found.infos:
        problem = unreadable(line)
        demand(not problem, f"{problem}: `{line}`")
    return f"{len(found.infos)} reports"


@step("uti", "go")
async def info_final(walk: EngineUnderTest) -> str:
    """Before every `bestmove` comes at least one report with depth, score, nodes, time and pv."""
    talk = await walk.ready()
    for line in ("go depth 1", "go nodes 1", "go movetime 1"):
        infos = [info for info in reports(await talk.go(line)) if info.pv]
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
async def info_rate(walk: EngineUnderTest) -> str:
    """At most about 20 reports a second."""
    talk = await walk.ready()
    await talk.send("go infinite")
    lines = [heard.text for heard in await talk.during(1.0)]
    await talk.send("stop")
    await talk.until("bestmove")
    count = sum(parse_info(line) is not None for line in lines)
    demand(count <= INFO_RATE, f"{count} in one second")
    return f"{count} in one second"


@step(needs="go")
async def pv_legal(walk: EngineUnderTest) -> str:
    """Every move of every pv is legal by our rules, and none comes after the end of the game."""
    count = 0
    for position in (*wanders(walk.rules(), 0, 5), walk.winning()[0]):
        talk = await walk.at(names(position))
        for info in reports(await talk.go("go depth 4")):
            after = position
            for number, text in enumerate(info.pv, start=1):
                after = after.play(parsed(after, text, f"pv move {number}"))
            count += bool(info.pv)
    return f"{count} of them"


@step("none", "go")
async def pv_bestmove(walk: EngineUnderTest) -> str:
    """The last pv begins with the move that is played."""
    talk = await walk.ready()
    found = await talk.go("go depth 4")
    lines = [info.pv for info in reports(found) if info.pv and info.multipv == 1]
    demand(lines, "no pv was reported")
    demand(lines[-1][0] == found.best.move, f"bestmove {found.best.move} after pv {' '.join(lines[-1])}")
    return move_of(found)


@step("none", "go")
async def mate_in_one(walk: EngineUnderTest) -> str:
    """`go depth 3` plays a move that wins at once where there is one."""
    position, wins = walk.winning()
    talk = await walk.at(names(position))
    found = await talk.go("go depth 3")
    demand(found.best.move in wins, f"bestmove {found.best.move} where {' '.join(sorted(wins))} wins")
    return move_of(found)


@step("none", "mate-in-one")
async def mate_score(walk: EngineUnderTest) -> str:
    """A win with the next move is reported as `score mate 1`: from the side to move, in the winner's own moves."""
    position, _ = walk.winning()
    talk = await walk.at(names(position))
    scores = [info.score for info in reports(await talk.go("go depth 3")) if info.score is not None]
    demand(scores, "no score was reported")
    demand(scores[-1].mate == 1, f"score {scores[-1]}")
    return ""


# Beginning and end of a search


@step(needs="go")
async def go_infinite(walk: EngineUnderTest) -> str:
    """`go infinite` is silent about its move until `stop`, then answers once."""
    talk = await walk.ready()
    sent = await talk.send("go infinite")
    await talk.no_bestmove("before stop", SILENCE)
    await talk.send("stop")
    found = await talk.answer(sent)
    await talk.no_bestmove("after the first one")
    return move_of(found)


@step("uti", "go")
async def go_bare(walk: EngineUnderTest) -> str:
    """`go` alone is `go infinite`."""
    talk = await walk.ready()
    sent = await talk.send("go")
    await talk.no_bestmove("before stop", SILENCE)
    await talk.send("stop")
    return move_of(await talk.answer(sent))


@step(needs="go")
async def stop_idle(walk: EngineUnderTest) -> str:
    """`stop` is silent when nothing is searched."""
    talk = await walk.ready()
    silent(await talk.ask("stop", "stop"))
    return ""


@step(needs="go")
async def stop_at_once(walk: EngineUnderTest) -> str:
    """`go infinite` and `stop` in one write are answered by one legal move."""
    talk = await walk.ready()
    for _ in range(5):
        sent = await talk.send("go infinite", "stop")
        found = await talk.answer(sent)
        await talk.no_bestmove("after the first one")
        if walk.variant is not None:
            legal(walk.rules(), found)
    return "five times"


@step(needs="go")
async def stop_crossing(walk: EngineUnderTest) -> str:
    """A `stop` that crosses the `bestmove` on its way does nothing: every `go` has exactly one answer."""
    talk = await walk.ready()
    dice = random.Random(1)
    for _ in range(10):
        sent = await talk.send("go depth 2")
        await asyncio.sleep(dice.random() * 0.004)
        await talk.send("stop")
        await talk.answer(sent)
        await talk.no_bestmove("after the first one")
    return "ten times"


@step(needs="go-infinite")
async def stop(walk: EngineUnderTest) -> str:
    """`stop` is answered by the move within a second."""
    return f"median {milliseconds(statistics.median(await stop_times(walk, 3)))}"


@step("uti", "stop")
async def stop_and_on(walk: EngineUnderTest) -> str:
    """`stop`, `position` and `go` in one write: the old search is answered, then the new one, about its position."""
    position = wander(walk.rules(), 3)
    talk = await walk.ready()
    await talk.send("go infinite")
    await asyncio.sleep(0.05)
    sent = await talk.send("stop", position_line(names(position)), "go depth 1")
    legal(walk.rules(), await talk.answer(sent))
    legal(position, await talk.answer(sent))
    return ""


@step(needs="stop")
async def double_go(walk: EngineUnderTest) -> str:
    """A `go` during a search is refused (after `uti` with an error line): one `stop`, one `bestmove`."""
    if walk.uti:
        return await in_search(walk, "go infinite")
    talk = await walk.ready()
    await talk.send("go infinite", "go infinite")
    await asyncio.sleep(0.05)
    await talk.send("stop")
    await talk.until("bestmove")
    await talk.send("stop")
    answers = 1 + sum(heard.word == "bestmove" for heard in await talk.during(SILENCE))
    demand(answers <= 2, f"{answers} times bestmove")
    await talk.ask()
    return f"{answers} bestmove"


@step("uti", "stop")
async def position_search(walk: EngineUnderTest) -> str:
    """`position` during a search is refused with an error line (after `uti`); the search goes on."""
    return await in_search(walk, position_line(names(wander(walk.rules(), 1))))


@step(needs="go")
async def ponder(walk: EngineUnderTest) -> str:
    """`go ponder` is silent about its move until `ponderhit`, or until `stop`."""
    if not walk.uti and walk.option("ponder") is None:
        raise Skipped("it has no option Ponder")
    talk = await walk.ready()
    line = go_line(Limits(ponder=True, clock=(300, 300)), dialect=walk.proto)
    for word in ("ponderhit", "stop"):
        sent = await talk.send(line)
        await talk.no_bestmove(f"before {word}", SILENCE)
        await talk.send(word)
        found = await talk.answer(sent)
        await talk.no_bestmove("after the first one")
    return move_of(found)


@step(needs="go")
async def finished_game(walk: EngineUnderTest) -> str:
    """When the game is over, `go` answers `bestmove (none)`; after `uti` behind the score and the outcome."""
    position = walk.finished()
    talk = await walk.at(names(position))
    found = await talk.go("go movetime 100")
    demand(found.best.move is None, f"bestmove {found.best.move}, but the game is over: {outcome(position)}")
    if walk.uti:
        won = position.outcome is not None and position.outcome.winner == position.side
        expected = f"info depth 0 score mate {int(won)}"
        demand(expected in found.infos, f"no `{expected}`")
        expected = f"info string outcome {outcome(position)}"
        demand(expected in found.others, f"no `{expected}`")
    return outcome(position)


@step("uti", "finished-game")
async def finished_infinite(walk: EngineUnderTest) -> str:
    """Also when the game is over, `go infinite` is silent until `stop`."""
    talk = await walk.at(names(walk.finished()))
    sent = await talk.send("go infinite")
    await talk.no_bestmove("before stop", SILENCE)
    await talk.send("stop")
    found = await talk.answer(sent)
    demand(found.best.move is None, f"bestmove {found.best.move}")
    return ""


@step("uti", "go-nodes")
async def reproducible(walk: EngineUnderTest) -> str:
    """With one thread, `go nodes 2000` twice in new games gives the same move, score and nodes."""
    threads = walk.option("threads")
    seen = []
    for _ in range(2):
        talk = await walk.ready()
        if threads is not None:
            await talk.ask(f"setoption name {threads.name} value 1")
        found = await talk.go("go nodes 2000")
        last = reports(found)[-1:]
        seen.append((found.best.move, *((info.score, info.nodes, info.pv) for info in last)))
    demand(seen[0] == seen[1], f"first {seen[0]}, then {seen[1]}")
    return move_of(found)


@step(needs="bestmove-legal")
async def short_game(walk: EngineUnderTest) -> str:
    """A game of twelve plies, sent whole before every move, has only legal moves."""
    position = walk.rules()
    talk = await walk.ready()
    while position.outcome is None and position.ply < 12:
        await talk.send(position_line(names(position)))
        position = position.play(legal(position, await talk.go("go depth 2")))
    return f"{position.ply} plies"


async def on_clock(
    walk: EngineUnderTest,
    clock: tuple[int | None, int | None],
    inc: tuple[int, int] = (0, 0),
    movestogo: int | None = None,
) -> str:
    """A `go` with these clocks, of the side to move and of the other, is answered in the time that there is."""
    talk = await walk.ready()
    first = walk.variant is None or walk.variant.first == "a"
    limits = Limits(clock=clock if first else (clock[1], clock[0]), inc=inc, movestogo=movestogo)
    found = await talk.go(go_line(limits, dialect=walk.proto))
    return in_time(found, max([AT_ONCE, *(left / 1000 for left in clock if left)]))


def unreadable(line: str) -> str | None:
    """What cannot be read in an `info` line; None if all can."""
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


async def stop_times(walk: EngineUnderTest, count: int) -> list[float]:
    """Seconds from `stop` to `bestmove`, so many times."""
    talk = await walk.ready()
    times = []
    for _ in range(count):
        await talk.send("go infinite")
        await asyncio.sleep(0.02)
        sent = await talk.send("stop")
        times.append((await talk.answer(sent, AT_ONCE)).seconds)
    return times
