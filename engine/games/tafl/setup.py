"""Setting up a position and its outcome (kernels called once per position, not once per node)."""

from __future__ import annotations

import numpy as np

from ...compile.jit import entry, kernel
from ...squares import TARGET
from .adjudication import can_move, finish_turn, legal_after, no_move_outcome
from .codes import (
    ALL_CAPTURED,
    ATTACKERS,
    DEFENDERS,
    EMPTY,
    EXIT_FORT,
    KING,
    KING_CAPTURED,
    KING_ESCAPED,
    PIECE,
    SEALED,
    SIDE,
    SURROUNDED,
    WALL,
)
from .make import apply, make, revert
from .movegen import can_reach
from .win_conditions import fort_holds, is_surrounded, opentafl_end, sealed


@entry
def whole_key(s):
    """The key of the position from scratch; `make` and `undo` must always agree with it."""
    key = np.uint64(0)
    for side in range(2):
        for i in range(s.count[side]):
            sq = s.pieces[side, i]
            key ^= s.zobrist[s.board[sq] & PIECE, sq]
    if s.side:
        key ^= s.side_zobrist
    if s.must_go:
        key ^= s.must_zobrist[s.must_go]
    return key


@kernel
def image_key(s, squares):
    """The key that the image of the position has when square `i` goes to `squares[i]`."""
    key = np.uint64(0)
    for side in range(2):
        for i in range(s.count[side]):
            sq = s.pieces[side, i]
            key ^= s.zobrist[s.board[sq] & PIECE, squares[sq]]
    if s.side:
        key ^= s.side_zobrist
    if s.must_go:
        key ^= s.must_zobrist[squares[s.must_go]]
    return key


@kernel
def standing_outcome(s):
    """The outcome of a position from the board alone, without regard to the last move; 0 if the game is not over."""
    king = s.king
    if s.opentafl:
        return opentafl_end(s, king == 0, True)
    if king == 0:
        return KING_CAPTURED
    if s.goal[king]:
        return KING_ESCAPED
    if s.exit_fort and s.edge[king] and fort_holds(s):
        return EXIT_FORT
    if s.encirclement and is_surrounded(s):
        return SURROUNDED
    if s.count[ATTACKERS] == 0 and s.capture_all:
        return ALL_CAPTURED
    if s.sealed and sealed(s):
        return SEALED
    return 0


@entry
def set_up(s, start_counts):
    """Set lists, key, history and outcome from `s.board` and the counters, for a position without history.

    With `repetition_start = no` (`start_counts` false) the position leaves no trace in the history.
    """
    s.count[ATTACKERS] = 0
    s.count[DEFENDERS] = 0
    s.king = 0
    for sq in range(s.board.size):
        p = s.board[sq] & PIECE
        s.slot[sq] = 0
        if p != EMPTY and p != WALL:
            side = p >> SIDE
            n = s.count[side]
            s.pieces[side, n] = sq
            s.slot[sq] = n
            s.count[side] = n + 1
            if p == KING:
                s.king = sq
    s.key = whole_key(s)
    s.ply = 0
    s.since = 0
    s.caught_top = 0
    s.outcome = 0
    s.keys[0] = 0
    s.fort_keys[0] = 0
    s.u_side[0] = 0
    if start_counts and s.must_go == 0:
        s.keys[0] = s.key
        if s.repetition_board and s.side:
            s.keys[0] = s.key ^ s.side_zobrist
    s.outcome = standing_outcome(s)
    if s.outcome == 0 and not can_move(s):
        s.outcome = no_move_outcome(s)


@entry
def lawful(s, o, t):
    """Whether the move from `o` to `t`, two squares of the board, is legal in a game that is not over."""
    p = s.board[o] & PIECE
    if p == 0 or p >> SIDE != s.side or o == t or (s.must_go and s.must_go != o):
        return False
    return can_reach(s, o, t) and legal_after(s, o | t << TARGET)


@entry
def advance(states, o, t):
    """Play a move and apply all the rules; returns how many men it took, or -1 (nothing played) if it is illegal.

    The stack of captures is cleared first, so that it holds this move's men and nothing before it can be undone.
    `states` is an array of one element, because passing one is several times faster than passing a record.
    """
    s = states[0]
    if s.outcome or not lawful(s, o, t):
        return -1
    s.caught_top = 0
    make(s, o | t << TARGET)
    finish_turn(s)
    return s.caught_top


@entry
def victims(states, o, t):
    """Make and undo the captures of a move; returns their number, and leaves the entries on `s.caught`.

    `states` is an array of one element, as for `advance`: this is called for every move of a position.
    """
    s = states[0]
    caught = s.caught_top
    key = s.key
    apply(s, o, t)
    n = s.caught_top - caught
    revert(s, o, t, caught)
    s.key = key
    return n
