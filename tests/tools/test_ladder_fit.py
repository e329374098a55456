"""What a fit says of the games of a ladder: against slow twins, by hand, and against what was published."""

from __future__ import annotations

import math
from collections import Counter
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from ladder_parts import made_up

from hnefi.tools.common.rating import Model, rate
from hnefi.tools.common.statistics import wilson
from hnefi.tools.ladder import fitting, pool, published
from hnefi.tools.ladder.ladder import (
    LadderError,
    load,
)


def slow_fit(games: pool.Pool, anchor: tuple[str, float]) -> tuple[dict[str, float], dict[str, float]]:
    """Ratings and side terms by small steps uphill, game by game: the likelihood with two virtual draws a player."""
    names = sorted({game.attackers for game in games.games} | {game.defenders for game in games.games})
    variants = sorted({game.variant for game in games.games})
    rating, side = dict.fromkeys(names, 0.0), dict.fromkeys(variants, 0.0)
    points = {"a": 1.0, "draw": 0.5, "d": 0.0}
    for _ in range(4000):
        up, out = dict.fromkeys(names, 0.0), dict.fromkeys(variants, 0.0)
        for game in games.games:
            gap = rating[game.attackers] - rating[game.defenders] + side[game.variant]
            miss = points[game.winner] - 1 / (1 + math.exp(-gap))
            up[game.attackers] += miss
            up[game.defenders] -= miss
            out[game.variant] += miss
        mean = sum(rating.values()) / len(names)
        for name in names:
            own = sorted({g.variant for g in games.games if name in (g.attackers, g.defenders)})
            for variant in own:
                for sign in (1, -1):
                    gap = sign * (rating[name] - mean) + side[variant]
                    miss = (0.5 - 1 / (1 + math.exp(-gap))) / len(own)
                    out[variant] += miss
                    up[name] += sign * miss
                    for other in names:
                        up[other] -= sign * miss / len(names)
        for name in names:
            rating[name] += 0.02 * up[name]
        for variant in variants:
            side[variant] += 0.02 * out[variant]
    scale = 400 / math.log(10)
    shift = anchor[1] - scale * rating[anchor[0]]
    return {name: scale * value + shift for name, value in rating.items()}, {
        name: scale * value for name, value in side.items()
    }


UNEVEN = [
    ("A", "B", "a", 5), ("A", "B", "d", 2), ("B", "C", "a", 4), ("B", "C", "draw", 3), ("B", "C", "d", 1),
    ("A", "C", "a", 3), ("A", "C", "d", 1),
]  # fmt: skip
ELSEWHERE = [
    ("A", "B", "a", 3),
    ("A", "B", "d", 2),
    ("A", "B", "draw", 1),
    ("C", "B", "a", 1),
    ("C", "B", "d", 2),
]


def test_the_fit_is_that_of_a_slow_twin() -> None:
    games = made_up(UNEVEN).joined(made_up(ELSEWHERE, "tablut-linnaeus"))
    fit = fitting.fit(games, Model(anchor=("B", 1000.0)), bootstrap=0)
    ratings, sides = slow_fit(games, ("B", 1000.0))
    for name, rating in fit.whole.ratings.items():
        assert rating.value == pytest.approx(ratings[name], abs=0.05)
    for name, side in fit.whole.sides.items():
        assert side.value == pytest.approx(sides[name], abs=0.05)
    assert list(fit.alone) == ["brandubh", "tablut-linnaeus"]
    alone, _ = slow_fit(made_up(UNEVEN), ("B", 1000.0))
    for name, rating in fit.alone["brandubh"].ratings.items():
        assert rating.value == pytest.approx(alone[name], abs=0.05)


def test_pairs_are_what_is_resampled() -> None:
    games = made_up(UNEVEN)
    units = Counter(
        tuple(
            (game.variant, game.attackers, game.defenders, game.winner)
            for game in sorted(games.games, key=lambda game: game.game)
            if game.pair == pair
        )
        for pair in range(1, 20)
    )
    assert {tuple(map(tuple, unit)): count for unit, count in games.tally().units()} == units
    table = fitting.fit(games, Model(anchor=("B", 1000.0)), bootstrap=200, seed=3).whole
    (same,) = rate(games.tally().units(), Model(anchor=("B", 1000.0), bootstrap=200, seed=3))
    assert table == same


