"""Proof-number search: its answers against solved tables, against a slow twin, and with tables that forget."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from solve_parts import key_of, positions, twin

from hnefi.engine import games
from hnefi.engine.games.base_position import Position
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.sides import Side
from hnefi.engine.solving.dfpn import BUCKET, Answer, ProofSearch
from hnefi.engine.solving.proof import memoryless
from hnefi.engine.solving.table import Table
from hnefi.engine.solving.tables import SHIPPED
from hnefi.tools.solve import command, proof_table, prove, report

START = "2t2/2T2/t1K1t/2T2/2t2 a 0 1"


def table_of(buckets: int) -> np.ndarray:
    return np.zeros(2 * BUCKET * buckets, np.uint64)


def winners(position: Position, table: np.ndarray, nodes: int = 3_000_000) -> list[Side]:
    """The sides that can force a win."""
    found = ProofSearch(position, table)
    answers = {side: found.ask(side, nodes) for side in Side}
    assert set(answers.values()) <= {Answer.PROVEN, Answer.REFUTED}, position.fen()
    return [side for side, answer in answers.items() if answer is Answer.PROVEN]


def drawn_from(table: Table, seed: int, count: int, fits: object) -> list[tuple[str, Side | None]]:
    """Random undecided positions of a table whose value fits, with who wins them."""
    rng = random.Random(seed)
    found: list[tuple[str, Side | None]] = []
    while len(found) < count:
        number = rng.randrange(table.header.entries)
        value = table.decode(table.code(number))
        if value is None or not fits(value):  # type: ignore[operator]
            continue
        fen = report.fen_of(table.index, number)
        try:
            over = games.from_fen(table.variant, fen).outcome is not None
        except ValueError:
            continue
        if not over:
            found.append((fen, value.winner))
    return found


@pytest.mark.parametrize("buckets", [1 << 14, 1 << 9], ids=["room", "little-room"])
def test_answers_are_those_of_a_solved_table(buckets: int) -> None:
    """Long wins and draws: where returning to a position is the defence, a refutation that was kept for another way
    would be wrong."""
    with Table(SHIPPED / "mini-four.taflbase") as solved:
        free = memoryless(solved.variant)
        table = table_of(buckets)
        cases = drawn_from(solved, 3, 40, lambda value: value.plies is not None and value.plies >= 14)
        cases += drawn_from(solved, 4, 15, lambda value: value.plies is None)
        cases += drawn_from(solved, 5, 40, lambda _: True)
        for fen, winner in cases:
            expected = [] if winner is None else [winner]
            assert winners(games.from_fen(free, fen), table) == expected, fen


@pytest.mark.parametrize(
    "switches",
    [
        {"escape": "none", "encirclement": "off"},
        {"escape": "none", "throne": "none", "corners": "none"},
        {"escape": "edge", "throne": "none", "corners": "none"},
    ],
    ids=["throne", "draws", "edge"],
)
def test_every_position_of_a_small_board_is_as_a_slow_twin_has_it(switches: dict[str, str]) -> None:
    variant = Variant.build(
        "nine", ("1t1", "1K1", "1t1"), {"repetition": "ignore", "king_sides": 2, **switches}
    )
    found = positions(variant, 2, 0)
    expected = twin(found)
    table = table_of(1 << 8)
    decided = {Side.ATTACKERS: 0, Side.DEFENDERS: 0, None: 0}
    for position in found:
        if position.outcome is None:
            winner = expected[key_of(position)][0]
            decided[winner] += 1
            assert winners(position, table) == ([] if winner is None else [winner]), position.fen()
    assert sum(count > 0 for count in decided.values()) >= 2


@pytest.mark.parametrize(
    ("name", "winner"), [("hexapawn:3x3", Side.DEFENDERS), ("hexapawn:3x4", Side.ATTACKERS), ("hex:3", Side.ATTACKERS)]
)  # fmt: skip
def test_games_that_cannot_repeat(name: str, winner: Side) -> None:
    start = games.initial(games.find(name))
    assert winners(start, table_of(1 << 10)) == [winner]


def test_a_line_of_a_proof_ends_in_the_win() -> None:
    free = memoryless(games.find("mini-four"))  # type: ignore[arg-type]
    position = games.initial(free)
    search = ProofSearch(position, table_of(1 << 12))
    assert search.ask(Side.DEFENDERS, 1_000_000) is Answer.PROVEN
    for move in search.line(Side.DEFENDERS):
        position = position.play(move)
    assert position.outcome is not None
    assert position.outcome.winner is Side.DEFENDERS


def test_a_line_does_not_go_round() -> None:
    """In mini-six the search prefers a move that wins but leads back."""
    free = memoryless(games.find("mini-six"))  # type: ignore[arg-type]
    position: Position = games.initial(free)
    search = ProofSearch(position, table_of(1 << 14))
    assert search.ask(Side.DEFENDERS, 3_000_000) is Answer.PROVEN
    for move in search.line(Side.DEFENDERS):
        position = position.play(move)
    assert position.outcome is not None
    assert position.outcome.winner is Side.DEFENDERS


def test_portions_come_to_the_same_answer_and_limits_are_kept() -> None:
    free = memoryless(games.find("mini-six"))  # type: ignore[arg-type]
    search = ProofSearch(games.initial(free), table_of(1 << 14))
    portions = 0
    while search.ask(Side.DEFENDERS, 2_000) is Answer.OPEN:
        assert search.nodes < 2_000 + 100 * 40
        assert 0 not in search.numbers
        portions += 1
        assert portions < 1_000
    assert portions > 3
    assert search.numbers[0] == 0


def test_a_kept_table_is_continued_and_half_an_entry_is_not_believed(tmp_path: Path) -> None:
    free = memoryless(games.find("mini-four"))  # type: ignore[arg-type]
    path = tmp_path / "four.proof"
    words = proof_table.mapped(path, free, 1 << 12)
    first = ProofSearch(games.initial(free), words)
    assert first.ask(Side.DEFENDERS, 1_000_000) is Answer.PROVEN
    assert first.nodes > 1000
    del words
    words = proof_table.mapped(path, free, None)
    again = ProofSearch(games.initial(free), words)
    assert again.ask(Side.DEFENDERS, 1_000_000) is Answer.PROVEN
    assert again.nodes < 100
    words[0::2] ^= np.uint64(1 << 63) | np.uint64(1)
    torn = ProofSearch(games.initial(free), words)
    assert torn.ask(Side.DEFENDERS, 1_000_000) is Answer.PROVEN
    assert torn.nodes > 1000


SPENT = 250_000
KILLED_WITHIN = f"""
import os, signal, sys
from hnefi.engine.solving.dfpn import ProofSearch
from hnefi.tools.cli import main

