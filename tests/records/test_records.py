"""Recorded games in every format: what is written is read back, what cannot be held is counted, and what is no record
is refused at its place."""

from __future__ import annotations

import json
import random
import re
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from records_parts import BRANDUBH, FIND, HEAD, HOSTILE, OTG, SHORT, SHORT_TEXT, from_text, games_of, move, sq

from hnefi.engine import games
from hnefi.engine import squares as board
from hnefi.engine.games.base_variant import VariantError
from hnefi.engine.games.tafl import variant
from hnefi.engine.games.tafl.otn import export_rules
from hnefi.engine.moves_text import MoveTextError, parse_move_word
from hnefi.engine.records import corpus, otg, tables, tafl_text
from hnefi.engine.records import record as record_values
from hnefi.engine.records.check import Checker
from hnefi.engine.records.formats import FORMATS, Reading, format_of, read, write
from hnefi.engine.records.record import GameRecord, Ply, RuleSet, walk
from hnefi.engine.records.replay import as_played
from hnefi.engine.records.rule_sets import carried, played_by, variant_of, without_adjudication
from hnefi.engine.records.text import LINE_LIMIT, Losses, RecordError
from hnefi.engine.sides import Outcome, Reason, Side

ROOT = Path(__file__).resolve().parents[2]
ESCAPED = Outcome(Side.DEFENDERS, Reason.KING_ESCAPED)


def into(form: str, record: GameRecord) -> tuple[str, Losses]:
    losses = Losses()
    return write(record, form, FIND, losses), losses


# The project's own text


def test_a_record_as_text() -> None:
    assert tafl_text.write(SHORT) == SHORT_TEXT
    assert from_text(SHORT_TEXT) == [SHORT]
    (game,) = games_of(SHORT_TEXT, "tafl")
    assert game.line == 1
    assert [game.places[id(ply)] for ply in game.record.plies] == [9, 9, 10]


@pytest.mark.parametrize(
    ("moves", "expected"),
    [
        ("*", ()),
        ("1. d1d3 d7d6 *", (Ply(move("d1d3"), ()), Ply(move("d7d6"), ()))),
        ("d1-d3\td7-d6xe6/e5\r\n*", (Ply(move("d1d3"), ()), Ply(move("d7d6"), (sq("e5"), sq("e6"))))),
        ("12.d1d3 12...d7d6x? 7 *", (Ply(move("d1d3"), ()), Ply(move("d7d6")))),
        ("Kd4-d1-- *", (Ply(move("d4d1"), ()),)),
        ("d4 swap *", (Ply(move("d4"), ()), Ply(board.SWAP, ()))),
        ("d1d3 {one} {} {two\r\nthree} *", (Ply(move("d1d3"), (), comment="one two\nthree"),)),
        (
            "d1d3 {well [%emt 0:00:00.5] [%clk -1:00:00] [%foo] played} *",
            (Ply(move("d1d3"), (), time=500, clock=-3_600_000, comment="well [%foo] played"),),
        ),
        ("d1d3 {[%eval #-3]} *", (Ply(move("d1d3"), (), mate=-3),)),
        (
            "d1d3 ({before} d1d2 {[%depth 3]}) *",
            (Ply(move("d1d3"), (), variations=((Ply(move("d1d2"), (), depth=3, comment="before"),),)),),
        ),
    ],
)
def test_moves_in_every_accepted_form(moves: str, expected: tuple[Ply, ...]) -> None:
    (record,) = from_text(f'[variant "unheard of"]\n{moves}')
    assert record == GameRecord("unheard of", plies=expected)
    assert from_text(tafl_text.write(record)) == [record]


def test_text_is_kept_to_the_letter() -> None:
    strange = 'a } { \\ [%clk 1] " \x00\t\r\n\n  \x85 \ud800 é \u2028 \ufeff end\\'
    record = GameRecord(
        strange,
        start=strange,
        plies=(Ply(move("d1d3"), comment=strange, clock=0), Ply(move("d1d3"), comment=" [%eval 3]")),
        players=(strange, ""),
        rules_hash=strange,
        tags=(("a", strange), ("a", ""), ("b", "x" * 150_000)),
        comment=strange,
    )
    text = tafl_text.write(record)
    assert from_text(text + text) == [record, record]
    assert max(map(len, text.splitlines())) < LINE_LIMIT
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text), "nothing that a terminal would obey"


