"""What engines say, read as values: ours survive the way there and back, foreign ones are read as far as they go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hnefi.engine import options
from hnefi.engine import squares as board
from hnefi.engine.compile.progress import Progress
from hnefi.engine.games.tafl import variant
from hnefi.engine.search.types import Info, Score, SearchResult
from hnefi.engine.squares import square
from hnefi.protocol import format as lines
from hnefi.protocol.answers import (
    BestMove,
    InfoLine,
    Option,
    parse_bestmove,
    parse_compiling,
    parse_info,
    parse_option,
    parse_variant,
)
from hnefi.protocol.process import LINE_LIMIT, LineSplitter


def test_lines_are_bounded() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"one\r\ntwo\nthr") == [b"one", b"two"]
    assert splitter.feed(b"ee\n\n") == [b"three", b""]
    assert splitter.feed(b"x" * (LINE_LIMIT + 1)) == []
    assert splitter.feed(b"x" * 10) == []
    assert splitter.feed(b"x\nfour\nfi") == [b"four"]
    assert splitter.feed(b"ve\n" + b"y" * (LINE_LIMIT + 1) + b"\nsix\n") == [b"five", b"six"]
    assert splitter.overlong == 2
    assert splitter.feed(b"z" * LINE_LIMIT + b"\n") == [b"z" * LINE_LIMIT]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_lines_do_not_depend_on_the_chunks(size: int) -> None:
    data = b"a\r\nbb\n\nccc\r\n" * 7 + b"rest"
    splitter = LineSplitter()
    lines = [line for at in range(0, len(data), size) for line in splitter.feed(data[at : at + size])]
    assert lines == [b"a", b"bb", b"", b"ccc"] * 7
    assert splitter.rest() == b"rest"


moves = st.integers(0, 48).flatmap(
    lambda at: st.integers(0, 48).map(lambda to: board.move(*(square(sq % 7, sq // 7) for sq in (at, to))))
)
counts = st.integers(0, 10**12)
infos = st.builds(
    Info,
    depth=counts,
    seldepth=counts,
    multipv=st.integers(1, 500),
    score=st.builds(Score, cp=st.integers(-(10**6), 10**6)) | st.builds(Score, mate=st.integers(-500, 500)),
    nodes=counts,
    nps=counts,
    hashfull=st.integers(0, 1000),
    time=counts,
    pv=st.lists(moves, min_size=1, max_size=5).map(tuple),
    wdl=st.tuples(*[st.integers(0, 1000)] * 3),
    bound=st.sampled_from(["", "lowerbound", "upperbound"]),
)


@given(infos, st.booleans())
def test_our_reports_survive(info: Info, wdl: bool) -> None:
    read = parse_info(lines.info_line(info, wdl=wdl))
    assert read is not None
    assert (read.depth, read.seldepth, read.multipv, read.score) == (
        info.depth,
        info.seldepth,
        info.multipv,
        info.score,
    )
    assert (read.nodes, read.nps, read.hashfull, read.time) == (
        info.nodes,
        info.nps,
        info.hashfull,
        info.time,
    )
    assert read.pv == tuple(map(board.move_name, info.pv))
    assert (read.bound, read.wdl) == (info.bound, info.wdl if wdl else None)


@given(moves, moves, st.booleans())
def test_our_answers_survive(move: int, reply: int, ponder: bool) -> None:
    line = lines.bestmove_line(SearchResult(move, reply), ponder=ponder)
    assert parse_bestmove(line) == BestMove(board.move_name(move), board.move_name(reply) if ponder else None)
    assert parse_bestmove(lines.bestmove_line(SearchResult(None))) == BestMove(None)


@pytest.mark.parametrize("name", variant.names())
def test_our_variants_survive(name: str) -> None:
    found = variant.find(name)
    line = parse_variant(lines.variant_line(found))
    assert line is not None
    assert (line.name, line.files, line.ranks) == (name, found.size, found.size)
    assert (line.attackers, line.defenders) == (found.attackers, found.defenders)
    assert (line.first, line.startpos) == (found.rules.first, found.startpos)


@pytest.mark.parametrize("option", options.TABLE, ids=lambda option: option.name)
def test_our_options_survive(option: options.Option) -> None:
    read = parse_option(option.line())
    assert read is not None
    assert (read.name, read.type) == (option.name, option.type)
    if option.type != "button":
        assert read.default == option.default
        assert read.objection(option.default) is None


@given(st.text(st.characters(codec="ascii"), max_size=80))
def test_no_line_is_too_odd(text: str) -> None:
    for word in ("", "info ", "bestmove ", "option name ", "info string variant "):
        for parse in (parse_info, parse_bestmove, parse_option, parse_variant):
            parse(word + text)


def test_options_as_values() -> None:
    assert parse_option("option name Hash type spin default 16 min -1 max 64") == Option(
        "Hash", "spin", "16", -1, 64
    )
    assert parse_option("option name A b type combo default x y var x y var z") == Option(
        "A b", "combo", "x y", values=("x y", "z")
    )
    assert parse_option("option name Log type string default <empty>") == Option("Log", "string", "")
    assert parse_option("option name E type string default default min 1") == Option(
        "E", "string", "default min 1"
    )
    assert parse_option("option name P type combo default default var default") == Option(
        "P", "combo", "default", values=("default",)
    )
    assert parse_option("option name Go type button") == Option("Go", "button")
    for line in ("option", "option name X", "option name X type", "option name X type egg", "info depth 1"):
        assert parse_option(line) is None


def test_reports_as_values() -> None:
    line = "info depth 3 seldepth 5 multipv 2 score cp -61 lowerbound wdl 1 2 997 nodes 9 nps 8 hashfull 7 time 6"
    assert parse_info(f"{line} pv a1a2 b1b2") == InfoLine(
        3, 5, 2, Score(cp=-61), "lowerbound", (1, 2, 997), 9, 8, 7, 6, ("a1a2", "b1b2")
    )
    assert parse_info("info depth x score cp score mate pv nodes 1e9") == InfoLine()
    assert parse_info("info nodes 12 currmove a1a2 pv d1d3 string pv x") == InfoLine(nodes=12, pv=("d1d3",))
    assert parse_info("info depth " + "9" * 5000) == InfoLine(depth=10**15)
    for line in ("info", "info string depth 4", "bestmove a1a2"):
        assert parse_info(line) is None


def test_answers_as_values() -> None:
    assert parse_bestmove("bestmove a1a2 ponder b1b2") == BestMove("a1a2", "b1b2")
    assert parse_bestmove("bestmove (none)") == BestMove(None)
    assert parse_bestmove("bestmove") == BestMove("")
    assert parse_bestmove("bestmoves a1a2") is None
    assert (
        parse_variant("info string variant x files 7 ranks seven attackers 1 defenders 2 first a startpos 7")
        is None
    )


@pytest.mark.parametrize(
    ("line", "progress"),
    [
        ("info string compiling 3/9 search (12 s)", Progress(3, 9, "search", 12.0)),
        ("info string compiling 3/9 search (12 s, about 40 s left)", Progress(3, 9, "search", 12.0, 40.0)),
        (
            "info string compiling 0/9 moves and rules (0 s, in another process)",
            Progress(0, 9, "moves and rules", 0.0, None, True),
        ),
        (
            "info string compiling 3/9 search (a (b)) (12 s, about 0 s left, in another process)",
            Progress(3, 9, "search (a (b))", 12.0, 0.0, True),
        ),
        (
            "info string compiling 3/9 search (12 s, about 40 s left, not kept in /a (b), c (Not a directory))",
            Progress(3, 9, "search", 12.0, 40.0, False, "in /a (b), c (Not a directory)"),
        ),
        (
            "info string compiling 3/9 search (12 s, not kept anywhere (there is no home folder))",
            Progress(3, 9, "search", 12.0, unkept="anywhere (there is no home folder)"),
        ),
    ],
)
def test_what_is_being_compiled(line: str, progress: Progress) -> None:
    assert parse_compiling(line) == progress
    assert lines.compiling_line(progress) == line


@pytest.mark.parametrize(
    "line",
    [
        "",
        "info string compiling",
        "info string compiling the book",
        "info string compiling 3/9 (12 s)",
        "info string compiling 3 search (12 s)",
        "info string compiling 3/9 search",
        "info string compiling 3/9 search (12 s, soon)",
        "info string compiling 3/9 search (-1 s)",
        "info string compiling ³/9 search (12 s)",
        "info string compiling 3/9 search (1234567890 s)",
        "info string Compiling 3/9 search (12 s)",
        "info depth 3",
    ],
)
def test_other_lines_say_nothing_about_compiling(line: str) -> None:
    assert parse_compiling(line) is None


def test_fractions_and_line_ends_do_not_reach_the_line() -> None:
    told = lines.compiling_line(Progress(1, 2, " two\nwords ", 12.4, 39.6))
    assert told == "info string compiling 1/2 two words (12 s, about 40 s left)"
    assert lines.compiling_line(Progress(1, 2, "", 0.0)) == "info string compiling 1/2 - (0 s)"