ask = ProofSearch.ask

def killed_within(self, winner, nodes):
    if nodes < {SPENT}:
        return ask(self, winner, nodes)
    ask(self, winner, {SPENT})
    os.kill(os.getpid(), signal.SIGKILL)

ProofSearch.ask = killed_within
sys.exit(main())
"""
"""`hnefi`, which ends within its first portion of a search, after as many nodes in every run."""


@pytest.mark.process
@pytest.mark.slow
def test_a_proof_that_was_killed_is_continued_to_the_same_answer(tmp_path: Path) -> None:
    """By kill -9 twice; what was searched before is not searched again."""
    words = ["solve", "prove", "mini-eight", "--json", "--quiet", "--memory", "4"]
    kept = [*words, "--table", str(tmp_path / "eight.proof")]
    hnefi = [sys.executable, "-m", "hnefi.tools.cli"]
    whole = json.loads(subprocess.check_output([*hnefi, *words], text=True, timeout=250))
    for _ in range(2):
        killed = subprocess.run([sys.executable, "-c", KILLED_WITHIN, *kept], check=False, timeout=250)
        assert killed.returncode == -signal.SIGKILL
    again = json.loads(subprocess.check_output([*hnefi, *kept], text=True, timeout=250))
    for answer in (whole, again):
        assert (answer["winner"], [asked["answer"] for asked in answer["questions"]]) == (
            "d",
            ["refuted", "proven"],
        )
    assert again["nodes"] <= whole["nodes"] - 2 * SPENT


def test_two_searches_may_share_a_table(tmp_path: Path) -> None:
    """As two processes do, each with the file mapped for itself: both come to the answer, on each other's work."""
    free = memoryless(games.find("mini-four"))  # type: ignore[arg-type]
    path = tmp_path / "four.proof"
    one, two = (ProofSearch(games.initial(free), proof_table.mapped(path, free, 1 << 12)) for _ in range(2))
    work = {one: 0, two: 0}
    answers = {one: Answer.OPEN, two: Answer.OPEN}
    for _ in range(1000):
        for search, winner in ((one, Side.ATTACKERS), (two, Side.DEFENDERS)):
            if answers[search] is Answer.OPEN:
                answers[search] = search.ask(winner, 500)
                work[search] += search.nodes
    assert answers == {one: Answer.REFUTED, two: Answer.PROVEN}
    # What the other one has found is there: asked the other's question, each answers at once.
    assert one.ask(Side.DEFENDERS, 50) is Answer.PROVEN
    assert two.ask(Side.ATTACKERS, 50) is Answer.REFUTED
    assert min(work.values()) > 500


