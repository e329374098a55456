"""OpenTafl's game records, `*.otg`: tags, a rules string, and turns with comments and variations.

What that notation cannot say is counted as lost, never dropped in silence. docs/records.md describes the format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Final

from .. import squares as board
from ..games.base_variant import AnyVariant, VariantError
from ..games.tafl.fen import Setup, SetupError, format_fen, parse_fen
from ..games.tafl.otn import OtnError, export_rules, format_board, import_rules, parse_board
from ..games.tafl.variant import Variant, everything
from ..moves_text import MoveTextError, parse_move
from ..sides import Outcome, Reason, Side
from .record import (
    DEPTH_LIMIT,
    FIRST_PLACE,
    PLY_LIMIT,
    TAGS_LIMIT,
    TEXT_LIMIT,
    GameRecord,
    Place,
    Ply,
    Verdict,
    check_tag_name,
    next_place,
    walk,
)
from .rule_sets import Find, carried, finder, variant_of
from .text import Game, Losses, RecordError, Stream, at, lines, shown

_RESULTS: Final[dict[str, Verdict | None]] = {"1": "a", "-1": "d", "0": "draw", "?": None}
_VERDICTS: Final[tuple[Verdict, Verdict]] = ("a", "d")
_RESULT_SIGNS: Final = {verdict: sign for sign, verdict in _RESULTS.items()}
_REASONS: Final = {reason.words: reason for reason in Reason}
_MARKS: Final = {Reason.KING_CAPTURED: "++", Reason.KING_ESCAPED: "--"}
_PADDING: Final = "....."
_RESIGNS: Final = "---"
_START_COMMENT: Final = "start-comment"
_STRUCTURE: Final = frozenset(("rules", "position", _START_COMMENT, "starting-comment"))
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"

_UNSHOWN: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_CLOCK: Final = re.compile(r"(\d{1,12}) (\d{1,6})/(\d{1,6})(?: (\d{1,6})i)?(?: |\Z)")
_TAG: Final = re.compile(r"\[([^\[\]:|]{1,64}):")
_LABEL: Final = re.compile(r"((?:\d{1,6}[a-z]?\.)+)\s*")
_ELEMENT: Final = re.compile(r"(\d+)([a-z]?)")

Element = tuple[int, int]
"""A number and the place of its letter in the alphabet, -1 without letter: one part of the address of a move."""
Address = tuple[Element, ...]


# Writing


def write(record: GameRecord, losses: Losses, find: Find) -> str:
    """The record as text, a blank line at its end; RecordError where OTN has no words for the game at all."""
    try:
        variant = variant_of(record, find)
    except VariantError as error:
        raise RecordError(f"OTN tells the rules, and these are unknown: {error}") from None
    if not isinstance(variant, Variant):
        raise RecordError(f"{variant.name}: expected a tafl variant: OTN tells no other games")
    rules, lost_switches = _rules(variant)
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
def _rules(variant: Variant) -> tuple[str, list[str]]:
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
    yield "result", _RESULT_SIGNS[record.result]
    if record.outcome is not None:
        yield "termination", record.outcome.reason.words
    for name, text in record.tags:
        if name.lower() in _STRUCTURE:
            losses.add(f"the tag {name}")
        else:
            yield name, _tag_text(text, losses)
    if record.comment:
        yield _START_COMMENT, _plain(record.comment, losses, "]", ")")


def _tag_text(text: str, losses: Losses) -> str:
    return _plain(text, losses, "]\n", ") ")


def _plain(text: str, losses: Losses, signs: str, instead: str) -> str:
    """Text without the characters that would end it."""
    changed = _UNSHOWN.sub("\ufffd", text).translate(str.maketrans(signs, instead))
    losses.add("characters that end a text, and control characters (others stand for them)", changed != text)
    return changed


def _count_losses(record: GameRecord, variant: Variant, losses: Losses) -> None:
    """What is known about this game's plies and has no place in OTN."""
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
        if _CLOCK.match(text):
            self.losses.add("comments that begin like a clock (a blank keeps them apart)")
            text = f" {text}"
        return text


def _named(place: Place) -> str:
    """A ply's address in its line, `8b`; nothing where the letters are used up."""
    turn, half, _ = place
    return f"{turn}{_LETTERS[half]}" if half < len(_LETTERS) else ""


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
        if man in ("m", "M"):  # a mercenary turns its coat
            pieces[sq] = man.swapcase()
    pieces[target] = letter
    return f"{_letter(letter)}{board.name(origin)}{sign}{board.name(target)}{'x' if taken else ''}{taken}"


