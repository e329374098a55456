"""First steps of a check: greeting, readiness, options, variants, positions, questions."""

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
async def greeting(walk: EngineUnderTest) -> str:
    """The ok word (`utiok`, `uciok` or `ugiok`) comes within {start} s."""
    await walk.greeted()
    return f"{walk.proto}ok after {milliseconds(walk.greeting_seconds)}"


@step("none", "greeting")
async def greeting_lines(walk: EngineUnderTest) -> str:
    """Nothing but `id`, `option` and `info string` lines come before the ok word."""
    await walk.greeted()
    for heard in walk.greeting[:-1]:
        known = heard.word in ("id", "option", "") or heard.text.startswith("info string")
        demand(known, f"`{heard.text}`")
    return f"{len(walk.greeting)} lines"


@step(needs="greeting")
async def identity(walk: EngineUnderTest) -> str:
    """One line `id name NAME` and one line `id author NAMES`, with something in them."""
    await walk.greeted()
    for key in ("name", "author"):
        lines = [heard.text for heard in walk.greeting if heard.text.split()[:2] == ["id", key]]
        demand(len(lines) == 1, f"{len(lines)} lines `id {key}`")
        demand(len(lines[0].split()) > 2, f"`{lines[0]}` says nothing")
    return walk.name


def option_lines(walk: EngineUnderTest) -> list[str]:
    return [heard.text for heard in walk.greeting if heard.word == "option"]


@step(needs="greeting")
async def options_form(walk: EngineUnderTest) -> str:
    """Option lines read `option name N type T ...`, with T one of check, spin, combo, button and string."""
    await walk.greeted()
    for line in option_lines(walk):
        demand(parse_option(line), f"`{line}`: expected name, type and one of {', '.join(OPTION_TYPES)}")
    return f"{len(walk.options)} options"


@step(needs="greeting")
async def options_unique(walk: EngineUnderTest) -> str:
    """No option is announced twice; capitals make no difference."""
    await walk.greeted()
    seen: set[str] = set()
    for option in filter(None, map(parse_option, option_lines(walk))):
        demand(option.name.casefold() not in seen, f"{option.name} is announced twice")
        seen.add(option.name.casefold())
    return f"{len(seen)} names"


@step(needs="greeting")
async def options_defaults(walk: EngineUnderTest) -> str:
    """Every default could be set: spins lie between min and max, combos are one of their vars."""
    await walk.greeted()
    for option in walk.options.values():
        demand(option.type != "button" or option.default is None, f"the button {option.name} has a default")
        if option.type in ("spin", "combo", "check"):
            problem = option.objection(option.default)
            demand(not problem, f"{option.name} has the default {option.default!r}: {problem}")
        if option.type == "spin":
            ends = (option.minimum, option.maximum)
            demand(None not in ends, f"the spin {option.name} has no min or no max")
    return f"{len(walk.options)} options"


@step("uti", "greeting")
async def options_names(walk: EngineUnderTest) -> str:
    """The names of options have no blanks in them."""
    await walk.greeted()
    for option in walk.options.values():
        demand(" " not in option.name, f"{option.name!r}")
    return ""


# Ready


@step(needs="greeting")
async def isready(walk: EngineUnderTest) -> str:
    """`isready` is answered by `readyok`, the first time within a minute."""
    await walk.ready()
    return f"after {milliseconds(walk.ready_seconds)}"


@step()
async def isready_often(walk: EngineUnderTest) -> str:
    """Three `isready` in one write are answered by three `readyok`."""
    talk = await walk.ready()
    await talk.send("isready", "isready", "isready")
    for _ in range(3):
        await talk.until("readyok")
    extra = [heard for heard in await talk.during(0.05) if heard.word == "readyok"]
    demand(not extra, f"{3 + len(extra)} times readyok")
    return ""


# The first moves: what everything else stands on


@step()
async def go(walk: EngineUnderTest) -> str:
    """`go depth 1` is answered by one `bestmove` with a move in it."""
    talk = await walk.ready()
    return move_of(await talk.go("go depth 1"))


@step(needs="go")
async def bestmove_legal(walk: EngineUnderTest) -> str:
    """The move is legal, at the start and after some plies that were sent as moves."""
    positions = list(wanders(walk.rules(), 0, 1, 4, 7))
    for position in positions:
        talk = await walk.at(names(position))
        legal(position, await talk.go("go depth 1"))
    return f"{len(positions)} positions"


