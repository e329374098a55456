"""What an analysis writes into a game: comments, scores and tags; and how they are told from what was there.

A remark stands at the end of a comment, behind `SIGN` where something stood before, and a variation that an analysis
adds begins with a comment `SIGN`. So a game that is analysed again does not collect them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .values import Assessed, MoveAssessment, PositionAnalysis, percent, score_text

SIGN: Final = "»"
TAGS: Final = ("Analysis", "AttackersAccuracy", "DefendersAccuracy")
SHOWN: Final = 8
"""Plies of a better line that are written."""


def sentence(judged: MoveAssessment, better: str, sides: Sequence[str]) -> str:
    """`mistake: 62 % -> 45 %; better d3a3xa2 (attackers +0.35)`, in the mover's view; `better` is the first move of the
    best line, empty where there is none."""
    said = f"{judged.word}: {percent(judged.before)} -> {percent(judged.after)}"
    if judged.best is not None and better:
        said += f"; better {better} ({score_text(judged.best, judged.side, sides)})"
    return said


def with_remark(comment: str, said: str) -> str:
    """A comment with a remark behind it."""
    return f"{comment} {SIGN} {said}" if comment else f"{SIGN} {said}"


def without_remark(comment: str) -> str:
    """A comment without what `with_remark` has added."""
    return "" if comment.startswith(f"{SIGN} ") or comment == SIGN else comment.partition(f" {SIGN} ")[0]


def score_of(side: int, after: PositionAnalysis | None) -> tuple[int | None, int | None, int | None]:
    """The mover's score of a ply from the look behind it: centipawns, or moves to a forced end; and the depth.

    A record counts the winner's own moves from the ply on, this one included.
    """
    if after is None:
        return None, None, None
    found = after.mate()
    depth = after.lines[0].depth if after.lines else None
    if found is not None:
        winner, moves = found
        return None, (moves + 1 if winner == side else -moves), depth
    if after.outcome is not None:
        return 0, None, None
    cp = after.lines[0].cp if after.lines else None
    if cp is None:
        return None, None, depth
    return (cp if after.side == side else -cp), None, depth


def with_tags(
    tags: Sequence[tuple[str, str]], game: Assessed, engine: str, limits: str
) -> list[tuple[str, str]]:
    """Tags that name the analyst and give both sides' accuracy; they replace those of an earlier analysis."""
    made = [pair for pair in tags if pair[0] not in TAGS]
    looked = sum(look is not None for look in game.looks)
    part = "" if game.complete else f", {looked} of {len(game.looks)} positions"
    made.append((TAGS[0], f"{engine}, {limits}{part}"))
    made += [
        (name, f"{accuracy:.1f}")
        for name, accuracy in zip(TAGS[1:], game.accuracy, strict=True)
        if accuracy is not None
    ]
    return made
