"""The example engine in C, and the walk-through that brings it to the arena: every command, as a newcomer types it."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from documents import blocks, steps

from hnefi.engine import games
from hnefi.engine.games.base_position import Position
from hnefi.engine.squares import move_name
from hnefi.tools.arena.store import Store

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "docs" / "examples" / "fylgja.c"
TEXT = (ROOT / "docs" / "bring-your-engine.md").read_text("utf-8")
COMPILER = shutil.which("cc")
INTERRUPTED = "^C"
TIMEOUT = 120
GAMES = 200
ARENA = [sys.executable, "-m", "hnefi.tools.arena.command"]

pytestmark = [
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.skipif(COMPILER is None, reason="there is no C compiler"),
]


def alike(shown: str) -> re.Pattern[str]:
    """A pattern in which numbers, and the columns they stand in, may differ in lines that tell a time; `…` is anything,
    and a line of its own any number of lines. Moves are no numbers."""
    lines = [
        "(?s:.*)" if line == "…" else "".join(map(_part, _parts(line))) + "\n" for line in shown.splitlines()
    ]
    return re.compile("".join(lines))


PARTS = re.compile(r"( +|…|(?<![a-z])[+-]?\d[\d.,]*)")
TIMES = re.compile(r" ms$| in [\d.]+ s$|^ +\d+\.\d [<>] ")


def _parts(line: str) -> list[str]:
    return PARTS.split(line) if TIMES.search(line) else re.split("(…)", line)


def _part(text: str) -> str:
    if text.isspace():
        return " +"
    if text == "…":
        return ".*"
    return r"[+-]?\d[\d.,]*" if PARTS.fullmatch(text) else re.escape(text)


def environment(folder: Path) -> dict[str, str]:
    """As if this environment were active; settings are the folder's own."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "XDG_CONFIG_HOME": str(folder / "settings")}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> defaultdict[object, Path]:
    """Where commands are run: for each telling of the story a folder with the documents."""

    def made() -> Path:
        new = tmp_path_factory.mktemp("newcomer")
        (new / "docs").symlink_to(ROOT / "docs")
        return new

    return defaultdict(made)


@pytest.fixture
def folder(folders: defaultdict[object, Path], request: pytest.FixtureRequest) -> Path:
    return folders[request.node.callspec.params.get("round_of_steady")]


@contextlib.contextmanager
def on_two_processors() -> Iterator[None]:
    """As where the document was written: on more, a match takes more slots, and its games end in another order.
    Processes inherit it."""
    all_of_them = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(all_of_them)[:2])
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_of_them)


def run(command: str, folder: Path, *, interrupt: bool) -> str:
    """What a command says; it may be interrupted, as by Ctrl-C, after its first game."""
    with on_two_processors():
        process = subprocess.Popen(
            ["sh", "-c", f"exec {command}" if interrupt else command],
            cwd=folder,
            env=environment(folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    with process:
        assert process.stdout
        said = ""
        while interrupt and not said.rpartition("\n")[0].rpartition("\n")[2].startswith("game "):
            line = process.stdout.readline()
            assert line, said
            said += line
        if interrupt:
            process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=TIMEOUT)
    assert "Traceback" not in errors
    return said + out


@pytest.mark.parametrize(
    ("command", "shown"),
    [step for block in blocks(TEXT, "console") for step in steps(block)],
    ids=[step[0][:40] for block in blocks(TEXT, "console") for step in steps(block)],
)
def test_the_walk_through(command: str, shown: str, folder: Path) -> None:
    interrupt = f"\n{INTERRUPTED}\n" in shown
    said = run(command, folder, interrupt=interrupt)
    assert alike(shown.replace(f"{INTERRUPTED}\n", "")).fullmatch(said), said


def test_the_mended_line_is_in_the_example() -> None:
    (line,) = blocks(TEXT, "c")
    assert line in SOURCE.read_text("utf-8")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = tmp_path_factory.mktemp("compiled") / "fylgja"
    warnings = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
    subprocess.run([str(COMPILER), "-std=c11", "-O2", *warnings, "-o", str(made), str(SOURCE)], check=True)
    return str(made)


def test_no_required_step_fails(engine: str) -> None:
    words = ["check", "--proto", "uci", "--json", engine]
    done = subprocess.run([*ARENA, *words], capture_output=True, text=True, timeout=TIMEOUT, check=False)
    found = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout
    assert {"fail"}.isdisjoint(step["status"] for step in found["steps"])
    # Times are advisory and depend on the machine; nothing else but this is missing.
    missing = {step["name"] for step in found["steps"] if step["status"] == "advisory"}
    assert {name for name in missing if not name.endswith(("-time", "-kept"))} == {"searchmoves"}


RARE_ENDS = {
    "surrounded": ("7/7/7/2t4/1tKt3/1t1t3/4t2 a 0 1", "e1c1"),
    "no_legal_move": ("7/7/7/t6/K3t2/t6/7 a 0 1", "e3b3"),
    "repetition": ("3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3 a 0 1", "d1c1 d3c3 c1d1 c3d3 d1c1 d3c3 c1d1 c3d3"),
}
"""Positions and moves after which a game is over as it seldom is in random play."""


def test_its_rules_are_ours(engine: str) -> None:
    """Random games, played by our rules to their end, are taken move by move, over for it as well, with our winner."""
    dice = random.Random("by our rules")
    ended = [random_game(dice) for _ in range(GAMES)]
    lines = [
        f"position startpos moves {' '.join(map(move_name, game.moves))}\ngo nodes 1\n" for game in ended
    ]
    for reason, (fen, moves) in RARE_ENDS.items():
        position = games.from_fen(games.find("brandubh"), fen)
        for move in moves.split():
            position = position.play(position.parse_move(move))
        assert position.outcome is not None
        assert str(position.outcome.reason) == reason
        ended.append(position)
        lines.append(f"position fen {fen} moves {moves}\ngo nodes 1\n")
    done = subprocess.run(
        [engine], input="".join(lines), capture_output=True, text=True, timeout=60, check=True
    )
    won = [game.outcome is not None and game.outcome.winner == game.side for game in ended]
    expected = [line for last in won for line in (f"info depth 0 score mate {int(last)}", "bestmove (none)")]
    assert done.stdout.splitlines() == expected


def random_game(dice: random.Random) -> Position:
    """A game of brandubh at its end."""
    position = games.initial(games.find("brandubh"))
    while position.outcome is None:
        position = position.play(dice.choice(position.legal_moves()))
    return position


def test_it_plays_a_match_without_a_fault(engine: str, tmp_path: Path) -> None:
    words = [
        "--engine",
        f"cmd={engine},proto=uci",
        "--engine",
        "player=random-blind",
        "--variant",
        "brandubh",
    ]
    words += [
        "--pairs",
        "10",
        "--nodes",
        "1",
        "--openings-plies",
        "4-14",
        "--out",
        str(tmp_path / "run"),
        "--plain",
    ]
    done = subprocess.run([*ARENA, *words], capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with Store.read(tmp_path / "run") as store:
        results = list(store.results())
    assert len(results) == 20
    assert [result.fault for result in results if result.fault] == []
