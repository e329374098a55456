"""Recorded games against their rules: what a checker finds, in made-up games and in played ones."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from records_parts import (
    BRANDUBH,
    FIND,
    from_text,
    games_of,
    into,
    move,
)

from hnefi.engine import games
from hnefi.engine.games.tafl import variant
from hnefi.engine.records import corpus, tafl_text
from hnefi.engine.records.check import Checker
from hnefi.engine.records.formats import Reading, read
from hnefi.engine.records.record import GameRecord, Ply
from hnefi.engine.records.rule_sets import played_by
from hnefi.engine.records.text import Losses

# Games by their rules


def random_game(rules: Any, seed: int, length: int = 24) -> GameRecord:
    """A game of random moves, with a variation now and then, and an outcome if the rules gave one."""
    dice = random.Random(f"{rules.name} {seed}")
    position = games.initial(rules)
    played: list[Ply] = []
    while position.outcome is None and len(played) < length:
        legal = position.legal_moves()
        lines = []
        if dice.random() < 0.2:
            other = position.play(dice.choice(legal))
            line = [Ply(other.moves[-1], other.last_captures)]
            if other.outcome is None:
                following = other.play(dice.choice(other.legal_moves()))
                line.append(Ply(following.moves[-1], following.last_captures, comment="and so on"))
            lines.append(tuple(line))
        position = position.play(dice.choice(legal))
        played.append(Ply(position.moves[-1], position.last_captures, variations=tuple(lines)))
    return played_by(GameRecord("?", plies=tuple(played), outcome=position.outcome), rules)


@pytest.mark.parametrize("name", games.names())
def test_random_games_of_every_variant_survive_every_format(name: str) -> None:
    rules = games.find(name)
    for seed in range(2):
        record = random_game(rules, seed)
        assert record.plies
        assert Checker(FIND).fault(games_of(into("tafl", record)[0], "tafl")[0]) is None
        forms = ("tafl", "jsonl", "otg", "csv") if isinstance(rules, variant.Variant) else ("tafl", "jsonl")
        for form in forms:
            text, _ = into(form, record)
            (back,) = from_text(text, form, variant=rules, adjudicate=True)
            if form == "csv":
                bare = tuple(replace(ply, variations=()) for ply in record.plies)
                expected = replace(record, plies=bare, outcome=None, verdict=record.result)
            else:
                expected = record
            assert back == expected, form


FAULTS: list[tuple[str, str | None]] = [
    ("1. d1d3 *", "x:4: game 2 ply 1 d1d3: is illegal: blocked at d2"),
    ("1. a4a2\nd3a3 *", "x:5: game 2 ply 2 d3a3: d3a3xa2 by the rules, d3a3 recorded"),
    ("1. a4a2\nd3a3xa2xb2 *", "x:5: game 2 ply 2 d3a3: d3a3xa2 by the rules, d3a3xa2xb2 recorded"),
    ("1. a4a2 (1. a4a3 d3a3xa2) *", "x:4: game 2 ply 2 d3a3: is illegal: blocked at a3"),
    ("1. a4a2 (1. a4a3\n(1. d1d4) d3b3) d3a3x? *", "x:5: game 2 ply 1 d1d4: is illegal: blocked at d2"),
    ("1. a4a2 d", None),
    (
        '[Result "d king_escaped"]\n1. a4a2 d',
        "x:5: game 2 ply 1 a4a2: the game goes on by the rules, d recorded as their verdict",
    ),
    ('[Result "a time"]\n1. a4a2 a', None),
    ('[Result "d time"]\n1. a4a2 d', "x:5: game 2 ply 1 a4a2: d was to move when time ran out, d recorded"),
    ('[refused "d3d2"]\n1. a4a2 *', None),
    ('[refused "d3a3"]\n1. a4a2 *', "x:5: game 2 ply 1 a4a2: d3a3 was refused, but is legal"),
    ('[RulesHash "00"]\n*', "x:3: game 2: brandubh: expected the rules that the record's hash names"),
    (
        '[FEN "7/7/7/K6/7/t4t1/7 d 0 1"]\n1. a4a7 a2b2 *',
        "x:5: game 2 ply 2 a2b2: was played after the end: d king_escaped",
    ),
    ('[FEN "7/7/7/K6/7/t4t1/7 d 0 1"]\n1. a4a7 d', None),
    (
        '[FEN "7/7/7/K6/7/t4t1/7 d 0 1"]\n1. a4a7 a',
        "x:5: game 2 ply 1 a4a7: d king_escaped by the rules, a recorded",
    ),
    (
        '[FEN "7/7/7/K6/7/t4t1/7 d 0 1"]\n1. a4a7 *',
        "x:5: game 2 ply 1 a4a7: d king_escaped by the rules, unfinished recorded",
    ),
    (
        '[FEN "7/7/7/K6/7/t4t1/7 d 0 1"]\n[Result "d resignation"]\n1. a4a7 d',
        "x:6: game 2 ply 1 a4a7: d king_escaped by the rules, d resignation recorded",
    ),
    ('[FEN "7/7/7/K6/7/t4t1/7 d 0 1"]\n[ended_by "illegal"]\n1. a4a7 a', None),
    (
        '[FEN "7/7/7/K6/7/t4t1/7 d 0 1"]\n[Result "a time"]\n1. a4a6 a',
        "x:6: game 2 ply 1 a4a6: a was to move when time ran out",
    ),
    ('[FEN "nonsense"]\n*', "x:3: game 2: board 'nonsense': 1 row: expected 3 to 19"),
    ('[FEN "7/7/7/K6/7/t4t1/7 a 0 1"]\n1. d4 *', "x:5: game 2 ply 1 d4: is illegal: "),
]


@pytest.mark.parametrize(("text", "expected"), FAULTS)
def test_games_are_checked_by_their_rules(text: str, expected: str | None) -> None:
    checker = Checker(FIND)
    found = games_of(f'[Variant "brandubh"]\n*\n[Variant "brandubh"]\n{text}', "tafl")
    faults = [checker.fault(game) for game in found]
    assert faults[0] is None
    message = None if faults[1] is None else faults[1].message("x", 2)
    if expected is None:
        assert message is None
    else:
        assert message is not None
        assert message.startswith(expected)


def test_a_game_of_unknown_rules_cannot_be_checked() -> None:
    (game,) = games_of('[Variant "glima"]\n1. a1a2 *', "tafl")
    fault = Checker(FIND).fault(game)
    assert fault is not None
    assert fault.message("x", 1).startswith("x:1: game 1: 'glima': expected the name of a variant")


def test_other_rules_need_another_board() -> None:
    """One checker, games of different rules one after the other."""
    checker = Checker(FIND)
    edge = played_by(
        GameRecord("?", plies=(Ply(move("d1a1"), ()),)),
        variant.Variant.build("own", variant.find("brandubh").rows, {"corner_stop": "all"}),
    )
    plain = replace(BRANDUBH, plies=edge.plies)
    for _ in range(2):
        (game,) = games_of(into("tafl", edge)[0], "tafl")
        assert checker.fault(game) is None
        (game,) = games_of(into("tafl", plain)[0], "tafl")
        assert checker.fault(game) is not None


# The recorded games


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "name"),
    [("copenhagen.csv", "copenhagen"), ("brandubh.csv", "brandubh"), ("bologna.jsonl", "tablut-bologna")],
)
def test_recorded_games_go_through_every_format_and_back(
    corpora: Path, tmp_path: Path, file: str, name: str
) -> None:
    form = file.partition(".")[2]
    rules = variant.find(name)
    with (corpora / file).open("rb") as stream:
        found = [game.record for game in read(stream, file, form, Reading(FIND, rules), Losses())]
    text = "".join(tafl_text.write(record) for record in found)
    through = from_text(text)
    assert through == found
    copy = tmp_path / file
    copy.write_text("".join(into(form, record)[0] for record in through), "utf-8")
    originals, copies = (list(corpus.read(path, rules.size)) for path in (corpora / file, copy))
    for one, other in zip(originals, copies, strict=True):
        assert replace(other, line=one.line) == one
    other_text = "".join(into("otg", record)[0] for record in found)
    for one, other in zip(found, from_text(other_text, "otg"), strict=True):
        assert [ply.move for ply in one.plies] == [ply.move for ply in other.plies]
        assert [ply.captures or () for ply in one.plies] == [ply.captures for ply in other.plies]
        assert one.result == other.result
    checker = Checker(FIND)
    assert [fault for game in games_of(text, "tafl") if (fault := checker.fault(game))] == []


def test_recorded_games_are_not_adjudicated_unless_asked(corpora: Path) -> None:
    with (corpora / "copenhagen.csv").open("rb") as stream:
        how = Reading(FIND, variant.find("copenhagen"), adjudicate=True)
        checker = Checker(FIND)
        faults = [checker.fault(game) for game in read(stream, "x", "csv", how, Losses())]
    assert sum(fault is not None for fault in faults) == 6
