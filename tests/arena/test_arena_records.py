"""Games of a run as records, as JSON and as positions."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import fake_arena
import pytest
from arena_results import new_run

from hnefi.engine import games, squares
from hnefi.engine.games.tafl.otn import export_rules
from hnefi.engine.records import tafl_text
from hnefi.engine.records.check import Checker
from hnefi.engine.records.record import GameRecord
from hnefi.engine.sides import Outcome, Reason, Side
from hnefi.tools.arena import report_command
from hnefi.tools.arena.records import Maker
from hnefi.tools.arena.values import EngineSpec, Fault, GameResult, GameTask, Opening, PlyLog, SideLimits

# A whole game of brandubh.
GAME = (
    "d2b2 d5g5 f4f3 c4c6 d6e6 e4e3 e6e5 d4f4 f3f1 c6c3 f1f3 c3a3 e5d5 e3e4 g4g2 e4c4 b4b7 g5f5 d7e7 f4g4 "
    "e7e4 f5f4 d1f1 g4g3 b2c2 c4c7 d5d7 c7c3 d7e7 d3e3 f1f2 a3a2 f2g2 f4f7 a4a6 c3b3 e7e6 a2a5 c2e2 a5a3 "
    "e6c6 g3g4 g2g3 f7f2 e2b2 f2f5 c6g6 f5f6 b2c2 f6c6 c2c3 a3a5 c3c4 e3e5 c4e4 b3e3 g6g5"
)
MOVES = GAME.split()
FINAL = "7/2T4/T3T1t/7/4T1t/7/7 d 1 29"
SPECS = (
    EngineSpec("mine", ("mine",), player="", options=(("Hash", "16"),), limits=(SideLimits(nodes=5000),) * 2),
    EngineSpec(
        "simple", ("x",), player="simple", limits=(SideLimits(time=1000, increment=10), SideLimits(depth=3))
    ),
)
MAKER = Maker("cup", SPECS)


def played(opening: int = 4, variant: str = "brandubh", **known: Any) -> GameResult:
    """The game, its first plies as opening; thinking made up."""
    position = games.initial(games.find("brandubh"))
    plies = []
    for number, text in enumerate(MOVES):
        position = position.play(position.parse_move(text))
        captures = tuple(squares.name(sq) for sq in position.last_captures)
        log = PlyLog(
            text, captures, cp=number - 20, depth=3, seldepth=7, nodes=1000 + number, nps=90_000, time=12.6, clock=900,
            latency=0.25,
        )  # fmt: skip
        plies.append(log)
    result = GameResult(
        task=GameTask(17, 2, variant, Opening(None, tuple(MOVES[:opening])), (1, 0), (11, 22)),
        names=("simple", "mine"),
        winner="a",
        reason="king_captured",
        plies=tuple(plies[opening:]),
        captured=position.taken,
        ids=("simple 1.0", ""),
        final=position.fen(),
        started=1_700_000_000.0,
        rules_hash=games.find("brandubh").hash,
    )
    return replace(result, **known)


def read(data: bytes) -> GameRecord:
    [found] = tafl_text.read(io.BytesIO(data), "test")
    return found.record


def test_a_record() -> None:
    lines = MAKER.tafl(played()).decode().splitlines()
    assert lines[: lines.index("")] == [
        '[Variant "brandubh"]',
        f'[RulesHash "{games.find("brandubh").hash}"]',
        '[Attackers "simple"]',
        '[Defenders "mine"]',
        '[Result "a king_captured"]',
        '[Event "cup"]',
        '[Round "17.2"]',
        '[Date "2023.11.14"]',
        '[UTCTime "22:13:20"]',
        '[AttackersEngine "simple 1.0"]',
        '[AttackersPlayer "simple"]',
        '[AttackersLimits "tc 1+0.01"]',
        '[AttackersSeed "11"]',
        '[DefendersOptions "Hash=16"]',
        '[DefendersLimits "nodes 5000"]',
        '[DefendersSeed "22"]',
        '[OpeningPlies "4"]',
    ]
    assert lines[lines.index("") + 1].startswith("1. d2b2 d5g5 2. f4f3 c4c6 3. d6e6")
    assert lines[lines.index("") + 2].startswith(
        "{[%clk 0:00:00.900] [%emt 0:00:00.013] [%eval -16] [%depth 3] [%nodes 1004]"
    )


def test_records_read_back_and_are_legal() -> None:
    result = played()
    record = read(MAKER.tafl(result))
    assert record == MAKER.record(result)
    assert [squares.move_name(move) for move in record.moves] == MOVES
    assert record.outcome == Outcome(Side.ATTACKERS, Reason.KING_CAPTURED)
    assert record.plies[21].captures == (squares.parse("e4", 7),)
    assert record.plies[0].captures == ()
    assert read(MAKER.tafl(played(30))).plies[21].captures == (squares.parse("e4", 7),)
    ply = record.plies[4]
    assert (ply.clock, ply.time, ply.cp, ply.mate, ply.depth) == (900, 13, -16, None, 3)
    assert ply.comment == "[%nodes 1004] [%nps 90000] [%seldepth 7] [%latency 0.25]"
    [found] = tafl_text.read(io.BytesIO(MAKER.tafl(result)), "test")
    assert Checker(games.find).fault(found) is None


@pytest.mark.parametrize(
    ("winner", "reason", "fault"),
    [
        ("d", "time", Fault(0, "time", "over by 12 ms")),
        ("d", "illegal_move", Fault(0, "illegal_move", 'FEN "x"\\ }{ \x00\n')),
        ("draw", "ply_cap", None),
        ("a", "adjudicated", None),
    ],
)
def test_other_ends(winner: Any, reason: str, fault: Fault | None) -> None:
    record = read(MAKER.tafl(played(winner=winner, reason=reason, fault=fault, plies=played().plies[:7])))
    assert (record.result, record.outcome and record.outcome.reason.value) == (winner, reason)
    assert record.tag("Fault") == (None if fault is None else f"a {reason}: {fault.text}")


def test_what_engines_say_is_kept_and_harmless() -> None:
    evil = ("info string }{ [%clk 9:00:00.000] \\ \x1b[2J", "日本 \ud800")
    ply = PlyLog("a4a2", cp=10**30, mate=-(10**30), depth=10**40, nodes=10**40, clock=5, lines=evil)
    names = ('"]\n[Result "a', "\x00" * 50)
    result = played(0, plies=(ply,), names=names, advisories=("x" * 10**6,) * 30)
    record = read(MAKER.tafl(result))
    assert record.players == names
    assert (record.plies[0].cp, record.plies[0].mate, record.plies[0].depth) == (None, None, None)
    assert record.plies[0].comment == "\n".join([f"[%nodes {10**40}]", *evil])


def test_kept_lines_have_a_limit() -> None:
    talkative = played(plies=tuple(replace(ply, lines=("x" * 60_000,)) for ply in played().plies))
    record = read(MAKER.tafl(talkative))
    assert sum(len(ply.comment) > 60_000 for ply in record.plies) == 8


def test_a_mate_is_told_instead_of_centipawns() -> None:
    record = read(MAKER.tafl(played(0, plies=(PlyLog("d2b2", cp=9000, mate=3),))))
    assert (record.plies[0].cp, record.plies[0].mate) == (None, 3)


def test_games_from_positions_and_by_rules() -> None:
    fen = "7/2T4/T3T1t/4K2/4T1t/7/7 a 0 1"
    task = replace(played().task, opening=Opening(fen, ()))
    record = read(MAKER.tafl(played(task=task, plies=(PlyLog("g5g6"),), winner="draw", reason="ply_cap")))
    assert (record.start, record.variant) == (fen, "brandubh")
    rules, _ = export_rules(games.find("brandubh"))
    ruled = read(MAKER.tafl(played(variant=rules)))
    assert [squares.move_name(move) for move in ruled.moves] == MOVES


def test_an_opening_that_rules_forbid_is_recorded_as_it_was() -> None:
    task = replace(played().task, opening=Opening(None, ("d4d5", "d2b2")))
    record = read(MAKER.tafl(played(task=task)))
    assert [ply.captures for ply in record.plies[:2]] == [None, None]


def test_one_line_of_json() -> None:
    data = MAKER.line(played(fault=Fault(1, "crash", "exit code 3")))
    assert data.endswith(b"\n")
    assert data.count(b"\n") == 1
    found = json.loads(data)
    assert (found["id"], found["winner"], found["captured"], found["fault"]["text"]) == (
        "17.2",
        "a",
        [0, 6],
        "exit code 3",
    )
    assert found["opening"] == {"start": None, "moves": MOVES[:4]}
    assert found["engines"][1] == {
        "side": "d", "name": "mine", "id": "", "player": "", "options": {"Hash": "16"},
        "limits": "nodes 5000", "seed": 22,
    }  # fmt: skip
    assert found["plies"][17]["captures"] == ["e4"]
    assert len(found["plies"]) == len(MOVES) - 4


def test_positions() -> None:
    [final] = MAKER.positions(played()).splitlines()
    assert json.loads(final) == {
        "id": "17.2", "variant": "brandubh", "ply": 57, "fen": FINAL, "winner": "a", "reason": "king_captured",
    }  # fmt: skip
    lines = [json.loads(line) for line in MAKER.positions(played(), 10).splitlines()]
    assert [line["ply"] for line in lines] == [10, 20, 30, 40, 50]
    assert [line["cp"] for line in lines] == [number - 21 for number in (10, 20, 30, 40, 50)]
    position = games.initial(games.find("brandubh"))
    for text in MOVES[:10]:
        position = position.play(position.parse_move(text))
    assert lines[0]["fen"] == position.fen()
    # Positions of the opening are nobody's.
    assert [json.loads(line)["ply"] for line in MAKER.positions(played(20), 10).splitlines()] == [30, 40, 50]


def test_records_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = fake_arena.config(pairs=1, rating__bootstrap=0)
    task = replace(played().task, pair=1, game=1, engines=(0, 1))
    result = played(task=task, names=settings.names, extra={"stderr": "dying\x1b[2J"})
    with new_run(tmp_path / "run", fake_arena.prepared(settings)) as store:
        store.append(
            [result, replace(result, task=replace(task, game=2, engines=(1, 0)), names=settings.names[::-1])]
        )
    out = tmp_path / "games.tafl"
    out.write_text("old")
    assert report_command.main_report([str(tmp_path / "run"), "--records", str(out)]) == 0
    assert [game.record.tag("Round") for game in tafl_text.read(io.BytesIO(out.read_bytes()), "out")] == [
        "1.1",
        "1.2",
    ]
    capsys.readouterr()
    assert report_command.main_report([str(tmp_path / "run"), "--game", "1.1"]) == 0
    said = capsys.readouterr()
    assert read(said.out.encode()).players == settings.names
    assert said.err == "dying?[2J\n"
