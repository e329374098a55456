"""OpenTafl as the host of an engine, as its protocol describes it: strict where the original dies.

    python tests/otep/double_host.py GAME [QUIRK[=N]]... -- COMMAND...

It plays a game by heart (double_games.py), one side of it itself; the engine must know the other. For an engine that
thinks, `free` stops at the first move that leaves the game, which is as far as a double without rules can follow. It
was written from the description of the protocol and shares nothing with the adapter.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from double_games import GAMES, Board, Game, bare

WAIT = 120.0
SIDES = {"a": "attackers", "d": "defenders"}
FINISH = {"draw": 1, "a": 2, "d": 3}
QUIRKS = {
    "side": "the engine's: a or d",
    "clock": "what follows the word in every clock line, _ for blanks",
    "free": "stop where the engine leaves the game",
    "dump": "ask for a dump, without an end of line, before each play",
    "resume": "the game begins after so many plies, which are sent at once",
    "nomove": "do not say what became of the engine's moves",
}
ANSWERS = re.compile(
    r"hello|status [ -~]{0,100}|move [a-s]\d{1,2}-[a-s]\d{1,2}|error (0|-1) [ -~]+|rules|position|side|clock"
    r"|analysis \d+( ([a-s]\d{1,2}-[a-s]\d{1,2})(\|[a-s]\d{1,2}-[a-s]\d{1,2}){0,9} -?\d+)*"
)
LINE_LIMIT = 8 * 1024


class Violation(AssertionError):
    """The engine did what the original does not survive."""


class Host:
    """A host with its engine."""

    def __init__(
        self, command: Sequence[str], cwd: str | Path | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=cwd, env=env, stderr=subprocess.PIPE
        )
        self.lines: queue.SimpleQueue[tuple[float, str] | Violation | None] = queue.SimpleQueue()
        self.said: list[str] = []
        self.errors = b""
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self._read, self._drain)]
        for thread in self.threads:
            thread.start()

    def _read(self) -> None:
        """Whatever one read returns is whole commands."""
        assert self.process.stdout is not None
        while chunk := os.read(self.process.stdout.fileno(), 65_536):
            if not chunk.endswith(b"\n"):
                self.lines.put(Violation(f"half a line: {chunk[-80:]!r}"))
            for line in chunk.decode("ascii").splitlines():
                if not ANSWERS.fullmatch(line) or len(line) > LINE_LIMIT:
                    self.lines.put(Violation(f"not a line of the protocol: {line[:200]!r}"))
                self.lines.put((time.monotonic(), line))
        self.lines.put(None)

    def _drain(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.errors += line

    def send(self, text: str | bytes, end: str = "\n") -> None:
        assert self.process.stdin is not None
        data = text if isinstance(text, bytes) else (text + end).encode()
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def line(self, patience: float = WAIT) -> str | None:
        """The engine's next line; None at its end."""
        answer = self.lines.get(timeout=patience)
        if isinstance(answer, Violation):
            raise answer
        if answer is None:
            return None
        self.stamp, line = answer
        self.said.append(line)
        return line

    def expect(self, word: str, patience: float = WAIT) -> str:
        """The rest of the next line that is no report, which must begin so."""
        while True:
            line = self.line(patience)
            if line is not None and line.startswith("status ") and word != "status":
                continue
            first, _, rest = (line or "").partition(" ")
            if line is None or first != word:
                raise Violation(f"expected {word}, not {line!r}; {self.errors.decode()}")
            return rest

    def silent(self, seconds: float) -> None:
        """Nothing but reports for so long."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            try:
                line = self.line(left)
            except queue.Empty:
                return
            if line is None or not line.startswith("status "):
                raise Violation(f"expected nothing, not {line!r}")

    def goodbye(self, patience: float = WAIT) -> int:
        self.send("goodbye")
        return self.left(patience)

    def left(self, patience: float = WAIT) -> int:
        """The exit code of an engine that ends."""
        status = self.process.wait(patience)
        for thread in self.threads:
            thread.join(patience)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        return status

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.left()


def play(host: Host, game: Game, quirks: Mapping[str, str] | None = None) -> str:
    """A whole game in the order of the protocol, up to `finish` twice; its result, or `left` where it was left."""
    how = dict(quirks or {})
    engine = how.get("side", "a")
    moves = game.moves
    board = Board(game.rules)
    host.send(f"rules {game.rules}")
    if not host.said:
        host.expect("hello")
    unseen: list[str] = []
    ply = int(how.get("resume", 0))
    for move, _ in moves[:ply]:
        board.play(move)
        unseen.append(move)
    while ply < len(moves):
        move, side = moves[ply]
        if side != engine:
            board.play(move)
            unseen.append(move)
            ply += 1
            continue
        if unseen:
            host.send(f"opponent-move {'|'.join(unseen)} {board.record}")
        if "clock" in how:
            host.send(f"clock {how['clock'].replace('_', ' ')} ")
        if "dump" in how:
            host.send("dump 3", end="")
        host.send(f"play {SIDES[side]}")
        answer = host.expect("move")
        if answer != bare(move):
            if "free" not in how:
                raise Violation(f"expected {bare(move)}, not {answer}")
            return "left"
        unseen = []
        board.play(move)
        ply += 1
        if "nomove" not in how:
            host.send(f"move {board.record}")
    for _ in range(2):
        host.send(f"finish {FINISH[game.result]}")
    return game.result


def main() -> None:
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    words, command = sys.argv[1:at], sys.argv[at + 1 :]
    if not words or words[0] not in GAMES or not command:
        sys.exit(f"{__doc__}\ngames: {', '.join(GAMES)}\nquirks: {QUIRKS}")
    host = Host(command)
    try:
        result = play(host, GAMES[words[0]], dict(word.partition("=")[::2] for word in words[1:]))
        print(*host.said, result, f"exit status {host.goodbye()}", sep="\n")
    finally:
        host.kill()
        print(host.errors.decode(), end="", file=sys.stderr)


if __name__ == "__main__":
    main()
