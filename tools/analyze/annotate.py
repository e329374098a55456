"""The annotated game: a record with scores, words for mistakes and the better lines; and the same taken out again."""

from __future__ import annotations

from dataclasses import replace

from hnefi.engine.moves_text import format_move
from hnefi.engine.records.record import GameRecord, Ply, sorted_squares
from hnefi.protocol.hosts.assessment.remarks import (
    SHOWN,
    SIGN,
    TAGS,
    score_of,
    sentence,
    with_remark,
    with_tags,
    without_remark,
)
from hnefi.protocol.hosts.assessment.values import Line, MoveAssessment, PositionAnalysis
from hnefi.protocol.hosts.assessment.verdicts import better_lines

from .notation import plies_of
from .values import Analysed


def annotated(game: Analysed, engine: str, limits: str, most: int) -> GameRecord:
    """The game with the analysis as comments; a mistake gets at most `most` better lines."""
    record = game.walk.record
    plies = tuple(
        _ply(game, judged, ply, most) for judged, ply in zip(game.judged, record.plies, strict=True)
    )
    tags = with_tags(record.tags, game, engine, limits)
    return replace(record, plies=plies, tags=tuple(tags))


def _ply(game: Analysed, judged: MoveAssessment, ply: Ply, most: int) -> Ply:
    before, after = game.looks[judged.ply - 1], game.looks[judged.ply]
    cp, mate, depth = score_of(judged.side, after)
    comment = ply.comment
    if judged.noted or (after is not None and after.problem):
        comment = with_remark(comment, _sentence(game, judged, before, after))
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


def _sentence(
    game: Analysed, judged: MoveAssessment, before: PositionAnalysis | None, after: PositionAnalysis | None
) -> str:
    """What there is to say about a move."""
    if after is not None and after.problem:
        return f"unknown: {after.problem}"
    better = ""
    if judged.best is not None and before is not None:
        position = game.walk.positions[judged.ply - 1]
        captures = sorted_squares(position.play(judged.best.moves[0]).last_captures)
        better = format_move(judged.best.moves[0], captures)
    return sentence(judged, better, game.sides)


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
    variations = tuple(line for line in ply.variations if line[0].comment != SIGN)
    return replace(
        ply, comment=without_remark(ply.comment), cp=None, mate=None, depth=None, variations=variations
    )
