"""`hnefi bench tactics`: the same as `hnefi tactics run`."""

from __future__ import annotations

from ..tactics.command import main as tactics


def main(argv: list[str]) -> int:
    """Solve the suite."""
    return tactics(["run", *argv])
