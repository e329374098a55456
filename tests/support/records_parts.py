"""Records that several tests read: short ones, and hostile ones."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hnefi.engine import squares as board
from hnefi.engine.games.tafl import variant
from hnefi.engine.moves_text import parse_move_word
from hnefi.engine.records.formats import Reading, read, write
from hnefi.engine.records.record import DEPTH_LIMIT, PLY_LIMIT, TEXT_LIMIT, GameRecord, Ply
from hnefi.engine.records.rule_sets import carried, finder, played_by
from hnefi.engine.records.text import LINE_LIMIT, Losses
from hnefi.engine.sides import Outcome, Reason, Side

FIND = finder()
ESCAPED = Outcome(Side.DEFENDERS, Reason.KING_ESCAPED)


def move(text: str) -> int:
    return parse_move_word(text, board.MAX_SIZE)[0]


def sq(name: str) -> int:
    return board.parse(name, board.MAX_SIZE)


def from_text(text: str, form: str = "tafl", name: str = "x", **how: Any) -> list[GameRecord]:
    """The games of a text."""
    return [game.record for game in games_of(text, form, name, **how)]


def into(form: str, record: GameRecord) -> tuple[str, Losses]:
    """A record as text, and what the format could not say."""
    losses = Losses()
    return write(record, form, FIND, losses), losses


def games_of(
    text: str | bytes, form: str, name: str = "x", losses: Losses | None = None, **how: Any
) -> list[Any]:
    data = text.encode() if isinstance(text, str) else text
    found = Losses() if losses is None else losses
    return list(read(io.BytesIO(data), name, form, Reading(FIND, **how), found))


BRANDUBH = played_by(GameRecord("?"), variant.find("brandubh"))
BIG_RULES = carried(variant.Variant.build("big", "/".join(["9t9"] + ["19"] * 8 + ["9K9"] + ["19"] * 9)))


SHORT = replace(
    BRANDUBH,
    plies=(
        Ply(move("a4a2"), (), clock=59_250, comment="a mistake"),
        Ply(
            move("d3a3"),
            (sq("a2"),),
            cp=-35,
            depth=9,
            variations=(
                (Ply(move("d3b3"), ()), Ply(move("b4b6"), (), comment="why not?")),
                (Ply(move("d3c3"), ()),),
            ),
        ),
        Ply(move("d7c7"), ()),
    ),
    outcome=Outcome(Side.DEFENDERS, Reason.RESIGNATION),
    players=("anna", "björn"),
    tags=(("Event", 'The "Thing"'), ("Round", "2")),
    comment="Brandubh, seven by seven.",
)


SHORT_TEXT = f"""\
[Variant "brandubh"]
[RulesHash "{BRANDUBH.rules_hash}"]
[Attackers "anna"]
[Defenders "björn"]
[Result "d resignation"]
[Event "The \\"Thing\\""]
[Round "2"]

{{Brandubh, seven by seven.}} 1. a4a2 {{[%clk 0:00:59.250] a mistake}} 1... d3a3xa2
{{[%eval -35] [%depth 9]}} (1... d3b3 2. b4b6 {{why not?}}) (1... d3c3) 2. d7c7 d

