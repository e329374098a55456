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
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import evaluators
from ..games.base_position import Position
from ..squares import CELLS
from . import alphabeta, features, minimax, skill
from .alphabeta import INFINITE, SEARCH
from .clock import Budget, budget
from .table import BUCKET, BUSY, MATE, WON
from .types import Info, Limits, Score, SearchResult, Settings

if TYPE_CHECKING:
    from .mcts_run import TreeSearch

MAX_DEPTH = 90
TREES = ("mcts", "puct")
"""Algorithms that grow a tree instead of deepening."""
WINDOW = 24
"""Centipawns on either side of the last depth's value, in which the next one begins."""
NARROW = 4
"""The first depth that begins so."""
FALL = 30
"""Centipawns that make a position worse than it seemed: worth more time."""
_NO_LIMIT = 1 << 62
_MOST = 9000
"""Centipawns that no report of an undecided position exceeds."""
_SELDOM = 64
"""A table of more than so many words for each node searched is thrown away rather than emptied."""
_WORD = 16  # bytes of a table entry


class Searcher:
    """One engine's thinking: tables that live from search to search, and the search itself.

    Only `begin`, `stop` and `ponderhit` may be called while `search` runs in another thread.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings or Settings()
        self._works = [new_work()]
        """One record for each thread of a search; the first is that of the thread that answers."""
        self._minimax = minimax.new_work()
        self._table: Any = None
        self._written = 0
        """Nodes of all searches since the table was empty, but for the last one."""
        self._record: Any = None
        self._params: Any = None
        self._images: Any = None
        """The symmetries of the game, as `images` has them."""
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
        # Threads that are no longer wanted give their memory back.
        del self._works[max(1, settings.threads) :]
        if self._forest is not None:
            del self._forest.works[max(1, settings.threads) :]
        self._settings = settings

    def clear(self) -> None:
        """Forget tables and histories: a new game begins."""
        used = self._written + self._last_nodes()
        if self._table is not None and used * _SELDOM < len(self._table):
            # Its pages were hardly touched: emptying it would make them all real.
            self._table = None
        elif self._table is not None:
            # In place: the next game's first searches need not wait for its pages to be touched anew.
            self._table.fill(0)
        self._written = 0
        if self._forest is not None:
            self._forest.clear()
        self._generation = 0
        for works in self._works:
            work = works[0]
            work["nodes"] = 0
            work["history"] = 0
            work["answers"] = 0
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

    def _load(self, position: Position, evaluator: str = "") -> tuple[Any, Any]:
        """State and parameters for one search, by another evaluator than that of the settings if one is named. What
        another game left behind is dropped."""
        evaluator = evaluator or self._settings.evaluator
        known = (position.fits, evaluators.stamp(evaluator))
        if known != self._known:
            if self._known is not None:
                self.clear()
            self._known = known
            self._record = position.new_record()
            self._params = evaluators.parameters(evaluator, position.variant)
            self._images = images(position)
        else:
            position.load(self._record)
        return self._record[0], self._params[0]

    def _prepare(
        self, position: Position, without: int = 0, evaluator: str = "", parts: str = ""
    ) -> list[tuple[Any, Any, Any, Any]]:
        """What each thread of an alpha-beta search works on: state, work, table and parameters.

        The table is one for all. `without` are bits of features that this search must do without; `evaluator` and
        `parts`, the features, are others than those of the settings.
        """
        state, params = self._load(position, evaluator)
        if self._table is None:
            buckets = 1 << max(
                4, (self._settings.hash_mib * 1024 * 1024 // (_WORD * BUCKET)).bit_length() - 1
            )
            self._table = new_table(buckets * BUCKET * _WORD + BUSY * 8)
        self._generation = (self._generation + 1) & 63
        threads = self._settings.threads
        while len(self._works) < threads:
            self._works.append(new_work())
        records = [(state, self._works[0][0], self._table, params)]
        # Evaluators leave their terms in their record: each thread has one of its own.
        records += [
            (self._record.copy()[0], works[0], self._table, self._params.copy()[0])
            for works in self._works[1:threads]
        ]
        wanted = features.read(parts or self._settings.features, position.variant.files)
        self._written += self._last_nodes()
        for _, work, table, _ in records:
            work["mask"] = (len(table) - BUSY) // (BUCKET * 2) - 1
            work["team"] = threads > 1
            work["generation"] = self._generation
            work["nodes"] = 0
            work["aborted"] = 0
            work["seldepth"] = 0
            work["strays"] = 0
            work["features"] = wanted & ~without
            work["no_null"] = 0
            # Some evaluators count what was taken since the root.
            work["values"] = 0
            work["images"] = 0
            if wanted & features.SYMMETRY:
                work["images"], work["image"], work["back"] = self._images
            work["root"] = state["ply"]
            alphabeta.age_history(work)
        # Whoever stopped the search before it began meant all of its threads.
        for _, work, _, _ in records[1:]:
            work["stop"] = records[0][1]["stop"]
        return records

    def _last_nodes(self) -> int:
        """Nodes of the last search, by all threads."""
        return sum(int(works[0]["nodes"]) for works in self._works)

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
        for works in self._works:
            works[0]["stop"] = stop
        self._minimax[0]["stop"] = stop
        if self._forest is not None:
            self._forest.signal(stop)

    def _hashfull(self) -> int:
        """Per mille of the table's first entries that this search has written."""
        data = self._table[1:2001:2]
        return int(
            np.count_nonzero((data != 0) & ((data >> np.uint64(44)) == self._generation)) * 1000 // len(data)
        )


