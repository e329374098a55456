"""The hexapawn state and all its kernels, under the names every game has.

A pawn has a number within its side for the whole game; a cell holds (side + 1) << OWNER | number, 0 if it is empty and
`WALL` off the board. `make` detects every end itself, a blocked opponent included. Pawns only advance, so no position
repeats and no game is longer than the undo stack.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...compile import structs
from ...compile.jit import entry, inline, kernel
from ...compile.rng import randbelow
from ...sides import WINNER, Reason
from ...squares import CELLS, MAX_SIZE, ORIGIN, STRIDE, TARGET
from ..defaults import DEFAULTS
from ..interface import MOVES, bind
from .policy import move_index

OWNER = 5
"""The first bit of a cell's owner, the side + 1; below it is the pawn's number."""
NUMBER = (1 << OWNER) - 1
WALL = 4 << OWNER
ALL_CAPTURED, NO_LEGAL_MOVE, FAR_ROW = (
    reason.code for reason in (Reason.ALL_CAPTURED, Reason.NO_LEGAL_MOVE, Reason.FAR_ROW)
)
REACHES_FAR_ROW, CAPTURES = 255, 128
"""The order of such moves."""
PLIES = 1024
"""Depth of the undo stack: two sides of 19 pawns make at most 2 * 19 * 18 steps."""

_i = "i8"
_POSITION: list[Any] = [
    ("key", "u8"),
    ("side", _i),
    ("ply", _i),
    ("before", _i),  # plies played before the position that was loaded, from its move number
    ("quiet", _i),  # plies since the last capture
    ("caught_top", _i),
    ("outcome", _i),
    ("files", _i),
    ("ranks", _i),
    ("count", _i, (2,)),  # number of pawns
    ("pawns", "i2", (2, MAX_SIZE)),  # square by number, 0 for a captured pawn
    ("board", "u1", (CELLS,)),
]
_STACKS: list[Any] = [
    ("u_key", "u8", (PLIES,)),
    ("u_move", "i4", (PLIES,)),
    ("u_quiet", "i4", (PLIES,)),
    ("u_caught", "u1", (PLIES,)),  # the cell of the captured pawn, else 0
    ("moves", "i4", (MOVES,)),
    ("random", "u8"),
    ("tally", _i, (8,)),
]
_TABLES: list[Any] = [("zobrist", "u8", (2, CELLS)), ("side_zobrist", "u8")]

POSITION = np.dtype(_POSITION, align=True)
HEXAPAWN = np.dtype(_POSITION + _STACKS + _TABLES, align=True)
CORE = slice(0, POSITION.itemsize)
"""Bytes of the record that are the position, laid out as `POSITION`."""


def new_state() -> Any:
    """A record for boards of any size, in a one-element array, with no position in it."""
    record = structs.zeros(HEXAPAWN)
    words = np.random.default_rng(0x9E8A).integers(1 << 64, size=(2, CELLS), dtype=np.uint64)
    record[0]["zobrist"] = words
    record[0]["side_zobrist"] = words[0, 0]  # no pawn ever stands on cell 0
    record[0]["random"] = 1
    return record


@entry
def whole_key(s):
    """The key of the position from scratch; `make` and `undo` must always agree with it."""
    key = np.uint64(0)
    for side in range(2):
        for i in range(s.files):
            if s.pawns[side, i]:
                key ^= s.zobrist[side, s.pawns[side, i]]
    if s.side:
        key ^= s.side_zobrist
    return key


@kernel
def image_key(s, squares):
    """The key that the image of the position has when square `i` goes to `squares[i]`."""
    key = np.uint64(0)
    for side in range(2):
        for i in range(s.files):
            if s.pawns[side, i]:
                key ^= s.zobrist[side, squares[s.pawns[side, i]]]
    if s.side:
        key ^= s.side_zobrist
    return key


@inline
def is_far(s, sq, side):
    """Whether a square lies on the row that a side's pawns have to reach."""
    return sq < 2 * STRIDE if side else sq >= s.ranks * STRIDE


@kernel
def can_move(s):
    """Whether the side to move has a legal move."""
    side = int(s.side)
    step = STRIDE - 2 * STRIDE * side
    enemy = 2 - side
    for i in range(s.files):
        o = int(s.pawns[side, i])
        if o:
            t = o + step
            if s.board[t] == 0 or s.board[t - 1] >> OWNER == enemy or s.board[t + 1] >> OWNER == enemy:
                return True
    return False


