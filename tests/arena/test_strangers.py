"""Foreign manners: a UCI engine without a clock, a UGI runner that trusts lines of two words only."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import ugi_runner

from hnefi.engine import games
from hnefi.protocol.client import own_command
from hnefi.protocol.hosts.exit_codes import FAULTS
from hnefi.tools import engines
from hnefi.tools.arena import command as arena

pytestmark = pytest.mark.process

STRANGER = shlex.join(
    [sys.executable, str(Path(__file__).parents[1] / "support" / "uci_stranger.py"), "brandubh"]
)
OURS = shlex.join(own_command())


@pytest.fixture(autouse=True)
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    words = ["add", "stranger", "--cmd", STRANGER, "--variant", "brandubh"]
    assert engines.main([*words, "--clock", "movetime", "--letters", "adk", "--option", "Threads=2"]) == 0


def test_it_plays_in_the_arena_with_a_clock_and_from_other_positions(tmp_path: Path) -> None:
    openings = tmp_path / "openings.txt"
    openings.write_text("3t3/3t3/2T4/ttTKTtt/3T3/3t3/2t4 d 0 1\n")
    words = [
        "stranger",
        "random-blind",
        "--tc",
        "5+0.1",
        "--pairs",
        "1",
        "--seed",
        "3",
        "--plain",
        "--fail-on-fault",
    ]
    for number, opening in enumerate(([], ["--openings-source", "file", "--openings-file", str(openings)])):
        assert arena.main([*words, *opening, "--out", str(tmp_path / f"run{number}")]) == 0
        stored = (tmp_path / f"run{number}" / "games.jsonl").read_text()
        assert stored.count("stranger") >= 2
        assert "fault" not in [
            key for line in stored.splitlines() for key, value in json.loads(line).items() if value
        ]


def run(*words: str, said: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hnefi.tools.cli", *words]
    return subprocess.run(command, input=said, capture_output=True, text=True, check=False)


def test_it_is_played_and_asked() -> None:
    words = [
        "play",
        "--against",
        "stranger",
        "--variant",
        "brandubh",
        "--side",
        "d",
        "--clock",
        "1+1",
        "--no-record",
    ]
    done = run(*words, said="go\ngo\nquit\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert "attackers (stranger): " in done.stdout
    assert "rror" not in done.stdout
    fen = "3t3/3t3/2T4/ttTKTtt/3T3/3t3/2t4 d 0 1"
    done = run("analyze", fen, "--variant", "brandubh", "--engine", "stranger", "--movetime", "100")
    assert done.returncode == FAULTS
    assert done.stdout.endswith("Stranger 3 answered without a score\n"), done.stdout
    assert done.stderr == "hnefi analyze: Stranger 3 has no option MultiPV: it gives one line\n"


@pytest.mark.parametrize("variant", ["brandubh", "copenhagen"])
def test_a_runner_that_trusts_lines_of_two_words_only(variant: str, tmp_path: Path) -> None:
    """The same games come from our own arena."""
    fen = games.initial(games.find(variant)).fen()
    moves, result = ugi_runner.play(OURS, variant, fen, depth=1, most=60)
    position = games.initial(games.find(variant))
    for move in moves:
        position = position.play(position.parse_move(move))
    outcome = position.outcome
    winner = None if outcome is None else outcome.winner
    assert result == ("none" if outcome is None else {0: "p1win", 1: "p2win"}.get(winner, "draw"))
    openings = tmp_path / "openings.txt"
    openings.write_text(f"{fen}\n")
    words = [
        "default",
        "default",
        "--variant",
        variant,
        "--depth",
        "1",
        "--pairs",
        "1",
        "--no-swap",
        "--plain",
    ]
    from_file = ["--openings-source", "file", "--openings-file", str(openings)]
    assert arena.main([*words, *from_file, "--out", str(tmp_path / "run")]) == 0
    stored = json.loads((tmp_path / "run" / "games.jsonl").read_text().splitlines()[0])
    played = [ply["move"] for ply in stored["plies"]]
    assert played[: len(moves)] == moves[: len(played)]
