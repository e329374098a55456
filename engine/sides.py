"""The two sides, and how a game ends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Side(IntEnum):
    """Who is to move, or who has won. In games without attackers ATTACKERS is the side that moves first."""

    ATTACKERS = 0
    DEFENDERS = 1

    @property
    def letter(self) -> str:
        """`a` or `d`."""
        return "ad"[self]

    @property
    def other(self) -> Side:
        """The opponent."""
        return Side(1 - self)

    @classmethod
    def of(cls, letter: str) -> Side:
        """The side called `letter`; ValueError if it is neither `a` nor `d`."""
        if letter == "a":
            return cls.ATTACKERS
        if letter == "d":
            return cls.DEFENDERS
        raise ValueError(f"{letter!r} is not a side: expected a (attackers) or d (defenders)")


DRAWN = 2
"""In place of a winner: nobody has won."""

# An outcome in a kernel's record: the code of the reason, and above it the winner + 1. 0 is a game that is not over.
WINNER = 8
"""The first bit of the winner."""
REASON = (1 << WINNER) - 1
"""The bits of the reason."""


class Reason(StrEnum):
    """Why a game is over: one closed list for protocol, records and tables.

    The order of the first twelve is the order in which one move is judged; kernels use `code`.
    """

    KING_CAPTURED = "king_captured"
    KING_ESCAPED = "king_escaped"
    EXIT_FORT = "exit_fort"
    SURROUNDED = "surrounded"
    ALL_CAPTURED = "all_captured"
    SEALED = "sealed"
    NO_LEGAL_MOVE = "no_legal_move"
    REPETITION = "repetition"
    DRAW_FORT = "draw_fort"
    MATERIAL = "material"
    QUIET_LIMIT = "quiet_limit"
    MOVE_LIMIT = "move_limit"
    CONNECTED = "connected"
    FAR_ROW = "far_row"
    TIME = "time"
    ILLEGAL_MOVE = "illegal_move"
    CRASH = "crash"
    DISCONNECT = "disconnect"
    STALL = "stall"
    RESIGNATION = "resignation"
    AGREED_DRAW = "agreed_draw"
    ADJUDICATED = "adjudicated"
    PLY_CAP = "ply_cap"
    INTERRUPTED = "interrupted"
    START_FAILURE = "start_failure"

    @property
    def code(self) -> int:
        """1-based place in this list; 0 is free for "not over"."""
        return _CODES[self]

    @property
    def words(self) -> str:
        """The reason as people read it: blanks for underscores."""
        return self.value.replace("_", " ")

    @classmethod
    def from_code(cls, code: int) -> Reason:
        """The reason with this number in an outcome, from 1 on."""
        return _REASONS[code - 1]


_REASONS: tuple[Reason, ...] = tuple(Reason)
_CODES: dict[Reason, int] = {reason: index for index, reason in enumerate(_REASONS, start=1)}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a game ended: the winner (None for a draw) and the reason."""

    winner: Side | None
    reason: Reason

    @property
    def text(self) -> str:
        """As machines write it: `d king_escaped`, `draw repetition`."""
        return f"{self.result} {self.reason}"

    @property
    def result(self) -> str:
        """`a`, `d` or `draw`."""
        return "draw" if self.winner is None else self.winner.letter
