"""Iterative deepening and reports: one search from start to answer, until time, limits or the position end it.

All algorithms share this; each has its own run, which searches one depth.
"""

from __future__ import annotations

import contextlib
import mmap
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..games.base_position import Position
from ..score import MATE, WON
from .clock import budget
from .control import SearchControl
from .types import Info, Limits, Score, SearchResult, Settings

MAX_DEPTH = 90


@dataclass(frozen=True, slots=True)
class SearchContext:
    """One search request, and the control that stops it; `moves` are the root moves it may choose from."""

    position: Position
    moves: list[int]
    limits: Limits
    on_info: Callable[[Info], None]
    settings: Settings
    control: SearchControl
    load: Callable[[str], tuple[Any, Any]]
    """The record of the position and the parameters of an evaluator, each in a one-element recarray."""

    def stream(self) -> random.Random:
        """Random numbers, the same for the same seed and position."""
        return random.Random(f"{self.settings.seed} {self.position.key} {self.position.ply}")


class Algorithm:
    """An algorithm, with what it keeps between searches.

    Only `signal` may be called while `search` runs in another thread.
    """

    def __init__(self) -> None:
        self.threads: list[Any] = []
        """One record for each thread of a search; the first belongs to the main thread."""

    def search(self, context: SearchContext) -> SearchResult:
        """Search until a limit is reached or the search is stopped."""
        raise NotImplementedError

    def signal(self, stop: int) -> None:
        """Write the stop word, which is read at every node: 1 to stop, 0 to run."""
        for record in self.threads:
            record[0]["stop"] = stop

    def clear(self) -> None:
        """Forget earlier searches, for a new game."""


class Run:
    """One search from start to answer by iterative deepening; subclasses search one depth."""

    deepest = MAX_DEPTH

    def __init__(self, context: SearchContext) -> None:
        self.context = context
        self.settings = context.settings
        self.control = context.control
        self.position = context.position
        self.limits = context.limits
        self.moves = context.moves
        self.lines = min(max(1, self.settings.multipv), len(self.moves))
        self.budget = budget(self.limits, self.position.side, self.settings.move_overhead)
        self.pv: tuple[int, ...] = (self.moves[0],)
        self.value = 0
        """The value of the best line for the side to move, in centipawns; a win in n plies is MATE - n."""
        self.changed = 0
        """The depth at which the best move last changed."""
        self.falling = False
        """Whether the best line's value has dropped clearly."""
        self._last: Info | None = None
        """The last report of the best line."""

    def _iterate(self, depth: int) -> bool:
        """Search one depth, all lines; False if it was interrupted."""
        raise NotImplementedError

    def result(self) -> SearchResult:
        """Search until a limit is reached or the search is stopped."""
        with self.control.watching(self.budget, ponder=self.limits.ponder):
            self._deepen()
        self._close()
        return SearchResult(self.pv[0], self.pv[1] if len(self.pv) > 1 else None)

    def _close(self) -> None:
        """Report the best line again with the final nodes and time: the last report can be half a search old."""
        last, nodes, elapsed = self._last, self._nodes(), self.budget.elapsed()
        if last is not None and nodes > last.nodes:
            self.context.on_info(
                replace(
                    last,
                    nodes=nodes,
                    nps=_rate(nodes, elapsed),
                    hashfull=self._hashfull(),
                    tbhits=self._tbhits(),
                    time=int(elapsed),
                )
            )

    def _deepen(self) -> None:
        deepest = min(self.limits.depth or self.deepest, self.deepest)
        if self.limits.mate is not None:
            deepest = min(deepest, 2 * self.limits.mate)
        for depth in range(1, deepest + 1):
            if not self._iterate(depth) or self._enough(depth):
                return

    def _enough(self, depth: int) -> bool:
        """Whether another depth would be pointless: out of time, decided, or only one move."""
        if self.control.stopped:
            return True
        plies = MATE - abs(self.value)
        mate = self.limits.mate
        if mate is not None and self.value > WON and plies <= 2 * mate - 1:
            return True
        if self._decided(depth) and not self.limits.infinite:
            return True
        if self.budget.timed and not self.control.pondering:
            return len(self.moves) == 1 or self.budget.spent(self._instability(depth))
        return False

    def _decided(self, depth: int) -> bool:
        """Whether a forced end was found that no further depth could change."""
        return MATE - abs(self.value) <= depth

    def _instability(self, depth: int) -> float:
        """The factor for a move's usual share of time: larger while the best move still changes."""
        settled = max(0, depth - self.changed)
        return max(0.5, 1.5 - 0.15 * settled) * (1.4 if self.falling else 1.0)

    def _seldepth(self, depth: int) -> int:
        return depth

    def _nodes(self) -> int:
        """Nodes so far, by all threads."""
        raise NotImplementedError

    def _hashfull(self) -> int:
        return 0

    def _tbhits(self) -> int | None:
        """Positions found in solved tables, None without tables."""
        return None

    def _report(self, depth: int, line: int, value: int, pv: tuple[int, ...], bound: str = "") -> None:
        elapsed = self.budget.elapsed()
        nodes = self._nodes()
        info = Info(
            depth=depth,
            seldepth=self._seldepth(depth),
            multipv=line + 1,
            score=score_of(value),
            nodes=nodes,
            nps=_rate(nodes, elapsed),
            hashfull=self._hashfull(),
            time=int(elapsed),
            pv=pv,
            wdl=win_draw_loss(value),
            bound=bound,
            tbhits=self._tbhits(),
        )
        if line == 0:
            self._last = info
        self.context.on_info(info)


def _rate(nodes: int, milliseconds: float) -> int:
    """Nodes per second."""
    return int(nodes * 1000 / max(milliseconds, 0.001))


def score_of(value: int) -> Score:
    """A search value as a score: forced ends count the winner's own moves."""
    if value > WON:
        return Score(mate=(MATE - value + 1) // 2)
    if value < -WON:
        return Score(mate=-((MATE + value) // 2))
    return Score(cp=value)


def win_draw_loss(value: int) -> tuple[int, int, int]:
    """Per mille of wins, draws and losses to expect: 100 centipawns are a score of 64 %, draws are not foreseen."""
    if abs(value) > WON:
        return (1000, 0, 0) if value > 0 else (0, 0, 1000)
    won = round(1000 / (1 + 10 ** (-value / 400)))
    return (won, 0, 1000 - won)


def new_table(size: int) -> Any:
    """A table of `size` bytes, all zero, as words of 64 bits.

    Its memory is allocated in small pages as a search touches it. With the huge pages that numpy requests, the first
    search of a process paused for a tenth of a second, too long for a short clock; later ones are 4 % faster with them.
    """
    if sys.platform != "linux":
        return np.zeros(size // 8, np.uint64)
    block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    # An operating system without huge pages rejects this call, and does not need it.
    with contextlib.suppress(OSError):
        block.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(block, np.uint64)
