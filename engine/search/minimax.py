"""Plain minimax: full width to a fixed depth, values not rounded, exact ties at the root drawn (kernels).

The evaluator is called through `value`, which is for the attackers: they maximise, the defenders minimise. There are no
extensions, no quiescence and no table, exactly as for the players of the literature. Alpha-beta and move ordering
change the amount of work, never the value of a best root move.

A win is worth more than any evaluation, and a quicker win more than a slower one; with `flat` all wins are equal; with
`unseen` a finished position gets its evaluation, like any other. The rules are applied at the leaves too, the lack of a
legal move included, except for the limit on the length of a game, which these players do not know.
"""

from __future__ import annotations

import numpy as np

from ..compile.jit import entry, inline, kernel
from ..compile.rng import randbelow
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
from ..score import NO_LIMIT
from ..sides import DRAWN, REASON, WINNER, Reason

WIN = 1e15
"""The value of a win, minus one per ply until it."""
MOST = 9e14
"""Evaluations are clamped to this."""
DEEPEST = 60
ROOM = MOVES - 2 * MOST_MOVES
MOVE_LIMIT = Reason.MOVE_LIMIT.code

THREAD = np.dtype(
    [
        ("nodes", "i8"),  # positions after a move
        ("node_limit", "i8"),
        ("stop", "i8"),  # set by other threads: leave as soon as possible
        ("aborted", "i8"),  # set by the search itself: only moves finished before have a value
        ("flat", "i8"),  # all wins are worth the same
        ("unseen", "i8"),  # finished positions are evaluated, too
        ("full", "i8"),  # every root move gets its exact value, not only the best
        ("root", "i8"),  # stack index of the root
        ("since", "i8"),  # for `adjudicate`: -1, repetition strictly by the rules
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
        ("scores", "f8", (MOVES,)),  # by index into `s.moves`: values of leaves, in `few_plies`
        ("error", "f8"),  # of these values, at most
    ],
    align=True,
)


def new_thread(*, flat: bool = False, unseen: bool = False) -> np.recarray:
    """A thread's record without limits, in a one-element recarray."""
    td = np.zeros(1, THREAD).view(np.recarray)
    td[0]["node_limit"] = NO_LIMIT
    td[0]["since"] = -1
    td[0]["flat"] = flat
    td[0]["unseen"] = unseen
    return td


@inline
def won(td, ply):
    """The value of a game won `ply` plies from the root, for the winner."""
    return WIN if td.flat else WIN - ply


@inline
def terminal_value(td, outcome, side, ply):
    """The value of a finished game for `side`."""
    winner = outcome >> WINNER
    if winner == DRAWN + 1:
        return 0.0
    if winner == side + 1:
        return won(td, ply)
    return -won(td, ply)


@inline
def leaf_value(params, s):
    """The value of an undecided position for the side to move."""
    x = value(params, s)
    # Written so that NaN fails the comparison and is replaced.
    if not x <= MOST:
        x = MOST
    elif not x >= -MOST:
        x = -MOST
    return x if s.side == 0 else -x


@inline
def finished_value(s, td, params, outcome, side, ply):
    """The value of a position in which the game is over for `side`, as the player sees it."""
    if td.unseen:
        x = leaf_value(params, s)
        return x if s.side == side else -x
    return terminal_value(td, outcome, side, ply)


@inline
def outcome_after(s, td):
    """The outcome after a move as these players see it, without the limit on the length of a game."""
    outcome = s.outcome
    if outcome == 0:
        outcome = adjudicate(s, td.since)
        if outcome & REASON == MOVE_LIMIT:
            outcome = 0
    return outcome


@inline
def tick(td):
    """Count a node; returns whether the search has to stop."""
    td.nodes += 1
    if td.nodes >= td.node_limit or td.stop:
        td.aborted = 1
    return td.aborted != 0


@inline
def step_below(x):
    """Slightly less than `x`: with this alpha, values equal to `x` are exact."""
    return x - (abs(x) * 1e-15 + 1e-300)


@inline
def score_moves(s, td, ply, top, end):
    """Score the moves for ordering: captures, then killers of this ply."""
    first = td.killers[ply, 0]
    second = td.killers[ply, 1]
    for i in range(top, end):
        move = int(s.moves[i])
        order = 4 * order_score(s, move)
        if move == first:
            order += 3
        elif move == second:
            order += 2
        td.order[i] = order


