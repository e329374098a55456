"""Monte Carlo tree search in Python around the kernels: the tree between moves, threads, reports and the clock."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from .. import evaluators
from ..games.base_position import Position
from ..score import MATE, MAX_EVAL, NO_LIMIT
from . import mcts
from .deepening import Algorithm, Run, SearchContext, new_table
from .mcts import DEEPEST, DRAWN, NODE, ONE, ROOT, THREAD, TREE
from .types import SearchResult

FIRST_DEPTH = 64
"""Depth d is complete after FIRST_DEPTH * 2**d simulations."""
GAMES = 4
"""Playouts of a leaf before it is expanded; an evaluated leaf needs no second evaluation."""
CHUNK = 1024
"""Simulations between two checks of the clock."""
MATE_SIMULATIONS = 100_000
"""A search for a mate in n without another limit gives up after n times this many simulations."""
_MOST_NODES = (1 << 31) - 1


class TreeSearch(Algorithm):
    """What is kept between searches: the tree with the position at its root, and the threads' records."""

    def __init__(self) -> None:
        super().__init__()
        self.tree = np.zeros(1, TREE).view(np.recarray)
        self.nodes: Any = None
        self._root: Position | None = None
        self._kind: tuple[object, ...] = ()

    def signal(self, stop: int) -> None:
        """Write the word that every simulation reads."""
        self.tree[0]["stop"] = stop

    def clear(self) -> None:
        """Drop the tree and free its memory."""
        self.nodes = None
        self._root = None

    def search(self, context: SearchContext) -> SearchResult:
        """Simulate until a limit is reached."""
        return _TreeRun(self, context).result()

    def prepare(self, context: SearchContext, state: Any, params: Any) -> None:
        """Set the tree to that of the position: the part of the last one below it, or else a new one.

        `state` holds the position. If root moves are restricted, the tree is not kept.
        """
        position, moves, settings = context.position, context.moves, context.settings
        tree = self.tree[0]
        if self.nodes is None:
            self.nodes = new_table(settings.hash_mib << 20).view(NODE)[:_MOST_NODES].view(np.recarray)
        while len(self.threads) < settings.threads:
            self.threads.append(np.zeros(1, THREAD).view(np.recarray))
        tree["nodes"] = tree["done"] = tree["seldepth"] = 0
        tree["policy"] = settings.algorithm == "puct"
        leaf = settings.mcts_leaf
        tree["evaluating"] = leaf == "evaluator" or (leaf == "auto" and settings.algorithm == "puct")
        tree["at_once"] = (
            tree["evaluating"]
            and tree["policy"]
            and evaluators.knows_moves(settings.evaluator, position.variant)
        )
        tree["expansion_threshold"] = 1 if tree["evaluating"] else GAMES
        tree["exploration"] = settings.exploration / 100
        tree["virtual_loss"] = ONE if settings.threads > 1 else 0
        in_siege = evaluators.in_siege(params)
        kind = (position.fits, settings.algorithm, leaf, settings.evaluator, in_siege)
        whole = len(moves) == len(position.legal_moves())
        since = self._since(position) if whole and kind == self._kind else None
        if since is None:
            tree["used"] = 0
        if not mcts.reuse_tree(tree, self.nodes, np.array(since or (), np.int32)):
            state["moves"][: len(moves)] = moves
            mcts.init_root(state, tree, self.nodes, self.threads[0][0], params, len(moves))
        self._root = position if whole else None
        self._kind = kind

    def _since(self, position: Position) -> tuple[int, ...] | None:
        """The moves from the root to `position`, None if it cannot be reached."""
        known = self._root
        if known is None or known.start_fen != position.start_fen:
            return None
        before, moves = known.moves, position.moves
        return moves[len(before) :] if moves[: len(before)] == before else None


