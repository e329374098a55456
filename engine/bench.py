"""The signature: fixed searches over several variants, whose number of nodes identifies how the engine plays."""

from __future__ import annotations

import time

from .evaluators import HAND
from .games.tafl.position import Position
from .games.tafl.variant import find
from .search.searcher import Searcher
from .search.types import Info, Limits, Settings
from .squares import move_name

DEPTH = 8
SIGNATURE = 722_405
"""The nodes of this version; a change of how the engine plays changes it, and is noted in CHANGELOG.md."""
POSITIONS = (
    ("copenhagen", ""),
    ("copenhagen", "d1d3 e5b5 a4c4 g5g3 h11h9 f4i4"),
    ("fetlar", "d1d2 f4i4 k4k3 f8c8"),
    ("brandubh", ""),
    ("brandubh", "a4a2 d3a3 d1b1"),
    ("tablut-linnaeus", ""),
    ("tablut-linnaeus", "d1d3 e4g4 f1f3"),
    ("tablut-bologna", ""),
    ("hingston-original", "d1d2 f4i4 a4c4"),
    ("hingston-alternative", "d1d2 f4i4 a4c4"),
)
"""Variant and moves from its start, blank-separated; the last move is somewhere in mid-game play."""


def bench(depth: int = DEPTH) -> tuple[int, float, list[str]]:
    """Search every position `depth` plies deep with a fresh table; nodes, seconds of thinking, a line for each."""
    nodes = 0
    seconds = 0.0
    lines = []
    for name, text in POSITIONS:
        position = Position.initial(find(name))
        for word in text.split():
            position = position.play(position.parse_move(word))
        # Whatever `default` picks: the signature is that of the search.
        searcher = Searcher(Settings(hash_mib=16, evaluator=HAND))
        last: list[Info] = []
        searcher.begin()
        begun = time.perf_counter()
        result = searcher.search(position, Limits(depth=depth), last.append)
        seconds += time.perf_counter() - begun
        nodes += last[-1].nodes
        best = "none" if result.move is None else move_name(result.move)
        lines.append(f"{name} ply {position.ply}: {last[-1].nodes} nodes, {best}")
    return nodes, seconds, lines
