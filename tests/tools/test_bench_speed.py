"""The benchmark against C: both programs do the same work, and what goes wrong is said."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from hnefi.engine.catalogue import MEASURED
from hnefi.engine.games.tafl import variant
from hnefi.tools.bench import speed as bench_speed

SMALL = bench_speed.Sizes(leaves=30_000, plies=20_000, nodes=3_000)


@pytest.fixture
def compiler() -> list[str]:
    found = bench_speed.find_compiler()
    if found is None:
        pytest.skip("no C compiler")
    return found


Compile = Callable[[Sequence[str], Path, dict[str, Any]], Path]


@pytest.fixture(scope="module")
def compile_once(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """The program in C is the same for all rule sets whose records look alike."""
    really, known = bench_speed.compile_reference, dict[str, Path]()

    def compile_reference(compiler: Sequence[str], _: Path, types: dict[str, Any]) -> Path:
        layout = bench_speed.layout(types)
        if layout not in known:
            known[layout] = really(compiler, tmp_path_factory.mktemp("reference"), types)
        return known[layout]

    return compile_reference


@pytest.mark.process
@pytest.mark.parametrize("name", MEASURED)
def test_reference_does_the_same_work(
    name: str, compiler: list[str], compile_once: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_speed, "compile_reference", compile_once)
    # `measure` compares leaves, plies, results of games, and nodes, value and move of every iteration.
    timings = bench_speed.measure(variant.find(name), compiler, 1, sizes=SMALL)
    assert [timing.work.name.split()[0] for timing in timings] == [
        "perft",
        "perft",
        "playout",
        "playout",
        "search",
        "search",
    ]
    assert all(timing.ratio is not None and timing.ratio > 0 for timing in timings)


def test_without_compiler_our_own_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(bench_speed, "COMPILERS", ())
    assert bench_speed.find_compiler() is None
    timings = bench_speed.measure(variant.find("brandubh"), None, 1, ["perft"], SMALL)
    assert all(timing.ratio is None for timing in timings)
    document = json.loads(json.dumps([timing.as_dict() for timing in timings]))
    assert document[0]["c_seconds"] is None
    assert "-" in bench_speed.table_of(timings)


@pytest.mark.process
def test_kernels_are_compiled_by_another_process() -> None:
    """It calls the engine by a string, which once named portions that were no more."""
    bench_speed.compile_kernels()


def test_no_such_compiler() -> None:
    with pytest.raises(bench_speed.BenchError, match="no compiler 'no-such-cc'"):
        bench_speed.find_compiler("no-such-cc")


def test_compiler_with_flags(monkeypatch: pytest.MonkeyPatch, compiler: list[str]) -> None:
    monkeypatch.setenv("CC", f"{compiler[0]} -g")
    assert bench_speed.find_compiler() == [compiler[0], "-g"]


@pytest.mark.process
def test_complaints_of_the_compiler_are_shown(compiler: list[str]) -> None:
    with pytest.raises(bench_speed.BenchError, match="no-such-flag"):
        bench_speed.measure(variant.find("brandubh"), [*compiler, "--no-such-flag"], 1, ["perft"], SMALL)


@pytest.mark.process
def test_different_work_is_an_error(
    monkeypatch: pytest.MonkeyPatch, compiler: list[str], compile_once: Compile
) -> None:
    monkeypatch.setattr(bench_speed, "compile_reference", compile_once)
    monkeypatch.setattr(bench_speed, "run_reference", lambda _program, _command: (1.0, ("leaves 1",)))
    with pytest.raises(
        bench_speed.BenchError, match=r"not the same work: numba found 'leaves \d+', C 'leaves 1'"
    ):
        bench_speed.measure(variant.find("brandubh"), compiler, 1, ["perft"], SMALL)


def test_layout_is_checked_by_the_compiler() -> None:
    np = pytest.importorskip("numpy")
    kind = np.dtype([("a", "u1", (3,)), ("b", "i8"), ("c", "i4", (2, 5)), ("d", "f8")], align=True)
    text = bench_speed.layout({"Thing": kind})
    assert "uint8_t a[3];" in text
    assert "int32_t c[2][5];" in text
    assert "double d;" in text
    assert "offsetof(Thing, b) == 8" in text
    assert "sizeof(Thing) == 64" in text
