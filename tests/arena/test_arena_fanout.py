"""Runs whose games are played in other processes: the same result on every backend, whatever is lost on the way.

The backends dask and ray are tested where they are installed (`make test-clusters`).
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from fake_arena import config

from hnefi.protocol.hosts import exit_codes
from hnefi.tools.arena import fanout, run
from hnefi.tools.arena.options import ConfigError
from hnefi.tools.arena.store import Store
from hnefi.tools.arena.values import EngineSpec, SideLimits
from hnefi.tools.common import interrupts, workers

ARENA = [sys.executable, "-m", "hnefi.tools.arena.command"]
SHUFFLER = Path(__file__).parents[1] / "support" / "shuffle_engine.py"
OPENINGS = "a4a3\na4a2\na4a3 d3c3\na4a2 d3c3\na4a3 d5c5\na4a2 d5c5\na4a3 d5e5\na4a2 d5e5\n"
BACKENDS = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(bool(workers.missing(name)), reason=f"{name} is not installed"),
    )
    for name in ("loky", "dask", "ray")
]
linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
at_length = pytest.mark.skipif(
    not os.environ.get("HNEFI_CLUSTERS"), reason="a minute for each backend: make test-clusters"
)


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The words for a run of two fast engines that play sixteen games, a second apart in a slot."""
    folder = tmp_path_factory.mktemp("engine")
    (folder / "openings.txt").write_text(OPENINGS)
    (folder / "engine.py").write_bytes(SHUFFLER.read_bytes())
    engine = ["--engine", f"cmd={sys.executable},args=-I -S {folder / 'engine.py'}"]
    openings = ["--openings-source", "file", "--openings-file", str(folder / "openings.txt")]
    rest = ["--variant", "brandubh", "--pairs", "8", "--nodes", "5", "--adjudicate-max-plies", "30"]
    return [*ARENA, *engine, *engine, *openings, *rest, "--concurrency", "1"]


