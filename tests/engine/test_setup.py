"""Positions as text: every alphabet and row order, the fields behind the board, and hostile input."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hnefi.engine import squares as board
from hnefi.engine.games.tafl.fen import Setup, SetupError, check_setup, format_fen, parse_fen, parse_rows
from hnefi.engine.games.tafl.rules import Rules
from hnefi.engine.games.tafl.switches import PIECES
from hnefi.engine.sides import Side

# Nothing about this board is symmetric: a1 t, c3 king, e5 commander of the defenders, b4 attacker.
LOPSIDED = "4C/1t3/2K2/5/t4"


def standing(setup: Setup) -> dict[str, str]:
    return {board.name(sq): letter for sq, letter in setup.pieces}


def test_rows_run_from_the_top_rank_down() -> None:
    setup = parse_fen(LOPSIDED)
    assert setup.size == 5
    assert standing(setup) == {"a1": "t", "c3": "K", "b4": "t", "e5": "C"}
    assert setup.side is None
    assert (setup.quiet, setup.move_number, setup.berserk, setup.caps) == (0, 1, None, None)


def test_a_leading_slash_means_rank_1_first() -> None:
    assert parse_fen("/t4/5/2K2/1t3/4C/") == parse_fen(LOPSIDED)
    assert parse_fen("/t4/5/2K2/1t3/4C") == parse_fen(LOPSIDED)
    assert parse_fen("t4/5/2K2/1t3/4C") != parse_fen(LOPSIDED)


def test_other_alphabets() -> None:
    plain = parse_fen("4T/1t3/2K2/5/t4")
    assert parse_fen("4d/1a3/2k2/5/a4") == plain
    assert parse_fen("4D/1A3/2K2/5/A4") == plain
    assert parse_fen("/a4/5/2k2/1a3/4d/") == plain, "a slash turns the rows of this alphabet"
    assert parse_fen("/4D/1A3/2K2/5/A4/") == plain, "but the program that writes A and D begins at the top"


@pytest.mark.parametrize(
    "mixture", ["4T/1a3/5/5/5", "4d/1A3/5/5/5", "4D/1t3/5/5/5", "4k/4T/5/5/5", "a3K/5/5/5/5"]
)
def test_alphabets_do_not_mix(mixture: str) -> None:
    with pytest.raises(SetupError, match=r"the letters '\w+' mix two alphabets"):
        parse_fen(mixture)


def test_empty_squares_are_decimal_numbers() -> None:
    setup = parse_fen("/".join(["11"] * 10 + ["10t"]))
    assert standing(setup) == {"k1": "t"}
    assert setup.rows[0] == "11"
    assert setup.rows[-1] == "10t"


def test_fields_behind_the_board() -> None:
    setup = parse_fen(f"{LOPSIDED} d 12 7 berserk=e5 caps=3,1")
    assert setup.side is Side.DEFENDERS
    assert (setup.quiet, setup.move_number) == (12, 7)
    assert setup.berserk == board.parse("e5", 5)
    assert setup.caps == (3, 1)
    assert parse_fen(f"{LOPSIDED} caps=3,1").caps == (3, 1)
    assert parse_fen(f"  {LOPSIDED}\ta  4 ").quiet == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no position"),
        ("   ", "no position"),
        ("5/5/5/5", "row '5' has 5 squares: expected 4, as many as rows"),
        ("5/5/4/5/5", "row '4' has 4 squares: expected 5"),
        ("5/5/6/5/5", "row '6' has 6 squares: expected 5"),
        ("5//5/5/5/5", "no empty row"),
        ("5/5", "2 rows: expected 3 to 19"),
        ("/".join(["20"] * 20), "20 rows: expected 3 to 19"),
        ("5/5/t0t3/5/5", "row 't0t3': '0' is no number of empty squares: expected 1 to 19"),
        ("5/5/05/5/5", "'05' is no number of empty squares"),
        ("5/5/5/5/" + "9" * 300, "'99999999999999999999…' is no number"),
        ("5/5/t²t2/5/5", "row 't²t2': '²' is no piece"),
        ("5/5/tx3/5/5", "row 'tx3': 'x' is no piece: expected letters out of tcnmgTCNMGK"),
        ("t" * 65536, "expected at most 4096"),
        ("t" * 2000, "expected rows such as 3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3, at most 19 of 19 squares"),
        ("3k1/3a1/5/3T1/5", "row '3T1': the letters 'Tak' mix two alphabets"),
        ("3k1/5/3x1/3T1/5", "row '3x1': 'x' is no piece"),
        (LOPSIDED + " w", "side 'w': expected a or d"),
        (LOPSIDED + " a -1", "plies since the last capture '-1': expected a whole number from 0 to 999999"),
        (LOPSIDED + " a ² 1", "plies since the last capture '²'"),
        (LOPSIDED + " a 0 0", "move number '0': expected a whole number from 1"),
        (LOPSIDED + " a 0 " + "9" * 400, "move number '9{80}…'"),
        (LOPSIDED + " a 0 1 x", "'x' after the move number"),
        (LOPSIDED + " a 0 1 foo=1", "field 'foo=1': expected berserk=<square> or caps"),
        (LOPSIDED + " a 0 1 caps=1", "field 'caps=1': expected two numbers"),
        (LOPSIDED + " a 0 1 caps=1,x", "men taken 'x'"),
        (LOPSIDED + " a 0 1 caps=1,2 caps=1,2", "expected each field once"),
        (LOPSIDED + " a 0 1 caps=1,2 7", "field '7'"),
        (LOPSIDED + " a 0 1 berserk=f1", "field 'berserk=f1': no square f1 on this 5x5 board"),
        (LOPSIDED + " a 0 1 berserk=a2", "field 'berserk=a2': expected the square of a piece"),
    ],
)
def test_bad_texts_are_quoted(text: str, message: str) -> None:
    with pytest.raises(SetupError, match=message.replace("(", r"\(")) as caught:
        parse_fen(text)
    assert len(str(caught.value)) < 400


def test_the_size_can_be_demanded() -> None:
    assert parse_fen(LOPSIDED, 5).size == 5
    with pytest.raises(SetupError, match="5 rows: expected 7"):
        parse_fen(LOPSIDED, 7)


@st.composite
def setups(draw: st.DrawFn) -> Setup:
    size = draw(st.integers(3, 19))
    cells = list(board.squares(size))
    chosen = draw(st.lists(st.sampled_from(cells), unique=True, max_size=30))
    pieces = tuple(sorted((sq, draw(st.sampled_from(PIECES))) for sq in chosen))
    side = draw(st.sampled_from([None, *Side]))
    return Setup(
        size,
        pieces,
        side,
        0 if side is None else draw(st.integers(0, 999_999)),
        1 if side is None else draw(st.integers(1, 999_999)),
        draw(st.sampled_from([None, *chosen])),
        draw(st.none() | st.tuples(st.integers(0, 361), st.integers(0, 361))),
    )


@settings(max_examples=150, deadline=None)
@given(setups())
def test_what_is_written_is_read_back(setup: Setup) -> None:
    assert parse_fen(format_fen(setup)) == setup


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("tTKadDAk0123456789/ =,²\x00berserkcaps"), max_size=60))
def test_noise_is_a_position_or_a_clear_refusal(text: str) -> None:
    try:
        setup = parse_fen(text)
    except SetupError:
        return
    assert parse_fen(format_fen(setup)) == setup


def test_what_can_stand_under_the_rules() -> None:
    rules = Rules.from_mapping({}, 5)
    check_setup(rules, parse_rows("3C1/1t3/2K2/5/1t3"))
    check_setup(rules, parse_rows("5/1t3/5/5/5"))  # no king: he has been captured
    check_setup(rules, parse_rows("5/5/2K2/5/5"))
    check_setup(rules, parse_rows("K4/5/5/5/5"))
    for rows, message in (
        (LOPSIDED, "t on a1: expected no t on a corner, where it may not stop"),
        ("t4/5/2K2/5/5", "t on a5: expected no t on a corner, where it may not stop"),
        ("5/5/2T2/5/K4", "T on c3: expected no T on the throne, where it may not stop"),
        ("5/1K3/2K2/5/5", "2 kings, on c3 and b4: expected one"),
        ("7/7/7/3K3/7/7/7", "a 7x7 board: expected 5x5"),
    ):
        with pytest.raises(SetupError, match=message):
            check_setup(rules, parse_rows(rows))
    check_setup(rules.replace(throne_stop="all"), parse_rows("5/5/2T2/5/K4"))


def test_a_berserk_piece_belongs_to_the_side_to_move() -> None:
    rules = Rules.from_mapping({"berserk": "capture"}, 5)
    check_setup(rules, parse_fen("4K/1t3/5/5/5 a berserk=b4"))
    check_setup(rules, parse_fen("4K/1t3/5/5/5 berserk=b4"))
    with pytest.raises(SetupError, match="berserk=b4: expected the square of a piece of the side to move"):
        check_setup(rules, parse_fen("4K/1t3/5/5/5 d berserk=b4"))
    with pytest.raises(SetupError, match="berserk=b4: expected no berserk field"):
        check_setup(rules.replace(berserk="off"), parse_fen("4K/1t3/5/5/5 a berserk=b4"))
