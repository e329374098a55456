"""The transposition table: what earlier searches found, by position (kernels).

An entry is two words: the key xor the data, and the data, which is
move | value << 18 | depth << 34 | bound << 42 | generation << 44. Threads write without a lock: words of two writers
that meet in one entry do not fit each other, and the entry is read as that of another position.
"""

from __future__ import annotations

import numpy as np

from ..compile.jit import inline
from ..score import WON

BUCKET = 4
"""Entries that lie together, in one line of the processor's cache: a position may be in any of them."""

_ABDADA_BITS = 12
ABDADA_WORDS = 1 << _ABDADA_BITS
"""Words behind the last bucket: what threads are busy with, a move at a position each, 0 for nothing."""

EXACT, LOWER, UPPER = 1, 2, 3
MOVE_BITS = (1 << 18) - 1


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
def store(td, table, key, move, value, depth, bound):
    """Remember a result in the entry of the same key, or else in place of the shallowest and oldest."""
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
        age = (td.generation - (data >> 44)) & 63
        worth = ((data >> 34) & 255) - 8 * age
        if data == 0:
            worth = -10000
        if worth < worst_worth:
            worst_worth = worth
            worst = at
    data = move | (value + 32768) << 18 | depth << 34 | bound << 42 | td.generation << 44
    table[worst] = key ^ np.uint64(data)
    table[worst + 1] = np.uint64(data)


@inline
def abdada_word(key, move):
    """The word that says: a thread searches this move at the position of this key."""
    return key ^ (np.uint64(move) * np.uint64(0x9E3779B97F4A7C15))


@inline
def abdada_slot(td, word):
    """Where such a word is kept. Its low bits would say too little: they follow from those of the move alone."""
    return (np.int64(td.mask) + 1) * (2 * BUCKET) + np.int64(word >> np.uint64(64 - _ABDADA_BITS))


@inline
def to_table(value, ply):
    """Forced ends are stored as distances from the node, not from the root."""
    if value > WON:
        return value + ply
    if value < -WON:
        return value - ply
    return value


@inline
def from_table(value, ply):
    """A stored value seen from the root: forced ends count their plies from there."""
    if value > WON:
        return value - ply
    if value < -WON:
        return value + ply
    return value
