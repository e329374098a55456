"""One-ply players with the network of 2007, many times faster than by making every move (kernels).

They choose the moves of `minimax.choose` at depth 1, from the same stream of random numbers. Most moves neither
capture nor end the game: these are not made, and the accumulators give their values directly, first in single
precision, which takes less time. These are slightly off, so every move whose value is within both errors of the best
is scored again in double precision; if that leaves several, they are made and scored by the plain network.
"""

from __future__ import annotations

import numpy as np

from ..compile.jit import entry, kernel
from ..compile.rng import randbelow
from ..games.interface import adjudicate, can_move, make, no_move_outcome, undo, value
from ..games.tafl import adjudication
from ..games.tafl import make as tafl_make
from ..games.tafl.codes import CAPTURED_PIECE, CAPTURED_SQUARE, DEFENDING, KING, PIECE, REPETITION_FORBIDDEN
from ..games.tafl.movegen import DIRECTIONS
from ..games.tafl.win_conditions import ROUND, attacker
from ..search import minimax
from ..sides import DRAWN, REASON, WINNER
from ..squares import ORIGIN, TARGET
from . import hingston2007_incremental as incremental

ATTACKERS, DEFENDERS = 0x007E, 0x3E00
"""The men of each side, as sets of piece codes."""
FILTER_BITS = 64 * incremental.FILTER_WORDS
"""Bits of the Bloom filter of earlier positions."""
COARSE = 3
"""If more moves than this, and more than a quarter of all, come too close to the best for single precision, the network
is left to double precision from then on."""
BLOCKED = 4
"""A move takes the last steps from at most this many neighbours."""


@kernel
def decided(s):
    """The outcome after a move, lack of a legal reply included, without the limit on the length of a game; else 0."""
    outcome = s.outcome
    if outcome == 0:
        outcome = adjudicate(s, -1)
        if outcome & REASON == minimax.MOVE_LIMIT:
            outcome = 0
    if outcome == 0 and not can_move(s):
        outcome = no_move_outcome(s)
    return outcome


@kernel
def won_or_lost(outcome):
    """The value of a finished game for the attackers."""
    if outcome >> WINNER == DRAWN + 1:
        return 0.0
    return minimax.WIN if outcome >> WINNER == 1 else -minimax.WIN


@kernel
def score(s, p, move):
    """The value for the attackers of the position after a move, by the plain network."""
    make(s, move)
    outcome = decided(s)
    x = won_or_lost(outcome) if outcome else value(p, s)
    undo(s)
    return x


@kernel
def loose(s):
    """Whether the other side certainly has a legal reply to every move that captures nothing.

    Counts steps to empty squares next to its pieces, until there are more than one move can block and, where the rules
    forbid repetition, more than there are positions that could be repeated.
    """
    enough = BLOCKED + 1
    if s.repetition >= REPETITION_FORBIDDEN:
        enough += s.ply - s.since + 1
    other = 1 - s.side
    for i in range(s.count[other]):
        sq = int(s.pieces[other, i])
        for d in DIRECTIONS:
            if s.board[sq + d] == 0:
                enough -= 1
        if enough <= 0:
            return True
    return False


@kernel
def ordinary(s):
    """Whether `quiet` can tell which moves neither capture nor end the game."""
    return not (
        s.opentafl
        or s.uncommon
        or s.jumpers
        or s.sealed
        or s.must_go
        or s.shieldwall_any
        or s.repetition_board
        or (s.draw_fort and s.side == 1)
        or (s.exit_fort and s.edge[s.king])
        or (s.quiet_limit and s.quiet + 1 >= s.quiet_limit)
        or not loose(s)
    )


@kernel
def two_sided(s):
    """The other side's pieces that are captured between two of this side's, as a set of piece codes."""
    if s.side == 1:
        return ATTACKERS
    return DEFENDERS | 1 << KING if s.king_sides[s.king] == 2 else DEFENDERS


