"""How good the moves of a game were: by what each lost of its side's chances, and by what it did to proven wins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .values import (
    MISTAKES,
    Assessed,
    Line,
    MoveAssessment,
    PositionAnalysis,
    TurningPoint,
    Verdict,
)

HEIGHT: Final = 103.1668
STEEPNESS: Final = 0.04354
DEPTH: Final = 3.1669
"""The accuracy of a move that lost L points is HEIGHT * exp(-STEEPNESS * L) - DEPTH percent: lichess.org's curve."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From how many lost points of probability (0 to 100) on a move is an inaccuracy, a mistake, a blunder."""

    inaccuracy: float = 5.0
    mistake: float = 10.0
    blunder: float = 20.0

    def __post_init__(self) -> None:
        if not 0.0 < self.inaccuracy < self.mistake < self.blunder <= 100.0:
            raise ValueError("expected three rising numbers above 0, at most 100, such as 5,10,20")

    def verdict(self, loss: float) -> Verdict:
        """The verdict on a loss of probability, from 0 to 1."""
        points = 100.0 * loss + 1e-9
        if points >= self.blunder:
            return Verdict.BLUNDER
        if points >= self.mistake:
            return Verdict.MISTAKE
        if points >= self.inaccuracy:
            return Verdict.INACCURACY
        return Verdict.GOOD if points > 1e-6 else Verdict.BEST


@dataclass(frozen=True, slots=True)
class Played:
    """A move that was played: by whom, and out of how many."""

    side: int
    move: int
    choices: int


def read_thresholds(text: str) -> Thresholds:
    """The thresholds that `5,10,20` means; ValueError otherwise."""
    words = text.split(",")
    try:
        numbers = [float(word) for word in words if len(word) <= 10]
        if len(numbers) != 3 or len(words) != 3 or not all(map(math.isfinite, numbers)):
            raise ValueError
    except ValueError:
        raise ValueError("expected three rising numbers above 0, at most 100, such as 5,10,20") from None
    return Thresholds(*numbers)


def judge(
    ply: int,
    played: Played,
    before: PositionAnalysis | None,
    after: PositionAnalysis | None,
    thresholds: Thresholds,
) -> MoveAssessment:
    """The judgement of one move between two looks, either of which may be missing."""
    side, move = played.side, played.move
    if before is None or not before.lines:
        return MoveAssessment(ply, side, move, Verdict.UNKNOWN)
    had = before.chance(side)
    has = None if after is None else after.chance(side)
    first = before.lines[0]
    own = bool(first.moves) and first.moves[0] == move
    best = None if own or not first.moves else first
    if had is None or has is None or after is None:
        return MoveAssessment(ply, side, move, Verdict.UNKNOWN, None, had, has, None, best)
    if played.choices == 1 or own:
        verdict = Verdict.FORCED if played.choices == 1 else Verdict.BEST
        found = verdict is Verdict.BEST and _only_good(before, thresholds)
        return MoveAssessment(ply, side, move, verdict, None, had, has, 0.0, found=found)
    loss = max(0.0, had - has)
    verdict = thresholds.verdict(loss)
    turn = _turn(before.proven(side), after.proven(side), has, verdict)
    return MoveAssessment(ply, side, move, verdict, turn, had, has, loss, best)


def _only_good(before: PositionAnalysis, thresholds: Thresholds) -> bool:
    """Whether the second of the best lines is a mistake already."""
    chances = [line.probability for line in before.lines[:2]]
    if len(chances) < 2 or chances[0] is None or chances[1] is None:
        return False
    return 100.0 * (chances[0] - chances[1]) >= thresholds.mistake


def _turn(before: int, after: int, chance: float, verdict: Verdict) -> TurningPoint | None:
    """What became of proven wins, in the mover's view. A side that was as good as lost before cannot allow anything."""
    if before > 0 and after <= 0:
        return TurningPoint.MISSED if chance > 0.5 else TurningPoint.THROWN
    return TurningPoint.ALLOWED if before == 0 and after < 0 and verdict in MISTAKES else None


def accuracy(loss: float) -> float:
    """The accuracy in percent of a move that lost so much probability, from 0 to 1."""
    return max(0.0, min(100.0, HEIGHT * math.exp(-STEEPNESS * 100.0 * loss) - DEPTH))


def assessed(
    played: Sequence[Played],
    looks: Sequence[PositionAnalysis | None],
    thresholds: Thresholds,
    sides: tuple[str, str],
) -> Assessed:
    """Everything about a game that follows from the looks at its positions, one more than moves were played."""
    judged = tuple(
        judge(ply, one, looks[ply - 1], looks[ply], thresholds) for ply, one in enumerate(played, start=1)
    )
    mean = [_mean([accuracy(loss) for loss in _losses(judged, side)]) for side in (0, 1)]
    lost = [_mean(_losses(judged, side)) for side in (0, 1)]
    return Assessed(tuple(looks), judged, (mean[0], mean[1]), (lost[0], lost[1]), sides)


def _losses(judged: Sequence[MoveAssessment], side: int) -> list[float]:
    """What a side lost by each move that was a choice and of which something is known."""
    return [
        one.loss
        for one in judged
        if one.side == side and one.loss is not None and one.verdict is not Verdict.FORCED
    ]


def _mean(numbers: Sequence[float]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None


def better_lines(judged: MoveAssessment, before: PositionAnalysis, most: int) -> list[Line]:
    """The lines that were better than the noted move, the best first, at most `most`; empty if the move needs none."""
    if not judged.noted or judged.best is None:
        return []
    found: list[Line] = []
    for line in before.lines[:most]:
        if not line.moves or line.moves[0] == judged.move:
            break
        if found and (line.probability is None or line.probability <= (judged.after or 0.0)):
            break
        found.append(line)
    return found
