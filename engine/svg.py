"""The board as a drawing: one self-contained SVG, readable in colour and in grey.

Sides differ by shape and brightness (attackers dark discs, defenders light shields), kinds by a sign on the piece;
special squares are drawn with lines, so that none depends on its colour alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from .games.tafl.rules import Rules
from .games.tafl.switches import DEFENDER_PIECES
from .squares import FILES, file_of, rank_of

CELL: Final = 40
MARGIN: Final = 26

LINE: Final = "#7d6b52"
BOARD: Final = "#f3e8d2"
DARK: Final = "#2d2a2e"
LIGHT: Final = "#fdfcf8"
_GOLD: Final = "#e6b422"

# Special squares: the colour of the ground and the lines on it, in a cell from 0 to 40.
_TERRAINS: Final = (
    ("throne", "#dcc18c", "M0 0L40 40M40 0L0 40M8 8H32V32H8Z"),
    ("corners", "#c9b391", "M0 0L40 40M40 0L0 40"),
    ("attacker_camps", "#dfd0b8", "M0 20L20 0M0 40L40 0M20 40L40 20"),
    ("defender_camps", "#eaf0dd", "M0 10H40M0 20H40M0 30H40"),
)
_SHIELD: Final = "M8 7H32V21Q32 31 20 35Q8 31 8 21Z"
_CROWN: Final = "M11 27V14L15.5 19L20 11L24.5 19L29 14V27Z"
# Signs of the special men, drawn in the colour that shows on their side.
_SIGNS: Final = {
    "c": "M20 9.5L22.7 16.3L30 16.8L24.4 21.4L26.2 28.5L20 24.6L13.8 28.5L15.6 21.4L10 16.8L17.3 16.3Z",
    "n": "M20 10L29 27H11Z",
    "m": "M13 20L20 11L27 20L20 29Z",
    "g": "M13 13H27V27H13ZM17 17V23H23V17Z",
}
_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PIECE_WORDS: Final = {"t": "soldier", "c": "commander", "n": "knight", "m": "mercenary", "g": "guard"}


def svg(rules: Rules, pieces: Mapping[int, str], *, title: str = "") -> str:
    """The position of `pieces` (square to letter) on this board, rank 1 at the bottom, as the text of an SVG file.

    The same position gives the same text. `title` is what screen readers and mouse pointers say.
    """
    size = rules.size
    whole = CELL * size + 2 * MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole} {whole}" width="{whole}" height="{whole}">',
        *([f"<title>{_escape(title)}</title>"] if title else []),
        f'<rect width="{whole}" height="{whole}" fill="#ffffff"/>',
        *ground(rules),
        *(_at(sq, size, piece(pieces[sq])) for sq in sorted(pieces)),
        "</svg>",
        "",
    ]
    return "\n".join(lines)


def ground(rules: Rules, ink: str = DARK) -> list[str]:
    """The elements of a board without men; its coordinates are written in `ink`."""
    size = rules.size
    side = CELL * size
    return [
        f'<rect x="{MARGIN}" y="{MARGIN}" width="{side}" height="{side}" fill="{BOARD}"/>',
        *(
            _at(sq, size, _terrain(colour, strokes))
            for name, colour, strokes in _TERRAINS
            for sq in getattr(rules, name)
        ),
        _grid(size),
        _coordinates(size, ink),
    ]


def _at(sq: int, size: int, drawing: str) -> str:
    """The drawing of one cell, moved to its square."""
    x, y = MARGIN + CELL * file_of(sq), MARGIN + CELL * (size - 1 - rank_of(sq))
    return f'<g transform="translate({x} {y})">{drawing}</g>'


def _terrain(colour: str, strokes: str) -> str:
    """A special square in a cell from 0 to 40."""
    return (
        f'<rect width="{CELL}" height="{CELL}" fill="{colour}"/>'
        f'<path d="{strokes}" fill="none" stroke="{LINE}" stroke-width="1.2"/>'
    )


def _grid(size: int) -> str:
    low, high = MARGIN, MARGIN + CELL * size
    steps = range(low, high + 1, CELL)
    path = "".join(f"M{at} {low}V{high}M{low} {at}H{high}" for at in steps)
    return f'<path d="{path}" fill="none" stroke="{LINE}"/>'


def _coordinates(size: int, ink: str) -> str:
    """Files above and below, ranks left and right."""
    near, far = MARGIN // 2, MARGIN + CELL * size + MARGIN // 2
    texts = []
    for number in range(size):
        across = MARGIN + CELL * number + CELL // 2
        down = MARGIN + CELL * (size - 1 - number) + CELL // 2
        for at in (near, far):
            texts.append(f'<text x="{across}" y="{at + 5}">{FILES[number]}</text>')
            texts.append(f'<text x="{at}" y="{down + 5}">{number + 1}</text>')
    return (
        f'<g fill="{ink}" font-family="sans-serif" font-size="13" text-anchor="middle">{"".join(texts)}</g>'
    )


def piece(letter: str) -> str:
    """One piece in a cell from 0 to 40, with its name for screen readers."""
    if letter == "K":
        return (
            "<title>king</title>"
            f'<path d="{_SHIELD}" transform="translate(-3 -3.2) scale(1.15)" fill="{_GOLD}" stroke="{DARK}"'
            f' stroke-width="2"/><path d="{_CROWN}" fill="{DARK}"/>'
        )
    defending = letter in DEFENDER_PIECES
    kind = letter.lower()
    word = f"<title>{'defending' if defending else 'attacking'} {_PIECE_WORDS[kind]}</title>"
    if defending:
        body = f'<path d="{_SHIELD}" fill="{LIGHT}" stroke="{DARK}" stroke-width="2"/>'
    else:
        body = f'<circle cx="20" cy="20" r="15" fill="{DARK}"/>'
    sign = ""
    if kind in _SIGNS:
        colour = DARK if defending else LIGHT
        sign = f'<path d="{_SIGNS[kind]}" fill="{colour}" fill-rule="evenodd"/>'
    return word + body + sign


def _escape(text: str) -> str:
    """Text that may stand in XML, whatever it was."""
    return _NOT_XML.sub("\ufffd", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
