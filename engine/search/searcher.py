"""Iterative deepening in Python around the kernels: depths, lines, limits and the clock.

The kernels run without the interpreter's lock. Whatever ends a search, a `stop` from another thread or a timer,
writes one word that every node reads.
"""

from __future__ import annotations

import contextlib
import mmap
import random
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import evaluators
from ..position import Position
from . import alphabeta
from .alphabeta import BUCKET, INFINITE, MATE, SEARCH, WON
from .clock import Budget, budget
from .types import Info, Limits, Score, SearchResult, Settings

MAX_DEPTH = 90
_NO_LIMIT = 1 << 62
_WORD = 16  # bytes of a table entry


class Searcher:
    """One engine's thinking: tables that live from search to search, and the search itself.

    Only `begin`, `stop` and `ponderhit` may be called while `search` runs in another thread.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings or Settings()
        self._work = np.zeros(1, SEARCH).view(np.recarray)
        self._table: Any = None
        self._record: Any = None
        self._params: Any = None
        self._known: tuple[str, str] | None = None
        self._generation = 0
        self._stopped = False
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._pondering: Budget | None = None
        self._hit = False

    def configure(self, settings: Settings) -> None:
        """Take over new settings before the next search; a table of another size is made anew."""
        if settings.hash_mib != self._settings.hash_mib:
            self._table = None
        self._settings = settings

    def clear(self) -> None:
        """Forget tables and histories: a new game begins."""
        self._table = None
        self._generation = 0
        work = self._work[0]
        work["history"] = 0
        work["killers"] = 0

    def begin(self) -> None:
        """Take back an earlier `stop` or `ponderhit`; called before every search by the thread that sends them."""
        self._stopped = False
        self._hit = False
        self._work[0]["stop"] = 0

    def stop(self) -> None:
        """End the running search as soon as possible."""
        self._stopped = True
        self._work[0]["stop"] = 1

    def ponderhit(self) -> None:
        """The expected move was played: from now on the clock counts."""
        with self._lock:
            self._hit = True
            waiting, self._pondering = self._pondering, None
            if waiting is not None:
                waiting.start()
                self._watch(waiting)

    def evaluate(self, position: Position) -> list[tuple[str, int]]:
        """Terms of the evaluation in centipawns for the attackers; the last is `total`."""
        return evaluators.terms(self._settings.evaluator, position)

    def search(self, position: Position, limits: Limits, on_info: Callable[[Info], None]) -> SearchResult:
        """Search until a limit is reached or `stop` is called; the position must not be finished."""
        moves = [m for m in position.legal_moves() if not limits.searchmoves or m in limits.searchmoves]
        if self._settings.algorithm == "random":
            return self._random(position, moves, on_info)
        return _Run(self, position, moves, limits, on_info).result()

    def _random(self, position: Position, moves: list[int], on_info: Callable[[Info], None]) -> SearchResult:
        """A uniformly random move, the same for the same seed and position; further lines are other moves."""
        draw = random.Random(f"{self._settings.seed} {position.key} {position.ply}")
        move = draw.choice(moves)
        others = [other for other in moves if other != move]
        lines = [move, *draw.sample(others, min(self._settings.multipv - 1, len(others)))]
        for line, first in enumerate(lines, start=1):
            on_info(Info(1, 1, line, Score(cp=0), len(moves), 0, 0, 0, (first,), win_draw_loss(0)))
        return SearchResult(move)

    def _prepare(self, position: Position) -> tuple[Any, Any, Any, Any]:
        """Records for one search: state, work, table and parameters. What another game left behind is dropped."""
        settings = self._settings
        known = (position.fits, settings.evaluator)
        if known != self._known:
            if self._known is not None:
                self.clear()
            self._known = known
            self._record = position.new_record()
            self._params = evaluators.parameters(settings.evaluator, position.variant)
        else:
            position.load(self._record)
        if self._table is None:
            buckets = 1 << max(4, (settings.hash_mib * 1024 * 1024 // (_WORD * BUCKET)).bit_length() - 1)
            self._table = new_table(buckets)
        work = self._work[0]
        work["mask"] = len(self._table) // (BUCKET * 2) - 1
        self._generation = (self._generation + 1) & 63
        work["generation"] = self._generation
        work["nodes"] = 0
        work["aborted"] = 0
        work["seldepth"] = 0
        work["root"] = self._record[0]["ply"]
        alphabeta.age_history(work)
        return self._record[0], work, self._table, self._params[0]

    def _watch(self, allowed: Budget) -> None:
        """Let a timer stop the search when its time is up."""
        if allowed.hard is None:
            return
        self._timer = threading.Timer(max(0.0, allowed.hard - allowed.elapsed()) / 1000, self._time_up)
        self._timer.daemon = True
        self._timer.start()

    def _time_up(self) -> None:
        self._work[0]["stop"] = 1

    def _hashfull(self) -> int:
        """Per mille of the table's first entries that this search has written."""
        data = self._table[1:2001:2]
        return int(
            np.count_nonzero((data != 0) & ((data >> np.uint64(44)) == self._generation)) * 1000 // len(data)
        )


