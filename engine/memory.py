"""How much memory there is for a table, asked before one is promised.

A system gives out more memory than it has, and ends processes when that is touched: that a table could be allocated
says little. The available memory is what Linux estimates, or less where control groups (containers) set a limit.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from pathlib import Path, PurePosixPath

MIB = 1 << 20
KEPT_BACK = 10
"""One part in this many of the available memory is left to other programs and to the engine itself."""
PROC = Path("/proc")
GROUPS = Path("/sys/fs/cgroup")


def demand(mib: int, *, instead_of: int = 0) -> None:
    """Check that a table of `mib` MiB fits now; MemoryError with a sentence that says how much would.

    The table replaces one of `instead_of` MiB, whose memory comes back, and no smaller one is refused.
    """
    if mib <= instead_of:
        return
    free = available()
    if free is not None:
        free += min(instead_of * MIB, _resident())
        most = max(free - free // KEPT_BACK, instead_of * MIB) // MIB
        if mib > most:
            raise MemoryError(f"expected at most {most}, because {free // MIB} MiB of memory are available")
    try:
        mmap.mmap(-1, mib * MIB).close()
    except (OSError, ValueError, OverflowError) as error:
        raise MemoryError(f"expected less, because the system refuses so many MiB ({error})") from None


def available() -> int | None:
    """Bytes of unused memory, within the limits of this process's control groups; None if unknown."""
    known = [room for room in (_system(), *_groups()) if room is not None]
    return max(0, min(known)) if known else None


def _system() -> int | None:
    for line in _lines(PROC / "meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    # Elsewhere what is free, or at least what is built in.
    for name in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES"):
        with contextlib.suppress(AttributeError, ValueError, OSError):
            return os.sysconf(name) * os.sysconf("SC_PAGE_SIZE")
    return None


def _groups() -> list[int | None]:
    """What each control group above this process leaves, of both versions of Linux's interface."""
    found: list[int | None] = []
    for line in _lines(PROC / "self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if not controllers:
            folder, limit, used, cache = GROUPS, "memory.max", "memory.current", "inactive_file "
        elif "memory" in controllers.split(","):
            folder, limit, used = GROUPS / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
            cache = "total_inactive_file "
        else:
            continue
        # In a container the path may be the host's, and then only the root of it is here.
        inner = PurePosixPath(path.lstrip("/"))
        found += [_left(folder / part, limit, used, cache) for part in (inner, *inner.parents)]
    return found


def _left(group: Path, limit: str, used: str, cache: str) -> int | None:
    """What a group leaves; cached pages of files that are no longer read count as free, because the system drops
    them first."""
    try:
        room = int((group / limit).read_text()) - int((group / used).read_text())
    except (OSError, ValueError):
        return None  # no such group here, or no limit: "max"
    return room + sum(
        int(line.split()[1]) for line in _lines(group / "memory.stat") if line.startswith(cache)
    )


def _resident() -> int:
    """Bytes of memory that this process has touched."""
    for line in _lines(PROC / "self/statm"):
        return int(line.split()[1]) * mmap.PAGESIZE
    return 0


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
