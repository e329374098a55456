"""A recorded game played through, what an analysis knows about it, and looks as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hnefi.engine.catalogue import GAMES
from hnefi.protocol.hosts.assessment.values import Assessed, Line, PositionAnalysis
from hnefi.protocol.hosts.assessment.verdicts import Played, Thresholds, assessed

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position
    from hnefi.engine.games.base_variant import AnyVariant
    from hnefi.engine.records.record import GameRecord


@dataclass(frozen=True, slots=True)
class PlayedThrough:
    """A recorded game played through: `positions` has one more than the record has plies."""

    record: GameRecord
    variant: AnyVariant
    positions: tuple[Position, ...]
    name: str
    number: int
    line: int
    note: str = ""

    @property
    def sides(self) -> tuple[str, str]:
        """What the sides are called."""
        return GAMES[self.variant.game].sides


@dataclass(frozen=True, slots=True)
class Analysed(Assessed):
    """A recorded game with what is known about it."""

    walk: PlayedThrough


def analysed(
    walk: PlayedThrough, looks: Sequence[PositionAnalysis | None], thresholds: Thresholds
) -> Analysed:
    """Everything about a game that follows from the looks at its positions."""
    played = [
        Played(position.side, one.move, len(position.legal_moves()))
        for one, position in zip(walk.record.plies, walk.positions, strict=False)
    ]
    known = assessed(played, looks, thresholds, walk.sides)
    return Analysed(known.looks, known.judged, known.accuracy, known.losses, known.sides, walk)


def end_text(record: GameRecord, sides: Sequence[str]) -> str:
    """How a recorded game ended: `attackers won (king captured)`, `drawn`, `unfinished`."""
    if record.result is None:
        return "unfinished"
    said = "drawn" if record.result == "draw" else f"{sides['ad'.index(record.result)]} won"
    return said if record.outcome is None else f"{said} ({record.outcome.reason.words})"


# As JSON


def look_to_json(look: PositionAnalysis) -> dict[str, Any]:
    """A look as one JSON object; `look_from_json` gives it back. A finished position is told by its rules anyway."""
    value: dict[str, Any] = {"side": "ad"[look.side], "nodes": look.nodes, "time": look.time}
    if look.problem:
        value["problem"] = look.problem
    value["lines"] = [line_to_json(line) for line in look.lines]
    return value


def line_to_json(line: Line) -> dict[str, Any]:
    """A line of play as the store and `--json` hold it."""
    from hnefi.engine.squares import move_name

    return {
        "moves": " ".join(map(move_name, line.moves)),
        "probability": line.probability,
        "cp": line.cp,
        "mate": line.mate,
        "depth": line.depth,
    }


def look_from_json(value: Mapping[str, Any], size: int) -> PositionAnalysis:
    """The look that `look_to_json` wrote, for a board of `size`; ValueError or KeyError for anything else."""
    lines = tuple(_line_from_json(line, size) for line in value["lines"])
    return PositionAnalysis(
        "ad".index(value["side"]),
        lines,
        _whole(value["nodes"]),
        _whole(value["time"]),
        problem=str(value.get("problem", "")),
    )


def _line_from_json(value: Mapping[str, Any], size: int) -> Line:
    from hnefi.engine.moves_text import parse_move_word

    chance = value["probability"]
    if chance is not None and not 0.0 <= float(chance) <= 1.0:
        raise ValueError(f"probability {chance}: expected a number from 0 to 1")
    return Line(
        tuple(parse_move_word(word, size)[0] for word in value["moves"].split()),
        None if chance is None else float(chance),
        _whole(value["cp"]),
        _whole(value["mate"]),
        _whole(value["depth"]),
    )


def _whole(value: object) -> int | None:
    if value is not None and type(value) is not int:
        raise ValueError(f"{value!r:.40}: expected a whole number or null")
    return value
