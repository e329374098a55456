"""Ends what a killed process of ours has left behind: run as a script by `orphans`, never imported.

``python -I -S guard.py VARIABLE MARK`` waits for the end of its standard input, which comes with the end of its
starter, even by SIGKILL. Then it kills every process in whose environment VARIABLE begins with MARK. Linux 5.3 or
later: only a descriptor of a process is certain to mean the same one when it is killed as when it was looked at.
"""

import os
import signal
import sys
import time

PATIENCE = 10.0
"""Seconds for everything; what hangs in the kernel is dead when it comes out of there."""
PAUSE = 0.02


def main(variable: str, mark: str) -> None:
    """Wait until standard input ends, then end every process in whose environment `variable` begins with `mark`."""
    while os.read(0, 4096):
        pass
    wanted = f"{variable}={mark}".encode()
    end = time.monotonic() + PATIENCE
    missed = 0
    # A process that was just forking may have been missed once.
    while missed < 2 and time.monotonic() < end:
        found = sum(kill(int(name), wanted) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 - as launch.py
        missed = 0 if found else missed + 1
        time.sleep(PAUSE)


def kill(pid: int, wanted: bytes) -> bool:
    """Kill a process if its environment has a word that begins so; whether it had."""
    try:
        process = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            if not any(word.startswith(wanted) for word in file.read().split(b"\0")):
                return False
        signal.pidfd_send_signal(process, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(process)
    return True


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
