"""The same results on other processes: runs side by side, and the games of one generation."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from patience import PROMPTLY

from hnefi.engine.evaluators.network import parse
from hnefi.engine.games import find
from hnefi.engine.selfplay import match
from hnefi.tools.common import workers
from hnefi.tools.common.matches import Games
from hnefi.tools.evolve import command, contestants
from hnefi.tools.evolve.algorithm import Purpose
from hnefi.tools.evolve.contestants import Contestants
from hnefi.tools.evolve.fitness import Pairing, schedule

SMALL = ("--variant", "brandubh", "--random-matches", "1", "--quiet")


def digests(out: Path) -> dict[str, str]:
    names = sorted([*out.glob("**/archive/*"), *out.glob("**/champion.safetensors")])
    return {str(name.relative_to(out)): hashlib.sha256(name.read_bytes()).hexdigest() for name in names}


@pytest.fixture(scope="module")
def one_after_the_other(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    out = tmp_path_factory.mktemp("runs") / "out"
    assert (
        command.main(["es", *SMALL, "--generations", "4", "--seeds", "3", "--jobs", "1", "--out", str(out)])
        == 0
    )
    found = digests(out)
    assert len(found) == 3 * 6
    assert len(set(found.values())) == 3 * 5
    return found


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[str]:
    """A backend, with a cluster on this machine where it needs one."""
    backend: str = request.param
    if backend == "dask":
        distributed = pytest.importorskip("distributed")
        with distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=None):
            yield backend
    elif backend == "ray":
        ray = pytest.importorskip("ray")
        ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
        yield backend
        ray.shutdown()
    else:
        yield backend


CLUSTERS = [pytest.param(name, marks=pytest.mark.process) for name in ("loky", "dask", "ray")]
BACKENDS = pytest.mark.parametrize("cluster", CLUSTERS, indirect=True)


@BACKENDS
@pytest.mark.filterwarnings("default")
def test_runs_side_by_side(
    tmp_path: Path, one_after_the_other: dict[str, str], cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pieces so short that runs go through many hands."""
    monkeypatch.setattr(command, "WAVE_SECONDS", 0.05)
    words = [
        "es",
        *SMALL,
        "--generations",
        "4",
        "--seeds",
        "3",
        "--jobs",
        "2",
        "--out",
        str(tmp_path / "out"),
    ]
    assert command.main([*words, "--backend", cluster]) == 0
    assert digests(tmp_path / "out") == one_after_the_other


