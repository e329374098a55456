"""What tests in a browser begin with: `pytestmark = MARKS`, and `expect` with patience. They are skipped where there is
no browser."""

from __future__ import annotations

import pytest
from browser_parts import CHROMIUM, PATIENT

playwright = pytest.importorskip(
    "playwright.sync_api", reason="the group `browser` is not installed: playwright"
)
playwright.expect.set_options(timeout=PATIENT)
expect = playwright.expect

MARKS = [
    pytest.mark.browser,
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("no_faults"),
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium in the PATH"),
]
