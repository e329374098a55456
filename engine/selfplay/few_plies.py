"""Players who look two to four plies ahead with the network of 2007, many times faster than `minimax` (kernels).

The moves chosen are those of `minimax.choose`, from the same stream of random numbers. The network follows the search
move by move, and positions whose moves lead to leaves have them scored as in `one_ply`. Such values are off by at most
`net.error`, hence so is the value of a root move: those that come as close to the best as the error of both are
searched again in a window that holds nothing else. There a leaf that falls into the window is scored by the plain
network, and all others are rightly above or below it.
"""

from __future__ import annotations

import numpy as np

from ..compile.jit import entry, kernel
from ..evaluators.networks import hingston2007_fast as fast
from ..games.interface import make, no_move_outcome, undo
from ..games.tafl import adjudication
from ..games.tafl.codes import REPETITION_FORBIDDEN
from ..search import minimax
from ..search.minimax import MOST, arrange, ended, next_best, settled, won
from .one_ply import careful_of, loud, note_history, ordinary, quiet, score, score_all, two_sided

DEEPEST = fast.PLIES


@kernel
def weigh(s, w, p, x, move, alpha, beta, margin):
    """The value of a leaf for the side to move before `move`, from the score `x` that is nearly right: wins by their
    distance; with a margin exact, if it may lie within (alpha, beta)."""
    if abs(x) > MOST:
        ply = s.ply + 1 - w.root
        return won(w, ply) if x > 0 else -won(w, ply)
    if margin >= 0 and alpha - margin <= x <= beta + margin:
        x = score(s, p, move)
        return x if s.side == 0 else -x
    return x


@kernel
def frontier(s, w, p, net, alpha, beta, top, kept, margin):
    """As `look`, where every move leads to a leaf."""
    ply = s.ply - w.root
    side = s.side
    beta = min(beta, won(w, ply + 1))
    if alpha >= beta:
        return beta
    end = adjudication.generate(s, top)
    if end == top:
        return settled(w, no_move_outcome(s), side, ply)
    plain = ordinary(s)
    sign = 1.0 if side == 0 else -1.0
    prey = two_sided(s)
    careful = careful_of(s)
    repeatable = 0 < s.repetition < REPETITION_FORBIDDEN
    if repeatable:
        note_history(s, net)
    best = -np.inf
    i = top
    while i < end and best < beta:
        o = int(s.moves[i]) & 511
        piece = s.board[o] & 15
        amount = fast.seen(piece)
        fast.try_change(net, kept, o, -amount)
        s.side = 1 - side
        hidden = fast.with_raw(net, s)
        s.side = side
        waiting = -1
        while i < end and int(s.moves[i]) & 511 == o and best < beta:
            move = int(s.moves[i])
            i += 1
            if not (plain and quiet(s, net, o, move >> 9, piece, prey, careful, repeatable)):
                x = sign * loud(s, net, move, amount, kept)
            elif waiting < 0:
                waiting = move
                continue
            else:
                x, y = fast.read_with_two(net, hidden, waiting >> 9, move >> 9, amount)
                x = sign * x
                best = max(best, weigh(s, w, p, sign * y, move, alpha, beta, margin))
                alpha = max(alpha, best)
                move = waiting
                waiting = -1
            best = max(best, weigh(s, w, p, x, move, alpha, beta, margin))
            alpha = max(alpha, best)
        if waiting >= 0 and best < beta:
            x = sign * fast.read_with(net, hidden, waiting >> 9, amount)
            best = max(best, weigh(s, w, p, x, waiting, alpha, beta, margin))
            alpha = max(alpha, best)
        fast.restore(net, kept, o)
    w.nodes += i - top
    return best


@kernel
def look(s, w, p, net, depth, alpha, beta, top, kept, margin):
    """The value of an undecided position for the side to move, as `minimax.search` gives it: within (alpha, beta) off
    by at most the error of `net`, which has followed; exact with that error as `margin` (negative: without)."""
    if depth == 1:
        return frontier(s, w, p, net, alpha, beta, top, kept, margin)
    ply = s.ply - w.root
    side = s.side
    beta = min(beta, won(w, ply + 1))
    if alpha >= beta:
        return beta
    end = adjudication.generate(s, top)
    if end == top:
        return settled(w, no_move_outcome(s), side, ply)
    arrange(s, w, ply, top, end)
    sorting = True
    best = -np.inf
    for i in range(top, end):
        if sorting:
            sorting = next_best(s, w, i, end) > 0
        move = int(s.moves[i])
        make(s, move)
        w.nodes += 1
        outcome = ended(s, w)
        if outcome:
            x = settled(w, outcome, side, ply + 1)
        else:
            behind = fast.try_move(net, kept, s)
            if s.side == side:
                x = look(s, w, p, net, depth - 1, alpha, beta, end, behind, margin)
            else:
                x = -look(s, w, p, net, depth - 1, -beta, -alpha, end, behind, margin)
            fast.restore_move(net, kept, s)
        undo(s)
        if x > best:
            best = x
            if x > alpha:
                alpha = x
                if x >= beta:
                    if w.killers[ply, 0] != move:
                        w.killers[ply, 1] = w.killers[ply, 0]
                        w.killers[ply, 0] = move
                    break
    return best


@kernel
def first_step(s, w, p, net, move, depth, alpha, beta, margin):
    """The value of a root move for the side that makes it."""
    side = s.side
    top = s.ply - w.root
    make(s, move)
    w.nodes += 1
    outcome = ended(s, w)
    if outcome:
        x = settled(w, outcome, side, s.ply - w.root)
    else:
        behind = fast.try_move(net, top, s)
        if s.side == side:
            x = look(s, w, p, net, depth - 1, alpha, beta, top, behind, margin)
        else:
            x = -look(s, w, p, net, depth - 1, -beta, -alpha, top, behind, margin)
        fast.restore_move(net, top, s)
    undo(s)
    return x


@entry
def choose(s, w, p, net, depth):
    """As `minimax.choose` without a node limit, by a network that has followed the game; depth 2 to `DEEPEST`."""
    w.root = s.ply
    end = adjudication.generate(s, s.ply - w.root)
    w.root_count = end
    if end == 0:
        return 0
    for i in range(end):
        w.root_moves[i] = s.moves[i]
    w.nodes = 0
    score_all(s, w, net, end)
    minimax.keep_order(w)
    minimax.best_first(w)
    best = -np.inf
    beta = np.inf
    margin = -1.0
    slack = 2 * net.error
    for i in range(end):
        w.root_values[i] = -np.inf
    for k in range(end):
        i = w.root_order[k]
        alpha = -np.inf
        if best > alpha:
            alpha = minimax.step_below(best) - slack
        x = first_step(s, w, p, net, int(w.root_moves[i]), depth, alpha, beta, margin)
        w.root_values[i] = x
        best = max(best, x)
    near = minimax.step_below(best) - slack
    close = 0
    for i in range(end):
        if w.root_values[i] >= near:
            close += 1
        else:
            w.root_values[i] = -np.inf
    w.root_best = best
    if close > 1 and abs(best) <= MOST:
        w.root_best = -np.inf
        alpha = near - slack
        beta = best + (best - alpha)
        margin = float(net.error)
        for i in range(end):
            if w.root_values[i] >= near:
                x = first_step(s, w, p, net, int(w.root_moves[i]), depth, alpha, beta, margin)
                w.root_values[i] = x
                w.root_best = max(w.root_best, x)
    return w.root_moves[minimax.draw(s, w)]
