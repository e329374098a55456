"""What tests of `hnefi tablut` share: a book of rules, addresses, commands, and a chooser that plays by heart."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import engine_pool

from hnefi.gui_adapter.tablut.frames import GAME
from hnefi.protocol.client import Answer, Limits
from hnefi.protocol.hosts.rulebook import EngineSlot, Facts, Line, RulesEngine

DOUBLES = Path(__file__).parents[1] / "tablut"
WAIT = 120.0
"""Seconds after which what has not come does not come, on however busy a machine."""
HNEFI = (*engine_pool.command(), "tablut")


def free_address() -> str:
    """A loopback address on which nobody listens at the ports of the convention."""
    while True:
        address = f"127.{random.randrange(1, 255)}.{random.randrange(1, 255)}.{random.randrange(1, 255)}"
        with suppress(OSError):
            for port in (5800, 5801):
                socket.create_server((address, port)).close()
            return address


def run(*words: str, folder: Path, seconds: float = WAIT, **how: str) -> subprocess.CompletedProcess[str]:
    """`hnefi tablut WORDS`, whose games are written down in `folder`."""
    return subprocess.run(
        [*HNEFI, *words], capture_output=True, text=True, timeout=seconds, check=False, env=environment(folder, **how)
    )  # fmt: skip


def start(*words: str, folder: Path, **how: str) -> subprocess.Popen[str]:
    """The same, running."""
    return subprocess.Popen(
        [*HNEFI, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment(folder, **how),
    )  # fmt: skip


def environment(folder: Path, **how: str) -> dict[str, str]:
    return {**os.environ, "XDG_DATA_HOME": str(folder), **how}


class House:
    """One loop and one book of rules for all tests of a file."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.slot = EngineSlot(game=GAME)
        self.rules = RulesEngine(self.slot)

    def close(self) -> None:
        self.runner.run(self.slot.close())
        self.runner.close()


class ByHeart:
    """Chooses the moves of a game, whatever it is asked."""

    def __init__(self, moves: Sequence[str], decoys: int = 0) -> None:
        """The first `decoys` answers are other legal moves."""
        self.moves = [word.partition("x")[0] for word in moves]
        self.asked: list[tuple[Line, tuple[str, ...]]] = []
        self.deadlines: list[float] = []
        self.decoys = decoys

    async def warm_up(self) -> None:
        """It is always ready."""

    async def best(
        self,
        line: Line,
        facts: Facts,
        limits: Callable[[], Limits],
        among: Sequence[str] = (),
        grace: float = 0.0,  # noqa: ARG002
        others: Sequence[str] = (),  # noqa: ARG002
    ) -> Answer:
        self.asked.append((line, tuple(among)))
        self.deadlines.append((limits().movetime or 0) / 1000)
        allowed = among or list(facts.legal)
        move = self.moves[len(line.moves)]
        if self.decoys:
            self.decoys -= 1
            move = next(other for other in allowed if other != move)
        return Answer(move if move in allowed else allowed[0], None, (), (), 0.0, 0.0)
