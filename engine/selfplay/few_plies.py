"""Players that search two to four plies with the network of 2007, many times faster than `minimax` (kernels).

They choose the moves of `minimax.choose`, from the same stream of random numbers. The network is updated move by move
during the search, and at the last ply moves are scored as in `one_ply`. Such values are off by at most the largest
error of a leaf, and so are the values of root moves. Root moves whose values are within both errors of the best are
searched again in a window around it: leaves that may fall into the window are scored by the plain network; all others
are above or below it for certain.
"""

from __future__ import annotations

import numpy as np

from ..compile.jit import entry, kernel
from ..games.interface import make, no_move_outcome, undo
from ..games.tafl import adjudication
from ..games.tafl.codes import PIECE
from ..search import minimax
from ..search.minimax import MOST, outcome_after, pick_move, score_moves, terminal_value, won
from ..squares import ORIGIN, TARGET
from . import hingston2007_incremental as incremental
from .one_ply import key_without, make_loud, note_risks, quiet, score, score_all, undo_loud

DEEPEST = incremental.PLIES


@kernel
def best_of_batch(s, td, p, net, count, alpha, beta, exact, margin):
    """The best value of the moves noted as a batch, for the side that makes them, off by at most the margin; if
    `exact`, values that may lie within (alpha, beta) are not off.
    """
    sign = 1.0 if s.side == 0 else -1.0
    best = incremental.score_batch(net, count, td.scores, sign)
    if not exact or best < alpha - margin:
        return best
    best = -np.inf
    for n in range(count):
        i = int(net.index[n])
        x = td.scores[i]
        if alpha - margin <= x <= beta + margin:
            x = sign * score(s, p, int(s.moves[i]))
        best = max(best, x)
    return best


@kernel
def search_frontier(s, td, p, net, alpha, beta, top, kept, exact):
    """As `search`, for a position whose moves all lead to leaves."""
    ply = s.ply - td.root
    side = s.side
    beta = min(beta, won(td, ply + 1))
    if alpha >= beta:
        return beta
    end = adjudication.generate(s, top)
    if end == top:
        return terminal_value(td, no_move_outcome(s), side, ply)
    plain, repeatable = note_risks(s, net)
    margin = incremental.error_after(net, s)
    td.error = max(td.error, margin)
    best = -np.inf
    count = 0
    i = top
    while i < end and best < beta:
        o = int(s.moves[i]) & ORIGIN
        piece = s.board[o] & PIECE
        amount = incremental.piece_input(piece)
        key = key_without(s, o, piece)
        incremental.push_change(net, kept, o, -amount)
        s.side = 1 - side
        hidden = incremental.hidden_sums(net, s)
        s.side = side
        while i < end and int(s.moves[i]) & ORIGIN == o and best < beta:
            move = int(s.moves[i])
            t = move >> TARGET
            if plain and quiet(s, net, key, t, piece, repeatable):
                incremental.add_to_batch(net, count, hidden, t, amount, i)
                count += 1
            else:
                known, x = make_loud(s, p, net, move, kept)
                if known:
                    x = x if side == 0 else -x
                    if abs(x) > MOST:
                        x = won(td, ply + 1) if x > 0 else -won(td, ply + 1)
                    best = max(best, x)
                else:
                    incremental.add_to_batch(net, count, incremental.hidden_sums(net, s), t, amount, i)
                    count += 1
                undo_loud(s, net, known, kept)
            i += 1
            if count == incremental.BATCH:
                best = max(best, best_of_batch(s, td, p, net, count, max(alpha, best), beta, exact, margin))
                count = 0
        incremental.pop_change(net, kept, o)
    td.nodes += i - top
    if best < beta:
        best = max(best, best_of_batch(s, td, p, net, count, max(alpha, best), beta, exact, margin))
    return best


