"""What the search knows of the next move, against playing every move out."""

from __future__ import annotations

import random
from typing import Any

import pytest

from hnefi.engine.games.tafl import setup, threats, variant
from hnefi.engine.games.tafl.position import Position
from hnefi.engine.games.tafl.state import CORE
from hnefi.engine.sides import Reason, Side
from hnefi.engine.squares import ORIGIN

NAMES = variant.names()
LIVELY = ("brandubh", "tablut-linnaeus", "tablut-bologna", "hingston-original", "mini-six")
"""Random games of these come near to an end within the walk."""
SCRATCH = 0
WALKS = 14
"""Games for each variant."""
PASSED = 10
"""Positions in which a pass is tried."""


def positions(name: str, walks: int) -> list[Position]:
    """Undecided positions of random games, those near the end above all: there somebody wins."""
    draw = random.Random(name)
    found = []
    for _ in range(walks):
        position, path = Position.initial(variant.find(name)), []
        while position.outcome is None and len(path) < 120:
            path.append(position)
            position = position.play(draw.choice(position.legal_moves()))
        found += path[-3:] + draw.sample(path, min(2, len(path)))
    return found


@pytest.fixture(scope="module", params=NAMES)
def walked(request: pytest.FixtureRequest) -> tuple[str, list[Position]]:
    """A variant's name and positions of its games, made once: pytest runs all tests of a variant together."""
    return request.param, positions(request.param, WALKS)


def winning(position: Position, side: Side, reasons: tuple[Reason, ...], origin: int = 0) -> list[int]:
    """The legal moves that end the game for a side at once; with `origin` those of the piece there."""
    found = []
    for move in position.legal_moves():
        if origin and move & ORIGIN != origin:
            continue
        outcome = position.play(move).outcome
        if outcome is not None and outcome.winner == side and outcome.reason in reasons:
            found.append(move)
    return found


def state_of(position: Position) -> Any:
    return position.new_record()[0]


def test_wins_at_once_are_wins_and_escapes_are_never_missed(walked: tuple[str, list[Position]]) -> None:
    name, found = walked
    seen = 0
    for position in found:
        state = state_of(position)
        if state["opentafl"]:
            assert threats.winning_move(state, SCRATCH) == 0
            continue
        before, king = state.tobytes()[CORE], int(state["king"])
        move = int(threats.winning_move(state, SCRATCH))
        assert state.tobytes()[CORE] == before
        if move:
            seen += 1
            outcome = position.play(move).outcome
            assert outcome is not None
            assert outcome.winner == position.side
        elif position.side == Side.DEFENDERS and not state["must_go"]:
            assert not winning(position, Side.DEFENDERS, (Reason.KING_ESCAPED,), king), position.fen()
    assert seen or name not in LIVELY


def test_what_nothing_parries_is_lost(walked: tuple[str, list[Position]]) -> None:
    for position in walked[1]:
        state = state_of(position)
        if threats.winning_move(state, SCRATCH):
            continue
        threat, king = int(threats.threat_level(state, SCRATCH)), int(state["king"])
        if threat == 2:
            assert position.side == Side.ATTACKERS
            for move in position.legal_moves():
                after = position.play(move)
                assert after.outcome is None or after.outcome.winner == Side.DEFENDERS, position.fen()
                assert after.outcome is not None or winning(
                    after, Side.DEFENDERS, (Reason.KING_ESCAPED,), king
                ), position.fen()
        # A threat is what the other side would do if it were to move.
        if threats.make_null(state):
            assert bool(threats.winning_move(state, SCRATCH)) <= bool(threat), position.fen()
            if position.side == Side.ATTACKERS:
                assert bool(threat) == bool(threats.winning_move(state, SCRATCH)), position.fen()
            threats.unmake_null(state)


def test_a_pass_is_taken_back_whole(walked: tuple[str, list[Position]]) -> None:
    for position in walked[1][:PASSED]:
        state = state_of(position)
        before = state.tobytes()[CORE]
        if not threats.make_null(state):
            continue
        assert int(state["side"]) == 1 - position.side
        assert int(state["key"]) == int(setup.whole_key(state))
        threats.unmake_null(state)
        assert state.tobytes()[CORE] == before


def test_a_king_who_may_fall_in_a_line_is_not_yet_home() -> None:
    """Two open ways win for nearly everybody; here the line of king and man is taken first."""
    fen = "7/7/4t2/7/1tKT3/7/7 a 0 1"
    lines = variant.find("tablut-herr-7-coded").with_switches(escape="edge")
    position = Position.from_fen(lines, fen)
    assert winning(position, Side.ATTACKERS, (Reason.KING_CAPTURED,)) == [position.parse_move("e5e3")]
    assert threats.threat_level(state_of(position), SCRATCH) == 1
    plain = variant.find("tablut-herr-7").with_switches(escape="edge")
    assert threats.threat_level(state_of(Position.from_fen(plain, fen)), SCRATCH) == 2


@pytest.mark.parametrize(
    ("switches", "fen"),
    [
        ({"move_limit": 1}, "7/7/7/7/2K4/t6/7 a 0 1"),
        ({"quiet_limit": 6}, "7/7/7/7/2K4/t6/7 a 5 1"),
        ({"material_draw": "2 0"}, "7/7/7/7/2KtT2/5t1/7 a 0 1"),
    ],
    ids=str,
)
def test_a_draw_may_come_before_the_way_out(switches: dict[str, str | int], fen: str) -> None:
    """Two open ways win, unless a limit or too little material ends the game first."""
    plain = variant.find("tablut-herr-7").with_switches(escape="edge")
    assert threats.threat_level(state_of(Position.from_fen(plain, fen)), SCRATCH) == 2
    limited = Position.from_fen(plain.with_switches(**switches), fen)
    ends = [limited.play(move).outcome for move in limited.legal_moves()]
    assert any(end is not None and end.winner is None for end in ends)
    assert threats.threat_level(state_of(limited), SCRATCH) == 1