def test_whether_captures_are_known_is_kept() -> None:
    none, unknown, some = Ply(move("d1d3"), ()), Ply(move("d1d3")), Ply(move("d1d3"), (sq("d4"),))
    for plies in [(none,), (unknown,), (none, unknown), (some,), (some, unknown), (some, none), ()]:
        record = GameRecord("x", plies=plies)
        text = tafl_text.write(record)
        assert from_text(text) == [record]
        assert ("x?" in text) == (none in plies and unknown in plies)
        assert ('[Captures "unknown"]' in text) == (unknown in plies and none not in plies)
        assert from_text(into("jsonl", record)[0], "jsonl") == [record]


@pytest.mark.parametrize("form", FORMATS)
def test_a_byte_order_mark_is_no_text(form: str) -> None:
    (text, _) = into(form, replace(BRANDUBH, plies=(Ply(move("a4a2"), ()),)))
    rules = variant.find("brandubh")
    plain, marked = (games_of(mark + text.encode(), form, variant=rules) for mark in (b"", b"\xef\xbb\xbf"))
    assert [game.record for game in plain] == [game.record for game in marked]


def test_berserk_moves_are_numbered_inside_their_turn() -> None:
    first = Ply(move("a1a2"), (sq("b2"),), variations=((Ply(move("a1a3"), ()), Ply(move("c1c2"), ())),))
    plies = (first, Ply(move("a2a5"), ()), Ply(move("c1c2"), (), comment="and"), Ply(move("d1d2"), ()))
    text = tafl_text.write(GameRecord("x", plies=plies))
    assert "1. a1a2xb2 (1. a1a3 c1c2) 1... a2a5 c1c2 {and} 2. d1d2 *" in text


def test_rules_of_ones_own_travel_with_the_record() -> None:
    own = variant.Variant.build(
        "mine",
        "3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3",
        {"escape": "edge", "corners": "none", "zones": "a1:K:stop;b2:t:pass"},
    )
    record = played_by(SHORT, own)
    assert record.rules == RuleSet(own.rows, tuple(own.rules.changes().items()))
    for form in ("tafl", "jsonl"):
        text, losses = into(form, record)
        assert from_text(text, form) == [record]
        assert losses == {}
        assert variant_of(from_text(text, form)[0], FIND).hash == own.hash
    assert '[Rule "escape edge"]' in tafl_text.write(record)
    assert carried(variant.find("brandubh")) is None
    assert carried(as_played(variant.find("brandubh"))) is not None, "the name alone would tell other rules"


def test_a_variant_that_nobody_knows_is_kept_by_its_word() -> None:
    (record,) = from_text('[Variant "glima:40"]\n[FEN "whatever"]\n1. s19a1 *')
    assert (record.variant, record.start) == ("glima:40", "whatever")
    with pytest.raises(VariantError, match="glima:40"):
        variant_of(record, FIND)
    with pytest.raises(RecordError, match="no square a20 on this 19x19 board"):
        from_text('[Variant "glima:40"]\n1. a20a21 *')


def test_a_variant_for_games_that_name_none() -> None:
    (record,) = from_text("1. a4a2 *", variant=variant.find("brandubh"))
    assert record == replace(BRANDUBH, plies=(Ply(move("a4a2"), ()),))


# What is lost nowhere: records made up at random

NASTY = (
    "[%clk 0:00:01.000]",
    "[%eval #3] ",
    "\\",
    "{",
    "}",
    '"',
    "\n",
    "\r",
    "\x00",
    "(",
    ")",
    "]",
    "|",
    "  ",
    "1.",
    "*",
)
CHARACTERS = st.characters(exclude_categories=())
TEXTS = st.one_of(
    st.text(CHARACTERS, max_size=12),
    st.lists(st.one_of(st.sampled_from(NASTY), CHARACTERS), max_size=8).map("".join),
)
SQUARES = st.sampled_from(sorted(board.squares(board.MAX_SIZE)))
MOVES = st.one_of(st.builds(board.move, SQUARES, SQUARES), st.just(board.SWAP))
NUMBERS = st.one_of(st.none(), st.integers(-99_999_999, 99_999_999), st.integers(-(1 << 62), 1 << 62))
CAPTURES = st.one_of(
    st.none(),
    st.just(()),
    st.sets(SQUARES, max_size=4).map(lambda found: tuple(sorted(found, key=board.sort_key))),
)


