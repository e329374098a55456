"""What people do together, in a real browser: a table by links, and a tournament that they watch."""

from __future__ import annotations

import re

from browser_parts import House, halves, square, status
from in_browser import MARKS, expect

pytestmark = MARKS

NAME = "<img src=x onerror=alert(1)>"


def test_two_people_play_by_links_and_a_third_looks_on(house: House) -> None:
    host = house.page("table", viewport={"width": 360, "height": 740})
    expect(host.get_by_label("Rules", exact=True)).to_be_visible()
    # A browser would scroll to it, past the header; how far depends on the height of the page.
    assert host.evaluate("document.querySelector(':target')") is None, (
        "no part of the page is what the address names"
    )
    host.get_by_label("Rules", exact=True).select_option("brandubh")
    host.get_by_label("Clock", exact=True).select_option("600+5")
    host.get_by_label("Your name").fill("Anna")
    host.get_by_role("button", name="Create a table").click()
    status(host, "Your move: attackers")
    links = {
        what: host.get_by_label(f"Link: {what}").input_value().partition("#")[2]
        for what in ("Defenders’ seat", "Spectators")
    }
    guest = house.page("table")
    guest.evaluate("link => { location.hash = link; }", links["Defenders’ seat"])
    status(guest, "Attackers to move")
    guest.get_by_label("Your name").fill(NAME[:24])
    guest.get_by_label("Your name").press("Enter")
    spectator = house.page(links["Spectators"])
    status(spectator, "Attackers to move")

    def moves(page: object, move: str) -> None:
        for name in halves(move):
            square(page, name).click()  # type: ignore[arg-type]

    moves(host, "a4a2")
    status(guest, "Your move: defenders")
    moves(guest, "d3d7")
    expect(guest.locator("#note")).to_have_text("Illegal move: d3d7: blocked at d4.")
    moves(guest, "d3a3")
    status(host, "Your move: attackers")
    for page in (host, guest, spectator):
        assert square(page, "a2").get_attribute("aria-label") == "a2, empty"
        assert square(page, "a3").get_attribute("aria-label").startswith("a3, defender")
        people = page.locator(".people")
        expect(people).to_contain_text("Anna")
        # A name is text and nothing else.
        expect(people).to_contain_text(NAME[:24])
        expect(people).to_contain_text("1 spectator")
        expect(people.locator(".clock").first).to_have_text(re.compile(r"^(10:0|9:5)\d$"))
    moves(spectator, "d1c1")
    expect(spectator.locator("#note")).to_have_text("You are a spectator.")
    assert host.locator("body").evaluate("body => body.scrollWidth <= innerWidth")

    # The connection of one falls; he sits down again by himself.
    guest.reload()
    status(guest, "Attackers to move")
    # Once is a slip.
    guest.get_by_role("button", name="Resign", exact=True).click()
    expect(guest.get_by_role("button", name="Really resign?")).to_be_visible()
    guest.get_by_role("button", name="Offer a draw").click()
    expect(host.locator("#note")).to_contain_text("offers a draw")
    host.get_by_role("button", name="Accept the draw").click()
    for page in (host, guest, spectator):
        status(page, "Draw: agreed draw")
    # Another one, with the sides swapped: the links stand for the other seats now.
    guest.get_by_role("button", name="Rematch").click()
    expect(host.locator("#note")).to_have_text("Your opponent asks for a rematch.")
    host.get_by_role("button", name="Accept the rematch").click()
    status(guest, "Your move: attackers")
    status(host, "Attackers to move")
    expect(host.locator("#note")).to_have_text("A new game begins: you now play the defenders.")
    assert host.get_by_label("Link: Attackers’ seat").input_value().endswith(links["Defenders’ seat"])
    moves(guest, "a4a2")
    status(host, "Your move: defenders")
    moves(host, "d3a3")
    status(guest, "Your move: attackers")
    guest.get_by_role("button", name="Offer a draw").click()
    host.get_by_role("button", name="Accept the draw").click()
    status(host, "Draw: agreed draw")
    # The game can be looked at again.
    host.get_by_role("button", name="Analyse the game").first.click()
    expect(host.locator("#moves button")).to_have_text(["a4–a2", "d3–a3×a2"])
    status(host, "Draw: agreed draw")
    expect(host.locator("#verdicts")).to_contain_text("Accuracy")
    guest.get_by_role("link", name="Play").click()
    status(guest, "Your move")


def test_a_match_is_begun_watched_and_replayed(house: House) -> None:
    page = house.page("watch", viewport={"width": 1280, "height": 800})
    page.get_by_label("Rules", exact=True).select_option("brandubh")
    page.get_by_label("First player").select_option("level:1")
    page.get_by_label("Second player").select_option("player:random-blind")
    page.get_by_label("Pairs").select_option("1")
    page.get_by_label("Positions per move").select_option("500")
    page.get_by_role("button", name="Start the match").click()
    # Both games may be over before the page has heard of a move.
    status(page, r"Game \d+\.\d, (level-1 against random-blind|random-blind against level-1)(, move \d+|: )")
    expect(page.locator(".minis svg use").first).to_be_visible()
    expect(page.locator("#title")).to_have_text("level-1 against random-blind")
    expect(page.locator(".mode")).to_contain_text("Complete, 2 games finished.")
    page.locator("summary", has_text="Cross table").click()
    expect(page.locator(".scroll table").last).to_contain_text("2 ")
    page.locator(".list button").last.click()
    status(page, r"win: |Draw: ")
    expect(page.locator("#note")).to_contain_text("Game 1.1: ")
    # A whole game of the page: back to its start, and on.
    assert page.locator("#moves button").count() > 3
    page.locator("#first").click()
    status(page, "Your move starts a variation")
    page.get_by_role("link", name="Watch").click()
    expect(page.locator(".list")).to_contain_text("level-1 against random-blind")
