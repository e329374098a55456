"""Records of games: what they hold, and that they cannot be changed or contradict themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from itertools import pairwise

import pytest

from hnefi.engine import squares as board
from hnefi.engine.records.record import (
    BY_RULES,
    DEPTH_LIMIT,
    FIRST_PLACE,
    PLY_LIMIT,
    TAGS_LIMIT,
    TEXT_LIMIT,
    GameRecord,
    Ply,
    RuleSet,
    next_place,
    sorted_squares,
    walk,
)
from hnefi.engine.sides import Outcome, Reason, Side

FIRST = board.move(board.parse("d1", 7), board.parse("d3", 7))
SECOND = board.move(board.parse("c4", 7), board.parse("c2", 7))


def test_a_record_holds_what_is_known() -> None:
    game = GameRecord(
        "brandubh",
        plies=(Ply(FIRST, (), clock=60_000, cp=-12), Ply(SECOND, (board.parse("b2", 7),), comment="taken")),
        outcome=Outcome(Side.DEFENDERS, Reason.KING_ESCAPED),
        players=("anna", "björn"),
        tags=(("event", "a friendly game"), ("event", "later"), ("round", "2")),
    )
    assert game.moves == (FIRST, SECOND)
    assert game.tag("event") == "a friendly game"
    assert game.tag("site") is None
    assert replace(game) == game
    assert hash(game) == hash(replace(game))
    assert game != replace(game, outcome=None)


def test_what_is_not_known_is_none_or_empty() -> None:
    game = GameRecord("brandubh")
    assert (game.start, game.plies, game.outcome, game.players, game.rules_hash) == (
        None,
        (),
        None,
        ("", ""),
        None,
    )
    assert Ply(FIRST) == Ply(FIRST, None, None, None, None, None, None, "")


def test_records_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        GameRecord("brandubh").variant = "fetlar"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        Ply(FIRST).move = SECOND  # type: ignore[misc]


def test_a_ply_has_one_score() -> None:
    assert Ply(FIRST, mate=-3).mate == -3
    with pytest.raises(ValueError, match="cp 10 and mate 2: expected one score"):
        Ply(FIRST, cp=10, mate=2)


def nested(depth: int) -> Ply:
    """A ply with a variation in a variation in a variation."""
    ply = Ply(FIRST)
    for _ in range(depth):
        ply = Ply(FIRST, variations=((ply,),))
    return ply


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Ply(0), "0 is not a move: expected two squares of a board"),
        (lambda: Ply(FIRST | 1 << 30), "is not a move"),
        (lambda: Ply(-1), "-1 is not a move"),
        (lambda: Ply(FIRST, (0,)), r"captures \(0,\): expected squares of a board"),
        (lambda: Ply(FIRST, (24, 23)), r"captures \(24, 23\): expected them sorted and without duplicates"),
        (lambda: Ply(FIRST, (24, 24)), "expected them sorted and without duplicates"),
        (lambda: Ply(FIRST, tuple(range(200))), "200 captured squares: expected at most 120"),
        (lambda: Ply(FIRST, clock=1 << 63), "clock 9223372036854775808: expected a whole number below"),
        (lambda: Ply(FIRST, depth=True), "depth True: expected a whole number"),
        (lambda: Ply(FIRST, time=1.5), "time 1.5: expected a whole number"),
        (lambda: Ply(FIRST, variations=((),)), "a variation without plies"),
        (lambda: GameRecord("x", tags=(("a b", ""),)), "tag 'a b': expected a letter, then"),
        (lambda: GameRecord("x", tags=(("", ""),)), "tag '': expected a letter"),
        (
            lambda: GameRecord("x", tags=(("fen", ""),)),
            "tag 'fen': expected a name that is not a field of records",
        ),
        (lambda: GameRecord("x", tags=(("t", ""),) * (TAGS_LIMIT + 1)), "1001 tags: expected at most 1000"),
        (lambda: GameRecord("x", verdict="white"), "verdict 'white': expected a, d or draw"),
        (
            lambda: GameRecord("x", outcome=Outcome(None, Reason.REPETITION), verdict="draw"),
            "outcome draw repetition and verdict draw: expected one of them",
        ),
        (lambda: GameRecord("x", comment="c" * (TEXT_LIMIT + 1)), "characters of text: expected at most"),
        (lambda: GameRecord("x", plies=(Ply(FIRST),) * (PLY_LIMIT + 1)), "expected at most 50000 plies"),
        (lambda: GameRecord("x", plies=(nested(DEPTH_LIMIT + 1),)), "expected variations at most 64 deep"),
        (lambda: RuleSet("3/3/3", (("two words", "x"),)), "switch 'two words': expected one word"),
        (lambda: RuleSet("3/3/3", (("x", ""),) * 2000), "2000 switches: expected at most 1000"),
    ],
)
def test_what_no_record_could_hold_is_refused(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


def test_the_limits_themselves_are_held() -> None:
    assert GameRecord("x", plies=(nested(DEPTH_LIMIT),)).plies
    assert Ply(board.SWAP).move == board.SWAP
    assert Ply(FIRST, clock=-(1 << 62)).clock == -(1 << 62)


def test_plies_are_walked_with_their_variations() -> None:
    inner = Ply(SECOND, depth=3)
    plies = (
        Ply(FIRST, depth=1, variations=((Ply(SECOND, depth=2, variations=((inner,),)),),)),
        Ply(FIRST, depth=4),
    )
    assert [ply.depth for ply in walk(plies)] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("outcome", "verdict", "result"),
    [
        (Outcome(Side.ATTACKERS, Reason.KING_CAPTURED), None, "a"),
        (Outcome(Side.DEFENDERS, Reason.TIME), None, "d"),
        (Outcome(None, Reason.AGREED_DRAW), None, "draw"),
        (None, "d", "d"),
        (None, None, None),
    ],
)
def test_the_result_is_told_by_outcome_or_verdict(outcome: Outcome, verdict: str, result: str) -> None:
    assert GameRecord("x", outcome=outcome, verdict=verdict).result == result  # type: ignore[arg-type]


def test_reasons_that_rules_give() -> None:
    assert {Reason.KING_ESCAPED, Reason.MOVE_LIMIT, Reason.CONNECTED, Reason.FAR_ROW} < BY_RULES
    assert not {Reason.TIME, Reason.RESIGNATION, Reason.ADJUDICATED} & BY_RULES


def test_turns_are_counted_and_berserk_moves_stay_in_theirs() -> None:
    names = ["a1a2", "b1b2", "b2b3", "c1c2"]
    moves = [board.move(board.parse(name[:2], 7), board.parse(name[2:], 7)) for name in names]
    places = [FIRST_PLACE]
    for before, move in pairwise(moves):
        places.append(next_place(places[-1], before, move))
    assert places == [(1, 0, 0), (1, 1, 1), (1, 2, 1), (2, 0, 0)]
    stone = board.move(moves[0] >> 9, moves[0] >> 9)
    assert next_place(FIRST_PLACE, stone, stone) == (1, 1, 1), "a stone placed is nobody moving on"


def test_squares_are_sorted_by_file_then_rank() -> None:
    names = ["b1", "a10", "a2", "b1"]
    assert [board.name(sq) for sq in sorted_squares(board.parse(name, 19) for name in names)] == [
        "a2",
        "a10",
        "b1",
    ]