def new_table(size: int) -> Any:
    """A table of `size` bytes, all zero, as words of 64 bits.

    Its memory comes in small pages as a search touches it. With the huge pages that numpy asks for, the first
    search of a process stood still for a tenth of a second, which a short clock does not have; later ones are
    4 % faster with them.
    """
    if sys.platform != "linux":
        return np.zeros(size // 8, np.uint64)
    block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    # A kernel without huge pages refuses the advice, and needs none.
    with contextlib.suppress(OSError):
        block.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(block, np.uint64)


def new_work() -> Any:
    """A record that one thread searches with, in a one-element recarray."""
    record = np.zeros(1, SEARCH).view(np.recarray)
    record[0]["reduction"] = reductions()
    return record


def images(position: Position) -> tuple[int, Any, Any]:
    """How many symmetries keep the game, where squares go under each, and where they come from: uint16[8, CELLS].

    The first of the eight leaves everything where it is; so do all for cells outside the board, which stand for
    moves like the swap of hex.
    """
    found = position.symmetries()
    there = np.tile(np.arange(CELLS, dtype=np.uint16), (8, 1))
    back = there.copy()
    for i, squares in enumerate(found, start=1):
        there[i, list(squares)] = list(squares.values())
        back[i, list(squares.values())] = list(squares)
    return len(found), there, back


def reductions() -> Any:
    """How many plies less a late move is searched, by depth and number of the move: uint8[64, 64]."""
    depth, number = np.log(np.maximum(np.mgrid[0:64, 0:64], 1))
    return (0.6 + depth * number / 2.2).astype(np.uint8)


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
        self.work["root_moves"][: len(moves)] = self.moves
        self.work["node_limit"] = max(1, min(self.limits.nodes or _NO_LIMIT, _NO_LIMIT))
        self.changed = 0
        """The depth at which the best move last became another."""
        self.falling = False
        """Whether the best line is worth clearly less than it was."""
        self.pv: tuple[int, ...] = (self.moves[0],)
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
            return len(self.moves) == 1 or self.budget.spent(self._unrest(depth))
        return False

    def _decided(self, depth: int) -> bool:
        """Whether an end is forced that no further depth could change."""
        return MATE - abs(self.value) <= depth

    def _unrest(self, depth: int) -> float:
        """How much of its usual share of time a move deserves: more while the answer still changes."""
        settled = max(0, depth - self.changed)
        return max(0.5, 1.5 - 0.15 * settled) * (1.4 if self.falling else 1.0)

    def _seldepth(self, depth: int) -> int:
        return depth

    def _nodes(self) -> int:
        return int(self.work["nodes"])

    def _hashfull(self) -> int:
        return 0

    def _report(self, depth: int, line: int, value: int, pv: tuple[int, ...], bound: str = "") -> None:
        elapsed = self.budget.elapsed()
        nodes = self._nodes()
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
                bound=bound,
            )
        )


