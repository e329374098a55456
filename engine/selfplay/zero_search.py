"""AlphaZero's tree search for one move of a game, with a policy network (kernels); `zero.py` plays games.

It is that of D. Silver et al., "Mastering the game of Go without human knowledge" (2017), as implemented by
HexapawnZero. Each move of a game gets a new tree. A simulation descends by Q + c P sqrt(N) / (1 + n), where moves not
yet tried have Q = 0. A leaf is evaluated by one forward pass, which gives its value and the priors of its moves; the
first simulation does only that, for the root. With `shared`, statistics belong to positions, not paths: a position
reached in two ways is one node. Three ideas of D. Wu, "Accelerating self-play learning in Go" (2019), are options: only
some moves are searched in full and used for training; root moves that were tried get a minimum of forced simulations;
forced visits are pruned from the training targets. With `prove`, forced ends are proven in the tree (M. Winands,
Y. Bjornsson, J. Saito, "Monte-Carlo tree search solver", 2008): a proven loss is not tried again, a proven win is
played. `mcts.py` is the search for actual play: its tree is reused from move to move, and serves many threads.

Among equals the first move wins, in the order of the squares from the top left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..compile.jit import entry, inline, kernel
from ..compile.rng import randbelow
from ..games.interface import (
    MOST_MOVES,
    adjudicate,
    generate,
    make,
    no_move_outcome,
    policy,
    undo,
    value,
    winning_move,
)
from ..search.mcts import DRAWN, PROVEN, forced_end
from ..sides import WINNER
from ..squares import ORIGIN, STRIDE

MOST_SIMULATIONS = 1 << 11
EDGES = 1 << 17
SLOTS = 1 << 12
DEEPEST = 256
ROOT = 1
UNTRIED = 1e-8
"""Added to the visits of a node, so that the priors decide while there are none."""
WIN, DRAW, LOSS = 1, 2, 3
"""A proven result of a position or a move, for the side to move there; 0: none."""

SEARCH = np.dtype(
    [
        ("nodes", "i8"),  # nodes in use; index 0 means none
        ("edges", "i8"),
        ("key", "u8", (MOST_SIMULATIONS + 1,)),
        ("first", "i4", (MOST_SIMULATIONS + 1,)),  # first edge of a node
        ("count", "i4", (MOST_SIMULATIONS + 1,)),
        ("visits", "i4", (MOST_SIMULATIONS + 1,)),  # simulations that continued from the node
        (
            "worth",
            "f8",
            (MOST_SIMULATIONS + 1,),
        ),  # sum of their results and of the node's own value, for its side to move
        ("proof", "u1", (MOST_SIMULATIONS + 1,)),
        ("slots", "i4", (SLOTS,)),  # hash table of nodes by key, with linear probing
        ("move", "i4", (EDGES,)),
        ("tried", "i4", (EDGES,)),  # simulations through the edge
        ("child", "i4", (EDGES,)),  # the node it leads to; 0: not known yet
        ("prior", "f8", (EDGES,)),
        ("mean", "f8", (EDGES,)),  # mean of their results, for the side that moves
        ("proven", "u1", (EDGES,)),
        ("path", "i4", (DEEPEST,)),  # nodes and edges of a simulation, and the side that chose
        ("taken", "i4", (DEEPEST,)),
        ("sides", "u1", (DEEPEST,)),
        ("priors", "f8", (MOST_MOVES,)),
    ],
    align=True,
)
SETTINGS = np.dtype(
    [
        ("simulations", "i8"),
        ("full", "f8"),  # fraction of moves searched in full; the others give no training examples
        ("fast_simulations", "i8"),
        ("shared", "i8"),
        ("prove", "i8"),
        ("from_parent", "i8"),  # 1: a move not yet tried has its parent's value, 0: it has 0
        (
            "forced",
            "f8",
        ),  # a root move that was tried gets at least sqrt(this * prior * visits) simulations
        ("c", "f8"),
        ("temperature", "f8"),  # moves are drawn by visits ** (1 / temperature); 0: the most visited one
        ("temperature_plies", "i8"),  # plies after which `later_temperature` is used
        ("later_temperature", "f8"),
        ("noise", "f8"),  # fraction of Dirichlet noise in the root's priors
        ("alpha", "f8"),  # its parameter
        ("opening", "i8"),  # a game begins with 0 to this many random plies, drawn uniformly
        ("ply_limit", "i8"),  # a longer game is a draw
    ],
    align=True,
)


@inline
def uniform(s):
    """A random number in (0, 1)."""
    return (randbelow(s, 1 << 30) + 0.5) / (1 << 30)


@kernel
def gamma(s, alpha):
    """A gamma-distributed random number (G. Marsaglia, W. Tsang, "A simple method for generating gamma
    variables", 2000)."""
    boost = 1.0
    if alpha < 1.0:
        boost = uniform(s) ** (1.0 / alpha)
        alpha += 1.0
    d = alpha - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = math.sqrt(-2.0 * math.log(uniform(s))) * math.cos(2.0 * math.pi * uniform(s))
        v = 1.0 + c * x
        if v > 0.0:
            v = v * v * v
            if math.log(uniform(s)) < 0.5 * x * x + d - d * v + d * math.log(v):
                return d * v * boost


@inline
def slot_of(search, key):
    """The index in `search.slots` of a position's node, or of the empty slot where it belongs."""
    at = np.int64(key >> np.uint64(40)) & (SLOTS - 1)
    while search.slots[at] and search.key[search.slots[at]] != key:
        at = (at + 1) & (SLOTS - 1)
    return at


@inline
def cell_order(move):
    """The order of a move: by origin, then target, row by row from the top left."""
    o = int(move & ORIGIN)
    return -(o // STRIDE) * STRIDE + o % STRIDE


@kernel
def add_node(s, search, p, settings, end):
    """Add a node for the position, whose legal moves are `s.moves[:end]`; returns it, 0 if there is no room left."""
    first = int(search.edges)
    if first + end > EDGES or search.nodes == MOST_SIMULATIONS:
        return 0
    for i in range(1, end):  # keeps the order of the moves of one piece
        move = s.moves[i]
        j = i
        while j > 0 and cell_order(s.moves[j - 1]) > cell_order(move):
            s.moves[j] = s.moves[j - 1]
            j -= 1
        s.moves[j] = move
    policy(p, s, end, search.priors)
    total = 0.0
    for i in range(end):
        total += search.priors[i]
    for i in range(end):
        edge = first + i
        search.move[edge] = s.moves[i]
        search.tried[edge] = 0
        search.child[edge] = 0
        search.prior[edge] = search.priors[i] / total
        search.mean[edge] = 0.0
        search.proven[edge] = 0
    search.edges = first + end
    search.nodes += 1
    node = int(search.nodes)
    search.key[node] = s.key
    search.first[node] = first
    search.count[node] = end
    search.visits[node] = 0
    search.proof[node] = 0
    own = math.tanh(0.5 * value(p, s))
    search.worth[node] = own if s.side == 0 else -own
    if settings.shared:
        search.slots[slot_of(search, s.key)] = node
    return node


@inline
def least_visits(search, settings, edge, visits):
    """The minimum number of simulations of a root move that was tried."""
    return math.sqrt(settings.forced * search.prior[edge] * visits)


@kernel
def select(search, settings, node, forced):
    """The edge to descend by from a node."""
    first = int(search.first[node])
    visits = np.float64(search.visits[node])
    untried = search.worth[node] / (visits + 1.0) if settings.from_parent else 0.0
    best = -np.inf
    chosen = first
    for edge in range(first, first + int(search.count[node])):
        if search.proven[edge] == LOSS:
            continue
        n = int(search.tried[edge])
        if n:
            if forced and n < least_visits(search, settings, edge, visits):
                return edge
            x = search.mean[edge] + settings.c * search.prior[edge] * math.sqrt(visits) / (1.0 + n)
        else:
            x = untried + settings.c * search.prior[edge] * math.sqrt(visits + UNTRIED)
        if x > best:
            best = x
            chosen = edge
    return chosen


@inline
def result_of(outcome):
    """The result of a finished game for side `a`."""
    winner = outcome >> WINNER
    return 0.0 if winner == DRAWN else 1.0 if winner == 1 else -1.0


@inline
def proof_of(own):
    """The proof for a certain result, given for the side in question."""
    return WIN if own > 0.0 else LOSS if own < 0.0 else DRAW


@kernel
def proof_by_moves(search, node):
    """The proof of a node that follows from those of its moves; 0 if there is none yet."""
    first = int(search.first[node])
    best = LOSS
    is_open = False
    for edge in range(first, first + int(search.count[node])):
        if search.proven[edge] == WIN:
            return WIN
        if search.proven[edge] == 0:
            is_open = True
        elif search.proven[edge] == DRAW:
            best = DRAW
    return 0 if is_open else best


@kernel
def backup_proof(search, depth, result):
    """Record that the result of the path's last move, for side `a`, is certain, and propagate it up the path."""
    for i in range(depth - 1, -1, -1):
        search.proven[search.taken[i]] = proof_of(result if search.sides[i] == 0 else -result)
        node = int(search.path[i])
        found = proof_by_moves(search, node)
        if found == 0:
            return
        search.proof[node] = found
        own = 1.0 if found == WIN else -1.0 if found == LOSS else 0.0
        result = own if search.sides[i] == 0 else -own


@kernel
def simulate(s, search, p, settings, forced):
    """Run one simulation from the root; restores the state."""
    ply = s.ply
    node = ROOT
    depth = 0
    certain = True
    while True:
        edge = select(search, settings, node, forced and depth == 0)
        search.path[depth] = node
        search.taken[depth] = edge
        search.sides[depth] = s.side
        depth += 1
        make(s, int(search.move[edge]))
        outcome = s.outcome
        if outcome == 0:
            outcome = adjudicate(s, -1)
        if outcome:
            result = result_of(outcome)
            break
        child = int(search.child[edge])
        if child == 0 and settings.shared:
            child = int(search.slots[slot_of(search, s.key)])
        if child == 0:
            if settings.prove:
                forced_winner = forced_end(s) >> PROVEN
                if forced_winner:
                    result = 1.0 if forced_winner == 1 else -1.0
                    break
            end = generate(s, 0)
            if end == 0:
                result = result_of(no_move_outcome(s))
            else:
                search.child[edge] = add_node(s, search, p, settings, end)
                result = math.tanh(0.5 * value(p, s))
                certain = False
            break
        search.child[edge] = child
        if depth == DEEPEST:
            result = 0.0
            certain = False
            break
        node = child
    while s.ply > ply:
        undo(s)
    s.outcome = 0
    for i in range(depth):
        edge = int(search.taken[i])
        own = result if search.sides[i] == 0 else -result
        n = int(search.tried[edge])
        search.mean[edge] = (n * search.mean[edge] + own) / (n + 1)
        search.tried[edge] = n + 1
        search.visits[search.path[i]] += 1
        search.worth[search.path[i]] += own
    if certain and settings.prove:
        backup_proof(search, depth, result)


@kernel
def think(s, search, p, settings, end, simulations, learning):
    """Search the position, whose legal moves are `s.moves[:end]`, in a new tree; the root's edges are the first `end`.

    With `learning`, noise and forced simulations explore more widely.
    """
    search.nodes = 0
    search.edges = 0
    if settings.shared:
        for i in range(SLOTS):
            search.slots[i] = 0
    add_node(s, search, p, settings, end)
    if learning and settings.noise > 0.0:
        total = 0.0
        for i in range(end):
            search.priors[i] = gamma(s, settings.alpha)
            total += search.priors[i]
        for i in range(end):
            search.prior[i] += settings.noise * (search.priors[i] / total - search.prior[i])
    if settings.prove:
        move = winning_move(s, end)
        for i in range(end):
            if search.move[i] == move:
                search.proven[i] = WIN
                search.proof[ROOT] = WIN
    for _ in range(1, simulations):
        if search.proof[ROOT]:
            break
        simulate(s, search, p, settings, learning and settings.forced > 0.0)
    if search.proof[ROOT]:
        settle(search, end, simulations)


@kernel
def settle(search, end, simulations):
    """The root is proven: set its value, and give the remaining simulations to a winning move."""
    proof = search.proof[ROOT]
    left = simulations - 1 - int(search.visits[ROOT])
    for i in range(end):
        if search.proven[i] == WIN:
            search.tried[i] += left
            search.visits[ROOT] += left
            break
    search.worth[ROOT] = 0.0 if proof == DRAW else search.visits[ROOT] + 1.0
    if proof == LOSS:
        search.worth[ROOT] *= -1.0


@inline
def worth_playing(search, edge):
    """Whether a root move achieves the root's proven result, or may."""
    if search.proof[ROOT]:
        return search.proven[edge] == search.proof[ROOT]
    return search.proven[edge] != LOSS


@kernel
def most_visited(search, end):
    """The most visited root move of those worth playing; if none was visited, the one with the highest prior."""
    most = -1
    for i in range(end):
        if worth_playing(search, i):
            likelier = search.tried[most] == 0 and search.prior[i] > search.prior[most]
            if most < 0 or search.tried[i] > search.tried[most] or likelier:
                most = i
    return most


@kernel
def pruned(search, settings, end, edge):
    """The visits of a root move as a training target: 0 for a proven mistake.

    Forced visits are subtracted, as many as possible without making the move look better than the most visited one. If
    a single visit is left it is dropped.
    """
    if not worth_playing(search, edge):
        return 0
    n = int(search.tried[edge])
    if settings.forced <= 0.0 or n == 0:
        return n
    most = most_visited(search, end)
    if edge == most:
        return n
    visits = np.float64(search.visits[ROOT])
    spread = settings.c * math.sqrt(visits)
    best = search.mean[most] + spread * search.prior[most] / (1.0 + search.tried[most])
    least = n - int(least_visits(search, settings, edge, visits))
    while n > max(least, 0) and search.mean[edge] + spread * search.prior[edge] / n < best:
        n -= 1
    return 0 if n == 1 else n


@kernel
def draw(s, search, end, temperature):
    """Draw a root move in proportion to visits ** (1 / temperature)."""
    most = most_visited(search, end)
    if temperature <= 0.0 or search.tried[most] == 0:
        return int(search.move[most])
    total = 0.0
    for i in range(end):
        if worth_playing(search, i):
            total += (search.tried[i] / search.tried[most]) ** (1.0 / temperature)
    left = uniform(s) * total
    chosen = most
    for i in range(end):
        if search.tried[i] and worth_playing(search, i):
            chosen = i
            left -= (search.tried[i] / search.tried[most]) ** (1.0 / temperature)
            if left < 0.0:
                break
    return int(search.move[chosen])


@entry
def think_once(s, search, params, settings, out):
    """Search a position; writes the visits of its moves to `out`, in the order of `search.move`; their number."""
    end = generate(s, 0)
    think(s, search, params[0], settings, end, int(settings.simulations), True)
    for i in range(end):
        out[i] = search.tried[i]
    return end


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the search and the games; see `SETTINGS`. The defaults are those of HexapawnZero."""

    simulations: int = 10
    full: float = 1.0
    fast_simulations: int = 10
    shared: bool = True
    prove: bool = False
    from_parent: bool = False
    forced: float = 0.0
    c: float = 1.0
    temperature: float = 1.0
    temperature_plies: int = 1 << 30
    later_temperature: float = 0.25
    noise: float = 0.0
    alpha: float = 1.0
    opening: int = 0
    ply_limit: int = 1000

    def record(self) -> Any:
        """The settings for kernels. ValueError for more simulations than there is room for, and for `prove` together
        with `shared`: a repetition on one path need not be one on another."""
        if self.prove and self.shared:
            raise ValueError("prove=yes: expected shared=no as well")
        for simulations in (self.simulations, self.fast_simulations):
            if not 2 <= simulations <= MOST_SIMULATIONS:
                raise ValueError(f"{simulations} simulations: expected 2 to {MOST_SIMULATIONS}")
        record = np.zeros(1, SETTINGS).view(np.recarray)
        for name in SETTINGS.names or ():
            record[0][name] = getattr(self, name)
        return record
