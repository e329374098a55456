"""Logs of runs of any learner as columns of numbers; runs of several folders in one picture."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from statistics import mean
from typing import Any, Final

from hnefi.engine import durable
from hnefi.engine.wording import nearest, shorten

from ..common.svg_chart import MARGIN, Curve, Panel, Scale, Sheet, curve_of, steps
from .folder import FolderError, read_log

SPEED: Final = "games_per_second"
USUAL: Final = ("best", "median", "loss_value", "loss_policy", SPEED)
"""The columns compared by default, as far as all logs have them."""
BOOKKEEPING: Final = ("generation", "files")
AXES: Final = ("generation", "games", "seconds", "cpu_seconds")
"""Choices for the x axis: the generation, or the total of games, seconds or CPU seconds so far."""
CALLED: Final = {
    "loss_value": "loss of the value",
    "loss_policy": "loss of the policy",
    SPEED: "games a second",
    "cpu_seconds": "CPU seconds",
}
"""Names of columns in the picture; the others get their own names with blanks."""
LEFT, GAP, WIDE, HEIGHT, ACROSS = 70, 84, 420, 240, 2
MOST_PANELS: Final = 12

Log = Sequence[Mapping[str, Any]]


def numbers(entry: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, float]]:
    """The finite numbers of a generation's report by name; nested ones are called like `kinds.simple.0`."""
    for name, value in entry.items():
        full = f"{within}{name}"
        if full in BOOKKEEPING:
            continue
        if isinstance(value, Mapping):
            yield from numbers(value, f"{full}.")
        elif isinstance(value, list):
            yield from numbers({str(at): part for at, part in enumerate(value)}, f"{full}.")
        elif isinstance(value, int | float) and math.isfinite(value):
            yield full, float(value)


def table(log: Log) -> list[dict[str, float]]:
    """The numbers of each generation by name, and its games per second."""
    rows = [dict(numbers(entry)) for entry in log]
    for row in rows:
        if row.get("seconds", 0) > 0 and "games" in row:
            row[SPEED] = row["games"] / row["seconds"]
    return rows


def columns(log: Log) -> dict[str, list[float]]:
    """Every number that all generations of a run have, by name."""
    rows = table(log)
    first = rows[0] if rows else {}
    return {name: [row[name] for row in rows] for name in first if all(name in row for row in rows)}


def text_of(runs: Sequence[tuple[Sequence[str], Log]], head: Sequence[str]) -> str:
    """All runs as CSV with one line per generation: the words of its run under `head`, the generation, its numbers. A
    cell is empty if the generation lacks that number."""
    found = [(words, table(log)) for words, log in runs]
    names = list(dict.fromkeys(name for _, rows in found for row in rows for name in row))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*head, "generation", *names])
    for words, rows in found:
        for generation, row in enumerate(rows, 1):
            cells = [f"{row[name]:.10g}" if name in row else "" for name in names]
            writer.writerow([*words, generation, *cells])
    return out.getvalue()


@dataclass(frozen=True, slots=True)
class Compared:
    """One folder of the comparison: the name of its curve, and the columns of each of its runs."""

    name: str
    runs: Sequence[Mapping[str, Sequence[float]]]


