"""Move ordering of alpha-beta: the table's move, captures, killers, then quiet moves by history (kernels).

`td` is a thread's record of `alphabeta.py`. Quiet moves that cause a cutoff become killers of their ply, and raise two
history counters: by side and move, and by the previous move and this one.
"""

from __future__ import annotations

from ..compile.jit import entry, inline, kernel
from ..games.interface import generate, generate_noisy, is_legal, order_score
from ..squares import ORIGIN, TARGET
from .features import CONTINUATION_HISTORY
from .table import abdada_slot, abdada_word

MAX_PLY = 120
HISTORY = 1 << 18
"""History counters of a side: one for every move."""
TABLE_MOVE = 1 << 24
"""The order of the table's move, above all others."""
NOISY = 16
"""The first bit of the order of captures and threats, which places them all above quiet moves."""
FIRST_KILLER, SECOND_KILLER = 60001, 60000
QUIET, QUIET_WITH_CONTINUATION = 20000, 26000
"""The order of a quiet move without history. Counters change it in either direction, but never below 0."""
MOST_HISTORY = 16384
STAGE_TABLE, STAGE_NOISY, STAGE_KILLERS, STAGE_QUIET, STAGE_DONE = range(5)
"""What a node generates next."""
ABDADA_DEFERRED = 1 << 27
"""Subtracted from the order of a deferred move: only deferred moves have negative orders."""


@inline
def pick_move(s, td, i, end):
    """Swap the remaining move with the highest order to index `i`."""
    best = i
    # In a variable, because reading it from the array at every step made the loop wait for memory.
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
def by_origin(move):
    """The index of a move's history counter: the moves of one piece lie together, in few lines of the cache."""
    return (move & ORIGIN) << TARGET | move >> TARGET


@inline
def update_history(td, side, move, bonus):
    """Move a history counter towards the bonus; it always stays within +-`MOST_HISTORY`."""
    old = int(td.history[side, by_origin(move)])
    td.history[side, by_origin(move)] = old + bonus - old * abs(bonus) // MOST_HISTORY


@inline
def update_continuation_history(td, index, bonus):
    """The same for a continuation history counter."""
    old = int(td.continuation_history[index])
    td.continuation_history[index] = old + bonus - old * abs(bonus) // MOST_HISTORY


@inline
def continuation_index(td, ply, move):
    """The index of the continuation history counter of a move after the previous one."""
    return (td.line[ply - 1] >> TARGET) << TARGET | move >> TARGET


@inline
def order_of(s, td, ply, move):
    """The order of a move that is not the table's: captures, killers, history."""
    order = order_score(s, move) << NOISY
    if move == td.killers[ply, 0]:
        return order + FIRST_KILLER
    if move == td.killers[ply, 1]:
        return order + SECOND_KILLER
    if td.features & CONTINUATION_HISTORY:
        return (
            order
            + QUIET_WITH_CONTINUATION
            + int(td.history[s.side, by_origin(move)])
            + int(td.continuation_history[continuation_index(td, ply, move)]) // 2
        )
    return order + QUIET + int(td.history[s.side, by_origin(move)])


@kernel
def generate_all(s, td, ply, top, table_move):
    """Write all moves from `top` on, and the order of each to `td.order`; returns the new end."""
    end = generate(s, top)
    illegal = 1 if table_move else 0
    for i in range(top, end):
        move = int(s.moves[i])
        if move == table_move:
            td.order[i] = TABLE_MOVE
            illegal = 0
        else:
            td.order[i] = order_of(s, td, ply, move)
    td.illegal_tt_moves += illegal
    td.stage[ply] = STAGE_DONE
    return end


@kernel
def generate_stage(s, td, ply, top, end, table_move):
    """Write the moves of the next stage that has any from `end` on, with their order; returns the new end.

    The moves from `top` to `end` are those of earlier stages. Most cutoffs come before the last stage, which writes
    and orders many moves where the others have a few.
    """
    begin = end
    while end == begin and td.stage[ply] < STAGE_DONE:
        stage = td.stage[ply]
        td.stage[ply] = stage + 1
        if stage == STAGE_TABLE:
            if table_move:
                if is_legal(s, table_move):
                    s.moves[end] = table_move
                    td.order[end] = TABLE_MOVE
                    end += 1
                else:
                    td.illegal_tt_moves += 1
        elif stage == STAGE_NOISY:
            for i in range(begin, generate_noisy(s, begin)):
                move = int(s.moves[i])
                if move != table_move:
                    s.moves[end] = move
                    td.order[end] = order_of(s, td, ply, move)
                    end += 1
        elif stage == STAGE_KILLERS:
            for i in range(2):
                move = int(td.killers[ply, i])
                if move and move != table_move and order_score(s, move) == 0 and is_legal(s, move):
                    s.moves[end] = move
                    td.order[end] = FIRST_KILLER if i == 0 else SECOND_KILLER
                    end += 1
        else:
            for i in range(begin, generate(s, begin)):
                move = int(s.moves[i])
                known = False
                for j in range(top, begin):
                    known = known or s.moves[j] == move
                if not known:
                    s.moves[end] = move
                    td.order[end] = order_of(s, td, ply, move)
                    end += 1
    return end


@kernel
def update_quiet_stats(s, td, ply, depth, top, i):
    """The quiet move at `i` caused a cutoff: make it a killer, raise its history, lower that of the moves before it."""
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
    """Swap the best move that no other thread is searching to index `i`, and mark it as being searched by this one.

    Moves that others are searching come last, in order: by then the table often has their values (T. Kerrigan's
    simplified ABDADA). Returns the index of the marking word; the caller writes 0 there when the move is done.
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
    """Halve the history of the last search: it still orders moves, but new cutoffs soon outweigh it."""
    for side in range(2):
        for i in range(HISTORY):
            td.history[side, i] //= 2
    for i in range(HISTORY):
        td.continuation_history[i] //= 2
    for i in range(MAX_PLY):
        td.killers[i, 0] = 0
        td.killers[i, 1] = 0
