"""The tafl position for the rest of the program: immutable values over the kernels' records."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from ... import moves_text
from ... import squares as board
from ...compile import structs
from ...sides import Outcome, Reason, Side
from ..base_position import IllegalMove, PositionError, moves_since_start
from . import adjudication, verbs  # noqa: F401  verbs: a position binds its game's kernels to them
from .codes import CAPTURED_SQUARE, KING, LETTERS, PIECE, PIECE_CODES
from .diagram import diagram
from .fen import Setup, check_setup, format_fen, parse_fen
from .reasons import why_illegal
from .setup import advance, lawful, set_up, victims
from .state import CORE, KEPT, POSITION, TAFL
from .switches import PIECES
from .symmetry import canonical, images
from .tables import template
from .variant import Variant

_HEAD = np.dtype([field for field in POSITION if field[0] not in ("board", "slot", "pieces")], align=True)
"""The numbers with which `CORE` begins, so that asking for one of them needs no record."""

_SIDES = tuple(Side)
_STATES_KEPT = 8
REBASE = 2048
"""A line drops history that no longer counts every so many plies: the stacks hold four times as much."""


class _Cells:
    """A record and plain arrays over the parts of it that make a position: what record arrays have is looked up in
    Python. `held` is the core of the position that it holds, None if unknown."""

    def __init__(self, record: Any) -> None:
        states = np.asarray(record)
        self.record = record
        self.states = states
        self.state = record[0]
        self.held: bytes | None = None
        self.core = states.view(np.uint8)[CORE]
        self.keys, self.forts, self.sides = (states[name][0] for name in ("keys", "fort_keys", "u_side"))
        self.ply, self.since, self.caught = states["ply"], states["since"], states["caught"][0]
        self.marks, self.moves = states["caught_top"], states["moves"][0]
        self.side, self.outcome = states["side"], states["outcome"]

    def load(self, position: Position) -> None:
        """Hold this position of the same variant and piece letters."""
        self.core[:] = np.frombuffer(position._core, np.uint8)
        keys, forts, sides = position._history
        n = len(sides)
        self.keys[:n] = np.frombuffer(keys, np.uint64)
        self.forts[:n] = np.frombuffer(forts, np.uint64)
        self.sides[:n] = np.frombuffer(sides, np.int8)
        self.ply[0] = n - 1
        self.since[0] = 0
        self.marks[0] = 0
        self.held = position._core

    def save(self) -> tuple[bytes, tuple[bytes, ...]]:
        """The core and the history of the position that is held now. The next `load` forgets dead history, before
        the stacks are full."""
        core = self.core.tobytes()
        end = int(self.ply[0]) + 1
        first = max(int(self.since[0]), end - KEPT)
        self.marks[0] = 0
        self.held = core if end <= KEPT else None
        return core, (
            self.keys[first:end].tobytes(),
            self.forts[first:end].tobytes(),
            self.sides[first:end].tobytes(),
        )


class _States(threading.local):
    """A few state records per thread, by rule set: kernels work in place and are not shared."""

    def __init__(self) -> None:
        self.by_rules: OrderedDict[tuple[str, str], _Cells] = OrderedDict()

    def get(self, variant: Variant, letters: str) -> _Cells:
        """A record with this rule part; its position is left over from other use."""
        # Not the rules themselves: a value of seventy fields would be hashed at every lookup.
        key = (variant.hash, letters)
        cells = self.by_rules.get(key)
        if cells is None:
            cells = self.by_rules[key] = _Cells(new_state(variant, letters))
            if len(self.by_rules) > _STATES_KEPT:
                self.by_rules.popitem(last=False)
        else:
            self.by_rules.move_to_end(key)
        return cells


_states = _States()


def new_state(variant: Variant, letters: str) -> Any:
    """A fresh record of the variant's rules, in a one-element array, with an empty board."""
    record = structs.zeros(TAFL)
    prefix = template(variant.rules, letters)
    record.view(np.uint8).reshape(-1)[: len(prefix)] = np.frombuffer(prefix, np.uint8)
    record[0]["random"] = 1
    return record