@step(needs="go")
async def ponder_word(walk: EngineUnderTest) -> str:
    """The move behind `ponder` is a legal reply; after `ugi` there is never such a word."""
    talk = await walk.ready()
    found = await talk.go("go depth 3")
    if walk.proto == "ugi":
        demand(found.best.ponder is None, f"ponder {found.best.ponder}")
        return ""
    position = walk.rules()
    after = position.play(legal(position, found))
    if found.best.ponder is None:
        return "none was named"
    parsed(after, found.best.ponder, "ponder")
    return found.best.ponder


@step(needs="go")
async def isready_search(walk: EngineUnderTest) -> str:
    """`isready` is answered during a search, within a second, and the search goes on until `stop`."""
    talk = await walk.ready()
    sent = await talk.send("go infinite")
    for _ in range(3):
        lines = await talk.until("readyok", AT_ONCE) if await talk.send("isready") else []
        demand(not any(heard.word == "bestmove" for heard in lines), "bestmove before stop")
    await talk.send("stop")
    return move_of(await talk.answer(sent))


@step(needs="go")
async def isready_after(walk: EngineUnderTest) -> str:
    """`isready` behind a `go` in the same write is answered, and so is the `go`."""
    talk = await walk.ready()
    await talk.send("go depth 2", "isready")
    words = {heard.word for heard in await talk.until("readyok")}
    if "bestmove" not in words:
        await talk.until("bestmove")
    return ""


# Options


@step()
async def setoption_unknown(walk: EngineUnderTest) -> str:
    """An option that was never announced is refused with an error line (after `uti`), and does no harm."""
    talk = await walk.ready()
    refused(walk, await talk.ask("setoption name NoSuchOptionAtAll value 7"), "setoption")
    refused(walk, await talk.ask("setoption"), "setoption")
    return ""


@step()
async def setoption_range(walk: EngineUnderTest) -> str:
    """Values beyond the ends, or of another kind, are refused with an error line (after `uti`), and do no harm."""
    spins = [option for option in walk.options.values() if option.type == "spin"]
    if not spins:
        raise Skipped("it has no option of type spin")
    talk = await walk.ready()
    for option in spins:
        for value in ((option.minimum or 0) - 1, (option.maximum or 0) + 1, "many", 10**30):
            refused(walk, await talk.ask(f"setoption name {option.name} value {value}"), option.name)
    return f"{len(spins)} spins"


@step(needs="go")
async def multipv(walk: EngineUnderTest) -> str:
    """`MultiPV 2` gives two lines of different first moves; a value out of range leaves the 2 as it was."""
    option = walk.option("multipv")
    if option is None or (option.maximum or 0) < 2:
        raise Skipped("it has no option MultiPV")
    talk = await walk.ready()
    await talk.ask(f"setoption name {option.name} value 2")
    try:
        firsts(await talk.go("go depth 2"))
        await talk.ask(f"setoption name {option.name} value {(option.maximum or 0) + 1}")
        return " ".join(firsts(await talk.go("go depth 2")))
    finally:
        if talk.exit is None:
            await talk.ask(f"setoption name {option.name} value {option.default}")


@step("uti", "go")
async def setoption_search(walk: EngineUnderTest) -> str:
    """`setoption` during a search is refused with an error line (after `uti`); the search goes on."""
    option = next((known for known in walk.options.values() if known.type in ("spin", "check")), None)
    if option is None:
        raise Skipped("it has no option of type spin or check")
    return await in_search(walk, f"setoption name {option.name} value {option.default}")


@step("none", "go")
async def wdl(walk: EngineUnderTest) -> str:
    """With UCI_ShowWDL, `wdl` has three numbers from 0 that make 1000."""
    if walk.option("uci_showwdl") is None:
        raise Skipped("it has no option UCI_ShowWDL")
    talk = await walk.ready()
    await talk.ask("setoption name UCI_ShowWDL value true")
    infos = reports(await talk.go("go depth 3"))
    await talk.ask("setoption name UCI_ShowWDL value false")
    shares = infos[-1].wdl if infos else None
    demand(shares, "no wdl in the last report")
    demand(shares and min(shares) >= 0 and sum(shares) == 1000, f"wdl {shares}")
    return " ".join(map(str, shares or ()))


# Variants and games


@step(after=("uti",))
async def variants(walk: EngineUnderTest) -> str:
    """`variants` gives one line per variant, each with its board, men, who begins, aliases and source."""
    talk = await walk.ready()
    form = re.compile(
        r"info string variant \S+ files \d+ ranks \d+ attackers \d+ defenders \d+ first [ad] aliases \S+ source .*"
    )
    lines = await talk.ask("variants")
    demand(lines, "no answer")
    for line in lines:
        demand(form.fullmatch(line), f"`{line}`")
    return f"{len(lines)} variants"


