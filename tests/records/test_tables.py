"""Games as lines of CSV and JSON: what is read, what is written, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from records_parts import (
    BIG_RULES,
    BRANDUBH,
    ESCAPED,
    FIND,
    SHORT,
    from_text,
    games_of,
    into,
    move,
    sq,
)

from hnefi.engine import squares as board
from hnefi.engine.games.tafl import variant
from hnefi.engine.moves_text import MoveTextError, parse_move_word
from hnefi.engine.records import corpus, tables
from hnefi.engine.records.formats import FORMATS, format_of
from hnefi.engine.records.record import GameRecord, Ply
from hnefi.engine.records.rule_sets import variant_of, without_adjudication
from hnefi.engine.records.text import Losses, RecordError
from hnefi.engine.sides import Outcome, Reason, Side

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
    assert losses == {"JSON values other than text and numbers": 1}
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
    with pytest.raises(RecordError, match="x: CSV names no variant: expected to be given one"):
        games_of("", "csv")


def test_kinds_of_losses_do_not_grow_without_end() -> None:
    losses = Losses()
    for number in range(1000):
        losses.add(f"kind {number}")
    assert len(losses) <= 201
    assert sum(losses.values()) == 1000


@pytest.mark.slow
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