def plies(lines: st.SearchStrategy[tuple[tuple[Ply, ...], ...]]) -> st.SearchStrategy[Ply]:
    return st.builds(
        lambda mate, score, **known: Ply(**known, **({"mate": score} if mate else {"cp": score})),
        move=MOVES,
        captures=CAPTURES,
        clock=NUMBERS,
        time=NUMBERS,
        mate=st.booleans(),
        score=NUMBERS,
        depth=NUMBERS,
        comment=TEXTS,
        variations=lines,
    )


PLIES = st.recursive(
    plies(st.just(())),
    lambda inner: plies(st.lists(st.lists(inner, min_size=1, max_size=3).map(tuple), max_size=2).map(tuple)),
    max_leaves=6,
)
TAGS = st.lists(
    st.tuples(st.from_regex(r"\A[A-Za-z][A-Za-z0-9_-]{0,9}\Z").map(lambda name: f"T{name}"), TEXTS),
    max_size=4,
)
ENDS = st.one_of(
    st.just({}),
    st.builds(
        lambda side, reason: {"outcome": Outcome(side, reason)},
        st.sampled_from([None, *Side]),
        st.sampled_from(list(Reason)),
    ),
    st.sampled_from(["a", "d", "draw"]).map(lambda verdict: {"verdict": verdict}),
)
BIG_RULES = carried(variant.Variant.build("big", "/".join(["9t9"] + ["19"] * 8 + ["9K9"] + ["19"] * 9)))
RECORDS = st.builds(
    lambda end, **known: GameRecord(**known, **end),
    variant=TEXTS.map(lambda text: f"no {text}"),
    start=st.one_of(st.none(), TEXTS),
    plies=st.lists(PLIES, max_size=5).map(tuple),
    end=ENDS,
    players=st.tuples(TEXTS, TEXTS),
    rules_hash=st.one_of(st.none(), TEXTS),
    tags=TAGS.map(tuple),
    comment=TEXTS,
    rules=st.sampled_from([None, BIG_RULES]),
)
MANY = settings(
    max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None
)


@MANY
@given(st.lists(RECORDS, max_size=2))
@pytest.mark.parametrize("form", ["tafl", "jsonl"])
def test_records_come_back_as_they_were(form: str, records: list[GameRecord]) -> None:
    text = "".join(into(form, record)[0] for record in records)
    back = from_text(text, form)
    assert back == records
    assert "".join(into(form, record)[0] for record in back) == text


@MANY
@given(RECORDS)
def test_json_of_records_is_json_for_readers_of_collections(record: GameRecord) -> None:
    plain = replace(record, start=None, rules=None)
    if any(ply.move & 511 == ply.move >> 9 for ply in plain.plies):
        return  # collections know no stones
    game = corpus.parse_json(json.dumps(tables.to_json(plain)), 1, board.MAX_SIZE)
    assert tuple(one for one, _ in game.plies) == plain.moves
    assert [taken for _, taken in game.plies if taken] == [
        ply.captures for ply in plain.plies if ply.captures
    ]
    assert game.result == plain.result


@MANY
@given(st.text(st.sampled_from('[]{}()"\\%:.*xad1 2\n\tVariant "brandubh"#-|{}e5d3d1'), max_size=60))
@pytest.mark.parametrize("form", FORMATS)
def test_any_text_is_read_or_refused_at_a_line(form: str, text: str) -> None:
    for head in ("", '[Variant "brandubh"]\n', "[rules:dim:7 start:/3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3/]\n1. "):
        try:
            found = from_text(head + text, form, variant=variant.find("brandubh"))
        except RecordError as error:
            assert re.match(r"x:\d+:", str(error))  # noqa: PT017
        else:
            if form != "csv":
                written = "".join(into("tafl", record)[0] for record in found)
                assert from_text(written) == found


# What is no record


