"""What the scripts share that measure adapters: spreads, and what a process has used (Linux)."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def spread(seconds: Sequence[float]) -> str:
    """Median, least and most, in milliseconds."""
    values = [1000 * one for one in seconds]
    return f"{statistics.median(values):.2f} ms ({min(values):.2f} to {max(values):.2f}; {len(values)})"


def memory(pid: int) -> str:
    """What a process holds in memory."""
    status = Path(f"/proc/{pid}/status").read_text()
    return f"{int(status.partition('VmRSS:')[2].split()[0]) / 1024:.0f} MiB"


def cpu(pid: int) -> float:
    """Seconds of a processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def scheduled(pid: int) -> tuple[float, float]:
    """Seconds that the threads of a process have had a processor, and that they were ready and waited for one."""
    threads = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    return sum(int(had) for had, _, _ in threads) / 1e9, sum(int(waited) for _, waited, _ in threads) / 1e9


class Turns:
    """How long an adapter takes for its moves, and how much of a processor it uses for each: all the rest of its time
    it waits, for others or for a processor."""

    def __init__(self) -> None:
        self.taken: list[float] = []
        self._used: list[float] = []
        self._began = (0.0, 0.0)

    def asked(self, pid: int) -> None:
        """It is about to be asked for a move."""
        self._began = scheduled(pid)[0], time.perf_counter()

    def answered(self, pid: int) -> None:
        """Its move has come."""
        came = time.perf_counter()
        used, began = self._began
        self.taken.append(came - began)
        self._used.append(scheduled(pid)[0] - used)

    def __str__(self) -> str:
        return f"{spread(self.taken)}, own CPU {spread(self._used)}"


class Firsts:
    """How long processes took to meet their first duty, and what of it they only waited for a processor."""

    def __init__(self) -> None:
        self._taken: list[float] = []
        self._used: list[float] = []
        self._waited: list[float] = []

    def met(self, pid: int, seconds: float) -> None:
        """A process has met it, so long after its start."""
        self._taken.append(seconds)
        used, waited = scheduled(pid)
        self._used.append(used)
        self._waited.append(waited)

    def __str__(self) -> str:
        rest = [taken - waited for taken, waited in zip(self._taken, self._waited, strict=True)]
        return (
            f"{spread(self._taken)}, without waits for a processor {spread(rest)}, CPU {spread(self._used)}"
        )


def idle(pid: int, seconds: float) -> str:
    """What a process uses while nothing happens."""
    before = cpu(pid)
    time.sleep(seconds)
    return f"{100 * (cpu(pid) - before) / seconds:.2f} % of a processor, {memory(pid)}"
