"""What players who count captures, or nothing, may conclude from a quiet move without making it.

Their games are compared with those of the plain search in `test_contest.py`.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from random_variants import random_setup, random_variant
from thoroughness import THOROUGH

from hnefi.engine import games
from hnefi.engine.compile.jit import entry
from hnefi.engine.evaluators import network
from hnefi.engine.games import interface as verbs
from hnefi.engine.games.interface import generate, make, undo
from hnefi.engine.games.tafl.codes import PIECE
from hnefi.engine.games.tafl.position import Position
from hnefi.engine.search import minimax
from hnefi.engine.selfplay import hingston2007_incremental as incremental
from hnefi.engine.selfplay.material_plies import answered, value_after
from hnefi.engine.selfplay.one_ply import key_without, note_risks, quiet
from hnefi.engine.squares import ORIGIN, TARGET

TAFL = [variant for variant in games.everything() if variant.game == "tafl"]


@entry
def wrong_conclusions(s, td, p, net, found):  # type: ignore[no-untyped-def]
    """Add to `found` how many quiet moves there are, and after how many the plain search, with one more ply, finds more
    for their side than without; only where all are said to be answered."""
    known, repeatable = note_risks(s, net)
    if not (known and answered(s)):
        return
    td.root = s.ply
    base = minimax.leaf_value(p, s)
    end = generate(s, 0)
    for i in range(end):
        move = int(s.moves[i])
        o = move & ORIGIN
        piece = s.board[o] & PIECE
        if quiet(s, net, key_without(s, o, piece), move >> TARGET, piece, repeatable):
            x = value_after(s, p, base, move)
            make(s, move)
            found[0] += 1
            if -minimax.search(s, td, p, 1, -np.inf, np.inf, end) > x:
                found[1] += 1
            undo(s)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["simple", "zero"])
def test_quiet_moves_gain_nothing_where_they_are_answered(name: str) -> None:
    """In random positions of few men and many, under rules of every kind, and a few moves later."""
    rng = random.Random(53)
    variants = [*TAFL, *(random_variant(rng, rng.choice((5, 6, 7, 9))) for _ in range(40 * THOROUGH))]
    found = np.zeros(2, np.int64)
    work = minimax.new_thread()[0]
    for variant in variants:
        params = network.parse(name).record(variant, np.zeros(0))
        net = incremental.prepared(params)[0]
        for seed in range(6 if variant.size < 11 else 1):
            setup = random_setup(rng, variant, crowded=rng.choice((0.05, 0.1, 0.2, 0.35)))
            try:
                state = Position.from_setup(variant, setup).new_record()[0]
            except ValueError:
                continue
            state["random"] = seed + 1
            for _ in range(12):
                wrong_conclusions(state, work, params[0], net, found)
                assert found[1] == 0, (variant, setup)
                move = verbs.random_move(state)
                if move == 0:
                    break
                verbs.make(state, move)
                if state["outcome"] or verbs.adjudicate(state, -1):
                    break
    assert found[0] > 10_000


def test_steps_that_one_move_takes_away_answer_nothing() -> None:
    """Of the defenders' five steps, b7b2 leaves the king's two, which lead away from his corner."""
    variant = games.find("brandubh").with_switches(speed="K:1")
    params = network.parse("simple").record(variant, np.zeros(0))
    state = games.from_fen(variant, "1t5/6t/6K/7/t1tt3/T1TTt2/1Ttt3 a").new_record()[0]  # type: ignore[attr-defined]
    found = np.zeros(2, np.int64)
    wrong_conclusions(state, minimax.new_thread()[0], params[0], incremental.prepared(params)[0], found)
    assert not found.any()
