"""Alpha-beta for any game: principal variation search, transposition table, selectivity (kernels).

The game is called through the verbs of `interface.py`, the evaluator through `evaluate`. Both are resolved at compile
time by the types of the records, so one source serves all games at full speed.

Values are centipawns for the side to move; a win in n plies is `MATE - n`. The same side may move twice in a row
(berserk turns), so a child's value is negated only if the side to move has changed.

Everything beyond textbook search is a bit of `td.features`; `features.py` describes each of them.
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
    image_key,
    make,
    make_null,
    no_move_outcome,
    order_score,
    staged_generation,
    threat_level,
    undo,
    unmake_null,
    winning_move,
)
from ..score import INFINITE, MATE, WON
from ..solving.probing import TABLES
from ..squares import CELLS
from .features import (
    CONTINUATION_HISTORY,
    EXTENSIONS,
    FUTILITY,
    FUTILITY_MARGIN,
    FUTILITY_MAX_DEPTH,
    IIR,
    IIR_MIN_DEPTH,
    LATE_MOVE_MAX_DEPTH,
    LATE_MOVE_PRUNING,
    LMR,
    LMR_HISTORY,
    LMR_MIN_DEPTH,
    LMR_MIN_MOVES,
    LMR_MIN_ROOT_MOVES,
    LMR_SIZE,
    MATE_IN_ONE,
    NULL_MOVE,
    NULL_MOVE_MARGIN,
    NULL_MOVE_MIN_DEPTH,
    NULL_MOVE_REDUCTION,
    NULL_MOVE_VERIFY_DEPTH,
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
    STAGE_KILLERS,
    STAGE_TABLE,
    abdada_pick,
    generate_all,
    generate_stage,
    pick_move,
    update_quiet_stats,
)
from .quiescence import (
    EVAL_CACHE_SIZE,
    QUIET_PLIES,
    ROOM,
    pv_of_loss,
    quiesce,
    solved_value,
    static_eval,
    terminal_value,
    tick,
    update_pv,
)
from .table import (
    BOUND,
    BOUND_BITS,
    DEPTH,
    DEPTH_BITS,
    EXACT,
    LOWER,
    MOVE_BITS,
    SYMMETRY_MAX_PLY,
    UPPER,
    VALUE,
    VALUE_BITS,
    VALUE_OFFSET,
    abdada_slot,
    abdada_word,
    from_table,
    is_symmetric,
    least_image,
    map_move,
    prefetch_bucket,
    probe,
    store,
    table_key,
    to_table,
)

ABDADA_MIN_DEPTH = 5
"""From this depth on, a thread defers a move that another thread is searching. At lower depths move order decides what
is pruned, so it must not change."""
SEARCH = np.dtype(
    [
        ("nodes", "i8"),
        ("node_limit", "i8"),
        ("stop", "i8"),  # set by other threads: leave as soon as possible
        ("aborted", "i8"),  # set by the search itself: values returned from then on are meaningless
        ("seldepth", "i8"),
        ("root", "i8"),  # stack index of the root: a position that recurs after it counts as repeated
        ("features", "i8"),
        ("longest", "i8"),  # no line is extended beyond this ply
        (
            "draw",
            "i8",
            (2,),
        ),  # the value of a draw to attackers, to defenders: contempt lowers the root side's
        ("no_null", "i8"),  # no null moves above this ply: one is being verified
        ("illegal_tt_moves", "i8"),  # table moves that were not legal: key collisions, torn entries
        ("images", "i8"),  # number of the game's symmetries, if they are to be used
        ("symmetry_ply", "i8"),  # the last ply at which they are used: 0 if the root is not symmetric
        ("image", "u2", (8, CELLS)),  # image of each square under each, from index 1
        ("back", "u2", (8, CELLS)),  # the inverse
        ("parallel", "i8"),  # whether other threads search the same root
        ("generation", "i8"),
        ("salt", "u8"),  # of the table's keys: entries of searches that evaluate otherwise are not found
        ("mask", "i8"),  # number of buckets of the table, minus 1
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
        ("continuation_history", "i2", (HISTORY,)),  # history by target of the previous move and target
        ("eval_cache", "u8", (EVAL_CACHE_SIZE,)),  # cached evaluations: 48 bits of the key, 16 of the value
        ("line", "i4", (MAX_PLY + 2,)),  # the move made at each ply, 0 for a pass
        ("reduction", "u1", (LMR_SIZE, LMR_SIZE)),  # plies by depth and move number
        ("order", "i4", (MOVES,)),
        ("stage", "u1", (MAX_PLY + 2,)),  # what a node at this ply generates next
        ("tables", TABLES),  # solved positions; its first word is 0 if there are none
    ],
    align=True,
)


@inline
def table_cut(td, data, depth, alpha, beta, ply):
    """The table's value if it causes a cutoff in the window, else INFINITE."""
    value = from_table(((data >> VALUE) & VALUE_BITS) - VALUE_OFFSET, ply)
    bound = (data >> BOUND) & BOUND_BITS
    known = (data >> DEPTH) & DEPTH_BITS >= depth
    if td.features & PROVEN and (value > WON or value < -WON):
        # At any depth a forced win is a valid lower bound, a forced loss a valid upper bound.
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
            # Quiescence does this itself.
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
    # Mate distance pruning.
    alpha = max(alpha, ply - MATE)
    beta = min(beta, MATE - ply - 1)
    if alpha >= beta:
        return alpha
    pv_node = beta - alpha > 1
    key = table_key(s) ^ td.salt
    image = least_image(s, td) if ply <= td.symmetry_ply else 0
    if image:
        key ^= s.key ^ image_key(s, td.image[image])
    data = probe(td, table, key)
    table_move = 0
    if data:
        table_move = data & MOVE_BITS
        if image and table_move:
            table_move = map_move(td.back[image], table_move)
        # No cutoffs on the principal variation: they would truncate the line.
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
            and depth >= NULL_MOVE_MIN_DEPTH
            and static >= beta
            and ply > td.no_null
            and td.line[ply - 1]
            and make_null(s)
        ):
            shallower = max(
                0, depth - NULL_MOVE_REDUCTION - depth // 4 - min((static - beta) // NULL_MOVE_MARGIN, 2)
            )
            td.line[ply] = 0
            value = -search(s, td, table, params, shallower, -beta, 1 - beta, ply + 1, top)
            unmake_null(s)
            if value >= beta and depth >= NULL_MOVE_VERIFY_DEPTH and not td.aborted:
                # Zugzwang: verify without null moves in the upper part of the tree.
                before = td.no_null
                td.no_null = ply + 3 * shallower // 4
                value = search(s, td, table, params, shallower, beta - 1, beta, ply, top)
                td.no_null = before
            if td.aborted:
                return 0
            if value >= beta:
                return beta
    asked = depth
    if features & IIR and table_move == 0 and depth >= IIR_MIN_DEPTH:
        depth -= 1
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
    end = top
    td.stage[ply] = STAGE_TABLE
    if shared or not staged_generation(s):
        end = generate_all(s, td, ply, top, table_move)
    i = top - 1
    while True:
        i += 1
        number = i - top
        skip_quiet = (
            calm
            and best > -WON
            and (
                (number > 0 and hopeless)
                or (
                    features & LATE_MOVE_PRUNING
                    and depth <= LATE_MOVE_MAX_DEPTH
                    and number >= 4 + 3 * depth * depth
                )
            )
        )
        if i == end:
            if skip_quiet and td.stage[ply] >= STAGE_KILLERS:
                break
            end = generate_stage(s, td, ply, top, end, table_move)
            if i == end:
                break
        move = pick_move(s, td, i, end)
        place = 0
        if shared and i > top:
            place = abdada_pick(s, td, table, key, i, end)
            move = int(s.moves[i])
        order = td.order[i]
        if order < 0:
            order += ABDADA_DEFERRED
        quiet = order < 1 << NOISY
        if quiet and skip_quiet:
            # Moves are sorted: all that follow a quiet one are quiet, with less history.
            break
        td.line[ply] = move
        make(s, move)
        # At depth 1 quiescence follows, which asks no table.
        if depth > 1:
            prefetch_bucket(td, table, s.key ^ td.salt)
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
            if (
                features & LMR
                and quiet
                and threat == NO_THREAT
                and depth >= LMR_MIN_DEPTH
                and number >= LMR_MIN_MOVES
            ):
                reduction = int(td.reduction[min(depth, LMR_SIZE - 1), min(number, LMR_SIZE - 1)])
                reduction -= (order - middle) // LMR_HISTORY
                if pv_node or order >= SECOND_KILLER:
                    reduction -= 1
                # A move that threatens to win is not reduced.
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
    if end == top:
        return terminal_value(td, no_move_outcome(s), side, ply)
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
    """Search the root moves from index `first` on, in the order of `td.root_moves`; returns the best value.

    Moves before `first` are the better lines of a multi-PV search. Each move's value is written to `td.root_values`
    (a bound for all but the best), the index of the best move to `td.root_best`. If the search is aborted, that is the
    best completed move (-1: none).
    """
    side = s.side
    # Not the constants 1 and 0: numba would compile the search again for literal arguments.
    ply = s.ply - td.root + 1
    top = ply - 1
    td.root_best = -1
    td.pv_length[0] = 0
    td.symmetry_ply = SYMMETRY_MAX_PLY if is_symmetric(s, td) else 0
    key = table_key(s) ^ td.salt
    shared = td.parallel and depth >= ABDADA_MIN_DEPTH
    count = td.root_count
    # Moves that other threads are searching are deferred to a second pass.
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
        if (
            order_score(s, move)
            or not td.features & LMR
            or depth < LMR_MIN_DEPTH
            or late < LMR_MIN_ROOT_MOVES
        ):
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
                reduction = int(td.reduction[min(depth, LMR_SIZE - 1), min(late, LMR_SIZE - 1)]) - 1
                reduction = max(0, min(reduction, depth - 2))
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
