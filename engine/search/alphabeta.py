"""Alpha-beta over any game: principal variation search, transposition table, ordering, quiescence (kernels).

The game is reached through the verbs of `verbs.py`, the evaluator through `evaluate`; both are resolved by the
types of the records, so one source serves all of them at full speed.

Values are centipawns for the side to move; a win in n plies is `MATE - n`. A side may be to move twice running
(berserk turns): a child's value changes sign only where the side to move does.
"""

from __future__ import annotations

import numpy as np

from ..jit import entry, inline, kernel
from ..verbs import (
    MOST_MOVES,
    MOVES,
    adjudicate,
    evaluate,
    generate,
    generate_noisy,
    horizon,
    make,
    stuck,
    undo,
    weight,
)

MATE = 30000
WON = 29000
"""Values beyond this are forced ends."""
INFINITE = 32000
MAX_PLY = 120
BUCKET = 4
ROOM = MOVES - 3 * MOST_MOVES
HISTORY = 1 << 18
QUIET_PLIES = 24
"""Quiescence goes at most so deep below the last full ply: turncoats could capture for ever."""

SEARCH = np.dtype(
    [
        ("nodes", "i8"),
        ("node_limit", "i8"),
        ("stop", "i8"),  # set by other threads: leave as soon as possible
        ("aborted", "i8"),  # set by the search itself: values on the way up mean nothing
        ("seldepth", "i8"),
        ("root", "i8"),  # stack index of the root: positions since then count as repeated when they recur
        ("generation", "i8"),
        ("mask", "i8"),  # number of buckets of the table - 1
        ("root_count", "i8"),
        ("root_best", "i8"),  # index of the best root move of the running iteration
        ("root_value", "i8"),
        ("root_moves", "i4", (MOST_MOVES,)),
        ("root_values", "i4", (MOST_MOVES,)),
        ("pv_length", "i4", (MAX_PLY + 2,)),
        ("pv", "i4", (MAX_PLY + 2, MAX_PLY + 2)),
        ("killers", "i4", (MAX_PLY + 2, 2)),
        ("history", "i2", (2, HISTORY)),
        ("order", "i4", (MOVES,)),
    ],
    align=True,
)

# A table entry is two words: key, and move | value << 18 | depth << 34 | bound << 42 | generation << 44.
EXACT, LOWER, UPPER = 1, 2, 3
_TABLE_MOVE = (1 << 18) - 1


@inline
def slot_of(w, key):
    """Index of the first word of the bucket for a key."""
    return np.int64(key & np.uint64(w.mask)) * (2 * BUCKET)


@inline
def probe(w, table, key):
    """The data word stored for a key, 0 if there is none."""
    base = slot_of(w, key)
    for i in range(BUCKET):
        if table[base + 2 * i] == key:
            return np.int64(table[base + 2 * i + 1])
    return 0


@inline
def store(w, table, key, move, value, depth, bound):
    """Remember a result in the entry of the same key, or else in place of the shallowest and oldest."""
    base = slot_of(w, key)
    worst = base
    worst_worth = 1 << 40
    for i in range(BUCKET):
        at = base + 2 * i
        data = np.int64(table[at + 1])
        if table[at] == key:
            if move == 0:
                move = data & _TABLE_MOVE
            worst = at
            break
        age = (w.generation - (data >> 44)) & 63
        worth = ((data >> 34) & 255) - 8 * age
        if data == 0:
            worth = -10000
        if worth < worst_worth:
            worst_worth = worth
            worst = at
    data = move | (value + 32768) << 18 | depth << 34 | bound << 42 | w.generation << 44
    table[worst] = key
    table[worst + 1] = np.uint64(data)


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
    if value > WON:
        return value - ply
    if value < -WON:
        return value + ply
    return value


@inline
def settled(outcome, side, ply):
    """The value of a finished game for `side`, `ply` plies from the root."""
    winner = outcome >> 8
    if winner == 3:
        return 0
    if winner == side + 1:
        return MATE - ply
    return ply - MATE