def _letter(piece: str) -> str:
    """Only pieces that are no plain men are named."""
    return "" if piece in ("t", "T") else piece


# Reading


def read(
    stream: Stream,
    name: str = "record",
    find: Find | None = None,
    variant: AnyVariant | None = None,
    losses: Losses | None = None,
    opentafl: bool = False,
) -> Iterator[Game]:
    """The games of a stream, one at a time; `variant` is that of games without rules, `opentafl` reads rules as that
    program does.

    Raises RecordError at the first place that cannot be read; what a record cannot hold is counted in `losses`.
    """
    reader = _Reader(name, find or finder(), variant, Losses() if losses is None else losses, opentafl)
    for number, text in lines(stream, name):
        control = _UNSHOWN.search(text)
        if control is not None:
            raise at(name, number, f"a character U+{ord(control[0]):04X}: expected text", control.start() + 1)
        game = reader.take(number, text)
        if game is not None:
            yield game
    game = reader.end()
    if game is not None:
        yield game


class _Draft:
    """A ply being read, at its place in the turn."""

    __slots__ = ("captures", "clock", "comment", "half", "line", "move", "variations")

    def __init__(self, move: int, captures: tuple[int, ...], half: int, line: int) -> None:
        self.move = move
        self.captures = captures
        self.half = half
        self.line = line
        self.clock: int | None = None
        self.comment = ""
        self.variations: list[_Branch] = []


class _Branch:
    """A line of plies being read: the game itself, or a variation."""

    def __init__(self) -> None:
        self.plies: list[_Draft] = []
        self.named: dict[Element, int] = {}
        self.last = (0, 0)


