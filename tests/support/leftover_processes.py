"""Processes that a command may have left behind, found by a mark in their environment."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from patience import PROMPTLY

MARK = "HNEFI_KILL_TEST"


def marked(mark: str) -> list[str]:
    """Living processes with this word in their environment: engines, and whatever they have started."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            alive = (entry / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
            if alive and mark.encode() in (entry / "environ").read_bytes():
                found.append(f"{entry.name} {(entry / 'cmdline').read_bytes()!r}")
        except OSError:
            continue
    return found


def expect_nobody(mark: str) -> None:
    try:
        wait_until(lambda: not marked(mark))
    except AssertionError:
        raise AssertionError(f"still there: {'; '.join(marked(mark))}") from None


def wait_until(holds: Callable[[], object], seconds: float = PROMPTLY) -> None:
    """Returns when it holds; what is left behind by a test goes on for ten minutes at least."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)
