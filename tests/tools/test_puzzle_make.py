"""New puzzles from recorded games: what is found is right by other code, each kind once, and work is continued."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hnefi.engine import games
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.solving.proof import Prover
from hnefi.engine.squares import move_name
from hnefi.protocol.hosts.puzzles.exercise import THEMES, prover_of
from hnefi.protocol.hosts.puzzles.suite import SHIPPED, Entry, parse, read, text_of
from hnefi.tools import cli
from hnefi.tools.tactics import make
from hnefi.tools.tactics.themes import ENDS, passed, themes_of, threats
from hnefi.tools.tactics.verify import Verifier

FOUND = games.find("brandubh")
assert isinstance(FOUND, Variant)
VARIANT: Variant = FOUND
WON = "d1f1 d5c5 f4f2 e4f4 d2b2 d4e4 b2e2 e4e7 a4a2 e7g7"
"""The king's move to the edge is the only one that wins."""
HELD = "d2f2 d3c3 d6b6 c3f3 f2g2 f3g3xg2 f4f5 e4e7 b6c6 d4d2 f5f7xe7 d2g2 a4a2 g2g1"
"""One move of the attackers does not lose, and another one was played later."""


OLDER = 41
"""The first puzzles of brandubh that shipped: none of them is found here."""


def mirrored(moves: str) -> str:
    return moves.translate(str.maketrans("abcdefg", "gfedcba"))


def collection(path: Path, *lines: str) -> Path:
    path.write_text("".join(json.dumps({"variant": "brandubh", "moves": line}) + "\n" for line in lines))
    return path


def made(*words: object) -> int:
    return make.main([*map(str, words), "--quiet", "--nodes", "300000"])


@pytest.fixture(scope="module", autouse=True)
def _older_suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A suite that knows none of these puzzles takes the place of the shipped one, which grows and has one of them."""
    path = tmp_path_factory.mktemp("shipped") / "suite.tsv"
    path.write_text(text_of([entry for entry in read(SHIPPED) if entry.variant == "brandubh"][:OLDER]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(make, "SHIPPED", path)
        yield


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return collection(tmp_path / "games.jsonl", WON, HELD)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[Entry]:
    folder = tmp_path_factory.mktemp("found")
    path = collection(folder / "games.jsonl", WON, HELD)
    assert made(path, "-o", folder / "new.tsv") == 0
    return read(folder / "new.tsv")


def test_what_is_found(found: list[Entry]) -> None:
    assert [(entry.kind, entry.moves, entry.source, entry.ply) for entry in found] == [
        ("win", ("e4e7",), "games.jsonl:1", 7),
        ("only", ("f5f2",), "games.jsonl:2", 10),
    ]
    assert found[0].themes == ("escape", "quiet", "king-move")
    assert found[1].themes == ()


def test_it_is_right_by_plain_minimax(found: list[Entry]) -> None:
    verifier = Verifier(VARIANT, 3_000_000, 1)
    for entry in found:
        assert verifier.check(entry) == ("minimax", None)
        other = next(
            name
            for name in map(move_name, games.from_fen(VARIANT, entry.fen).legal_moves())
            if name not in entry.moves
        )
        assert verifier.check(replace(entry, moves=(other,)))[1] is not None


def test_images_are_found_once(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    collection(file, WON, mirrored(WON), WON)
    assert made(file, "-o", tmp_path / "new.tsv") == 0
    assert capsys.readouterr().out.startswith("1 puzzle of 3 games in ")
    (entry,) = read(tmp_path / "new.tsv")
    assert made(file, "-o", tmp_path / "none.tsv", "--known", tmp_path / "new.tsv") == 0
    assert capsys.readouterr().out.startswith("0 puzzles of 3 games")
    assert int(entry.id.rpartition("-")[2]) == OLDER + 1, "ids follow those of the suite that ships"


def test_kinds_and_lengths(file: Path, tmp_path: Path) -> None:
    kinds = []
    for number, words in enumerate(
        (["--kind", "win"], ["--kind", "only"], ["--least", "5"], ["--count", "1"])
    ):
        out = tmp_path / f"{number}.tsv"
        assert made(file, "-o", out, *words) == 0
        kinds.append([parse(line).kind for line in out.read_text().splitlines()[1:]])
    assert kinds == [["win"], ["only"], ["only"], ["win"]]


def test_work_is_continued(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ended after the first game; then with half a line behind it."""
    out, whole = tmp_path / "new.tsv", tmp_path / "whole.tsv"
    assert made(file, "-o", whole) == 0
    looked: list[str] = []
    look = make.Work.look

    def ending(self: make.Work, source: make.Source) -> list[Entry]:
        looked.append(source.name)
        if looked == ["games.jsonl:1", "games.jsonl:2"]:
            raise KeyboardInterrupt
        return look(self, source)

    monkeypatch.setattr(make.Work, "look", ending)
    with pytest.raises(KeyboardInterrupt):
        made(file, "-o", out)
    assert not out.exists()
    with make.beside(out).open("ab") as stream:
        stream.write(b'{"game": 1, "fou')
    assert made(file, "-o", out) == 0
    assert looked == ["games.jsonl:1", "games.jsonl:2", "games.jsonl:2"]
    assert out.read_text() == whole.read_text()
    assert not make.beside(out).exists()


