"""Lines to an engine: what is understood, what is refused, and that what we write we also read."""

from __future__ import annotations

import pytest

from hnefi.engine.search.types import Limits
from hnefi.engine.session import SessionError
from hnefi.protocol import format as say
from hnefi.protocol.commands import TABLE
from hnefi.protocol.messages import (
    NUMBER_LIMIT,
    Genfens,
    SetOption,
    SetPosition,
    command_of,
    integer,
    parse_genfens,
    parse_go,
    parse_number,
    parse_position,
    parse_setoption,
    words_of,
)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"", []),
        (b" \t go \t depth  3 \r", ["go", "depth", "3"]),
        (b"a\x00b", ["a\x00b"]),
        ("größer\u00a0als".encode(), ["größer\u00a0als"]),
    ],
)
def test_words(line: bytes, words: list[str]) -> None:
    assert words_of(line) == words


def test_words_that_are_not_utf_8() -> None:
    with pytest.raises(UnicodeDecodeError):
        words_of(b"go \xff")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("joho debug on", "debug on"),
        ("go depth 3", "go depth 3"),
        ("Go depth 3", ""),
        ("# go", ""),
        ("#go", ""),
        ("", ""),
    ],
)
def test_unknown_leading_words_are_skipped(line: str, found: str) -> None:
    assert command_of(line.split(), TABLE) == found.split()


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        ("-7", -7),
        ("+7", 7),
        ("007", 7),
        ("9" * 5000, NUMBER_LIMIT),
        ("-" + "9" * 5000, -NUMBER_LIMIT),
        ("1_0", None),
        ("1.5", None),
        ("²", None),
        ("٣", None),
        ("-", None),
        ("", None),
    ],
)
def test_integer(text: str, number: int | None) -> None:
    assert integer(text) == number


@pytest.mark.parametrize(
    ("line", "limits"),
    [
        ("go", Limits()),
        ("go infinite", Limits(infinite=True)),
        ("go depth 5 nodes 1000 mate 3 movetime 50", Limits(depth=5, nodes=1000, mate=3, movetime=50)),
        ("go atime 1 dtime 2 ainc 3 dinc 4", Limits(clock=(1, 2), inc=(3, 4))),
        ("go wtime 1 btime 2 winc 3 binc 4", Limits(clock=(1, 2), inc=(3, 4))),
        ("go p1time 1 p2time 2 p1inc 3 p2inc 4", Limits(clock=(1, 2), inc=(3, 4))),
        ("go btime -20 movestogo 5 ponder", Limits(clock=(None, -20), movestogo=5, ponder=True)),
        ("go depth 0 nodes -1 movetime -5 movestogo 0", Limits(depth=1, nodes=1, movetime=0)),
        ("go winc -5", Limits()),
    ],
)
def test_go(line: str, limits: Limits) -> None:
    go = parse_go(line.split())
    assert (go.limits, go.searchmoves, go.problems) == (limits, (), ())


def test_go_with_searchmoves() -> None:
    go = parse_go(words_of(b"go searchmoves d1d3 a4a2 depth 3"))
    assert go.searchmoves == ("d1d3", "a4a2")
    assert go.limits == Limits(depth=3)


@pytest.mark.parametrize(
    ("line", "problems", "limits"),
    [
        ("go depth", ["go depth: expected a whole number"], Limits()),
        ("go depth x nodes 5", ["go depth x: expected a whole number"], Limits(nodes=5)),
        ("go depth nodes 5", ["go depth: expected a whole number"], Limits(nodes=5)),
        (
            "go quickly depth 3",
            ["go quickly: expected a limit such as depth 5 or movetime 1000"],
            Limits(depth=3),
        ),
    ],
)
def test_go_reports_and_skips_what_is_wrong(line: str, problems: list[str], limits: Limits) -> None:
    go = parse_go(line.split())
    assert [str(problem) for problem in go.problems] == problems
    assert go.limits == limits


