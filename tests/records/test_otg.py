"""OpenTafl's records: what is written is read back, what that notation cannot say is counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from records_parts import (
    BRANDUBH,
    ESCAPED,
    FIND,
    OTG,
    SHORT,
    from_text,
    games_of,
    into,
    move,
    sq,
)

from hnefi.engine import squares as board
from hnefi.engine.games.tafl import variant
from hnefi.engine.games.tafl.otn import export_rules
from hnefi.engine.records import tafl_text
from hnefi.engine.records.record import GameRecord, Ply
from hnefi.engine.records.rule_sets import played_by, variant_of
from hnefi.engine.records.text import Losses, RecordError
from hnefi.engine.sides import Outcome, Reason, Side

# OpenTafl's notation

OTG_TEXT = """\
[date:2015.05.04]
[result:-1]
[attackers:Ann]
[defenders:Bo]
[puzzle-mode:loose]
[rules:dim:7 name:brandubh start:/3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3/]
[start-comment:Two lines,

and a third.]

1. d1-c1 d3-b3
[300 30/3 5i A comment of
several lines.|299 0/0 0i]

1a.1.1a. d1-b1 d3-c3
[instead|]

1a.1.2a. b1-b2 Kd4-d3
[|and | more]

1b.1.1a. ..... d3-a3xa4
[instead of the second]

2. c1-c2xc3/b2 Kd4-d3
[|]

2a.1.1a. a4-a2 d2-c2
[|]

2a.1.1a.1.1a. ..... d2-b2
[nested, after a4-a2]

2a.1.1b.1.1a. ..... d2-a2
[nested, in the place of d2-c2]

2a.1.2a. a2-a3
[]

3. c2-c1 ---
"""


def test_opentafls_records_are_read() -> None:
    losses = Losses()
    (record,) = (game.record for game in games_of(OTG_TEXT, "otg", losses=losses))
    assert record.outcome == Outcome(Side.DEFENDERS, Reason.RESIGNATION)
    assert record.players == ("Ann", "Bo")
    assert record.comment == "Two lines,\n\nand a third."
    assert record.tags == (("date", "2015.05.04"), ("puzzle-mode", "loose"))
    text = tafl_text.write(record).partition("\n\n{")[2]
    assert " ".join(text.split()) == (
        "Two lines, and a third.} 1. d1c1 {[%clk 0:05:00.000] A comment of several lines.} "
        "(1. d1b1 {instead} 1... d3c3 2. b1b2 d4d3 {and | more}) "
        "1... d3b3 {[%clk 0:04:59.000]} (1... d3a3xa4 {instead of the second}) "
        "2. c1c2xb2xc3 (2. a4a2 d2c2 (2... d2b2 {nested, after a4-a2}) (2... d2a2 {nested, in the place of d2-c2}) "
        "3. a2a3) 2... d4d3 3. c2c1 d"
    )
    assert losses == {"overtime and increments in clocks": 1}
    assert variant_of(record, FIND).name == "brandubh"


def test_opentafls_records_are_written() -> None:
    inner = (
        Ply(move("a4a2"), ()),
        Ply(move("d2c2"), (), variations=((Ply(move("d1b1"), ()),),)),
        Ply(move("a2a3"), ()),
    )
    record = replace(
        BRANDUBH,
        plies=(
            Ply(move("d2c2"), (), clock=300_000, comment="first"),
            Ply(
                move("d4d3"),
                (),
                variations=((Ply(move("d3b3"), ()), Ply(move("b4b3"), ())), (Ply(move("d3c3"), ()),)),
            ),
            Ply(move("c2c3"), (sq("b3"), sq("c4")), variations=(inner,)),
            Ply(move("d3d7"), ()),
        ),
        outcome=ESCAPED,
        players=("Ann", ""),
        tags=(("date", "2015.05.04"),),
        comment="Hello",
    )
    text, losses = into("otg", record)
    assert (
        text
        == f"""\
