"""A process that has loaded everything an engine needs, and forks engine processes that share its memory.

``python -m hnefi.protocol.fork_server CONTROL`` is started by `fork_client` and serves it through CONTROL, the number
of a Unix socket that it inherits. It says `ready` on its standard output when everything is loaded.

A request is one message on CONTROL: the flags of `hnefi engine` as a JSON array, and four descriptors, which become
the fork's standard input, output and error, and its *lifeline*, a stream socket:

    pid 4711          the fork runs; its number stays taken until
    (end of stream)   the client says that it knows of the end, or has itself ended; the fork's group is then killed
    status -9         the fork's exit status, or less than 0 the signal that killed it
    error TEXT        instead of all that: there is no fork

Only Linux has all that this takes. Forking is safe because this process has one thread, which is checked before each
fork, and because all that it keeps is the machine code and the modules; a search, with its tables and its random
numbers, begins in the fork. A fork that has loaded what was not here tells so, and the next ones find it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import selectors
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NoReturn

from hnefi.engine import catalogue, warmup
from hnefi.engine.compile import cache

from . import commands, server

PR_SET_PDEATHSIG: Final = 1
PR_SET_NAME: Final = 15
NAME: Final = b"hnefi engine"
"""What `ps` and `top` call a fork, which has the command line of this process."""
REQUEST_LIMIT: Final = 64 * 1024
DESCRIPTORS: Final = 4
NEWS: Final = 3
"""The descriptor on which a fork says what it has loaded."""
FAILED: Final = 70
"""The exit status of a fork that could not become an engine."""
REHEARSED: Final = (
    "setoption name Hash value 1",
    "setoption name SkillLevel value 3",
    "variant brandubh",
    "isready",
    "position startpos moves a4a2",
    "moves verbose",
    "rules",
    *(f"query {what}" for what in ("history", "fen", "turn", "outcome", "reason", "captures")),
)
KINDS: Final = frozenset(
    (game, algorithm, evaluator)
    for game in catalogue.GAMES
    for algorithm in warmup.ALGORITHMS
    for evaluator in ("default", "loaded", *([warmup.NET] if game == "tafl" else []))
)


@dataclass(slots=True)
class Fork:
    """A fork that has not been reaped; `handle` is the descriptor of a process whose end is waited for."""

    pid: int
    lifeline: socket.socket
    handle: int = -1


@dataclass(slots=True)
class ForkServer:
    """The forks of one client. `missing` are kinds that a fork has loaded and this process has not."""

    control: socket.socket
    news: tuple[int, int]
    forks: dict[int, Fork] = field(default_factory=dict)
    missing: list[warmup.Kind] = field(default_factory=list)
    waiting: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def serve(self) -> None:
        """Until the client has gone."""
        self.waiting.register(self.control, selectors.EVENT_READ, self._requested)
        self.waiting.register(self.news[0], selectors.EVENT_READ, self._hear)
        while True:
            # What others wait for comes before what would be good to have.
            events = self.waiting.select(0 if self.missing else None)
            for key, _ in events:
                if key.data() is False:
                    return
            if not events and self.missing:
                kind = self.missing.pop()
                if load(kind):
                    print("loaded", *kind, flush=True)

    def _requested(self) -> bool:
        data, descriptors, _, _ = socket.recv_fds(self.control, REQUEST_LIMIT, DESCRIPTORS)
        if not descriptors:
            return False
        *pipes, last = descriptors
        lifeline = socket.socket(fileno=last)
        flags = json.loads(data)
        problem = ""
        parent, pid = os.getpid(), 0
        if len(pipes) != DESCRIPTORS - 1:
            problem = f"{len(descriptors)} descriptors: expected {DESCRIPTORS}"
        elif (threads := len(os.listdir("/proc/self/task"))) != 1:  # noqa: PTH208 - the cheapest way
            problem = f"this process has {threads} threads: expected one"
        else:
            try:
                pid = os.fork()
            except OSError as error:
                problem = error.strerror or str(error)
            else:
                if not pid:
                    self._become(flags, pipes, parent)
        for pipe in pipes:
            os.close(pipe)
        if problem:
            _tell(lifeline, f"error {problem}")
            lifeline.close()
            return True
        self.forks[pid] = fork = Fork(pid, lifeline)
        self.waiting.register(lifeline, selectors.EVENT_READ, lambda: self._released(fork))
        _tell(lifeline, f"pid {pid}")
        return True

    def _become(self, flags: Sequence[str], pipes: Sequence[int], parent: int) -> NoReturn:
        """In the fork: an engine process as `process.Process.start` makes one."""
        try:
            os.setsid()
            control = ctypes.CDLL(None).prctl
            control(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            control(PR_SET_NAME, NAME, 0, 0, 0)
            if os.getppid() != parent:
                os._exit(FAILED)
            for target, pipe in enumerate(pipes):
                os.dup2(pipe, target)
            os.dup2(self.news[1], NEWS, inheritable=False)
            os.closerange(NEWS + 1, os.sysconf("SC_OPEN_MAX"))
            warmup.hear(_tell_news)
            gc.enable()
            server.main([*flags])
        finally:
            os._exit(FAILED)

    def _released(self, fork: Fork) -> None:
        """The client knows of the fork's end, or is no more."""
        with contextlib.suppress(OSError):
            if fork.lifeline.recv(16):
                return
        self.waiting.unregister(fork.lifeline)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(fork.pid, signal.SIGKILL)
        # One that has just begun may have no group of its own yet.
        os.kill(fork.pid, signal.SIGKILL)
        # It may hang in the kernel, and nobody else should wait for it.
        fork.handle = os.pidfd_open(fork.pid)
        self.waiting.register(fork.handle, selectors.EVENT_READ, lambda: self._reap(fork))

    def _reap(self, fork: Fork) -> None:
        self.waiting.unregister(fork.handle)
        os.close(fork.handle)
        _, status = os.waitpid(fork.pid, 0)
        _tell(fork.lifeline, f"status {os.waitstatus_to_exitcode(status)}")
        fork.lifeline.close()
        del self.forks[fork.pid]

    def _hear(self) -> None:
        for line in os.read(self.news[0], REQUEST_LIMIT).decode("ascii", "replace").splitlines():
            game, _, rest = line.partition(" ")
            algorithm, _, evaluator = rest.partition(" ")
            kind = (game, algorithm, evaluator)
            if kind in KINDS and kind not in self.missing:
                self.missing.append(kind)


