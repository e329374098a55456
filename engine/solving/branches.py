"""The positions behind one position of a proof tree, and whether a tree holds together (kernels)."""

from __future__ import annotations

import numpy as np

from ..compile.jit import entry, inline, kernel
from ..games.tafl.adjudication import generate, no_move_outcome
from ..games.tafl.codes import WINNER
from ..games.tafl.make import make, undo
from ..games.tafl.setup import image_key, standing_outcome
from .dfpn import is_proven
from .numbering import canonical_number, place, sets_of, unrank
from .retrograde import end_after

GOES_ON = -1
"""Instead of a winner (0 attackers, 1 defenders, 2 neither): the game is not over."""
UNKNOWN = -1


@kernel
def place_with_key(s, ix, a, d, number, squares):
    """Put the position of this number on a record, with its key; `squares` is the identity."""
    side, king, attackers, defenders = unrank(ix, a, d, number)
    place(s, ix, side, king, attackers, defenders)
    s.key = image_key(s, squares)


@entry
def put(s, ix, td, a, d, number):
    """Put the position of this number on the record of a proof search."""
    place_with_key(s, ix, a, d, number, td.image[0])


@entry
def behind(s, ix, td, table, winner, a, d, number, moves, winners, numbers, proven):
    """Place a position and write down its moves, who has won after each (or GOES_ON), the canonical number of what
    follows, and whether the table of a proof search knows that `winner` wins it. Returns the number of moves; where
    there is none, `winners[0]` says who has won."""
    place_with_key(s, ix, a, d, number, td.image[0])
    end = generate(s, 0)
    if end == 0:
        winners[0] = (no_move_outcome(s) >> WINNER) - 1
    for i in range(end):
        moves[i] = s.moves[i]
        make(s, int(s.moves[i]))
        outcome = end_after(s)
        proven[i] = 0
        if outcome:
            winners[i] = (outcome >> WINNER) - 1
        else:
            winners[i] = GOES_ON
            king, attackers, defenders = sets_of(s, ix)
            numbers[i] = canonical_number(ix, s.side, king, attackers, defenders)
            if is_proven(s, td, table, winner):
                proven[i] = 1
        undo(s)
    return end


@inline
def plies_of(numbers, plies, number):
    """What a tree says of a position; UNKNOWN where it is not in the tree. `numbers` are sorted."""
    at = np.searchsorted(numbers, number)
    if at < len(numbers) and numbers[at] == number:
        return int(plies[at])
    return UNKNOWN


@kernel
def plies_by_moves(s, ix, numbers, plies, winner):
    """The plies in which `winner` wins the position on the record by the tree's word on what follows, or UNKNOWN."""
    if standing_outcome(s):
        return UNKNOWN
    end = generate(s, 0)
    if end == 0:
        return 0 if (no_move_outcome(s) >> WINNER) - 1 == winner else UNKNOWN
    chooses = s.side == winner
    best = UNKNOWN
    for i in range(end):
        make(s, int(s.moves[i]))
        outcome = end_after(s)
        after = UNKNOWN
        if outcome:
            if (outcome >> WINNER) - 1 == winner:
                after = 0
        else:
            king, attackers, defenders = sets_of(s, ix)
            after = plies_of(numbers, plies, canonical_number(ix, s.side, king, attackers, defenders))
        undo(s)
        if chooses:
            if after != UNKNOWN and (best == UNKNOWN or after + 1 < best):
                best = after + 1
        elif after == UNKNOWN:
            return UNKNOWN
        else:
            best = max(best, after + 1)
    return best


@entry
def check(s, ix, numbers, plies, a, d, first, last, winner):
    """How many positions of a range of the tree, all of one material, do not have the plies that follow from their
    moves: the least over known moves where `winner` chooses, the most over all moves where the other side does."""
    faults = 0
    for at in range(first, last):
        side, king, attackers, defenders = unrank(ix, a, d, int(numbers[at]))
        place(s, ix, side, king, attackers, defenders)
        if plies_by_moves(s, ix, numbers, plies, winner) != int(plies[at]):
            faults += 1
    return faults


@entry
def shorten(s, ix, numbers, plies, a, d, first, last, winner):
    """Where a move of the tree leads to a sooner win than was counted, count that; how many positions changed."""
    changed = 0
    for at in range(first, last):
        side, king, attackers, defenders = unrank(ix, a, d, int(numbers[at]))
        place(s, ix, side, king, attackers, defenders)
        found = plies_by_moves(s, ix, numbers, plies, winner)
        if found != UNKNOWN and found < plies[at]:
            plies[at] = found
            changed += 1
    return changed
