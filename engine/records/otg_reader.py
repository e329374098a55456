"""Reading OpenTafl's game records, `*.otg`; `otg_writer.py` says what they look like.

What our record cannot hold is counted as lost, never dropped silently. docs/records.md describes the format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Final

from .. import squares as board
from ..games.base_variant import AnyVariant, VariantError
from ..games.tafl.fen import Setup, SetupError, format_fen
from ..games.tafl.otn import OtnError, import_rules, parse_board
from ..games.tafl.variant import Variant, everything
from ..moves_text import MoveTextError, parse_move
from ..sides import Outcome, Reason, Side
from .otg_writer import CLOCK, CONTROL, LETTERS, RESULTS, START_COMMENT, rules_text
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
)
from .rule_sets import Find, carried, finder
from .text import Game, Losses, RecordError, Stream, at, lines, shown

_VERDICTS: Final[tuple[Verdict, Verdict]] = ("a", "d")
_REASONS: Final = {reason.words: reason for reason in Reason}
_RESIGNS: Final = "---"

_TAG: Final = re.compile(r"\[([^\[\]:|]{1,64}):")
_LABEL: Final = re.compile(r"((?:\d{1,6}[a-z]?\.)+)\s*")
_ELEMENT: Final = re.compile(r"(\d+)([a-z]?)")

Element = tuple[int, int]
"""One part of a move's address: a number, and the place of its letter in the alphabet, -1 without one."""
Address = tuple[Element, ...]


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
        control = CONTROL.search(text)
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
    """Takes the lines one by one and returns each game when the next one begins."""

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
            raise self.fail(line, f"{shown(text[end + 1 :])}: expected nothing after ]", end + 2)
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

    def knownrules_text(self, line: int) -> Variant:
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
        rules = self.knownrules_text(line)
        indent = len(text) - len(text.lstrip())
        label = _LABEL.match(text, indent)
        if label is None:
            raise self.fail(
                line, f"{shown(text.strip())}: expected a turn such as 1. d1-d3 e5-e3", indent + 1
            )
        address = tuple(
            (int(number), LETTERS.find(letter) if letter else -1)
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
        """The variation at an address, begun now if it is new; it is ignored if it could replace no ply."""
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
            clock = CLOCK.match(part)
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
            record = self.record(self.knownrules_text(self.begun))
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
        verdict = RESULTS.get(result)
        self.losses.add(f"the result {shown(result)}", result not in RESULTS)
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
            elif key in (START_COMMENT, "starting-comment"):
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
        if (
            isinstance(variant, Variant)
            and variant.rules.opentafl == opentafl
            and rules_text(variant)[0] == text
        ):
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
    """The side to move after these plies, which end a turn."""
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
