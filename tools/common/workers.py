"""Jobs on several cores: threads in this process, or other processes and machines through joblib.

Waiting for results can be interrupted: the work itself runs in threads that nothing joins at exit.
"""

from __future__ import annotations

import atexit
import gc
import os
import queue
import select
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from . import interrupts

PARENT_CHECK = 0.5
TRACKED = "ignore:resource_tracker:UserWarning"
"""Suppresses the warning of joblib's resource tracker, which cleans up after us if we exit abruptly."""

Job = Callable[[], Any]

NOTHING_SHARED: Mapping[str, Any] = {"max_nbytes": None, "temp_folder": tempfile.gettempdir()}
"""For `joblib.Parallel`. By default it creates a folder in shared memory at each call and keeps it until the command
ends: tens of thousands in a long experiment. Elsewhere it does so only for large arrays; ours go through the pipe."""


class WorkerFailed(RuntimeError):
    """A worker ended, or could not be started."""


def cores() -> int:
    """How many cores this process may use."""
    return len(usable_cores())


def usable_cores(system: Path = Path("/")) -> tuple[int, ...]:
    """The processors that we may use, with one of each physical core first, and no more than a container's quota
    allows.

    `system` is the folder that contains the file systems `sys` and `proc`.
    """
    if not hasattr(os, "sched_getaffinity"):
        return tuple(range(os.cpu_count() or 1))
    allowed = sorted(os.sched_getaffinity(0))
    rank = {core: _siblings(system, core).index(core) for core in allowed}
    ordered = sorted(allowed, key=lambda core: (rank[core], core))
    quota = _quota(system)
    return tuple(ordered if quota is None else ordered[: max(1, int(quota))])


def _siblings(system: Path, core: int) -> list[int]:
    """The processors that share the physical core of `core`, in ascending order."""
    text = _text(system / f"sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list").strip()
    found: list[int] = []
    for part in text.split(","):
        low, _, high = part.partition("-")
        if low.isdigit() and (high or low).isdigit():
            found += range(int(low), int(high or low) + 1)
    return found if core in found else [core]


