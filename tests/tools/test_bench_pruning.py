"""`hnefi bench pruning`: every way of searching finds the value that a search without any pruning finds."""

from __future__ import annotations

import json
import random
from itertools import pairwise

import pytest

from hnefi.engine import games
from hnefi.engine.evaluators import network
from hnefi.engine.games.base_position import Position
from hnefi.tools.bench import pruning


def minimax(position: Position, depth: int, ply: int = 0) -> tuple[int, int]:
    """The value for the side to move and the number of positions below, with nothing left out."""
    if (outcome := position.outcome) is not None:
        sign = 0 if outcome.winner is None else 1 if outcome.winner == position.side else -1
        return sign * (1_000_000 - ply), 0
    if depth == 0:
        value = network.parse("simple").naive(position.variant, {}, position)
        return int(value) if position.side == 0 else -int(value), 0
    found = [minimax(position.play(move), depth - 1, ply + 1) for move in position.legal_moves()]
    return max(-value for value, _ in found), len(found) + sum(count for _, count in found)


NEAR_A_GOAL = games.from_fen(games.find("brandubh"), "3t3/3t3/7/2t2K1/7/3T3/3t3 d")


def positions(name: str, count: int) -> list[Position]:
    """The start, and positions from random games, in which men hang."""
    draw = random.Random(name)
    found = [games.initial(games.find(name))]
    while len(found) < count:
        position = found[0]
        for _ in range(draw.randrange(10, 30)):
            if position.outcome is None:
                position = position.play(draw.choice(position.legal_moves()))
        if position.outcome is None:
            found.append(position)
    return found


def test_every_way_finds_the_value_of_plain_minimax() -> None:
    at = [(position, 3) for position in positions("brandubh", 2)[1:]]
    at += [(position, 2) for position in [*positions("brandubh", 12), NEAR_A_GOAL]]
    at += [(position, 1) for position in positions("hingston-original", 3)]
    for position, depth in at:
        value, count = minimax(position, depth)
        near = pruning.distances(position.variant)
        for name, way in pruning.WAYS.items():
            search = pruning.Search(way, near)
            assert search.value(position, depth) == value, (name, position.fen(), depth)
            assert search.nodes > 0, name
        plain = pruning.Search(pruning.WAYS["plain"], near)
        plain.value(position, depth)
        assert plain.nodes <= count
        assert depth == 1 or plain.nodes < count, "something was pruned"


@pytest.mark.parametrize("windows", ["aspiration", "mtd"])
def test_a_wrong_guess_is_mended(windows: str) -> None:
    for position in positions("brandubh", 4):
        value, _ = minimax(position, 2)
        for wrong in (-100, -7, 7, 100):
            search = pruning.Search(
                pruning.Way(table=windows == "mtd", windows=windows), pruning.distances(position.variant)
            )
            assert search._search(position, 2, value + wrong, first=False) == value


def test_a_win_in_the_table_counts_from_the_ply_at_which_it_is_met() -> None:
    position = games.from_fen(games.find("brandubh"), "3K3/7/7/7/7/7/3t3 d")
    search = pruning.Search(pruning.Way(table=True), pruning.distances(position.variant))
    for ply in (2, 4):
        value = search._alphabeta(position, 1, -pruning.INFINITE, pruning.INFINITE, ply)
        assert value == pruning.WIN - (ply + 1)


def test_what_is_counted_includes_the_depths_before() -> None:
    position = positions("brandubh", 2)[1]
    near = pruning.distances(position.variant)
    plain, deepening = pruning.Search(pruning.Way(), near), pruning.Search(pruning.Way(table=True), near)
    plain.value(position, 1)
    assert plain.nodes == len(position.legal_moves())
    deepening.value(position, 2)
    again = pruning.Search(pruning.Way(table=True), near)
    again.value(position, 1)
    assert deepening.nodes > again.nodes == plain.nodes


def test_the_best_moves_come_first() -> None:
    position = NEAR_A_GOAL
    search = pruning.Search(pruning.Way(sort=True, table=True), pruning.distances(position.variant))
    values = [search._evaluate(position.play(move)) for move, _ in search._children(position, 2)]
    assert values == sorted(values)
    assert values[0] < values[-1]
    last = position.legal_moves()[-1]
    search.best[position.key] = last
    assert search._children(position, 2)[0][0] == last


def test_the_factor_is_a_geometric_mean() -> None:
    x, interval = pruning.factor([2, 8], [1, 1])
    assert x == pytest.approx(4)
    assert interval is None, "two say nothing about the spread"
    x, interval = pruning.factor([1, 2, 4, 8, 16], [1, 1, 1, 1, 1])
    assert x == pytest.approx(4)
    assert interval is not None
    assert 1 < interval[0] < 3
    assert 5 < interval[1] < 16
    alike = [3, 6, 9, 12, 15]
    assert pruning.factor(alike, alike) == (pytest.approx(1), pytest.approx((1, 1)))


def test_the_command_prints_a_table_or_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert pruning.main(["brandubh", "--depth", "2", "--positions", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:32].strip() for line in lines[1:7]] == list(pruning.WAYS)
    assert "legal moves on average" in lines[-1]
    assert pruning.main(["brandubh", "--depth", "2", "--positions", "2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    made = document["ways"]["plain"]["nodes"]
    assert len(made) == 2
    assert all(a < b for one in made for a, b in pairwise(one))
    assert pruning.main(["brandubh", "--depth", "1", "--positions", "2"]) == 0
    assert capsys.readouterr().out.endswith(" legal moves on average\n")
    with pytest.raises(SystemExit) as refused:
        pruning.main(["brandubh", "--depth", "0"])
    assert refused.value.code == 2
