"""Variants: the shipped files, the rules hash, finding by name, and what a bad file is told."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hnefi.engine import catalogue, games
from hnefi.engine.games.base_variant import rules_hash
from hnefi.engine.games.tafl import rules, variant
from hnefi.engine.games.tafl.diagram import diagram
from hnefi.engine.games.tafl.variant import Variant, VariantError, find, load, names

BRANDUBH = "3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3"

EXAMPLE = """
name = "{name}"
aliases = {aliases}
source = "somewhere"
description = "A game."
start = ["2t2", "2T2", "tTKTt", "2T2", "2t2"]
[rules]
king_sides = 2
"""


def write(folder: Path, name: str, aliases: str = "[]", text: str = EXAMPLE) -> Path:
    path = folder / f"{name}.toml"
    path.write_text(text.format(name=name, aliases=aliases), encoding="utf-8")
    return path


def test_every_shipped_file_is_sound() -> None:
    taken: set[str] = set()
    hashes: dict[str, str] = {}
    for found in variant.everything():
        for word in (found.name, *found.aliases):
            assert word not in taken, "a name means one variant"
            taken.add(word)
        assert found.hash not in hashes, f"{found.name} and {hashes.get(found.hash)} are the same game"
        hashes[found.hash] = found.name


def test_files_write_only_what_differs() -> None:
    for name in names():
        text = Path(catalogue.FOLDER, f"{name}.toml").read_text(encoding="utf-8")
        written = [line.split(" = ")[0] for line in text.partition("[rules]")[2].splitlines() if line]
        assert written == list(find(name).rules.changes()), "in the order of the switches, no defaults"


def test_the_default_comes_first_then_the_alphabet() -> None:
    found = names()
    assert found[0] == "copenhagen"
    assert found[1:] == sorted(found[1:])


@pytest.mark.process
def test_names_need_no_parser() -> None:
    program = (
        "import sys; from hnefi.engine import catalogue; assert catalogue.names()[0] == 'copenhagen'; "
        "print(*[m for m in ('tomllib', 'dataclasses', 'pathlib', 're', 'numpy', 'numba') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {program}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""


def test_found_by_name_and_alias_in_any_case() -> None:
    assert find("Copenhagen") is find("copenhagen")
    assert find("hnefatafl") is find("copenhagen")
    assert find("Tablut").name == "tablut-linnaeus"
    assert find("ashton-bologna").name == "tablut-bologna"


@pytest.mark.parametrize("word", ["copenhaagen", "x" * 100_000, "", "../variants/copenhagen", "a\x00b"])
def test_an_unknown_name(word: str) -> None:
    with pytest.raises(VariantError, match="expected the name of a variant") as caught:
        find(word)
    assert len(str(caught.value)) < 300
    hint = "did you mean copenhagen?" if "copen" in word else "`variants` lists them"
    assert hint in str(caught.value)


@pytest.mark.parametrize(
    ("word", "files", "said"),
    [
        ("nosuch", True, "'nosuch': expected a variant (`hnefi variants` lists them) or a .toml file"),
        ("nosuch", False, "'nosuch': expected a variant (`hnefi variants` lists them)"),
        (
            "x" * 100_000,
            True,
            f"'{'x' * 80}…': expected a variant (`hnefi variants` lists them) or a .toml file",
        ),
        ("copenhaagen", True, "'copenhaagen': expected the name of a variant (did you mean copenhagen?)"),
        ("brandubh.txt", True, "'brandubh.txt': a file of rules must end in .toml"),
        ("brandubh.txt", False, "'brandubh.txt': expected the name of a variant (did you mean brandubh?)"),
        ("bad.toml", True, "bad.toml: byte 0: expected UTF-8"),
    ],
)
def test_an_unknown_name_on_a_command_line(
    word: str, files: bool, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("brandubh", "brandubh.txt", "bad.toml"):
        Path(name).write_bytes(b"\xff")
    with pytest.raises(VariantError) as caught:
        games.named(word, files=files)
    assert str(caught.value) == said
    assert games.named("brandubh", files=files) is find("brandubh"), "not the file of that name"


def test_the_hash_covers_switches_and_start_as_printed() -> None:
    found = find("brandubh")
    lines = "".join(f"{name} {text}\n" for name, text in found.rules.hashed_lines())
    assert lines.startswith("size 7\nfirst a\nthrone d4\ncorners a1,a7,g1,g7\n")
    text = f"{lines}start {BRANDUBH}\n"
    assert found.hash == hashlib.sha256(text.encode()).hexdigest()
    renamed = Variant.build("other", BRANDUBH, found.rules.changes(), source="elsewhere")
    assert renamed.hash == found.hash, "name and source are no part"
    assert found.with_switches(king_sides=4).hash != found.hash
    assert Variant.build("other", "3t3/3t3/3T3/ttTKTtt/3T3/3t3/2t4", found.rules.changes()).hash != found.hash


def test_a_switch_that_is_added_later_changes_no_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records name hashes: those of rules that leave a new switch alone must stay."""
    plain, changed = find("brandubh"), find("brandubh").with_switches(opentafl="yes")
    said = changed.rules.hashed_lines()
    without = [line for line in plain.rules.hashed_lines() if line[0] != "opentafl"]
    monkeypatch.setattr(rules, "LATER", rules.LATER | {"opentafl"})
    assert replace(plain).hash == rules_hash(without, plain.rows)
    assert replace(changed).hash == rules_hash(said, changed.rows)


