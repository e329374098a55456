"""Searches in Python around the kernels: the tables between them, alpha-beta with its threads and lines, minimax.

The kernels run without the interpreter's lock. Whatever ends a search, a `stop` from another thread or a timer,
writes one word that every node reads.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import evaluators
from ..games.base_position import Position
from ..score import INFINITE, MATE, MAX_EVAL, NO_LIMIT, WON
from ..squares import CELLS
from . import alphabeta, features, minimax, skill
from .alphabeta import SEARCH
from .control import SearchControl
from .deepening import MAX_DEPTH, Run, SearchContext, new_table, win_draw_loss
from .table import ABDADA_WORDS, BUCKET
from .types import Info, Limits, Score, SearchResult, Settings

if TYPE_CHECKING:
    from .mcts_run import TreeSearch

TREES = ("mcts", "puct")
"""Algorithms that grow a tree instead of deepening."""
ASPIRATION_WINDOW = 24
"""Centipawns on either side of the last depth's value, in which the next one begins."""
ASPIRATION_MIN_DEPTH = 4
"""The first depth that begins so."""
FALLING_EVAL = 30
"""Centipawns that make a position worse than it seemed: worth more time."""
_SELDOM = 64
"""A table of more than so many words for each node searched is thrown away rather than emptied."""
_WORD = 16  # bytes of a table entry


class Searcher:
    """One engine's thinking: tables that live from search to search, and the search itself.

    Only `begin`, `stop` and `ponderhit` may be called while `search` runs in another thread.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings or Settings()
        self._threads = [new_thread()]
        """One record for each thread of a search; the first is that of the thread that answers."""
        self._minimax = minimax.new_thread()
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
        self._control = SearchControl(self._signal)
        self._search_tree: TreeSearch | None = None
        self.configure(self._settings)

    def configure(self, settings: Settings) -> None:
        """Take over new settings before the next search; a table of another size is made anew."""
        old = self._settings
        if (settings.hash_mib, settings.algorithm) != (old.hash_mib, old.algorithm):
            self._table = None
            if self._search_tree is not None:
                self._search_tree.clear()
        if settings.algorithm in TREES and self._search_tree is None:
            from .mcts_run import TreeSearch

            self._search_tree = TreeSearch()
        # Threads that are no longer wanted give their memory back.
        del self._threads[max(1, settings.threads) :]
        if self._search_tree is not None:
            del self._search_tree.threads[max(1, settings.threads) :]
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
        if self._search_tree is not None:
            self._search_tree.clear()
        self._generation = 0
        for record in self._threads:
            td = record[0]
            td["nodes"] = 0
            td["history"] = 0
            td["continuation_history"] = 0
            td["killers"] = 0

    def begin(self) -> None:
        """Take back an earlier `stop` or `ponderhit`; called before every search by the thread that sends them."""
        self._control.begin()

    def stop(self) -> None:
        """End the running search as soon as possible."""
        self._control.stop()

    def ponderhit(self) -> None:
        """The expected move was played: from now on the clock counts."""
        self._control.ponderhit()

    def evaluate(self, position: Position) -> list[tuple[str, int]]:
        """Terms of the evaluation in centipawns for the attackers; the last is `total`."""
        return evaluators.terms(self._settings.evaluator, position)

    def search(self, position: Position, limits: Limits, on_info: Callable[[Info], None]) -> SearchResult:
        """Search until a limit is reached or `stop` is called; the position must not be finished."""
        moves = [m for m in position.legal_moves() if not limits.searchmoves or m in limits.searchmoves]
        if self._settings.algorithm == "random":
            return self._random(position, moves, on_info)
        if self._settings.algorithm in TREES and self._search_tree is not None:
            return self._search_tree.search(self._context(), position, moves, limits, on_info)
        run = _Minimax if self._settings.algorithm == "minimax" else _AlphaBeta
        return run(self, position, moves, limits, on_info).result()

    def _context(self) -> SearchContext:
        return SearchContext(self._settings, self._control, self._load, self._stream)

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
        """What each thread of an alpha-beta search works on: state, td, table and parameters.

        The table is one for all. `without` are bits of features that this search must do without; `evaluator` and
        `parts`, the features, are others than those of the settings.
        """
        state, params = self._load(position, evaluator)
        if self._table is None:
            buckets = 1 << max(
                4, (self._settings.hash_mib * 1024 * 1024 // (_WORD * BUCKET)).bit_length() - 1
            )
            self._table = new_table(buckets * BUCKET * _WORD + ABDADA_WORDS * 8)
        self._generation = (self._generation + 1) & 63
        threads = self._settings.threads
        while len(self._threads) < threads:
            self._threads.append(new_thread())
        records = [(state, self._threads[0][0], self._table, params)]
        # Evaluators leave their terms in their record: each thread has one of its own.
        records += [
            (self._record.copy()[0], record[0], self._table, self._params.copy()[0])
            for record in self._threads[1:threads]
        ]
        wanted = features.read(parts or self._settings.features, position.variant.files)
        self._written += self._last_nodes()
        for _, td, table, _ in records:
            td["mask"] = (len(table) - ABDADA_WORDS) // (BUCKET * 2) - 1
            td["parallel"] = threads > 1
            td["generation"] = self._generation
            td["nodes"] = 0
            td["aborted"] = 0
            td["seldepth"] = 0
            td["illegal_tt_moves"] = 0
            td["features"] = wanted & ~without
            td["no_null"] = 0
            # Some evaluators count what was taken since the root.
            td["eval_cache"] = 0
            td["images"] = 0
            if wanted & features.SYMMETRY:
                td["images"], td["image"], td["back"] = self._images
            td["root"] = state["ply"]
            alphabeta.age_history(td)
        # Whoever stopped the search before it began meant all of its threads.
        for _, td, _, _ in records[1:]:
            td["stop"] = records[0][1]["stop"]
        return records

    def _last_nodes(self) -> int:
        """Nodes of the last search, by all threads."""
        return sum(int(record[0]["nodes"]) for record in self._threads)

    def _signal(self, stop: int) -> None:
        """Write the word that every node reads."""
        for record in self._threads:
            record[0]["stop"] = stop
        self._minimax[0]["stop"] = stop
        if self._search_tree is not None:
            self._search_tree.signal(stop)

    def _hashfull(self) -> int:
        """Per mille of the table's first entries that this search has written."""
        data = self._table[1:2001:2]
        return int(
            np.count_nonzero((data != 0) & ((data >> np.uint64(44)) == self._generation)) * 1000 // len(data)
        )


