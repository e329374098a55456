"""Making, undoing and finding moves in Hex (kernels).

A stone learns of each edge once, from the stone that brings the news; the stone that learns of both wins. The news
is one flood, and every stone hears it at most once: a whole game costs no more than its board.
"""

from __future__ import annotations

import numpy as np
from numba import from_dtype
from numba.extending import overload

from ... import verbs
from ...compile.jit import BINDING, entry, inline, kernel
from ...dice import below
from ...sides import Reason
from ...squares import STRIDE, SWAP
from .distances import survey, through
from .state import EDGES, HEX, NEIGHBOURS, O, X, joined

CONNECTED = Reason.CONNECTED.code


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
    """255 for a move that wins, 254 for one in whose place the other side would; else the more the shorter the ways
    of either side through the cell are, one's own a little before the opponent's."""
    if move == SWAP:
        return 0
    sq = move >> 9
    if joined(s, sq, X << s.side) == EDGES:
        return 255
    if joined(s, sq, O >> s.side) == EDGES:
        return 254
    slot = survey(s)
    own = through(s, slot, s.side, sq)
    return max(0, 250 - 4 * min(own, through(s, slot, 1 - s.side, sq)) - own)


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
def adjudicate(s, root):
    """Nothing: no position stands twice, and there are no limits."""
    return 0


@inline
def can_move(s):
    """Whether a cell is empty."""
    return s.empty > 0


@entry
def horizon(s):
    """Nothing, for there are no limits."""
    return 0


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


@kernel
def image_key(s, squares):
    """The key that the image of the position has when square `i` goes to `squares[i]`."""
    key = s.side_zobrist if s.side else np.uint64(0)
    for i in range(s.empty, s.files * s.files):
        sq = int(s.cells[i])
        key ^= s.zobrist[0 if s.board[sq] & X else 1, squares[sq]]
    return key


@inline
def win_at_once(s, top):
    """Not looked for: the evaluator counts the stones that are missing."""
    return 0


@inline
def looming(s, top):
    """Not looked for: the evaluator counts the stones that are missing."""
    return 0


@inline
def skip(s):
    """Whoever passes gives a stone away: nothing is learnt from it."""
    return 0


@inline
def unskip(s):
    """There is nothing to take back."""


STATE = from_dtype(HEX)

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
        ("generate", HEX): generate,
        ("generate_noisy", HEX): generate_noisy,
        ("make", HEX): make,
        ("undo", HEX): undo,
        ("adjudicate", HEX): adjudicate,
        ("stuck", HEX): stuck,
        ("can_move", HEX): can_move,
        ("horizon", HEX): horizon,
        ("weight", HEX): weight,
        ("win_at_once", HEX): win_at_once,
        ("looming", HEX): looming,
        ("skip", HEX): skip,
        ("unskip", HEX): unskip,
        ("image_key", HEX): image_key,
        ("random_move", HEX): random_move,
    }
)
