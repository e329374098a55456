"""The pages besides the game in a real browser: puzzles."""

from __future__ import annotations

import re

import pytest
from browser_parts import CHROMIUM, PATIENT, House, square, status

playwright = pytest.importorskip(
    "playwright.sync_api", reason="the group `browser` is not installed: playwright"
)
playwright.expect.set_options(timeout=PATIENT)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("no_faults"),
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium in the PATH"),
]


def test_a_puzzle_is_refuted_hinted_and_solved(house: House) -> None:
    page = house.page("puzzles&puzzle=brandubh-026", viewport={"width": 360, "height": 740})
    playwright.expect(page.locator("#title")).to_have_text("Attackers to move and win in 2.")
    square(page, "b3").click()
    square(page, "b2").click()
    # The wrong move and the engine's answer to it stand on the board.
    status(page, r"b3b2: too slow\. The defenders answer c2d2")
    assert square(page, "d2").get_attribute("aria-label") == "d2, defender"
    playwright.expect(page.locator(".mode")).to_contain_text(
        re.compile(r"Your rating: 1\d\d\d ± \d+ \(-\d+\)")
    )
    assert page.locator("#board .movable").count() == 0
    page.keyboard.press("r")
    playwright.expect(square(page, "b3")).to_have_class(re.compile("movable"))
    page.keyboard.press("h")
    playwright.expect(page.locator("#note")).to_have_text("Look at b3.")
    square(page, "b3").click()
    square(page, "c3").click()
    status(page, "b3c3: right. The defenders answer")
    page.get_by_role("button", name="Solution").click()
    status(page, "the attackers win")
    page.keyboard.press("n")
    playwright.expect(page.locator(".mode .small").first).not_to_contain_text("brandubh-026")
    # The choice of others: the rules, and away from puzzles, to the game that was there before.
    page.locator("summary", has_text="Which puzzles").click()
    page.get_by_label("Rules", exact=True).select_option("copenhagen")
    playwright.expect(page.locator(".mode")).to_contain_text("copenhagen-")
    assert page.locator("body").evaluate("body => body.scrollWidth <= innerWidth")
    page.get_by_role("link", name="Play").click()
    status(page, "Your move: attackers")
    assert square(page, "d4").get_attribute("aria-label") == "d4, king, throne"
