"""Kernels and slow twin, side by side: two readings of the rules that share no code must never differ.

At every node of random walks both say who is to move, what is legal, what each move takes, whether the game is over
and how the position is written. `HNEFI_THOROUGH=20` looks at twenty times as many positions.
"""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest
from random_variants import nearly, random_setup, random_variant
from twin import Twin

from hnefi.engine import variant as variants
from hnefi.engine.games.tafl.position import Position
from hnefi.engine.position import PositionError
from hnefi.engine.setup import Setup, format_fen
from hnefi.engine.sides import Outcome, Reason
from hnefi.engine.squares import NO_MOVE, move, move_name, squares
from hnefi.engine.variant import Variant

THOROUGH = int(os.environ.get("HNEFI_THOROUGH", "1"))
RULE_SETS = 120
BATCHES = 6


def compare(twin: Twin, position: Position, rng: random.Random, path: str) -> None:
    """Every answer of both about one position; `path` says how it was reached."""
    assert position.outcome == twin.outcome, path
    assert position.side == twin.side, path
    assert position.berserk == twin.must_go_on, path
    assert position.taken == twin.taken, path
    pieces = dict(position.pieces())
    if twin.outcome is not None and twin.outcome.reason is Reason.KING_CAPTURED:
        # Nothing says whether a captured king stays on the board of a finished game.
        assert {sq: letter for sq, letter in pieces.items() if letter != "K"} == twin.pieces, path
        assert (position.quiet, position.move_number) == (twin.quiet, twin.move_number), path
    else:
        assert position.fen().split(" caps=")[0] == twin.fen, path
        # Inside a turn nothing is counted, nor is a start that the rules do not remember.
        if position.berserk is None and (twin.rules.repetition_start or position.moves):
            assert position.repetitions == twin.repetitions, path
    assert frozenset(position.last_captures) == twin.last_captures, path
    legal = twin.legal_moves()
    assert list(map(move_name, position.legal_moves())) == list(map(move_name, legal)), path
    with_captures = position.legal_moves_with_captures()
    assert [ply for ply, _ in with_captures] == legal, path
    some = rng.sample(with_captures, min(30, len(with_captures)))
    for ply, captured in {*some, *((ply, captured) for ply, captured in with_captures if captured)}:
        assert frozenset(captured) == twin.captured_by(ply), f"{path}: captured by {move_name(ply)}"
    board = list(squares(twin.rules.size))
    for ply in [*rng.sample(legal, min(3, len(legal))), *(move(*rng.sample(board, 2)) for _ in range(5))]:
        allowed = position.why_illegal(ply & 511, ply >> 9) is None
        assert allowed == twin.is_legal(ply), f"{path}: {move_name(ply)}"


def walk(
    variant: Variant, setup: Setup | None, rng: random.Random, plies: int, first: int = NO_MOVE
) -> Outcome | None:
    """Compare along one random game, which begins with the move `first` if that is legal; how it ended."""
    start = setup or variant.start
    twin, position = Twin(variant, setup), Position.from_setup(variant, start)
    path = f"{format_fen(start)} {variant.rules.changes()}"
    played: list[int] = []
    # Some games go to and fro all the time, or nothing would ever stand three times.
    restless = rng.random() < 0.7
    while True:
        compare(twin, position, rng, path)
        legal = twin.legal_moves()
        if not legal or len(played) == plies:
            return twin.outcome
        returning = [_reversed(ply) for ply in played[-2:-1] if _reversed(ply) in legal]
        if not played and first in legal:
            ply = first
        elif returning and (not restless or rng.random() < 0.1):
            ply = returning[0]
        else:
            ply = _choose(twin, legal, rng)
        played.append(ply)
        path += f" {move_name(ply)}"
        twin, position = twin.play(ply), position.play(ply)


def _reversed(ply: int) -> int:
    return move(ply >> 9, ply & 511)


def _choose(twin: Twin, legal: list[int], rng: random.Random) -> int:
    """A random move, more often than not one that takes something, if one does."""
    some = rng.sample(legal, min(len(legal), 30))
    taking = (
        [ply for ply in some if twin.captured_by(ply) or twin.takes_king(ply)] if rng.random() < 0.3 else []
    )
    return rng.choice(taking or some)


@pytest.mark.parametrize("name", variants.names())
def test_shipped_variants(name: str) -> None:
    rng = random.Random(f"shipped {name}")
    variant = variants.find(name)
    for _ in range(2 * THOROUGH):
        walk(variant, None, rng, 60)
    for _ in range(8 * THOROUGH):
        walk(variant, random_setup(rng, variant, crowded=rng.choice((0.1, 0.2, 0.35))), rng, 6)
        _, setup, first = nearly(rng, variant)
        walk(variant, setup, rng, 3, first)


ENDS: Counter[Reason] = Counter()


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_rule_sets(batch: int) -> None:
    played = refused = 0
    for number in range(batch, RULE_SETS * THOROUGH, BATCHES):
        rng = random.Random(number)
        variant = random_variant(rng)
        try:
            Position.initial(variant)
        except PositionError as error:
            if "not supported" not in str(error):
                raise
            refused += 1
            continue
        played += 1
        outcomes = [walk(variant, None, rng, 20)]
        for _ in range(2):
            setup = random_setup(rng, variant, crowded=rng.choice((0.1, 0.2, 0.35)))
            outcomes.append(walk(variant, setup, rng, 6))
        for _ in range(6):
            bent, setup, first = nearly(rng, variant, bend=True)
            outcomes.append(walk(bent, setup, rng, 2, first))
        ENDS.update(outcome.reason for outcome in outcomes if outcome is not None)
    assert played >= 4 * refused, f"{refused} of {played + refused} rule sets are not supported"


def test_the_random_games_saw_every_kind_of_end() -> None:
    if sum(ENDS.values()) < 100:
        pytest.skip("needs the random rule sets of the test before it")
    assert set(ENDS) == set(list(Reason)[: Reason.MOVE_LIMIT.code]), ENDS
