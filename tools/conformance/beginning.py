"""The first steps of a check: greeting, readiness, options, variants, positions, queries."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hnefi.engine.squares import move_name
from hnefi.engine.wording import shorten
from hnefi.protocol.answers import OPTION_TYPES, parse_option, parse_variant
from hnefi.protocol.format import moves_line, verbose_moves_line

from .engine_under_test import EngineUnderTest, names, played, position_line, repeating, wander, wanders
from .step import (
    AT_ONCE,
    Step,
    demand,
    in_search,
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
from .transport import Failed, Found, Skipped, Transport

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position

LONG_GAME = 240

STEPS: list[Step] = []
step = into(STEPS)


# Greeting and options


@step(needs="")
async def greeting(engine: EngineUnderTest) -> str:
    """The ok word (`utiok`, `uciok` or `ugiok`) comes within {start} s."""
    await engine.greeted()
    return f"{engine.proto}ok after {milliseconds(engine.greeting_seconds)}"


@step("none", "greeting")
async def greeting_lines(engine: EngineUnderTest) -> str:
    """Nothing but `id`, `option` and `info string` lines come before the ok word."""
    await engine.greeted()
    for heard in engine.greeting[:-1]:
        known = heard.word in ("id", "option", "") or heard.text.startswith("info string")
        demand(known, f"`{heard.text}`")
    return f"{len(engine.greeting)} lines"


@step(needs="greeting")
async def identity(engine: EngineUnderTest) -> str:
    """There is one line `id name NAME` and one line `id author NAMES`, neither empty."""
    await engine.greeted()
    for key in ("name", "author"):
        lines = [heard.text for heard in engine.greeting if heard.text.split()[:2] == ["id", key]]
        demand(len(lines) == 1, f"{len(lines)} lines `id {key}`")
        demand(len(lines[0].split()) > 2, f"`{lines[0]}` says nothing")
    return engine.name


def option_lines(engine: EngineUnderTest) -> list[str]:
    return [heard.text for heard in engine.greeting if heard.word == "option"]


@step(needs="greeting")
async def options_form(engine: EngineUnderTest) -> str:
    """Option lines read `option name N type T ...`, with T one of check, spin, combo, button and string."""
    await engine.greeted()
    for line in option_lines(engine):
        demand(parse_option(line), f"`{line}`: expected name, type and one of {', '.join(OPTION_TYPES)}")
    return f"{len(engine.options)} options"


@step(needs="greeting")
async def options_unique(engine: EngineUnderTest) -> str:
    """No option is announced twice; names are compared without case."""
    await engine.greeted()
    seen: set[str] = set()
    for option in filter(None, map(parse_option, option_lines(engine))):
        demand(option.name.casefold() not in seen, f"{option.name} is announced twice")
        seen.add(option.name.casefold())
    return f"{len(seen)} names"


@step(needs="greeting")
async def options_defaults(engine: EngineUnderTest) -> str:
    """Every default is a valid value: a spin's lies between min and max, a combo's is one of its vars."""
    await engine.greeted()
    for option in engine.options.values():
        demand(option.type != "button" or option.default is None, f"the button {option.name} has a default")
        if option.type in ("spin", "combo", "check"):
            problem = option.objection(option.default)
            demand(not problem, f"{option.name} has the default {option.default!r}: {problem}")
        if option.type == "spin":
            ends = (option.minimum, option.maximum)
            demand(None not in ends, f"the spin {option.name} has no min or no max")
    return f"{len(engine.options)} options"


@step("uti", "greeting")
async def options_names(engine: EngineUnderTest) -> str:
    """Option names contain no spaces."""
    await engine.greeted()
    for option in engine.options.values():
        demand(" " not in option.name, f"{option.name!r}")
    return ""


# Ready


@step(needs="greeting")
async def isready(engine: EngineUnderTest) -> str:
    """`isready` is answered by `readyok`, the first time within a minute."""
    await engine.ready()
    return f"after {milliseconds(engine.ready_seconds)}"


@step()
async def isready_often(engine: EngineUnderTest) -> str:
    """Three `isready` in one write get three `readyok`."""
    transport = await engine.ready()
    await transport.send("isready", "isready", "isready")
    for _ in range(3):
        await transport.until("readyok")
    extra = [heard for heard in await transport.during(0.05) if heard.word == "readyok"]
    demand(not extra, f"{3 + len(extra)} times readyok")
    return ""


# The first moves, which all later steps depend on


@step()
async def go(engine: EngineUnderTest) -> str:
    """`go depth 1` gets one `bestmove` with a move."""
    transport = await engine.ready()
    return move_of(await transport.go("go depth 1"))


@step(needs="go")
async def bestmove_legal(engine: EngineUnderTest) -> str:
    """The move is legal, both at the start and after a few plies."""
    positions = list(wanders(engine.rules(), 0, 1, 4, 7))
    for position in positions:
        transport = await engine.at(names(position))
        legal(position, await transport.go("go depth 1"))
    return f"{len(positions)} positions"


@step(needs="go")
async def ponder_word(engine: EngineUnderTest) -> str:
    """The move after `ponder` is a legal reply; after `ugi` there is no `ponder`."""
    transport = await engine.ready()
    found = await transport.go("go depth 3")
    if engine.proto == "ugi":
        demand(found.best.ponder is None, f"ponder {found.best.ponder}")
        return ""
    position = engine.rules()
    after = position.play(legal(position, found))
    if found.best.ponder is None:
        return "none was named"
    parsed(after, found.best.ponder, "ponder")
    return found.best.ponder


@step(needs="go")
async def isready_search(engine: EngineUnderTest) -> str:
    """During a search, `isready` is answered within a second, and the search continues until `stop`."""
    transport = await engine.ready()
    sent = await transport.send("go infinite")
    for _ in range(3):
        lines = await transport.until("readyok", AT_ONCE) if await transport.send("isready") else []
        demand(not any(heard.word == "bestmove" for heard in lines), "bestmove before stop")
    await transport.send("stop")
    return move_of(await transport.answer(sent))


@step(needs="go")
async def isready_after(engine: EngineUnderTest) -> str:
    """With `go` and `isready` in one write, both are answered."""
    transport = await engine.ready()
    await transport.send("go depth 2", "isready")
    words = {heard.word for heard in await transport.until("readyok")}
    if "bestmove" not in words:
        await transport.until("bestmove")
    return ""


# Options


@step()
async def setoption_unknown(engine: EngineUnderTest) -> str:
    """An unknown option is rejected with an error line (after `uti`) and changes nothing."""
    transport = await engine.ready()
    refused(engine, await transport.ask("setoption name NoSuchOptionAtAll value 7"), "setoption")
    refused(engine, await transport.ask("setoption"), "setoption")
    return ""


@step()
async def setoption_range(engine: EngineUnderTest) -> str:
    """Values out of range or of the wrong type are rejected with an error line (after `uti`) and change nothing."""
    spins = [option for option in engine.options.values() if option.type == "spin"]
    if not spins:
        raise Skipped("it has no option of type spin")
    transport = await engine.ready()
    for option in spins:
        for value in ((option.minimum or 0) - 1, (option.maximum or 0) + 1, "many", 10**30):
            refused(engine, await transport.ask(f"setoption name {option.name} value {value}"), option.name)
    return f"{len(spins)} spins"


@step(needs="go")
async def multipv(engine: EngineUnderTest) -> str:
    """`MultiPV 2` gives two lines with different first moves; a value out of range leaves it at 2."""
    option = engine.option("multipv")
    if option is None or (option.maximum or 0) < 2:
        raise Skipped("it has no option MultiPV")
    transport = await engine.ready()
    await transport.ask(f"setoption name {option.name} value 2")
    try:
        firsts(await transport.go("go depth 2"))
        await transport.ask(f"setoption name {option.name} value {(option.maximum or 0) + 1}")
        return " ".join(firsts(await transport.go("go depth 2")))
    finally:
        if transport.exit is None:
            await transport.ask(f"setoption name {option.name} value {option.default}")


@step("uti", "go")
async def setoption_search(engine: EngineUnderTest) -> str:
    """During a search, `setoption` is rejected with an error line (after `uti`), and the search continues."""
    option = next((known for known in engine.options.values() if known.type in ("spin", "check")), None)
    if option is None:
        raise Skipped("it has no option of type spin or check")
    return await in_search(engine, f"setoption name {option.name} value {option.default}")


@step("none", "go")
async def wdl(engine: EngineUnderTest) -> str:
    """With UCI_ShowWDL, `wdl` has three non-negative numbers that sum to 1000."""
    if engine.option("uci_showwdl") is None:
        raise Skipped("it has no option UCI_ShowWDL")
    transport = await engine.ready()
    await transport.ask("setoption name UCI_ShowWDL value true")
    infos = reports(await transport.go("go depth 3"))
    await transport.ask("setoption name UCI_ShowWDL value false")
    shares = infos[-1].wdl if infos else None
    demand(shares, "no wdl in the last report")
    demand(shares and min(shares) >= 0 and sum(shares) == 1000, f"wdl {shares}")
    return " ".join(map(str, shares or ()))


# Variants and games


@step(after=("uti",))
async def variants(engine: EngineUnderTest) -> str:
    """`variants` gives one line per variant, each with board, men, first side, aliases and source."""
    transport = await engine.ready()
    form = re.compile(
        r"info string variant \S+ files \d+ ranks \d+ attackers \d+ defenders \d+ first [ad] aliases \S+ source .*"
    )
    lines = await transport.ask("variants")
    demand(lines, "no answer")
    for line in lines:
        demand(form.fullmatch(line), f"`{line}`")
    return f"{len(lines)} variants"


@step()
async def variant(engine: EngineUnderTest) -> str:
    """Choosing a variant answers with its board (after `uti`), which matches our rules."""
    if not engine.uti and engine.option("uci_variant", "variant") is None:
        raise Skipped("it has no option UCI_Variant")
    if engine.variant is None:
        raise Skipped("none of its variants is known to us")
    transport = await engine.ready()
    if not engine.uti:
        return engine.variant.name
    answer = await transport.ask(f"variant {engine.variant.name}")
    line = next(filter(None, map(parse_variant, answer)), None)
    ours = engine.variant
    demand(line is not None, f"answered by {shorten(answer[:1])}")
    if line is not None:
        theirs = (line.files, line.ranks, line.attackers, line.defenders, line.first)
        expected = (ours.files, ours.ranks, ours.attackers, ours.defenders, ours.first)
        demand(theirs == expected, f"{theirs} where we have {expected}")
        demand(
            line.startpos.split()[0] == ours.rows, f"starts from {line.startpos}, ours from {ours.startpos}"
        )
    return engine.variant.name


@step(after=("uti",))
async def variant_option(engine: EngineUnderTest) -> str:
    """`setoption name UCI_Variant value V` gives the same answer as `variant V`."""
    transport = await engine.ready()
    word = engine.rules().variant.name
    by_word = await transport.ask(f"variant {word}")
    by_option = await transport.ask(f"setoption name UCI_Variant value {word}")
    demand(by_word == by_option, f"{shorten(by_option[:1])} where variant says {shorten(by_word[:1])}")
    return ""


@step(after=("uti",))
async def variant_unknown(engine: EngineUnderTest) -> str:
    """An unknown variant is rejected with an error line, and the game is unchanged."""
    transport = await engine.ready()
    before = await transport.ask("query fen")
    refused(engine, await transport.ask("variant no-such-variant-at-all"), "variant")
    demand(await transport.ask("query fen") == before, "the position has changed")
    return ""


@step()
async def newgame(engine: EngineUnderTest) -> str:
    """The newgame command is silent; `isready` after it is answered; after `uti` the position is the start again."""
    transport = await engine.ready()
    if engine.variant is not None:
        await engine.at(names(wander(engine.rules(), 3)))
    silent(await transport.ask(f"{engine.proto}newgame"))
    if engine.uti and engine.variant is not None:
        await responds(transport, "fen", engine.rules().fen())
    return ""


# Positions


@step(needs="go")
async def position_silent(engine: EngineUnderTest) -> str:
    """`position` with legal moves is silent."""
    start = engine.rules()
    transport = await engine.ready()
    for position in wanders(start, 0, 5):
        silent(await transport.ask(position_line(names(position))))
    return ""


@step(needs="go")
async def fen(engine: EngineUnderTest) -> str:
    """`position fen` works: the move is legal there, with the other side to move."""
    position = wander(engine.rules(), 5)
    transport = await engine.ready()
    dialects = [("t T K", position.fen())]
    if not engine.uti and engine.rules().variant.game == "tafl":
        rows, fields = position.fen().split(" ", 1)
        dialects.append(("a d k", f"{rows.translate(str.maketrans('tTK', 'adk'))} {fields}"))
    for letters, text in dialects:
        await transport.ask("position startpos", f"position fen {text}")
        found = await transport.go("go depth 1")
        if found.best.move is not None and found.best.move in map(move_name, position.legal_moves()):
            return f"with the letters {letters}"
    raise Failed(f"bestmove {found.best.move} is not legal there")


@step(needs="fen", after=("uti",))
async def fen_short(engine: EngineUnderTest) -> str:
    """The counters of a FEN may be missing; they default to `0 1`."""
    position = wander(engine.rules(), 1)
    rows, side = position.fen().split()[:2]
    transport = await engine.ready()
    silent(await transport.ask(f"position fen {rows} {side}"))
    await responds(transport, "fen", f"{rows} {side} 0 1")
    return ""


@step()
async def bad_fen(engine: EngineUnderTest) -> str:
    """An invalid position is rejected with an error line (after `uti`); the engine survives, and the position is
    unchanged."""
    transport = await engine.ready()
    before = await transport.ask("query fen") if engine.uti else []
    for text in BAD_POSITIONS:
        refused(engine, await transport.ask(f"position {text}".rstrip()), "position")
    if engine.uti:
        demand(await transport.ask("query fen") == before, "the position has changed")
    return f"{len(BAD_POSITIONS)} of them"


BAD_POSITIONS = (
    "",
    "fen",
    "fen nonsense",
    "fen 9/9/9 a 0 1",
    "fen 7/7/7/7/7/7/99999999999999999999 a 0 1",
    "fen /////// x y z",
    "fen 3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3/7/7 q -1 -1",
    "fen -1/0/KKKKK d 0 1",
    "fen " + 200 * "t/",
    "somewhere moves a1a2",
)


@step(needs="go")
async def illegal_move(engine: EngineUnderTest) -> str:
    """An illegal move in `position`, or one after the end of the game, is rejected with an error line that names it
    (after `uti`); the position is unchanged, and `go` is still answered."""
    over = names(engine.finished())
    kept = names(wander(engine.rules(), 1))
    transport = await engine.at(kept)
    before = await transport.ask("query fen") if engine.uti else []
    for moves in ([*kept, "a1a1"], ["zz9z99"], [*kept, kept[0]], [*over, kept[0]]):
        refused(engine, await transport.ask(position_line(moves)), f"position: move {len(moves)} {moves[-1]}")
        if engine.uti:
            demand(await transport.ask("query fen") == before, f"the position has changed after {moves[-1]}")
    found = await transport.go("go depth 1")
    if engine.uti:
        legal(played(engine.rules(), kept), found)
    return found.best.move or "(none)"


@step(needs="go")
async def long_game(engine: EngineUnderTest) -> str:
    """A game of 240 plies in one `position` is accepted, and `go` gives a legal move."""
    position = wander(engine.rules(), LONG_GAME)
    transport = await engine.at(names(position))
    legal(position, await transport.go("go depth 1"))
    return f"{LONG_GAME} plies"


@step("none", "go")
async def repetition(engine: EngineUnderTest) -> str:
    """The moves sent count for repetition: if they end the game by our rules, they end it for the engine."""
    position = repeating(engine.rules())
    transport = await engine.at(names(position))
    found = await transport.go("go depth 1")
    demand(
        found.best.move is None, f"bestmove {found.best.move} after {position.ply} plies: {outcome(position)}"
    )
    return f"after {position.ply} plies: {outcome(position)}"


@step(needs="go", after=("uti", "ugi"))
async def query(engine: EngineUnderTest) -> str:
    """`query` answers with exactly one correct `response` line, during the game and after it."""
    transport = await engine.ready()
    for position in (*wanders(engine.rules(), 0, 1, 6), engine.finished()):
        await transport.ask(position_line(names(position)))
        for word, answer in responses(position, engine.proto).items():
            await responds(transport, word, answer)
    return ""


@step(needs="query", after=("uti",))
async def query_search(engine: EngineUnderTest) -> str:
    """During a search, `query`, `moves` and `d` are answered, about the position being searched."""
    position = wander(engine.rules(), 4)
    transport = await engine.at(names(position))
    await transport.send("go infinite")
    lines = await transport.ask("query fen", "moves", "d")
    await transport.send("stop")
    await transport.until("bestmove")
    for expected in (f"response {position.fen()}", moves_line(position.legal_moves())):
        demand(expected in lines, f"no line `{expected}`")
    return ""


@step(after=("uti",))
async def moves(engine: EngineUnderTest) -> str:
    """`moves` and `moves verbose` list the legal moves by our rules, sorted by origin, then target."""
    transport = await engine.ready()
    for position in (*wanders(engine.rules(), 1, 8), engine.winning()[0], engine.finished()):
        await transport.ask(position_line(names(position)))
        expected = [
            moves_line(position.legal_moves()),
            verbose_moves_line(position.legal_moves_with_captures()),
        ]
        lines = await transport.ask("moves", "moves verbose")
        demand(lines == expected, f"{shorten(lines)} where we have {shorten(expected)}")
    return ""


@step(after=("uti",))
async def play_undo(engine: EngineUnderTest) -> str:
    """`play` and `undo` answer `info string played|undone M turn S`; an illegal move gets an error line."""
    transport = await engine.ready()
    start = engine.rules()
    after = wander(start, 1)
    name = names(after)[0]
    lines = await transport.ask(f"play {name}", "undo")
    expected = [
        f"info string played {name} turn {after.side.letter}",
        f"info string undone {name} turn {start.side.letter}",
    ]
    demand(lines == expected, f"{shorten(lines)} where {shorten(expected)} was expected")
    refused(engine, await transport.ask("undo"), "undo")
    refused(engine, await transport.ask("play a1a1"), "play a1a1: ")
    return ""


async def responds(transport: Transport, word: str, expected: str) -> None:
    """Failed unless `query WORD` gets exactly the response `expected`."""
    lines = await transport.ask(f"query {word}")
    demand(
        lines == [f"response {expected}"], f"query {word}: {shorten(lines)}, expected `response {expected}`"
    )


def responses(position: Position, proto: str) -> dict[str, str]:
    """The responses to `query` in `position`, by word; after `ugi` only the words of that dialect."""
    ended = position.outcome
    result = "none" if ended is None else "draw" if ended.winner is None else f"p{ended.winner + 1}win"
    answers = {
        "gameover": "false" if ended is None else "true",
        "p1turn": "true" if position.side == 0 else "false",
        "result": result,
    }
    if proto == "uti":
        answers |= {
            "fen": position.fen(),
            "turn": position.side.letter,
            "outcome": "none" if ended is None else ended.result,
            "reason": "none" if ended is None else str(ended.reason),
            "captures": "{} {}".format(*position.taken),
            "history": position_line(names(position)).removeprefix("position "),
        }
    return answers


def firsts(found: Found) -> list[str]:
    """The first moves of the last reports on lines 1 and 2; Failed unless they differ."""
    last = {info.multipv: info.pv[0] for info in reports(found) if info.pv}
    demand({1, 2} <= last.keys(), f"lines {sorted(last)} were reported, 1 and 2 were asked for")
    demand(last[1] != last[2], f"both lines begin with {last[1]}")
    return [last[1], last[2]]