class _AlphaBeta(_Run):
    """The engine's own search.

    Further threads search the same position on their own and meet in the table alone (lazy SMP): what one has found,
    the others need not search. Odd ones begin a depth deeper. Only the first thread's findings are reported.
    """

    def _prepare(self, position: Position) -> tuple[Any, ...]:
        # That there is no win in so many moves is only known if no move was left out.
        without = features.SELECTIVE if self.limits.mate is not None else 0
        settings = self.searcher._settings
        # An analysis wants to know the truth, however weak the engine plays.
        self.weakness = None if self.limits.infinite else skill.weakness(settings.skill)
        weak = self.weakness is not None and position.variant.game == "tafl"
        evaluator = skill.EVALUATOR if weak and settings.evaluator == "default" else ""
        parts = features.MEASURED if weak and settings.features == "default" else ""
        self.team = self.searcher._prepare(position, without, evaluator, parts)
        self.found: list[_Line] = []
        """What each line was found to be, at this depth or the one before."""
        self.shown = self.lines
        if self.weakness is not None:
            self.lines = min(max(self.lines, self.weakness.lines), len(self.moves))
            nodes = self.weakness.nodes
            self.limits = replace(self.limits, nodes=min(self.limits.nodes or nodes, nodes))
            self.draw = self.searcher._stream(position)
            # The fewest nodes do not reach all moves: not always the same pieces shall be overlooked.
            self.draw.shuffle(self.moves)
        return self.team[0]

    def result(self) -> SearchResult:
        best = super().result()
        if self.weakness is None or len(self.found) < 2:
            return best
        values = [line.value for line in self.found]
        chosen = self.found[skill.choose(values, self.weakness.temperature, self.draw)]
        if chosen.moves[0] == best.move:
            return best
        # The last report says what is played, and what it is worth.
        self._report(chosen.depth, 0, chosen.value, chosen.moves, chosen.bound)
        return SearchResult(chosen.moves[0], chosen.moves[1] if len(chosen.moves) > 1 else None, self.pv)

    def _report(self, depth: int, line: int, value: int, pv: tuple[int, ...], bound: str = "") -> None:
        if line < self.shown:
            super()._report(depth, line, value, pv, bound)

    def _deepen(self) -> None:
        helpers = [
            threading.Thread(target=self._help, args=(records, 1), daemon=True)
            for number, records in enumerate(self.team[1:], start=1)
        ]
        limit = self.limits.nodes
        for number, (_, work, _, _) in enumerate(self.team):
            if limit is not None:
                work["node_limit"] = max(1, (limit + number) // len(self.team))
            if number:
                work["node_limit"] = self.work["node_limit"] if limit is None else work["node_limit"]
                work["root_count"] = self.work["root_count"]
                work["root_moves"] = self.work["root_moves"]
        for helper in helpers:
            helper.start()
        try:
            super()._deepen()
        finally:
            for _, work, _, _ in self.team[1:]:
                work["stop"] = 1
            for helper in helpers:
                helper.join()

    def _help(self, records: tuple[Any, ...], shallowest: int) -> None:
        """Search deeper and deeper until stopped, for what it leaves in the table."""
        work = records[1]
        value = 0
        for depth in range(shallowest, MAX_DEPTH + 1):
            work["longest"] = _longest(depth)
            low, high = -INFINITE, INFINITE
            if depth >= NARROW and abs(value) < WON:
                low, high = value - WINDOW, value + WINDOW
            while True:
                alphabeta.search_root(*records, depth, 0, low, high)
                if work["aborted"]:
                    return
                best = int(work["root_best"])
                if best < 0:
                    low = -INFINITE
                    continue
                value = int(work["root_value"])
                _bring_forward(work, best, 0)
                if value < high:
                    break
                high = INFINITE

    def _seldepth(self, depth: int) -> int:
        return max(depth, int(self.work["seldepth"]))

    def _hashfull(self) -> int:
        return self.searcher._hashfull()

    def _nodes(self) -> int:
        return sum(int(work["nodes"]) for _, work, _, _ in self.team)

    def _iterate(self, depth: int) -> bool:
        """One depth, all lines; False if it was cut short."""
        self.work["longest"] = _longest(depth)
        lines: list[_Line] = []
        while len(lines) < self.lines and not self.work["aborted"]:
            found = self._search_line(depth, len(lines))
            if found is None:
                break
            lines.append(found)
        # A later line may turn out to be worth more than was thought when an earlier one was chosen before it.
        best_first = sorted(range(len(lines)), key=lambda i: -lines[i].value)
        self.work["root_moves"][: len(lines)] = self.work["root_moves"][best_first]
        for number, i in enumerate(best_first):
            self._take(depth, number, lines[i])
        if depth == 1 and not lines:
            # Stopped before any move had a value: answer with the first, and say nothing it does not know.
            self._report(depth, 0, 0, self.pv)
        return not self.work["aborted"]

    def _search_line(self, depth: int, line: int) -> _Line | None:
        """The best of the moves that are not in a line before; None if the search was cut short before any was known.

        Its move is brought forward to its place among the root moves.
        """
        low, high, width, guess = -INFINITE, INFINITE, WINDOW, 0
        if depth >= NARROW and line < len(self.found) and self.work["features"] & features.ASPIRATION:
            guess = self.found[line].value
            if abs(guess) < WON:
                low, high = guess - width, guess + width
        while True:
            alphabeta.search_root(*self.records, depth, line, low, high)
            best = int(self.work["root_best"])
            found = None
            if best >= 0:
                length = int(self.work["pv_length"][0])
                moves = tuple(int(m) for m in self.work["pv"][0][:length])
                value = int(self.work["root_value"])
                found = _Line(value, moves, "" if value < high else "lowerbound", depth)
                _bring_forward(self.work, best, line)
            if self.work["aborted"] or (found is not None and value < high):
                return found
            # Outside of the window: what is known is a bound, and the next window is wider on that side.
            width *= 4
            if found is None:
                self.falling = True
                low = guess - width if width < 20 * WINDOW else -INFINITE
            else:
                if line == 0:
                    self._take(depth, 0, found)
                high = guess + width if width < 20 * WINDOW else INFINITE

    def _take(self, depth: int, line: int, found: _Line) -> None:
        """Take over what a line was found to be worth, and report it."""
        if line == 0:
            self.changed = depth if found.moves[0] != self.pv[0] else self.changed
            self.falling = found.value < self.value - FALL
            self.pv, self.value = found.moves, found.value
        self.found[line : line + 1] = [found]
        self._report(depth, line, found.value, found.moves, found.bound)


@dataclass(frozen=True, slots=True)
class _Line:
    """What the moves of a line are worth to the side to move, and at which depth; `bound` as in `Info`."""

    value: int
    moves: tuple[int, ...]
    bound: str
    depth: int


def _longest(depth: int) -> int:
    """The ply beyond which an iteration extends no line."""
    return min(2 * depth, alphabeta.MAX_PLY - alphabeta.QUIET_PLIES - 2)


def _bring_forward(work: Any, best: int, line: int) -> None:
    """Put a line's best move in its place among the root moves; the rest keeps its order behind."""
    for name in ("root_moves", "root_values"):
        part = work[name]
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
