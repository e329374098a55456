"""Engines of the Hnefatafl Text Protocol, written from its description: two that play by heart, one that adds noise.

    python -I -S double_engine.py stdio MOVES [QUIRK]...          driven on standard input and output
    python -I -S double_engine.py connect HOST MOVES [QUIRK]...   connects to a light server
    python -I -S double_engine.py noise COMMAND...                passes lines on, with noise around the answers

MOVES are those of a whole game, with commas: it demands to be told no others.

  noise      lines before each move, and a map behind it
  old        an empty line behind each answer, as older versions have it
  few        knows no `play`
  slow       answers after an hour only
  child      has a child in a session of its own, and does not listen to TERM
  talk=N     prints without end in the place of its N-th answer
  illegal=N crash=N garbage=N refuse=N resign=N role=N    what is wrong with its N-th answer
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time

COMMANDS = ["board_size", "generate_move", "list_commands", "name", "play", "protocol_version", "quit"]
MAP = ["play d4 d5 0.25", "d4 -> d5", "", *["0.125 " * 11] * 11, "end of map"]


def split(move: str) -> tuple[str, str]:
    at = 2 if not move[2:3].isdigit() else 3
    return move[:at], move[at:]


class Engine:
    """What both kinds know: the game by heart, and what goes wrong."""

    def __init__(self, moves: str, quirks: list[str]) -> None:
        self.moves = [word.partition("x")[0] for word in moves.split(",")]
        self.quirks = dict(word.partition("=")[::2] for word in quirks)
        self.size = 11
        self.ply = 0
        self.generated = 0

    def spelled(self, square: str) -> str:
        return f"0{square}" if self.size == 7 else square.upper() if self.size == 13 else square

    def role(self) -> str:
        first, second = ("defender", "attacker") if self.size == 7 else ("attacker", "defender")
        return first if self.ply % 2 == 0 else second

    def strikes(self, quirk: str) -> bool:
        return self.quirks.get(quirk) == str(self.generated)

    def generate(self) -> str:
        """`play ROLE FROM TO`, or what is wrong with it."""
        self.generated += 1
        role = self.role()
        if "slow" in self.quirks:
            time.sleep(3600)
        while self.strikes("talk"):
            print("is it d4 " * 6000, flush=True)
        if self.strikes("crash"):
            print("out of luck", file=sys.stderr, flush=True)
            sys.exit(7)
        if self.strikes("resign"):
            return f"play {role} resigns"
        if self.strikes("garbage"):
            return "play tennis"
        move = "a1a2" if self.strikes("illegal") else self.moves[self.ply]
        origin, target = map(self.spelled, split(move))
        self.ply += 1
        return f"play {self.role() if self.strikes('role') else role} {origin} {target}"

    def told(self, words: list[str]) -> None:
        """A move of either side, which must be the game's."""
        origin, target = map(self.spelled, split(self.moves[self.ply]))
        assert words == ["play", self.role(), origin, target], f"{words}, expected {origin} {target}"
        self.ply += 1


def stdio(engine: Engine) -> None:
    def say(text: str) -> None:
        print(text + ("\n" if "old" in engine.quirks else ""), flush=True)

    for line in sys.stdin:
        words = line.split()
        if words == ["list_commands"]:
            known = [name for name in COMMANDS if not (name == "play" and "few" in engine.quirks)]
            say("= " + "\n".join(known if "old" in engine.quirks else ["", *known]))
        elif words == ["protocol_version"]:
            say("= 1-beta")
        elif words[0] == "board_size":
            engine.size, engine.ply = int(words[1]), 0
            say("= ")
        elif words[0] == "play":
            engine.told(words)
            say("? no such move\n" if engine.quirks.get("refuse") == str(engine.ply) else "= 0a1")
        elif words == ["generate_move"]:
            if "noise" in engine.quirks:
                print("searching\nplay a1 a2 maybe\n= 3.5 nodes", flush=True)
            say(f"= {engine.generate()}")
            if "noise" in engine.quirks:
                print("\n".join(MAP), flush=True)
        else:
            assert words == ["quit"], words
            say("= ")
            return


def connect(engine: Engine, host: str) -> None:
    link = socket.create_connection((host, 49152)).makefile("rwb")
    for line in link:
        words = line.decode().split()
        if words[0] == "play":
            engine.told(words)
        else:
            assert line == f"generate_move {engine.role()}\n".encode(), line
            link.write(engine.generate().encode() + b"\n")
            link.flush()


def noise(command: list[str]) -> None:
    """A real engine, with lines before and behind what it says."""
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    to = child.stdin

    def forward() -> None:
        for line in sys.stdin.buffer:
            to.write(line)
            to.flush()
        to.close()

    threading.Thread(target=forward, daemon=True).start()
    for line in child.stdout:
        moved = line.startswith(b"= play")
        sys.stdout.buffer.write(
            b"thinking\nplay a1 a2 0.5\n" * moved + line + "\n".join([*MAP, ""]).encode() * moved
        )
        sys.stdout.buffer.flush()


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    kind, *words = sys.argv[1:]
    if kind == "noise":
        noise(words)
        return
    host = words.pop(0) if kind == "connect" else ""
    engine = Engine(words[0], words[1:])
    if "child" in engine.quirks:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", "import time; time.sleep(3600)"], start_new_session=True
        )
    if kind == "connect":
        connect(engine, host)
    else:
        stdio(engine)


main()
