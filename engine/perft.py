"""Perft: the number of leaves of the tree of all legal moves, the classic test of move generation."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import count
from .games.base_position import Position
from .games.interface import make, undo


@dataclass(frozen=True, slots=True)
class PerftResult:
    """Leaves behind each root move, in all, how many of them captured with their last ply, and how long it took."""

    divide: tuple[tuple[int, int], ...]
    nodes: int
    captures: int
    seconds: float


def perft(
    position: Position,
    depth: int,
    bulk: bool = False,
    progress: Callable[[int, int], object] = lambda *_: None,
) -> PerftResult:
    """Count the leaves after exactly `depth` plies; finished positions have no children.

    Repetition and limits are off. `bulk` counts the last ply's moves without playing them: several times faster,
    the same number, but then captures are not known (0). `progress` hears how many root moves are done, and of
    how many.
    """
    root = position.unlimited()
    state = root.new_record()[0]
    state["tally"][0] = 0
    begun = time.perf_counter()
    if depth < 1 or position.outcome is not None:
        return PerftResult((), int(depth < 1), 0, time.perf_counter() - begun)
    moves = root.legal_moves()
    divide = []
    for done, move in enumerate(moves):
        progress(done, len(moves))
        divide.append((move, _behind(state, move, depth, bulk)))
    progress(len(moves), len(moves))
    return PerftResult(
        tuple(divide), sum(n for _, n in divide), int(state["tally"][0]), time.perf_counter() - begun
    )


def _behind(state: Any, move: int, depth: int, bulk: bool) -> int:
    """Leaves behind one root move."""
    top = 0
    leaves = 0
    before = int(state["caught_top"])
    make(state, move)
    if depth == 1:
        leaves = 1
        state["tally"][0] += int(state["caught_top"]) > before
    elif not state["outcome"]:
        counted = count.perft if bulk else count.perft_plain
        leaves = int(counted(state, depth - 1, top))
    undo(state)
    return leaves
