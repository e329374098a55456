"""The arena's statistics of counts: published and recomputed numbers, and the edges where a number does not exist."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hnefi.tools.common.statistics import (
    MOST,
    Z,
    bounds,
    draw_elo,
    elo,
    estimate,
    expected_length,
    expected_score,
    llr_bayesian_cutechess,
    llr_bayesian_fastchess,
    llr_bayesian_openbench,
    llr_logistic,
    llr_normalized,
    wilson,
)

Ratio = Callable[[tuple[int, ...], float, float], float | None]


def wdl(wins: int, draws: int, losses: int) -> tuple[int, ...]:
    return losses, draws, wins


# Counts, hypotheses, the ratio as others published it (None: nobody did), as recomputed, and the latter's tolerance.
RATIOS: list[tuple[Ratio, tuple[int, ...], tuple[float, float], float | None, float, float]] = [
    (llr_normalized, wdl(36433, 68692, 36027), (0, 2), 0.92, 0.9233, 1e-4),
    (llr_normalized, wdl(10871, 20431, 10650), (-1.75, 0.25), 2.30, 2.2975, 1e-4),
    (llr_normalized, wdl(4250, 0, 0), (0, 10), 120.56, 120.5483, 1e-4),
    (llr_logistic, wdl(21404, 40708, 21184), (0.5, 2.5), -1.57, -1.5719, 1e-4),
    (llr_logistic, wdl(57433, 106593, 57030), (0, 2), -2.59, -2.5930, 1e-4),
    (llr_bayesian_fastchess, wdl(68965, 128429, 68526), (0, 2), -1.26, -1.2622, 1e-4),
    (llr_bayesian_fastchess, wdl(21629, 41111, 21484), (0.5, 2.5), -1.13, -1.1306, 1e-4),
    (llr_bayesian_cutechess, wdl(1477, 2942, 1351), (0, 10), 2.52, 2.5236, 1e-4),
    (llr_bayesian_cutechess, wdl(555, 298, 555), (0, 10), -0.74, -0.7406, 1e-4),
    (llr_bayesian_cutechess, wdl(3, 1, 149), (0, 10), -4.69, -4.6900, 1e-4),
    (llr_bayesian_openbench, wdl(22976, 44137, 22569), (0.5, 2.5), 0.9757721682721865, 0.975772168272, 1e-12),
    (llr_normalized, (365, 16618, 36229, 16974, 390), (0, 2), 2.25, 2.2504, 1e-4),
    (llr_normalized, (127, 4883, 10712, 5150, 104), (-1.75, 0.25), 3.01, 3.0102, 1e-4),
    (llr_normalized, (0, 0, 0, 0, 5550), (0, 5), 111.82, 111.7976, 1e-4),
    (llr_logistic, (223, 9863, 21279, 10037, 246), (0.5, 2.5), -3.07, -3.0741, 1e-4),
    (llr_logistic, (871, 26175, 55983, 26678, 821), (0, 2), -4.98, -4.9787, 1e-4),
    # The last two with fifty decimal digits; what others published is off by the rounding of their sums.
    (llr_normalized, (39, 8843, 26675, 9240, 44), (0.5, 2.5), 2.9416752079894044, 2.94167520798707, 2e-13),
    (llr_logistic, (39, 8843, 26675, 9240, 44), (0.5, 2.5), 0.5555170687214862, 0.55551706872353, 2e-13),
    (llr_normalized, (13, 37, 50, 25, 3), (0, 4), -0.54912, -0.549125, 1e-6),
    (llr_logistic, (10789, 19328, 33806, 19402, 10543), (-3, 1), None, 2.131068, 1e-6),
    (llr_normalized, (0, 0, 0, 0, 10), (0, 5), 0.2014465, 0.2014465, 1e-7),
    (llr_normalized, (0, 0, 10, 0, 0), (0, 5), None, -0.0026994, 1e-7),
    (llr_normalized, (0, 0, 10, 0, 0), (0, 5), None, -0.0027133, 2e-5),
    (llr_normalized, (10, 0, 0, 0, 0), (0, 5), None, -0.2055891, 1e-7),
]


@pytest.mark.parametrize(("ratio", "counts", "hypotheses", "published", "computed", "tolerance"), RATIOS)
def test_log_likelihood_ratios(
    ratio: Ratio,
    counts: tuple[int, ...],
    hypotheses: tuple[float, float],
    published: float | None,
    computed: float,
    tolerance: float,
) -> None:
    found = ratio(counts, *hypotheses)
    assert found == pytest.approx(computed, abs=tolerance, rel=0)
    if published is not None:
        digits = len(f"{published!r}".partition(".")[2])
        assert found == pytest.approx(published, rel=0.01 if digits <= 2 else 1e-5 if digits < 10 else 1e-11)


@pytest.mark.parametrize(
    ("counts", "elo", "elo_error", "nelo", "nelo_error", "los", "score"),
    [
        (wdl(76, 123, 89), -15.6935, 30.458, -20.7564, 40.126, 15.53, 0.4774),
        (wdl(136, 111, 96), 40.7025, 30.4272, 49.7684, 36.7685, 99.60, 0.5583),
        (wdl(34, 0, 356), -407.988, 63.16, -508.435, 34.482, 0, 0.0872),
        ((34, 54, 63, 64, 75), 55.5798, 27.6534, 57.9356, 28.2754, 100.00, 0.5793),
        ((332, 433, 498, 333, 334), -8.6427, 10.3342, -9.1729, 10.9605, 5.05, 0.4876),
        ((7895, 8757, 5685, 568, 9999), -21.0435, 2.9453, -19.0128, 2.6545, 0.00, 0.4698),
        ((39, 8843, 26675, 9240, 44), 1.57676, 1.03031, None, None, 99.86, None),
        ((13, 37, 50, 25, 3), -43.6578, 29.427, -63.968, 42.560, 0.16, 0.4375),
    ],
)
def test_estimates(
    counts: tuple[int, ...],
    elo: float,
    elo_error: float,
    nelo: float | None,
    nelo_error: float | None,
    los: float,
    score: float | None,
) -> None:
    found = estimate(counts)

    def agrees(value: float | None, shown: float | None) -> bool:
        """To one in the last digit shown."""
        if shown is None:
            return True
        digits = len(repr(shown).partition(".")[2])
        return value is not None and abs(value - shown) <= 1.001 * 10**-digits

    assert agrees(found.elo, elo)
    assert agrees(found.elo_error, elo_error)
    assert agrees(found.nelo, nelo)
    assert agrees(found.nelo_error, nelo_error)
    assert found.los is not None
    assert 100 * found.los == pytest.approx(los, abs=0.0051)
    assert agrees(found.score, score)
    assert found.elo_low is not None
    assert found.elo_high is not None
    assert (found.elo_high - found.elo_low) / 2 == found.elo_error


def test_elo_and_score_are_inverse() -> None:
    assert elo(0.5) == 0.0
    assert elo(0.75) == pytest.approx(190.848501887865)
    assert (elo(0.0), elo(1.0)) == (-math.inf, math.inf)
    for difference in (-700.0, -3.5, 0.0, 20.0, 1200.0):
        assert elo(expected_score(difference)) == pytest.approx(difference, abs=1e-9)
    assert (expected_score(1e300), expected_score(-1e300)) == (1.0, 0.0)


def test_bounds() -> None:
    assert bounds(0.05, 0.05) == pytest.approx((-2.9444, 2.9444), abs=1e-4)
    assert bounds(0.01, 0.01) == pytest.approx((-4.5951, 4.5951), abs=1e-4)
    assert bounds(0.05, 0.2) == pytest.approx((math.log(0.2 / 0.95), math.log(0.8 / 0.05)))


@pytest.mark.parametrize(
    ("width", "either", "midway"),
    [
        (5, 12800, 20900),
        (10, 3200, 5200),
        (20, 800, 1300),
        (30, 355, 581),
        (50, 128, 209),
        (100, 32, 52),
    ],
)
def test_expected_pairs(width: float, either: float, midway: float) -> None:
    h0, h1, between = expected_length(-3, width - 3, 0.05, 0.05)
    assert (h0, h1, between) == pytest.approx((either, either, midway), rel=0.01)
    games = expected_length(-3, width - 3, 0.05, 0.05, pairs=False)
    assert games == pytest.approx((2 * h0, 2 * h1, 2 * between))


def test_expected_pairs_of_unequal_errors() -> None:
    """A test that may rarely accept H1 wrongly takes longer to accept it, and less long to accept H0."""
    h0, h1, _ = expected_length(0, 10, 0.01, 0.2)
    assert h0 < h1
    assert all(number > 0 for number in expected_length(0, 10, 0.6, 0.3))


@pytest.mark.parametrize("classes", [3, 5])
def test_without_results_nothing_is_known(classes: int) -> None:
    said = estimate([0] * classes)
    assert (said.n, said.score, said.elo, said.nelo, said.los) == (0, None, None, None, None)
    for ratio in (llr_logistic, llr_normalized):
        assert ratio([0] * classes, 0, 5) == 0.0
    for ratio in (llr_bayesian_fastchess, llr_bayesian_openbench, llr_bayesian_cutechess):
        assert ratio([0, 0, 0], 0, 5) == 0.0


def test_one_result_gives_no_elo() -> None:
    for counts, score in (((0, 0, 1), 1.0), ((0, 1, 0), 0.5), ((0, 1, 0, 0, 0), 0.25)):
        said = estimate(counts)
        assert (said.n, said.score, said.elo, said.elo_error, said.nelo, said.los) == (1, score, *[None] * 4)
        ratio = llr_normalized(counts, 0, 5)
        assert ratio is not None
        assert 0 < abs(ratio) < 0.1


@pytest.mark.parametrize("classes", [3, 5])
@pytest.mark.parametrize("count", [2, 10, 5000])
def test_nothing_but_wins_or_losses(classes: int, count: int) -> None:
    """At the one-sided bound, a run of nothing but wins has a chance of one in twenty."""
    won = estimate([*[0] * (classes - 1), count])
    assert (won.elo, won.elo_high, won.elo_error, won.los) == (math.inf, math.inf, None, 1.0)
    assert won.elo_low is not None
    assert expected_score(won.elo_low) ** count == pytest.approx(0.05)
    lost = estimate([count, *[0] * (classes - 1)])
    assert (lost.elo, lost.elo_low, lost.elo_error, lost.los) == (-math.inf, -math.inf, None, 0.0)
    assert lost.elo_high == pytest.approx(-won.elo_low)
    assert won.nelo is lost.nelo is None


def test_no_variance() -> None:
    said = estimate((0, 0, 50, 0, 0))
    assert (said.elo, said.elo_error, said.los) == (0.0, 0.0, 0.5)
    assert said.nelo is said.nelo_error is None
    for ratio in (llr_normalized((0, 0, 10, 0, 0), 0, 5), llr_logistic((0, 0, 10, 0, 0), 0, 5)):
        assert ratio is not None
        assert -0.2 < ratio < 0


def test_intervals_that_leave_the_scale_are_clamped() -> None:
    said = estimate((0, 1, 2))
    assert said.elo == pytest.approx(elo(5 / 6))
    assert said.elo_high == pytest.approx(elo(0.999))
    below = estimate((2, 1, 0))
    assert below.elo_low == pytest.approx(elo(0.001))
    # The clamp never cuts off the estimate itself.
    near = estimate((0, 1, 99999))
    assert near.elo_low < near.elo == near.elo_high < math.inf  # type: ignore[operator]


def test_a_law_that_does_not_exist_is_undefined_at_once() -> None:
    assert llr_normalized((10, 0, 0, 0, 0), -1500, -500) is None
    assert llr_normalized((10, 5, 3, 2, 1), -1e308, 1e308) is None
    assert llr_logistic((1, 2, 3), 0, 1e9) is None
    for ratio in (llr_bayesian_fastchess, llr_bayesian_openbench):
        assert ratio((0, 3, 4), 0, 5) is None
    assert draw_elo((0, 3, 4)) is None


@pytest.mark.parametrize("counts", [(1, 2), (1, 2, 3, 4), (1, -1, 2), (0, 0, MOST + 1), (), (0, 0, math.nan)])
def test_counts_that_are_none_are_refused(counts: tuple[int, ...]) -> None:
    for function in (estimate, lambda these: llr_normalized(these, 0, 5)):
        with pytest.raises(ValueError, match="expected three or five numbers from 0"):
            function(counts)


def test_wilson() -> None:
    assert wilson(0, 0) is None
    assert wilson(0, 10) == pytest.approx((0.0, 0.27753), abs=1e-5)
    assert wilson(10, 10) == pytest.approx((0.72247, 1.0), abs=1e-5)
    assert wilson(50, 100) == pytest.approx((0.40383, 0.59617), abs=1e-5)
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)


COUNTS = st.lists(
    st.one_of(st.integers(0, 3), st.integers(0, 10**4), st.integers(0, MOST)), min_size=5, max_size=5
)
SOME = st.lists(st.integers(1, 10**4), min_size=5, max_size=5)
HYPOTHESES = st.tuples(st.floats(-200, 200), st.floats(-200, 200)).filter(lambda both: both[0] < both[1])


@given(COUNTS, HYPOTHESES)
@settings(max_examples=200, deadline=None)
def test_every_number_is_a_number(counts: list[int], both: tuple[float, float]) -> None:
    for some in (counts, counts[1:4]):
        for ratio in (llr_normalized, llr_logistic):
            found = ratio(some, *both)
            assert found is not None
            assert math.isfinite(found)
        said = estimate(some)
        for value in (
            said.elo,
            said.elo_error,
            said.elo_low,
            said.elo_high,
            said.nelo,
            said.nelo_error,
            said.los,
        ):
            assert value is None or not math.isnan(value)
        if said.elo is not None:
            assert said.elo_low is not None
            assert said.elo_high is not None
            assert said.elo_low <= said.elo <= said.elo_high


@given(SOME, st.floats(-190, 190), st.floats(0.5, 10))
@settings(max_examples=100, deadline=None)
def test_the_two_sides_of_a_test_are_mirror_images(counts: list[int], elo0: float, width: float) -> None:
    """Seen from the other engine, with the hypotheses mirrored and exchanged, the ratio only changes its sign."""
    for ratio in (llr_normalized, llr_logistic):
        found, mirrored = ratio(counts, elo0, elo0 + width), ratio(counts[::-1], -elo0 - width, -elo0)
        assert found == pytest.approx(-mirrored, rel=1e-6, abs=1e-6)  # type: ignore[operator]
    said, other = estimate(counts), estimate(counts[::-1])
    assert said.elo == pytest.approx(-other.elo, abs=1e-9)  # type: ignore[operator]
    assert said.los == pytest.approx(1 - other.los, abs=1e-12)  # type: ignore[operator]


@given(SOME, st.floats(-50, 50), st.floats(0.5, 20), st.integers(0, 3))
@settings(max_examples=100, deadline=None)
def test_a_better_pair_never_lowers_the_ratio(
    counts: list[int], elo0: float, width: float, worse: int
) -> None:
    """Turning one pair into the next better one speaks for the higher of two logistic hypotheses."""
    better = list(counts)
    better[worse] -= 1
    better[worse + 1] += 1
    if better[worse]:
        before, after = llr_logistic(counts, elo0, elo0 + width), llr_logistic(better, elo0, elo0 + width)
        assert after > before  # type: ignore[operator]


@given(SOME, HYPOTHESES)
@settings(max_examples=100, deadline=None)
def test_the_ratio_grows_with_the_amount_of_evidence(counts: list[int], both: tuple[float, float]) -> None:
    for ratio in (llr_normalized, llr_logistic):
        once, thrice = ratio(counts, *both), ratio([3 * count for count in counts], *both)
        assert thrice == pytest.approx(3 * once, rel=1e-9, abs=1e-9)  # type: ignore[operator]


@given(SOME, st.floats(-200, 200))
@settings(max_examples=50, deadline=None)
def test_the_observed_strength_is_the_most_likely(counts: list[int], other: float) -> None:
    """No hypothesis beats the one that says what was seen."""
    seen = estimate(counts).elo
    assert seen is not None
    found = llr_logistic(counts, other, seen)
    assert found is not None
    assert found >= -1e-9


def test_normalized_elo_equals_elo_when_all_games_are_decided() -> None:
    """Near equality, and for the variance of independent games without draws."""
    said = estimate((490, 0, 510))
    assert said.nelo == pytest.approx(said.elo, rel=1e-3)
    paired = estimate((2401, 0, 4998, 0, 2601))
    assert paired.nelo == pytest.approx(paired.elo, rel=1e-3)
    assert paired.nelo_error == pytest.approx(Z * 800 / math.log(10) / math.sqrt(2 * 10000))
