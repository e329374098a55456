"""Games for an HTML report, with the data that its script needs to replay them without knowing the rules.

    games = Games()
    games.add("17.2", record, variant)
    games.into(page)

A move can do more than "origin, target, captures" (stones are placed and turned over, pieces change), so every ply
lists the cells that changed, according to our own rules.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from hnefi.engine import games, svg
from hnefi.engine.catalogue import GAMES
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.moves_text import format_move
from hnefi.engine.squares import file_of, name, rank_of, square
from hnefi.protocol.hosts.text_table import safe

from .html_page import Markup, element, paragraph

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position
    from hnefi.engine.games.base_variant import AnyVariant
    from hnefi.engine.records.record import GameRecord, Ply

    from .html_page import Page

MOST: Final = 5000
"""Maximum number of games on one page: about ten megabytes."""
DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_HEX_DOWN: Final = svg.CELL * math.sqrt(3) / 2
_WINNERS: Final = {"a": 0, "d": 1}


class Games:
    """The games of a page; data that many games share is written once."""

    def __init__(self) -> None:
        self._boards: list[dict[str, Any]] = []
        self._kinds: list[str] = []
        self._grounds: list[Markup] = []
        self._letters: dict[str, str] = {}
        """The letters of all men that occur, each with its game."""
        self._numbers: dict[str, dict[str, int]] = {"board": {}, "start": {}, "name": {}}
        self._games: list[dict[str, Any]] = []
        self.left_out = 0
        """Games missing from the page: those beyond `MOST`, and those that the caller leaves out."""

    def __len__(self) -> int:
        return len(self._games)

    def add(self, word: str, record: GameRecord, variant: AnyVariant) -> None:
        """Add a game called `word`. If our rules reject a move, the replay stops there and says so."""
        if len(self._games) >= MOST:
            self.left_out += 1
            return
        board = self._board(variant)
        end = _end(record, variant)
        position = games.initial(variant) if record.start is None else games.from_fen(variant, record.start)
        here = _pieces(position, variant)
        start = "".join(here)
        plies = []
        for ply in record.plies:
            try:
                position = position.play(ply.move)
            except ValueError:
                end += "; the rest cannot be replayed: the rules are different now"
                break
            after = _pieces(position, variant)
            plies.append(
                f"{format_move(ply.move, position.last_captures)},{_changes(here, after)},{_score(ply)}"
            )
            self._letters |= dict.fromkeys(after, variant.game)
            here = after
        self._letters |= dict.fromkeys(start, variant.game)
        self._games.append(
            {
                "id": word,
                "board": board,
                "a": self._number("name", safe(record.players[0])),
                "d": self._number("name", safe(record.players[1])),
                "winner": record.result or "",
                "end": end,
                "length": len(record.plies),
                "start": self._number("start", start),
                "plies": " ".join(plies),
            }
        )

    def into(self, page: Page) -> None:
        """Add the board, the list of games and their data to `page`; nothing if there are no games."""
        if not self._games:
            return
        played = set(self._kinds)
        sides = GAMES[played.pop()].sides if len(played) == 1 else ("side a", "side d")
        page.section("Games", self._drawings(), _viewer(sides), *self._missing())
        page.data(
            "games-data",
            {
                "boards": self._boards,
                "starts": list(self._numbers["start"]),
                "names": list(self._numbers["name"]),
                "games": self._games,
            },
        )

    def _missing(self) -> Iterator[Markup]:
        if self.left_out:
            whole = len(self) + self.left_out
            yield paragraph(f"{len(self):,} of {whole:,} games are in this file.", "quiet")

    def _number(self, kind: str, word: str) -> int:
        known = self._numbers[kind]
        return known.setdefault(word, len(known))

    def _board(self, variant: AnyVariant) -> int:
        number = self._number("board", variant.hash)
        if number == len(self._boards):
            cells = [_corner(variant, sq) for sq in _squares(variant)]
            width = max(x for x, _ in cells) + svg.CELL + svg.MARGIN
            height = max(y for _, y in cells) + svg.CELL + svg.MARGIN
            self._boards.append(
                {
                    "name": safe(variant.name),
                    "width": round(width),
                    "height": round(height),
                    "cells": [[round(x, 1), round(y, 1)] for x, y in cells],
                    "squares": [name(sq) for sq in _squares(variant)],
                }
            )
            self._kinds.append(variant.game)
            self._grounds.append(element("g", Markup(_ground(variant)), id=f"ground-{number}"))
        return number

    def _drawings(self) -> Markup:
        """One drawing of every board and every man, for the script to place."""
        men = [
            element("g", Markup(_man(letter, game)), id=f"man-{ord(letter)}")
            for letter, game in sorted(self._letters.items())
            if letter != "."
        ]
        return element("svg", element("defs", *self._grounds, *men), width=0, height=0, aria_hidden="true")


def _squares(variant: AnyVariant) -> list[int]:
    """All squares in the order of a page's cells: a1 b1 …"""
    return [square(file, rank) for rank in range(variant.ranks) for file in range(variant.files)]


def _pieces(position: Position, variant: AnyVariant) -> list[str]:
    there = dict(position.pieces())
    return [there.get(sq, ".") for sq in _squares(variant)]


