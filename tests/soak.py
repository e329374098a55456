"""A long conversation with one engine process: whether its memory stays flat and every line has its answer.

`make soak` sends two million lines: positions, searches, options, questions and nonsense, right and wrong. The lines
follow from `--seed`. It prints what the process holds, in steps, and ends with status 1 if an answer was missing, if a
file handle or a thread was left, or if memory in the second half came higher than in the first by more than `ROOM`.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOM = 4.0
"""MiB by which an engine that has seen everything may still grow: fragments of the heap, and no leak."""
BATCH = 100
"""Lines that are sent before their answers are read."""
STEPS = 20
VARIANTS = {
    "brandubh": ("a4a2 d3a3 d1c1", "d1c1 d5c5 c1b1 c5b5", "d3d9", "a4"),
    "tablut": ("a4a3 e4e3", "d1d3 e3a3", "e5e5", ""),
    "hex:5": ("c3 a1 b2", "a1 a1", "z9", ""),
    "hexapawn:4x3": ("a1a2 b4b3", "a1b2", "", "x"),
}
OPTIONS = (
    "Hash value 1", "Hash value 4", "Hash value 65537", "Hash value many", "MultiPV value 3", "MultiPV value 1",
    "SkillLevel value 3", "SkillLevel value 10",
    "Threads value 2", "Threads value 1", "Seed value 9", "Colour value red",
    "Evaluator value nobody", "Player value nobody", "UCI_Elo value 1", "ClearHash", "Features value none",
    "Features value default", "Rules value nonsense",
)  # fmt: skip
RESTING = (
    "setoption name Hash value 1", "setoption name Threads value 1", "setoption name MultiPV value 1",
    "setoption name SkillLevel value 10", "variant brandubh", "setoption name ClearHash", "position startpos",
)  # fmt: skip
QUERIES = ("fen", "turn", "outcome", "reason", "captures", "history", "result", "gameover", "p1turn")
FENS = (
    "3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3 a 0 1",
    "7/7/7/3K3/7/7/3t3 a 0 1",
    "9/9 a",
    "k a",
    "3t3/3t3/3T3/ttTKTtt/3T3/3t3",
)


@dataclass(frozen=True)
class Held:
    """What a process holds: MiB in memory, file handles, threads."""

    memory: float
    files: int
    threads: int


def held(process: int) -> Held:
    folder = Path("/proc") / str(process)
    # Not what is shared: libraries and kernels in files are given back as the system likes.
    fields = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    return Held(
        int(fields["RssAnon"].split()[0]) / 1024, len(list((folder / "fd").iterdir())), int(fields["Threads"])
    )


def rest(engine: subprocess.Popen[str]) -> None:
    """Bring it back to where it was at first, so that what it holds can be compared."""
    assert engine.stdin
    assert engine.stdout
    engine.stdin.write("\n".join([*RESTING, "isready", ""]))
    engine.stdin.flush()
    while engine.stdout.readline() not in ("readyok\n", ""):
        pass


def quiet(process: int, threads: int) -> Held:
    """What it holds when the thread of the last search is gone, which ends a moment after its answer."""
    end = time.monotonic() + 5
    while (now := held(process)).threads > threads and time.monotonic() < end:
        time.sleep(0.01)
    return now


def batch(dice: random.Random, number: int) -> tuple[list[str], Counter[str]]:
    """Lines, the last of which is a search, and how often each first word of an answer must come."""
    lines: list[str] = []
    answers: Counter[str] = Counter()
    name = dice.choice(list(VARIANTS))
    if dice.random() < 0.2:
        lines.append(f"variant {name}")
        answers["info string variant"] += 1
    while len(lines) < BATCH - 1:
        word = f"nonsense-{number}-{len(lines)}"
        match dice.randrange(12):
            case 0 | 1:
                lines.append(f"position startpos moves {dice.choice(VARIANTS[name])}")
            case 2:
                lines.append(f"position fen {dice.choice(FENS)}")
            case 3:
                lines.append(f"setoption name {dice.choice(OPTIONS)}")
            case 4:
                lines.append("isready")
                answers["readyok"] += 1
            case 5:
                lines.append(f"query {dice.choice(QUERIES)}")
                answers["response"] += 1
            case 6:
                lines.append(f"{word} {'x' * dice.choice([0, 10, 5000])}")
                answers[f"info string unknown command: {word}"] += 1
            case 7:
                lines.append(f"play {word}")
                answers[f"info string error play {word}:"] += 1
            case 8:
                lines.append(dice.choice(["utinewgame", "undo", "debug off", "license", "help go"]))
            case 9:
                lines.append(dice.choice(["moves", "moves verbose", "d", "eval", "rules"]))
            case 10:
                lines.append(
                    dice.choice(
                        ["\x00\x1b[2J", "go depth x", "position", "setoption", "", "stop", "ponderhit"]
                    )
                )
                if lines[-1] == "go depth x":
                    lines[-1] = "go perft x"
            case _:
                lines.append("position startpos")
    lines.append(f"go nodes {dice.choice([1, 5, 20, 100])}")
    answers["bestmove"] += 1
    return lines, answers


def conversation(engine: subprocess.Popen[str], lines: int, seed: int) -> Iterator[int]:
    """Talk; yields how many lines were sent so far, batch by batch. AssertionError for an answer that is missing."""
    assert engine.stdin
    assert engine.stdout
    dice = random.Random(seed)
    sent = 0
    while sent < lines:
        asked, wanted = batch(dice, sent)
        engine.stdin.write("\n".join([*asked, ""]))
        engine.stdin.flush()
        while True:
            line = engine.stdout.readline()
            assert line, f"the engine ended with status {engine.wait()} after {sent} lines"
            for words in (4, 5, 3, 1):
                key = " ".join(line.split()[:words])
                if key in wanted:
                    wanted[key] -= 1
                    break
            if line.startswith("bestmove"):
                break
        assert not (missing := +wanted), f"after {sent} lines, seed {seed}: no answer to {dict(missing)}"
        sent += len(asked)
        yield sent


def main(arguments: list[str]) -> int:
    """Talk for as long as was asked, and print what the engine holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=2_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    began = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", "hnefi.protocol", "--option", "Hash=1"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, errors="replace",
    ) as engine:  # fmt: skip
        steps: list[Held] = []
        for sent in conversation(engine, options.lines, options.seed):
            if sent >= options.lines * (len(steps) + 1) // STEPS:
                rest(engine)
                steps.append(quiet(engine.pid, steps[0].threads if steps else 3))
                print(f"{sent} lines, {time.monotonic() - began:.0f} s: {steps[-1]}", flush=True)
        assert engine.stdin
        engine.stdin.write("quit\n")
        engine.stdin.close()
        status = engine.wait(60)
    early, late = (max(step.memory for step in part) for part in (steps[: STEPS // 2], steps[STEPS // 2 :]))
    print(f"memory at most {early:.1f} MiB in the first half, {late:.1f} in the second; status {status}")
    left = any(step.files > steps[0].files or step.threads > steps[0].threads for step in steps)
    return int(status != 0 or late > early + ROOM or left)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
