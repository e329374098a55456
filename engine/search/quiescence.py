"""The ends of alpha-beta's lines: solved positions, the cached evaluation, and quiescence (kernels).

`td` is a thread's record of `alphabeta.py`.
"""

from __future__ import annotations

import numpy as np

from ..compile.jit import inline, kernel
from ..games.interface import (
    LOST,
    MOST_MOVES,
    MOVES,
    adjudicate,
    evaluate,
    generate,
    generate_noisy,
    make,
    order_score,
    threat_level,
    undo,
    winning_move,
)
from ..games.interface import (
    probe as probe_tables,
)
from ..score import INFINITE, MATE, MAX_EVAL
from ..sides import DRAWN, WINNER
from ..solving.probing import DRAWN as TABLE_DRAW
from ..solving.probing import ENDLESS_BY_ATTACKERS, KIND, PLIES, WON_BY_ATTACKERS
from .features import MATE_IN_ONE
from .move_order import pick_move

ROOM = MOVES - 3 * MOST_MOVES
QUIET_PLIES = 24
"""Quiescence stops after this many plies: captured mercenaries change sides, so captures need not run out."""
_EVAL_CACHE_BITS = 14
EVAL_CACHE_SIZE = 1 << _EVAL_CACHE_BITS
"""Evaluations that a thread caches: the next iteration needs those of this one's leaves again."""


@kernel
def solved_value(s, td, ply):
    """The value of a position from a solved table, INFINITE if none has it."""
    answer = probe_tables(s, td.tables)
    if answer == 0:
        return INFINITE
    td.tables.hits += 1
    kind = answer >> KIND
    if kind == TABLE_DRAW:
        return int(td.draw[s.side])
    if kind >= ENDLESS_BY_ATTACKERS:
        # Won by repetition, after an unknown number of plies.
        return MAX_EVAL if kind - ENDLESS_BY_ATTACKERS == s.side else -MAX_EVAL
    value = MATE - ply - (answer & PLIES)
    return value if kind - WON_BY_ATTACKERS == s.side else -value


@inline
def terminal_value(td, outcome, side, ply):
    """The value of a finished game for `side`, `ply` plies from the root."""
    winner = outcome >> WINNER
    if winner == DRAWN + 1:
        return int(td.draw[side])
    if winner == side + 1:
        return MATE - ply
    return ply - MATE


@inline
def static_eval(s, td, params):
    """The cached evaluation, in centipawns for the side to move. It may depend on the position and the root only."""
    place = np.int64(s.key >> np.uint64(64 - _EVAL_CACHE_BITS))
    mark = s.key << np.uint64(16)
    word = td.eval_cache[place]
    if word >> np.uint64(16) << np.uint64(16) == mark and word != 0:
        return np.int64(word & np.uint64(65535)) - 32768
    value = evaluate(params, s)
    td.eval_cache[place] = mark | np.uint64(value + 32768)
    return value


@inline
def tick(td):
    """Count a node; returns whether the search has to stop."""
    td.nodes += 1
    if td.nodes >= td.node_limit or td.stop:
        td.aborted = 1
    return td.aborted != 0


@inline
def update_pv(td, ply, move):
    """Set the principal variation at `ply`: this move, then the child's."""
    td.pv[ply, ply] = move
    length = td.pv_length[ply + 1]
    for i in range(ply + 1, length):
        td.pv[ply, i] = td.pv[ply + 1, i]
    td.pv_length[ply] = length


@inline
def mate_in_one(s, td, alpha, beta, ply, top):
    """The value of a node with an immediate win or an unstoppable loss; 0 if it has to be searched."""
    move = winning_move(s, top)
    if move:
        td.pv_length[ply + 1] = ply + 1
        update_pv(td, ply, move)
        return MATE - ply - 1
    if threat_level(s, top) == LOST:
        if beta - alpha > 1:
            pv_of_loss(s, td, ply, top)
        return ply + 2 - MATE
    return 0


@kernel
def pv_of_loss(s, td, ply, top):
    """Write the principal variation of a node lost in two plies: any legal move, and the win."""
    td.pv_length[ply] = ply
    end = generate(s, top)
    if end == top:
        return
    move = int(s.moves[top])
    make(s, move)
    td.pv_length[ply + 1] = ply + 1
    if s.outcome == 0:
        reply = winning_move(s, end)
        if reply:
            td.pv_length[ply + 2] = ply + 2
            update_pv(td, ply + 1, reply)
    undo(s)
    update_pv(td, ply, move)


@kernel
def quiesce(s, td, params, alpha, beta, ply, bottom, top):
    """Quiescence search: the value with noisy moves only, where either side may stand pat on the evaluation."""
    if tick(td):
        return 0
    td.pv_length[ply] = ply
    if ply > td.seldepth:
        td.seldepth = ply
    if td.tables.most:
        value = solved_value(s, td, ply)
        if value != INFINITE:
            return value
    if td.features & MATE_IN_ONE:
        foreseen = mate_in_one(s, td, alpha, beta, ply, top)
        if foreseen:
            return foreseen
    value = static_eval(s, td, params)
    if value >= beta or ply >= bottom or top > ROOM:
        return value
    best = value
    alpha = max(alpha, value)
    side = s.side
    end = generate_noisy(s, top)
    for i in range(top, end):
        td.order[i] = order_score(s, int(s.moves[i]))
    for i in range(top, end):
        move = pick_move(s, td, i, end)
        make(s, move)
        outcome = s.outcome
        if outcome == 0:
            outcome = adjudicate(s, td.root)
        if outcome:
            td.pv_length[ply + 1] = ply + 1
            value = terminal_value(td, outcome, side, ply + 1)
        elif s.side == side:
            value = quiesce(s, td, params, alpha, beta, ply + 1, bottom, end)
        else:
            value = -quiesce(s, td, params, -beta, -alpha, ply + 1, bottom, end)
        undo(s)
        if td.aborted:
            return 0
        if value > best:
            best = value
            if value > alpha:
                alpha = value
                update_pv(td, ply, move)
                if value >= beta:
                    break
    return best
