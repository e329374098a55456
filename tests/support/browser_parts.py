"""The command `hnefi web` and the system's Chromium, for tests in a browser and for the pictures of the docs."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), ""
)
PATIENT = 120_000.0
"""Milliseconds for what has to come, on however busy a machine."""


@contextlib.contextmanager
def web(*flags: str) -> Iterator[str]:
    """The command on a free port; its address."""
    command = [sys.executable, "-m", "hnefi.tools.cli", "web", "--port", "0", "--no-record", *flags]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().removeprefix("web ").strip()
    finally:
        process.terminate()
        process.wait(30)
        process.communicate()


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """The browser, without its sandbox where the user is root, for whom it has none."""
    from playwright.sync_api import sync_playwright

    root = hasattr(os, "getuid") and os.getuid() == 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, timeout=PATIENT, args=["--no-sandbox", "--disable-gpu"] if root else []
        )
        yield browser
        browser.close()


def status(page: Page, pattern: str) -> None:
    """Wait until the page says so."""
    from playwright.sync_api import expect

    expect(page.locator("#status")).to_have_text(re.compile(pattern), timeout=PATIENT)
