"""Ratings and side terms: the check value, priors, anchors, groups, and errors by resampling pairs."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise, permutations

import interval_coverage
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hnefi.tools.common.pairs import Ending, Played, Tally, Winner
from hnefi.tools.common.rating import Model, Table, rate

Units = Counter[tuple[Ending, ...]]
PLAIN = Model(prior=0, bootstrap=0)


def singles(*games: tuple[str, str, Winner, int], variant: str = "brandubh") -> Units:
    """Games that belong to no pair: attackers, defenders, winner, how many."""
    return Counter(
        {(Ending(variant, attackers, defenders, winner),): n for attackers, defenders, winner, n in games}
    )


def expected(table: Table, attackers: str, defenders: str, variant: str = "brandubh") -> float:
    difference = table.ratings[attackers].value - table.ratings[defenders].value + table.sides[variant].value
    return 1 / (1 + 10 ** (-difference / 400))


CHECK = singles(("A", "B", "a", 60), ("A", "B", "d", 40), ("B", "A", "d", 80), ("B", "A", "a", 20))


def test_the_check_value() -> None:
    """A scores 60 of 100 attacking and 80 of 100 defending."""
    (table,) = rate(CHECK, PLAIN)
    assert list(table.ratings) == ["A", "B"]
    assert table.ratings["A"].value - table.ratings["B"].value == pytest.approx(155.6303, abs=1e-4)
    assert table.sides["brandubh"].value == pytest.approx(-85.1937, abs=1e-4)
    assert table.ratings["A"].value + table.ratings["B"].value == pytest.approx(0, abs=1e-9)
    assert table.ratings["A"].error is table.ratings["A"].low is None


def test_a_draw_is_half_a_win() -> None:
    drawn = singles(("A", "B", "a", 20), ("A", "B", "draw", 80), ("B", "A", "d", 80), ("B", "A", "a", 20))
    (table,), (check,) = rate(drawn, PLAIN), rate(CHECK, PLAIN)
    assert table.ratings["A"].value == pytest.approx(check.ratings["A"].value)
    assert table.sides["brandubh"].value == pytest.approx(check.sides["brandubh"].value)


def test_the_prior_pulls_a_little_towards_the_mean() -> None:
    (table,) = rate(CHECK, Model(bootstrap=0))
    difference = table.ratings["A"].value - table.ratings["B"].value
    assert 150 < difference < 155.6
    assert -85.2 < table.sides["brandubh"].value < -80


def test_the_prior_by_hand() -> None:
    """One engine's two virtual draws, one on each side, against an engine of rating 0: with two engines at +r and -r
    and attackers that never had an advantage, 100 games at 75 % and four draws at E(r)."""
    units = singles(("A", "B", "a", 75), ("A", "B", "d", 25), ("B", "A", "d", 75), ("B", "A", "a", 25))
    (table,) = rate(units, Model(bootstrap=0))
    r = table.ratings["A"].value

    def score(difference: float) -> float:
        return 1 / (1 + 10 ** (-difference / 400))

    # The derivative of the likelihood in r: games count twice their difference, the four virtual draws once.
    assert 2 * (150 - 200 * score(2 * r)) + 4 * (0.5 - score(r)) == pytest.approx(0, abs=1e-6)
    assert table.sides["brandubh"].value == pytest.approx(0, abs=1e-9)


def likelihood(units: Units, ratings: dict[str, float], sides: dict[str, float]) -> float:
    """The logarithm of what is to be as large as possible, with two virtual draws per engine, written out plainly."""

    def score(difference: float) -> float:
        return 1 / (1 + 10 ** (-difference / 400))

    total = 0.0
    variants: dict[str, set[str]] = {name: set() for name in ratings}
    for (ending,), count in units.items():
        chance = score(ratings[ending.attackers] - ratings[ending.defenders] + sides[ending.variant])
        won = {"a": 1.0, "draw": 0.5, "d": 0.0}[ending.winner]
        total += count * (won * math.log(chance) + (1 - won) * math.log(1 - chance))
        for name in ending[1:3]:
            variants[name].add(ending.variant)
    mean = sum(ratings.values()) / len(ratings)
    for name, played in variants.items():
        for variant in played:
            for sign in (1, -1):
                chance = score(sign * (ratings[name] - mean) + sides[variant])
                total += (0.5 * math.log(chance) + 0.5 * math.log(1 - chance)) / len(played)
    return total


def test_no_other_ratings_are_more_likely() -> None:
    """Few and lopsided games of three engines in two variants, so that the prior matters."""
    units = singles(
        ("A", "B", "a", 5),
        ("A", "B", "d", 1),
        ("B", "A", "d", 3),
        ("B", "A", "a", 1),
        ("C", "B", "a", 4),
        ("C", "B", "d", 1),
    )
    units += singles(
        ("A", "C", "a", 2), ("A", "C", "draw", 5), ("C", "A", "a", 2), ("C", "A", "d", 1), variant="x"
    )
    (table,) = rate(units, Model(bootstrap=0))
    ratings = {name: fitted.value for name, fitted in table.ratings.items()}
    sides = {name: fitted.value for name, fitted in table.sides.items()}
    for numbers in (ratings, sides):
        for name, value in dict(numbers).items():
            near = []
            for step in (-1.0, 1.0):
                numbers[name] = value + step
                near.append(likelihood(units, ratings, sides))
            numbers[name] = value
            assert max(near) < likelihood(units, ratings, sides)
            assert near[0] == pytest.approx(near[1], abs=1e-6)


def test_an_advantage_that_depends_on_strength_is_found_again() -> None:
    """Games as a known law expects them: attackers are 100 better at the mean strength, 80 less for 400 points."""
    strength = {"A": 450.0, "B": 150.0, "C": -150.0, "D": -450.0}
    units = Units()
    for (one, ours), (other, theirs) in permutations(strength.items(), 2):
        gap = ours - theirs + 100 - 80 * (ours + theirs) / 2 / 400
        won = round(100_000 / (1 + 10 ** (-gap / 400)))
        units += singles((one, other, "a", won), (one, other, "d", 100_000 - won))
    model = replace(PLAIN, slope=True)
    (table,) = rate(units, model)
    assert {name: fitted.value for name, fitted in table.ratings.items()} == pytest.approx(strength, abs=0.5)
    assert table.sides["brandubh"].value == pytest.approx(100, abs=0.5)
    assert table.slopes["brandubh"].value == pytest.approx(-80, abs=0.5)
    assert table.gap("brandubh", "A", "B") == pytest.approx(300 + 100 - 60, abs=1)
    (flat,) = rate(units, PLAIN)
    assert flat.slopes == {}
    assert flat.gap("brandubh", "A", "B") > 370, "an advantage that is the same for all"
    (anchored,) = rate(units, replace(model, anchor=("D", 1000.0)))
    assert anchored.slopes["brandubh"].value == pytest.approx(-80, abs=0.5)
    assert anchored.gap("brandubh", "A", "B") == pytest.approx(300 + 100 - 60, abs=1)
    with pytest.raises(ValueError, match="side term"):
        rate(units, replace(model, side=False))


def test_a_prior_against_those_that_were_met_does_not_pull_to_the_mean() -> None:
    """A ladder of steps of 200 points: virtual draws against the mean take more of its ends than draws against
    neighbours, which take the same from each step."""
    names = "ABCDEFG"
    units = Units()
    for one, other in pairwise(names):
        units += singles(
            (one, other, "a", 30), (one, other, "d", 10), (other, one, "d", 30), (other, one, "a", 10)
        )
    steps = {}
    for against in ("mean", "met"):
        (table,) = rate(units, Model(prior=4, prior_against=against, bootstrap=0))
        steps[against] = [
            table.ratings[one].value - table.ratings[other].value for one, other in pairwise(names)
        ]
    (free,) = rate(units, PLAIN)
    step = free.ratings["A"].value - free.ratings["B"].value
    assert step == pytest.approx(400 * math.log10(3))
    # A meeting of 80 games gets half of the draws of a player in the middle, all of those of a player at the end.
    for place, games in enumerate((86, 84, 84, 84, 84, 86)):
        share = (60 + (games - 80) / 2) / games
        assert steps["met"][place] == pytest.approx(400 * math.log10(share / (1 - share)), abs=0.01)
    assert max(steps["mean"]) < min(steps["met"])


@pytest.mark.parametrize("prior", [0.0, 2.0])
def test_perfect_scores_stay_finite(prior: float) -> None:
    units = singles(("A", "B", "a", 50), ("B", "A", "d", 50))
    (table,) = rate(units, Model(prior=prior, bootstrap=50))
    assert 200 < table.ratings["A"].value < 1300
    assert abs(table.sides["brandubh"].value) < 1e-6
    always = singles(("A", "B", "a", 50), ("B", "A", "a", 50))
    (table,) = rate(always, Model(prior=prior, bootstrap=0))
    assert 400 < table.sides["brandubh"].value < 1300
    assert abs(table.ratings["A"].value) < 1e-6


def test_one_game_is_enough_to_say_something_finite() -> None:
    (table,) = rate(singles(("A", "B", "a", 1)))
    assert all(math.isfinite(fitted.value) for fitted in (*table.ratings.values(), *table.sides.values()))
    assert table.ratings["A"].value > table.ratings["B"].value


def test_no_games_no_tables() -> None:
    assert rate(Counter()) == []
    assert rate(iter(())) == []
    assert rate({(Ending("x", "A", "B", "a"),): 0}) == []


def test_without_side_term() -> None:
    (table,) = rate(CHECK, replace(PLAIN, side=False))
    assert table.sides == {}
    assert table.ratings["A"].value - table.ratings["B"].value == pytest.approx(400 * math.log10(140 / 60))


def test_each_variant_has_its_side_term() -> None:
    units = CHECK + singles(
        ("A", "B", "a", 80), ("A", "B", "d", 20), ("B", "A", "d", 60), ("B", "A", "a", 40), variant="tablut"
    )
    (table,) = rate(units, PLAIN)
    assert table.sides["brandubh"].value == pytest.approx(-85.1937, abs=1e-4)
    assert table.sides["tablut"].value == pytest.approx(85.1937, abs=1e-4)
    assert table.ratings["A"].value - table.ratings["B"].value == pytest.approx(155.6303, abs=1e-4)


def test_groups_that_never_met_have_their_own_tables() -> None:
    others = singles(("D", "C", "a", 5), ("C", "D", "a", 5), ("D", "E", "a", 5))
    tables = rate(others + CHECK, Model(bootstrap=20))
    assert [sorted(table.ratings) for table in tables] == [["C", "D", "E"], ["A", "B"]]
    (alone,) = rate(CHECK, Model(bootstrap=20))
    assert tables[1] == alone
    # One game joins them.
    (joined,) = rate(others + CHECK + singles(("E", "A", "draw", 1)), Model(bootstrap=0))
    assert sorted(joined.ratings) == ["A", "B", "C", "D", "E"]


def test_an_anchor_moves_its_own_table_only() -> None:
    units = CHECK + singles(("D", "C", "a", 5), ("C", "D", "a", 5))
    anchored = rate(units, Model(anchor=("B", 1500.0), bootstrap=50))
    free = rate(units, Model(bootstrap=50))
    assert anchored[1] == free[1]
    known, floating = anchored[0].ratings, free[0].ratings
    assert (known["B"].value, known["B"].error) == (pytest.approx(1500), 0.0)
    assert known["A"].value - 1500 == pytest.approx(floating["A"].value - floating["B"].value)
    assert known["A"].error == pytest.approx(2 * floating["A"].error)  # type: ignore[operator]
    assert anchored[0].sides["brandubh"].value == pytest.approx(free[0].sides["brandubh"].value)
    for name in "ABCD":
        for elo in range(-2000, 2000, 250):
            table = next(
                table
                for table in rate(units, Model(anchor=(name, elo), bootstrap=20))
                if name in table.ratings
            )
            assert table.ratings[name].error == 0.0
    with pytest.raises(ValueError, match=r"anchor 'X': expected an engine that played \(A, B, C, D\)"):
        rate(units, Model(anchor=("X", 0)))


def tournament(seed: int, pairs: int) -> tuple[dict[str, float], list[tuple[Ending, Ending]]]:
    """Pairs of four engines with known ratings; attackers are 60 Elo better off."""
    draw = random.Random(seed)
    ratings = {"A": 150.0, "B": 50.0, "C": -40.0, "D": -160.0}

    def game(attackers: str, defenders: str) -> Ending:
        score = 1 / (1 + 10 ** (-(ratings[attackers] - ratings[defenders] + 60) / 400))
        chance = draw.random()
        winner: Winner = "a" if chance < score - 0.05 else "draw" if chance < score + 0.05 else "d"
        return Ending("brandubh", attackers, defenders, winner)

    meetings = [draw.sample(sorted(ratings), 2) for _ in range(pairs)]
    return ratings, [(game(one, two), game(two, one)) for one, two in meetings]


def test_known_ratings_are_found_again() -> None:
    ratings, pairs = tournament(1, 4000)
    (table,) = rate(Counter(pairs))
    assert list(table.ratings) == ["A", "B", "C", "D"]
    for name, fitted in table.ratings.items():
        assert fitted.low is not None
        assert fitted.high is not None
        assert 3 < fitted.error < 15  # type: ignore[operator]
        assert fitted.low < fitted.value < fitted.high
        assert fitted.value == pytest.approx(ratings[name], abs=2.5 * fitted.error)  # type: ignore[operator]
    assert table.sides["brandubh"].value == pytest.approx(60, abs=2.5 * table.sides["brandubh"].error)  # type: ignore[operator]


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    inside = total = 0
    for seed in range(40):
        ratings, pairs = tournament(seed, 300)
        (table,) = rate(Counter(pairs), Model(bootstrap=200, seed=seed))
        for name, fitted in table.ratings.items():
            inside += fitted.low <= ratings[name] <= fitted.high  # type: ignore[operator]
            total += 1
    assert 0.88 < inside / total < 0.99


def test_few_pairs_have_wide_intervals() -> None:
    """Two or three pairs often end alike; the bootstrap alone holds the truth in three of four tournaments of them."""
    for pairs in (1, 2):
        held = interval_coverage.simulate(
            interval_coverage.FIELDS["side decides"], pairs, 60, seed=1, bootstrap=60
        )
        assert held.inside >= 0.9 * held.intervals
        assert held.bootstrap_alone < 0.85 * held.intervals


def test_pairs_are_resampled_as_wholes() -> None:
    """Openings that the same side wins twice say nothing about strength, however the single games vary."""
    one = (Ending("x", "A", "B", "a"), Ending("x", "B", "A", "a"))
    two = (Ending("x", "A", "B", "d"), Ending("x", "B", "A", "d"))
    (paired,) = rate({one: 50, two: 50})
    (single,) = rate({(ending,): 50 for ending in (*one, *two)})
    # The bootstrap sees no error at all; what is left is the model's share, four pairs in a hundred and four.
    assert paired.ratings["A"].error == pytest.approx(single.ratings["A"].error * (4 / 104) ** 0.5, rel=0.05)  # type: ignore[operator]
    assert single.ratings["A"].error > 10  # type: ignore[operator]
    assert paired.sides["x"].error > single.sides["x"].error  # type: ignore[operator]


def test_the_bootstrap_depends_on_the_seed_and_not_on_the_order() -> None:
    _, pairs = tournament(2, 200)
    model = Model(bootstrap=100, seed=5)
    first = rate(Counter(pairs), model)
    for seed in range(3):
        random.Random(seed).shuffle(pairs)
        assert rate(Counter(pairs), model) == first
        assert rate([(pair, 1) for pair in pairs], model) == first
    assert rate(Counter(pairs), replace(model, seed=6)) != first
    assert (
        rate(Counter(pairs), replace(model, interval=0.5))[0].ratings["A"].error < first[0].ratings["A"].error
    )  # type: ignore[operator]


def test_the_bootstrap_is_the_same_in_small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    _, pairs = tournament(3, 200)
    whole = rate(Counter(pairs), Model(bootstrap=50))
    monkeypatch.setattr("hnefi.tools.common.rating.CELLS", 1)
    (table,) = rate(Counter(pairs), Model(bootstrap=50))
    for name, fitted in table.ratings.items():
        assert fitted.error == pytest.approx(whole[0].ratings[name].error, rel=1e-9)


def test_a_tally_can_be_rated() -> None:
    tally = Tally()
    for pair, (one, two) in enumerate(tournament(4, 100)[1], start=1):
        tally.add(Played(pair, 1, one, ""))
        tally.add(Played(pair, 2, two, ""))
    tally.add(Played(101, 2, Ending("brandubh", "A", "B", "a"), ""))
    (table,) = rate(tally.units(), PLAIN)
    assert sorted(table.ratings) == tally.engines
    # At the maximum, every engine is expected to score what it scored.
    for name in tally.engines:
        games = {ending: count for ending, count in tally.games.items() if name in ending[1:3]}
        score = sum(
            count * (score if ending.attackers == name else 1 - score)
            for ending, count in games.items()
            for score in [expected(table, ending.attackers, ending.defenders)]
        )
        record = tally.record(engine=name)
        assert score == pytest.approx(record.wins + record.draws / 2, abs=1e-5)


@given(
    st.lists(
        st.tuples(st.sampled_from("ABCDE"), st.sampled_from("ABCDE"), st.sampled_from(["a", "d", "draw"])),
        min_size=1,
        max_size=40,
    )
)
@settings(max_examples=60, deadline=None)
def test_any_games_give_finite_tables_of_mean_0(games: list[tuple[str, str, Winner]]) -> None:
    units = Counter((Ending("x", one, two, winner),) for one, two, winner in games if one != two)
    engines = {name for (ending,) in units for name in ending[1:3]}
    tables = rate(units, Model(bootstrap=10))
    assert {name for table in tables for name in table.ratings} == engines
    for table in tables:
        values = [fitted.value for fitted in table.ratings.values()]
        assert sum(values) == pytest.approx(0, abs=1e-6)
        assert values == sorted(values, reverse=True)
        alike = sum({unit[0].attackers, unit[0].defenders} <= table.ratings.keys() for unit in units) == 1
        for fitted in (*table.ratings.values(), *table.sides.values()):
            if alike:
                assert fitted.error is fitted.low is fitted.high is None
            else:
                assert -2000 < fitted.low <= fitted.high < 2000  # type: ignore[operator]
