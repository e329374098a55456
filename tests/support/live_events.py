"""Events of an arena's live file, as tests want them."""

from __future__ import annotations

import time
from typing import Any


def start(name: str = "1.1", **known: Any) -> dict[str, Any]:
    given = {
        "event": "start", "at": time.time(), "slot": 0, "id": name, "variant": "brandubh", "attackers": "mine",
        "defenders": "simple", "start": None, "opening": ["d1c1"], "fen": "7/7 d 0 1", "moves": [],
    }  # fmt: skip
    return given | known


def ply(number: int, move: str = "a1a2", name: str = "1.1", **known: Any) -> dict[str, Any]:
    given = {
        "event": "ply", "at": time.time(), "slot": 0, "id": name, "number": number, "move": move, "captures": [],
        "cp": 12, "mate": None, "depth": 3, "nodes": 7, "time": 1.5, "clock": 900,
    }  # fmt: skip
    return given | known


def info(name: str = "1.1", side: str = "a", **known: Any) -> dict[str, Any]:
    return {"event": "info", "at": time.time(), "slot": 0, "id": name, "side": side, "cp": 5} | known


def end(name: str = "1.1", **known: Any) -> dict[str, Any]:
    given = {
        "event": "end", "at": time.time(), "slot": 0, "id": name, "winner": "a", "reason": "king_captured",
        "fault": None, "plies": 2, "captured": [0, 1],
    }  # fmt: skip
    return given | known


TABLE = {
    "event": "table", "at": 5.0, "pairs": 1, "planned": 2, "games": 2, "faults": 0, "llr": None,
    "engines": [{"rank": 1, "name": "mine", "wins": 2, "draws": 0, "losses": 0, "elo": None, "elo_error": None}],
}  # fmt: skip
