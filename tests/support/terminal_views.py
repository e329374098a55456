"""Views for tests of what the terminal draws, made without an engine."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from hnefi.engine import squares
from hnefi.engine.games import find
from hnefi.engine.games.tafl.variant import Variant
from hnefi.gui_adapter.terminal.screen import compose
from hnefi.gui_adapter.terminal.settings import Settings
from hnefi.gui_adapter.terminal.theme import plain
from hnefi.gui_adapter.terminal.values import Board, Entry, Move, View

KINDS = {"throne": "throne", "corners": "corner", "attacker_camps": "camp", "defender_camps": "fort"}


def unpacked(fen: str) -> tuple[str, ...]:
    """The rows of a FEN's board with a `.` for every empty cell."""
    return tuple(
        re.sub("[0-9]+", lambda run: "." * int(run[0]), row) for row in fen.split(maxsplit=1)[0].split("/")
    )


def board(name: str, fen: str = "", **facts: Any) -> Board:
    """The start of a variant, or another position on its board."""
    variant = find(name)
    special = {}
    if isinstance(variant, Variant):
        for field, kind in KINDS.items():
            special.update({squares.name(sq): kind for sq in getattr(variant.rules, field)})
    rows = unpacked(fen or variant.startpos)
    return Board(len(rows[0]), len(rows), rows, special, **facts)


def view(name: str, fen: str = "", *, board_facts: dict[str, Any] | None = None, **facts: Any) -> View:
    """A view of a variant's start, or of another position; settings and everything else as given."""
    settings = facts.pop("settings", Settings(glyphs="ascii"))
    variant = find(name)
    return View(variant.name, variant.game, board(name, fen, **(board_facts or {})), settings, **facts)


def move(text: str, *captures: str) -> Move:
    """A move from its text: two squares, or one for a stone."""
    found = re.findall("[a-s][0-9]+", text)
    return Move(text, found[0], found[-1], captures)


def with_settings(seen: View, **values: Any) -> View:
    """The same view under other settings."""
    return replace(seen, settings=replace(seen.settings, **values))


def played(count: int, current: int) -> tuple[Entry, ...]:
    """A history of so many plies in turns of two, that of number `current` on the board."""
    return tuple(
        Entry(ply, (ply + 1) // 2, "ad"[(ply + 1) % 2], f"a{ply}b{ply}", is_current=ply == current)
        for ply in range(1, count + 1)
    )


def lines_of(seen: View, columns: int, rows: int, **options: object) -> list[str]:
    """The screen of a view as plain lines."""
    shown = compose(seen, columns, rows, colour=False, **options)  # type: ignore[arg-type]
    return [plain(line) for line in shown.lines]
