"""Do two lists put things in the same order? Rank correlations with ties, and their uncertainty.

C. Spearman, "The proof and measurement of association between two things" (1904); M. G. Kendall, "The treatment of
ties in ranking problems" (1945): tau-b. Weights: as for Pearson's correlation, of weighted ranks.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

RESAMPLES = 4000
FEWEST = 5
"""Rows needed for an interval: resampling four shows little but the four themselves."""


def ranks(values: Sequence[float]) -> list[float]:
    """The rank of each value from 1; equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found = [0.0] * len(values)
    first = 0
    while first < len(order):
        last = first
        while last + 1 < len(order) and values[order[last + 1]] == values[order[first]]:
            last += 1
        for place in order[first : last + 1]:
            found[place] = (first + last) / 2 + 1
        first = last + 1
    return found


def spearman(one: Sequence[float], other: Sequence[float]) -> float | None:
    """The correlation of the ranks; None if all values of a list are equal."""
    a, b = ranks(one), ranks(other)
    middle = (len(a) + 1) / 2
    over = sum((x - middle) * (y - middle) for x, y in zip(a, b, strict=True))
    under = math.sqrt(sum((x - middle) ** 2 for x in a) * sum((y - middle) ** 2 for y in b))
    return over / under if under else None


def weighted_spearman(one: Sequence[float], other: Sequence[float], weights: Sequence[float]) -> float | None:
    """The correlation of the ranks with weighted rows: a row's rank is the weight below it plus half of the weight at
    the same value. Equal weights give `spearman`. None if all values of a list are equal."""
    a, b = (_weighted_ranks(values, weights) for values in (one, other))
    total = sum(weights)
    if not total:
        return None
    a, b = (_centred(values, weights) for values in (a, b))
    over, *under = (
        sum(w * x * y for w, x, y in zip(weights, left, right, strict=True))
        for left, right in ((a, b), (a, a), (b, b))
    )
    spread = math.sqrt(under[0] * under[1])
    return over / spread if spread > TINY * total**3 else None


TINY = 1e-12
"""A spread of ranks, relative to the largest one, that is only rounding error."""


def _weighted_ranks(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    both = list(zip(values, weights, strict=True))
    return [sum(w * ((x < value) + (x == value) / 2) for x, w in both) for value in values]


def _centred(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    middle = sum(w * x for w, x in zip(weights, values, strict=True)) / sum(weights)
    return [x - middle for x in values]


def perfect(
    values: Sequence[float], errors: Sequence[float], weights: Sequence[float], draws: int = RESAMPLES
) -> tuple[float, float, float] | None:
    """The weighted correlation that somebody who knows the truth would get: the mean of `weighted_spearman` between the
    values and values with random errors of their standard errors, and its 95 % interval. None if all values are equal.

    The values are taken for the truth. They spread more than the truth, so the result is rather too high.
    """
    draw = random.Random(2007)
    found = []
    for _ in range(draws):
        missed = [draw.gauss(value, error) for value, error in zip(values, errors, strict=True)]
        one = weighted_spearman(values, missed, weights)
        if one is None:
            return None
        found.append(one)
    found.sort()
    last = len(found) - 1
    return sum(found) / len(found), found[round(0.025 * last)], found[round(0.975 * last)]


def kendall(one: Sequence[float], other: Sequence[float]) -> float | None:
    """tau-b: pairs in the same order minus pairs in opposite order, without ties; None if one list is all equal."""
    agree = tied_one = tied_other = pairs = 0
    for i in range(len(one)):
        for j in range(i):
            signs = _sign(one[i] - one[j]), _sign(other[i] - other[j])
            agree += signs[0] * signs[1]
            tied_one += signs[0] == 0
            tied_other += signs[1] == 0
            pairs += 1
    under = math.sqrt((pairs - tied_one) * (pairs - tied_other))
    return agree / under if under else None


def _sign(x: float) -> int:
    return (x > 0) - (x < 0)


def bootstrap(
    measure: Callable[..., float | None], *columns: Sequence[float], resamples: int = RESAMPLES
) -> tuple[float, float] | None:
    """The 95 % percentile interval of a measure of some columns from resampling rows; None for fewer than `FEWEST`
    rows.

    Samples in which all values of a list are equal say nothing and are left out.
    """
    n = len(columns[0])
    if n < FEWEST:
        return None
    draw = random.Random(2007)
    found = []
    for _ in range(resamples):
        rows = [draw.randrange(n) for _ in range(n)]
        value = measure(*([column[row] for row in rows] for column in columns))
        if value is not None:
            found.append(value)
    if not found:
        return None
    found.sort()
    return found[round(0.025 * (len(found) - 1))], found[round(0.975 * (len(found) - 1))]
