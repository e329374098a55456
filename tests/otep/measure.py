"""The figures of `hnefi otep` in MEASUREMENTS.md: first answer, delay of a move, memory, idle processor (Linux).

PYTHONPATH=tests/support:tests python tests/otep/measure.py [--starts 10] [--idle 10]
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from measuring import Firsts, cpu, memory, spread
from otep.double_games import GAMES
from otep.double_host import Host, play

HNEFI = (sys.executable, "-m", "hnefi.tools.cli", "otep", "--no-record", "--log-level", "error")
FOLDER = Path(__file__).parent
DOUBLE = shlex.join([sys.executable, "-I", "-S", str(FOLDER / "double_engine.py"), "fast"])
FAULTY = FOLDER.parent / "support" / "fault_engine.py"


class Patient(Host):
    """A host that gives its engine time to rest."""

    def expect(self, word: str, patience: float = 120.0) -> str:
        rest = super().expect(word, patience)
        if word == "move":
            time.sleep(0.1)
        return rest


def own_delays(trace: Path, words: Sequence[str]) -> list[float]:
    """What the adapter itself took for each move: from the first line with the question to the last of what it asks an
    engine, and from the answer to the line that passes it on. `words` begin these lines, in this order."""
    found: list[float] = []
    stamps: list[float] = []
    for line in trace.read_text(errors="replace").splitlines():
        stamp, _, text = line.partition(" ")
        if text.startswith(words[0]):
            stamps = [float(stamp)]
        elif stamps and text.startswith(words[len(stamps)]):
            stamps.append(float(stamp))
        if len(stamps) == len(words):
            asked, passed, answered, told = stamps
            found.append(passed - asked + told - answered)
            stamps = []
    return found[1:]  # the first waits for processes to start


def face(starts: int, idle: float, folder: Path) -> None:
    hellos = Firsts()
    delays: list[float] = []
    for _ in range(starts):
        host = Host(HNEFI)
        host.expect("hello")
        hellos.met(host.process.pid, host.stamp - host.began)
        host.goodbye()
    game = GAMES["copenhagen"]
    engine = f"{sys.executable} -I -S {FAULTY} {game.by_heart}"
    for side in "ad":
        trace = folder / f"face-{side}"
        host = Patient([*HNEFI, "--trace", str(trace), "--engine", engine])
        play(host, game, {"side": side})
        used, began = cpu(host.process.pid), time.monotonic()
        time.sleep(idle)
        share = (cpu(host.process.pid) - used) / (time.monotonic() - began)
        held = memory(host.process.pid)
        host.goodbye()
        delays += own_delays(trace, ("< opponent-move", "> go", "< bestmove", "> move"))
    print(f"face: hello after {hellos}; delay of a move {spread(delays)}; {held}; idle {share:.2%}")


def wrap(starts: int, idle: float, folder: Path) -> None:
    greetings = Firsts()
    trace = folder / "wrap"
    for number in range(starts):
        began = time.monotonic()
        process = subprocess.Popen(
            [*HNEFI, "--wrap", DOUBLE, *(("--trace", str(trace)) if number == 0 else ())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(text: str, last: str, process: subprocess.Popen[str] = process) -> str:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(text + "\n")
            process.stdin.flush()
            return next(line for line in process.stdout if line.startswith(last))

        ask("uti", "utiok")
        greetings.met(process.pid, time.monotonic() - began)
        if number == 0:
            ask("variant brandubh-walker\nisready", "readyok")
            moves: list[str] = []
            for _ in range(30):
                time.sleep(0.1)
                move = ask(
                    f"position startpos moves {' '.join(moves)}\ngo movetime 1000", "bestmove"
                ).split()[1]
                if move == "(none)":
                    break
                moves.append(move)
                replies = ask(f"position startpos moves {' '.join(moves)}\nmoves", "moves").split()[2:]
                if not replies:
                    break
                moves.append(replies[len(moves) % len(replies)])
            used, began = cpu(process.pid), time.monotonic()
            time.sleep(idle)
            share = (cpu(process.pid) - used) / (time.monotonic() - began)
            held = memory(process.pid)
        process.communicate("quit\n")
    delays = own_delays(trace, ("< position", "> OpenTafl play", "< OpenTafl move", "> bestmove"))
    print(f"wrap: utiok after {greetings}; delay of a move {spread(delays)}; {held}; idle {share:.2%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--idle", type=float, default=10.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = folder
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        face(arguments.starts, arguments.idle, Path(folder))
        wrap(arguments.starts, arguments.idle, Path(folder))


if __name__ == "__main__":
    main()
