"""Who meets whom, what a match is worth, and what fitness comes of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from hnefi.engine.evaluators.network import Network
from hnefi.engine.games import find
from hnefi.engine.selfplay import match as contest
from hnefi.tools.common.matches import Games, points
from hnefi.tools.evolve import options
from hnefi.tools.evolve.algorithm import Purpose
from hnefi.tools.evolve.contestants import Contestants
from hnefi.tools.evolve.fitness import Pairing, fitness, schedule


def games(*matches: tuple[str, tuple[int, int], str, tuple[int, int]]) -> Games:
    """Matches by hand: who won each game (`a`, `d` or `=`) and men taken by attackers and defenders."""
    return Games(
        np.array([["ad=".index(one), "ad=".index(two)] for one, _, two, _ in matches]),
        np.array([[first, second] for _, first, _, second in matches]),
        np.zeros((len(matches), 2)),
        np.zeros((len(matches), 2)),
    )


def test_a_match_by_the_rule() -> None:
    """The first attacks in game one and defends in game two."""
    played = games(
        ("a", (0, 9), "d", (9, 0)),  # both games won, whatever was taken
        ("a", (0, 9), "=", (9, 0)),  # one won, one drawn
        ("d", (9, 0), "=", (0, 9)),  # one lost, one drawn
        ("a", (3, 1), "a", (2, 2)),  # one each; taken 3 + 2 against 1 + 2
        ("d", (3, 1), "d", (0, 0)),  # one each, the other way; 3 against 1
        ("=", (1, 2), "=", (1, 1)),  # drawn; 1 + 1 against 2 + 1
        ("=", (4, 2), "=", (3, 1)),  # drawn; 4 + 1 against 2 + 3
    )
    result = points(played)
    assert result.first.tolist() == [2, 2, 0, 2, 2, 0, 1]
    assert result.second.tolist() == [0, 0, 2, 0, 0, 2, 1]
    assert result.by_captures.tolist() == [False, False, False, True, True, True, False]


def test_the_papers_generation() -> None:
    """Ten individuals: 45 matches among them, 100 against Random: 290 games."""
    made = schedule(Pairing(10), seed=1, generation=1)
    attackers, defenders, seeds = made.games
    assert (len(made), len(attackers)) == (145, 290)
    assert len(set(seeds.tolist())) == 290
    peers = [(int(a), int(d)) for a, d in zip(attackers, defenders, strict=True) if max(a, d) < 10]
    assert sorted(peers) == sorted(
        [*combinations(range(10), 2), *((b, a) for a, b in combinations(range(10), 2))]
    )
    assert [int((attackers == i).sum()) for i in range(11)] == [19] * 10 + [100]
    assert [int((defenders == i).sum()) for i in range(11)] == [19] * 10 + [100]


def test_fitness_of_a_field_by_hand() -> None:
    """Three individuals; 0 beats 1, draws with 2; 1 beats 2; against Random, two matches each: 4, 1 and 0 points."""
    field = Pairing(3, matches=2)
    made = schedule(field, 1, 1)
    won, lost, level = ("a", (0, 0), "d", (0, 0)), ("d", (0, 0), "a", (0, 0)), ("=", (1, 1), "=", (2, 2))
    among = {(0, 1): won, (0, 2): level, (1, 2): won}
    against = {0: [won, won], 1: [level, lost], 2: [lost, lost]}
    results = []
    for first, second in zip(made.first.tolist(), made.second.tolist(), strict=True):
        results.append(against[first].pop(0) if second == 3 else among[first, second])
    found = fitness(field, made, points(games(*results)))
    np.testing.assert_allclose(found, [(2 + 1) / 2 + 4 / 2, (0 + 2) / 2 + 1 / 2, (1 + 0) / 2 + 0])


def test_the_second_of_a_match_gets_the_rest() -> None:
    field = Pairing(2, fixed=())
    made = schedule(field, 1, 1)
    assert fitness(field, made, points(games(("d", (0, 0), "=", (0, 0))))).tolist() == [0, 2]


def test_past_champions_count_among_the_others() -> None:
    """Two individuals and a champion of old, whom both meet once."""
    field = Pairing(2, past=1, fixed=())
    made = schedule(field, 1, 1)
    assert list(zip(made.first.tolist(), made.second.tolist(), strict=True)) == [(0, 1), (0, 2), (1, 2)]
    won, lost = ("a", (0, 0), "d", (0, 0)), ("d", (0, 0), "a", (0, 0))
    assert fitness(field, made, points(games(won, won, lost))).tolist() == [2, 0]


def test_more_matches_of_each_pair() -> None:
    made = schedule(Pairing(4, pair_games=3, fixed=()), 1, 1)
    assert len(made) == 18
    assert len(set(made.seeds.ravel().tolist())) == 36


def test_common_numbers() -> None:
    """Everybody meets the same Random, who draws the same numbers, but not twice the same."""
    both = Pairing(3, pair_games=0, fixed=(Purpose.RANDOM, Purpose.SIMPLE), matches=4, common=True)
    made = schedule(both, 1, 1)
    seeds = made.seeds.reshape(2, 3, 8)
    assert (seeds == seeds[:, :1]).all()
    assert len(set(seeds.ravel().tolist())) == 16
    apart = schedule(Pairing(3, pair_games=0, matches=4), 1, 1)
    assert len(set(apart.seeds.ravel().tolist())) == 24


def test_who_keeps_his_fitness_meets_only_newcomers() -> None:
    field = Pairing(3, matches=1)
    keep = np.array([True, True, False])
    made = schedule(field, 1, 1, keep)
    assert list(zip(made.first.tolist(), made.second.tolist(), strict=True)) == [(0, 2), (1, 2), (2, 3)]
    won = ("a", (0, 0), "d", (0, 0))
    known = np.array([3.5, 2.5, np.nan])
    assert fitness(field, made, points(games(won, won, won)), known).tolist() == [3.5, 2.5, 2]


def test_seeds_do_not_depend_on_the_others() -> None:
    """A match has the same seeds in every generation that it is the same match of."""
    everybody, some = (
        schedule(Pairing(4), 7, 3),
        schedule(Pairing(4), 7, 3, np.array([True, True, False, False])),
    )
    of = {
        (int(a), int(b), int(p), int(seeds[0]))
        for a, b, p, seeds in zip(
            everybody.first, everybody.second, everybody.purpose, everybody.seeds, strict=True
        )
    }
    assert {
        (int(a), int(b), int(p), int(seeds[0]))
        for a, b, p, seeds in zip(some.first, some.second, some.purpose, some.seeds, strict=True)
    } < of
    assert not set(schedule(Pairing(4), 7, 4).seeds.ravel().tolist()) & set(everybody.seeds.ravel().tolist())


def test_deeper_matches_are_played_by_a_further_row_of_contestants() -> None:
    field = Pairing(3, past=1, fixed=(Purpose.RANDOM, Purpose.SIMPLE), matches=2, levels=2)
    made, flat = schedule(field, 1, 1), schedule(replace(field, levels=1), 1, 1)
    assert made.contestants == 6
    assert len(made) == len(flat) + 3 * 2 * 2
    assert len(set(made.seeds.ravel().tolist())) == 2 * len(made)
    attackers, defenders, seeds = made.games
    shallow = np.flatnonzero(np.repeat(made.level, 2) == 0)
    for one, other in zip((attackers, defenders, seeds), flat.games, strict=True):
        np.testing.assert_array_equal(one[shallow], other)
    deep = made.level == 1
    assert set(made.purpose[deep].tolist()) == {Purpose.RANDOM, Purpose.SIMPLE}
    assert set(zip(attackers.tolist(), defenders.tolist(), strict=True)) >= {
        (6, 10),
        (10, 6),
        (8, 11),
        (11, 8),
    }
    assert attackers.max() == 11


def test_everybody_in_a_row_looks_as_far_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    seated: list[Any] = []
    monkeypatch.setattr(contest, "Table", lambda _, contestants: seated.extend(contestants))
    variant, network = find("brandubh"), Network("zero")
    weights = np.zeros((2, 0))
    Contestants(variant, network, weights, (Purpose.RANDOM, Purpose.SIMPLE), (1, 3)).table(range(8))
    assert [(one.algorithm, one.depth if one.algorithm == "minimax" else 0) for one in seated] == [
        ("minimax", 1), ("minimax", 1), ("random", 0), ("minimax", 1),
        ("minimax", 3), ("minimax", 3), ("random", 0), ("minimax", 3),
    ]  # fmt: skip
    assert seated[0].params is seated[4].params
    assert seated[3].params is seated[7].params


@pytest.mark.parametrize("text", ["1", "3,2", "2,2", "9", "two", "2;3", "-2"])
def test_depths_that_do_not_rise_are_refused(text: str) -> None:
    with pytest.raises(options.OptionError, match="rise from depth 1"):
        options.depths({"depth": 1, "deeper": text})


def test_depths() -> None:
    assert options.depths({"depth": 2, "deeper": ""}) == (2,)
    assert options.depths({"depth": 1, "deeper": "2,8"}) == (1, 2, 8)
