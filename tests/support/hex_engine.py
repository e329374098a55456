"""A foreign engine that plays 4x4 hex and follows the protocol, or breaks it: ``python hex_engine.py [FAULT]...``.

It speaks `uci` only, knows no variants and runs with ``-I -S``, so that it starts fast.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import sys
import time

FAULTS = frozenset(sys.argv[1:])
MOODS = itertools.count()
SIZE = 4
CELLS = [f"{file}{rank + 1}" for file in "abcd" for rank in range(SIZE)]


def say(*lines: str) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()
    if os.write(1, data) < len(data):
        os._exit(1)


def joined(cells: set[str], along: int) -> bool:
    """Whether these stones join the first and the last rank (`along` 1) or file (0)."""
    known = [cell for cell in cells if where(cell)[along] == 0]
    seen = set(known)
    while known:
        file, rank = where(known.pop())
        if (file, rank)[along] == SIZE - 1:
            return True
        for df, dr in ((0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (-1, -1)):
            near = chr(97 + file + df) + str(rank + dr + 1)
            if near in cells and near not in seen:
                seen.add(near)
                known.append(near)
    return False


def where(cell: str) -> tuple[int, int]:
    return ord(cell[0]) - 97, int(cell[1:]) - 1


class Board:
    def __init__(self) -> None:
        self.stones: tuple[set[str], set[str]] = (set(), set())
        self.turn = 0

    def play(self, cell: str) -> None:
        if cell not in self.free():
            raise ValueError(cell)
        self.stones[self.turn].add(cell)
        self.turn = 1 - self.turn

    def free(self) -> list[str]:
        return [cell for cell in CELLS if cell not in self.stones[0] | self.stones[1]]

    def wins(self, cell: str) -> bool:
        return joined(self.stones[self.turn] | {cell}, 1 - self.turn)

    def over(self) -> bool:
        return joined(self.stones[0], 1) or joined(self.stones[1], 0)


def position(words: list[str]) -> Board:
    board = Board()
    end = words.index("moves") if "moves" in words else len(words)
    if words[1] == "fen":
        if "fen-crash" in FAULTS and "K" in words[2]:
            os.abort()
        rows = words[2].split("/")
        for rank, row in enumerate(reversed(rows)):
            file = 0
            for sign in row:
                if sign.isdigit():
                    file += int(sign)
                else:
                    board.stones["xo".index(sign)].add("abcd"[file] + str(rank + 1))
                    file += 1
        board.turn = "ad".index(words[3])
    elif words[1] != "startpos":
        raise ValueError(words[1])
    for move in words[end + 1 :]:
        board.play(move)
    return board


def think(board: Board) -> list[str]:
    """The lines that answer a `go`."""
    free = board.free()
    if board.over() and "plays-on" not in FAULTS:
        return ["info depth 0 score mate 0", "bestmove (none)"]
    wins = [cell for cell in free if board.wins(cell)]
    best = wins[0] if wins else free[next(MOODS) % len(free)] if "moody" in FAULTS else free[0]
    score = "mate 1" if wins else "cp 1.5" if "fractions" in FAULTS else "cp 15"
    if "illegal" in FAULTS and len(free) < len(CELLS):
        best = next(cell for cell in CELLS if cell not in free)
    pv = f"{best} {best}" if "stutters" in FAULTS else best
    return [f"info depth 1 score {score} nodes 16 time 0 pv {pv}", f"bestmove {best}"]


def greet() -> None:
    if "slow-greeting" in FAULTS:
        time.sleep(0.1)
    say("id name Small Hex", "id author somebody", "option name Hash type spin default 16 min 1 max 64")
    if "two-hashes" in FAULTS:
        say("option name hash type spin default 16 min 1 max 64")
    if "far-default" in FAULTS:
        say("option name Level type spin default 99 min 1 max 9")
    say("uciok")


def main() -> None:
    board = Board()
    held: list[str] = []
    if "chatty" in FAULTS:
        print("thinking of hexagons", file=sys.stderr)
    if "orphan" in FAULTS:
        quiet = subprocess.DEVNULL
        subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"],
            stdin=quiet,
            stdout=quiet,
            stderr=quiet,
        )
    for line in sys.stdin.buffer:
        if "utf8-crash" in FAULTS:
            line.decode()
        words = line.decode("utf-8", "replace").split()
        word = words[0] if words else ""
        if word == "uci":
            greet()
        elif word == "isready" and not (held and "busy" in FAULTS):
            say("readyok")
        elif word == "ucinewgame":
            board = Board()
        elif word == "position":
            with contextlib.suppress(ValueError, IndexError):
                board = position(words)
        elif word == "go":
            if "-1000" in words and "counts-on" in FAULTS:
                continue
            answer = think(board)
            if "infinite" in words and "hasty" not in FAULTS:
                held = answer
            else:
                say(*answer)
        elif word == "stop" and (held or "answers-twice" in FAULTS):
            say(*(held or think(board)))
            held = []
        elif word == "quit":
            sys.exit(1 if "bad-quit" in FAULTS else 0)
    if "lingers" in FAULTS:
        time.sleep(600)


main()
