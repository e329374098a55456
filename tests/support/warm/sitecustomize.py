"""Engines and fork servers that tests start are forks of a process that has loaded everything (`warm_engines.py`).

Python imports this before anything else where its folder is in PYTHONPATH. `python -m hnefi.protocol` then hands its
standard streams, arguments, environment and folder to a fork and stays as its shadow: whoever waits for it, signals it
or kills it does so to the fork. `python -m hnefi.protocol.fork_server 7` hands over its descriptor 7 as well, and an
adapter that uses `engine_pool`, and `warm_hnefi.py`, begin in the same way. Whatever else Python runs is left alone.
"""

import os
import sys

WARM = "HNEFI_WARM"
"""The socket of the fork server; an engine without it in its environment starts in the ordinary way."""
SCRIPTS = ("/pooled_hnefi.py", "/warm_hnefi.py")


def hand_over(path: str, descriptors: tuple[int, ...]) -> None:
    """Does not return if there is a fork; this process then ends as it did."""
    import _signal as signal
    import _socket as socket
    import resource
    from array import array
    from select import POLLIN, poll

    changed = {name: word for name, word in os.environ.items() if not name.startswith("PYTEST_")}
    forwarded = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
    ignored = [int(number) for number in forwarded if signal.getsignal(number) is signal.SIG_IGN]
    limits = [
        (number, resource.getrlimit(number)) for number in (resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE)
    ]
    cores = sorted(os.sched_getaffinity(0))
    folder = os.getcwd()  # noqa: PTH109 - pathlib would take longer than all else here
    request = repr((sys.orig_argv[2:], folder, changed, ignored, cores, limits)).encode()
    lifeline = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if any(os.isatty(descriptor) for descriptor in range(3)):
            return
        lifeline.connect(path)
        lifeline.sendmsg([request], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", descriptors))])
        word, _, rest = lifeline.recv(4096).partition(b" ")
    except OSError:
        word = b""
    if word != b"pid":
        lifeline.close()
        return
    fork = int(rest)

    def forward(number: int, _: object) -> None:
        try:  # noqa: SIM105 - nothing more is imported here
            os.kill(fork, number)
        except ProcessLookupError:
            pass  # it has just ended; an error here would let this process go on as if there had been no fork

    for number in forwarded:
        if number not in ignored:
            signal.signal(number, forward)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in {*descriptors}:
        os.dup2(nothing, descriptor)  # whoever is at the other end sees when the fork closes its own
    ended = poll()
    ended.register(os.pidfd_open(fork), POLLIN)
    ended.poll()
    lifeline.shutdown(socket.SHUT_WR)
    word, _, rest = lifeline.recv(4096).partition(b" ")
    status = int(rest) if word == b"status" else -signal.SIGKILL
    if status < 0:
        signal.signal(-status, signal.SIG_DFL) if -status != signal.SIGKILL else None
        os.kill(os.getpid(), -status)
    os._exit(status)


if WARM in os.environ and len(sys.orig_argv) > 2:
    if sys.orig_argv[1:3] == ["-m", "hnefi.protocol"] or sys.orig_argv[2].endswith(SCRIPTS):
        hand_over(os.environ[WARM], (0, 1, 2, 2))
    elif sys.orig_argv[1:3] == ["-m", "hnefi.protocol.fork_server"]:
        hand_over(os.environ[WARM], (0, 1, 2, int(sys.orig_argv[3])))
