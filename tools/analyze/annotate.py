"""The annotated game: a record with scores, words for mistakes and the better lines; and the same taken out again.

What an annotation adds can be told from what was there: its comments stand at the end, behind `SIGN` where something
stood before, and its variations begin with a comment `SIGN`. So a game that is analysed again does not collect them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hnefi.engine.moves_text import format_move
from hnefi.engine.records.record import GameRecord, Ply, sorted_squares

from .notation import plies_of
from .values import Analysed, Line, MoveAssessment, PositionAnalysis, percent, score_text
from .verdicts import better_lines

SIGN: Final = "»"
TAGS: Final = ("Analysis", "AttackersAccuracy", "DefendersAccuracy")
SHOWN: Final = 8
"""Plies of a better line that are written."""


def annotated(game: Analysed, engine: str, limits: str, most: int) -> GameRecord:
    """The game with all that was found out; `most` better lines stand beside a mistake."""
    record = game.walk.record
    plies = tuple(
        _ply(game, judged, ply, most) for judged, ply in zip(game.judged, record.plies, strict=True)
    )
    tags = [pair for pair in record.tags if pair[0] not in TAGS]
    looked = sum(look is not None for look in game.looks)
    part = "" if game.complete else f", {looked} of {len(game.looks)} positions"
    tags.append((TAGS[0], f"{engine}, {limits}{part}"))
    tags += [
        (name, f"{accuracy:.1f}")
        for name, accuracy in zip(TAGS[1:], game.accuracy, strict=True)
        if accuracy is not None
    ]
    return replace(record, plies=plies, tags=tuple(tags))


def _ply(game: Analysed, judged: MoveAssessment, ply: Ply, most: int) -> Ply:
    before, after = game.looks[judged.ply - 1], game.looks[judged.ply]
    cp, mate, depth = _score(judged.side, after)
    comment = ply.comment
    if judged.noted or (after is not None and after.problem):
        said = _sentence(game, judged, before, after)
        comment = f"{comment} {SIGN} {said}" if comment else f"{SIGN} {said}"
    variations = ply.variations
    if before is not None:
        position = game.walk.positions[judged.ply - 1]
        for line in better_lines(judged, before, most):
            variations += (_variation(plies_of(position, line.moves[:SHOWN]), line),)
    captures = ply.captures
    if captures is None:
        captures = sorted_squares(game.walk.positions[judged.ply].last_captures)
    return replace(
        ply, captures=captures, cp=cp, mate=mate, depth=depth, comment=comment, variations=variations
    )


def _variation(plies: list[Ply], line: Line) -> tuple[Ply, ...]:
    first = replace(plies[0], cp=line.cp, mate=line.mate, depth=line.depth, comment=SIGN)
    return (first, *plies[1:])


def _score(side: int, after: PositionAnalysis | None) -> tuple[int | None, int | None, int | None]:
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


def _sentence(
    game: Analysed, judged: MoveAssessment, before: PositionAnalysis | None, after: PositionAnalysis | None
) -> str:
    """`mistake: 62 % -> 45 %; better d3a3xa2 (attackers +0.35)`, in the mover's view."""
    if after is not None and after.problem:
        return f"unknown: {after.problem}"
    said = f"{judged.word}: {percent(judged.before)} -> {percent(judged.after)}"
    if judged.best is not None and before is not None:
        position = game.walk.positions[judged.ply - 1]
        captures = sorted_squares(position.play(judged.best.moves[0]).last_captures)
        score = score_text(judged.best, judged.side, game.walk.sides)
        said += f"; better {format_move(judged.best.moves[0], captures)} ({score})"
    return said


def stripped(record: GameRecord) -> GameRecord:
    """The record without what an earlier analysis has added; any other record as it is."""
    if record.tag(TAGS[0]) is None:
        return record
    return replace(
        record,
        plies=tuple(map(_plain, record.plies)),
        tags=tuple(pair for pair in record.tags if pair[0] not in TAGS),
    )


def _plain(ply: Ply) -> Ply:
    comment = ply.comment
    if comment.startswith(f"{SIGN} "):
        comment = ""
    else:
        comment = comment.partition(f" {SIGN} ")[0]
    variations = tuple(line for line in ply.variations if line[0].comment != SIGN)
    return replace(ply, comment=comment, cp=None, mate=None, depth=None, variations=variations)
