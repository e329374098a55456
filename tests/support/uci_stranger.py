"""A UCI engine with the manners of engines that grew up alone; by hand: `python uci_stranger.py brandubh`.

It prints its options after `uciok`, answers `position` and `setoption` in words, knows no clock, calls the men `a` and
`d`, reports no depth, drops a search without a `bestmove` when a `position` comes, and says goodbye. It moves at
random; only its rules are ours.
"""

import random
import sys
import threading

from hnefi.engine import games
from hnefi.engine.squares import move_name


class Stranger:
    def __init__(self) -> None:
        self.game = games.find(sys.argv[1] if len(sys.argv) > 1 else "copenhagen")
        self.position = games.initial(self.game)
        self.random = random.Random(1)
        self.stop = threading.Event()
        self.searching: threading.Thread | None = None
        self.dropped = False

    def say(self, *lines: str) -> None:
        print(*lines, sep="\n", flush=True)

    def set_up(self, words: list[str]) -> None:
        if self.searching is not None and self.searching.is_alive():
            self.dropped = True
            self.stop.set()
            self.searching.join()
        moves = words[words.index("moves") + 1 :] if "moves" in words else []
        if words[1] == "startpos":
            position = games.initial(self.game)
        else:
            board = words[2]
            if set(board) - set("0123456789/adk") or words[3] not in ("a", "d"):
                self.say(f"Invalid FEN: {board}")
                return
            position = games.from_fen(self.game, f"{board} {words[3]}")
        for move in moves:
            position = position.play(position.parse_move(move))
        self.position = position
        self.say(f"Position set, {len(moves)} moves applied")

    def go(self, words: list[str]) -> None:
        if "wtime" in words or "btime" in words:
            self.say("Error: time controls are not supported, use movetime or nodes")
            return
        self.stop.clear()
        self.dropped = False
        self.searching = threading.Thread(target=self.search, args=("infinite" in words,), daemon=True)
        self.searching.start()

    def search(self, infinite: bool) -> None:
        move = move_name(self.random.choice(self.position.legal_moves()))
        self.say(f"info nodes 12 winrate 53.1% pv {move} speed 800")
        if infinite:
            self.stop.wait()
        if not self.dropped:
            self.say(f"bestmove {move}")

    def run(self) -> None:
        for line in sys.stdin:
            words = line.split()
            match words[:1]:
                case ["uci"]:
                    self.say("id name Stranger 3", "id author nobody", "uciok")
                    self.say("option name Threads type spin default 1 min 1 max 8")
                case ["isready"]:
                    self.say("readyok")
                case ["setoption"]:
                    self.say(f"Option {words[2]} set")
                case ["position"]:
                    self.set_up(words)
                case ["go"]:
                    self.go(words)
                case ["stop"]:
                    self.stop.set()
                case ["quit"]:
                    self.say("bye")
                    return
                case ["ucinewgame"] | []:
                    pass
                case _:
                    self.say(f"Unknown command: {line.strip()}")


if __name__ == "__main__":
    if "--help" in sys.argv:
        sys.exit(__doc__)
    Stranger().run()
