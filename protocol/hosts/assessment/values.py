"""What is known about a game as values: lines, looks at positions, judged moves; how a score becomes a probability.

A probability is the score that a side may expect, from 0 to 1: wins, and half of the draws.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from hnefi.engine.moves_text import parse_move_word
from hnefi.engine.sides import Outcome
from hnefi.engine.squares import MAX_SIZE

if TYPE_CHECKING:
    from hnefi.protocol.answers import InfoLine

CP_OF_TEN: Final = 400
"""Centipawns at which the better side may expect ten times as much as the other: 100 are 64 %."""
MOST: Final = 0.999
"""What a side may expect at most while nothing is proven."""
_CP_LIMIT: Final = 20_000


@dataclass(frozen=True, slots=True)
class Line:
    """One line of play: its moves, and its value for the side to move as `cp` or `mate` and as a probability.

    `mate` counts the winner's own moves and is negative where the side to move loses; what the engine did not say is
    None.
    """

    moves: tuple[int, ...] = ()
    probability: float | None = None
    cp: int | None = None
    mate: int | None = None
    depth: int | None = None

    @property
    def proven(self) -> int:
        """1 where the side to move wins by force, -1 where it loses, 0 where nothing is proven."""
        return 0 if self.mate is None else 1 if self.mate > 0 else -1


@dataclass(frozen=True, slots=True)
class PositionAnalysis:
    """What is known about one position: the side to move (0 or 1) and the best lines, the best first.

    `outcome` is how the game is over here; `problem` is why nothing is known; `time` is in milliseconds.
    """

    side: int
    lines: tuple[Line, ...] = ()
    nodes: int | None = None
    time: int | None = None
    outcome: Outcome | None = None
    problem: str = ""

    def chance(self, side: int) -> float | None:
        """What `side` may expect here; None if nothing is known."""
        if self.outcome is not None:
            return 0.5 if self.outcome.winner is None else float(self.outcome.winner == side)
        if not self.lines or self.lines[0].probability is None:
            return None
        mine = self.lines[0].probability
        return mine if side == self.side else 1.0 - mine

    def proven(self, side: int) -> int:
        """1 where `side` has won or wins by force, -1 where the other does, else 0."""
        if self.outcome is not None:
            return 0 if self.outcome.winner is None else 1 if self.outcome.winner == side else -1
        found = self.lines[0].proven if self.lines else 0
        return found if side == self.side else -found

    def mate(self) -> tuple[int, int] | None:
        """The side that wins by force, and in how many of its moves (0: it has won); None where nothing is proven."""
        if self.outcome is not None:
            return None if self.outcome.winner is None else (self.outcome.winner, 0)
        found = self.lines[0].mate if self.lines else None
        if found is None:
            return None
        return (self.side if found > 0 else 1 - self.side), abs(found)


class Verdict(StrEnum):
    """How good a move was, by what it lost."""

    BEST = "best"
    GOOD = "good"
    INACCURACY = "inaccuracy"
    MISTAKE = "mistake"
    BLUNDER = "blunder"
    FORCED = "only move"
    UNKNOWN = "unknown"


class TurningPoint(StrEnum):
    """What a move did to a proven win."""

    MISSED = "missed win"
    """The mover had a proven win and has none any more, but still the better chances."""
    THROWN = "thrown win"
    """The mover had a proven win, and the other side now has the better chances."""
    ALLOWED = "allowed win"
    """Neither side had a proven win, the opponent has one now, and the move lost enough to be a mistake."""


SIGNS: Final = {Verdict.INACCURACY: "?!", Verdict.MISTAKE: "?", Verdict.BLUNDER: "??"}
MISTAKES: Final = (Verdict.INACCURACY, Verdict.MISTAKE, Verdict.BLUNDER)


@dataclass(frozen=True, slots=True)
class MoveAssessment:
    """One move of a game: `before` and `after` are what the mover could expect, `loss` the difference, never negative.

    `ply` counts from 1, `side` is the mover; `best` is the engine's first line where another move was played.
    """

    ply: int
    side: int
    move: int
    verdict: Verdict
    turn: TurningPoint | None = None
    before: float | None = None
    after: float | None = None
    loss: float | None = None
    best: Line | None = None
    found: bool = False
    """Whether any other move would have been a mistake, as far as a second line says so."""

    @property
    def sign(self) -> str:
        """The verdict as annotators write it: `?!`, `?`, `??`, `!`; empty where there is nothing to remark."""
        if self.verdict in SIGNS:
            return SIGNS[self.verdict]
        return "?" if self.turn is not None else "!" if self.found else ""

    @property
    def noted(self) -> bool:
        """Whether there is something to say about it."""
        return self.verdict in MISTAKES or self.turn is not None

    @property
    def word(self) -> str:
        """Verdict and turn as people read them: `blunder, thrown win`."""
        if self.turn is None:
            return self.verdict.value
        return f"{self.verdict}, {self.turn}" if self.verdict in MISTAKES else self.turn.value


@dataclass(frozen=True, slots=True)
class Assessed:
    """What is known about a game: one look for each position (None: not looked at), one judgement for each ply.

    `accuracy` is in percent by side, None for a side without a choice; `losses` the mean loss by side, `sides` what
    the sides are called.
    """

    looks: tuple[PositionAnalysis | None, ...]
    judged: tuple[MoveAssessment, ...]
    accuracy: tuple[float | None, float | None]
    losses: tuple[float | None, float | None]
    sides: tuple[str, str]

    @property
    def complete(self) -> bool:
        """Whether every position was looked at."""
        return None not in self.looks

    @property
    def unknown(self) -> list[tuple[int, PositionAnalysis]]:
        """The positions that no engine could say anything about, by the ply before them."""
        return [(ply, look) for ply, look in enumerate(self.looks) if look is not None and look.problem]

    def counts(self, side: int) -> dict[str, int]:
        """How many moves of a side got each verdict and turn, as words."""
        mine = [judged for judged in self.judged if judged.side == side]
        found = {verdict.value: sum(judged.verdict is verdict for judged in mine) for verdict in Verdict}
        return found | {turn.value: sum(judged.turn is turn for judged in mine) for turn in TurningPoint}

    @property
    def turning_points(self) -> tuple[MoveAssessment, ...]:
        """Mistakes and blunders after which the other side had the better chances, and what became of proven wins."""
        return tuple(judged for judged in self.judged if _turns(judged))


def _turns(judged: MoveAssessment) -> bool:
    if judged.turn is not None:
        return True
    if judged.before is None or judged.after is None or judged.verdict not in MISTAKES[1:]:
        return False
    return judged.before >= 0.5 > judged.after


def expected(info: InfoLine) -> float | None:
    """The probability that a report means for the side to move; None if it has no score.

    What the engine itself says about wins and draws comes first.
    """
    if info.score is None:
        return None
    if info.score.mate is not None:
        return float(info.score.mate > 0)
    if info.wdl is not None and sum(info.wdl) > 0:
        wins, draws, losses = (max(0, share) for share in info.wdl)
        return min(MOST, max(1.0 - MOST, (wins + draws / 2) / (wins + draws + losses)))
    assert info.score.cp is not None
    cp = max(-_CP_LIMIT, min(_CP_LIMIT, info.score.cp))
    return min(MOST, max(1.0 - MOST, 1 / (1 + 10 ** (-cp / CP_OF_TEN))))


def look_of(infos: Iterable[InfoLine], side: int, legal: Container[str], plies: int) -> PositionAnalysis:
    """A search's last reports as a look, best first, each line cut to a number of plies.

    A line whose first move is not legal counts for its score alone. MoveTextError where a move is none.
    """
    lines: list[Line] = []
    for info in infos:
        words = info.pv[:plies] if info.pv and info.pv[0] in legal else ()
        cp, mate = (None, None) if info.score is None else (info.score.cp, info.score.mate)
        if words or not lines:
            moves = tuple(parse_move_word(word, MAX_SIZE)[0] for word in words)
            lines.append(Line(moves, expected(info), cp, mate, info.depth))
    if not lines or lines[0].probability is None:
        return PositionAnalysis(side, problem="answered without a score")
    return PositionAnalysis(side, tuple(lines))


def called(side: str) -> str:
    """A side inside a sentence: `the attackers`, `black`."""
    return f"the {side}" if side.endswith("s") else side


def score_text(line: Line, side: int, sides: Sequence[str]) -> str:
    """A line's score with the side that it favours: `attackers +0.35`, `defenders win in 3`, `even`."""
    if line.mate is not None:
        winner = side if line.mate > 0 else 1 - side
        return f"{sides[winner]} win in {abs(line.mate)}" if line.mate else f"{sides[winner]} have won"
    if line.cp is None:
        return "unknown"
    if line.cp == 0:
        return "even"
    return f"{sides[side if line.cp > 0 else 1 - side]} +{abs(line.cp) / 100:.2f}"


def percent(probability: float | None) -> str:
    """`62 %`, `?` where nothing is known; only what is certain is 0 or 100."""
    if probability is None:
        return "?"
    shown = round(100 * probability)
    if 0.0 < probability < 1.0:
        shown = min(99, max(1, shown))
    return f"{shown} %"
