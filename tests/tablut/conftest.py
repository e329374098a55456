"""What the tests of a file share: a loop, and a book of rules with its engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tablut_parts import House


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    house = House()
    yield house
    house.close()