@step()
async def variant(walk: EngineUnderTest) -> str:
    """Choosing a variant answers with its board (after `uti`), the one that our rules have, too."""
    if not walk.uti and walk.option("uci_variant", "variant") is None:
        raise Skipped("it has no option UCI_Variant")
    if walk.variant is None:
        raise Skipped("none of its variants is known to us")
    talk = await walk.ready()
    if not walk.uti:
        return walk.variant.name
    answer = await talk.ask(f"variant {walk.variant.name}")
    line = next(filter(None, map(parse_variant, answer)), None)
    ours = walk.variant
    demand(line is not None, f"answered by {shorten(answer[:1])}")
    if line is not None:
        theirs = (line.files, line.ranks, line.attackers, line.defenders, line.first)
        expected = (ours.files, ours.ranks, ours.attackers, ours.defenders, ours.first)
        demand(theirs == expected, f"{theirs} where we have {expected}")
        demand(
            line.startpos.split()[0] == ours.rows, f"starts from {line.startpos}, ours from {ours.startpos}"
        )
    return walk.variant.name


@step(after=("uti",))
async def variant_option(walk: EngineUnderTest) -> str:
    """`setoption name UCI_Variant value V` does and answers what `variant V` does."""
    talk = await walk.ready()
    word = walk.rules().variant.name
    by_word = await talk.ask(f"variant {word}")
    by_option = await talk.ask(f"setoption name UCI_Variant value {word}")
    demand(by_word == by_option, f"{shorten(by_option[:1])} where variant says {shorten(by_word[:1])}")
    return ""


@step(after=("uti",))
async def variant_unknown(walk: EngineUnderTest) -> str:
    """A variant that does not exist is refused with an error line, and the game stays."""
    talk = await walk.ready()
    before = await talk.ask("query fen")
    refused(walk, await talk.ask("variant no-such-variant-at-all"), "variant")
    demand(await talk.ask("query fen") == before, "the position has changed")
    return ""


@step()
async def newgame(walk: EngineUnderTest) -> str:
    """The newgame word is silent; `isready` behind it is answered; after `uti` the position is the start again."""
    talk = await walk.ready()
    if walk.variant is not None:
        await walk.at(names(wander(walk.rules(), 3)))
    silent(await talk.ask(f"{walk.proto}newgame"))
    if walk.uti and walk.variant is not None:
        await responds(talk, "fen", walk.rules().fen())
    return ""


# Positions


@step(needs="go")
async def position_silent(walk: EngineUnderTest) -> str:
    """`position` with a legal game is silent."""
    start = walk.rules()
    talk = await walk.ready()
    for position in wanders(start, 0, 5):
        silent(await talk.ask(position_line(names(position))))
    return ""


@step(needs="go")
async def fen(walk: EngineUnderTest) -> str:
    """`position fen` is read: the move is legal there, with the other side to move."""
    position = wander(walk.rules(), 5)
    talk = await walk.ready()
    dialects = [("t T K", position.fen())]
    if not walk.uti and walk.rules().variant.game == "tafl":
        rows, fields = position.fen().split(" ", 1)
        dialects.append(("a d k", f"{rows.translate(str.maketrans('tTK', 'adk'))} {fields}"))
    for letters, text in dialects:
        await talk.ask("position startpos", f"position fen {text}")
        found = await talk.go("go depth 1")
        if found.best.move is not None and found.best.move in map(move_name, position.legal_moves()):
            return f"with the letters {letters}"
    raise Failed(f"bestmove {found.best.move} is no legal move there")


@step(needs="fen", after=("uti",))
async def fen_short(walk: EngineUnderTest) -> str:
    """The counters of a FEN may be missing: `0 1` is meant."""
    position = wander(walk.rules(), 1)
    rows, side = position.fen().split()[:2]
    talk = await walk.ready()
    silent(await talk.ask(f"position fen {rows} {side}"))
    await responds(talk, "fen", f"{rows} {side} 0 1")
    return ""


@step()
async def bad_fen(walk: EngineUnderTest) -> str:
    """What is no position is refused with an error line (after `uti`); the engine lives and the position stays."""
    talk = await walk.ready()
    before = await talk.ask("query fen") if walk.uti else []
    for text in BAD_POSITIONS:
        refused(walk, await talk.ask(f"position {text}".rstrip()), "position")
    if walk.uti:
        demand(await talk.ask("query fen") == before, "the position has changed")
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
async def illegal_move(walk: EngineUnderTest) -> str:
    """An illegal move in `position`, also one after the end, is refused with an error line that names it (after `uti`);
    the position before stays, and `go` is still answered."""
    over = names(walk.finished())
    kept = names(wander(walk.rules(), 1))
    talk = await walk.at(kept)
    before = await talk.ask("query fen") if walk.uti else []
    for moves in ([*kept, "a1a1"], ["zz9z99"], [*kept, kept[0]], [*over, kept[0]]):
        refused(walk, await talk.ask(position_line(moves)), f"position: move {len(moves)} {moves[-1]}")
        if walk.uti:
            demand(await talk.ask("query fen") == before, f"the position has changed after {moves[-1]}")
    found = await talk.go("go depth 1")
    if walk.uti:
        legal(played(walk.rules(), kept), found)
    return found.best.move or "(none)"


