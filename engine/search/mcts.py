"""Monte Carlo tree search for any game: UCT and PUCT, proven ends, one tree for many threads (kernels).

A simulation descends from the root, plays out or evaluates the leaf that it reaches, and adds the result to every node
of its path. Results are stored for side `a` and read for the side to move, so turns of several plies need no special
treatment.

Selection maximises, over the moves tried so far, Q + c * sqrt(ln N / n) (UCT, every move once before any twice:
P. Auer, N. Cesa-Bianchi, P. Fischer, 2002; L. Kocsis, C. Szepesvari, 2006) or Q + c * P * sqrt(N) / (1 + n) (PUCT:
C. Rosin, 2011, in the form of D. Silver et al., 2017). Q is between -1 and 1; moves not yet tried have their parent's.

Forced ends are proven on the way up (M. Winands, Y. Bjornsson, J. Saito, 2008): a node whose value is proven is not
visited again, unless it is a draw. Immediate wins and unstoppable losses are detected before a network is evaluated.
The rules alone decide whether a position is over, never a repetition within the search, so that a proof holds under
any later root.

The children of a node are adjacent, after their parent, in the order in which they are tried: best prior first, equal
ones in random order. Nodes come from one array that never grows. The fuller it is, the more simulations a leaf needs
before it gets children. Once it is full no leaf is expanded, but simulations still refine the statistics.

Threads share the tree. Sums are updated atomically. Children are published by one word, written once, after they are
complete, and so are proofs. Threads may read stale counts, but never a move that is illegal in its node, nor an index
at or above `used`. Only `tried` is written without synchronisation: if a slower thread sets it back, the next child is
tried once more.
"""

from __future__ import annotations

import numpy as np

from ..compile.intrinsics import fetch_add, set_once
from ..compile.jit import entry, inline, kernel
from ..compile.rng import randbelow
from ..games.interface import (
    LOST,
    MOST_MOVES,
    adjudicate,
    bind_otherwise,
    evaluate,
    generate,
    make,
    no_move_outcome,
    order_score,
    policy,
    random_move,
    threat_level,
    undo,
    winning_move,
)
from ..sides import DRAWN as NOBODY
from ..sides import WINNER

ROOT = 1
"""Index of the root; index 0 means no node."""
ONE = 1 << 20
"""A win, in the units of `score`."""
DEEPEST = 512
"""The greatest depth of a node; below it there are only playouts."""
MOST_PLIES = 1000
"""A playout that is not over after this many plies is a draw."""
MOST_VISITS = 1 << 30
"""A search stops after this many simulations."""
DRAWN = NOBODY + 1
"""In an outcome or a proof, where otherwise the winner + 1 is."""
PROVEN = 14
"""The first bit of a proof's winner; below it are the plies to the end."""
PROVEN_PLIES = (1 << PROVEN) - 1
STOPPED = 1 << 40
"""The result of a simulation that was interrupted."""
LOGISTIC = np.log(10.0) / 800.0
"""tanh(LOGISTIC * centipawns) is twice the expected score less one: 100 centipawns are 64 %."""
TEMPERATURE = 32.0
"""Without a policy, a move whose `order_score` is higher by this has e times the prior."""
CERTAIN = 65535.0

NODE = np.dtype(
    [
        ("score", "i8"),  # results of all simulations through the node for side `a`, in units of 1 / ONE
        ("visits", "i4"),  # number of simulations, unfinished ones included
        ("move", "i4"),  # the move that led here
        ("first", "i4"),  # index of the first child; 0: a leaf
        ("parent", "i4"),
        ("count", "u2"),  # number of children
        ("tried", "u2"),  # children tried so far: the first ones
        ("prior", "u2"),  # probability of the move, in units of 1 / CERTAIN
        ("proof", "u2"),  # 0, or plies to the forced end | (winner + 1, or DRAWN) << PROVEN
    ],
    align=True,
)

