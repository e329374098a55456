"""Alpha-beta over any game: principal variation search, transposition table, ordering, quiescence (kernels).

The game is reached through the verbs of `interface.py`, the evaluator through `evaluate`; both are resolved by the
types of the records, so one source serves all of them at full speed.

Values are centipawns for the side to move; a win in n plies is `MATE - n`. A side may be to move twice running
(berserk turns): a child's value changes sign only where the side to move does.

Everything beyond the textbook's search is a bit of `td.features`; `features.py` says what each of them does.
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
from ..games.interface import (
    probe as probe_tables,
)
from ..score import INFINITE, MATE, MAX_EVAL, WON
from ..solving.probing import DRAWN, ENDLESS_BY_ATTACKERS, KIND, PLIES, TABLES, WON_BY_ATTACKERS
from ..squares import CELLS, ORIGIN, TARGET
from .features import (
    CONTINUATION_HISTORY,
    EXTENSIONS,
    FUTILITY,
    IIR,
    LATE_MOVE_PRUNING,
    LMR,
    MATE_IN_ONE,
    NULL_MOVE,
    PROVEN,
    REVERSE_FUTILITY,
    SELECTIVE,
)
from .move_order import (
    ABDADA_DEFERRED,
    HISTORY,
    MAX_PLY,
    NOISY,
    QUIET,
    QUIET_WITH_CONTINUATION,
    SECOND_KILLER,
    abdada_pick,
    pick_move,
    score_moves,
    update_quiet_stats,
)
from .table import (
    EXACT,
    LOWER,
    MOVE_BITS,
    UPPER,
    abdada_slot,
    abdada_word,
    from_table,
    probe,
    store,
    to_table,
)

ROOM = MOVES - 3 * MOST_MOVES
QUIET_PLIES = 24
"""Most plies of quiescence below the last full ply: captured mercenaries change sides, so captures need not end."""

NULL_MOVE_VERIFY_DEPTH = 8
"""From this depth on a null move is verified by a search."""
FUTILITY_MAX_DEPTH = 4
"""Up to this depth a node far from the window is believed lost or won without a search."""
FUTILITY_MARGIN = 100
"""Centipawns that a ply may bring."""
LATE_MOVE_MAX_DEPTH = 4
"""Up to this depth late quiet moves are left out."""
ABDADA_MIN_DEPTH = 5
"""From this depth on threads leave a move for later while another thread is busy with it: above the depths at which
the order of moves decides what is left out."""
_EVAL_CACHE_BITS = 14
EVAL_CACHE_SIZE = 1 << _EVAL_CACHE_BITS
"""Evaluations that a thread remembers: the next depth asks for those of this one's leaves again."""
SYMMETRY_MAX_PLY = 4
"""Down to this ply a position below a symmetric root is looked up as that of its images whose key is least. Deeper
down two lines seldom lead to images of each other that a node above has not told apart already."""
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
        (
            "draw",
            "i8",
            (2,),
        ),  # what a draw is worth to attackers, to defenders: contempt lowers the root side's
        ("no_null", "i8"),  # no passing above this ply: a null move is being verified
        ("illegal_tt_moves", "i8"),  # table moves that were not legal: another position's key, torn entries
        ("images", "i8"),  # how many symmetries keep the game, if they are to be used
        ("symmetry_ply", "i8"),  # the last ply at which they are: 0 where the root is not symmetric
        ("image", "u2", (8, CELLS)),  # where squares go under each, from 1 on
        ("back", "u2", (8, CELLS)),  # and where they come from
        ("parallel", "i8"),  # whether other threads search the same root
        ("generation", "i8"),
        ("mask", "i8"),  # number of buckets of the table - 1
        ("root_count", "i8"),
        ("root_best", "i8"),  # index of the best root move of the running iteration
        ("root_value", "i8"),
        ("root_moves", "i4", (MOST_MOVES,)),
        ("root_values", "i4", (MOST_MOVES,)),
        ("root_deferred", "u1", (MOST_MOVES,)),
        ("pv_length", "i4", (MAX_PLY + 2,)),
        ("pv", "i4", (MAX_PLY + 2, MAX_PLY + 2)),
        ("killers", "i4", (MAX_PLY + 2, 2)),
        ("history", "i2", (2, HISTORY)),
        ("continuation_history", "i2", (HISTORY,)),  # history by target of the move before and target
        ("eval_cache", "u8", (EVAL_CACHE_SIZE,)),  # past evaluations: 48 bits of the key, 16 of the value
        ("line", "i4", (MAX_PLY + 2,)),  # the move made at each ply, 0 for a pass
        ("reduction", "u1", (64, 64)),  # plies by depth and number of the move
        ("order", "i4", (MOVES,)),
        ("tables", TABLES),  # solved positions; without any, its first word is 0
    ],
    align=True,
)


