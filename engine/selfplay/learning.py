"""A player that learns while it plays: temporal differences, TDLeaf and TreeStrap, with whole games in kernels.

The evaluator is loaded and has gradients (`evaluators.gradients`). Its value in logits, v / unit, predicts the
attackers' probability to win, p = 1 / (1 + exp(-v / unit)). Learning steps are in these units too, so that one learning
rate suits evaluators in centipawns and networks. The loss is the squared error (`entropy` off: slopes times p (1 - p))
or the cross-entropy (on).

- `DIFFERENCES`: R. Sutton, "Learning to predict by the methods of temporal differences", 1988. The position that the
  learner leaves (its *afterstate*) is moved towards the prediction for its next one, the last towards the result, with
  eligibility traces. Each side that it plays has a chain of its own. `PLIES`: the chain has all positions of a game.
  `LITERAL`: towards the prediction after the other side's reply, which is never updated itself.
- `LEAVES`: TDLeaf, J. Baxter, A. Tridgell, L. Weaver, "Learning to play chess using temporal differences", 2000. The
  chain has the positions at the ends of the principal variations of the learner's searches.
- `TREES`: TreeStrap with alpha-beta, J. Veness, D. Silver, W. Uther, A. Blair, "Bootstrapping from game tree search",
  2009. Every position inside a search tree is moved towards the value that the search found there; where that is a
  bound, only as far as the bound requires. One step per move, by the mean over the tree.
- `PREVIOUS`: what the program of "Tablut Game AI with Temporal Difference Learning" does. The afterstate is moved
  towards the output for the last position that its search has scored, until it is near. Results are not used.

Adam: D. Kingma, J. Ba, "Adam: a method for stochastic optimization", 2015.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..compile.jit import entry, inline, kernel
from ..compile.rng import randbelow
from ..evaluators.gradients import GRADIENT
from ..evaluators.loaded import MOST_WEIGHTS
from ..evaluators.network import Network
from ..games.base_variant import AnyVariant
from ..games.interface import (
    adjudicate,
    can_move,
    generate,
    gradient,
    make,
    no_move_outcome,
    pass_turn,
    random_move,
    take_back,
    undo,
    value,
)
from ..search import minimax
from ..search.minimax import MOST, leaf_value, outcome_after, pick_move, score_moves, terminal_value
from ..sides import WINNER
from . import match
from .match import Contestant, Table, choose, start_stream

DIFFERENCES, LEAVES, TREES, PREVIOUS = range(4)
AFTERSTATES, PLIES, LITERAL = range(3)
TOTAL = 2
"""The row of `amounts` for sums over a tree; the other two are the traces of the chains."""
BETAS = (0.9, 0.999)
TINY = 1e-8
NEAR = 0.01
"""`PREVIOUS` repeats a pattern until the square of its error is below this."""
REPEATS = 1000
"""`PREVIOUS` repeats a pattern at most this many times."""
LOGIT = 400 / math.log(10)
"""Centipawns per logit."""
SHARE = 1 << 30
"""Resolution of the random numbers that decide whether a move explores."""

LEARNER = np.dtype(
    [
        ("count", "i8"),  # weights
        ("unit", "f8"),  # of the evaluator's value, per logit
        ("method", "i8"),
        ("chain", "i8"),
        ("entropy", "i8"),
        ("adam", "i8"),
        ("trace", "f8"),  # lambda
        ("rate", "f8"),
        ("rate_end", "f8"),
        ("rate_change", "f8"),  # per game, until `rate_end` is reached
        ("epsilon", "f8"),  # fraction of the learner's moves that are random
        ("random_plies", "i8"),  # up to this many plies at the start of a game are random
        ("drawn", "f8", (2,)),  # the target for a draw (the attackers' chance), by the learner's side
        ("steps", "i8"),  # of Adam
        ("squares", "f8"),  # sum of the squared errors
        ("errors", "i8"),  # how many
        ("predicted", "f8", (2,)),
        ("waiting", "i8", (2,)),
        ("nodes", "i8"),
        ("amounts", "f8", (3, MOST_WEIGHTS)),
        ("means", "f8", (2, MOST_WEIGHTS)),  # of Adam: running means of the slopes and of their squares
    ],
    align=True,
)


@inline
def chance(learner, x):
    """The attackers' winning probability for a value, exactly 0 or 1 for a won game."""
    if x > MOST:
        return 1.0
    if x < -MOST:
        return 0.0
    return 1.0 / (1.0 + math.exp(-x / learner.unit))