def _changes(before: list[str], after: list[str]) -> str:
    return "".join(
        f"{DIGITS[cell // 36]}{DIGITS[cell % 36]}{letter}"
        for cell, letter in enumerate(after)
        if letter != before[cell]
    )


def _score(ply: Ply) -> str:
    """The mover's evaluation."""
    if ply.mate is not None:
        return f"#{ply.mate}"
    return "" if ply.cp is None else f"{ply.cp / 100:+.2f}"


def _end(record: GameRecord, variant: AnyVariant) -> str:
    """How the game ended, in words."""
    result = record.result
    if result is None:
        return "unfinished"
    said = "drawn" if result == "draw" else f"{GAMES[variant.game].sides[_WINNERS[result]]} won"
    return said if record.outcome is None else f"{said}: {record.outcome.reason.words}"


# Drawings


def _corner(variant: AnyVariant, sq: int) -> tuple[float, float]:
    """The top left corner of a square's cell; each row of hex is shifted by half a cell more."""
    down = variant.ranks - 1 - rank_of(sq)
    if variant.game == "hex":
        return svg.MARGIN + svg.CELL * (file_of(sq) + down / 2), svg.MARGIN + _HEX_DOWN * down
    return svg.MARGIN + svg.CELL * file_of(sq), svg.MARGIN + svg.CELL * down


def _ground(variant: AnyVariant) -> str:
    """The board without men."""
    if isinstance(variant, Variant):
        return "".join(svg.ground(variant.rules, "currentColor"))
    cell = _hexagon() if variant.game == "hex" else f"M0 0H{svg.CELL}V{svg.CELL}H0Z"
    drawn = []
    for sq in _squares(variant):
        x, y = _corner(variant, sq)
        drawn.append(
            f'<path d="{cell}" transform="translate({x:.1f} {y:.1f})" fill="{svg.BOARD}" stroke="{svg.LINE}"/>'
        )
        # The squares' names are inside them: these boards have no straight edge beside which to write ranks.
        drawn.append(
            f'<text x="{x + svg.CELL / 2:.1f}" y="{y + svg.CELL / 2 + 4:.1f}" font-size="11" text-anchor="middle"'
            f' fill="{svg.LINE}">{name(sq)}</text>'
        )
    return "".join(drawn)


def _hexagon() -> str:
    """A hexagon with a corner at the bottom, as wide as a cell."""
    middle, radius = svg.CELL / 2, svg.CELL / math.sqrt(3)
    corners = [
        (middle + radius * math.sin(math.pi * k / 3), middle - radius * math.cos(math.pi * k / 3))
        for k in range(6)
    ]
    return "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in corners) + "Z"


def _man(letter: str, game: str) -> str:
    """One man in a cell."""
    if game == "tafl":
        return svg.piece(letter)
    dark = letter == ("x" if game == "hex" else "p")
    fill = svg.DARK if dark else svg.LIGHT
    words = GAMES[game].sides[GAMES[game].letters.index(letter)]
    title = f"<title>{html.escape(words)}</title>"
    return f'{title}<circle cx="20" cy="20" r="14" fill="{fill}" stroke="{svg.DARK}" stroke-width="2"/>'


def _viewer(sides: tuple[str, str]) -> Markup:
    """An empty board with its buttons and an empty list of games, which the script fills."""
    keys = [
        element("button", text, type="button", id=word, aria_label=label)
        for word, text, label in (
            ("first", "|◀", "To the start"),
            ("back", "◀", "One ply back"),
            ("play", "Play", "Play or pause"),
            ("on", "▶", "One ply forward"),
            ("last", "▶|", "To the end"),
        )
    ]
    board = element(
        "div",
        element("svg", id="board", role="img", aria_label="Board"),
        element("p", id="said", aria_live="polite"),
        Markup('<input type="range" id="slider" min="0" max="0" value="0" aria-label="Ply">'),
        element("div", *keys, class_="keys"),
        paragraph(
            "Keys: ← → one ply, Home and End, n and p the next and the previous game. Scores are the mover’s.",
            "quiet",
        ),
    )
    beside = element(
        "div",
        element("p", id="caption"),
        element("p", id="ending", class_="quiet"),
        element("ol", id="moves"),
    )
    filters = [
        element("select", element("option", text, value=""), *more, id=word, aria_label=text)
        for word, text, more in (
            ("by-player", "All players", ()),
            ("by-board", "All variants", ()),
            (
                "by-winner",
                "All results",
                (
                    element("option", f"{sides[0]} won", value="a"),
                    element("option", f"{sides[1]} won", value="d"),
                    element("option", "drawn", value="draw"),
                ),
            ),
        )
    ]
    head = ("game", *sides, "variant", "result", "plies")
    rows = element(
        "table",
        element(
            "thead",
            element("tr", *(element("th", word, class_="text") for word in head)),
        ),
        element("tbody", id="rows"),
        id="games",
    )
    viewer = element(
        "div",
        element("div", board, beside, id="player"),
        element("div", *filters, id="filters"),
        element("p", id="count", class_="quiet", aria_live="polite"),
        element("div", rows, class_="wide", tabindex=0),
        element("button", "More games", type="button", id="more"),
        id="viewer",
    )
    hidden = Markup(viewer.replace('id="viewer"', 'id="viewer" hidden', 1))
    return Markup(
        hidden + element("noscript", paragraph("The games are replayed by a script, which is switched off."))
    )
