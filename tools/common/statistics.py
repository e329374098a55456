"""Strength from counts: Elo with its error, likelihood of superiority, log-likelihood ratios of sequential tests.

Pure functions of counts, standard library only. `counts` are either three numbers, losses, draws and wins of games (or
of matches), or five, the pairs with 0, ½, 1, 1½ and 2 points: LL, LD, WL+DD, WD, WW. Points are scaled to scores from
0 to 1. An undefined number is None, never nan.

Sources: M. Van den Bergh, "Comments on normalized Elo" and "Comparing approximations for the generalized log likelihood
ratio of a multinomial"; X. Li, J. Liu, Z. Ying, "Generalized sequential probability ratio test for separate families of
hypotheses"; A. Wald, "Sequential Analysis" (bounds, expected length); E. B. Wilson, "Probable inference, the law of
succession, and statistical inference" (interval of a proportion).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import mul

from hnefi.engine.wording import shorten

ELO = 800 / math.log(10)
"""Normalized Elo per standard deviation of a game's score (347.4)."""
Z = 1.959964
"""Half the width of a 95 % interval in standard errors."""
EXTREME = 0.001
"""Intervals that extend beyond (0, 1) end at this score, or at 1 minus it."""
ABSENT = 1e-3
"""The value that replaces a count of 0 before a distribution is fitted."""
MOST = 10**9
"""The largest count: with about a thousand times more, rounding would hide a class of ABSENT."""

SCORES = {3: (0.0, 0.5, 1.0), 5: (0.0, 0.25, 0.5, 0.75, 1.0)}
"""The score that each count stands for."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The difference in strength, estimated from `n` games, matches or pairs.

    After only wins or only losses `elo` is inf or -inf without an `elo_error`, and one of `elo_low` and `elo_high` is a
    one-sided 95 % bound. Otherwise these two are the 95 % interval and `elo_error` is half its width. Fewer than two
    results give no Elo and no likelihood of superiority; scores without any spread give no normalized Elo.
    """

    n: int
    score: float | None = None
    score_error: float | None = None
    elo: float | None = None
    elo_error: float | None = None
    elo_low: float | None = None
    elo_high: float | None = None
    nelo: float | None = None
    nelo_error: float | None = None
    los: float | None = None


def elo(score: float) -> float:
    """The Elo difference at which `score` (0 to 1) is expected; -inf at 0, inf at 1."""
    if score <= 0.0:
        return -math.inf
    if score >= 1.0:
        return math.inf
    return 400.0 * math.log10(score / (1.0 - score))


def expected_score(elo: float) -> float:
    """The score expected at an Elo difference: the inverse of `elo`."""
    # Unlike a power of ten, tanh cannot overflow.
    return 0.5 + 0.5 * math.tanh(elo / ELO)


def pentanomial_factor(classes: int) -> float:
    """√2 for pairs (five classes), else 1: a pair's score has the standard deviation of a game's divided by this."""
    return math.sqrt(2.0) if classes == 5 else 1.0


def estimate(counts: Sequence[int]) -> Estimate:
    """Score, Elo, normalized Elo and likelihood of superiority (LOS); ValueError as `check_counts`."""
    check_counts(counts)
    n = sum(counts)
    if n == 0:
        return Estimate(0)
    mean, variance = _moments([count / n for count in counts])
    if n == 1:
        return Estimate(1, score=mean)
    se = math.sqrt(variance / n)
    spread = variance > 0.0
    factor = pentanomial_factor(len(counts))
    # n equal extreme results have probability p^n: this is the smallest p for which that is at least 5 %.
    bound = 0.05 ** (1.0 / n)
    if mean in (0.0, 1.0):
        low, high = (bound, 1.0) if mean else (0.0, 1.0 - bound)
    else:
        low = max(mean - Z * se, min(EXTREME, mean))
        high = min(mean + Z * se, max(1.0 - EXTREME, mean))
    return Estimate(
        n,
        score=mean,
        score_error=Z * se,
        elo=elo(mean),
        elo_error=(elo(high) - elo(low)) / 2.0 if 0.0 < mean < 1.0 else None,
        elo_low=elo(low),
        elo_high=elo(high),
        nelo=ELO * (mean - 0.5) / (factor * math.sqrt(variance)) if spread else None,
        nelo_error=ELO * Z * se / (factor * math.sqrt(variance)) if spread else None,
        los=_normal_cdf((mean - 0.5) / se) if spread else (mean > 0.5) + 0.5 * (mean == 0.5),
    )