@kernel
def search(s, td, p, net, depth, alpha, beta, top, kept, exact):
    """The value of an undecided position for the side to move, as `minimax.search` computes it; `net` is up to date.

    Within (alpha, beta) it is off by at most `td.error`, or not at all if `exact`.
    """
    if depth == 1:
        return search_frontier(s, td, p, net, alpha, beta, top, kept, exact)
    ply = s.ply - td.root
    side = s.side
    beta = min(beta, won(td, ply + 1))
    if alpha >= beta:
        return beta
    end = adjudication.generate(s, top)
    if end == top:
        return terminal_value(td, no_move_outcome(s), side, ply)
    score_moves(s, td, ply, top, end)
    sorting = True
    best = -np.inf
    for i in range(top, end):
        if sorting:
            sorting = pick_move(s, td, i, end) > 0
        move = int(s.moves[i])
        make(s, move)
        td.nodes += 1
        outcome = outcome_after(s, td)
        if outcome:
            x = terminal_value(td, outcome, side, ply + 1)
        else:
            behind = incremental.push_move(net, kept, s)
            if s.side == side:
                x = search(s, td, p, net, depth - 1, alpha, beta, end, behind, exact)
            else:
                x = -search(s, td, p, net, depth - 1, -beta, -alpha, end, behind, exact)
            incremental.pop_move(net, kept, s)
        undo(s)
        if x > best:
            best = x
            if x > alpha:
                alpha = x
                if x >= beta:
                    if td.killers[ply, 0] != move:
                        td.killers[ply, 1] = td.killers[ply, 0]
                        td.killers[ply, 0] = move
                    break
    return best


@kernel
def first_step(s, td, p, net, move, depth, alpha, beta, exact):
    """The value of a root move for the side that makes it."""
    side = s.side
    top = s.ply - td.root
    make(s, move)
    td.nodes += 1
    outcome = outcome_after(s, td)
    if outcome:
        x = terminal_value(td, outcome, side, s.ply - td.root)
    else:
        behind = incremental.push_move(net, top, s)
        if s.side == side:
            x = search(s, td, p, net, depth - 1, alpha, beta, top, behind, exact)
        else:
            x = -search(s, td, p, net, depth - 1, -beta, -alpha, top, behind, exact)
        incremental.pop_move(net, top, s)
    undo(s)
    return x


@entry
def choose(s, td, p, net, depth):
    """As `minimax.choose` without a node limit, with the accumulators `net` up to date; depth 2 to `DEEPEST`."""
    td.root = s.ply
    end = adjudication.generate(s, s.ply - td.root)
    td.root_count = end
    if end == 0:
        return 0
    for i in range(end):
        td.root_moves[i] = s.moves[i]
    td.nodes = 0
    score_all(s, td, p, net, net, end)
    minimax.keep_order(td)
    minimax.best_first(td)
    td.error = 0.0
    best = -np.inf
    for i in range(end):
        td.root_values[i] = -np.inf
    for k in range(end):
        i = td.root_order[k]
        alpha = -np.inf
        if best > alpha:
            alpha = minimax.step_below(best) - 2 * td.error
        x = first_step(s, td, p, net, int(td.root_moves[i]), depth, alpha, np.inf, False)
        td.root_values[i] = x
        best = max(best, x)
    # Errors that grew after a move had been refuted let it come near again: its value is a bound.
    slack = 2 * td.error
    near = minimax.step_below(best) - slack
    close = 0
    for i in range(end):
        if td.root_values[i] >= near:
            close += 1
        else:
            td.root_values[i] = -np.inf
    td.root_best = best
    if close > 1 and abs(best) <= MOST and net.error > 0:
        td.root_best = -np.inf
        alpha = near - slack
        beta = best + (best - alpha)
        for i in range(end):
            if td.root_values[i] >= near:
                x = first_step(s, td, p, net, int(td.root_moves[i]), depth, alpha, beta, True)
                td.root_values[i] = x
                td.root_best = max(td.root_best, x)
                alpha = max(alpha, minimax.step_below(x))
    return td.root_moves[minimax.draw(s, td)]
