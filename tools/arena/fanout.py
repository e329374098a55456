"""The games of a run in other processes, on this machine or on many, through joblib.

A job is a few whole pairs. A worker plays them in its own slots and returns the finished games; only the coordinator
writes. Jobs are sent in waves of bounded length, because not every backend streams its results. Losing a worker costs
its jobs, which are sent again; a game that arrives twice is stored once.

Workers are processes of this machine (loky) or of a dask or ray cluster. A cluster is opened for one run and closed
after it: one that we started ends with it, one that was already running is only disconnected from.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hnefi.engine.wording import shorten
from hnefi.protocol import orphans

from ..common.workers import (
    NOTHING_SHARED,
    TRACKED,
    cores,
    hush,
    live_with,
    missing,
    start_trackers,
    usable_cores,
)
from . import resolve
from .logs import LOG
from .options import Config, ConfigError, parse_cores
from .run import changed_files, engine_files, host_scale, oracle_file
from .slots import LIMIT, in_pairs, places, play_with, slots_of, threads_of
from .store import StoreError
from .values import EngineSpec, GameResult, GameTask, Watch

if TYPE_CHECKING:
    from .run import Run


JOB_SECONDS = 5.0
"""The least seconds of a job: starting engines costs some tenths of a second."""
JOB_PAIRS = 256
WAVE = 3
"""Jobs per worker in a wave."""
TRIES = 3
"""How often to resend a wave that gives no results."""
CHECK = 0.25
"""Seconds between checks whether the result is still wanted."""
ENDING = 5.0
"""Seconds for joblib to notice that its workers are gone."""
CLAIM = "\0hnefi-core-"
"""Before a core's number, the name of the socket that holds it: abstract, without a file, so that it goes with its
process."""


@dataclass(frozen=True, slots=True)
class Job:
    """Some whole pairs, and everything a worker must know to play them.

    `run` is a name of this start of the run, `folder` where its engines are at home, `files` are their files and
    SHA-256.
    """

    run: str
    config: Config
    specs: tuple[EngineSpec, ...]
    tasks: tuple[GameTask, ...]
    slots: int
    folder: str
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Done:
    """The outcome of a job: its games, or why this host cannot play it."""

    results: tuple[GameResult, ...]
    refusal: str = ""
    seconds: float = 0.0


# In a worker


def carry_out(job: Job) -> Done:
    """Play a job (runs in a worker)."""
    unlike = _unlike(job.run, tuple(job.files.items()))
    if unlike:
        return Done((), f"{socket.gethostname()}: {', '.join(unlike)}: missing there, or not the same file")
    specs = _at_home(job)
    begun = time.monotonic()
    with orphans.guarded(), _cores(job.config, specs, job.slots) as cores:
        results = asyncio.run(_play(job, specs, cores))
    return Done(tuple(results), "", time.monotonic() - begun)


async def _play(job: Job, specs: Sequence[EngineSpec], cores: Sequence[tuple[int, ...]]) -> list[GameResult]:
    abort = asyncio.Event()

    async def watch() -> None:
        while job.run not in _broken_off:
            await asyncio.sleep(CHECK)
        abort.set()

    watching = asyncio.ensure_future(watch())
    try:
        games = play_with(job.tasks, job.config, specs, job.slots, cores, abort=abort)
        return [result async for result in games]
    finally:
        watching.cancel()


_broken_off: set[str] = set()


def break_off(run: str) -> None:
    """Stop playing a run in this process; games in progress end soon."""
    _broken_off.add(run)


@lru_cache(maxsize=4)
def _unlike(_run: str, files: tuple[tuple[str, str], ...]) -> list[str]:
    return changed_files(dict(files))


def _at_home(job: Job) -> tuple[EngineSpec, ...]:
    """The engines as they are started here: in the coordinator's folder, with times as this host is slower."""
    specs = tuple(spec if spec.player else replace(spec, cwd=spec.cwd or job.folder) for spec in job.specs)
    reference = job.config["run.scale_tc"]
    if not reference:
        return specs
    if reference not in _scales:
        _scales[reference] = host_scale(job.config)
    scaled = resolve.specs(job.config, _scales[reference])
    return tuple(replace(spec, limits=other.limits) for spec, other in zip(specs, scaled, strict=True))


_scales: dict[float, float] = {}
"""By reference speed: what times are multiplied by on this host."""