@step(needs="go")
async def long_game(walk: EngineUnderTest) -> str:
    """A game of 240 plies in one `position` is taken, and answered by a legal move."""
    position = wander(walk.rules(), LONG_GAME)
    talk = await walk.at(names(position))
    legal(position, await talk.go("go depth 1"))
    return f"{LONG_GAME} plies"


@step("none", "go")
async def repetition(walk: EngineUnderTest) -> str:
    """The game that was sent counts for repetition: where it ends by our rules, it ends for the engine."""
    position = repeating(walk.rules())
    talk = await walk.at(names(position))
    found = await talk.go("go depth 1")
    demand(
        found.best.move is None, f"bestmove {found.best.move} after {position.ply} plies: {outcome(position)}"
    )
    return f"after {position.ply} plies: {outcome(position)}"


@step(needs="go", after=("uti", "ugi"))
async def query(walk: EngineUnderTest) -> str:
    """`query` answers with one exact `response` line, in the game and when it is over."""
    talk = await walk.ready()
    for position in (*wanders(walk.rules(), 0, 1, 6), walk.finished()):
        await talk.ask(position_line(names(position)))
        for word, answer in responses(position, walk.proto).items():
            await responds(talk, word, answer)
    return ""


@step(needs="query", after=("uti",))
async def query_search(walk: EngineUnderTest) -> str:
    """`query`, `moves` and `d` are answered during a search, about the position that is searched."""
    position = wander(walk.rules(), 4)
    talk = await walk.at(names(position))
    await talk.send("go infinite")
    lines = await talk.ask("query fen", "moves", "d")
    await talk.send("stop")
    await talk.until("bestmove")
    for expected in (f"response {position.fen()}", moves_line(position.legal_moves())):
        demand(expected in lines, f"no line `{expected}`")
    return ""


@step(after=("uti",))
async def moves(walk: EngineUnderTest) -> str:
    """`moves` and `moves verbose` list the legal moves that our rules have, sorted by origin, then target."""
    talk = await walk.ready()
    for position in (*wanders(walk.rules(), 1, 8), walk.winning()[0], walk.finished()):
        await talk.ask(position_line(names(position)))
        expected = [
            moves_line(position.legal_moves()),
            verbose_moves_line(position.legal_moves_with_captures()),
        ]
        lines = await talk.ask("moves", "moves verbose")
        demand(lines == expected, f"{shorten(lines)} where we have {shorten(expected)}")
    return ""


@step(after=("uti",))
async def play_undo(walk: EngineUnderTest) -> str:
    """`play` and `undo` answer `info string played|undone M turn S`; what cannot be played is an error line."""
    talk = await walk.ready()
    start = walk.rules()
    after = wander(start, 1)
    name = names(after)[0]
    lines = await talk.ask(f"play {name}", "undo")
    expected = [
        f"info string played {name} turn {after.side.letter}",
        f"info string undone {name} turn {start.side.letter}",
    ]
    demand(lines == expected, f"{shorten(lines)} where {shorten(expected)} was expected")
    refused(walk, await talk.ask("undo"), "undo")
    refused(walk, await talk.ask("play a1a1"), "play a1a1: ")
    return ""


async def responds(talk: Transport, word: str, expected: str) -> None:
    """Failed unless `query WORD` is answered by exactly this."""
    lines = await talk.ask(f"query {word}")
    demand(
        lines == [f"response {expected}"], f"query {word}: {shorten(lines)}, expected `response {expected}`"
    )


def responses(position: Position, proto: str) -> dict[str, str]:
    """What `query` is answered by in `position`; after `ugi` only the words which that dialect has."""
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
    """The first moves of the last reports on lines 1 and 2; Failed if they are not two different ones."""
    last = {info.multipv: info.pv[0] for info in reports(found) if info.pv}
    demand({1, 2} <= last.keys(), f"lines {sorted(last)} were reported, 1 and 2 were asked for")
    demand(last[1] != last[2], f"both lines begin with {last[1]}")
    return [last[1], last[2]]
