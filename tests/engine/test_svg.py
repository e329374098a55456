"""The board as a drawing: sound XML, everything in its place, kinds told apart without colour."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from hnefi.engine.games.tafl import variant
from hnefi.engine.games.tafl.rules import Rules
from hnefi.engine.games.tafl.switches import PIECES
from hnefi.engine.games.tafl.variant import find
from hnefi.engine.squares import parse
from hnefi.engine.svg import svg

SVG = "{http://www.w3.org/2000/svg}"


def places(root: ET.Element, inside: str) -> dict[tuple[int, int], str]:
    """Where groups that contain this element stand, each with the words of its title."""
    found = {}
    for group in root.iter(f"{SVG}g"):
        at = re.fullmatch(r"translate\((\d+) (\d+)\)", group.get("transform", ""))
        if at and group.find(f"{SVG}{inside}") is not None:
            found[int(at[1]), int(at[2])] = group.findtext(f"{SVG}title", "")
    return found


@pytest.mark.parametrize("name", variant.names())
def test_every_board_can_be_drawn(name: str) -> None:
    found = find(name)
    text = svg(found.rules, dict(found.start.pieces), title=name)
    root = ET.fromstring(text)
    assert text == svg(found.rules, dict(reversed(found.start.pieces)), title=name), (
        "the order does not matter"
    )
    assert root.findtext(f"{SVG}title") == name
    pieces = places(root, "title")
    assert len(pieces) == found.attackers + found.defenders + 1
    assert list(pieces.values()).count("king") == 1
    special = found.rules.throne + found.rules.corners + found.rules.attacker_camps
    assert len(places(root, "rect")) == len(special)
    labels = [label.text for label in root.iter(f"{SVG}text")]
    assert sorted(labels) == sorted(
        [*"abcdefghijklmnopqrs"[: found.size], *map(str, range(1, found.size + 1))] * 2
    )
    assert "href" not in text
    assert "url(" not in text
    assert max(map(len, text.splitlines())) < 6000


def test_everything_stands_where_it_should() -> None:
    rules = Rules.from_mapping({"throne": "b1", "corners": "none"}, 3)
    root = ET.fromstring(svg(rules, {parse("a1", 3): "t", parse("c3", 3): "K", parse("c2", 3): "N"}))
    whole = int(root.get("width", "0"))
    near = (whole - 3 * 40) // 2
    assert places(root, "title") == {
        (near, near + 80): "attacking soldier",
        (near + 80, near): "king",
        (near + 80, near + 40): "defending knight",
    }
    assert set(places(root, "rect")) == {(near + 40, near + 80)}
    ranks = {
        label.text: int(label.get("y", "0"))
        for label in root.iter(f"{SVG}text")
        if (label.text or "").isdigit()
    }
    assert ranks["3"] < ranks["2"] < ranks["1"]


def test_pieces_and_squares_differ_in_shape() -> None:
    rules = Rules.from_mapping({"throne": "none", "corners": "none"}, 11)
    drawings = set()
    for letter in PIECES:
        text = svg(rules, {parse("a1", 11): letter})
        drawing = re.sub(r'<title>.*?</title>| (fill|stroke)="#\w+"', "", text)
        assert drawing not in drawings, letter
        drawings.add(drawing)
    for name in ("throne", "corners", "attacker_camps", "defender_camps"):
        text = svg(rules.replace(**{name: "c3"}), {})
        drawing = re.sub(r' (fill|stroke)="#\w+"', "", text)
        assert drawing not in drawings, name
        drawings.add(drawing)


@pytest.mark.parametrize("size", range(3, 20))
def test_any_size(size: int) -> None:
    root = ET.fromstring(svg(Rules.from_mapping({}, size), {}))
    assert root.get("width") == root.get("height")
    assert len(list(root.iter(f"{SVG}text"))) == 4 * size


@pytest.mark.parametrize("title", ["<b> & \"c\" 'd' ]]>", "\x00\x1b[2J\ud800\ufffe", "Þór 𝄞", "a\nb"])
def test_any_title(title: str) -> None:
    text = svg(Rules.from_mapping({}, 3), {}, title=title)
    read = ET.fromstring(text.encode()).findtext(f"{SVG}title")
    assert read == re.sub("[\x00\x1b\ud800\ufffe]", "\ufffd", title)
