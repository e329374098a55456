"""Single positions by proof search, and tables against it: two methods that share nothing but the rules."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from solve_parts import build, tiny

from hnefi.engine.sides import Side
from hnefi.engine.solving.table import Table
from hnefi.tools.solve import command, proofs, report

START = "2t2/2T2/t1K1t/2T2/2t2 a 0 1"
LONG = "4/4/1Kt1/1tT1 a 0 1"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    with build(tiny(), tmp_path_factory.mktemp("proofs") / "tiny.taflbase") as made:
        yield made


@pytest.mark.slow
def test_random_values_of_a_table_are_proven(table: Table) -> None:
    found = proofs.compare(table, 400, 1, 10)
    assert found.wrong == ()
    assert found.agreed + found.undecided + found.too_deep == 400
    assert found.agreed > 390


@pytest.mark.slow
def test_a_wrong_value_is_found_by_proof(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every win two plies later, then for the other side."""
    code = Table.code
    for change in (lambda code: code + 4, lambda code: (code - 1 ^ 1) + 1):
        monkeypatch.setattr(
            Table,
            "code",
            lambda self, number, change=change: change(code(self, number)) if code(self, number) else 0,
        )
        assert len(proofs.compare(table, 20, 2, 12).wrong) > 15


def test_a_position_is_proven_in_portions(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a portion has settled need not be asked again, so that many small ones come to the same end."""
    value = table.value(report.position_of(table, LONG))
    assert (value.winner, value.plies) == (Side.DEFENDERS, 10)
    whole = proofs.prove(proofs.prover(table.variant, 4), LONG, 40, None)
    assert (whole.winner, whole.plies) == (Side.DEFENDERS, 10)
    monkeypatch.setattr(proofs, "PORTION", 100)
    parts = proofs.prove(proofs.prover(table.variant, 4), LONG, 40, None)
    assert (parts.winner, parts.plies) == (Side.DEFENDERS, 10)
    assert parts.nodes > whole.nodes > 300


def test_limits_of_a_proof_are_kept(table: Table) -> None:
    assert proofs.prove(proofs.prover(table.variant, 4), LONG, 4, None).winner is None
    few = proofs.prove(proofs.prover(table.variant, 4), LONG, 40, 500)
    assert (few.winner, few.nodes) == (None, 500)
    assert few.plies < 10


@pytest.mark.slow
def test_the_command_proves_one_position(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert command.main(["mini-four", "--fen", START, "--memory", "16"]) == 0
    assert capsys.readouterr().out == f"{START}: defenders win in 8\n"
    assert command.main(["mini-four", "--fen", START, "--plies", "3", "--quiet"]) == 1
    assert capsys.readouterr() == (f"{START}: neither side forces a win within 3 plies\n", "")
    assert command.main(["mini-four", "--fen", START, "--nodes", "100", "--json", "--memory", "16"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["winner"], answer["nodes"]) == (None, 100)
    assert command.main(["brandubh", "--fen", "K6/7/7/7/7/t6/7 a 0 1"]) == 0
    assert "d king_escaped" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_command_compares_a_table(table: Table, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["verify", str(table.path), "--proofs", "50", "--quiet"]) == 0
    assert "wins proven in as many plies as it says" in capsys.readouterr().out
    assert command.main(["verify", str(table.path), "--proofs", "50", "--df-pn", "--quiet"]) == 0
    said = capsys.readouterr().out
    assert re.search(
        r": \d\d wins proven, \d+ positions without a win that either side can force, 0 left out", said
    )
    with pytest.raises(SystemExit, match="2"):
        command.main(["verify", str(table.path), "--df-pn"])
    assert "expected together with --proofs" in capsys.readouterr().err


@pytest.mark.slow
def test_winners_are_proven_by_another_search(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """And disproven, where a table says the other side, a draw for a win, or a win for a draw."""
    found = proofs.compare_winners(table, 300, 3)
    assert (found.wrong, found.too_deep) == ((), 0)
    assert found.agreed + found.undecided == 300
    code = Table.code
    for change in (lambda code: (code - 1 ^ 1) + 1 if code else 0, lambda _: 0):
        monkeypatch.setattr(Table, "code", lambda self, at, change=change: change(code(self, at)))
        assert len(proofs.compare_winners(table, 20, 4).wrong) > 15
