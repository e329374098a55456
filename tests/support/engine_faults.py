"""What engines do wrong, once for the scripts that are engines: `fake_engine.py` and `fault_engine.py`."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Container


def say(*lines: str) -> None:
    write("".join(f"{line}\n" for line in lines).encode())


def write(data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):
        while data:
            data = data[os.write(1, data) :]


def hang() -> None:
    while True:
        time.sleep(600)


def misbehave(faults: Container[str]) -> None:
    """What these faults do at a `go`; with some of them an answer may follow."""
    if "exit" in faults:
        os.write(2, b"a reason\n")
        os._exit(3)
    if "segv" in faults:
        os.kill(os.getpid(), signal.SIGSEGV)
        hang()
    if "hang" in faults:
        hang()
    if "close-stdout" in faults:
        os.close(1)
        hang()
    if "grandchild" in faults:
        subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"])
        os._exit(4)
    if "info-flood" in faults:
        block = b"".join(b"info depth %d multipv %d nodes 1 pv a1a2\n" % (d, d % 3 + 1) for d in range(3000))
        for _ in range(100):
            write(block)
    if "stderr-flood" in faults:
        os.write(2, b"x" * 300_000 + b"the last words\n")
    if "long-line" in faults:
        write(b"info string " + b"y" * 10 * 1024 * 1024 + b"\n")
    if "endless" in faults:
        while True:
            write(b"z" * 65536)
    if "bytes" in faults:
        write(b"\0\0\xff\xfe\n\xc3\x28 info depth\r\n\r\ninfo score cp x depth y\n")
    if "sigstop" in faults:
        os.kill(os.getpid(), signal.SIGSTOP)
