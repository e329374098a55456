"""Evaluators: what a position is worth. One file per game with its parameters' record, kernels and names of terms."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..game import AnyVariant
from ..position import Position

NAMES = ("default",)


def parameters(name: str, variant: AnyVariant) -> Any:
    """The parameters of the evaluator `name` for a variant, in a one-element recarray; ValueError if unknown."""
    return _module(name, variant).parameters(variant)


def terms(name: str, position: Position) -> list[tuple[str, int]]:
    """What the evaluator `name` sees in a position, in centipawns for side `a`; the last is `total`."""
    module = _module(name, position.variant)
    params = module.parameters(position.variant)
    total = int(module.terms(params[0], position.new_record()[0]))
    values = params[0]["terms"]
    return [*((term, int(values[i])) for i, term in enumerate(module.TERMS)), ("total", total)]


def _module(name: str, variant: AnyVariant) -> Any:
    if name != "default":
        raise ValueError(f"evaluator {name!r}: expected one of {', '.join(NAMES)}")
    return import_module(f".{variant.game}", __package__)
