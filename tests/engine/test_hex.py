"""Hex: kernels against a slow twin, rules and text."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hex_parts import after, start, wander
from twin_hex import TwinHex

from hnefi.engine import count, games
from hnefi.engine.compile.jit import entry
from hnefi.engine.games import interface as verbs
from hnefi.engine.games.base_position import IllegalMove, PositionError
from hnefi.engine.games.base_variant import VariantError
from hnefi.engine.games.hex import kernels
from hnefi.engine.games.hex.state import CORE, new_record
from hnefi.engine.perft import perft
from hnefi.engine.sides import Outcome, Reason, Side
from hnefi.engine.squares import SWAP, move, move_name, parse

NAMES = ["hex:2", "hex:3", "hex:5", "hex:11", "hex:19", "hex-swap:2", "hex-swap:4", "hex-swap:11"]


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


@pytest.mark.slow
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
        ("", "0 rows|1 row:"),
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


@pytest.mark.slow
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
