"""`hnefi otep` and the hostile set: a host, an engine, and whoever drives a wrapped engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from hostile import LIVES, Far, Near, far, near, unread
from otep.double_games import GAMES

pytestmark = pytest.mark.process

ENGINE = Far(
    ("otep", "--wrap", "{peer}"),
    "stdio",
    ("=>hello\\n", "play =>move d1-d2\\n"),
    {
        "garbage": LIVES, "bytes": LIVES, "overlong": LIVES, "endless": LIVES, "vanish": 3, "deaf": LIVES,
        "twice": LIVES, "flood": LIVES,
    },
    "position startpos\ngo movetime 1000\n",
)  # fmt: skip
FACE = ("otep", "--movetime", "5000", "--option", "Algorithm=random", "--no-record", "--log-level", "error")
RULES = " ".join(GAMES["brandub"].rules.split())


@pytest.mark.parametrize("kind", ENGINE.status)
def test_an_engine(tmp_path: Path, kind: str) -> None:
    far(ENGINE, kind, tmp_path)


def test_a_host(tmp_path: Path) -> None:
    near(Near(FACE, f"rules {RULES}\nplay attackers\n", "move "), tmp_path)


def test_whoever_drives_a_wrapped_engine(tmp_path: Path) -> None:
    near(Near(("otep", "--wrap", "cat", "--log-level", "error"), "uti\n", "utiok"), tmp_path)


@pytest.mark.slow
def test_nobody_reads(tmp_path: Path) -> None:
    unread(("otep", "--wrap", "cat"), b"uti\n" * 2_000, tmp_path)
