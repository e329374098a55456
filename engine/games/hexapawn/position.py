"""The hexapawn position for the rest of the program: immutable values over the kernels' record."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from ...sides import Outcome, Reason, Side
from ...squares import FILES, STRIDE, move, move_sort_key, name, origin, rank_of, square, target
from ..base_position import IllegalMove, PositionError, moves_since_start
from ..text import format_fen, parse_fen
from .kernels import CORE, POSITION, WALL, generate, make, new_state, set_up
from .variant import Variant

LETTERS = "Pp"
_COLOURS = ("white", "black")
_MOVE = re.compile("([a-z][0-9]{1,3})[-x]?([a-z][0-9]{1,3})(?:x[a-z][0-9]{1,3})?")


@lru_cache(maxsize=32)
def _squares(files: int, ranks: int) -> dict[str, int]:
    """The squares of a board by name."""
    return {name(sq): sq for sq in (square(file, rank) for rank in range(ranks) for file in range(files))}


class _Work(threading.local):
    """One record per thread: kernels work in place and are not shared."""

    def __init__(self) -> None:
        self.record = new_state()


_work = _Work()


class Position:
    """One position of one game. Never changes; `play` and `undo` give other positions of the same game."""

    __slots__ = ("__dict__", "_at", "_core", "last_captures", "last_move", "parent", "start_fen", "variant")

    variant: Variant
    start_fen: str
    parent: Position | None
    last_move: int
    last_captures: tuple[int, ...]
    _core: bytes
    _at: Any

    @classmethod
    def initial(cls, variant: Variant) -> Position:
        """The variant's start position."""
        return cls.from_fen(variant, variant.startpos)

    @classmethod
    def from_fen(cls, variant: Variant, text: str) -> Position:
        """The first position of a game that starts from a FEN; PositionError if it cannot be read or cannot stand."""
        files, ranks = variant.files, variant.ranks
        pieces, side, quiet, move_number = parse_fen(text, files, ranks, LETTERS)
        _check(variant, pieces)
        mover = Side.of(side or variant.first)
        record = _work.record
        state = record[0]
        record.view(np.uint8).reshape(-1)[CORE] = 0
        state["side"] = int(mover)
        state["before"] = 2 * (move_number - 1) + int(mover)
        state["quiet"] = quiet
        state["files"], state["ranks"] = files, ranks
        board = state["board"]
        board[:] = WALL
        for rank in range(ranks):
            board[square(0, rank) : square(files, rank)] = 0
        for sq in sorted(pieces):
            owner = LETTERS.index(pieces[sq])
            number = int(state["count"][owner])
            board[sq] = (owner + 1) << 5 | number
            state["pawns"][owner, number] = sq
            state["count"][owner] = number + 1
        set_up(state)
        start_fen = format_fen(pieces, files, ranks, mover.letter, quiet, move_number)
        return cls._saved(variant, start_fen, None, 0, ())

    @classmethod
    def _saved(
        cls,
        variant: Variant,
        start_fen: str,
        parent: Position | None,
        last_move: int,
        captures: tuple[int, ...],
    ) -> Position:
        """The position that this thread's record holds now."""
        self = cls.__new__(cls)
        self.variant = variant
        self.start_fen = start_fen
        self.parent = parent
        self.last_move = last_move
        self.last_captures = captures
        self._core = _work.record.view(np.uint8).reshape(-1)[CORE].tobytes()
        self._at = np.frombuffer(self._core, POSITION)[0]
        return self

    @property
    def fits(self) -> str:
        """Names the records that can hold this position: those made by positions with the same word."""
        return self.variant.hash

    def new_record(self) -> Any:
        """A separate record holding this position, for a search or a benchmark."""
        record = new_state()
        self.load(record)
        return record

    def load(self, record: Any) -> Any:
        """Copy this position into a record; returns its state."""
        record.view(np.uint8).reshape(-1)[CORE] = np.frombuffer(self._core, np.uint8)
        return record[0]

    @property
    def side(self) -> Side:
        """The side to move."""
        return Side(int(self._at["side"]))

    @property
    def key(self) -> int:
        """The 64-bit key of pawns and side to move."""
        return int(self._at["key"])

    @property
    def ply(self) -> int:
        """Plies since the start of the history."""
        return int(self._at["ply"])

    @property
    def quiet(self) -> int:
        """Plies since the last capture."""
        return int(self._at["quiet"])

    @property
    def move_number(self) -> int:
        """The number of the turn, 1 at first."""
        return int(self._at["before"] + self._at["ply"]) // 2 + 1

    @property
    def taken(self) -> tuple[int, int]:
        """Pawns taken by white and by black, as against the variant's start."""
        white, black = (int(n) for n in self._at["count"])
        return self.variant.defenders - black, self.variant.attackers - white

    @cached_property
    def outcome(self) -> Outcome | None:
        """How the game ended, None while it goes on."""
        code = int(self._at["outcome"])
        return Outcome(Side((code >> 8) - 1), Reason.from_code(code & 255)) if code else None

    @property
    def repetitions(self) -> int:
        """Pawns only go forward: every position is new."""
        return 1

    @cached_property
    def moves(self) -> tuple[int, ...]:
        """The moves since the start of the history."""
        return moves_since_start(self)

    @cached_property
    def _pieces(self) -> dict[int, str]:
        pawns = self._at["pawns"]
        return dict(sorted((int(sq), LETTERS[side]) for side in range(2) for sq in pawns[side] if sq))

    def piece_at(self, sq: int) -> str | None:
        """The letter of the piece on a square, None for an empty one."""
        return self._pieces.get(sq)

    def pieces(self) -> tuple[tuple[int, str], ...]:
        """(square, letter) pairs, sorted by square."""
        return tuple(self._pieces.items())

    @cached_property
    def _legal_moves(self) -> tuple[int, ...]:
        if self.outcome is not None:
            return ()
        state = self.load(_work.record)
        end = generate(state, 0)
        return tuple(sorted(state["moves"][:end].tolist(), key=move_sort_key))

    def legal_moves(self) -> tuple[int, ...]:
        """All legal moves, sorted by origin, then target, file before rank; none when the game is over."""
        return self._legal_moves

    def captures(self, m: int) -> tuple[int, ...]:
        """The square of the pawn that a legal move takes, or none."""
        sq = target(m)
        return (sq,) if sq in self._pieces else ()

    def legal_moves_with_captures(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Every legal move with the squares of the men that it captures."""
        return tuple((m, self.captures(m)) for m in self.legal_moves())

    def play(self, m: int) -> Position:
        """The position after a move; IllegalMove with the reason if it is not legal."""
        if m not in self.legal_moves():
            raise IllegalMove(self.why_illegal(m))
        make(self.load(_work.record), m)
        return self._saved(self.variant, self.start_fen, self, m, self.captures(m))

    def undo(self) -> Position:
        """The position before the last move; PositionError at the start."""
        if self.parent is None:
            raise PositionError("no move has been played")
        return self.parent

    def parse_move(self, text: str) -> int:
        """The legal move that `text` names, `a1a2`, `a1-a2`, `a1xb2` or `a1b2xb2`; IllegalMove with the reason."""
        if self.outcome is not None:
            raise IllegalMove(f"the game is over: {self.outcome.text}")
        match = _MOVE.fullmatch(text.lower()) if len(text) < 16 and text.isascii() else None
        if match is None:
            raise IllegalMove("not a move: expected origin and target such as a1a2")
        known = _squares(self.variant.files, self.variant.ranks)
        for word in match.groups():
            if word not in known:
                raise IllegalMove(f"no square {word} on this {self.variant.size} board")
        m = move(*map(known.__getitem__, match.groups()))
        if m not in self.legal_moves():
            raise IllegalMove(self.why_illegal(m))
        return m

    def why_illegal(self, m: int) -> str:
        """The first reason why a move that is not legal is not."""
        if self.outcome is not None:
            return f"the game is over: {self.outcome.text}"
        o, t = origin(m), target(m)
        known = _squares(self.variant.files, self.variant.ranks).values()
        if m < 0 or o not in known or t not in known:
            return f"{m} is not a move on this {self.variant.size} board"
        letter = self.piece_at(o)
        if letter is None:
            return f"nothing stands on {name(o)}"
        if letter != LETTERS[self.side]:
            mine, theirs = _COLOURS[self.side], _COLOURS[self.side.other]
            return f"that is a {theirs} pawn, {mine} is to move"
        if o == t:
            return "origin and target are the same"
        ahead = o + (STRIDE, -STRIDE)[self.side]
        if t == ahead:
            return f"blocked at {name(t)}"
        if t in (ahead - 1, ahead + 1):
            return f"nothing to take on {name(t)}"
        return "a pawn goes one square forward, or takes one square diagonally forward"

    def fen(self) -> str:
        """The position as a FEN, all fields."""
        return format_fen(
            self._pieces,
            self.variant.files,
            self.variant.ranks,
            self.side.letter,
            self.quiet,
            self.move_number,
        )

    def canonical(self) -> tuple[object, ...]:
        """Equal for a position and its mirror image, left and right exchanged."""
        (mirror,) = self.symmetries()
        mirrored = sorted((mirror[sq], letter) for sq, letter in self.pieces())
        return self.side, min(self.pieces(), tuple(mirrored))

    def symmetries(self) -> tuple[Mapping[int, int], ...]:
        """Where each square goes when left and right are exchanged."""
        files, ranks = self.variant.files, self.variant.ranks
        return (
            {
                square(file, rank): square(files - 1 - file, rank)
                for file in range(files)
                for rank in range(ranks)
            },
        )

    def unlimited(self) -> Position:
        """This position itself: hexapawn knows neither repetition nor limits."""
        return self

    def diagram(self) -> str:
        """The board as a picture for people: rows from the top rank down, coordinates on all four sides."""
        files = "   " + " ".join(FILES[: self.variant.files])
        rows = [files]
        for rank in reversed(range(self.variant.ranks)):
            cells = (self.piece_at(square(file, rank)) or "." for file in range(self.variant.files))
            rows.append(f"{rank + 1:2d} {' '.join(cells)} {rank + 1}")
        rows.append(files)
        return "\n".join(rows)


def _check(variant: Variant, pieces: dict[int, str]) -> None:
    """Refuse, with a PositionError, pawns that no game can have."""
    if not pieces:
        raise PositionError("an empty board: expected pawns (P white, p black)")
    arrived = []
    for letter, colour, far in (("P", "white", variant.ranks - 1), ("p", "black", 0)):
        own = [sq for sq in pieces if pieces[sq] == letter]
        if len(own) > variant.files:
            raise PositionError(f"{len(own)} {colour} pawns: expected at most {variant.files}")
        arrived += [f"{colour} on {name(sq)}" for sq in own if rank_of(sq) == far]
    if len(arrived) > 1:
        raise PositionError(
            f"{arrived[0]} and {arrived[1]}: expected one pawn on its far row, which ends the game"
        )
