"""Forced wins within a number of plies: full-width AND/OR search, for any game (kernels).

The question is always "can `winner` force a win within `depth` plies?"; anything else, a draw included, is a no. Every
legal move of both sides is searched until the question is settled. There is no evaluation, no window and no pruning.

The table stores, for a position, the fewest plies within which a win is proven and the most within which one is
refuted. With `td.trust` these settle questions. Without it the table only supplies moves to try first, so that an
answer depends on nothing but the rules along the path that led to the position.
"""

from __future__ import annotations

import numpy as np

from ..compile.jit import entry, inline, kernel
from ..games.interface import (
    MOST_MOVES,
    MOVES,
    adjudicate,
    can_move,
    generate,
    make,
    no_move_outcome,
    order_score,
    undo,
)
from ..mixing import GOLDEN_GAMMA
from ..sides import WINNER

DEEPEST = 40
BUCKET = 4
NEVER = 255
ROOM = MOVES - 3 * MOST_MOVES

PROOF = np.dtype(
    [
        ("nodes", "i8"),  # moves made
        ("node_limit", "i8"),
        ("aborted", "i8"),  # the limit was reached: the answer is meaningless
        ("trust", "i8"),
        ("mask", "i8"),  # buckets of the table, minus 1
        ("killers", "i4", (DEEPEST + 2, 2)),
        ("order", "i4", (MOVES,)),
    ],
    align=True,
)
# A table entry is two words: key, and move | proven within << _WITHIN | refuted within << _REFUTED.
_WITHIN, _REFUTED = 18, 26
_MOVE = (1 << _WITHIN) - 1


@inline
def table_key(s, winner):
    return s.key ^ (np.uint64(winner + 1) * GOLDEN_GAMMA)


@inline
def slot_of(td, key):
    return np.int64(key & np.uint64(td.mask)) * (2 * BUCKET)


@inline
def probe(td, table, key):
    """The data word kept for a position, 0 if there is none."""
    base = slot_of(td, key)
    for i in range(BUCKET):
        if table[base + 2 * i] == key:
            return np.int64(table[base + 2 * i + 1])
    return 0


@inline
def store(td, table, key, move, depth, proven):
    """Store an answer in the position's entry, or else replace the one that took least work."""
    base = slot_of(td, key)
    at = base
    least = 1 << 20
    within = NEVER
    refuted = 0
    for i in range(BUCKET):
        here = base + 2 * i
        data = np.int64(table[here + 1])
        if table[here] == key and data:
            at = here
            within = (data >> _WITHIN) & NEVER
            refuted = data >> _REFUTED
            if move == 0:
                move = data & _MOVE
            break
        work = data >> _REFUTED
        if data and (data >> _WITHIN) & NEVER != NEVER:
            work = max(work, (data >> _WITHIN) & NEVER)
        if data == 0:
            work = -1
        if work < least:
            least = work
            at = here
    if proven:
        within = min(within, depth)
    else:
        refuted = max(refuted, depth)
    table[at] = key
    table[at + 1] = np.uint64(move | within << _WITHIN | refuted << _REFUTED)


@inline
def pick_move(s, td, i, end):
    """Swap the remaining move with the highest order to index `i`; returns its order."""
    best = i
    for j in range(i + 1, end):
        if td.order[j] > td.order[best]:
            best = j
    order = td.order[best]
    if best != i:
        move = s.moves[best]
        s.moves[best] = s.moves[i]
        td.order[best] = td.order[i]
        s.moves[i] = move
        td.order[i] = order
    return order


@kernel
def forced(s, td, table, winner, depth, ply, top):
    """Whether `winner` can force a win from an undecided position within `depth` plies; meaningless if `td.aborted`."""
    if depth <= 0:
        # A side without a legal move ends the game without another ply.
        return not can_move(s) and no_move_outcome(s) >> WINNER == winner + 1
    key = table_key(s, winner)
    data = probe(td, table, key)
    hint = data & _MOVE
    if td.trust and data:
        if (data >> _WITHIN) & NEVER <= depth:
            return True
        if data >> _REFUTED >= depth:
            return False
    end = generate(s, top)
    if end == top:
        return no_move_outcome(s) >> WINNER == winner + 1
    if end > ROOM:
        td.aborted = 1
        return False
    chooses = s.side == winner
    for i in range(top, end):
        move = int(s.moves[i])
        order = 4 * order_score(s, move)
        if move == hint:
            order += 1 << 20
        elif move == td.killers[ply, 0]:
            order += 3
        elif move == td.killers[ply, 1]:
            order += 2
        td.order[i] = order
    sorting = True
    for i in range(top, end):
        if sorting:
            sorting = pick_move(s, td, i, end) > 0
        move = int(s.moves[i])
        make(s, move)
        td.nodes += 1
        if td.nodes >= td.node_limit:
            td.aborted = 1
        outcome = s.outcome
        if outcome == 0:
            outcome = adjudicate(s, -1)
        won = False
        if outcome:
            won = outcome >> WINNER == winner + 1
        elif not td.aborted:
            won = forced(s, td, table, winner, depth - 1, ply + 1, end)
        undo(s)
        if td.aborted:
            return False
        if won == chooses:
            # This move settles it: a win for one side, a defence for the other.
            if td.killers[ply, 0] != move:
                td.killers[ply, 1] = td.killers[ply, 0]
                td.killers[ply, 0] = move
            store(td, table, key, move, depth, won)
            return won
    store(td, table, key, 0, depth, not chooses)
    return not chooses


@entry
def forces(s, td, table, winner, depth):
    """Whether `winner` can force a win within `depth` plies; -1 if the node limit was reached."""
    td.aborted = 0
    # Not the constants: numba would compile the search again for literal arguments.
    ply = s.ply - s.ply
    top = ply
    found = forced(s, td, table, winner, depth, ply, top)
    if td.aborted:
        return -1
    return 1 if found else 0


@entry
def forces_after(s, td, table, winner, depth, move):
    """As `forces`, with `move` as the first of the `depth` plies."""
    td.aborted = 0
    make(s, move)
    td.nodes += 1
    outcome = s.outcome
    if outcome == 0:
        outcome = adjudicate(s, -1)
    found = False
    if outcome:
        found = outcome >> WINNER == winner + 1
    else:
        ply = depth - depth + 1
        top = ply - 1
        found = forced(s, td, table, winner, depth - 1, ply, top)
    undo(s)
    if td.aborted:
        return -1
    return 1 if found else 0
