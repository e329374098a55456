"""Which rules a record was played by: a shipped variant by its name, or rules that the record carries whole."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Final

from .. import games
from ..games.base_variant import AnyVariant, VariantError
from ..games.tafl.variant import Variant, is_name
from ..squares import MAX_SIZE
from .record import GameRecord, RuleSet
from .replay import as_played

_NAMES: Final = 256
Find = Callable[[str], AnyVariant]
"""From a variant's name to the variant; VariantError if there is none."""


def finder(path: str | os.PathLike[str] | None = None) -> Find:
    """Looks names up among the shipped variants and those that `path` adds, each name once."""

    known: dict[str, AnyVariant | VariantError] = {}

    def find(name: str) -> AnyVariant:
        found = known.get(name)
        if found is None:
            try:
                found = games.find(name, path)
            except VariantError as error:
                found = error
            if len(known) < _NAMES:
                known[name] = found
        if isinstance(found, VariantError):
            raise VariantError(str(found))
        return found

    return find


def variant_of(record: GameRecord, find: Find) -> AnyVariant:
    """The variant that a record was played by; VariantError if its name is unknown or its rules do not fit."""
    if record.rules is None:
        return find(record.variant)
    return _build(record.variant, record.rules)


@lru_cache(maxsize=64)
def _build(name: str, rules: RuleSet) -> Variant:
    return Variant.build(name if is_name(name) else "custom", rules.rows, dict(rules.switches))


def size_of(record: GameRecord, find: Find) -> int:
    """The longer side of the record's board, for reading squares; the largest board where the variant is unknown."""
    try:
        variant = variant_of(record, find)
    except VariantError:
        if record.rules is not None:
            raise
        return MAX_SIZE
    return max(variant.files, variant.ranks)


def played_by(record: GameRecord, variant: AnyVariant) -> GameRecord:
    """The record with the variant's name and hash, and with its rules where no shipped variant of that name has
    them."""
    return replace(record, variant=variant.name, rules_hash=variant.hash, rules=carried(variant))


def carried(variant: AnyVariant) -> RuleSet | None:
    """The rules that a record has to carry so that it needs no file; None for a shipped variant."""
    if not isinstance(variant, Variant) or _is_shipped(variant.name, variant.hash):
        return None
    return RuleSet(variant.rows, tuple(variant.rules.changes().items()))


@lru_cache(maxsize=256)
def _is_shipped(name: str, rules_hash: str) -> bool:
    try:
        return games.find(name).hash == rules_hash
    except VariantError:
        return False


def without_adjudication(variant: AnyVariant) -> AnyVariant:
    """The rules of sites that never ended a game by repetition or limits; other games than tafl have no such sites."""
    return as_played(variant) if isinstance(variant, Variant) else variant
