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
from hnefi.engine.selfplay import match, yardstick, zero_search
from hnefi.engine.selfplay.zero import GAME, Board
from hnefi.engine.selfplay.zero_search import Settings

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
    prove: bool = False
    policy: dict[Any, dict[int, float]] = field(default_factory=dict)
    visits: dict[Any, int] = field(default_factory=dict)
    tried: dict[Any, int] = field(default_factory=dict)
    mean: dict[Any, float] = field(default_factory=dict)
    values: dict[Any, list[float]] = field(default_factory=dict)
    certain: dict[Any, float] = field(default_factory=dict)
    """What positions are proven to be worth to the side to move."""

    def name(self, position: Position) -> Any:
        return (position.fen().split()[0], position.side) if self.shared else position.moves

    def search(self, position: Position, *, root: bool = True) -> float:
        """The value for the side to move."""
        if position.outcome is not None:
            winner = position.outcome.winner
            return 0.0 if winner is None else 1.0 if winner == position.side else -1.0
        s = self.name(position)
        looks = self.prove and self.variant.game == "tafl"
        """Other games do not look for wins that were not tried."""
        if looks and not root and s not in self.policy:
            end = 1.0 if wins_at_once(position) else -1.0 if open_ways(position) > 1 else None
            if end is not None:
                self.certain[s] = end
                return end
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
            if self.worth(position, move) == -1.0:
                continue
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
        if self.prove:
            worth = [self.worth(position, move) for move in self.policy[s]]
            if 1.0 in worth or None not in worth:
                self.certain[s] = max(x for x in worth if x is not None)
        return value

    def worth(self, position: Position, move: int) -> float | None:
        """What a move is proven to be worth to the side that plays it: only of moves that were tried, since proofs are
        found by simulations."""
        s = self.name(position)
        if not self.prove or (s, move) not in self.tried:
            return None
        after = position.play(move)
        if after.outcome is not None:
            winner = after.outcome.winner
            return 0.0 if winner is None else 1.0 if winner == position.side else -1.0
        found = self.certain.get(self.name(after))
        return found if found is None or after.side == position.side else -found

    def recommended(self, position: Position) -> dict[int, int]:
        """Visits that count: all simulations that are left go to a proven win, none to a proven mistake."""
        s = self.name(position)
        kept = self.pruned(position)
        proof = self.certain.get(s)
        for move in kept:
            worth = self.worth(position, move)
            if worth == -1.0 if proof is None else worth != proof:
                kept[move] = 0
        return kept

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


def wins_at_once(position: Position) -> int:
    """A move that wins, 0 if there is none."""
    for move in position.legal_moves():
        outcome = position.play(move).outcome
        if outcome is not None and outcome.winner == position.side:
            return move
    return 0


def open_ways(position: Position) -> int:
    """In how many directions the king could escape if the attackers, who are to move, did nothing."""
    if position.side != 0:
        return 0
    board, _, *counts = position.fen().split()
    passed = games.from_fen(position.variant, " ".join([board, "d", *counts]))
    ways = set()
    for move in passed.legal_moves():
        outcome = passed.play(move).outcome
        if outcome is not None and "escape" in outcome.reason.name.lower():
            step = (move >> 9) - (move & 511)
            ways.add((step > 0, step % 21 == 0))
    return len(ways)


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
            int(search["move"][edge]): zero_search.pruned(search, settings.record()[0], len(wanted), edge)
            for edge in range(len(wanted))
        }
        assert kept == slow.pruned(start)
        assert sum(kept.values()) == simulations - 1 or forced
        mean = search["worth"][1] / simulations
        assert mean == pytest.approx(sum(slow.values[s]) / simulations)
        seen += 1
    assert seen > 5


