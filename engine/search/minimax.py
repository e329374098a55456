"""Plain minimax: full width to a fixed depth, values not rounded, exact ties at the root drawn (kernels).

The evaluator is reached through `value`: what a position is worth for the attackers, who maximise; the defenders
minimise. No extensions, no quiescence, no table: what a player of the literature does is what is done here. Alpha-beta
and the order of moves change the work, never the value of a root move that is best.

A win is worth more than any position, a nearer one more than a later one; with `flat` all wins are worth the same. An
end by the rules counts at the leaves too, the lack of a move included, but for the limit on the length of a game,
which these players do not know.
"""

from __future__ import annotations

import numpy as np

from ..compile.jit import entry, inline, kernel
from ..dice import below
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
    value,
)
from ..sides import Reason

WIN = 1e15
"""A win on the board is worth so much, less one for every ply until it comes."""
MOST = 9e14
"""No position is worth more, whatever an evaluator says."""
DEEPEST = 60
ROOM = MOVES - 2 * MOST_MOVES
MOVE_LIMIT = Reason.MOVE_LIMIT.code

MINIMAX = np.dtype(
    [
        ("nodes", "i8"),  # positions after a move
        ("node_limit", "i8"),
        ("stop", "i8"),  # set by other threads: leave as soon as possible
        ("aborted", "i8"),  # set by the search itself: moves that have a value are those finished before
        ("flat", "i8"),  # all wins are worth the same
        ("full", "i8"),  # every root move gets its exact value, not the best alone
        ("root", "i8"),  # stack index of the root
        ("since", "i8"),  # for `adjudicate`: -1, repetition to the letter
        ("root_count", "i8"),
        ("root_best", "f8"),
        ("root_moves", "i4", (MOST_MOVES,)),
        ("root_values", "f8", (MOST_MOVES,)),  # for the side to move; -inf: not finished
        ("root_order", "i4", (MOST_MOVES,)),
        ("root_length", "i4", (MOST_MOVES,)),
        ("root_pv", "i4", (MOST_MOVES, DEEPEST)),  # lines of the best root moves, without the move itself
        ("pv_length", "i4", (DEEPEST + 2,)),
        ("pv", "i4", (DEEPEST + 2, DEEPEST + 2)),
        ("killers", "i4", (DEEPEST + 2, 2)),
        ("order", "i4", (MOVES,)),
    ],
    align=True,
)


def new_work(*, flat: bool = False) -> np.recarray:
    """What a search needs besides the position, without limits, in a one-element recarray."""
    work = np.zeros(1, MINIMAX).view(np.recarray)
    work[0]["node_limit"] = 1 << 62
    work[0]["since"] = -1
    work[0]["flat"] = flat
    return work


@inline
def won(w, ply):
    """The value of a game won `ply` plies from the root, for the winner."""
    return WIN if w.flat else WIN - ply


@inline
def settled(w, outcome, side, ply):
    """The value of a finished game for `side`."""
    winner = outcome >> 8
    if winner == 3:
        return 0.0
    if winner == side + 1:
        return won(w, ply)
    return -won(w, ply)


@inline
def worth(params, s):
    """The value of an undecided position for the side to move."""
    x = value(params, s)
    # Comparisons turned round: what is not a number is not let through.
    if not x <= MOST:
        x = MOST
    elif not x >= -MOST:
        x = -MOST
    return x if s.side == 0 else -x


@inline
def ended(s, w):
    """The outcome after a move as these players see it: the limit of plies does not count."""
    outcome = s.outcome
    if outcome == 0:
        outcome = adjudicate(s, w.since)
        if outcome & 255 == MOVE_LIMIT:
            outcome = 0
    return outcome


@inline
def tick(w):
    """Count a node; whether the search has to end."""
    w.nodes += 1
    if w.nodes >= w.node_limit or w.stop:
        w.aborted = 1
    return w.aborted != 0


@inline
def step_below(x):
    """A little less than `x`: a window that begins here returns what equals `x` exactly."""
    return x - (abs(x) * 1e-15 + 1e-300)


@inline
def arrange(s, w, ply, top, end):
    """Give the moves their order: captures, then moves that refuted others at this ply."""
    first = w.killers[ply, 0]
    second = w.killers[ply, 1]
    for i in range(top, end):
        move = int(s.moves[i])
        order = 4 * order_score(s, move)
        if move == first:
            order += 3
        elif move == second:
            order += 2
        w.order[i] = order


@inline
def next_best(s, w, i, end):
    """Bring the move with the highest order among the rest to place `i`, the rest keeps its own; its order."""
    best = i
    for j in range(i + 1, end):
        if w.order[j] > w.order[best]:
            best = j
    order = w.order[best]
    if best != i:
        move = s.moves[best]
        s.moves[best] = s.moves[i]
        w.order[best] = w.order[i]
        s.moves[i] = move
        w.order[i] = order
    return order


