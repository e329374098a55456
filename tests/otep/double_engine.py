"""OpenTafl's engine as its protocol describes it: random moves, all its quirks, and it dies where the original dies.

    python tests/otep/double_engine.py [QUIRK[=N]]...

It knows the plain rules (rook moves, custodial captures, king on a corner or an edge, king taken from two or four
sides): enough for brandub, tawlbwrdd and their like, no shieldwalls. It was written from the description of the
protocol and shares nothing with the adapter.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from double_games import Board, row_cells, square

LEFT_ALONE = 0.15
"""Seconds after a move within which a search that was broken off may still write."""
QUIRKS = {
    "seed": "of its moves",
    "moves": "all moves of a game by heart, with commas",
    "fast": "answer at once, whatever the clock says",
    "slow": "seconds before hello",
    "mute": "never say hello",
    "crash": "die before its N-th move",
    "hang": "never answer for its N-th move",
    "illegal": "its N-th move is illegal",
    "garbage": "its N-th move is none",
    "gives-up": "an error in the place of its N-th move",
    "noise": "random bytes and long lines before each move",
    "late": "a second move, 30 ms after each",
    "flood": "10,000 lines of status before its N-th move",
    "stays": "does not end by goodbye or TERM",
    "child": "has a child",
}
ATTACKERS, DEFENDERS = "t", "TK"
SIDES = {"attackers": ATTACKERS, "defenders": DEFENDERS}


class Position:
    """A board with its rules, as far as they are plain."""

    def __init__(self, rules: str) -> None:
        words = dict(word.partition(":")[::2] for word in rules.split())
        self.board = Board(rules)
        self.size = int(words["dim"])
        assert len(self.board.rows) == self.size, rules
        last, middle = self.size - 1, self.size // 2
        corners = {(x, y) for x in (0, last) for y in (0, last)}
        self.corners = named(words["cor"]) if "cor" in words else corners
        self.throne = named(words["cen"]) if "cen" in words else {(middle, middle)}
        self.hostile_throne = words.get("cenhe", "t") != ""
        self.edge = words.get("esc") == "e"
        self.king_sides = 2 if words.get("ks") in ("w", "c") else 4
        self.to_move = ATTACKERS if words.get("atkf", "y") == "y" else DEFENDERS
        self.over = False

    def at(self, spot: tuple[int, int]) -> str:
        x, y = spot
        inside = 0 <= x < self.size and 0 <= y < self.size
        return self.board.rows[y][x] if inside else "#"

    def moves(self, side: str) -> list[str]:
        found = []
        for y, row in enumerate(self.board.rows):
            for x, letter in enumerate(row):
                if letter == " " or letter not in side:
                    continue
                for dx, dy in ((0, 1), (1, 0), (0, -1), (-1, 0)):
                    spot = (x + dx, y + dy)
                    while self.at(spot) == " " and (spot not in self.corners or letter == "K"):
                        if spot not in self.throne or letter == "K":
                            found.append(f"{name((x, y))}-{name(spot)}")
                        spot = (spot[0] + dx, spot[1] + dy)
        return found

    def play(self, move: str) -> None:
        start, end = map(square, move.split("-"))
        letter = self.at(start)
        own, other = (ATTACKERS, DEFENDERS) if letter in ATTACKERS else (DEFENDERS, ATTACKERS)
        taken = []
        for dx, dy in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            beside, behind = (end[0] + dx, end[1] + dy), (end[0] + 2 * dx, end[1] + 2 * dy)
            victim = self.at(beside)
            if victim == " " or victim not in other:
                continue
            if victim == "K":
                around = [(beside[0] + a, beside[1] + b) for a, b in ((0, 1), (1, 0), (0, -1), (-1, 0))]
                if self.king_sides == 4 and not all(s == end or self.holds(s, own) for s in around):
                    continue
            if self.holds(behind, own) and behind != start:
                taken.append(beside)
        self.board.play("x".join([move, "/".join(map(name, taken))]) if taken else move)
        self.to_move = other
        king = next(
            ((x, y) for y, row in enumerate(self.board.rows) for x, sign in enumerate(row) if sign == "K"),
            None,
        )
        on_edge = king is not None and (min(king) == 0 or max(king) == self.size - 1)
        self.over = king is None or king in self.corners or (self.edge and on_edge) or not self.moves(other)

    def holds(self, spot: tuple[int, int], own: str) -> bool:
        """Whether a square takes part in a capture."""
        if self.at(spot) in own and self.at(spot) != " ":
            return True
        empty_throne = spot in self.throne and self.at(spot) == " " and self.hostile_throne
        return self.at(spot) == " " and (spot in self.corners or empty_throne)


def named(text: str) -> set[tuple[int, int]]:
    return {square(word) for word in text.split(",") if word}


def name(spot: tuple[int, int]) -> str:
    return f"{chr(ord('a') + spot[0])}{spot[1] + 1}"


class Engine:
    def __init__(self, quirks: dict[str, str]) -> None:
        self.quirks = quirks
        self.dice = random.Random(quirks.get("seed", "0"))
        self.by_heart = quirks["moves"].split(",") if "moves" in quirks else []
        self.position: Position | None = None
        self.plies = 0
        self.budget = 0.0
        self.asked = 0
        self.side = ATTACKERS
        self.thread: threading.Thread | None = None
        self.stop = threading.Event()
        self.searching = False
        self.said = 0.0

    def die(self, why: str) -> None:
        os.write(2, f'Exception in thread "main": {why}\n'.encode())
        os._exit(1)

    def command(self, line: str) -> None:
        """By the beginning of the line, as the original does; unknown ones are ignored."""
        word, _, rest = line.partition(" ")
        if word == "rules":
            try:
                self.position = Position(rest)
            except (AssertionError, KeyError, ValueError):
                say("error -1 cannot read these rules")
            self.plies = 0
        elif word == "opponent-move":
            self.opponent(rest.split(" ")[0])
        elif word == "position" and self.position is not None:
            rows = rest.strip("/").split("/")
            self.position.board.rows = [row_cells(row) for row in rows]
            self.position.over = False
        elif word == "side" and self.position is not None:
            self.position.to_move = SIDES[rest]
        elif word == "clock":
            self.clock(rest)
        elif word in ("play", "analyze"):
            self.begin(word, rest)
        elif word == "finish":
            self.stop.set()
        elif word == "goodbye" and "stays" not in self.quirks:
            os._exit(0)

    def opponent(self, moves: str) -> None:
        for move in moves.split("|"):
            if move.count("/") > 3:
                self.die("too many captures")
            position = self.position
            if position is None or move not in position.moves(ATTACKERS + DEFENDERS):
                os.write(2, f"dropped {move}\n".encode())  # and nobody is told
                continue
            position.play(move)
            self.plies += 1

    def clock(self, text: str) -> None:
        words = text.split()
        star = words[0].endswith("*")
        if star and int(words[3]) < 2:
            self.die("no overtime left")
        self.budget = (int(words[0].rstrip("*")) - 750) / 1000 if star else int(words[0]) / 20_000
        settings = Path("settings.ini")
        if not settings.exists() or "thinktime=0" not in settings.read_text():
            self.die("expected settings with thinktime=0")

    def begin(self, word: str, rest: str) -> None:
        if self.thread is not None and self.thread.is_alive() and (self.stop.is_set() or self.searching):
            if self.searching or time.monotonic() - self.said < LEFT_ALONE:
                self.die("null pointer: the old search still writes")
            self.thread.join()  # it was left alone for long enough: it is this machine that is late
        if self.position is None or self.position.over:
            self.die("null pointer: the game is over")
        if word == "analyze":
            count, seconds = map(int, rest.split())
            if count > len(self.position.moves(self.position.to_move)):
                self.die("fewer moves than lines")
            work, arguments = self.analyze, (count, float(seconds))
        else:
            work, arguments = self.play, (SIDES[rest], self.budget)
        self.stop = threading.Event()
        self.searching = True
        self.thread = threading.Thread(target=work, args=(*arguments, self.stop), daemon=True)
        self.thread.start()

    def play(self, side: str, seconds: float, stop: threading.Event) -> None:
        self.asked += 1
        now = {quirk for quirk, at in self.quirks.items() if at == str(self.asked)}
        if "crash" in now:
            self.die("out of memory")
        if "hang" in now:
            return
        if "gives-up" in now:
            self.searching = False
            say("error -1 what am I to do?")
            return
        if "noise" in self.quirks:
            os.write(1, bytes(self.dice.randrange(1, 256) for _ in range(300)).replace(b"move", b"") + b"\n")
            os.write(1, b"status " + b"x" * 200_000 + b"\n")
        if "flood" in now:
            os.write(1, b"status thinking\n" * 10_000)
        stop.wait(0.02 if "fast" in self.quirks else seconds * 0.85)
        if stop.is_set():
            time.sleep(self.dice.uniform(0.013, 0.05))
        assert self.position is not None
        move = self.by_heart[self.plies] if self.by_heart else self.dice.choice(self.position.moves(side))
        if "illegal" in now:
            move = "a1-a2" if self.position.size < 10 else "a1-b1"
        if "garbage" in now:
            move = "what?"
        if not now & {"illegal", "garbage"}:
            self.position.play(move)
            self.plies += 1
        self.searching = False
        self.said = time.monotonic()
        say(f"move {move}")
        # Statistics, which come for a while after a search.
        say("status nodes 123\nstatus depth 4\nstatus table 17%")
        if "late" in self.quirks:
            time.sleep(0.03)
            say(f"move {move}")
        if stop.is_set():
            time.sleep(0.02)
            say("status search was stopped")

    def analyze(self, count: int, seconds: float, stop: threading.Event) -> None:
        stop.wait(0.05 if "fast" in self.quirks else seconds)
        assert self.position is not None
        moves = self.dice.sample(self.position.moves(self.position.to_move), count)
        say(
            "analysis "
            + " ".join([str(count), *(f"{move} {value - 50}" for value, move in enumerate(moves))])
        )


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def main() -> None:
    quirks = dict(word.partition("=")[::2] for word in sys.argv[1:])
    if "--help" in quirks:
        sys.exit(f"{__doc__}\nquirks: {QUIRKS}")
    if unknown := quirks.keys() - QUIRKS.keys():
        sys.exit(f"{__doc__}\nquirks: {QUIRKS}\nunknown: {unknown}")
    if "stays" in quirks:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "child" in quirks:
        subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"], start_new_session=True
        )
    say("A tafl program, version 0")
    say("Press nothing")
    time.sleep(float(quirks.get("slow", 0.05)))
    if "mute" not in quirks:
        say("hello")
    engine = Engine(quirks)
    while chunk := os.read(0, 65_536):
        # Whatever one read returns is whole commands.
        for line in re.split(r"\n", chunk.decode("ascii")):
            if line:
                engine.command(line.strip())
    while "stays" in quirks:
        time.sleep(600)


if __name__ == "__main__":
    main()