class _Reader:
    """Takes one line after the other and hands out each game when the next one begins."""

    def __init__(
        self, name: str, find: Find, variant: AnyVariant | None, losses: Losses, opentafl: bool
    ) -> None:
        self.name = name
        self.find = find
        self.variant = variant
        self.losses = losses
        self.opentafl = opentafl
        self.clear()

    def clear(self) -> None:
        """Ready for the next game."""
        self.begun = 0
        self.tags: list[tuple[str, str, int]] = []
        self.played: Variant | None = None
        self.main = _Branch()
        self.branches: dict[Address, _Branch] = {}
        self.padded = False
        self.resigned = False
        self.turn: list[_Draft] | None = None
        self.after_blank = False
        self.quote: list[str] = []
        self.quote_line = 0
        self.places: dict[int, int] = {}
        self.plies = 0
        self.length = 0

    def fail(self, line: int, message: str, column: int | None = None) -> RecordError:
        return at(self.name, line, message, column)

    def take(self, line: int, text: str) -> Game | None:
        """Add a line; the game before it, if the line begins another one."""
        if self.quote:
            self.go_on(line, text)
            return None
        words = text.strip()
        if not words:
            self.after_blank = True
            return None
        game = None
        if words.startswith("["):
            comment = self.turn is not None and not (self.after_blank and _TAG.match(words))
            if not comment and (self.played is not None or (self.after_blank and self.given("rules"))):
                game = self.game()
            self.begun = self.begun or line
            self.quote_line = line
            self.go_on(line, text.lstrip())
        else:
            self.begun = self.begun or line
            if words.startswith("dim:") and self.played is None:
                self.tags.append(("rules", words, line))
            else:
                self.moves(line, text)
        self.after_blank = False
        return game

    def go_on(self, line: int, text: str) -> None:
        """A text in brackets, which may take several lines."""
        self.length += len(text) + 1
        if self.length > TEXT_LIMIT:
            raise self.fail(line, f"expected at most {TEXT_LIMIT} characters of text in one game")
        self.quote.append(text)
        end = text.find("]")
        if end < 0:
            return
        if text[end + 1 :].strip():
            raise self.fail(line, f"{shown(text[end + 1 :])}: expected nothing behind ]", end + 2)
        whole = "\n".join([*self.quote[:-1], text[: end + 1]])
        self.quote = []
        if self.turn is None:
            self.tag(whole)
        else:
            self.comment(self.turn, whole[1:-1])
            self.turn = None

    def tag(self, text: str) -> None:
        opening = _TAG.match(text)
        if opening is None:
            raise self.fail(self.quote_line, f"{shown(text)}: expected a tag such as [event:a friendly game]")
        if len(self.tags) == TAGS_LIMIT:
            raise self.fail(self.quote_line, f"expected at most {TAGS_LIMIT} tags in one game")
        self.tags.append((opening[1].strip(), text[opening.end() : -1], self.quote_line))

    def given(self, name: str) -> tuple[str, int] | None:
        """The text and the line of the first tag of this name."""
        return next(((text, line) for key, text, line in self.tags if key.lower() == name), None)

    def known_rules(self, line: int) -> Variant:
        """The rules of this game, as its tags tell them."""
        if self.played is None:
            self.played = self.rules(line)
        return self.played

    def rules(self, line: int) -> Variant:
        rules, named = self.given("rules"), self.given("variant")
        if rules is None:
            if not isinstance(self.variant, Variant):
                raise self.fail(
                    line, "no rules before the moves: expected a tag [rules:dim:7 ... start:/.../]"
                )
            return self.variant
        text, where = rules
        try:
            variant, problems = _variant(text.strip(), named[0] if named else "", self.opentafl, self.find)
        except (OtnError, VariantError) as error:
            raise self.fail(where, f"the tag rules: {error}") from None
        for problem in problems:
            self.losses.add(f"of the rules: {problem}")
        return variant

    def moves(self, line: int, text: str) -> None:
        """One turn, or a part of it: its number, then its moves."""
        rules = self.known_rules(line)
        indent = len(text) - len(text.lstrip())
        label = _LABEL.match(text, indent)
        if label is None:
            raise self.fail(
                line, f"{shown(text.strip())}: expected a turn such as 1. d1-d3 e5-e3", indent + 1
            )
        address = tuple(
            (int(number), _LETTERS.find(letter) if letter else -1)
            for number, letter in _ELEMENT.findall(label[1])
        )
        if len(self.branches) > PLY_LIMIT:
            raise self.fail(line, f"expected at most {PLY_LIMIT} variations in one game", indent + 1)
        if len(address) % 2 == 0 or len(address) > 2 * DEPTH_LIMIT + 1:
            message = f"the turn {shown(label[1])}: expected a number, or an address such as 8a.1.2a."
            raise self.fail(line, message, indent + 1)
        words = list(re.finditer(r"\S+", text[label.end() :]))
        padding = next(
            (index for index, word in enumerate(words) if word[0].strip(".")),
            len(words),
        )
        branch = self.main if len(address) == 1 else self.branch(address, padding)
        number = address[-1][0]
        if branch is self.main and not branch.plies and padding:
            self.padded = True
        half = branch.last[1] if number == branch.last[0] and not padding else padding
        self.turn = []
        for word in words[padding:]:
            column = label.end() + word.start() + 1
            if word[0] == _RESIGNS and word is words[-1] and branch is self.main:
                self.resigned = True
                continue
            self.turn.append(self.ply(word[0], rules.size, half, line, column))
            branch.named[number, half] = len(branch.plies)
            branch.plies.append(self.turn[-1])
            half += 1
        branch.last = number, half

    def ply(self, word: str, size: int, half: int, line: int, column: int) -> _Draft:
        try:
            origin, target, captures = parse_move(word, size)
        except MoveTextError as error:
            raise self.fail(line, f"{shown(word)}: {error}", column) from None
        self.plies += 1
        if self.plies > PLY_LIMIT:
            raise self.fail(line, f"{shown(word)}: expected at most {PLY_LIMIT} plies in one game", column)
        return _Draft(board.move(origin, target), captures or (), half, line)

    def branch(self, address: Address, padding: int) -> _Branch:
        """The variation at an address, begun now if it is new; it leads nowhere if it could replace no ply."""
        key = address[:-1]
        found = self.branches.get(key)
        if found is not None:
            return found
        found = self.branches[key] = _Branch()
        parent = self.main if len(key) == 2 else self.branches.get(key[:-2], found)
        index = parent.named.get(key[-2], len(parent.plies))
        if index < len(parent.plies) and parent is not self.main:
            index = _replaced(parent, index, padding)
        if index < len(parent.plies):
            parent.plies[index].variations.append(found)
        else:
            self.losses.add("variations that replace no move")
        return found

    def comment(self, turn: list[_Draft], text: str) -> None:
        """The comments of a turn, one for each of its moves."""
        if not turn:
            return
        parts = text.split("|")
        parts[len(turn) - 1 :] = ["|".join(parts[len(turn) - 1 :])]
        for draft, part in zip(turn, parts, strict=False):
            clock = _CLOCK.match(part)
            if clock is not None:
                draft.clock = int(clock[1]) * 1000
                self.losses.add(
                    "overtime and increments in clocks", bool(int(clock[3]) or int(clock[4] or 0))
                )
                part = part[clock.end() :]
            draft.comment += part

    def freeze(self, branch: _Branch) -> tuple[Ply, ...]:
        """A line as values."""
        plies = []
        for draft in branch.plies:
            variations = tuple(self.freeze(line) for line in draft.variations if line.plies)
            ply = Ply(
                draft.move,
                draft.captures,
                clock=draft.clock,
                comment=draft.comment,
                variations=variations,
            )
            self.places[id(ply)] = draft.line
            plies.append(ply)
        return tuple(plies)

    def game(self) -> Game:
        """The game that is complete now."""
        try:
            record = self.record(self.known_rules(self.begun))
        except RecordError:
            raise
        except ValueError as error:
            raise self.fail(self.begun, str(error)) from None
        game = Game(record, self.begun, self.places)
        self.clear()
        return game

    def record(self, variant: Variant) -> GameRecord:
        tags: list[tuple[str, str]] = []
        reason: Reason | None = None
        start: str | None = None
        players = {"attackers": "", "defenders": ""}
        comments: list[str] = []
        first = Side.of(variant.first)
        to_move = first.other if self.padded else first
        plies = self.freeze(self.main)
        result = (self.given("result") or ("?", 0))[0].strip()
        verdict = _RESULTS.get(result)
        self.losses.add(f"the result {shown(result)}", result not in _RESULTS)
        if self.resigned and verdict is None:
            verdict = _VERDICTS[_side_to_move(plies, to_move).other]
        for name, text, line in self.tags:
            key = name.lower()
            if key in players:
                players[key] = text
            elif key == "termination" and reason is None and verdict is not None and text in _REASONS:
                reason = _REASONS[text]
            elif key == "position":
                try:
                    setup = parse_board(text.strip(), variant.size)
                except SetupError as error:
                    raise self.fail(line, f"the tag position: {error}") from None
                start = format_fen(Setup(setup.size, setup.pieces, setup.side or to_move))
            elif key in (_START_COMMENT, "starting-comment"):
                comments.append(text)
            elif key not in ("rules", "result", "variant"):
                tags.append((_tag_name(name, self.losses), text))
        if self.resigned and reason is None:
            reason = Reason.RESIGNATION
        outcome = None
        if reason is not None:
            outcome, verdict = Outcome(None if verdict == "draw" else Side.of(verdict or ""), reason), None
        rules = carried(variant)
        named = (self.given("variant") or (variant.name, 0))[0]
        if rules is None and named.lower() not in (variant.name, *variant.aliases):
            tags.append(("otn-variant", named))
        return GameRecord(
            variant.name if rules is None else named,
            start,
            plies,
            outcome,
            (players["attackers"], players["defenders"]),
            variant.hash,
            tuple(tags),
            "\n".join(comments),
            verdict,
            rules,
        )

    def end(self) -> Game | None:
        """The stream has ended: the last game, if there is one."""
        if self.quote:
            raise self.fail(self.quote_line, "a text in brackets begins here: expected ] at its end")
        if not self.begun:
            return None
        return self.game()