[variant:brandubh]
[attackers:Ann]
[result:-1]
[termination:king escaped]
[date:2015.05.04]
[start-comment:Hello]
[rules:{export_rules(variant.find("brandubh"))[0]}]

1. d2-c2 Kd4-d3
[300 0/0 0i first|]

1b.1.1a. ..... d3-b3
[]

1b.1.2a. b4-b3
[]

1b.2.1a. ..... d3-c3
[]

2. c2-c3xb3/c4 Kd3-d7--
[|]

2a.1.1a. a4-a2 d2-c2
[|]

2a.1.1a.1.1a. ..... d1-b1
[]

2a.1.2a. a2-a3
[]

"""
    )
    assert from_text(text, "otg") == [record]
    assert set(losses) <= {f"the rule switch {name}" for name, _ in variant.find("brandubh").rules_lines()}


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"plies": (Ply(move("d2c2")),)}, "that captures are not recorded"),
        ({"plies": (Ply(move("d2c2"), (), time=3),)}, "time taken for a ply"),
        ({"plies": (Ply(move("d2c2"), (), mate=3),)}, "evaluations"),
        ({"plies": (Ply(move("d2c2"), (), depth=3),)}, "search depths"),
        ({"plies": (Ply(move("d2c2"), (), clock=1234),)}, "milliseconds and debts of clocks"),
        ({"plies": (Ply(move("d2c2"), (), clock=-1000),)}, "milliseconds and debts of clocks"),
        (
            {"plies": (Ply(move("d2c2"), (), comment="a]b|c"),)},
            "characters that end a text, and control characters",
        ),
        ({"plies": (Ply(move("d2c2"), (), comment="3 2/1 to go"),)}, "comments that begin like a clock"),
        ({"comment": "\ud800"}, "characters that end a text, and control characters"),
        ({"tags": (("event", "a\nb"),)}, "characters that end a text, and control characters"),
        ({"tags": (("rules", "x"),)}, "the tag rules"),
        ({"rules_hash": "0" * 64}, "the hash of rules that have changed since"),
        ({"start": "3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3 a 5 9"}, "the counters of a start position"),
    ],
)
def test_what_opentafl_cannot_say_is_counted(change: dict[str, Any], kind: str) -> None:
    usual = into("otg", BRANDUBH)[1]
    text, losses = into("otg", replace(BRANDUBH, **change))
    (found,) = losses.keys() - usual.keys()
    assert found.startswith(kind)
    assert losses[found] == 1
    assert len(from_text(text, "otg")) == 1, "and the text can be read"


def test_a_start_position_and_its_side_survive_opentafls_notation() -> None:
    for side in "ad":
        record = replace(
            BRANDUBH,
            start=f"7/7/3t3/3K3/7/7/t5t {side} 0 1",
            plies=(Ply(move("d4d5"), ()), Ply(move("a1a2"), ())),
        )
        text, _ = into("otg", record)
        assert ("1. ..... Kd4-d5\n" in text) == (side == "d")
        assert from_text(text, "otg") == [record]


def test_special_pieces_jumps_and_berserk_moves_have_their_signs() -> None:
    own = variant.Variant.build("own", "N4c1/7/7/3K3/7/1t5/t1T4", {"berserk": "any", "corners": "none"})
    plies = [("a1c1", ()), ("c1c3", ("a7", "f7")), ("c3c5", ()), ("b2b4", ())]
    record = played_by(
        GameRecord("?", plies=tuple(Ply(move(one), tuple(map(sq, taken))) for one, taken in plies)), own
    )
    text, _ = into("otg", record)
    assert "1. a1-c1 =".replace(" =", "=c3xNa7/cf7=c5") not in text
    assert "1. a1-c1 c1=c3xNa7/cf7 c3=c5 b2-b4" in text
    jump = played_by(
        GameRecord("?", plies=(Ply(move("f7d7"), ()), Ply(move("a7a5"), ()), Ply(move("b2d2"), ()))),
        variant.Variant.build("own", "N3Tc1/T6/7/3K3/7/1tT4/t6", {"corners": "none"}),
    )
    assert "1. cf7^d7 Na7^a5\n" in into("otg", jump)[0]


def test_a_mercenary_turns_its_coat() -> None:
    own = variant.Variant.build("own", "7/1m5/7/3K3/7/7/T6", {"corners": "none"})
    plies = (Ply(move("a1c1"), (sq("b6"),)), Ply(move("b6b5"), ()))
    assert "1. a1-c1xmb6 Mb6-b5\n" in into("otg", played_by(GameRecord("?", plies=plies), own))[0]


def test_alternatives_to_the_first_ply_of_a_variation_stand_beside_it() -> None:
    third = Ply(move("d3f3"), ())
    second = Ply(move("d3c3"), (), variations=((third,),))
    first = Ply(move("d3b3"), (), variations=((second,), (third,)))
    plies = (
        Ply(move("a4a2"), ()),
        Ply(move("d3e3"), (), variations=((first, Ply(move("a2a1"), ())), (third,))),
    )
    (back,) = from_text(into("otg", replace(BRANDUBH, plies=plies))[0], "otg")
    assert [[board.move_name(ply.move) for ply in line] for line in back.plies[1].variations] == [
        ["d3b3", "a2a1"],
        ["d3c3"],
        ["d3f3"],
        ["d3f3"],
        ["d3f3"],
    ]
    (same,) = from_text(into("otg", back)[0], "otg")
    assert same == back


def test_rules_are_known_by_what_they_say_whatever_they_are_called() -> None:
    rules = export_rules(variant.find("foteviken"))[0]
    text = f"[variant:Our game]\n[rules:{rules.replace('name:foteviken', 'name:f')}]\n\n1. a4-b4\n"
    (record,) = from_text(text, "otg")
    assert (record.variant, record.rules) == ("foteviken", None)
    assert record.rules_hash == variant.find("foteviken").hash
    assert record.tags == (("otn-variant", "Our game"),)


def test_several_games_in_one_file() -> None:
    text = "".join(into("otg", record)[0] for record in (BRANDUBH, SHORT, BRANDUBH, SHORT))
    found = from_text(text, "otg")
    assert [len(record.plies) for record in found] == [0, 3, 0, 3]
    assert [record.comment for record in found] == ["", SHORT.comment] * 2


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("[result:1-0]\n" + OTG + "1. d2-c2\n", "the result '1-0'"),
        ("[my tag:x]\n" + OTG + "1. d2-c2\n", "characters in the names of tags (others stand for them)"),
        (
            OTG.replace("dim:7", "dim:7 foo:bar") + "1. d2-c2\n",
            "of the rules: 'foo:bar': expected a known key",
        ),
        (OTG + "1. d2-c2\n[]\n\n9a.1.1a. d1-d2\n[]\n", "variations that replace no move"),
        (OTG + "1. d2-c2\n[]\n\n1a.1.1a.1.1a. d1-d2\n[]\n", "variations that replace no move"),
    ],
)
def test_what_a_record_cannot_hold_of_opentafls_is_counted(text: str, kind: str) -> None:
    losses = Losses()
    assert len(games_of(text, "otg", losses=losses)) == 1
    assert losses == {kind: 1}


def test_rules_are_read_as_opentafl_does_where_that_is_asked_for() -> None:
    text = OTG.replace("dim:7", "dim:7 tfr:w") + "1. d2-c2\n"
    plain, coded = from_text(text, "otg")[0], from_text(text, "otg", opentafl=True)[0]
    assert plain.rules is not None
    assert coded.rules is not None
    assert ("repetition", "mover_wins") in plain.rules.switches
    assert {("repetition", "mover_loses"), ("opentafl", "yes")} <= set(coded.rules.switches)


def test_opentafl_knows_no_other_games() -> None:
    with pytest.raises(RecordError, match="OTN contains the rules, and these are unknown: 'glima'"):
        into("otg", GameRecord("glima"))
