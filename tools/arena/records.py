"""Exports of a run's games: records (`*.tafl`), one JSON object a game, positions for training.

    maker = Maker("cup", specs)
    stream.write(maker.tafl(result))

All of them are functions of a result and of what the run knows about its engines, so they can be written again
from a run's log at any time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hnefi.engine.games.base_position import IllegalMove, Position
from hnefi.engine.moves_text import parse_move_word
from hnefi.engine.records import tafl_text
from hnefi.engine.records.record import NUMBER_LIMIT, PLY_LIMIT, GameRecord, Ply, sorted_squares
from hnefi.engine.records.rule_sets import carried
from hnefi.engine.sides import Outcome, Reason, Side
from hnefi.engine.squares import MAX_SIZE, parse

from .options import Config
from .store import Export
from .summary import side_limits_text
from .values import EngineSpec, GameResult, Opening, PlyLog, find_variant, to_json

LINES = 500_000
"""Characters of engines' lines that one record keeps; what comes later is left out."""
TEXT = 20_000
"""Characters of a tag that holds what an engine said or was told."""

POSITIONS = "positions.jsonl"


class Maker:
    """Makes records of the games of a run called `event`; `specs` are its engines, as the games' tasks number them."""

    def __init__(self, event: str, specs: Sequence[EngineSpec]) -> None:
        self._event = event
        self._specs = tuple(specs)

    def tafl(self, result: GameResult) -> bytes:
        """The game as our own record, a blank line at its end."""
        return tafl_text.write(self.record(result)).encode("utf-8", "backslashreplace")

    def record(self, result: GameResult) -> GameRecord:
        """The game as a value; the moves of its opening are its first plies."""
        variant = find_variant(result.task.variant)
        plies = [*_opening(result), *_played(result.plies)]
        return GameRecord(
            variant=variant.name,
            start=result.task.opening.start,
            plies=tuple(plies[:PLY_LIMIT]),
            outcome=_outcome(result),
            players=result.names,
            rules_hash=result.rules_hash or variant.hash,
            tags=tuple((name, text[:TEXT]) for name, text in self._tags(result) if text),
            rules=carried(variant),
        )

    def _tags(self, result: GameResult) -> Iterator[tuple[str, str]]:
        task = result.task
        yield "Event", self._event
        yield "Round", task.id
        if result.started:
            yield "Date", time.strftime("%Y.%m.%d", time.gmtime(result.started))
            yield "UTCTime", time.strftime("%H:%M:%S", time.gmtime(result.started))
        for side, name in enumerate(("Attackers", "Defenders")):
            spec = self._specs[task.engines[side]]
            yield f"{name}Engine", result.ids[side]
            yield f"{name}Player", spec.player
            yield f"{name}Options", ", ".join(f"{option}={value}" for option, value in spec.options)
            yield f"{name}Limits", side_limits_text(spec.limits[side])
            yield f"{name}Seed", str(task.seeds[side])
        if task.opening.moves:
            yield "OpeningPlies", str(len(task.opening.moves))
        if result.fault is not None:
            yield "Fault", f"{'ad'[result.fault.side]} {result.fault.reason}: {result.fault.text}"
        if result.extra.get("fact"):
            yield "Adjudication", str(result.extra["fact"])
        if result.duplicate_of is not None:
            yield "DuplicateOf", str(result.duplicate_of)
        if len(task.opening.moves) + len(result.plies) > PLY_LIMIT:
            yield "Plies", str(len(task.opening.moves) + len(result.plies))
        for oddity in result.advisories[:20]:
            yield "Advisory", oddity

    def line(self, result: GameResult) -> bytes:
        """The game with everything about it as one line of JSON: what the run's log holds, with its id and engines."""
        task = result.task
        engines = [self._engine(result, side) for side in (0, 1)]
        known = to_json(result)
        for key in ("task", "names", "ids"):
            known.pop(key, None)
        document = {
            "id": task.id,
            "variant": task.variant,
            "rules_hash": known.pop("rules_hash", None),
            "opening": {"start": task.opening.start, "moves": list(task.opening.moves)},
            "engines": engines,
            "winner": known.pop("winner", None),
            "reason": known.pop("reason"),
            "fault": known.pop("fault", None),
            **known,
        }
        return _json(document)

    def _engine(self, result: GameResult, side: int) -> dict[str, Any]:
        spec = self._specs[result.task.engines[side]]
        return {
            "side": "ad"[side],
            "name": result.names[side],
            "id": result.ids[side],
            "player": spec.player,
            "options": dict(spec.options),
            "limits": side_limits_text(spec.limits[side]),
            "seed": result.task.seeds[side],
        }

    def positions(self, result: GameResult, every: int = 0) -> bytes:
        """Positions with the game's outcome, a line of JSON each: the final one, or those after every `every` plies.

        `score` is the mover's of the ply before, in centipawns; positions of the opening are left out.
        """
        facts = {"id": result.task.id, "variant": result.task.variant}
        outcome = {"winner": result.winner, "reason": result.reason}
        if not every:
            number = len(result.task.opening.moves) + len(result.plies)
            return _json({**facts, "ply": number, "fen": result.final, **outcome})
        first = len(result.task.opening.moves)
        lines = []
        for number, position in enumerate(_positions(result)):
            if number > first and number % every == 0:
                ply = result.plies[number - first - 1]
                score = {"cp": ply.cp, "mate": ply.mate}
                known = {name: value for name, value in score.items() if value is not None}
                lines.append(_json({**facts, "ply": number, "fen": position.fen(), **known, **outcome}))
        return b"".join(lines)


