"""Every position is worth the same and every move deserves the same: PUCT without knowledge, which only sees ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import catalogue

NUMBER = 14
SOURCE = "the start of D. Silver et al., 2017, before anything is learnt"
GAMES = tuple(catalogue.GAMES)
SCALE = 1.0
OUTPUT = "value"
OPTIONS: Mapping[str, int] = {}
RECORD = "policy"


def shapes(variant: Any, options: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """No arrays."""
    return {}


def layout(variant: Any, options: Mapping[str, int]) -> tuple[int, ...]:
    """Nothing to know."""
    return ()


def naive(variant: Any, options: Mapping[str, int], arrays: Mapping[str, Any], position: Any) -> float:
    """Every position is worth nothing."""
    return 0.0


def naive_policy(variant: Any, options: Mapping[str, int], arrays: Mapping[str, Any], position: Any) -> Any:
    """Every move deserves the same: zeros before the softmax."""
    import numpy as np

    from ...games import policy_moves

    return np.zeros(len(policy_moves(variant)))
