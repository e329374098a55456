"""Reports as HTML: whatever text enters stays text, a browser may run nothing but our script, games replay right."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

from hnefi.engine import games, svg
from hnefi.engine.games.base_position import Position
from hnefi.engine.games.base_variant import AnyVariant
from hnefi.engine.records.record import GameRecord, Ply, sorted_squares
from hnefi.engine.squares import parse
from hnefi.tools.common import html_games, html_page
from hnefi.tools.common.html_games import Games
from hnefi.tools.common.html_page import Bar, Markup, Page, Tinted, element, from_markdown, intervals, table

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "<!--",
    "&lt;b&gt;",
    "\u202eevil\x00\x1b[2J\ud800",
)
VOID = {"meta", "input"}


class Reader(HTMLParser):
    """A page as a browser's parser sees it: elements with attributes, texts, scripts and styles; all must be closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in self.raw:
            self.raw[self._open[-1]].append(data)
        else:
            self.texts.append(data)


def expect_harmless(data: bytes) -> Reader:
    """Nothing in the page runs, loads or leaves it, but for the one style sheet and the one script."""
    text = data.decode("utf-8")
    page = Reader(text)
    for tag, attributes in page.elements:
        assert tag not in (
            "img",
            "iframe",
            "object",
            "embed",
            "link",
            "base",
            "form",
            "a",
            "foreignobject",
        ), tag
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name not in ("src", "style", "action", "srcdoc"), (tag, name)
            assert name != "href" or value.startswith("#"), value
    scripts = [attributes for tag, attributes in page.elements if tag == "script"]
    assert [one for one in scripts if one.get("type") != "application/json"] in ([], [{}])
    policies = [a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    allowed = dict(part.split(" ", 1) for part in policies[0].split("; "))
    assert allowed["default-src"] == allowed["base-uri"] == allowed["form-action"] == "'none'"
    assert allowed["style-src"] == hash_of(page.raw["style"][0])
    ours = page.raw["script"][-1] if {} in scripts else ""
    assert allowed["script-src"] == (hash_of(ours) if ours else "'none'")
    addresses = set(re.findall(r"https?:[^\"'\s<)]*", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    assert "@import" not in text
    assert "url(" not in text
    return page


def hash_of(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def played(name: str, plies: int, seed: int = 3) -> list[Position]:
    """The positions of a random game."""
    draw = random.Random(seed)
    found = [games.initial(games.find(name))]
    while len(found) <= plies and found[-1].outcome is None and found[-1].legal_moves():
        found.append(found[-1].play(draw.choice(found[-1].legal_moves())))
    return found


def recorded(positions: list[Position], players: tuple[str, str] = ("a", "d")) -> GameRecord:
    last = positions[-1]
    plies = tuple(
        Ply(move, sorted_squares(after.last_captures), cp=number if number % 2 else None)
        for number, (move, after) in enumerate(zip(last.moves, positions[1:], strict=True))
    )
    return GameRecord(positions[0].variant.name, None, plies, last.outcome, players)


def data_of(data: bytes) -> dict[str, object]:
    (text, _script) = Reader(data.decode()).raw["script"]
    found: dict[str, object] = json.loads(text)
    return found


def replayed(document: dict[str, object], number: int) -> Iterator[dict[int, str]]:
    """The men by square after each ply, from the page's data alone: what its script does."""
    game = document["games"][number]  # type: ignore[index]
    squares = [parse(word, 19) for word in document["boards"][game["board"]]["squares"]]  # type: ignore[index]
    here = list(document["starts"][game["start"]])  # type: ignore[index]
    yield {sq: letter for sq, letter in zip(squares, here, strict=True) if letter != "."}
    for ply in game["plies"].split():
        _, changes, _ = ply.split(",")
        for at in range(0, len(changes), 3):
            here[int(changes[at : at + 2], 36)] = changes[at + 2]
        yield {sq: letter for sq, letter in zip(squares, here, strict=True) if letter != "."}


@pytest.mark.parametrize(
    "name",
    ["brandubh", "copenhagen", "berserk", "tablut-linnaeus", "alea-evangelii", "hex-swap:5", "hexapawn:5x4"],
)
def test_games_replay_as_they_were_played(name: str) -> None:
    whole = played(name, 40)
    shown, page = Games(), Page("x")
    shown.add("1.1", recorded(whole), whole[0].variant)
    shown.into(page)
    data = page.render()
    expect_harmless(data)
    assert list(replayed(data_of(data), 0)) == [dict(position.pieces()) for position in whole]
    assert len(whole) > 3


def test_a_game_that_the_rules_refuse_ends_there_and_says_so() -> None:
    whole = played("brandubh", 8)
    record = recorded(whole)
    broken = GameRecord("brandubh", None, (*record.plies[:4], record.plies[0]))
    shown, page = Games(), Page("x")
    shown.add("1.1", broken, whole[0].variant)
    shown.into(page)
    document = data_of(page.render())
    assert list(replayed(document, 0)) == [dict(position.pieces()) for position in whole[:5]]
    assert "cannot be replayed" in document["games"][0]["end"]  # type: ignore[index]


def test_what_many_games_share_is_written_once_and_more_than_enough_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(html_games, "MOST", 3)
    shown, page = Games(), Page("x")
    whole = played("brandubh", 3)
    for number in range(5):
        shown.add(f"{number}", recorded(whole), whole[0].variant)
    shown.into(page)
    data = page.render()
    document = data_of(data)
    assert [len(document[key]) for key in ("games", "boards", "starts", "names")] == [3, 1, 1, 2]  # type: ignore[arg-type]
    assert "3 of 5 games are in this file." in data.decode()


@pytest.mark.parametrize("name", HOSTILE)
def test_names_stay_text(name: str) -> None:
    page = Page(name, [name])
    page.section(name, table((name, "n"), [(name, Tinted(name, 0.5))]), element("p", name, title=name))
    page.section("bars", intervals([Bar(name, 1.0, 0.5, 2.0, name)], name))
    shown = Games()
    whole = played("brandubh", 3)
    shown.add(name, recorded(whole, (name, name)), whole[0].variant)
    shown.into(page)
    found = expect_harmless(page.render())
    plain = re.sub("[\u202e\x00\x1b\ud800]", "?", name)
    assert found.texts.count(plain) >= 6
    assert data_of(page.render())["names"] == [plain]


def test_a_page_without_games_has_no_script_and_forbids_all() -> None:
    page = Page("x")
    page.section("words", element("p", "text"))
    data = page.render()
    expect_harmless(data)
    assert b"<script" not in data
    assert b"script-src 'none'" in data
    assert data == page.render()


@pytest.mark.process
def test_the_script_writes_text_only_and_can_be_read() -> None:
    script = Path(html_page.__file__).with_name("html_page.js")
    text = script.read_text("utf-8")
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "Function(",
        "fetch",
        "import",
    ):
        assert word not in text
    assert "</" not in text
    assert not re.search(r"setAttribute\(\s*[\"'](on|style|src)", text)
    node = shutil.which("node")
    if node:
        assert subprocess.run([node, "--check", script], check=False, timeout=60).returncode == 0


def test_shares_of_an_interval() -> None:
    drawn = intervals([Bar("one", 50.0, 0.0, 100.0, "50"), Bar("two", 0.0, None, None, "0")], "Elo")
    circles = [float(x) for x in re.findall(r'<circle cx="([0-9.]+)%"', drawn)]
    pad = 6 / 112 * 100
    assert circles == [pytest.approx(50, abs=0.01), pytest.approx(pad, abs=0.01)]
    reaches = re.findall(r'<line x1="([0-9.]+)%" x2="([0-9.]+)%" y1="50%"', drawn)
    assert [float(x) for x in reaches[0]] == [
        pytest.approx(pad, abs=0.01),
        pytest.approx(100 - pad, abs=0.01),
    ]
    assert len(reaches) == 1
    assert "<circle" in intervals([Bar("alone", 7.0, 7.0, 7.0, "7")], "Elo")


def test_our_reports_as_sections() -> None:
    lines = """\
before

## Numbers

| a | b |
|---|---|
| **x** | 1 |
| <y> | 2 |

- `one`
- two

![known](k.svg)
![unknown](u.svg)

```console
$ a | b

c
```

two lines
of one
""".splitlines()
    sections = list(from_markdown(lines, {"known": Markup("<hr>")}))
    assert sections == [
        ("", ["<p>before</p>"]),
        (
            "Numbers",
            [
                table(("a", "b"), [(Markup("<strong>x</strong>"), "1"), ("<y>", "2")]),
                "<ul><li><code>one</code></li><li>two</li></ul>",
                "<hr>",
                "<pre>$ a | b\n\nc</pre>",
                "<p>two lines of one</p>",
            ],
        ),
    ]


@pytest.mark.parametrize("name", ["brandubh", "hex:4", "hexapawn:3x3"])
def test_cells_stand_apart(name: str) -> None:
    variant: AnyVariant = games.find(name)
    shown, page = Games(), Page("x")
    whole = played(name, 2)
    shown.add("1", recorded(whole), variant)
    shown.into(page)
    board = data_of(page.render())["boards"][0]  # type: ignore[index]
    cells = [tuple(cell) for cell in board["cells"]]
    assert len(set(cells)) == variant.files * variant.ranks == len(board["squares"])
    assert max(x for x, _ in cells) + svg.CELL + svg.MARGIN <= board["width"] + 1
    assert board["squares"][0] == "a1"
    assert max(cells, key=lambda cell: cell[1])[1] == cells[0][1], "rank 1 is at the bottom"