def _tell(lifeline: socket.socket, text: str) -> None:
    with contextlib.suppress(OSError):  # nobody listens any more: its end will be noticed
        lifeline.send(text.encode("utf-8", "replace"), socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)


def _tell_news(kind: warmup.Kind) -> None:
    with contextlib.suppress(OSError):
        os.write(NEWS, f"{' '.join(kind)}\n".encode())


def load(kind: warmup.Kind = warmup.USUAL_KIND) -> bool:
    """Load what sessions of this kind need, if it is compiled; whether it was."""
    try:
        return warmup.load(kind)
    except Exception as error:  # noqa: BLE001 - a fork meets the same and reports it
        print(f"hnefi: {' '.join(kind)}: {error}", file=sys.stderr, flush=True)
        return False
    finally:
        keep()


def keep() -> None:
    """What there is now is not garbage: a fork that looked through it would make it its own."""
    gc.collect()
    gc.freeze()


def rehearse() -> None:
    """Carry out what every session begins with, so that no fork has to import or read what this needs."""
    nobody = os.open(os.devnull, os.O_RDWR)
    stage = server.Server(nobody, nobody)
    stage.warm.set()
    # Not the stage's own, which would go on listening to the compiler.
    conversation = commands.Commands(stage)
    with cache.loading_only():
        for line in REHEARSED:
            conversation.carry_out(line.split())
    os.close(nobody)


def main(argv: Sequence[str]) -> None:
    """Serve the client behind the socket whose number is the first word."""
    gc.disable()
    if load():
        rehearse()
        keep()
    reading, writing = os.pipe()
    for end in (reading, writing):
        os.set_blocking(end, False)
    served = ForkServer(socket.socket(fileno=int(argv[0])), (reading, writing))
    print("ready", flush=True)
    served.serve()
    # The forks hear of our end from the system.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
