"""Lines of play as people and records write them: numbered, with captures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hnefi.engine.moves_text import format_move
from hnefi.engine.records.record import Ply, sorted_squares

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position


def legal_line(position: Position, words: Sequence[str], most: int) -> tuple[int, ...]:
    """The moves that `words` name from a position on, as far as they are legal, at most `most`."""
    moves = []
    for word in words[:most]:
        if position.outcome is not None:
            break
        try:
            move = position.parse_move(word)
            position = position.play(move)
        except ValueError:
            break
        moves.append(move)
    return tuple(moves)


def plies_of(position: Position, moves: Sequence[int]) -> list[Ply]:
    """Moves from a position on as plies with their captures."""
    plies = []
    for move in moves:
        position = position.play(move)
        plies.append(Ply(move, sorted_squares(position.last_captures)))
    return plies


def numbered(position: Position, moves: Sequence[int]) -> str:
    """`7. a4a2 d3a3xa2 8. c4c5`, or `7... d3a3xa2 8. c4c5` where the side that begins is not to move."""
    words: list[str] = []
    number = 0
    for move in moves:
        if position.move_number != number:
            number = position.move_number
            began = "ad"[position.side] == position.variant.first
            words.append(f"{number}." if began or words else f"{number}...")
        position = position.play(move)
        words.append(format_move(move, sorted_squares(position.last_captures)))
    return " ".join(words)


def place(position: Position) -> str:
    """The number to print before the next move: `7.` or `7...`."""
    return f"{position.move_number}{'.' if 'ad'[position.side] == position.variant.first else '...'}"
