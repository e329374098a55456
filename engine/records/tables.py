"""Games as lines: CSV as in collections of played games, and JSON lines, theirs and our own.

CSV has `moves,captures by a,captures by d,result`, without header (`corpus` says more). Our JSON holds a
whole record in one object and has the keys of the collections' JSON too, so programs that read those read ours:

    {"variant": "brandubh", "moves": "d2c2 d3e3 a4a2xa3", "captures": true, "result": "d", "reason": "king_escaped"}

`captures` true says that moves without captured squares took nothing; with anything more known about a ply, `plies`
lists all plies as objects. Keys that are not ours become tags. docs/records.md lists the keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from .. import squares as board
from ..games.base_variant import AnyVariant, VariantError
from ..games.tafl.fen import SetupError, parse_fen
from ..moves_text import MoveTextError, format_move, parse_move_word
from ..sides import Outcome, Reason, Side
from ..wording import nearest
from .corpus import parse_csv
from .record import (
    DEPTH_LIMIT,
    FIRST_PLACE,
    NUMBER_LIMIT,
    PLY_LIMIT,
    GameRecord,
    Place,
    Ply,
    RuleSet,
    Verdict,
    check_tag_name,
    next_place,
)
from .rule_sets import Find, carried, finder, size_of, variant_of, without_adjudication
from .text import JSON_LINE_LIMIT, Game, Losses, RecordError, Stream, at, lines, shown

_RESULTS: Final = {"a": "Black", "d": "White", "draw": "Draw", None: "Ongoing"}
_TIMEOUT: Final = "timeout"
UNRECORDED: Final = ("result_recorded", "no")
"""The tag of a game whose line has no result at all, which is not the same as an unfinished game."""

# CSV


def read_csv(stream: Stream, name: str, variant: AnyVariant, adjudicate: bool = False) -> Iterator[Game]:
    """The games of a CSV stream, all played by `variant`, without repetitions and limits unless `adjudicate`.

    Raises RecordError at the first line that cannot be read.
    """
    played = variant if adjudicate else without_adjudication(variant)
    rules, rules_hash = carried(played), played.hash
    size = max(variant.files, variant.ranks)
    for number, text in lines(stream, name):
        if not text.strip():
            continue
        try:
            game = parse_csv(text.strip(), number, size)
            outcome: Outcome | None = None
            verdict = game.result
            tags: tuple[tuple[str, str], ...] = ()
            if game.timeout and verdict is not None:
                winner = None if verdict == "draw" else Side.of(verdict)
                outcome, verdict = Outcome(winner, Reason.TIME), None
            elif game.timeout:
                tags = (("ended_by", _TIMEOUT),)
            if not game.compare:
                tags += (UNRECORDED,)
            plies = tuple(Ply(move, captures) for move, captures in game.plies)
            record = GameRecord(
                played.name,
                plies=plies,
                outcome=outcome,
                rules_hash=rules_hash,
                tags=tags,
                verdict=verdict,
                rules=rules,
            )
        except ValueError as error:
            raise at(name, number, str(error)) from None
        yield Game(record, number)


def write_csv(record: GameRecord, losses: Losses, find: Find) -> str:
    """The record as one line of CSV; RecordError if stones were placed in it, for which CSV has no words."""
    _count_losses(record, losses)
    words = [_dashed(ply) for ply in record.plies]
    if _timed_out(record):
        words.append(_TIMEOUT)
    by = [0, 0]
    first = _first_side(record, find)
    place: Place = FIRST_PLACE
    before: int | None = None
    for ply in record.plies:
        if before is not None:
            place = next_place(place, before, ply.move)
        by[first ^ place[2]] += len(ply.captures or ())
        before = ply.move
    result = "" if record.result is None and UNRECORDED in record.tags else _RESULTS[record.result]
    return f"{' '.join(words)},{by[0]},{by[1]},{result}\n"


def _dashed(ply: Ply) -> str:
    """`d1-d3xd4xe3`."""
    origin, target = board.origin(ply.move), board.target(ply.move)
    if origin == target:
        raise RecordError(
            f"{board.move_name(ply.move)}: expected moves from square to square: CSV has no others"
        )
    return "-".join((board.name(origin), format_move(board.move(target, target), ply.captures or ())))


def _timed_out(record: GameRecord) -> bool:
    if record.outcome is not None:
        return record.outcome.reason is Reason.TIME
    return record.tag("ended_by") == _TIMEOUT


def _first_side(record: GameRecord, find: Find) -> Side:
    """The side that made the first move of the record; the attackers if it does not say."""
    try:
        side = parse_fen(record.start).side if record.start is not None else None
        return Side.of(variant_of(record, find).first) if side is None else side
    except (SetupError, VariantError):
        return Side.ATTACKERS


def _count_losses(record: GameRecord, losses: Losses) -> None:
    """What this game holds and a line of CSV cannot."""
    losses.add("the variant")
    losses.add("rules that are no shipped variant", record.rules is not None)
    losses.add("start positions", record.start is not None)
    losses.add("players", record.players != ("", ""))
    losses.add("tags", sum(pair not in (("ended_by", _TIMEOUT), UNRECORDED) for pair in record.tags))
    losses.add("why the game ended", record.outcome is not None and record.outcome.reason is not Reason.TIME)
    losses.add("comments", bool(record.comment))
    for ply in record.plies:
        losses.add("that captures are not recorded", ply.captures is None)
        losses.add("clocks and times", ply.clock is not None or ply.time is not None)
        losses.add("evaluations and depths", any(x is not None for x in (ply.cp, ply.mate, ply.depth)))
        losses.add("comments", bool(ply.comment))
        losses.add("variations", len(ply.variations))


# JSON

_NUMBERS: Final = ("clock", "time", "cp", "mate", "depth")
_PLY_KEYS: Final = frozenset(("move", "captures", "comment", "variations", *_NUMBERS))
_TEXTS: Final = ("variant", "rules_hash", "start", "attackers", "defenders", "comment")
_REASONS: Final = {reason.value: reason for reason in Reason}
_KEYS: Final = frozenset((*_TEXTS, "rules", "result", "reason", "captures", "moves", "plies", "tags"))
_COLLECTION_KEYS: Final = ("refused", "ended_by")
"""Tags that readers of collections look for as keys of their own."""


def read_json(
    stream: Stream,
    name: str,
    find: Find | None = None,
    variant: AnyVariant | None = None,
    losses: Losses | None = None,
) -> Iterator[Game]:
    """The games of JSON lines; `variant` is that of games that name none. RecordError at the first bad line."""
    find = find or finder()
    losses = Losses() if losses is None else losses
    for number, text in lines(stream, name, JSON_LINE_LIMIT):
        if not text.strip():
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:  # the latter from lists nested thousands deep
            raise at(name, number, f"{shown(text)}: not JSON: {shown(str(error))[1:-1]}") from None
        try:
            record = from_json(value, find, variant, losses)
        except ValueError as error:
            raise at(name, number, str(error)) from None
        yield Game(record, number)


def write_json(record: GameRecord) -> str:
    """The record as one line of JSON; RecordError if it is too long to be read again."""
    text = json.dumps(to_json(record), separators=(", ", ": ")) + "\n"
    if len(text) > JSON_LINE_LIMIT:
        raise RecordError(f"a game of {len(text)} bytes of JSON: expected at most {JSON_LINE_LIMIT}")
    return text


def to_json(record: GameRecord) -> dict[str, Any]:
    """The whole record as one JSON object; `from_json` gives it back."""
    value: dict[str, Any] = {"variant": record.variant}
    if record.rules_hash is not None:
        value["rules_hash"] = record.rules_hash
    if record.rules is not None:
        value["rules"] = {
            "start": record.rules.rows,
            "switches": [list(pair) for pair in record.rules.switches],
        }
    if record.start is not None:
        value["start"] = record.start
    value |= {
        name: text for name, text in zip(("attackers", "defenders"), record.players, strict=True) if text
    }
    if record.comment:
        value["comment"] = record.comment
    bare = [ply.captures for ply in record.plies if not ply.captures]
    known = bool(bare) and None not in bare
    plain = known or all(captures is None for captures in bare)
    value["moves"] = " ".join(format_move(ply.move, ply.captures or ()) for ply in record.plies)
    if known:
        value["captures"] = True
    if not plain or any(ply != Ply(ply.move, ply.captures) for ply in record.plies):
        value["plies"] = [_ply_to_json(ply) for ply in record.plies]
    value["result"] = record.result
    if record.outcome is not None:
        value["reason"] = record.outcome.reason.value
    if record.tags:
        for key in _COLLECTION_KEYS:
            text = record.tag(key)
            if text is not None:
                value[key] = text
        value["tags"] = [list(pair) for pair in record.tags]
    return value


def _ply_to_json(ply: Ply) -> dict[str, Any]:
    value: dict[str, Any] = {"move": board.move_name(ply.move)}
    if ply.captures is not None:
        value["captures"] = [board.name(sq) for sq in ply.captures]
    value |= {name: number for name in _NUMBERS if (number := getattr(ply, name)) is not None}
    if ply.comment:
        value["comment"] = ply.comment
    if ply.variations:
        value["variations"] = [[_ply_to_json(other) for other in line] for line in ply.variations]
    return value


def from_json(
    value: object,
    find: Find | None = None,
    variant: AnyVariant | None = None,
    losses: Losses | None = None,
) -> GameRecord:
    """The record that a JSON object holds; `variant` is that of an object that names none.

    Keys that are not ours become tags; what is neither text nor number is counted in `losses`. Raises ValueError
    saying which key is wrong and what was expected.
    """
    if not isinstance(value, dict):
        raise ValueError(f"{shown(str(value))}: expected an object with moves, a text")
    find = find or finder()
    texts = {key: _typed(value, key, str, "a text") for key in _TEXTS}
    rules = _rules(value.get("rules"))
    name, rules_hash = texts["variant"], texts["rules_hash"]
    if name is None and variant is not None and rules is None:
        name, rules, rules_hash = variant.name, carried(variant), rules_hash or variant.hash
    if name is None:
        raise ValueError("variant: expected the name of one")
    size = size_of(GameRecord(name, rules=rules), find)
    outcome, verdict = _outcome(value.get("result"), value.get("reason"))
    return GameRecord(
        name,
        texts["start"],
        _plies(value, size),
        outcome,
        (texts["attackers"] or "", texts["defenders"] or ""),
        rules_hash,
        _tags(value, Losses() if losses is None else losses),
        texts["comment"] or "",
        verdict,
        rules,
    )


def _typed(value: Mapping[str, Any], key: str, kind: type, expected: str) -> Any:
    found = value.get(key)
    if found is not None and not isinstance(found, kind):
        raise ValueError(f"{key} {shown(str(found))}: expected {expected}")
    return found


def _rules(value: object) -> RuleSet | None:
    if value is None:
        return None
    pairs = value.get("switches", []) if isinstance(value, dict) else None
    rows = value.get("start") if isinstance(value, dict) else None
    if not isinstance(rows, str) or not _are_pairs(pairs):
        raise ValueError(
            f"rules {shown(str(value))}: expected an object with start, rows, and switches, pairs of texts"
        )
    return RuleSet(rows, tuple((name, text) for name, text in pairs or ()))


def _are_pairs(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(text, str) for text in pair)
        for pair in value
    )


def _outcome(result: object, reason: object) -> tuple[Outcome | None, Verdict | None]:
    if result not in ("a", "d", "draw", None):
        raise ValueError(f"result {shown(str(result))}: expected a, d, draw or null")
    verdict: Verdict | None = next((word for word in ("a", "d", "draw") if word == result), None)
    if reason is None:
        return None, verdict
    if not isinstance(reason, str) or reason not in _REASONS:
        hint = nearest(str(reason), _REASONS)
        raise ValueError(f"reason {shown(str(reason))}: expected a reason such as king_escaped{hint}")
    if verdict is None:
        raise ValueError(f"reason {shown(reason)} without a result: expected a, d or draw as result")
    return Outcome(None if verdict == "draw" else Side.of(verdict), _REASONS[reason]), None


def _plies(value: Mapping[str, Any], size: int) -> tuple[Ply, ...]:
    moves, listed = value.get("moves"), value.get("plies")
    if moves is None and isinstance(listed, list):
        return _ply_list(listed, size, "plies", 0)
    if not isinstance(moves, str):
        raise ValueError(f"moves {shown(str(moves))}: expected a text with moves")
    known = _typed(value, "captures", bool, "true where moves without captured squares took nothing")
    words = moves.split()
    if len(words) > PLY_LIMIT:
        raise ValueError(f"{len(words)} moves: expected at most {PLY_LIMIT}")
    bare: tuple[int, ...] | None = () if known else None
    plies = []
    for number, word in enumerate(words, start=1):
        try:
            move, captures = parse_move_word(word, size)
        except MoveTextError as error:
            raise ValueError(f"ply {number} {shown(word)}: {error}") from None
        plies.append(Ply(move, bare if captures is None else captures))
    if listed is None:
        return tuple(plies)
    if not isinstance(listed, list):
        raise ValueError(f"plies {shown(str(listed))}: expected a list of objects")
    full = _ply_list(listed, size, "plies", 0)
    if [ply.move for ply in full] != [ply.move for ply in plies]:
        raise ValueError("moves and plies: expected the same moves in both")
    return full


def _ply_list(values: list[object], size: int, where: str, depth: int) -> tuple[Ply, ...]:
    if depth > DEPTH_LIMIT:
        raise ValueError(f"plies: expected variations at most {DEPTH_LIMIT} deep")
    return tuple(
        _ply(value, size, f"{where} {number}", depth) for number, value in enumerate(values, start=1)
    )


def _ply(value: object, size: int, where: str, depth: int) -> Ply:
    if not isinstance(value, dict) or not isinstance(value.get("move"), str):
        raise ValueError(f"{where} {shown(str(value))}: expected an object with move, a text")
    unknown = sorted(value.keys() - _PLY_KEYS)
    if unknown:
        raise ValueError(f"{where} {shown(unknown[0])}: expected one of {', '.join(sorted(_PLY_KEYS))}")
    taken, variations = value.get("captures"), value.get("variations", [])
    if not isinstance(variations, list) or not all(isinstance(line, list) for line in variations):
        raise ValueError(f"{where} variations: expected lists of plies")
    if taken is not None and not (isinstance(taken, list) and all(isinstance(sq, str) for sq in taken)):
        raise ValueError(f"{where} captures {shown(str(taken))}: expected a list of squares")
    comment = _typed(value, "comment", str, "a text") or ""
    try:
        move, _ = parse_move_word(value["move"], size)
        captures = None if taken is None else parse_captures(taken, size)
        return Ply(
            move,
            captures,
            comment=comment,
            variations=tuple(_ply_list(line, size, where, depth + 1) for line in variations),
            **{name: value.get(name) for name in _NUMBERS},
        )
    except ValueError as error:
        text = str(error)
        raise ValueError(text if text.startswith("plies") else f"{where}: {text}") from None


def parse_captures(names: Iterable[str], size: int) -> tuple[int, ...]:
    """Captured squares by name, sorted, each once."""
    return tuple(sorted({board.parse(name[:20], size) for name in names}, key=board.sort_key))


def _tags(value: Mapping[str, Any], losses: Losses) -> tuple[tuple[str, str], ...]:
    """The tags of an object: a list of pairs, or every key that is not ours."""
    listed = value.get("tags")
    if listed is not None:
        if not _are_pairs(listed):
            raise ValueError(f"tags {shown(str(listed))}: expected a list of pairs of texts")
        others = value.keys() - _KEYS - set(_COLLECTION_KEYS)
        losses.add("keys beside tags", len(others))
        return tuple((name, text) for name, text in listed)
    tags = []
    for name, text in value.items():
        if name in _KEYS or text is None:
            continue
        if not isinstance(text, str | int | float) or (type(text) is int and abs(text) > NUMBER_LIMIT):
            losses.add("JSON values other than text and numbers")
            continue
        try:
            check_tag_name(name)
        except ValueError:
            losses.add("JSON keys that cannot be the name of a tag")
            continue
        tags.append((name, text if isinstance(text, str) else json.dumps(text)))
    return tuple(tags)
