"""The door to the games: the name of a variant in, positions of its game out.

Every game is a package here with a module `position`, whose class `Position` makes start positions and positions
from a FEN. Tafl's variants are files; the others have a size behind a colon (`hex:11`, `hexapawn:4x3`) and a light
module `variant`, whose `build` reads it. Importing this module is cheap; the first position of a game imports its
kernels.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from .. import variant as variants
from ..game import AnyVariant
from ..position import Position

# First word of a variant's name to the package that plays it, and a size that people mean who give none.
_SIZED: dict[str, tuple[str, str]] = {}
PACKAGES = ("tafl",)


def find(name: str, path: str | os.PathLike[str] | None = None) -> AnyVariant:
    """The variant of this name or alias, in any case; `path` adds variant files. VariantError if there is none."""
    family, colon, size = name.lower().partition(":")
    if family in _SIZED:
        package, usual = _SIZED[family]
        return _build(package, family, size if colon else usual)
    return variants.find(name, path, _SIZED)


def _build(package: str, family: str, size: str) -> AnyVariant:
    variant: AnyVariant = import_module(f".{package}.variant", __package__).build(family, size)
    return variant


def listed() -> list[str]:
    """The variants of games with a size that lists show: one of each, in its usual size."""
    return [f"{family}:{size}" for family, (_, size) in _SIZED.items()]


def names(path: str | os.PathLike[str] | None = None) -> list[str]:
    """The names of all variants, the default first; parses no file."""
    return [*variants.names(path), *listed()]


def everything(path: str | os.PathLike[str] | None = None) -> list[AnyVariant]:
    """Every variant in the order of `names`; VariantError at the first file that cannot be read."""
    return [*variants.everything(path), *map(find, listed())]


def initial(variant: AnyVariant) -> Position:
    """The start position of a variant."""
    position: Position = _shell(variant).initial(variant)
    return position


def from_fen(variant: AnyVariant, text: str) -> Position:
    """The position that a FEN describes; ValueError if it cannot be read or cannot stand under the rules."""
    position: Position = _shell(variant).from_fen(variant, text)
    return position


def _shell(variant: AnyVariant) -> Any:
    """The class of a game's positions; the first use imports its kernels."""
    return import_module(f".{variant.game}.position", __package__).Position
