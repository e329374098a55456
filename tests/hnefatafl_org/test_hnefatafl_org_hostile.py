"""`hnefi hnefatafl-org` and the hostile set: the server."""

from __future__ import annotations

import json
import random
import socket
import sys
from pathlib import Path

import pytest
from hostile import LIVES, Far, far

pytestmark = pytest.mark.process

STATUS = {
    "garbage": LIVES, "bytes": LIVES, "overlong": LIVES, "endless": LIVES, "vanish": LIVES, "deaf": LIVES,
    "twice": LIVES, "flood": LIVES,
}  # fmt: skip
"""Lines that it does not know are skipped, and it connects again where the connection falls."""


@pytest.mark.parametrize("kind", STATUS)
def test_a_server(tmp_path: Path, kind: str) -> None:
    host = "127.0.0.1"
    if sys.platform == "linux":  # one that nobody else takes: the port is free again before the peer has it
        host = f"127.{random.randrange(1, 255)}.{random.randrange(1, 255)}.{random.randrange(1, 255)}"
    with socket.create_server((host, 0)) as free:
        port = free.getsockname()[1]
    game = {"id": 7, "attackers": "anna", "defenders": "ai-hnefi", "dim": 7, "moves": ""}
    case = Far(
        (
            "hnefatafl-org", "--user", "ai-hnefi", "--server", f"{host}:{port}", "--board", "7", "--role",
            "defender", "--option", "Algorithm=random", "--movetime", "5000",
        ),
        f"listen={host}:{port}",
        (
            "login=>= login\\n",
            "software_id=>game 7 generate_move defender\\n",
            f"resume_game_json=>= resume_game_json {json.dumps(game)}\\n",
            "play defender=>game 7 play attacker 0d6 0c6\\n",
        ),
        STATUS,
        environment={"HNEFI_PASSWORD": "secret"},
    )  # fmt: skip
    far(case, kind, tmp_path)
