"""Every command that keeps its work, small enough to be ended often."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ladder_parts import tiny
from solve_parts import CROSS, TINY, kept_answers

from hnefi.tools.arena.report import Stored
from hnefi.tools.arena.store import run_digest
from hnefi.tools.experiments.hingston import Plan

GAME = """[Variant "brandubh"]
[Attackers "ann"]
[Defenders "bob"]

1. d1c1 d5c5 2. c1b1 c5b5 3. b1b2 b5b6 *
"""


def sums(folder: Path, *patterns: str) -> dict[str, str]:
    """The files of these patterns by their hashes."""
    found = sorted(path for pattern in patterns for path in folder.glob(pattern))
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def balanced(where: Path) -> Any:
    lines = [json.loads(line) for line in (where / "run/games.jsonl").read_text().splitlines()]
    games = sorted(
        json.dumps([line["rules"], line["player"], game]) for line in lines for game in line["games"]
    )
    assert len(set(games)) == len(games)
    return games, sums(where, "run/report.*", "run/cells.csv", "run/plan.json")


def evolved(where: Path) -> Any:
    assert not list(where.glob("**/*.new"))
    return sums(where, "run/**/archive/*", "run/**/champion.safetensors", "run/**/config.toml")


def experimented(where: Path) -> Any:
    tests = (where / "run/tests.jsonl").read_text().splitlines()
    assert len(set(tests)) == len(tests)
    return sorted(tests), sums(where, "run/runs/**/archive/*")


def tuned(where: Path) -> Any:
    assert not list(where.glob("run/**/*.part"))
    return sums(where, "run/**/*.npy")


def climbed(where: Path) -> Any:
    return run_digest(Stored(where / "run").progress.counted)


def analysed(where: Path) -> Any:
    assert not (where / "out.tafl.progress.jsonl").exists()
    return re.sub(r"time=\d+ ?", "", (where / "out.tafl").read_text())


def analysis_done(where: Path) -> bool:
    return (where / "out.tafl").exists() and not (where / "out.tafl.progress.jsonl").exists()


def with_ladder(where: Path) -> None:
    if not (where / "tiny.toml").exists():
        tiny(where)


def with_plan(where: Path) -> None:
    """A tiny experiment; `resume` goes on with one that has not begun."""
    plan = Plan(
        rules=("brandubh",), trained=("random-blind",), seeds=(1, 2), generations=2, every=2,
        tests={1: 1, 2: 1, 3: 1}, final={1: 1, 2: 1, 3: 1}, quick=True,
    )  # fmt: skip
    (where / "run").mkdir(exist_ok=True)
    if not (where / "run/plan.json").exists():
        (where / "run/plan.json").write_text(json.dumps(plan.as_json()))


def with_board(where: Path) -> None:
    (where / "tiny.toml").write_text(TINY)


def with_layouts(where: Path) -> None:
    (where / "tiny.toml").write_text(CROSS)


def with_game(where: Path) -> None:
    (where / "game.tafl").write_text(GAME)


def with_games(where: Path) -> None:
    moves = "d1f1 d5c5 f4f2 e4f4 d2b2 d4e4 b2e2 e4e7 a4a2 e7g7"
    (where / "game.jsonl").write_text(3 * (json.dumps({"variant": "brandubh", "moves": moves}) + "\n"))


class Command(NamedTuple):
    words: str
    same: Callable[[Path], Any]
    prepare: Callable[[Path], None] = lambda _: None
    again: str = ""
    """What goes on, where it is not the same words."""
    done: Callable[[Path], bool] = lambda _: False
    """Whether nothing is left to do, for a command that then refuses to begin once more."""


COMMANDS = {
    "balance": Command(
        "balance brandubh --players random-terminal,simple --games 24 --jobs 2 --plain --out run", balanced
    ),
    "evolve": Command(
        "evolve es --variant brandubh --random-matches 1 --generations 4 --seeds 2 --jobs 2 --plain --out run",
        evolved,
    ),
    "evolve, one": Command(
        "evolve es --variant brandubh --random-matches 1 --generations 8 --jobs 1 --plain --out run", evolved
    ),
    "evolve, zero": Command(
        "evolve zero --variant hexapawn:3x3 --network policy-mlp:16 --iterations 8 --games 6 --gate-games 4 --epochs 10"
        " --jobs 2 --plain --out run",
        evolved,
    ),
    "experiments": Command("experiments resume run --jobs 2 --plain", experimented, with_plan),
    "tune": Command("tune games brandubh --games 24 --nodes 5 --jobs 2 --out run", tuned),
    "ladder": Command("ladder run --ladder tiny.toml --jobs 2 --plain --out run", climbed, with_ladder),
    "analyze": Command(
        "analyze game.tafl --nodes 2000 --independent -o out.tafl", analysed, with_game, done=analysis_done
    ),
    "puzzle make": Command(
        "puzzle make game.jsonl --nodes 200000 --plain --out out.tsv",
        lambda where: ((where / "out.tsv").read_text(), sorted(where.glob("*.progress*"))),
        with_games,
        done=lambda where: (where / "out.tsv").exists() and not (where / "out.tsv.progress.jsonl").exists(),
    ),
    "solve": Command(
        "solve tiny.toml --jobs 2 --plain --out run.taflbase",
        lambda where: sums(where, "*.taflbase", "*.part/*"),
        with_board,
        done=lambda where: (where / "run.taflbase").exists() and not (where / "run.taflbase.part").exists(),
    ),
    "solve layouts": Command(
        "solve layouts tiny.toml --switch king_sides=4 --jobs 2 --yes --plain --out run",
        lambda where: sums(where, "run/**/*"),
        with_layouts,
    ),
    "solve prove": Command(
        "solve prove mini-six --memory 4 --plain --table run.proof",
        lambda where: kept_answers(where / "run.proof", "mini-six"),
    ),
    "arena": Command(
        "arena random-blind random-terminal --variant brandubh --pairs 4 --nodes 50 --concurrency 2 --seed 3"
        " --plain --out run",
        climbed,
        again="arena resume run --plain",
    ),
}


def words_of(command: Command, where: Path) -> list[str]:
    return (command.again if command.again and (where / "run").exists() else command.words).split()
