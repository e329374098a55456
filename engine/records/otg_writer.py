"""Writing OpenTafl's game records, `*.otg`: tags, a rules string, and turns with comments and variations.

What that notation cannot express is counted as lost, never dropped silently. docs/records.md describes the format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from .. import squares as board
from ..games.base_variant import VariantError
from ..games.tafl.fen import Setup, SetupError, parse_fen
from ..games.tafl.otn import export_rules, format_board
from ..games.tafl.variant import Variant
from ..sides import Reason, Side
from .record import FIRST_PLACE, GameRecord, Place, Ply, Verdict, next_place, walk
from .rule_sets import Find, variant_of
from .text import Losses, RecordError

RESULTS: Final[dict[str, Verdict | None]] = {"1": "a", "-1": "d", "0": "draw", "?": None}
_PADDING: Final = "....."
"""Stands for each ply of a turn before the first one that is written."""
START_COMMENT: Final = "start-comment"
LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
"""They number the plies of a turn."""
CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
CLOCK: Final = re.compile(r"(\d{1,12}) (\d{1,6})/(\d{1,6})(?: (\d{1,6})i)?(?: |\Z)")

_RESULT_TEXTS: Final = {verdict: text for text, verdict in RESULTS.items()}
_MARKS: Final = {Reason.KING_CAPTURED: "++", Reason.KING_ESCAPED: "--"}
_STRUCTURE: Final = frozenset(("rules", "position", START_COMMENT, "starting-comment"))


def write(record: GameRecord, losses: Losses, find: Find) -> str:
    """The record as text, a blank line at its end; RecordError if OTN cannot express the game at all."""
    try:
        variant = variant_of(record, find)
    except VariantError as error:
        raise RecordError(f"OTN contains the rules, and these are unknown: {error}") from None
    if not isinstance(variant, Variant):
        raise RecordError(f"{variant.name}: expected a tafl variant: OTN has no other games")
    rules, lost_switches = rules_text(variant)
    for switch in lost_switches:
        losses.add(f"the rule switch {switch}")
    start = variant.start
    if record.start is not None:
        start = _start(record.start, variant, losses)
    _count_losses(record, variant, losses)
    tags = [f"[{name}:{text}]" for name, text in _tags(record, losses)]
    if record.start is not None:
        tags.append(f"[position:{format_board(start)}]")
    writer = _Writer(losses, _MARKS.get(record.outcome.reason, "") if record.outcome else "")
    place: Place = FIRST_PLACE if start.side in (None, Side.of(variant.first)) else (1, 1, 1)
    turns = writer.turns(record.plies, place, dict(start.pieces))
    return "\n".join([*tags, f"[rules:{rules}]", "", *turns, ""])


@lru_cache(maxsize=64)
def rules_text(variant: Variant) -> tuple[str, list[str]]:
    """The rules as an OTN string, and the switches that it cannot express."""
    return export_rules(variant)


def _start(fen: str, variant: Variant, losses: Losses) -> Setup:
    try:
        setup = parse_fen(fen, variant.size)
    except SetupError as error:
        raise RecordError(f"the start position: {error}") from None
    if (setup.quiet, setup.move_number, setup.berserk, setup.caps) != (0, 1, None, None):
        losses.add("the counters of a start position")
    return setup


def _tags(record: GameRecord, losses: Losses) -> Iterator[tuple[str, str]]:
    yield "variant", _tag_text(record.variant, losses)
    for name, player in zip(("attackers", "defenders"), record.players, strict=True):
        if player:
            yield name, _tag_text(player, losses)
    yield "result", _RESULT_TEXTS[record.result]
    if record.outcome is not None:
        yield "termination", record.outcome.reason.words
    for name, text in record.tags:
        if name.lower() in _STRUCTURE:
            losses.add(f"the tag {name}")
        else:
            yield name, _tag_text(text, losses)
    if record.comment:
        yield START_COMMENT, _plain(record.comment, losses, "]", ")")


def _tag_text(text: str, losses: Losses) -> str:
    return _plain(text, losses, "]\n", ") ")


def _plain(text: str, losses: Losses, signs: str, instead: str) -> str:
    """Text without the characters that would end it."""
    changed = CONTROL.sub("\ufffd", text).translate(str.maketrans(signs, instead))
    losses.add("characters that end a text, and control characters (others stand for them)", changed != text)
    return changed


def _count_losses(record: GameRecord, variant: Variant, losses: Losses) -> None:
    """What is known about this game's plies but has no place in OTN."""
    if record.rules_hash not in (None, variant.hash):
        losses.add("the hash of rules that have changed since")
    for ply in walk(record.plies):
        losses.add("that captures are not recorded", ply.captures is None)
        losses.add("time taken for a ply", ply.time is not None)
        losses.add("evaluations", ply.cp is not None or ply.mate is not None)
        losses.add("search depths", ply.depth is not None)
        if ply.clock is not None:
            losses.add("milliseconds and debts of clocks", ply.clock % 1000 != 0 or ply.clock < 0)


