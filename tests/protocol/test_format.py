"""Lines from an engine, and that our own client reads what the engine writes."""

from __future__ import annotations

import pytest
from fakes import FakePosition, move

from hnefi.engine import options
from hnefi.engine.games.tafl import variant
from hnefi.engine.search.types import Info, Score, SearchResult
from hnefi.engine.session import Played
from hnefi.engine.sides import Outcome, Reason, Side
from hnefi.protocol import answers
from hnefi.protocol import format as say
from hnefi.protocol.server import greeting

BRANDUBH = variant.find("brandubh")
PV = (move("d3a3"), move("d2d3"))
INFO = Info(3, 5, 1, Score(cp=61), 1873, 1_900_000, 0, 1, PV, (600, 100, 300))


def test_info() -> None:
    assert say.info_line(INFO) == (
        "info depth 3 seldepth 5 multipv 1 score cp 61 nodes 1873 nps 1900000 hashfull 0 time 1 pv d3a3 d2d3"
    )
    assert " score cp 61 wdl 600 100 300 nodes " in say.info_line(INFO, wdl=True)


@pytest.mark.parametrize("bound", ["", "lowerbound", "upperbound"])
@pytest.mark.parametrize("score", [Score(cp=-12), Score(mate=3), Score(mate=-1), Score(mate=0)])
def test_info_is_read_back(score: Score, bound: str) -> None:
    info = Info(3, 5, 2, score, 1873, 1_900_000, 7, 1, PV, (600, 100, 300), bound)
    assert answers.parse_info(say.info_line(info, wdl=True)) == answers.InfoLine(
        3, 5, 2, score, bound, (600, 100, 300), 1873, 1_900_000, 7, 1, ("d3a3", "d2d3")
    )


@pytest.mark.parametrize(
    ("result", "ponder", "line"),
    [
        (SearchResult(PV[0], PV[1]), True, "bestmove d3a3 ponder d2d3"),
        (SearchResult(PV[0], PV[1]), False, "bestmove d3a3"),
        (SearchResult(PV[0]), True, "bestmove d3a3"),
        (SearchResult(None), True, "bestmove (none)"),
    ],
)
def test_bestmove(result: SearchResult, ponder: bool, line: str) -> None:
    assert say.bestmove_line(result, ponder=ponder) == line
    best = answers.parse_bestmove(line)
    assert best is not None
    assert best.move == (None if result.move is None else "d3a3")


@pytest.mark.parametrize(
    ("winner", "score"), [(Side.DEFENDERS, "mate 0"), (Side.ATTACKERS, "mate 1"), (None, "cp 0")]
)
def test_finished(winner: Side | None, score: str) -> None:
    outcome = Outcome(winner, Reason.REPETITION)
    assert say.finished_lines(outcome, Side.ATTACKERS) == [
        f"info depth 0 score {score}",
        f"info string outcome {outcome.result} repetition",
    ]


def test_variant() -> None:
    line = say.variant_line(BRANDUBH)
    assert line == (
        "info string variant brandubh files 7 ranks 7 attackers 8 defenders 4 first a "
        "startpos 3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3 a 0 1"
    )
    assert answers.parse_variant(line) == answers.VariantLine(
        "brandubh", 7, 7, 8, 4, "a", "3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3 a 0 1"
    )
    assert say.variants_line(BRANDUBH).startswith(
        "info string variant brandubh files 7 ranks 7 attackers 8 defenders 4 first a aliases - source "
    )
    assert " aliases hnefatafl source " in say.variants_line(variant.find("copenhagen"))


def test_moves() -> None:
    assert say.moves_line(PV) == "moves 2 d3a3 d2d3"
    assert say.moves_line(()) == "moves 0"
    captures = (move("a2a3") & 511, move("e3e4") & 511)
    assert say.verbose_moves_line([(PV[0], captures), (PV[1], ())]) == "moves 2 d3a3xa2xe3 d2d3"
    played = Played(PV[0], captures, FakePosition(BRANDUBH, BRANDUBH.start, (PV[0],)))
    assert say.played_line(played) == "info string played d3a3xa2xe3 turn d"
    assert say.undone_line(played) == "info string undone d3a3 turn d"


def test_history() -> None:
    assert say.history(None, ()) == "startpos"
    assert say.history("3/K2/3 d 0 1", PV) == "fen 3/K2/3 d 0 1 moves d3a3 d2d3"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("plain wörds", "plain wörds"),
        (
            "bell\x07 esc\x1b[2J nul\x00 line\u2028 feed\n",
            "bell\\x07 esc\\x1b[2J nul\\x00 line\\x2028 feed\\x0a",
        ),
        ("x" * 200, "x" * say.TEXT_LIMIT + "…"),
    ],
)
def test_what_was_read_is_repeated_harmlessly(text: str, answer: str) -> None:
    assert say.shown(text) == answer
    assert say.error_line(text, "expected peace") == f"info string error {answer}: expected peace"


@pytest.mark.parametrize("dialect", ["uti", "uci", "ugi"])
def test_greeting_announces_every_option(dialect: str) -> None:
    lines = list(greeting(dialect))
    assert lines[0].startswith("id name hnefi ")
    assert lines[1].startswith("id author ")
    assert lines[-1] == f"{dialect}ok"
    announced = [answers.parse_option(line) for line in lines[2:-1]]
    assert [option.name for option in announced if option is not None] == [
        option.name for option in options.TABLE
    ]
    for option in announced:
        assert option is not None
        if option.default is not None:
            assert option.objection(option.default) is None
