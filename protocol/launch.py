"""Becomes an engine that cannot outlive its starter: run as a script by `process`, never imported.

``python -I -S launch.py PARENT REPORT CORES COMMAND...`` asks Linux to kill this process when the thread that started
it ends, makes sure that has not happened already, keeps to CORES (numbers with commas; empty: any), takes back what
Python does to signals, so that an engine whose reader has gone ends by SIGPIPE as it would under a shell, and turns
into COMMAND. Between fork and exec of a threaded parent that would be unsafe; here it is not. If COMMAND cannot be
run, the reason is written to the descriptor REPORT, which closes by itself when all is well.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, report: int, cores: str, command: list[str]) -> None:
    """Become `command`, on the processors `cores`, such that it ends when `parent` does. If it cannot be run, the
    descriptor `report` takes the reason."""
    os.set_inheritable(report, False)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    try:
        if cores:
            os.sched_setaffinity(0, [int(core) for core in cores.split(",")])
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(report, (error.strerror or str(error)).encode())
        os._exit(127)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
