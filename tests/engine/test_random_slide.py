"""The random player of a program: how often it makes which move, and that a pass can be taken back."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hnefi.engine import games
from hnefi.engine.games import interface as verbs
from hnefi.engine.games import random_slide as _other_games  # noqa: F401
from hnefi.engine.games.tafl.state import CORE
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.search.types import Limits, Settings
from hnefi.engine.selfplay import match
from hnefi.engine.squares import file_of, rank_of

PASS = -1
DRAWS = 20_000
FENS = ("2ttt2/7/t2T2t/t1TKT1t/t2T2t/7/2ttt2 d", "7/7/4t2/2T4/7/3T1K1/5t1 d", "7/2t4/7/7/2T1T2/7/1K3t1 a")


def expected(position: Any) -> dict[int, Fraction]:
    """The law of its moves: a piece, up to four directions, a length."""
    pieces = [sq for sq, letter in position.pieces() if letter.isupper() == bool(position.side)]
    law: dict[int, Fraction] = Counter()  # type: ignore[assignment]
    for o in pieces:
        ways: list[dict[int, int]] = [{}, {}, {}, {}]
        for move in position.legal_moves():
            if move & 511 == o:
                t = move >> 9
                right, up = file_of(t) - file_of(o), rank_of(t) - rank_of(o)
                ways[(right > 0) + 2 * (up > 0) + 3 * (up < 0)][abs(right) + abs(up)] = move
        free = [way for way in ways if way]
        none = Fraction(4 - len(free), 4)
        found = 1 - none**4
        share = Fraction(1, len(pieces))
        law[PASS] += share * none**4
        for way in free:
            n = max(way)
            for length in range(1, max(1, n - 1) + 1):
                law[way.get(length, PASS)] += share * found / len(free) / max(1, n - 1)
    return law


@pytest.mark.parametrize("fen", FENS)
def test_moves_are_drawn_by_piece_direction_and_length(fen: str) -> None:
    position = games.from_fen(games.find("tablut-herr-7"), fen)
    state = position.new_record()[0]
    state["random"] = 7
    law = expected(position)
    assert sum(law.values()) == 1
    drawn = Counter(verbs.random_slide(state) for _ in range(DRAWS))
    assert set(drawn) <= set(law)
    for move, share in law.items():
        p = float(share)
        assert abs(drawn[move] - DRAWS * p) < 5 * (DRAWS * p * (1 - p)) ** 0.5 + 1, move
    assert drawn[PASS]


def test_a_pass_is_taken_back() -> None:
    position = games.initial(games.find("tablut-herr-7"))
    state = position.new_record()[0]
    before = state.tobytes()[CORE]
    verbs.pass_turn(state)
    assert state["side"] == 1 - position.side
    assert state["played"] == position.new_record()[0]["played"] + 1
    assert verbs.generate(state, 0) > 0
    verbs.make(state, int(state["moves"][0]))
    verbs.take_back(state)
    verbs.take_back(state)
    assert state.tobytes()[CORE] == before


def test_games_have_the_known_results() -> None:
    """43.5 % for black, 51.5 % for white, 65.5 turns in 20,000 games of the program's random player."""
    made = np.zeros(4000, match.GAME)
    made["defenders"], made["seed"] = 1, np.arange(len(made))
    match.play(games.find("tablut-herr-7"), [match.Contestant("random-coded")] * 2, made)
    winner = made["outcome"] >> 8
    assert abs((winner == 1).mean() - 0.435) < 0.03
    assert abs((winner == 2).mean() - 0.515) < 0.03
    assert abs(made["plies"].mean() / 2 - 65.5) < 3


@pytest.mark.parametrize("name", ["tablut-herr-7", "hex:4"])
def test_as_an_engine_it_never_passes(name: str) -> None:
    position = games.initial(games.find(name))
    searcher = Searcher(Settings(hash_mib=1, algorithm="random-coded"))
    moves = set()
    for seed in range(20):
        searcher.configure(Settings(hash_mib=1, algorithm="random-coded", seed=seed))
        searcher.begin()
        moves.add(searcher.search(position, Limits(), lambda _: None).move)
    assert moves <= set(position.legal_moves())
    assert len(moves) > 5