@contextlib.contextmanager
def _cores(config: Config, specs: Sequence[EngineSpec], slots: int) -> Iterator[list[tuple[int, ...]]]:
    """Cores of each slot that no other job of this host has meanwhile; none (any) if too few are free."""
    affinity = config["run.affinity"]
    usable = usable_cores() if affinity != "off" and sys.platform == "linux" else ()
    if affinity not in ("auto", "off"):
        usable = tuple(core for core in parse_cores(affinity) if core in usable)
    threads = threads_of(specs)
    with contextlib.ExitStack() as held:
        free = (core for core in usable if _take(core, held))
        taken = list(islice(free, slots * threads))
        if len(taken) < slots * threads:
            held.close()
            taken = []
        yield places(taken, slots, threads) if taken else []


def _take(core: int, held: contextlib.ExitStack) -> bool:
    """Whether a core was free; it is ours as long as `held` lives, at most as long as this process."""
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"{CLAIM}{core}")
    except OSError:
        claim.close()
        return False
    held.enter_context(claim)
    return True


# In the coordinator


async def play(
    tasks: Iterable[GameTask],
    run: Run,
    *,
    abort: asyncio.Event,
    on_event: Watch | None = None,  # noqa: ARG001 - plies are not sent home
) -> AsyncGenerator[GameResult, None]:
    """As `slots.play`, in other processes. ConfigError if there are none, StoreError if a host has other files, or
    workers end again and again."""
    workers, slots = shape(run.config, run.specs)
    backend = run.config["run.backend"] or "loky"
    _warn_of_clocks(run, backend)
    cluster = await asyncio.to_thread(open_cluster, backend, run.config["run.cluster"], workers)
    try:
        async for result in _play_on(tasks, run, cluster, slots, abort):
            yield result
    finally:
        await asyncio.to_thread(cluster.close)


async def _play_on(
    tasks: Iterable[GameTask], run: Run, cluster: Cluster, slots: int, abort: asyncio.Event
) -> AsyncGenerator[GameResult, None]:
    name = secrets.token_hex(8)
    files = {file: digest for spec in run.specs for file, digest in engine_files(spec).items()}
    files |= oracle_file(run.config)
    blank = Job(name, run.config, run.specs, (), slots, str(Path.cwd()), files)
    pairs = in_pairs(tasks)
    size = slots
    waiting: list[tuple[GameTask, ...]] = []
    failures = 0
    while not abort.is_set():
        waiting += _parts(pairs, size, cluster.workers * WAVE - len(waiting))
        if not waiting:
            return
        jobs = [replace(blank, tasks=part) for part in waiting]
        done, problem = 0, ""
        async with contextlib.aclosing(_wave(jobs, cluster, abort)) as answers:
            async for index, answer in answers:
                if isinstance(answer, str):
                    problem = answer
                    continue
                if answer.refusal:
                    raise StoreError(f"not played on {answer.refusal}: expected the same files on every host")
                done += 1
                waiting[index] = ()
                size = _size(size, jobs[index], answer)
                for result in answer.results:
                    yield result
        waiting = [part for part in waiting if part]
        if abort.is_set():
            return
        failures = 0 if done else failures + 1
        if failures == TRIES:
            raise StoreError(f"{cluster.backend}: no job came back from {TRIES} tries: {problem}")
        if waiting:
            _warn(f"{cluster.backend}: {problem}: {len(waiting)} of {len(jobs)} jobs are sent again")


