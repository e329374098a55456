"""Hex: two-distances, evaluator, searches, the exact values of small boards, and the engine process."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from typing import Any

import pytest
from conversation import Conversation
from hex_parts import start, wander

from hnefi.engine import evaluators, games
from hnefi.engine.games import interface as verbs
from hnefi.engine.games.hex.distances import FAR, spread
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.search.types import Info, Limits, Settings
from hnefi.engine.sides import Side
from hnefi.engine.squares import move, move_name, square
from hnefi.tools.bench import hex as bench_hex

# Evaluation and search


def test_terms_add_up_and_turn_with_the_side() -> None:
    for seed in range(60):
        position = wander("hex:7", seed, seed % 30)
        if position.outcome is not None:
            continue
        terms = dict(evaluators.terms("default", position))
        total = terms.pop("total")
        assert sum(terms.values()) == total
        assert abs(total) < 9000
        state = position.new_record()[0]
        value = int(verbs.evaluate(evaluators.parameters("default", position.variant)[0], state))
        assert value == (total if position.side is Side.ATTACKERS else -total)


def reflected(position: Any) -> Any:
    """The stones reflected in the long diagonal with their owners exchanged: the same game for the other side."""
    size = position.variant.size
    rows = [["."] * size for _ in range(size)]
    for sq, letter in position.pieces():
        rows[sq % 21 - 1][size - 1 - (sq // 21 - 1)] = {"x": "o", "o": "x"}[letter]
    board = "/".join("".join(row) for row in rows)
    for empty in range(size, 0, -1):
        board = board.replace("." * empty, str(empty))
    return games.from_fen(games.find(f"hex-swap:{size}"), f"{board} {position.side.other.letter}")


def test_the_evaluator_does_not_care_who_is_called_a() -> None:
    for seed in range(40):
        position = wander("hex-swap:6", seed, 1 + seed % 27)
        if position.outcome is None:
            mine, other = (dict(evaluators.terms("default", p)) for p in (position, reflected(position)))
            assert mine["total"] == -other["total"]


def distances(position: Any, stone: str, edge: int) -> dict[tuple[int, int], int]:
    """Two-distances as they are defined, cell by cell until nothing changes; unreachable cells are missing."""
    size = position.variant.size
    stones = {(size - 1 - (sq // 21 - 1), sq % 21 - 1): letter for sq, letter in position.pieces()}
    along = 0 if stone == "x" else 1
    border = 0 if edge == 0 else size - 1
    cells = {(r, c) for r in range(size) for c in range(size)}

    def neighbours(cell: tuple[int, int]) -> tuple[set[tuple[int, int]], bool]:
        """Empty cells beside a cell or joined with it by own stones, and whether the edge is."""
        found, waiting, edge_reached = {cell}, [cell], cell[along] == border
        while waiting:
            row, column = waiting.pop()
            edge_reached |= (row, column)[along] == border
            for down, right in ((-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0)):
                beside = (row + down, column + right)
                if beside in cells and beside not in found and stones.get(beside, stone) == stone:
                    found.add(beside)
                    if beside in stones:
                        waiting.append(beside)
        return {c for c in found if c not in stones} - {cell}, edge_reached

    around = {cell: neighbours(cell) for cell in cells - set(stones)}
    known = {cell: 1 for cell, (_, reached) in around.items() if reached}
    while True:
        added = {}
        for cell, (beside, _) in around.items():
            values = sorted(known[c] for c in beside if c in known)
            if cell not in known and len(values) > 1:
                added[cell] = values[1] + 1
        if not added:
            return known
        least = min(added.values())
        known |= {cell: value for cell, value in added.items() if value == least}


def test_two_distances_are_those_of_the_definition() -> None:
    beyond_the_edge = 0
    for seed in range(80):
        position = wander("hex:6", seed, seed % 24)
        if position.outcome is not None:
            continue
        state = position.new_record()[0]
        for side, stone in enumerate("xo"):
            for edge in (0, 1):
                spread(state, 0, side, edge)
                wanted = distances(position, stone, edge)
                for row in range(6):
                    for column in range(6):
                        sq = square(column, 5 - row)
                        if position.piece_at(sq) is None:
                            found = int(state["near"][0, side, edge, sq])
                            assert found == wanted.get((row, column), FAR), position.diagram()
                            beyond_the_edge += found > 2
    assert beyond_the_edge > 1000


def test_what_is_remembered_is_of_the_same_position() -> None:
    """Values and weights on a record that has seen many lines are those on a fresh one."""
    draw = random.Random(3)
    record = start("hex:5").new_record()
    state = record[0]
    params = evaluators.parameters("default", games.find("hex:5"))[0]
    for _ in range(300):
        position = start("hex:5")
        for _ in range(draw.randint(0, 3)):
            position = position.play(draw.choice(position.legal_moves()))
            verbs.make(state, position.last_move)
        fresh = position.new_record()[0]
        assert int(verbs.evaluate(params, state)) == int(verbs.evaluate(params, fresh))
        m = draw.choice(position.legal_moves())
        assert int(verbs.order_score(state, m)) == int(verbs.order_score(fresh, m))
        while state["ply"]:
            verbs.undo(state)


def think(position: Any, limits: Limits) -> Info:
    infos: list[Info] = []
    searcher = Searcher(Settings(hash_mib=16))
    searcher.begin()
    searcher.search(position, limits, infos.append)
    return infos[-1]


EXACT = {2: ".W/W.", 3: "..W/WWW/W..", 4: "...W/..W./.W../W..."}


@pytest.mark.parametrize("size", EXACT)
def test_first_moves_have_their_exact_values(size: int) -> None:
    """The generic search proves every opening won or lost, and the empty board won."""
    rows = EXACT[size].split("/")
    game = start(f"hex:{size}")
    for row in range(size):
        for column in range(size):
            sq = square(column, size - 1 - row)
            score = think(game.play(move(sq, sq)), Limits(depth=size * size)).score
            assert score.mate is not None
            assert (score.mate < 0) == (rows[row][column] == "W"), move_name(move(sq, sq))
    whole = think(game, Limits(depth=size * size))
    assert whole.score.mate is not None
    assert whole.score.mate > 0
    best = whole.pv[0] & 511
    assert rows[size - 1 - (best // 21 - 1)][best % 21 - 1] == "W"


def test_whoever_may_swap_wins() -> None:
    """Every opening is either won, and then taken over, or lost."""
    for size in (2, 3):
        score = think(start(f"hex-swap:{size}"), Limits(depth=size * size + 1)).score
        assert score.mate is not None
        assert score.mate < 0


def minimax(position: Any, known: dict[int, int]) -> int:
    """The value with best play: a win in n plies is 100 - n, a loss n - 100."""
    if position.outcome is not None:
        return -100
    if position.key not in known:
        best = max(-minimax(position.play(m), known) for m in position.legal_moves())
        known[position.key] = best - 1 if best > 0 else best + 1
    return known[position.key]


def test_the_search_finds_the_shortest_win_and_the_longest_defence() -> None:
    known: dict[int, int] = {}
    signs = set()
    for seed in range(25):
        position = wander("hex:3", seed, 2 + seed % 3)
        if position.outcome is None:
            value = minimax(position, known)
            plies = 100 - abs(value)
            assert think(position, Limits(depth=9)).score.mate == (
                (plies + 1) // 2 if value > 0 else -(plies // 2)
            ), position.fen()
            signs.add(value > 0)
    assert signs == {True, False}


def test_the_search_beats_chance() -> None:
    for seed in range(6):
        draw = random.Random(seed)
        position = start("hex:7")
        ours = Side(seed % 2)
        searcher = Searcher(Settings(hash_mib=1))
        while position.outcome is None:
            if position.side is ours:
                searcher.begin()
                chosen = searcher.search(position, Limits(nodes=300), lambda _: None).move
            else:
                chosen = draw.choice(position.legal_moves())
            position = position.play(chosen)
        assert position.outcome.winner is ours


def test_the_benchmark_solves_and_compares(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_hex, "let_interrupt_end_us", lambda: None)
    assert bench_hex.main(["--size", "3", "--hash", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 7
    assert lines[0].startswith("a3  .  in  6 plies ")
    assert lines[-2] == "..W/WWW/W..  as known"
    monkeypatch.setitem(bench_hex.WINNING_OPENINGS, 2, "WW/WW")
    assert bench_hex.main(["--size", "2", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["table"], found["known"], len(found["openings"])) == (".W/W.", "WW/WW", 2)
    assert [opening["plies"] for opening in found["openings"]] == [4, 3]
    for size in ("1", "7", "x"):
        with pytest.raises(SystemExit):
            bench_hex.main(["--size", size])


# As a process


@pytest.mark.process
def test_a_session() -> None:
    with Conversation() as engine:
        assert engine.ask("variant hex-swap:4") == [
            "info string variant hex-swap:4 files 4 ranks 4 attackers 0 defenders 0 first a startpos 4/4/4/4 a 0 1"
        ]
        assert engine.ask("position startpos moves b2 swap c1", "moves")[0].startswith("moves 14 a1 a2 ")
        assert engine.ask("query fen") == ["response 4/2o1/4/2x1 d 3 2"]
        assert engine.ask("undo", "undo", "moves")[-1].startswith("moves 16 swap a1 ")
        engine.send("position startpos moves b2", "perft 2")
        assert "swap: 15" in engine.until("info string perft")
        shown = engine.ask("d")
        assert any(line.strip().startswith("4 o\\") for line in shown)
        engine.send("position startpos moves b2", "go depth 3")
        answer = engine.until("bestmove")
        assert answer[-1].split()[1] == "swap" or len(answer[-1].split()[1]) == 2
        assert engine.ask("eval")[-1].startswith("info string eval total a ")
        assert engine.ask("rules")[:3] == [
            "info string rules game hex",
            "info string rules size 4",
            "info string rules swap yes",
        ]
        engine.send("genfens 1 seed 1 plies 2-4")
        fen = engine.until("info string genfens")[-1].removeprefix("info string genfens ")
        assert games.from_fen(games.find("hex-swap:4"), fen).outcome is None
        played = engine.ask("variant hex:2", "play a1", "play b2", "play a2")
        assert played[-1] == "info string outcome a connected"
        assert engine.ask("play b1") == ["info string error play b1: the game is over: a connected"]
        assert engine.ask("position fen x1/2 a")[0].startswith("info string error position: 1 x and 0 o")


PLAIN = """
import numpy as np
from hnefi.engine import count, evaluators, games
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.search.types import Limits, Settings
from hnefi.engine.perft import perft
game = games.initial(games.find("hex-swap:3"))
print([perft(game, n).nodes for n in (1, 2, 3)], perft(game, 3, True).nodes)
record = game.new_record(); state = record[0]
count.playouts(state, 20, 50)
print(state["tally"].tolist(), int(state["key"]))
position = game
for word in "a3 swap b2".split():
    position = position.play(position.parse_move(word))
    print(position.fen(), position.key, evaluators.terms("default", position))
