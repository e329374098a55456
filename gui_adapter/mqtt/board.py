"""The board of a published game, drawn from its start, moves and captures; no rule is applied here."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from hnefi.engine import squares
from hnefi.engine.games import find
from hnefi.engine.games.base_variant import VariantError
from hnefi.engine.games.tafl.diagram import diagram
from hnefi.engine.games.tafl.fen import SetupError, parse_fen
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.moves_text import MoveTextError, parse_move

PLIES = 10_000


def board(game: Mapping[str, Any]) -> list[str]:
    """The rows of the board as it stands, empty if it cannot be known: another game than tafl, or a missing ply."""
    fen, name, moves, captures = (game.get(key) for key in ("fen", "variant", "moves", "captures"))
    if not (isinstance(fen, str) and isinstance(name, str) and isinstance(moves, list)):
        return []
    taken = captures if isinstance(captures, list) else []
    if len(taken) != len(moves) or len(moves) > PLIES:
        return []
    with suppress(VariantError, SetupError, MoveTextError, ValueError, KeyError):
        variant = find(name[:64])
        if not isinstance(variant, Variant):
            return []
        size = variant.rules.size
        pieces = dict(parse_fen(fen, size).pieces)
        for move, gone in zip(moves, taken, strict=True):
            if not (isinstance(move, str) and isinstance(gone, list)):
                return []
            origin, target, _ = parse_move(move, size)
            pieces[target] = pieces.pop(origin)
            for square in gone:
                pieces.pop(squares.parse(str(square)[:8], size), None)
        return diagram(variant.rules, pieces).splitlines()
    return []
