"""Played games: reading the collections, the checks of a replay, and what the recorded games themselves demand.

The recorded games are not part of the project; the tests that need them look in the folder named by HNEFI_CORPORA.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hnefi.engine import squares as board
from hnefi.engine.games.tafl.variant import Variant, find
from hnefi.engine.moves_text import MoveTextError, format_move, parse_move
from hnefi.engine.records import corpus
from hnefi.engine.records.corpus import CorpusError, CorpusGame
from hnefi.engine.records.replay import as_played, kernel_board, replay_file, replay_games
from hnefi.engine.sides import Outcome, Reason, Side


def sq(name: str) -> int:
    return board.parse(name, 19)


def move(text: str) -> int:
    origin, target, _ = parse_move(text, 19)
    return board.move(origin, target)


# Moves as text


@pytest.mark.parametrize(
    ("text", "captures"),
    [
        ("d1d3", None),
        ("d1-d3", None),
        ("d1d3xd4", ["d4"]),
        ("d1-d3xd4/e3", ["d4", "e3"]),
        ("d1-d3xe3xd4xe3", ["d4", "e3"]),
        ("d1d3xa10xa2xb1", ["a2", "a10", "b1"]),
        ("Kd1-d3--", None),
        ("cd1^d3", None),
        ("Nd1^=d3xcd4/ne3+", ["d4", "e3"]),
        ("d1=d3xd4++", ["d4"]),
    ],
)
def test_moves_in_every_spelling(text: str, captures: list[str] | None) -> None:
    expected = None if captures is None else tuple(map(sq, captures))
    assert parse_move(text, 11) == (sq("d1"), sq("d3"), expected)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "d1",
        "timeout",
        "d1 d3",
        "d1d3x",
        "D1D3",
        "d1d3xd4/",
        "d1--d3",
        "d1d3d5",
        "d1d²",
        "d1d3\n",
        "0000",
        "d1d3" + "xd4" * 200,
    ],
)
def test_what_is_no_move(text: str) -> None:
    with pytest.raises(MoveTextError, match=r"^not a move: expected origin and target such as d1d3$"):
        parse_move(text, 7)


@pytest.mark.parametrize(
    ("text", "name"),
    [("h1d1", "h1"), ("d1h1", "h1"), ("d1d8", "d8"), ("d0d1", "d0"), ("d01d2", "d01"), ("d1d3xz9", "z9")],
)
def test_squares_off_the_board(text: str, name: str) -> None:
    with pytest.raises(MoveTextError, match=f"^no square {name} on this 7x7 board$"):
        parse_move(text, 7)


def test_moves_are_written_bare_or_with_captures() -> None:
    assert format_move(move("d1d10")) == "d1d10"
    assert format_move(move("d1d3"), (sq("d4"), sq("e3"))) == "d1d3xd4xe3"


# Reading


def test_a_csv_line() -> None:
    game = corpus.parse_csv("d1-d3 e5-e2xf3xf2xf3,0,3,White", 7, 11)
    assert game == CorpusGame(
        7, ((move("d1d3"), ()), (move("e5e2"), (sq("f2"), sq("f3")))), "d", timeout=False
    ), "doubles are one capture, and nothing written means nothing taken"


@pytest.mark.parametrize(
    ("result", "expected"), [("White", "d"), ("Black", "a"), ("Draw", "draw"), ("Ongoing", None), ("", None)]
)
def test_results_of_csv(result: str, expected: str | None) -> None:
    assert corpus.parse_csv(f"d1-d3,0,0,{result}", 1, 11).result == expected


def test_an_empty_result_is_nothing_to_compare_with() -> None:
    assert corpus.parse_csv("d1-d3,0,0,Ongoing", 1, 11).compare
    assert not corpus.parse_csv("d1-d3,0,0,", 1, 11).compare


def test_timeout_is_no_move() -> None:
    game = corpus.parse_csv("d1-d3 timeout,0,0,Black", 1, 11)
    assert game.timeout
    assert len(game.plies) == 1


def test_a_json_line() -> None:
    text = '{"moves": "e4f4 d1d3", "refused": "g8g5", "result": "a", "ended_by": "illegal"}'
    game = corpus.parse_json(text, 3, 9)
    assert game.plies == ((move("e4f4"), None), (move("d1d3"), None)), "captures are not recorded here"
    assert game.refused == move("g8g5")
    assert not game.compare, "the result of a forfeit says nothing about the rules"
    assert corpus.parse_json('{"moves": "", "refused": "(unreadable)"}', 1, 9).refused is None
    ended = corpus.parse_json('{"moves": "", "result": "draw", "ended_by": "rules"}', 1, 9)
    assert (ended.result, ended.by_rules, ended.compare) == ("draw", True, True)


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("x.csv", "d1-d3,0,0", r"'d1-d3,0,0': expected 4 fields: .*found 3"),
        ("x.csv", "d1-d3,0,0,Blue", r"result 'Blue': expected White, Black, Draw, Ongoing or nothing"),
        ("x.csv", "d1-d3 d1-,0,0,White", r"ply 2 'd1-': not a move"),
        ("x.csv", "d1-d3 k1-k2,0,0,White", r"ply 2 'k1-k2': no square k1 on this 7x7 board"),
        ("x.csv", "timeout d1-d3,0,0,White", r"ply 1 'timeout': not a move"),
        ("x.csv", "d1-d3" * 100_000, r"expected 4 fields"),
        ("x.csv", "x" * 2_000_000, r"expected a line of at most 1048576 bytes"),
        ("x.jsonl", "{", r"'{': not JSON"),
        ("x.jsonl", "[" * 100_000, r"not JSON"),
        ("x.jsonl", "[]", r"expected an object with moves"),
        ("x.jsonl", '{"moves": 3}', r"expected an object with moves"),
        ("x.jsonl", '{"moves": "d1"}', r"ply 1 'd1': not a move"),
        ("x.jsonl", '{"moves": "", "result": 1}', r"result 1: expected a, d, draw or null"),
        ("x.jsonl", '{"moves": "", "result": []}', r"result \[\]: expected a, d, draw or null"),
        ("x.jsonl", '{"moves": "", "refused": 1}', r"refused 1: expected a move or null"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, name: str, line: str, message: str) -> None:
    path = tmp_path / name
    path.write_text("\n" + line + "\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=message) as caught:
        list(corpus.read(path, 7))
    assert str(caught.value).startswith(f"{path}:2: ")
    assert len(str(caught.value)) < len(str(path)) + 400


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"x.txt: expected a file ending in .csv or .jsonl"):
        list(corpus.read(tmp_path / "x.txt", 7))
    with pytest.raises(CorpusError, match=r"x.csv: No such file or directory: expected a readable file"):
        list(corpus.read(tmp_path / "x.csv", 7))
    (tmp_path / "y.csv").write_bytes(b"d1-d3,0,0,\xff")
    with pytest.raises(CorpusError, match=r"y.csv:1: byte 10: expected UTF-8"):
        list(corpus.read(tmp_path / "y.csv", 7))


def test_games_are_read_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("d1-d3,0,0,White\r\n\r\nd1-d2,0,0,\r\nbroken\r\n", encoding="utf-8")
    games = corpus.read(path, 7)
    assert next(games).line == 1
    assert next(games).line == 3
    with pytest.raises(CorpusError, match=":4: "):
        next(games)


# The checks of a replay, on a scripted board


class Scripted:
    """A board that knows which moves are legal, what they take, and after which ply the game ends."""

    def __init__(self, legal: dict[str, str], end: tuple[int, Outcome] | None = None) -> None:
        self.legal = {move(text): tuple(map(sq, taken.split())) for text, taken in legal.items()}
        self.end = end
        self.played = 0
        self.starts = 0

    def start(self) -> None:
        self.played = 0
        self.starts += 1

    def play(self, move: int, /) -> tuple[int, ...]:
        if move not in self.legal or self.outcome is not None:
            raise ValueError("blocked at d2")
        self.played += 1
        return self.legal[move]

    @property
    def outcome(self) -> Outcome | None:
        return self.end[1] if self.end and self.end[0] == self.played else None


LEGAL = {"d1d3": "", "d6d5": "e5 c5", "a1a2": ""}
ESCAPED = Outcome(Side.DEFENDERS, Reason.KING_ESCAPED)
TWO = ((move("d1d3"), ()), (move("d6d5"), (sq("c5"), sq("e5"))))
BARE = tuple((one, None) for one, _ in TWO)


def disagreements(game: CorpusGame, end: tuple[int, Outcome] | None = None, **switches: Any) -> list[str]:
    found = find("brandubh").with_switches(**switches)
    return [str(one) for one in replay_games([game], found, Scripted(LEGAL, end)).disagreements]


@pytest.mark.parametrize(
    ("game", "end", "expected"),
    [
        (CorpusGame(4, TWO, "d"), None, []),
        (CorpusGame(4, TWO, "d"), (2, ESCAPED), []),
        (CorpusGame(4, BARE, "a", compare=False), (2, ESCAPED), []),
        (CorpusGame(4, ((move("d1d4"), ()),), "d"), None, ["line 4 ply 1: d1d4 is illegal: blocked at d2"]),
        (
            CorpusGame(4, (TWO[0], (move("d6d5"), (sq("c5"),))), "d"),
            None,
            ["line 4 ply 2: d6d5xc5xe5 by the rules, d6d5xc5 recorded"],
        ),
        (
            CorpusGame(4, (*TWO[:1], (move("d6d5"), ())), "d"),
            None,
            ["line 4 ply 2: d6d5xc5xe5 by the rules, d6d5 recorded"],
        ),
        (
            CorpusGame(4, ((move("d1d3"), (sq("c5"),)),), "d"),
            None,
            ["line 4 ply 1: d1d3 by the rules, d1d3xc5 recorded"],
        ),
        (
            CorpusGame(4, TWO, "d"),
            (1, ESCAPED),
            ["line 4 ply 2: d6d5 was played after the end: d king_escaped"],
        ),
        (CorpusGame(4, TWO, "a"), (2, ESCAPED), ["line 4 ply 2: d king_escaped by the rules, a recorded"]),
        (
            CorpusGame(4, TWO, None),
            (2, ESCAPED),
            ["line 4 ply 2: d king_escaped by the rules, unfinished recorded"],
        ),
        (
            CorpusGame(4, BARE, "d", by_rules=True),
            None,
            ["line 4 ply 2: the game goes on by the rules, d recorded as their verdict"],
        ),
        (CorpusGame(4, BARE, None, refused=move("a1a3"), compare=False), None, []),
        (
            CorpusGame(4, BARE, None, refused=move("a1a2"), compare=False),
            None,
            ["line 4 ply 3: a1a2 was refused, but is legal"],
        ),
        (
            CorpusGame(4, BARE, None, refused=move("a1a3"), compare=False),
            (2, ESCAPED),
            ["line 4 ply 2: a1a3 was tried after the end: d king_escaped"],
        ),
        (CorpusGame(4, TWO, "d", timeout=True), None, []),
        (
            CorpusGame(4, TWO, "a", timeout=True),
            None,
            ["line 4 ply 2: a was to move when time ran out, a recorded"],
        ),
        (CorpusGame(4, TWO[:1], "a", timeout=True), None, []),
        (CorpusGame(4, TWO, None, timeout=True, compare=False), None, []),
        (CorpusGame(4, TWO, None, compare=False), (2, ESCAPED), []),
        (
            CorpusGame(4, TWO, "d", timeout=True),
            (2, ESCAPED),
            ["line 4 ply 2: time ran out after the end: d king_escaped"],
        ),
    ],
)
def test_each_check_of_a_replay(
    game: CorpusGame, end: tuple[int, Outcome] | None, expected: list[str]
) -> None:
    assert disagreements(game, end) == expected


def test_who_is_to_move_depends_on_who_began() -> None:
    assert disagreements(CorpusGame(4, TWO, "a", timeout=True), first="d") == []
    assert len(disagreements(CorpusGame(4, TWO, "d", timeout=True), first="d")) == 1


def test_a_report_counts_games_plies_ends_and_refusals() -> None:
    on = Scripted(LEGAL, (2, ESCAPED))
    games = [
        CorpusGame(1, TWO, "d"),
        CorpusGame(2, TWO[:1], None, refused=move("a1a3"), compare=False),
        CorpusGame(3, TWO, "a"),
        CorpusGame(4, (TWO[0], (move("a1a3"), ())), "a"),
    ]
    report = replay_games(games, find("brandubh"), on)
    assert (report.games, report.plies, report.refused, on.starts) == (4, 6, 1, 4)
    assert report.ends == {Reason.KING_ESCAPED: 2}
    assert [one.line for one in report.disagreements] == [3, 4]
    assert not report.agrees


def test_csv_is_played_without_adjudication_and_json_as_it_stands(tmp_path: Path) -> None:
    found = find("brandubh").with_switches(move_limit=3, quiet_limit=4, sealed="org", draw_fort="yes")
    seen: list[Variant] = []

    def make(variant: Variant) -> Scripted:
        seen.append(variant)
        return Scripted(LEGAL)

    csv, lines = tmp_path / "x.csv", tmp_path / "x.jsonl"
    csv.write_text("d1-d3 d6-d5xc5xe5xc5,0,3,White\n", encoding="utf-8")
    lines.write_text(json.dumps({"moves": "d1d3"}) + "\n", encoding="utf-8")
    assert replay_file(csv, found, make).agrees
    assert replay_file(csv, found, make, adjudicate=True).agrees
    assert replay_file(lines, found, make).agrees
    assert seen == [as_played(found), found, found]
    changed = set(seen[0].rules.changes()) ^ set(found.rules.changes())
    assert changed == {"move_limit", "quiet_limit", "sealed", "draw_fort"}
    assert seen[0].rules.repetition == "ignore"


# The recorded games

CORPORA = os.environ.get("HNEFI_CORPORA", "")
recorded = pytest.mark.skipif(not CORPORA, reason="HNEFI_CORPORA names no folder of recorded games")

GAMES = {
    "copenhagen.csv": (
        "copenhagen",
        (876, 44_155, 0),
        {"king_escaped": 123, "exit_fort": 21, "king_captured": 20, "surrounded": 10, "no_legal_move": 5},
    ),
    "brandubh.csv": ("brandubh", (263, 5_665, 0), {"king_captured": 44, "king_escaped": 17}),
    "bologna.jsonl": (
        "tablut-bologna",
        (436, 12_417, 8),
        {"king_captured": 188, "king_escaped": 152, "repetition": 36},
    ),
}


@recorded
@pytest.mark.parametrize("file", GAMES)
def test_recorded_games_agree(file: str) -> None:
    name, counts, ends = GAMES[file]
    report = replay_file(Path(CORPORA, file), find(name))
    assert [str(one) for one in report.disagreements] == []
    assert (report.games, report.plies, report.refused) == counts
    assert {str(reason): count for reason, count in report.ends.items()} == ends


# Wrong readings of the rules and how many games each of them breaks: what the replay above is able to see.
WRONG = [
    ("copenhagen.csv", {"shieldwall": "off"}, 26),
    ("copenhagen.csv", {"shieldwall_closer": "any"}, 10),
    ("copenhagen.csv", {"king_armed": "no"}, 593),
    ("brandubh.csv", {"king_sides_on_throne": 2}, 16),
    ("brandubh.csv", {"throne_hostile_empty": "all"}, 22),
    ("brandubh.csv", {"throne_hostile_empty": "none"}, 94),
    ("brandubh.csv", {"corner_hostile": "none"}, 63),
    ("brandubh.csv", {"throne_pass": "king"}, 92),
    ("brandubh.csv", {"throne_enter": "men"}, 98),
    ("brandubh.csv", {"king_armed": "no"}, 81),
    ("bologna.jsonl", {"camp_soft": "none"}, 105),
    ("bologna.jsonl", {"attacker_camp_hostile": "defenders"}, 159),
    ("bologna.jsonl", {"throne_hostile_held": "attackers"}, 140),
    ("bologna.jsonl", {"king_sides": 4}, 135),
    ("bologna.jsonl", {"throne_hostile_empty": "men"}, 32),
    ("bologna.jsonl", {"repetition_count": 3}, 36),
    ("bologna.jsonl", {"encirclement": "apart"}, 1),
]


@recorded
@pytest.mark.parametrize(("file", "switches", "broken"), WRONG)
def test_wrong_readings_break_games(file: str, switches: dict[str, Any], broken: int) -> None:
    wrong = find(GAMES[file][0]).with_switches(**switches)
    assert len(replay_file(Path(CORPORA, file), wrong).disagreements) == broken


@recorded
def test_missed_ends_show_only_in_the_counts() -> None:
    wrong = find("brandubh").with_switches(king_sides_beside_throne=4)
    report = replay_file(Path(CORPORA, "brandubh.csv"), wrong)
    assert report.agrees
    assert report.ends[Reason.KING_CAPTURED] == 38


def test_the_engines_board_is_a_board() -> None:
    """The contract of `Board`, on the fast board, for a game of two plies."""
    on = kernel_board(find("brandubh"))
    on.start()
    assert on.outcome is None
    assert on.play(move("a4a2")) == ()
    assert on.play(move("d3a3")) == (sq("a2"),)
    with pytest.raises(ValueError):
        on.play(move("d3a3"))
    on.start()
    assert on.play(move("a4a2")) == ()


def test_the_format_follows_the_ending() -> None:
    assert corpus.corpus_format("games.CSV") == "csv"
    assert corpus.corpus_format("games.jsonl") == "jsonl"
