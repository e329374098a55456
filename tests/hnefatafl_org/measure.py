"""The figures of `hnefi hnefatafl-org` in MEASUREMENTS.md: login, delay of a move, memory, idle processor (Linux).

PYTHONPATH=tests/support:tests python tests/hnefatafl_org/measure.py [--games 10] [--idle 10]
"""

from __future__ import annotations

import argparse
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from hnefatafl_org.double_server import GAMES, PASSWORD, USER, DoubleServer
from leftover_processes import wait_until
from measuring import Firsts, Turns, idle

FAULTY = Path(__file__).parents[1] / "support" / "fault_engine.py"
GAME = ",".join(word.partition("x")[0] for word in GAMES["escape"].split()[:-1])
ENGINE = shlex.join([sys.executable, "-I", "-S", str(FAULTY), GAME])


class Watched(DoubleServer):
    """Notes when it asks for a move, and when that comes. It accepts nobody's offer where `deaf`."""

    def __init__(self, logins: Firsts, turns: Turns, *, deaf: bool = False) -> None:
        self.deaf = deaf
        self.first = logins
        self.turns = turns
        self.client = Future[tuple[int, float]]()
        super().__init__("escape", "attacker")

    def _log_in(self, line: str) -> bool:
        pid, began = self.client.result()
        self.first.met(pid, time.monotonic() - began)
        return super()._log_in(line)

    def _greet(self) -> None:
        # Or the system would hold short lines back for 40 ms, which is no delay of ours.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super()._greet()

    def _offer(self, offer: dict[str, Any]) -> None:
        if not self.deaf:
            super()._offer(offer)

    def _send(self, *lines: str) -> None:
        if "generate_move" in lines[-1]:
            self.turns.asked(self.client.result()[0])
        super()._send(*lines)

    def _take(self, words: list[str]) -> None:
        self.turns.answered(self.client.result()[0])
        super()._take(words)


def started(double: Watched, folder: Path) -> subprocess.Popen[bytes]:
    words = (
        "hnefatafl-org", "--user", USER, "--server", f"127.0.0.1:{double.port}", "--board", "7", "--engine", ENGINE,
        "--log-level", "error",
    )  # fmt: skip
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "hnefi.tools.cli", *words], stdout=subprocess.DEVNULL,
        env={**os.environ, "HNEFI_PASSWORD": PASSWORD, "XDG_DATA_HOME": str(folder)},
    )  # fmt: skip
    double.client.set_result((process.pid, began))
    return process


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--games", type=int, default=10)
    options.add_argument("--idle", type=float, default=10.0)
    arguments = options.parse_args()
    logins, turns = Firsts(), Turns()
    with tempfile.TemporaryDirectory() as name:
        for _ in range(arguments.games):
            double = Watched(logins, turns)
            assert started(double, Path(name)).wait(120) == 0
            double.close()
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        print("from the start to the login:", logins)
        print("from generate_move to play, the question for the game included:", turns)
        double = Watched(logins, turns, deaf=True)
        process = started(double, Path(name))
        wait_until(lambda: any(line.startswith("new_game") for line in double.heard), 120)
        print("idle:", idle(process.pid, arguments.idle))
        process.kill()
        process.wait()
        double.close()


if __name__ == "__main__":
    main()
