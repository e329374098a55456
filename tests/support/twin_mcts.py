"""The tree search by the book: a tree of objects, one simulation is one walk, nothing is shared."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from legal_moves import generate

from hnefi.engine.games import interface as verbs
from hnefi.engine.search.mcts import DRAWN, MOST_PLIES, ONE


@dataclass
class Twin:
    """One node of the slow tree; `total` is for side `a`, `proof` is (winner, plies), DRAWN - 1 for nobody."""

    move: int = 0
    prior: float = 1.0
    total: int = 0
    visits: int = 0
    proof: tuple[int, int] | None = None
    below: list[Twin] | None = None
    tried: int = 0


@dataclass
class TwinSearch:
    state: Any
    params: Any
    policy: bool
    evaluating: bool
    patience: int
    c: float = 1.0
    root: Twin = field(default_factory=Twin)

    def below(self, n: int) -> int:
        """The die of the kernels: xorshift64*."""
        x = int(self.state["random"])
        x ^= x >> 12
        x = (x ^ x << 25) % 2**64
        x ^= x >> 27
        self.state["random"] = x
        return (x * 0x2545F4914F6CDD1D % 2**64 >> 33) * n >> 31

    def grow(self, node: Twin, moves: list[int]) -> None:
        for i in range(len(moves) - 1, 0, -1):
            j = self.below(i + 1)
            moves[i], moves[j] = moves[j], moves[i]
        weights = [math.exp(verbs.order_score(self.state, m) / 32) if self.policy else 1.0 for m in moves]
        total = sum(weights)
        node.below = [
            Twin(m, max(1, int(w * (65535 / total))) / 65535) for m, w in zip(moves, weights, strict=True)
        ]
        if self.policy:
            node.below.sort(key=lambda child: -child.prior)

    def choose(self, node: Twin, side: int) -> Twin:
        assert node.below is not None
        if not self.policy and node.tried < len(node.below):
            node.tried += 1
            return node.below[node.tried - 1]
        sign = -1 if side else 1
        best, chosen = -math.inf, None
        for i, child in enumerate(node.below):
            if child.proof and child.proof[0] == 1 - side:
                continue
            if i < node.tried:
                x = sign * child.total / ONE / child.visits
                if self.policy:
                    x += self.c * child.prior * math.sqrt(node.visits) / (1 + child.visits)
                else:
                    x += self.c * math.sqrt(math.log(node.visits) / child.visits)
            else:
                x = sign * node.total / ONE / node.visits + self.c * child.prior * math.sqrt(node.visits)
            if x > best + 1e-12:
                best, chosen = x, child
        assert chosen is not None
        if node.below.index(chosen) == node.tried:
            node.tried += 1
        return chosen

    def result(self, winner: int) -> int:
        return {0: ONE, 1: -ONE, DRAWN - 1: 0}[winner]

    def leaf(self) -> int:
        state = self.state
        if self.evaluating:
            cp = int(verbs.evaluate(self.params, state))
            value = int(math.tanh(cp * math.log(10) / 800) * ONE)
            return -value if state["side"] else value
        for _ in range(MOST_PLIES):
            move = int(verbs.random_move(state))
            if not move:
                return self.result((int(verbs.no_move_outcome(state)) >> 8) - 1)
            verbs.make(state, move)
            outcome = int(state["outcome"]) or int(verbs.adjudicate(state, -1))
            if outcome:
                return self.result((outcome >> 8) - 1)
        return 0

    def prove(self, node: Twin, side: int) -> None:
        """What the children say about their parent."""
        assert node.below is not None
        known = [child.proof for child in node.below]
        wins = [proof[1] for proof in known if proof and proof[0] == side]
        if wins:
            node.proof = side, min(wins) + 1
        elif all(known) and node.tried == len(known):
            draws = [proof[1] for proof in known if proof and proof[0] == DRAWN - 1]
            losses = [proof[1] for proof in known if proof]
            node.proof = (DRAWN - 1, max(draws) + 1) if draws else (1 - side, max(losses) + 1)

    def simulate(self, node: Twin) -> int:
        state = self.state
        node.visits += 1
        if node.proof is None and node.below is None and node.visits > self.patience:
            end = generate(state)
            if end:
                self.grow(node, [int(m) for m in state["moves"][:end]])
            else:
                node.proof = (int(verbs.no_move_outcome(state)) >> 8) - 1, 0
        if node.proof is not None:
            value = self.result(node.proof[0])
        elif node.below is None:
            ply = int(state["ply"])
            value = self.leaf()
            while state["ply"] > ply:
                verbs.undo(state)
            state["outcome"] = 0
        else:
            side = int(state["side"])
            child = self.choose(node, side)
            verbs.make(state, child.move)
            outcome = int(state["outcome"]) or int(verbs.adjudicate(state, -1))
            if outcome and child.proof is None:
                child.proof = (outcome >> 8) - 1, 0
            value = self.simulate(child)
            verbs.undo(state)
            state["outcome"] = 0
            if child.proof:
                self.prove(node, side)
        node.total += value
        return value


def children(nodes: Any, p: int) -> list[int]:
    """The nodes below node `p` of the kernels' tree."""
    first = int(nodes[p]["first"])
    return list(range(first, first + int(nodes[p]["count"]))) if first else []


def same_tree(nodes: Any, p: int, twin: Twin) -> int:
    """Compares the tree of the kernels below node `p` with the slow one; how many nodes were compared."""
    node = nodes[p]
    proof = int(node["proof"])
    assert (int(node["visits"]), int(node["score"])) == (twin.visits, twin.total)
    assert (((proof >> 14) - 1, proof & 16383) if proof else None) == twin.proof
    below = children(nodes, p)
    assert [int(nodes[c]["move"]) for c in below] == [child.move for child in twin.below or []]
    return 1 + sum(same_tree(nodes, c, child) for c, child in zip(below, twin.below or [], strict=True))
