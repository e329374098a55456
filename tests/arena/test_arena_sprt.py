"""The sequential test: refused hypotheses, verdicts in words, and the walk in the order of pair numbers."""

from __future__ import annotations

import math
import random

import pytest

from hnefi.tools.common import sprt
from hnefi.tools.common.sprt import Overshoot, Sprt, Unit, Walk, parse
from hnefi.tools.common.statistics import llr_logistic, llr_normalized


@pytest.mark.parametrize(
    ("text", "unit", "complaint"),
    [
        ("normalized,5,5", "pair", "elo0 5, elo1 5: expected elo0 below elo1"),
        ("normalized,5,0", "pair", "elo0 5, elo1 0: expected elo0 below elo1"),
        ("normalized,-1500,-500", "pair", "elo0 -1500: expected -200 to 200 (normalized)"),
        ("normalized,0,200.5", "pair", "elo1 200.5: expected -200 to 200 (normalized)"),
        ("logistic,0,1201", "pair", "elo1 1201: expected -1200 to 1200 (logistic)"),
        ("normalized,0,5,0,0.05", "pair", "alpha 0: expected more than 0 and less than 1"),
        ("normalized,0,5,0.05,1", "pair", "beta 1: expected more than 0 and less than 1"),
        ("normalized,0,5,0.5,0.5", "pair", "alpha 0.5, beta 0.5: expected a sum below 1"),
        ("normalised,0,5", "pair", "model 'normalised': expected one of"),
        ("normalised,0,5", "pair", "(did you mean normalized?)"),
        ("bayesian-fastchess,0,5", "pair", "knows no pairs"),
        ("normalized,0,5", "games", "unit 'games': expected one of pair, game, match"),
        ("normalized,0", "pair", "expected MODEL,ELO0,ELO1 or"),
        ("normalized,0,5,0.05", "pair", "expected MODEL,ELO0,ELO1 or"),
        ("normalized,zero,5", "pair", "'zero': expected a number"),
        ("normalized,nan,5", "pair", "'nan': expected a number"),
        ("normalized,0,inf", "pair", "'inf': expected a number"),
    ],
)
def test_refused_tests_say_why(text: str, unit: Unit, complaint: str) -> None:
    with pytest.raises(ValueError) as refused:
        parse(text, unit)
    assert complaint in str(refused.value)


def test_what_is_not_given_has_defaults() -> None:
    assert parse("normalized,0,10", "pair") == Sprt()
    assert parse(" logistic, -3 ,1,0.01,0.02", "game") == Sprt(-3, 1, 0.01, 0.02, "logistic", "game")
    assert Sprt(-200, 200).bounds == pytest.approx((-2.9444, 2.9444), abs=1e-4)


def test_models_and_units() -> None:
    pairs, games = (13, 37, 50, 25, 3), (96, 111, 136)
    assert Sprt(0, 4).llr(pairs) == llr_normalized(pairs, 0, 4)
    assert Sprt(0, 4, model="logistic").llr(pairs) == llr_logistic(pairs, 0, 4)
    for unit in ("game", "match"):
        assert Sprt(0, 4, unit=unit).llr(games) == llr_normalized(games, 0, 4)
    with pytest.raises(ValueError, match="expected 5 of a pair"):
        Sprt().llr(games)
    with pytest.raises(ValueError, match="expected 3 of a game"):
        Sprt(unit="game").llr(pairs)


def test_expected_length_is_that_of_the_unit() -> None:
    assert Sprt(0, 10).expected == pytest.approx((3198.8, 3198.8, 5232.7), abs=0.1)
    assert Sprt(0, 10, unit="game").expected == pytest.approx((6397.7, 6397.7, 10465.3), abs=0.1)
    assert Sprt(model="logistic").expected is None


