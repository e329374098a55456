"""A bot of the competition as its convention describes it, and what bots do wrong.

    python tests/tablut/double_bot.py COLOUR [SECONDS [HOST]] [QUIRK[=N]]...

It plays random moves that are legal whatever the rules say about camps and castle (of those that touch neither), or a
game by heart. It was written from the description of the convention and shares nothing with the adapter.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time
from typing import Any

PORTS = {"white": 5800, "black": 5801}
QUIRKS = {
    "moves": "the moves of its side by heart, with commas",
    "seed": "of its moves",
    "log": "a file to which it adds what it is shown and what it does",
    "port": "another port",
    "slow": "seconds before it connects",
    "delay": "seconds before each move",
    "crash": "dies before it connects",
    "noname": "connects and says nothing",
    "bare": "its name is no JSON",
    "longname": "its name has 10,000 characters",
    "rudename": "its name moves the cursor",
    "lower": "squares in lower case, the rule",
    "upper": "squares in upper case",
    "noturn": "actions without a turn",
    "nullturn": "actions whose turn is null",
    "wrongturn": "actions with the other side's turn",
    "bytes": "actions byte by byte",
    "chatter": "an action out of turn after each of its moves",
    "illegal": "its N-th move is illegal",
    "off": "its N-th move leads off the board",
    "silent": "never answers for its N-th move",
    "dies": "dies before its N-th move",
    "leaves": "closes the connection before its N-th move, and lives on",
    "cut": "closes in the middle of its N-th move",
    "resets": "resets the connection in the place of its N-th move",
    "text": "its N-th move is a frame that is no JSON",
    "null": "its N-th move is null",
    "list": "its N-th move is a list",
    "deep": "its N-th move is JSON 10,000 deep",
    "garbage": "random bytes for its N-th move",
    "huge": "a length of 2^31-1 for its N-th move",
    "negative": "a negative length for its N-th move",
    "endless": "a frame without an end for its N-th move",
    "flood": "10,000 actions for its N-th move",
    "deaf": "does not read",
    "stays": "does not end with its game, nor by TERM",
    "child": "has a child in a session of its own",
}


def main() -> None:
    words = [word for word in sys.argv[1:] if word.partition("=")[0] not in QUIRKS]
    quirks = dict(word.partition("=")[::2] for word in sys.argv[1:] if word not in words)
    colour, _, host = (*words, "60", "127.0.0.1")[:3] if len(words) < 3 else words[:3]
    colour = colour.lower()
    if colour not in PORTS:
        sys.exit(f"{__doc__}\nquirks: {QUIRKS}")
    if "stays" in quirks:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "child" in quirks:
        subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"], start_new_session=True
        )
    time.sleep(float(quirks.get("slow", 0)))
    if "crash" in quirks:
        sys.exit("no heap left for a bot")
    with connected(host, int(quirks.get("port", PORTS[colour]))) as server:
        if "noname" not in quirks:
            server.sendall(framed(name(quirks)))
        if "deaf" in quirks or "noname" in quirks:
            sleep()
        try:
            play(server, colour, quirks)
        except (EOFError, OSError):
            note(quirks, "the server is gone")
    if "stays" in quirks:
        sleep()


def play(server: socket.socket, colour: str, quirks: dict[str, str]) -> None:
    dice = random.Random(quirks.get("seed", "0") + colour)
    by_heart = quirks["moves"].split(",") if "moves" in quirks else []
    played = 0
    while True:
        (length,) = struct.unpack(">i", exactly(server, 4))
        state = json.loads(exactly(server, length))
        note(quirks, f"{state['turn']} {men(state['board'])}")
        if state["turn"].lower() != colour:
            if state["turn"] not in ("WHITE", "BLACK"):
                return
            continue
        played += 1
        move = by_heart[played - 1] if by_heart else some_move(state["board"], colour, dice)
        time.sleep(float(quirks.get("delay", 0)))
        misbehave(server, move, colour, {quirk: at for quirk, at in quirks.items() if at == str(played)})
        data = framed(json.dumps(action(move, colour, quirks, played)).encode())
        if "chatter" in quirks:
            # In one segment: what comes a moment later may come when its turn has.
            data += framed(b'{"from":"a1","to":"a2","turn":"WHITE"}')
        for at in range(len(data)) if "bytes" in quirks else ():
            server.sendall(data[at : at + 1])
        if "bytes" not in quirks:
            server.sendall(data)


def action(move: str, colour: str, quirks: dict[str, str], number: int) -> dict[str, Any]:
    """A move as it is sent, a wrong one where that was asked for."""
    if quirks.get("illegal") == str(number):
        move = "e5e4"
    if quirks.get("off") == str(number):
        move = move[:2] + "z9"
    move = move.upper() if "upper" in quirks else move
    turn = "white" if colour == "black" and "wrongturn" in quirks else colour
    made: dict[str, Any] = {"from": move[:2], "to": move[2:], "turn": turn.upper()}
    if "noturn" in quirks:
        del made["turn"]
    if "nullturn" in quirks:
        made["turn"] = None
    return made


def misbehave(server: socket.socket, move: str, colour: str, now: dict[str, str]) -> None:
    """What comes in the place of this move, or before it."""
    whole = framed(json.dumps(action(move, colour, {}, 0)).encode())
    raw = {
        "text": framed(b"\x1b[2J e5 to e6, please \xff\x00"),
        "null": framed(b"null"),
        "list": framed(b'["e5", "e6"]'),
        "deep": framed(b"[" * 10_000 + b"]" * 10_000),
        "garbage": b"\xff" + os.urandom(65_535),
        "huge": struct.pack(">i", 2**31 - 1) + b"x" * 1000,
        "negative": struct.pack(">i", -1) + b"x" * 1000,
        "endless": struct.pack(">i", 65_000) + b"x" * 1000,
        "flood": whole * 10_000,
        "cut": whole[: len(whole) // 2],
    }
    for quirk in now.keys() & raw.keys():
        server.sendall(raw[quirk])
    if "dies" in now:
        sys.exit("Exception in thread main: java.lang.OutOfMemoryError")
    if "resets" in now:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if now.keys() & {"cut", "leaves", "resets"}:
        server.close()
    if now.keys() & {"silent", "leaves", "endless"}:
        sleep()


def some_move(board: list[list[str]], colour: str, dice: random.Random) -> str:
    """A random move that touches neither camps nor castle, along empty squares."""
    own = ("WHITE", "KING") if colour == "white" else ("BLACK",)
    moves = []
    for row in range(9):
        for column in range(9):
            if board[row][column] not in own:
                continue
            for down, right in ((1, 0), (-1, 0), (0, 1), (0, -1)):
                to_row, to_column = row + down, column + right
                while 0 <= to_row < 9 and 0 <= to_column < 9 and board[to_row][to_column] == "EMPTY":
                    if (to_row, to_column) in CAMPS:
                        break
                    moves.append(
                        "abcdefghi"[column] + str(row + 1) + "abcdefghi"[to_column] + str(to_row + 1)
                    )
                    to_row, to_column = to_row + down, to_column + right
    return dice.choice(moves)


CAMPS = {
    (far, near)
    for at, edge in ((0, 0), (8, 8), (1, 1), (7, 7))
    for place in ((3, 4, 5) if edge in (0, 8) else (4,))
    for far, near in ((at, place), (place, at))
}


def men(board: list[list[str]]) -> str:
    """How many men white and black have, the king with white; EMPTY cells are neither."""
    cells = [cell for row in board for cell in row]
    return f"{cells.count('WHITE') + cells.count('KING')}:{cells.count('BLACK')}"


def note(quirks: dict[str, str], text: str) -> None:
    print(text, flush=True)
    if "log" in quirks:
        with open(quirks["log"], "a", encoding="utf-8") as file:  # noqa: PTH123
            file.write(text + "\n")


def name(quirks: dict[str, str]) -> bytes:
    if "longname" in quirks:
        return json.dumps("x" * 10_000).encode()
    if "rudename" in quirks:
        return b'"\\u001b[2Jrude\\u0000\\n"'
    return b"double" if "bare" in quirks else b'"double"'


def framed(message: bytes) -> bytes:
    return struct.pack(">i", len(message)) + message


def exactly(server: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        chunk = server.recv(count - len(data))
        if not chunk:
            raise EOFError
        data += chunk
    return data


def connected(host: str, port: int) -> socket.socket:
    """Tried until there is a server."""
    while True:
        try:
            return socket.create_connection((host, port))
        except ConnectionRefusedError:
            time.sleep(0.05)


def sleep() -> None:
    while True:
        time.sleep(600)


if __name__ == "__main__":
    main()
