"""The competition's server as its convention describes it, for one player: a played game by heart, and quirks.

    python tests/tablut/double_server.py GAME COLOUR [--address A] [QUIRK[=N]]...

GAME is `escape`, `capture` or `repetition`; COLOUR is that of the player who connects, `white` or `black`; the other
side's moves are played by heart, and the player's are expected to be those of the game. It prints what it hears as
lines of JSON. It was written from the description of the convention and shares nothing with the adapter.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import struct
import sys
import threading
import time
from typing import Any

GAMES = {
    "escape": "f5f6 f1f5xg5 e4f4xf5 a4e4xe3 e5g5 d1a1 g5g1 WHITEWIN",
    "capture": "e7b7 e8e7xe6 e5e6xe7 a6d6 e6h6 d6g6 BLACKWIN",
    "repetition": "e3d3 d1c1 e4d4 c1b1 d5d6 b1c1 d3b3 c1b1 b3d3 DRAW",
}
"""Played games: moves with what they take, and how the server calls the end. A captured king stays on the board."""
PORTS = {"white": 5800, "black": 5801}
START = (
    "...BBB...",
    "....B....",
    "....W....",
    "B...W...B",
    "BBWWKWWBB",
    "B...W...B",
    "....W....",
    "....B....",
    "...BBB...",
)
JAMMED = (*["........."] * 3, "....B....", "...BKB...", "....B....", *["........."] * 3)
"""A board on which white has no move."""
FORCED = (*["........."] * 2, "....B....", ".........", *JAMMED[4:])
"""A board on which white has one: the black man of e6 stands on e7."""
CELLS = {".": "EMPTY", "B": "BLACK", "W": "WHITE", "K": "KING"}
QUIRKS = {
    "split": "the head of a frame and its body come apart",
    "bytes": "one byte at a time",
    "glued": "the echo of a move and the next state in one segment",
    "twice": "every state is sent twice",
    "flood": "every state is sent 10,000 times",
    "extra": "states have a field more",
    "kingless": "a captured king is taken from the board",
    "refuse": "the first N moves of the player are refused (-e K)",
    "tolerate": "N moves of the player that are not those of the game are refused (-e N)",
    "vanish": "ends without a word when N plies are played",
    "cut": "ends in the middle of the frame that follows ply N",
    "teleport": "after ply N a board that no move explains",
    "turn": "after ply N it is the same side's turn again",
    "early": "after ply N the game is over, as white's win",
    "garbage": "64 KiB of random bytes in the place of the state after ply N",
    "text": "a frame that is no JSON after ply N",
    "deep": "JSON 10,000 deep after ply N",
    "digits": "a number of 100,000 digits after ply N",
    "cells": "a board with a cell of another kind after ply N",
    "huge": "a length of 2^31-1 after ply N",
    "negative": "a negative length after ply N",
    "endless": "a frame of 64 KiB and more bytes without an end after ply N",
    "null": "the state `null` after ply N",
    "jam": "after ply N a board on which white has no move; then white's time runs out",
    "forced": "after ply N a board on which white has one move; then the server is gone",
    "silent": "says nothing after ply N",
}


class DoubleServer:
    """Serves one player in a thread. `heard` are the messages of the player, the name first."""

    def __init__(self, game: str, colour: str, address: str = "127.0.0.1", **quirks: int) -> None:
        assert quirks.keys() <= QUIRKS.keys(), quirks
        *self.moves, self.last_turn = GAMES[game].split()
        self.colour = colour
        self.quirks = quirks
        self.heard: list[Any] = []
        self._held = b""
        self.finished = False
        """The game came to its end, and the player closed the connection or was told."""
        self._listener = socket.create_server((address, PORTS[colour]))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def join(self, seconds: float = 60.0) -> None:
        """Wait for its end."""
        self._thread.join(seconds)
        assert not self._thread.is_alive()

    def close(self) -> None:
        """Listen no more."""
        self._listener.close()

    def _serve(self) -> None:
        try:
            self._player, _ = self._listener.accept()
        except OSError:
            return
        with self._player, contextlib.suppress(OSError, EOFError):
            self._play()

    def _play(self) -> None:
        self.heard.append(self._receive())
        board = [list(row) for row in START]
        turn = "WHITE"
        self._state(board, turn, 0)
        for ply, word in enumerate(self.moves):
            ours = turn.lower() == self.colour
            move, *taken = word.split("x")
            if ours and not self._hears(move, board, turn):
                return
            (column, row), (to_column, to_row) = square(move[:2]), square(move[2:])
            board[to_row][to_column], board[row][column] = board[row][column], "."
            for name in taken:
                column, row = square(name)
                board[row][column] = "."
            turn = "BLACK" if turn == "WHITE" else "WHITE"
            if ply == len(self.moves) - 1:
                turn = self.last_turn
                if "kingless" in self.quirks and turn == "BLACKWIN":
                    board = [["." if cell == "K" else cell for cell in line] for line in board]
            self._state(board, turn, ply + 1, hold=ours and "glued" in self.quirks)
        self.finished = True

    def _hears(self, move: str, board: list[list[str]], turn: str) -> bool:
        """Take moves until the one of the game comes; False if the game ends by another."""
        while True:
            action = self._receive()
            self.heard.append(action)
            if self.quirks.get("refuse", 0) > 0:
                self.quirks["refuse"] -= 1
            elif action["from"] + action["to"] == move:
                assert action["turn"] == turn
                return True
            elif self.quirks.get("tolerate", 0) > 0:
                self.quirks["tolerate"] -= 1
            else:
                return False  # an illegal move: the server is gone
            self._state(board, turn, -1)

    # Frames

    def _receive(self) -> Any:
        (length,) = struct.unpack(">i", self._exactly(4))
        assert 0 < length < 1000
        return json.loads(self._exactly(length))

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            chunk = self._player.recv(count - len(data))
            if not chunk:
                raise EOFError
            data += chunk
        return data

    def _framed(self, board: list[list[str]], turn: str) -> bytes:
        rows = [[CELLS[cell] for cell in row] for row in reversed(board)]
        if rows[4][4] == "EMPTY":
            rows[4][4] = "THRONE"
        state: dict[str, Any] = {"board": rows, "turn": turn}
        if "extra" in self.quirks:
            state = {"round": [1, {"x": None}], **state, "time": 3.5}
        return framed(json.dumps(state).encode())

    def _state(self, board: list[list[str]], turn: str, ply: int, *, hold: bool = False) -> None:
        """Send a state, or what a quirk makes of it; `hold` it until the next is sent."""
        quirk = next(
            (name for name, at in self.quirks.items() if at == ply and name not in ("refuse", "tolerate")), ""
        )
        data = self._framed(board, turn)
        if quirk == "vanish":
            raise EOFError
        if quirk == "cut":
            self._player.sendall(data[: len(data) // 2])
            raise EOFError
        if quirk in ("teleport", "turn", "early", "cells"):
            data = self._lie(quirk, board, turn)
        if quirk in RAW:
            data = RAW[quirk]
        if quirk == "jam":
            data = self._framed([list(row) for row in JAMMED], "WHITE")
        if quirk == "forced":
            self._player.sendall(self._framed([list(row) for row in FORCED], "WHITE"))
            self.heard.append(self._receive())
            raise EOFError
        if quirk in ("silent", "endless", "jam"):
            self._player.sendall(b"" if quirk == "silent" else data)
            self._player.settimeout(0.5 if quirk == "jam" else None)
            self._player.recv(1)  # until the player goes
            raise EOFError
        self._held += data
        if not hold or self.last_turn == turn:
            data, self._held = self._held, b""
            self._send(data)

    def _lie(self, quirk: str, board: list[list[str]], turn: str) -> bytes:
        other = {"WHITE": "BLACK", "BLACK": "WHITE"}
        if quirk == "turn":
            return self._framed(board, other[turn])
        if quirk == "early":
            return self._framed(board, "WHITEWIN")
        if quirk == "teleport":
            board[0][0], board[8][3] = "B", "."
            return self._framed(board, turn)
        return self._framed(board, turn).replace(b'"KING"', b'"DUKE"')

    def _send(self, data: bytes) -> None:
        times = 10_000 if "flood" in self.quirks else 2 if "twice" in self.quirks else 1
        if "split" in self.quirks:
            for part in (data[:2], data[2:4], data[4:]):
                self._player.sendall(part)
                time.sleep(0.01)
        elif "bytes" in self.quirks:
            for at in range(len(data)):
                self._player.sendall(data[at : at + 1])
        else:
            # In one segment: a state that comes again after the player's move says that the move is refused.
            self._player.sendall(data * times)


def square(name: str) -> tuple[int, int]:
    """Column, and row of `START`, whose first row is rank 9."""
    return ord(name[0]) - ord("a"), 9 - int(name[1])


def framed(message: bytes) -> bytes:
    return struct.pack(">i", len(message)) + message


RAW = {
    "garbage": os.urandom(65_536),
    "text": framed(b"a state would stand here \x1b[2J \xff\x00"),
    "deep": framed(b"[" * 10_000 + b"]" * 10_000),
    "digits": framed(b'{"board":' + b"9" * 60_000 + b',"turn":"WHITE"}'),
    "huge": struct.pack(">i", 2**31 - 1) + b"x" * 1000,
    "negative": struct.pack(">i", -5) + b"x" * 1000,
    "null": framed(b"null"),
    "endless": struct.pack(">i", 65_000) + b"x" * 1000,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("game", choices=GAMES)
    parser.add_argument("colour", choices=PORTS)
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("quirks", nargs="*", metavar="QUIRK[=N]", help=", ".join(QUIRKS))
    given = parser.parse_intermixed_args()
    quirks = {name: int(at or 0) for name, _, at in (word.partition("=") for word in given.quirks)}
    double = DoubleServer(given.game, given.colour, given.address, **quirks)
    double.join(3600)
    for message in double.heard:
        print(json.dumps(message))
    sys.exit(0 if double.finished else 1)


if __name__ == "__main__":
    main()
