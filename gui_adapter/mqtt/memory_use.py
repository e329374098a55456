"""What processes take, read from Linux's /proc; zeros and nothing where there is none."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")


def resident(process: int) -> float:
    """MiB of a process, pages that it shares with others counted by its share."""
    with suppress(OSError, ValueError, IndexError):
        for line in (PROC / str(process) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0


def children(process: int) -> list[int]:
    """The processes that it started and that still run."""
    found: list[int] = []
    with suppress(OSError):
        for task in (PROC / str(process) / "task").iterdir():
            with suppress(OSError, ValueError):
                found += map(int, (task / "children").read_text().split())
    return [child for child in found if running(child)]


def running(process: int) -> bool:
    """Whether there is such a process."""
    with suppress(OSError, IndexError):
        # Behind the name, which may hold anything: the state; Z has ended and was not yet fetched.
        return (PROC / str(process) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
