"""Probing solved tables during a search: the value of a position from one memory access (kernels).

A `TABLES` record has the numbering of all known materials of one rule set, and the address of their codes. An answer is
0 if nothing is known, else a kind and the plies to the end.

Tables ignore the moves played before; the game may not. Along a shortest win the distance to the end always decreases.
It could repeat an earlier position only if that one was also a win for the same side, in fewer plies. A win is
therefore reported only if no position since the last capture was won in fewer plies by the same side (`least`). Draws
do not depend on what was played, and a win by repetition can only come sooner.

A proof tree has only some positions of a material, by number, and upper bounds for the plies of a win. The same
argument holds for it: the bound decreases with every move.
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
"""Kinds of answers: wins in a number of plies, draws, and wins by repetition, whose length is unknown."""
KIND = 16
"""An answer is `kind << KIND | plies`."""
PLIES = (1 << KIND) - 1
NEVER = PLIES

TABLES = np.dtype(
    [
        ("most", "i8"),  # the most pieces of a known position, king included; 0: there are no tables
        ("first", "i8", (MOST_MEN + 1, MOST_MEN + 1)),  # by material: index of its first code, -1 if unknown
        ("codes", "i8"),  # the address of the codes
        ("wide", "i8"),  # 1: two-byte codes
        ("unforced", "i8"),  # kind of positions that nobody can win, NOTHING if it depends on the history
        ("attackers", "i8"),  # the material of the root, for which `least` holds
        ("defenders", "i8"),
        (
            "least",
            "i8",
            (2,),
        ),  # by winner: the fewest plies to a win of any position since the last capture
        ("settled", "i8"),  # 1: every root move leads to a reported value, or to an end
        ("endless", "i8"),  # 1: unforced positions of the root's material are not reported
        ("hits", "i8"),
        # Proof trees: number of positions, addresses of their sorted numbers and of their codes.
        ("proven", "i8"),
        ("numbers", "i8"),
        ("words", "i8"),
        ("index", INDEX),
    ],
    align=True,
)


@inline
def code_at(tables, place):
    """The code of a position by its index in the table."""
    if tables.wide:
        return byte_at(tables.codes, 2 * place) | byte_at(tables.codes, 2 * place + 1) << 8
    return byte_at(tables.codes, place)


@kernel
def proven_code(tables, number):
    """The answer of the proof trees for a number, 0 if they do not have it."""
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
    """The answer for the position on a tafl record, 0 if there is none."""
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
        # A position that was set up: in a game no piece can be there.
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
    """The answer for games without tables."""
    return NOTHING


bind(TAFL, TABLES, probe=probe)
bind_otherwise(probe=probe_nothing)
