"""The door to the games: a variant in, positions of its game out.

Importing this module is cheap; the first position of a game imports its kernels.
"""

from __future__ import annotations

from ..position import Position
from ..setup import parse_fen
from ..variant import Variant


def initial(variant: Variant) -> Position:
    """The start position of a variant."""
    from .tafl.position import Position as TaflPosition

    return TaflPosition.initial(variant)


def from_setup(variant: Variant, text: str) -> Position:
    """The position that a FEN describes; ValueError if it cannot be read or cannot stand under the rules."""
    from .tafl.position import Position as TaflPosition

    return TaflPosition.from_setup(variant, parse_fen(text, variant.size))
