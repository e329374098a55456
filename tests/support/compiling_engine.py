"""Our own engine as it is before its kernels are compiled: it says so until a file is there, and is deaf meanwhile.

`python compiling_engine.py GATE` is the engine; with the folder `compiling` in PYTHONPATH, every process of our engine
is one where `HNEFI_TEST_GATE` names the file. Nothing from `readyok` on passes before GATE exists, and until then it
hears neither TERM nor `quit`, as a compiler that is busy. Each start is a line in `GATE.starts`. `HNEFI_TEST_UNKEPT` is
what it says about a cache that cannot be written.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

PAUSE = 0.05


def main(gate: Path) -> None:
    """Be the engine until it ends."""
    with Path(f"{gate}.starts").open("a") as starts:
        starts.write(f"{os.getpid()}\n")
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    command = [sys.executable, "-m", "hnefi.protocol"]
    environment = {name: text for name, text in os.environ.items() if name != "HNEFI_TEST_GATE"}
    engine = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    assert engine.stdout is not None
    asked, ready = threading.Event(), threading.Event()
    threading.Thread(target=_hand_on, args=(engine, gate, asked), daemon=True).start()
    threading.Thread(target=_compile, args=(gate, asked, ready), daemon=True).start()
    for line in engine.stdout:
        if line.startswith(b"readyok"):
            while not gate.exists():
                time.sleep(PAUSE)
            ready.set()
        _write(line)
    os._exit(engine.wait())


def _compile(gate: Path, asked: threading.Event, ready: threading.Event) -> None:
    """Say what is compiled, from the first question until there is an answer."""
    asked.wait()
    begun = time.monotonic()
    unkept = os.environ.get("HNEFI_TEST_UNKEPT", "").encode()
    more = b", not kept " + unkept if unkept else b""
    while not (ready.is_set() and gate.exists()):
        seconds = time.monotonic() - begun
        _write(b"info string compiling 3/9 search (%d s, about 40 s left%s)\n" % (seconds, more))
        time.sleep(PAUSE)


def _hand_on(engine: subprocess.Popen[bytes], gate: Path, asked: threading.Event) -> None:
    """What the engine is told; `quit` is not heard before it is ready."""
    assert engine.stdin is not None
    while line := sys.stdin.buffer.readline():
        if line.strip() == b"quit" and not gate.exists():
            continue
        if line.strip() == b"isready":
            asked.set()
        engine.stdin.write(line)
        engine.stdin.flush()
    while not gate.exists():
        time.sleep(PAUSE)
    engine.stdin.close()


def _write(line: bytes) -> None:
    try:
        os.write(1, line)
    except OSError:
        os._exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