def test_position() -> None:
    fen = "4K2/7/7/7/t6/7/7 d 0 30 caps=1,2"
    assert parse_position(words_of(b"position startpos moves a1a2 a2a3")) == SetPosition(
        "startpos", "", ("a1a2", "a2a3")
    )
    assert parse_position(f"position fen {fen}".split()) == SetPosition("fen", fen)
    assert parse_position(words_of(b"position otn /3/3/3/ moves")) == SetPosition("otn", "/3/3/3/")


@pytest.mark.parametrize(
    "line", ["position", "position here", "position fen", "position fen moves a1a2", "position moves"]
)
def test_position_that_is_none(line: str) -> None:
    with pytest.raises(SessionError):
        parse_position(line.split())


def test_setoption() -> None:
    assert parse_setoption(words_of(b"setoption name Hash value 32")) == SetOption("Hash", "32")
    assert parse_setoption(words_of(b"setoption name ClearHash")) == SetOption("ClearHash")
    assert parse_setoption(words_of(b"setoption name Rules value")) == SetOption("Rules", "")
    assert parse_setoption(words_of(b"setoption name A B value c value d")) == SetOption("A B", "c value d")


@pytest.mark.parametrize(
    "line", ["setoption", "setoption name", "setoption Hash 32", "setoption name value 3"]
)
def test_setoption_without_a_name(line: str) -> None:
    with pytest.raises(SessionError, match="expected name <option> value <value>"):
        parse_setoption(line.split())


def test_genfens() -> None:
    assert parse_genfens(words_of(b"genfens 3")) == Genfens(3)
    assert parse_genfens(words_of(b"genfens 3 seed 7 plies 4")) == Genfens(3, 7, (4, 4))
    assert parse_genfens(words_of(b"genfens 3 plies 4-8 seed 7")) == Genfens(3, 7, (4, 8))


@pytest.mark.parametrize(
    "line",
    [
        "genfens",
        "genfens x",
        "genfens 0",
        "genfens 3 seed",
        "genfens 3 seed -1",
        "genfens 3 plies 8-4",
        "genfens 3 x 4",
    ],
)
def test_genfens_that_is_wrong(line: str) -> None:
    with pytest.raises(SessionError):
        parse_genfens(line.split())


def test_number() -> None:
    assert parse_number(["perft", "3"], 0, 9) == 3
    assert parse_number(["bench"], 1, 9, default=0) == 0
    for words in (["perft"], ["perft", "x"], ["perft", "10"], ["perft", "-1"], ["perft", "3", "4"]):
        with pytest.raises(SessionError, match="expected a whole number from 0 to 9"):
            parse_number(words, 0, 9)


@pytest.mark.parametrize("dialect", ["uti", "uci", "ugi"])
@pytest.mark.parametrize(
    "limits",
    [
        Limits(),
        Limits(infinite=True),
        Limits(depth=3, nodes=4, mate=5, movetime=6, movestogo=7, ponder=True),
        Limits(clock=(1000, None), inc=(10, 0)),
        Limits(clock=(-5, 0), inc=(0, 3)),
    ],
)
def test_what_is_written_is_read(limits: Limits, dialect: str) -> None:
    go = parse_go(say.go_line(limits, ["d1d3"], dialect=dialect).split())
    assert (go.limits, go.searchmoves, go.problems) == (limits, ("d1d3",), ())


def test_other_messages_written_are_read() -> None:
    for position in (
        SetPosition("startpos", "", ("a1a2",)),
        SetPosition("fen", "3/K2/3 d 0 1"),
        SetPosition("startpos", ""),
    ):
        assert parse_position(say.position_line(position).split()) == position
    for option in (SetOption("Hash", "3"), SetOption("ClearHash"), SetOption("Rules", "")):
        assert parse_setoption(say.setoption_line(option).split()) == option
    for genfens in (Genfens(3), Genfens(3, 0, (4, 4)), Genfens(3, None, (4, 6))):
        assert parse_genfens(say.genfens_line(genfens).split()) == genfens
