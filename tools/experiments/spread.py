"""Spread over seeds: how sure a mean is, and what one more run of the same kind might show."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

SAMPLES = 4000


def bootstrap(values: Sequence[float], coverage: float = 0.95) -> tuple[float, float]:
    """The interval of the mean when the seeds themselves are drawn again, by percentiles."""
    import numpy as np

    random = np.random.default_rng(2007)
    means = random.choice(np.asarray(values, float), (SAMPLES, len(values))).mean(axis=1)
    low, high = np.quantile(means, [(1 - coverage) / 2, (1 + coverage) / 2])
    return float(low), float(high)


def difference(ours: Sequence[float], theirs: Sequence[float], coverage: float = 0.95) -> tuple[float, float]:
    """The interval of the difference of two means, the seeds of both drawn again."""
    import numpy as np

    random = np.random.default_rng(2007)
    one, other = (
        random.choice(np.asarray(values, float), (SAMPLES, len(values))).mean(axis=1)
        for values in (ours, theirs)
    )
    low, high = np.quantile(one - other, [(1 - coverage) / 2, (1 + coverage) / 2])
    return float(low), float(high)


def foreseen(shares: Sequence[float], n: int, coverage: float = 0.95) -> tuple[int, int]:
    """Between which counts out of `n` a single run would come: one of our seeds by chance, then n games by chance.

    `shares` are those of the seeds. The narrowest pair of counts with at most (1 - coverage) / 2 outside on each side
    of the mixture of their binomial laws.
    """
    law = [sum(_binomial(n, k, share) for share in shares) / len(shares) for k in range(n + 1)]
    tail = (1 - coverage) / 2
    low, below = 0, law[0]
    while below <= tail:
        low += 1
        below += law[low]
    high, above = n, law[n]
    while above <= tail:
        high -= 1
        above += law[high]
    return low, high


def _binomial(n: int, k: int, p: float) -> float:
    return float(comb(n, k) * p**k * (1 - p) ** (n - k))
