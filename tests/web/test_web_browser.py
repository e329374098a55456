"""The pages in a real browser: whole games by mouse, keyboard and touch, what others wrote, nothing from elsewhere.

One browser and one server for all of it; games are played by two people at one board, so that no engine thinks.
"""

from __future__ import annotations

import json
import re

import pytest
from browser_parts import PATIENT, House, halves, my_turn, square, status
from in_browser import MARKS, expect

pytestmark = MARKS

BRANDUBH = "d7b7 c4c7 d1b1 d4c4 d2a2 c4c1 b4c4 c1a1"
COPENHAGEN = "b6b4 e7b7 f2j2 d6d3 j2k2 e6e10 k2a2 f6c6 a2j2 c6c11 a5b5 c11a11"
ALEA = "l16o16 l11l19 o13o14 k10k9 q1q3 j10l10 d8d1 l10l18 f14i14 l18a18"
WON = "Defenders win: king escaped."
HOSTILE = "<img src=x onerror=alert(1)><script>alert(1)</script>"


@pytest.mark.parametrize("size", [(1024, 768), (360, 740)])
def test_a_game_by_mouse_clicked_and_dragged(house: House, size: tuple[int, int]) -> None:
    page = house.page("v=brandubh", viewport={"width": size[0], "height": size[1]})
    for number, move in enumerate(BRANDUBH.split()):
        origin, target = halves(move)
        my_turn(page, origin)
        if number % 2:
            square(page, origin).drag_to(square(page, target))
        else:
            square(page, origin).click()
            expect(square(page, target)).to_have_class(re.compile("target"))
            square(page, target).click()
    status(page, WON)
    assert page.locator("#moves button").count() == 8
    # Nothing hangs over the edge.
    assert page.locator("body").evaluate("body => body.scrollWidth <= innerWidth")


def test_a_game_by_keyboard(house: House) -> None:
    page = house.page("v=copenhagen", viewport={"width": 1024, "height": 768})
    my_turn(page, "b6")
    page.locator("#flip").focus()
    at = "a1"
    square(page, at).focus()
    for move in COPENHAGEN.split():
        for target in halves(move):
            for key, count in (
                ("ArrowRight", ord(target[0]) - ord(at[0])),
                ("ArrowUp", int(target[1:]) - int(at[1:])),
            ):
                other = {"ArrowRight": "ArrowLeft", "ArrowUp": "ArrowDown"}[key]
                for _ in range(abs(count)):
                    page.keyboard.press(key if count > 0 else other)
            at = target
            if target == halves(move)[0]:
                my_turn(page, target)
            page.keyboard.press("Enter")
    status(page, WON)
    assert page.locator("#board [tabindex='0']").count() == 1
    expect(page.locator("#live")).to_have_text(WON)


def test_a_game_by_touch_with_squares_smaller_than_a_finger(house: House) -> None:
    page = house.page(
        "v=alea-evangelii", viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True
    )
    for move in ALEA.split():
        origin, target = halves(move)
        my_turn(page, origin)
        square(page, origin).tap()
        square(page, target).tap()
        expect(square(page, target)).to_have_class(re.compile("pending"))
        square(page, target).tap()
    status(page, WON)


def test_captures_reasons_labels_take_back_and_a_variation(house: House) -> None:
    page = house.page("v=brandubh&moves=a4a2", viewport={"width": 1024, "height": 768})
    my_turn(page, "d3")
    assert square(page, "d3").get_attribute("aria-label") == "d3, defender, 6 moves"
    assert square(page, "a1").get_attribute("aria-label") == "a1, corner, empty"
    square(page, "d3").click()
    assert square(page, "a3").get_attribute("aria-label") == "a3, empty, captures a2"
    square(page, "d7").click()
    expect(page.locator("#note")).to_have_text(re.compile("Illegal move: blocked at d4"))
    square(page, "d3").click()
    square(page, "a3").click()
    expect(page.locator("#moves button").nth(1)).to_have_text("d3–a3×a2")
    expect(page.locator("#live")).to_have_text("Defenders: d3 to a3, captures a2")
    page.keyboard.press("u")
    my_turn(page, "c4")
    square(page, "c4").click()
    square(page, "c3").click()
    expect(page.locator("#moves .var")).to_contain_text(["(", "d3–a3×a2", ")"])


