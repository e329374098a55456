"""The common structure of reports: a head, and sections with one table each, which is also written as a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from hnefi.protocol.hosts.text_table import markdown_table

QUICK = "**QUICK: a small version that only shows that everything works. Its numbers mean nothing.**"


class Section(NamedTuple):
    """A table whose first row is its heading, with a title and a note; `name` is the name of its CSV file."""

    name: str
    title: str
    note: str
    table: Sequence[Sequence[str]]


def head(title: str, command: str, *, quick: bool) -> list[str]:
    """The title, and the command that reproduces everything."""
    return [f"# {title}", "", *((QUICK, "") if quick else ()), f"`{command}`", ""]


def pictures(folder: Path, drawn: Iterable[Path]) -> list[str]:
    """The lines that show the SVG figures of a report in this folder."""
    shown = [path for path in drawn if path.suffix == ".svg"]
    return [f"![{path.stem}]({path.relative_to(folder).as_posix()})" for path in shown]


def write(folder: Path, lines: Iterable[str], sections: Iterable[Section], ending: Iterable[str]) -> Path:
    """Write `report.md`, with the sections between `lines` and `ending`, and each of their tables as CSV; returns the
    report's path. Sections without rows are left out."""
    text = list(lines)
    for name, title, note, table in sections:
        if len(table) > 1:
            text += [f"## {title}", "", *([note, ""] if note else []), *markdown_table(table), ""]
            with (folder / f"{name}.csv").open("w", newline="") as file:
                csv.writer(file).writerows(table)
    path = folder / "report.md"
    path.write_text("\n".join([*text, *ending]).rstrip() + "\n")
    return path