def test_other_files_are_no_tables_of_a_proof(tmp_path: Path) -> None:
    free = memoryless(games.find("mini-four"))  # type: ignore[arg-type]
    path = tmp_path / "four.proof"
    proof_table.mapped(path, free, 16)
    data = path.read_bytes()
    with pytest.raises(proof_table.ProofTableError, match="has the rules"):
        proof_table.mapped(path, memoryless(games.find("mini-six")), None)  # type: ignore[arg-type]
    with pytest.raises(proof_table.ProofTableError, match="leave out --memory to continue it"):
        proof_table.mapped(path, free, 32)
    for changed in (
        b"",
        b"TAFLBASE" + data[8:],
        data[:-1],
        data[:12] + b"x" + data[13:],
        b"TAFLPRUF\xff\xff\xff\xff",
    ):
        path.write_bytes(changed)
        with pytest.raises(proof_table.ProofTableError, match=r"four\.proof"):
            proof_table.mapped(path, free, None)


def test_the_command_proves(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    kept = str(tmp_path / "four.proof")
    assert command.main(["prove", "mini-four", "--memory", "1", "--quiet", "--table", kept]) == 0
    first, line = capsys.readouterr().out.splitlines()
    assert first == f"{START}: defenders can force a win"
    assert line.startswith("a line of the proof: ")
    assert command.main(["prove", "mini-four", "--win", "a", "--json", "--quiet", "--table", kept]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["winner"], answer["questions"][0]["answer"]) == (None, "refuted")
    assert command.main(["prove", "mini-six", "--nodes", "500", "--memory", "1", "--quiet"]) == 1
    assert capsys.readouterr().out.endswith("not settled: a limit was reached first\n")
    with pytest.raises(SystemExit, match="2"):
        command.main(["prove", "mini-six", "--win", "white"])
    assert "expected attackers or defenders" in capsys.readouterr().err


def test_what_endless_play_is_worth_is_what_the_rules_say() -> None:
    """Neither side can force a win: the words for each rule on repetition."""
    both = [prove.Question(0, Answer.REFUTED), prove.Question(1, Answer.REFUTED)]

    def value(**switches: str) -> tuple[str | None, bool]:
        variant = Variant.build("four", ("2t2", "2T2", "t1K1t", "2T2", "2t2"), switches)
        return prove._value(variant, both)[1:]

    assert value(repetition="draw") == ("draw", False)
    assert value(repetition="attackers_lose") == ("d", True)
    assert value(repetition="defenders_lose") == ("a", True)
    assert value(repetition="mover_loses") == (None, False)
    assert value(repetition="attackers_lose", no_move="draw") == (None, False)
