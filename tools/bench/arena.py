"""`hnefi bench arena`: the CPU time that the arena's own process spends on a ply and on storing a game."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from hnefi.protocol.hosts.exit_codes import STORAGE

from ..common.arguments import find_variant, let_interrupt_end_us, parser, positive

if TYPE_CHECKING:
    from ..arena.values import EngineSpec, GameResult, GameTask

WARM_UP = 4
"""Plies of a warm-up game, so that no run pays for imports."""

PATIENCE = 600.0
"""Seconds an engine has to get ready; the first one after an installation compiles its kernels."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run: the arena's own CPU time and wall time in seconds, and its largest delay in ms."""

    games: int
    plies: int
    cpu: float
    wall: float
    lateness: float

    @property
    def per_ply(self) -> float:
        """Own CPU time in ms per ply."""
        return self.cpu * 1000 / self.plies


@dataclass(frozen=True, slots=True)
class Stored:
    """The cost of storing: the arena's own CPU time and wall time in ms per game."""

    cpu: float
    wall: float


class BenchError(Exception):
    """An engine did something that a random mover never does."""


def main(argv: list[str]) -> int:
    """Play the runs and print them; the exit status is 1 if an engine did something wrong."""
    options = parser(
        "bench arena",
        "Lets two seeded random movers play under the arena's referee and prints the CPU time that this process "
        "spends on a ply: asking, reading, judging and keeping the result. The engines' time and storage are not "
        "included. The games are the same on every run. After each run it stores them one by one, first synced to the "
        "disk as in a real run and then unsynced, and prints the time for a game.",
        ["", "--games 400", "--variant hex:11 --concurrency 2 --json", "--folder /mnt/runs"],
    )
    options.add_argument(
        "--games", metavar="N", type=positive, default=12, help="games per run (default 12, a minute in all)"
    )
    options.add_argument("--runs", metavar="N", type=positive, default=5, help="number of runs (default 5)")
    options.add_argument(
        "--variant", metavar="V", default="copenhagen", help="what to play (default copenhagen)"
    )
    options.add_argument(
        "--concurrency",
        metavar="N",
        dest="slots",
        type=positive,
        default=1,
        help="games at a time (default 1)",
    )
    options.renamed("--slots", "--concurrency")
    options.add_argument(
        "--folder",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="a folder on the disk where games are stored (default: this folder)",
    )
    options.add_argument("--json", action="store_true", help="one JSON document")
    arguments = options.parse_args(argv)
    variant = find_variant(options, arguments.variant).name
    let_interrupt_end_us()

    from ..arena.slots import LIMIT
    from ..arena.store import StoreError

    if arguments.slots > LIMIT:
        options.error(f"{arguments.slots} slots: expected at most {LIMIT}")
    runs = []
    stored: dict[str, list[Stored]] = {"synced": [], "not synced": []}
    try:
        store([], arguments.folder, synced=True)  # fails early if the folder is unusable
        asyncio.run(measure(variant, 1, 1, WARM_UP))
        for number in range(1, arguments.runs + 1):
            run, results = asyncio.run(measure(variant, arguments.games, arguments.slots))
            runs.append(run)
            for how, known in stored.items():
                known.append(store(results, arguments.folder, synced=how == "synced"))
            if not arguments.json:
                print(
                    f"run {number}  {run.per_ply:.3f} ms/ply  {run.games} games  {run.plies} plies  "
                    f"{run.wall:.1f} s  at most {run.lateness:.1f} ms late",
                    flush=True,
                )
    except BenchError as error:
        print(f"hnefi bench arena: {error}", file=sys.stderr)
        return 1
    except (StoreError, OSError) as error:
        print(f"hnefi bench arena: {error}", file=sys.stderr)
        return STORAGE
    costs = sorted(run.per_ply for run in runs)
    if arguments.json:
        document = {
            "variant": variant,
            "slots": arguments.slots,
            "runs": [asdict(run) for run in runs],
            "ms_per_ply": {"min": costs[0], "median": median(costs), "max": costs[-1]},
            "storing_ms_per_game": {how: [asdict(one) for one in known] for how, known in stored.items()},
        }
        json.dump(document, sys.stdout, indent=2)
        print()
    else:
        print(
            f"{variant}, slots {arguments.slots}: own CPU per ply min {costs[0]:.3f}, median {median(costs):.3f}, "
            f"max {costs[-1]:.3f} ms"
        )
        for how, known in stored.items():
            cpu, wall = sorted(one.cpu for one in known), sorted(one.wall for one in known)
            print(
                f"storing a game, {how}: own CPU min {cpu[0]:.3f}, median {median(cpu):.3f}, max {cpu[-1]:.3f} ms; "
                f"wall min {wall[0]:.3f}, median {median(wall):.3f}, max {wall[-1]:.3f} ms"
            )
    return 0


async def measure(variant: str, games: int, slots: int, max_plies: int = 0) -> tuple[Run, list[GameResult]]:
    """Play `games` games, each to its end or to `max_plies`; BenchError if an engine did something wrong."""
    from ..arena import slots as arena
    from ..arena.adjudication import Adjudication

    cpu, wall = time.process_time(), time.perf_counter()
    plies, lateness = 0, 0.0
    played: list[GameResult] = []
    results = arena.play(
        _tasks(variant, games), _engines(), concurrency=slots, adjudication=Adjudication(max_plies=max_plies)
    )
    async for result in results:
        if result.fault is not None:
            raise BenchError(f"game {result.task.id}: {result.reason}: {result.fault.text}")
        played.append(result)
        plies += len(result.plies)
        lateness = max(lateness, result.lateness)
    run = Run(games, plies, time.process_time() - cpu, time.perf_counter() - wall, lateness)
    return run, played


def store(results: Sequence[GameResult], folder: Path, *, synced: bool) -> Stored:
    """Store the games one by one in a temporary run below `folder`; OSError or StoreError if that fails."""
    from ..arena.store import CONFIG, Store

    with (
        tempfile.TemporaryDirectory(dir=folder, prefix="bench-") as inner,
        Store.create(Path(inner) / "run", {CONFIG: ""}) as run,
    ):
        if not synced:
            run.sync = lambda _: None
        cpu, wall = time.process_time(), time.perf_counter()
        for result in results:
            run.append([result])
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    games = max(1, len(results))
    return Stored(1000 * cpu / games, 1000 * wall / games)


def _tasks(variant: str, games: int) -> Iterator[GameTask]:
    """Pairs with sides swapped; each game has its own seeds."""
    from ..arena.values import GameTask, Opening

    for index in range(games):
        pair = index // 2 + 1
        if index % 2 == 0:
            yield GameTask(pair, 1, variant, Opening(), (0, 1), (index, games + index))
        else:
            yield GameTask(pair, 2, variant, Opening(), (1, 0), (index, games + index))


def _engines() -> list[EngineSpec]:
    """Two processes of the weakest player: their time is not measured, but the arena has to wait for them."""
    from hnefi.protocol.client import own_command

    from ..arena.values import EngineSpec, SideLimits

    limits = SideLimits(nodes=1)
    command = tuple(own_command("--player", "random-blind"))
    return [
        EngineSpec(name, command, proto="uti", limits=(limits, limits), ready=PATIENCE)
        for name in ("first", "second")
    ]