@kernel
def search(s, w, params, depth, alpha, beta, top):
    """The value of an undecided position for the side to move: exact within (alpha, beta), else a bound."""
    ply = s.ply - w.root
    side = s.side
    w.pv_length[ply] = ply
    if depth <= 0 or ply >= DEEPEST or top > ROOM:
        if can_move(s):
            return worth(params, s)
        return settled(w, no_move_outcome(s), side, ply)
    # Nothing is worth more than to win with the next move.
    beta = min(beta, won(w, ply + 1))
    if alpha >= beta:
        return beta
    end = generate(s, top)
    if end == top:
        return settled(w, no_move_outcome(s), side, ply)
    arrange(s, w, ply, top, end)
    sorting = True
    best = -np.inf
    for i in range(top, end):
        if sorting:
            # What is left when nothing stands out is searched as it comes.
            sorting = next_best(s, w, i, end) > 0
        move = int(s.moves[i])
        make(s, move)
        outcome = ended(s, w)
        x = 0.0
        if not tick(w):
            if outcome:
                w.pv_length[ply + 1] = ply + 1
                x = settled(w, outcome, side, ply + 1)
            elif s.side == side:
                x = search(s, w, params, depth - 1, alpha, beta, end)
            else:
                x = -search(s, w, params, depth - 1, -beta, -alpha, end)
        undo(s)
        if w.aborted:
            return 0.0
        if x > best:
            best = x
            if x > alpha:
                alpha = x
                w.pv[ply, ply] = move
                length = w.pv_length[ply + 1]
                for j in range(ply + 1, length):
                    w.pv[ply, j] = w.pv[ply + 1, j]
                w.pv_length[ply] = length
                if x >= beta:
                    if w.killers[ply, 0] != move:
                        w.killers[ply, 1] = w.killers[ply, 0]
                        w.killers[ply, 0] = move
                    break
    return best


@kernel
def search_root(s, w, params, depth):
    """Give the root moves their values in the order of `w.root_order`; the best of them stands in `w.root_best`.

    Whatever equals the best has exactly its value; others may have less than they are worth against them, never as
    much as the best (exact values for all if `w.full`). If the search is aborted, the moves not finished have none.
    """
    w.root = s.ply
    side = s.side
    top = s.ply - w.root
    best = -np.inf
    for i in range(w.root_count):
        w.root_values[i] = -np.inf
    for k in range(w.root_count):
        i = w.root_order[k]
        move = int(w.root_moves[i])
        alpha = -np.inf
        if best > alpha and not w.full:
            alpha = step_below(best)
        make(s, move)
        outcome = ended(s, w)
        x = 0.0
        if not tick(w):
            if outcome:
                w.pv_length[1] = 1
                x = settled(w, outcome, side, 1)
            elif s.side == side:
                x = search(s, w, params, depth - 1, alpha, np.inf, top)
            else:
                x = -search(s, w, params, depth - 1, -np.inf, -alpha, top)
        undo(s)
        if w.aborted:
            break
        w.root_values[i] = x
        if x > alpha:
            length = w.pv_length[1] - 1
            w.root_length[i] = length
            for j in range(length):
                w.root_pv[i, j] = w.pv[1, 1 + j]
        if x > best:
            best = x
    w.root_best = best


@inline
def keep_order(w):
    """Root moves as they are listed."""
    for i in range(w.root_count):
        w.root_order[i] = i


@kernel
def best_first(w):
    """Order the root moves by the values that they have now, equal ones as they are listed."""
    w.root_order[0] = 0
    for i in range(1, w.root_count):
        j = i
        x = w.root_values[i]
        while j > 0 and w.root_values[w.root_order[j - 1]] < x:
            w.root_order[j] = w.root_order[j - 1]
            j -= 1
        w.root_order[j] = i


@kernel
def draw(s, w):
    """The index of a best root move, uniformly at random: one draw from the state's stream among those equal to the
    best, counted in the order of the list, also when there is but one."""
    ties = 0
    for i in range(w.root_count):
        if w.root_values[i] == w.root_best:
            ties += 1
    left = below(s, ties)
    chosen = 0
    for i in range(w.root_count):
        if w.root_values[i] == w.root_best:
            if left == 0:
                chosen = i
            left -= 1
    return chosen


@entry
def deepen(s, w, params, depth):
    """Search the listed root moves `depth` plies deep, after a search of depth - 1 in the order of its values; the
    index of the move drawn among the best. Depth 1 begins with the order of the list."""
    w.aborted = 0
    if depth <= 1:
        keep_order(w)
    else:
        best_first(w)
    search_root(s, w, params, depth)
    return draw(s, w)


@entry
def choose(s, w, params, depth):
    """The move of a player who looks `depth` plies ahead; 0 if there is none.

    The root moves are listed as `generate` gives them; see `draw` for ties. The node limit holds for the move.
    """
    w.root = s.ply
    w.root_count = generate(s, s.ply - w.root)
    if w.root_count == 0:
        return 0
    for i in range(w.root_count):
        w.root_moves[i] = s.moves[i]
    w.nodes = 0
    w.aborted = 0
    keep_order(w)
    # For the order alone; the pass next to last costs more than it saves.
    for d in range(1, depth - 1):
        if not w.aborted:
            search_root(s, w, params, d)
            best_first(w)
    if not w.aborted:
        search_root(s, w, params, depth)
    return w.root_moves[draw(s, w)]