TREE = np.dtype(
    [
        ("used", "i8"),  # nodes in use, from the beginning of the array; 0: there is no tree
        ("nodes", "i8"),  # simulations of this search
        ("node_limit", "i8"),
        ("stop", "i8"),  # set by other threads: leave as soon as possible
        ("done", "i8"),  # set by the search itself: the limit is reached, or the root proven
        ("seldepth", "i8"),  # plies from the root to the deepest node visited
        ("virtual_loss", "i8"),  # loss counted for each unfinished simulation, in units of 1 / ONE
        ("exploration", "f8"),  # c
        (
            "expansion_threshold",
            "i8",
        ),  # simulations through a leaf before it is expanded, while the tree is empty
        ("policy", "i8"),  # 1: PUCT, 0: UCT
        ("evaluating", "i8"),  # 1: leaves are evaluated, 0: played to the end at random
        # 1: a leaf is expanded when it is evaluated, since one forward pass gives both. Immediate wins are looked for
        # first, which costs almost nothing beside such a pass.
        ("at_once", "i8"),
    ],
    align=True,
)

THREAD = np.dtype(
    [
        ("path", "i4", (DEEPEST,)),
        ("sides", "u1", (DEEPEST,)),  # the side that chose at each node of the path
        ("priors", "f8", (MOST_MOVES,)),
    ],
    align=True,
)
"""A thread's own data."""


@inline
def by_order_score(params, s, end, priors):
    """The policy for evaluators without one: priors from `order_score`, not normalised."""
    for i in range(end):
        priors[i] = np.exp(order_score(s, int(s.moves[i])) / TEMPERATURE)


bind_otherwise(policy=by_order_score)


@inline
def proof_of(outcome):
    """The proof of a finished game."""
    return (outcome >> WINNER) << PROVEN


@inline
def proven(record):
    """1 or 2 for the winner, DRAWN, or 0 while nothing is proven."""
    return np.int64(record.proof) >> PROVEN


@inline
def plies_of(proof):
    """The plies to the end in a proof."""
    return np.int64(proof) & PROVEN_PLIES


@inline
def plies_left(record):
    """The plies to a node's proven end."""
    return plies_of(record.proof)


@inline
def result_of(winner):
    """The result for side `a`, in units of 1 / ONE, for 1, 2 or DRAWN."""
    if winner == DRAWN:
        return 0
    return ONE if winner == 1 else -ONE


@kernel
def prove(nodes, node, side, c):
    """The proof of a node that follows from its child `c`, where `side` is to move; 0 if there is none yet."""
    if proven(nodes[c]) == side + 1:
        return np.int64(nodes[c].proof) + 1
    if nodes[node].tried < nodes[node].count:
        return 0
    first = np.int64(nodes[node].first)
    winner = 2 - side
    plies = 0
    for k in range(first, first + np.int64(nodes[node].count)):
        found = proven(nodes[k])
        if found == 0:
            return 0
        if found == side + 1:
            return np.int64(nodes[k].proof) + 1
        if found == DRAWN and winner != DRAWN:
            winner = DRAWN
            plies = 0
        if found == winner:
            plies = max(plies, plies_left(nodes[k]))
    return winner << PROVEN | (plies + 1)


@inline
def sort_by_prior(s, td, end):
    """Sort moves and priors, highest prior first; a stable sort."""
    for i in range(1, end):
        move = s.moves[i]
        prior = td.priors[i]
        j = i
        while j > 0 and td.priors[j - 1] < prior:
            s.moves[j] = s.moves[j - 1]
            td.priors[j] = td.priors[j - 1]
            j -= 1
        s.moves[j] = move
        td.priors[j] = prior


