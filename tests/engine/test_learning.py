"""Learning inside kernels, against the same lessons in plain Python, from the moves that were played."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from hnefi.engine import games as doors
from hnefi.engine.evaluators import network
from hnefi.engine.games import interface as verbs
from hnefi.engine.search import minimax
from hnefi.engine.selfplay import learning, match
from hnefi.engine.selfplay.learning import (
    AFTERSTATES,
    LEAVES,
    LITERAL,
    PLIES,
    PREVIOUS,
    TREES,
    Lesson,
    Memory,
)
from hnefi.engine.selfplay.match import Contestant

VARIANT = doors.find("mini-four").with_switches(move_limit="14", move_limit_unit="plies", repetition="ignore")
NET = network.parse("mlp:2")
COUNT = NET.count(VARIANT)
STEP = 1e-6


def first_weights(net: network.Network = NET) -> Any:
    return np.random.default_rng(5).uniform(-0.9, 0.9, net.count(VARIANT))


def taught(
    monkeypatch: pytest.MonkeyPatch,
    lesson: Lesson,
    weights: Any,
    *,
    net: network.Network = NET,
    first: int = 0,
    number: int = 6,
    sides: tuple[int, ...] = (0, 1),
) -> Iterator[tuple[Any, list[int], Any, Any]]:
    """Games one by one: the game, its moves, the memory before and what was learnt. `sides` are those of the learner;
    with both it plays itself."""
    tables: list[match.Table] = []

    class Kept(match.Table):
        def __init__(self, *given: Any, **said: Any) -> None:
            super().__init__(*given, **said)
            tables.append(self)

    monkeypatch.setattr(learning, "Table", Kept)
    memory = Memory(weights, np.zeros((2, len(weights))))
    for seed in range(first, first + number):
        game = np.zeros(1, match.GAME)
        game["attackers"], game["defenders"], game["seed"] = 0 not in sides, 1 not in sides, seed
        learnt = learning.learn(VARIANT, net, memory, [Contestant("random")], game, lesson)
        state = tables[-1].state
        begun = int(state["ply"])
        moves = state["u_move"][begun + 1 : begun + 1 + int(game["plies"][0])].tolist()
        yield game[0], moves, memory, learnt
        memory = learnt.memory


class Twin:
    """A learner in plain Python: values by the naive network, slopes by finite differences."""

    def __init__(self, net: network.Network, memory: Memory, lesson: Lesson) -> None:
        self.net, self.lesson = net, lesson
        self.weights = memory.weights.copy()
        self.means, self.steps = memory.means.copy(), memory.steps
        self.traces = {chain: np.zeros(len(self.weights)) for chain in (0, 1)}
        self.predicted: dict[int, float] = {}
        self.errors: list[float] = []

    def value(self, position: Any, weights: Any = None) -> float:
        weights = self.weights if weights is None else weights
        return self.net.naive(VARIANT, self.net.split(VARIANT, weights), position)

    def chance(self, value: float) -> float:
        return 1 / (1 + math.exp(-value / learning.unit(self.net)))

    def slope(self, position: Any) -> Any:
        found = np.zeros(len(self.weights))
        for i in range(len(found)):
            ends = []
            for sign in (1, -1):
                moved = self.weights.copy()
                moved[i] += sign * STEP
                ends.append(self.value(position, moved))
            found[i] = (ends[0] - ends[1]) / (2 * STEP)
        return found

    def steep(self, p: float) -> float:
        return 1.0 if self.lesson.entropy else p * (1 - p)

    def move_by(self, direction: Any) -> None:
        scale = self.lesson.rate * learning.unit(self.net)
        if not self.lesson.adam:
            self.weights = self.weights + scale * direction
            return
        self.steps += 1
        self.means = np.stack(
            [0.9 * self.means[0] + 0.1 * direction, 0.999 * self.means[1] + 0.001 * direction**2]
        )
        first = self.means[0] / (1 - 0.9**self.steps)
        second = self.means[1] / (1 - 0.999**self.steps)
        self.weights = self.weights + scale * first / (np.sqrt(second) + 1e-8)

    def correct(self, chain: int, p: float) -> None:
        if chain in self.predicted:
            error = p - self.predicted[chain]
            self.errors.append(error)
            self.move_by(error * self.traces[chain])

    def predict(self, chain: int, position: Any) -> None:
        p = self.chance(self.value(position))
        self.traces[chain] = self.lesson.trace * self.traces[chain] + self.steep(p) * self.slope(position)
        self.predicted[chain] = p


def start() -> Any:
    return doors.initial(VARIANT)


def result(game: Any, drawn: float) -> float:
    return {1: 1.0, 2: 0.0}.get(int(game["outcome"]) >> 8, drawn)


def compare(twin: Twin, learnt: learning.Learnt) -> None:
    np.testing.assert_allclose(learnt.memory.weights, twin.weights, atol=2e-8)
    assert learnt.errors == len(twin.errors)
    assert learnt.squares == pytest.approx(sum(error**2 for error in twin.errors), abs=1e-9)
    assert not np.array_equal(learnt.memory.weights, first_weights(twin.net))


LESSONS = [
    (Lesson(rate=0.3), (1,)),
    (Lesson(rate=0.3, epsilon=0.3, drawn=(0.25, 0.75)), (0,)),
    (Lesson(rate=0.3, trace=0.7, drawn=(0.5, 0.5)), (0, 1)),
    (Lesson(rate=0.3, trace=0.7, entropy=True, chain=PLIES, random_plies=3), (1,)),
    (Lesson(rate=0.01, trace=0.4, adam=True, chain=PLIES), (0, 1)),
    (Lesson(rate=0.3, chain=LITERAL), (0,)),
    (Lesson(rate=0.3, trace=0.7, unseen=True), (1,)),
    (Lesson(rate=0.3, chain=LITERAL, unseen=True), (0, 1)),
]


@pytest.mark.parametrize(("lesson", "sides"), LESSONS)
def test_temporal_differences_are_those_of_the_formula(
    lesson: Lesson, sides: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for game, moves, memory, learnt in taught(monkeypatch, lesson, first_weights(), sides=sides):
        twin, position = Twin(NET, memory, lesson), start()
        for move in moves:
            side = int(position.side)
            chain = 0 if lesson.chain == PLIES else side
            if side in sides and lesson.chain == LITERAL:
                twin.correct(chain, twin.chance(twin.value(position)))
            position = position.play(move)
            if position.outcome is not None and not (lesson.unseen and side in sides):
                break
            if lesson.chain == PLIES or (side in sides and lesson.chain == AFTERSTATES):
                twin.correct(chain, twin.chance(twin.value(position)))
            if lesson.chain == PLIES or side in sides:
                twin.predict(chain, position)
        for chain in (0,) if lesson.chain == PLIES else (0, 1):
            side = chain if lesson.chain != PLIES or 0 in sides else 1
            twin.correct(chain, result(game, lesson.drawn[side]))
        compare(twin, learnt)


def test_the_recipe_of_the_program_sees_no_results(monkeypatch: pytest.MonkeyPatch) -> None:
    lesson = Lesson(method=PREVIOUS, rate=0.5)
    weights = 4 * first_weights()
    weights[-1] -= 3.5  # so that chances are not all near 1
    learnt_much = 0
    for _, moves, memory, learnt in taught(monkeypatch, lesson, weights, number=3, sides=(1,)):
        twin, position = Twin(NET, memory, lesson), start()
        state = position.new_record()[0]
        for move in moves:
            last = listed(state)[-1]
            verbs.make(state, move)
            ours = position.side == 1
            scored = position.play(last)
            target = twin.chance(twin.value(scored)) if scored.outcome is None else 0.0
            position = position.play(move)
            if position.outcome is not None:
                break
            while ours:
                twin.traces[0][:] = 0
                twin.predict(0, position)
                error = target - twin.predicted[0]
                if error**2 < learning.NEAR or len(twin.errors) > 400:
                    break
                twin.errors.append(error)
                twin.move_by(error * twin.traces[0])
        assert len(twin.errors) <= 400
        learnt_much += len(twin.errors)
        np.testing.assert_allclose(learnt.memory.weights, twin.weights, atol=1e-6)
        assert learnt.errors == len(twin.errors)
    assert learnt_much > 10


def listed(state: Any) -> list[int]:
    """The moves as the rules' kernel lists them: by pieces, whose order depends on the game so far."""
    moves: list[int] = state["moves"][: verbs.generate(state, 0)].tolist()
    return moves


