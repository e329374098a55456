"""The client with the fake engine: what tests of the client share."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from patience import PROMPTLY

from hnefi.protocol.client import Engine, Timeouts

FAKE = [sys.executable, "-I", "-S", str(Path(__file__).with_name("fake_engine.py"))]
PATIENT = Timeouts(start=60.0, ready=60.0, new_game=60.0, answer=60.0, move=60.0, stop=60.0, write=60.0)


class Clock:
    """`time.monotonic` with leaps: what waits for minutes is over at once, however slow the machine.

    Put it in the place of `time.monotonic`, which event loops ask as well.
    """

    def __init__(self) -> None:
        self._real = time.monotonic
        self._ahead = 0.0

    def __call__(self) -> float:
        return self._real() + self._ahead

    def leap(self, seconds: float) -> None:
        """All at once it is so many seconds later."""
        self._ahead += seconds


def run(work: Coroutine[Any, Any, None], seconds: float = 120.0) -> None:
    asyncio.run(asyncio.wait_for(work, seconds))


def with_engine(
    work: Callable[[Engine], Awaitable[None]],
    *faults: str,
    timeouts: Timeouts = PATIENT,
    seconds: float = 120.0,
) -> Engine:
    """Start the fake engine with `faults`, do `work`, wind it up in time, and see that its process is gone."""
    engines = []

    async def play() -> None:
        engine = await Engine.start([*FAKE, *faults], timeouts=timeouts)
        engines.append(engine)
        try:
            await work(engine)
        finally:
            began = time.monotonic()
            await engine.quit()
            assert time.monotonic() - began < PROMPTLY
        assert not alive(engine.pid)

    run(play(), seconds)
    return engines[0]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
