"""`hnefi bench sessions`: what an engine session costs a server, as a fork and as a new process.

Sessions are opened one after another, as `hnefi web` and `hnefi mqtt serve` do, and stay open. A start is measured
from the request to the answer to `isready`, with variant and table size set. Then each session searches, so that its
table is in use, and its memory is read as PSS, which divides each shared page among its users. Linux only.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

from hnefi.protocol.client import own_command
from hnefi.protocol.fork_client import Forks, possible
from hnefi.protocol.hosts.exit_codes import USAGE
from hnefi.protocol.process import Process

from ..common.arguments import find_variant, let_interrupt_end_us, parser, positive

if TYPE_CHECKING:
    from hnefi.protocol.client import Engine, Starter

CPUCLOCK_SCHED: Final = 2
SEARCHED: Final = 200_000
"""Nodes of a search that touches every page of a table of the usual size."""
LONGEST: Final = 600.0
"""Seconds that the first start may take; it may have to compile."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of `sessions` sessions. Start times are in milliseconds, `cpu` for one start; memory is in MiB.

    `each` is the PSS of a session that has searched, `private` the memory that it shares with nobody; `server` is the
    PSS of the process from which the sessions are forked.
    """

    how: str
    sessions: int
    start: float
    slowest: float
    cpu: float
    each: float
    private: float
    server: float

    @property
    def per_gib(self) -> float:
        """How many more sessions fit in another GiB, with the shared memory already loaded."""
        return 1024 / self.private


def cpu(pid: int) -> float:
    """Milliseconds of processor time that all threads of a process have used."""
    # clock_getcpuclockid in C. The ticks in which /proc counts are longer than a fork takes.
    return 1000 * time.clock_gettime(~pid << 3 | CPUCLOCK_SCHED)


def memory(pid: int) -> tuple[float, float]:
    """PSS and private memory of a process in MiB."""
    sizes = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, size, *_ = line.split()
        sizes[name] = int(size) / 1024
    return sizes["Pss:"], sizes["Private_Clean:"] + sizes["Private_Dirty:"]


async def measure(how: str, starter: Starter, server: int, words: Sequence[str], sessions: int) -> Cost:
    """Open `sessions` sessions and send each the lines `words`; `server` is the process that forks them, or 0."""
    from hnefi.engine.search.types import Limits
    from hnefi.protocol.client import Engine, Timeouts

    patient = Timeouts(start=LONGEST, ready=LONGEST, answer=LONGEST, move=LONGEST)

    async def opened() -> Engine:
        engine = await Engine.start(own_command(), "uti", timeouts=patient, starter=starter)
        for line in words:
            await engine.ask(line, LONGEST)
        await engine.is_ready()
        return engine

    # The first one may have to compile, and makes the server load what it loads.
    await (await opened()).quit()
    engines: list[Engine] = []
    times = []
    before = cpu(server) if server else 0.0
    try:
        for _ in range(sessions):
            began = time.perf_counter()
            engines.append(await opened())
            times.append(1000 * (time.perf_counter() - began))
        used = sum(cpu(engine.pid) for engine in engines) + (cpu(server) - before if server else 0.0)
        for engine in engines:
            await (await engine.go(Limits(nodes=SEARCHED)))
        taken = [memory(engine.pid) for engine in engines]
        return Cost(
            how,
            sessions,
            median(times),
            max(times),
            used / sessions,
            sum(pss for pss, _ in taken) / sessions,
            sum(private for _, private in taken) / sessions,
            memory(server)[0] if server else 0.0,
        )
    finally:
        await asyncio.gather(*(engine.quit() for engine in engines))


async def compare(words: Sequence[str], sessions: int) -> list[Cost]:
    """Both ways; new processes first."""
    costs = [await measure("ordinary", Process.start, 0, words, sessions)]
    if possible():
        forks = Forks()
        await forks.launch()
        try:
            await forks.settled.wait()
            if forks.ready and forks.process is not None:
                costs.append(await measure("forked", forks.start, forks.process.pid, words, sessions))
        finally:
            await forks.close()
    return costs


def main(argv: list[str]) -> int:
    """The command line."""
    options = parser(
        "bench sessions",
        "Opens engine sessions as `hnefi web` and `hnefi mqtt serve` do, both as new processes and as forks of a "
        "loaded process, and shows how long a start takes and how much memory a session adds. Linux only.",
        ["", "--sessions 64 --hash 16", "--variant copenhagen --json"],
    )
    options.add_argument(
        "--sessions", metavar="N", type=positive, default=16, help="sessions at once (default 16)"
    )
    options.add_argument(
        "--hash", metavar="MIB", type=positive, default=16, help="hash table of each (default 16)"
    )
    options.add_argument("--variant", metavar="V", default="brandubh", help="default brandubh")
    options.add_argument("--json", action="store_true", help="the figures as JSON")
    arguments = options.parse_args(argv)
    variant = find_variant(options, arguments.variant)
    if sys.platform != "linux":
        options.exit(USAGE, "hnefi bench sessions: error: memory is read from /proc: expected Linux\n")
    let_interrupt_end_us()
    words = [f"setoption name Hash value {arguments.hash}", f"variant {variant.name}"]
    costs = asyncio.run(compare(words, arguments.sessions))
    if arguments.json:
        print(json.dumps([{**asdict(cost), "per_gib": cost.per_gib} for cost in costs]))
        return 0
    print(f"{arguments.sessions} sessions of {variant.name}, a table of {arguments.hash} MiB each")
    head = ("", "start", "slowest", "CPU", "PSS", "private", "server", "per GiB")
    units = ("", "ms", "ms", "ms", "MiB", "MiB", "MiB", "sessions")
    for row in (head, units):
        print(f"{row[0]:9}" + "".join(f"{word:>10}" for word in row[1:]))
    for cost in costs:
        figures = (cost.start, cost.slowest, cost.cpu, cost.each, cost.private, cost.server, cost.per_gib)
        print(f"{cost.how:9}" + "".join(f"{figure:10.1f}" for figure in figures))
    return 0