@inline
def steepness(learner, p):
    """The factor for the slope of a logit: p (1 - p) for the squared error, else 1."""
    return 1.0 if learner.entropy else p * (1.0 - p)


@kernel
def step(learner, params, row, error):
    """Update the weights by a row of amounts times an error."""
    n = learner.count
    if learner.adam:
        learner.steps += 1
        one = 1.0 - BETAS[0]
        two = 1.0 - BETAS[1]
        scale = learner.rate * learner.unit / (1.0 - BETAS[0] ** learner.steps)
        root = 1.0 / math.sqrt(1.0 - BETAS[1] ** learner.steps)
        for i in range(n):
            slope = error * learner.amounts[row, i]
            learner.means[0, i] += one * (slope - learner.means[0, i])
            learner.means[1, i] += two * (slope * slope - learner.means[1, i])
            params.weights[i] += scale * learner.means[0, i] / (root * math.sqrt(learner.means[1, i]) + TINY)
    else:
        scale = learner.rate * learner.unit * error
        for i in range(n):
            params.weights[i] += scale * learner.amounts[row, i]


@kernel
def correct(learner, params, chain, p):
    """Update the weights: the last prediction of a chain should have been `p`."""
    if learner.waiting[chain]:
        error = p - learner.predicted[chain]
        learner.squares += error * error
        learner.errors += 1
        step(learner, params, chain, error)


@kernel
def fade(learner, chain):
    """Decay the traces of a chain by lambda."""
    for i in range(learner.count):
        learner.amounts[chain, i] *= learner.trace


@kernel
def predict(s, params, learner, g, chain):
    """Append the position to a chain."""
    p = chance(learner, gradient(params, s, g))
    steep = steepness(learner, p)
    for i in range(learner.count):
        learner.amounts[chain, i] = learner.trace * learner.amounts[chain, i] + steep * g.slope[i]
    learner.predicted[chain] = p
    learner.waiting[chain] = 1


@kernel
def link(s, params, learner, g, chain):
    """Append the position to a chain and update the weights: the last one should have been worth what this one is."""
    correct(learner, params, chain, chance(learner, value(params, s)))
    predict(s, params, learner, g, chain)


@kernel
def link_leaf(s, td, params, learner, g, move):
    """As `link`, with the position at the end of the last search's line for `move`."""
    best = td.root_best if s.side == 0 else -td.root_best
    chosen = 0
    while td.root_moves[chosen] != move:
        chosen += 1
    begun = s.ply
    make(s, move)
    outcome = outcome_after(s, td)
    for i in range(td.root_length[chosen]):
        if outcome:
            break
        make(s, int(td.root_pv[chosen, i]))
        outcome = outcome_after(s, td)
    if abs(best) > MOST or outcome:
        p = chance(learner, best) if abs(best) > MOST else 0.5
        correct(learner, params, 0, p)
        fade(learner, 0)
        learner.predicted[0] = p
        learner.waiting[0] = 1
    else:
        link(s, params, learner, g, 0)
    while s.ply > begun:
        undo(s)


@kernel
def note(s, params, learner, g, found, alpha, beta):
    """Add a position of a tree to the sums: `found` is the search's value for the side to move, with window
    (alpha, beta)."""
    sign = 1.0 if s.side == 0 else -1.0
    p = chance(learner, gradient(params, s, g))
    error = chance(learner, sign * found) - p
    learner.nodes += 1
    if (found >= beta and error * sign < 0.0) or (found <= alpha and error * sign > 0.0):
        return
    learner.squares += error * error
    learner.errors += 1
    amount = error * steepness(learner, p)
    for i in range(learner.count):
        learner.amounts[TOTAL, i] += amount * g.slope[i]


