"""`hnefi tablut` and the hostile set: a server, a bot, and whoever drives a wrapped bot."""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path

import pytest
from hostile import EITHER, LIVES, Far, Near, far, near, unread
from tablut_parts import free_address

if sys.platform != "linux":
    pytest.skip("every game has a loopback address of its own", allow_module_level=True)

pytestmark = pytest.mark.process

ROWS = ["...BBB...", "....B....", "....W....", "B...W...B", "BBWWKWWBB", "B...W...B", "....W....", "....B....",
        "...BBB..."]  # fmt: skip
CELLS = {".": "EMPTY", "B": "BLACK", "W": "WHITE", "K": "KING"}


def framed(message: object) -> str:
    """A frame in the escapes of the peer."""
    data = json.dumps(message).encode()
    return "".join(f"\\x{byte:02x}" for byte in struct.pack(">i", len(data)) + data)


NAME = framed("bot")
MOVE = framed({"from": "e4", "to": "f4", "turn": "WHITE"})
STATE = framed({"board": [[CELLS[cell] for cell in row] for row in ROWS], "turn": "WHITE"})
BOT = Far(
    ("tablut", "--wrap", "{peer}"),
    "connect={host}:{port}",
    (f"=>{NAME}", f"WHITE=>{MOVE}"),
    {
        "garbage": 3, "bytes": LIVES, "overlong": 3, "endless": 3, "vanish": 3, "deaf": LIVES, "twice": LIVES,
        "flood": LIVES,
    },
    "setoption name Side value d\nposition startpos\ngo movetime 100\n",
)  # fmt: skip
SERVER = {
    "garbage": 3, "bytes": LIVES, "overlong": 3, "endless": 3, "vanish": 3, "deaf": LIVES, "twice": LIVES,
    "flood": EITHER,
}  # fmt: skip
"""The state that it has sent before comes again: it has refused our move, ten times at most."""


@pytest.mark.parametrize("kind", BOT.status)
def test_a_bot(tmp_path: Path, kind: str) -> None:
    far(BOT, kind, tmp_path)


@pytest.mark.parametrize("kind", SERVER)
def test_a_server(tmp_path: Path, kind: str) -> None:
    address = free_address()
    case = Far(
        ("tablut", "White", "60", address, "--option", "Algorithm=random", "--movetime", "5000"),
        f"listen={address}:5800",
        (f"hnefi=>{STATE}", f"from=>{STATE}"),
        SERVER,
    )
    far(case, kind, tmp_path)


def test_whoever_drives_a_wrapped_bot(tmp_path: Path) -> None:
    near(Near(("tablut", "--wrap", "cat", "--log-level", "error"), "uti\n", "utiok"), tmp_path)


@pytest.mark.slow
def test_nobody_reads(tmp_path: Path) -> None:
    unread(("tablut", "--wrap", "cat"), b"uti\n" * 2_000, tmp_path)