@kernel
def delicate(s):
    """The pieces next to which every move needs a closer look, as a set of piece codes."""
    if s.king_with_one:
        return DEFENDERS | 1 << KING
    sides = s.king_sides[s.king]
    if sides == 2 and not s.commander_pair:
        return 0
    # While two sides of the king are open, one move cannot capture him.
    opened = 0
    for d in DIRECTIONS:
        c = s.board[s.king + d]
        if (c & PIECE == 0 or DEFENDING < c & PIECE < KING) and not (s.hostile[c] >> KING) & 1:
            opened += 1
    return 0 if opened > 1 and not s.commander_pair else 1 << KING


@kernel
def careful_of(s):
    """`delicate` if the attackers are to move, else none: only attackers capture the king."""
    return delicate(s) if s.side == 0 else 0


@kernel
def note_risks(s, net):
    """Note in `net` which moves of the side to move need a closer look than `quiet`'s.

    Returns whether `quiet` can tell at all, and whether the next position could repeat an earlier one.
    """
    plain = ordinary(s)
    repeatable = 0 < s.repetition < REPETITION_FORBIDDEN
    if repeatable:
        for i in range(FILTER_BITS // 64):
            net.filter[i] = 0
        for i in range(s.since, s.ply):
            key = np.int64(s.keys[i]) & (FILTER_BITS - 1)
            net.filter[key >> 6] |= np.uint64(1) << np.uint64(key & 63)
    for i in range(incremental.RISKS):
        net.risks[i] = 0
    prey = two_sided(s)
    careful = careful_of(s)
    other = 1 - s.side
    for i in range(s.count[other]):
        sq = int(s.pieces[other, i])
        q = s.board[sq] & PIECE
        if ((prey | careful) >> q) & 1:
            for d in DIRECTIONS:
                if (
                    (careful >> q) & 1
                    or (s.hostile[s.board[sq + d]] >> q) & 1
                    or (s.shieldwall and s.edge[sq - d])
                ):
                    net.risks[sq - d] = 1
    return plain, repeatable


@kernel
def key_without(s, o, piece):
    """The part of the keys of positions after a move that captures nothing that all targets have in common."""
    return s.key ^ s.side_zobrist ^ s.zobrist[piece, o]


@kernel
def quiet(s, net, key, t, piece, repeatable):
    """Whether a move certainly neither captures nor ends the game; False if in doubt."""
    if net.risks[t] or (piece == KING and (s.goal[t] or (s.exit_fort and s.edge[t]))):
        return False
    if s.encirclement and piece < 8:
        near = 0
        for d in ROUND:
            if attacker(s, t + d):
                near += 1
        if near > 1:
            return False
    if repeatable:
        # The position may have occurred before.
        key = np.int64(key ^ s.zobrist[piece, t]) & (FILTER_BITS - 1)
        return (net.filter[key >> 6] >> np.uint64(key & 63)) & np.uint64(1) == 0
    return True


@kernel
def make_loud(s, p, net, move, kept):
    """Make a move that may capture or end the game. Its piece has already been removed from the network's inputs.

    Returns whether that gives the score, and the score; if not, the captured men have been removed as well, saved after
    slot `kept`. `undo_loud` undoes all of it.
    """
    tafl_make.make(s, move)
    outcome = decided(s)
    first = int(s.u_caught[s.ply])
    if outcome:
        return True, won_or_lost(outcome)
    if s.caught_top - first + 2 > net.changes:
        return True, value(p, s)
    for i in range(first, s.caught_top):
        sq = int(s.caught[i]) & CAPTURED_SQUARE
        incremental.push_change(
            net,
            kept + 1 + i - first,
            sq,
            incremental.piece_input(s.board[sq] & PIECE)
            - incremental.piece_input((s.caught[i] >> CAPTURED_PIECE) & PIECE),
        )
    return False, 0.0


@kernel
def undo_loud(s, net, known, kept):
    """Undo `make_loud`, which returned `known`."""
    first = int(s.u_caught[s.ply])
    if not known:
        for i in range(s.caught_top - 1, first - 1, -1):
            incremental.pop_change(net, kept + 1 + i - first, int(s.caught[i]) & CAPTURED_SQUARE)
    tafl_make.undo(s)


@kernel
def loud(s, p, net, move, amount, kept):
    """The score of a move that may capture or end the game, as for `make_loud`."""
    known, x = make_loud(s, p, net, move, kept)
    if not known:
        x = incremental.output_with(net, incremental.hidden_sums(net, s), move >> TARGET, amount)
    undo_loud(s, net, known, kept)
    return x


@entry
def choose(s, td, p, net):
    """As `minimax.choose` at depth 1, with the accumulators `net` up to date."""
    end = adjudication.generate(s, 0)
    if end == 0:
        return 0
    td.nodes = end
    if net.coarse:
        best = score_all(s, td, p, net, net, end)
    else:
        margin = 2 * incremental.copy_single(net, s)
        best = score_all(s, td, p, net, net.single, end)
        close, chosen = closest(td, end, best - margin)
        if close == 1:
            return int(s.moves[chosen + randbelow(s, 1)])
        net.coarse = close > COARSE and 4 * close > end
        best = rescore(s, td, p, net, end, best - margin)
    near = best - 2 * incremental.error_after(net, s)
    close, chosen = closest(td, end, near)
    if close > 1:
        return choose_among(s, td, p, end, near)
    return int(s.moves[chosen + randbelow(s, 1)])


@kernel
def closest(td, end, near):
    """How many of the first `end` moves have a value of at least `near`, and the last of them."""
    close = 0
    chosen = 0
    for i in range(end):
        if td.root_values[i] >= near:
            close += 1
            chosen = i
    return close, chosen


@kernel
def rescore(s, td, p, net, end, near):
    """As `score_all`, for the moves whose values are not below `near`; the others' values become the lowest."""
    sign = 1.0 if s.side == 0 else -1.0
    best = -np.inf
    for i in range(end):
        if td.root_values[i] >= near:
            move = int(s.moves[i])
            amount = incremental.piece_input(s.board[move & ORIGIN] & PIECE)
            incremental.push_change(net, 0, move & ORIGIN, -amount)
            td.root_values[i] = sign * loud(s, p, net, move, amount, 0)
            incremental.pop_change(net, 0, move & ORIGIN)
            best = max(best, td.root_values[i])
        else:
            td.root_values[i] = -np.inf
    return best


@kernel
def score_all(s, td, p, net, layers, end):
    """Write approximate values for the mover of the first `end` moves, which must be grouped by piece, from the layers
    of `net` in one of its precisions; returns the best."""
    side = s.side
    sign = 1.0 if side == 0 else -1.0
    plain, repeatable = note_risks(s, net)
    i = 0
    count = 0
    best = -np.inf
    while i < end:
        o = int(s.moves[i]) & ORIGIN
        piece = s.board[o] & PIECE
        amount = incremental.piece_input(piece)
        key = key_without(s, o, piece)
        incremental.push_change(layers, 0, o, -amount)
        s.side = 1 - side
        hidden = incremental.hidden_sums(layers, s)
        s.side = side
        while i < end and int(s.moves[i]) & ORIGIN == o:
            t = int(s.moves[i]) >> TARGET
            if plain and quiet(s, net, key, t, piece, repeatable):
                incremental.add_to_batch(layers, count, hidden, t, amount, i)
                count += 1
            else:
                known, x = make_loud(s, p, layers, int(s.moves[i]), 0)
                if known:
                    td.root_values[i] = sign * x
                    best = max(best, sign * x)
                else:
                    incremental.add_to_batch(layers, count, incremental.hidden_sums(layers, s), t, amount, i)
                    count += 1
                undo_loud(s, layers, known, 0)
            if count == incremental.BATCH:
                best = max(best, incremental.score_batch(layers, count, td.root_values, sign))
                count = 0
            i += 1
        incremental.pop_change(layers, 0, o)
    return max(best, incremental.score_batch(layers, count, td.root_values, sign))


@kernel
def choose_among(s, td, p, end, near):
    """Score again all moves that come near the best, and draw one of those that are exactly the best."""
    sign = 1.0 if s.side == 0 else -1.0
    td.root_count = end
    td.root_best = -np.inf
    for i in range(end):
        if td.root_values[i] >= near:
            td.root_values[i] = sign * score(s, p, int(s.moves[i]))
            td.root_best = max(td.root_best, td.root_values[i])
        else:
            td.root_values[i] = -np.inf
    return int(s.moves[minimax.draw(s, td)])
