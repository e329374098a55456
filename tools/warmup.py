"""`hnefi warmup`: compile the kernels of play now, once, so that no later start waits; and what is kept of that."""

from __future__ import annotations

import heapq
import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from hnefi.protocol.hosts.exit_codes import INTERRUPTED, OURS_FAILED, STORAGE

from .common import workers
from .common.arguments import let_interrupt_end_us, parser, positive
from .common.interrupts import caught, check

MIB = 1024 * 1024
AS_FAR = "what was stored before is kept, the same command continues"
MOST_JOBS = 3
"""One for each game: all wait for the largest."""


def main(argv: list[str]) -> int:
    """Compile or load the kernels of play and say how long it took, or look after the folder of machine code."""
    options = parser(
        "warmup",
        "Compiles kernels into the cache. Engines also compile what they need by themselves; several that start "
        "on an empty cache at the same time share the work. This command compiles what playing, analysing and "
        "counting usually need in every game; the rest, such as solving and learning, is compiled at its first use.",
        ["", "--all", "--quiet", "--jobs 1", "--show", "--repair", "--own"],
    )
    options.add_argument("--quiet", action="store_true", help="say nothing")
    options.add_argument(
        "--jobs", type=positive, metavar="N", help=f"processes (default: one a core, at most {MOST_JOBS})"
    )
    options.add_argument(
        "--all",
        action="store_true",
        help="also what evolution needs, and minimax and mcts with evaluators from files",
    )
    what = options.add_mutually_exclusive_group()
    what.add_argument("--show", action="store_true", help="show the stored machine code, and where it is")
    what.add_argument("--clear", action="store_true", help="remove all of it; nothing is compiled")
    what.add_argument(
        "--repair", action="store_true", help="remove what is damaged, then compile what is missing"
    )
    what.add_argument(
        "--own",
        action="store_true",
        help="compile for this processor instead of using the machine code for many processors that came with the "
        "installation; a few percent faster",
    )
    arguments = options.parse_args(argv)
    let_interrupt_end_us()

    from hnefi.engine.compile import cache

    if arguments.show:
        show()
        return 0
    if arguments.clear:
        print(f"{cache.clear()} files removed from {cache.folder()}")
        return 0
    if arguments.own:
        os.environ[cache.OWN] = "yes"  # for the processes that share the work, too
    if arguments.repair:
        wrong = cache.damaged()
        for one in wrong:
            cache.drop(one.path.name)
            print(f"damaged, removed: {one.path}")
        if not wrong and not arguments.quiet:
            print(f"nothing is damaged in {cache.folder()}")

    begun = time.perf_counter()
    with caught(lambda: ["interrupted: what is compiled is kept, the same command continues"]) as interrupts:
        try:
            warm(arguments.jobs, everything=arguments.all)
        except NotKept as error:
            print(
                f"hnefi warmup: machine code cannot be stored {error}; expected a folder that can be written "
                "(XDG_CACHE_HOME or NUMBA_CACHE_DIR names another)",
                file=sys.stderr,
            )
            return STORAGE
        except workers.WorkerFailed as error:
            print(
                f"hnefi warmup: {error} (what is compiled is kept, the same command continues)",
                file=sys.stderr,
            )
            return OURS_FAILED
    if interrupts.ended:
        return INTERRUPTED
    if not arguments.quiet:
        what_is = "everything" if arguments.all else "what is usually needed"
        print(f"{what_is} is compiled ({time.perf_counter() - begun:.1f} s)")
    return 0


class NotKept(Exception):
    """What is compiled could not be stored, which is all that this command is for. The message says where and why."""


def warm(jobs: int | None, *, everything: bool = False) -> None:
    """Compile or load what `engine.warmup.warm` does, in `jobs` processes (default: as `--help` says) if anything has
    to be compiled."""
    from hnefi.engine import warmup
    from hnefi.engine.compile import cache, progress

    try:
        with cache.loading_only():
            warmup.warm(everything=everything)
        return
    except cache.NotCompiled:
        if refusal := cache.refusal():
            raise NotKept(f"{refusal}: nothing was compiled") from None
        jobs = jobs or min(MOST_JOBS, workers.cores())
    if jobs == 1:
        try:
            with cache.storing_all():
                warmup.warm(everything=everything)
        except cache.NotStored as error:
            raise NotKept(f"{error}: {AS_FAR}") from None
        return
    # Portions finish in any order: they are counted, not named.
    longer = warmup.EVERYTHING if everything else 1.0
    waits = between_ends([longer * seconds for seconds in warmup.PORTIONS.values()], jobs)
    expected = {f"portion {n}": seconds for n, seconds in enumerate(waits, 1)}
    with cache.LOCK.session(), progress.plan(expected):
        cache.LOCK.acquire("everything")
        tasks = [partial(_portion, portion, everything) for portion in warmup.PORTIONS]
        done = workers.carried_out(tasks, jobs, "loky")
        for portion in expected:
            progress.begin(portion)
            try:
                unkept = next(done)[1]
            finally:
                progress.end()
            if unkept:
                raise NotKept(f"{unkept}: {AS_FAR}")
            check()
        # Read to its end, or it would kill its workers.
        for _ in done:
            raise AssertionError("more results than portions")


def between_ends(seconds: Sequence[float], jobs: int) -> list[float]:
    """How long it takes from each end of a task to the next, if `jobs` processes take tasks of such lengths in turn."""
    free = [0.0] * jobs
    ends = [heapq.heapreplace(free, free[0] + length) + length for length in seconds]
    return [later - earlier for earlier, later in pairwise([0.0, *sorted(ends)])]


def _portion(portion: str, everything: bool) -> str:
    """Compile in a separate process, on behalf of the one that holds the lock; ended by what could not be stored, it
    returns where, and why."""
    from hnefi.engine.compile import cache
    from hnefi.engine.warmup import warm_portion

    try:
        with cache.LOCK.lent(), cache.storing_all():
            warm_portion(portion, everything=everything)
    except cache.NotStored as error:
        return str(error)
    return ""


def show() -> None:
    """Print where machine code is kept, and a line for each entry: how often, how large, how long unused."""
    from hnefi.engine.compile import cache
    from hnefi.engine.compile.progress import unkept_text

    files = cache.kept()
    if shipped := cache.kept(cache.SHIPPED):
        size = sum(one.size for one in shipped) / MIB
        print(f"{cache.SHIPPED}\n  {len(shipped)} files, {size:.1f} MiB, came with this installation")
    print(f"{cache.folder() or 'nowhere, because there is no home folder'}")
    if reason := cache.refusal():
        print(f"  {unkept_text(reason)}")
    entries = sorted({one.entry for one in files})
    width = max(map(len, entries), default=0)
    for entry in entries:
        same = [one for one in files if one.entry == entry]
        size = sum(one.size for one in same) / 1024
        used = min(one.idle for one in same) / 3600
        print(f"  {entry:<{width}} {len(same):>3} x {size:>8.0f} KiB   last used {used:.0f} h ago")
    total = sum(one.size for one in files) / MIB
    print(
        f"{len(files)} files, {total:.1f} MiB; unused for {cache.KEPT_DAYS} days, or the oldest beyond "
        f"{cache.KEPT_BYTES // MIB} MiB, they are removed"
    )
