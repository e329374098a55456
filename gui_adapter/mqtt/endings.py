"""How a command that runs until it is told to stop learns that it is."""

from __future__ import annotations

import asyncio
import signal

INTERRUPTED = 1
"""The exit code of a command that was told to end."""


def asked_to_end() -> asyncio.Event:
    """Set at the first SIGINT or SIGTERM; the second ends the process at once."""
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()

    def ask(number: int) -> None:
        asked.set()
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ask, number)
    return asked