def _quota(system: Path) -> float | None:
    """The number of processors whose time the control group grants; None without a limit."""
    group = next(
        (line[3:] for line in _text(system / "proc/self/cgroup").splitlines() if line.startswith("0::")), "/"
    )
    root = system / "sys/fs/cgroup"
    folders = [root / part.lstrip("/") for part in (group, *map(str, Path(group).parents))]
    limits = [_text(folder / "cpu.max").split() for folder in folders]
    old = [_text(root / "cpu" / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
    granted = [
        int(limit[0]) / int(limit[1])
        for limit in (*limits, old)
        if len(limit) == 2 and all(number.isdigit() for number in limit) and int(limit[1])
    ]
    return min(granted, default=None)


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, ValueError):
        return ""


BACKENDS = {"loky": "joblib", "dask": "distributed", "ray": "ray"}
"""The backends that can run jobs, with the package that each needs."""


def missing(backend: str) -> str:
    """Why a backend cannot be used; empty if it can."""
    package = BACKENDS[backend]
    with suppress(ModuleNotFoundError):
        if find_spec(package) is not None:
            return ""
    return _missing(backend, package)


def _missing(backend: str, package: str) -> str:
    return f"{backend}: the package {package} is missing: expected pip install 'hnefi[{backend}]'"


def carried_out(jobs: Sequence[Job], workers: int, backend: str = "") -> Iterator[tuple[int, Any]]:
    """Numbers and results of jobs as they finish. Without a backend they run in this process if there is one worker or
    one job, else in other processes of this machine."""
    if backend or (workers > 1 and len(jobs) > 1):
        return through_joblib(jobs, backend or "loky", workers) if jobs else iter(())
    # A thread even for a single worker, so that waiting for it can be interrupted.
    return in_threads(jobs, 1)


def in_threads(jobs: Sequence[Job], threads: int) -> Iterator[tuple[int, Any]]:
    """Numbers and results of jobs as they finish."""
    waiting, results = queue.SimpleQueue[int](), queue.SimpleQueue[tuple[int, Any, Exception | None]]()
    for number in range(len(jobs)):
        waiting.put(number)
    stopped = threading.Event()

    def work() -> None:
        while not stopped.is_set():
            try:
                number = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                results.put((number, jobs[number](), None))
            except Exception as error:  # noqa: BLE001 - raised where the results are read
                results.put((number, None, error))

    with interrupts.told(lambda: results.put(_INTERRUPT)):
        for _ in range(min(threads, len(jobs))):
            threading.Thread(target=work, daemon=True).start()
        try:
            for _ in jobs:
                yield _raised(results.get())
        finally:
            stopped.set()


def through_joblib(jobs: Sequence[Job], backend: str, workers: int) -> Iterator[tuple[int, Any]]:
    """The same in processes of a joblib backend, which end with us. WorkerFailed if the backend fails."""
    results = queue.SimpleQueue[tuple[int, Any, Exception | None] | None]()
    done = False
    # Not imported in the thread: an interrupt during its import would make us import it here, half initialised.
    import joblib.externals.loky  # noqa: F401

    with interrupts.told(lambda: results.put(_INTERRUPT)):
        interrupts.check()
        threading.Thread(target=_send, args=(jobs, backend, workers, results), daemon=True).start()
        try:
            while (result := results.get()) is not None:
                yield _raised(result)
            done = True
        finally:
            if not done:
                _kill(backend)


_INTERRUPT = (-1, None, None)
"""Wakes the thread that waits for a result after an interrupt."""


def _raised(result: tuple[int, Any, Exception | None]) -> tuple[int, Any]:
    number, value, error = result
    if number < 0:
        interrupts.check()
    if error is not None:
        raise error
    return number, value


def start_trackers() -> None:
    """Start Python's resource tracker and joblib's: to be called before a thread blocks signals for the processes that
    it starts, because the start of a tracker unblocks the signals of its thread."""
    from multiprocessing import resource_tracker as standard_tracker

    from joblib.externals.loky.backend import resource_tracker

    resource_tracker.ensure_running()
    standard_tracker.ensure_running()


def _send(jobs: Sequence[Job], backend: str, workers: int, results: Any) -> None:
    try:
        if TRACKED not in sys.warnoptions:
            sys.warnoptions.append(TRACKED)  # for the trackers, which inherit it
        if hasattr(signal, "pthread_sigmask"):
            # Processes started by this thread inherit the blocked signals: a terminal signals the whole group, but only
            # the parent should react.
            start_trackers()
            signal.pthread_sigmask(signal.SIG_BLOCK, interrupts.NUMBERS)
        from joblib import Parallel, delayed, parallel_config

        try:
            _connect(backend, workers)
        except ModuleNotFoundError as error:
            raise WorkerFailed(_missing(backend, str(error.name))) from None
        # ray's backend cannot yield results one by one.
        streaming = {} if backend == "ray" else {"return_as": "generator_unordered"}
        beginning = {"initializer": _begin, "initargs": (os.getpid(),)} if backend == "loky" else {}
        with parallel_config(backend=backend, n_jobs=workers, **beginning):
            parallel = Parallel(batch_size=1, pre_dispatch="all", **NOTHING_SHARED, **streaming)
            for number, value in parallel(delayed(_carry_out)(i, job) for i, job in enumerate(jobs)):
                results.put((number, value, None))
    except WorkerFailed as error:
        results.put((0, None, error))
    except OSError as error:
        # Probably a worker that could not write; the waiting thread reports it.
        results.put((0, None, error))
    except Exception as error:  # noqa: BLE001 - re-raised where the results are read
        # The first paragraph says what happened; the rest is advice and tracebacks.
        words = " ".join(str(error).strip().partition("\n\n")[0].split())
        # Our own errors are sentences that need no more.
        ours = type(error).__module__.startswith("hnefi.")
        results.put(
            (
                0,
                None,
                WorkerFailed(words[:300] if ours else f"{backend}: {type(error).__name__}: {words[:300]}"),
            )
        )
    finally:
        results.put(None)


def _carry_out(number: int, job: Job) -> tuple[int, Any]:
    """Run a job in a worker."""
    return number, job()


def _begin(parent: int) -> None:
    """Prepare a worker to end with `parent`, which handles signals."""
    if os.getpid() != parent and threading.current_thread() is threading.main_thread():
        for number in interrupts.NUMBERS:
            signal.signal(number, signal.SIG_IGN)
    live_with(parent)


def live_with(parent: int) -> None:
    """Let this worker, busy or idle, end when `parent` has ended."""
    if os.getpid() == parent:
        return
    # Imports make no garbage, so skip most collections during them and the one at exit.
    gc.set_threshold(50_000)
    atexit.register(gc.freeze)

    def watch() -> None:
        with suppress(AttributeError, OSError):
            handle = os.pidfd_open(parent)
            while os.getppid() == parent:
                select.select([handle], [], [])
        while os.getppid() == parent:
            time.sleep(PARENT_CHECK)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _connect(backend: str, workers: int) -> None:
    """Do what joblib leaves to its callers: register ray, or create a client of dask. Both use the cluster that
    RAY_ADDRESS or DASK_SCHEDULER_ADDRESS names, else one on this machine."""
    if backend == "ray":
        import ray
        from ray.util.joblib import register_ray

        if not ray.is_initialized() and not os.environ.get("RAY_ADDRESS"):
            # ray gives up if its processes are not up within 30 s; on a busy machine the dashboard takes too long.
            ray.init("local", num_cpus=workers, include_dashboard=False, log_to_driver=False)
        register_ray()
        return
    if backend != "dask":
        return
    from distributed import Client, get_client

    try:
        get_client()
    except ValueError:
        address = os.environ.get("DASK_SCHEDULER_ADDRESS")
        Client(address) if address else Client(
            n_workers=workers, threads_per_worker=1, dashboard_address=None
        )


def hush(log: Callable[..., object] = lambda *_: None) -> None:
    """From now on threads of libraries may fail because their workers are gone: instead of a traceback, `log` gets a
    format, where it happened, and the exception."""
    threading.excepthook = lambda told: log("%s: %r", told.thread and told.thread.name, told.exc_value)
    sys.unraisablehook = lambda told: log("%r: %r", told.object, told.exc_value)


def _kill(backend: str) -> None:
    """Kill the workers on this machine."""
    hush()
    if backend == "loky":
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor(reuse=True).shutdown(wait=False, kill_workers=True)
