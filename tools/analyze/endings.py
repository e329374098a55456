"""How an analysis ends: exit codes, and the first Ctrl-C, which ends it in good order."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine
from typing import Any, Final

DONE: Final = 0
INTERRUPTED: Final = 1
USAGE: Final = 2
OTHER_FAILED: Final = 3
OURS_FAILED: Final = 4


async def until_interrupted(work: Coroutine[Any, Any, None]) -> bool:
    """Do the work; True if Ctrl-C or TERM came before its end. Whatever it raises comes through."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):  # not in the main thread
        for number in numbers:
            loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        return True
    finally:
        with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
            for number in numbers:
                loop.remove_signal_handler(number)
    return False


def failed(own: bool) -> int:
    """The exit code where the engine failed: ours, or another."""
    return OURS_FAILED if own else OTHER_FAILED
