"""The pages besides the game in a real browser: puzzles, lessons, the workshop of rules."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from browser_parts import House, my_turn, square, status
from in_browser import MARKS, expect

from hnefi.tools.common.statistics import wilson

if TYPE_CHECKING:
    from playwright.sync_api import WebSocketRoute

pytestmark = MARKS


def test_a_puzzle_is_refuted_hinted_and_solved(house: House) -> None:
    page = house.page("puzzles&puzzle=brandubh-026", viewport={"width": 360, "height": 740})
    expect(page.locator("#title")).to_have_text("Attackers to move and win in 2.")
    square(page, "b3").click()
    square(page, "b2").click()
    # The wrong move and the engine's answer to it stand on the board.
    status(page, r"b3b2: too slow\. The defenders answer c2d2")
    assert square(page, "d2").get_attribute("aria-label") == "d2, defender"
    expect(page.locator(".mode")).to_contain_text(re.compile(r"Your rating: 1\d\d\d ± \d+ \(-\d+\)"))
    assert page.locator("#board .movable").count() == 0
    page.keyboard.press("r")
    expect(square(page, "b3")).to_have_class(re.compile("movable"))
    page.keyboard.press("h")
    status(page, "Look at b3.")
    square(page, "b3").click()
    square(page, "c3").click()
    status(page, "b3c3: right. The defenders answer")
    page.get_by_role("button", name="Solution").click()
    status(page, "the attackers win")
    page.keyboard.press("n")
    expect(page.locator(".mode .small").first).not_to_contain_text("brandubh-026")
    # Another address leads to another puzzle, here, too.
    page.evaluate("location.hash = 'puzzles&puzzle=brandubh-026'")
    expect(page.locator(".mode .small").first).to_contain_text("brandubh-026")
    # The choice of others: the rules, and away from puzzles, to the game that was there before.
    page.locator("summary", has_text="Which puzzles").click()
    page.get_by_label("Rules", exact=True).select_option("copenhagen")
    expect(page.locator(".mode")).to_contain_text("copenhagen-")
    assert page.locator("body").evaluate("body => body.scrollWidth <= innerWidth")
    # Away while the next one is being looked for: its answer neither brings the page back nor says anything.
    page.evaluate("""() => {
        [...document.querySelectorAll(".mode button")].find((one) => one.textContent === "Next").click();
        document.querySelector("nav a").click();
    }""")
    status(page, "Your move: attackers")
    # A puzzle's status is the same: the board may follow.
    expect(square(page, "d4")).to_have_attribute("aria-label", "d4, king, throne")


def test_a_lesson_asks_for_a_move_and_the_rules_judge_it(house: House) -> None:
    page = house.page("learn&v=brandubh&step=3", viewport={"width": 820, "height": 1100})
    expect(page.locator("#title")).to_have_text("How men are taken")
    task = page.locator(".task")
    expect(task).to_have_text("Take the defender on c4.")
    my_turn(page, "e3")
    # A legal move that takes nobody, an illegal one, and what is asked for.
    square(page, "e3").click()
    square(page, "e4").click()
    status(page, "E3 to e4 is legal, but it is not the move asked for")
    page.keyboard.press("r")
    my_turn(page, "e3")
    square(page, "e3").click()
    square(page, "a1").click()
    expect(page.locator("#note")).to_contain_text("Illegal move")
    page.keyboard.press("h")
    status(page, "For example e3 to c3")
    square(page, "e3").focus()
    page.keyboard.press("Enter")
    for _ in range(2):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    status(page, "Right: e3 to c3, captures c4")
    assert page.url.endswith("#learn&v=brandubh&step=3")
    page.keyboard.press("n")
    expect(page.locator("#title")).to_have_text("Stepping between two enemies")
    page.get_by_label("Rules", exact=True).select_option("tablut-saami")
    expect(page.locator(".text")).to_contain_text("Saami Tablut")
    # Other games have lessons, too.
    page.evaluate("location.hash = 'learn&v=hex-swap:11&step=6'")
    expect(page.locator("#title")).to_have_text("The swap")
    page.get_by_role("button", name="Swap sides").click()
    status(page, "Right: swap")
    page.evaluate("location.hash = 'learn&v=hexapawn:3x3&step=3'")
    expect(task).to_have_text("Take the black pawn on c2.")
    my_turn(page, "b1")
    square(page, "b1").click()
    square(page, "c2").click()
    status(page, "Right: b1 to c2, captures c2")


@pytest.mark.parametrize(
    ("link", "begun", "choice", "kind"),
    [
        ("learn&v=brandubh&step=3", "How men are taken", "Rules", "lesson"),
        ("workshop", "Rule workshop", "Start from", "rules"),
    ],
)
def test_what_is_answered_after_a_page_was_left_does_not_bring_it_back(
    house: House, link: str, begun: str, choice: str, kind: str
) -> None:
    page = house.page("")
    holding: list[bool] = []
    held: list[Callable[[], None]] = []

    def between(browser: WebSocketRoute) -> None:
        server = browser.connect_to_server()

        def answer(message: str | bytes) -> None:
            if holding and json.loads(message)["t"] == kind:
                held.append(lambda: browser.send(message))
            else:
                browser.send(message)

        server.on_message(answer)

    page.route_web_socket(re.compile("/ws"), between)
    page.reload()
    my_turn(page, "b4")
    page.evaluate("link => { location.hash = link; }", link)
    expect(page.locator("#title")).to_have_text(begun)
    status(page, "^(Try it on the board|8 attackers)")
    holding.append(True)
    page.get_by_label(choice, exact=True).select_option("copenhagen")
    while not held:
        page.wait_for_timeout(20)
    page.get_by_role("link", name="Play").click()
    status(page, "Your move: attackers")
    held.pop()()
    # What the server says to this move comes behind that answer.
    my_turn(page, "b4")
    square(page, "b4").click()
    square(page, "b2").click()
    expect(page.locator("#moves button")).to_have_count(2)
    assert "learn" not in page.url
    assert "workshop" not in page.url
    expect(page.locator("#mode-card")).to_be_hidden()
    assert page.locator("[data-square]").count() == 49
    assert not held, "nothing more was asked"


def test_rules_are_made_refused_compared_measured_and_played(house: House) -> None:
    page = house.page("workshop", viewport={"width": 1440, "height": 900})
    status(page, "These are the rules of brandubh")
    page.locator("summary", has_text="How the game is won").click()
    page.get_by_label("Escape", exact=True).select_option("edge")
    expect(page.locator("#said-escape")).to_have_text(
        "Defenders win when the king reaches the edge of the board."
    )
    # A contradiction shows at both controls, and nothing can be played.
    page.get_by_text("The board", exact=True).click()
    throne = page.get_by_label("Throne", exact=True)
    throne.fill("a1")
    throne.press("Tab")
    for name in ("throne", "corners"):
        expect(page.locator(f"#why-{name}")).to_contain_text("one terrain on each square")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_disabled()
    # Squares are chosen on the board, men are drawn there.
    throne.fill("none")
    throne.press("Tab")
    page.get_by_title("Throne: choose the squares on the board").click()
    square(page, "d4").click()
    expect(page.locator("#said-throne")).to_contain_text("the middle square")
    page.get_by_role("button", name="defender", exact=True).click()
    square(page, "c3").click()
    status(page, "8 attackers against 5 and the king")
    page.get_by_role("button", name="king", exact=True).click()
    square(page, "d4").click()
    expect(page.locator(".why", has_text="exactly one K")).to_be_visible()
    square(page, "d4").click()
    page.locator("summary", has_text="Compare with a known game").click()
    expect(page.locator(".workshop li")).to_have_count(2)
    page.locator("summary", has_text="How fair is it?").click()
    page.get_by_label("Search effort").select_option("100")
    page.get_by_role("button", name="How fair is it?").click()
    verdict = page.locator(".workshop p[role=status]")
    expect(verdict).to_have_text(re.compile(r"of 200 games"))
    found = re.search(
        r"score (\d+) % \(95 % interval: (\d+) % to (\d+) %\) in (\d+) of 200 games: "
        r"(\d+) won, (\d+) lost, (\d+) drawn",
        verdict.inner_text(),
    )
    assert found is not None
    share, low, high, games, won, lost, drawn = map(int, found.groups())
    interval = wilson(won + drawn / 2, games)
    assert interval is not None
    assert games == won + lost + drawn
    assert [share, low, high] == pytest.approx(
        [100 * (won + drawn / 2) / games, *(100 * edge for edge in interval)], abs=0.51
    )
    # The link holds the rules, and so does the link of a game by them.
    page.get_by_role("button", name="Link", exact=True).click()
    expect(page.locator("#note")).to_contain_text("link to these rules")
    other = house.page(page.url.partition("#")[2], viewport={"width": 1440, "height": 900})
    expect(other.locator(".workshop input").first).to_have_value("my-brandubh")
    status(other, "8 attackers against 5")
    other.get_by_role("button", name="Play", exact=True).click()
    other.get_by_label("Defenders", exact=True).select_option("human")
    other.locator("#begin").click()
    status(other, "to move")
    assert square(other, "c3").get_attribute("aria-label").startswith("c3, defender")
    square(other, "d6").click()
    square(other, "c6").click()
    expect(other.locator("#moves button")).to_have_text("d6–c6")
    other.locator("#save").click()
    expect(other.locator("#text")).to_have_value(re.compile("my-brandubh"))
    text = other.locator("#text").input_value()
    other.reload()
    expect(other.locator("#moves button")).to_have_text("d6–c6")
    third = house.page("", viewport={"width": 360, "height": 740})
    status(third, "Your move")
    third.locator("#load").click()
    third.locator("#paste").fill(text)
    third.locator("#load-go").click()
    expect(third.locator("#title")).to_have_text("my-brandubh")
    expect(third.locator("#moves button")).to_have_text("d6–c6")


def test_a_theme_is_kept_and_a_position_is_printed(house: House) -> None:
    page = house.page("v=brandubh&moves=a4a2", viewport={"width": 640, "height": 480}, color_scheme="dark")
    status(page, "to move")
    root = page.locator(":root")
    assert (root.get_attribute("data-theme"), root.get_attribute("data-light")) == ("wood", "dark")
    page.get_by_role("button", name="Dark").click()
    for theme in ("stone", "paper"):
        with page.expect_response(re.compile(f"/{theme}.svg$")):
            page.locator("#theme").select_option(theme)
    page.reload()
    status(page, "to move")
    assert (root.get_attribute("data-theme"), root.get_attribute("data-light")) == ("paper", "light")
    expect(page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "false")
    page.emulate_media(media="print")
    for name, shown in (
        ("#board", True),
        ("#moves", True),
        ("header", False),
        (".tools", False),
        ("#analyse", False),
    ):
        assert page.locator(name).is_visible() == shown, name
    assert page.locator("#board").evaluate("board => getComputedStyle(board).backgroundImage") == "none, none"


def test_addresses_that_follow_each_other_quickly(house: House) -> None:
    """Places that nobody looks at are filled in after a while; the server answers the last position only."""
    page = house.page("v=brandubh")
    said = ("Attackers to move", "Defenders to move")
    for pause in range(0, 100, 20):
        for number, moves in enumerate(("a4a2.d3a3", "a4a2")):
            page.evaluate(
                "([moves, pause]) => setTimeout(() => { location.hash = `v=brandubh&moves=${moves}`; }, pause)",
                [moves, pause],
            )
            expect(page.locator("#moves button")).to_have_count(2 - number)
            status(page, said[number])
