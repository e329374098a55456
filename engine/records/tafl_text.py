r"""The project's own record for people and programs, `*.tafl`: tags, then numbered moves, in the manner of PGN.

    [Variant "brandubh"]
    [Attackers "anna"]
    [Result "d king_escaped"]

    {A short game.} 1. d2c2 {[%clk 0:04:59.250] solid} (1. d2b2 d3c3) 1... d3e3 2. a4a2xa3
    d

Games follow each other, with a blank line between them. Everything in a record is kept exactly: `\"` and `\\` stand
for themselves in tags, `\{`, `\}` and `\\` in comments, `\n` for a line feed, `\u1f;` for a character that text
cannot show, and a backslash at the end of a line joins it with the next one. docs/records.md describes the format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from .. import squares as board
from ..games.base_variant import AnyVariant
from ..moves_text import MoveTextError, format_move, parse_move_word
from ..sides import Outcome, Reason, Side
from ..wording import nearest
from .record import (
    DEPTH_LIMIT,
    FIRST_PLACE,
    PLY_LIMIT,
    RESERVED,
    TAGS_LIMIT,
    TEXT_LIMIT,
    GameRecord,
    Place,
    Ply,
    RuleSet,
    Verdict,
    check_tag_name,
    next_place,
    walk,
)
from .rule_sets import Find, finder, played_by, size_of
from .tafl_tokens import Token, tokens
from .text import Game, RecordError, Stream, at, lines, shown

_WIDTH: Final = 100
_CHUNK: Final = 60_000
"""Characters after which a long text is broken into lines, so that no line exceeds what is read."""
_UNKNOWN: Final = "unknown"
_NOT_TAKEN_DOWN: Final = "x?"
"""Behind a move: what it captured is not recorded, though it is for other moves of the game."""

_NUMBER: Final = re.compile(r"\A\d++\.++")

_HIDDEN: Final = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{1,6});|(.)|)", re.DOTALL)
_PLAIN: Final = {"n": "\n", '"': '"', "\\": "\\", "{": "{", "}": "}", "[": "["}

_NOTE: Final = re.compile(r"(?<!\\)\[%(clk|emt|eval|depth)(?: ([^\]\\]*+))?\] ?")
_NOTE_LIKE: Final = re.compile(r"\[(?=%(?:clk|emt|eval|depth)\b)")
_TIME: Final = re.compile(r"(-?)(\d{1,15}):([0-5]\d):([0-5]\d)(?:\.(\d{1,3}))?")
_WHOLE: Final = re.compile(r"-?\d{1,19}")

_RESULTS: Final[dict[str, Verdict | None]] = {"a": "a", "d": "d", "draw": "draw", "*": None}
_REASONS: Final = {reason.value: reason for reason in Reason}


# Writing


def write(record: GameRecord) -> str:
    """The record as text, a blank line at its end."""
    plies = list(walk(record.plies))
    bare = [ply.captures for ply in plies if not ply.captures]
    unknown = bool(bare) and all(captures is None for captures in bare)
    tags = [*_header(record, unknown), *record.tags]
    head = [f'[{name} "{_escape(text, tag=True)}"]' for name, text in tags]
    chunks = [f"{{{_escape(record.comment)}}}"] if record.comment else []
    chunks += _moves(record.plies, unknown)
    chunks.append(record.result or "*")
    return "\n".join([*head, "", *_wrapped(chunks), "", ""])


def _header(record: GameRecord, unknown: bool) -> Iterator[tuple[str, str]]:
    """The tags of the record's own fields."""
    yield "Variant", record.variant
    if record.rules_hash is not None:
        yield "RulesHash", record.rules_hash
    if record.rules is not None:
        for name, text in record.rules.switches:
            yield "Rule", f"{name} {text}"
        yield "Start", record.rules.rows
    if record.start is not None:
        yield "FEN", record.start
    for name, player in zip(("Attackers", "Defenders"), record.players, strict=True):
        if player:
            yield name, player
    if record.outcome is not None:
        yield "Result", record.outcome.text
    elif record.verdict is not None:
        yield "Result", record.verdict
    if unknown:
        yield "Captures", _UNKNOWN


def _moves(
    plies: tuple[Ply, ...], unknown: bool, place: Place = FIRST_PLACE, before: tuple[Place, int] | None = None
) -> Iterator[str]:
    """Numbers, moves, comments and variations, piece by piece; `before` is the place and the move of the ply before
    the first, which stands at `place`."""
    told = False
    for index, ply in enumerate(plies):
        if index and before is not None:
            place = next_place(*before, ply.move)
        turn, half, _ = place
        number = "" if half and told else f"{turn}{'...' if half else '.'} "
        yield number + _word(ply, unknown)
        notes = _notes(ply)
        if notes:
            yield notes
        for variation in ply.variations:
            yield "("
            first = place if before is None else next_place(*before, variation[0].move)
            yield from _moves(variation, unknown, first, before)
            yield ")"
        told = not notes and not ply.variations
        before = place, ply.move