def shape(config: Config, specs: Sequence[EngineSpec]) -> tuple[int, int]:
    """How many workers (0: as many as there are), and how many slots each of them has."""
    if config["run.backend"]:
        return config["run.jobs"], 1
    concurrency, _ = slots_of(config, specs)
    workers = -(-concurrency // LIMIT)
    # One slot too few is better than one more than requested.
    return workers, concurrency // workers


def _warn_of_clocks(run: Run, backend: str) -> None:
    """Say that hosts of unequal speed give unequal games; ConfigError if there are more threads than cores here."""
    if not any(limits.timed for spec in run.specs for limits in spec.limits):
        return
    if backend != "loky":
        if not run.config["run.scale_tc"]:
            _warn(f"run.backend {backend!r}: clocks run: hosts should be equally fast, or use --scale-tc")
        return
    workers, slots = shape(run.config, run.specs)
    threads = workers * slots * threads_of(run.specs)
    if threads > cores() and not run.config["run.oversubscribe"]:
        raise ConfigError(
            f"run.jobs {run.config['run.jobs']}: {threads} engine threads on {cores()} usable cores with"
            " clocks: expected fewer, or --oversubscribe"
        )


def _warn(text: str) -> None:
    print(f"hnefi arena: warning: {text}", file=sys.stderr, flush=True)


def _parts(pairs: Iterator[list[GameTask]], size: int, count: int) -> list[tuple[GameTask, ...]]:
    """The tasks of up to `count` jobs of `size` pairs."""
    parts = (tuple(task for pair in islice(pairs, size) for task in pair) for _ in range(count))
    return [part for part in parts if part]


def _size(size: int, job: Job, answer: Done) -> int:
    """Pairs per job from now on: more if jobs finish too soon."""
    pairs = len({task.pair for task in job.tasks})
    wanted = round(pairs * JOB_SECONDS / max(answer.seconds, 0.01))
    return min(JOB_PAIRS, max(size, min(wanted, 2 * size)))


Answer = tuple[int, Done | str]
"""A job's number and its outcome; or any number, and the reason why no more answers will come."""


async def _wave(jobs: Sequence[Job], cluster: Cluster, abort: asyncio.Event) -> AsyncGenerator[Answer, None]:
    """The answers to some jobs as they come; those of lost workers are missing. After `abort` there are no more."""
    loop = asyncio.get_running_loop()
    answers: asyncio.Queue[Answer | None] = asyncio.Queue()

    def put(answer: Answer | None) -> None:
        # The run may have ended without us.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(answers.put_nowait, answer)

    # A thread of its own, because a pool would be waited for at the end.
    sending = threading.Thread(target=_send, args=(jobs, cluster, put), daemon=True)
    sending.start()
    aborted = asyncio.ensure_future(abort.wait())
    ended = False
    try:
        while True:
            answer = asyncio.ensure_future(answers.get())
            await asyncio.wait({answer, aborted}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                answer.cancel()
                return
            got = answer.result()
            if got is None:
                ended = True
                return
            yield got
    finally:
        aborted.cancel()
        if not ended:
            await asyncio.to_thread(_break_off, jobs[0].run, cluster, sending)


def _break_off(run: str, cluster: Cluster, sending: threading.Thread) -> None:
    """Stop playing; our workers and their engines end."""
    hush(LOG.debug)
    if not cluster.local:
        with contextlib.suppress(Exception):
            cluster.call(break_off, run)
    cluster.close()
    sending.join(ENDING)


def _send(jobs: Sequence[Job], cluster: Cluster, put: Callable[[Answer | None], None]) -> None:
    """Run the jobs through joblib and pass on every answer, then None."""
    from joblib import Parallel, delayed, parallel_config

    leave_interrupts()
    if TRACKED not in sys.warnoptions:
        # Before the tracker is started, which takes them over.
        sys.warnoptions.append(TRACKED)
    workers = cluster.workers
    streaming = {"return_as": "generator_unordered"} if cluster.streams else {}
    # With one worker joblib would play here: it gets two, and one job at a time. Where results do not stream, jobs
    # are dealt out in turn, and a late one would wait behind a worker that is busy.
    ahead = workers if cluster.streams or workers == 1 else "all"
    try:
        with parallel_config(backend=cluster.backend, n_jobs=max(2, workers), **cluster.settings):
            parallel = Parallel(batch_size=1, pre_dispatch=ahead, **NOTHING_SHARED, **streaming)
            for answer in parallel(delayed(_numbered)(index, job) for index, job in enumerate(jobs)):
                put(answer)
    except Exception as error:  # noqa: BLE001 - whatever a backend raises: what did not come back is sent again
        put((0, shorten(f"{type(error).__name__}: {error}".split("\n")[0])))
    finally:
        put(None)


def _numbered(index: int, job: Job) -> tuple[int, Done]:
    return index, carry_out(job)


# Where jobs run


CONNECT = 10.0
"""Seconds for a cluster to answer and provide a worker."""
CLOSE = 2.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """Workers that carry out jobs: `workers` at a time, each with its own process or thread.

    `settings` and `streams` are for joblib: what else it has to know, and whether results come one by one.
    `call` has every process of a running cluster call a function; `close` lets go of the workers, without waiting
    for what they do. Of `local` ones each ends by then.
    """

    backend: str
    workers: int
    close: Callable[[], None]
    settings: Mapping[str, Any] = field(default_factory=dict)
    streams: bool = True
    local: bool = True
    call: Callable[..., object] = lambda *_: None


def open_cluster(backend: str, address: str = "", jobs: int = 0) -> Cluster:
    """The cluster at `address`, else the one that the library's own environment variable names, else workers on this
    machine: `jobs` of them, or as many as there are cores. ConfigError if there is none.

    Blocks for some seconds; the calling thread does not take Ctrl-C any more, nor do processes that it starts.
    """
    if reason := missing(backend):
        raise ConfigError(f"run.backend {reason}")
    leave_interrupts()
    try:
        return OPENERS[backend](address, jobs)
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001 - every library has its own ways to say that nobody answers
        where = f"run.cluster {shorten(address)}" if address else f"run.backend {backend!r}"
        said = shorten(str(error).split("\n")[0] or type(error).__name__)
        raise ConfigError(f"{where}: {said}: expected a running cluster with workers") from None


def leave_interrupts() -> None:
    """Leave Ctrl-C to the main thread, which ends everything. Processes started from this thread inherit this."""
    if hasattr(signal, "pthread_sigmask"):
        start_trackers()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _loky(_: str, jobs: int) -> Cluster:
    def close() -> None:
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)

    settings = {"initializer": live_with, "initargs": (os.getpid(),)}
    return Cluster("loky", jobs or cores(), close, settings)


def _dask(address: str, jobs: int) -> Cluster:
    import dask
    from distributed import Client, LocalCluster
    from distributed.comm import get_address_host

    # Problems come as exceptions; these messages would only clutter our output.
    for handler in logging.getLogger("distributed").handlers:
        handler.setLevel(logging.CRITICAL)
    address = address or dask.config.get("scheduler-address", "") or ""
    cluster = None
    if not address:
        cluster = LocalCluster(
            n_workers=jobs or cores(),
            threads_per_worker=1,
            dashboard_address=None,
            memory_limit=0,
            silence_logs=logging.CRITICAL,
        )
    else:
        # A client complains at length about an address that it cannot parse.
        get_address_host(address)
    client = Client(cluster or address, timeout=CONNECT, set_as_default=False)

    def close() -> None:
        nannies = [] if cluster is None else list(cluster.workers.values())
        for nanny in nannies:
            # Asked to close, a worker would first play its job to the end.
            nanny.auto_restart = False
            pid = nanny.pid
            if pid is not None:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        for part in (client, cluster):
            # Whatever the library does about lost workers, the run must still be reported.
            with contextlib.suppress(Exception):
                if part is not None:
                    part.close(CLOSE)

    try:
        client.wait_for_workers(1, timeout=CONNECT)
        threads = sum(client.ncores().values())
    except BaseException:
        close()
        raise
    workers = min(jobs or threads, threads)
    return Cluster("dask", workers, close, {"client": client}, local=cluster is not None, call=client.run)


def _ray(address: str, jobs: int) -> Cluster:
    # Set before the import: our cluster sends no usage statistics.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray
    from ray.util.joblib import register_ray

    address = address or os.environ.get("RAY_ADDRESS", "")
    quiet = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if address:
        host, _, port = address.rpartition("://")[2].rpartition(":")
        if host:
            # Without an answer ray itself would wait for minutes.
            socket.create_connection((host, int(port)), CONNECT).close()
        ray.init(address, **quiet)
    else:
        ray.init("local", num_cpus=max(2, jobs or cores()), include_dashboard=False, **quiet)
    register_ray()
    cpus = int(ray.cluster_resources().get("CPU", 0))
    if cpus < 2:
        ray.shutdown()
        raise ConfigError(f"run.cluster {shorten(address)}: {cpus} cpus: expected at least two")
    settings = {"ray_remote_args": {"num_cpus": 1, "scheduling_strategy": "SPREAD"}}
    workers = min(jobs or cpus, cpus)
    return Cluster("ray", workers, ray.shutdown, settings, streams=False, local=not address)


OPENERS: dict[str, Callable[[str, int], Cluster]] = {"loky": _loky, "dask": _dask, "ray": _ray}
