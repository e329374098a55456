"""Looking positions up in tables: the value of every move, the moves that keep it, a best line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..games.base_position import Position
from ..sides import Side
from ..squares import move_name
from .table import TableError, Value

FAR = 1 << 14
"""More plies than any win has."""

Ask = Callable[[Position], Value]
"""A function for the value of a position; ValueError if unknown, TableError if a file is faulty."""


@dataclass(frozen=True, slots=True)
class MoveValue:
    """A move, the value of the position after it (None if unknown), and whether it is one of the best."""

    move: int
    value: Value | None
    best: bool

    def keeps(self, now: Value) -> bool:
        """Whether the move is known to keep the winner of the position before it."""
        return self.value is not None and self.value.winner is now.winner

    @property
    def text(self) -> str:
        """The move and its value in words."""
        return f"{move_name(self.move)}  {'not known' if self.value is None else self.value.text}"


def moves(ask: Ask, position: Position) -> tuple[MoveValue, ...]:
    """Every legal move with its value, best first: sooner wins, then draws, then later losses. A proof has a winning
    move of its positions, but not all moves: unknown ones come last."""
    values = [(move, _known(ask, position.play(move))) for move in position.legal_moves()]
    side = position.side
    best = max((_rank(value, side) for _, value in values), default=0)
    found = [MoveValue(move, value, _rank(value, side) == best) for move, value in values]
    return tuple(sorted(found, key=lambda each: -_rank(each.value, side)))


def _known(ask: Ask, position: Position) -> Value | None:
    try:
        return ask(position)
    except TableError:
        raise
    except ValueError:
        return None


def _rank(value: Value | None, side: Side) -> int:
    """The rank of a value for a player; higher is better."""
    if value is None:
        return -3 * FAR
    if value.winner is None:
        return 0
    ahead = 2 * FAR - (FAR if value.plies is None else value.plies)
    return ahead if value.winner is side else -ahead


def keeping(ask: Ask, position: Position) -> tuple[int, ...]:
    """The moves that keep the winner, at any distance; for a proof, those that it knows."""
    now = ask(position)
    return tuple(sorted(each.move for each in moves(ask, position) if each.keeps(now)))


def best_line(ask: Ask, position: Position) -> tuple[int, ...]:
    """The shortest win against the longest defence, with the first of equal moves; empty if neither side can force an
    end. For a proof, the win that it has."""
    line = []
    while position.outcome is None and ask(position).plies is not None:
        move = moves(ask, position)[0].move
        line.append(move)
        position = position.play(move)
    return tuple(line)
