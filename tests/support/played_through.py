"""A short game played through, for what is made of analyses."""

from __future__ import annotations

from collections.abc import Sequence

from hnefi.engine import games
from hnefi.engine.records.record import GameRecord, Ply
from hnefi.tools.analyze.values import PlayedThrough

MOVES = ("f4f5", "c4c5", "d6g6", "d3a3")


def walk(words: Sequence[str] = MOVES) -> PlayedThrough:
    """A game of brandubh played through."""
    variant = games.find("brandubh").with_switches(repetition="ignore")  # type: ignore[attr-defined]
    positions = [games.initial(variant)]
    for word in words:
        positions.append(positions[-1].play(positions[-1].parse_move(word)))
    plies = tuple(Ply(move, ()) for move in positions[-1].moves)
    record = GameRecord("brandubh", plies=plies, players=("ann", "björn"))
    return PlayedThrough(record, variant, tuple(positions), "game.tafl", 1, 1)
