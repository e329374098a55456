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
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import evaluators
from ..position import Position
from . import alphabeta, minimax
from .alphabeta import BUCKET, INFINITE, MATE, SEARCH, WON
from .clock import Budget, budget
from .types import Info, Limits, Score, SearchResult, Settings

if TYPE_CHECKING:
    from .mcts_run import TreeSearch

MAX_DEPTH = 90
TREES = ("mcts", "puct")
"""Algorithms that grow a tree instead of deepening."""
_NO_LIMIT = 1 << 62
_MOST = 9000
"""Centipawns that no report of an undecided position exceeds."""
_WORD = 16  # bytes of a table entry


class Searcher:
    """One engine's thinking: tables that live from search to search, and the search itself.

    Only `begin`, `stop` and `ponderhit` may be called while `search` runs in another thread.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings or Settings()
        self._work = np.zeros(1, SEARCH).view(np.recarray)
        self._minimax = minimax.new_work()
        self._table: Any = None
        self._record: Any = None
        self._params: Any = None
        self._known: tuple[str, str] | None = None
        """What the record and the parameters are for: a kind of position, an evaluator."""
        self._generation = 0
        self._stopped = False
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._pondering: Budget | None = None
        self._hit = False
        self._forest: TreeSearch | None = None
        self.configure(self._settings)

    def configure(self, settings: Settings) -> None:
        """Take over new settings before the next search; a table of another size is made anew."""
        old = self._settings
        if (settings.hash_mib, settings.algorithm) != (old.hash_mib, old.algorithm):
            self._table = None
            if self._forest is not None:
                self._forest.clear()
        if settings.algorithm in TREES and self._forest is None:
            from .mcts_run import TreeSearch

            self._forest = TreeSearch()
        self._settings = settings

    def clear(self) -> None:
        """Forget tables and histories: a new game begins."""
        self._table = None
        if self._forest is not None:
            self._forest.clear()
        self._generation = 0
        work = self._work[0]
        work["history"] = 0
        work["killers"] = 0

    def begin(self) -> None:
        """Take back an earlier `stop` or `ponderhit`; called before every search by the thread that sends them."""
        self._stopped = False
        self._hit = False
        self._signal(0)

    def stop(self) -> None:
        """End the running search as soon as possible."""
        self._stopped = True
        self._signal(1)

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
        if self._settings.algorithm in TREES and self._forest is not None:
            return self._forest.search(self, position, moves, limits, on_info)
        run = _Minimax if self._settings.algorithm == "minimax" else _AlphaBeta
        return run(self, position, moves, limits, on_info).result()

    def _random(self, position: Position, moves: list[int], on_info: Callable[[Info], None]) -> SearchResult:
        """A uniformly random move, the same for the same seed and position; further lines are other moves."""
        draw = self._stream(position)
        move = draw.choice(moves)
        others = [other for other in moves if other != move]
        lines = [move, *draw.sample(others, min(self._settings.multipv - 1, len(others)))]
        for line, first in enumerate(lines, start=1):
            on_info(Info(1, 1, line, Score(cp=0), len(moves), 0, 0, 0, (first,), win_draw_loss(0)))
        return SearchResult(move)

    def _stream(self, position: Position) -> random.Random:
        """Random numbers, the same for the same seed and position."""
        return random.Random(f"{self._settings.seed} {position.key} {position.ply}")

    def _load(self, position: Position) -> tuple[Any, Any]:
        """State and parameters for one search. What another game left behind is dropped."""
        settings = self._settings
        known = (position.fits, evaluators.stamp(settings.evaluator))
        if known != self._known:
            if self._known is not None:
                self.clear()
            self._known = known
            self._record = position.new_record()
            self._params = evaluators.parameters(settings.evaluator, position.variant)
        else:
            position.load(self._record)
        return self._record[0], self._params[0]

    def _prepare(self, position: Position) -> tuple[Any, Any, Any, Any]:
        """What an alpha-beta search works on: state, work, table and parameters."""
        state, params = self._load(position)
        if self._table is None:
            buckets = 1 << max(
                4, (self._settings.hash_mib * 1024 * 1024 // (_WORD * BUCKET)).bit_length() - 1
            )
            self._table = new_table(buckets)
        work = self._work[0]
        work["mask"] = len(self._table) // (BUCKET * 2) - 1
        self._generation = (self._generation + 1) & 63
        work["generation"] = self._generation
        work["nodes"] = 0
        work["aborted"] = 0
        work["seldepth"] = 0
        work["root"] = state["ply"]
        alphabeta.age_history(work)
        return state, work, self._table, params

    def _watch(self, allowed: Budget) -> None:
        """Let a timer stop the search when its time is up."""
        if allowed.hard is None:
            return
        self._timer = threading.Timer(max(0.0, allowed.hard - allowed.elapsed()) / 1000, self._time_up)
        self._timer.daemon = True
        self._timer.start()

    def _time_up(self) -> None:
        self._signal(1)

    def _signal(self, stop: int) -> None:
        """Write the word that every node reads."""
        self._work[0]["stop"] = stop
        self._minimax[0]["stop"] = stop
        if self._forest is not None:
            self._forest.signal(stop)

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
    """One search from start to answer, a depth after the other; how a depth is searched is the business of its kind."""

    deepest = MAX_DEPTH

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
        self.lines = min(max(1, searcher._settings.multipv), len(moves))
        self.budget = budget(limits, position.side, searcher._settings.move_overhead)
        self.records = self._prepare(position)
        self.work = self.records[1]
        self.work["root_count"] = len(moves)
        self.work["root_moves"][: len(moves)] = moves
        self.work["node_limit"] = max(1, min(limits.nodes or _NO_LIMIT, _NO_LIMIT))
        self.pv: tuple[int, ...] = (moves[0],)
        self.value = 0
        """What the best line is worth to the side to move, in centipawns; a win in n plies is MATE - n."""

    def _prepare(self, position: Position) -> tuple[Any, ...]:
        """The records that the kernels take; the second one is the work."""
        raise NotImplementedError

    def _iterate(self, depth: int) -> bool:
        """One depth, all lines; False if it was cut short."""
        raise NotImplementedError

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
        deepest = min(self.limits.depth or self.deepest, self.deepest)
        if self.limits.mate is not None:
            deepest = min(deepest, 2 * self.limits.mate)
        for depth in range(1, deepest + 1):
            if not self._iterate(depth) or self._enough(depth):
                return

    def _enough(self, depth: int) -> bool:
        """Whether another depth would be a waste: out of time, decided, or nothing to choose."""
        if self.searcher._stopped:
            return True
        plies = MATE - abs(self.value)
        mate = self.limits.mate
        if mate is not None and self.value > WON and plies <= 2 * mate - 1:
            return True
        if self._decided(depth) and not self.limits.infinite:
            return True
        with self.searcher._lock:
            thinking = self.searcher._pondering is None
        if thinking and self.budget.timed:
            return len(self.moves) == 1 or self.budget.spent()
        return False

    def _decided(self, depth: int) -> bool:
        """Whether an end is forced that no further depth could change."""
        return MATE - abs(self.value) <= depth

    def _seldepth(self, depth: int) -> int:
        return depth

    def _hashfull(self) -> int:
        return 0

    def _report(self, depth: int, line: int, value: int, pv: tuple[int, ...]) -> None:
        elapsed = self.budget.elapsed()
        nodes = int(self.work["nodes"])
        self.on_info(
            Info(
                depth=depth,
                seldepth=self._seldepth(depth),
                multipv=line + 1,
                score=score_of(value),
                nodes=nodes,
                nps=int(nodes * 1000 / max(elapsed, 0.001)),
                hashfull=self._hashfull(),
                time=int(elapsed),
                pv=pv,
                wdl=win_draw_loss(value),
            )
        )


class _AlphaBeta(_Run):
    """The engine's own search."""

    def _prepare(self, position: Position) -> tuple[Any, ...]:
        return self.searcher._prepare(position)

    def _seldepth(self, depth: int) -> int:
        return max(depth, int(self.work["seldepth"]))

    def _hashfull(self) -> int:
        return self.searcher._hashfull()

    def _iterate(self, depth: int) -> bool:
        """One depth, all lines; False if it was cut short."""
        for line in range(self.lines):
            alphabeta.search_root(*self.records, depth, line, -INFINITE, INFINITE)
            best = int(self.work["root_best"])
            if best >= 0:
                length = int(self.work["pv_length"][0])
                found = tuple(int(m) for m in self.work["pv"][0][:length])
                self._bring_forward(best, line)
                value = int(self.work["root_value"])
                if line == 0:
                    self.pv, self.value = found, value
                self._report(depth, line, value, found)
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


