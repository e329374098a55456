"""Evaluators: what a position is worth, one file each with its parameters' record, kernel and terms."""

from __future__ import annotations

from typing import Any

from ..variant import Variant
from . import default

NAMES = ("default",)


def parameters(name: str, variant: Variant) -> Any:
    """The parameters of the evaluator `name` for a variant, in a one-element recarray; ValueError if unknown."""
    if name != "default":
        raise ValueError(f"evaluator {name!r}: expected one of {', '.join(NAMES)}")
    return default.parameters(variant)
