"""Frames, states, actions and names: what is written, and whatever may come."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tablut.double_server import START, DoubleServer

from hnefi.engine.sides import Side
from hnefi.gui_adapter.tablut import frames
from hnefi.gui_adapter.tablut.frames import Broken, FrameError, State

FEN = "3ttt3/4t4/4T4/t3T3t/ttTTKTTtt/t3T3t/4T4/4t4/3ttt3 d 0 1"
BOARD = frames.board_of(FEN)


def test_a_board_begins_at_a1() -> None:
    assert BOARD[:9] == "...ttt..."
    assert BOARD[36:45] == "ttTTKTTtt"
    assert frames.board_of("K8/9/9/9/9/9/9/9/8t a 0 1").strip(".") == "t" + "." * 63 + "K"
    assert frames.fen_of(BOARD, Side.DEFENDERS) == FEN


@given(st.text("..tTK", min_size=81, max_size=81), st.sampled_from(list(Side)))
def test_boards_are_read_back(board: str, side: Side) -> None:
    assert frames.board_of(frames.fen_of(board, side)) == board
    state = State(board, frames.turn_of(side, None))
    assert frames.read_state(frames.state_message(state)) == state
    assert state.side is side
    assert state.result is None


def test_a_state_is_written_as_the_server_writes_it() -> None:
    """The same as the double, which was written from the description of the convention."""
    written = json.loads(frames.state_message(State(BOARD, "WHITE")))
    framed = DoubleServer._framed(Quiet(), [list(row) for row in START], "WHITE")  # type: ignore[arg-type]
    assert written == json.loads(framed[4:])
    assert written["board"][0] == ["EMPTY"] * 3 + ["BLACK"] * 3 + ["EMPTY"] * 3


class Quiet:
    """A double without a quirk."""

    quirks: frozenset[str] = frozenset()


def test_the_throne_is_named_only_where_it_is_empty() -> None:
    empty = frames.after(BOARD, "e5e9", ())
    assert json.loads(frames.state_message(State(empty, "WHITE")))["board"][4][4] == "THRONE"
    assert frames.read_state(frames.state_message(State(empty, "WHITE"))).board == empty
    assert b"THRONE" not in frames.state_message(State(BOARD, "WHITE"))


@pytest.mark.parametrize(
    ("turn", "side", "result"),
    [("WHITE", Side.DEFENDERS, None), ("BLACK", Side.ATTACKERS, None), ("WHITEWIN", None, "d"),
     ("BLACKWIN", None, "a"), ("DRAW", None, "draw")],
)  # fmt: skip
def test_turns(turn: str, side: Side | None, result: str | None) -> None:
    state = State(BOARD, turn)
    assert (state.side, state.result) == (side, result)
    assert frames.turn_of(Side.DEFENDERS if side is None else side, result) == turn


def test_a_move_takes_what_it_takes() -> None:
    board = frames.after(BOARD, "e3f3", ("d1", "i9"))
    changed = {at: (old, new) for at, (old, new) in enumerate(zip(BOARD, board, strict=True)) if old != new}
    assert changed == {3: ("t", "."), 22: ("T", "."), 23: (".", "T")}


def test_an_action_as_players_write_it() -> None:
    assert json.loads(frames.action_message("e3f3", Side.DEFENDERS)) == {
        "from": "e3",
        "to": "f3",
        "turn": "WHITE",
    }
    assert json.loads(frames.action_message("e3f3", Side.ATTACKERS))["turn"] == "BLACK"


@pytest.mark.parametrize(
    "message",
    [
        '{"from":"e3","to":"f3","turn":"WHITE"}', '{"from":"E3","to":"F3"}', '{"to":"f3","from":"e3","turn":null}',
        '{"from":"e3","to":"f3","turn":7,"depth":[1]}', ' {"from":"e3","to":"f3","turn":"W"}\r\n',
    ],
)  # fmt: skip
def test_actions_that_are_taken(message: str) -> None:
    assert frames.read_action(message.encode()) == "e3f3"


@pytest.mark.parametrize(
    "message",
    ["", "null", "[]", '"e3f3"', "{}", '{"from":"e3"}', '{"from":"e3","to":null}', '{"from":"e3","to":"f"}', "{",
     '{"from":"3e","to":"f3"}', '{"from":["e3"],"to":"f3"}', '{"from":"e3","to":"f3 "}', '{"from":"é3","to":"f3"}'],
)  # fmt: skip
def test_actions_that_are_not(message: str) -> None:
    with pytest.raises(FrameError, match="expected"):
        frames.read_action(message.encode())


@pytest.mark.parametrize(
    ("message", "name"),
    [(b'"hnefi"', "hnefi"), (b"hnefi", "hnefi"), (b"", ""), (b"7", "7"), (b'["x"]', '["x"]'), (b'" a\\u0007b "', "ab"),
     (b"\xff\xfe", "��"), (b'"' + b"x" * 60_000 + b'"', "x" * 40), (b"[" * 60_000, "[" * 40)],
)  # fmt: skip
def test_names(message: bytes, name: str) -> None:
    assert frames.read_name(message) == name


KEYS = st.sampled_from(["board", "turn", "from", "to"])
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner),
    max_leaves=20,
)


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_whatever_comes_is_refused_in_a_sentence_or_read(message: bytes) -> None:
    refused = []
    for read in (frames.read_state, frames.read_action):
        try:
            read(message)
        except FrameError as error:
            refused.append(str(error))
    assert all(text.isprintable() and len(text) < 1000 for text in refused)
    assert frames.read_name(message).isprintable()


def frames_of(*chunks: bytes) -> list[bytes | None]:
    """What is read of a stream that comes in these pieces, up to its end."""

    async def read() -> list[bytes | None]:
        reader = asyncio.StreamReader()
        for chunk in chunks:
            reader.feed_data(chunk)
        reader.feed_eof()
        found: list[bytes | None] = []
        while not found or found[-1] is not None:
            found.append(await frames.read_frame(reader))
        return found

    return asyncio.run(read())


def test_frames_in_any_pieces() -> None:
    data = frames.frame(b"one") + frames.frame(b"") + frames.frame(b"x" * frames.FRAME_LIMIT)
    wanted = [b"one", b"", b"x" * frames.FRAME_LIMIT, None]
    assert frames_of(data) == wanted
    assert frames_of(*(data[at : at + 1] for at in range(20)), data[20:]) == wanted


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"\xff\xff\xff\xff", "a frame of -1 bytes: expected 0 to 65536"),
        (b"\x7f\xff\xff\xff", "a frame of 2147483647 bytes"),
        (b"\x00\x01\x00\x01", "a frame of 65537 bytes"),
    ],
)
def test_lengths_that_are_wrong(data: bytes, error: str) -> None:
    with pytest.raises(FrameError, match=error):
        frames_of(data)


@pytest.mark.parametrize("cut", [1, 3, 4, 6])
def test_an_end_within_a_frame_is_told_from_one_between(cut: int) -> None:
    with pytest.raises(Broken):
        frames_of(frames.frame(b"one")[:cut])
