"""Recorded games: the project's own text, all formats alike, and what is no record is refused at its place."""

from __future__ import annotations

import json
import re
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from records_parts import (
    BIG_RULES,
    BRANDUBH,
    FIND,
    HEAD,
    HOSTILE,
    OTG,
    SHORT,
    SHORT_TEXT,
    Endless,
    from_text,
    games_of,
    into,
    move,
    sq,
)

from hnefi.engine import squares as board
from hnefi.engine.games.base_variant import VariantError
from hnefi.engine.games.tafl import variant
from hnefi.engine.records import corpus, otg_reader, tables, tafl_text
from hnefi.engine.records import record as record_values
from hnefi.engine.records.formats import FORMATS, Reading, read
from hnefi.engine.records.record import GameRecord, Ply, RuleSet, walk
from hnefi.engine.records.replay import as_played
from hnefi.engine.records.rule_sets import carried, played_by, variant_of
from hnefi.engine.records.text import LINE_LIMIT, Losses, RecordError
from hnefi.engine.sides import Outcome, Reason, Side

ROOT = Path(__file__).resolve().parents[2]


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


@pytest.mark.slow
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
    for module in (tafl_text, otg_reader, record_values):  # so that it takes no time
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