def _json(document: dict[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode("ascii") + b"\n"


def _positions(result: GameResult) -> Iterator[Position]:
    """Every position of the game, from its start on; ValueError where a move cannot be played."""
    position = Opening(result.task.opening.start).position(find_variant(result.task.variant))
    yield position
    for text in (*result.task.opening.moves, *(ply.move for ply in result.plies)):
        position = position.play(position.parse_move(text))
        yield position


def _opening(result: GameResult) -> Iterator[Ply]:
    """The plies of the opening took no time, but they have captures."""
    moves = result.task.opening.moves
    captures: list[tuple[int, ...] | None] = [None] * len(moves)
    if moves:
        try:
            walked = zip(range(len(moves) + 1), _positions(result), strict=False)
            captures = [sorted_squares(position.last_captures) for number, position in walked if number]
        except (IllegalMove, ValueError):
            # A game is recorded as it was played, even if rules have changed since.
            pass
    for text, taken in zip(moves, captures, strict=True):
        yield Ply(parse_move_word(text, MAX_SIZE)[0], taken)


def _played(plies: Sequence[PlyLog]) -> Iterator[Ply]:
    left = LINES
    for ply in plies:
        kept = []
        for line in ply.lines:
            left -= len(line)
            if left > 0:
                kept.append(line)
        mate = _small(ply.mate)
        yield Ply(
            parse_move_word(ply.move, MAX_SIZE)[0],
            sorted_squares(parse(square, MAX_SIZE) for square in ply.captures),
            clock=_small(ply.clock),
            time=None if ply.time is None else round(ply.time),
            cp=_small(ply.cp) if mate is None else None,
            mate=mate,
            depth=_small(ply.depth),
            comment="\n".join([*_notes(ply), *kept]),
        )


def _notes(ply: PlyLog) -> list[str]:
    """What has no field in our records, as a note."""
    told = [
        f"[%{name} {number:g}]" if isinstance(number, float) else f"[%{name} {number}]"
        for name, number in (
            ("nodes", ply.nodes),
            ("nps", ply.nps),
            ("seldepth", ply.seldepth),
            ("latency", ply.latency),
        )
        if number is not None
    ]
    return [" ".join(told)] if told else []


def _small(number: int | None) -> int | None:
    """A number that a record can hold: engines may say any."""
    return number if number is not None and abs(number) <= NUMBER_LIMIT else None


def _outcome(result: GameResult) -> Outcome | None:
    if result.winner is None:
        return None
    winner = {"a": Side.ATTACKERS, "d": Side.DEFENDERS, "draw": None}[result.winner]
    return Outcome(winner, Reason(result.reason))


def exports(config: Config, specs: Sequence[EngineSpec], folder: Path) -> tuple[Export, ...]:
    """The exports that a configuration asks for; positions lie in the run's folder."""
    maker = Maker(str(config["run.name"] or folder.name), specs)
    found = [
        Export(name, Path(config[f"output.{name}"]), render)
        for name, render in (("records", maker.tafl), ("jsonl", maker.line))
        if config[f"output.{name}"]
    ]
    every = config["output.positions"]
    if every:
        step = 0 if every == "final" else int(every)
        found.append(Export("positions", folder / POSITIONS, lambda result: maker.positions(result, step)))
    return tuple(found)
