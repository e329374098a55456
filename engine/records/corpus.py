"""Collections of played games, read one line at a time.

CSV, without header: `moves,captures by a,captures by d,result`. Moves are separated by blanks and carry their
captures (`e5-e2xf2xf3`); the last word may be `timeout`: the side to move lost on time. A captured square may be
listed twice, a captured king is never listed, and the two counts count the doubles, so they are not looked at.
The result is White (defenders won), Black (attackers won), Draw, Ongoing (unfinished), or nothing: then none is
recorded, and nothing can disagree with it.

JSON lines: objects with `moves`, `refused` (a last move that the referee refused, or an unreadable one, or null),
`result` (a, d, draw or null), `ended_by` (`rules`, or something else, and then `result` may hold a forfeit). The
JSON of whole records (`hnefi.engine.records.tables`) has these too, and `captures` (true where moves without
captured squares took nothing) and `reason` (why the game ended).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from .. import squares as board
from ..moves_text import MoveTextError, parse_move
from ..regular import open_regular
from ..sides import Reason
from ..wording import shorten
from .record import BY_RULES

_LINE_LIMIT: Final = 1 << 20
_RESULTS: Final[dict[str, Literal["a", "d", "draw"] | None]] = {
    "White": "d",
    "Black": "a",
    "Draw": "draw",
    "Ongoing": None,
    "": None,
}

Format = Literal["csv", "jsonl"]


class CorpusError(ValueError):
    """A collection that cannot be read: names the file, the line and what was expected."""


@dataclass(frozen=True, slots=True)
class CorpusGame:
    """One played game as recorded.

    `plies` are moves with their captured squares (sorted by file, then rank), None where captures are not recorded
    at all; `result` is who won by the record, None for an unfinished game; `compare` is False where it may be a
    forfeit or nothing is recorded; `refused` is a last move that the referee called illegal, None if there was none
    or it could not be read; `timeout` means that the side to move lost on time; `by_rules` that the record says the
    rules ended the game.
    """

    line: int
    plies: tuple[tuple[int, tuple[int, ...] | None], ...]
    result: Literal["a", "d", "draw"] | None
    refused: int | None = None
    timeout: bool = False
    by_rules: bool = False
    compare: bool = True


def corpus_format(path: str | os.PathLike[str]) -> Format:
    """The format of a collection by its file name; CorpusError if the ending is neither .csv nor .jsonl."""
    suffix = Path(path).suffix.lower()
    if suffix == ".csv":
        return "csv"
    if suffix == ".jsonl":
        return "jsonl"
    raise CorpusError(f"{os.fspath(path)}: expected a file ending in .csv or .jsonl")


def read(path: str | os.PathLike[str], size: int) -> Iterator[CorpusGame]:
    """The games of a collection played on a `size` x `size` board, lazily, in the order of the file.

    Raises CorpusError at the first line that cannot be read. Empty lines are skipped.
    """
    parse = parse_csv if corpus_format(path) == "csv" else parse_json
    for number, text in _lines(path):
        try:
            yield parse(text, number, size)
        except CorpusError as error:
            raise CorpusError(f"{os.fspath(path)}:{number}: {error}") from None


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    name = os.fspath(path)
    try:
        with open_regular(path) as stream:
            number = 0
            while data := stream.readline(_LINE_LIMIT + 1):
                number += 1
                if len(data) > _LINE_LIMIT:
                    raise CorpusError(f"{name}:{number}: expected a line of at most {_LINE_LIMIT} bytes")
                try:
                    text = data.decode().strip()
                except UnicodeDecodeError as error:
                    raise CorpusError(f"{name}:{number}: byte {error.start}: expected UTF-8") from None
                if text:
                    yield number, text
    except OSError as error:
        raise CorpusError(f"{name}: {error.strerror or error}: expected a readable file") from None


def parse_csv(text: str, line: int, size: int) -> CorpusGame:
    """The game of one CSV line; CorpusError without file and line."""
    fields = text.split(",")
    if len(fields) != 4:
        raise CorpusError(
            f"{shorten(text)}: expected 4 fields: moves,captures by a,captures by d,result; found {len(fields)}"
        )
    result = fields[3].strip()
    if result not in _RESULTS:
        raise CorpusError(f"result {shorten(result)}: expected White, Black, Draw, Ongoing or nothing")
    words = fields[0].split()
    timeout = bool(words) and words[-1] == "timeout"
    if timeout:
        words.pop()
    plies = tuple((move, captures or ()) for move, captures in _moves(words, size))
    return CorpusGame(line, plies, _RESULTS[result], timeout=timeout, compare=result != "")


def parse_json(text: str, line: int, size: int) -> CorpusGame:
    """The game of one JSON line; CorpusError without file and line."""
    try:
        game = json.loads(text)
    except (ValueError, RecursionError) as error:  # the latter from lists nested thousands deep
        raise CorpusError(f"{shorten(text)}: not JSON: {error}") from None
    if not isinstance(game, dict) or not isinstance(game.get("moves"), str):
        raise CorpusError(f"{shorten(text)}: expected an object with moves, a text")
    for key in ("start", "rules"):
        if game.get(key) is not None:
            raise CorpusError(f"{key} {shorten(game[key])}: expected a game from the start by known rules")
    result, refused, reason = game.get("result"), game.get("refused"), game.get("reason")
    if result not in (None, "a", "d", "draw"):
        raise CorpusError(f"result {shorten(result)}: expected a, d, draw or null")
    if not isinstance(refused, str | None):
        raise CorpusError(f"refused {shorten(refused)}: expected a move or null")
    refused_move = None
    if refused is not None:
        try:
            origin, target, _ = parse_move(refused.strip(), size)
            refused_move = board.move(origin, target)
        except MoveTextError:
            pass  # unreadable for the referee and for us
    by_rules = game.get("ended_by") == "rules" or (isinstance(reason, str) and reason in BY_RULES)
    bare = () if game.get("captures") is True else None
    return CorpusGame(
        line,
        tuple(
            (move, bare if taken is None else taken) for move, taken in _moves(game["moves"].split(), size)
        ),
        result,
        refused=refused_move,
        timeout=reason == Reason.TIME,
        by_rules=by_rules,
        compare=by_rules,
    )


def _moves(words: list[str], size: int) -> Iterator[tuple[int, tuple[int, ...] | None]]:
    for ply, word in enumerate(words, start=1):
        try:
            origin, target, captures = parse_move(word, size)
        except MoveTextError as error:
            raise CorpusError(f"ply {ply} {shorten(word)}: {error}") from None
        yield board.move(origin, target), captures
