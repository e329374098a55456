"""Where jobs run: processes of this machine (loky), or of a cluster of dask or ray, started here or running already.

A cluster is opened for one run and closed after it. What we started ends with it; a running one is only left.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hnefi.engine.wording import shorten

from .options import ConfigError
from .slots import usable_cores

CONNECT = 10.0
"""Seconds for a cluster to answer, and to have a worker."""
CLOSE = 2.0

LIBRARIES = {"loky": "joblib", "dask": "distributed", "ray": "ray"}
"""What has to be installed for a backend."""


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


def expect_library(backend: str) -> None:
    """ConfigError if the backend's library is missing."""
    from importlib.util import find_spec

    if find_spec(LIBRARIES[backend]) is None:
        raise ConfigError(
            f"run.backend {backend!r}: {LIBRARIES[backend]} is not installed: expected pip install 'hnefi[{backend}]'"
        )


def open_cluster(backend: str, address: str = "", jobs: int = 0) -> Cluster:
    """The cluster at `address`, else the one that the library's own environment variable names, else workers on this
    machine: `jobs` of them, or as many as there are cores. ConfigError if there is none.

    Blocks for some seconds; the calling thread does not take Ctrl-C any more, nor do processes that it starts.
    """
    expect_library(backend)
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
    """Leave Ctrl-C to the main thread, which winds everything up. Processes started from this thread inherit that."""
    if hasattr(signal, "pthread_sigmask"):
        from multiprocessing import resource_tracker

        # Before Python 3.12 its start unblocks what is blocked here.
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _loky(_: str, jobs: int) -> Cluster:
    def close() -> None:
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)

    return Cluster("loky", jobs or len(usable_cores()), close)


def _dask(address: str, jobs: int) -> Cluster:
    import dask
    from distributed import Client, LocalCluster
    from distributed.comm import get_address_host

    # What matters comes as exceptions; the rest is noise between our lines.
    for handler in logging.getLogger("distributed").handlers:
        handler.setLevel(logging.CRITICAL)
    address = address or dask.config.get("scheduler-address", "") or ""
    cluster = None
    if not address:
        cluster = LocalCluster(
            n_workers=jobs or len(usable_cores()),
            threads_per_worker=1,
            dashboard_address=None,
            memory_limit=0,
            silence_logs=logging.CRITICAL,
        )
    else:
        # A client with an address that it cannot read complains for long.
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
            # However the library takes the loss of its workers: the run has still to be reported.
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
    # Before the import: a cluster of ours reports to nobody.
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
        cores = max(2, jobs or len(usable_cores()))
        ray.init("local", num_cpus=cores, include_dashboard=False, **quiet)
    register_ray()
    cpus = int(ray.cluster_resources().get("CPU", 0))
    if cpus < 2:
        ray.shutdown()
        raise ConfigError(f"run.cluster {shorten(address)}: {cpus} cpus: expected at least two")
    settings = {"ray_remote_args": {"num_cpus": 1, "scheduling_strategy": "SPREAD"}}
    workers = min(jobs or cpus, cpus)
    return Cluster("ray", workers, ray.shutdown, settings, streams=False, local=not address)


OPENERS: dict[str, Callable[[str, int], Cluster]] = {"loky": _loky, "dask": _dask, "ray": _ray}
