"""Engine processes as forks of one that has everything loaded: they start in milliseconds and share its memory.

    async with forking() as starter:
        engine = await Engine.start(own_command(), starter=starter)

Everything else is started in the ordinary way: foreign engines, engines on other systems than Linux, and ours for some
seconds after a fork server has died. A fork is a `Process` like any other, though not our child:
`fork_server` is its parent, and says how it ended. If the fork server dies its forks die with it, and it with us.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import select
import signal
import socket
import sys
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from .client import Starter, own_command
from .process import KILLED, Exit, Listener, Process

LOG = logging.getLogger("hnefi.forks")

SERVER: Final = (sys.executable, "-m", f"{__package__}.fork_server")
PAUSE: Final = 5.0
"""Seconds from the death of a fork server to the start of the next one."""
PATIENCE: Final = 20.0
"""Seconds for which an engine waits for the first fork server to load; on its own it would have to load as much."""
ANSWER_LIMIT: Final = 4096
ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Libraries below numpy begin a thread for each processor when they are loaded, unless they are told not to."""


def possible() -> bool:
    """Whether this system can fork engines."""
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


@contextlib.asynccontextmanager
async def forking(wanted: bool = True) -> AsyncIterator[Starter]:
    """How to start engines in the block: by forks, if they are `wanted` and can be had."""
    if not wanted or not possible():
        yield Process.start
        return
    server = Forks()
    await server.launch()
    try:
        yield server.start
    finally:
        await server.close()


class Forks(Listener):
    """A fork server and its successors."""

    def __init__(self) -> None:
        self.ready = False
        """Whether there is one that has loaded everything."""
        self.settled = asyncio.Event()
        """Set when it is known for the first time whether there will be one."""
        self.process: Process | None = None
        self._control: socket.socket | None = None
        self._closed = False
        self._again: asyncio.TimerHandle | None = None
        self._launching: asyncio.Task[None] | None = None

    async def launch(self) -> None:
        """Start a fork server; where that fails, engines are started in the ordinary way."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        try:
            self.process = await Process.start(
                [*SERVER, str(theirs.fileno())],
                self,
                env=ONE_THREAD,
                fds=(theirs.fileno(),),
            )
        except OSError as error:
            ours.close()
            self.settled.set()
            LOG.warning("engines are not forked: %s", error)
        else:
            self._control = ours
        finally:
            theirs.close()

    async def close(self) -> None:
        """End the fork server, and with it every fork that its owner has not ended."""
        self._closed = True
        self.ready = False
        if self._again is not None:
            self._again.cancel()
        if self._launching is not None:
            await asyncio.wait([self._launching])
        if self._control is not None:
            self._control.close()
        if self.process is not None:
            await self.process.wind_up()

    def on_line(self, line: bytes, _stamp: float) -> None:
        """It is ready, or has loaded something more."""
        LOG.debug("fork server: %s", line.decode("utf-8", "replace"))
        if line == b"ready":
            self.ready = True
            self.settled.set()

    def on_exit(self, ending: Exit) -> None:
        """It has died: one that had been ready gets a successor."""
        was_ready, self.ready = self.ready, False
        self.settled.set()
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._closed or self.process is None:
            return
        said = self.process.error_tail().strip().splitlines()
        how = f"{ending.text}: {said[-1]}" if said else ending.text
        if was_ready:
            LOG.warning("the fork server has ended (%s): another one is started", how)
            self._again = asyncio.get_running_loop().call_later(PAUSE, self._relaunch)
        else:
            LOG.warning("engines are not forked: the fork server has ended: %s", how)

    def _relaunch(self) -> None:
        self._launching = asyncio.get_running_loop().create_task(self.launch())

    async def start(
        self,
        command: Sequence[str],
        listener: Listener,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        errors: IO[bytes] | None = None,
        timeout: float = 10.0,
        cores: Collection[int] = (),
    ) -> Process:
        """A `Process.start` that forks where it can."""
        own = own_command()
        forkable = [*command[: len(own)]] == own and not (cwd or env or errors or cores)
        if forkable:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.settled.wait(), PATIENCE)
        if forkable and self.ready:
            child = await self._fork(command[len(own) :], timeout)
            if child is not None:
                process = Process(child, listener)
                process.watch()
                return process
        return await Process.start(command, listener, cwd, env, errors, timeout, cores)

    async def _fork(self, flags: Sequence[str], timeout: float) -> _Fork | None:
        """A fork; None, with a warning, if there is none to be had."""
        assert self._control is not None
        lifeline, theirs = socket.socketpair()
        lifeline.setblocking(False)
        input_end, ours_in = os.pipe()
        ours_out, output_end = os.pipe()
        ours_err, errors_end = os.pipe()
        given = (input_end, output_end, errors_end, theirs.fileno())
        kept = (ours_in, ours_out, ours_err)
        try:
            socket.send_fds(self._control, [json.dumps([*flags]).encode()], given)
            async with asyncio.timeout(timeout):
                answer = await asyncio.get_running_loop().sock_recv(lifeline, ANSWER_LIMIT)
            word, _, rest = answer.decode("utf-8", "replace").partition(" ")
            if word != "pid":
                raise OSError(rest or "the fork server has ended")
        except (OSError, TimeoutError) as error:
            LOG.warning("an engine is not forked: %s", error or "the fork server does not answer")
            self._give_up(lifeline, kept)
            return None
        except BaseException:
            self._give_up(lifeline, kept)
            raise
        finally:
            theirs.close()
            for end in given[:3]:
                os.close(end)
        return _Fork(int(rest), lifeline, kept)

    def _give_up(self, lifeline: socket.socket, pipes: Collection[int]) -> None:
        # The fork server sees it, and ends the fork if there is one.
        lifeline.close()
        for end in pipes:
            os.close(end)


class _Fork:
    """A `process.Child` whose parent is the fork server."""

    def __init__(self, pid: int, lifeline: socket.socket, pipes: tuple[int, int, int]) -> None:
        self.pid = pid
        self.pipes = (
            os.fdopen(pipes[0], "wb", buffering=0),
            os.fdopen(pipes[1], "rb", buffering=0),
            os.fdopen(pipes[2], "rb", buffering=0),
        )
        self._lifeline = lifeline

    def ended(self) -> None:
        """Returns when it has ended; it stays a zombie until `wait`."""
        with contextlib.suppress(OSError):
            handle = os.pidfd_open(self.pid)
            try:
                watch = select.poll()
                watch.register(handle, select.POLLIN)
                watch.poll()
            finally:
                os.close(handle)

    def wait(self) -> int:
        """Its exit status, as the fork server says; it counts as killed if that has been killed."""
        with self._lifeline as lifeline, contextlib.suppress(OSError):
            lifeline.settimeout(KILLED)
            lifeline.shutdown(socket.SHUT_WR)
            word, _, status = lifeline.recv(ANSWER_LIMIT).decode().partition(" ")
            if word == "status":
                return int(status)
        return -signal.SIGKILL
