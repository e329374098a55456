"""The search of AlphaZero in whole games: against a slow search written from its description, and what games keep."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_games import positions

from hnefi.engine import games
from hnefi.engine.evaluators import files, network
from hnefi.engine.games.base_position import Position
from hnefi.engine.selfplay import match, yardstick, zero
from hnefi.engine.selfplay.zero import GAME, Board, Settings

NET = "policy-mlp:8"
PLAYERS = Path(__file__).parents[2] / "players"


@dataclass
class Slow:
    """HexapawnZero's search as its description says it: dictionaries by position, recursion, first best wins."""

    variant: Any
    arrays: Any
    c: float
    shared: bool = True
    from_parent: bool = False
    forced: float = 0.0
    policy: dict[Any, dict[int, float]] = field(default_factory=dict)
    visits: dict[Any, int] = field(default_factory=dict)
    tried: dict[Any, int] = field(default_factory=dict)
    mean: dict[Any, float] = field(default_factory=dict)
    values: dict[Any, list[float]] = field(default_factory=dict)

    def name(self, position: Position) -> Any:
        return (position.fen().split()[0], position.side) if self.shared else position.moves

    def search(self, position: Position, *, root: bool = True) -> float:
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
            self.values[s] = [math.tanh(-own if position.side else own)]
            return self.values[s][0]
        best, chosen = -math.inf, 0
        first_play = sum(self.values[s]) / len(self.values[s]) if self.from_parent else 0.0
        for move in self.policy[s]:
            n = self.tried.get((s, move), 0)
            bonus = self.c * self.policy[s][move]
            x = (
                self.mean[s, move] + bonus * math.sqrt(self.visits[s]) / (1 + n)
                if n
                else first_play + bonus * math.sqrt(self.visits[s] + 1e-8)
            )
            if root and 0 < n < math.sqrt(self.forced * self.policy[s][move] * self.visits[s]):
                best, chosen = math.inf, move
                break
            if x > best + 1e-9:
                best, chosen = x, move
        after = position.play(chosen)
        value = self.search(after, root=False)
        if after.side != position.side:
            value = -value
        n = self.tried.get((s, chosen), 0)
        self.mean[s, chosen] = (n * self.mean.get((s, chosen), 0.0) + value) / (n + 1)
        self.tried[s, chosen] = n + 1
        self.visits[s] += 1
        self.values[s].append(value)
        return value

    def pruned(self, position: Position) -> dict[int, int]:
        """Visits without those that were forced."""
        s = self.name(position)
        found = {move: self.tried.get((s, move), 0) for move in self.policy[s]}
        if not self.forced:
            return found
        best = max(found, key=lambda move: found[move])

        def urgency(move: int, n: int) -> float:
            return self.mean[s, move] + self.c * self.policy[s][move] * math.sqrt(self.visits[s]) / (1 + n)

        top = urgency(best, found[best])
        for move, n in found.items():
            most = math.floor(math.sqrt(self.forced * self.policy[s][move] * self.visits[s]))
            less = next((k for k in range(n) if k >= most or urgency(move, n - k - 1) >= top), n)
            if move != best:
                found[move] = 0 if n - less == 1 else n - less
        return found


def made(name: str) -> tuple[Any, Any, Any]:
    variant, net = games.find(name), network.parse(NET)
    genome = np.random.default_rng(3).normal(0, 0.4, net.count(variant)).astype(np.float32)
    return variant, net.split(variant, genome.astype(float)), net.record(variant, genome)


