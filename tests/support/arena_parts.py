"""What the arena's tests share: a game known by heart, engines that play it, runs, and a look at what is left."""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from leftover_processes import wait_until
from patience import PROMPTLY

from hnefi.engine import games, squares
from hnefi.tools.arena import slots
from hnefi.tools.arena.values import EngineSpec, GameResult, GameTask, Opening, SideLimits

VARIANT = "brandubh"
SCRIPT = str(Path(__file__).with_name("fault_engine.py"))
MARK = "HNEFI_ARENA_TEST"
NODES = SideLimits(nodes=10)
CLOCK = SideLimits(time=1000)
START = Opening()


@cache
def by_heart(seed: int = 1, at_least: int = 20) -> tuple[str, ...]:
    """The moves of a whole random game of at least so many plies that a king's escape or capture ends."""
    rng = random.Random(seed)
    while True:
        position = games.initial(games.find(VARIANT))
        while position.outcome is None:
            position = position.play(rng.choice(position.legal_moves()))
        if len(position.moves) >= at_least and position.outcome.winner is not None:
            return tuple(map(squares.move_name, position.moves))


def spec(name: str = "good", *words: str, moves: Sequence[str] = (), **fields: Any) -> EngineSpec:
    """An engine that knows `moves` by heart (the whole game), with words for `fault_engine`.

    Whoever plays a silent one says how long to wait for it: patience costs the others nothing.
    """
    command = (sys.executable, "-I", "-S", SCRIPT, ",".join(moves or by_heart()), *words)
    plain = EngineSpec(
        name, command, proto="uti", limits=(NODES, NODES), move_timeout=120.0, start=120.0, ready=120.0
    )
    return replace(plain, **{"env": ((MARK, f"{name}-{uuid.uuid4()}"),), "new_game": 120.0, **fields})


def pair(number: int = 1, engines: tuple[int, int] = (0, 1), opening: Opening = START) -> list[GameTask]:
    """Both games of a pair."""
    first, second = engines
    return [
        GameTask(number, 1, VARIANT, opening, (first, second), (11, 12)),
        GameTask(number, 2, VARIANT, opening, (second, first), (13, 14)),
    ]


def collect(tasks: Iterable[GameTask], specs: Sequence[EngineSpec], **manner: Any) -> list[GameResult]:
    """Play everything; no process may be left, and winding up ends promptly.

    A process that an engine started was killed with its group; on a busy machine it dies a moment later, and nobody
    here can wait for that.
    """

    async def run() -> tuple[list[GameResult], float]:
        results = [result async for result in stamped(slots.play(iter(tasks), specs, **manner))]
        return results, time.monotonic()

    last = 0.0

    async def stamped(source: Any) -> Any:
        nonlocal last
        async for result in source:
            last = time.monotonic()
            yield result

    results, ended = asyncio.run(asyncio.wait_for(run(), 240))
    assert ended - last < PROMPTLY
    assert leftovers(specs, children=True) == []
    wait_until(lambda: leftovers(specs) == [])
    return results


def leftovers(specs: Iterable[EngineSpec], *, children: bool = False) -> list[str]:
    """Processes that carry the mark of one of these engines, their descendants included unless only our children are
    asked for, and our zombies."""
    marks = [value.encode() for one in specs for key, value in one.env if key == MARK]
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            environment = (folder / "environ").read_bytes()
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
        except (OSError, ValueError):
            continue
        ours = int(parent) == os.getpid()
        marked = any(mark in environment for mark in marks)
        if (marked and (ours or not children)) or (state == "Z" and ours):
            found.append(f"{folder.name} {(folder / 'cmdline').read_bytes()!r}")
    return found