def plain_minimax(twin: Twin, position: Any, depth: int) -> tuple[float, Any]:
    """The value for the attackers and the position it comes from, in a game without limits; nothing is cut off."""
    if position.outcome is not None:
        winner = position.outcome.winner
        return 0.0 if winner is None else (1 - 2 * int(winner)) * (minimax.WIN + depth), position
    if depth == 0:
        return twin.value(position), position
    lines = [plain_minimax(twin, position.play(move), depth - 1) for move in position.legal_moves()]
    return max(lines, key=lambda line: line[0] * (1 - 2 * int(position.side)))


def test_leaves_are_those_of_plain_minimax(monkeypatch: pytest.MonkeyPatch) -> None:
    lesson = Lesson(LEAVES, depth=2, trace=0.7, rate=0.2, drawn=(0.5, 0.5))
    decided = 0
    for game, moves, memory, learnt in taught(
        monkeypatch, lesson, first_weights(), number=4, first=11, sides=(0,)
    ):
        twin, position = Twin(NET, memory, lesson), start()
        for move in moves:
            if position.side == 1:
                position = position.play(move)
                continue
            free, sign = position.unlimited(), 1 - 2 * int(position.side)
            best = max(sign * plain_minimax(twin, free.play(other), 1)[0] for other in free.legal_moves())
            value, leaf = plain_minimax(twin, free.play(move), 1)
            assert value * sign == pytest.approx(best, abs=1e-9)
            if abs(value) > minimax.MOST:
                decided += 1
                p = float(value > 0)
                twin.correct(0, p)
                twin.traces[0] *= lesson.trace
                twin.predicted[0] = p
            else:
                twin.correct(0, twin.chance(value))
                twin.predict(0, leaf)
            position = position.play(move)
        twin.correct(0, result(game, 0.5))
        compare(twin, learnt)
    assert decided