@pytest.mark.parametrize(
    ("form", "data", "message"),
    HOSTILE,
    ids=[f"{form}-{number}" for number, (form, *_) in enumerate(HOSTILE)],
)
def test_what_is_no_record_is_refused_at_its_place(form: str, data: str | bytes, message: str) -> None:
    how = {} if form in ("tafl", "otg") else {"variant": variant.find("brandubh")}
    with pytest.raises(RecordError, match=message) as caught:
        games_of(data, form, **how)
    assert re.match(r"x:\d+", str(caught.value))
    assert len(str(caught.value)) < 400


class Endless:
    """A stream that repeats a line for ever."""

    def __init__(self, head: str, line: str) -> None:
        self.lines: Iterator[bytes] = iter([*head.encode().splitlines(keepends=True)])
        self.line = line.encode()
        self.read = 0

    def readline(self, size: int = -1, /) -> bytes:
        self.read += 1
        return next(self.lines, self.line)[: size if size >= 0 else None]


class Counting(Endless):
    """A stream of ever new variations without a move."""

    def __init__(self, head: str) -> None:
        super().__init__(head, "")

    def readline(self, size: int = -1, /) -> bytes:
        self.line = f"1a.{self.read}.1a.\n".encode()
        return super().readline(size)


@pytest.mark.parametrize(
    ("form", "head", "line"),
    [
        ("tafl", HEAD, "d1d3 d3d1 d1d3 d3d1 " * 2000 + "\n"),
        ("tafl", HEAD + "d1d3 {", "endless " * 5000 + "\n"),
        ("tafl", HEAD + "d1d3 ", "(d1d2 " * 10 + "\n"),
        ("tafl", HEAD + "d1d3 (", "{comment} " * 5000 + "\n"),
        ("tafl", "", '[a "b"]\n'),
        ("tafl", HEAD, "x" * 4096),
        ("otg", OTG, "1. d1-d3 d3-d1\n"),
        ("otg", OTG + "1. d1-d3\n[", "endless " * 5000 + "\n"),
        ("otg", OTG + "1. d1-d3\n", "COUNT"),
        ("csv", "", "d1-d3 " * 4096),
        ("jsonl", "", "[" * 4096 + "\n"),
    ],
)
def test_a_stream_without_end_is_given_up_in_little_memory(
    monkeypatch: pytest.MonkeyPatch, form: str, head: str, line: str
) -> None:
    for module in (tafl_text, otg, record_values):  # so that it takes no time
        monkeypatch.setattr(module, "PLY_LIMIT", 2000)
        monkeypatch.setattr(module, "TEXT_LIMIT", 50_000)
    stream = Counting(head) if line == "COUNT" else Endless(head, line)
    tracemalloc.start()
    try:
        with pytest.raises(RecordError):
            for _ in read(stream, "x", form, Reading(FIND, variant.find("brandubh")), Losses()):
                pass
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 << 20
    assert stream.read < 20_000


def test_games_are_handed_out_one_at_a_time() -> None:
    for form, one in [(form, into(form, replace(SHORT, outcome=None))[0]) for form in FORMATS]:
        stream = Endless("", "")
        stream.line = b""
        stream.lines = iter((one * 1000).encode().splitlines(keepends=True))
        found = read(stream, "x", form, Reading(FIND, variant.find("brandubh")), Losses())
        next(found)
        next(found)
        assert stream.read <= 3 * len(one.splitlines())


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
            "of the rules: 'foo:bar': expected a key that is known",
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
    with pytest.raises(RecordError, match="OTN tells the rules, and these are unknown: 'glima'"):
        into("otg", GameRecord("glima"))


# Collections