def check_counts(counts: Sequence[float]) -> None:
    """ValueError unless `counts` are three or five numbers from 0 to MOST."""
    if len(counts) not in SCORES or not all(0 <= count <= MOST for count in counts):
        raise ValueError(f"counts {shorten(list(counts))}: expected three or five numbers from 0 to {MOST:,}")


def wilson(successes: float, n: float, z: float = Z) -> tuple[float, float] | None:
    """Wilson's interval of a proportion, `successes` (half ones allowed) out of `n`, which may be an effective number;
    None for n = 0."""
    if n == 0:
        return None
    p = successes / n
    centre = p + z * z / (2 * n)
    width = z * math.sqrt(p * (1.0 - p) / n + z * z / (4.0 * n * n))
    scale = 1.0 + z * z / n
    return max(0.0, (centre - width) / scale), min(1.0, (centre + width) / scale)


def bounds(alpha: float, beta: float) -> tuple[float, float]:
    """Wald's bounds of the log-likelihood ratio: below the first H0 is accepted, above the second H1."""
    return math.log(beta / (1.0 - alpha)), math.log((1.0 - beta) / alpha)


def expected_length(
    nelo0: float, nelo1: float, alpha: float, beta: float, *, pairs: bool = True
) -> tuple[float, float, float]:
    """The expected number of pairs (or games) if H0 is true, if H1 is true, and midway between them (Wald)."""
    lower, upper = bounds(alpha, beta)
    step = (pentanomial_factor(5 if pairs else 3) * (nelo1 - nelo0) / ELO) ** 2
    return (
        -2.0 * ((1.0 - alpha) * lower + alpha * upper) / step,
        2.0 * (beta * lower + (1.0 - beta) * upper) / step,
        -lower * upper / step,
    )


def llr_logistic(counts: Sequence[float], elo0: float, elo1: float) -> float | None:
    """The generalized log-likelihood ratio of "the expected score is that of elo1" against that of elo0."""

    def law(proportions: Sequence[float], elo: float) -> Sequence[float] | None:
        score = expected_score(elo)
        return _tilt(proportions, [a - score for a in SCORES[len(proportions)]])

    return _llr(counts, elo0, elo1, law)


def llr_normalized(counts: Sequence[float], nelo0: float, nelo1: float) -> float | None:
    """The same for normalized Elo: hypotheses about (mean - ½) / deviation. None where the law does not exist."""
    return _llr(counts, nelo0, nelo1, _normalized_law)


def draw_elo(counts: Sequence[float]) -> float | None:
    """BayesElo's draw parameter, from the proportions of three counts; None without wins or without losses."""
    losses, draws, wins = counts
    n = losses + draws + wins
    if not losses or not wins:
        return None
    return 200.0 * math.log10((n - losses) / losses * ((n - wins) / wins))


def llr_bayesian_fastchess(counts: Sequence[float], elo0: float, elo1: float) -> float | None:
    """Hypotheses in BayesElo turned into scores, then `llr_logistic`: what fastchess calls bayesian. Three counts."""
    if sum(counts) == 0:
        return 0.0
    drawelo = draw_elo(counts)
    if drawelo is None:
        return None
    scores = [(1.0 + win - loss) / 2.0 for loss, _, win in (_bayesian_law(e, drawelo) for e in (elo0, elo1))]
    return llr_logistic(counts, elo(scores[0]), elo(scores[1]))


def llr_bayesian_openbench(counts: Sequence[float], elo0: float, elo1: float) -> float | None:
    """The ratio of BayesElo's two distributions themselves, as OpenBench once computed it. Three counts."""
    if sum(counts) == 0:
        return 0.0
    drawelo = draw_elo(counts)
    return None if drawelo is None else _bayesian_llr(counts, elo0, elo1, drawelo)


def llr_bayesian_cutechess(counts: Sequence[float], elo0: float, elo1: float) -> float | None:
    """Like `llr_bayesian_openbench`, but with ½ added to every count and hypotheses in Elo: cutechess. Three counts."""
    if sum(counts) == 0:
        return 0.0
    more = [count + 0.5 for count in counts]
    drawelo = draw_elo(more)
    if drawelo is None:
        return None
    x = math.pow(10.0, -drawelo / 400.0)
    scale = 4.0 * x / (1.0 + x) ** 2
    return _bayesian_llr(more, elo0 / scale, elo1 / scale, drawelo)


