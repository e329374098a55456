"""What goes over the wire: frames of JSON, states of the board, actions and names.

A frame is a length in four bytes, high byte first, and so many bytes of JSON. White are the defenders, black the
attackers; `board[0]` of a state is rank 1 and its first cell file a, so that squares have the names that we give them.
"""

from __future__ import annotations

import asyncio
import json
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hnefi.engine.games.tafl.variant import find
from hnefi.engine.records.record import GameRecord
from hnefi.engine.sides import Side
from hnefi.engine.wording import shorten
from hnefi.protocol.hosts.connecting import reason_of

VARIANT: Final = find("tablut-bologna")
GAME: Final = f"variant {VARIANT.name}"
"""The line that has an engine play by the rules of the competition."""
FRAME_LIMIT: Final = 65_536
"""Bytes of one message; a state takes about a thousand."""
NAME_LIMIT: Final = 40
"""Characters that are kept of the name of a player."""
SIZE: Final = 9
PORTS: Final[Mapping[Side, int]] = {Side.DEFENDERS: 5800, Side.ATTACKERS: 5801}
"""Where the players connect; constants in every bot."""
COLOURS: Final[Mapping[Side, str]] = {Side.DEFENDERS: "white", Side.ATTACKERS: "black"}
KING: Final = "K"
EMPTY: Final = "."
THRONE: Final = 40
"""The place of the middle square on a board."""

_LETTERS: Final = {"EMPTY": EMPTY, "THRONE": EMPTY, "WHITE": "T", "BLACK": "t", "KING": KING}
_CELLS: Final = {EMPTY: "EMPTY", "T": "WHITE", "t": "BLACK", KING: "KING"}
_TO_MOVE: Final = {"WHITE": Side.DEFENDERS, "BLACK": Side.ATTACKERS}
_RESULTS: Final = {"WHITEWIN": "d", "BLACKWIN": "a", "DRAW": "draw"}
_SQUARE: Final = re.compile(r"[a-z][0-9]{1,2}", re.ASCII)
_HEAD: Final = struct.Struct(">i")


class FrameError(Exception):
    """A message violates the convention; the text says what was read and what was expected."""


class Broken(FrameError):
    """The connection ended, or broke, within a frame."""


def complaint(who: str, error: FrameError) -> str:
    """A sentence about the other side that distinguishes a broken connection from a bad message."""
    return f"{who}: {error}" if isinstance(error, Broken) else f"{who} sent {error}"


@dataclass(frozen=True, slots=True)
class State:
    """A board, and whose turn it is or how the game has ended.

    `board` has a character for each square, a1 b1 ... i9: `.`, `t` (black), `T` (white), `K`.
    """

    board: str
    turn: str

    @property
    def side(self) -> Side | None:
        """Who is to move; None if the game is over."""
        return _TO_MOVE.get(self.turn)

    @property
    def result(self) -> str | None:
        """`a`, `d` or `draw`; None while the game is undecided."""
        return _RESULTS.get(self.turn)


def header(players: tuple[str, str], start: str | None = None) -> GameRecord:
    """How a game is written down; `players` are the attackers and the defenders."""
    return GameRecord(VARIANT.name, start=start, players=players, rules_hash=VARIANT.hash)


def turn_of(side: Side, result: str | None) -> str:
    """The word for whose turn it is, or for the result if there is one."""
    words = {letter: word for word, letter in _RESULTS.items()}
    return words[result] if result else COLOURS[side].upper()


# Boards


def board_of(fen: str) -> str:
    """The board of a FEN, as a state has it."""
    ranks = fen.partition(" ")[0].split("/")
    cells = re.compile(r"\d+|.")
    rows = [
        "".join(EMPTY * int(part) if part.isdigit() else part for part in cells.findall(rank))
        for rank in ranks
    ]
    return "".join(reversed(rows))


def fen_of(board: str, side: Side) -> str:
    """The FEN of a board."""
    rows = [board[at : at + SIZE] for at in range(0, SIZE * SIZE, SIZE)]
    ranks = [re.sub(r"\.+", lambda run: str(len(run[0])), row) for row in reversed(rows)]
    return f"{'/'.join(ranks)} {side.letter} 0 1"