def _word(ply: Ply, unknown: bool) -> str:
    """The move with its captures; `unknown` says that moves without captures have unknown ones."""
    if ply.captures is None:
        return board.move_name(ply.move) + ("" if unknown else _NOT_TAKEN_DOWN)
    return format_move(ply.move, ply.captures)


def _notes(ply: Ply) -> str:
    """The comment of a ply with all that is known about it, empty if there is nothing to say."""
    known = []
    if ply.clock is not None:
        known.append(f"[%clk {_time(ply.clock)}]")
    if ply.time is not None:
        known.append(f"[%emt {_time(ply.time)}]")
    if ply.cp is not None:
        known.append(f"[%eval {ply.cp}]")
    if ply.mate is not None:
        known.append(f"[%eval #{ply.mate}]")
    if ply.depth is not None:
        known.append(f"[%depth {ply.depth}]")
    if ply.comment:
        known.append(_NOTE_LIKE.sub(r"\[", _escape(ply.comment)))
    return f"{{{' '.join(known)}}}" if known else ""


def _time(ms: int) -> str:
    """Milliseconds as `h:mm:ss.mmm`."""
    seconds, ms_left = divmod(abs(ms), 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{'-' if ms < 0 else ''}{hours}:{minutes:02}:{seconds:02}.{ms_left:03}"


def _escape(text: str, tag: bool = False) -> str:
    chunks = [text[first : first + _CHUNK] for first in range(0, len(text), _CHUNK)] or [""]
    return "\\\n".join(_escape_chunk(chunk, tag) for chunk in chunks)


def _escape_chunk(text: str, tag: bool) -> str:
    text = text.replace("\\", "\\\\")
    if tag:
        text = text.replace('"', '\\"').replace("\n", "\\n")
    else:
        text = text.replace("{", "\\{").replace("}", "\\}")
    return _HIDDEN.sub(lambda match: f"\\u{ord(match[0]):x};", text)


def _wrapped(chunks: Iterable[str]) -> Iterator[str]:
    """The chunks as lines of moderate width; nothing inside a chunk is touched."""
    text, width, glue = "", 0, ""
    for chunk in chunks:
        if chunk == ")":
            glue = ""
        first, newline, _ = chunk.partition("\n")
        if text and glue and width + len(glue) + len(first) > _WIDTH:
            yield text
            text, width, glue = "", 0, ""
        text += glue + chunk
        width = len(chunk.rpartition("\n")[2]) if newline else width + len(glue) + len(chunk)
        glue = "" if chunk == "(" else " "
    yield text


# Reading


def read(
    stream: Stream, name: str = "record", find: Find | None = None, variant: AnyVariant | None = None
) -> Iterator[Game]:
    """The games of a stream, one at a time; `variant` is that of games that name none.

    Raises RecordError at the first place that cannot be read.
    """
    reader = _Reader(name, find or finder(), variant)
    for token in tokens(lines(stream, name), name):
        game = reader.take(token)
        if game is not None:
            yield game
    reader.end()


class _Draft:
    """A ply being read."""

    __slots__ = ("captures", "comments", "line", "move", "notes", "variations")

    def __init__(self, move: int, captures: tuple[int, ...] | None, line: int) -> None:
        self.move = move
        self.captures = captures
        self.line = line
        self.notes: dict[str, int] = {}
        self.comments: list[str] = []
        self.variations: list[tuple[Ply, ...]] = []


class _Reader:
    """Takes the pieces one by one and returns each game when it is complete."""

    def __init__(self, name: str, find: Find, variant: AnyVariant | None) -> None:
        self.name = name
        self.find = find
        self.variant = variant
        self.clear()

    def clear(self) -> None:
        """Ready for the next game."""
        self.begun = 0
        self.fields: dict[str, str] = {}
        self.switches: list[tuple[str, str]] = []
        self.tags: list[tuple[str, str]] = []
        self.comments: list[str] = []
        self.size = 0
        self.bare: tuple[int, ...] | None = ()
        self.stack: list[list[_Draft]] = []
        self.waiting: list[list[str]] = []
        self.places: dict[int, int] = {}
        self.plies = 0
        self.length = 0

    def take(self, token: Token) -> Game | None:
        """Add a piece; the game that it completes, if it does."""
        if not self.begun:
            self.begun = token.line
        if token.kind == "tag":
            self.tag(token)
            return None
        if not self.size:
            self.start_moves(token)
        match token.kind:
            case "comment":
                self.comment(token)
            case "open":
                self.open(token)
            case "close":
                self.close(token)
            case _:
                word = _NUMBER.sub("", token.text, count=1)
                if word in _RESULTS:
                    return self.result(token, word)
                if word and not (word.isascii() and word.isdecimal()):
                    self.move(token, word)
        return None

    def fail(self, token: Token, message: str) -> RecordError:
        return at(self.name, token.line, message, token.column)

    def count(self, token: Token, length: int) -> None:
        self.length += length
        if self.length > TEXT_LIMIT:
            raise self.fail(token, f"expected at most {TEXT_LIMIT} characters of text in one game")

    def tag(self, token: Token) -> None:
        if self.size:
            raise self.fail(
                token, f"the tag {shown(token.name)}: expected the game before to end with a, d, draw or *"
            )
        text = self.unescape(token)
        key = token.name.lower()
        if key == "rule":
            switch, _, value = text.partition(" ")
            self.count(token, len(switch) + len(value))
            self.switches.append((switch, value))
        elif key in RESERVED:
            if key in self.fields:
                raise self.fail(token, f"the tag {shown(token.name)}: expected it once")
            if key not in ("result", "captures"):
                self.count(token, len(text))
            self.fields[key] = text
        else:
            try:
                check_tag_name(token.name)
            except ValueError as error:
                raise self.fail(token, str(error)) from None
            self.count(token, len(token.name) + len(text))
            self.tags.append((token.name, text))
        if max(len(self.tags), len(self.switches)) > TAGS_LIMIT:
            raise self.fail(
                token, f"the tag {shown(token.name)}: expected at most {TAGS_LIMIT} tags in one game"
            )

    def start_moves(self, token: Token) -> None:
        """The tags are complete: learn from them how to read moves."""
        fields = self.fields
        captures = fields.get("captures", "")
        if captures not in ("", _UNKNOWN):
            raise self.fail(token, f"the tag Captures {shown(captures)}: expected {_UNKNOWN}")
        self.bare = None if captures else ()
        if not fields.keys() & {"variant", "start"} and self.variant is None:
            raise self.fail(
                token, f'{shown(token.text)}: expected a tag such as [Variant "copenhagen"] before'
            )
        if self.switches and "start" not in fields:
            raise self.fail(token, "rules without a start position: expected a tag Start with its rows")
        try:
            self.size = size_of(self.head(), self.find)
        except ValueError as error:
            raise self.fail(token, str(error)) from None
        self.stack = [[]]

    def head(self) -> GameRecord:
        """The record as far as the tags tell it, but for the result."""
        fields = self.fields
        record = GameRecord(
            fields.get("variant", ""),
            start=fields.get("fen"),
            players=(fields.get("attackers", ""), fields.get("defenders", "")),
            rules_hash=fields.get("ruleshash"),
            rules=RuleSet(fields["start"], tuple(self.switches)) if "start" in fields else None,
            tags=tuple(self.tags),
        )
        if "variant" not in fields and record.rules is None and self.variant is not None:
            record = played_by(record, self.variant)
        return record

    def comment(self, token: Token) -> None:
        line = self.stack[-1]
        draft = line[-1] if line else None
        if draft is not None:
            self.annotate(token, draft)
        elif len(self.stack) == 1:
            self.keep(token, token.text, self.comments)
        else:
            self.count(token, len(token.text))
            self.waiting[-1].append(token.text)

    def keep(self, token: Token, text: str, comments: list[str]) -> None:
        plain = self.unescape(token._replace(text=text))
        self.count(token, len(plain) + bool(comments))
        if plain:
            comments.append(plain)

    def annotate(self, token: Token, draft: _Draft) -> None:
        """A comment behind a ply: what is known about the ply, and free text."""
        for note in _NOTE.finditer(token.text):
            key, value = note.groups()
            field, number = self.note(token, key, value or "")
            if field in draft.notes or {"cp", "mate"} <= {field, *draft.notes}:
                raise self.fail(token, f"{shown(note[0].strip())}: expected one {key} for each ply")
            draft.notes[field] = number
        self.keep(token, _NOTE.sub("", token.text), draft.comments)

    def note(self, token: Token, key: str, value: str) -> tuple[str, int]:
        if key in ("clk", "emt"):
            match = _TIME.fullmatch(value)
            if match is None:
                raise self.fail(token, f"{key} {shown(value)}: expected a time such as 0:04:59.250")
            sign, hours, minutes, seconds, part = match.groups()
            ms = ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 1000 + int(
                (part or "0").ljust(3, "0")
            )
            return "clock" if key == "clk" else "time", -ms if sign else ms
        mate = key == "eval" and value.startswith("#")
        number = value[1:] if mate else value
        if _WHOLE.fullmatch(number) is None:
            expected = "centipawns such as -35, or #3" if key == "eval" else "a whole number"
            raise self.fail(token, f"{key} {shown(value)}: expected {expected}")
        return "depth" if key == "depth" else "mate" if mate else "cp", int(number)

    def unescape(self, token: Token) -> str:
        def plain(match: re.Match[str]) -> str:
            code, sign = match.groups()
            if code is not None and int(code, 16) <= 0x10FFFF:
                return chr(int(code, 16))
            if sign == "\n":
                return ""
            if code is not None or sign not in _PLAIN:
                raise self.fail(
                    token, f'{shown(match[0])}: expected one of \\n \\" \\\\ \\{{ \\}} \\[ \\u1f;'
                )
            return _PLAIN[sign]

        return _ESCAPE.sub(plain, token.text)

    def open(self, token: Token) -> None:
        if not self.stack[-1]:
            raise self.fail(token, "a variation: expected a move before it, which it replaces")
        if len(self.stack) > DEPTH_LIMIT:
            raise self.fail(token, f"a variation: expected variations at most {DEPTH_LIMIT} deep")
        self.stack.append([])
        self.waiting.append([])

    def close(self, token: Token) -> None:
        if len(self.stack) == 1:
            raise self.fail(token, "): expected ( before it")
        if not self.stack[-1]:
            raise self.fail(token, "a variation without moves: expected at least one")
        line = self.freeze()
        self.waiting.pop()
        self.stack[-1][-1].variations.append(line)

    def move(self, token: Token, word: str) -> None:
        bare = self.bare
        text = word
        if word.endswith(_NOT_TAKEN_DOWN):
            text, bare = word.removesuffix(_NOT_TAKEN_DOWN), None
        try:
            move, captures = parse_move_word(text, self.size)
        except MoveTextError as error:
            raise self.fail(token, f"{shown(word)}: {error}") from None
        self.plies += 1
        if self.plies > PLY_LIMIT:
            raise self.fail(token, f"{shown(word)}: expected at most {PLY_LIMIT} plies in one game")
        draft = _Draft(move, bare if captures is None else captures, token.line)
        line = self.stack[-1]
        line.append(draft)
        if len(line) == 1 and len(self.stack) > 1:
            for text in self.waiting[-1]:
                self.annotate(token._replace(text=text), draft)

    def freeze(self) -> tuple[Ply, ...]:
        """The innermost line as values."""
        plies = []
        for draft in self.stack.pop():
            try:
                ply = Ply(
                    draft.move,
                    draft.captures,
                    comment=" ".join(draft.comments),
                    variations=tuple(draft.variations),
                    **draft.notes,
                )
            except ValueError as error:
                raise at(self.name, draft.line, str(error)) from None
            self.places[id(ply)] = draft.line
            plies.append(ply)
        return tuple(plies)

    def result(self, token: Token, word: str) -> Game:
        if len(self.stack) > 1:
            raise self.fail(token, f"{shown(word)}: expected ) at the end of the variation")
        outcome, verdict = self.outcome(token, word)
        head = self.head()
        try:
            record = GameRecord(
                head.variant,
                head.start,
                self.freeze(),
                outcome,
                head.players,
                head.rules_hash,
                head.tags,
                " ".join(self.comments),
                verdict,
                head.rules,
            )
        except RecordError:
            raise
        except ValueError as error:
            raise at(self.name, self.begun, str(error)) from None
        game = Game(record, self.begun, self.places)
        self.clear()
        return game

    def outcome(self, token: Token, word: str) -> tuple[Outcome | None, Verdict | None]:
        """How the game ended by its tag and by the word behind its moves, which must agree."""
        text = self.fields.get("result", word)
        result, _, reason = text.partition(" ")
        if result not in _RESULTS:
            raise self.fail(
                token, f"the tag Result {shown(text)}: expected such as d king_escaped, draw or *"
            )
        if result != word:
            raise self.fail(token, f"{shown(word)}: expected {result}, as the tag Result says")
        verdict = _RESULTS[result]
        if not reason:
            return None, verdict
        if reason not in _REASONS or verdict is None:
            hint = nearest(reason, _REASONS)
            raise self.fail(
                token, f"the tag Result {shown(text)}: expected a reason such as king_escaped{hint}"
            )
        winner = None if verdict == "draw" else Side.of(verdict)
        return Outcome(winner, _REASONS[reason]), None

    def end(self) -> None:
        """The stream has ended: nothing may be unfinished."""
        if not self.begun:
            return
        if len(self.stack) > 1:
            raise at(self.name, self.begun, "the game that begins here ends in a variation: expected )")
        raise at(
            self.name,
            self.begun,
            "the game that begins here has no end: expected a, d, draw or * after its moves",
        )
