"""What the tests of a file share: a loop, and a process for the rules."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from terminal_parts import House


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    built = House(tmp_path_factory.mktemp("terminal"))
    yield built
    built.close()
