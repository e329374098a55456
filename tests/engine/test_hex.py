"""Hex: kernels against a slow twin, rules, text, evaluator, and the exact values of small boards."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from conversation import Conversation
from twin_hex import TwinHex

from hnefi.engine import count, evaluators, games
from hnefi.engine.compile.jit import entry
from hnefi.engine.games import interface as verbs
from hnefi.engine.games.base_position import IllegalMove, PositionError
from hnefi.engine.games.base_variant import VariantError
from hnefi.engine.games.hex import kernels
from hnefi.engine.games.hex.distances import FAR, spread
from hnefi.engine.games.hex.state import CORE, new_record
from hnefi.engine.perft import perft
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.search.types import Info, Limits, Settings
from hnefi.engine.sides import Outcome, Reason, Side
from hnefi.engine.squares import SWAP, move, move_name, parse, square
from hnefi.tools.bench import hex as bench_hex

NAMES = ["hex:2", "hex:3", "hex:5", "hex:11", "hex:19", "hex-swap:2", "hex-swap:4", "hex-swap:11"]


def start(name: str) -> Any:
    return games.initial(games.find(name))


def after(name: str, moves: str) -> Any:
    position = start(name)
    for word in moves.split():
        position = position.play(position.parse_move(word))
    return position


def wander(name: str, seed: int, plies: int) -> Any:
    """A position after random plies; shorter if the game ends."""
    draw = random.Random(f"{name} {seed}")
    position = start(name)
    for _ in range(plies):
        if position.outcome is not None:
            break
        position = position.play(draw.choice(position.legal_moves()))
    return position


def twin_of(name: str) -> TwinHex:
    variant = games.find(name)
    return TwinHex(variant.files, "swap" in variant.name)


# Names


@pytest.mark.parametrize("word", ["hex:11", "HEX:11", "hex"])
def test_names(word: str) -> None:
    variant = games.find(word)
    assert (variant.name, variant.files, variant.ranks, variant.first) == ("hex:11", 11, 11, "a")
    assert variant.startpos == "/".join(["11"] * 11) + " a 0 1"
    assert "hex" in variant.aliases
    assert not games.find("hex:10").aliases


@pytest.mark.parametrize(
    "size", ["", "1", "20", "0", "-3", "+3", "03", "3 ", "3x3", "٣", "３", "1" * 5000, "3\n", "a", "2.5"]
)
@pytest.mark.parametrize("family", ["hex", "hex-swap"])
def test_sizes_that_are_none(family: str, size: str) -> None:
    with pytest.raises(VariantError, match="with N from 2 to 19") as error:
        games.find(f"{family}:{size}")
    assert len(str(error.value)) < 200
    assert size[:20].strip() in str(error.value) or "\\" in str(error.value)


def test_every_game_has_a_hash_of_its_own() -> None:
    assert (
        len({games.find(f"{family}:{n}").hash for family in ("hex", "hex-swap") for n in range(2, 20)}) == 36
    )


# Rules


@pytest.mark.parametrize("name", NAMES)
def test_games_are_those_of_the_twin(name: str) -> None:
    """Random games to the end: moves, board, FEN, side and winner after every ply."""
    size = games.find(name).files
    for seed in range(max(3, 60 // size)):
        draw = random.Random(f"{name} {seed}")
        position, twin = start(name), twin_of(name)
        while True:
            names = [move_name(m) for m in position.legal_moves()]
            assert names == twin.moves()
            assert position.fen() == twin.fen()
            winner = position.outcome.winner.letter if position.outcome else None
            assert winner == twin.winner
            if not names:
                break
            word = "swap" if names[0] == "swap" and seed % 2 else draw.choice(names)
            position, twin = position.play(position.parse_move(word)), twin.play(word)
        assert position.outcome.reason is Reason.CONNECTED


FILLINGS = {2: 40_000, 3: 35_000, 4: 15_000, 5: 8_000, 7: 1_800, 11: 180, 19: 20}


@entry
def fill(s: Any, cells: Any, sides: Any) -> int:
    """The outcome when all these stones are on the board; -1 if on the way there was another one."""
    outcome = 0
    for n in range(len(cells)):
        kernels.set_up(s, cells[n], sides[n])
        if outcome and s.outcome != outcome:
            return -1
        outcome = s.outcome
    return outcome


def test_exactly_one_side_joins_on_every_full_board() -> None:
    """100,000 random fillings: stones put on beyond the end never join the other side as well."""
    assert sum(FILLINGS.values()) == 100_000
    draw = np.random.default_rng(5)
    for size, number in FILLINGS.items():
        record = new_record(size, False)
        state, data = record[0], record.view(np.uint8).reshape(-1)
        empty = data[CORE].copy()
        cells = state["cells"][: size * size].astype(np.int64)
        for n in range(number):
            data[CORE] = empty
            sides = draw.integers(0, 2, len(cells))
            draw.shuffle(cells)
            outcome = fill(state, cells, sides)
            assert outcome >> 8 in (1, 2)
            if n < 60:
                where = {
                    (size - 1 - (sq // 21 - 1), sq % 21 - 1): "xo"[c]
                    for sq, c in zip(cells.tolist(), sides.tolist(), strict=True)
                }
                twin = TwinHex(size, stones=where)
                assert (twin._joined("x"), twin._joined("o")) == (outcome >> 8 == 1, outcome >> 8 == 2)


@pytest.mark.parametrize("name", NAMES)
def test_making_and_taking_back_restores_every_byte(name: str) -> None:
    for seed in range(3):
        draw = random.Random(f"{name} {seed}")
        record = start(name).new_record()
        state = record[0]
        before: list[bytes] = []
        while not state["outcome"]:
            end = int(verbs.generate(state, 0))
            moves = state["moves"][:end].tolist()
            core = record.view(np.uint8).reshape(-1)[CORE].tobytes()
            for m in draw.sample(moves, min(len(moves), 6)) + [SWAP] * (SWAP in moves):
                verbs.make(state, m)
                assert state["key"] == kernels.whole_key(state)
                verbs.undo(state)
                assert record.view(np.uint8).reshape(-1)[CORE].tobytes() == core, move_name(m)
            before.append(core)
            verbs.make(state, SWAP if seed and SWAP in moves else draw.choice(moves))
        while before:
            verbs.undo(state)
            assert record.view(np.uint8).reshape(-1)[CORE].tobytes() == before.pop()


def test_keys_tell_positions_apart() -> None:
    """Also the sides to move of one board, which a swap makes possible."""
    keys = {}
    for seed in range(300):
        position = wander("hex-swap:4", seed, seed % 12)
        keys.setdefault(position.key, set()).add(position.fen().rsplit(" ", 2)[0])
    assert all(len(boards) == 1 for boards in keys.values())
    assert len(keys) > 150
    game = games.find("hex-swap:3")
    assert games.from_fen(game, "x2/3/2o a").key != games.from_fen(game, "x2/3/2o d").key


def test_equal_boards_have_equal_keys() -> None:
    assert after("hex:5", "a1 b2 c3 d4").key == after("hex:5", "c3 d4 a1 b2").key
    swapped = after("hex-swap:5", "b1 swap c3 d4 a1")
    assert swapped.fen() == "5/3oo/2x2/5/x4 d 5 3"
    assert swapped.key == after("hex-swap:5", "b1 swap a1 d4 c3").key


@pytest.mark.parametrize("name", ["hex:2", "hex:3", "hex-swap:2", "hex-swap:3"])
def test_perft_is_that_of_the_twin(name: str) -> None:
    for depth in range(1, 5):
        wanted = twin_of(name).perft(depth)
        assert perft(start(name), depth).nodes == perft(start(name), depth, bulk=True).nodes == wanted


def test_perft_numbers() -> None:
    """Cells x (cells - 1) x ... until games end; a swap adds one reply to each first move."""
    for n in (3, 5, 11, 19):
        cells = n * n
        assert perft(start(f"hex:{n}"), 2).nodes == cells * (cells - 1)
        assert perft(start(f"hex-swap:{n}"), 2).nodes == cells * (cells - 1) + cells
    assert perft(start("hex:5"), 4).nodes == 25 * 24 * 23 * 22
    assert perft(start("hex:3"), 5).captures == 0


@pytest.mark.parametrize("name", NAMES)
def test_random_games_end(name: str) -> None:
    """Someone wins every one of them, within as many plies as there are cells (and a swap)."""
    record = start(name).new_record()
    state = record[0]
    before = record.view(np.uint8).reshape(-1)[CORE].tobytes()
    count.playouts(state, 1000, 400)
    plies, a, d, draws, unfinished = state["tally"][:5].tolist()
    size = games.find(name).files
    assert a + d == 1000
    assert (draws, unfinished) == (0, 0)
    assert 1000 * (2 * size - 1) <= plies <= 1000 * (size * size + 1)
    assert record.view(np.uint8).reshape(-1)[CORE].tobytes() == before


@pytest.mark.parametrize(("name", "moves"), [("hex:4", "a1 b2 c3"), ("hex-swap:4", "b2")])
def test_random_moves_are_uniform(name: str, moves: str) -> None:
    position = after(name, moves)
    state = position.new_record()[0]
    state["random"] = 12345
    drawn = dict.fromkeys(position.legal_moves(), 0)
    for _ in range(200 * len(drawn)):
        drawn[int(verbs.random_move(state))] += 1
    chi = sum((n - 200) ** 2 / 200 for n in drawn.values())
    degrees = len(drawn) - 1
    assert chi < degrees * (1 - 2 / (9 * degrees) + 3.719 * (2 / (9 * degrees)) ** 0.5) ** 3


def test_noisy_moves_win_and_weights_know_wins_and_threats() -> None:
    """Wins weigh 255, moves in whose place the opponent would win 254, all others less."""
    seen = set()
    for seed in range(60):
        position = wander("hex:5", seed, 8 + seed % 10)
        if position.outcome is not None:
            continue
        state = position.new_record()[0]
        noisy = state["moves"][: int(verbs.generate_noisy(state, 0))].tolist()
        stones = {(4 - (sq // 21 - 1), sq % 21 - 1): letter for sq, letter in position.pieces()}
        other = position.side.other.letter
        opponent = TwinHex(5, stones=stones, side=other)
        wins = []
        for m in position.legal_moves():
            weight = int(verbs.order_score(state, m))
            if position.play(m).outcome is not None:
                wins.append(m)
                assert weight == 255
            elif opponent.play(move_name(m)).winner == other:
                assert weight == 254
            else:
                assert 0 <= weight < 254
            seen.add(weight)
        assert sorted(noisy) == sorted(wins)
    assert {255, 254} <= seen
    assert len(seen) > 20


# The swap


def test_a_swap_takes_the_stone_over_and_reflects_it() -> None:
    position = after("hex-swap:5", "b1")
    assert position.legal_moves()[0] == SWAP
    assert len(position.legal_moves()) == 25
    assert position.fen() == "5/5/5/5/1x3 d 1 1"
    swapped = position.play(SWAP)
    # Row 4, column 1 from the top becomes row 1, column 4.
    assert swapped.fen() == "5/4o/5/5/5 a 2 2"
    assert swapped.pieces() == ((parse("e4", 5), "o"),)
    assert swapped.last_captures == ()
    assert swapped.taken == (0, 0)
    assert SWAP not in swapped.legal_moves()
    assert len(swapped.legal_moves()) == 24
    assert swapped.undo() is position
    assert [move_name(m) for m in swapped.play(parse_cell("b1")).moves] == ["b1", "swap", "b1"]


def parse_cell(name: str) -> int:
    sq = parse(name, 19)
    return move(sq, sq)


@pytest.mark.parametrize("name", ["a5", "c3", "e1"])
def test_a_stone_on_the_long_diagonal_stays_where_it_is(name: str) -> None:
    position = after("hex-swap:5", f"{name} swap")
    assert position.pieces() == ((parse(name, 5), "o"),)


def test_a_swap_is_known_from_the_board() -> None:
    """With one x and d to move it may come; with anything else it may not."""
    game = games.find("hex-swap:3")
    for fen, may in [
        ("3/3/3 a 0 1", False),
        ("3/1x1/3 d 0 1", True),
        ("3/1x1/3", True),
        ("3/1o1/3 a 0 2", False),
        ("3/xo1/3 d 0 2", False),
        ("3/xo1/3 a 0 2", False),
    ]:
        position = games.from_fen(game, fen)
        assert (SWAP in position.legal_moves()) is may, fen
        if not may:
            for refused in (lambda p=position: p.play(SWAP), lambda p=position: p.parse_move("swap")):
                with pytest.raises(IllegalMove, match="only the second ply"):
                    refused()
    with pytest.raises(IllegalMove, match="only the second ply of hex-swap"):
        after("hex:5", "a1 swap")


def test_both_sides_to_move_stand_for_one_board_after_a_swap_only() -> None:
    swap, plain = games.find("hex-swap:3"), games.find("hex:3")
    for fen in ("x2/3/2o d 0 2", "3/1o1/3 a 0 2"):
        assert games.from_fen(swap, fen).fen() == fen
        with pytest.raises(PositionError, match="expected as many x as o"):
            games.from_fen(plain, fen)


# Text


@pytest.mark.parametrize("name", NAMES)
def test_fens_come_back(name: str) -> None:
    game = games.find(name)
    for seed in range(12):
        position = wander(name, seed, 3 * seed)
        again = games.from_fen(game, position.fen())
        assert again.fen() == again.start_fen == position.fen()
        assert (again.key, again.outcome, again.pieces()) == (
            position.key,
            position.outcome,
            position.pieces(),
        )
        assert again.legal_moves() == position.legal_moves()
        assert (again.move_number, again.quiet, again.ply) == (position.move_number, position.quiet, 0)
        assert position.start_fen == game.startpos


def test_a_decided_position_is_decided() -> None:
    game = games.find("hex:3")
    position = games.from_fen(game, "x1o/x1o/x2 d")
    assert position.outcome == Outcome(Side.ATTACKERS, Reason.CONNECTED)
    assert position.legal_moves() == ()
    with pytest.raises(IllegalMove, match="the game is over: a connected"):
        position.parse_move("b2")
    with pytest.raises(IllegalMove, match="the game is over: a connected"):
        position.play(parse_cell("b2"))


def test_what_a_fen_leaves_out() -> None:
    game = games.find("hex:3")
    assert games.from_fen(game, "3/3/3").fen() == "3/3/3 a 0 1"
    assert games.from_fen(game, "3/1x1/3").fen() == "3/1x1/3 d 0 1"
    assert games.from_fen(game, "3/1xo/3 a").fen() == "3/1xo/3 a 0 1"


@pytest.mark.parametrize(
    ("fen", "reason"),
    [
        ("", "0 rows|1 rows"),
        ("3/3", "2 rows: expected 3"),
        ("3/3/3/3", "4 rows: expected 3"),
        ("3/4/3", "has 4 squares: expected 3"),
        ("3/2/3", "has 2 squares: expected 3"),
        ("3/12/3", "has 12 squares"),
        ("3/t2/3", "'t' is no piece: expected letters out of xo"),
        ("3/X2/3", "'X' is no piece"),
        ("3/03/3", "no number of empty squares"),
        ("3/" + "9" * 3000 + "/3", "no number of empty squares"),
        ("3/٣/3", "is no piece"),
        ("3/3/3 w", "side 'w': expected a or d"),
        (
            "3/3/3 d",
            "0 x and 0 o, d to move: expected as many x as o when a is to move, one x more when d is",
        ),
        ("x2/3/3 a", "1 x and 0 o, a to move"),
        ("xx1/3/3 d", "2 x and 0 o"),
        ("o2/3/3", "0 x and 1 o"),
        ("3/3/3 a -1", "plies since the last capture '-1'"),
        ("3/3/3 a 0 0", "move number '0'"),
        ("3/3/3 a 0 1 x", "after the move number"),
        ("3/3/3 a 9999999", "whole number from 0 to 999999"),
        ("x" * 5000, "at most 4096 characters"),
    ],
)
def test_fens_that_are_none(fen: str, reason: str) -> None:
    with pytest.raises(PositionError, match=reason) as error:
        games.from_fen(games.find("hex:3"), fen)
    assert len(str(error.value)) < 300


def test_fuzzed_fens_are_read_or_refused() -> None:
    draw = random.Random(8)
    game = games.find("hex-swap:4")
    read = 0
    for seed in range(3000):
        text = list(wander("hex-swap:4", seed % 40, seed % 14).fen())
        for _ in range(draw.randint(0, 3)):
            text[draw.randrange(len(text))] = draw.choice("xoad/ 0123456789-+=kT\x00é٣")
        try:
            position = games.from_fen(game, "".join(text))
        except PositionError:
            continue
        read += 1
        assert games.from_fen(game, position.fen()).fen() == position.fen()
        assert bool(position.legal_moves()) == (position.outcome is None)
    assert 600 < read < 2900


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a", "not a move: expected a cell such as a1"),
        ("", "not a move"),
        ("a1b2", "not a move"),
        ("a1a1", "not a move"),
        ("e1", "no square e1 on this 4x4 board"),
        ("a5", "no square a5 on this 4x4 board"),
        ("a0", "no square a0 on this 4x4 board"),
        ("z9", "no square z9 on this 4x4 board"),
        ("a" + "1" * 5000, "not a move"),
        ("a٣", "not a move"),
        ("b2", "x stands on b2"),
        ("B2", "x stands on b2"),
    ],
)
def test_why_a_move_is_illegal(text: str, reason: str) -> None:
    with pytest.raises(IllegalMove, match=reason):
        after("hex:4", "b2").parse_move(text)


def test_numbers_that_are_no_moves() -> None:
    for number in (0, -1, 1, 22, 22 | 23 << 9, 26 | 26 << 9, 1 << 40, -(1 << 70), 10**5000):
        with pytest.raises(IllegalMove, match="not a move"):
            start("hex:4").play(number)


def test_moves_as_people_type_them() -> None:
    position = start("hex-swap:11")
    assert position.parse_move(" F6 ") == position.parse_move("f6") == parse_cell("f6")
    assert position.play(parse_cell("f6")).parse_move("Swap") == SWAP
    with pytest.raises(IllegalMove, match="expected a cell such as a1 or swap"):
        position.play(parse_cell("f6")).parse_move("s")


def test_positions_do_not_change() -> None:
    position = after("hex:5", "c3 b2")
    before = position.fen(), position.key, position.legal_moves(), position.moves
    position.play(parse_cell("d4")).play(parse_cell("a1"))
    start("hex:7")
    after("hex-swap:5", "a1 swap")
    assert (position.fen(), position.key, position.legal_moves(), position.moves) == before
    with pytest.raises(AttributeError):
        position.ply = 9
    assert position.undo().undo().fen() == start("hex:5").fen()
    with pytest.raises(PositionError):
        start("hex:5").undo()
    assert position.unlimited() is position
    assert len(repr(wander("hex:19", 1, 361))) < 500


def test_a_half_turn_is_the_symmetry() -> None:
    def turned(name: str) -> str:
        return f"{'abcde'[4 - 'abcde'.index(name[0])]}{6 - int(name[1:])}"

    for seed in range(30):
        position = wander("hex:5", seed, 9)
        names = [move_name(m) for m in position.moves]
        image = after("hex:5", " ".join(map(turned, names)))
        assert position.canonical() == image.canonical()
        assert (position.outcome is None) == (image.outcome is None)
    assert after("hex:5", "b1").canonical() != after("hex:5", "a2").canonical()
    assert after("hex:5", "b1").canonical() != after("hex:5", "a4").canonical()
    # The mirror image with the owners exchanged has the other side to move.
    swapped = after("hex-swap:5", "b1 swap")
    assert swapped.canonical() != after("hex-swap:5", "b1").canonical()


def test_the_picture() -> None:
    assert after("hex:4", "b2 c3 d1").diagram().splitlines() == [
        "      a b c d",
        "     -x-x-x-x-",
        r"  4 o\. . . .\o 4",
        r"   3 o\. . o .\o 3",
        r"    2 o\. x . .\o 2",
        r"     1 o\. . . x\o 1",
        "          -x-x-x-x-",
        "            a b c d",
    ]


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
    monkeypatch.setitem(bench_hex.KNOWN, 2, "WW/WW")
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