class Stream:
    """The random numbers of a game: those of `match.start_stream` and `randbelow`."""

    def __init__(self, seed: int) -> None:
        z = (seed + 0x9E3779B97F4A7C15) & MASK
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        self.x = z ^ z >> 31

    def below(self, n: int) -> int:
        x = self.x
        x ^= x >> 12
        x ^= x << 25 & MASK
        x ^= x >> 27
        self.x = x
        return ((x * 0x2545F4914F6CDD1D & MASK) >> 33) * n >> 31

    def shuffled(self, moves: list[int]) -> list[int]:
        order: list[int] = []
        for move in moves:
            j = self.below(len(order) + 1)
            order.append(move)
            order[-1], order[j] = order[j], move
        return order


MASK = (1 << 64) - 1


class Tree:
    """Alpha-beta in plain Python, in the same order of moves; `seen` is every position that was searched further with
    what was found and the window, for its side to move."""

    def __init__(self, twin: Twin) -> None:
        self.twin = twin
        self.killers: dict[int, list[int]] = {}
        self.seen: list[tuple[Any, float, float, float]] = []

    def choose(self, root: Any, state: Any, order: list[int], depth: int) -> int:
        self.seen = []
        self.state = state
        best, chosen = -math.inf, 0
        for move in order:
            verbs.make(state, move)
            x = -self.search(root.play(move), depth - 1, -math.inf, -best, 1)
            verbs.undo(state)
            if x > best:
                best, chosen = x, move
        self.seen.append((root, best, -math.inf, math.inf))
        return chosen

    def search(self, node: Any, depth: int, alpha: float, beta: float, ply: int) -> float:
        if node.outcome is not None:
            winner = node.outcome.winner
            return 0.0 if winner is None else (minimax.WIN - ply) * (1 if winner == node.side else -1)
        if depth == 0:
            return self.twin.value(node) * (1 - 2 * int(node.side))
        moves = listed(self.state)
        killers = self.killers.setdefault(ply, [0, 0])
        rank = {
            move: 4 * int(verbs.order_score(self.state, move))
            + (3 if move == killers[0] else 2 if move == killers[1] else 0)
            for move in moves
        }
        best, low, sorting = -math.inf, alpha, True
        for i in range(len(moves)):
            if sorting:
                j = max(range(i, len(moves)), key=lambda j: (rank[moves[j]], -j))
                sorting = rank[moves[j]] > 0
                moves[i], moves[j] = moves[j], moves[i]
            verbs.make(self.state, moves[i])
            best = max(best, -self.search(node.play(moves[i]), depth - 1, -beta, -low, ply + 1))
            verbs.undo(self.state)
            low = max(low, best)
            if best >= beta:
                if killers[0] != moves[i]:
                    killers[:] = [moves[i], killers[0]]
                break
        self.seen.append((node, best, alpha, beta))
        return best


