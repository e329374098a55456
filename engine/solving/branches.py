"""The successors of a position in a proof tree, and checks of whole trees (kernels)."""

from __future__ import annotations

import numpy as np

from ..compile.jit import entry, inline, kernel
from ..games.tafl.adjudication import generate, no_move_outcome
from ..games.tafl.make import make, undo
from ..games.tafl.setup import image_key, standing_outcome
from ..sides import WINNER
from .dfpn import is_proven
from .numbering import canonical_number, place, sets_of, unrank
from .retrograde import end_after

GOES_ON = -1
"""In place of a winner (0 attackers, 1 defenders, 2 neither): the game is not over."""
UNKNOWN = -1


@kernel
def place_with_key(s, ix, a, d, number, squares):
    """Set up the position of this number on a record, with its key; `squares` is the identity."""
    side, king, attackers, defenders = unrank(ix, a, d, number)
    place(s, ix, side, king, attackers, defenders)
    s.key = image_key(s, squares)


@entry
def put(s, ix, td, a, d, number):
    """Set up the position of this number on the record of a proof search."""
    place_with_key(s, ix, a, d, number, td.image[0])


@entry
def behind(s, ix, td, table, winner, a, d, number, moves, winners, numbers, proven):
    """Set up a position and write its moves, the winner after each (or GOES_ON), the successors' canonical numbers, and
    whether the table of a proof search has a proof that `winner` wins them. Returns the number of moves; if there are
    none, the winner is `winners[0]`."""
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
    """The plies of a position in a tree, UNKNOWN if it is not in it. `numbers` are sorted."""
    at = np.searchsorted(numbers, number)
    if at < len(numbers) and numbers[at] == number:
        return int(plies[at])
    return UNKNOWN


@kernel
def plies_by_moves(s, ix, numbers, plies, winner):
    """The plies in which `winner` wins the position on the record, from the tree's successors of it, or UNKNOWN."""
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
    """How many positions of a range of the tree, all of one material, have plies that do not follow from their moves:
    the minimum over the known moves where `winner` is to move, the maximum over all moves where the other side is."""
    faults = 0
    for at in range(first, last):
        side, king, attackers, defenders = unrank(ix, a, d, int(numbers[at]))
        place(s, ix, side, king, attackers, defenders)
        if plies_by_moves(s, ix, numbers, plies, winner) != int(plies[at]):
            faults += 1
    return faults


@entry
def shorten(s, ix, numbers, plies, a, d, first, last, winner):
    """Lower the plies of positions for which a move within the tree wins sooner; returns how many changed."""
    changed = 0
    for at in range(first, last):
        side, king, attackers, defenders = unrank(ix, a, d, int(numbers[at]))
        place(s, ix, side, king, attackers, defenders)
        found = plies_by_moves(s, ix, numbers, plies, winner)
        if found != UNKNOWN and found < plies[at]:
            plies[at] = found
            changed += 1
    return changed
