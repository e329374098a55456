"""The simulation of queueing against formulas, and the command over it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hnefi.tools.bench import command as bench
from hnefi.tools.bench import queue
from hnefi.tools.bench.queueing import EXPONENTIAL, Kind, simulate


def balance(cores: int, players: int, think: float, work: float) -> NDArray[np.float64]:
    """How likely so many searches at once are where `players` ask one after the other (M/M/c//N), by the balance of
    what comes and goes: p(n+1) (least of n+1 and cores) / work = p(n) (players - n) / think."""
    logs = [0.0]
    for n in range(players):
        logs.append(logs[-1] + math.log((players - n) / think * work / min(n + 1, cores)))
    weights = np.exp(np.array(logs) - max(logs))
    return weights / weights.sum()


def wait_by_balance(cores: int, players: int, think: float, work: float) -> float:
    chances = balance(cores, players, think, work)
    active = float(chances @ np.arange(players + 1))
    asked = (players - active) / think
    return active / asked - work


def erlang_c(cores: int, load: float) -> float:
    """The probability that a request waits in M/M/c (Erlang 1917): Poisson arrivals, exponential work; `load` is
    arrivals a second times mean work, less than `cores`."""
    blocked = 1.0
    for servers in range(1, cores + 1):
        blocked = load * blocked / (servers + load * blocked)
    return blocked / (1 - load / cores * (1 - blocked))


def mean_wait(cores: int, load: float, work: float) -> float:
    """The mean wait in M/M/c in seconds, of a queue in order of arrival; where cores are shared it is the same, for any
    law of work."""
    return erlang_c(cores, load) * work / (cores - load)


def test_the_formula_of_erlang_is_that_of_the_tables() -> None:
    # One server: the load itself. Two: a known closed form. Tables of telephony: 5 lines and 3 erlangs, 10 and 8.
    assert erlang_c(1, 0.3) == pytest.approx(0.3)
    assert erlang_c(2, 1.0) == pytest.approx(1 / 3)
    assert erlang_c(5, 3.0) == pytest.approx(0.2362, abs=1e-4)
    assert erlang_c(10, 8.0) == pytest.approx(0.4092, abs=1e-4)
    assert mean_wait(1, 0.5, 2.0) == pytest.approx(2.0)
    # Ever more players who ask ever less often are a stream of independent requests.
    assert wait_by_balance(4, 20_000, 20_000 * 0.5 / 3.2, 0.5) == pytest.approx(
        mean_wait(4, 3.2, 0.5), rel=0.01
    )


@pytest.mark.parametrize(
    ("think_spread", "work_spread"), [(EXPONENTIAL, EXPONENTIAL), (0.9, 0.0), (0.5, 1.2)]
)
@pytest.mark.parametrize(("cores", "players"), [(1, 8), (4, 40)])
def test_searches_wait_as_the_formula_says(
    cores: int, players: int, think_spread: float, work_spread: float
) -> None:
    # Where cores are shared only the means count, whatever the laws (insensitivity).
    kind = Kind("x", 1.0, 10.0, 0.9, think_spread=think_spread, work_spread=work_spread)
    found = simulate([kind], 200, players, cores, 250.0, 40.0, seed=5)
    chances = balance(cores, players, 10.0, 0.9)
    counts = np.arange(players + 1)
    assert found.active == pytest.approx(float(chances @ counts), rel=0.03)
    assert found.busy == pytest.approx(float(chances @ np.minimum(counts, cores)), rel=0.02)
    assert found.wait.mean() == pytest.approx(wait_by_balance(cores, players, 10.0, 0.9), rel=0.06)


@pytest.mark.slow
def test_many_players_wait_as_erlang_says() -> None:
    cores, players, work, load = 4, 1_000, 0.5, 3.0
    wanted = mean_wait(cores, load, work)
    # Who waits does not ask meanwhile.
    think = players * work / load - work - wanted
    kind = Kind("x", 1.0, think, work, think_spread=EXPONENTIAL, work_spread=EXPONENTIAL)
    found = simulate([kind], 256, players, cores, 150.0, 50.0, seed=2)
    assert found.wait.mean() == pytest.approx(wanted, rel=0.07)
    assert found.busy == pytest.approx(load, rel=0.02)
    # In order of arrival all those are not late whom Erlang lets through. Here it is fewer: others may come after them.
    assert (found.wait < 1e-9).mean() < 1 - erlang_c(cores, load)


def test_searches_by_the_clock_end_in_time_and_think_less() -> None:
    clocked = Kind("x", 1.0, 1.0, math.inf, 2.0, think_spread=0.5)
    idle = simulate([clocked], 20, 2, 2, 60.0, 10.0, seed=1)
    assert idle.wait.max() < 1e-9
    assert idle.share.min() > 1 - 1e-9
    crowded = simulate([clocked], 20, 30, 2, 60.0, 10.0, seed=1)
    assert crowded.wait.max() < 1e-9
    # Two thirds of thirty search at once, on two cores.
    assert crowded.share.mean() == pytest.approx(2 / 20, rel=0.05)
    assert crowded.busy == pytest.approx(2.0, rel=0.01)


def test_the_same_seed_gives_the_same_and_kinds_keep_apart() -> None:
    kinds = [Kind("a", 3.0, 5.0, 0.1), Kind("b", 1.0, 5.0, math.inf, 1.0)]
    one, two = (simulate(kinds, 5, 40, 4, 50.0, 5.0, seed=9) for _ in range(2))
    assert np.array_equal(one.wait, two.wait)
    assert (one.kind == 0).sum() == pytest.approx(3 * (one.kind == 1).sum(), rel=0.25)
    assert (one.wait[one.kind == 1] < 1e-9).all()


def test_the_command_says_how_many_hosts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "let_interrupt_end_us", lambda: None)
    words = ["queue", "--players", "40,400", "--cores", "4", "--seconds", "20", "--json"]
    assert bench.main([*words, "--chart", str(tmp_path / "x.svg")]) == 0
    few, many = json.loads(capsys.readouterr().out)["crowds"]
    assert (few["players"], many["players"]) == (40, 400)
    assert 1 <= few["hosts"] < many["hosts"]
    for crowd in (few, many):
        assert crowd["wait_ms"]["95"] <= 100.0
        assert crowd["share"]["5"] >= 0.9
    assert (tmp_path / "x.svg").read_text().startswith("<svg")
    # Where sessions need much memory, that decides.
    assert bench.main([*words, "--session-mib", "2500"]) == 0
    assert json.loads(capsys.readouterr().out)["crowds"][1]["hosts"] > many["hosts"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--players", "10,x"], "--players 10,x: expected numbers"),
        (["--full", "60", "--analysis", "50"], "at most 100 %"),
        (["--memory", "0.3"], "--memory 0.3: expected room for 300 MiB and a session of 25 MiB"),
        (
            ["--players", "3", "--seconds", "5", "--cores", "1", "--chart", "/none/x.svg"],
            "--chart /none/x.svg: No such",
        ),
    ],
)
def test_what_cannot_be_simulated_is_said(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "let_interrupt_end_us", lambda: None)
    with pytest.raises(SystemExit) as ended:
        bench.main(["queue", *words])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