infos = []
searcher = Searcher(Settings(hash_mib=1))
searcher.begin()
searcher.search(position, Limits(depth=3), infos.append)
print([(i.depth, i.nodes, i.score, i.pv) for i in infos])
"""


@pytest.mark.process
def test_compiled_and_plain_python_agree() -> None:
    def run(**flags: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", PLAIN], env=os.environ | flags, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    assert run(NUMBA_DISABLE_JIT="1") == run()


# Another program


def test_random_games_against_openspiel() -> None:
    """Its first player joins top and bottom, too; an action is row * size + column, rows from the top."""
    pyspiel = pytest.importorskip("pyspiel", reason="open_spiel is not installed (extra `oracle`)")
    for size in (3, 4, 7, 11):
        game = pyspiel.load_game(f"hex(num_cols={size},num_rows={size})")
        for seed in range(40):
            draw = random.Random(seed)
            theirs, ours = game.new_initial_state(), start(f"hex:{size}")
            while not theirs.is_terminal():
                actions = {
                    (size - 1 - (m % 512 // 21 - 1)) * size + m % 512 % 21 - 1: m for m in ours.legal_moves()
                }
                assert sorted(actions) == sorted(theirs.legal_actions())
                action = draw.choice(sorted(actions))
                theirs.apply_action(action)
                ours = ours.play(actions[action])
            assert ours.outcome is not None
            assert theirs.returns()[int(ours.outcome.winner)] == 1.0
