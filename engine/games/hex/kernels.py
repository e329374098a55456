"""Making, undoing and finding moves in Hex (kernels).

Each stone is marked as connected to an edge at most once, by a flood fill from the stone that made the
connection; a stone connected to both edges wins. A whole game therefore costs no more than one flood fill of its board.
"""

from __future__ import annotations

import numpy as np

from ...compile.jit import entry, inline, kernel
from ...compile.rng import randbelow
from ...sides import WINNER, Reason
from ...squares import STRIDE, SWAP, TARGET
from ..defaults import DEFAULTS
from ..interface import bind
from .distances import survey, through
from .policy import move_index
from .state import EDGES, HEX, NEIGHBOURS, O, X, joined

CONNECTED = Reason.CONNECTED.code
WINS, BLOCKS, QUIET = 255, 254, 250
"""The order of a move that wins and of one that prevents a win; all others are below `QUIET`."""


@inline
def mirrored(s, sq):
    """The image of a cell in the long diagonal: row and column exchanged, rows counted from the top."""
    file, rank = sq % STRIDE - 1, sq // STRIDE - 1
    return (s.files - file) * STRIDE + s.files - rank


@inline
def exchange(s, i, j):
    """Swap the entries `i` and `j` of the list of cells."""
    a, b = int(s.cells[i]), int(s.cells[j])
    s.cells[i], s.cells[j] = b, a
    s.place[a], s.place[b] = j, i


@inline
def put(s, sq, side):
    """Put a stone on the board, and mark the stones connected to it with its edges."""
    owner = X << side
    place = int(s.place[sq])
    s.empty -= 1
    exchange(s, place, s.empty)
    s.key ^= s.zobrist[side, sq]
    edges = joined(s, sq, owner)
    s.board[sq] = owner | edges
    if edges == EDGES:
        s.outcome = CONNECTED | (side + 1) << WINNER
    elif edges:
        # The stack of newly marked stones is also the queue of the flood fill.
        head = s.told
        while True:
            for d in NEIGHBOURS:
                # Only stones without an edge so far: the frame has one, and a neighbouring stone with the other edge
                # has made `edges` EDGES.
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
    """Whether the side to move may swap, from the board alone."""
    return s.swap != 0 and s.side == 1 and s.empty == s.files * s.files - 1


@entry
def set_up(s, sq, side):
    """Put a stone on the board before the game begins."""
    put(s, sq, side)


@entry
def make(s, move):
    """Play a legal move."""
    side = s.side
    sq = move >> TARGET
    s.ply += 1
    s.u_move[s.ply] = move
    s.u_told[s.ply] = s.told
    if move == SWAP:
        # The last in the list, so that freeing it changes no order.
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
        s.moves[top + i] = sq | sq << TARGET
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
            s.moves[top] = sq | sq << TARGET
            top += 1
    return top


@entry
def order_score(s, move):
    """The order of a move: WINS if it wins, BLOCKS if it stops the opponent from winning there; else the shorter
    either side's paths through the cell, the higher, the mover's own counting slightly more.
    """
    if move == SWAP:
        return 0
    sq = move >> TARGET
    if joined(s, sq, X << s.side) == EDGES:
        return WINS
    if joined(s, sq, O >> s.side) == EDGES:
        return BLOCKS
    slot = survey(s)
    own = through(s, slot, s.side, sq)
    return max(0, QUIET - 4 * min(own, through(s, slot, 1 - s.side, sq)) - own)


@entry
def random_move(s):
    """A uniformly random legal move, 0 on a full board."""
    swap = 1 if may_swap(s) else 0
    if s.empty == 0:
        return 0
    i = randbelow(s, s.empty + swap)
    if i == s.empty:
        return SWAP
    sq = int(s.cells[i])
    return sq | sq << TARGET


@inline
def can_move(s):
    """Whether a cell is empty."""
    return s.empty > 0


@entry
def no_move_outcome(s):
    """The outcome that `put` has found: on a full board one side is always connected."""
    return s.outcome


@entry
def whole_key(s):
    """The key from scratch."""
    key = s.side_zobrist if s.side else np.uint64(0)
    for i in range(s.empty, s.files * s.files):
        sq = int(s.cells[i])
        key ^= s.zobrist[0 if s.board[sq] & X else 1, sq]
    return key


@kernel
def image_key(s, squares):
    """The key that the image of the position has when square `i` goes to `squares[i]`."""
    key = s.side_zobrist if s.side else np.uint64(0)
    for i in range(s.empty, s.files * s.files):
        sq = int(s.cells[i])
        key ^= s.zobrist[0 if s.board[sq] & X else 1, squares[sq]]
    return key


bind(
    HEX,
    # The evaluator counts stones, and a pass would give one away.
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