@pytest.mark.parametrize(
    ("elo0", "elo1", "ratio", "sentence"),
    [
        (0, 10, 3.0, "H1 accepted: mine is stronger than simple by the test [0, 10] after 1,204 pairs"),
        (0, 10, -3.0, "H0 accepted: mine is not stronger than simple by the test [0, 10] after 1,204 pairs"),
        (-5, 0, 3.0, "H1 accepted: mine is not weaker than simple by the test [-5, 0] after 1,204 pairs"),
        (-5, 0, -3.0, "H0 accepted: mine is weaker than simple by the test [-5, 0] after 1,204 pairs"),
        (
            0, 2.5, 1.25,
            "inconclusive: LLR 1.25 within [-2.94, 2.94] of the test [0, 2.5] after 1,204 pairs",
        ),
        (
            0, 2.5, None,
            "inconclusive: LLR undefined within [-2.94, 2.94] of the test [0, 2.5] after 1,204 pairs",
        ),
    ],
)  # fmt: skip
def test_the_verdict_in_words(elo0: float, elo1: float, ratio: float | None, sentence: str) -> None:
    assert Sprt(elo0, elo1).sentence(ratio, "mine", "simple", "1,204 pairs") == sentence


def test_a_bound_that_is_met_accepts() -> None:
    test = Sprt(alpha=0.05, beta=0.2)
    lower, upper = test.bounds
    assert (test.accepts(lower), test.accepts(upper)) == ("H0", "H1")
    assert test.accepts(math.nextafter(lower, 0)) is test.accepts(math.nextafter(upper, 0)) is None
    assert test.share(upper / 2) == ("H1", 0.5)
    assert test.share(lower / 4) == ("H0", 0.25)


def drawn(seed: int, number: int) -> list[int]:
    """Buckets of pairs in which the first engine is somewhat better."""
    return random.Random(seed).choices(range(5), [1, 2, 4, 5, 3], k=number)


def prefix_verdict(test: Sprt, buckets: list[int]) -> tuple[int, str] | None:
    """The definition: the first prefix whose ratio is beyond a bound."""
    for length in range(1, len(buckets) + 1):
        verdict = test.accepts(test.llr([buckets[:length].count(index) for index in range(5)]))
        if verdict:
            return length, verdict
    return None


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_arrival_makes_no_difference(seed: int) -> None:
    test = Sprt(0, 60)
    buckets = drawn(seed, 150)
    expected = prefix_verdict(test, buckets)
    assert expected is not None
    length, verdict = expected
    assert 5 < length < 150
    for order in (
        lambda pair: pair,
        lambda pair: -pair,
        lambda pair: random.Random(pair * 7 + seed).random(),
    ):
        walk = Walk(test)
        for pair in sorted(range(1, 151), key=order):
            walk.add(pair, (buckets[pair - 1],))
            walk.add(pair, (buckets[pair - 1],))
        assert (walk.deciding, walk.verdict, walk.pairs) == (length, verdict, length)
        assert walk.counts == [buckets[:length].count(index) for index in range(5)]
        assert walk.llr == test.llr(walk.counts)
        assert (walk.surplus, walk.waiting) == (150 - length, 0)
        claim = {"H1": "stronger than", "H0": "not stronger than"}[verdict]
        assert walk.conclusion("A", "B") == (
            f"{verdict} accepted: A is {claim} B by the test [0, 60] after {length} pairs"
        )


def test_short_games_do_not_vote_early() -> None:
    """However clear the later pairs are, the first one is waited for."""
    walk = Walk(Sprt(0, 100))
    for pair in range(2, 200):
        walk.add(pair, (4,))
    assert (walk.verdict, walk.llr, walk.pairs, walk.waiting, walk.surplus) == (None, 0.0, 0, 198, 0)
    assert walk.conclusion("A", "B").startswith("inconclusive: LLR 0.00 within [-2.94, 2.94]")
    walk.add(1, (0,))
    assert walk.verdict == "H1"
    assert walk.deciding is not None
    assert walk.surplus == 199 - walk.deciding


def test_void_and_repeated_pairs_are_passed_over() -> None:
    walk = Walk(Sprt(0, 100))
    walk.add(1, (3,), key="x")
    walk.add(4, (2,), key="y")
    walk.add(3, (3,), key="x")
    assert (walk.pairs, walk.waiting) == (1, 2)
    walk.add(2, ())
    assert (walk.pairs, walk.waiting, walk.counts, walk.duplicates) == (2, 0, [0, 0, 1, 1, 0], {3: 1})
    walk.add(5, (2,), key=None)
    walk.add(6, (2,), key=None)
    assert (walk.pairs, walk.counts) == (4, [0, 0, 3, 1, 0])


