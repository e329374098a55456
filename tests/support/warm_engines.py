"""Engines and adapters of tests are forks of a process that has loaded everything, one for each worker of pytest.

Starting an engine costs 0.4 s of the processor's time, nearly all of it the loading of numba, and tests start
thousands. `serving()` starts a fork server as the product has it and names its socket in the environment; whatever
then starts `python -m hnefi.protocol`, at whatever depth, gets a fork (`warm/sitecustomize.py` says how). What a fork
cannot be like is started in the ordinary way: engines at a terminal, with another cache, other limits or other
variables of numba and Python, and those of tests marked `cold`, which are about the start.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import gc
import importlib
import json
import os
import resource
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from hnefi.protocol import flags as protocol_flags
from hnefi.protocol import fork_client, fork_server
from hnefi.tools import cli

WARM = "HNEFI_WARM"
COLD = "HNEFI_COLD"
"""Set to anything, it keeps every start an ordinary one."""
ENGINE = "hnefi.protocol"
FORK_SERVER = "hnefi.protocol.fork_server"
ADAPTERS = [cli.COMMANDS[name][0] for name in ("tablut", "otep", "htp", "hnefatafl-org")]
"""What the commands whose tests use `engine_pool` import."""
STREAMS = 4
"""What a request comes with: three standard streams, and the socket that a fork server serves."""
OWN = fork_server.DESCRIPTORS
"""What a request to the product's own comes with."""
CONTROL = 3
HOOK = Path(__file__).with_name("warm")
PASSED_ON = frozenset({"HNEFI_ENGINE", "HNEFI_KILL_TEST", "HNEFI_BROKER", "HNEFI_PASSWORD"})
"""Variables of ours that say nothing about the start."""


@contextlib.contextmanager
def serving() -> Iterator[None]:
    """In the block engines start warm, where this system can fork them."""
    if os.environ.get(COLD) or not fork_client.possible():
        yield
        return
    with tempfile.TemporaryDirectory(prefix="hnefi-warm-") as folder, socket.socket(socket.AF_UNIX) as door:
        path = f"{folder}/socket"
        door.bind(path)
        door.listen(64)
        before = {name: os.environ.get(name) for name in (WARM, "PYTHONPATH")}
        os.environ[WARM] = path
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(HOOK), before["PYTHONPATH"])))
        with subprocess.Popen(
            [sys.executable, __file__, str(door.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=(door.fileno(),),
            env={**os.environ, **fork_client.ONE_THREAD},
            start_new_session=True,
        ) as server:
            door.close()  # a start that finds nobody there is an ordinary one
            server.wait()  # what serves is its child
            try:
                yield
            finally:
                assert server.stdin is not None
                server.stdin.close()
                for name, word in before.items():
                    os.environ.pop(name, None)
                    if word is not None:
                        os.environ[name] = word


def about_the_start(environment: Mapping[str, str]) -> dict[str, str]:
    """What of an environment makes a start another one."""
    ours = ("HNEFI_", "NUMBA_", "PYTHON", "LD_")
    kept = {
        name: word for name, word in environment.items() if name.startswith(ours) and name not in PASSED_ON
    }
    return kept | {"": environment.get("XDG_CACHE_HOME") or environment.get("HOME", "")}


class Server(fork_server.ForkServer):
    """A fork server for whoever connects to `door`, rather than for one client."""

    def __init__(self, door: socket.socket, news: tuple[int, int]) -> None:
        self.door = door
        self.requests, control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        super().__init__(control, news)
        self.waiting.register(self.door, selectors.EVENT_READ, self._asked)
        self.waiting.register(sys.stdin, selectors.EVENT_READ, lambda: False)  # pytest has ended

    def _asked(self) -> None:
        lifeline, _ = self.door.accept()
        with lifeline:
            request, streams, _, _ = socket.recv_fds(lifeline, fork_server.REQUEST_LIMIT, STREAMS)
            if len(streams) == STREAMS:
                _, _, environment, *_ = ast.literal_eval(request.decode())
                if about_the_start(environment) == about_the_start(os.environ):
                    message = json.dumps([request.decode()]).encode()
                    socket.send_fds(self.requests, [message], [*streams, lifeline.fileno()])
            for stream in streams:
                os.close(stream)

    def _become(self, flags: Sequence[str], pipes: Sequence[int], parent: int) -> NoReturn:
        module, *words = self._take_over(flags[0], pipes)
        if module == ENGINE:
            super()._become(words, pipes[:3], parent)
        try:
            os.setsid()
            os.dup2(pipes[3], CONTROL)
            os.closerange(CONTROL + 1, os.sysconf("SC_OPEN_MAX"))
            if module == FORK_SERVER:
                expect(OWN)
                fork_server.main([str(CONTROL)])
            os.close(CONTROL)
            gc.enable()
            os._exit(run_script(module, words))
        finally:
            os._exit(fork_server.FAILED)

    @staticmethod
    def _take_over(request: str, pipes: Sequence[int]) -> list[str]:
        """Become like the process that asked; what it runs, and with which words."""
        words, folder, environment, ignored, cores, limits = ast.literal_eval(request)
        try:
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(environment)
            os.sched_setaffinity(0, cores)
            for number, limit in limits:
                resource.setrlimit(number, limit)
            for number in ignored:
                signal.signal(number, signal.SIG_IGN)
            for target, pipe in enumerate(pipes[:3]):
                os.dup2(pipe, target)
            if words[0] == ENGINE:
                protocol_flags.parse(words[1:])  # the product's own forks get no wrong ones
        except OSError:
            os._exit(fork_server.FAILED)
        except SystemExit as usage:
            sys.stdout.flush()
            os._exit(int(usage.code or 0))
        return list(words)


def run_script(path: str, words: Sequence[str]) -> int:
    """Its exit status, after all that Python does at the end of a process."""
    sys.argv = [path, *words]
    status = 0
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001 - as Python does
        traceback.print_exc()
        status = 1
    getattr(threading, "_shutdown")()  # noqa: B009
    getattr(atexit, "_run_exitfuncs")()  # noqa: B009
    sys.stdout.flush()
    return status


def expect(descriptors: int) -> None:
    """A request comes with so many."""
    setattr(fork_server, "DESCRIPTORS", descriptors)  # noqa: B010 - a constant elsewhere


def main(door: int) -> None:
    if os.fork():
        # A child of pytest would be killed by the first test of a command that ends all its children, and whatever
        # came after it would be slow.
        os._exit(0)
    gc.disable()
    for module in ADAPTERS:
        importlib.import_module(module)
    if fork_server.load():
        fork_server.rehearse()
        fork_server.keep()
    expect(STREAMS + 1)
    news = os.pipe()
    for end in news:
        os.set_blocking(end, False)
    Server(socket.socket(fileno=door), news).serve()
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