@kernel
def add_children(s, tree, nodes, td, params, node, end):
    """Give node `node` the moves `s.moves[:end]` as children; False if there is no room left."""
    first = fetch_add(tree, "used", end)
    if first + end > nodes.size:
        fetch_add(tree, "used", -end)
        return False
    for i in range(end - 1, 0, -1):
        j = randbelow(s, i + 1)
        move = s.moves[i]
        s.moves[i] = s.moves[j]
        s.moves[j] = move
    share = 0.0
    if tree.policy:
        policy(params, s, end, td.priors)
        sort_by_prior(s, td, end)
        total = 0.0
        for i in range(end):
            total += td.priors[i]
        share = CERTAIN / total
    for i in range(end):
        child = nodes[first + i]
        child.score = 0
        child.visits = 0
        child.move = s.moves[i]
        child.first = 0
        child.parent = node
        child.count = 0
        child.tried = 0
        child.prior = 0
        if tree.policy:
            child.prior = max(1, np.int64(td.priors[i] * share))
        child.proof = 0
    nodes[node].tried = 0
    nodes[node].count = end
    # If another thread was faster, the node keeps that thread's children, and ours stay unused.
    set_once(nodes[node], "first", first)
    return True


@kernel
def forced_end(s):
    """The proof of a position with an immediate win or an unstoppable loss; 0 if neither is seen."""
    if winning_move(s, 0):
        return (s.side + 1) << PROVEN | 1
    if threat_level(s, 0) == LOST:
        return (2 - s.side) << PROVEN | 2
    return 0


@kernel
def expand(s, tree, nodes, td, params, node):
    """Expand the leaf `node`, or prove it if its end is forced; False if there is no room left."""
    if tree.at_once:
        proof = forced_end(s)
        if proof:
            set_once(nodes[node], "proof", proof)
            return True
    end = generate(s, 0)
    if end == 0:
        set_once(nodes[node], "proof", proof_of(no_move_outcome(s)))
        return True
    return add_children(s, tree, nodes, td, params, node, end)


