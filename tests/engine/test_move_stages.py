"""A node's moves stage by stage, against all of them at once."""

from __future__ import annotations

import random
from itertools import chain
from typing import Any

import pytest
from random_variants import random_variant
from thoroughness import THOROUGH

from hnefi.engine import squares as board
from hnefi.engine.games import find, initial
from hnefi.engine.games import interface as verbs
from hnefi.engine.games.tafl import variant as tafl
from hnefi.engine.games.tafl.noisy import ESCAPE
from hnefi.engine.games.tafl.position import Position
from hnefi.engine.search import features, move_order
from hnefi.engine.search.alphabeta_run import new_thread

PLY = 1  # the root is 0


def lines(number: int) -> list[tuple[tafl.Variant, int]]:
    """Each shipped rule set and `number` random ones, forbidden repetitions among them, with a seed each."""
    draw = random.Random(31)
    return [
        *((tafl.find(name), i) for i, name in enumerate(tafl.names())),
        *((random_variant(draw), i) for i in range(number)),
    ]


def walks(number: int, plies: int) -> Any:
    """Positions of random games, with the moves that were legal earlier in the game."""
    for game, seed in lines(number):
        draw = random.Random(seed)
        position: Any = Position.initial(game)
        earlier: set[int] = set()
        for _ in range(plies):
            legal = position.legal_moves()
            if position.outcome is not None or not legal:
                break
            yield position, legal, sorted(earlier)
            earlier.update(legal)
            # To and fro, so that repetitions come up.
            position = position.play(
                draw.choice(
                    [*[m for m in legal if m in earlier][:3], *draw.sample(legal, min(2, len(legal)))]
                )
            )


def staged(state: Any, td: Any, table_move: int) -> tuple[list[list[int]], list[list[int]]]:
    """The moves of each stage that has any, and their orders."""
    td["stage"][PLY] = move_order.STAGE_TABLE
    moves: list[list[int]] = []
    orders: list[list[int]] = []
    end = 0
    while True:
        begin, end = end, int(move_order.generate_stage(state, td, PLY, 0, end, table_move))
        if begin == end:
            return moves, orders
        moves.append(state["moves"][begin:end].tolist())
        orders.append(td["order"][begin:end].tolist())


def test_earlier_moves_are_legal_if_they_are_generated() -> None:
    draw = random.Random(6)
    asked = yes = 0
    for position, legal, earlier in walks(40, 40):
        state = position.new_record()[0]
        if verbs.staged_generation(state):
            # A call from outside costs far more than the kernel: of moves whose square is empty now, few are tried.
            moving = [move for move in earlier if position.piece_at(board.origin(move))]
            for move in [*moving, *draw.sample(earlier, min(len(earlier), 10 * THOROUGH))]:
                assert bool(verbs.is_legal(state, move)) == (move in legal), f"{position.fen()} {move}"
                asked += 1
                yes += move in legal
    assert asked > 20_000
    assert 0.1 < yes / asked < 0.9


def test_noisy_moves_are_those_with_an_order_score() -> None:
    seen = 0
    for position, legal, _ in walks(40, 40):
        state = position.new_record()[0]
        if verbs.staged_generation(state):
            scored = {m for m in legal if verbs.order_score(state, m)}
            noisy = state["moves"][: verbs.generate_noisy(state, 0)].tolist()
            # Of several escapes in a direction only the nearest is written: one is enough.
            escapes = {m for m in scored if verbs.order_score(state, m) == ESCAPE}
            assert len(set(noisy)) == len(noisy)
            assert set(noisy) <= scored <= {*noisy, *escapes}, position.fen()
            assert bool(escapes) == any(m in escapes for m in noisy), position.fen()
            seen += len(noisy)
    assert seen > 1_000


def test_stages_have_the_moves_and_orders_of_all_at_once() -> None:
    """With any history, any killers and any table move, legal or not: the best of a stage is never behind the next."""
    draw = random.Random(5)
    record = new_thread()
    td = record[0]
    td["features"] = features.DEFAULT
    stages = 0
    for position, legal, earlier in walks(20, 25):
        state = position.new_record()[0]
        if not verbs.staged_generation(state):
            continue
        moves = [*legal, *earlier]
        td["line"][0] = draw.choice(moves)
        for move in draw.sample(legal, min(len(legal), 20)):
            move_order.update_history(td, int(state["side"]), move, draw.randrange(-9000, 9000))
        td["killers"][PLY] = draw.choice(moves), 0
        td["killers"][PLY, 1] = draw.choice([m for m in moves if m != td["killers"][PLY, 0]])
        table_move = draw.choice([0, *draw.sample(moves, 3)])
        found, orders = staged(state, td, table_move)
        assert sorted([*chain(*found)]) == sorted(legal), position.fen()
        # A second escape in a direction comes last, when the first has already won.
        rest = [[order for order in stage if order < ESCAPE << move_order.NOISY] for stage in orders[1:]]
        for before, after in zip([orders[0], *rest], rest, strict=False):
            assert min(before, default=1 << 30) > max(after, default=-1), position.fen()
        by_stages = dict(zip([*chain(*found)], [*chain(*orders)], strict=True))
        end = int(move_order.generate_all(state, td, PLY, 0, table_move))
        at_once = dict(zip(state["moves"][:end].tolist(), td["order"][:end].tolist(), strict=True))
        assert by_stages == at_once, position.fen()
        stages = max(stages, len(found))
    assert stages == 4


@pytest.mark.parametrize("name", ["hex:5", "hexapawn"])
def test_other_games_generate_all_at_once(name: str) -> None:
    """In hex most quiet moves have an order; in hexapawn there are few moves."""
    assert verbs.staged_generation(initial(find(name)).new_record()[0]) == 0
