"""The Hex position for the rest of the program: immutable values over the kernels' records."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from ... import squares as board
from ...sides import Outcome, Reason, Side
from ...wording import shorten
from ..base_position import IllegalMove, PositionError, moves_since_start
from ..text import format_fen, parse_fen
from . import kernels
from .state import CORE, new_record
from .variant import Variant

LETTERS: Final = "xo"
_CELL: Final = re.compile("([a-z])([0-9]{1,3})", re.ASCII)
SWAP_ONLY: Final = "swap: only the second ply of hex-swap may take over the first stone"


class _Records(threading.local):
    """One state record per thread and variant last used: kernels work in place and are not shared."""

    def __init__(self) -> None:
        self.variant: Variant | None = None
        self.record: Any = None

    def get(self, variant: Variant) -> Any:
        """A one-element recarray for this variant; its position is left over from other use."""
        if variant != self.variant:
            self.variant, self.record = variant, new_record(variant.size, variant.swap)
        return self.record


_records = _Records()


@dataclass(frozen=True, eq=False)
class Position:
    """One position of one game. Never changes: `play` and `undo` give other positions of the same game."""

    variant: Variant
    quiet: int
    """Plies since the last capture; in Hex there is none."""
    turns: int
    """Plies before this position, as the move number counts them."""
    ply: int
    parent: Position | None = field(repr=False)
    last_move: int
    """The move that led here, NO_MOVE at the start."""
    _core: bytes = field(repr=False)
    last_captures: tuple[int, ...] = ()
    taken: tuple[int, int] = (0, 0)
    repetitions: int = 1
    """A board that only fills never stands twice."""

    @classmethod
    def initial(cls, variant: Variant) -> Position:
        """The empty board."""
        return cls.from_fen(variant, variant.startpos)

    @classmethod
    def from_fen(cls, variant: Variant, text: str) -> Position:
        """The first position of a game that starts from a FEN; PositionError if it cannot be read or cannot stand.

        Where the FEN does not say who is to move, the stones do.
        """
        stones, letter, quiet, number = parse_fen(text, variant.size, variant.size, LETTERS)
        x = sum(stone == "x" for stone in stones.values())
        o = len(stones) - x
        side = Side.of(letter or ("d" if x > o else "a"))
        # Side to move and surplus of x go together; a swap turned one x into an o.
        if x - o != side and not (variant.swap and stones and x - o == side - 1):
            raise PositionError(
                f"{x} x and {o} o, {side.letter} to move: expected as many x as o when a is to move, one x more "
                f"when d is{' (after a swap one x less, and as many)' if variant.swap else ''}"
            )
        record = new_record(variant.size, variant.swap)
        state = record[0]
        for sq, stone in stones.items():
            kernels.set_up(state, sq, LETTERS.index(stone))
        state["side"] = int(side)
        state["key"] = kernels.whole_key(state)
        turns = 2 * (number - 1) + int(side)
        return cls(variant, quiet, turns, 0, None, board.NO_MOVE, _core(record))

    def load(self, record: Any) -> Any:
        """Copy this position into a record of the same variant; returns its state. Nothing can be taken back."""
        record.view(np.uint8).reshape(-1)[CORE] = np.frombuffer(self._core, np.uint8)
        state = record[0]
        state["ply"] = state["told"] = state["caught_top"] = 0
        return state

    def _state(self) -> Any:
        return self.load(_records.get(self.variant))

    @property
    def fits(self) -> str:
        """Names the records that can hold this position: those made by positions with the same word."""
        return self.variant.name

    def new_record(self) -> Any:
        """A separate record holding this position, for a search or a benchmark."""
        record = new_record(self.variant.size, self.variant.swap)
        self.load(record)
        return record

    @cached_property
    def _scalars(self) -> dict[str, int]:
        state = self._state()
        return {name: int(state[name]) for name in ("key", "side", "outcome", "empty")}

    @property
    def side(self) -> Side:
        """The side to move."""
        return Side(self._scalars["side"])

    @property
    def key(self) -> int:
        """The 64-bit key of stones and side to move."""
        return self._scalars["key"]

    @property
    def move_number(self) -> int:
        """1 at first; grows when the first player is to move again."""
        return self.turns // 2 + 1

    @property
    def outcome(self) -> Outcome | None:
        """How the game ended, None while it goes on."""
        code = self._scalars["outcome"]
        return Outcome(Side((code >> 8) - 1), Reason.from_code(code & 255)) if code else None

    @property
    def start_fen(self) -> str:
        """The position in which the game began, with all fields."""
        position = self
        while position.parent is not None:
            position = position.parent
        return position.fen()

    @cached_property
    def moves(self) -> tuple[int, ...]:
        """The moves since the start of the history."""
        return moves_since_start(self)

    @cached_property
    def _stones(self) -> Mapping[int, str]:
        cells = self._state()["board"]
        size = self.variant.size
        owners = ((sq, int(cells[sq]) >> 2 & 3) for sq in board.squares(size))
        return {sq: LETTERS[owner - 1] for sq, owner in owners if owner}

    def piece_at(self, sq: int) -> str | None:
        """The letter of the piece on a square, None for an empty one."""
        return self._stones.get(sq)

    def pieces(self) -> tuple[tuple[int, str], ...]:
        """(square, letter) pairs, sorted by square."""
        return tuple(self._stones.items())

    @property
    def may_swap(self) -> bool:
        """Whether the first stone may be taken over now."""
        return self.variant.swap and self.side is Side.DEFENDERS and len(self._stones) == 1

    @cached_property
    def _legal_moves(self) -> tuple[int, ...]:
        if self.outcome is not None:
            return ()
        state = self._state()
        end = kernels.generate(state, 0)
        return tuple(sorted(state["moves"][:end].tolist(), key=board.move_sort_key))

    def legal_moves(self) -> tuple[int, ...]:
        """All legal moves, sorted by file, then rank; none when the game is over."""
        return self._legal_moves

    def legal_moves_with_captures(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Every legal move with the squares of the men that it captures."""
        return tuple((move, ()) for move in self.legal_moves())

    def play(self, move: int) -> Position:
        """The position after a move; IllegalMove with the reason if it is not legal."""
        reason = self._why_illegal(move)
        if reason is not None:
            raise IllegalMove(reason)
        record = _records.get(self.variant)
        kernels.make(self.load(record), move)
        return replace(
            self,
            quiet=self.quiet + 1,
            turns=self.turns + 1,
            ply=self.ply + 1,
            parent=self,
            last_move=move,
            _core=_core(record),
        )

    def undo(self) -> Position:
        """The position before the last move; PositionError at the start."""
        if self.parent is None:
            raise PositionError("no move has been played")
        return self.parent

    def _why_illegal(self, move: int) -> str | None:
        """The first reason why a move is illegal, None if it is legal."""
        if self.outcome is not None:
            return f"the game is over: {self.outcome.text}"
        if move == board.SWAP:
            return None if self.may_swap else SWAP_ONLY
        sq = board.target(move)
        if move < 0 or sq != board.origin(move) or not board.on_board(sq, self.variant.size):
            return f"{shorten(move)} is not a move"
        standing = self.piece_at(sq)
        return None if standing is None else f"{standing} stands on {board.name(sq)}"

    def parse_move(self, text: str) -> int:
        """The legal move that `text` names: a cell, or `swap`, in any case; IllegalMove with the reason."""
        if self.outcome is not None:
            raise IllegalMove(f"the game is over: {self.outcome.text}")
        move = self._read_move(text.strip().lower())
        reason = self._why_illegal(move)
        if reason is not None:
            raise IllegalMove(reason)
        return move

    def _read_move(self, word: str) -> int:
        if word == "swap":
            return board.SWAP
        if not _CELL.fullmatch(word):
            raise IllegalMove(f"not a move: expected a cell such as a1{' or swap' if self.may_swap else ''}")
        size = self.variant.size
        try:
            sq = board.parse(word, size)
        except ValueError:
            raise IllegalMove(f"no square {word} on this {size}x{size} board") from None
        return board.move(sq, sq)

    def fen(self) -> str:
        """The position as a FEN, all fields."""
        size = self.variant.size
        return format_fen(self._stones, size, size, self.side.letter, self.quiet, self.move_number)

    def canonical(self) -> tuple[object, ...]:
        """Equal for a position and its image under a half turn.

        Nothing else keeps the game: a reflection in a diagonal exchanges the sides' edges, and with the stones'
        owners exchanged too the other side would be to move.
        """
        (half_turn,) = self.symmetries()
        turned = sorted((half_turn[sq], stone) for sq, stone in self.pieces())
        return (self.side, min(self.pieces(), tuple(turned)))

    def symmetries(self) -> tuple[Mapping[int, int], ...]:
        """Where each cell goes under a half turn."""
        cells = list(board.squares(self.variant.size))
        return (dict(zip(cells, reversed(cells), strict=True)),)

    def unlimited(self) -> Position:
        """This position itself: Hex knows neither repetition nor limits."""
        return self

    def diagram(self) -> str:
        """The rhombus, each row half a cell further right than the one above; edges drawn in their owners' letters.

        Six cells touch a cell: two beside it, two above and two below.
        """
        size = self.variant.size
        files = " ".join(board.FILES[:size])
        rows = [f"      {files}", f"     -{'-'.join('x' * size)}-"]
        for row in range(size):
            rank = size - 1 - row
            cells = " ".join(self.piece_at(board.square(file, rank)) or "." for file in range(size))
            rows.append(f"{' ' * row}{rank + 1:3d} o\\{cells}\\o {rank + 1}")
        rows.append(f"{' ' * size}      -{'-'.join('x' * size)}-")
        rows.append(f"{' ' * size}        {files}")
        return "\n".join(rows)


def _core(record: Any) -> bytes:
    """The position that a record holds now."""
    core: bytes = record.view(np.uint8).reshape(-1)[CORE].tobytes()
    return core