@kernel
def search_noting(s, td, params, learner, g, depth, alpha, beta, top):
    """As `minimax.search`, noting every inner node."""
    ply = s.ply - td.root
    side = s.side
    if depth <= 0 or top > minimax.ROOM:
        if can_move(s):
            return leaf_value(params, s)
        return terminal_value(td, no_move_outcome(s), side, ply)
    end = generate(s, top)
    if end == top:
        return terminal_value(td, no_move_outcome(s), side, ply)
    score_moves(s, td, ply, top, end)
    sorting = True
    best = -np.inf
    low = alpha
    for i in range(top, end):
        if sorting:
            sorting = pick_move(s, td, i, end) > 0
        move = int(s.moves[i])
        make(s, move)
        td.nodes += 1
        outcome = outcome_after(s, td)
        if outcome:
            x = terminal_value(td, outcome, side, ply + 1)
        elif s.side == side:
            x = search_noting(s, td, params, learner, g, depth - 1, low, beta, end)
        else:
            x = -search_noting(s, td, params, learner, g, depth - 1, -beta, -low, end)
        undo(s)
        best = max(best, x)
        low = max(low, best)
        if best >= beta:
            if td.killers[ply, 0] != move:
                td.killers[ply, 1] = td.killers[ply, 0]
                td.killers[ply, 0] = move
            break
    note(s, params, learner, g, best, alpha, beta)
    return best


@kernel
def choose_by_tree(s, td, params, learner, g, depth):
    """The best move, drawn among equals, 0 if there is none; then learns from the tree that was searched."""
    side = s.side
    td.root = s.ply
    td.flat = 0
    td.unseen = 0
    params.root_side = s.side + 1
    params.root_caught = s.caught_top
    end = generate(s, 0)
    if end == 0:
        return 0
    # In random order, the first of the best moves is a random one of them.
    for i in range(end):
        j = randbelow(s, i + 1)
        td.root_moves[i] = td.root_moves[j]
        td.root_moves[j] = s.moves[i]
    for i in range(learner.count):
        learner.amounts[TOTAL, i] = 0.0
    learner.nodes = 0
    best = -np.inf
    chosen = 0
    for i in range(end):
        make(s, int(td.root_moves[i]))
        td.nodes += 1
        outcome = outcome_after(s, td)
        if outcome:
            x = terminal_value(td, outcome, side, 1)
        elif s.side == side:
            x = search_noting(s, td, params, learner, g, depth - 1, best, np.inf, 0)
        else:
            x = -search_noting(s, td, params, learner, g, depth - 1, -np.inf, -best, 0)
        undo(s)
        if x > best:
            best = x
            chosen = i
    note(s, params, learner, g, best, -np.inf, np.inf)
    step(learner, params, TOTAL, 1.0 / learner.nodes)
    return int(td.root_moves[chosen])


@kernel
def repeat_previous(s, td, params, learner, g):
    """The learning step of `PREVIOUS` after a move; the search has left the values of all moves in `td`."""
    last = td.root_values[td.root_count - 1]
    target = chance(learner, -last if s.side == 0 else last)
    for _ in range(REPEATS):
        learner.trace = 0.0
        predict(s, params, learner, g, 0)
        error = target - learner.predicted[0]
        if error * error < NEAR:
            break
        learner.squares += error * error
        learner.errors += 1
        step(learner, params, 0, error)
    learner.waiting[0] = 0


@kernel
def result(learner, outcome, side):
    """The target for a finished game (the attackers' chance), for a learner that plays `side`."""
    winner = outcome >> WINNER
    if winner == 1:
        return 1.0
    return 0.0 if winner == 2 else learner.drawn[side]


@kernel
def learn_from_game(s, td, players, params, learner, g, game):
    """Play one game from the position of `s`, in which player 0 learns; restores `s`."""
    start_stream(s, game.seed)
    for side in range(2):
        game.taken[side] = 0
        learner.waiting[side] = 0
        for i in range(learner.count):
            learner.amounts[side, i] = 0.0
    game.evaluations = 0
    begun = s.ply
    method = learner.method
    mind = players[0].params
    opening = randbelow(s, learner.random_plies + 1)
    while s.outcome == 0:
        if s.ply - begun == match.MOST_PLIES:
            s.outcome = match.PLY_CAP
            break
        side = s.side
        ours = game.attackers == 0 if side == 0 else game.defenders == 0
        chain = side if method == DIFFERENCES and learner.chain != PLIES else 0
        if ours and method == DIFFERENCES and learner.chain == LITERAL:
            correct(learner, params[mind], chain, chance(learner, value(params[mind], s)))
        td.nodes = 0
        blind = s.ply - begun < opening or (ours and randbelow(s, SHARE) < learner.epsilon * SHARE)
        if blind:
            move = random_move(s)
        elif ours and method == TREES:
            move = choose_by_tree(s, td, params[mind], learner, g, players[0].depth)
        else:
            move = choose(s, td, players[game.attackers if side == 0 else game.defenders], params, None)
        game.evaluations += td.nodes
        if move == 0:
            s.outcome = no_move_outcome(s)
            break
        if ours and method == LEAVES and not blind:
            link_leaf(s, td, params[mind], learner, g, move)
        caught = s.caught_top
        if move < 0:
            pass_turn(s)
        else:
            make(s, move)
        game.taken[side] += s.caught_top - caught
        if s.outcome == 0:
            s.outcome = adjudicate(s, -1)
        if s.outcome and not (ours and players[0].unseen and method == DIFFERENCES):
            break
        if method == DIFFERENCES:
            if learner.chain == PLIES or (ours and learner.chain == AFTERSTATES):
                link(s, params[mind], learner, g, chain)
            elif ours:
                predict(s, params[mind], learner, g, chain)
        elif method == PREVIOUS and ours and not blind:
            repeat_previous(s, td, params[mind], learner, g)
    one_chain = method != DIFFERENCES or learner.chain == PLIES
    for chain in range(1 if one_chain else 2):
        side = chain
        if one_chain and game.attackers != 0:
            side = 1
        correct(learner, params[mind], chain, result(learner, s.outcome, side))
    game.outcome = s.outcome
    game.plies = s.ply - begun
    while s.ply > begun:
        take_back(s)
    s.outcome = 0