def test_of_two_equal_pairs_the_one_of_the_lower_number_counts() -> None:
    """Also where the other arrived first."""
    walk = Walk(Sprt(0, 100))
    for pair in (3, 2, 1):
        walk.add(pair, (4,), key="same")
    assert (walk.pairs, walk.duplicates) == (1, {2: 1, 3: 1})


def test_games_are_counted_two_by_two() -> None:
    walk = Walk(Sprt(0, 100, unit="game"))
    walk.add(1, (2, 0))
    walk.add(2, (2, 1))
    assert (walk.counts, walk.pairs) == ([1, 1, 2], 2)


@pytest.mark.parametrize("classes", [(5,), (-1,)])
def test_a_class_there_is_not_is_refused(classes: tuple[int, ...]) -> None:
    walk = Walk(Sprt())
    with pytest.raises(ValueError, match="expected 0 to 4"):
        walk.add(1, classes)
    assert (walk.pairs, walk.waiting) == (0, 0)


# Siegmund's correction


def test_the_overshoot_is_that_of_the_ladder_heights() -> None:
    """Constant steps: half a step. Steps of a normal law without drift: 0.5826 deviations, a constant of Siegmund's."""
    lattice = Overshoot()
    assert lattice.mean == 0.0
    for place in (0.25, 0.0, 0.25, 0.5, -3.0, 0.75):
        lattice.add(place)
    assert lattice.mean == pytest.approx(0.125)
    dice, normal, place = random.Random(7), Overshoot(), 0.0
    for _ in range(200):
        # A walk that returns to every height takes for ever: each ladder height is a walk of its own.
        place = 0.0
        while place <= 0.0:
            place += dice.gauss(0.05, 1.0)
        normal.add(normal._reached + place)
    assert normal.mean == pytest.approx(0.5826, abs=0.08)


def error_rate(monkeypatch: pytest.MonkeyPatch, siegmund: bool) -> tuple[float, float]:
    """How often H1 is accepted although H0 holds, and the mean number of pairs, of tests whose ratio is a walk of
    normal steps: the case in which the ratio is exactly what Wald assumes, but for its overshoot."""
    dice, path = random.Random(3), [0.0]
    distance = 0.8
    monkeypatch.setitem(sprt.MODELS, "logistic", lambda counts, _0, _1: path[sum(counts)])
    test = Sprt(alpha=0.05, beta=0.05, model="logistic", unit="game", siegmund=siegmund)
    wrong = pairs = 0
    for _ in range(RUNS):
        walk = Walk(test)
        del path[1:]
        while walk.verdict is None:
            path.append(path[-1] + dice.gauss(-(distance**2) / 2, distance))
            walk.add(len(path) - 1, (1,))
        wrong += walk.verdict == "H1"
        pairs += walk.pairs
    return wrong / RUNS, pairs / RUNS


RUNS = 6000


def test_with_the_correction_errors_are_as_frequent_as_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, long = error_rate(monkeypatch, siegmund=False)
    corrected, short = error_rate(monkeypatch, siegmund=True)
    # 0.05 e^(-0.5826 · 0.8) without it; three standard errors are 0.008.
    assert plain == pytest.approx(0.0314, abs=0.007)
    assert corrected == pytest.approx(0.05, abs=0.009)
    assert short < 0.95 * long


def test_corrected_bounds_are_those_of_words_and_shares() -> None:
    plain, walk = Walk(Sprt(0, 100)), Walk(Sprt(0, 100, siegmund=True))
    for number in range(1, 5):
        for one in (plain, walk):
            one.add(number, (4,))
    assert plain.bounds == plain.test.bounds
    lower, upper = walk.bounds
    assert lower == walk.test.bounds[0]
    assert 0.0 < upper < walk.test.bounds[1]
    assert f"[{lower:.2f}, {upper:.2f}]" in walk.conclusion("a", "b")
    assert walk.llr is not None
    assert walk.test.share(walk.llr, walk.bounds)[1] > walk.test.share(walk.llr)[1]
