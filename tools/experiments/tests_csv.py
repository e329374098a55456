"""`tests.csv` of the study `distribution`: every test as a row, to publish, and to continue from elsewhere."""

from __future__ import annotations

import csv
import json
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from hnefi.engine import durable

from ..common.matches import Count, Tally
from .measuring import Cell, ExperimentError, Results, read_lines
from .studies import Run, Study

SIDES = ("matches", "as red", "as white")
HEAD = (
    *("rules", "training", "seed", "generation", "opponent", "plies"),
    *(f"{side} {part}" for side in SIDES for part in ("won", "drawn", "lost")),
    "decided by captures",
)
MERGED = "merged.jsonl"
"""In a study's folder, a line for each file from which it has taken tests."""
GIVEN = 6
"""Columns that say which test a row is of."""


def counts(tally: Tally) -> tuple[int, ...]:
    """What a row has of a test: neither plies nor evaluations."""
    return (*tally.matches, *tally.attacking, *tally.defending, tally.by_captures)


def write(path: Path, study: Study, results: Results) -> None:
    """Write all tests of a study, each as a row."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEAD)
        for cell in study.cells():
            writer.writerow([*cell.run, cell.generation, cell.opponent, cell.depth, *counts(results[cell])])


def read(path: Path, study: Study) -> dict[Cell, Tally]:
    """The tests of the study that the file has; others are ignored. ExperimentError names a line that is wrong, or says
    that the file has none of the study's."""
    wanted = set(study.cells())
    found: dict[Cell, Tally] = {}
    try:
        with path.open(newline="") as file:
            rows = csv.reader(file)
            if tuple(next(rows, ())) != HEAD:
                raise ExperimentError(
                    f"{path}: line 1: expected a study's tests.csv, which begins with {','.join(HEAD[:GIVEN])}"
                )
            for row in rows:
                cell, tally = _parsed(path, rows.line_num, row)
                if cell not in wanted:
                    continue
                if tally.matches.all != study.matches(cell):
                    raise ExperimentError(
                        f"{path}: line {rows.line_num}: {tally.matches.all} matches: "
                        f"expected {study.matches(cell)}, as in this study"
                    )
                if found.setdefault(cell, tally) != tally:
                    raise ExperimentError(
                        f"{path}: line {rows.line_num}: expected the same result as in an earlier line for this test"
                    )
    except OSError as error:
        raise ExperimentError(f"{path}: {error.strerror}: expected a study's tests.csv") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise ExperimentError(f"{path}: expected a study's tests.csv ({error})") from None
    if not found:
        raise ExperimentError(
            f"{path}: expected tests of this study: its rules, trainings, seeds and generation"
        )
    return found


class Merged(NamedTuple):
    """A file from which a folder has taken tests: its name and its SHA-256, and how many tests there were to take."""

    file: str
    sha256: str
    tests: int


def note_merged(folder: Path, path: Path, tests: int) -> None:
    """Note in the folder that it takes tests from this file, so that its reports can say so."""
    note = Merged(path.name, sha256(path.read_bytes()).hexdigest(), tests)
    if note not in merged(folder):
        durable.append_line(folder / MERGED, json.dumps(note._asdict()).encode())


def merged(folder: Path) -> list[Merged]:
    """The files from which the folder has taken tests."""
    found: list[Merged] = []
    read_lines(
        folder / MERGED,
        lambda entry: found.append(Merged(str(entry["file"]), str(entry["sha256"]), int(entry["tests"]))),
        "a note of a merged file",
    )
    return found


def _parsed(path: Path, line: int, row: list[str]) -> tuple[Cell, Tally]:
    try:
        rules, way, seed, generation, opponent, depth = row[:GIVEN]
        won, drawn, lost, *sides, by_captures = map(int, row[GIVEN:])
        matches, red, white = Count(won, drawn, lost), Count(*sides[:3]), Count(*sides[3:])
        cell = Cell(Run(rules, way, int(seed)), int(generation), opponent, int(depth))
        if min(*matches, *red, *white, by_captures) < 0 or red.all != matches.all or white.all != matches.all:
            raise ValueError("each match has a game as red and one as white")
    except (ValueError, TypeError) as error:
        raise ExperimentError(
            f"{path}: line {line}: {','.join(row)[:80]!r}: expected a test ({error})"
        ) from None
    return cell, Tally(matches, by_captures, red, white)