class _TreeRun(Run):
    """One tree search from start to answer."""

    def __init__(self, search_tree: TreeSearch, context: SearchContext) -> None:
        super().__init__(context)
        self.search_tree = search_tree
        self.shown = self.pv
        """The last line reported."""
        if self.budget.soft is not None and self.budget.hard is not None:
            # Unlike an unfinished depth, no simulation is wasted: use the full share, which is twice `soft`.
            self.budget.hard = min(2 * self.budget.soft, self.budget.hard)
        record, params = context.load(self.settings.evaluator)
        self.state, self.params = record[0], params[0]
        self.tree = search_tree.tree[0]

    def _deepen(self) -> None:
        state, params = self.state, self.params
        state["random"] = self.context.stream().getrandbits(64) or 1
        self.search_tree.prepare(self.context, state, params)
        tree, nodes = self.tree, self.search_tree.nodes
        tree["node_limit"] = self._simulations()
        helpers = [
            threading.Thread(target=self._help, args=self._of_helper(number), daemon=True)
            for number in range(1, self.settings.threads)
        ]
        depth, best, reported = 0, -1, -1
        try:
            for helper in helpers:
                helper.start()
            while True:
                left = (FIRST_DEPTH << (depth + 1)) - int(tree["nodes"])
                most = max(1, min(CHUNK, left))
                mcts.simulate(state, tree, nodes, self.search_tree.threads[0][0], params, most)
                count = int(tree["nodes"])
                ranking = self._ranking()
                if count >= FIRST_DEPTH << (depth + 1) or ranking[0] != best:
                    while count >= FIRST_DEPTH << (depth + 1):
                        depth += 1
                    best, reported = ranking[0], count
                    self._report_lines(max(1, depth), ranking)
                if self._over(ranking):
                    break
        finally:
            tree["done"] = 1
            for helper in helpers:
                if helper.ident is not None:
                    helper.join()
        if reported != int(tree["nodes"]):
            self._report_lines(max(1, depth), self._ranking())

    def _of_helper(self, number: int) -> tuple[Any, Any, Any]:
        """New records for another thread: state, thread data, parameters.

        Not allocated by that thread, whose own heap would keep the memory.
        """
        state = self.position.new_record()[0]
        state["random"] = self.context.stream().getrandbits(64) + number or 1
        params = evaluators.parameters(self.settings.evaluator, self.position.variant)
        evaluators.attune(params, self.settings.evaluator, self.position)
        return state, self.search_tree.threads[number][0], params[0]

    def _help(self, state: Any, td: Any, params: Any) -> None:
        """Run a further thread in the same tree."""
        mcts.simulate(state, self.tree, self.search_tree.nodes, td, params, NO_LIMIT)

    def _simulations(self) -> int:
        """The limit in simulations."""
        limits = self.limits
        most = min(limits.nodes or NO_LIMIT, NO_LIMIT)
        if limits.depth is not None:
            most = min(most, FIRST_DEPTH << min(limits.depth, 50))
        others = (limits.depth, limits.nodes, limits.movetime, *limits.clock)
        if limits.mate is not None and all(limit is None for limit in others):
            most = min(most, MATE_SIMULATIONS * limits.mate)
        return max(1, most)

    def _ranking(self) -> list[int]:
        """The children of the root, best first, as many as there are lines: proven wins, then by visits, proven losses
        last; nearer wins and later losses first."""
        nodes = self.search_tree.nodes
        first, count = int(nodes[ROOT]["first"]), int(nodes[ROOT]["count"])
        children = nodes[first : first + count]
        end = children["proof"] >> mcts.PROVEN
        plies = (children["proof"] & mcts.PROVEN_PLIES).astype(np.int64)
        side = int(self.position.side)
        kind = np.where(end == side + 1, 2, np.where(end == 2 - side, 0, 1))
        worth = np.where(kind == 2, -plies, np.where(kind == 0, plies, children["visits"]))
        score = children["score"] * (1 - 2 * side)
        order = np.lexsort((-score, -worth, -kind))
        return [first + int(k) for k in order[: self.lines]]

    def _value(self, child: int) -> int:
        """The value of a child of the root for the side to move, in centipawns; a win in n plies is MATE - n."""
        node = self.search_tree.nodes[child]
        proof, visits = int(node["proof"]), int(node["visits"])
        end, plies = proof >> mcts.PROVEN, (proof & mcts.PROVEN_PLIES) + 1
        if end == DRAWN or (not end and not visits):
            return 0
        sign = 1 - 2 * int(self.position.side)
        if end:
            return (MATE - plies) * (1 if end == int(self.position.side) + 1 else -1)
        # As if there were one more simulation, a draw, so that only wins so far do not mean certainty.
        mean = sign * int(node["score"]) / ONE / (visits + 1)
        return round(max(-MAX_EVAL, min(MAX_EVAL, 400 * np.log10((1 + mean) / (1 - mean)))))

    def _over(self, ranking: list[int]) -> bool:
        """Whether to stop: at a limit, or because more simulations would be pointless."""
        if self.control.stopped or self.tree["stop"] or self.tree["done"]:
            return True
        if self.control.pondering or not self.budget.timed:
            return False
        return len(self.moves) == 1 or self._cannot_be_overtaken(ranking)

    def _cannot_be_overtaken(self, ranking: list[int]) -> bool:
        """Whether the rest of the time is too short for another move to become the most visited one."""
        hard = self.budget.hard
        if hard is None or self.limits.clock[self.position.side] is None:
            return False
        nodes = self.search_tree.nodes
        first, count = int(nodes[ROOT]["first"]), int(nodes[ROOT]["count"])
        visits = nodes["visits"][first : first + count]
        lead = int(nodes[ranking[0]]["visits"]) - int(np.delete(visits, ranking[0] - first).max())
        elapsed = self.budget.elapsed()
        return lead > int(self.tree["nodes"]) * (hard - elapsed) / max(elapsed, 0.001)

    def _line(self, child: int) -> tuple[int, ...]:
        out = np.zeros(DEEPEST, np.int32)
        length = int(mcts.line(self.state, self.search_tree.nodes, child, out))
        return tuple(int(move) for move in out[:length])

    def _seldepth(self, depth: int) -> int:
        return max(depth, len(self.shown), int(self.tree["seldepth"]))

    def _nodes(self) -> int:
        return int(self.tree["nodes"])

    def _hashfull(self) -> int:
        return min(1000, int(self.tree["used"]) * 1000 // len(self.search_tree.nodes))

    def _report_lines(self, depth: int, ranking: list[int]) -> None:
        for line, child in enumerate(ranking):
            if line and not self.search_tree.nodes[child]["visits"]:
                break
            self.shown = self._line(child)
            if line == 0:
                self.pv = self.shown
            self._report(depth, line, self._value(child), self.shown)