def test_csv_becomes_records_by_the_sites_rules() -> None:
    text = "d2-c2 d4-d3xe3xd2xe3,0,3,White\n\nd2-c2 timeout,0,0,White\nd2-c2,0,0,\nd2-c2 timeout,0,0,\n"
    found = games_of(text, "csv", variant=variant.find("brandubh"))
    assert [game.line for game in found] == [1, 3, 4, 5]
    records = [game.record for game in found]
    assert records[0].plies == (Ply(move("d2c2"), ()), Ply(move("d4d3"), (sq("d2"), sq("e3"))))
    assert [record.verdict for record in records] == ["d", None, None, None]
    assert [record.outcome for record in records] == [None, Outcome(Side.DEFENDERS, Reason.TIME), None, None]
    played = variant_of(records[0], FIND)
    assert played.hash == records[0].rules_hash == without_adjudication(variant.find("brandubh")).hash
    (adjudicated, *_) = from_text(text, "csv", variant=variant.find("brandubh"), adjudicate=True)
    assert adjudicated.rules is None
    back = "".join(into("csv", record)[0] for record in records)
    assert back == "d2-c2 d4-d3xd2xe3,0,2,White\nd2-c2 timeout,0,0,White\nd2-c2,0,0,\nd2-c2 timeout,0,0,\n"


@pytest.mark.parametrize("form", ["tafl", "jsonl"])
@pytest.mark.parametrize(
    "row", ["d2-c2,0,0,", "d2-c2,0,0,Ongoing", "d2-c2 timeout,0,0,", "d2-c2 timeout,0,0,White"]
)
def test_a_result_that_is_not_recorded_is_none_again(row: str, form: str) -> None:
    """There and back: an empty result is not an unfinished game."""
    (record,) = from_text(f"{row}\n", "csv", variant=variant.find("brandubh"))
    text, _ = into(form, record)
    (again,) = from_text(text, form)
    back, losses = into("csv", again)
    assert back == f"{row}\n"
    assert "tags" not in losses


def test_csv_counts_who_captured() -> None:
    first = (
        Ply(move("a1a2"), (sq("b2"),)),
        Ply(move("a2a5"), (sq("b5"), sq("c5"))),
        Ply(move("c1c2"), (sq("d2"),)),
    )
    for start, counts in (("7/7/7/3K3/7/7/7 a 0 1", "3,1"), ("7/7/7/3K3/7/7/7 d 0 1", "1,3"), (None, "3,1")):
        assert into("csv", replace(BRANDUBH, start=start, plies=first))[0].endswith(f",{counts},Ongoing\n")
    assert into("csv", GameRecord("tablut-bologna", plies=first))[0].endswith(",1,3,Ongoing\n"), (
        "defenders begin there"
    )


def test_what_csv_cannot_hold_is_counted() -> None:
    assert into("csv", SHORT)[1] == {
        "the variant": 1,
        "players": 1,
        "tags": 2,
        "why the game ended": 1,
        "comments": 2,
        "clocks and times": 1,
        "evaluations and depths": 1,
        "variations": 2,
    }
    unknown = replace(BRANDUBH, start="7/7/7/3K3/7/7/7 a 0 1", plies=(Ply(move("d2c2")),), rules=BIG_RULES)
    assert into("csv", unknown)[1].keys() == {
        "the variant",
        "rules that are no shipped variant",
        "start positions",
        "that captures are not recorded",
    }
    with pytest.raises(RecordError, match="f6: expected moves from square to square: CSV has no others"):
        into("csv", GameRecord("hex:11", plies=(Ply(move("f6")),)))


def test_json_of_collections_keeps_what_it_says() -> None:
    text = (
        '{"id": 7, "moves": "e5e3 e1e2", "refused": "a1a1", "result": "a", "ended_by": "illegal", '
        '"x": null, "y": [1]}\n'
    )
    losses = Losses()
    (record,) = (
        game.record for game in games_of(text, "jsonl", losses=losses, variant=variant.find("brandubh"))
    )
    assert record.plies == (Ply(move("e5e3")), Ply(move("e1e2")))
    assert record.tags == (("id", "7"), ("refused", "a1a1"), ("ended_by", "illegal"))
    assert (record.verdict, record.variant) == ("a", "brandubh")
    assert losses == {"values of JSON that are no text and no number": 1}
    back = json.loads(into("jsonl", record)[0])
    assert (back["refused"], back["ended_by"], back["moves"], back["result"]) == (
        "a1a1",
        "illegal",
        "e5e3 e1e2",
        "a",
    )
    with pytest.raises(RecordError, match="x:1: variant: expected the name of one"):
        from_text('{"moves": ""}', "jsonl")


