"""The transposition table, and the keys of positions in it (kernels).

An entry is two words: the key xor the data, and the data, which is move | value << VALUE | depth << DEPTH |
bound << BOUND | generation << GENERATION. Threads write without a lock: if two writers collide, the words of the entry
do not match and it is read as that of another position.
"""

from __future__ import annotations

import numpy as np

from ..compile.intrinsics import prefetch
from ..compile.jit import inline, kernel
from ..games.interface import image_key, limit_salt
from ..mixing import GOLDEN_GAMMA
from ..score import WON
from ..squares import ORIGIN, TARGET

BUCKET = 4
"""Entries of a bucket, which is one cache line. A position may be in any of them."""

_ABDADA_BITS = 12
ABDADA_WORDS = 1 << _ABDADA_BITS
"""Words after the last bucket, each for a move that a thread is searching at a position; 0: none."""

EXACT, LOWER, UPPER = 1, 2, 3

VALUE, DEPTH, BOUND, GENERATION = 18, 34, 42, 44
"""The first bit of each part of a data word; below them is the move."""
MOVE_BITS = (1 << VALUE) - 1
VALUE_BITS = (1 << DEPTH - VALUE) - 1
DEPTH_BITS = (1 << BOUND - DEPTH) - 1
BOUND_BITS = (1 << GENERATION - BOUND) - 1
GENERATION_BITS = 63
VALUE_OFFSET = 1 << 15
"""Added to a value, so that what is stored is positive."""
AGE_WEIGHT = 8
"""When replacing entries, each search since one was stored counts like this many plies of depth."""
SYMMETRY_MAX_PLY = 4
"""Down to this ply, positions below a symmetric root share a table entry with their images: the key is the least of
all images. Deeper, two lines rarely meet in images of each other that a node above has not already merged."""


@inline
def table_key(s):
    """The key of a position in the transposition table; near a limit it depends on the plies left."""
    salt = limit_salt(s)
    return s.key ^ (np.uint64(salt) * GOLDEN_GAMMA)


@kernel
def least_image(s, td):
    """The symmetry under which the position's key is least, 0 for the identity."""
    least = s.key
    found = 0
    for i in range(1, td.images + 1):
        key = image_key(s, td.image[i])
        if key < least:
            least = key
            found = i
    return found


@kernel
def is_symmetric(s, td):
    """Whether the position is its own image under a symmetry of the game."""
    for i in range(1, td.images + 1):
        if image_key(s, td.image[i]) == s.key:
            return True
    return False


@inline
def map_move(squares, move):
    """A move under a symmetry that takes square `i` to `squares[i]`."""
    return np.int64(squares[move & ORIGIN]) | np.int64(squares[move >> TARGET]) << TARGET


@inline
def slot_of(td, key):
    """Index of the first word of the bucket for a key."""
    return np.int64(key & np.uint64(td.mask)) * (2 * BUCKET)


@inline
def probe(td, table, key):
    """The data word stored for a key, 0 if there is none."""
    base = slot_of(td, key)
    for i in range(BUCKET):
        data = table[base + 2 * i + 1]
        if table[base + 2 * i] ^ data == key and data != 0:
            return np.int64(data)
    return 0


@inline
def prefetch_bucket(td, table, key):
    """Fetch the bucket for a key into the cache: without it, a long search waits for memory a seventh of its time."""
    prefetch(table, slot_of(td, key))


@inline
def store(td, table, key, move, value, depth, bound):
    """Store a result in the entry with the same key, or else replace the shallowest and oldest."""
    base = slot_of(td, key)
    worst = base
    worst_worth = 1 << 40
    for i in range(BUCKET):
        at = base + 2 * i
        data = np.int64(table[at + 1])
        if table[at] ^ table[at + 1] == key:
            if move == 0:
                move = data & MOVE_BITS
            worst = at
            break
        age = (td.generation - (data >> GENERATION)) & GENERATION_BITS
        worth = ((data >> DEPTH) & DEPTH_BITS) - AGE_WEIGHT * age
        if data == 0:
            worth = -10000
        if worth < worst_worth:
            worst_worth = worth
            worst = at
    data = (
        move | (value + VALUE_OFFSET) << VALUE | depth << DEPTH | bound << BOUND | td.generation << GENERATION
    )
    table[worst] = key ^ np.uint64(data)
    table[worst + 1] = np.uint64(data)


@inline
def abdada_word(key, move):
    """The word that marks this move as being searched at the position with this key."""
    return key ^ (np.uint64(move) * GOLDEN_GAMMA)


@inline
def abdada_slot(td, word):
    """The index of such a word, from its high bits: the low bits depend too much on the move alone."""
    return (np.int64(td.mask) + 1) * (2 * BUCKET) + np.int64(word >> np.uint64(64 - _ABDADA_BITS))


@inline
def to_table(value, ply):
    """A value as stored: forced ends are counted from the node, not from the root."""
    if value > WON:
        return value + ply
    if value < -WON:
        return value - ply
    return value


@inline
def from_table(value, ply):
    """A stored value as seen from the root: forced ends are counted from there."""
    if value > WON:
        return value - ply
    if value < -WON:
        return value + ply
    return value
