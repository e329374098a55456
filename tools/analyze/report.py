"""An analysis in words and tables, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from hnefi.engine.moves_text import format_move
from hnefi.engine.records.record import sorted_squares
from hnefi.protocol.hosts.assessment.text_chart import LEGEND, rates, sides_table, sketch
from hnefi.protocol.hosts.assessment.values import (
    Line,
    MoveAssessment,
    PositionAnalysis,
    Verdict,
    called,
    percent,
    score_text,
)
from hnefi.protocol.hosts.text_table import flow, safe, table

from .notation import numbered, place
from .values import Analysed, end_text, line_to_json

LINE_SHOWN: Final = 4
"""Plies of the better line in a table."""
TURNING: Final = 8


def heading(game: Analysed) -> list[str]:
    """Players, variant and result."""
    walk = game.walk
    record = walk.record
    names = [
        f"{side}: {name}" if name else side for side, name in zip(walk.sides, record.players, strict=True)
    ]
    lines = flow(
        [
            f"game {walk.number}",
            walk.variant.name,
            *names,
            f"{len(record.plies)} plies",
            end_text(record, walk.sides),
        ]
    )
    return [*lines, *([f"note: {walk.note}"] if walk.note else [])]


def game_lines(game: Analysed, *, full: bool = False, plain: bool = False) -> Iterator[str]:
    """The whole report of a game; `full` lists every move, not only the noted ones."""
    yield from heading(game)
    yield ""
    shown = [judged for judged in game.judged if full or judged.noted]
    if shown:
        yield from moves_table(game, shown)
    else:
        yield "no inaccuracies, mistakes or blunders"
    yield ""
    yield f"what {called(game.walk.sides[0])} may expect, ply by ply:"
    yield from sketch(game, plain=plain)
    if any(judged.noted for judged in game.judged):
        yield LEGEND
    yield ""
    yield from sides_table(game)
    yield from turning_lines(game)
    for ply, look in game.unknown:
        yield f"unknown after ply {ply}: {safe(look.problem)}"
    left = sum(look is None for look in game.looks)
    if left:
        yield f"not analysed: {left} of {len(game.looks)} positions"


def moves_table(game: Analysed, shown: Sequence[MoveAssessment]) -> list[str]:
    """Moves with what they lost, in the mover's view, and what was better."""
    rows = []
    for judged in shown:
        position = game.walk.positions[judged.ply - 1]
        lost = "" if not judged.loss else f"{100 * judged.loss:.0f}"
        best = judged.best
        line = numbered(position, best.moves[:LINE_SHOWN]) if best is not None and judged.loss else ""
        rows.append(
            (
                f"{place(position)} {_move(game, judged)}",
                percent(judged.before),
                percent(judged.after),
                lost,
                judged.word,
                line,
            )
        )
    head = ("move", "before", "after", "lost", "verdict", "the engine's line")
    return table(head, rows, left=(0, 4, 5), free=5)


def turning_lines(game: Analysed) -> list[str]:
    """The turning points, the `TURNING` that cost most, in the order of the game."""
    found = game.turning_points
    largest = sorted(found, key=lambda judged: judged.loss or 0.0, reverse=True)[:TURNING]
    said = [_short(game, judged) for judged in sorted(largest, key=lambda judged: judged.ply)]
    if len(found) > TURNING:
        said.append(f"and {len(found) - TURNING} that cost less")
    return flow([f"turning points: {said[0]}", *said[1:]]) if said else ["turning points: none"]


def _short(game: Analysed, judged: MoveAssessment) -> str:
    position = game.walk.positions[judged.ply - 1]
    return f"{place(position)} {_move(game, judged)} ({game.walk.sides[judged.side]}, {judged.word})"


def _move(game: Analysed, judged: MoveAssessment) -> str:
    return format_move(judged.move, sorted_squares(game.walk.positions[judged.ply].last_captures))


def games_table(found: Sequence[Analysed]) -> list[str]:
    """One line a game, and the means over all of them."""
    head = ("game", "plies", "result", "accuracy a", "accuracy d", "blunders a", "blunders d", "turns")
    rows = []
    for game in found:
        counts = [game.counts(side)[Verdict.BLUNDER] for side in (0, 1)]
        rows.append(
            (
                str(game.walk.number),
                str(len(game.judged)),
                game.walk.record.result or "*",
                rates(game, 0)[0],
                rates(game, 1)[0],
                *map(str, counts),
                str(len(game.turning_points)),
            )
        )
    means = [_mean([game.accuracy[side] for game in found]) for side in (0, 1)]
    total = [sum(game.counts(side)[Verdict.BLUNDER] for game in found) for side in (0, 1)]
    turns = sum(len(game.turning_points) for game in found)
    rows.append(
        ("all", str(sum(len(game.judged) for game in found)), "", *means, *map(str, total), str(turns))
    )
    return table(head, rows, left=(0, 2), free=2)


def _mean(numbers: Sequence[float | None]) -> str:
    known = [number for number in numbers if number is not None]
    return f"{sum(known) / len(known):.1f} %" if known else "-"


# As JSON


def game_json(game: Analysed, engine: str, limits: str) -> dict[str, Any]:
    """Everything about a game as one JSON object; probabilities are from 0 to 1, in the mover's view."""
    walk = game.walk
    return {
        "file": walk.name,
        "game": walk.number,
        "variant": walk.variant.name,
        "players": list(walk.record.players),
        "result": walk.record.result,
        "engine": engine,
        "limits": limits,
        "complete": game.complete,
        "sides": [
            {
                "side": "ad"[side],
                "accuracy": game.accuracy[side],
                "mean_loss": game.losses[side],
                "verdicts": game.counts(side),
            }
            for side in (0, 1)
        ],
        "turning_points": [judged.ply for judged in game.turning_points],
        "start": None if game.looks[0] is None else look_json(game.looks[0]),
        "moves": [_judged_json(game, judged) for judged in game.judged],
    }


def _judged_json(game: Analysed, judged: MoveAssessment) -> dict[str, Any]:
    after = game.looks[judged.ply]
    return {
        "ply": judged.ply,
        "side": "ad"[judged.side],
        "move": _move(game, judged),
        "verdict": judged.verdict.value,
        "turn": None if judged.turn is None else judged.turn.value,
        "before": judged.before,
        "after": judged.after,
        "loss": judged.loss,
        "position": None if after is None else look_json(after),
    }


def look_json(look: PositionAnalysis) -> dict[str, Any]:
    """What is known about a position."""
    return {
        "side": "ad"[look.side],
        "outcome": None if look.outcome is None else look.outcome.text,
        "attackers": look.chance(0),
        "nodes": look.nodes,
        "time": look.time,
        "problem": look.problem or None,
        "lines": [line_to_json(line) for line in look.lines],
    }


def line_text(line: Line, side: int, sides: Sequence[str]) -> str:
    """`attackers +0.35, 55 % for the attackers, depth 7`."""
    chance = line.probability
    first = None if chance is None else chance if side == 0 else 1.0 - chance
    parts = [score_text(line, side, sides), f"{percent(first)} for {called(sides[0])}"]
    if line.depth is not None:
        parts.append(f"depth {line.depth}")
    return ", ".join(parts)