def _bayesian_law(elo: float, drawelo: float) -> tuple[float, float, float]:
    """BayesElo's probabilities of loss, draw and win."""
    win, loss = expected_score(elo - drawelo), expected_score(-elo - drawelo)
    return loss, 1.0 - win - loss, win


def _bayesian_llr(counts: Sequence[float], elo0: float, elo1: float, drawelo: float) -> float | None:
    law0, law1 = _bayesian_law(elo0, drawelo), _bayesian_law(elo1, drawelo)
    seen = [(count, p0, p1) for count, p0, p1 in zip(counts, law0, law1, strict=True) if count]
    if any(p0 <= 0.0 or p1 <= 0.0 for _, p0, p1 in seen):
        return None
    return sum(count * math.log(p1 / p0) for count, p0, p1 in seen)


def _llr(
    counts: Sequence[float],
    elo0: float,
    elo1: float,
    law: Callable[[Sequence[float], float], Sequence[float] | None],
) -> float | None:
    """N Σ p (ln q1 - ln q0) with q_h = p / (1 + tilt_h); counts of 0 are replaced first."""
    check_counts(counts)
    if not any(counts):
        return 0.0
    present = [count or ABSENT for count in counts]
    n = sum(present)
    proportions = [count / n for count in present]
    tilt0, tilt1 = law(proportions, elo0), law(proportions, elo1)
    if tilt0 is None or tilt1 is None:
        return None
    # log1p of the small tilts instead of logarithms of q avoids cancellation, so long tests keep their last digits.
    return sum(
        count * (math.log1p(t0) - math.log1p(t1)) for count, t0, t1 in zip(present, tilt0, tilt1, strict=True)
    )


def _normalized_law(proportions: Sequence[float], nelo: float) -> Sequence[float] | None:
    """The most likely distribution with the given normalized Elo, as tilts; by iteration from the uniform one."""
    scores = SCORES[len(proportions)]
    t = pentanomial_factor(len(scores)) * nelo / ELO
    q = [1.0 / len(scores)] * len(scores)
    tilt: Sequence[float] | None = None
    for _ in range(10):
        mean, variance = _moments(q)
        deviation = math.sqrt(variance)
        if deviation == 0.0:
            return None
        half = t * deviation / 2.0
        tilt = _tilt(
            proportions, [a - 0.5 - half * (1.0 + (a - mean) * (a - mean) / variance) for a in scores]
        )
        if tilt is None:
            return None
        before, q = q, [p / (1.0 + u) for p, u in zip(proportions, tilt, strict=True)]
        if t == 0.0 or all(abs(new - old) < 1e-9 for new, old in zip(q, before, strict=True)):
            break
    return tilt


def _tilt(proportions: Sequence[float], phi: Sequence[float]) -> Sequence[float] | None:
    """θφ with Σ pφ / (1 + θφ) = 0: of the distributions in which φ has mean 0, p / (1 + θφ) is the most likely one.

    None if φ does not change its sign. The sum falls monotonically in θ, from inf to -inf between the two poles.
    """
    high, low = max(phi), min(phi)
    if not low < 0.0 < high:
        return None
    first, last = -1.0 / high, -1.0 / low
    left, right, theta = first, last, 0.0
    terms = list(zip(proportions, phi, strict=True))
    for _ in range(200):
        value = slope = 0.0
        for p, f in terms:
            r = f / (1.0 + theta * f)
            value += p * r
            slope += p * r * r
        if value > 0.0:
            left = theta
        else:
            right = theta
        # A Newton step, or bisection if that would leave the bracket. Errors of θ affect the ratio only squared.
        newer = theta + value / slope
        if not left < newer < right:
            newer = (left + right) / 2.0
        if abs(newer - theta) <= 1e-11 * min(newer - first, last - newer):
            theta = newer
            break
        theta = newer
    return [theta * f for f in phi]


def _moments(proportions: Sequence[float]) -> tuple[float, float]:
    """Mean and variance of the score."""
    scores = SCORES[len(proportions)]
    mean = math.fsum(map(mul, proportions, scores))
    return mean, math.fsum([p * (score - mean) ** 2 for p, score in zip(proportions, scores, strict=True)])


def _normal_cdf(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))
