"""The first hour of somebody who has only the README: a player, an engine's author, a host, a researcher; each command
as it is printed there or follows from it, at a terminal of 80 columns, in one folder."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from terminal_screen import CONTROL_D, Terminal

pytestmark = [pytest.mark.process, pytest.mark.slow]

Run = Callable[..., str]
LONG = 240.0
"""Seconds for a command that plays, evolves or draws, on however busy a machine."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def begin(home: Path, line: str, rows: int = 24, columns: int = 80) -> Terminal:
    command = [sys.executable, "-m", "hnefi.tools.cli", *shlex.split(line)]
    return Terminal(command, home, rows=rows, columns=columns)


@pytest.fixture
def run(home: Path) -> Run:
    """Carries out a command to its end; what was to be seen."""

    def carry_out(line: str, status: int = 0, **size: int) -> str:
        with begin(home, line, **size) as seen:
            assert seen.end(LONG) == status, f"{line}\n{seen.everything}"
            assert "Traceback" not in seen.everything, line
            return seen.everything

    return carry_out


def is_a_picture(path: Path) -> bool:
    root = ET.fromstring(path.read_text("utf-8"))
    return root.tag.endswith("svg") and sum(1 for _ in root.iter()) > 5


def test_a_player(home: Path, run: Run) -> None:
    assert "play " in run("--help")
    with begin(home, "play --variant brandubh --level 1") as seen:
        seen.enter("d1c1")
        seen.wait_for(r"defenders \(hnefi level 1\): \w+")
        seen.asked("attackers")
        seen.enter("n")
        seen.wait_for("Type one more letter")  # nothing was asked
        seen.enter("resign")
        seen.wait("yes or no")
        seen.enter("n")
        seen.wait("Nothing was done.")
        seen.enter("save mine.tafl")
        seen.wait_for("Saved: ")
        seen.enter("quit")
        assert seen.end() == 0
        assert "Traceback" not in seen.everything
    run("play --load mine.tafl --screenshot mine.svg")
    assert is_a_picture(home / "mine.svg")
    assert "expected a recorded game" in run("play --load nothing.tafl --screenshot nothing.svg", status=2)
    assert not (home / "nothing.svg").exists()
    assert "no such program" in run("play --engine nosuch", status=2)
    run("analyze mine.tafl --nodes 100 --chart chances.svg")
    assert is_a_picture(home / "chances.svg")
    assert "agree" in run("convert mine.tafl --strict")


def test_the_author_of_an_engine(run: Run) -> None:
    seen = run("arena check --timeout 1 /bin/cat", status=1)
    assert "within 1 s" in seen
    assert "steps that need greeting" in seen


def test_the_host_of_a_tournament(home: Path, run: Run) -> None:
    seen = run("arena random-blind simple --variant brandubh --pairs 1 --nodes 10 --out cup --live")
    assert "result digest" in seen
    for row in seen.splitlines():
        if row.startswith(("1  ", "2  ")):
            assert row.split()[1] in ("random-blind", "simple"), "no name is cut"
    with begin(home, "play --watch cup --tui") as watched:
        watched.wait("brandubh")
        assert "copenhagen" not in watched.everything
        watched.wait("this was the last one")
        watched.type(CONTROL_D)
        assert watched.end() == 0
        assert "Traceback" not in watched.everything
    run("arena report cup --records cup.tafl")
    run("play --load cup.tafl --screenshot cup.txt")
    assert "brandubh" in (home / "cup.txt").read_text("utf-8")
    (home / "cup/live.jsonl").unlink()
    assert "arena report cup --records FILE" in " ".join(
        run("play --watch cup", status=2, columns=200).split()
    )


def test_a_researcher(home: Path, run: Run) -> None:
    run("evolve es --variant brandubh --random-matches 1 --generations 2 --out first")
    assert is_a_picture(home / "first/curves.svg")
    run("balance mini-six --players random-terminal --games 4 --out fair")
    assert all(is_a_picture(path) for path in (home / "fair/figures").glob("*.svg"))
    scale = run("ladder show", rows=60)
    assert "level-9" in scale
    assert all(len(row.split()) > 2 for row in scale.splitlines()[:20] if row), "no row is broken"
