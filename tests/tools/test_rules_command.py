"""`hnefi rules`, `hnefi rules diff` and `hnefi variants`, as people and programs call them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from hnefi.engine import games
from hnefi.engine.games.tafl.variant import everything, find, names
from hnefi.engine.svg import svg
from hnefi.tools import rules, variants

TINY = 'name = "{name}"\nstart = ["2t2", "2T2", "tTKTt", "2T2", "2t2"]\n'


@dataclasses.dataclass(frozen=True)
class Pebbles:
    """A variant of another game."""

    game: str = "pebbles"
    name: str = "pebbles:4x3"
    aliases: tuple[str, ...] = ("stones",)
    source: str = "Somewhere."
    description: str = "A game with pebbles."
    files: int = 4
    ranks: int = 3
    attackers: int = 4
    defenders: int = 4
    first: str = "a"
    rows: str = "4/4/4"
    startpos: str = "4/4/4 a 0 1"
    hash: str = "0" * 64

    def rules_lines(self) -> tuple[tuple[str, str], ...]:
        return (("pie", "yes"), ("throw", "underarm"))


@pytest.fixture
def pebbles(monkeypatch: pytest.MonkeyPatch) -> Pebbles:
    """`pebbles` is a game there is."""
    stone = Pebbles()

    class Start:
        def diagram(self) -> str:
            return "o o o o"

    known = rules.find_variant

    def find_variant(options: Any, word: str, path: str | None = None) -> Any:
        return stone if word == "pebbles" else known(options, word, path)

    monkeypatch.setattr(rules, "find_variant", find_variant)
    monkeypatch.setattr(games, "initial", lambda _: Start())
    return stone


def call(capsys: pytest.CaptureFixture[str], main: Any, *arguments: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of one call."""
    try:
        status = main(list(arguments))
    except SystemExit as stopped:
        status = int(stopped.code or 0)
    said = capsys.readouterr()
    return status, said.out, said.err


