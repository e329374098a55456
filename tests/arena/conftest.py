"""What all tests of the arena leave as it was."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from hnefi.tools.common import interrupts


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    """An interrupted run ignores further signals to its end; this process has others to play."""
    before = {number: signal.getsignal(number) for number in interrupts.NUMBERS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
