"""Players who look one ply ahead with the network of 2007, many times faster than by playing every move (kernels).

The moves chosen are those of `minimax.choose` at depth 1, from the same stream of random numbers. Most moves neither
capture nor end anything: these are not made, the network is asked what it would see. What it answers is a little off,
so every move that comes as close to the best as the error of both is made and scored again by the plain network.
"""

from __future__ import annotations

import numpy as np

from ..compile.jit import entry, kernel
from ..compile.rng import randbelow
from ..games.interface import adjudicate, can_move, make, no_move_outcome, undo, value
from ..games.tafl import adjudication
from ..games.tafl import make as tafl_make
from ..games.tafl.codes import CAPTURED_PIECE, CAPTURED_SQUARE, KING, REPETITION_FORBIDDEN
from ..games.tafl.movegen import DIRECTIONS
from ..games.tafl.win_conditions import ROUND, attacker
from ..search import minimax
from ..squares import ORIGIN, TARGET
from . import hingston2007_incremental as incremental

ATTACKERS, DEFENDERS = 0x007E, 0x3E00
"""Bits of the men of a side."""
FILTER_BITS = 64 * incremental.FILTER_WORDS
"""Bits of the filter for positions that have stood before."""
BLOCKED = 4
"""A move shuts at most so many of its neighbours in."""


@kernel
def decided(s):
    """The outcome after a move, the lack of an answer included, as a player sees it who does not know the limit of
    plies; else 0."""
    outcome = s.outcome
    if outcome == 0:
        outcome = adjudicate(s, -1)
        if outcome & 255 == minimax.MOVE_LIMIT:
            outcome = 0
    if outcome == 0 and not can_move(s):
        outcome = no_move_outcome(s)
    return outcome


@kernel
def won_or_lost(outcome):
    """What a finished game is worth to the attackers."""
    if outcome >> 8 == 3:
        return 0.0
    return minimax.WIN if outcome >> 8 == 1 else -minimax.WIN


@kernel
def score(s, p, move):
    """What the position after a move is worth to the attackers, by the plain network."""
    make(s, move)
    outcome = decided(s)
    x = won_or_lost(outcome) if outcome else value(p, s)
    undo(s)
    return x


@kernel
def loose(s):
    """Whether the other side surely has an answer to every move that captures nothing.

    Steps to empty squares beside its pieces are counted until there are more than a move can shut and, where the rules
    forbid repetitions, more than positions that could come again.
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
    """Whether `quiet` can tell which moves capture nothing and end nothing."""
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
def note_history(s, net):
    """Fill the filter with the positions that the next one could repeat."""
    for i in range(FILTER_BITS // 64):
        net.filter[i] = 0
    for i in range(s.since, s.ply):
        key = np.int64(s.keys[i]) & (FILTER_BITS - 1)
        net.filter[key >> 6] |= np.uint64(1) << np.uint64(key & 63)


@kernel
def may_repeat(s, net, o, t, piece):
    """Whether the position after a move that takes nothing may have stood before."""
    key = np.int64(s.key ^ s.side_zobrist ^ s.zobrist[piece, o] ^ s.zobrist[piece, t]) & (FILTER_BITS - 1)
    return (net.filter[key >> 6] >> np.uint64(key & 63)) & np.uint64(1) != 0


@kernel
def two_sided(s):
    """Bits of the pieces of the other side that fall between two of this side's, as far as one move decides it."""
    if s.side == 1:
        return ATTACKERS
    return DEFENDERS | 1 << KING if s.king_sides[s.king] == 2 else DEFENDERS


@kernel
def delicate(s):
    """Bits of the pieces of the other side next to which every move needs a closer look."""
    if s.king_with_one:
        return ATTACKERS | DEFENDERS | 1 << KING
    sides = s.king_sides[s.king]
    if sides == 2 and not s.commander_pair:
        return 0
    # Where two sides of the king are open now, one move does not shut him in.
    opened = 0
    for d in DIRECTIONS:
        c = s.board[s.king + d]
        if (c & 15 == 0 or 8 < c & 15 < KING) and not (s.hostile[c] >> KING) & 1:
            opened += 1
    return 0 if opened > 1 and not s.commander_pair else 1 << KING


