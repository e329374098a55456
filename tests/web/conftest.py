"""A browser and a server for the tests of a file. Not for more: Playwright leaves its event loop running, beside which
other tests could not run theirs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser_parts import House, chromium, web


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    with web("--sessions", "64") as url, chromium() as browser:
        yield House(browser, url)


@pytest.fixture
def no_faults(house: House) -> Iterator[None]:
    """No error on the console, and no request to another place."""
    house.faults.clear()
    yield
    for context in house.browser.contexts:
        context.close()
    assert house.faults == []
