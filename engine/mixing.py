"""Numbers that are alike made unlike, for keys and seeds: splitmix64 (G. Steele, D. Lea, C. Flood, "Fast splittable
pseudorandom number generators", 2014)."""

from __future__ import annotations

from typing import Any

import numpy as np

GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio, the generator's step: its multiples by small numbers are alike in bits by chance
only."""
MULTIPLIER_1, MULTIPLIER_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
"""The multipliers of its finaliser."""


def mixed(z: Any) -> Any:
    """The finaliser of splitmix64, for an array of uint64; `compile.rng.mixed` is the same as a kernel."""
    z = (z ^ (z >> np.uint64(30))) * MULTIPLIER_1
    z = (z ^ (z >> np.uint64(27))) * MULTIPLIER_2
    return z ^ (z >> np.uint64(31))