def test_against_the_engine_with_its_thoughts(house: House) -> None:
    page = house.page("", viewport={"width": 1024, "height": 768})
    status(page, "Your move: attackers")
    # Whoever never played is told what it is about.
    expect(page.locator("#aim")).to_have_text(
        re.compile(r"Defenders win when the king reaches a corner square\. Attackers win")
    )
    square(page, "d6").click()
    square(page, "b6").click()
    expect(page.locator("#moves button")).to_have_count(2)
    status(page, "Your move: attackers")
    page.reload()
    expect(page.locator("#moves button")).to_have_count(2)
    status(page, "Your move: attackers")
    page.locator("#analyse").check()
    expect(page.locator("#pv li")).to_have_count(3)
    assert page.locator(".arrows .arrow").count() > 0
    assert "percent" in str(page.locator("#bar").get_attribute("aria-label"))
    page.locator("#analyse").uncheck()
    page.locator("#resign").click()
    status(page, "Defenders win: resignation")
    # The level follows: one lost game at the level that a stranger begins with, which is counted once.
    note = page.locator("#note")
    expect(note).to_have_text(re.compile(r"^Level \d( again)? for the next game: you won 0 of 1 at level 1"))
    page.locator("#back").click()
    expect(page.locator("#over")).to_be_hidden()
    page.locator("#last").click()
    page.get_by_role("button", name="Play again").click()
    status(page, "Your move: attackers")
    expect(page.locator("#seat-top .who")).to_have_text(re.compile(r"Defenders: engine, level \d \(auto\)"))
    page.locator("#resign").click()
    expect(note).to_have_text(re.compile("you won 0 of [12] at level"))
    page.get_by_role("button", name="Play the other side").click()
    expect(page.locator("#seat-bottom .who")).to_have_text("Defenders: you")
    status(page, "Your move: defenders")


@pytest.mark.parametrize("link", ["v=hex:5", "v=hexapawn:3x3"])
def test_other_games_have_the_same_board(house: House, link: str) -> None:
    page = house.page(link, viewport={"width": 1024, "height": 768})
    status(page, "to move")
    if "hex:" in link:
        square(page, "c3").click()
        expect(page.locator("#moves button")).to_have_text("c3")
    else:
        my_turn(page, "a1")
        square(page, "a1").click()
        square(page, "a2").click()
        expect(page.locator("#moves button")).to_have_text("a1–a2")


def test_every_move_of_a_solved_board_has_its_value(house: House) -> None:
    page = house.page("v=mini-four", viewport={"width": 1024, "height": 768})
    my_turn(page, "c1")
    rows = page.locator("#exact-moves li")
    page.get_by_label("Exact value of every move").check()
    expect(page.locator("#exact-text")).to_have_text("Defenders win in 8.", timeout=PATIENT)
    expect(rows).to_have_count(10)
    assert rows.first.text_content() == "loss in 8c1–b1, best"
    assert page.locator("#exact-moves .best").count() == 4
    square(page, "e3").click()
    square(page, "e4").click()
    expect(page.locator("#exact-text")).to_have_text("Defenders win in 3.", timeout=PATIENT)
    expect(rows).to_have_count(10)
    assert page.locator("#exact-moves .keeps").count() == 9
    assert (rows.first.text_content() or "").startswith("win in 3")
    page.get_by_label("Exact value of every move").uncheck()
    expect(rows).to_have_count(0)
    # A board without tables offers none.
    house.page("v=copenhagen").locator("#exact-pick").wait_for(state="hidden")


def test_what_others_wrote_is_text(house: House) -> None:
    page = house.page("v=brandubh", viewport={"width": 1024, "height": 768})
    status(page, "to move")
    game = {
        "variant": "brandubh",
        "moves": [{"move": "a4a2", "comment": HOSTILE}],
        "players": [HOSTILE, HOSTILE],
    }
    for text in (json.dumps(game), f"[{HOSTILE}:", f"{HOSTILE}/{HOSTILE}"):
        page.locator("#load").click()
        page.locator("#paste").fill(text)
        page.locator("#load-go").click()
        said = page.locator("#load-error, #moves")
        expect(said.filter(has_text=re.compile("img|expected"))).not_to_have_count(0)
        page.keyboard.press("Escape")
    assert page.locator("img, main script").count() == 0


def test_a_game_is_saved_loaded_and_linked(house: House) -> None:
    page = house.page("v=brandubh&moves=a4a2.d3a3", viewport={"width": 1024, "height": 768})
    my_turn(page, "b4")
    expect(page.locator("#moves button").nth(1)).to_have_text("d3–a3×a2")
    page.locator("#save").click()
    expect(page.locator("#text")).to_have_value(re.compile("d3a3xa2"))
    text = page.locator("#text").input_value()
    assert "Captures" not in text, "the page knows what each move took"
    page.keyboard.press("Escape")
    page.locator("#share").click()
    assert page.url.endswith("#v=brandubh&moves=a4a2.d3a3")
    page.locator("#load").click()
    page.locator("#paste").fill("4K2/7/7/7/t6/7/7 d 0 30")
    page.locator("#load-go").click()
    my_turn(page, "e7")
    page.locator("#load").click()
    page.locator("#paste").fill("4K2/7/7 d 0 30")
    page.locator("#load-go").click()
    expect(page.locator("#load-error")).not_to_be_empty(timeout=PATIENT)
    page.locator("#paste").fill(text)
    page.locator("#load-go").click()
    expect(page.locator("#moves button")).to_have_count(2)
    # An address that names nothing says so, and the game stays.
    page.evaluate("location.hash = 'v=brandubb'")
    expect(page.locator("#note")).to_have_text("brandubb: this server offers no rules of that name.")
    expect(page.locator("#moves button")).to_have_count(2)
    page.evaluate("location.hash = 'learn&v=brandubb'")
    expect(page.locator("#note")).to_have_text("brandubb: this server offers no rules of that name.")
    page.evaluate("location.hash = 'lern'")
    expect(page.locator("#note")).to_have_text("#lern: the address names neither a page nor a game.")
    expect(page.locator("#moves button")).to_have_count(2)
    fresh = house.page("v=brandubb")
    my_turn(fresh, "b4")
    # The game that is shown instead has the level that matches the player, which is known later: the reason stays.
    expect(fresh.locator("#seat-top .who")).to_have_text(re.compile(r"level \d \(auto\)"))
    expect(fresh.locator("#note")).to_have_text("brandubb: this server offers no rules of that name.")


