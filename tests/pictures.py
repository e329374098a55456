"""The pictures of docs/web.md: `make pictures`, or `python tests/pictures.py --all` for one of each size and theme."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from browser_parts import CHROMIUM, PATIENT, chromium, status, web  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Browser

COPENHAGEN = "v=copenhagen&moves=d1d3.f8i8.g11g9.h6h10.k8j8.e7e10.h1h3"
FETLAR = "v=fetlar&moves=d1d3.f8i8.g11g9.h6h10"
ALEA = "v=alea-evangelii"


def picture(
    browser: Browser,
    url: str,
    file: Path,
    link: str,
    size: tuple[int, int],
    *,
    think: bool = False,
    theme: str = "wood",
) -> None:
    """One page, as soon as the engine has looked a while."""
    from playwright.sync_api import expect

    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme="light")
    page.goto(f"{url}#{link}")
    status(page, "to move|Your move")
    page.locator("#theme").select_option(theme)
    if think:
        page.locator("#analyse").check()
        expect(page.locator("#speed")).to_have_text(re.compile(r"depth ([5-9]|\d\d)"), timeout=PATIENT)
    page.screenshot(path=file, animations="disabled")
    page.close()


def main() -> int:
    parser = argparse.ArgumentParser(description="The pictures of docs/web.md.")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "web", help="folder (default docs/web)")
    parser.add_argument("--all", action="store_true", help="one of each size and theme instead, to look at")
    arguments = parser.parse_args()
    if not CHROMIUM:
        parser.error("no Chromium in the PATH: expected one that can be started")
    arguments.out.mkdir(parents=True, exist_ok=True)
    with web() as url, chromium() as browser:
        if not arguments.all:
            picture(browser, url, arguments.out / "analysis.png", COPENHAGEN, (1024, 768), think=True)
            picture(browser, url, arguments.out / "phone.png", FETLAR, (360, 640))
            return 0
        for width, height in ((360, 740), (1024, 768), (1920, 1080)):
            for theme, link in (
                ("wood", COPENHAGEN),
                ("night", ALEA),
                ("contrast", FETLAR),
                ("wood", "v=hex:11&moves=f6.e5.g5"),
                ("wood", "v=hexapawn:3x3"),
            ):
                name = re.sub(r"\W+", "-", link.split("&", maxsplit=1)[0][2:])
                file = arguments.out / f"{name}-{theme}-{width}.png"
                picture(
                    browser, url, file, link, (width, height), think=link in (COPENHAGEN, ALEA), theme=theme
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