"""


HEAD = '[Variant "brandubh"]\n\n'


OTG = "[rules:dim:7 start:/3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3/]\n\n"


HOSTILE: list[tuple[str, str | bytes, str]] = [
    ("tafl", HEAD, r"x:1: the game that begins here has no end: expected a, d, draw or \*"),
    ("tafl", HEAD + "1. d1d3 (1. d1d2", r"x:1: the game that begins here ends in a variation: expected \)"),
    ("tafl", HEAD + "1. d1d3 (1. d1d2 d", r"x:3:18: 'd': expected \) at the end of the variation"),
    ("tafl", HEAD + "1. d1d3 d7d6) *", r"x:3:13: \): expected \( before it"),
    ("tafl", HEAD + "(1. d1d3) *", r"x:3:1: a variation: expected a move before it, which it replaces"),
    ("tafl", HEAD + "1. d1d3 () *", r"x:3:10: a variation without moves: expected at least one"),
    ("tafl", HEAD + "1. d1d3 {oops\n\n*", r"x:3:9: a comment begins here: expected \} at its end"),
    ("tafl", HEAD + "1. d1d3 } *", r"x:3:9: '} \*': expected a tag, a move or a comment"),
    ("tafl", HEAD + "1. d1d3 {a \\q} *", r"x:3:9: '\\\\q': expected one of \\n"),
    ("tafl", HEAD + "1. d1d3 {\\u110000;} *", r"x:3:9: '\\\\u110000;': expected one of \\n"),
    ("tafl", HEAD + "1. d1d9 *", r"x:3:4: 'd1d9': no square d9 on this 7x7 board"),
    ("tafl", HEAD + "1. d1d3? *", r"x:3:4: 'd1d3\?': not a move: expected origin and target such as d1d3"),
    ("tafl", HEAD + "1. d1d3x *", r"x:3:4: 'd1d3x': not a move"),
    ("tafl", HEAD + "1. d1d3 {[%clk 1:2]} *", r"x:3:9: clk '1:2': expected a time such as 0:04:59.250"),
    (
        "tafl",
        HEAD + "1. d1d3 {[%eval 0.35]} *",
        r"x:3:9: eval '0.35': expected centipawns such as -35, or #3",
    ),
    (
        "tafl",
        HEAD + "1. d1d3 {[%eval 1] [%eval #1]} *",
        r"x:3:9: '\[%eval #1\]': expected one eval for each ply",
    ),
    (
        "tafl",
        HEAD + "1. d1d3 {[%depth 9999999999999999999]} *",
        r"x:3: depth 9999999999999999999: expected a whole",
    ),
    ("tafl", HEAD + "1. d1d3 {[%clk 999999999999999:00:00]} *", r"x:3: clock .*: expected a whole number"),
    ("tafl", '[Variant "brandubh]\n*', r"x:1:10: the tag 'Variant': expected a quote that closes its text"),
    ("tafl", '[Variant "brandubh" x]\n*', r'x:1:19: the tag \'Variant\': expected "\] after its text'),
    (
        "tafl",
        "[Variant brandubh]\n*",
        r"x:1:1: '\[Variant brandubh\]': expected a tag such as \[Name \"text\"\]",
    ),
    ("tafl", '[Variant "brandubh"]\n[Variant "fetlar"]\n*', r"x:2:1: the tag 'Variant': expected it once"),
    ("tafl", '[Variant "x"]\n[1 "y"]\n*', r"x:2:1: tag '1': expected a letter"),
    (
        "tafl",
        '[Variant "x"]\n[Result "white"]\n*',
        r"x:3:1: the tag Result 'white': expected such as d king_escaped",
    ),
    (
        "tafl",
        '[Variant "x"]\n[Result "d king"]\nd',
        r"x:3:1: the tag Result 'd king': expected a reason .*king_",
    ),
    ("tafl", '[Variant "x"]\n[Result "d"]\na', r"x:3:1: 'a': expected d, as the tag Result says"),
    ("tafl", '[Variant "x"]\n[Result "* time"]\n*', r"x:3:1: the tag Result '\* time': expected a reason"),
    ("tafl", '[Variant "x"]\n[Captures "some"]\n*', r"x:3:1: the tag Captures 'some': expected unknown"),
    ("tafl", "1. d1d3 *", r"x:1:1: '1.': expected a tag such as \[Variant \"copenhagen\"\] before"),
    ("tafl", '[Variant "x"]\n[Rule "escape edge"]\n*', r"x:3:1: rules without a start position"),
    ("tafl", '[Variant "x"]\n[Start "40"]\n*', r"x:3:1: x: start: 1 row: expected 3 to 19"),
    ("tafl", f'[Variant "x"]\n[Start "{"/".join(["40"] * 40)}"]\n*', r"x:3:1: x: start: "),
    (
        "tafl",
        '[Variant "x"]\n[Start "3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3"]\n[Rule "escpe edge"]\n*',
        r"x:4:1: x: escpe: 'edge': expected the name of a rule switch \(did you mean escape\?\)",
    ),
    (
        "tafl",
        HEAD + '1. d1d3\n\n[Variant "brandubh"]\n*',
        r"x:5:1: the tag 'Variant': expected the game before to end",
    ),
    ("tafl", HEAD + "1. d1d3\0d7d6 *", r"x:3:8: a character U\+0000: expected text"),
    ("tafl", HEAD + "1. d1d3 {\x1b[2J} *", r"x:3:10: a character U\+001B: expected text"),
    ("tafl", '[Variant "\x07"]\n*', r"x:1:11: a character U\+0007: expected text"),
    ("tafl", HEAD.encode() + b"1. d1d3 {\xff} *", r"x:3: byte 9: expected UTF-8"),
    ("tafl", (HEAD + "*").encode("utf-16"), r"x:1: byte 0: expected UTF-8"),
    ("tafl", random.Random(1).randbytes(5000), r"x:1: byte \d+: expected UTF-8"),
    ("tafl", b"\x7fELF\x02\x01\x01" + bytes(100), r"x:1:1: a character U\+007F: expected text"),
    ("tafl", HEAD + "1. d1d3 " + "(" * 5000, r"x:3:10: a variation: expected a move before it"),
    (
        "tafl",
        HEAD + "d1d3 (" * 5000,
        rf"x:3:\d+: a variation: expected variations at most {DEPTH_LIMIT} deep",
    ),
    ("tafl", HEAD + "x" * 10_000_000, rf"x:3: expected a line of at most {LINE_LIMIT} bytes"),
    (
        "tafl",
        HEAD + "d1d3 d3d1\n" * (PLY_LIMIT // 2 + 1),
        rf"'d1d3': expected at most {PLY_LIMIT} plies in one game",
    ),
    (
        "tafl",
        HEAD + "d1d3 {" + "long\n" * 300_000 + "} *",
        rf"expected at most {TEXT_LIMIT} characters of text in one game",
    ),
    (
        "tafl",
        '[Variant "x"]\n' + '[a ""]\n' * 2000,
        r"x:1002:1: the tag 'a': expected at most 1000 tags in one game",
    ),
    (
        "tafl",
        '[Variant "x"]\n[Start "3/3/3"]\n' + '[Rule "a"]\n' * 2000,
        r"x:1003:1: the tag 'Rule': expected at most",
    ),
    ("otg", "1. d1-d3\n", r"x:1: no rules before the moves: expected a tag \[rules:dim:7"),
    ("otg", "[rules:dim:7]\n\n1. d1-d3\n", r"x:1: the tag rules: no start position"),
    ("otg", f"[rules:dim:40 start:/{'/'.join(['40'] * 40)}/]\n\n1. d1-d3\n", r"x:1: the tag rules: start: "),
    ("otg", OTG + "d1-d3\n", r"x:3:1: 'd1-d3': expected a turn such as 1. d1-d3 e5-e3"),
    ("otg", OTG + "1. d1-d9\n", r"x:3:4: 'd1-d9': no square d9 on this 7x7 board"),
    ("otg", OTG + "  1. d1-d3 d9\n", r"x:3:12: 'd9': not a move"),
    (
        "otg",
        OTG + "1a.1. d1-d3\n",
        r"x:3:1: the turn '1a.1.': expected a number, or an address such as 8a.1.2a.",
    ),
    ("otg", OTG + "1a." * 500 + " d1-d3\n", r"x:3:1: the turn '1a.*expected a number, or an address"),
    (
        "otg",
        OTG + "1. d1-d3\n[never closed\n",
        r"x:4: a text in brackets begins here: expected \] at its end",
    ),
    ("otg", OTG + "1. d1-d3\n[a] b\n", r"x:4:4: ' b': expected nothing after \]"),
    ("otg", "[date 2015]\n", r"x:1: '\[date 2015\]': expected a tag such as \[event:a friendly game\]"),
    ("otg", "[position:/7/7/]\n" + OTG + "1. d1-d3\n", r"x:1: the tag position: .*2 rows: expected 3 to 19"),
    ("otg", OTG + "1. d1-d3\n[\0]\n", r"x:4:2: a character U\+0000: expected text"),
    ("otg", "[a:]\n" * 2000, r"x:1001: expected at most 1000 tags in one game"),
    (
        "otg",
        OTG + "1. d1-d3\n[" + "long\n" * 300_000,
        rf"expected at most {TEXT_LIMIT} characters of text in one game",
    ),
    ("otg", OTG + "1. d1-d3 d7-d6\n" * 30_000, rf"expected at most {PLY_LIMIT} plies in one game"),
    ("csv", "d1-d3,0,0\n", r"x:1: 'd1-d3,0,0': expected 4 fields"),
    ("csv", "\nd1-d3 d9-d1,0,0,White\n", r"x:2: ply 2 'd9-d1': no square d9 on this 7x7 board"),
    ("csv", "d1-d3 " * 60_000 + ",0,0,White\n", rf"x:1: expected at most {PLY_LIMIT} plies"),
    ("csv", b"\0" * 100, r"x:1: .*expected 4 fields"),
    ("jsonl", "{", r"x:1: '{': not JSON: "),
    ("jsonl", "[" * 100_000, r"x:1: .*: not JSON: "),
    ("jsonl", '{"moves": ' + "9" * 5000 + "}", r"x:1: .*: not JSON: "),
    ("jsonl", "[]", r"x:1: '\[\]': expected an object with moves, a text"),
    ("jsonl", "{}", r"x:1: moves 'None': expected a text with moves"),
    ("jsonl", '{"moves": "d1d3", "variant": 3}', r"x:1: variant '3': expected a text"),
    ("jsonl", '{"moves": "d1d3", "result": "white"}', r"x:1: result 'white': expected a, d, draw or null"),
    ("jsonl", '{"moves": "d1d3", "result": []}', r"x:1: result '\[\]': expected a, d, draw or null"),
    (
        "jsonl",
        '{"moves": "", "result": "d", "reason": "king"}',
        r"x:1: reason 'king': expected a reason such as king_escaped",
    ),
    ("jsonl", '{"moves": "", "reason": "time"}', r"x:1: reason 'time' without a result: expected a, d"),
    (
        "jsonl",
        '{"moves": "d1d3", "plies": [{"move": "d1d2"}]}',
        r"x:1: moves and plies: expected the same moves",
    ),
    (
        "jsonl",
        '{"plies": [{"move": "d1d3", "clok": 3}]}',
        r"x:1: plies 1 'clok': expected one of captures, clock",
    ),
    (
        "jsonl",
        '{"plies": [{"move": "d1d3", "clock": 1e3}]}',
        r"x:1: plies 1: clock 1000.0: expected a whole number",
    ),
    ("jsonl", '{"plies": [{"move": "d1d3", "captures": ["z9"]}]}', r"x:1: plies 1: 'z9' is not a square"),
    (
        "jsonl",
        '{"plies": [{"move": "d1d3", "variations": [[]]}]}',
        r"x:1: plies 1: a variation without plies",
    ),
    (
        "jsonl",
        '{"plies": [' + '{"move": "d1d3", "variations": [[' * 80 + "]]}" * 80 + "]}",
        r"x:1: plies: expected variations at most",
    ),
    ("jsonl", '{"moves": "", "tags": [["fen", ""]]}', r"x:1: tag 'fen': expected a name that is not a field"),
    ("jsonl", '{"moves": "", "tags": {"a": "b"}}', r"x:1: tags .*: expected a list of pairs of texts"),
    ("jsonl", '{"moves": "", "rules": {"start": 3}}', r"x:1: rules .*: expected an object with start"),
    (
        "jsonl",
        '{"moves": "a20a21", "variant": "glima:40"}',
        r"x:1: ply 1 'a20a21': no square a20 on this 19x19 board",
    ),
]


class Endless:
    """A stream that repeats a line for ever."""

    def __init__(self, head: str, line: str) -> None:
        self.lines: Iterator[bytes] = iter([*head.encode().splitlines(keepends=True)])
        self.line = line.encode()
        self.read = 0

    def readline(self, size: int = -1, /) -> bytes:
        self.read += 1
        return next(self.lines, self.line)[: size if size >= 0 else None]
