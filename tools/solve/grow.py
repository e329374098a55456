"""Makes a proof tree from a proof: the positions that a win passes through, each with the plies left.

Proof-number search leaves a table of proven positions. Where the winner is to move, the tree keeps one of the moves
that lead to a proven position; where the other side is to move, it keeps all moves. Some proven moves only lead back to
where the winner came from. So the plies are counted backwards from the ends of the game, and if kept moves form a
cycle, other proven moves are added. There are always some, unless the table has overwritten them: each position was
proven by moves to positions that were proven before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hnefi.engine.games.interface import MOST_MOVES
from hnefi.engine.solving import branches
from hnefi.engine.solving.dfpn import LINE_NODES
from hnefi.engine.solving.proof_tree import MOST_POSITIONS, by_material

from ..common import interrupts

if TYPE_CHECKING:
    from hnefi.engine.solving.dfpn import ProofSearch
    from hnefi.engine.solving.index import Index

PORTION = 1 << 10
"""Positions between two reports of progress."""


class NoTree(RuntimeError):
    """No tree can be written, because the table has lost too much or the tree is too large; the message is a
    sentence."""


class _Look:
    """The successors of a position: who has won after each move, and the positions in which nobody has."""

    def __init__(self, winners: Any, numbers: Any, proven: Any, chooses: bool) -> None:
        self.winners = winners.copy()
        goes_on = winners == branches.GOES_ON
        self.going = numbers[goes_on]
        self.proven = numbers[goes_on & (proven == 1)]
        """The successors that the winner wins according to the table."""
        self.chooses = chooses
        """Whether the winner is to move."""


class Grower:
    """Grows the tree of one proof. `search` has the table in which `winner` was proven to win."""

    def __init__(
        self,
        index: Index,
        search: ProofSearch,
        winner: int,
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._index = index
        self._search = search
        self._winner = winner
        self._on_progress = on_progress
        self._moves = np.zeros(MOST_MOVES, np.int64)
        self._winners = np.zeros(MOST_MOVES, np.int64)
        self._numbers = np.zeros(MOST_MOVES, np.int64)
        self._proven = np.zeros(MOST_MOVES, np.uint8)
        self._after: dict[int, list[int]] = {}
        """The positions after the kept moves, by position."""
        self._chooses: set[int] = set()
        """Positions in which the winner is to move."""
        self._plies: dict[int, int] = {}

    def grow(self, root: int) -> tuple[Any, Any]:
        """Sorted numbers and plies of a tree for the position with number `root`, which is proven."""
        self._add([root])
        while True:
            self._count()
            if root in self._plies:
                numbers, plies = self._pruned(root)
                if len(numbers) > MOST_POSITIONS:
                    raise NoTree(f"it would have {len(numbers)} positions, expected at most {MOST_POSITIONS}")
                return numbers, plies
            self._add(self._other_ways(root))

    def _add(self, numbers: list[int]) -> None:
        """Add positions and all their successors."""
        todo = [number for number in numbers if number not in self._after]
        while todo:
            number = todo.pop()
            if number in self._after:
                continue
            self._after[number] = after = self._behind(number)
            todo += [each for each in after if each not in self._after]
            if len(self._after) % PORTION == 0:
                interrupts.check()
                self._on_progress(len(self._after))

    def _behind(self, number: int) -> list[int]:
        """The successors of a new position; sets its plies if the game ends there."""
        look = self._look(number)
        if not len(look.winners):
            self._plies[number] = 0
            return []
        if not look.chooses:
            if not len(look.going):
                self._plies[number] = 1
            return sorted(set(look.going.tolist()))
        self._chooses.add(number)
        if (look.winners == self._winner).any():
            self._plies[number] = 1
            return []
        proven = look.proven.tolist()
        return [next((each for each in proven if each in self._after), proven[0])]

    def _look(self, number: int) -> _Look:
        """The successors of a position. NoTree if no move of the winner is known to win."""
        s, td, table = self._search.records
        material = self._index.of(number)
        men = material.attackers, material.defenders
        for last in (False, True):
            count = branches.behind(
                s, self._index.record, td, table, self._winner, *men, number,
                self._moves, self._winners, self._numbers, self._proven,
            )  # fmt: skip
            chooses = int(s["side"]) == self._winner
            look = _Look(self._winners[:count], self._numbers[:count], self._proven[:count], chooses)
            if not chooses or len(look.proven) or (look.winners == self._winner).any():
                return look
            if not last:
                # The table has lost the move.
                self._search.ask(self._winner, LINE_NODES)
        raise NoTree("the table has lost too much of the proof: expected a larger one (--memory)")

    def _count(self) -> None:
        """Determine the plies of as many positions as possible, backwards from the ends of the game."""
        before: dict[int, list[int]] = {}
        left = {}
        for number, after in self._after.items():
            if number in self._plies:
                continue
            left[number] = 1 if number in self._chooses else len(after)
            for each in after:
                before.setdefault(each, []).append(number)
        levels: list[list[int]] = []
        # With moves added since, plies found earlier may be more than necessary, but they stay correct.
        for number, plies in self._plies.items():
            levels += [[] for _ in range(plies + 1 - len(levels))]
            levels[plies].append(number)
        at = 0
        while at < len(levels):
            for number in levels[at]:
                for each in before.get(number, ()):
                    left[each] -= 1
                    if left[each] == 0:
                        self._plies[each] = at + 1
                        if at + 1 == len(levels):
                            levels.append([])
                        levels[at + 1].append(each)
            at += 1

    def _other_ways(self, root: int) -> list[int]:
        """Add all other proven moves in positions where a move of the winner closes a cycle, or everywhere if that adds
        none. Returns the positions after these moves."""
        closing, seen = self._circles(root)
        for numbers in (closing, seen):
            found = []
            for number in numbers:
                kept = self._after[number]
                others = [each for each in self._look(number).proven.tolist() if each not in kept]
                kept += others
                found += others
            if found:
                return found
        raise NoTree(
            "every move that is known to win leads back to an earlier position: expected a larger table (--memory)"
        )

    def _circles(self, root: int) -> tuple[list[int], list[int]]:
        """Walk from `root` over positions without plies. Returns those in which a kept move of the winner leads back to
        a position on the path, and all in which the winner is to move."""
        closing = []
        on_way, seen = {root}, {root}
        stack = [(root, iter(self._after[root]))]
        while stack:
            number, rest = stack[-1]
            for each in rest:
                if each in self._plies:
                    continue
                if each in on_way and number in self._chooses:
                    closing.append(number)
                if each not in seen:
                    seen.add(each)
                    on_way.add(each)
                    stack.append((each, iter(self._after[each])))
                    break
            else:
                stack.pop()
                on_way.discard(number)
        return closing, sorted(seen & self._chooses)

    def _pruned(self, root: int) -> tuple[Any, Any]:
        """Keep only the positions that are reached by the shortest of the kept moves."""
        kept = {root}
        todo = [root]
        while todo:
            number = todo.pop()
            after = self._after[number]
            if number in self._chooses and after:
                after = [min((each for each in after if each in self._plies), key=self._plies.__getitem__)]
            new = [each for each in after if each not in kept]
            kept.update(new)
            todo += new
        numbers = np.array(sorted(kept), np.int64)
        plies = np.array([self._plies[number] for number in numbers.tolist()], np.int64)
        while by_material(
            branches.shorten,
            self._search.records[0],
            self._index,
            self._winner,
            numbers,
            plies,
            interrupts.check,
        ):
            pass
        return numbers, plies
