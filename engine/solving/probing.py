"""Solved tables inside a search: the value of a position by one look into memory (kernels).

A `TABLES` record has the numbers of all materials that are known, of one rule set, and the address of their codes. An
answer is 0 where nothing is known, else a kind and the plies to the end.

What was played before counts for nothing in a table; in the game it may. A shortest win goes through positions that are
ever nearer to the end. It would meet one that has been on the board only if that is nearer to the end as well, for the
same winner: so a win is told only if nothing since the last capture was won in fewer plies by the same side (`least`).
A draw stays one, whatever was played, and a win by repetition only comes sooner.

A proof tree has only some positions of a material, by their numbers, and the plies that a win takes at most. With them
too it goes through positions that are ever nearer to the end.
"""

from __future__ import annotations

import numpy as np

from ..compile.intrinsics import byte_at, word_at
from ..compile.jit import inline, kernel
from ..games.interface import bind, bind_otherwise
from ..games.tafl.codes import ATTACKERS, DEFENDERS
from ..games.tafl.state import TAFL
from .numbering import INDEX, MOST_MEN, canonical_number, sets_of

NOTHING, WON_BY_ATTACKERS, WON_BY_DEFENDERS, DRAWN, ENDLESS_BY_ATTACKERS, ENDLESS_BY_DEFENDERS = range(6)
"""Kinds of answers: wins in so many plies, draws, and wins by repetition, of which nobody knows the length."""
KIND = 16
"""An answer is `kind << KIND | plies`."""
PLIES = (1 << KIND) - 1
NEVER = PLIES

TABLES = np.dtype(
    [
        ("most", "i8"),  # the most pieces of a position that is known, kings included; 0: there are no tables
        ("first", "i8", (MOST_MEN + 1, MOST_MEN + 1)),  # by material: the place of its first code, -1 without
        ("codes", "i8"),  # the address of the codes
        ("wide", "i8"),  # 1: codes of two bytes
        ("unforced", "i8"),  # the kind of what neither side can force, NOTHING where the history decides
        ("attackers", "i8"),  # the material of the root, for which `least` holds
        ("defenders", "i8"),
        (
            "least",
            "i8",
            (2,),
        ),  # the least plies in which either side won what was on the board since a capture
        ("settled", "i8"),  # 1: every move of the root leads to a value that is told, or to an end
        ("endless", "i8"),  # 1: unforced positions of the root's material are not told
        ("hits", "i8"),
        # Proof trees: how many positions they have, the addresses of their sorted numbers and of their codes.
        ("proven", "i8"),
        ("numbers", "i8"),
        ("words", "i8"),
        ("index", INDEX),
    ],
    align=True,
)


@inline
def code_at(tables, place):
    """The code of a position by its place in the table."""
    if tables.wide:
        return byte_at(tables.codes, 2 * place) | byte_at(tables.codes, 2 * place + 1) << 8
    return byte_at(tables.codes, place)


@kernel
def proven_code(tables, number):
    """What the proof trees say of a number, 0 where they do not have it."""
    low = 0
    high = int(tables.proven)
    while low < high:
        middle = (low + high) >> 1
        if word_at(tables.numbers, middle) < number:
            low = middle + 1
        else:
            high = middle
    if low == tables.proven or word_at(tables.numbers, low) != number:
        return 0
    return byte_at(tables.words, 2 * low) | byte_at(tables.words, 2 * low + 1) << 8


@kernel
def probe(s, tables):
    """The answer for the position on a tafl record."""
    ix = tables.index
    a = s.count[ATTACKERS]
    d = s.count[DEFENDERS] - 1
    if s.king == 0 or a > MOST_MEN or d > MOST_MEN or d < 0:
        return NOTHING
    solved = tables.first[a, d] >= 0
    if not solved and (tables.proven == 0 or ix.half[a, d] == 0):
        return NOTHING
    king, attackers, defenders = sets_of(s, ix)
    if ix.king_number[king] < 0 or ((attackers | defenders) & ~ix.men):
        # Set up by somebody: no position of a game has a piece there.
        return NOTHING
    number = canonical_number(ix, s.side, king, attackers, defenders)
    of_root = a == tables.attackers and d == tables.defenders
    if not solved:
        code = proven_code(tables, number)
        if code == 0:
            return NOTHING
    else:
        code = code_at(tables, tables.first[a, d] + number - ix.begin[a, d])
        if code == 0:
            if of_root and tables.endless:
                return NOTHING
            return tables.unforced << KIND
        if code == (1 << 16) - 1 if tables.wide else code == (1 << 8) - 1:
            return NOTHING
    winner = (code - 1) & 1
    plies = (code - 1) >> 1
    if of_root and plies > tables.least[winner]:
        return NOTHING
    return (WON_BY_ATTACKERS + winner) << KIND | plies


@kernel
def probe_nothing(s, tables):
    """The answer for games that have no tables."""
    return NOTHING


bind(TAFL, TABLES, probe=probe)
bind_otherwise(probe=probe_nothing)