@BACKENDS
@pytest.mark.filterwarnings("default")
def test_runs_of_zero_side_by_side(tmp_path: Path, cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples and what Adam remembers go from hand to hand, too."""
    monkeypatch.setattr(command, "WAVE_SECONDS", 0.05)
    words = [
        "zero", "--variant", "hexapawn:3x3", "--network", "policy-mlp:8", "--games", "4", "--gate-games", "2",
        "--epochs", "2", "--adam", "kept", "--iterations", "2", "--seeds", "2", "--quiet",
    ]  # fmt: skip
    here, there = tmp_path / "here", tmp_path / "there"
    assert command.main([*words, "--jobs", "1", "--out", str(here)]) == 0
    assert command.main([*words, "--jobs", "2", "--backend", cluster, "--out", str(there)]) == 0
    assert digests(here) == digests(there)
    assert len(set(digests(here).values())) >= 2 * 2


LEARNERS = (
    ("torus", "--variant", "hex:3", "--side", "3", "--measure-games", "2", "--generations", "4"),
    (
        "td",
        "--variant",
        "hexapawn:3x3",
        "--network",
        "mlp:3",
        "--generations",
        "2",
        "--generation-games",
        "4",
    ),
    (
        "treestrap",
        "--variant",
        "mini-four",
        "--network",
        "linear",
        "--generations",
        "2",
        "--generation-games",
        "2",
    ),
    (
        "tdleaf",
        "--variant",
        "mini-four",
        "--network",
        "linear",
        "--generations",
        "2",
        "--generation-games",
        "2",
    ),
)


@BACKENDS
@pytest.mark.filterwarnings("default")
def test_runs_of_other_learners_side_by_side(
    tmp_path: Path, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "WAVE_SECONDS", 0.05)
    for words in LEARNERS:
        here, there = tmp_path / "here" / words[0], tmp_path / "there" / words[0]
        common = [*words, "--seeds", "2", "--quiet"]
        assert command.main([*common, "--jobs", "1", "--out", str(here)]) == 0
        assert command.main([*common, "--jobs", "2", "--backend", cluster, "--out", str(there)]) == 0
        assert digests(here) == digests(there)
        assert len(set(digests(here).values())) >= 2 * 2


def generation(hands: contestants.Executor, name: str = "brandubh", seed: int = 1) -> Games:
    variant, network = find(name), parse("hingston2007")
    weights = np.random.default_rng(seed).standard_normal((4, network.count(variant))) * 0.1
    field = Pairing(4, matches=3)
    return hands(Contestants(variant, network, weights, (Purpose.RANDOM,)), schedule(field, 1, 1))


@BACKENDS
@pytest.mark.filterwarnings("default")
def test_games_of_one_generation(cluster: str) -> None:
    """A generation known to take long goes to other processes; what comes back is the same."""
    expected = generation(contestants.Executor(1))
    hands = contestants.Executor(2, cluster)
    hands._seconds_per_match = 1.0
    sent = []
    real = workers.through_joblib
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            contestants, "through_joblib", lambda jobs, *rest: sent.append(len(jobs)) or real(jobs, *rest)
        )
        found = generation(hands)
    assert sent == [4]
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_short_generations_stay_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contestants, "through_joblib", None)
    hands = contestants.Executor(2, "loky")
    assert len(generation(hands).plies) == 18
    assert len(generation(hands).plies) == 18


def test_tables_that_are_kept_are_for_one_variant_and_seated_anew() -> None:
    hands = contestants.Executor(2)
    for name, seed in (("brandubh", 1), ("hingston-original", 1), ("brandubh", 1), ("brandubh", 2)):
        expected = generation(contestants.Executor(1), name, seed)
        for one, other in zip(generation(hands, name, seed), expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_after_a_failure_nobody_plays_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    both, failed, seen = threading.Barrier(2), threading.Event(), threading.Event()
    turns, played = count(), []

    class Table:
        def __init__(self, variant: object, _contestants: object) -> None:
            self.variant = variant
            both.wait(60)

        def play(self, games: Any) -> None:
            if next(turns) == 0:
                failed.set()
                raise RuntimeError("no")
            assert failed.wait(60)
            assert seen.wait(60)
            played.append(len(games))

    monkeypatch.setattr(match, "Table", Table)
    hands = contestants.Executor(2)
    with pytest.raises(RuntimeError, match="no"):
        generation(hands)
    seen.set()
    patience = time.monotonic() + 60
    while not hands._tables and time.monotonic() < patience:
        time.sleep(0.01)
    assert len(hands._tables) == 1
    assert len(played) <= 1


def test_a_worker_that_fails_is_heard_of() -> None:
    with pytest.raises(workers.WorkerFailed, match="ZeroDivisionError"):
        list(workers.through_joblib([divide], "loky", 1))


def divide() -> float:
    return 1 / 0


class _Without:
    """A finder that says of one package that it is not installed."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, name: str, *_: object) -> None:
        if name.split(".", maxsplit=1)[0] == self.package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.parametrize(("backend", "package"), [("ray", "ray"), ("dask", "distributed")])
def test_a_backend_that_is_missing_is_named(
    backend: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [_Without(package), *sys.meta_path])
    expected = rf"^{backend}: the package {package}\S* is missing: expected pip install 'hnefi\[{backend}\]'$"
    with pytest.raises(workers.WorkerFailed, match=expected):
        list(workers.through_joblib([divide], backend, 1))


def test_a_backend_that_is_missing_is_refused_before_a_run_that_would_not_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "meta_path", [_Without("distributed"), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "distributed", raising=False)
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as ended:
        command.main(["es", *SMALL, "--generations", "1", "--backend", "dask", "--out", str(out)])
    assert ended.value.code == 2
    assert "--backend dask: the package distributed is missing: expected pip install 'hnefi[dask]'" in (
        " ".join(capsys.readouterr().err.split())
    )
    assert not out.exists()


@pytest.mark.process
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_side_by_side_runs_are_interrupted(tmp_path: Path) -> None:
    """Within a second or so; what is kept is gone on with, and no worker is left."""
    out = tmp_path / "out"
    words = ["--variant", "brandubh", "--generations", "100000", "--seeds", "2", "--jobs", "2", "--plain"]
    program = subprocess.Popen(
        [sys.executable, "-m", "hnefi.tools.cli", "evolve", "es", *words, "--out", str(out)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    until = time.monotonic() + 200
    while time.monotonic() < until and not all(
        (out / f"seed-{i}" / "state.safetensors").exists() for i in (1, 2)
    ):
        time.sleep(0.05)
    os.killpg(program.pid, signal.SIGINT)
    _, complaint = program.communicate(timeout=2 * PROMPTLY)
    assert program.returncode == 1
    # joblib's tracker of temporary folders may lose a race with itself when workers are killed; it says so, and goes.
    ours = re.sub(
        r"Traceback [^\n]*\n[^\n]*resource_tracker\.py.*?\n\w*Error: [^\n]*\n", "", complaint, flags=re.DOTALL
    )
    assert "Traceback" not in ours
    assert f"hnefi evolve resume {out}" in complaint
    until = time.monotonic() + PROMPTLY
    while group_lives(program.pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not group_lives(program.pid)


def group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.process
def test_an_interrupt_finds_joblib_imported_as_a_whole() -> None:
    """Two threads that import it at once both fail: the one that ends the workers must not."""
    code = (
        "import sys; from hnefi.tools.common import workers\n"
        "def send(*words): print('joblib.parallel' in sys.modules); words[-1].put(None)\n"
        "workers._send = send; list(workers.through_joblib([], 'loky', 1))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
