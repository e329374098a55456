"""The hexapawn state and all its kernels, under the names every game has.

A pawn has a number within its side for the whole game; a cell holds (side + 1) << 5 | number, 0 where it is empty
and `WALL` outside the board. `make` decides every end itself, a blocked opponent included. Pawns only go forward,
so nothing ever repeats and no game is longer than the undo stack.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import from_dtype
from numba.extending import overload

from ... import verbs
from ...compile.jit import BINDING, entry, inline, kernel
from ...dice import below
from ...squares import CELLS, MAX_SIZE, STRIDE
from ...verbs import MOVES

WALL = 4 << 5
ALL_CAPTURED, NO_LEGAL_MOVE, FAR_ROW = 5, 7, 14
PLIES = 1024
"""Depth of the undo stack: two sides of 19 pawns make at most 2 * 19 * 18 steps."""

_i = "i8"
_POSITION: list[Any] = [
    ("key", "u8"),
    ("side", _i),
    ("ply", _i),
    ("before", _i),  # plies before the start of this game, as its move number says
    ("quiet", _i),  # plies since the last capture
    ("caught_top", _i),
    ("outcome", _i),
    ("files", _i),
    ("ranks", _i),
    ("count", _i, (2,)),  # pawns on the board
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
    """A record for boards of any size, in a one-element recarray, with no position in it."""
    record = np.zeros(1, HEXAPAWN).view(np.recarray)
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
    """Whether a square lies on the row that the pawns of a side want to reach."""
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
            if s.board[t] == 0 or s.board[t - 1] >> 5 == enemy or s.board[t + 1] >> 5 == enemy:
                return True
    return False


@entry
def generate(s, top):
    """All legal moves of the side to move, from `s.moves[top]` on; returns the index behind the last."""
    side = int(s.side)
    step = STRIDE - 2 * STRIDE * side
    enemy = 2 - side
    end = int(top)
    for i in range(s.files):
        o = int(s.pawns[side, i])
        if o:
            t = o + step
            if s.board[t] == 0:
                s.moves[end] = o | t << 9
                end += 1
            if s.board[t - 1] >> 5 == enemy:
                s.moves[end] = o | (t - 1) << 9
                end += 1
            if s.board[t + 1] >> 5 == enemy:
                s.moves[end] = o | (t + 1) << 9
                end += 1
    return end


@inline
def weight(s, move):
    """The far row is worth more than any capture; everything else is quiet."""
    if is_far(s, move >> 9, s.side):
        return 255
    return 128 if s.board[move >> 9] else 0


@kernel
def generate_noisy(s, top):
    """The moves that capture or reach the far row."""
    end = generate(s, top)
    kept = int(top)
    for i in range(kept, end):
        if weight(s, int(s.moves[i])):
            s.moves[kept] = s.moves[i]
            kept += 1
    return kept


@entry
def make(s, move):
    """Play a legal move and judge it: the far row comes before the last pawn, that before a blocked opponent."""
    o = int(move & 511)
    t = int(move >> 9)
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
        s.pawns[other, caught & 31] = 0
        s.count[other] -= 1
        s.key ^= s.zobrist[other, t]
        s.caught_top += 1
        s.quiet = 0
    cell = int(s.board[o])
    s.board[o] = 0
    s.board[t] = cell
    s.pawns[side, cell & 31] = t
    s.key ^= s.zobrist[side, o] ^ s.zobrist[side, t] ^ s.side_zobrist
    s.side = other
    won = (side + 1) << 8
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
    o = int(move & 511)
    t = int(move >> 9)
    other = int(s.side)
    side = 1 - other
    caught = int(s.u_caught[ply])
    cell = int(s.board[t])
    s.board[o] = cell
    s.board[t] = caught
    s.pawns[side, cell & 31] = o
    if caught:
        s.pawns[other, caught & 31] = t
        s.count[other] += 1
        s.caught_top -= 1
    s.key = s.u_key[ply]
    s.quiet = s.u_quiet[ply]
    s.side = side
    s.outcome = 0
    s.ply = ply - 1


@inline
def stuck(s):
    """The side to move has no move and has lost."""
    return NO_LEGAL_MOVE | (2 - s.side) << 8


@entry
def set_up(s):
    """Key and outcome of a position whose pawns stand on `s.board` and in `s.pawns`."""
    s.key = whole_key(s)
    s.outcome = 0
    for side in range(2):
        for i in range(s.files):
            if s.pawns[side, i] and is_far(s, s.pawns[side, i], side):
                s.outcome = FAR_ROW | (side + 1) << 8
                return
    for side in range(2):
        if s.count[1 - side] == 0:
            s.outcome = ALL_CAPTURED | (side + 1) << 8
            return
    if not can_move(s):
        s.outcome = stuck(s)


@inline
def adjudicate(s, root):
    """No position comes again, and nothing is limited."""
    return 0


@inline
def horizon(s):
    """No limit is ever near."""
    return 0


@kernel
def random_move(s):
    """A uniformly random legal move, 0 if there is none."""
    end = generate(s, 0)
    if end == 0:
        return 0
    return int(s.moves[below(s, end)])


@inline
def win_at_once(s, top):
    """Not looked for: quiescence sees the far row."""
    return 0


@inline
def looming(s, top):
    """Not looked for: quiescence sees the far row."""
    return 0


@inline
def skip(s):
    """Having to move is what decides most endings."""
    return 0


@inline
def unskip(s):
    """There is nothing to take back."""


STATE = from_dtype(HEXAPAWN)

# Each overload must be a plain module-level function: one made by a factory never hits numba's disk cache.


@overload(verbs.generate, jit_options=BINDING)
def _generate(state, top):
    if state == STATE:
        return lambda state, top: generate(state, top)


@overload(verbs.generate_noisy, jit_options=BINDING)
def _generate_noisy(state, top):
    if state == STATE:
        return lambda state, top: generate_noisy(state, top)


@overload(verbs.make, jit_options=BINDING)
def _make(state, move):
    if state == STATE:
        return lambda state, move: make(state, move)


@overload(verbs.undo, jit_options=BINDING)
def _undo(state):
    if state == STATE:
        return lambda state: undo(state)


@overload(verbs.adjudicate, jit_options=BINDING)
def _adjudicate(state, root):
    if state == STATE:
        return lambda state, root: adjudicate(state, root)


@overload(verbs.stuck, jit_options=BINDING)
def _stuck(state):
    if state == STATE:
        return lambda state: stuck(state)


@overload(verbs.can_move, jit_options=BINDING)
def _can_move(state):
    if state == STATE:
        return lambda state: can_move(state)


@overload(verbs.horizon, jit_options=BINDING)
def _horizon(state):
    if state == STATE:
        return lambda state: horizon(state)


@overload(verbs.weight, jit_options=BINDING)
def _weight(state, move):
    if state == STATE:
        return lambda state, move: weight(state, move)


@overload(verbs.win_at_once, jit_options=BINDING)
def _win_at_once(state, top):
    if state == STATE:
        return lambda state, top: win_at_once(state, top)


@overload(verbs.looming, jit_options=BINDING)
def _looming(state, top):
    if state == STATE:
        return lambda state, top: looming(state, top)


@overload(verbs.skip, jit_options=BINDING)
def _skip(state):
    if state == STATE:
        return lambda state: skip(state)


@overload(verbs.unskip, jit_options=BINDING)
def _unskip(state):
    if state == STATE:
        return lambda state: unskip(state)


@overload(verbs.image_key, jit_options=BINDING)
def _image_key(state, squares):
    if state == STATE:
        return lambda state, squares: image_key(state, squares)


@overload(verbs.random_move, jit_options=BINDING)
def _random_move(state):
    if state == STATE:
        return lambda state: random_move(state)


verbs.KERNELS.update(
    {
        ("generate", HEXAPAWN): generate,
        ("generate_noisy", HEXAPAWN): generate_noisy,
        ("make", HEXAPAWN): make,
        ("undo", HEXAPAWN): undo,
        ("adjudicate", HEXAPAWN): adjudicate,
        ("stuck", HEXAPAWN): stuck,
        ("can_move", HEXAPAWN): can_move,
        ("horizon", HEXAPAWN): horizon,
        ("weight", HEXAPAWN): weight,
        ("win_at_once", HEXAPAWN): win_at_once,
        ("looming", HEXAPAWN): looming,
        ("skip", HEXAPAWN): skip,
        ("unskip", HEXAPAWN): unskip,
        ("image_key", HEXAPAWN): image_key,
        ("random_move", HEXAPAWN): random_move,
    }
)
