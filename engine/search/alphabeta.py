"""Alpha-beta over any game: principal variation search, transposition table, ordering, quiescence (kernels).

The game is reached through the verbs of `verbs.py`, the evaluator through `evaluate`; both are resolved by the
types of the records, so one source serves all of them at full speed.

Values are centipawns for the side to move; a win in n plies is `MATE - n`. A side may be to move twice running
(berserk turns): a child's value changes sign only where the side to move does.

What is more than the textbook's search is a bit of `work.features`; `features.py` says what each of them does.
"""

from __future__ import annotations

import numpy as np

from ..compile.jit import entry, inline, kernel
from ..games.interface import (
    LOST,
    MOST_MOVES,
    MOVES,
    NO_THREAT,
    THREAT,
    adjudicate,
    evaluate,
    generate,
    generate_noisy,
    image_key,
    limit_salt,
    make,
    make_null,
    no_move_outcome,
    order_score,
    threat_level,
    undo,
    unmake_null,
    winning_move,
)
from ..squares import CELLS
from .features import (
    CONTINUATION,
    EXTENSIONS,
    FORESIGHT,
    INTERNAL,
    NULL_MOVE,
    PROVEN,
    PRUNING,
    REDUCTIONS,
    SELECTIVE,
)
from .table import (
    EXACT,
    LOWER,
    MATE,
    MOVE_BITS,
    UPPER,
    WON,
    busy_at,
    busy_with,
    from_table,
    probe,
    store,
    to_table,
)

INFINITE = 32000
MAX_PLY = 120
ROOM = MOVES - 3 * MOST_MOVES
HISTORY = 1 << 18
QUIET_PLIES = 24
"""Quiescence goes at most so deep below the last full ply: turncoats could capture for ever."""

VERIFIED = 8
"""From this depth on a null move is verified by a search."""
RESIGNED = 4
"""Up to this depth a node far from the window is believed lost or won without a search."""
HOPE = 100
"""Centipawns that a ply may bring."""
LATE = 4
"""Up to this depth late quiet moves are left out."""
SHARED = 5
"""From this depth on threads leave a move for later while another thread is busy with it: above the depths at which
the order of moves decides what is left out."""
_VALUE_BITS = 14
VALUES = 1 << _VALUE_BITS
"""Evaluations that a thread remembers: the next depth asks for those of this one's leaves again."""
MIRRORED = 4
"""Down to this ply a position below a symmetric root is looked up as that of its images whose key is least. Deeper
down two lines seldom lead to images of each other that a node above has not told apart already."""
LATER = 1 << 27
"""Taken off the order of a move that is left for later: only such orders are negative."""

SEARCH = np.dtype(
    [
        ("nodes", "i8"),
        ("node_limit", "i8"),
        ("stop", "i8"),  # set by other threads: leave as soon as possible
        ("aborted", "i8"),  # set by the search itself: values on the way up mean nothing
        ("seldepth", "i8"),
        ("root", "i8"),  # stack index of the root: positions since then count as repeated when they recur
        ("features", "i8"),
        ("longest", "i8"),  # no line is extended beyond this ply
        ("no_null", "i8"),  # no passing above this ply: a null move is being verified
        (
            "strays",
            "i8",
        ),  # moves of the table that were not legal: equal keys of other positions, torn entries
        ("images", "i8"),  # how many symmetries keep the game, if they are to be used
        ("mirrored", "i8"),  # the last ply at which they are: 0 where the root is not symmetric
        ("image", "u2", (8, CELLS)),  # where squares go under each, from 1 on
        ("back", "u2", (8, CELLS)),  # and where they come from
        ("team", "i8"),  # whether other threads search the same root
        ("generation", "i8"),
        ("mask", "i8"),  # number of buckets of the table - 1
        ("root_count", "i8"),
        ("root_best", "i8"),  # index of the best root move of the running iteration
        ("root_value", "i8"),
        ("root_moves", "i4", (MOST_MOVES,)),
        ("root_values", "i4", (MOST_MOVES,)),
        ("root_later", "u1", (MOST_MOVES,)),
        ("pv_length", "i4", (MAX_PLY + 2,)),
        ("pv", "i4", (MAX_PLY + 2, MAX_PLY + 2)),
        ("killers", "i4", (MAX_PLY + 2, 2)),
        ("history", "i2", (2, HISTORY)),
        ("answers", "i2", (HISTORY,)),  # history by target of the move before and target
        ("values", "u8", (VALUES,)),  # what evaluations came to: 48 bits of the key, 16 of the value
        ("line", "i4", (MAX_PLY + 2,)),  # the move made at each ply, 0 for a pass
        ("reduction", "u1", (64, 64)),  # plies by depth and number of the move
        ("order", "i4", (MOVES,)),
    ],
    align=True,
)


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
    salt = limit_salt(s)
    return s.key ^ (np.uint64(salt) * np.uint64(0x9E3779B97F4A7C15))


