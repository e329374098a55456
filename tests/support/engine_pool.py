"""Engines of ours that tests of adapters use one after the other: starting one costs more than all that most tests do.

`command()` is `hnefi` whose own engines are those of this process. It says where they are to be found to
`pooled_hnefi.py`, which has the adapter start `engine_relay.py` in the place of an engine: an adapter notices nothing,
and what it kills is the relay.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import re
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from hnefi.protocol.client import own_command

FOLDER = Path(__file__).parent
OPTION = re.compile(rb"option name (.+?) type (?:check|spin|combo|string) default (\S*)")
NEWS = 30.0
"""Seconds for an engine to become idle; one that does not is ended."""


class PooledEngine:
    """An engine process, and what has to be undone before somebody else uses it."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(own_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.defaults: dict[bytes, bytes] = {}
        self._user: socket.socket | None = None
        self._changed: set[bytes] = set()
        self._open: list[bytes] = []
        self._idle = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def serve(self, user: socket.socket) -> bool:
        """Hand lines on until `quit` or the end of input; whether the next user finds the engine as this one did."""
        self._user = user
        with contextlib.suppress(OSError), user.makefile("rb") as lines:
            for line in lines:
                if line.split() == [b"quit"]:
                    break
                self._say(line)
        with contextlib.suppress(OSError):
            user.shutdown(socket.SHUT_RDWR)
        with self._idle:
            self._user = None
        return self._reset()

    def end(self) -> None:
        """Kill the engine and close its pipes: whichever test runs when an open one is collected would fail."""
        self.process.kill()
        self._reader.join()
        with contextlib.suppress(OSError), self.process:  # what was written and never read cannot be flushed
            pass

    def _say(self, line: bytes) -> None:
        words = line.split(maxsplit=4)
        with self._idle:
            if words[:1] == [b"go"]:
                self._open.append(b"bestmove")
            elif words[:1] == [b"isready"]:
                self._open.append(b"readyok")
            elif words[:2] == [b"setoption", b"name"] and len(words) > 2:
                self._changed.add(words[2].lower())
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def _reset(self) -> bool:
        if not self._changed <= self.defaults.keys():
            return False
        restored = [b"setoption name %s value %s\n" % (name, self.defaults[name]) for name in self._changed]
        self._changed.clear()
        try:
            for line in (b"stop\n", b"debug off\n", *restored, b"isready\n"):
                self._say(line)
        except OSError:
            return False
        with self._idle:
            return self._idle.wait_for(lambda: not self._open, NEWS) and self.process.poll() is None

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._idle:
                if option := OPTION.match(line):
                    self.defaults[option[1].lower()] = option[2]
                word = line.split(maxsplit=1)[0] if line.strip() else b""
                if word in self._open:
                    self._open.remove(word)
                    self._idle.notify_all()
                with contextlib.suppress(OSError):
                    if self._user is not None:
                        self._user.sendall(line)
        with self._idle, contextlib.suppress(OSError):
            if self._user is not None:
                self._user.shutdown(socket.SHUT_RDWR)


class Pool(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, path: str) -> None:
        self.idle: list[PooledEngine] = []
        super().__init__(path, Handler)

    def engine(self) -> PooledEngine:
        """One that is idle, or a new one."""
        with contextlib.suppress(IndexError):
            while (engine := self.idle.pop()).process.poll() is not None:
                engine.end()  # a test of a command that ends all its children was here
            return engine
        return PooledEngine()


class Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, Pool)
        engine = self.server.engine()
        if engine.serve(self.request):
            self.server.idle.append(engine)
        else:
            engine.end()


@functools.cache
def command() -> tuple[str, ...]:
    """`hnefi`, to be followed by its arguments; the engines of this process end with it, by the end of their input.

    For tests only: scripts that measure get what a user starts.
    """
    if "pytest" not in sys.modules:
        return sys.executable, "-m", "hnefi.tools.cli"
    folder = tempfile.TemporaryDirectory(prefix="hnefi-pool-")
    pool = Pool(f"{folder.name}/socket")
    threading.Thread(target=pool.serve_forever, daemon=True).start()

    def close() -> None:
        for engine in pool.idle:
            engine.end()
        folder.cleanup()

    atexit.register(close)
    return sys.executable, "-P", str(FOLDER / "pooled_hnefi.py"), f"{folder.name}/socket"
