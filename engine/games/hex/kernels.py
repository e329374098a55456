"""Hex in one structured record: stones that know which of their edges they are joined with (kernels).

A cell is a byte: whose it is in bits 2 and 3, and in bits 0 and 1 which of its owner's two edges its chain reaches.
The frame around the board belongs to whoever owns that edge, so that stones are joined with edges as they are with
each other. A stone learns of each edge once, from the stone that brings the news; the stone that learns of both
wins. The news is one flood, and every stone hears it at most once: a whole game costs no more than its board.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import from_dtype
from numba.extending import overload

from ... import verbs
from ...dice import below
from ...jit import OPTIONS, entry, inline
from ...sides import Reason
from ...squares import CELLS, STRIDE, SWAP, file_of, rank_of, square
from ...verbs import MOVES

EDGES = 3
"""Both edges of a side: 1 is top or left, 2 is bottom or right."""
X, O = 4, 8
"""Owner bits; a side's is `X << side`."""
OUTSIDE = 16
"""Set on every cell around the board, the frame's too. An empty cell is 0."""
NEIGHBOURS = (STRIDE, STRIDE + 1, 1, -STRIDE, -STRIDE - 1, -1)
"""The six neighbours of a cell, all the way round."""
CONNECTED = Reason.CONNECTED.code
PLIES = 512

_i = "i8"

HEX = np.dtype(
    [
        ("zobrist", "u8", (2, CELLS)),
        ("side_zobrist", "u8"),
        ("files", _i),
        ("swap", _i),  # 1 where the second ply may take over the first stone
        # The position, restored by `undo`.
        ("key", "u8"),
        ("side", _i),
        ("ply", _i),
        ("outcome", _i),
        ("empty", _i),  # number of empty cells
        ("told", _i),  # fill of the stack of stones that learnt of an edge
        ("board", "i1", (CELLS,)),
        ("cells", "i2", (CELLS,)),  # every cell of the board: the empty ones, then the stones as they came
        ("place", "i2", (CELLS,)),  # where in `cells` a cell stands
        # Stacks.
        ("news", "i2", (CELLS,)),  # stones that learnt of an edge, in that order
        ("u_move", "i4", (PLIES,)),
        ("u_told", "i2", (PLIES,)),
        ("u_place", "i2", (PLIES,)),
        ("moves", "i4", (MOVES,)),
        ("caught_top", _i),  # nothing is ever caught
        ("random", "u8"),
        ("tally", _i, (8,)),
    ],
    align=True,
)
CORE = slice(HEX.fields["files"][1], HEX.fields["news"][1])  # type: ignore[index]
"""Bytes of the record that are the position."""


def new_record(size: int, swap: bool) -> Any:
    """A one-element recarray with an empty board of `size` x `size` cells, `a` to move."""
    record = np.zeros(1, HEX).view(np.recarray)
    whole = record.view(np.uint8).reshape(-1)
    empty = _empty_board(size, swap)
    whole[: len(empty)] = np.frombuffer(empty, np.uint8)
    record[0]["random"] = 1
    return record


@lru_cache(maxsize=64)
def _empty_board(size: int, swap: bool) -> bytes:
    """The bytes of a record before its stacks."""
    record = np.zeros(1, HEX).view(np.recarray)
    s = record[0]
    draw = np.random.Generator(np.random.PCG64(1942))
    s["zobrist"] = draw.integers(0, 1 << 64, (2, CELLS), np.uint64)
    s["side_zobrist"] = draw.integers(0, 1 << 64, dtype=np.uint64)
    s["files"], s["swap"] = size, swap
    board = np.full(CELLS, OUTSIDE, np.int8)
    for i in range(size):
        board[square(i, size)] |= X | 1
        board[square(i, -1)] |= X | 2
        board[square(-1, i)] |= O | 1
        board[square(size, i)] |= O | 2
    # The middle comes first: there the best moves are, other things being equal.
    twice = [2 * i - size + 1 for i in range(size)]
    listed = sorted(
        (square(file, rank) for file in range(size) for rank in range(size)),
        key=lambda sq: _distance(twice[file_of(sq)], twice[rank_of(sq)]),
    )
    board[listed] = 0
    s["board"] = board
    s["empty"] = len(listed)
    s["cells"][: len(listed)] = listed
    s["place"][listed] = range(len(listed))
    return record.view(np.uint8).reshape(-1)[: CORE.stop].tobytes()


def _distance(x: int, y: int) -> int:
    """The square of a distance on the rhombus, where (1, 1) is as long as (1, 0) and (0, 1)."""
    return x * x + y * y - x * y


@inline
def joined(s, sq, owner):
    """The edges that a stone of `owner` on `sq` is joined with, by its neighbours."""
    found = 0
    for d in NEIGHBOURS:
        c = int(s.board[sq + d])
        if c & owner:
            found |= c
    return found & EDGES


@inline
def mirrored(s, sq):
    """The image of a cell in the long diagonal: row and column exchanged, rows counted from the top."""
    file, rank = sq % STRIDE - 1, sq // STRIDE - 1
    return (s.files - file) * STRIDE + s.files - rank


@inline
def exchange(s, i, j):
    """Let the cells in places `i` and `j` of the list change places."""
    a, b = int(s.cells[i]), int(s.cells[j])
    s.cells[i], s.cells[j] = b, a
    s.place[a], s.place[b] = j, i