@kernel
def least_image(s, w):
    """The symmetry under which the position's key is least, 0 for none."""
    least = s.key
    found = 0
    for i in range(1, w.images + 1):
        key = image_key(s, w.image[i])
        if key < least:
            least = key
            found = i
    return found


@kernel
def is_symmetric(s, w):
    """Whether the position is its own image under any symmetry that keeps the game."""
    for i in range(1, w.images + 1):
        if image_key(s, w.image[i]) == s.key:
            return True
    return False


@inline
def moved(squares, move):
    """A move under a symmetry that takes square `i` to `squares[i]`."""
    return np.int64(squares[move & 511]) | np.int64(squares[move >> 9]) << 9


@inline
def assess(s, w, params):
    """What the evaluator says, in centipawns for the side to move. It must follow from the position and the root."""
    place = np.int64(s.key >> np.uint64(64 - _VALUE_BITS))
    mark = s.key << np.uint64(16)
    word = w.values[place]
    if word >> np.uint64(16) << np.uint64(16) == mark and word != 0:
        return np.int64(word & np.uint64(65535)) - 32768
    value = evaluate(params, s)
    w.values[place] = mark | np.uint64(value + 32768)
    return value


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
    # In a variable: read from the array at every step, it made the loop wait for memory.
    order = w.order[i]
    for j in range(i + 1, end):
        if w.order[j] > order:
            best = j
            order = w.order[j]
    move = s.moves[best]
    if best != i:
        s.moves[best] = s.moves[i]
        w.order[best] = w.order[i]
        s.moves[i] = move
        w.order[i] = order
    return int(move)


@inline
def foresee(s, w, alpha, beta, ply, top):
    """The value of a node that needs no tree, 0 if it does: a win at once, or a loss that nothing parries."""
    move = winning_move(s, top)
    if move:
        w.pv_length[ply + 1] = ply + 1
        remember_line(w, ply, move)
        return MATE - ply - 1
    if threat_level(s, top) == LOST:
        if beta - alpha > 1:
            show_loss(s, w, ply, top)
        return ply + 2 - MATE
    return 0


@kernel
def show_loss(s, w, ply, top):
    """A line to the end from a node that is lost whatever is done: any move, and the win."""
    w.pv_length[ply] = ply
    end = generate(s, top)
    if end == top:
        return
    move = int(s.moves[top])
    make(s, move)
    w.pv_length[ply + 1] = ply + 1
    if s.outcome == 0:
        reply = winning_move(s, end)
        if reply:
            w.pv_length[ply + 2] = ply + 2
            remember_line(w, ply + 1, reply)
    undo(s)
    remember_line(w, ply, move)


