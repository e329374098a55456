"""sep-CMA-ES by the package `cma`: it finds an optimum, and goes on from anywhere as if nothing had happened."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import fake_contest
import numpy as np
import pytest

from hnefi.engine.selfplay import match as contest
from hnefi.tools.evolve import command, options


def test_without_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "cma", None)
    words = ["cma", "--variant", "brandubh", "--out", str(tmp_path / "run"), "--quiet"]
    assert command.main(words) == 2
    assert (
        capsys.readouterr().err
        == "hnefi evolve: cma: the package is missing: expected pip install 'hnefi[cma]'\n"
    )
    assert not (tmp_path / "run").exists()


N = 12


def strategy(seed: int = 1) -> Any:
    pytest.importorskip("cma")
    from hnefi.tools.evolve.sepcma import SepCMA

    return SepCMA(N, seed, options.complete("cma", {"sigma0": 0.5}, N, lambda: 100))


def sphere(genomes: Any) -> Any:
    return -((genomes - 1) ** 2 * np.arange(1, N + 1)).sum(axis=1)


def test_it_finds_an_optimum() -> None:
    algorithm = strategy()
    state = algorithm.begin()
    for generation in range(1, 151):
        population = algorithm.ask(state, generation)
        state, champion = algorithm.tell(state, generation, population, sphere(population.genomes))
    assert population.genomes.shape == (21, N)
    assert champion == 20
    np.testing.assert_allclose(population.genomes[champion], 1, atol=1e-3)


def test_it_goes_on_from_its_history() -> None:
    """Another object, another process: the same candidates; so does one that is ahead or behind."""
    first = strategy()
    states, asked = [first.begin()], []
    for generation in range(1, 8):
        asked.append(first.ask(states[-1], generation))
        states.append(first.tell(states[-1], generation, asked[-1], sphere(asked[-1].genomes))[0])
    second = strategy()
    for generation in (7, 3, 5, 1, 2):
        found = second.ask(states[generation - 1], generation)
        np.testing.assert_array_equal(found.genomes, asked[generation - 1].genomes)
    assert not np.array_equal(strategy(2).ask(states[0], 1).genomes, asked[0].genomes)


def test_the_package_draws_nothing_else() -> None:
    """No number comes from numpy's global stream, and none is taken from it."""
    np.random.seed(5)
    algorithm = strategy()
    one = algorithm.ask(algorithm.begin(), 1).genomes
    after = np.random.random()
    np.random.seed(5)
    assert np.random.random() == after
    np.random.seed(6)
    algorithm = strategy()
    np.testing.assert_array_equal(algorithm.ask(algorithm.begin(), 1).genomes, one)


def test_a_run_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cma")
    monkeypatch.setattr(contest, "Table", fake_contest.Table)
    digests = []
    for name, pieces in (("whole", [6]), ("pieces", [1, 2, 5, 6])):
        out = tmp_path / name
        words = [
            "cma",
            "--variant",
            "brandubh",
            "--random-matches",
            "2",
            "--lambda",
            "6",
            "--quiet",
            "--out",
            str(out),
        ]
        for generations in pieces:
            assert command.main([*words, "--generations", str(generations)]) == 0
        files = sorted((out / "archive").iterdir())
        assert len(files) == 7
        digests.append([hashlib.sha256(file.read_bytes()).hexdigest() for file in files])
    assert digests[0] == digests[1]
