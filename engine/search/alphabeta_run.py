"""Alpha-beta in Python around the kernels: the table between searches, lines, aspiration windows and threads."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import evaluators
from ..compile import structs
from ..games.base_position import Position
from ..score import INFINITE, NO_LIMIT, WON
from ..sides import Side
from ..squares import CELLS
from . import alphabeta, features, move_order, skill
from .alphabeta import SEARCH
from .deepening import MAX_DEPTH, Algorithm, Run, SearchContext, new_table
from .quiescence import QUIET_PLIES
from .table import ABDADA_WORDS, BUCKET
from .types import SearchResult

ASPIRATION_WINDOW = 24
"""Half the width, in centipawns, of the aspiration window around the last depth's value."""
ASPIRATION_MIN_DEPTH = 4
"""The first depth with an aspiration window."""
FALLING_EVAL = 30
"""A drop of the value by this many centipawns is worth more time."""
_SELDOM = 64
"""A table with more than this many words per node searched is reallocated rather than cleared."""
_WORD = 16  # bytes of a table entry
_SIEGE_SALT = 0x5BD1E995A3C59AC3
"""Keeps what searches of sieges store apart from what other searches of a game do, as they evaluate by hand. Any
number but 0 would do."""


class AlphaBeta(Algorithm):
    """What is kept between searches: the transposition table, and each thread's histories and killers."""

    def __init__(self) -> None:
        super().__init__()
        self.threads = [new_thread()]
        self.table: Any = None
        self._written = 0
        """Nodes of all searches since the table was cleared, except the last one."""
        self._generation = 0
        self._draw = (0, 0)
        """The value of a draw in the last search: values in the table depend on it."""
        self._images: Any = None
        """The symmetries of the game, as returned by `images`."""

    def search(self, context: SearchContext) -> SearchResult:
        """Deepen until a limit is reached."""
        return _AlphaBetaRun(self, context).result()

    def clear(self) -> None:
        """Clear the table and the histories."""
        used = self._written + self._last_nodes()
        if self.table is not None and used * _SELDOM < len(self.table):
            # Most of its pages were never touched: clearing it would allocate them all.
            self.table = None
        elif self.table is not None:
            # In place, so that the next game's first searches need not wait for new pages of memory.
            self.table.fill(0)
        self._written = 0
        self._generation = 0
        self._images = None
        for record in self.threads:
            td = record[0]
            td["nodes"] = 0
            td["history"] = 0
            td["continuation_history"] = 0
            td["killers"] = 0

    def prepare(
        self, context: SearchContext, without: int = 0, evaluator: str = "", parts: str = ""
    ) -> list[tuple[Any, Any, Any, Any]]:
        """The records that each thread of a search works on: state, td, table and parameters.

        All threads share the table. `without` are bits of features to switch off in this search; `evaluator` and
        `parts`, the features, override those of the settings.
        """
        settings, position = context.settings, context.position
        record, params = context.load(evaluator or settings.evaluator)
        if self.table is None:
            buckets = 1 << max(4, (settings.hash_mib * 1024 * 1024 // (_WORD * BUCKET)).bit_length() - 1)
            self.table = new_table(buckets * BUCKET * _WORD + ABDADA_WORDS * 8)
        contempt = settings.contempt
        draw = (-contempt, contempt) if position.side is Side.ATTACKERS else (contempt, -contempt)
        if draw != self._draw:
            self._draw = draw
            self.table.fill(0)
        self._generation = (self._generation + 1) & 63
        while len(self.threads) < settings.threads:
            self.threads.append(new_thread())
        state = record[0]
        records = [(state, self.threads[0][0], self.table, params[0])]
        # Evaluators write to their record, so each thread has its own.
        records += [
            (record.copy()[0], td[0], self.table, params.copy()[0])
            for td in self.threads[1 : settings.threads]
        ]
        wanted = features.read(parts or settings.features, position.variant.files)
        self._written += self._last_nodes()
        for _, td, table, _ in records:
            td["mask"] = (len(table) - ABDADA_WORDS) // (BUCKET * 2) - 1
            td["parallel"] = settings.threads > 1
            td["generation"] = self._generation
            td["salt"] = _SIEGE_SALT if evaluators.in_siege(params[0]) else 0
            td["nodes"] = 0
            td["aborted"] = 0
            td["seldepth"] = 0
            td["illegal_tt_moves"] = 0
            td["features"] = wanted & ~without
            td["no_null"] = 0
            td["draw"] = draw
            # Some evaluators count what was taken since the root.
            td["eval_cache"] = 0
            td["images"] = 0
            if wanted & features.SYMMETRY:
                self._images = self._images or images(position)
                td["images"], td["image"], td["back"] = self._images
            td["root"] = state["ply"]
            move_order.age_history(td)
        tables = None if settings.tables is None else settings.tables.record(position)
        for _, td, _, _ in records:
            if tables is None:
                td["tables"]["most"] = 0
            else:
                td["tables"] = tables
        # A stop that came before the search began applies to all of its threads.
        for _, td, _, _ in records[1:]:
            td["stop"] = records[0][1]["stop"]
        return records

    def hashfull(self) -> int:
        """Per mille of the table's first entries that this search has written."""
        data = self.table[1:2001:2]
        return int(
            np.count_nonzero((data != 0) & ((data >> np.uint64(44)) == self._generation)) * 1000 // len(data)
        )

    def _last_nodes(self) -> int:
        """Nodes of the last search, by all threads."""
        return sum(int(record[0]["nodes"]) for record in self.threads)


def new_thread() -> Any:
    """A thread's record, in a one-element array."""
    record = structs.zeros(SEARCH)
    record[0]["reduction"] = reductions()
    return record


def images(position: Position) -> tuple[int, Any, Any]:
    """The number of symmetries of the game, the image of each square under each, and the inverse: uint16[8, CELLS].

    The first of the eight is the identity. All of them fix cells off the board, which occur in moves such as the swap
    of hex.
    """
    found = position.symmetries()
    there = np.tile(np.arange(CELLS, dtype=np.uint16), (8, 1))
    back = there.copy()
    for i, squares in enumerate(found, start=1):
        there[i, list(squares)] = list(squares.values())
        back[i, list(squares.values())] = list(squares)
    return len(found), there, back


def reductions() -> Any:
    """Reductions of late moves in plies, by depth and move number: uint8[64, 64]."""
    depth, number = np.log(np.maximum(np.mgrid[0:64, 0:64], 1))
    return (0.6 + depth * number / 2.2).astype(np.uint8)


class _AlphaBetaRun(Run):
    """The engine's own search.

    Further threads search the same position independently and share only the table (ABDADA): they use each other's
    results, and defer moves that another one is searching. Only the first thread's results are reported.
    """

    def __init__(self, memory: AlphaBeta, context: SearchContext) -> None:
        super().__init__(context)
        self.memory = memory
        # Without pruning: otherwise "no mate in n" would not be certain.
        without = features.SELECTIVE if self.limits.mate is not None else 0
        settings = self.settings
        # An analysis searches at full strength, however weak the engine plays.
        self.weakness = None if self.limits.infinite else skill.weakened(settings)
        weak = (
            settings.skill < skill.FULL and self.weakness is not None and self.position.variant.game == "tafl"
        )
        evaluator = skill.evaluator(settings, self.position.variant) if weak else ""
        parts = features.MEASURED if weak and settings.features == "default" else ""
        self.threads = memory.prepare(context, without, evaluator, parts)
        self.found: list[_Line] = []
        """The result of each line, at this depth or the previous one."""
        self.shown = self.lines
        if self.weakness is not None:
            for _, td, _, _ in self.threads:
                # The rating of a level was measured without it.
                td["tables"]["most"] = 0
            self.lines = min(max(self.lines, self.weakness.lines), len(self.moves))
            if (nodes := self.weakness.nodes) is not None:
                self.limits = replace(self.limits, nodes=min(self.limits.nodes or nodes, nodes))
            self.draw = context.stream()
            # So few nodes may not reach all moves: shuffle, so that different pieces are overlooked.
            self.draw.shuffle(self.moves)
            self.pv = (self.moves[0],)
        self.records = self.threads[0]
        self.td = self.records[1]
        count, limit = len(self.threads), self.limits.nodes
        for number, (_, td, _, _) in enumerate(self.threads):
            td["root_count"] = len(self.moves)
            td["root_moves"][: len(self.moves)] = self.moves
            td["node_limit"] = NO_LIMIT if limit is None else max(1, min((limit + number) // count, NO_LIMIT))

    def result(self) -> SearchResult:
        best = super().result()
        if self.weakness is None:
            return best
        if self.weakness.at_random and self.draw.random() < self.weakness.at_random:
            return SearchResult(self.draw.choice(self.moves))
        if len(self.found) < 2:
            return best
        values = [line.value for line in self.found]
        chosen = self.found[skill.choose(values, self.weakness.temperature, self.draw)]
        if chosen.moves[0] == best.move:
            return best
        # The last report must have the move that is played, and its value.
        self._report(chosen.depth, 0, chosen.value, chosen.moves, chosen.bound)
        return SearchResult(chosen.moves[0], chosen.moves[1] if len(chosen.moves) > 1 else None, self.pv)

    def _report(self, depth: int, line: int, value: int, pv: tuple[int, ...], bound: str = "") -> None:
        if line < self.shown:
            super()._report(depth, line, value, pv, bound)

    def _deepen(self) -> None:
        helpers = [
            threading.Thread(target=self._help, args=records, daemon=True) for records in self.threads[1:]
        ]
        for helper in helpers:
            helper.start()
        try:
            super()._deepen()
        finally:
            for _, td, _, _ in self.threads[1:]:
                td["stop"] = 1
            for helper in helpers:
                helper.join()

    def _help(self, state: Any, td: Any, table: Any, params: Any) -> None:
        """Deepen until stopped, to fill the shared table."""
        value = 0
        for depth in range(1, MAX_DEPTH + 1):
            td["longest"] = _longest(depth)
            low, high = -INFINITE, INFINITE
            if depth >= ASPIRATION_MIN_DEPTH and abs(value) < WON:
                low, high = value - ASPIRATION_WINDOW, value + ASPIRATION_WINDOW
            while True:
                alphabeta.search_root(state, td, table, params, depth, 0, low, high)
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

    def _decided(self, depth: int) -> bool:
        # If tables have the value of every move, the first depth is conclusive.
        return super()._decided(depth) or bool(self.td["tables"]["most"] and self.td["tables"]["settled"])

    def _hashfull(self) -> int:
        return self.memory.hashfull()

    def _tbhits(self) -> int | None:
        if self.settings.tables is None:
            return None
        return sum(int(td["tables"]["hits"]) for _, td, _, _ in self.threads)

    def _nodes(self) -> int:
        return sum(int(td["nodes"]) for _, td, _, _ in self.threads)

    def _iterate(self, depth: int) -> bool:
        """Search one depth, all lines; False if it was interrupted."""
        self.td["longest"] = _longest(depth)
        lines: list[_Line] = []
        while len(lines) < self.lines and not self.td["aborted"]:
            found = self._search_line(depth, len(lines))
            if found is None:
                break
            lines.append(found)
        # A later line may turn out to be better than an earlier one.
        best_first = sorted(range(len(lines)), key=lambda i: -lines[i].value)
        self.td["root_moves"][: len(lines)] = self.td["root_moves"][best_first]
        for number, i in enumerate(best_first):
            self._take(depth, number, lines[i])
        if depth == 1 and not lines:
            # Stopped before any move had a value: answer with the first one, and report no value.
            self._report(depth, 0, 0, self.pv)
        return not self.td["aborted"]

    def _search_line(self, depth: int, line: int) -> _Line | None:
        """The best of the moves that are in no earlier line; None if interrupted before any had a value.

        Moves it to its place among the root moves.
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
            # Outside the window: the value is a bound; widen the window on that side.
            width *= 4
            if found is None:
                self.falling = True
                low = guess - width if width < 20 * ASPIRATION_WINDOW else -INFINITE
            else:
                if line == 0:
                    self._take(depth, 0, found)
                high = guess + width if width < 20 * ASPIRATION_WINDOW else INFINITE

    def _take(self, depth: int, line: int, found: _Line) -> None:
        """Record a line's result, and report it."""
        if line == 0:
            self.changed = depth if found.moves[0] != self.pv[0] else self.changed
            self.falling = found.value < self.value - FALLING_EVAL
            self.pv, self.value = found.moves, found.value
        self.found[line : line + 1] = [found]
        self._report(depth, line, found.value, found.moves, found.bound)


@dataclass(frozen=True, slots=True)
class _Line:
    """The moves of a line, their value for the side to move, and the depth; `bound` as in `Info`."""

    value: int
    moves: tuple[int, ...]
    bound: str
    depth: int


def _longest(depth: int) -> int:
    """The ply beyond which an iteration does not extend lines."""
    return min(2 * depth, move_order.MAX_PLY - QUIET_PLIES - 2)


def _bring_forward(td: Any, best: int, line: int) -> None:
    """Move a line's best move to its place among the root moves, keeping the others in order."""
    for name in ("root_moves", "root_values"):
        part = td[name]
        found = part[best]
        part[line + 1 : best + 1] = part[line:best].copy()
        part[line] = found
