"""Which files follow a run's log."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from .options import Config
from .store import Export
from .values import GameResult, to_json


def of(config: Config) -> tuple[Export, ...]:
    """The exports that a configuration asks for."""
    wanted: dict[str, Callable[[GameResult], bytes]] = {"jsonl": game_json}
    return tuple(
        Export(name, Path(config[f"output.{name}"]), render)
        for name, render in wanted.items()
        if config[f"output.{name}"]
    )


def game_json(result: GameResult) -> bytes:
    """One game as one line of JSON."""
    return json.dumps(to_json(result), separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