def test_other_work_is_not_continued(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new.tsv"
    for text, said in (
        ('{"puzzles": 1}\n', "holds another work"),
        ("a diary\n", "holds something else"),
    ):
        make.beside(out).write_text(text)
        assert made(file, "-o", out) == 2
        assert said in capsys.readouterr().err
        assert make.beside(out).read_text() == text
    assert made(file, "-o", out, "--fresh", "--count", "1") == 0
    head = json.dumps(make.Work([file], *_reading()).about(None) | {"nodes": 300_000})
    for line in ('{"game": 0}', '{"game": 0, "found": ["x"]}', "[]", "\x00"):
        make.beside(out).write_text(f"{head}\n{line}\n")
        assert made(file, "-o", out, "--force") == 2
        assert ":2: expected the results of a game" in capsys.readouterr().err


def _reading() -> tuple[make.Reading, make.Wanted]:
    from hnefi.engine.records.formats import Reading
    from hnefi.engine.records.rule_sets import finder

    return Reading(finder()), make.Wanted(None, 3, 9, 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["missing.tafl"], "missing.tafl: No such file or directory"),
        (["games.png"], "expected a file ending in"),
        (["games.csv"], "CSV names no variant: expected --variant"),
        (["games.jsonl", "--least", "9", "--plies", "5"], "--least 9 --plies 5: expected 3 to 21"),
        (["games.jsonl", "--plies", "22"], "expected 3 to 21"),
        (["games.jsonl", "--variant", "chess"], "chess"),
        (["games.jsonl", "--known", "missing.tsv"], "missing.tsv: No such file"),
        (["games.jsonl", "-o", "nowhere/new.tsv"], "no such folder"),
        (["games.jsonl", "-o", "games.jsonl"], "already exists: expected --force"),
        (["broken.jsonl"], "broken.jsonl:1: "),
    ],
)
def test_what_cannot_be(
    words: list[str],
    said: str,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(file.parent)
    Path("broken.jsonl").write_text("{]\n")
    status: object
    try:
        status = made(*words, *([] if "-o" in words else ["-o", "new.tsv"]))
    except SystemExit as left:
        status = left.code
    assert status == 2
    assert said in capsys.readouterr().err
    assert not Path("new.tsv").exists()


def test_games_that_break_the_rules_are_left_out(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    collection(file, "a1a2", WON, "")
    assert made(file, "-o", tmp_path / "new.tsv") == 0
    assert capsys.readouterr().out.endswith("; 1 games that could not be played through\n")


def test_new_puzzles_can_be_played(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    out = tmp_path / "new.tsv"
    assert cli.main(["puzzle", "make", str(file), "-o", str(out), "--quiet"]) == 0
    capsys.readouterr()
    assert cli.main(["puzzle", "--suite", str(out), "--list", "--theme", "king-move"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.endswith("breakout escape quiet king-move")


# Themes


def test_themes_are_known(found: list[Entry]) -> None:
    assert set(ENDS.values()) <= set(THEMES)
    prover = Prover(VARIANT, 1 << 12)
    assert themes_of(found[0], prover) == found[0].themes


def test_threats_are_moves_that_win_at_once() -> None:
    """The king on an open edge between two corners, then with one way closed."""
    prover = Prover(VARIANT, 1 << 12)
    assert threats("3K3/7/7/7/7/7/1t3t1 a 0 1", 1, prover) == 2
    assert threats("2tK3/7/7/7/7/7/1t3t1 a 0 1", 1, prover) == 1


@pytest.mark.parametrize(
    ("fen", "turned"),
    [
        ("3K3/7/7/7/7/7/1t3t1 a 0 1", "3K3/7/7/7/7/7/1t3t1 d 0 1"),
        ("3K3/7/7/7/7/7/1t3t1 d 3 9", "3K3/7/7/7/7/7/1t3t1 a 3 9"),
        ("3K3/7/7/7/7/7/1t3t1 d 0 1 berserk=d7", None),
        ("3K3", None),
    ],
)
def test_passing(fen: str, turned: str | None) -> None:
    assert passed(fen) == turned


@pytest.mark.slow
def test_the_shipped_wins_have_the_themes_that_their_solutions_show() -> None:
    wins = [entry for entry in read(SHIPPED) if entry.variant == "brandubh" and entry.kind == "win"]
    prover = prover_of(wins[0])
    for entry in wins[::4]:
        assert entry.themes == themes_of(entry, prover)
        assert entry.themes
