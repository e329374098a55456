"""How much of what is made up or sampled tests look at."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

THOROUGH = int(os.environ.get("HNEFI_THOROUGH", "1"))
"""`HNEFI_THOROUGH=20` looks at twenty times as much."""


def sampled(everything: Sequence[T], step: int) -> Sequence[T]:
    """Every `step`-th, or all where tests are to be thorough."""
    return everything if THOROUGH > 1 else everything[::step]
