"""A light server of the Hnefatafl Text Protocol, written from the description of the convention.

    python -I -S double_server.py ADDRESS MOVES [KEY=VALUE]...

Two clients connect to port 49152: the first defends, the second attacks. It asks `generate_move ROLE`, expects one line
`play ROLE FROM TO`, and hands that line on word for word. MOVES are those of a whole game, with commas; a client that
plays another one, or writes otherwise than the convention says, ends the server with status 1 and an explanation.

  we=ROLE      the part that it plays itself: it then waits for the other client only
  quirk=WORD   what it does wrong, before question number at=N or in its own move from ply N on (default 2)
"""

from __future__ import annotations

import socket
import sys
import time
from io import BufferedRWPair
from typing import Any

PORT = 49152
NONSENSE = {
    "out-of-turn": b"play %s a1 a2\n",
    "unreadable": b"play %s d99 e5\n",
    "wrong-side": b"generate_move %s\n",
    "many": b"hello there\n" * 10_000,
    "endless": b"\n" * 200_000,
    "blank": b"\n\r\n# a comment\n \tgenerals # and one more\n",
}


def spelled(move: str) -> str:
    """`d1d3` as the server spells it on 11 x 11."""
    at = 2 if not move[2:3].isdigit() else 3
    return f"{move[:at]} {move[at:]}"


class Server:
    def __init__(self, address: str, moves: list[str], words: dict[str, str]) -> None:
        self.moves = moves
        self.ours = words.get("we")
        self.quirk = words.get("quirk", "")
        self.at = int(words.get("at", "2"))
        self.asked = 0
        self.listener = socket.create_server((address, PORT))
        print("listening", flush=True)

    def serve(self) -> None:
        """One game."""
        clients = {role: self.listener.accept()[0] for role in ("defender", "attacker") if role != self.ours}
        files: dict[str, Any] = {role: client.makefile("rwb") for role, client in clients.items()}
        print("begun", flush=True)
        if self.quirk == "silent":
            time.sleep(3600)
        for ply, move in enumerate(self.moves):
            role, other = ("attacker", "defender") if ply % 2 == 0 else ("defender", "attacker")
            expected = f"play {role} {spelled(move)}\n".encode()
            resignation = f"play {role} resigns _\n".encode()
            line = expected
            if role in files:
                self.ask(files[role], role, other)
                line = files[role].readline()
                allowed = (expected, resignation) if self.quirk == "resigned" else (expected,)
                assert line in allowed, f"{line!r}, expected {expected!r}"
            elif self.quirk == "resigns" and ply >= self.at:
                line = resignation
            elif self.quirk == "illegal" and ply >= self.at:
                line = f"play {role} a1 a2\n".encode()
            if other in files:
                self.send(files[other], line)
            if line == resignation:
                print("resigned", flush=True)
                break
        for client in clients.values():
            client.shutdown(socket.SHUT_WR)
        for role, file in files.items():
            rest = file.read()
            assert rest == b"", f"{role} wrote {rest!r} behind the end"

    def ask(self, file: BufferedRWPair, role: str, other: str) -> None:
        """A question, and the quirk if its time has come."""
        self.asked += 1
        if self.asked == self.at:
            if self.quirk in NONSENSE:
                file.write(NONSENSE[self.quirk].replace(b"%s", other.encode()))
            elif self.quirk == "asked":
                file.write(f"generate_move {role}\n".encode())
            if self.quirk in ("closes", "asked"):
                file.flush()
                print("closed", flush=True)
                sys.exit(0)
        self.send(file, f"generate_move {role}\n".encode())

    def send(self, file: BufferedRWPair, line: bytes) -> None:
        """A line, or a byte at a time."""
        for piece in [bytes([byte]) for byte in line] if self.quirk == "bytes" else [line]:
            file.write(piece)
            file.flush()


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    address, moves, *words = sys.argv[1:]
    pairs = dict(word.partition("=")[::2] for word in words)
    Server(address, [word.partition("x")[0] for word in moves.split(",")], pairs).serve()
    print("done", flush=True)


main()