@entry
def learn_from_games(s, td, players, params, learner, g, games):
    """Play all games in order, changing the learning rate after each."""
    for i in range(games.size):
        learn_from_game(s, td, players, params, learner, g, games[i])
        learner.rate += learner.rate_change
        if (learner.rate - learner.rate_end) * learner.rate_change > 0.0:
            learner.rate = learner.rate_end


@dataclass(frozen=True, slots=True)
class Lesson:
    """How a player learns. `rate` is the learning rate in the first game; it changes by `rate_change` per game until
    `rate_end`. `drawn` is the target for a draw (the attackers' chance), for a learner that attacks and one that
    defends. With `unseen` a learner by temporal differences does not see the end of a game before it comes; a final
    position that its own move reaches is then the last one that it learns from."""

    method: int = DIFFERENCES
    chain: int = AFTERSTATES
    depth: int = 1
    trace: float = 0.0
    rate: float = 0.1
    rate_end: float = 0.01
    rate_change: float = 0.0
    epsilon: float = 0.0
    random_plies: int = 0
    drawn: tuple[float, float] = (0.0, 1.0)
    unseen: bool = False
    entropy: bool = False
    adam: bool = False


@dataclass(frozen=True, slots=True)
class Memory:
    """A learner's state between games: its weights, and Adam's steps and means (2 x weights)."""

    weights: Any
    means: Any
    steps: int = 0


@dataclass(frozen=True, slots=True)
class Learnt:
    """The result of learning: the memory, the sum of the squared errors and their number."""

    memory: Memory
    squares: float
    errors: int


def unit(network: Network) -> float:
    """The change of a network's value that is one logit."""
    return LOGIT / float(network.module.SCALE)


def learn(
    variant: AnyVariant,
    network: Network,
    memory: Memory,
    others: Sequence[Contestant],
    games: Any,
    lesson: Lesson,
) -> Learnt:
    """Let a player learn from `games`, an array of dtype `match.GAME` in which player 0 is the learner and the others,
    from 1, are `others`; writes the results to it. ValueError for players that cannot play."""
    count = network.count(variant)
    params = network.record(variant, memory.weights)
    table = Table(
        variant, [Contestant("minimax", lesson.depth, params, unseen=lesson.unseen), *others], quick=False
    )
    learner = np.zeros(1, LEARNER).view(np.recarray)
    own = learner[0]
    own["count"], own["unit"] = count, unit(network)
    for name in ("method", "chain", "trace", "rate", "rate_end", "rate_change", "epsilon", "random_plies"):
        own[name] = getattr(lesson, name)
    own["drawn"], own["entropy"], own["adam"] = lesson.drawn, lesson.entropy, lesson.adam
    own["steps"] = memory.steps
    own["means"][:, :count] = memory.means
    learn_from_games(
        table.state,
        table.td,
        table.players,
        table.params,
        own,
        np.zeros(1, GRADIENT).view(np.recarray)[0],
        games.view(np.recarray),
    )
    weights = table.params[int(table.players[0]["params"])]["weights"][:count].copy()
    after = Memory(weights, own["means"][:, :count].copy(), int(own["steps"]))
    return Learnt(after, float(own["squares"]), int(own["errors"]))
