"""The tactical suite: its file, the prover against an obvious twin, what is falsified is found, engines solve it."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from hnefi.engine import games
from hnefi.engine.games.base_position import Position
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.solving.proof import OutOfNodesError, Prover, memoryless
from hnefi.engine.squares import move_name
from hnefi.protocol.hosts.puzzles.suite import DIGITS, SHIPPED, Entry, SuiteError, parse, read, write
from hnefi.tools.cli import main
from hnefi.tools.tactics.verify import Verifier

SUITE = read(SHIPPED)


def tafl(name: str) -> Variant:
    variant = games.find(name)
    assert isinstance(variant, Variant)
    return variant


def entry(kind: str, plies: int, variant: str = "brandubh") -> Entry:
    return next(e for e in SUITE if (e.kind, e.plies, e.variant) == (kind, plies, variant))


def twin(position: Position, winner: int, plies: int) -> bool:
    """Whether `winner` forces a win within `plies`, by the definition and nothing else."""
    if position.outcome is not None:
        return position.outcome.winner is not None and int(position.outcome.winner) == winner
    if plies == 0:
        return False
    after = (twin(position.play(move), winner, plies - 1) for move in position.legal_moves())
    return any(after) if int(position.side) == winner else all(after)


# The shipped suite


def test_suite_is_what_the_document_says() -> None:
    assert len(SUITE) >= 700
    assert len({e.variant for e in SUITE}) >= 10
    assert sum("self-play" not in e.source for e in SUITE) >= 100
    assert {e.kind for e in SUITE} == {"win", "loss", "only"}
    assert all(e.plies >= 3 for e in SUITE)
    assert max(Counter((e.variant, e.source) for e in SUITE).values()) <= 4
    assert len({(e.variant, e.fen.split()[0]) for e in SUITE}) == len(SUITE)


@pytest.mark.parametrize("name", sorted({e.variant for e in SUITE}))
def test_rules_and_moves_fit(name: str) -> None:
    variant = tafl(name)
    for e in SUITE:
        if e.variant == name:
            assert e.rules == variant.hash[:DIGITS]
            position = games.from_fen(variant, e.fen)
            assert position.outcome is None
            assert set(e.moves + e.later) <= {move_name(move) for move in position.legal_moves()}


@pytest.mark.slow
def test_short_ones_are_proven_again() -> None:
    """One position of each variant; `hnefi tactics verify` proves them all."""
    first: dict[str, Entry] = {}
    for e in SUITE:
        if e.plies <= 4 and e.kind != "only":
            first.setdefault(e.variant, e)
    for e in first.values():
        assert Verifier(tafl(e.variant), 200_000, 10_000_000).check(e)[1] is None, e.id


# The prover


@pytest.mark.parametrize("name", ["brandubh", "mini-cross", "mini-edge", "magpie"])
def test_prover_agrees_with_the_twin(name: str) -> None:
    variant = tafl(name)
    prover, free, draw = Prover(variant), memoryless(variant), random.Random(7)
    answers: Counter[bool] = Counter()
    for _ in range(5):
        position = games.initial(free)
        while position.outcome is None and position.ply < 400:
            position = position.play(draw.choice(position.legal_moves()))
        while position.outcome is not None:
            position = position.undo()
        for winner in range(2):
            for plies in range(1, 3):
                expected = twin(position, winner, plies)
                answers[expected] += 1
                fen = position.fen()
                assert prover.within(fen, winner, plies) == expected
                strict = games.from_fen(variant, fen)
                if strict.outcome is None:
                    assert prover.within(fen, winner, plies, strict=True) == twin(strict, winner, plies)
    assert len(answers) == 2


@pytest.mark.parametrize("trust", [False, True])
def test_prover_stops_at_its_limit(trust: bool) -> None:
    prover = Prover(tafl("brandubh"))
    prover.allow(1000)
    with pytest.raises(OutOfNodesError):
        prover.within(tafl("brandubh").startpos, 0, 9, strict=not trust)
    assert prover.nodes == 1000


@pytest.mark.parametrize("minimax_nodes", [3_000_000, 1], ids=["minimax", "proof"])
@pytest.mark.parametrize(
    "falsified",
    [
        replace(entry("win", 3), plies=5),
        replace(entry("win", 3), moves=entry("win", 3).moves[1:]),
        replace(entry("win", 3), moves=(*entry("win", 3).moves, "a1a2")),
        replace(entry("win", 3), kind="loss"),
        replace(entry("loss", 4), plies=2),
        replace(entry("loss", 4), plies=6),
        replace(entry("loss", 4), kind="win"),
        replace(entry("loss", 4), kind="only", moves=("a1a2",)),
        replace(entry("win", 3), rules="0" * DIGITS),
        replace(entry("win", 3), fen="7/7/7/3K3/7/7/7 a"),
    ],
)
def test_falsified_entries_are_found(falsified: Entry, minimax_nodes: int) -> None:
    verifier = Verifier(tafl("brandubh"), minimax_nodes, 10_000_000)
    for true in (entry("win", 3), entry("loss", 4)):
        assert verifier.check(true)[1] is None
    assert verifier.check(falsified)[1] is not None


def test_proof_says_when_it_is_not_settled() -> None:
    _, fault = Verifier(tafl("brandubh"), 1, 10).check(entry("loss", 4))
    assert fault == "not settled within 10 moves"


# The file


def test_written_suite_is_read_back(tmp_path: Path) -> None:
    write(tmp_path / "s.tsv", SUITE[:5])
    assert read(tmp_path / "s.tsv") == SUITE[:5]


LINE = SUITE[0].line()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb", "expected 12 words between tabs, found 2"),
        (LINE.replace(f"\t{SUITE[0].kind}\t", "\tdraw\t", 1), "expected win, loss, only"),
        (LINE.replace(f"\t{SUITE[0].plies}\t", "\tmany\t", 1), "plies 'many': expected a whole number"),
        ("# nothing", "expected at least one position"),
        (f"{LINE}\n{LINE}", "2: .*expected a different id for each puzzle"),
    ],
)
def test_bad_suites(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "s.tsv"
    file.write_text(text + "\n", "utf-8")
    with pytest.raises(SuiteError, match=message):
        read(file)


def test_only_has_one_move() -> None:
    with pytest.raises(SuiteError, match="the one move that does not lose"):
        parse(replace(SUITE[0], kind="only", moves=("a1a2", "a1a3")).line())


# The command


@pytest.mark.process
def test_run(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write(tmp_path / "s.tsv", [entry("win", 3), entry("loss", 4)])
    runs = []
    for _ in range(2):
        arguments = ["tactics", "run", "--suite", str(tmp_path / "s.tsv"), "--depth", "6", "--json"]
        assert main(arguments) == 0
        runs.append(json.loads(capfd.readouterr().out))
    assert [a["solved"] for a in runs[0]["answers"]] == [True, True]
    assert runs[0]["variants"][-1]["solved"] == runs[0]["variants"][-1]["announced"] == 2
    for run in runs:
        for answer in run["answers"]:
            del answer["milliseconds"]
    assert runs[0]["answers"] == runs[1]["answers"]


@pytest.mark.process
def test_run_table(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write(tmp_path / "s.tsv", [entry("win", 3)])
    assert main(["bench", "tactics", "--suite", str(tmp_path / "s.tsv"), "--nodes", "1", "--unsolved"]) == 0
    out = capfd.readouterr().out
    assert "brandubh" in out
    assert "win  3" in out


def test_verify_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write(tmp_path / "s.tsv", [entry("win", 3), replace(entry("loss", 4), plies=2)])
    assert main(["tactics", "verify", "--suite", str(tmp_path / "s.tsv")]) == 1
    out = capsys.readouterr().out
    assert f"{entry('loss', 4).id}: " in out
    assert "2 positions, 2 by minimax, 0 by proof, 1 wrong" in out


def test_find_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "s.tsv"
    arguments = ["tactics", "find", "brandubh", "--games", "12", "--count", "3", "--plies", "5"]
    assert main([*arguments, "--enough", "3", "--nodes", "200000", "--out", str(out)]) == 0
    found = read(out)
    assert all("self-play seed 1" in e.source for e in found)
    assert main(["tactics", "verify", "--suite", str(out)]) == 0
    assert " 0 wrong" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nowhere"], "'nowhere': expected a variant of the suite"),
        (["run", "--option", "Hash"], "'Hash': expected NAME=VALUE"),
        (["run", "--suite", "missing.tsv"], "missing.tsv: No such file or directory"),
        (["run", "--nodes", "5", "--time", "5"], "not allowed with"),
        (["find", "brandubh", "--games", "x.csv", "--out", "y"], "x.csv: No such file or directory"),
    ],
)
def test_usage(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["tactics", *arguments])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.process
def test_engine_that_does_not_start(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write(tmp_path / "s.tsv", SUITE[:1])
    arguments = ["tactics", "run", "--suite", str(tmp_path / "s.tsv"), "--engine"]
    assert main([*arguments, str(tmp_path / "none")]) == 3
    assert "cannot start" in capsys.readouterr().err


@pytest.mark.process
def test_asking_for_help_imports_no_kernels() -> None:
    import subprocess

    code = "import sys; from hnefi.tools.tactics import command, solve; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