@pytest.fixture(scope="module")
def undisturbed(words: list[str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """How the run ends in one process."""
    return digest(play(*words, "--out", str(tmp_path_factory.mktemp("whole") / "run")))


def play(*line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(line, capture_output=True, text=True, timeout=280, check=False)


def digest(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr + done.stdout
    last = done.stdout.splitlines()[-1]
    assert last.startswith("result digest ")
    return last


class Marked:
    """A command whose processes, down to the last, are known by a word in their environment."""

    def __init__(self, *line: str) -> None:
        self.mark = f"HNEFI_FANOUT_{os.getpid()}_{time.monotonic_ns()}"
        self.process = subprocess.Popen(
            line,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, self.mark: "1"},
            start_new_session=True,
        )

    def family(self) -> list[int]:
        return [process for process in _numbers() if self.mark in _read(process, "environ")]

    def engines(self) -> list[int]:
        """Engines of workers; those that are tried before the run are the coordinator's own."""
        return [
            process
            for process in self.family()
            if re.search(r"^[^\0]*\0-I\0-S\0[^\0]*engine\.py\0$", _read(process, "cmdline"))
            and _parent(process) != self.process.pid
        ]

    def workers(self) -> set[int]:
        return {_parent(engine) for engine in self.engines()}

    def end(self) -> subprocess.CompletedProcess[str]:
        out, err = self.process.communicate(timeout=280)
        wait_for(lambda: not self.family(), said=lambda: [_read(left, "cmdline") for left in self.family()])
        return subprocess.CompletedProcess((), self.process.returncode, out, err)


def _numbers() -> Iterator[int]:
    return (int(entry.name) for entry in Path("/proc").glob("[0-9]*"))


def _read(process: int, name: str) -> str:
    try:
        return Path(f"/proc/{process}/{name}").read_text(errors="replace")
    except OSError:
        return ""


def _parent(process: int) -> int:
    found = re.search(r"^PPid:\s*([0-9]+)", _read(process, "status"), re.MULTILINE)
    return int(found[1]) if found else 0


def wait_for(
    condition: Callable[[], object],
    seconds: float = 200,
    said: Callable[[], object] = lambda: "waited in vain",
) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, said()
        time.sleep(0.05)


# The same result


@pytest.mark.process
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("jobs", [1, 2])
def test_jobs_on_other_processes_come_to_the_same(
    tmp_path: Path, words: list[str], undisturbed: str, backend: str, jobs: int
) -> None:
    done = play(*words, "--out", str(tmp_path / "run"), "--backend", backend, "--jobs", str(jobs))
    assert digest(done) == undisturbed
    assert done.stderr == ""


@pytest.mark.process
@linux
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_lost_worker_costs_only_time(
    tmp_path: Path, words: list[str], undisturbed: str, backend: str
) -> None:
    """It is killed in the middle of a game; cores of workers that play at the same time differ."""
    running = Marked(
        *words, "--out", str(tmp_path / "run"), "--backend", backend, "--jobs", "2", "--wait", "1000"
    )
    cores: dict[int, set[int]] = {}

    def both_play() -> bool:
        """At one moment: engines come and go with their jobs, and a busy machine takes its time to look at them."""
        cores.clear()
        seen = running.engines()
        for engine in seen:
            with suppress(OSError):
                cores.setdefault(_parent(engine), set()).update(os.sched_getaffinity(engine))
        return len(cores) == 2 and all(cores.values()) and all(map(_parent, seen))

    wait_for(both_play)
    # A job that found no free core has all of them: another arena of this machine may hold some.
    pinned = [own for own in cores.values() if len(own) == 1]
    assert len(pinned) < 2 or len(set.union(*pinned)) == 2
    # joblib would keep a folder there for each wave.
    assert not list(Path("/dev/shm").glob(f"joblib_memmapping_folder_{running.process.pid}_*"))
    os.kill(min(cores), signal.SIGKILL)
    done = running.end()
    assert digest(done) == undisturbed
    with Store.read(tmp_path / "run") as opened:
        assert len(opened.rows) == len(list(opened.results())) == 16


@pytest.mark.process
@linux
@at_length
@pytest.mark.parametrize("backend", BACKENDS)
def test_interrupted_nothing_is_left_and_the_run_goes_on(
    tmp_path: Path, words: list[str], backend: str
) -> None:
    """Ctrl-C reaches all processes of a terminal: once, twice; then the coordinator is killed."""
    fan = ["--backend", backend, "--jobs", "2", "--wait", "1000"]
    line = [*words, "--out", str(tmp_path / "run"), *fan]
    for signals in ([signal.SIGINT], [signal.SIGINT] * 2, [signal.SIGKILL]):
        running = Marked(*line)
        wait_for(running.engines)
        for number in signals:
            if number == signal.SIGINT:
                os.killpg(running.process.pid, number)
            else:
                running.process.kill()
            # Two within less time are one.
            time.sleep(interrupts.TWICE)
        done = running.end()
        if signals[0] == signal.SIGINT:
            assert done.returncode == exit_codes.INTERRUPTED, done.stderr
            assert done.stdout.splitlines()[-1] == f"hnefi arena resume {tmp_path / 'run'}"
            assert "Traceback" not in done.stderr
        line = [*ARENA, "resume", str(tmp_path / "run")]
    whole = play(
        *words, "--out", str(tmp_path / "whole"), "--wait", "1000", "--concurrency", "4", "--affinity", "off"
    )
    assert digest(play(*line, "--concurrency", "2")) == digest(whole)


# Refusals


REFUSED = """
import sys
from hnefi.tools.arena import fanout
from fake_arena import config
backend, *files = sys.argv[1:]
job = fanout.Job("x", config(), (), (), 1, "/", dict.fromkeys(files, "0" * 64))
cluster = fanout.open_cluster(backend, "", 1)
fanout._send([job], cluster, lambda answer: print(answer, flush=True))
cluster.close()
"""


@pytest.mark.process
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_host_with_another_file_refuses_it_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    """In a process of its own, as every cluster here."""
    paths = os.pathsep.join(filter(None, [str(SHUFFLER.parent), os.environ.get("PYTHONPATH")]))
    monkeypatch.setenv("PYTHONPATH", paths)
    (tmp_path / "engine.py").write_text("another\n")
    files = [str(tmp_path / "engine.py"), str(tmp_path / "none")]
    done = play(sys.executable, "-c", REFUSED, backend, *files)
    answer, end = done.stdout.splitlines()
    assert answer.startswith("(0, Done(results=(), refusal="), done.stderr
    assert f"{', '.join(files)}: missing there, or not the same file" in answer
    assert end == "None"


def _job(**fields: object) -> fanout.Job:
    plain = {"run": "x", "config": config(), "specs": (), "tasks": (), "slots": 1, "folder": "/", "files": {}}
    return fanout.Job(**{**plain, **fields})


def test_a_cluster_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(workers.BACKENDS, "dask", "no_such_library")
    said = (
        r"^run\.backend dask: the package no_such_library is missing: expected pip install 'hnefi\[dask\]'$"
    )
    with pytest.raises(ConfigError, match=said):
        fanout.open_cluster("dask")
    with pytest.raises(ConfigError, match=r"run\.cluster 'tcp://x': expected only with backend dask or ray"):
        config(backend="loky", cluster="tcp://x")


@pytest.mark.parametrize("backend", BACKENDS[1:])
def test_an_address_where_nobody_answers(backend: str) -> None:
    begun = time.monotonic()
    said = r"run\.cluster '127\.0\.0\.1:9': .* expected a running cluster"
    # In a thread of its own: it does not take Ctrl-C any more, nor would what later tests start from it.
    with ThreadPoolExecutor(1) as pool, pytest.raises(ConfigError, match=said):
        pool.submit(fanout.open_cluster, backend, "127.0.0.1:9").result()
    assert time.monotonic() - begun < 100


def test_clocks_on_unequal_hosts_are_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    timed = (EngineSpec("x", ("x",), limits=(SideLimits(time=1000), SideLimits(time=1000))),)
    ready = run.Run(config(backend="dask"), timed, None, {})
    fanout._warn_of_clocks(ready, "dask")
    assert "clocks run: hosts should be equally fast, or use --scale-tc" in capsys.readouterr().err
    fanout._warn_of_clocks(run.Run(config(backend="dask", scale_tc=5), timed, None, {}), "dask")
    fanout._warn_of_clocks(run.Run(config(backend="dask"), (EngineSpec("x", ("x",)),), None, {}), "dask")
    assert capsys.readouterr().err == ""
    with pytest.raises(ConfigError, match=r"run\.jobs 4096: 4096 engine threads on"):
        fanout._warn_of_clocks(run.Run(config(backend="loky", jobs=4096), timed, None, {}), "loky")


def test_every_host_has_times_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from hnefi.tools.arena import resolve

    monkeypatch.setattr(fanout, "_scales", {1000: 3.0})
    settings = config(scale_tc=1000, limits__tc="1+0.5", limits__nodes=7)
    here = fanout._at_home(_job(config=settings, specs=resolve.specs(settings)))
    assert here[0].limits[0] == SideLimits(time=3000, increment=1500, nodes=7)


# How the work is split


@pytest.mark.parametrize(
    ("concurrency", "split"), [(17, (2, 8)), (18, (2, 9)), (32, (2, 16)), (33, (3, 11)), (100, (7, 14))]
)
def test_many_slots_are_split_over_processes(concurrency: int, split: tuple[int, int]) -> None:
    assert fanout.shape(config(concurrency=concurrency), ()) == split
    assert split[0] * split[1] <= concurrency
    assert fanout.shape(config(concurrency=concurrency, backend="ray", jobs=5), ()) == (5, 1)


@pytest.mark.process
@linux
def test_eighteen_slots_run(tmp_path: Path, words: list[str], undisturbed: str) -> None:
    line = [*words, "--out", str(tmp_path / "run"), "--concurrency", "18"]
    assert digest(play(*line)) == undisturbed


@linux
def test_jobs_of_one_host_take_disjoint_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    # Claims of this process alone: other runs, of this test too, hold theirs.
    monkeypatch.setattr(fanout, "CLAIM", f"{fanout.CLAIM}of-{os.getpid()}-")
    monkeypatch.setattr(fanout, "usable_cores", lambda: (9001, 9002, 9003))
    with fanout._cores(config(), (), 2) as first, fanout._cores(config(), (), 1) as second:
        assert (first, second) == ([(9001,), (9002,)], [(9003,)])
        with fanout._cores(config(), (), 1) as third:
            assert third == []
    with fanout._cores(config(affinity="9002,5"), (), 1) as named:
        assert named == [(9002,)]
    with fanout._cores(config(affinity="off"), (), 1) as free:
        assert free == []