@inline
def table_key(s):
    salt = horizon(s)
    return s.key ^ (np.uint64(salt) * np.uint64(0x9E3779B97F4A7C15))


@inline
def tick(w):
    """Count a node; whether the search has to end."""
    w.nodes += 1
    if w.nodes >= w.node_limit or w.stop:
        w.aborted = 1
    return w.aborted != 0


@inline
def remember_line(w, ply, move):
    """The principal variation from `ply`: this move and the child's."""
    w.pv[ply, ply] = move
    length = w.pv_length[ply + 1]
    for i in range(ply + 1, length):
        w.pv[ply, i] = w.pv[ply + 1, i]
    w.pv_length[ply] = length


@inline
def next_best(s, w, i, end):
    """Bring the move with the highest order among the rest to place `i`."""
    best = i
    for j in range(i + 1, end):
        if w.order[j] > w.order[best]:
            best = j
    move = s.moves[best]
    if best != i:
        order = w.order[best]
        s.moves[best] = s.moves[i]
        w.order[best] = w.order[i]
        s.moves[i] = move
        w.order[i] = order
    return int(move)


@kernel
def quiesce(s, w, params, alpha, beta, ply, bottom, top):
    """The value when only noisy moves are looked at; either side may stand on the evaluation instead."""
    if tick(w):
        return 0
    w.pv_length[ply] = ply
    if ply > w.seldepth:
        w.seldepth = ply
    value = evaluate(params, s)
    if value >= beta or ply >= bottom or top > ROOM:
        return value
    best = value
    alpha = max(alpha, value)
    side = s.side
    end = generate_noisy(s, top)
    for i in range(top, end):
        w.order[i] = weight(s, int(s.moves[i]))
    for i in range(top, end):
        move = next_best(s, w, i, end)
        make(s, move)
        outcome = s.outcome
        if outcome == 0:
            outcome = adjudicate(s, w.root)
        if outcome:
            w.pv_length[ply + 1] = ply + 1
            value = settled(outcome, side, ply + 1)
        elif s.side == side:
            value = quiesce(s, w, params, alpha, beta, ply + 1, bottom, end)
        else:
            value = -quiesce(s, w, params, -beta, -alpha, ply + 1, bottom, end)
        undo(s)
        if w.aborted:
            return 0
        if value > best:
            best = value
            if value > alpha:
                alpha = value
                remember_line(w, ply, move)
                if value >= beta:
                    break
    return best


@kernel
def reward(w, side, move, bonus):
    """Move a history counter towards the bonus; it can never leave +-16384."""
    old = int(w.history[side, move])
    w.history[side, move] = old + bonus - old * abs(bonus) // 16384