def test_an_anchor_that_did_not_play() -> None:
    with pytest.raises(LadderError, match="anchor 'nobody': expected an engine that played"):
        fitting.fit(made_up(UNEVEN), Model(anchor=("nobody", 1000.0)), bootstrap=0)


def test_residuals_by_hand() -> None:
    games = made_up(UNEVEN)
    fit = fitting.fit(games, Model(anchor=("B", 1000.0)), bootstrap=0)
    found = fitting.cells(fit)
    rating, side = fit.whole.ratings, fit.whole.sides["brandubh"].value
    for one, two in permutations("ABC", 2):
        points = expected = variance = 0.0
        count = 0
        for game in games.games:
            if {game.attackers, game.defenders} != {one, two}:
                continue
            gap = rating[game.attackers].value - rating[game.defenders].value + side
            hope = 1 / (1 + 10 ** (-gap / 400))
            mine = hope if game.attackers == one else 1 - hope
            points += (
                {"a": 1.0, "d": 0.0}[game.winner]
                if game.attackers == one
                else {"a": 0.0, "d": 1.0}[game.winner]
            )
            expected += mine
            variance += hope * (1 - hope)
            count += 1
        cell = found[one, two]
        assert cell.record.games == count
        assert cell.record.score == pytest.approx(points / count)
        assert cell.expected == pytest.approx(expected / count)
        assert cell.residual == pytest.approx((points - expected) / math.sqrt(variance))
    square, degrees = fitting.misfit(found, 2)
    assert degrees == 1
    assert square == pytest.approx(
        sum(found[pair].residual ** 2 for pair in (("A", "B"), ("A", "C"), ("B", "C")))
    )


def slow_cycles(games: pool.Pool) -> set[frozenset[tuple[str, str]]]:
    """Every A beats B beats C beats A, straight from the games."""
    names = {game.attackers for game in games.games} | {game.defenders for game in games.games}

    def beats(one: str, two: str) -> bool:
        met = [game for game in games.games if {game.attackers, game.defenders} == {one, two}]
        won = sum((game.winner == "a") == (game.attackers == one) for game in met)
        interval = wilson(won, len(met))
        return interval is not None and interval[0] > 0.5

    return {
        frozenset({(a, b), (b, c), (c, a)})
        for a, b, c in permutations(names, 3)
        if beats(a, b) and beats(b, c) and beats(c, a)
    }


def test_residuals_by_side_by_hand() -> None:
    """Attackers win too often, whoever of two attacks: where both sides are added up, that does not show."""
    games = made_up(
        [("A", "B", "draw", 10), *((one, "C", won, 10) for one in ("A", "B") for won in ("a", "d"))]
    )
    fit = fitting.fit(games, Model(anchor=("C", 1000.0)), bootstrap=0)
    assert fitting.cells(fit)["A", "B"].residual == pytest.approx(0, abs=0.05)
    found = fitting.directed(fit)
    assert len(found) == 6
    for one, two in (("A", "B"), ("B", "A")):
        cell = found["brandubh", one, two]
        gap = fit.whole.ratings[one].value - fit.whole.ratings[two].value + fit.whole.sides["brandubh"].value
        hope = 1 / (1 + 10 ** (-gap / 400))
        assert (cell.player, cell.opponent, cell.expected) == (one, two, pytest.approx(hope))
        assert cell.residual == pytest.approx((10 - 10 * hope) / math.sqrt(10 * hope * (1 - hope)))
        assert cell.residual > 2


