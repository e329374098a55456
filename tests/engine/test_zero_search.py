"""The search of AlphaZero in whole games: against a slow search written from its description, and what games keep."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from random_games import positions

from hnefi.engine import games
from hnefi.engine.evaluators import network
from hnefi.engine.games.base_position import Position
from hnefi.engine.selfplay import zero
from hnefi.engine.selfplay.zero import GAME, Board, Settings

NET = "policy-mlp:8"


@dataclass
class Slow:
    """HexapawnZero's search as its description says it: dictionaries by position, recursion, first best wins."""

    variant: Any
    arrays: Any
    c: float
    shared: bool = True
    policy: dict[Any, dict[int, float]] = field(default_factory=dict)
    visits: dict[Any, int] = field(default_factory=dict)
    tried: dict[Any, int] = field(default_factory=dict)
    mean: dict[Any, float] = field(default_factory=dict)

    def name(self, position: Position) -> Any:
        return (position.fen().split()[0], position.side) if self.shared else position.moves

    def search(self, position: Position) -> float:
        """The value for the side to move."""
        if position.outcome is not None:
            winner = position.outcome.winner
            return 0.0 if winner is None else 1.0 if winner == position.side else -1.0
        s = self.name(position)
        net = network.parse(NET)
        legal = sorted(position.legal_moves(), key=lambda m: (-((m & 511) // 21), (m & 511) % 21))
        if s not in self.policy:
            logits = net.module.naive_policy(self.variant, net.sizes, self.arrays, position)
            order = games.policy_moves(self.variant)
            shares = {move: math.exp(logits[order.index(move)]) for move in legal}
            self.policy[s] = {move: share / sum(shares.values()) for move, share in shares.items()}
            self.visits[s] = 0
            own = net.module.naive(self.variant, net.sizes, self.arrays, position) / 2
            return math.tanh(-own if position.side else own)
        best, chosen = -math.inf, 0
        for move in self.policy[s]:
            n = self.tried.get((s, move), 0)
            bonus = self.c * self.policy[s][move]
            x = (
                self.mean[s, move] + bonus * math.sqrt(self.visits[s]) / (1 + n)
                if n
                else bonus * math.sqrt(self.visits[s] + 1e-8)
            )
            if x > best + 1e-9:
                best, chosen = x, move
        after = position.play(chosen)
        value = self.search(after)
        if after.side != position.side:
            value = -value
        n = self.tried.get((s, chosen), 0)
        self.mean[s, chosen] = (n * self.mean.get((s, chosen), 0.0) + value) / (n + 1)
        self.tried[s, chosen] = n + 1
        self.visits[s] += 1
        return value


def made(name: str) -> tuple[Any, Any, Any]:
    variant, net = games.find(name), network.parse(NET)
    genome = np.random.default_rng(3).normal(0, 0.4, net.count(variant)).astype(np.float32)
    return variant, net.split(variant, genome.astype(float)), net.record(variant, genome)


@pytest.mark.parametrize(
    ("name", "shared", "simulations"),
    [
        ("hexapawn:3x3", True, 10),
        ("hexapawn:4x4", True, 60),
        ("hexapawn:4x3", False, 40),
        ("brandubh", False, 20),
    ],
)
def test_the_kernel_goes_where_the_slow_search_goes(name: str, shared: bool, simulations: int) -> None:
    variant, arrays, record = made(name)
    board = Board(variant, [record], Settings(simulations=simulations, shared=shared, c=1.3))
    seen = 0
    for position in positions(variant, 12):
        if position.outcome is not None:
            continue
        slow = Slow(variant, arrays, 1.3, shared)
        start = games.from_fen(variant, position.fen()) if not shared else position
        for _ in range(simulations):
            slow.search(start)
        s = slow.name(start)
        wanted = {move: slow.tried.get((s, move), 0) for move in slow.policy[s]}
        assert board.visits(start) == wanted
        assert sum(wanted.values()) == simulations - 1
        seen += 1
    assert seen > 5


def games_of(count: int, players: tuple[int, int] = (0, 0)) -> Any:
    table = np.zeros(count, GAME)
    table["players"] = players
    table["seed"] = np.arange(count) + 5
    return table


def test_positions_of_games_are_kept_as_the_document_shows_them() -> None:
    variant, _, record = made("hexapawn:3x3")
    table = games_of(20)
    examples = Board(variant, [record], Settings()).play(table, inputs=21)
    assert examples.rows == table["kept"].sum() == table["plies"].sum()
    assert set(table["outcome"] >> 8) == {1, 2}
    shares = examples.policies(28)
    assert shares.sum(axis=1) == pytest.approx(1)
    assert np.allclose(
        shares * 9, np.round(shares * 9), atol=1e-5
    )  # ninths: the first of ten only makes the root
    start = [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1]
    at = np.concatenate([[0], np.cumsum(table["kept"])[:-1]])
    assert (examples.inputs[at] == start).all()
    for game, first in zip(table, at, strict=True):
        won = (int(game["outcome"]) >> 8) - 1
        sides = examples.sides[first : first + game["kept"]]
        assert list(sides) == [ply % 2 for ply in range(game["plies"])]
        assert [1 if side == won else -1 for side in sides] == list(
            examples.results[first : first + game["kept"]]
        )


def test_a_game_depends_on_its_seed_and_players_alone() -> None:
    variant, _, record = made("hexapawn:4x4")
    other = network.parse(NET).record(variant, np.zeros(network.parse(NET).count(variant)))
    board = Board(variant, [record, other], Settings(noise=0.25, alpha=0.8, opening=3))
    whole = games_of(12, (0, 1))
    board.play(whole)
    for part in (slice(0, 5), slice(5, 12)):
        again = games_of(12, (0, 1))[part].copy()
        Board(variant, [record, other], Settings(noise=0.25, alpha=0.8, opening=3)).play(again)
        assert np.array_equal(again, whole[part])
    assert len(set(whole["plies"].tolist())) > 1
    swapped = games_of(12, (1, 0))
    board.play(swapped)
    assert not np.array_equal(swapped["outcome"], whole["outcome"])


def test_without_temperature_the_most_visited_move_is_played() -> None:
    variant, _, record = made("hexapawn:3x3")
    table = games_of(6)
    Board(variant, [record], Settings(temperature=0.0)).play(table)
    assert len({(int(game["outcome"]), int(game["plies"])) for game in table}) == 1
    table = games_of(6)
    Board(variant, [record], Settings(temperature=1.0, temperature_plies=0, later_temperature=0.0)).play(
        table
    )
    assert len({(int(game["outcome"]), int(game["plies"])) for game in table}) == 1


def test_noise_changes_priors_and_keeps_them_shares() -> None:
    variant, _, record = made("hex:3")
    board = Board(variant, [record], Settings(simulations=2, noise=0.5, alpha=0.3))
    board.visits(games.initial(variant))
    noisy = board._search[0]["prior"][:9].copy()
    board._settings = Settings(simulations=2)
    board.visits(games.initial(variant))
    plain = board._search[0]["prior"][:9]
    assert noisy.sum() == pytest.approx(1)
    assert np.abs(noisy - plain).max() > 0.01


def test_gamma_numbers_have_the_mean_and_variance_of_their_distribution() -> None:
    state = games.initial(games.find("hexapawn:3x3")).new_record()[0]
    state["random"] = 77
    for alpha in (0.3, 2.5):
        drawn = np.array([zero.gamma(state, alpha) for _ in range(4000)])
        assert drawn.mean() == pytest.approx(alpha, rel=0.1)
        assert drawn.var() == pytest.approx(alpha, rel=0.25)


def test_a_number_of_simulations_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match=r"1 simulations: expected 2 to 2048"):
        Settings(simulations=1).record()