class _Minimax(_Run):
    """Every move to a fixed depth, equal ones drawn by the seed; without any limit one ply."""

    deepest = minimax.DEEPEST

    def _prepare(self, position: Position) -> tuple[Any, ...]:
        searcher = self.searcher
        state, params = searcher._load(position)
        work = searcher._minimax[0]
        work["nodes"] = 0
        work["killers"] = 0
        work["flat"] = searcher._settings.wins == "flat"
        work["full"] = self.lines > 1
        self.flat = bool(work["flat"])
        self.stream = searcher._stream(position).getrandbits(64) or 1
        self.scale = float(params["scale"]) if "scale" in (params.dtype.names or ()) else 1.0
        limits = self.limits
        if not (limits.bounded or limits.infinite or limits.ponder):
            self.deepest = 1
        return state, work, params

    def _iterate(self, depth: int) -> bool:
        state, work, params = self.records
        # The same draw at every depth: the answer is that of the last depth alone.
        state["random"] = self.stream
        drawn = int(minimax.deepen(state, work, params, depth))
        if work["aborted"] and depth > 1:
            return False
        values = work["root_values"][: len(self.moves)]
        order = [drawn, *(int(i) for i in np.argsort(-values, kind="stable") if i != drawn)]
        for line, i in enumerate(order[: self.lines]):
            # Stopped before this move had a value: say nothing that is not known.
            finished = bool(np.isfinite(values[i]))
            if line and not finished:
                break
            pv: tuple[int, ...] = (self.moves[i],)
            if finished:
                pv += tuple(int(m) for m in work["root_pv"][i][: work["root_length"][i]])
            value = self._centipawns(float(values[i]), len(pv)) if finished else 0
            if line == 0:
                self.pv, self.value = pv, value
            self._report(depth, line, value, pv)
        return not work["aborted"]

    def _decided(self, depth: int) -> bool:
        # Where all wins are equal a deeper look finds more of them, and the draw is among all.
        return not self.flat and super()._decided(depth)

    def _centipawns(self, value: float, plies: int) -> int:
        if abs(value) <= minimax.MOST:
            return int(max(-_MOST, min(_MOST, value * self.scale)))
        distance = plies if self.flat else round(minimax.WIN - abs(value))
        return MATE - distance if value > 0 else distance - MATE


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