def new_table(buckets: int) -> Any:
    """An empty transposition table of `buckets` buckets, as words of 64 bits.

    Its memory comes in small pages as a search touches it. With the huge pages that numpy asks for, the first
    search of a process stood still for a tenth of a second, which a short clock does not have; later ones are
    4 % faster with them.
    """
    size = buckets * BUCKET * _WORD
    if sys.platform != "linux":
        return np.zeros(size // 8, np.uint64)
    block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    # A kernel without huge pages refuses the advice, and needs none.
    with contextlib.suppress(OSError):
        block.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(block, np.uint64)


class _Run:
    """One alpha-beta search from start to answer."""

    def __init__(
        self,
        searcher: Searcher,
        position: Position,
        moves: list[int],
        limits: Limits,
        on_info: Callable[[Info], None],
    ) -> None:
        self.searcher = searcher
        self.limits = limits
        self.on_info = on_info
        self.moves = moves
        self.side = position.side
        self.lines = min(max(1, searcher._settings.multipv), len(moves))
        self.budget = budget(limits, position.side, searcher._settings.move_overhead)
        self.records = searcher._prepare(position)
        self.work = self.records[1]
        self.work["root_count"] = len(moves)
        self.work["root_moves"][: len(moves)] = moves
        self.work["node_limit"] = max(1, min(limits.nodes or _NO_LIMIT, _NO_LIMIT))
        self.pv: tuple[int, ...] = (moves[0],)

    def result(self) -> SearchResult:
        searcher = self.searcher
        with searcher._lock:
            if self.limits.ponder and not searcher._hit:
                searcher._pondering = self.budget
            else:
                self.budget.start()
                searcher._watch(self.budget)
        try:
            self._deepen()
        finally:
            with searcher._lock:
                searcher._pondering = None
                if searcher._timer is not None:
                    searcher._timer.cancel()
                    searcher._timer = None
        return SearchResult(self.pv[0], self.pv[1] if len(self.pv) > 1 else None)

    def _deepen(self) -> None:
        deepest = min(self.limits.depth or MAX_DEPTH, MAX_DEPTH)
        if self.limits.mate is not None:
            deepest = min(deepest, 2 * self.limits.mate)
        for depth in range(1, deepest + 1):
            if not self._iterate(depth) or self._enough(depth):
                return

    def _iterate(self, depth: int) -> bool:
        """One depth, all lines; False if it was cut short."""
        for line in range(self.lines):
            alphabeta.search_root(*self.records, depth, line, -INFINITE, INFINITE)
            best = int(self.work["root_best"])
            if best >= 0:
                length = int(self.work["pv_length"][0])
                found = tuple(int(m) for m in self.work["pv"][0][:length])
                self._bring_forward(best, line)
                if line == 0:
                    self.pv = found
                self._report(depth, line, int(self.work["root_value"]), found)
            elif depth == 1 and line == 0:
                # Stopped before any move had a value: answer with the first, and say nothing it does not know.
                self._report(depth, line, 0, self.pv)
            if self.work["aborted"]:
                return False
        return True

    def _bring_forward(self, best: int, line: int) -> None:
        """Put a line's best move in its place; the rest keeps its order behind."""
        for name in ("root_moves", "root_values"):
            part = self.work[name]
            found = part[best]
            part[line + 1 : best + 1] = part[line:best].copy()
            part[line] = found

    def _enough(self, depth: int) -> bool:
        """Whether another depth would be a waste: out of time, decided, or nothing to choose."""
        if self.searcher._stopped:
            return True
        value = int(self.work["root_value"]) if self.lines == 1 else int(self.work["root_values"][0])
        plies = MATE - abs(value)
        mate = self.limits.mate
        if mate is not None and value > WON and plies <= 2 * mate - 1:
            return True
        if abs(value) > WON and plies <= depth and not self.limits.infinite:
            return True
        with self.searcher._lock:
            thinking = self.searcher._pondering is None
        if thinking and self.budget.timed:
            return len(self.moves) == 1 or self.budget.spent()
        return False

    def _report(self, depth: int, line: int, value: int, pv: tuple[int, ...]) -> None:
        elapsed = self.budget.elapsed()
        nodes = int(self.work["nodes"])
        self.on_info(
            Info(
                depth=depth,
                seldepth=max(depth, int(self.work["seldepth"])),
                multipv=line + 1,
                score=score_of(value),
                nodes=nodes,
                nps=int(nodes * 1000 / max(elapsed, 0.001)),
                hashfull=self.searcher._hashfull(),
                time=int(elapsed),
                pv=pv,
                wdl=win_draw_loss(value),
            )
        )


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
