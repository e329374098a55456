"""Squares, moves and boards of hnefatafl.org: written as they stand in its description, read back as ours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hnefi.engine.games.tafl.fen import parse_rows
from hnefi.engine.games.tafl.variant import find
from hnefi.engine.squares import FILES, square
from hnefi.protocol.hosts import hnefatafl_org_notation as notation
from hnefi.protocol.hosts.hnefatafl_org_notation import NotationError

SIZES = (7, 11, 13)
CELLS = {"A": "t", "D": "T", "K": "K"}
ELEVEN = "/3AAAAA3/5A5/11/A4D4A/A3DDD3A/AA1DDKDD1AA/A3DDD3A/A4D4A/11/5A5/3AAAAA3/"

Board = dict[tuple[int, int], str]
"""Their letter on each square that is not empty, by file and rank from 0 at a1."""


def theirs(board: Board, size: int) -> str:
    """A board as they write it, square by square."""
    text = "/"
    for rank in range(size, 0, -1):
        empty = 0
        for file in range(size):
            piece = board.get((file, rank - 1))
            if piece is None:
                empty += 1
                continue
            text += (str(empty) if empty else "") + piece
            empty = 0
        text += (str(empty) if empty else "") + "/"
    return text


def ours(board: Board, size: int) -> str:
    """The rows of a FEN: the same, with our letters and without the outer slashes."""
    return theirs({at: CELLS[piece] for at, piece in board.items()}, size)[1:-1]


def by_squares(rows: str) -> dict[int, str]:
    """What stands where in the rows of a FEN, as the engine reads them."""
    return dict(parse_rows(rows).pieces)


def orientations(board: Board, size: int) -> list[Board]:
    """The eight boards that turning and mirroring make of one."""
    boards = []
    for _ in range(4):
        board = {(rank, size - 1 - file): piece for (file, rank), piece in board.items()}
        boards += [board, {(size - 1 - file, rank): piece for (file, rank), piece in board.items()}]
    return boards


@pytest.mark.parametrize("size", SIZES)
def test_boards_in_all_orientations(size: int) -> None:
    """No square is changed for another: each board is none of its mirror images."""
    board = {(0, 0): "K", (1, 0): "A", (2, 0): "A", (4, 0): "D", (0, 2): "D", (5, 3): "A", (6, 3): "D"}
    turned = orientations(board, size)
    assert len({frozenset(one.items()) for one in turned}) == 8
    for one in turned:
        rows = ours(one, size)
        assert by_squares(rows) == {square(*at): CELLS[piece] for at, piece in one.items()}
        assert notation.write_board(rows) == theirs(one, size)
        assert notation.write_board(f"{rows} a 3 7") == theirs(one, size)


def test_the_highest_rank_comes_first() -> None:
    assert notation.write_board("K2t3/7/7/7/7/7/6T d 0 1") == "/K2A3/7/7/7/7/7/6D/"


def test_the_start_of_11_x_11() -> None:
    assert notation.write_board(find("copenhagen-org").startpos) == ELEVEN


@pytest.mark.parametrize("size", SIZES)
def test_the_variants_have_boards_of_their_sizes(size: int) -> None:
    variant = find(notation.VARIANTS[size])
    assert (variant.files, variant.ranks) == (size, size)


@given(st.sampled_from(SIZES), st.data())
def test_all_boards_are_written(size: int, data: st.DataObject) -> None:
    place = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))
    board = data.draw(st.dictionaries(place, st.sampled_from("ADK")))
    assert notation.write_board(ours(board, size)) == theirs(board, size)


@pytest.mark.parametrize(("size", "text"), [(7, "0d1"), (11, "d1"), (13, "D1")])
def test_the_spelling_of_a_square_tells_the_size(size: int, text: str) -> None:
    assert notation.write_square("d1", size) == text
    assert notation.write_move("d1d3", size) == f"{text} {text[:-1]}3"


@pytest.mark.parametrize("size", SIZES)
def test_squares_are_read_in_any_case(size: int) -> None:
    for name in (f"{file}{rank}" for file in FILES[:size] for rank in range(1, size + 1)):
        written = notation.write_square(name, size)
        for text in (written, written.upper(), written.lower(), name, name.upper()):
            assert notation.read_square(text, size) == name


@pytest.mark.parametrize("text", ["", "0", "d", "d0", "d12", "l1", "d01", "0d1", "d٣", "1d", "d-1", "d" * 99])
def test_what_is_no_square_is_refused(text: str) -> None:
    with pytest.raises(NotationError, match="expected a square, a1 to k11"):
        notation.read_square(text, 11)


def test_moves() -> None:
    assert notation.read_move("D1", "d11", 11) == "d1d11"
    assert notation.read_move("0d1", "0D3", 7) == "d1d3"
    assert notation.write_move("m13a10", 13) == "M13 A10"
    assert notation.split_move("k10k11") == ("k10", "k11")
    for move in ("", "d1", "d1-d3", "d1d3xe4", "resign"):
        with pytest.raises(NotationError, match="expected a move such as d1d3"):
            notation.split_move(move)
