"""Recorded games as positions: which games of a file, and each of them played through by its rules."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from hnefi.engine import games
from hnefi.engine.moves_text import format_move
from hnefi.engine.records.formats import Reading, read
from hnefi.engine.records.record import sorted_squares
from hnefi.engine.records.rule_sets import variant_of
from hnefi.engine.records.text import Losses, RecordError
from hnefi.engine.regular import open_regular

from .annotate import stripped
from .values import PlayedThrough

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position
    from hnefi.engine.records.record import GameRecord
    from hnefi.engine.records.text import Game


def games_of(path: Path, form: str, how: Reading, number: int | None) -> Iterator[tuple[int, Game]]:
    """The games of a file with their numbers from 1, or only game `number`.

    RecordError where the file cannot be read, or has no such game.
    """
    try:
        with open_regular(path) as stream:
            found = read(stream, str(path), form, how, Losses())
            if number is None:
                yield from enumerate(found, start=1)
                return
            count = 0
            for count, game in enumerate(islice(found, number), start=1):
                if count == number:
                    yield count, game
                    return
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror or error}: expected a file of recorded games") from None
    raise RecordError(
        f"{path}: no game {number}: expected a number from 1 to {count}"
        if count
        else f"{path}: no game in it"
    )


def walk(game: Game, number: int, name: str, how: Reading) -> PlayedThrough:
    """A game played through; RecordError naming file, line, game and ply where it breaks its rules."""
    record = stripped(game.record)
    where = f"{name}:{game.line}: game {number}"
    try:
        variant = variant_of(record, how.find)
        if record.rules_hash not in (None, variant.hash):
            raise ValueError(f"{variant.name}: expected the rules that the record's hash names")
        first = games.initial(variant) if record.start is None else games.from_fen(variant, record.start)
    except ValueError as error:
        raise RecordError(f"{where}: {error}") from None
    positions = [first]
    for ply, (played, source) in enumerate(zip(record.plies, game.record.plies, strict=True), start=1):
        line = game.places.get(id(source), game.line)
        move = format_move(played.move, played.captures or ())
        try:
            positions.append(_next(positions[-1], played.move, played.captures))
        except ValueError as error:
            raise RecordError(f"{name}:{line}: game {number} ply {ply} {move}: {error}") from None
    return PlayedThrough(
        record, variant, tuple(positions), name, number, game.line, _end_note(record, positions[-1])
    )


def _next(position: Position, move: int, captures: tuple[int, ...] | None) -> Position:
    """The position after a recorded move; ValueError if it is illegal or took otherwise."""
    if position.outcome is not None:
        raise ValueError(f"was played after the end: {position.outcome.text}")
    try:
        after = position.play(move)
    except ValueError as error:
        raise ValueError(f"is illegal: {error}") from None
    taken = sorted_squares(after.last_captures)
    if captures is not None and taken != captures:
        raise ValueError(f"{format_move(move, taken)} by the rules, recorded otherwise")
    return after


def _end_note(record: GameRecord, last: Position) -> str:
    """How the recorded result disagrees with the rules; empty if it does not."""
    if last.outcome is not None and record.result not in (None, last.outcome.result):
        return f"recorded as {record.result}, by the rules {last.outcome.text}"
    return ""