def test_the_new_game_is_one_that_is_listed(house: House) -> None:
    page = house.page("v=brandubh")
    my_turn(page, "b4")
    page.locator("#new").click()
    page.locator("#find").fill("no such rules")
    expect(page.locator("#begin")).to_be_disabled()
    page.locator("#find").fill("hexapawn 3")
    expect(page.locator("#variants [role=option]").first).to_have_attribute("aria-selected", "true")
    page.locator("#find").press("Enter")
    expect(page.locator("#title")).to_have_text("hexapawn:3x3")


def test_the_list_of_moves_keeps_the_focus_of_the_keyboard(house: House) -> None:
    """Whatever is shown anew meanwhile: lines of an analysis, remarks, another current move."""
    page = house.page("v=brandubh&moves=a4a2.d3c3.d2b2")
    expect(page.locator("#moves button").nth(1)).to_have_text("d3–c3")
    status(page, "to move")
    first = page.locator("#moves button").first
    first.focus()
    focused = page.evaluate_handle("document.activeElement")
    page.evaluate("document.querySelector('#analyse').click()")
    expect(page.locator("#pv li")).to_have_count(3)
    page.evaluate("document.querySelector('#analyse').click()")
    page.locator("#depth").evaluate("box => { box.value = '20000'; box.dispatchEvent(new Event('change')); }")
    page.evaluate("document.querySelector('#review').click()")
    expect(page.locator("#verdicts")).to_contain_text("Accuracy")
    page.keyboard.press("Enter")
    expect(page.locator("#moves [aria-current]")).to_have_text(re.compile("^a4–a2"))
    assert page.evaluate(
        "seen => document.activeElement === seen && seen.textContent.startsWith('a4')", focused
    )
    # A variation, which becomes the main line, is put where it belongs.
    square(page, "d3").click()
    square(page, "a3").click()
    expect(page.locator("#moves button:not(.var)").nth(1)).to_have_text(re.compile("^d3–a3"))
    expect(page.locator("#moves .var").filter(has_text=re.compile("^(d3–c3|d2–b2)"))).to_have_count(2)
    expect(page.locator("#moves")).to_have_text(re.compile(r"d3–a3×a2\s*\(.*d3–c3.*d2–b2.*\)"))


def test_a_game_is_analysed_with_a_curve_and_verdicts(house: House) -> None:
    page = house.page("v=brandubh&moves=a4a2.d3c3.d2b2", viewport={"width": 1024, "height": 768})
    status(page, "to move")
    page.locator("#depth").select_option("20000")
    page.locator("#review").click()
    expect(page.locator("#verdicts")).to_contain_text("Accuracy")
    assert page.locator("#curve .line").get_attribute("points").count(",") == 4
    expect(page.locator("#review")).to_have_text("Analyse the game")
    # A click on the left end of the curve leads to the start.
    page.locator("#curve svg").click(position={"x": 2, "y": 20})
    expect(page.locator("#back")).to_be_disabled()


def test_a_link_that_does_not_fit_leaves_the_start_and_a_reason(house: House) -> None:
    page = house.page("v=brandubh&moves=a4a2.a4a2", viewport={"width": 1024, "height": 768})
    my_turn(page, "a4")
    expect(page.locator("#note")).to_contain_text("a4a2")
    assert page.locator("#moves button").count() == 0


def test_a_position_is_set_up_and_the_rules_have_their_say(house: House) -> None:
    page = house.page("v=brandubh", viewport={"width": 1024, "height": 768})
    my_turn(page, "a4")
    page.locator("#edit").click()
    page.locator("#edit-clear").click()
    page.get_by_role("button", name="attacker", exact=True).click()
    for name in ("a3", "a1"):
        square(page, name).click()
    page.locator("#edit-use").click()
    expect(page.locator("#edit-why")).to_contain_text("on a corner")
    square(page, "a1").click()
    page.get_by_role("button", name="king", exact=True).click()
    square(page, "b2").click()
    # There is one king, and keys set him down as well.
    square(page, "e6").focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.locator("#edit-fen")).to_have_text("4K2/7/7/7/t6/7/7 a 0 1")
    page.locator("#edit-side").select_option("d")
    page.locator("#edit-use").click()
    my_turn(page, "e7")
    expect(page.locator("#edit-card")).to_be_hidden()
    assert square(page, "e7").get_attribute("aria-label").startswith("e7, king, ")
