"""How an analysis ends: exit codes, and the first interrupt, which ends it in good order."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from hnefi.protocol.hosts.exit_codes import DONE, FAULTS, INTERRUPTED, OURS_FAILED, STORAGE, USAGE, code_of

from ..common import interrupts

__all__ = ["DONE", "INTERRUPTED", "STORAGE", "USAGE", "code_of", "failed", "until_interrupted"]


async def until_interrupted(work: Coroutine[Any, Any, None]) -> bool:
    """Do the work; True if an interrupt came before its end. Whatever it raises comes through."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    with interrupts.told(lambda: loop.call_soon_threadsafe(task.cancel)):
        try:
            await task
        except asyncio.CancelledError:
            interrupts.finishing()
            return True
    return False


def failed(own: bool) -> int:
    """The exit code where the engine failed: ours, or another."""
    return OURS_FAILED if own else FAULTS
