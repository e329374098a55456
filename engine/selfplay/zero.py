"""Games of networks that know moves, played by the tree search of AlphaZero in one kernel: for learning, for measuring.

The search is that of D. Silver et al., "Mastering the game of Go without human knowledge" (2017), in the form that
HexapawnZero gives it: each move has a tree of its own; a simulation goes down by Q + c P sqrt(N) / (1 + n), where moves
not yet tried have Q = 0; a leaf is evaluated by one pass of the network, which gives its value and the priors of its
moves; the first simulation does no more than that for the root. With `shared` the statistics belong to positions, not
to paths: a position that is reached in two ways is one node. Three ideas of D. Wu, "Accelerating self-play learning in
Go" (2019), are options: only some moves are searched in full and learnt from; moves of the root get at least some
simulations once they were tried; the visits that these cost are taken out of what is learnt. With `prove`, forced ends
are proven in the tree (M. Winands, Y. Bjornsson, J. Saito, "Monte-Carlo tree search solver", 2008): a move that is
proven to lose is not tried again, one that is proven to win is played. `mcts.py` is the search for players: one tree
that lives from move to move, and for many threads.

Among equals the first move wins, in the order of the squares from the top left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .. import games as doors
from ..compile.jit import entry, inline, kernel
from ..compile.rng import randbelow
from ..games.base_position import Position
from ..games.base_variant import AnyVariant
from ..games.interface import (
    MOST_MOVES,
    adjudicate,
    generate,
    make,
    move_index,
    no_move_outcome,
    policy,
    random_move,
    undo,
    value,
    winning_move,
)
from ..search.mcts import forced_end
from ..squares import ORIGIN, STRIDE
from .match import PLY_CAP, start_stream

MOST_SIMULATIONS = 1 << 11
EDGES = 1 << 17
SLOTS = 1 << 12
DEEPEST = 256
ROOT = 1
UNTRIED = 1e-8
"""Added to the visits of a node where a move was not tried: the priors decide before anything else does."""
DRAWN = 3
WIN, DRAW, LOSS = 1, 2, 3
"""What is proven of a position or a move, for the side that is to move there; 0: nothing is."""

SEARCH = np.dtype(
    [
        ("nodes", "i8"),  # taken so far; 0 is none
        ("edges", "i8"),
        ("key", "u8", (MOST_SIMULATIONS + 1,)),
        ("first", "i4", (MOST_SIMULATIONS + 1,)),  # the first edge of a node
        ("count", "i4", (MOST_SIMULATIONS + 1,)),
        ("visits", "i4", (MOST_SIMULATIONS + 1,)),  # simulations that went on from the node
        (
            "worth",
            "f8",
            (MOST_SIMULATIONS + 1,),
        ),  # the sum of their results and of the node's own value, to its mover
        ("proof", "u1", (MOST_SIMULATIONS + 1,)),
        ("slots", "i4", (SLOTS,)),  # nodes by their key, with linear probing
        ("move", "i4", (EDGES,)),
        ("tried", "i4", (EDGES,)),  # simulations through the edge
        ("child", "i4", (EDGES,)),  # the node behind it; 0: not known yet
        ("prior", "f8", (EDGES,)),
        ("mean", "f8", (EDGES,)),  # of their results, for the side that moves
        ("proven", "u1", (EDGES,)),
        ("path", "i4", (DEEPEST,)),  # nodes and edges of a simulation, and who chose
        ("taken", "i4", (DEEPEST,)),
        ("sides", "u1", (DEEPEST,)),
        ("priors", "f8", (MOST_MOVES,)),
    ],
    align=True,
)
SETTINGS = np.dtype(
    [
        ("simulations", "i8"),
        ("full", "f8"),  # the share of the moves that get them; the others get fewer, and are not learnt from
        ("fast_simulations", "i8"),
        ("shared", "i8"),
        ("prove", "i8"),
        ("from_parent", "i8"),  # 1: a move not yet tried is worth what its position is, 0: nothing
        (
            "forced",
            "f8",
        ),  # a move of the root that was tried gets sqrt(this * prior * visits) simulations at least
        ("c", "f8"),
        ("temperature", "f8"),  # moves are drawn by visits ** (1 / temperature); 0: the most visited one
        ("temperature_plies", "i8"),  # after so many plies `later_temperature` holds
        ("later_temperature", "f8"),
        ("noise", "f8"),  # the share of Dirichlet noise in the priors of the root
        ("alpha", "f8"),  # its parameter
        ("opening", "i8"),  # a game begins with up to so many random plies, each number as likely
        ("ply_limit", "i8"),  # a longer game is a draw
    ],
    align=True,
)
GAME = np.dtype(
    [
        ("players", "i4", (2,)),  # whose network plays side a, side d
        ("seed", "u8"),
        ("handicap", "f8", (2,)),  # a side's simulations are divided by 2 to the power of this
        ("outcome", "i4"),  # reason | (winner + 1) << 8, winner 2 for a draw
        ("plies", "i4"),
        ("kept", "i4"),  # positions that became examples
    ],
    align=True,
)
LOG = np.dtype([("rows", "i8"), ("visited", "i8")])


@inline
def uniform(s):
    """A random number in (0, 1)."""
    return (randbelow(s, 1 << 30) + 0.5) / (1 << 30)


@kernel
def gamma(s, alpha):
    """A random number of the gamma distribution (G. Marsaglia, W. Tsang, "A simple method for generating gamma
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
    """Where the node of a position is noted, or the empty place where it belongs."""
    at = np.int64(key >> np.uint64(40)) & (SLOTS - 1)
    while search.slots[at] and search.key[search.slots[at]] != key:
        at = (at + 1) & (SLOTS - 1)
    return at


@inline
def cell_order(move):
    """Squares in rows from the top left."""
    o = int(move & ORIGIN)
    return -(o // STRIDE) * STRIDE + o % STRIDE


@kernel
def add_node(s, search, p, settings, end):
    """The node of the position, whose legal moves are `s.moves[:end]`; 0 if there is no room left."""
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
    """Simulations that a move of the root gets at least, once it was tried."""
    return math.sqrt(settings.forced * search.prior[edge] * visits)


@kernel
def select(search, settings, node, forced):
    """The edge to go by from a node."""
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
    winner = outcome >> 8
    return 0.0 if winner == DRAWN else 1.0 if winner == 1 else -1.0


@inline
def proof_of(own):
    """A certain result as a proof."""
    return WIN if own > 0.0 else LOSS if own < 0.0 else DRAW


@kernel
def proof_by_moves(search, node):
    """What the proofs of its moves say about a node; 0 if that remains open."""
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
    """The result of the last move of the path, for side `a`, is certain: note that, and what follows from it."""
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
    """One simulation from the root. The state is as it was before."""
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
                forced_winner = forced_end(s) >> 14
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
    """A new tree for the position, whose legal moves are `s.moves[:end]`; the root's edges are the first `end`. Where
    it is to be learnt from, noise and forced simulations explore more widely."""
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
    """The root is proven: it is worth what is known, and simulations that are left go to a move that wins."""
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
    """Whether a move of the root keeps what is proven there, or may do so."""
    if search.proof[ROOT]:
        return search.proven[edge] == search.proof[ROOT]
    return search.proven[edge] != LOSS


@kernel
def most_visited(search, end):
    """The move of the root that was visited most, of those worth playing; without any visit, the likeliest one."""
    most = -1
    for i in range(end):
        if worth_playing(search, i):
            likelier = search.tried[most] == 0 and search.prior[i] > search.prior[most]
            if most < 0 or search.tried[i] > search.tried[most] or likelier:
                most = i
    return most


@kernel
def pruned(search, settings, end, edge):
    """The visits of a move of the root that count: none if it is proven to be a mistake. Less those that it got only
    because they were forced: as many as it can lose without looking better than the most visited move. A single one
    that is left is no recommendation."""
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
    """A move of the root by its visits."""
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


@kernel
def finish_ply(s, move):
    """Play a move, and judge it."""
    make(s, move)
    if s.outcome == 0:
        s.outcome = adjudicate(s, -1)


@kernel
def play_game(s, search, params, settings, game, log, inputs, sides, values, counts, places, visits):
    """One game from where `s` stands; `s` is taken back to there. Its positions are logged if there is room for any."""
    start_stream(s, game.seed)
    begun = s.ply
    game.kept = 0
    for _ in range(randbelow(s, int(settings.opening) + 1)):
        move = random_move(s)
        if s.outcome or move == 0:
            break
        finish_ply(s, move)
    while s.outcome == 0:
        if s.ply - begun >= settings.ply_limit:
            s.outcome = PLY_CAP
            break
        end = generate(s, 0)
        if end == 0:
            s.outcome = no_move_outcome(s)
            break
        p = params[game.players[s.side]]
        row = int(log.rows)
        full = settings.full >= 1.0 or uniform(s) < settings.full
        handicap = game.handicap[s.side]
        learning = full and sides.size > 0 and game.players[s.side] == 0 and handicap == 0.0
        if learning:
            value(p, s)  # the search begins with the same pass
            for i in range(inputs.shape[1]):
                inputs[row, i] = p.inputs[i]
            sides[row] = s.side
        simulations = int(settings.simulations if full else settings.fast_simulations)
        simulations = max(2, int(simulations * 2.0**-handicap))
        think(s, search, p, settings, end, simulations, full)
        if learning:
            values[row] = search.worth[ROOT] / (search.visits[ROOT] + 1.0)
            at = int(log.visited)
            total = 0
            for i in range(end):
                places[at] = move_index(s, int(search.move[i]))
                visits[at] = pruned(search, settings, end, i)
                total += visits[at]
                at += 1
            if total:  # nothing is left where all moves that were tried are proven to lose
                counts[row] = end
                log.visited = at
                log.rows = row + 1
                game.kept += 1
        cold = s.ply - begun >= settings.temperature_plies
        finish_ply(s, draw(s, search, end, settings.later_temperature if cold else settings.temperature))
    game.outcome = s.outcome
    game.plies = s.ply - begun
    while s.ply > begun:
        undo(s)
    s.outcome = 0


@entry
def play_games(s, search, params, settings, games, log, inputs, sides, values, counts, places, visits):
    """All games in turn."""
    for i in range(games.size):
        play_game(s, search, params, settings, games[i], log, inputs, sides, values, counts, places, visits)


@entry
def think_once(s, search, params, settings, out):
    """The visits of every legal move of a position, in the order of `search.move`; how many moves there are."""
    end = generate(s, 0)
    think(s, search, params[0], settings, end, int(settings.simulations), True)
    for i in range(end):
        out[i] = search.tried[i]
    return end


@dataclass(frozen=True, slots=True)
class Settings:
    """How the search and the games go; see `SETTINGS`. The defaults are those of HexapawnZero."""

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
        """The settings for kernels; ValueError for a number of simulations that there is no room for, and for proofs
        where positions are shared: what repeats on one path need not on another."""
        if self.prove and self.shared:
            raise ValueError("prove=yes: expected shared=no as well")
        for simulations in (self.simulations, self.fast_simulations):
            if not 2 <= simulations <= MOST_SIMULATIONS:
                raise ValueError(f"{simulations} simulations: expected 2 to {MOST_SIMULATIONS}")
        record = np.zeros(1, SETTINGS).view(np.recarray)
        for name in SETTINGS.names or ():
            record[0][name] = getattr(self, name)
        return record


class Examples(NamedTuple):
    """Positions of games, a row each: what a network sees (u1), who is to move, the result for that side (-1, 0, 1),
    what the search thought of it (f4), and how many legal moves there are; then, one after the other, the places of
    these moves and their visits."""

    inputs: Any
    sides: Any
    results: Any
    values: Any
    counts: Any
    places: Any
    visits: Any

    @property
    def rows(self) -> int:
        return len(self.sides)

    @classmethod
    def empty(cls, inputs: int) -> Examples:
        return cls(
            np.zeros((0, inputs), np.uint8),
            np.zeros(0, np.int8),
            np.zeros(0, np.int8),
            np.zeros(0, np.float32),
            np.zeros(0, np.int32),
            np.zeros(0, np.uint16),
            np.zeros(0, np.uint16),
        )

    @classmethod
    def joined(cls, parts: Sequence[Examples]) -> Examples:
        return cls._make(np.concatenate(columns) for columns in zip(*parts, strict=True))

    def last(self, rows: int) -> Examples:
        """The last `rows` of them."""
        cut = self.rows - min(rows, self.rows)
        behind = int(self.counts[:cut].sum())
        each = [column[cut:] for column in self[:5]]
        return Examples._make([*each, self.places[behind:], self.visits[behind:]])

    def rows_of(self, chosen: Any, moves: int) -> tuple[Any, Any]:
        """The visits of chosen rows as shares, and the legal moves: arrays (rows, moves) of float32 and u1."""
        found = np.zeros((len(chosen), moves), np.float32)
        legal = np.zeros((len(chosen), moves), np.uint8)
        counts = self.counts[chosen]
        rows = np.repeat(np.arange(len(chosen)), counts)
        begin = np.cumsum(self.counts) - self.counts
        at = np.arange(len(rows)) + np.repeat(begin[chosen] - np.cumsum(counts) + counts, counts)
        found[rows, self.places[at]] = self.visits[at]
        legal[rows, self.places[at]] = 1
        return found / found.sum(axis=1, keepdims=True), legal

    def policies(self, moves: int) -> Any:
        """The visits as shares: an array (rows, moves) of float32."""
        return self.rows_of(np.arange(self.rows), moves)[0]


class Board:
    """Everything that one thread needs for games of some networks on a board."""

    def __init__(self, variant: AnyVariant, networks: Sequence[Any], settings: Settings) -> None:
        """`networks` are records of `POLICY_NET`, one element each."""
        self._variant = variant
        self._initial = doors.initial(variant)
        self._record = self._initial.new_record()
        self._search = np.zeros(1, SEARCH).view(np.recarray)
        self._settings = settings
        self._params = np.concatenate([np.asarray(network) for network in networks]).view(np.recarray)

    def play(self, games: Any, inputs: int = 0) -> Examples:
        """Play `games`, an array of dtype `GAME`, and write the results into it. With the number of `inputs` of the
        networks every position that the first of them thought about is an example; else there is none."""
        limit = self._settings.ply_limit
        rows = len(games) * limit if inputs else 0
        most = min(MOST_MOVES, len(doors.policy_moves(self._variant)))
        log = np.zeros(1, LOG).view(np.recarray)
        made = Examples(
            np.zeros((rows, inputs or 1), np.uint8),
            np.zeros(rows, np.int8),
            np.zeros(0, np.int8),
            np.zeros(rows, np.float32),
            np.zeros(rows, np.int32),
            np.zeros(rows * most, np.uint16),
            np.zeros(rows * most, np.uint16),
        )
        state = self._initial.load(self._record)
        play_games(
            state, self._search[0], self._params, self._settings.record()[0], games.view(np.recarray), log[0],
            made.inputs, made.sides, made.values, made.counts, made.places, made.visits,
        )  # fmt: skip
        kept, visited = int(log[0]["rows"]), int(log[0]["visited"])
        sides = made.sides[:kept].copy()
        winner = np.repeat((games["outcome"] >> 8) - 1, games["kept"])
        results = np.where(winner == 2, 0, np.where(winner == sides, 1, -1)).astype(np.int8)
        return Examples(
            made.inputs[:kept].copy(), sides, results, made.values[:kept].copy(), made.counts[:kept].copy(),
            made.places[:visited].copy(), made.visits[:visited].copy(),
        )  # fmt: skip

    def visits(self, position: Position) -> dict[int, int]:
        """How often the first network's search goes to each legal move of a position."""
        state = position.load(self._record)
        out = np.zeros(MOST_MOVES, np.int64)
        state["random"] = 1
        end = think_once(state, self._search[0], self._params, self._settings.record()[0], out)
        moves = self._search[0]["move"][:end]
        return {int(move): int(count) for move, count in zip(moves, out[:end], strict=True)}