@pytest.mark.parametrize(
    ("name", "shared", "simulations", "from_parent", "forced"),
    [
        ("hexapawn:3x3", True, 10, False, 0.0),
        ("hexapawn:4x4", True, 60, False, 0.0),
        ("hexapawn:4x4", True, 60, True, 2.0),
        ("hexapawn:4x3", False, 40, False, 1.0),
        ("brandubh", False, 20, False, 0.0),
        ("brandubh", False, 30, True, 2.0),
    ],
)
def test_the_kernel_goes_where_the_slow_search_goes(
    name: str, shared: bool, simulations: int, from_parent: bool, forced: float
) -> None:
    variant, arrays, record = made(name)
    settings = Settings(simulations=simulations, shared=shared, c=1.3, from_parent=from_parent, forced=forced)
    board = Board(variant, [record], settings)
    seen = 0
    for position in positions(variant, 12):
        if position.outcome is not None:
            continue
        slow = Slow(variant, arrays, 1.3, shared, from_parent, forced)
        start = games.from_fen(variant, position.fen()) if not shared else position
        for _ in range(simulations):
            slow.search(start)
        s = slow.name(start)
        wanted = {move: slow.tried.get((s, move), 0) for move in slow.policy[s]}
        assert board.visits(start) == wanted
        assert sum(wanted.values()) == simulations - 1
        search = board._search[0]
        kept = {
            int(search["move"][edge]): zero.pruned(search, settings.record()[0], len(wanted), edge)
            for edge in range(len(wanted))
        }
        assert kept == slow.pruned(start)
        assert sum(kept.values()) == simulations - 1 or forced
        mean = search["worth"][1] / simulations
        assert mean == pytest.approx(sum(slow.values[s]) / simulations)
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


def test_only_moves_that_are_searched_in_full_are_learnt_from() -> None:
    variant, _, record = made("hexapawn:4x4")
    some = Settings(simulations=24, full=0.5, fast_simulations=3)
    table = games_of(40)
    examples = Board(variant, [record], some).play(table, inputs=2 * 16 + 3)
    assert 0.35 < examples.rows / table["plies"].sum() < 0.65
    visits = np.add.reduceat(examples.visits, np.cumsum(examples.counts) - examples.counts)
    assert set(visits.tolist()) == {23}
    assert (np.abs(examples.values) < 1).all()
    assert len(np.unique(examples.values)) > 20


def test_examples_know_their_legal_moves() -> None:
    variant, _, record = made("brandubh")
    net = network.parse(NET)
    examples = Board(variant, [record], Settings(simulations=4, ply_limit=9)).play(
        games_of(3), inputs=net.module.inputs(variant)
    )
    order = games.policy_moves(variant)
    shares, legal = examples.rows_of(np.arange(examples.rows), len(order))
    start = games.initial(variant)
    assert {order[place] for place in np.flatnonzero(legal[0])} == set(start.legal_moves())
    assert not shares[legal == 0].any()
    assert np.count_nonzero(shares[0]) <= 3
    chosen = np.array([5, 2, 5])
    again = examples.rows_of(chosen, len(order))
    assert np.array_equal(again[0], shares[chosen])
    assert np.array_equal(again[1], legal[chosen])
    last = examples.last(4)
    assert np.array_equal(last.rows_of(np.arange(4), len(order))[1], legal[-4:])


@pytest.mark.parametrize(("name", "opponent"), [("brandubh", "simple"), ("hexapawn:4x4", "random")])
def test_measured_games_depend_on_their_seeds_alone(name: str, opponent: str) -> None:
    variant, _, record = made(name)
    simple = network.Network("simple").record(variant, np.zeros(0)) if opponent == "simple" else None
    met = match.Contestant("minimax", 1, simple) if opponent == "simple" else match.Contestant("random")
    settings = Settings(simulations=12, shared=False, later_temperature=0.0, opening=3, ply_limit=30)
    table = yardstick.pairs(np.arange(4, dtype=np.uint64))
    assert table["players"].tolist() == [[0, 1], [1, 0]] * 4
    yardstick.play(variant, record, settings, met, table)
    assert (table["plies"] > 0).all()
    again = table[::-1].copy()
    yardstick.play(variant, record, settings, met, again)
    assert np.array_equal(again[::-1], table)
    assert len(set(table["plies"].tolist())) > 1


def test_measured_games_know_who_plays_which_side() -> None:
    """Black wins hexapawn 3x3, and the shipped network knows how."""
    variant = games.find("hexapawn:3x3")
    net = files.record(files.load(PLAYERS / "hexapawn-zero.safetensors", variant), variant)
    table = yardstick.pairs(np.arange(15, dtype=np.uint64))
    settings = Settings(simulations=100, later_temperature=0.0)
    yardstick.play(variant, net, settings, match.Contestant("random"), table)
    black = table["players"][:, 1] == 0
    assert (table["outcome"][black] >> 8 == 2).all()
    assert (table["outcome"][~black] >> 8 == 2).any()
