"""Commands that carry out their jobs by one door: the same results in this process, in others, and on clusters.

Clusters want their packages: `make test-clusters`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from hnefi.tools.balance import command as balance
from hnefi.tools.common import workers
from hnefi.tools.experiments import measuring
from hnefi.tools.ladder import command as ladder
from hnefi.tools.ladder.ladder import load
from hnefi.tools.tune import command as tune


@pytest.fixture(scope="module", params=["loky", "dask", "ray"])
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """A backend, with a cluster on this machine where it needs one."""
    if request.param == "dask":
        distributed = pytest.importorskip("distributed")
        with distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=None):
            yield request.param
    elif request.param == "ray":
        ray = pytest.importorskip("ray")
        ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
        yield request.param
        ray.shutdown()
    else:
        yield request.param


def played_balance(out: Path, hands: list[str]) -> object:
    words = ["brandubh", "--players", "simple", "--games", "6", "--plain", "--out", str(out)]
    assert balance.main([*words, *hands]) == 0
    lines = [json.loads(line) for line in (out / "games.jsonl").read_text().splitlines()]
    return sorted(game for line in lines for game in line["games"])


def asked_people(out: Path, hands: list[str]) -> object:
    games = out.with_suffix(".csv")
    games.write_text("d6-c6 e4-e6 d1-e1 d5-g5 f4-f5 d3-g3xg4 b4-b3,0,0,Ongoing\n")
    words = ["people", str(games), "--variant", "brandubh", "--players", "simple"]
    words += ["--judge", "default:20", "--positions", "6", "--plain", "--out", str(out)]
    assert ladder.main([*words, *hands]) == 0
    return sorted((out / "answers.jsonl").read_text().splitlines())


def tuned(out: Path, hands: list[str]) -> object:
    words = ["games", "brandubh", "--games", "2", "--nodes", "40", "--out", str(out)]
    assert tune.main([*words, *hands]) == 0
    return {path.name: path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


@pytest.mark.process
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("work", [played_balance, asked_people, tuned])
def test_the_same_comes_back(work: Callable[[Path, list[str]], object], tmp_path: Path, backend: str) -> None:
    here = work(tmp_path / "here", ["--jobs", "1"])
    assert work(tmp_path / "there", ["--jobs", "2", "--backend", backend]) == here


@pytest.mark.process
def test_a_worker_that_is_killed_is_told_in_one_line() -> None:
    with pytest.raises(workers.WorkerFailed, match=r"^loky: TerminatedWorkerError: A worker process") as lost:
        list(workers.through_joblib([partial(os._exit, 9)] * 2, "loky", 2))
    assert "\n" not in str(lost.value)


@pytest.mark.process
def test_what_a_job_of_ours_refuses_is_said_as_it_is() -> None:
    """Errors of hnefi are sentences; of others, the name says more than the text."""
    with pytest.raises(workers.WorkerFailed, match=r"^no ladder 'ladder-1066': expected one of "):
        list(workers.through_joblib([partial(load, "ladder-1066")] * 2, "loky", 2))
    with pytest.raises(workers.WorkerFailed, match=r"^loky: ZeroDivisionError: "):
        list(workers.through_joblib([partial(divmod, 1, 0)] * 2, "loky", 2))


LEFT_EARLY = """
import threading, time
from functools import partial
from hnefi.tools.common import workers

results = workers.through_joblib([partial(time.sleep, 0.05)] * 40, "loky", 2)
next(results)
results.close()
failing = threading.Thread(target={}.__getitem__, args=(201,))
failing.start()
failing.join()
"""


@pytest.mark.process
def test_threads_of_a_library_whose_workers_are_killed_fail_in_silence() -> None:
    """joblib's looked up a job that was cancelled: a traceback after Ctrl-C."""
    done = subprocess.run(
        [sys.executable, "-c", LEFT_EARLY], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_without_a_backend_one_worker_stays_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, int]] = []

    def elsewhere(jobs: list[workers.Job], backend: str, count: int) -> Iterator[tuple[int, int]]:
        seen.append((backend, count))
        yield from ((number, job()) for number, job in enumerate(jobs))

    monkeypatch.setattr(workers, "through_joblib", elsewhere)
    jobs = [partial(pow, 2, power) for power in range(4)]
    expected = [(0, 1), (1, 2), (2, 4), (3, 8)]
    assert list(workers.carried_out(jobs, 1)) == expected
    assert list(workers.carried_out(jobs[:1], 8)) == expected[:1]
    assert list(workers.carried_out([], 8, "dask")) == []
    assert seen == []
    assert list(workers.carried_out(jobs, 3)) == expected
    assert list(workers.carried_out(jobs, 1, "ray")) == expected
    assert seen == [("loky", 3), ("ray", 1)]


@pytest.mark.process
@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no shared memory in files here")
def test_calls_leave_no_folder_in_shared_memory() -> None:
    pattern = f"joblib_memmapping_folder_{os.getpid()}_*"
    before = set(Path("/dev/shm").glob(pattern))
    array = np.zeros(300_000)
    found = list(workers.carried_out([partial(np.sum, array)] * 2, 2))
    assert [total for _, total in found] == [0.0, 0.0]
    assert set(Path("/dev/shm").glob(pattern)) <= before


def test_evolutions_of_an_experiment_are_told_the_backend() -> None:
    assert measuring.flags(plain=False, backend="") == []
    assert measuring.flags(plain=True, backend="dask") == ["--plain", "--backend", "dask"]
