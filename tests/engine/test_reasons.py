"""Why a move is illegal: every sentence, in a position that calls for it."""

from __future__ import annotations

from typing import Any

import pytest

from hnefi.engine.games.base_position import IllegalMove
from hnefi.engine.games.tafl.fen import parse_fen
from hnefi.engine.games.tafl.position import Position
from hnefi.engine.games.tafl.variant import find

BRANDUBH = "3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3"


def brandubh(fen: str = f"{BRANDUBH} a", **switches: Any) -> Position:
    return Position.from_setup(find("brandubh").with_switches(**switches), parse_fen(fen))


def bologna(fen: str) -> Position:
    return Position.from_setup(find("tablut-bologna"), parse_fen(fen))


CASES = [
    (brandubh("K6/7/7/7/t6/7/7 d"), "a7b7", "the game is over: d king_escaped"),
    (brandubh(), "castle", "not a move: expected origin and target such as d1d3"),
    (brandubh(), "h1h3", "no square h1 on this 7x7 board"),
    (brandubh(), "c3c4", "nothing stands on c3"),
    (brandubh(), "d5c5", "that is a defender, attackers are to move"),
    (brandubh(f"{BRANDUBH} d"), "d1d3", "that is an attacker, defenders are to move"),
    (brandubh(), "a4a4", "origin and target are the same"),
    (brandubh(), "d1e3", "d1 and e3 are not in line"),
    (brandubh(), "d1d3", "blocked at d2"),
    (brandubh(), "a4b4", "blocked at b4"),
    (brandubh("7/7/7/2K4/7/t6/7 d", speed="K:1"), "c4c6", "too far: the king moves at most 1 square"),
    (brandubh("7/7/7/2K4/7/t6/7 d", speed="K:2"), "c4c7", "too far: the king moves at most 2 squares"),
    (brandubh("7/7/7/t6/7/5K1/7 a"), "a4d4", "only the king may stop on the throne"),
    (brandubh("7/7/7/t6/7/5K1/7 a"), "a4a1", "only the king may stop on a corner"),
    (brandubh("7/7/7/t6/7/5K1/7 a", throne_pass="king"), "a4e4", "only the king may cross the throne"),
    (brandubh("7/7/7/t6/7/5K1/7 a", throne_enter="none", throne_stop="all"), "a4d4", "throne: nobody enters"),
    (brandubh("7/7/7/t6/7/5K1/7 a", corner_stop="all", corner_enter="none"), "a4a7", "corner: nobody enters"),
    (bologna("9/9/9/9/9/t8/9/4K4/9 a"), "a4f4", None),
    (bologna("9/9/9/9/9/9/t8/4K4/9 a"), "a3a5", "camp: nobody enters"),
    (bologna("9/9/9/9/9/9/9/4K4/2t6 a"), "c1d1", "camp: nobody enters"),
    (bologna("9/9/9/9/1T7/9/9/4K4/t8 d"), "b5e5", "nobody may stop on the throne"),
    (brandubh("7/7/7/2K4/7/t6/7 d", zones="c5:K:stop"), "c4c5", "zone: the king may not stop on c5"),
    (brandubh("7/7/7/2K4/7/t6/7 d", zones="c5:K:pass"), "c4c6", "zone: the king may not cross c5"),
    (brandubh("7/3t3/1T4K/1t5/t6/7/7 a berserk=d6", berserk="capture"), "a3a2", "d6 must go on"),
    (brandubh("7/3t3/1T4K/1t5/t6/7/7 a berserk=d6", berserk="capture"), "d6e6", "d6 must capture"),
]


@pytest.mark.parametrize(("position", "text", "sentence"), CASES, ids=[f"{c[1]}: {c[2]}" for c in CASES])
def test_sentence(position: Position, text: str, sentence: str | None) -> None:
    if sentence is None:
        assert position.parse_move(text) in position.legal_moves()
        return
    with pytest.raises(IllegalMove) as refused:
        position.parse_move(text)
    assert str(refused.value) == sentence


def test_a_forbidden_repetition() -> None:
    position = brandubh("7/7/7/2K4/7/t5T/7 a", repetition="forbidden", repetition_count=2)
    for text in ("a2a3", "g2g3", "a3a2"):
        position = position.play(position.parse_move(text))
    with pytest.raises(IllegalMove, match="would repeat the position"):
        position.parse_move("g3g2")


def test_a_reason_for_every_illegal_move_and_none_for_a_legal_one() -> None:
    """`why_illegal` and the move list never disagree, whatever squares are named."""
    positions = [
        brandubh(),
        bologna("3ttt3/4t4/4T4/t3T3t/ttTTKTTtt/t3T3t/4T4/4t4/3ttt3 d"),
        brandubh("7/3t3/1T4K/1t5/t6/7/7 a berserk=d6", berserk="capture"),
        brandubh("2t4/7/2T4/2K1t2/4T2/t5T/7 d", king_jump="over", speed="T:2", zones="b4,b2:KT:stop"),
    ]
    for position in positions:
        size = position.variant.rules.size
        legal = set(position.legal_moves())
        cells = [(file + 1) + 21 * (rank + 1) for rank in range(size) for file in range(size)]
        for origin in cells:
            for target in cells:
                reason = position.why_illegal(origin, target)
                assert (reason is None) == ((origin | target << 9) in legal), f"{origin} {target} {reason}"
                assert reason != "would repeat the position"
