"""Players that search two to four plies with the network of 2007, many times faster than `minimax` (kernels).

They choose the moves of `minimax.choose`, from the same stream of random numbers. The network is updated move by move
during the search, and at the last ply moves are scored as in `one_ply`. Such values are off by at most `net.error`, and
so are the values of root moves. Root moves whose values are within both errors of the best are searched again in a
window around it: leaves that fall into the window are scored by the plain network; all others are above or below it for
certain. A player without a network sees only wins and losses; its values are exact, and most moves cost it next to
nothing.
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
from .one_ply import key_without, loud, note_risks, quiet, score, score_all

DEEPEST = incremental.PLIES


@kernel
def value_of_leaf(s, td, p, x, move, alpha, beta, margin):
    """The value of the leaf after `move`, for the side that makes it, from its approximate score `x`.

    Wins are valued by their distance. With a margin >= 0 the value is exact if it may lie within (alpha, beta).
    """
    if abs(x) > MOST:
        ply = s.ply + 1 - td.root
        return won(td, ply) if x > 0 else -won(td, ply)
    if margin >= 0 and alpha - margin <= x <= beta + margin:
        x = score(s, p, move)
        return x if s.side == 0 else -x
    return x


@kernel
def search_frontier(s, td, p, net, alpha, beta, top, kept, margin):
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
    sign = 1.0 if side == 0 else -1.0
    blank = incremental.blank(net)
    best = -np.inf
    i = top
    while i < end and best < beta:
        o = int(s.moves[i]) & ORIGIN
        piece = s.board[o] & PIECE
        amount = incremental.piece_input(piece)
        key = key_without(s, o, piece)
        if not blank:
            incremental.push_change(net, kept, o, -amount)
        s.side = 1 - side
        hidden = incremental.hidden_sums(net, s)
        s.side = side
        waiting = -1
        while i < end and int(s.moves[i]) & ORIGIN == o and best < beta:
            move = int(s.moves[i])
            i += 1
            if not (plain and quiet(s, net, key, move >> TARGET, piece, repeatable)):
                x = sign * loud(s, p, net, move, amount, kept)
            elif blank:
                x = 0.0
            elif waiting < 0:
                waiting = move
                continue
            else:
                x, y = incremental.outputs_with(net, hidden, waiting >> TARGET, move >> TARGET, amount)
                x = sign * x
                best = max(best, value_of_leaf(s, td, p, sign * y, move, alpha, beta, margin))
                alpha = max(alpha, best)
                move = waiting
                waiting = -1
            best = max(best, value_of_leaf(s, td, p, x, move, alpha, beta, margin))
            alpha = max(alpha, best)
        if waiting >= 0 and best < beta:
            x = sign * incremental.output_with(net, hidden, waiting >> TARGET, amount)
            best = max(best, value_of_leaf(s, td, p, x, waiting, alpha, beta, margin))
            alpha = max(alpha, best)
        if not blank:
            incremental.pop_change(net, kept, o)
    td.nodes += i - top
    return best


@kernel
def search(s, td, p, net, depth, alpha, beta, top, kept, margin):
    """The value of an undecided position for the side to move, as `minimax.search` computes it; `net` is up to date.

    Within (alpha, beta) it is off by at most the error of `net`, or exact if that error is the `margin` (< 0: none).
    """
    if depth == 1:
        return search_frontier(s, td, p, net, alpha, beta, top, kept, margin)
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
                x = search(s, td, p, net, depth - 1, alpha, beta, end, behind, margin)
            else:
                x = -search(s, td, p, net, depth - 1, -beta, -alpha, end, behind, margin)
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
def first_step(s, td, p, net, move, depth, alpha, beta, margin):
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
            x = search(s, td, p, net, depth - 1, alpha, beta, top, behind, margin)
        else:
            x = -search(s, td, p, net, depth - 1, -beta, -alpha, top, behind, margin)
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
    best = -np.inf
    beta = np.inf
    margin = -1.0
    slack = 2 * net.error
    for i in range(end):
        td.root_values[i] = -np.inf
    for k in range(end):
        i = td.root_order[k]
        alpha = -np.inf
        if best > alpha:
            alpha = minimax.step_below(best) - slack
        x = first_step(s, td, p, net, int(td.root_moves[i]), depth, alpha, beta, margin)
        td.root_values[i] = x
        best = max(best, x)
    near = minimax.step_below(best) - slack
    close = 0
    for i in range(end):
        if td.root_values[i] >= near:
            close += 1
        else:
            td.root_values[i] = -np.inf
    td.root_best = best
    if close > 1 and abs(best) <= MOST and not incremental.blank(net):
        td.root_best = -np.inf
        alpha = near - slack
        beta = best + (best - alpha)
        margin = float(net.error)
        for i in range(end):
            if td.root_values[i] >= near:
                x = first_step(s, td, p, net, int(td.root_moves[i]), depth, alpha, beta, margin)
                td.root_values[i] = x
                td.root_best = max(td.root_best, x)
    return td.root_moves[minimax.draw(s, td)]
