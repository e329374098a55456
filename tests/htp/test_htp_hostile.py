"""`hnefi htp` and the hostile set: a controller, a light server, and wrapped engines of both kinds."""

from __future__ import annotations

from pathlib import Path

import pytest
from hostile import EITHER, LIVES, Far, Near, far, near, unread
from htp_parts import RANDOM, free_address

pytestmark = pytest.mark.process

MOVE = "play attacker d1 d2\\n"
SAYS = "uti\nposition startpos\ngo movetime 100\n"
STDIO = Far(
    ("htp", "--wrap", "{peer}"),
    "stdio",
    (
        "protocol_version=>= board_size play generate_move\\n= 1-beta\\n",
        "board_size=>= \\n",
        "board_size=>= \\n",
        f"generate_move=>= {MOVE}",
    ),
    # A line of the garbage begins with ?, the answer of an engine that has failed: it is read or not before we end.
    {
        "garbage": EITHER, "bytes": LIVES, "overlong": LIVES, "endless": 3, "vanish": 3, "deaf": LIVES,
        "twice": LIVES, "flood": LIVES,
    },
    SAYS,
)  # fmt: skip
CONNECTING = Far(
    ("htp", "--wrap", "{peer}"),
    "connect={host}:49152",
    (f"generate_move=>{MOVE}",),
    {
        "garbage": 3, "bytes": LIVES, "overlong": 3, "endless": 3, "vanish": 3, "deaf": LIVES,
        "twice": LIVES, "flood": LIVES,
    },
    SAYS,
)  # fmt: skip
# The spoilt message asks us out of turn: whoever understands it at all ends the game.
SERVER = {
    "garbage": 3, "bytes": 3, "overlong": 3, "endless": 3, "vanish": 3, "deaf": LIVES, "twice": 3,
    "flood": 3,
}  # fmt: skip
SAID = {
    "garbage": "expected UTF-8",
    "bytes": "the server sent attacker: expected defender",
    "overlong": "a line of more than 65536 bytes: expected a move",
    "vanish": "the server closed the connection in the middle of the game",
}


@pytest.mark.parametrize("kind", STDIO.status)
def test_an_engine(tmp_path: Path, kind: str) -> None:
    far(STDIO, kind, tmp_path)


@pytest.mark.parametrize("kind", CONNECTING.status)
def test_an_engine_that_connects(tmp_path: Path, kind: str) -> None:
    far(CONNECTING, kind, tmp_path)


@pytest.mark.parametrize("kind", SERVER)
def test_a_server(tmp_path: Path, kind: str) -> None:
    address = free_address()
    case = Far(
        ("htp", "--connect", address, *RANDOM),
        f"listen={address}:49152",
        ("=>generate_move attacker\\n", "play attacker=>generate_move attacker\\n"),
        SERVER,
    )
    assert SAID.get(kind, "") in far(case, kind, tmp_path)


def test_a_controller(tmp_path: Path) -> None:
    near(Near(("htp", *RANDOM, "--log-level", "error"), "name\n", "= hnefi"), tmp_path)


def test_whoever_drives_a_wrapped_engine(tmp_path: Path) -> None:
    near(Near(("htp", "--wrap", "cat", "--log-level", "error"), "uti\n", "utiok"), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("words", [("htp", *RANDOM), ("htp", "--wrap", "cat")])
def test_nobody_reads(tmp_path: Path, words: tuple[str, ...]) -> None:
    unread(words, b"list_commands\nuti\n" * 500, tmp_path)