@pytest.mark.parametrize(
    ("name", "simulations", "forced", "proven"),
    [("hexapawn:4x4", 60, 0.0, 50), ("hexapawn:3x3", 40, 2.0, 50), ("brandubh", 40, 2.0, 20)],
)
def test_forced_ends_are_proven_as_in_the_slow_search(
    name: str, simulations: int, forced: float, proven: int
) -> None:
    variant, arrays, record = made(name)
    settings = Settings(
        simulations=simulations, shared=False, prove=True, c=1.3, from_parent=True, forced=forced
    )
    board = Board(variant, [record], settings)
    inner, roots = 0, set()
    for position in positions(variant, 16, seed=3):
        if not position.legal_moves():
            continue
        start = games.from_fen(variant, position.fen())
        visits = board.visits(start)
        search = board._search[0]
        worth = search["worth"][1] / (search["visits"][1] + 1)
        if name == "brandubh" and wins_at_once(start):
            (move,) = [move for move, count in visits.items() if count]
            outcome = start.play(move).outcome
            assert outcome is not None
            assert outcome.winner == start.side
            assert worth == 1
            continue
        slow = Slow(variant, arrays, 1.3, shared=False, from_parent=True, forced=forced, prove=True)
        s = slow.name(start)
        made_so_far = 0
        while made_so_far < simulations and s not in slow.certain:
            slow.search(start)
            made_so_far += 1
        if slow.certain.get(s) == 1.0:
            winner = next(move for move in slow.policy[s] if slow.worth(start, move) == 1.0)
            slow.tried[s, winner] += simulations - made_so_far
            slow.visits[s] += simulations - made_so_far
        assert visits == {move: slow.tried.get((s, move), 0) for move in slow.policy[s]}
        kept = {
            int(search["move"][edge]): zero_search.pruned(search, settings.record()[0], len(visits), edge)
            for edge in range(len(visits))
        }
        if s in slow.certain:
            assert worth == slow.certain[s]
            assert {move for move, count in kept.items() if count} <= {
                move for move in visits if slow.worth(start, move) == slow.certain[s]
            }
            roots.add(slow.certain[s])
        else:
            assert kept == slow.recommended(start)
        inner += sum(place != s for place in slow.certain)
    assert inner >= proven
    assert roots >= {1.0, -1.0} or name == "brandubh"


def test_a_proven_mistake_is_not_played() -> None:
    """White to move at 3x3 loses every way; black, to move after any reply, wins in all ten draws."""
    variant, _, record = made("hexapawn:3x3")
    settings = Settings(simulations=2000, shared=False, prove=True, temperature=1.0)
    table = games_of(10)
    examples = Board(variant, [record], settings).play(table, inputs=21)
    assert (table["outcome"] >> 8 == 2).all()
    assert set(examples.values.tolist()) == {-1.0, 1.0}
    assert (examples.values == examples.results).all()


def test_a_handicap_takes_simulations_away_and_is_not_learnt_from() -> None:
    variant, _, record = made("hexapawn:4x4")
    settings = Settings(simulations=40, shared=False)
    table = games_of(20)
    table["handicap"][10:, 1] = 2.0
    examples = Board(variant, [record], settings).play(table, inputs=2 * 16 + 3)
    assert (table["kept"][:10] == table["plies"][:10]).all()
    assert (table["kept"][10:] == (table["plies"][10:] + 1) // 2).all()
    uneven = examples.sides[table["kept"][:10].sum() :]
    assert not uneven.any()
    plain = games_of(20)
    Board(variant, [record], settings).play(plain)
    assert np.array_equal(plain["plies"][:10], table["plies"][:10])
    assert not np.array_equal(plain[10:]["outcome"], table[10:]["outcome"]) or not np.array_equal(
        plain[10:]["plies"], table[10:]["plies"]
    )


def test_a_careless_side_plays_random_moves_which_are_no_examples() -> None:
    """The games where it always does are those against Random: the searching side's moves are all that is learnt."""
    variant, _, record = made("hexapawn:4x4")
    settings = Settings(simulations=40, shared=False)
    table = games_of(60)
    table["careless"][20:, 1] = 0.5
    table["careless"][40:, 1] = 1.0
    examples = Board(variant, [record], settings).play(table, inputs=2 * 16 + 3)
    assert (table["kept"][:20] == table["plies"][:20]).all()
    half = table[20:40]
    assert (half["kept"] >= (half["plies"] + 1) // 2).all()
    assert (half["plies"] + 1).sum() // 2 < half["kept"].sum() < half["plies"].sum()
    assert (table["kept"][40:] == (table["plies"][40:] + 1) // 2).all()
    assert not examples.sides[table["kept"][:40].sum() :].any()
    plain = games_of(20)
    Board(variant, [record], settings).play(plain)
    assert np.array_equal(plain["plies"], table["plies"][:20])


def test_proofs_need_paths_of_their_own() -> None:
    with pytest.raises(ValueError, match="prove=yes: expected shared=no"):
        Settings(prove=True).record()


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
        drawn = np.array([zero_search.gamma(state, alpha) for _ in range(4000)])
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
