"""All games: from the name of a variant to positions of its game.

Every game is a package here with a module `position`, whose class `Position` makes start positions and positions
from a FEN. Tafl's variants are files; the others have a size behind a colon (`hex:11`, `hexapawn:4x3`) and a light
module `variant`, whose `build` reads it. Importing this module is cheap; the first position of a game imports its
kernels.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from .. import catalogue
from ..wording import shorten
from .base_position import Position
from .base_variant import AnyVariant, UnknownVariant, VariantError
from .tafl import variant as variants

_PACKAGES = {family: name for name, game in catalogue.GAMES.items() for family in game.sizes}


def find(name: str, path: str | os.PathLike[str] | None = None) -> AnyVariant:
    """The variant of this name or alias, in any case; `path` adds variant files. VariantError if there is none."""
    family, colon, size = name.lower().partition(":")
    if family in catalogue.SIZED:
        build = import_module(f".{_PACKAGES[family]}.variant", __package__).build
        sized: AnyVariant = build(family, size if colon else catalogue.SIZED[family])
        return sized
    return variants.find(name, path, catalogue.SIZED)


def named(word: str, path: str | os.PathLike[str] | None = None, *, files: bool = True) -> AnyVariant:
    """The variant that a command line names: as `find` does, or with `files` by a TOML file. VariantError if there is
    none, which says what to type in a shell."""
    if files and word.endswith(catalogue.SUFFIX):
        return variants.load(word)
    try:
        return find(word, path)
    except UnknownVariant as error:
        if files and os.path.isfile(word):  # noqa: PTH113 - pathlib raises for names that are too long
            raise VariantError(f"{shorten(word)}: a file of rules must end in {catalogue.SUFFIX}") from None
        if error.near:
            raise
        file = f" or a {catalogue.SUFFIX} file" if files else ""
        raise VariantError(
            f"{shorten(word)}: expected a variant (`hnefi variants` lists them){file}"
        ) from None


def names(path: str | os.PathLike[str] | None = None) -> list[str]:
    """The names of all variants, the default first; parses no file."""
    return [*variants.names(path), *_sized()]


def _sized() -> list[str]:
    return [f"{family}:{size}" for family, size in catalogue.SIZED.items()]


def everything(path: str | os.PathLike[str] | None = None) -> list[AnyVariant]:
    """Every variant in the order of `names`; VariantError at the first file that cannot be read."""
    return [*variants.everything(path), *map(find, _sized())]


def initial(variant: AnyVariant) -> Position:
    """The start position of a variant."""
    position: Position = _shell(variant).initial(variant)
    return position


def from_fen(variant: AnyVariant, text: str) -> Position:
    """The position that a FEN describes; ValueError if it cannot be read or cannot stand under the rules."""
    position: Position = _shell(variant).from_fen(variant, text)
    return position


def policy_moves(variant: AnyVariant) -> tuple[int, ...]:
    """All moves that can ever be legal, in the order of a network's policy; 0 at places without one. ValueError for a
    game without such networks."""
    try:
        module = import_module(f".{variant.game}.policy", __package__)
    except ModuleNotFoundError:
        raise ValueError(f"{variant.name}: expected a game whose moves have an order for networks") from None
    moves: tuple[int, ...] = module.moves(variant)
    return moves


def _shell(variant: AnyVariant) -> Any:
    """The class of a game's positions; the first use imports its kernels."""
    return import_module(f".{variant.game}.position", __package__).Position