def test_what_is_no_variant(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, _, said = call(capsys, rules.main, "nosuch")
    assert (
        status,
        "'nosuch': expected a variant (`hnefi variants` lists them) or a .toml file\n" in said,
    ) == (
        2,
        True,
    )
    (tmp_path / "mine.txt").touch()
    status, _, said = call(capsys, rules.main, str(tmp_path / "mine.txt"))
    assert (status, "mine.txt': a file of rules must end in .toml\n" in said) == (2, True)


def test_a_drawing_is_printed_or_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = find("berserk")
    wanted = svg(found.rules, dict(found.start.pieces), title="berserk: start position")
    assert call(capsys, rules.main, "berserk", "--svg") == (0, wanted, "")
    assert call(capsys, rules.main, "--svg", "-", "berserk") == (0, wanted, "")
    file = tmp_path / "board.svg"
    assert call(capsys, rules.main, "berserk", "--svg", str(file)) == (0, "", "")
    assert file.read_text("utf-8") == wanted
    ET.parse(file)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("berserk --svg board.txt", "'board.txt': expected a file name ending in .svg"),
        (
            "berserk --svg /no/such/folder/board.svg",
            "No such file or directory: expected a file that can be written",
        ),
        ("berserk --svg --json", "not allowed with"),
        ("--svg berserk", "expected a file name ending in .svg"),
        ("diff", "required: A, B"),
        ("diff copenhagen", "required: B"),
        ("diff copenhagen fetlaar", "did you mean fetlar?"),
        ("diff copenhagen /no/such/file.toml", "No such file"),
        ("diff copenhagen fetlar brandubh", "unrecognized arguments: brandubh"),
    ],
)
def test_bad_input_gets_a_sentence(capsys: pytest.CaptureFixture[str], line: str, message: str) -> None:
    status, out, err = call(capsys, rules.main, *line.split())
    assert (status, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_a_slip_costs_no_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    own = tmp_path / "tiny.toml"
    own.write_text(TINY.format(name="tiny"))
    assert call(capsys, rules.main, "berserk", "--svg", str(own))[0] == 2
    assert own.read_text() == TINY.format(name="tiny")


def test_special_squares_are_named_below_the_board(capsys: pytest.CaptureFixture[str]) -> None:
    assert "x corner" in call(capsys, rules.main, "brandubh")[1]
    assert "x corner" not in call(capsys, rules.main, "tawlbwrdd")[1]


def test_two_variants_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = call(capsys, rules.main, "diff", "copenhagen", "fetlar")
    assert (status, err) == (0, "")
    assert out.splitlines()[:7] == [
        "shieldwall",
        (
            "  copenhagen  Shieldwall: a row of two or more pieces on the edge, each with an enemy in front, "
            "is taken as a whole when enemies hold both its ends; an empty corner square serves as one end."
        ),
        "  fetlar      There are no shieldwall captures.",
        "",
        "king_on_edge",
        "  copenhagen  Where four sides are needed, he cannot be taken on the edge.",
        "  fetlar      Where four sides are needed, he is taken on the edge only when he is the last of his side.",
    ]
    assert [line for line in out.splitlines() if line and line[0] != " "] == [
        "shieldwall",
        "king_on_edge",
        "exit_fort",
        "repetition",
    ]


def test_the_same_game_under_two_names(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    own = tmp_path / "diff.toml"
    own.write_text(TINY.format(name="diff") + "[rules]\nking_sides = 2\n")
    for extra in ((), ("--switches",)):
        status, out, _ = call(capsys, rules.main, "diff", "mini-cross", str(own), *extra)
        assert (status, out) == (0, "mini-cross and diff are the same game.\n")
    status, out, _ = call(capsys, rules.main, str(own))
    assert out.startswith("diff\n\n"), "a variant may be called so"


def test_switches_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    out = call(capsys, rules.main, "diff", "tablut", "historical-9", "--switches")[1]
    assert [line.split() for line in out.splitlines()] == [
        ["tablut-linnaeus", "tablut-saami"],
        ["throne_stop", "none", "K"],
        ["linnaean", "yes", "no"],
        ["encirclement", "off", "apart"],
        ["no_move", "draw", "lose"],
        ["repetition", "draw", "defenders_lose"],
    ]
    out = call(capsys, rules.main, "diff", "alea", "alea-ludii", "--switches")[1]
    start = next(line for line in out.splitlines() if line.startswith("start"))
    assert start.split() == ["start", find("alea").rows, find("alea-ludii").rows]


def test_differences_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(call(capsys, rules.main, "diff", "brandubh", "mini-cross", "--json")[1])
    assert (found["variants"], found["same"]) == (["brandubh", "mini-cross"], False)
    assert [difference["subject"] for difference in found["differences"]][:2] == ["board", "start"]
    assert found["switches"]["size"] == ["7", "5"]
    assert found["switches"]["repetition"] == ["defenders_lose", "draw"]
    assert found["switches"]["start"] == [find("brandubh").rows, find("mini-cross").rows]
    same = json.loads(call(capsys, rules.main, "diff", "tablut", "tablut-linnaeus", "--json")[1])
    assert (same["same"], same["differences"], same["switches"]) == (True, [], {})


def test_diff_takes_variants_of_ones_own(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY.format(name="tiny"))
    for words in (("tiny", "--path", str(tmp_path)), (str(tmp_path / "tiny.toml"),)):
        out = call(capsys, rules.main, "diff", "mini-cross", *words)[1]
        assert out.startswith("king_sides\n  mini-cross  The king is taken from two")


def test_another_game_is_shown_as_it_shows_itself(
    capsys: pytest.CaptureFixture[str], pebbles: Pebbles
) -> None:
    status, out, _ = call(capsys, rules.main, "pebbles")
    assert (status, out) == (
        0,
        "pebbles:4x3\n\no o o o\n\nA game with pebbles.\npie    yes\nthrow  underarm\n\nSource: Somewhere.\n",
    )
    assert call(capsys, rules.main, "pebbles", "--switches")[1] == "pie    yes\nthrow  underarm\n"
    assert call(capsys, rules.main, "pebbles", "--hash")[1] == f"{pebbles.hash}\n"
    found = json.loads(call(capsys, rules.main, "pebbles", "--json")[1])
    assert (found["game"], found["rules"], found["otn"]) == ("pebbles", dict(pebbles.rules_lines()), None)
    for line in ("pebbles --otn", "pebbles --svg", "diff pebbles fetlar", "diff fetlar pebbles"):
        status, out, err = call(capsys, rules.main, *line.split())
        assert (status, out) == (2, "")
        assert "pebbles:4x3: expected a tafl variant, not pebbles" in err


def test_the_list_is_grouped_by_board(capsys: pytest.CaptureFixture[str]) -> None:
    lines = variants.table(everything())
    assert set(lines) <= set(call(capsys, variants.main)[1].splitlines())
    assert lines[0].split() == ["name", "a", ":", "d", "first", "also", "called"]
    board = ""
    seen = []
    for line in lines[2:-3]:
        if " x " in line:
            board = line
        elif line:
            name, men, first, *aliases = line.replace(",", " ").split()
            seen.append(name)
            found = find(name)
            assert board == f"{found.size} x {found.size}"
            assert (men, first) == (f"{found.attackers}:{found.defenders}+K", found.rules.first)
            assert tuple(aliases) == found.aliases
    assert sorted(seen) == sorted(names())
    assert max(map(len, lines)) <= 80


def test_other_games_stand_apart() -> None:
    lines = variants.table([find("brandubh"), Pebbles()])
    assert lines[5] == "4 x 3, pebbles"
    assert lines[6].split() == ["pebbles:4x3", "4:4", "a", "stones"]
    assert variants.as_json(Pebbles())["files"] == 4


def test_all_rules_of_all_variants_can_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    for name in names():
        status, out, err = call(capsys, rules.main, name)
        assert (status, err) == (0, "")
        assert out.startswith(f"{name}\n\n   a b c")
        assert out.endswith(f"\n\nSource: {find(name).source}\n")
        found = json.loads(call(capsys, rules.main, name, "--json")[1])
        assert (found["name"], found["rules"]["size"]) == (name, str(find(name).size))
