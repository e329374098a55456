"""What tests of `hnefi htp` share: two games by heart, commands, addresses of their own."""

from __future__ import annotations

import os
import random
import shlex
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import engine_pool

from hnefi.engine.records.record import GameRecord
from hnefi.protocol.hosts import journal

DOUBLES = Path(__file__).parents[1] / "htp"
FAULTY = Path(__file__).with_name("fault_engine.py")
WAIT = 120.0
"""Seconds after which what has not come does not come, on however busy a machine."""
HNEFI = engine_pool.command()
RANDOM = ("--option", "Algorithm=random", "--movetime", "5000")

BRANDUBH = "d5a5,d6g6,d4d5,d2c2,d5g5xg6,b4b5,g5g7"
"""On 7 x 7: the king escapes, defenders begin."""
COPENHAGEN = (
    "k8k10,e7b7,d11c11,f7e7,g11g10,f8g8,b6b4,b7b5,a8b8,e5e4,f10a10,g8e8,g10j10,f6f9,c11c5xb5,f9c9,k7k8,c9c11,f11f7,"
    "c11a11"
)
"""On 11 x 11: the king escapes, attackers begin."""


def bare(game: str) -> list[str]:
    """The moves of a game without what they take."""
    return [word.partition("x")[0] for word in game.split(",")]


def double(kind: str, *words: str) -> str:
    """The command of a double of an engine."""
    return shlex.join([sys.executable, "-I", "-S", str(DOUBLES / "double_engine.py"), kind, *words])


def by_heart(game: str, *faults: str) -> tuple[str, ...]:
    """Flags for an engine that plays a game by heart."""
    return (
        "--engine",
        shlex.join([sys.executable, "-I", "-S", str(FAULTY), ",".join(bare(game)), *faults]),
    )


def free_address() -> str:
    """A loopback address on which nobody listens."""
    while True:
        address = f"127.{random.randrange(1, 255)}.{random.randrange(1, 255)}.{random.randrange(1, 255)}"
        with suppress(OSError):
            socket.create_server((address, 49152)).close()
            return address


def environment(folder: Path, **how: str) -> dict[str, str]:
    return {**os.environ, "XDG_DATA_HOME": str(folder), **how}


def start(*words: str, folder: Path, **how: str) -> subprocess.Popen[bytes]:
    """`hnefi htp WORDS`, whose games are written down in `folder`."""
    return subprocess.Popen(
        [*HNEFI, "htp", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(folder, **how),
    )  # fmt: skip


def run(*words: str, folder: Path, said: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """The same, to its end."""
    return subprocess.run(
        [*HNEFI, "htp", *words], input=said, capture_output=True, timeout=WAIT, check=False, env=environment(folder)
    )  # fmt: skip


def records(folder: Path) -> list[GameRecord]:
    """The games that were written down."""
    files = sorted((folder / "hnefi" / "games" / "htp").glob("*.jsonl"))
    return [record for path in files for record in journal.read(path)]
