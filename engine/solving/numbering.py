"""Conversion between positions and the numbers of `index.py` (kernels).

Searches that probe tables need only this from tafl: their machine code must not depend on the rules of a game that they
do not play.
"""

from __future__ import annotations

import numpy as np

from ..compile.intrinsics import ones
from ..compile.jit import inline, kernel
from ..games.tafl.codes import ATTACKERS, D_SOLDIER, DEFENDERS, KING, PIECE, SOLDIER
from ..squares import CELLS

LARGEST = 7
"""The largest board that is numbered: a set of its squares fits into one word."""
MOST_MEN = 15
"""Men of one side."""

_SYMMETRIES = 8

INDEX = np.dtype(
    [
        ("men", "i8"),  # squares on which men can stand
        ("binomial", "i8", (LARGEST**2 + 1, MOST_MEN + 2)),
        ("begin", "i8", (MOST_MEN + 1, MOST_MEN + 1)),  # by attackers and defenders: the first number
        ("half", "i8", (MOST_MEN + 1, MOST_MEN + 1)),  # number of positions with one side to move
        ("block", "i8", (MOST_MEN + 1, MOST_MEN + 1, LARGEST**2)),  # by king: number of positions before his
        ("kings", "i8"),  # number of king squares, one of each orbit
        ("king_squares", "i1", (LARGEST**2,)),
        ("king_number", "i1", (LARGEST**2,)),  # by square, -1 if it is not one of these
        ("may_king", "i1", (LARGEST**2,)),  # 1 on every square on which a king can stand
        ("to_king", "i1", (LARGEST**2,)),  # the symmetry that maps a square to the chosen one of its orbit
        ("symmetries", "i8"),
        ("image", "i1", (_SYMMETRIES, LARGEST**2)),
        (
            "keeping",
            "i1",
            (LARGEST**2, _SYMMETRIES),
        ),  # by king: the symmetries that fix his square, the identity first
        ("keepings", "i8", (LARGEST**2,)),
        ("cell", "i2", (LARGEST**2,)),  # dense square -> square
        ("dense", "i1", (CELLS,)),  # square -> dense square
    ],
    align=True,
)


# `ix` is the record of an `Index`, `s` a tafl state; a, d are numbers of attackers and defending men.


@inline
def rank_set(ix, chosen, among):
    """The rank of a set of squares among the subsets of `among` of its size."""
    r = 0
    i = 0
    while chosen:
        low = chosen & -chosen
        i += 1
        r += ix.binomial[ones(among & (low - 1)), i]
        chosen ^= low
    return r


@kernel
def unrank_set(ix, r, size, among):
    """The subset of `among` with `size` squares and rank `r`."""
    chosen = 0
    at = ones(among)
    bit = 1 << (LARGEST * LARGEST - 1)
    while size > 0:
        if among & bit:
            at -= 1
            ways = ix.binomial[at, size]
            if ways <= r:
                r -= ways
                chosen |= bit
                size -= 1
        bit >>= 1
    return chosen


@inline
def rank(ix, side, king, attackers, defenders):
    """The number of a position whose king is on the chosen square of his orbit."""
    a = ones(attackers)
    d = ones(defenders)
    among = ix.men & ~(1 << king)
    rest = among & ~defenders
    return (
        ix.begin[a, d]
        + side * ix.half[a, d]
        + ix.block[a, d, ix.king_number[king]]
        + rank_set(ix, defenders, among) * ix.binomial[ones(rest), a]
        + rank_set(ix, attackers, rest)
    )


@kernel
def unrank(ix, a, d, number):
    """Side to move, king, attackers and defending men of the position with this number and material."""
    r = number - ix.begin[a, d]
    side = r // ix.half[a, d]
    r -= side * ix.half[a, d]
    k = ix.kings - 1
    while ix.block[a, d, k] > r:
        k -= 1
    r -= ix.block[a, d, k]
    king = int(ix.king_squares[k])
    among = ix.men & ~(1 << king)
    ways = ix.binomial[ones(among) - d, a]
    defenders = unrank_set(ix, r // ways, d, among)
    attackers = unrank_set(ix, r % ways, a, among & ~defenders)
    return side, king, attackers, defenders


@inline
def image_set(ix, g, chosen):
    """The image of a set of squares under a symmetry."""
    image = 0
    while chosen:
        low = chosen & -chosen
        image |= 1 << int(ix.image[g, ones(low - 1)])
        chosen ^= low
    return image


@inline
def sets_of(s, ix):
    """King, attackers and defending men of a position, mapped so that the king is on the chosen square of his orbit."""
    at = int(ix.dense[s.king])
    g = ix.to_king[at]
    attackers = 0
    for i in range(s.count[ATTACKERS]):
        attackers |= 1 << int(ix.image[g, ix.dense[s.pieces[ATTACKERS, i]]])
    defenders = 0
    for i in range(s.count[DEFENDERS]):
        defenders |= 1 << int(ix.image[g, ix.dense[s.pieces[DEFENDERS, i]]])
    king = int(ix.image[g, at])
    return king, attackers, defenders & ~(1 << king)


@kernel
def number_of(s, ix):
    """The number of the position on a record."""
    king, attackers, defenders = sets_of(s, ix)
    return rank(ix, s.side, king, attackers, defenders)


@kernel
def canonical_number(ix, side, king, attackers, defenders):
    """The least number among the images of a position."""
    least = rank(ix, side, king, attackers, defenders)
    r = ix.king_number[king]
    for i in range(1, ix.keepings[r]):
        g = ix.keeping[r, i]
        other = rank(ix, side, king, image_set(ix, g, attackers), image_set(ix, g, defenders))
        least = min(least, other)
    return least


@kernel
def is_canonical(ix, number, side, king, attackers, defenders):
    """Whether no image of a position has a smaller number."""
    r = ix.king_number[king]
    for i in range(1, ix.keepings[r]):
        g = ix.keeping[r, i]
        if rank(ix, side, king, image_set(ix, g, attackers), image_set(ix, g, defenders)) < number:
            return False
    return True


@kernel
def put(s, ix, sq, p, side):
    """Put a piece on an empty square."""
    n = s.count[side]
    s.board[sq] = int(s.board[sq]) | p
    s.pieces[side, n] = sq
    s.slot[sq] = n
    s.count[side] = n + 1


@kernel
def put_set(s, ix, chosen, p, side):
    """Put pieces `p` of a side on all squares of a set."""
    while chosen:
        low = chosen & -chosen
        put(s, ix, int(ix.cell[ones(low - 1)]), p, side)
        chosen ^= low


@kernel
def place(s, ix, side, king, attackers, defenders):
    """Set up a position on a record, without history and without its key."""
    for owner in range(2):
        for i in range(s.count[owner]):
            sq = int(s.pieces[owner, i])
            s.board[sq] = int(s.board[sq]) & ~PIECE
            s.slot[sq] = 0
        s.count[owner] = 0
    put_set(s, ix, attackers, SOLDIER, ATTACKERS)
    put_set(s, ix, defenders, D_SOLDIER, DEFENDERS)
    s.king = int(ix.cell[king])
    put(s, ix, s.king, KING, DEFENDERS)
    s.side = side
    s.ply = 0
    s.since = 0
    s.caught_top = 0
    s.must_go = 0
    s.outcome = 0
    # Rules that look at the last capture must see none.
    s.quiet = 1
    s.played = 0
    s.turns = 0
    s.taken[0] = 0
    s.taken[1] = 0
