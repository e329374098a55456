"""The arena killed at random moments while real engines play: none outlives it, and the run goes on to the same end.

`HNEFI_KILLS` says how many moments (3). Each is a kill -9 of `hnefi arena resume` some games, and a part of a second,
after its start; the first kinds of moments lie in the preparation, before anything is played.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from leftover_processes import MARK, expect_nobody, marked, wait_until

from hnefi.tools.arena.store import Store

KILLS = int(os.environ.get("HNEFI_KILLS", "3"))
PAIRS = 4 * KILLS
ARENA = [sys.executable, "-m", "hnefi.tools.arena.command"]
pytestmark = [pytest.mark.cold, pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")]


def new_run(folder: Path, mark: str, wait: int = 0) -> list[str]:
    """The words that begin a run of two real engines in `folder`, with so many ms between games."""
    words = ["random-blind", "default", "--variant", "brandubh", "--pairs", str(PAIRS), "--nodes", "100"]
    words += [
        "--seed",
        "3",
        "--concurrency",
        "2",
        "--wait",
        str(wait),
        "--each",
        f"option.Hash=4,env.{MARK}={mark}",
        "--plain",
    ]
    return [*words, "--records", f"{folder}.tafl", "--jsonl", f"{folder}.jsonl", "--out", str(folder)]


def kill_while_playing(words: list[str], games: int, seconds: float, mark: str) -> int:
    """Kill the arena so many seconds after so many games; how many engine processes it had then."""
    engines = 0
    with subprocess.Popen([*ARENA, *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        while games and (line := process.stdout.readline()):
            games -= line.startswith("game ")
            if not games:
                # The other slot may not have begun yet.
                wait_until(lambda: len(marked(mark)) >= 4, seconds=120)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            engines = len(marked(mark))
            process.kill()
    assert process.returncode == -signal.SIGKILL
    return engines


def finished(words: list[str]) -> str:
    """The digest of a run that is played to its end."""
    done = subprocess.run([*ARENA, *words], capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    digest = done.stdout.splitlines()[-1]
    assert re.fullmatch(r"result digest [0-9a-f]{64}", digest)
    return digest


def counts(folder: Path) -> dict[str, Any]:
    """Everything that is counted in a run's summary, and no times."""
    summary = json.loads((folder / "summary.json").read_text())
    keys = ("games", "pairs", "duplicates", "open", "engines", "variants", "meetings", "shortest", "longest")
    return {key: summary[key] for key in keys} | {"digest": summary["state"]["digest"]}


def games_of(folder: Path) -> dict[str, list[str]]:
    """The moves of all games of the JSON export, each id once."""
    lines = [json.loads(line) for line in Path(f"{folder}.jsonl").read_text().splitlines()]
    games = {line["id"]: [ply["move"] for ply in line["plies"]] for line in lines}
    assert len(games) == len(lines)
    return games


@pytest.mark.process
@pytest.mark.slow
def test_killed_at_any_moment_no_engine_is_left_and_nothing_is_lost(tmp_path: Path) -> None:
    dice = random.Random("kill real engines")
    folder, whole, mark = tmp_path / "run", tmp_path / "whole", uuid.uuid4().hex
    ids = sorted(f"{pair}.{game}" for pair in range(1, PAIRS + 1) for game in (1, 2))
    engines = stored = 0
    for number in range(KILLS):
        games = number % 3
        words = ["resume", str(folder)] if folder.exists() else new_run(folder, mark, wait=500)
        seconds = dice.uniform(0.0, 0.2 if games else 1.2)
        engines = max(engines, kill_while_playing(words, games, seconds, mark))
        expect_nobody(mark)
        if folder.exists():
            with Store.read(folder) as store:
                assert len(store.rows) >= stored + games
                stored = len(store.rows)
    assert engines >= 4
    assert 0 < stored < len(ids)

    digest = finished(["resume", str(folder)])
    assert digest == finished(new_run(whole, mark))
    expect_nobody(mark)
    assert counts(folder) == counts(whole)
    assert games_of(folder) == games_of(whole)
    assert sorted(games_of(folder)) == ids
    records = Path(f"{folder}.tafl").read_text()
    assert sorted(re.findall(r'^\[Round "(.+)"\]$', records, re.MULTILINE)) == ids