def _variant(text: str, named: str, opentafl: bool, find: Find) -> tuple[Variant, list[str]]:
    """The variant of a rules string, and what of the string was not understood.

    It is a shipped one if it is called so and has just these words, or if its rules are the same.
    """
    imported, problems = import_rules(text, opentafl)
    for name in (named, imported.name):
        try:
            variant = find(name)
        except VariantError:
            continue
        if isinstance(variant, Variant) and variant.rules.opentafl == opentafl and _rules(variant)[0] == text:
            return variant, problems
    return _shipped().get(imported.hash, imported), problems


@lru_cache(maxsize=1)
def _shipped() -> dict[str, Variant]:
    return {variant.hash: variant for variant in reversed(everything())}


def _replaced(branch: _Branch, index: int, padding: int) -> int:
    """The ply that a variation of a variation replaces, of which its address names one.

    OpenTafl names the ply before the one that is replaced; where the padding says that the variation begins at the
    ply that is named, and only there, that one is meant.
    """
    plies = branch.plies
    following = index + 1
    if plies[index].half == padding and (following == len(plies) or plies[following].half != padding):
        return index
    return following


def _side_to_move(plies: tuple[Ply, ...], first: Side) -> Side:
    """Who is to move after these plies, which end a turn."""
    place: Place = FIRST_PLACE
    for before, ply in pairwise(plies):
        place = next_place(place, before.move, ply.move)
    last = first if place[2] == 0 else first.other
    return last.other if plies else first


def _tag_name(name: str, losses: Losses) -> str:
    """A tag's name as records spell names."""
    try:
        check_tag_name(name)
    except ValueError:
        losses.add("characters in the names of tags (others stand for them)")
        return "otn-" + re.sub(r"[^A-Za-z0-9_-]", "-", name)[:60]
    return name
