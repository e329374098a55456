"""What holds for every page, in two sizes of window, light and dark: axe-core finds no fault, everything can be reached
by keys and by touch and has a name, nothing hangs over the edge, nothing moves where that is not wanted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from browser_parts import House, halves, my_turn, square, status
from in_browser import MARKS, expect

axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright",
    reason="the group `browser` is not installed: axe-playwright-python",
)

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = MARKS

WIDE = {"viewport": {"width": 1280, "height": 900}}
NARROW = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "reduced_motion": "reduce"}
ZOOMED = {"viewport": {"width": 640, "height": 450}, "device_scale_factor": 2}
"""As 1280 by 900 is at 200 %."""
PAGES = {
    "v=brandubh&moves=a4a2.d3a3": "Attackers to move",
    "learn&v=brandubh&step=3": "Try it on the board",
    "puzzles&puzzle=brandubh-026": "Find the move",
    "workshop": "attackers against",
    "table": "^$",
    "watch": "^$",
}
"""Fragments of the address, and the status when the page is there."""
SERIOUS = ("serious", "critical")
THEMES = ("wood", "stone", "paper", "contrast")
LIGHTS = ("light", "dark")


def each_page(house: House, how: dict[str, Any]) -> Iterator[Page]:
    """One page of the browser, which goes from page to page; all that can be unfolded is."""
    page = house.page("", **how)
    status(page, "Your move")
    for fragment, said in PAGES.items():
        page.evaluate("fragment => { location.hash = fragment; }", fragment)
        expect(page.locator("nav [aria-current]")).to_have_attribute(
            "href", "#" if "moves=" in fragment else f"#{fragment.split('&')[0]}"
        )
        status(page, said)
        expect(page.locator("#mode-card button:visible, #moves button:visible").first).to_be_visible()
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        yield page


def axe_finds_nothing(page: Page) -> None:
    for light in LIGHTS:
        page.evaluate("light => { document.documentElement.dataset.light = light; }", light)
        found = axe.Axe().run(page).response["violations"]
        serious = [fault for fault in found if fault["impact"] in SERIOUS]
        assert not serious, f"{page.url}, {light}: " + "; ".join(
            f"{fault['id']} at {fault['nodes'][0]['html'][:200]}" for fault in serious
        )


def fits(page: Page) -> None:
    """Nothing hangs over the edge: one scrolls in one direction only."""
    over = page.evaluate(
        """[...document.querySelectorAll("body *")]
          .filter((e) => e.checkVisibility() && !e.closest(".hidden, .defs, .scroll, #moves, #pv"))
          .filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
          .map((e) => e.outerHTML.slice(0, 120))"""
    )
    assert not over, (page.url, over[:3])
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), page.url


def keys_reach_everything(page: Page) -> None:
    """Tab leads to every control, which shows that it is there; of the board's squares to one."""
    page.evaluate("document.activeElement.blur(); document.body.tabIndex = -1; document.body.focus()")
    seen = page.evaluate_handle("new Set()")
    count = page.locator("button, input, select, textarea, summary, a, [tabindex]").count()
    for _ in range(count + 5):
        page.keyboard.press("Tab")
        if not page.evaluate(
            """(seen) => {
              const e = document.activeElement;
              if (e === document.body || seen.has(e)) return false;
              if (getComputedStyle(e).outlineStyle !== "none") seen.add(e);
              return true;
            }""",
            seen,
        ):
            break
    missed = page.evaluate(
        """(seen) => [...document.querySelectorAll("button, input, select, textarea, summary, a[href], [tabindex='0']")]
          .filter((e) => e.checkVisibility() && !e.disabled && !seen.has(e))
          .map((e) => e.outerHTML.slice(0, 120))""",
        seen,
    )
    assert not missed, (page.url, missed)
    page.evaluate("document.body.removeAttribute('tabindex')")


def is_labelled(page: Page) -> None:
    """What a screen reader says: a board with a name and named squares, the status and the news spoken politely."""
    grid = page.get_by_role("grid")
    assert grid.get_attribute("aria-label"), page.url
    labels = grid.get_by_role("gridcell").evaluate_all(
        "cells => cells.map(cell => [cell.dataset.square, cell.getAttribute('aria-label')])"
    )
    assert labels
    for name, label in labels:
        assert re.fullmatch(rf"{name}(, [a-z]+)*(, \d+ moves?)?(, (captures|can go).*)?", label), label
    assert page.get_by_role("row").count() >= 5
    assert page.locator("#status").get_attribute("role") == "status"
    assert page.locator("#live").get_attribute("aria-live") == "polite"


@pytest.mark.parametrize("how", [WIDE, NARROW], ids=["wide", "narrow"])
def test_every_page_is_for_everybody(house: House, how: dict[str, Any]) -> None:
    for page in each_page(house, how):
        fits(page)
        is_labelled(page)
        keys_reach_everything(page)
        axe_finds_nothing(page)
    page.evaluate("location.hash = ''")
    for opener, dialog in (("#new", "#new-dialog"), ("#load", "#load-dialog"), ("#save", "#save-dialog")):
        page.locator(opener).click()
        expect(page.locator(dialog)).to_be_visible()
        axe_finds_nothing(page)
        fits(page)
        page.keyboard.press("Escape")
        expect(page.locator(dialog)).to_be_hidden()


def test_every_page_at_twice_the_size(house: House) -> None:
    for page in each_page(house, ZOOMED):
        fits(page)