def test_plain_games_are_plain_json() -> None:
    plain = replace(BRANDUBH, plies=(Ply(move("d2c2"), ()), Ply(move("d4d3"), (sq("e3"),))), outcome=ESCAPED)
    assert tables.to_json(plain) == {
        "variant": "brandubh",
        "rules_hash": BRANDUBH.rules_hash,
        "moves": "d2c2 d4d3xe3",
        "captures": True,
        "result": "d",
        "reason": "king_escaped",
    }
    assert tables.to_json(SHORT)["plies"][0] == {
        "move": "a4a2",
        "captures": [],
        "clock": 59250,
        "comment": "a mistake",
    }
    game = corpus.parse_json(json.dumps(tables.to_json(plain)), 1, 7)
    assert game.plies == ((move("d2c2"), ()), (move("d4d3"), (sq("e3"),)))
    assert (game.by_rules, game.compare, game.timeout) == (True, True, False)
    late = tables.to_json(replace(plain, outcome=Outcome(Side.ATTACKERS, Reason.TIME)))
    assert corpus.parse_json(json.dumps(late), 1, 7).timeout
    for key in ("start", "rules"):
        with pytest.raises(
            corpus.CorpusError, match=f"{key} .*: expected a game from the start by known rules"
        ):
            corpus.parse_json(json.dumps({"moves": "", key: "x"}), 1, 7)


def test_the_format_follows_the_ending() -> None:
    assert [format_of(f"dir.csv/x.{form.upper()}") for form in FORMATS] == list(FORMATS)
    with pytest.raises(RecordError, match=r"x.pgn: expected a file ending in .tafl, .otg, .csv, .jsonl"):
        format_of("x.pgn")
    with pytest.raises(RecordError, match="x: CSV names no variant: expected to be told it"):
        games_of("", "csv")


def test_kinds_of_losses_do_not_grow_without_end() -> None:
    losses = Losses()
    for number in range(1000):
        losses.add(f"kind {number}")
    assert len(losses) <= 201
    assert sum(losses.values()) == 1000


def test_a_game_too_long_for_a_line_of_json_is_refused() -> None:
    many = tuple(sorted(board.squares(11), key=board.sort_key))[:120]
    record = GameRecord("x", plies=(Ply(move("a1a2"), many, depth=1),) * 20_000)
    with pytest.raises(RecordError, match="bytes of JSON: expected at most"):
        into("jsonl", record)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("d1d3xd4", (move("d1d3"), (sq("d4"),))),
        ("f6", (board.move(sq("f6"), sq("f6")), None)),
        ("f6xe5xd4xe5", (move("f6"), (sq("d4"), sq("e5")))),
        ("swap", (board.SWAP, None)),
    ],
)
def test_moves_of_every_game(word: str, expected: tuple[int, tuple[int, ...] | None]) -> None:
    assert parse_move_word(word, 11) == expected
    assert board.move_name(expected[0]) == word.partition("x")[0]


@pytest.mark.parametrize("word", ["f12", "swapd1", "f", "f6x", "f6xf12", "f6" + "xa1" * 300, ""])
def test_what_is_no_move_of_any_game(word: str) -> None:
    with pytest.raises(MoveTextError):
        parse_move_word(word, 11)


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
    ('[RulesHash "00"]\n*', "x:3: game 2: brandubh: expected the rules that the record's hash is of"),
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
    ('[FEN "nonsense"]\n*', "x:3: game 2: board 'nonsense': 1 rows: expected 3 to 19"),
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


# The document


def test_the_examples_of_the_document_are_records() -> None:
    document = (ROOT / "docs" / "records.md").read_text("utf-8")
    shown: dict[str, Callable[[str], list[GameRecord]]] = {
        "tafl": from_text,
        "otg": lambda text: from_text(text, "otg"),
        "jsonl": lambda text: from_text(text, "jsonl", variant=variant.find("brandubh")),
        "csv": lambda text: from_text(text, "csv", variant=variant.find("brandubh")),
    }
    for form, examples in shown.items():
        blocks = re.findall(rf"^```{form}\n(.*?)^```$", document, re.MULTILINE | re.DOTALL)
        assert blocks, form
        for block in blocks:
            found = examples(block)
            assert found
            for record in found:
                assert from_text(tafl_text.write(record)) == [record]
            assert all(ply.move for record in found for ply in walk(record.plies))
