"""Uniform random integers from the stream in a state's record (kernel)."""

from __future__ import annotations

import numpy as np

from .. import mixing
from .jit import inline

mixed = inline(mixing.mixed)


@inline
def randbelow(s, n):
    """A uniform random integer in [0, n), n < 2**31: xorshift64* on `s.random`, the high half scaled."""
    x = s.random
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    s.random = x
    return np.int64(((x * np.uint64(0x2545F4914F6CDD1D)) >> np.uint64(33)) * np.uint64(n) >> np.uint64(31))