def tapped(_: Page, what: Locator) -> None:
    what.tap()


def keyed(page: Page, what: Locator) -> None:
    what.focus()
    page.keyboard.press("Enter")


@pytest.mark.parametrize(("how", "press"), [(WIDE, keyed), (NARROW, tapped)], ids=["keys", "touch"])
def test_every_page_is_used(
    house: House, how: dict[str, Any], press: Callable[[Page, Locator], None]
) -> None:
    page = house.page("v=brandubh&moves=a4a2", **how)

    def on(what: str | Locator) -> None:
        press(page, page.locator(what) if isinstance(what, str) else what)

    def named(name: str | re.Pattern[str]) -> Locator:
        return page.get_by_role("button", name=name, exact=True)

    def move(text: str) -> None:
        for name in halves(text):
            my_turn(page, halves(text)[0])
            on(square(page, name))

    # A game, its analysis, and another game from the list.
    move("d3a3")
    expect(page.locator("#moves button")).to_have_text(["a4–a2", "d3–a3×a2"])
    page.locator("#depth").select_option("20000")
    on("#review")
    expect(page.locator("#verdicts")).to_contain_text("Accuracy")
    on(page.locator("#moves button").first)
    expect(page.locator("#moves [aria-current]")).to_have_text(re.compile("^a4–a2"))
    on("#new")
    page.locator("#find").fill("hexapawn 3")
    if press is tapped:
        page.locator("#variants [role=option]").first.tap()
    for side in "ad":
        page.locator(f"#who-{side}").select_option("human")
    on("#begin")
    move("a1a2")
    # A lesson, a puzzle.
    on(page.get_by_role("link", name="Learn"))
    for step in (1, 2):
        expect(page.locator(".mode .small").first).to_contain_text(f"Step {step} of")
        on(named("Next"))
    expect(page.locator("#title")).to_have_text("How pawns take")
    move("b1c2")
    status(page, "Right: b1 to c2, captures c2")
    page.evaluate("location.hash = 'puzzles&puzzle=brandubh-026'")
    move("b3c3")
    status(page, "b3c3: right")
    # Rules that are drawn, compared and played.
    on(page.get_by_role("link", name="Workshop"))
    status(page, "attackers against")
    before = page.locator("#status").inner_text()
    on(named("defender"))
    on(square(page, "a2"))
    expect(page.locator("#status")).not_to_have_text(before)
    status(page, "attackers against")
    # A table for two, and a match to look on.
    on(page.get_by_role("link", name="Together"))
    page.get_by_label("Rules", exact=True).select_option("brandubh")
    on(named("Create a table"))
    move("a4a2")
    status(page, "Defenders to move")
    on(page.get_by_role("link", name="Watch"))
    page.get_by_label("Rules", exact=True).select_option("hexapawn:3x3")
    page.get_by_label("First player").select_option("player:random-blind")
    page.get_by_label("Second player").select_option("level:1")
    page.get_by_label("Pairs").select_option("1")
    page.get_by_label("Positions per move").select_option("500")
    on(named("Start the match"))
    expect(page.locator("#mode-card")).to_contain_text("Complete, 2 games finished.")
    axe_finds_nothing(page)
    fits(page)
    on(page.locator(".list button").last)
    status(page, "win: ")


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_men_slide_unless_the_system_asks_for_rest(house: House, motion: str) -> None:
    page = house.page("v=brandubh", viewport={"width": 800, "height": 700}, reduced_motion=motion)
    page.evaluate(
        "window.begun = 0; const run = Element.prototype.animate; "
        "Element.prototype.animate = function (...how) { window.begun += 1; return run.apply(this, how); }; null"
    )
    for move in ("a4a2", "d3a3"):
        for name in halves(move):
            my_turn(page, halves(move)[0])
            square(page, name).click()
    my_turn(page, "b4")
    assert (page.evaluate("window.begun") > 0) == (motion != "reduce")
    assert page.locator(".ghost").count() == 0 or motion != "reduce"


def contrast(one: str, other: str) -> float:
    """WCAG's ratio of two colours that are given as `rgb(…)`."""

    def luminance(colour: str) -> float:
        parts = [float(part) / 255 for part in re.findall(r"[\d.]+", colour)[:3]]
        red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_men_and_letters_stand_out_on_every_board(house: House) -> None:
    page = house.page("v=brandubh", **WIDE)
    status(page, "to move")
    for theme in THEMES:
        for light in LIGHTS:
            colour = page.evaluate(
                """([theme, light]) => {
                  Object.assign(document.documentElement.dataset, { theme, light });
                  const probe = document.body.appendChild(document.createElement("i"));
                  const found = {};
                  const names = "wood label a-fill a-edge d-fill d-edge k-fill k-edge k-mark";
                  for (const name of names.split(" ")) {
                    probe.style.color = `var(--${name})`;
                    found[name] = getComputedStyle(probe).color;
                  }
                  probe.remove();
                  return found;
                }""",
                [theme, light],
            )
            where = (theme, light)
            assert contrast(colour["label"], colour["wood"]) >= 4.5, where
            assert contrast(colour["a-fill"], colour["d-fill"]) >= 3, where
            assert contrast(colour["k-fill"], colour["k-mark"]) >= 3, where
            for man in "adk":
                assert (
                    max(contrast(colour[f"{man}-{part}"], colour["wood"]) for part in ("fill", "edge")) >= 3
                ), (
                    *where,
                    man,
                )
