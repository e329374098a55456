"""Plain minimax in Python around the kernels: deepening, the draw among equal moves, values in centipawns."""

from __future__ import annotations

import numpy as np

from ..score import MATE, MAX_EVAL, NO_LIMIT
from . import minimax
from .deepening import Algorithm, Run, SearchContext
from .types import SearchResult


class Minimax(Algorithm):
    """Keeps nothing between searches except the record of its only thread."""

    def __init__(self) -> None:
        super().__init__()
        self.threads = [minimax.new_thread()]

    def search(self, context: SearchContext) -> SearchResult:
        """Search depth after depth until a limit is reached."""
        return _MinimaxRun(self.threads[0][0], context).result()


class _MinimaxRun(Run):
    """Every move to a fixed depth, equal ones drawn by the seed; without any limit one ply."""

    deepest = minimax.DEEPEST

    def __init__(self, td: np.record, context: SearchContext) -> None:
        super().__init__(context)
        record, params = context.load(self.settings.evaluator)
        self.state, self.td, self.params = record[0], td, params[0]
        if "root_side" in (self.params.dtype.names or ()):
            self.params["root_side"] = self.state["side"] + 1
        self.flat = self.settings.wins == "flat"
        td["nodes"] = 0
        td["killers"] = 0
        td["flat"] = self.flat
        # Elsewhere a finished position may have no king, which evaluators cannot handle.
        td["unseen"] = self.settings.wins == "unseen" and context.position.variant.game == "hex"
        td["full"] = self.lines > 1
        td["root_count"] = len(self.moves)
        td["root_moves"][: len(self.moves)] = self.moves
        td["node_limit"] = max(1, min(self.limits.nodes or NO_LIMIT, NO_LIMIT))
        self.random = context.stream().getrandbits(64) or 1
        self.scale = float(self.params["scale"]) if "scale" in (self.params.dtype.names or ()) else 1.0
        limits = self.limits
        if not (limits.bounded or limits.infinite or limits.ponder):
            self.deepest = 1

    def _nodes(self) -> int:
        return int(self.td["nodes"])

    def _iterate(self, depth: int) -> bool:
        td = self.td
        # The same random stream at every depth, so that the answer depends on the last depth only.
        self.state["random"] = self.random
        drawn = int(minimax.deepen(self.state, td, self.params, depth))
        if td["aborted"] and depth > 1:
            return False
        values = td["root_values"][: len(self.moves)]
        order = [drawn, *(int(i) for i in np.argsort(-values, kind="stable") if i != drawn)]
        for line, i in enumerate(order[: self.lines]):
            # Stopped before this move had a value: report none.
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
        # If all wins are equal, a deeper search finds more of them to draw from.
        return not self.flat and super()._decided(depth)

    def _centipawns(self, value: float, plies: int) -> int:
        if abs(value) <= minimax.MOST:
            return int(max(-MAX_EVAL, min(MAX_EVAL, value * self.scale)))
        distance = plies if self.flat else round(minimax.WIN - abs(value))
        return MATE - distance if value > 0 else distance - MATE
