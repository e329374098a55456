"""Recorded games: import of a browser's text, and export."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from hnefi.engine import squares
from hnefi.engine.games.base_variant import AnyVariant, VariantError
from hnefi.engine.games.tafl import variant as variants
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.moves_text import MoveTextError, parse_move_word
from hnefi.engine.records.formats import FORMATS, Reading, form_of, read, write
from hnefi.engine.records.record import GameRecord, Ply
from hnefi.engine.records.rule_sets import Find, carried, finder, played_by, variant_of
from hnefi.engine.records.text import Losses, RecordError
from hnefi.engine.sides import Outcome, Reason, Side
from hnefi.engine.wording import shorten

from . import frames
from .frames import FrameError

PLIES: Final = 10_000
NAME: Final = 200
WORDS: Final = 8 * 1024
"""Maximum characters of rules in one line; longer ones would not be sent to the engine."""


@cache
def find() -> Find:
    """A cached lookup of variants by name."""
    return finder()


def imported(frame: Mapping[str, Any]) -> dict[str, Any]:
    """The `record` frame in answer to an `import` frame: the first game in its text. FrameError."""
    ident = frame.get("id")
    text = frames.text(frame, "text", frames.IMPORT_LIMIT, lines=True)
    try:
        default = _variant(frame)
        games = read(
            io.BytesIO(text.encode("utf-8", "replace")), "line", _form(text), _reading(default), Losses()
        )
        game = next(iter(games), None)
        if game is None:
            raise RecordError("the text contains no game: expected a FEN or a recorded game")
        record = game.record
        variant = variant_of(record, find())
    except ValueError as error:
        raise FrameError("bad_record", str(error), ident) from None
    return {
        "t": "record",
        "id": ident,
        "variant": variant.name,
        "rules": _own_words(variant),
        "start": record.start,
        "moves": [squares.move_name(ply.move) for ply in record.plies],
        "comments": {
            str(number): ply.comment for number, ply in enumerate(record.plies, start=1) if ply.comment
        },
        "players": list(record.players),
        "result": record.result,
        "reason": None if record.outcome is None else record.outcome.reason.value,
    }


def _own_words(variant: AnyVariant) -> str:
    """The rules in a record as one line; "" if they are those of a shipped variant."""
    return variants.as_words(variant) if isinstance(variant, Variant) and carried(variant) else ""


def _form(text: str) -> str:
    """The format of pasted text. A CSV line has its moves between commas; in other formats, a first line with a comma
    begins with a bracket or a brace."""
    first = text.lstrip().split("\n", 1)[0]
    return "csv" if first.count(",") > 1 and first[:1] not in "[{" else form_of(text)


def _reading(variant: AnyVariant | None) -> Reading:
    # A CSV line names no rules: it uses those of the board, including repetitions and limits.
    return Reading(find(), variant, adjudicate=True)


def _variant(frame: Mapping[str, Any]) -> AnyVariant | None:
    return variant_named(frame) if frame.get("variant") else None


def variant_named(frame: Mapping[str, Any]) -> AnyVariant:
    """The variant named by a frame's `variant` or described by its `rules`; VariantError or FrameError."""
    words = frames.text(frame, "rules", WORDS)
    return variants.from_words(words) if words else find()(frames.text(frame, "variant", 64))


def known_variant(frame: Mapping[str, Any]) -> AnyVariant:
    """The same, but FrameError if there is none."""
    try:
        return variant_named(frame)
    except VariantError as error:
        raise FrameError("unknown_variant", str(error), frame.get("id")) from None


def exported(frame: Mapping[str, Any]) -> dict[str, Any]:
    """The `record` frame in answer to an `export` frame: the frame's game as text in its format. FrameError."""
    ident = frame.get("id")
    form = frames.text(frame, "format", 16) or "tafl"
    if form not in FORMATS:
        raise FrameError("bad_frame", f"format {shorten(form)}: expected one of {', '.join(FORMATS)}", ident)
    losses = Losses()
    try:
        variant = _variant(frame)
        if variant is None:
            raise ValueError("expected the name of a variant")
        text = write(played_by(_record(frame, variant), variant), form, find(), losses)
    except (ValueError, VariantError, MoveTextError) as error:
        raise FrameError("bad_record", str(error), ident) from None
    return {"t": "record", "id": ident, "format": form, "text": text, "lost": sorted(losses)}


def _record(frame: Mapping[str, Any], variant: AnyVariant) -> GameRecord:
    moves = frames.words(frame, "moves", PLIES)
    names = [frames.text({"name": name}, "name", NAME) for name in frames.words(frame, "players", 2)]
    return GameRecord(
        variant.name,
        start=frames.text(frame, "start", 4096) or None,
        plies=_plies(moves, max(variant.files, variant.ranks), known=frame.get("captures") is True),
        outcome=_outcome(frames.text(frame, "result", 8), frames.text(frame, "reason", 32)),
        players=(names[0], names[1]) if len(names) == 2 else ("", ""),
    )


def _plies(moves: Sequence[str], size: int, *, known: bool) -> tuple[Ply, ...]:
    """The plies; if captures are `known`, a move without any captured nothing."""
    parsed = (parse_move_word(move, size) for move in moves)
    return tuple(Ply(move, () if known and captures is None else captures) for move, captures in parsed)


def _outcome(result: str, reason: str) -> Outcome | None:
    if not result:
        return None
    if result not in ("a", "d", "draw"):
        raise ValueError(f"result {shorten(result)}: expected a, d or draw")
    if reason not in tuple(Reason):
        raise ValueError(f"reason {shorten(reason)}: expected how a game ends")
    return Outcome(None if result == "draw" else Side.of(result), Reason(reason))
