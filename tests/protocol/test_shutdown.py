"""How a command that runs until it is told to stop ends: what it says meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator

import pytest

from hnefi.protocol.hosts.shutdown import Asked


@pytest.mark.parametrize("told", [True, False])
def test_callbacks_of_cancelled_work_and_of_lost_connections_are_no_news(
    told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def command(asked: Asked) -> None:
        if told:
            os.kill(os.getpid(), signal.SIGTERM)
            await asked.wait()
        loop = asyncio.get_running_loop()
        loop.call_exception_handler({"message": "cancelled", "exception": asyncio.CancelledError()})
        loop.call_exception_handler({"message": "gone", "exception": ConnectionResetError("closing")})
        loop.call_exception_handler({"message": "broken", "exception": ValueError("x")})

    asked = Asked()
    asked.limit = 60.0
    asked.run(command)
    expected = ["broken"] if told else ["cancelled", "broken"]
    assert [record.message.splitlines()[0] for record in caplog.records] == expected


def test_what_was_opened_is_closed_while_signals_are_heard() -> None:
    """One that comes then is not the exit status of a command that has done its work."""

    @contextlib.contextmanager
    def opened() -> Iterator[None]:
        yield
        os.kill(os.getpid(), signal.SIGTERM)

    async def command(_: Asked) -> int:
        return 3

    asked = Asked()
    asked.limit = 60.0
    assert asked.run(command, opened()) == 3
