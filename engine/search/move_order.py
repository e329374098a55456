"""The order in which alpha-beta searches moves: the table's, captures, killers, then quiet ones by history (kernels).

`td` is a thread's record of `alphabeta.py`. Quiet moves that cut a node off are remembered as killers of their ply and
in counters by side and move, and by move and the one that it answers.
"""

from __future__ import annotations

from ..compile.jit import entry, inline, kernel
from ..games.interface import order_score
from ..squares import TARGET
from .features import CONTINUATION_HISTORY
from .table import abdada_slot, abdada_word

MAX_PLY = 120
HISTORY = 1 << 18
"""Counters of a side: one for every move."""
TABLE_MOVE = 1 << 24
"""The order of the table's move: before all others."""
NOISY = 16
"""The first bit of the order of captures and threats: all of them come before quiet moves."""
FIRST_KILLER, SECOND_KILLER = 60001, 60000
QUIET, QUIET_WITH_CONTINUATION = 20000, 26000
"""The order of a quiet move without any history: its counters move it to either side, never below 0."""
MOST_HISTORY = 16384
ABDADA_DEFERRED = 1 << 27
"""Taken off the order of a move that is left for later: only such orders are negative."""


@inline
def pick_move(s, td, i, end):
    """Bring the move with the highest order among the rest to place `i`."""
    best = i
    # In a variable: read from the array at every step, it made the loop wait for memory.
    order = td.order[i]
    for j in range(i + 1, end):
        if td.order[j] > order:
            best = j
            order = td.order[j]
    move = s.moves[best]
    if best != i:
        s.moves[best] = s.moves[i]
        td.order[best] = td.order[i]
        s.moves[i] = move
        td.order[i] = order
    return int(move)


@inline
def update_history(td, side, move, bonus):
    """Move a history counter towards the bonus; it can never leave +-`MOST_HISTORY`."""
    old = int(td.history[side, move])
    td.history[side, move] = old + bonus - old * abs(bonus) // MOST_HISTORY


@inline
def update_continuation_history(td, index, bonus):
    """The same for a counter of answers."""
    old = int(td.continuation_history[index])
    td.continuation_history[index] = old + bonus - old * abs(bonus) // MOST_HISTORY


@inline
def continuation_index(td, ply, move):
    """Index of the counter of a move as an answer to the one before."""
    return (td.line[ply - 1] >> TARGET) << TARGET | move >> TARGET


@kernel
def score_moves(s, td, ply, top, end, table_move):
    """Write into `td.order` what each move promises: the table's, captures, killers, history."""
    side = s.side
    first_killer = td.killers[ply, 0]
    second_killer = td.killers[ply, 1]
    with_continuation = td.features & CONTINUATION_HISTORY
    illegal = 1 if table_move else 0
    for i in range(top, end):
        move = int(s.moves[i])
        if move == table_move:
            order = TABLE_MOVE
            illegal = 0
        else:
            order = order_score(s, move) << NOISY
            if move == first_killer:
                order += FIRST_KILLER
            elif move == second_killer:
                order += SECOND_KILLER
            elif with_continuation:
                order += (
                    QUIET_WITH_CONTINUATION
                    + int(td.history[side, move])
                    + int(td.continuation_history[continuation_index(td, ply, move)]) // 2
                )
            else:
                order += QUIET + int(td.history[side, move])
        td.order[i] = order
    td.illegal_tt_moves += illegal


@kernel
def update_quiet_stats(s, td, ply, depth, top, i):
    """The quiet move at `i` cut its node off: it becomes a killer, and counts for more than those tried before."""
    side = s.side
    move = int(s.moves[i])
    if td.killers[ply, 0] != move:
        td.killers[ply, 1] = td.killers[ply, 0]
        td.killers[ply, 0] = move
    bonus = min(32 * depth * depth, 4096)
    update_history(td, side, move, bonus)
    for j in range(top, i):
        update_history(td, side, int(s.moves[j]), -bonus)
    if td.features & CONTINUATION_HISTORY and td.line[ply - 1]:
        update_continuation_history(td, continuation_index(td, ply, move), bonus)
        for j in range(top, i):
            update_continuation_history(td, continuation_index(td, ply, int(s.moves[j])), -bonus)


@kernel
def abdada_pick(s, td, table, key, i, end):
    """Bring a move to place `i` that no other thread searches, if there is one, and mark it as searched by this one.

    What others search comes last, in the old order: by then the table often knows its value (T. Kerrigan's
    simplified ABDADA). The index of the word that marks it; the caller writes 0 there when the move is done.
    """
    while True:
        move = int(s.moves[i])
        word = abdada_word(key, move)
        place = abdada_slot(td, word)
        if td.order[i] < 0 or table[place] != word:
            table[place] = word
            return place
        td.order[i] -= ABDADA_DEFERRED
        pick_move(s, td, i, end)


@entry
def age_history(td):
    """Halve the history of the last search: it still orders, but new cuts soon outweigh it."""
    for side in range(2):
        for i in range(HISTORY):
            td.history[side, i] //= 2
    for i in range(HISTORY):
        td.continuation_history[i] //= 2
    for i in range(MAX_PLY):
        td.killers[i, 0] = 0
        td.killers[i, 1] = 0