@inline
def put(s, sq, side):
    """Put a stone down, and let the stones joined with it know of its edges."""
    owner = X << side
    place = int(s.place[sq])
    s.empty -= 1
    exchange(s, place, s.empty)
    s.key ^= s.zobrist[side, sq]
    edges = joined(s, sq, owner)
    s.board[sq] = owner | edges
    if edges == EDGES:
        s.outcome = CONNECTED | (side + 1) << 8
    elif edges:
        # The stack of those who were told is also the queue of those who tell.
        head = s.told
        while True:
            for d in NEIGHBOURS:
                # Only stones that know of no edge: the frame does, and who knows of the other one makes `edges` 3.
                if s.board[sq + d] == owner:
                    s.board[sq + d] = owner | edges
                    s.news[s.told] = sq + d
                    s.told += 1
            if head == s.told:
                break
            sq = int(s.news[head])
            head += 1
    return place


@inline
def may_swap(s):
    """Whether the side to move may take over the only stone: told by the board alone."""
    return s.swap != 0 and s.side == 1 and s.empty == s.files * s.files - 1


@entry
def set_up(s, sq, side):
    """Put a stone on the board before the game begins."""
    put(s, sq, side)


@entry
def make(s, move):
    """Play a legal move."""
    side = s.side
    sq = move >> 9
    s.ply += 1
    s.u_move[s.ply] = move
    s.u_told[s.ply] = s.told
    if move == SWAP:
        # The last in the list: giving it back to the empty cells changes no order.
        old = int(s.cells[s.empty])
        s.board[old] = 0
        s.key ^= s.zobrist[0, old]
        s.empty += 1
        sq = mirrored(s, old)
    s.u_place[s.ply] = put(s, sq, side)
    s.side = 1 - side
    s.key ^= s.side_zobrist


@entry
def undo(s):
    """Take the last move back."""
    ply = s.ply
    side = 1 - s.side
    while s.told > s.u_told[ply]:
        s.told -= 1
        s.board[s.news[s.told]] &= ~EDGES
    sq = int(s.cells[s.empty])
    s.board[sq] = 0
    s.key ^= s.zobrist[side, sq] ^ s.side_zobrist
    exchange(s, int(s.u_place[ply]), s.empty)
    s.empty += 1
    if s.u_move[ply] == SWAP:
        s.empty -= 1
        old = int(s.cells[s.empty])
        s.board[old] = X | joined(s, old, X)
        s.key ^= s.zobrist[0, old]
    s.side = side
    s.outcome = 0
    s.ply = ply - 1


@entry
def generate(s, top):
    """All legal moves."""
    for i in range(s.empty):
        sq = int(s.cells[i])
        s.moves[top + i] = sq | sq << 9
    top += s.empty
    if may_swap(s):
        s.moves[top] = SWAP
        top += 1
    return top


@entry
def generate_noisy(s, top):
    """The moves that win at once."""
    owner = X << s.side
    for i in range(s.empty):
        sq = int(s.cells[i])
        if joined(s, sq, owner) == EDGES:
            s.moves[top] = sq | sq << 9
            top += 1
    return top


@entry
def weight(s, move):
    """2 for a move that wins, 1 for one in whose place the other side would win, else 0."""
    if move == SWAP:
        return 0
    sq = move >> 9
    if joined(s, sq, X << s.side) == EDGES:
        return 2
    if joined(s, sq, O >> s.side) == EDGES:
        return 1
    return 0


@entry
def random_move(s):
    """A uniformly random legal move, 0 on a full board."""
    swap = 1 if may_swap(s) else 0
    if s.empty == 0:
        return 0
    i = below(s, s.empty + swap)
    if i == s.empty:
        return SWAP
    sq = int(s.cells[i])
    return sq | sq << 9


@entry
def stuck(s):
    """What `put` has found: on a full board one side is always joined."""
    return s.outcome


@entry
def whole_key(s):
    """The key from scratch."""
    key = s.side_zobrist if s.side else np.uint64(0)
    for i in range(s.empty, s.files * s.files):
        sq = int(s.cells[i])
        key ^= s.zobrist[0 if s.board[sq] & X else 1, sq]
    return key


STATE = from_dtype(HEX)

# Each overload must be a plain module-level function: one made by a factory never hits numba's disk cache.


@overload(verbs.generate, jit_options=OPTIONS)
def _generate(state, top):
    if state == STATE:
        return lambda state, top: generate(state, top)


@overload(verbs.generate_noisy, jit_options=OPTIONS)
def _generate_noisy(state, top):
    if state == STATE:
        return lambda state, top: generate_noisy(state, top)


@overload(verbs.make, jit_options=OPTIONS)
def _make(state, move):
    if state == STATE:
        return lambda state, move: make(state, move)


@overload(verbs.undo, jit_options=OPTIONS)
def _undo(state):
    if state == STATE:
        return lambda state: undo(state)


@overload(verbs.adjudicate, jit_options=OPTIONS)
def _adjudicate(state, root):
    if state == STATE:
        return lambda state, root: 0


@overload(verbs.stuck, jit_options=OPTIONS)
def _stuck(state):
    if state == STATE:
        return lambda state: stuck(state)


@overload(verbs.horizon, jit_options=OPTIONS)
def _horizon(state):
    if state == STATE:
        return lambda state: 0


@overload(verbs.weight, jit_options=OPTIONS)
def _weight(state, move):
    if state == STATE:
        return lambda state, move: weight(state, move)


@overload(verbs.random_move, jit_options=OPTIONS)
def _random_move(state):
    if state == STATE:
        return lambda state: random_move(state)


verbs.KERNELS.update(
    {
        ("generate", HEX): generate,
        ("generate_noisy", HEX): generate_noisy,
        ("make", HEX): make,
        ("undo", HEX): undo,
        ("adjudicate", HEX): lambda state, root: 0,
        ("stuck", HEX): stuck,
        ("horizon", HEX): lambda state: 0,
        ("weight", HEX): weight,
        ("random_move", HEX): random_move,
    }
)
