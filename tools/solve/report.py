"""Reports on all positions of a table: counts, the longest wins, and whether the table is consistent."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hnefi.engine import games
from hnefi.engine.games.base_position import Position
from hnefi.engine.games.tafl.position import new_state
from hnefi.engine.solving import retrograde
from hnefi.engine.solving.index import Index, place_number
from hnefi.engine.solving.proof_tree import Tree
from hnefi.engine.solving.readings import reading
from hnefi.engine.solving.table import BLOCK, Table, packed
from hnefi.engine.squares import file_of, rank_of

from ..common import interrupts
from ..common.workers import in_threads
from .build import RANGE, encode, new_report


@dataclass(frozen=True, slots=True)
class Count:
    """The positions of one material on the whole board, by who wins them; in `over` ones the game has ended."""

    material: str
    attackers: int
    defenders: int
    neither: int
    over: int

    @property
    def all(self) -> int:
        return self.attackers + self.defenders + self.neither + self.over


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of all positions, and the first position with the longest win of each side."""

    counts: tuple[Count, ...]
    longest: tuple[tuple[int, str], ...]

    @property
    def total(self) -> Count:
        return Count(
            "all",
            sum(count.attackers for count in self.counts),
            sum(count.defenders for count in self.counts),
            sum(count.neither for count in self.counts),
            sum(count.over for count in self.counts),
        )


def summary(table: Table, words: Any) -> Summary:
    """Count all positions of a table."""
    index = table.index
    orbits = np.array(index.orbits, np.int64)
    counts = []
    longest = [(-1, ""), (-1, "")]
    for material in index.materials:
        seen = [0, 0, 0, 0]
        for first in range(material.first, material.end, RANGE):
            interrupts.check()
            report = new_report()
            end = min(first + RANGE, material.end)
            retrograde.tally(
                index.record, words, orbits, material.attackers, material.defenders, first, end, report
            )
            seen = [have + int(more) for have, more in zip(seen, report["counts"], strict=True)]
            for side in range(2):
                if report["counts"][side] and int(report["longest"][side]) > longest[side][0]:
                    at = int(report["longest_at"][side])
                    longest[side] = int(report["longest"][side]), fen_of(index, at)
        counts.append(Count(material.name, *seen))
    return Summary(tuple(counts), tuple(longest))


def check(
    table: Table, words: Any, threads: int = 1, on_progress: Callable[[float], None] = lambda _: None
) -> tuple[int, str | None]:
    """The number of positions whose value differs from one ply of minimax over the table, and one of them."""
    index = table.index
    played = reading(table.variant).played
    ranges = [
        (material, first, min(first + RANGE, material.end))
        for material in index.materials
        for first in range(material.first, material.end, RANGE)
    ]

    def one(material: Any, first: int, end: int) -> tuple[int, int]:
        interrupts.check()
        report = new_report()
        state = new_state(played, "tTK")[0]
        retrograde.check(
            state, index.record, words, material.attackers, material.defenders, first, end, report
        )
        return int(report["faults"]), int(report["first_fault"])

    jobs = [partial(one, *job) for job in ranges]
    results = (
        in_threads(jobs, threads) if threads > 1 else ((number, job()) for number, job in enumerate(jobs))
    )
    faults, where = 0, None
    for done, (_, (found, at)) in enumerate(results, 1):
        faults += found
        if found and where is None:
            where = fen_of(index, at)
        on_progress(done / len(jobs))
    return faults, where


def digest(words: Any, bits: int) -> str:
    """The digest of a table with these words."""
    found = hashlib.sha256()
    for at in range(0, len(words), BLOCK):
        found.update(packed(encode(words[at : at + BLOCK], bits), bits))
    return found.hexdigest()


def fen_of(index: Index, number: int) -> str:
    """The position with this number."""
    material = index.of(number)
    record = new_state(index.variant, "tTK")
    state = record[0]
    place_number(state, index.record, material.attackers, material.defenders, number)
    size = index.variant.size
    grid = [["." for _ in range(size)] for _ in range(size)]
    for side, letter in ((0, "t"), (1, "T")):
        for sq in state["pieces"][side][: state["count"][side]]:
            grid[size - 1 - rank_of(int(sq))][file_of(int(sq))] = "K" if sq == state["king"] else letter
    rows = "/".join(_packed(row) for row in grid)
    return f"{rows} {'ad'[int(state['side'])]} 0 1"


def _packed(row: list[str]) -> str:
    text, empty = "", 0
    for letter in [*row, "/"]:
        if letter == ".":
            empty += 1
            continue
        text += (str(empty) if empty else "") + letter
        empty = 0
    return text.removesuffix("/")


def position_of(table: Table | Tree, fen: str | None) -> Position:
    """A position of the table's game; ValueError if it is impossible."""
    return games.initial(table.variant) if fen is None else games.from_fen(table.variant, fen)