@inline
def pick_move(s, td, i, end):
    """Move the remaining move with the highest order to index `i`, keeping the others in order; returns its order."""
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
def search(s, td, params, depth, alpha, beta, top):
    """The value of an undecided position for the side to move: exact within (alpha, beta), else a bound."""
    ply = s.ply - td.root
    side = s.side
    td.pv_length[ply] = ply
    if depth <= 0 or ply >= DEEPEST or top > ROOM:
        if can_move(s):
            return leaf_value(params, s)
        return finished_value(s, td, params, no_move_outcome(s), side, ply)
    # Nothing is worth more than a win with the next move.
    beta = min(beta, won(td, ply + 1))
    if alpha >= beta:
        return beta
    end = generate(s, top)
    if end == top:
        return finished_value(s, td, params, no_move_outcome(s), side, ply)
    score_moves(s, td, ply, top, end)
    sorting = True
    best = -np.inf
    for i in range(top, end):
        if sorting:
            # The remaining moves have order 0 and are searched as generated.
            sorting = pick_move(s, td, i, end) > 0
        move = int(s.moves[i])
        make(s, move)
        outcome = outcome_after(s, td)
        x = 0.0
        if not tick(td):
            if outcome:
                td.pv_length[ply + 1] = ply + 1
                x = finished_value(s, td, params, outcome, side, ply + 1)
            elif s.side == side:
                x = search(s, td, params, depth - 1, alpha, beta, end)
            else:
                x = -search(s, td, params, depth - 1, -beta, -alpha, end)
        undo(s)
        if td.aborted:
            return 0.0
        if x > best:
            best = x
            if x > alpha:
                alpha = x
                td.pv[ply, ply] = move
                length = td.pv_length[ply + 1]
                for j in range(ply + 1, length):
                    td.pv[ply, j] = td.pv[ply + 1, j]
                td.pv_length[ply] = length
                if x >= beta:
                    if td.killers[ply, 0] != move:
                        td.killers[ply, 1] = td.killers[ply, 0]
                        td.killers[ply, 0] = move
                    break
    return best


@kernel
def search_root(s, td, params, depth):
    """Search the root moves in the order of `td.root_order`; writes `td.root_values`, and the best to `td.root_best`.

    All moves equal to the best have exactly its value; the others have upper bounds below it (exact values if
    `td.full`). If the search is aborted, unfinished moves have no value.
    """
    td.root = s.ply
    side = s.side
    top = s.ply - td.root
    best = -np.inf
    for i in range(td.root_count):
        td.root_values[i] = -np.inf
    for k in range(td.root_count):
        i = td.root_order[k]
        move = int(td.root_moves[i])
        alpha = -np.inf
        if best > alpha and not td.full:
            alpha = step_below(best)
        make(s, move)
        outcome = outcome_after(s, td)
        x = 0.0
        if not tick(td):
            if outcome:
                td.pv_length[1] = 1
                x = finished_value(s, td, params, outcome, side, 1)
            elif s.side == side:
                x = search(s, td, params, depth - 1, alpha, np.inf, top)
            else:
                x = -search(s, td, params, depth - 1, -np.inf, -alpha, top)
        undo(s)
        if td.aborted:
            break
        td.root_values[i] = x
        if x > alpha:
            length = td.pv_length[1] - 1
            td.root_length[i] = length
            for j in range(length):
                td.root_pv[i, j] = td.pv[1, 1 + j]
        if x > best:
            best = x
    td.root_best = best


@inline
def keep_order(td):
    """Order the root moves as listed."""
    for i in range(td.root_count):
        td.root_order[i] = i


@kernel
def best_first(td):
    """Order the root moves by their current values, equal ones as listed."""
    td.root_order[0] = 0
    for i in range(1, td.root_count):
        j = i
        x = td.root_values[i]
        while j > 0 and td.root_values[td.root_order[j - 1]] < x:
            td.root_order[j] = td.root_order[j - 1]
            j -= 1
        td.root_order[j] = i


@kernel
def draw(s, td):
    """The index of a best root move, drawn uniformly from those equal to the best, in the order of the list.

    Always takes one random number from the state's stream, even if there is only one best move.
    """
    ties = 0
    for i in range(td.root_count):
        if td.root_values[i] == td.root_best:
            ties += 1
    left = randbelow(s, ties)
    chosen = 0
    for i in range(td.root_count):
        if td.root_values[i] == td.root_best:
            if left == 0:
                chosen = i
            left -= 1
    return chosen


@entry
def deepen(s, td, params, depth):
    """Search the listed root moves to `depth`, ordered by their values at depth - 1, or as listed at depth 1.

    Returns the index of the move drawn among the best.
    """
    td.aborted = 0
    if depth <= 1:
        keep_order(td)
    else:
        best_first(td)
    search_root(s, td, params, depth)
    return draw(s, td)


@entry
def choose(s, td, params, depth):
    """The move of a player that searches to `depth` plies; 0 if there is none.

    The root moves are listed in the order of `generate`; see `draw` for ties. The node limit is per move.
    """
    td.root = s.ply
    td.root_count = generate(s, s.ply - td.root)
    if td.root_count == 0:
        return 0
    for i in range(td.root_count):
        td.root_moves[i] = s.moves[i]
    td.nodes = 0
    td.aborted = 0
    keep_order(td)
    # For move ordering; an iteration at depth - 1 would cost more than it saves.
    for d in range(1, depth - 1):
        if not td.aborted:
            search_root(s, td, params, d)
            best_first(td)
    if not td.aborted:
        search_root(s, td, params, depth)
    return td.root_moves[draw(s, td)]