def test_who_begins_follows_the_switch() -> None:
    found = find("brandubh").with_switches(first="d")
    assert found.startpos == f"{BRANDUBH} d 0 1"
    assert find("tablut-bologna").startpos.endswith(" d 0 1")


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = write(tmp_path, "cross", '["kreuz"]')
    for where in (path, tmp_path):
        found = find("cross", where)
        assert (found.name, found.size, found.rules.king_sides) == ("cross", 5, 2)
        assert find("KREUZ", where) == found
        assert find("brandubh", where).name == "brandubh"
        assert names(where) == [*names(), "cross"]
    with pytest.raises(VariantError):
        find("cross")


def test_no_file_takes_a_shipped_name(tmp_path: Path) -> None:
    path = write(tmp_path, "brandubh")
    for word in ("brandubh", "copenhagen"):
        with pytest.raises(
            VariantError, match="name: 'brandubh': expected a name that no shipped variant has"
        ):
            find(word, path)
    path.unlink()
    write(tmp_path, "cross", '["fetlar"]')
    with pytest.raises(VariantError, match="aliases: 'fetlar': expected a name that no shipped variant has"):
        find("cross", tmp_path)


def test_an_alias_of_two_variants_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "cross", '["tablut"]')
    with pytest.raises(VariantError, match="'tablut': expected one variant, but tablut-linnaeus and cross"):
        find("tablut", tmp_path)


def test_the_shipped_folder_may_be_named_as_path() -> None:
    assert names(catalogue.FOLDER) == names()


START = 'start = ["2t2", "2T2", "tTKTt", "2T2", "2t2"]\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name = "bad"\n', "start: None: expected rows"),
        (START, "name: None: expected a name"),
        ('name = "worse"\n' + START, "name: 'worse': expected 'bad', the name of the file"),
        ('name = "bad"\nstart = [1, 2]\n', r"start: \[1, 2\]: expected rows"),
        ('name = "bad"\nrule = 1\n' + START, r"rule: 1: expected one of name, .*did you mean rules"),
        ('name = "bad"\n' + START + "[rules]\nking_side = 2\n", "king_side: 2: .*did you mean king_sides"),
        ('name = "bad"\n' + START + "[rules]\nking_sides = 5\n", "king_sides: 5: expected one of 4, 2"),
        ('name = "bad"\n' + START + 'rules = "x"\n', "rules: 'x': expected a table of switches"),
        ('name = "bad"\naliases = "x"\n' + START, "aliases: 'x': expected a list"),
        ('name = "bad"\naliases = ["a b"]\n' + START, "expected letters, digits"),
        ('name = "bad"\naliases = [1]\n' + START, "expected letters, digits"),
        ('name = "bad"\nstart = "2t2/2T2/tTTTt/2T2/2t2"\n', "start: T on c3"),
        ('name = "bad"\nstart = "5/2T2/tT1Tt/2T2/2t2"\n', "start: .*expected exactly one K"),
        ('name = "bad"\nstart = "2t2/2T2/tTKTt/2TK1/2t2"\n', "start: 2 kings"),
        ('name = "bad"\nstart = "t4/2T2/tTKTt/2T2/2t2"\n', "start: t on a5: expected no t on a corner"),
        ('name = "bad"\nstart = "2t2/2T2/tTKT/2T2/2t2"\n', "start: row 'tTKT' has 4 squares: expected 5"),
        (
            'name = "bad"\nstart = ["2t2", "2T2", "tTxTt", "2T2", "2t2"]\n',
            "start: row 'tTxTt': 'x' is no piece",
        ),
        ('name = "bad"\n' + START + '[rules]\nthrone = "a1"\n', "corners: .*a1 is in throne too"),
        ('name = "bad"\nstart = [\n', "not TOML: "),
        ('name = "bad"\nstart = x\n', "not TOML: .*line 2"),
        ("x = " + "[" * 30_000, "not TOML"),
        ("x = " + "9" * 30_000, "not TOML"),
        ('name = "bad"\nsource = "' + "x" * 70_000 + '"\n', "expected at most 65536 bytes"),
    ],
)
def test_a_bad_file_is_told_where_what_and_why(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(VariantError, match=message) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert len(str(caught.value)) < len(str(path)) + 400


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(VariantError, match=r"nowhere.toml: No such file.*: expected a readable file"):
        load(tmp_path / "nowhere.toml")
    with pytest.raises(VariantError, match="no such file or folder"):
        find("cross", tmp_path / "nowhere")
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(VariantError, match="byte 8: expected UTF-8"):
        load(tmp_path / "latin.toml")


def test_rows_may_be_one_string() -> None:
    text = f'name = "x"\nstart = "{BRANDUBH}"\n'
    assert variant.parse(text, "x").rows == BRANDUBH


@pytest.mark.parametrize("size", [3, 4, 19])
def test_every_size_can_be_played(size: int) -> None:
    rows = [str(size)] * size
    rows[1] = f"1K{size - 2}"
    found = Variant.build("any", rows, {"throne": "none"})
    assert found.size == size
    assert find("copenhagen").size == 11


def test_the_picture_of_the_start() -> None:
    found = Variant.build("odd", "4t/t4/2K2/5/1T3", {"throne": "d4", "corners": "a1", "attacker_camps": "b2"})
    assert diagram(found.rules, dict(found.start.pieces)).splitlines() == [
        "   a b c d e",
        " 5 . . . . t 5",
        " 4 t . . + . 4",
        " 3 . . K . . 3",
        " 2 . : . . . 2",
        " 1 x T . . . 1",
        "   a b c d e",
    ]
