"""Records of games: what they hold, and that they cannot be changed or contradict themselves."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest

from hnefi.engine import squares as board
from hnefi.engine.record import GameRecord, Ply
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
