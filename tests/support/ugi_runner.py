"""A match runner for any two-player game that trusts its engines as referees; `python ugi_runner.py 'CMD' FEN VARIANT`.

It speaks `ugi`, and takes as an answer only a line of exactly two words with the right first word; everything else is
noise. It has no time-outs, and asks whose turn it is and whether the game is over after each ply, of both engines.
"""

import shlex
import subprocess
import sys


class Engine:
    def __init__(self, command: str, options: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.send("ugi")
        while self.line() != "ugiok":
            pass
        for name, value in options.items():
            self.send(f"setoption name {name} value {value}")
        self.send("isready")
        while self.line() != "readyok":
            pass
        self.send("uginewgame")

    def send(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")

    def line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the engine has ended"
        return line.rstrip("\n")

    def ask(self, line: str, answer: str) -> str:
        self.send(line)
        while len(words := self.line().split()) != 2 or words[0] != answer:
            pass
        return words[1]

    def end(self) -> int:
        self.send("quit")
        self.process.communicate()
        return self.process.returncode


def play(command: str, variant: str, fen: str, depth: int, most: int) -> tuple[list[str], str]:
    """One game of the engine with itself: the moves, and what both say of the result."""
    # The last is an option that nobody has; what some runners send by themselves.
    engines = [
        Engine(command, {"variant": variant, "ownbook": "false", "uci_chess960": "true"}) for _ in range(2)
    ]
    moves: list[str] = []
    while len(moves) < most:
        for engine in engines:
            engine.send(f"position fen {fen} moves {' '.join(moves)}" if moves else f"position fen {fen}")
        over = {engine.ask("query gameover", "response") for engine in engines}
        assert len(over) == 1, f"the engines do not agree whether the game is over: {moves}"
        if over == {"true"}:
            break
        turns = {engine.ask("query p1turn", "response") for engine in engines}
        assert len(turns) == 1, f"the engines do not agree whose turn it is: {moves}"
        mover = engines[0 if turns == {"true"} else 1]
        moves.append(mover.ask(f"go depth {depth}", "bestmove"))
    results = {engine.ask("query result", "response") for engine in engines}
    assert len(results) == 1, f"the engines do not agree on the result: {moves}"
    assert [engine.end() for engine in engines] == [0, 0]
    return moves, results.pop()


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    print(*play(sys.argv[1], sys.argv[3], sys.argv[2], depth=2, most=1000))
