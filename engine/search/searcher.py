"""One engine's searches: settings, the record that is searched, and an algorithm with what it remembers.

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
"""How often the coded random player draws before it takes any move."""


class Searcher:
    """One engine's thinking.

    Only `begin`, `stop` and `ponderhit` may be called while `search` runs in another thread.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings or Settings()
        self.algorithm = _algorithm(self._settings.algorithm)
        self.record: Any = None
        """The position that is searched, in a one-element recarray."""
        self.params: Any = None
        """The evaluator's parameters, likewise."""
        self._known: tuple[str, str] | None = None
        """What the record and the parameters are for: a kind of position, an evaluator."""
        self._control = SearchControl(lambda stop: self.algorithm.signal(stop))

    def configure(self, settings: Settings) -> None:
        """Take over new settings before the next search; another algorithm or size of table begins with nothing."""
        old = self._settings
        if (settings.hash_mib, settings.algorithm) != (old.hash_mib, old.algorithm):
            self.algorithm = _algorithm(settings.algorithm)
        # Threads that are no longer wanted give their memory back.
        del self.algorithm.threads[max(1, settings.threads) :]
        self._settings = settings

    def clear(self) -> None:
        """Forget tables and histories: a new game begins."""
        self.algorithm.clear()

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
        return self.algorithm.search(self.context(position, limits, on_info))

    def context(self, position: Position, limits: Limits, on_info: Callable[[Info], None]) -> SearchContext:
        """What the algorithm is given for one search."""
        moves = [m for m in position.legal_moves() if not limits.searchmoves or m in limits.searchmoves]

        def load(evaluator: str) -> tuple[Any, Any]:
            return self._load(position, evaluator)

        return SearchContext(position, moves, limits, on_info, self._settings, self._control, load)

    def _load(self, position: Position, evaluator: str) -> tuple[Any, Any]:
        """Put the position into the record; what another game or evaluator left behind is dropped."""
        known = (position.fits, evaluators.stamp(evaluator))
        if known != self._known:
            if self._known is not None:
                self.clear()
            self._known = known
            self.record = position.new_record()
            self.params = evaluators.parameters(evaluator, position.variant)
        else:
            position.load(self.record)
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
    """Say lines of one move that nobody has valued."""
    for line, first in enumerate(lines, start=1):
        context.on_info(
            Info(1, 1, line, Score(cp=0), len(context.moves), 0, 0, 0, (first,), win_draw_loss(0))
        )


def _algorithm(name: str) -> Algorithm:
    """An algorithm that remembers nothing yet; its kernels are imported when it is first wanted."""
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
