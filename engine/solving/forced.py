"""Who wins within so many plies: full-width AND/OR search over any game's verbs (kernels).

The question is always "does `winner` force a win within `depth` plies?", the answer yes or no. Every legal move of
both sides is looked at until the question is settled; there is no evaluation, no window and nothing selective. What
is not a win of `winner`, a draw included, is a no.

The table keeps, for a position, the fewest plies within which a win is proven and the most within which it is
refuted. With `td.trust` these settle questions; without it only the moves kept with them are tried first, so that an
answer rests on nothing but the rules along the very way that led to the position.
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

DEEPEST = 40
BUCKET = 4
NEVER = 255
ROOM = MOVES - 3 * MOST_MOVES

PROOF = np.dtype(
    [
        ("nodes", "i8"),  # moves made
        ("node_limit", "i8"),
        ("aborted", "i8"),  # the limit was reached: the answer means nothing
        ("trust", "i8"),
        ("mask", "i8"),  # buckets of the table - 1
        ("killers", "i4", (DEEPEST + 2, 2)),
        ("order", "i4", (MOVES,)),
    ],
    align=True,
)
# A table entry is two words: key, and move | proven within << 18 | refuted within << 26.
_MOVE = (1 << 18) - 1


@inline
def table_key(s, winner):
    return s.key ^ (np.uint64(winner + 1) * np.uint64(0x9E3779B97F4A7C15))


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
    """Keep an answer with what is known of the position, or in place of what took least work."""
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
            within = (data >> 18) & 255
            refuted = data >> 26
            if move == 0:
                move = data & _MOVE
            break
        work = data >> 26
        if data and (data >> 18) & 255 != NEVER:
            work = max(work, (data >> 18) & 255)
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
    table[at + 1] = np.uint64(move | within << 18 | refuted << 26)


@inline
def pick_move(s, td, i, end):
    """Bring the move with the highest order among the rest to place `i`; its order."""
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
    """Whether `winner` forces a win of an undecided position within `depth` plies; nothing if `td.aborted`."""
    if depth <= 0:
        # The lack of a move ends the game without another ply.
        return not can_move(s) and no_move_outcome(s) >> 8 == winner + 1
    key = table_key(s, winner)
    data = probe(td, table, key)
    hint = data & _MOVE
    if td.trust and data:
        if (data >> 18) & 255 <= depth:
            return True
        if data >> 26 >= depth:
            return False
    end = generate(s, top)
    if end == top:
        return no_move_outcome(s) >> 8 == winner + 1
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
            won = outcome >> 8 == winner + 1
        elif not td.aborted:
            won = forced(s, td, table, winner, depth - 1, ply + 1, end)
        undo(s)
        if td.aborted:
            return False
        if won == chooses:
            # This one move settles it: a win for the one side, a defence for the other.
            if td.killers[ply, 0] != move:
                td.killers[ply, 1] = td.killers[ply, 0]
                td.killers[ply, 0] = move
            store(td, table, key, move, depth, won)
            return won
    store(td, table, key, 0, depth, not chooses)
    return not chooses


@entry
def forces(s, td, table, winner, depth):
    """Whether `winner` forces a win of the position within `depth` plies; -1 if the node limit came first."""
    td.aborted = 0
    # Not the constants: numba would compile the whole search once more for literal arguments.
    ply = s.ply - s.ply
    top = ply
    found = forced(s, td, table, winner, depth, ply, top)
    if td.aborted:
        return -1
    return 1 if found else 0


@entry
def forces_after(s, td, table, winner, depth, move):
    """As `forces`, when the first of the `depth` plies is `move`."""
    td.aborted = 0
    make(s, move)
    td.nodes += 1
    outcome = s.outcome
    if outcome == 0:
        outcome = adjudicate(s, -1)
    found = False
    if outcome:
        found = outcome >> 8 == winner + 1
    else:
        ply = depth - depth + 1
        top = ply - 1
        found = forced(s, td, table, winner, depth - 1, ply, top)
    undo(s)
    if td.aborted:
        return -1
    return 1 if found else 0
