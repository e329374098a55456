"""Do two lists put things in the same order? Rank correlations with ties, and how sure they are.

C. Spearman, "The proof and measurement of association between two things" (1904); M. G. Kendall, "The treatment of
ties in ranking problems" (1945): tau-b.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

RESAMPLES = 4000
FEWEST = 5
"""Rows of which an interval is given: drawing four again shows little but themselves."""
Correlation = Callable[[Sequence[float], Sequence[float]], float | None]


def ranks(values: Sequence[float]) -> list[float]:
    """The place of each value from 1 on; equal ones share the mean of their places."""
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
    """The correlation of the ranks; None where one list has no order."""
    a, b = ranks(one), ranks(other)
    middle = (len(a) + 1) / 2
    over = sum((x - middle) * (y - middle) for x, y in zip(a, b, strict=True))
    under = math.sqrt(sum((x - middle) ** 2 for x in a) * sum((y - middle) ** 2 for y in b))
    return over / under if under else None


def kendall(one: Sequence[float], other: Sequence[float]) -> float | None:
    """tau-b: pairs in the same order less pairs in opposite order, ties taken out; None where one list has no order."""
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
    measure: Correlation, one: Sequence[float], other: Sequence[float], resamples: int = RESAMPLES
) -> tuple[float, float] | None:
    """The 95 % interval by percentiles when rows are drawn again; None of fewer than `FEWEST` rows.

    Draws in which a list has no order say nothing and are left out.
    """
    n = len(one)
    if n < FEWEST:
        return None
    draw = random.Random(2007)
    found = []
    for _ in range(resamples):
        rows = [draw.randrange(n) for _ in range(n)]
        value = measure([one[row] for row in rows], [other[row] for row in rows])
        if value is not None:
            found.append(value)
    if not found:
        return None
    found.sort()
    return found[round(0.025 * (len(found) - 1))], found[round(0.975 * (len(found) - 1))]