def letters_of(setup: Setup) -> str:
    """The piece letters that can be on the board in a game from here: a mercenary can turn its coat."""
    letters = {letter for _, letter in setup.pieces} | {"K"}
    if letters & {"m", "M"}:
        letters |= {"m", "M"}
    return "".join(letter for letter in PIECES if letter in letters)


def outcome_of(code: int) -> Outcome | None:
    """The outcome that a kernel's code stands for."""
    if code == 0:
        return None
    winner = (code >> 8) - 1
    return Outcome(None if winner == 2 else Side(winner), Reason.from_code(code & 255))


class Position:
    """One position of one game: the board, who is to move, and the history that the rules can ask for.

    Never changes. `play` and `undo` give other positions of the same game.
    """

    __slots__ = (
        "__dict__", "_core", "_end", "_history", "_letters", "_side", "last_captures", "parent", "start", "variant"
    )  # fmt: skip

    variant: Variant
    start: Setup
    parent: Position | None
    last_captures: tuple[int, ...]
    _letters: str
    _core: bytes
    _history: tuple[bytes, ...]
    _side: int
    _end: int

    @classmethod
    def initial(cls, variant: Variant) -> Position:
        """The variant's start position."""
        return cls.from_setup(variant, variant.start)

    @classmethod
    def from_fen(cls, variant: Variant, text: str) -> Position:
        """The first position of a game that starts from a FEN; ValueError if it cannot be read or cannot stand."""
        return cls.from_setup(variant, parse_fen(text, variant.size))

    @classmethod
    def from_setup(cls, variant: Variant, setup: Setup) -> Position:
        """The first position of a game that starts from `setup`; ValueError if it cannot stand under the rules.

        Missing fields are those of a start position; men taken are what the variant's start has more.
        """
        check_setup(variant.rules, setup)
        side = Side.of(variant.rules.first) if setup.side is None else setup.side
        letters = letters_of(setup)
        cells = _states.get(variant, letters)
        record, state = cells.record, cells.state
        cells.held = None
        prefix = template(variant.rules, letters)
        record.view(np.uint8).reshape(-1)[: len(prefix)] = np.frombuffer(prefix, np.uint8)
        for sq, letter in setup.pieces:
            state["board"][sq] |= PIECE_CODES[letter]
        state["side"] = int(side)
        state["quiet"] = setup.quiet
        state["played"] = 2 * (setup.move_number - 1) + (side.letter != variant.rules.first)
        state["turns"] = state["played"]
        state["must_go"] = setup.berserk or 0
        state["taken"] = setup.caps or (
            max(0, variant.defenders - setup.count("TCNMG")),
            max(0, variant.attackers - setup.count("tcnmg")),
        )
        set_up(state, variant.rules.repetition_start)
        start = Setup(
            setup.size, setup.pieces, side, setup.quiet, setup.move_number, setup.berserk, setup.caps
        )
        return cls._saved(variant, start, None, letters, cells, ())

    @classmethod
    def _saved(
        cls,
        variant: Variant,
        start: Setup,
        parent: Position | None,
        letters: str,
        cells: _Cells,
        captures: tuple[int, ...],
    ) -> Position:
        """The position that a record holds now."""
        self = cls.__new__(cls)
        self.variant = variant
        self.start = start
        self.parent = parent
        self.last_captures = captures
        self._letters = letters
        self._core, self._history = cells.save()
        self._side, self._end = int(cells.side[0]), int(cells.outcome[0])
        return self

    def load(self, record: Any) -> Any:
        """Copy this position into a record of the same variant and piece letters; returns its state."""
        _Cells(record).load(self)
        return record[0]

    def _cells(self) -> _Cells:
        """The record of this thread, holding this position. Kernels that look ahead in it leave it as it was."""
        cells = _states.get(self.variant, self._letters)
        if cells.held is not self._core:
            cells.load(self)
        return cells

    def _state(self) -> Any:
        return self._cells().state

    @property
    def fits(self) -> str:
        """Names the records that can hold this position: those made by positions with the same word."""
        return f"{self.variant.hash} {self._letters}"

    def new_record(self) -> Any:
        """A separate record holding this position, for a search or a benchmark."""
        record = new_state(self.variant, self._letters)
        self.load(record)
        return record

    @cached_property
    def _scalars(self) -> dict[str, Any]:
        return dict(zip(_HEAD.names or (), np.frombuffer(self._core, _HEAD, 1)[0].item(), strict=True))

    @property
    def side(self) -> Side:
        """The side to move."""
        return _SIDES[self._side]

    @property
    def key(self) -> int:
        """The 64-bit key of pieces, side to move and berserk piece."""
        return int(self._scalars["key"])

    @property
    def quiet(self) -> int:
        """Plies since the last capture."""
        return int(self._scalars["quiet"])

    @property
    def move_number(self) -> int:
        """1 at first; grows when the side that began is to move again."""
        return int(self._scalars["turns"]) // 2 + 1

    @property
    def taken(self) -> tuple[int, int]:
        """Men taken by attackers and by defenders; the king is no man."""
        by_attackers, by_defenders = self._scalars["taken"]
        return int(by_attackers), int(by_defenders)

    @property
    def berserk(self) -> int | None:
        """The square of the piece that must go on, inside a berserk turn."""
        return self._scalars["must_go"] or None

    @property
    def outcome(self) -> Outcome | None:
        """How the game ended, None while it goes on."""
        return outcome_of(self._end)

    @property
    def repetitions(self) -> int:
        """How often this position has stood, this time included."""
        return self._repetitions

    @cached_property
    def _repetitions(self) -> int:
        state = self._state()
        return 1 if state["must_go"] else int(adjudication.occurrences(state, -1))

    @cached_property
    def moves(self) -> tuple[int, ...]:
        """The moves since the start of the history."""
        return moves_since_start(self)

    @property
    def last_move(self) -> int:
        """The move that led here, NO_MOVE at the start."""
        return int(self.__dict__.get("_move", board.NO_MOVE))

    @property
    def ply(self) -> int:
        """Plies since the start of the history."""
        return len(self.moves)

    @cached_property
    def _pieces(self) -> dict[int, str]:
        cells = self._state()["board"] & PIECE
        standing = (cells != 0) & (cells != 15)
        if self.outcome is not None and self.outcome.reason is Reason.KING_CAPTURED:
            # Kernels leave a captured king on his square; outside of them he is gone.
            standing &= cells != KING
        return {int(sq): LETTERS[cells[sq]] for sq in np.flatnonzero(standing)}

    def piece_at(self, sq: int) -> str | None:
        """The letter of the piece on a square, None for an empty one."""
        return self._pieces.get(sq)

    def pieces(self) -> tuple[tuple[int, str], ...]:
        """(square, letter) pairs, sorted by square."""
        return tuple(self._pieces.items())

    def legal_moves(self) -> tuple[int, ...]:
        """All legal moves, sorted by origin, then target, file before rank; none when the game is over."""
        return self._legal_moves

    @cached_property
    def _legal_moves(self) -> tuple[int, ...]:
        if self.outcome is not None:
            return ()
        cells = self._cells()
        moves = cells.moves[: adjudication.legal_moves(cells.state)].astype(np.int64)
        origin, target = moves & board.ORIGIN, moves >> board.TARGET
        place = [sq % board.STRIDE * board.STRIDE + sq // board.STRIDE for sq in (origin, target)]
        return tuple(moves[np.argsort(place[0] * board.CELLS + place[1])].tolist())

    def captures(self, move: int) -> tuple[int, ...]:
        """The squares of the men that a legal move takes (or turns), sorted by file, then rank."""
        cells = self._cells()
        return _squares(cells.caught, victims(cells.states, board.origin(move), board.target(move)))

    def legal_moves_with_captures(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Every legal move with the squares of the men that it captures."""
        moves = self.legal_moves()
        cells = self._cells()
        states, caught = cells.states, cells.caught
        return tuple((m, _squares(caught, victims(states, board.origin(m), board.target(m)))) for m in moves)

    def play(self, move: int) -> Position:
        """The position after a move; IllegalMove with the reason if it is not legal."""
        cells = self._cells()
        origin, target = board.origin(move), board.target(move)
        on_board = move >= 0 and _on(self, origin) and _on(self, target)
        taken = advance(cells.states, origin, target) if on_board else -1
        if taken < 0:
            raise IllegalMove(self.why_illegal(origin, target) or f"{move} is not a move")
        position = Position._saved(
            self.variant, self.start, self, self._letters, cells, _squares(cells.caught, taken)
        )
        position.__dict__["_move"] = move
        return position

    def undo(self) -> Position:
        """The position before the last move; PositionError at the start."""
        if self.parent is None:
            raise PositionError("no move has been played")
        return self.parent

    def why_illegal(self, origin: int, target: int) -> str | None:
        """The first reason why the move from `origin` to `target` is illegal, None if it is legal."""
        return why_illegal(self, origin, target)

    def parse_move(self, text: str) -> int:
        """The legal move that `text` names, in any accepted spelling; IllegalMove with the reason."""
        if self.outcome is not None:
            raise IllegalMove(f"the game is over: {self.outcome.text}")
        try:
            origin, target, _ = moves_text.parse_move(text, self.variant.rules.size)
        except ValueError as error:
            raise IllegalMove(str(error)) from None
        reason = self.why_illegal(origin, target)
        if reason is not None:
            raise IllegalMove(reason)
        return board.move(origin, target)

    def is_legal(self, origin: int, target: int) -> bool:
        """Whether a move between two squares of the board is legal."""
        state = self._state()
        return not state["outcome"] and bool(lawful(state, origin, target))

    @property
    def setup(self) -> Setup:
        """This position as text can say it: without its history."""
        return Setup(
            self.start.size,
            self.pieces(),
            self.side,
            self.quiet,
            self.move_number,
            self.berserk,
            self.taken if self.start.caps is not None else None,
        )

    def fen(self) -> str:
        """The position as a FEN, all fields."""
        return format_fen(self.setup)

    @property
    def start_fen(self) -> str:
        """The position in which the game began, with all fields."""
        return format_fen(self.start)

    def canonical(self) -> tuple[object, ...]:
        """Equal for positions that are images of each other under a symmetry that keeps all special squares."""
        return canonical(self.variant.rules, self.setup)

    def symmetries(self) -> tuple[Mapping[int, int], ...]:
        """Where each square goes under every symmetry that keeps all special squares, the identity not among them."""
        return images(self.variant.rules)

    def unlimited(self) -> Position:
        """This position as the start of a game without repetition and limits."""
        free = self.variant.with_switches(
            repetition="ignore", draw_fort="no", move_limit=0, quiet_limit=0, material_draw="none"
        )
        return self if free == self.variant else self.from_setup(free, self.setup)

    def diagram(self) -> str:
        """The board as a picture for people."""
        return diagram(self.variant.rules, dict(self.pieces()))


def _on(position: Position, sq: int) -> bool:
    return board.on_board(sq, position.start.size)


def _squares(caught: Any, n: int) -> tuple[int, ...]:
    return (
        tuple(sorted((int(entry) & CAPTURED_SQUARE for entry in caught[:n]), key=board.sort_key)) if n else ()
    )


class Line:
    """A game that only goes forward, on one record: for replaying many games fast."""

    def __init__(self, variant: Variant) -> None:
        self._cells = _Cells(new_state(variant, letters_of(variant.start)))
        self._first = Position.initial(variant)
        self.start()

    def start(self) -> None:
        """Back to the start position."""
        self._cells.load(self._first)
        self._plies = 0

    @property
    def outcome(self) -> Outcome | None:
        """How the game ended, None while it goes on."""
        return outcome_of(int(self._cells.state["outcome"]))

    def play(self, move: int) -> tuple[int, ...]:
        """Play a move; the squares of the men it took. ValueError if it is not legal."""
        self._plies += 1
        if self._plies % REBASE == 0:
            self._rebase()
        taken = advance(self._cells.states, board.origin(move), board.target(move))
        if taken < 0:
            raise IllegalMove(self._reason(move))
        return _squares(self._cells.caught, taken)

    def _reason(self, move: int) -> str:
        """Why a move is illegal here, in the words of the rules."""
        now = self._now()
        return now.why_illegal(board.origin(move), board.target(move)) or "not legal"

    def _now(self) -> Position:
        """The position on the record, without its moves."""
        first = self._first
        return Position._saved(first.variant, first.start, None, first._letters, self._cells, ())

    def _rebase(self) -> None:
        """Forget history that no longer counts, before the stacks are full."""
        self._cells.load(self._now())