@inline
def expansion_threshold(tree, nodes):
    """Simulations through a leaf before it is expanded; doubles with every eighth of the array that is used."""
    return (tree.expansion_threshold << (8 * tree.used // nodes.size)) - tree.at_once


@kernel
def select(tree, nodes, node, side):
    """The child of `node` to descend to, where `side` is to move; 0 if all are lost."""
    first = np.int64(nodes[node].first)
    tried = np.int64(nodes[node].tried)
    untried = tried < np.int64(nodes[node].count)
    if untried and not tree.policy:
        nodes[node].tried = tried + 1
        return first + tried
    lost = 2 - side
    unit = 1.0 / ONE if side == 0 else -1.0 / ONE
    visits = np.float64(nodes[node].visits)
    best = -np.inf
    chosen = 0
    if tree.policy:
        spread = tree.exploration * np.sqrt(visits) / CERTAIN
        for k in range(first, first + tried):
            if proven(nodes[k]) != lost:
                n = np.float64(nodes[k].visits)
                x = nodes[k].score * unit / max(n, 1.0) + nodes[k].prior * spread / (1.0 + n)
                if x > best:
                    best = x
                    chosen = k
        if untried:
            # Children are sorted by prior, so the first untried one is the best of those.
            k = first + tried
            x = nodes[node].score * unit / visits + nodes[k].prior * spread
            if x > best:
                nodes[node].tried = tried + 1
                chosen = k
        return chosen
    spread = tree.exploration * tree.exploration * np.log(visits)
    for k in range(first, first + tried):
        if proven(nodes[k]) != lost:
            share = 1.0 / max(np.float64(nodes[k].visits), 1.0)
            x = nodes[k].score * unit * share + np.sqrt(spread * share)
            if x > best:
                best = x
                chosen = k
    return chosen


@kernel
def play_out(s, tree):
    """Play a random game, without undoing it; returns its result for side `a`, or STOPPED if interrupted."""
    for _ in range(MOST_PLIES):
        if tree.stop:
            return STOPPED
        move = random_move(s)
        if move == 0:
            return result_of(no_move_outcome(s) >> WINNER)
        make(s, move)
        outcome = s.outcome
        if outcome == 0:
            outcome = adjudicate(s, -1)
        if outcome:
            return result_of(outcome >> WINNER)
    return 0


@kernel
def evaluate_leaf(s, tree, params):
    """The expected result of an undecided position for side `a`, from its evaluation."""
    if not tree.evaluating:
        return play_out(s, tree)
    result = np.int64(np.tanh(LOGISTIC * evaluate(params, s)) * ONE)
    return result if s.side == 0 else -result


@inline
def loss_of(tree, side):
    """The virtual loss to add to the score of a node that `side` chose."""
    return -tree.virtual_loss if side == 0 else tree.virtual_loss


@kernel
def backup_proof(nodes, td, depth):
    """Propagate a proof up from the end of the path as far as it holds."""
    i = depth
    while i > 0:
        node = np.int64(td.path[i - 1])
        if nodes[node].proof:
            return
        found = prove(nodes, node, np.int64(td.sides[i - 1]), np.int64(td.path[i]))
        if found == 0:
            return
        set_once(nodes[node], "proof", found)
        i -= 1


@kernel
def simulate_once(s, tree, nodes, td, params):
    """Run one simulation and restore the state; False if it was interrupted, without any trace in the tree."""
    ply = s.ply
    node = ROOT
    depth = 0
    td.path[0] = node
    fetch_add(nodes[node], "visits", 1)
    while True:
        if nodes[node].proof:
            result = result_of(proven(nodes[node]))
            break
        if nodes[node].first == 0 or nodes[node].count == 0:
            if (
                depth >= DEEPEST - 1
                or nodes[node].visits <= expansion_threshold(tree, nodes)
                or not expand(s, tree, nodes, td, params, node)
            ):
                result = evaluate_leaf(s, tree, params)
                break
            if tree.at_once and nodes[node].proof == 0:
                result = evaluate_leaf(s, tree, params)
                break
            continue
        side = s.side
        c = select(tree, nodes, node, side)
        if c == 0:
            result = evaluate_leaf(s, tree, params)
            break
        make(s, int(nodes[c].move))
        outcome = s.outcome
        if outcome == 0:
            outcome = adjudicate(s, -1)
        if outcome:
            set_once(nodes[c], "proof", proof_of(outcome))
        td.sides[depth] = side
        depth += 1
        td.path[depth] = c
        fetch_add(nodes[c], "visits", 1)
        if tree.virtual_loss:
            fetch_add(nodes[c], "score", loss_of(tree, side))
        node = c
    while s.ply > ply:
        undo(s)
    s.outcome = 0
    if depth > tree.seldepth:
        tree.seldepth = depth
    for i in range(depth + 1):
        c = np.int64(td.path[i])
        amount = result
        if result == STOPPED:
            amount = 0
            fetch_add(nodes[c], "visits", -1)
        if i and tree.virtual_loss:
            amount -= loss_of(tree, np.int64(td.sides[i - 1]))
        fetch_add(nodes[c], "score", amount)
    if nodes[node].proof:
        backup_proof(nodes, td, depth)
    return result != STOPPED


@entry
def simulate(s, tree, nodes, td, params, most):
    """Run up to `most` simulations from the root, whose position is in `s`; fewer if the search is stopped or done."""
    for _ in range(most):
        if nodes[ROOT].proof or nodes[ROOT].visits >= MOST_VISITS:
            tree.done = 1
        if tree.stop or tree.done:
            return
        if fetch_add(tree, "nodes", 1) >= tree.node_limit:
            tree.done = 1
            fetch_add(tree, "nodes", -1)
        elif not simulate_once(s, tree, nodes, td, params):
            fetch_add(tree, "nodes", -1)


@entry
def init_root(s, tree, nodes, td, params, end):
    """Start a tree whose root has the moves `s.moves[:end]`, `end` >= 1; they must fit."""
    root = nodes[ROOT]
    root.score = 0
    root.visits = 0
    root.move = 0
    root.first = 0
    root.parent = 0
    root.proof = 0
    tree.used = ROOT + 1
    add_children(s, tree, nodes, td, params, np.int64(ROOT), end)
    if tree.at_once:
        move = winning_move(s, end)
        for k in range(root.first, root.first + end):
            if nodes[k].move == move:
                nodes[k].proof = (s.side + 1) << PROVEN
                root.proof = (s.side + 1) << PROVEN | 1


@inline
def descend(nodes, node, move):
    """The child of `node` by this move if that child has been expanded, else 0."""
    first = np.int64(nodes[node].first)
    for k in range(first, first + np.int64(nodes[node].count)):
        if nodes[k].move == move:
            return k if nodes[k].first else 0
    return 0


@inline
def set_parents(nodes, node, parent):
    """Set the parent index of a node's children."""
    first = np.int64(nodes[node].first)
    if first:
        for k in range(first, first + np.int64(nodes[node].count)):
            nodes[k].parent = parent


@kernel
def reroot(tree, nodes, root):
    """Make node `root` the root: its subtree moves to the beginning of the array, all other nodes are dropped.

    A parent always comes before its children, so two passes over the array are enough: the first marks the subtree by
    negative parents, the second moves it down in place.
    """
    for i in range(root, tree.used):
        if i == root or nodes[i].parent < 0:
            set_parents(nodes, i, -i)
    free = ROOT
    for i in range(root, tree.used):
        if i == root or nodes[i].parent < 0:
            node = -np.int64(nodes[i].parent)
            if i == root:
                node = 0
            elif nodes[node].first == i:
                nodes[node].first = free
            nodes[i].parent = node
            set_parents(nodes, i, -free)
            nodes[free] = nodes[i]
            free += 1
    nodes[ROOT].move = 0
    tree.used = free


@entry
def reuse_tree(tree, nodes, moves):
    """Make the position after `moves` the new root; False if the tree does not have it, expanded."""
    if tree.used == 0:
        return False
    node = np.int64(ROOT)
    for i in range(moves.size):
        node = descend(nodes, node, moves[i])
        if node == 0:
            return False
    if node != ROOT:
        reroot(tree, nodes, node)
    return True


@inline
def best_child(nodes, node, side):
    """The best child of `node` so far, where `side` is to move; 0 if none was visited.

    If `node` is proven, the shortest win or the longest loss; otherwise the most visited child that is not lost.
    """
    first = np.int64(nodes[node].first)
    found = proven(nodes[node])
    best = -1
    chosen = 0
    for k in range(first, first + np.int64(nodes[node].tried)):
        end = proven(nodes[k])
        if found == 0:
            worth = np.int64(nodes[k].visits) if end != 2 - side else 0
        elif end != found:
            worth = 0
        elif found == DRAWN:
            worth = np.int64(nodes[k].visits)
        else:
            worth = 1 + (PROVEN_PLIES - plies_left(nodes[k]) if found == side + 1 else plies_left(nodes[k]))
        if worth > max(best, 0):
            best = worth
            chosen = k
    return chosen


@kernel
def line_to_seen_end(s, out, length):
    """Play out a `forced_end`, appending its moves to `out`; returns the new length."""
    for _ in range(plies_of(forced_end(s))):
        move = winning_move(s, 0)
        if move == 0:
            generate(s, 0)
            move = int(s.moves[0])
        if length == out.size:
            break
        out[length] = move
        length += 1
        make(s, move)
    return length


@entry
def line(s, nodes, c, out):
    """Write the line that begins with the move to the root's child `c`; returns its length. Restores the state."""
    length = 0
    while c and length < out.size:
        move = int(nodes[c].move)
        out[length] = move
        length += 1
        make(s, move)
        node = c
        c = 0
        if s.outcome == 0 and nodes[node].first:
            c = best_child(nodes, node, s.side)
        elif s.outcome == 0 and nodes[node].proof:
            length = line_to_seen_end(s, out, length)
    for _ in range(length):
        undo(s)
    s.outcome = 0
    return length
