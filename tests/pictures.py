"""The pictures of docs/web.md: `make pictures`, or `python tests/pictures.py --all` for one of each size and theme."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from browser_parts import CHROMIUM, PATIENT, chromium, halves, square, status, web  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Browser

COPENHAGEN = "v=copenhagen&moves=d1d3.f8i8.g11g9.h6h10.k8j8.e7e10.h1h3"
FETLAR = "v=fetlar&moves=d1d3.f8i8.g11g9.h6h10"
HEX = "v=hex:11&moves=f6.e5.g5.d7.e7.f5"
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
    dark: bool = False,
) -> None:
    """One page, as soon as the engine has looked a while."""
    from playwright.sync_api import expect

    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme="light")
    page.goto(f"{url}#{link}")
    status(page, "to move|Your move")
    page.locator("#theme").select_option(theme)
    if dark:
        page.locator("#dark").click()
    if think:
        page.locator("#analyse").check()
        expect(page.locator("#speed")).to_have_text(re.compile(r"depth ([5-9]|\d\d)"), timeout=PATIENT)
    page.screenshot(path=file, animations="disabled")
    page.close()


def pages(browser: Browser, url: str, folder: Path) -> None:
    """The pages besides the game, each where something has happened."""
    from playwright.sync_api import Page, expect

    def opened(link: str, size: tuple[int, int], title: str) -> Page:
        page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme="light")
        page.goto(f"{url}#{link}")
        expect(page.locator("#title")).to_have_text(title, timeout=PATIENT)
        return page

    def taken(page: Page, name: str) -> None:
        page.screenshot(path=folder / name, animations="disabled")
        page.close()

    page = opened("learn&v=copenhagen&step=11", (1024, 720), "How the king is taken")
    expect(page.locator("#board .movable").first).to_be_visible(timeout=PATIENT)
    page.keyboard.press("h")
    taken(page, "lesson.png")

    page = opened("puzzles&puzzle=brandubh-026", (1024, 720), "Attackers to move and win in 2.")
    square(page, "b3").click()
    square(page, "b2").click()
    status(page, "too slow")
    taken(page, "puzzle.png")

    page = opened("workshop", (1200, 820), "Rule workshop")
    status(page, "These are the rules")
    page.locator("summary", has_text="How the game is won").click()
    page.get_by_label("Escape", exact=True).select_option("edge")
    page.locator("summary", has_text="Compare with a known game").click()
    page.locator("summary", has_text="How fair is it?").click()
    page.get_by_label("Search effort").select_option("100")
    page.get_by_role("button", name="How fair is it?").click()
    expect(page.locator(".fair")).to_be_visible(timeout=PATIENT)
    status(page, "attackers against")
    page.get_by_role("button", name="How fair is it?").wait_for(timeout=PATIENT)
    page.locator(".workshop p[role=status]").scroll_into_view_if_needed()
    taken(page, "workshop.png")

    page = opened("table", (1024, 640), "Play together")
    page.get_by_label("Rules", exact=True).select_option("brandubh")
    page.get_by_label("Clock", exact=True).select_option("600+5")
    page.get_by_label("Your name").fill("Anna")
    page.get_by_role("button", name="Create a table").click()
    status(page, "Your move")
    seat = page.get_by_label("Link: Defenders’ seat").input_value()
    other = browser.new_page()
    other.goto(seat)
    status(other, "Attackers to move")
    other.get_by_label("Your name").fill("Bjarni")
    other.get_by_label("Your name").press("Enter")
    for one, move in ((page, "a4a2"), (other, "d3a3"), (page, "d6b6")):
        status(one, "Your move")
        for name in halves(move):
            square(one, name).click()
    expect(page.locator(".people")).to_contain_text("Bjarni")
    status(page, "Defenders to move")
    taken(page, "together.png")
    other.close()

    page = opened("watch", (1200, 820), "Watch")
    page.get_by_label("Rules", exact=True).select_option("tablut-saami")
    page.get_by_label("First player").select_option("level:2")
    page.get_by_label("Second player").select_option("level:4")
    page.get_by_label("Pairs").select_option("5")
    page.get_by_label("Positions per move").select_option("500")
    page.get_by_role("button", name="Start the match").click()
    expect(page.locator("#mode-card")).to_contain_text(re.compile(r"[4-9] games finished"), timeout=PATIENT)
    page.locator("summary", has_text="Cross table").click()
    taken(page, "watch.png")


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
            picture(browser, url, arguments.out / "hex.png", HEX, (800, 560))
            picture(browser, url, arguments.out / "stone.png", FETLAR, (1024, 790), theme="stone", dark=True)
            pages(browser, url, arguments.out)
            return 0
        for width, height in ((360, 740), (1024, 768), (3840, 2160)):
            for theme, link in (
                ("wood", COPENHAGEN),
                ("stone", ALEA),
                ("contrast", FETLAR),
                ("wood", HEX),
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
