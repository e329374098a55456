"""One engine's searches: its settings, its state record, and an algorithm with what it keeps.

The kernels run without the interpreter's lock. A `stop` from another thread and a timer both write one word that
every node reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import evaluators
from ..games.base_position import Position
from .control import SearchControl
from .deepening import Algorithm, SearchContext, win_draw_loss
from .types import Info, Limits, Score, SearchResult, Settings

DRAWS = 100
"""Draws of the sliding random player before it takes any legal move."""


class Searcher:
    """An engine's searches.

    Only `begin`, `stop` and `ponderhit` may be called while `search` runs in another thread.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings or Settings()
        self.algorithm = _algorithm(self._settings.algorithm)
        self.record: Any = None
        """The position that is searched, in a one-element array."""
        self.params: Any = None
        """The evaluator's parameters, in a one-element array."""
        self._known: tuple[str, str] | None = None
        """The kind of position and the evaluator that the two are for."""
        self._control = SearchControl(lambda stop: self.algorithm.signal(stop))

    def configure(self, settings: Settings) -> None:
        """Apply settings for the next search; a new algorithm or table size starts empty."""
        old = self._settings
        if (settings.hash_mib, settings.algorithm) != (old.hash_mib, old.algorithm):
            self.algorithm = _algorithm(settings.algorithm)
        # Free the memory of threads that are no longer used.
        del self.algorithm.threads[max(1, settings.threads) :]
        self._settings = settings

    def clear(self) -> None:
        """Clear tables and histories, for a new game."""
        self.algorithm.clear()

    def begin(self) -> None:
        """Reset an earlier `stop` or `ponderhit`; call it before every search, from the thread that sends them."""
        self._control.begin()

    def stop(self) -> None:
        """Stop the running search as soon as possible."""
        self._control.stop()

    def ponderhit(self) -> None:
        """The expected move was played: start the clock."""
        self._control.ponderhit()

    def evaluate(self, position: Position) -> list[tuple[str, int]]:
        """Terms of the evaluation in centipawns for the attackers; the last is `total`."""
        return evaluators.terms(self._settings.evaluator, position)

    def search(self, position: Position, limits: Limits, on_info: Callable[[Info], None]) -> SearchResult:
        """Search until a limit is reached or `stop` is called; the position must not be finished."""
        return self.algorithm.search(self.context(position, limits, on_info))

    def context(self, position: Position, limits: Limits, on_info: Callable[[Info], None]) -> SearchContext:
        """The algorithm's input for one search."""
        moves = [m for m in position.legal_moves() if not limits.searchmoves or m in limits.searchmoves]

        def load(evaluator: str) -> tuple[Any, Any]:
            return self._load(position, evaluator)

        return SearchContext(position, moves, limits, on_info, self._settings, self._control, load)

    def _load(self, position: Position, evaluator: str) -> tuple[Any, Any]:
        """Load the position into the record, replacing records of another game or evaluator."""
        known = (position.fits, evaluators.stamp(evaluator))
        if known != self._known:
            if self._known is not None:
                self.clear()
            self._known = known
            self.record = position.new_record()
            self.params = evaluators.parameters(evaluator, position.variant)
        else:
            position.load(self.record)
        evaluators.attune(self.params, evaluator, position)
        return self.record, self.params


class _Random(Algorithm):
    """A uniformly random move, the same for the same seed and position; further lines are other moves."""

    def search(self, context: SearchContext) -> SearchResult:
        moves = context.moves
        draw = context.stream()
        move = draw.choice(moves)
        others = [other for other in moves if other != move]
        _tell(context, [move, *draw.sample(others, min(context.settings.multipv - 1, len(others)))])
        return SearchResult(move)


class _RandomCoded(Algorithm):
    """The random player of `games/tafl/random_slide.py`. Where it would pass, it draws again; further lines are uniform
    moves."""

    def search(self, context: SearchContext) -> SearchResult:
        from ..games import interface, random_slide  # noqa: F401  binds what other games do

        record = context.position.new_record()
        draw = context.stream()
        move = draw.choice(context.moves)
        for _ in range(DRAWS):
            record[0]["random"] = draw.getrandbits(64) or 1
            drawn = int(interface.random_slide(record[0]))
            if drawn in context.moves:
                move = drawn
                break
        others = [other for other in context.moves if other != move]
        _tell(context, [move, *draw.sample(others, min(context.settings.multipv - 1, len(others)))])
        return SearchResult(move)


def _tell(context: SearchContext, lines: Sequence[int]) -> None:
    """Report one-move lines without values."""
    for line, first in enumerate(lines, start=1):
        context.on_info(
            Info(1, 1, line, Score(cp=0), len(context.moves), 0, 0, 0, (first,), win_draw_loss(0))
        )


def _algorithm(name: str) -> Algorithm:
    """A new algorithm; importing its kernels is deferred until the first call."""
    if name == "random":
        return _Random()
    if name == "random-coded":
        return _RandomCoded()
    if name == "minimax":
        from .minimax_run import Minimax

        return Minimax()
    if name in ("mcts", "puct"):
        from .mcts_run import TreeSearch

        return TreeSearch()
    from .alphabeta_run import AlphaBeta

    return AlphaBeta()