def after(board: str, move: str, captures: Iterable[str]) -> str:
    """The board after a move that takes what stands on `captures`."""
    cells = list(board)
    origin, target = _place(move[:2]), _place(move[2:])
    cells[target], cells[origin] = cells[origin], EMPTY
    for square in captures:
        cells[_place(square)] = EMPTY
    return "".join(cells)


def _place(square: str) -> int:
    return (int(square[1:]) - 1) * SIZE + ord(square[0]) - ord("a")


# Frames


async def read_frame(reader: asyncio.StreamReader) -> bytes | None:
    """The next message; None where the stream ends before one. FrameError if it ends within, or the length is wrong."""
    head = b""
    try:
        head = await reader.readexactly(_HEAD.size)
        (length,) = _HEAD.unpack(head)
        if not 0 <= length <= FRAME_LIMIT:
            raise FrameError(f"a frame of {length} bytes: expected 0 to {FRAME_LIMIT}")
        return await reader.readexactly(length)
    except asyncio.IncompleteReadError as error:
        if not head and not error.partial:
            return None
        raise Broken("the connection ended in the middle of a frame") from None
    except OSError as error:
        raise Broken(f"the connection broke ({reason_of(error)})") from None


def frame(message: bytes) -> bytes:
    """A message as it goes over the wire."""
    return _HEAD.pack(len(message)) + message


# Messages


def state_message(state: State) -> bytes:
    """A state as the server writes it."""
    cells = [_CELLS[cell] for cell in state.board]
    if cells[THRONE] == "EMPTY":
        cells[THRONE] = "THRONE"
    rows = [cells[at : at + SIZE] for at in range(0, SIZE * SIZE, SIZE)]
    return json.dumps({"board": rows, "turn": state.turn}, separators=(",", ":")).encode()


def read_state(message: bytes) -> State:
    """Read a state; FrameError if it is malformed."""
    content = _decoded(message)
    rows = content.get("board") if isinstance(content, dict) else None
    turn = content.get("turn") if isinstance(content, dict) else None
    if (
        not isinstance(rows, list)
        or [len(row) if isinstance(row, list) else 0 for row in rows] != [SIZE] * SIZE
    ):
        raise FrameError(f"{_shown(message)}: expected a state with a board of 9 x 9 cells")
    try:
        board = "".join(_LETTERS[cell] for row in rows for cell in row)
    except (KeyError, TypeError):
        raise FrameError(f"{_shown(message)}: expected cells {', '.join(_LETTERS)}") from None
    if not isinstance(turn, str) or turn not in (*_TO_MOVE, *_RESULTS):
        raise FrameError(f"turn {shorten(turn)}: expected {', '.join((*_TO_MOVE, *_RESULTS))}")
    return State(board, turn)


def action_message(move: str, side: Side) -> bytes:
    """A move as a player writes it."""
    action = {"from": move[:2], "to": move[2:], "turn": COLOURS[side].upper()}
    return json.dumps(action, separators=(",", ":")).encode()


def read_action(message: bytes) -> str:
    """The move of an action, in lower case, whatever its `turn` says; FrameError if it names no two squares."""
    content = _decoded(message)
    squares = [content.get(key) for key in ("from", "to")] if isinstance(content, dict) else []
    words = [square.lower() for square in squares if isinstance(square, str)]
    if len(words) != 2 or not all(map(_SQUARE.fullmatch, words)):
        raise FrameError(f'{_shown(message)}: expected {{"from":"e3","to":"f3","turn":"WHITE"}}')
    return "".join(words)


def name_message(name: str) -> bytes:
    """A name as a player writes it."""
    return json.dumps(name).encode()


def read_name(message: bytes) -> str:
    """The name of a player, a bare word or JSON text, without what a terminal would obey."""
    text = message.decode("utf-8", "replace")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = text
    name = content if isinstance(content, str) else text
    return "".join(sign for sign in name if sign.isprintable()).strip()[:NAME_LIMIT]


def _decoded(message: bytes) -> Any:
    try:
        return json.loads(message)
    except (ValueError, RecursionError):
        raise FrameError(f"{_shown(message)}: expected JSON") from None


def _shown(message: bytes) -> str:
    return shorten(message[:320].decode("utf-8", "replace"))