class _Writer:
    """Writes turns; pieces are followed over the board for their letters, captures as far as they are recorded."""

    def __init__(self, losses: Losses, mark: str) -> None:
        self.losses = losses
        self.mark = mark

    def turns(
        self,
        plies: tuple[Ply, ...],
        place: Place,
        pieces: dict[int, str],
        before: tuple[Place, int] | None = None,
        address: str = "",
    ) -> Iterator[str]:
        """The lines of a game, or of the variation at `address`; `before` is the place and the move of the ply before
        the first, which stands at `place`."""
        words: list[str] = []
        comments: list[str] = []
        variations: list[str] = []
        label = ""
        named = ""
        for index, ply in enumerate(plies):
            if index and before is not None:
                place = next_place(*before, ply.move)
            turn, half, _ = place
            if words and half == 0:
                yield from self.turn(label, words, comments, variations)
                words, comments, variations = [], [], []
            if not words:
                label = f"{address}{turn}a." if address else f"{turn}."
                words += [_PADDING] * half
            previous = None if before is None else before[1]
            replaced = named if address else _named(place)
            if (
                index or not address
            ):  # alternatives to the first ply of a variation stand beside the variation
                for number, line in enumerate(_alternatives(ply), start=1):
                    if replaced:
                        to = f"{address}{replaced}.{number}."
                        variations += self.variation(line, place, dict(pieces), before, to)
                    else:
                        self.losses.add("variations far inside a turn")
            word = _word(ply, previous, pieces)
            if index == len(plies) - 1 and not address:
                word += self.mark
            words.append(word)
            comments.append(self.comment(ply))
            named = _named(place)
            before = place, ply.move
        if words:
            yield from self.turn(label, words, comments, variations)

    def variation(
        self,
        line: tuple[Ply, ...],
        place: Place,
        pieces: dict[int, str],
        before: tuple[Place, int] | None,
        address: str,
    ) -> Iterator[str]:
        """A variation's lines; its turns are counted from 1."""
        _, half, side = place if before is None else next_place(*before, line[0].move)
        return self.turns(line, (1, half, side), pieces, before, address)

    def turn(self, label: str, words: list[str], comments: list[str], variations: list[str]) -> Iterator[str]:
        yield f"{label} {' '.join(words)}"
        yield f"[{'|'.join(comments)}]"
        yield ""
        yield from variations

    def comment(self, ply: Ply) -> str:
        text = _plain(ply.comment, self.losses, "]|", ")/")
        if ply.clock is not None:
            clock = f"{max(ply.clock, 0) // 1000} 0/0 0i"
            return f"{clock} {text}" if text else clock
        if CLOCK.match(text):
            self.losses.add("comments that begin like a clock (a blank keeps them apart)")
            text = f" {text}"
        return text


def _named(place: Place) -> str:
    """A ply's address in its line, `8b`; nothing where the letters are used up."""
    turn, half, _ = place
    return f"{turn}{LETTERS[half]}" if half < len(LETTERS) else ""


def _alternatives(ply: Ply) -> Iterator[tuple[Ply, ...]]:
    """The lines that replace a ply, those that replace their first plies included."""
    for line in ply.variations:
        yield line
        yield from _alternatives(line[0])


def _word(ply: Ply, previous: int | None, pieces: dict[int, str]) -> str:
    """A move record, played on `pieces`."""
    origin, target = board.origin(ply.move), board.target(ply.move)
    goes_on = previous is not None and origin == board.target(previous) and origin != target
    half_way = (origin + target) // 2
    jumps = abs(target - origin) in (2, 2 * board.STRIDE) and half_way in pieces
    sign = ("^" if jumps else "") + ("=" if goes_on else "") or "-"
    letter = pieces.pop(origin, "t")
    taken = "/".join(f"{_letter(pieces.get(sq, 't'))}{board.name(sq)}" for sq in ply.captures or ())
    for sq in ply.captures or ():
        man = pieces.pop(sq, "")
        if man in ("m", "M"):  # a captured mercenary changes sides
            pieces[sq] = man.swapcase()
    pieces[target] = letter
    return f"{_letter(letter)}{board.name(origin)}{sign}{board.name(target)}{'x' if taken else ''}{taken}"


def _letter(piece: str) -> str:
    """Only pieces that are no plain men are named."""
    return "" if piece in ("t", "T") else piece