@kernel
def quiesce(s, w, params, alpha, beta, ply, bottom, top):
    """The value when only noisy moves are looked at; either side may stand on the evaluation instead."""
    if tick(w):
        return 0
    w.pv_length[ply] = ply
    if ply > w.seldepth:
        w.seldepth = ply
    if w.features & FORESIGHT:
        foreseen = foresee(s, w, alpha, beta, ply, top)
        if foreseen:
            return foreseen
    value = assess(s, w, params)
    if value >= beta or ply >= bottom or top > ROOM:
        return value
    best = value
    alpha = max(alpha, value)
    side = s.side
    end = generate_noisy(s, top)
    for i in range(top, end):
        w.order[i] = order_score(s, int(s.moves[i]))
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


@inline
def reward(w, side, move, bonus):
    """Move a history counter towards the bonus; it can never leave +-16384."""
    old = int(w.history[side, move])
    w.history[side, move] = old + bonus - old * abs(bonus) // 16384


@inline
def reward_answer(w, index, bonus):
    """The same for a counter of answers."""
    old = int(w.answers[index])
    w.answers[index] = old + bonus - old * abs(bonus) // 16384


@inline
def table_cut(w, data, depth, alpha, beta, ply):
    """What the table says, if it settles a null window around `alpha`; else INFINITE."""
    value = from_table(((data >> 18) & 65535) - 32768, ply)
    bound = (data >> 42) & 3
    known = (data >> 34) & 255 >= depth
    if w.features & PROVEN and (value > WON or value < -WON):
        # A forced win is a lower bound and a forced loss an upper bound whatever the depth.
        known = known or (value > WON and bound != UPPER) or (value < -WON and bound != LOWER)
    if known and (
        bound == EXACT or (bound == LOWER and value >= beta) or (bound == UPPER and value <= alpha)
    ):
        return value
    return INFINITE


@inline
def answer(w, ply, move):
    """Index of the counter of a move as an answer to the one before."""
    return (w.line[ply - 1] >> 9) << 9 | move >> 9


@kernel
def score_moves(s, w, ply, top, end, table_move):
    """Write into `w.order` what each move promises: the table's, captures, killers, history."""
    side = s.side
    first_killer = w.killers[ply, 0]
    second_killer = w.killers[ply, 1]
    continuation = w.features & CONTINUATION
    stray = 1 if table_move else 0
    for i in range(top, end):
        move = int(s.moves[i])
        if move == table_move:
            order = 1 << 24
            stray = 0
        else:
            order = order_score(s, move) << 16
            if move == first_killer:
                order += 60001
            elif move == second_killer:
                order += 60000
            elif continuation:
                order += 26000 + int(w.history[side, move]) + int(w.answers[answer(w, ply, move)]) // 2
            else:
                order += 20000 + int(w.history[side, move])
        w.order[i] = order
    w.strays += stray


@kernel
def learn(s, w, ply, depth, top, i):
    """The quiet move at `i` cut its node off: it becomes a killer, and counts for more than those tried before."""
    side = s.side
    move = int(s.moves[i])
    if w.killers[ply, 0] != move:
        w.killers[ply, 1] = w.killers[ply, 0]
        w.killers[ply, 0] = move
    bonus = min(32 * depth * depth, 4096)
    reward(w, side, move, bonus)
    for j in range(top, i):
        reward(w, side, int(s.moves[j]), -bonus)
    if w.features & CONTINUATION and w.line[ply - 1]:
        reward_answer(w, answer(w, ply, move), bonus)
        for j in range(top, i):
            reward_answer(w, answer(w, ply, int(s.moves[j])), -bonus)


@kernel
def claim(s, w, table, key, i, end):
    """Bring a move to place `i` that no other thread is busy with, if there is one, and say that this one is.

    What others are busy with comes last, in the old order: by then the table often knows its value (T. Kerrigan's
    simplified ABDADA). The index of the word that says so; the caller writes 0 there when it is done.
    """
    while True:
        move = int(s.moves[i])
        word = busy_with(key, move)
        place = busy_at(w, word)
        if w.order[i] < 0 or table[place] != word:
            table[place] = word
            return place
        w.order[i] -= LATER
        next_best(s, w, i, end)


