"""Games of the engine against itself, and what the evaluator counts in their quiet positions.

Each side has its own number of nodes, drawn for the game, so that both sides win some; in every third game one move in
25 is random. A position is quiet if no capture, escape or capture of the king gains anything.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np

from hnefi.engine import evaluators
from hnefi.engine.evaluators.tafl_features import FEATURE_NAMES
from hnefi.engine.evaluators.tafl_weights import KINDS, squares_alike
from hnefi.engine.games import interface as verbs
from hnefi.engine.openings import generate
from hnefi.engine.score import MATE
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.search.types import Info, Limits, Settings

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position
    from hnefi.engine.games.tafl.variant import Variant

ROW = np.dtype(
    [
        ("game", "i4"),
        ("result", "i1"),  # 2 the attackers won, 1 a draw, 0 the defenders won
        ("score", "i2"),  # what the search found, in centipawns for the attackers; forced ends near MATE
        ("counts", "i1", (len(FEATURE_NAMES),)),
        ("posts", "i1", (2, KINDS)),  # attackers, defenders without the king, on each kind of square
        ("king", "i1"),  # the kind of the king's square
    ]
)
"""The data of one quiet position."""
MOST_PLIES = 400
"""Plies after which a game counts as a draw."""
QUIET_PLIES = 12
RANDOM_GAMES, RANDOM_MOVES = 3, 25
_WON = 2 * MATE


def play(variant: Variant, games: int, first: int, seed: int, nodes: tuple[int, ...]) -> Any:
    """Play games `first` to `first + games - 1` of a series; returns their quiet positions as an array of ROW.

    The same series and number give the same game, whatever else is played.
    """
    searcher = Searcher(Settings(hash_mib=1, evaluator=evaluators.HAND))
    params = evaluators.parameters(evaluators.HAND, variant)[0]
    rows: list[Any] = []
    for number in range(first, first + games):
        # Each game has its own random stream, so that an interrupted and continued series is the same series.
        opening = next(generate(variant, 1, seed * 1_000_003 + number), None)
        if opening is not None:
            searcher.clear()
            rows += _game(opening, searcher, params, number, random.Random(f"{seed} {number}"), nodes)
    return np.array(rows, ROW)


def _game(
    position: Position,
    searcher: Searcher,
    params: Any,
    number: int,
    draw: random.Random,
    nodes: tuple[int, ...],
) -> list[Any]:
    record = position.new_record()
    state = record[0]
    budgets = (draw.choice(nodes), draw.choice(nodes))
    careless = draw.randrange(RANDOM_GAMES) == 0
    found: list[Any] = []
    begun = position.ply
    while (outcome := position.outcome) is None and position.ply - begun < MOST_PLIES:
        if careless and draw.randrange(RANDOM_MOVES) == 0:
            position = position.play(draw.choice(position.legal_moves()))
            continue
        infos: list[Info] = []
        searcher.begin()
        move = searcher.search(position, Limits(nodes=budgets[position.side]), infos.append).move
        assert move is not None
        position.load(record)
        if _quiet(state, params):
            score = infos[-1].score
            value = score.cp if score.cp is not None else MATE if (score.mate or 0) > 0 else -MATE
            found.append(
                _row(state, params, position.variant, number, value if position.side == 0 else -value)
            )
        position = position.play(move)
    result = 1 if outcome is None or outcome.winner is None else 2 - 2 * outcome.winner
    return [(row[0], result, *row[2:]) for row in found]


def _row(state: Any, params: Any, variant: Any, number: int, value: int) -> tuple[Any, ...]:
    verbs.evaluate(params, state)
    kinds = squares_alike(variant.size)
    posts = np.zeros((2, KINDS), np.int8)
    king = int(state["king"])
    for side in range(2):
        for sq in state["pieces"][side][: int(state["count"][side])].tolist():
            if sq != king:
                posts[side, kinds[sq]] += 1
    return (number, 0, value, params["features"].tolist(), posts, kinds[king])


def _quiet(state: Any, params: Any) -> bool:
    value = int(verbs.evaluate(params, state))
    return _settle(state, params, value, value + 1, QUIET_PLIES) <= value


def _settle(state: Any, params: Any, alpha: int, beta: int, plies: int) -> int:
    """The value if only moves that capture or may end the game are examined."""
    best = int(verbs.evaluate(params, state))
    if best >= beta or plies == 0:
        return best
    side = int(state["side"])
    count = int(verbs.generate_noisy(state, 0))
    for move in state["moves"][:count].tolist():
        verbs.make(state, move)
        outcome = int(state["outcome"])
        if outcome:
            winner = outcome >> 8
            value = 0 if winner == 3 else _WON if winner == side + 1 else -_WON
        elif int(state["side"]) == side:
            value = _settle(state, params, max(alpha, best), beta, plies - 1)
        else:
            value = -_settle(state, params, -beta, -max(alpha, best), plies - 1)
        verbs.undo(state)
        best = max(best, value)
        if best >= beta:
            break
    return best