@kernel
def careful_of(s):
    """The same for the side to move: the attackers alone can shut the king in."""
    return delicate(s) if s.side == 0 else 0


@kernel
def quiet(s, net, o, t, piece, prey, careful, repeatable):
    """Whether a move surely captures nothing and ends nothing; says no where it is not sure."""
    for d in DIRECTIONS:
        q = s.board[t + d] & 15
        if ((prey | careful) >> q) & 1 and (
            (careful >> q) & 1 or (s.hostile[s.board[t + 2 * d]] >> q) & 1 or (s.shieldwall and s.edge[t])
        ):
            return False
    if piece == KING and (s.goal[t] or (s.exit_fort and s.edge[t])):
        return False
    if s.encirclement and piece < 8:
        near = 0
        for d in ROUND:
            if attacker(s, t + d):
                near += 1
        if near > 1:
            return False
    return not (repeatable and may_repeat(s, net, o, t, piece))


@kernel
def loud(s, net, move, amount, kept):
    """The score of a move that may capture or end the game, whose piece has been lifted; what changes besides is noted
    behind number `kept`."""
    tafl_make.make(s, move)
    outcome = decided(s)
    if outcome:
        x = won_or_lost(outcome)
    else:
        t = move >> TARGET
        first = int(s.u_caught[s.ply])
        for i in range(first, s.caught_top):
            sq = int(s.caught[i]) & CAPTURED_SQUARE
            incremental.push_change(
                net,
                kept + 1 + i - first,
                sq,
                incremental.piece_input(s.board[sq] & 15)
                - incremental.piece_input((s.caught[i] >> CAPTURED_PIECE) & 15),
            )
        x = incremental.output_with(net, incremental.hidden_sums(net, s), t, amount)
        for i in range(s.caught_top - 1, first - 1, -1):
            incremental.pop_change(net, kept + 1 + i - first, int(s.caught[i]) & CAPTURED_SQUARE)
    tafl_make.undo(s)
    return x


@entry
def choose(s, td, p, net):
    """As `minimax.choose` at depth 1, by a network that has followed the game."""
    end = adjudication.generate(s, 0)
    if end == 0:
        return 0
    score_all(s, td, net, end)
    near = -np.inf
    for i in range(end):
        near = max(near, td.root_values[i])
    near -= 2 * net.error
    close = 0
    chosen = 0
    for i in range(end):
        if td.root_values[i] >= near:
            close += 1
            chosen = i
    td.nodes = end
    if close > 1:
        return choose_among(s, td, p, end, near)
    return int(s.moves[chosen + randbelow(s, 1)])


@kernel
def score_all(s, td, net, end):
    """Give the first `end` moves, which lie together by pieces, values for the mover that are nearly right."""
    plain = ordinary(s)
    side = s.side
    sign = 1.0 if side == 0 else -1.0
    prey = two_sided(s)
    careful = careful_of(s)
    repeatable = 0 < s.repetition < REPETITION_FORBIDDEN
    if repeatable:
        note_history(s, net)
    i = 0
    while i < end:
        o = int(s.moves[i]) & ORIGIN
        piece = s.board[o] & 15
        amount = incremental.piece_input(piece)
        incremental.push_change(net, 0, o, -amount)
        s.side = 1 - side
        hidden = incremental.hidden_sums(net, s)
        s.side = side
        # Quiet moves are scored two at a time.
        waiting = -1
        while i < end and int(s.moves[i]) & ORIGIN == o:
            t = int(s.moves[i]) >> TARGET
            if not (plain and quiet(s, net, o, t, piece, prey, careful, repeatable)):
                td.root_values[i] = sign * loud(s, net, int(s.moves[i]), amount, 0)
            elif waiting < 0:
                waiting = i
            else:
                x, y = incremental.outputs_with(net, hidden, int(s.moves[waiting]) >> TARGET, t, amount)
                td.root_values[waiting] = sign * x
                td.root_values[i] = sign * y
                waiting = -1
            i += 1
        if waiting >= 0:
            x = incremental.output_with(net, hidden, int(s.moves[waiting]) >> TARGET, amount)
            td.root_values[waiting] = sign * x
        incremental.pop_change(net, 0, o)


@kernel
def choose_among(s, td, p, end, near):
    """The move drawn among those that are truly the best, after all that come near are scored again."""
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