@kernel
def search(s, w, table, params, depth, alpha, beta, ply, top):
    """The value of an undecided position within (alpha, beta), searched `depth` plies deep."""
    features = w.features
    threat = NO_THREAT
    if features & (FORESIGHT | EXTENSIONS | SELECTIVE):
        if depth > 0:
            # Quiescence looks for itself.
            move = winning_move(s, top)
            if move:
                if tick(w):
                    return 0
                w.pv_length[ply + 1] = ply + 1
                remember_line(w, ply, move)
                return MATE - ply - 1
        threat = threat_level(s, top)
        if threat == THREAT and features & EXTENSIONS and ply < w.longest:
            depth += 1
    if depth <= 0 or ply >= MAX_PLY - QUIET_PLIES - 1 or top > ROOM:
        return quiesce(s, w, params, alpha, beta, ply, ply + QUIET_PLIES, top)
    if tick(w):
        return 0
    w.pv_length[ply] = ply
    if ply > w.seldepth:
        w.seldepth = ply
    if threat == LOST and features & FORESIGHT:
        if beta - alpha > 1:
            show_loss(s, w, ply, top)
        return ply + 2 - MATE
    # A shorter win is known already, or a shorter loss cannot be avoided any more.
    alpha = max(alpha, ply - MATE)
    beta = min(beta, MATE - ply - 1)
    if alpha >= beta:
        return alpha
    pv_node = beta - alpha > 1
    key = table_key(s)
    image = least_image(s, w) if ply <= w.mirrored else 0
    if image:
        key ^= s.key ^ image_key(s, w.image[image])
    data = probe(w, table, key)
    table_move = 0
    if data:
        table_move = data & MOVE_BITS
        if image and table_move:
            table_move = moved(w.back[image], table_move)
        # Lines of the principal variation are searched out: a cut there would leave it short.
        if not pv_node:
            value = table_cut(w, data, depth, alpha, beta, ply)
            if value != INFINITE:
                return value
    side = s.side
    calm = not pv_node and threat == NO_THREAT and alpha > -WON and beta < WON
    static = 0
    if calm and features & (NULL_MOVE | PRUNING):
        static = assess(s, w, params)
        if features & PRUNING and depth <= RESIGNED and static - HOPE * depth >= beta:
            return static
        if (
            features & NULL_MOVE
            and depth >= 3
            and static >= beta
            and ply > w.no_null
            and w.line[ply - 1]
            and make_null(s)
        ):
            shallower = max(0, depth - 4 - depth // 4 - min((static - beta) // 200, 2))
            w.line[ply] = 0
            value = -search(s, w, table, params, shallower, -beta, 1 - beta, ply + 1, top)
            unmake_null(s)
            if value >= beta and depth >= VERIFIED and not w.aborted:
                # Having to move can be a misfortune: once more, without passing in the upper part of the tree.
                before = w.no_null
                w.no_null = ply + 3 * shallower // 4
                value = search(s, w, table, params, shallower, beta - 1, beta, ply, top)
                w.no_null = before
            if w.aborted:
                return 0
            if value >= beta:
                return beta
    asked = depth
    if features & INTERNAL and table_move == 0 and depth >= 4:
        depth -= 1
    end = generate(s, top)
    if end == top:
        return settled(no_move_outcome(s), side, ply)
    score_moves(s, w, ply, top, end, table_move)
    middle = 26000 if features & CONTINUATION else 20000
    hopeless = calm and features & PRUNING and depth <= RESIGNED and static + HOPE * depth <= alpha
    best = -INFINITE
    best_move = 0
    old_alpha = alpha
    shared = w.team and depth >= SHARED
    for i in range(top, end):
        move = next_best(s, w, i, end)
        place = 0
        if shared and i > top:
            place = claim(s, w, table, key, i, end)
            move = int(s.moves[i])
        order = w.order[i]
        if order < 0:
            order += LATER
        quiet = order < 1 << 16
        number = i - top
        if quiet and features & PRUNING and calm and best > -WON:
            # Moves come in order: those behind a quiet one are quiet, and promise less.
            if number and hopeless:
                break
            if depth <= LATE and number >= 4 + 3 * depth * depth:
                break
        w.line[ply] = move
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
            less = 0
            if features & REDUCTIONS and quiet and threat == NO_THREAT and depth >= 3 and number >= 2:
                less = int(w.reduction[min(depth, 63), min(number, 63)])
                less -= (order - middle) // 8192
                if pv_node or order >= 60000:
                    less -= 1
                # A move that threatens to win is looked at in full.
                if less > 0 and threat_level(s, end) != NO_THREAT:
                    less = 0
                less = max(0, min(less, depth - 2))
            value = -search(s, w, table, params, depth - 1 - less, -alpha - 1, -alpha, ply + 1, end)
            if less and value > alpha and not w.aborted:
                value = -search(s, w, table, params, depth - 1, -alpha - 1, -alpha, ply + 1, end)
            if alpha < value < beta and not w.aborted:
                value = -search(s, w, table, params, depth - 1, -beta, -alpha, ply + 1, end)
        undo(s)
        if place:
            table[place] = 0
        if w.aborted:
            return 0
        if value > best:
            best = value
            best_move = move
            if value > alpha:
                alpha = value
                remember_line(w, ply, move)
                if value >= beta:
                    if order_score(s, move) == 0:
                        learn(s, w, ply, depth, top, i)
                    break
    bound = EXACT
    if best >= beta:
        bound = LOWER
    elif best <= old_alpha:
        bound = UPPER
        best_move = 0
    if image and best_move:
        best_move = moved(w.image[image], best_move)
    store(w, table, key, best_move, to_table(best, ply), asked, bound)
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
    w.mirrored = MIRRORED if is_symmetric(s, w) else 0
    key = table_key(s)
    shared = w.team and depth >= SHARED
    count = w.root_count
    # What other threads are busy with comes in a second round.
    for step in range(first, 2 * count - first if shared else count):
        i = step if step < count else step - count + first
        move = int(w.root_moves[i])
        place = 0
        if shared:
            word = busy_with(key, move)
            place = busy_at(w, word)
            if step < count:
                w.root_later[i] = step > first and table[place] == word
                if w.root_later[i]:
                    continue
            elif not w.root_later[i]:
                continue
            table[place] = word
        w.line[0] = move
        late = i - first
        if order_score(s, move) or not w.features & REDUCTIONS or depth < 3 or late < 4:
            late = 0
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
            less = 0
            if late and threat_level(s, top) == NO_THREAT:
                less = max(0, min(int(w.reduction[min(depth, 63), min(late, 63)]) - 1, depth - 2))
            value = -search(s, w, table, params, depth - 1 - less, -alpha - 1, -alpha, ply, top)
            if less and value > alpha and not w.aborted:
                value = -search(s, w, table, params, depth - 1, -alpha - 1, -alpha, ply, top)
            if value > alpha and not w.aborted:
                value = -search(s, w, table, params, depth - 1, -beta, -alpha, ply, top)
        undo(s)
        if place:
            table[place] = 0
        if w.aborted:
            break
        w.root_values[i] = value
        if value > alpha:
            alpha = value
            w.root_best = i
            w.root_value = value
            remember_line(w, 0, move)
            if value >= beta:
                break
    return alpha


@entry
def age_history(w):
    """Halve the history of the last search: it still orders, but new cuts soon outweigh it."""
    for side in range(2):
        for i in range(HISTORY):
            w.history[side, i] //= 2
    for i in range(HISTORY):
        w.answers[i] //= 2
    for i in range(MAX_PLY):
        w.killers[i, 0] = 0
        w.killers[i, 1] = 0