def test_the_published_ratings_are_the_most_likely_ones() -> None:
    """The ladder's model written out as one function of all published games: no number can be moved to make them more
    likely."""
    found = pool.read(published.pool_file())
    document = published.ratings()
    assert document is not None
    who = {name: number for number, name in enumerate(found.players)}
    where = {name: number for number, name in enumerate(load().variants)}
    counted = Counter((game.variant, game.attackers, game.defenders, game.winner) for game in found.games)
    attacks, defends = (np.array([who[key[place]] for key in counted]) for place in (1, 2))
    variant = np.array([where[key[0]] for key in counted])
    points = np.array([{"a": 1.0, "draw": 0.5, "d": 0.0}[key[3]] for key in counted])
    games = np.array(list(counted.values()), float)
    played = np.bincount(attacks, games, len(who)) + np.bincount(defends, games, len(who))
    draws = games * (
        1 / played[attacks] + 1 / played[defends]
    )  # each player's virtual draw, among its meetings

    def likelihood(numbers: Any) -> float:
        ratings, sides, slopes = np.split(numbers / 400, [len(who), len(who) + len(where)])
        strength = (ratings[attacks] + ratings[defends]) / 2 - ratings.mean()
        gap = ratings[attacks] - ratings[defends] + sides[variant] + slopes[variant] * strength
        won, lost = -np.log1p(10**-gap), -np.log1p(10**gap)
        return float(((games * points + draws / 2) * won + (games * (1 - points) + draws / 2) * lost).sum())

    numbers = np.array(
        [document["players"][name]["elo"] for name in who]
        + [document[kind][name]["elo"] for kind in ("sides", "slopes") for name in where]
    )
    assert len(numbers) == len(who) + 2 * len(where)
    best = likelihood(numbers)
    for number in range(len(numbers)):
        near = []
        for step in (-2.0, 2.0):
            moved = numbers.copy()
            moved[number] += step
            near.append(likelihood(moved))
        # The top of the parabola through three points is where the published number is, as far as it was rounded.
        top = (near[1] - near[0]) / (2 * best - near[0] - near[1])
        assert max(near) < best
        assert abs(top) < 0.1


def test_circles_are_found() -> None:
    games = made_up(
        [
            ("A", "B", "a", 12), ("B", "C", "a", 12), ("C", "A", "a", 12),
            ("C", "D", "a", 12), ("D", "E", "a", 12), ("E", "C", "draw", 12),
            ("A", "D", "a", 1),
        ]
    )  # fmt: skip
    found = fitting.cells(fitting.fit(games, Model(anchor=("A", 1000.0)), bootstrap=0))
    found_cycles = fitting.cycles(found)
    assert [cycle.players for cycle in found_cycles] == [("A", "B", "C")]
    assert found_cycles[0].scores == (1.0, 1.0, 1.0)
    one, two, three = found_cycles[0].players
    assert slow_cycles(games) == {frozenset({(one, two), (two, three), (three, one)})}
    # Triples with three clear results: A B C alone; in C D E one meeting is even, and A and D hardly met.
    assert fitting.significant(found) == 1


def test_ratings_are_made_to_rise() -> None:
    assert fitting.rising([(100.2, 5), (200.0, 5), (300.0, 5)]) == [100, 200, 300]
    # Two in the wrong order meet in the middle, the surer one counting more.
    assert fitting.rising([(100, 5), (220, 10), (200, 10), (300, 5)]) == [100, 210, 211, 300]
    assert fitting.rising([(220, 5), (200, 10)]) == [216, 217]
    assert fitting.rising([(300, 1), (200, 1), (100, 1)]) == [199, 200, 201]
    assert fitting.rising([(100.4, 1), (100.4, 1), (100.4, 1), (101.0, 1)]) == [99, 100, 101, 102]


def test_two_fits_are_compared() -> None:
    one = fitting.fit(
        made_up([("A", "B", "a", 20), ("A", "B", "d", 8), ("A", "B", "draw", 4)]), Model(anchor=("B", 1000.0))
    ).whole
    two = fitting.fit(
        made_up([("A", "B", "d", 20), ("A", "B", "a", 8), ("A", "B", "draw", 4)]), Model(anchor=("B", 1000.0))
    ).whole
    (same,) = fitting.differences(one, one)
    assert (same.name, same.value, same.outside) == ("A", 0.0, False)
    (apart,) = fitting.differences(one, two)
    first, second = one.ratings["A"], two.ratings["A"]
    assert apart.value == pytest.approx(second.value - first.value)
    assert first.error is not None
    assert second.error is not None
    assert apart.error == pytest.approx(math.sqrt(first.error**2 + second.error**2))
    assert apart.outside