@kernel
def solved_value(s, td, ply):
    """What a position is worth if a table has it, else INFINITE."""
    answer = probe_tables(s, td.tables)
    if answer == 0:
        return INFINITE
    td.tables.hits += 1
    kind = answer >> KIND
    if kind == DRAWN:
        return int(td.draw[s.side])
    if kind >= ENDLESS_BY_ATTACKERS:
        # Won when a position comes back often enough; nobody knows when.
        return MAX_EVAL if kind - ENDLESS_BY_ATTACKERS == s.side else -MAX_EVAL
    value = MATE - ply - (answer & PLIES)
    return value if kind - WON_BY_ATTACKERS == s.side else -value


@inline
def terminal_value(td, outcome, side, ply):
    """The value of a finished game for `side`, `ply` plies from the root."""
    winner = outcome >> 8
    if winner == 3:
        return int(td.draw[side])
    if winner == side + 1:
        return MATE - ply
    return ply - MATE


@inline
def table_key(s):
    """The key under which a position is found in the table: that of the position, or of one with so many plies left."""
    salt = limit_salt(s)
    return s.key ^ (np.uint64(salt) * np.uint64(0x9E3779B97F4A7C15))


@kernel
def least_image(s, td):
    """The symmetry under which the position's key is least, 0 for none."""
    least = s.key
    found = 0
    for i in range(1, td.images + 1):
        key = image_key(s, td.image[i])
        if key < least:
            least = key
            found = i
    return found


@kernel
def is_symmetric(s, td):
    """Whether the position is its own image under any symmetry that keeps the game."""
    for i in range(1, td.images + 1):
        if image_key(s, td.image[i]) == s.key:
            return True
    return False


@inline
def map_move(squares, move):
    """A move under a symmetry that takes square `i` to `squares[i]`."""
    return np.int64(squares[move & ORIGIN]) | np.int64(squares[move >> TARGET]) << TARGET


@inline
def static_eval(s, td, params):
    """What the evaluator says, in centipawns for the side to move. It must follow from the position and the root."""
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
    """Count a node; whether the search has to end."""
    td.nodes += 1
    if td.nodes >= td.node_limit or td.stop:
        td.aborted = 1
    return td.aborted != 0


@inline
def update_pv(td, ply, move):
    """The principal variation from `ply`: this move and the child's."""
    td.pv[ply, ply] = move
    length = td.pv_length[ply + 1]
    for i in range(ply + 1, length):
        td.pv[ply, i] = td.pv[ply + 1, i]
    td.pv_length[ply] = length


@inline
def mate_in_one(s, td, alpha, beta, ply, top):
    """The value of a node that needs no tree, 0 if it does: a win at once, or a loss that nothing parries."""
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
    """A line to the end from a node that is lost whatever is done: any move, and the win."""
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
    """The value when only noisy moves are looked at; either side may stand on the evaluation instead."""
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


@inline
def table_cut(td, data, depth, alpha, beta, ply):
    """What the table says, if it settles a null window around `alpha`; else INFINITE."""
    value = from_table(((data >> 18) & 65535) - 32768, ply)
    bound = (data >> 42) & 3
    known = (data >> 34) & 255 >= depth
    if td.features & PROVEN and (value > WON or value < -WON):
        # A forced win is a lower bound and a forced loss an upper bound whatever the depth.
        known = known or (value > WON and bound != UPPER) or (value < -WON and bound != LOWER)
    if known and (
        bound == EXACT or (bound == LOWER and value >= beta) or (bound == UPPER and value <= alpha)
    ):
        return value
    return INFINITE


