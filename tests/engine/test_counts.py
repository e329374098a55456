"""What documents say of how many and how long: counted, or compared with the one place that it stands in."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from hnefi.engine.games.tafl import variant
from hnefi.protocol.hosts.puzzles.suite import SHIPPED, read
from hnefi.tools import variants

ROOT = Path(__file__).resolve().parents[2]


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("README.md", r"\[more than (\d+) of them\]\(docs/variants\.md\) ship"),
        ("CHANGELOG.md", r"^- More than (\d+) variants from 5 x 5"),
    ],
)
def test_documents_claim_no_more_variants_than_ship(document: str, said: str) -> None:
    """In round figures, so that a new variant changes no document."""
    (found,) = re.findall(said, text(document), re.MULTILINE)
    assert int(found) < len(variant.names()) <= int(found) + 25


def test_the_command_lists_as_many(capsys: pytest.CaptureFixture[str]) -> None:
    assert variants.main(["--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    tafl = [one["name"] for one in listed if one["game"] == "tafl"]
    assert sorted(tafl) == sorted(variant.names())
    files = (ROOT / "engine" / "variants").glob("*.toml")
    assert sorted(tafl) == sorted(file.stem for file in files)


@pytest.mark.parametrize("document", ["CHANGELOG.md", "docs/tactics.md"])
def test_documents_count_the_positions_of_the_suite(document: str) -> None:
    entries = read(SHIPPED)
    ((positions, of),) = re.findall(r"\b([\d,]+) positions of (\d+) (?:tafl )?variants", text(document))
    assert (int(positions.replace(",", "")), int(of)) == (
        len(entries),
        len({entry.variant for entry in entries}),
    )


def takes() -> dict[str, str]:
    """How long things take from an empty cache, as people say it: MEASUREMENTS.md is the one place."""
    section = text("MEASUREMENTS.md").partition("## The first start\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.+?`) \| (.+?) \| .+ \|$", section, re.MULTILINE)
    return dict(rows)


def test_the_readme_says_how_long_the_first_start_takes() -> None:
    found = takes()
    assert set(found) == {"`make run`, `make play`", "`make test`"}
    section = " ".join(text("README.md").partition("## Start\n")[2].partition("\n## ")[0].split())
    for said in found.values():
        assert f"take {said}" in section or f"takes {said}" in section, said
    others = re.findall(r"\b(?:seconds?|minutes?|hours?)\b", section)
    assert len(others) == len(found), "no other time is said there"


def test_the_changelog_says_how_long_the_first_start_takes() -> None:
    assert f"The first start compiles for {takes()['`make run`, `make play`']} where" in text("CHANGELOG.md")


@pytest.mark.process
def test_make_test_says_how_long_it_takes() -> None:
    recipe = next(
        line for line in text("Makefile").splitlines() if line.startswith("\t@awk") and "take" in line
    )
    command = recipe.removeprefix("\t@").replace("$$", "$")
    done = subprocess.run(
        ["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == f"from an empty cache all tests take {takes()['`make test`']} on two idle cores\n"
