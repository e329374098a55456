"""The interface of a position of any game, for session, protocol and tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ..sides import Outcome, Side
    from .base_variant import AnyVariant


class IllegalMove(ValueError):
    """A move that cannot be played; the message is the sentence that says why."""


class PositionError(ValueError):
    """A position that cannot be set up; the message says what is wrong with it."""


class Position(Protocol):
    """One immutable position of one game with the game's history; moves and squares are integers."""

    @property
    def variant(self) -> AnyVariant:
        """The game being played."""

    @property
    def side(self) -> Side:
        """The side to move."""

    @property
    def ply(self) -> int:
        """Plies played since the start position."""

    @property
    def quiet(self) -> int:
        """Plies since the last capture."""

    @property
    def move_number(self) -> int:
        """The number of the turn, 1 at first."""

    @property
    def taken(self) -> tuple[int, int]:
        """Men taken by the attackers, by the defenders; the king is no man."""

    @property
    def outcome(self) -> Outcome | None:
        """How the game ended, None while it goes on."""

    @property
    def key(self) -> int:
        """The full key of the position, 64 bits."""

    @property
    def repetitions(self) -> int:
        """Occurrences of this position so far, this one included."""

    @property
    def start_fen(self) -> str:
        """The position in which the game began, with all fields."""

    @property
    def moves(self) -> tuple[int, ...]:
        """Every move since the start position."""

    @property
    def last_captures(self) -> tuple[int, ...]:
        """Squares emptied (or turned) by the last ply, file before rank."""

    def piece_at(self, sq: int) -> str | None:
        """The letter of the piece on a square, None for an empty one."""

    def pieces(self) -> tuple[tuple[int, str], ...]:
        """The letters of all pieces by their squares."""

    def legal_moves(self) -> tuple[int, ...]:
        """Sorted by origin, then target; empty when the game is over."""

    def legal_moves_with_captures(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Every legal move with the squares of the men that it captures."""

    def play(self, move: int) -> Position:
        """The position after `move`; IllegalMove otherwise."""

    def parse_move(self, text: str) -> int:
        """The legal move meant by `text` in any notation that is read; IllegalMove otherwise."""

    def fen(self) -> str:
        """The position as a FEN, all fields."""

    def diagram(self) -> str:
        """The board as a picture of several lines."""

    def undo(self) -> Position:
        """The position before the last move; PositionError if there is none."""

    def canonical(self) -> tuple[object, ...]:
        """Equal for positions that are images of each other under a symmetry of the board that keeps the game."""

    def symmetries(self) -> tuple[Mapping[int, int], ...]:
        """Where each square goes under every symmetry of the board that keeps the game, the identity not among them."""

    def unlimited(self) -> Position:
        """This position as the start of a game without repetition and limits: what counting moves asks for."""

    @property
    def fits(self) -> str:
        """Names the records that can hold this position: those made by positions with the same word."""

    def new_record(self) -> Any:
        """A one-element record array of the game's state type, holding this position, for kernels to work in."""

    def load(self, record: Any) -> Any:
        """Copies this position, with the history that its rules can ask for, into a record that fits it."""


class Linked(Protocol):
    """A position that knows the one before it."""

    @property
    def parent(self) -> Linked | None:
        """The position before the last move, None where there was none."""

    @property
    def last_move(self) -> int:
        """The last move, NO_MOVE where there was none."""


def moves_since_start(position: Linked) -> tuple[int, ...]:
    """Every move of the game that led to a position."""
    found = []
    while position.parent is not None:
        found.append(position.last_move)
        position = position.parent
    return tuple(reversed(found))