@kernel
def search(s, td, table, params, depth, alpha, beta, ply, top):
    """The value of an undecided position within (alpha, beta), searched `depth` plies deep."""
    if td.tables.most:
        value = solved_value(s, td, ply)
        if value != INFINITE:
            tick(td)
            td.pv_length[ply] = ply
            return value
    features = td.features
    threat = NO_THREAT
    if features & (MATE_IN_ONE | EXTENSIONS | SELECTIVE):
        if depth > 0:
            # Quiescence looks for itself.
            move = winning_move(s, top)
            if move:
                if tick(td):
                    return 0
                td.pv_length[ply + 1] = ply + 1
                update_pv(td, ply, move)
                return MATE - ply - 1
        threat = threat_level(s, top)
        if threat == THREAT and features & EXTENSIONS and ply < td.longest:
            depth += 1
    if depth <= 0 or ply >= MAX_PLY - QUIET_PLIES - 1 or top > ROOM:
        return quiesce(s, td, params, alpha, beta, ply, ply + QUIET_PLIES, top)
    if tick(td):
        return 0
    td.pv_length[ply] = ply
    if ply > td.seldepth:
        td.seldepth = ply
    if threat == LOST and features & MATE_IN_ONE:
        if beta - alpha > 1:
            pv_of_loss(s, td, ply, top)
        return ply + 2 - MATE
    # A shorter win is known already, or a shorter loss cannot be avoided any more.
    alpha = max(alpha, ply - MATE)
    beta = min(beta, MATE - ply - 1)
    if alpha >= beta:
        return alpha
    pv_node = beta - alpha > 1
    key = table_key(s)
    image = least_image(s, td) if ply <= td.symmetry_ply else 0
    if image:
        key ^= s.key ^ image_key(s, td.image[image])
    data = probe(td, table, key)
    table_move = 0
    if data:
        table_move = data & MOVE_BITS
        if image and table_move:
            table_move = map_move(td.back[image], table_move)
        # Lines of the principal variation are searched out: a cut there would leave it short.
        if not pv_node:
            value = table_cut(td, data, depth, alpha, beta, ply)
            if value != INFINITE:
                return value
    side = s.side
    calm = not pv_node and threat == NO_THREAT and alpha > -WON and beta < WON
    static = 0
    if calm and features & (NULL_MOVE | REVERSE_FUTILITY | FUTILITY):
        static = static_eval(s, td, params)
        if (
            features & REVERSE_FUTILITY
            and depth <= FUTILITY_MAX_DEPTH
            and static - FUTILITY_MARGIN * depth >= beta
        ):
            return static
        if (
            features & NULL_MOVE
            and depth >= 3
            and static >= beta
            and ply > td.no_null
            and td.line[ply - 1]
            and make_null(s)
        ):
            shallower = max(0, depth - 4 - depth // 4 - min((static - beta) // 200, 2))
            td.line[ply] = 0
            value = -search(s, td, table, params, shallower, -beta, 1 - beta, ply + 1, top)
            unmake_null(s)
            if value >= beta and depth >= NULL_MOVE_VERIFY_DEPTH and not td.aborted:
                # Having to move can be a misfortune: once more, without passing in the upper part of the tree.
                before = td.no_null
                td.no_null = ply + 3 * shallower // 4
                value = search(s, td, table, params, shallower, beta - 1, beta, ply, top)
                td.no_null = before
            if td.aborted:
                return 0
            if value >= beta:
                return beta
    asked = depth
    if features & IIR and table_move == 0 and depth >= 4:
        depth -= 1
    end = generate(s, top)
    if end == top:
        return terminal_value(td, no_move_outcome(s), side, ply)
    score_moves(s, td, ply, top, end, table_move)
    middle = QUIET_WITH_CONTINUATION if features & CONTINUATION_HISTORY else QUIET
    hopeless = (
        calm
        and features & FUTILITY
        and depth <= FUTILITY_MAX_DEPTH
        and static + FUTILITY_MARGIN * depth <= alpha
    )
    best = -INFINITE
    best_move = 0
    old_alpha = alpha
    shared = td.parallel and depth >= ABDADA_MIN_DEPTH
    for i in range(top, end):
        move = pick_move(s, td, i, end)
        place = 0
        if shared and i > top:
            place = abdada_pick(s, td, table, key, i, end)
            move = int(s.moves[i])
        order = td.order[i]
        if order < 0:
            order += ABDADA_DEFERRED
        quiet = order < 1 << NOISY
        number = i - top
        if quiet and calm and best > -WON:
            # Moves come in order: those behind a quiet one are quiet, and promise less.
            if number and hopeless:
                break
            if (
                features & LATE_MOVE_PRUNING
                and depth <= LATE_MOVE_MAX_DEPTH
                and number >= 4 + 3 * depth * depth
            ):
                break
        td.line[ply] = move
        make(s, move)
        outcome = s.outcome
        if outcome == 0:
            outcome = adjudicate(s, td.root)
        if outcome:
            td.pv_length[ply + 1] = ply + 1
            value = terminal_value(td, outcome, side, ply + 1)
        elif s.side == side:
            value = search(s, td, table, params, depth - 1, alpha, beta, ply + 1, end)
        elif i == top:
            value = -search(s, td, table, params, depth - 1, -beta, -alpha, ply + 1, end)
        else:
            reduction = 0
            if features & LMR and quiet and threat == NO_THREAT and depth >= 3 and number >= 2:
                reduction = int(td.reduction[min(depth, 63), min(number, 63)])
                reduction -= (order - middle) // 8192
                if pv_node or order >= SECOND_KILLER:
                    reduction -= 1
                # A move that threatens to win is looked at in full.
                if reduction > 0 and threat_level(s, end) != NO_THREAT:
                    reduction = 0
                reduction = max(0, min(reduction, depth - 2))
            value = -search(s, td, table, params, depth - 1 - reduction, -alpha - 1, -alpha, ply + 1, end)
            if reduction and value > alpha and not td.aborted:
                value = -search(s, td, table, params, depth - 1, -alpha - 1, -alpha, ply + 1, end)
            if alpha < value < beta and not td.aborted:
                value = -search(s, td, table, params, depth - 1, -beta, -alpha, ply + 1, end)
        undo(s)
        if place:
            table[place] = 0
        if td.aborted:
            return 0
        if value > best:
            best = value
            best_move = move
            if value > alpha:
                alpha = value
                update_pv(td, ply, move)
                if value >= beta:
                    if order_score(s, move) == 0:
                        update_quiet_stats(s, td, ply, depth, top, i)
                    break
    bound = EXACT
    if best >= beta:
        bound = LOWER
    elif best <= old_alpha:
        bound = UPPER
        best_move = 0
    if image and best_move:
        best_move = map_move(td.image[image], best_move)
    store(td, table, key, best_move, to_table(best, ply), asked, bound)
    return best


@entry
def search_root(s, td, table, params, depth, first, alpha, beta):
    """Search the root moves from index `first` on, in the order of `td.root_moves`; the best value.

    Moves before `first` are the better lines of a multi-line search. Each move's value goes to `td.root_values`
    (a bound for all but the best). If the search is aborted, the best completed move stands in `td.root_best`
    (-1: none).
    """
    side = s.side
    # Not the constants 1 and 0: numba would compile the whole search once more for literal arguments.
    ply = s.ply - td.root + 1
    top = ply - 1
    td.root_best = -1
    td.pv_length[0] = 0
    td.symmetry_ply = SYMMETRY_MAX_PLY if is_symmetric(s, td) else 0
    key = table_key(s)
    shared = td.parallel and depth >= ABDADA_MIN_DEPTH
    count = td.root_count
    # What other threads are busy with comes in a second round.
    for step in range(first, 2 * count - first if shared else count):
        i = step if step < count else step - count + first
        move = int(td.root_moves[i])
        place = 0
        if shared:
            word = abdada_word(key, move)
            place = abdada_slot(td, word)
            if step < count:
                td.root_deferred[i] = step > first and table[place] == word
                if td.root_deferred[i]:
                    continue
            elif not td.root_deferred[i]:
                continue
            table[place] = word
        td.line[0] = move
        late = i - first
        if order_score(s, move) or not td.features & LMR or depth < 3 or late < 4:
            late = 0
        make(s, move)
        outcome = s.outcome
        if outcome == 0:
            outcome = adjudicate(s, td.root)
        if outcome:
            td.nodes += 1
            td.pv_length[1] = 1
            value = terminal_value(td, outcome, side, 1)
        elif s.side == side:
            value = search(s, td, table, params, depth - 1, alpha, beta, ply, top)
        elif i == first:
            value = -search(s, td, table, params, depth - 1, -beta, -alpha, ply, top)
        else:
            reduction = 0
            if late and threat_level(s, top) == NO_THREAT:
                reduction = max(0, min(int(td.reduction[min(depth, 63), min(late, 63)]) - 1, depth - 2))
            value = -search(s, td, table, params, depth - 1 - reduction, -alpha - 1, -alpha, ply, top)
            if reduction and value > alpha and not td.aborted:
                value = -search(s, td, table, params, depth - 1, -alpha - 1, -alpha, ply, top)
            if value > alpha and not td.aborted:
                value = -search(s, td, table, params, depth - 1, -beta, -alpha, ply, top)
        undo(s)
        if place:
            table[place] = 0
        if td.aborted:
            break
        td.root_values[i] = value
        if value > alpha:
            alpha = value
            td.root_best = i
            td.root_value = value
            update_pv(td, 0, move)
            if value >= beta:
                break
    return alpha