@entry
def generate(s, top):
    """All legal moves of the side to move, from `s.moves[top]` on; returns the index after the last."""
    side = int(s.side)
    step = STRIDE - 2 * STRIDE * side
    enemy = 2 - side
    end = int(top)
    for i in range(s.files):
        o = int(s.pawns[side, i])
        if o:
            t = o + step
            if s.board[t] == 0:
                s.moves[end] = o | t << TARGET
                end += 1
            if s.board[t - 1] >> OWNER == enemy:
                s.moves[end] = o | (t - 1) << TARGET
                end += 1
            if s.board[t + 1] >> OWNER == enemy:
                s.moves[end] = o | (t + 1) << TARGET
                end += 1
    return end


@inline
def order_score(s, move):
    """Reaching the far row comes before captures; all other moves are quiet (0)."""
    if is_far(s, move >> TARGET, s.side):
        return REACHES_FAR_ROW
    return CAPTURES if s.board[move >> TARGET] else 0


@kernel
def generate_noisy(s, top):
    """The moves that capture or reach the far row."""
    end = generate(s, top)
    kept = int(top)
    for i in range(kept, end):
        if order_score(s, int(s.moves[i])):
            s.moves[kept] = s.moves[i]
            kept += 1
    return kept


@entry
def make(s, move):
    """Play a legal move and set the outcome: far row first, then no pawns left, then a blocked opponent."""
    o = int(move & ORIGIN)
    t = int(move >> TARGET)
    side = int(s.side)
    other = 1 - side
    ply = int(s.ply) + 1
    caught = int(s.board[t])
    s.ply = ply
    s.u_key[ply] = s.key
    s.u_move[ply] = move
    s.u_quiet[ply] = s.quiet
    s.u_caught[ply] = caught
    s.quiet += 1
    if caught:
        s.pawns[other, caught & NUMBER] = 0
        s.count[other] -= 1
        s.key ^= s.zobrist[other, t]
        s.caught_top += 1
        s.quiet = 0
    cell = int(s.board[o])
    s.board[o] = 0
    s.board[t] = cell
    s.pawns[side, cell & NUMBER] = t
    s.key ^= s.zobrist[side, o] ^ s.zobrist[side, t] ^ s.side_zobrist
    s.side = other
    won = (side + 1) << WINNER
    if is_far(s, t, side):
        s.outcome = FAR_ROW | won
    elif s.count[other] == 0:
        s.outcome = ALL_CAPTURED | won
    elif not can_move(s):
        s.outcome = NO_LEGAL_MOVE | won


@entry
def undo(s):
    """Take the last move back, every byte of the position."""
    ply = int(s.ply)
    move = int(s.u_move[ply])
    o = int(move & ORIGIN)
    t = int(move >> TARGET)
    other = int(s.side)
    side = 1 - other
    caught = int(s.u_caught[ply])
    cell = int(s.board[t])
    s.board[o] = cell
    s.board[t] = caught
    s.pawns[side, cell & NUMBER] = o
    if caught:
        s.pawns[other, caught & NUMBER] = t
        s.count[other] += 1
        s.caught_top -= 1
    s.key = s.u_key[ply]
    s.quiet = s.u_quiet[ply]
    s.side = side
    s.outcome = 0
    s.ply = ply - 1


@inline
def no_move_outcome(s):
    """The outcome for a side to move without a legal move: it has lost."""
    return NO_LEGAL_MOVE | (2 - s.side) << WINNER


@entry
def set_up(s):
    """Key and outcome of a position whose pawns stand on `s.board` and in `s.pawns`."""
    s.key = whole_key(s)
    s.outcome = 0
    for side in range(2):
        for i in range(s.files):
            if s.pawns[side, i] and is_far(s, s.pawns[side, i], side):
                s.outcome = FAR_ROW | (side + 1) << WINNER
                return
    for side in range(2):
        if s.count[1 - side] == 0:
            s.outcome = ALL_CAPTURED | (side + 1) << WINNER
            return
    if not can_move(s):
        s.outcome = no_move_outcome(s)


@kernel
def random_move(s):
    """A uniformly random legal move, 0 if there is none."""
    end = generate(s, 0)
    if end == 0:
        return 0
    return int(s.moves[randbelow(s, end)])


bind(
    HEXAPAWN,
    # No threats: quiescence sees the far row. No null moves: zugzwang decides most endings.
    **DEFAULTS,
    generate=generate,
    generate_noisy=generate_noisy,
    make=make,
    undo=undo,
    no_move_outcome=no_move_outcome,
    can_move=can_move,
    order_score=order_score,
    image_key=image_key,
    move_index=move_index,
    random_move=random_move,
)