def new_thread() -> Any:
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


class _SearcherRun(Run):
    """A run on the searcher's own records; the second of those that the kernels take is the thread's data."""

    def __init__(
        self,
        searcher: Searcher,
        position: Position,
        moves: list[int],
        limits: Limits,
        on_info: Callable[[Info], None],
    ) -> None:
        super().__init__(searcher._context(), position, moves, limits, on_info)
        self.searcher = searcher
        self.records = self._prepare(position)
        self.pv = (self.moves[0],)
        self.td = self.records[1]
        self.td["root_count"] = len(moves)
        self.td["root_moves"][: len(moves)] = self.moves
        self.td["node_limit"] = max(1, min(self.limits.nodes or NO_LIMIT, NO_LIMIT))

    def _prepare(self, position: Position) -> tuple[Any, ...]:
        """The records that the kernels take."""
        raise NotImplementedError

    def _nodes(self) -> int:
        return int(self.td["nodes"])


class _AlphaBeta(_SearcherRun):
    """The engine's own search.

    Further threads search the same position on their own and meet in the table alone (ABDADA): what one has found,
    the others need not search, and what one searches the others put off. Only the first
    thread's findings are reported.
    """

    def _prepare(self, position: Position) -> tuple[Any, ...]:
        # That there is no win in so many moves is only known if no move was left out.
        without = features.SELECTIVE if self.limits.mate is not None else 0
        settings = self.settings
        # An analysis wants to know the truth, however weak the engine plays.
        self.weakness = None if self.limits.infinite else skill.weakness(settings.skill)
        weak = self.weakness is not None and position.variant.game == "tafl"
        evaluator = skill.EVALUATOR if weak and settings.evaluator == "default" else ""
        parts = features.MEASURED if weak and settings.features == "default" else ""
        self.threads = self.searcher._prepare(position, without, evaluator, parts)
        self.found: list[_Line] = []
        """What each line was found to be, at this depth or the one before."""
        self.shown = self.lines
        if self.weakness is not None:
            self.lines = min(max(self.lines, self.weakness.lines), len(self.moves))
            nodes = self.weakness.nodes
            self.limits = replace(self.limits, nodes=min(self.limits.nodes or nodes, nodes))
            self.draw = self.context.stream(position)
            # The fewest nodes do not reach all moves: not always the same pieces shall be overlooked.
            self.draw.shuffle(self.moves)
        return self.threads[0]

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
            for number, records in enumerate(self.threads[1:], start=1)
        ]
        limit = self.limits.nodes
        for number, (_, td, _, _) in enumerate(self.threads):
            if limit is not None:
                td["node_limit"] = max(1, (limit + number) // len(self.threads))
            if number:
                td["node_limit"] = self.td["node_limit"] if limit is None else td["node_limit"]
                td["root_count"] = self.td["root_count"]
                td["root_moves"] = self.td["root_moves"]
        for helper in helpers:
            helper.start()
        try:
            super()._deepen()
        finally:
            for _, td, _, _ in self.threads[1:]:
                td["stop"] = 1
            for helper in helpers:
                helper.join()

    def _help(self, records: tuple[Any, ...], shallowest: int) -> None:
        """Search deeper and deeper until stopped, for what it leaves in the table."""
        td = records[1]
        value = 0
        for depth in range(shallowest, MAX_DEPTH + 1):
            td["longest"] = _longest(depth)
            low, high = -INFINITE, INFINITE
            if depth >= ASPIRATION_MIN_DEPTH and abs(value) < WON:
                low, high = value - ASPIRATION_WINDOW, value + ASPIRATION_WINDOW
            while True:
                alphabeta.search_root(*records, depth, 0, low, high)
                if td["aborted"]:
                    return
                best = int(td["root_best"])
                if best < 0:
                    low = -INFINITE
                    continue
                value = int(td["root_value"])
                _bring_forward(td, best, 0)
                if value < high:
                    break
                high = INFINITE

    def _seldepth(self, depth: int) -> int:
        return max(depth, int(self.td["seldepth"]))

    def _hashfull(self) -> int:
        return self.searcher._hashfull()

    def _nodes(self) -> int:
        return sum(int(td["nodes"]) for _, td, _, _ in self.threads)

    def _iterate(self, depth: int) -> bool:
        """One depth, all lines; False if it was cut short."""
        self.td["longest"] = _longest(depth)
        lines: list[_Line] = []
        while len(lines) < self.lines and not self.td["aborted"]:
            found = self._search_line(depth, len(lines))
            if found is None:
                break
            lines.append(found)
        # A later line may turn out to be worth more than was thought when an earlier one was chosen before it.
        best_first = sorted(range(len(lines)), key=lambda i: -lines[i].value)
        self.td["root_moves"][: len(lines)] = self.td["root_moves"][best_first]
        for number, i in enumerate(best_first):
            self._take(depth, number, lines[i])
        if depth == 1 and not lines:
            # Stopped before any move had a value: answer with the first, and say nothing it does not know.
            self._report(depth, 0, 0, self.pv)
        return not self.td["aborted"]

    def _search_line(self, depth: int, line: int) -> _Line | None:
        """The best of the moves that are not in a line before; None if the search was cut short before any was known.

        Its move is brought forward to its place among the root moves.
        """
        low, high, width, guess = -INFINITE, INFINITE, ASPIRATION_WINDOW, 0
        if (
            depth >= ASPIRATION_MIN_DEPTH
            and line < len(self.found)
            and self.td["features"] & features.ASPIRATION
        ):
            guess = self.found[line].value
            if abs(guess) < WON:
                low, high = guess - width, guess + width
        while True:
            alphabeta.search_root(*self.records, depth, line, low, high)
            best = int(self.td["root_best"])
            found = None
            if best >= 0:
                length = int(self.td["pv_length"][0])
                moves = tuple(int(m) for m in self.td["pv"][0][:length])
                value = int(self.td["root_value"])
                found = _Line(value, moves, "" if value < high else "lowerbound", depth)
                _bring_forward(self.td, best, line)
            if self.td["aborted"] or (found is not None and value < high):
                return found
            # Outside of the window: what is known is a bound, and the next window is wider on that side.
            width *= 4
            if found is None:
                self.falling = True
                low = guess - width if width < 20 * ASPIRATION_WINDOW else -INFINITE
            else:
                if line == 0:
                    self._take(depth, 0, found)
                high = guess + width if width < 20 * ASPIRATION_WINDOW else INFINITE

    def _take(self, depth: int, line: int, found: _Line) -> None:
        """Take over what a line was found to be worth, and report it."""
        if line == 0:
            self.changed = depth if found.moves[0] != self.pv[0] else self.changed
            self.falling = found.value < self.value - FALLING_EVAL
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


def _bring_forward(td: Any, best: int, line: int) -> None:
    """Put a line's best move in its place among the root moves; the rest keeps its order behind."""
    for name in ("root_moves", "root_values"):
        part = td[name]
        found = part[best]
        part[line + 1 : best + 1] = part[line:best].copy()
        part[line] = found


class _Minimax(_SearcherRun):
    """Every move to a fixed depth, equal ones drawn by the seed; without any limit one ply."""

    deepest = minimax.DEEPEST

    def _prepare(self, position: Position) -> tuple[Any, ...]:
        state, params = self.context.load(position)
        td = self.searcher._minimax[0]
        td["nodes"] = 0
        td["killers"] = 0
        td["flat"] = self.settings.wins == "flat"
        td["full"] = self.lines > 1
        self.flat = bool(td["flat"])
        self.stream = self.context.stream(position).getrandbits(64) or 1
        self.scale = float(params["scale"]) if "scale" in (params.dtype.names or ()) else 1.0
        limits = self.limits
        if not (limits.bounded or limits.infinite or limits.ponder):
            self.deepest = 1
        return state, td, params

    def _iterate(self, depth: int) -> bool:
        state, td, params = self.records
        # The same draw at every depth: the answer is that of the last depth alone.
        state["random"] = self.stream
        drawn = int(minimax.deepen(state, td, params, depth))
        if td["aborted"] and depth > 1:
            return False
        values = td["root_values"][: len(self.moves)]
        order = [drawn, *(int(i) for i in np.argsort(-values, kind="stable") if i != drawn)]
        for line, i in enumerate(order[: self.lines]):
            # Stopped before this move had a value: say nothing that is not known.
            finished = bool(np.isfinite(values[i]))
            if line and not finished:
                break
            pv: tuple[int, ...] = (self.moves[i],)
            if finished:
                pv += tuple(int(m) for m in td["root_pv"][i][: td["root_length"][i]])
            value = self._centipawns(float(values[i]), len(pv)) if finished else 0
            if line == 0:
                self.pv, self.value = pv, value
            self._report(depth, line, value, pv)
        return not td["aborted"]

    def _decided(self, depth: int) -> bool:
        # Where all wins are equal a deeper look finds more of them, and the draw is among all.
        return not self.flat and super()._decided(depth)

    def _centipawns(self, value: float, plies: int) -> int:
        if abs(value) <= minimax.MOST:
            return int(max(-MAX_EVAL, min(MAX_EVAL, value * self.scale)))
        distance = plies if self.flat else round(minimax.WIN - abs(value))
        return MATE - distance if value > 0 else distance - MATE
