"""The command `hnefi web` and the system's Chromium, for tests in a browser and for the pictures of the docs."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Locator, Page

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The same engine without windows comes first: it needs less of the processor's time."""
CHROMIUM = next((path for name in BROWSERS if (path := shutil.which(name))), "")
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
        process.wait(60)
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


@dataclass
class House:
    """A browser and a server."""

    browser: Browser
    url: str
    faults: list[str] = field(default_factory=list)

    def page(self, link: str, **how: Any) -> Page:
        """A page of its own, whose faults are kept."""
        context: BrowserContext = self.browser.new_context(**how)
        page = context.new_page()
        page.set_default_timeout(PATIENT)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on(
            "console",
            # Not its warnings: a browser without a graphics card has some of its own.
            lambda said: self.faults.append(said.text) if said.type == "error" else None,
        )
        page.on(
            "request",
            lambda asked: (
                None
                if asked.url.startswith((self.url, "data:", "blob:"))
                else self.faults.append(f"asks {asked.url}")
            ),
        )
        page.goto(f"{self.url}#{link}")
        return page


def square(page: Page, name: str) -> Locator:
    return page.locator(f'[data-square="{name}"]')


def halves(move: str) -> tuple[str, str]:
    found = re.fullmatch(r"([a-z]\d+)([a-z]\d+)", move)
    assert found is not None
    return found[1], found[2]


def my_turn(page: Page, origin: str) -> None:
    """Wait until the man there may move."""
    from playwright.sync_api import expect

    expect(square(page, origin)).to_have_class(re.compile("movable"), timeout=PATIENT)
