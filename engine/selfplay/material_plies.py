"""Players whose values only captures and the king's square change, many times faster than `minimax` (kernels).

These are Simple, and who sees nothing but wins and losses. They choose the moves of `minimax.choose`, from the same
stream of random numbers. At the last ply a quiet move, as `one_ply` finds them, is not made: its value is known. One
ply earlier a quiet move is worth no more to its side than what the position is worth after it, because the opponent can
leave it at that; where so much is not enough, the move is not made either.
"""

from __future__ import annotations

import numpy as np

from ..compile.jit import entry, kernel
from ..games.interface import make, no_move_outcome, order_score, undo
from ..games.tafl import adjudication
from ..games.tafl.codes import KING, NO_MOVE_LOSE, PIECE, REPETITION_IGNORE
from ..games.tafl.movegen import DIRECTIONS
from ..search import minimax
from ..search.minimax import leaf_value, outcome_after, step_below, terminal_value, won
from ..squares import ORIGIN, TARGET
from .one_ply import BLOCKED, decided, key_without, note_risks, quiet


@kernel
def answered(s):
    """Whether the other side certainly has a move that is worth no less to it than the present position, whatever quiet
    move is made here: a step of a man to an empty square, after which nothing but the other side's gain can end the
    game. Asked where `note_risks` says that `quiet` can tell.
    """
    if (
        (s.repetition != REPETITION_IGNORE and s.ply - s.since > 1)
        or (s.quiet_limit and s.quiet + 2 >= s.quiet_limit)
        or s.draw_fort
        or s.material_attackers >= 0
        or s.no_move != NO_MOVE_LOSE
    ):
        return False
    other = 1 - s.side
    steps = 0
    for i in range(s.count[other]):
        sq = int(s.pieces[other, i])
        if s.board[sq] & PIECE != KING:
            for d in DIRECTIONS:
                if s.board[sq + d] == 0:
                    steps += 1
            if steps > BLOCKED:
                return True
    return False


@kernel
def value_after(s, p, base, move):
    """The value for the side to move after a quiet move of its own; `base` is that of the present position."""
    king = s.king
    if move & ORIGIN != king:
        return base
    s.king = move >> TARGET
    x = leaf_value(p, s)
    s.king = king
    return x


@kernel
def leaf_after(s, td, p, move):
    """The value of a move of any kind at the last ply, for the side that makes it."""
    side = s.side
    make(s, move)
    td.nodes += 1
    outcome = decided(s)
    if outcome:
        x = terminal_value(td, outcome, side, s.ply - td.root)
    else:
        x = leaf_value(p, s)
        if s.side != side:
            x = -x
    undo(s)
    return x


@kernel
def bring_forward(s, top, end, move):
    """Swap a move to the front of those from `top` to `end`, if it is among them."""
    for i in range(top, end):
        if int(s.moves[i]) == move:
            s.moves[i] = s.moves[top]
            s.moves[top] = move
            return


@kernel
def search(s, td, p, net, depth, alpha, beta, top):
    """The value of an undecided position for the side to move, as `minimax.search` computes it."""
    ply = s.ply - td.root
    side = s.side
    beta = min(beta, won(td, ply + 1))
    if alpha >= beta:
        return beta
    end = adjudication.generate(s, top)
    if end == top:
        return terminal_value(td, no_move_outcome(s), side, ply)
    best = -np.inf
    base = leaf_value(p, s)
    # The moves to be made come in two groups: first any that may capture or end the game, then quiet ones.
    loud = top
    kept = top
    known, repeatable = False, False
    if depth <= 2:
        known, repeatable = note_risks(s, net)
        if depth == 2:
            known = known and answered(s)
    o = 0
    piece = 0
    key = s.key
    for i in range(top, end):
        move = int(s.moves[i])
        if move & ORIGIN != o:
            o = move & ORIGIN
            piece = s.board[o] & PIECE
            key = key_without(s, o, piece)
        if known and quiet(s, net, key, move >> TARGET, piece, repeatable):
            x = value_after(s, p, base, move)
            if depth == 1 or x <= alpha:
                best = max(best, x)
                if best >= beta:
                    td.nodes += 1
                    return best
            else:
                s.moves[kept] = move
                kept += 1
        elif depth == 1 or known or order_score(s, move) > 0:
            s.moves[kept] = s.moves[loud]
            s.moves[loud] = move
            kept += 1
            loud += 1
        else:
            s.moves[kept] = move
            kept += 1
    td.nodes += end - top - (kept - top)
    alpha = max(alpha, best)
    for k in range(1, -1, -1):
        bring_forward(s, top, loud, td.killers[ply, k])
        bring_forward(s, loud, kept, td.killers[ply, k])
    for i in range(top, kept):
        move = int(s.moves[i])
        if known and i >= loud:
            x = value_after(s, p, base, move)
            if x <= alpha:
                best = max(best, x)
                continue
        if depth == 1:
            x = leaf_after(s, td, p, move)
        else:
            make(s, move)
            td.nodes += 1
            outcome = outcome_after(s, td)
            if outcome:
                x = terminal_value(td, outcome, side, ply + 1)
            elif s.side == side:
                x = search(s, td, p, net, depth - 1, alpha, beta, kept)
            else:
                x = -search(s, td, p, net, depth - 1, -beta, -alpha, kept)
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
def search_root(s, td, p, net, depth):
    """As `minimax.search_root`, without limits and lines."""
    side = s.side
    best = -np.inf
    for k in range(td.root_count):
        i = td.root_order[k]
        alpha = -np.inf
        if best > alpha:
            alpha = step_below(best)
        make(s, int(td.root_moves[i]))
        td.nodes += 1
        outcome = outcome_after(s, td)
        if outcome:
            x = terminal_value(td, outcome, side, 1)
        elif s.side == side:
            x = search(s, td, p, net, depth - 1, alpha, np.inf, 0)
        else:
            x = -search(s, td, p, net, depth - 1, -np.inf, -alpha, 0)
        undo(s)
        td.root_values[i] = x
        best = max(best, x)
    td.root_best = best


@kernel
def look_ahead(s, td, p, net):
    """The values of the root moves one ply deep."""
    known, repeatable = note_risks(s, net)
    base = leaf_value(p, s)
    td.root_best = -np.inf
    for i in range(td.root_count):
        move = int(td.root_moves[i])
        o = move & ORIGIN
        piece = s.board[o] & PIECE
        if known and quiet(s, net, key_without(s, o, piece), move >> TARGET, piece, repeatable):
            td.nodes += 1
            td.root_values[i] = value_after(s, p, base, move)
        else:
            td.root_values[i] = leaf_after(s, td, p, move)
        td.root_best = max(td.root_best, td.root_values[i])


@entry
def choose(s, td, p, net, depth):
    """As `minimax.choose` without a node limit; `net` is scratch for `note_risks`."""
    td.root = s.ply
    td.root_count = adjudication.generate(s, 0)
    if td.root_count == 0:
        return 0
    for i in range(td.root_count):
        td.root_moves[i] = s.moves[i]
    td.nodes = 0
    look_ahead(s, td, p, net)
    minimax.keep_order(td)
    for d in range(2, depth + 1):
        minimax.best_first(td)
        search_root(s, td, p, net, d)
    return td.root_moves[minimax.draw(s, td)]
