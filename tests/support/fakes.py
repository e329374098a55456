"""A game without rules and a searcher without thoughts, to test what stands above them."""

from __future__ import annotations

import threading
from collections.abc import Callable

from hnefi.engine import moves_text
from hnefi.engine import squares as board
from hnefi.engine.games.base_position import IllegalMove, PositionError
from hnefi.engine.games.tafl.fen import Setup, parse_fen
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.search.types import Info, Limits, Score, SearchResult, Settings
from hnefi.engine.sides import Outcome, Reason, Side

LAST_PLY = 6


def move(text: str) -> int:
    origin, target, _ = moves_text.parse_move(text, board.MAX_SIZE)
    return board.move(origin, target)


LEGAL = tuple(move(text) for text in ("a4a2", "d3a3", "d2d3"))


class FakePosition:
    """Three moves are always legal, and after six plies the attackers have won."""

    plays = 0

    def __init__(self, variant: Variant, start: Setup, moves: tuple[int, ...] = ()) -> None:
        self.variant = variant
        self.start = start
        self.moves = moves

    @property
    def side(self) -> Side:
        return Side((len(self.moves) + (self.start.side or 0)) % 2)

    @property
    def outcome(self) -> Outcome | None:
        return Outcome(Side.ATTACKERS, Reason.KING_CAPTURED) if len(self.moves) >= LAST_PLY else None

    last_captures = ()

    def legal_moves(self) -> tuple[int, ...]:
        return LEGAL if self.outcome is None else ()

    def parse_move(self, text: str) -> int:
        if self.outcome is not None:
            raise IllegalMove(f"the game is over: {self.outcome.text}")
        found = move(text)
        if found not in LEGAL:
            raise IllegalMove("blocked at d2")
        return found

    def play(self, chosen: int) -> FakePosition:
        FakePosition.plays += 1
        return FakePosition(self.variant, self.start, (*self.moves, chosen))

    def undo(self) -> FakePosition:
        if not self.moves:
            raise PositionError("no move has been played")
        return FakePosition(self.variant, self.start, self.moves[:-1])


class FakeGame:
    """The door to the fake positions."""

    def initial(self, variant: Variant) -> FakePosition:
        return FakePosition(variant, variant.start)

    def from_fen(self, variant: Variant, text: str) -> FakePosition:
        return FakePosition(variant, parse_fen(text, variant.size))


class FakeSearcher:
    """Reports what it is told to and answers with the first move: when stopped, or after `depth` reports."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self.hit = threading.Event()
        self.gate = threading.Event()
        self.gate.set()
        self.cleared = 0
        self.settings: Settings | None = None
        self.limits: list[Limits] = []
        self.failure: Exception | None = None
        self.info_lines: list[Info] = []

    def configure(self, settings: Settings) -> None:
        self.settings = settings

    def clear(self) -> None:
        self.cleared += 1

    def begin(self) -> None:
        self.stopped.clear()
        self.hit.clear()

    def search(self, position: FakePosition, limits: Limits, on_info: Callable[[Info], None]) -> SearchResult:
        self.gate.wait()
        self.limits.append(limits)
        if self.failure is not None:
            raise self.failure
        for info in self.info_lines:
            on_info(info)
        if not limits.bounded:
            self.stopped.wait()
        chosen = limits.searchmoves or position.legal_moves()
        return SearchResult(chosen[0], chosen[-1])

    def stop(self) -> None:
        self.stopped.set()

    def ponderhit(self) -> None:
        self.hit.set()

    def evaluate(self, position: FakePosition) -> list[tuple[str, int]]:
        return [("material", 40), ("total", 40)] if position else []


def info(depth: int, multipv: int = 1) -> Info:
    """A report that is told from others by its depth."""
    return Info(depth, depth, multipv, Score(cp=depth), depth * 100, 1000, 0, depth, LEGAL[:1])