@kernel
def search(s, w, table, params, depth, alpha, beta, ply, top):
    """The value of an undecided position within (alpha, beta), searched `depth` plies deep."""
    if depth <= 0 or ply >= MAX_PLY - QUIET_PLIES - 1 or top > ROOM:
        return quiesce(s, w, params, alpha, beta, ply, ply + QUIET_PLIES, top)
    if tick(w):
        return 0
    w.pv_length[ply] = ply
    if ply > w.seldepth:
        w.seldepth = ply
    # A shorter win is known already, or a shorter loss cannot be avoided any more.
    alpha = max(alpha, ply - MATE)
    beta = min(beta, MATE - ply - 1)
    if alpha >= beta:
        return alpha
    pv_node = beta - alpha > 1
    key = table_key(s)
    data = probe(w, table, key)
    table_move = 0
    if data:
        table_move = data & _TABLE_MOVE
        # Lines of the principal variation are searched out: a cut there would leave it short.
        if not pv_node and (data >> 34) & 255 >= depth:
            value = from_table(((data >> 18) & 65535) - 32768, ply)
            bound = (data >> 42) & 3
            if bound == EXACT or (bound == LOWER and value >= beta) or (bound == UPPER and value <= alpha):
                return value
    side = s.side
    end = generate(s, top)
    if end == top:
        return settled(stuck(s), side, ply)
    first_killer = w.killers[ply, 0]
    second_killer = w.killers[ply, 1]
    for i in range(top, end):
        move = int(s.moves[i])
        if move == table_move:
            order = 1 << 24
        else:
            order = weight(s, move) << 16
            if move == first_killer:
                order += 60001
            elif move == second_killer:
                order += 60000
            else:
                order += 20000 + int(w.history[side, move])
        w.order[i] = order
    best = -INFINITE
    best_move = 0
    old_alpha = alpha
    for i in range(top, end):
        move = next_best(s, w, i, end)
        make(s, move)
        outcome = s.outcome
        if outcome == 0:
            outcome = adjudicate(s, w.root)
        if outcome:
            w.pv_length[ply + 1] = ply + 1
            value = settled(outcome, side, ply + 1)
        elif s.side == side:
            value = search(s, w, table, params, depth - 1, alpha, beta, ply + 1, end)
        elif i == top:
            value = -search(s, w, table, params, depth - 1, -beta, -alpha, ply + 1, end)
        else:
            value = -search(s, w, table, params, depth - 1, -alpha - 1, -alpha, ply + 1, end)
            if alpha < value < beta:
                value = -search(s, w, table, params, depth - 1, -beta, -alpha, ply + 1, end)
        undo(s)
        if w.aborted:
            return 0
        if value > best:
            best = value
            best_move = move
            if value > alpha:
                alpha = value
                remember_line(w, ply, move)
                if value >= beta:
                    if weight(s, move) == 0:
                        if w.killers[ply, 0] != move:
                            w.killers[ply, 1] = w.killers[ply, 0]
                            w.killers[ply, 0] = move
                        bonus = min(32 * depth * depth, 4096)
                        reward(w, side, move, bonus)
                        for j in range(top, i):
                            reward(w, side, int(s.moves[j]), -bonus)
                    break
    bound = EXACT
    if best >= beta:
        bound = LOWER
    elif best <= old_alpha:
        bound = UPPER
        best_move = 0
    store(w, table, key, best_move, to_table(best, ply), depth, bound)
    return best


@entry
def search_root(s, w, table, params, depth, first, alpha, beta):
    """Search the root moves from index `first` on, in the order of `w.root_moves`; the best value.

    Moves before `first` are the better lines of a multi-line search. Each move's value goes to `w.root_values`
    (a bound for all but the best). If the search is aborted, the best completed move stands in `w.root_best`
    (-1: none).
    """
    side = s.side
    # Not the constants 1 and 0: numba would compile the whole search once more for literal arguments.
    ply = s.ply - w.root + 1
    top = ply - 1
    w.root_best = -1
    w.pv_length[0] = 0
    for i in range(first, w.root_count):
        move = int(w.root_moves[i])
        make(s, move)
        outcome = s.outcome
        if outcome == 0:
            outcome = adjudicate(s, w.root)
        if outcome:
            w.nodes += 1
            w.pv_length[1] = 1
            value = settled(outcome, side, 1)
        elif s.side == side:
            value = search(s, w, table, params, depth - 1, alpha, beta, ply, top)
        elif i == first:
            value = -search(s, w, table, params, depth - 1, -beta, -alpha, ply, top)
        else:
            value = -search(s, w, table, params, depth - 1, -alpha - 1, -alpha, ply, top)
            if value > alpha and not w.aborted:
                value = -search(s, w, table, params, depth - 1, -beta, -alpha, ply, top)
        undo(s)
        if w.aborted:
            break
        w.root_values[i] = value
        if value > alpha:
            alpha = value
            w.root_best = i
            w.root_value = value
            remember_line(w, 0, move)
    return alpha


@entry
def age_history(w):
    """Halve the history of the last search: it still orders, but new cuts soon outweigh it."""
    for side in range(2):
        for i in range(HISTORY):
            w.history[side, i] //= 2
    for i in range(MAX_PLY):
        w.killers[i, 0] = 0
        w.killers[i, 1] = 0
