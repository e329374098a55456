"""The formats by name: reading any of them as games, writing games in any of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..games.base_variant import AnyVariant
from . import otg_reader, otg_writer, tables, tafl_text
from .record import GameRecord
from .rule_sets import Find
from .text import Game, Losses, RecordError, Stream

FORMATS: Final = ("tafl", "otg", "csv", "jsonl")


def format_of(path: str | os.PathLike[str]) -> str:
    """The format that a file's ending names; RecordError if it names none."""
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise RecordError(f"{os.fspath(path)}: expected a file ending in .{', .'.join(FORMATS)}")
    return ending


def form_of(text: str) -> str:
    """The format that pasted text seems to have, other than CSV; our own where nothing says so."""
    word = text.lstrip()
    if word.startswith("{") and '"moves"' in word:
        return "jsonl"
    tag = word.split("]", 1)[0]
    return "otg" if word.startswith("[") and ":" in tag and '"' not in tag else "tafl"


@dataclass(frozen=True)
class Reading:
    """How to read games: `find` knows the variants, `variant` is that of games that name none, `adjudicate` says that
    a CSV's site ended games by repetition and limits, `opentafl` reads OTN rules as that program does."""

    find: Find
    variant: AnyVariant | None = None
    adjudicate: bool = False
    opentafl: bool = False


def read(stream: Stream, name: str, form: str, how: Reading, losses: Losses) -> Iterator[Game]:
    """The games of a stream of one format, one at a time.

    What a record cannot hold is counted in `losses`. Raises RecordError at the first place that cannot be read.
    """
    match form:
        case "tafl":
            return tafl_text.read(stream, name, how.find, how.variant)
        case "otg":
            return otg_reader.read(stream, name, how.find, how.variant, losses, how.opentafl)
        case "jsonl":
            return tables.read_json(stream, name, how.find, how.variant, losses)
        case _:
            if how.variant is None:
                raise RecordError(f"{name}: CSV names no variant: expected to be given one")
            return tables.read_csv(stream, name, how.variant, how.adjudicate)


def write(record: GameRecord, form: str, find: Find, losses: Losses) -> str:
    """A game as text of one format.

    What the format cannot hold is counted in `losses`; RecordError if it cannot hold the game at all.
    """
    match form:
        case "tafl":
            return tafl_text.write(record)
        case "otg":
            return otg_writer.write(record, losses, find)
        case "jsonl":
            return tables.write_json(record)
        case _:
            return tables.write_csv(record, losses, find)