@pytest.mark.parametrize("depth", [1, 2])
def test_trees_move_positions_towards_what_was_found_in_them(
    depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lesson = Lesson(TREES, depth=depth, rate=0.1, entropy=True, adam=depth == 1, drawn=(0.5, 0.5))
    lessons = taught(monkeypatch, lesson, first_weights(), number=1)
    bounds = 0
    for seed, (_, moves, memory, learnt) in enumerate(lessons):
        twin, position, stream = Twin(NET, memory, lesson), start(), Stream(seed)
        tree, state = Tree(twin), position.new_record()[0]
        assert stream.below(lesson.random_plies + 1) == 0
        for move in moves:
            stream.below(learning.SHARE)
            free = position.unlimited()
            assert tree.choose(free, state, stream.shuffled(listed(state)), depth) == move
            total = np.zeros(COUNT)
            for node, found, alpha, beta in tree.seen:
                sign = 1 - 2 * int(node.side)
                p = twin.chance(twin.value(node))
                target = float(found * sign > 0) if abs(found) > minimax.MOST else twin.chance(found * sign)
                error = target - p
                if (found >= beta and error * sign < 0) or (found <= alpha and error * sign > 0):
                    bounds += 1
                    continue
                twin.errors.append(error)
                total += error * twin.slope(node)
            twin.move_by(total / len(tree.seen))
            position = position.play(move)
            verbs.make(state, move)
        compare(twin, learnt)
    assert bounds or depth == 1


def test_the_rate_falls_to_its_end_and_no_further() -> None:
    lesson = Lesson(rate=0.3, rate_end=0.1, rate_change=-0.15)
    memory = Memory(first_weights(), np.zeros((2, COUNT)))
    games = np.zeros(4, match.GAME)
    games["seed"] = range(4)
    games["defenders"] = 1
    together = learning.learn(VARIANT, NET, memory, [Contestant("random")], games, lesson)
    for rate, game in zip((0.3, 0.15, 0.1, 0.1), games, strict=True):
        alone = np.array([game], match.GAME)
        memory = learning.learn(VARIANT, NET, memory, [Contestant("random")], alone, Lesson(rate=rate)).memory
        assert alone[0]["moves_hash"] == game["moves_hash"]
    np.testing.assert_array_equal(together.memory.weights, memory.weights)
