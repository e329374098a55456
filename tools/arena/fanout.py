"""The slots of a run in other processes, on this machine or on many, through joblib.

A job is some whole pairs; a worker plays them in slots of its own and returns finished games. Only the coordinator
writes. Jobs go out in waves of bounded length, because not every backend streams results. A worker that is lost costs
its jobs, which are sent again; what comes twice is stored once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

from . import fingerprint
from .options import Config
from .run import Run, Watch, play_with, slots_of
from .slots import LIMIT, in_pairs, usable_cores
from .store import StoreError
from .values import EngineSpec, GameResult, GameTask

JOB_SECONDS = 5.0
"""What a job should take at least: starting engines costs some tenths of a second."""
JOB_PAIRS = 256
WAVE = 3
"""Jobs of a wave for every worker."""
TRIES = 3
"""A wave that brings nothing is sent again so many times."""
PARENT_CHECK = 0.5


@dataclass(frozen=True, slots=True)
class Job:
    """Some whole pairs, and all that a worker must know to play them. `files` are the engines' files and SHA-256;
    `parent` is the process without which the worker ends, 0 if it has a life of its own."""

    config: Config
    specs: tuple[EngineSpec, ...]
    tasks: tuple[GameTask, ...]
    slots: int
    files: Mapping[str, str]
    parent: int = 0


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a job: its games, or why this host does not play it."""

    results: tuple[GameResult, ...]
    refusal: str = ""
    seconds: float = 0.0


def carry_out(job: Job) -> Done:
    """Play a job, in a worker."""
    if job.parent:
        _live_with(job.parent)
    unlike = _unlike(tuple(job.files.items()))
    if unlike:
        return Done((), f"{socket.gethostname()}: {', '.join(unlike)}: missing there, or not the same file")
    begun = time.monotonic()
    return Done(tuple(asyncio.run(_play(job))), "", time.monotonic() - begun)


async def _play(job: Job) -> list[GameResult]:
    games = play_with(job.tasks, job.config, job.specs, job.slots, (), abort=asyncio.Event())
    return [result async for result in games]


@lru_cache(maxsize=4)
def _unlike(files: tuple[tuple[str, str], ...]) -> list[str]:
    return fingerprint.changed(dict(files))


@lru_cache(maxsize=1)
def _live_with(parent: int) -> None:
    """End this process when `parent` has ended; the coordinator alone listens to the keyboard."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_CHECK)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


async def play(
    tasks: Iterable[GameTask],
    run: Run,
    *,
    abort: asyncio.Event,
    on_event: Watch | None = None,  # noqa: ARG001 - plies are not sent home
) -> AsyncGenerator[GameResult, None]:
    """As `slots.play`, in other processes. StoreError if a host has other files, or workers end again and again."""
    backend = run.config["run.backend"] or "loky"
    workers, slots = _shape(run)
    files = {name: digest for spec in run.specs for name, digest in fingerprint.files(spec).items()}
    parent = os.getpid() if backend == "loky" else 0
    pairs = in_pairs(tasks)
    size = slots
    waiting: list[tuple[GameTask, ...]] = []
    failures = 0
    while not abort.is_set():
        waiting += _jobs(pairs, size, workers * WAVE - len(waiting))
        if not waiting:
            return
        jobs = [Job(run.config, run.specs, part, slots, files, parent) for part in waiting]
        done = 0
        async for index, answer in _wave(jobs, backend, workers, abort):
            if answer.refusal:
                raise StoreError(f"not played on {answer.refusal}: expected the same engines on every host")
            done += 1
            waiting[index] = ()
            size = _size(size, jobs[index], answer)
            for result in answer.results:
                yield result
        waiting = [part for part in waiting if part]
        failures = 0 if done else failures + 1
        if failures == TRIES and not abort.is_set():
            raise StoreError(f"{backend}: workers ended {TRIES} times before they had played anything")


def _shape(run: Run) -> tuple[int, int]:
    """How many workers, and how many slots each of them has."""
    cores = len(usable_cores())
    if run.config["run.backend"]:
        return run.config["run.jobs"] or cores, 1
    concurrency, _ = slots_of(run.config, run.specs)
    workers = -(-concurrency // LIMIT)
    return workers, -(-concurrency // workers)


def _jobs(pairs: Iterator[list[GameTask]], size: int, count: int) -> list[tuple[GameTask, ...]]:
    """Up to `count` jobs of `size` pairs."""
    parts = (tuple(task for pair in islice(pairs, size) for task in pair) for _ in range(count))
    return [part for part in parts if part]


def _size(size: int, job: Job, answer: Done) -> int:
    """Pairs of a job from now on: more if jobs are over too soon."""
    pairs = len({task.pair for task in job.tasks})
    wanted = round(pairs * JOB_SECONDS / max(answer.seconds, 0.01))
    return min(JOB_PAIRS, max(size, min(wanted, 2 * size)))


async def _wave(
    jobs: Sequence[Job], backend: str, workers: int, abort: asyncio.Event
) -> AsyncGenerator[tuple[int, Done], None]:
    """The answers to some jobs as they come; those of lost workers are missing. After `abort` there are no more."""
    loop = asyncio.get_running_loop()
    answers: asyncio.Queue[tuple[int, Done] | None] = asyncio.Queue()

    def put(answer: tuple[int, Done] | None) -> None:
        loop.call_soon_threadsafe(answers.put_nowait, answer)

    # A thread of its own, not one of a pool that would be waited for at the end.
    threading.Thread(target=_send, args=(jobs, backend, workers, put), daemon=True).start()
    aborted = asyncio.ensure_future(abort.wait())
    try:
        while True:
            answer = asyncio.ensure_future(answers.get())
            await asyncio.wait({answer, aborted}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                answer.cancel()
                return
            got = answer.result()
            if got is None:
                return
            yield got
    finally:
        aborted.cancel()
        if abort.is_set():
            await asyncio.to_thread(_kill, backend)


def _send(jobs: Sequence[Job], backend: str, workers: int, put: Any) -> None:
    """Have joblib carry out the jobs, and hand every answer on; None at the end."""
    from joblib import Parallel, delayed, parallel_config

    # ray's backend cannot hand results out one by one.
    streaming = {} if backend == "ray" else {"return_as": "generator_unordered"}
    try:
        with parallel_config(backend=backend, n_jobs=workers):
            parallel = Parallel(batch_size=1, pre_dispatch="all", **streaming)
            for answer in parallel(delayed(_numbered)(index, job) for index, job in enumerate(jobs)):
                put(answer)
    except Exception:  # noqa: BLE001 - whatever a backend raises: what did not come back is sent again
        pass
    finally:
        put(None)


def _numbered(index: int, job: Job) -> tuple[int, Done]:
    return index, carry_out(job)


def _kill(backend: str) -> None:
    """End workers on this machine, and with them their engines."""
    if backend != "loky":
        return
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True, kill_workers=True)