def write(
    out: Path, folders: Mapping[str, Sequence[Path]], names: Sequence[str], by: str, *, png: bool = False
) -> list[Path]:
    """Compare the runs of `folders` in the picture `out` and a table beside it; returns the files.

    `names` are the columns to draw, by default those of `USUAL`. FolderError if a log is damaged, a column is missing,
    or the files cannot be written.
    """
    logs = {name: [(run, read_log(run)) for run in runs] for name, runs in folders.items()}
    compared = []
    for name, runs in logs.items():
        found = [columns(log) for _, log in runs if log]
        if not found:
            raise FolderError(f"{name}: no generation is finished: expected at least one")
        compared.append(Compared(name, found))
    shared = [
        column for column in compared[0].runs[0] if all(column in run for one in compared for run in one.runs)
    ]
    chosen = list(names) or [name for name in USUAL if name in shared] or shared[:4]
    for name in (*chosen, *([by] if by != AXES[0] else [])):
        if name not in shared:
            near = nearest(name, shared)
            expected = f"did you mean {near}?" if near else f"expected one of {', '.join(shared)}"
            raise FolderError(f"{shorten(name)}: not a column that all of these runs have: {expected}")
    if not 0 < len(chosen) <= MOST_PANELS:
        raise FolderError(f"{len(chosen)} columns: expected 1 to {MOST_PANELS}")
    sheet, height = draw(compared, chosen, by)
    text = text_of(
        [((name, run.name), log) for name, runs in logs.items() for run, log in runs], ("folder", "run")
    )
    table = out.with_suffix(".csv")
    try:
        durable.put(table, text.encode())
        return [*sheet.save(out, height, png=png), table]
    except OSError as error:
        raise FolderError(
            f"{error.filename or out}: {error.strerror or error}: expected a file that can be written"
        ) from None


def draw(compared: Sequence[Compared], names: Sequence[str], by: str) -> tuple[Sheet, float]:
    """The sheet and its height, with a panel per column and a colour per folder."""
    across = min(ACROSS, len(names))
    several = any(len(one.runs) > 1 for one in compared)
    title = ["Runs compared"] + (["means of each folder's runs, thin lines single runs"] if several else [])
    sheet = Sheet(LEFT + across * WIDE + (across - 1) * GAP + 2 * MARGIN, title)
    looks = {one.name: curve_of(one.name, number) for number, one in enumerate(compared)}
    top = sheet.legend_below([_line(look) for look in looks.values()], sheet.top + 4, LEFT) + 4
    below = top
    for number, name in enumerate(names):
        if number and number % across == 0:
            top = below + MARGIN
        left = LEFT + number % across * (WIDE + GAP)
        drawn = {one.name: [(_places(run, by), run[name]) for run in one.runs] for one in compared}
        everything = [value for runs in drawn.values() for _, values in runs for value in values]
        furthest = max(places[-1] for runs in drawn.values() for places, _ in runs)
        low, high = min(0.0, *everything), max(*everything, 0.0) or 1.0
        margin = 0.03 * (high - low)
        panel = Panel(
            sheet, left, top, WIDE, HEIGHT, Scale(0, furthest or 1), Scale(low - margin, high + margin)
        )
        panel.ticks_left([(value, f"{value:g}") for value in steps(low, high, 6)])
        lowest = panel.ticks_below([(value, f"{value:g}") for value in steps(0, furthest, 6)], grid=True)
        below = max(below, panel.called_below(by if by == AXES[0] else f"{called(by)} so far", lowest))
        for one in compared:
            look = _line(looks[one.name])
            runs = drawn[one.name]
            if len(runs) > 1:
                for places, values in runs:
                    panel.line(zip(places, values, strict=True), look.colour, 0.5)
            shortest = min(len(values) for _, values in runs)
            places = [mean(run[0][at] for run in runs) for at in range(shortest)]
            values = [mean(run[1][at] for run in runs) for at in range(shortest)]
            panel.line(list(zip(places, values, strict=True)), look.colour, look.width, look.dash)
        panel.frame()
        panel.called_left(called(name), left - 54)
    return sheet, below + MARGIN


def called(name: str) -> str:
    """The name of a column in words."""
    return CALLED.get(name, name.replace("_", " "))


def _line(look: Curve) -> Curve:
    return Curve(look.name, look.colour, "", look.dash, 1.6)


def _places(run: Mapping[str, Sequence[float]], by: str) -> list[float]:
    """The generations of a run as places on the x axis."""
    if by == AXES[0]:
        return [float(at) for at in range(1, 1 + max(map(len, run.values())))]
    return list(accumulate(run[by]))
