"""The board as a picture in plain text."""

from __future__ import annotations

from collections.abc import Mapping

from ...squares import FILES, square
from .rules import Rules

LEGEND = "+ throne   x corner   : attackers' camp   ; defenders' camp"


def diagram(rules: Rules, pieces: Mapping[int, str]) -> str:
    """Rows from the top rank down with coordinates on all four sides; each kind of empty special square has its
    character."""
    signs = {
        **dict.fromkeys(rules.throne, "+"),
        **dict.fromkeys(rules.corners, "x"),
        **dict.fromkeys(rules.attacker_camps, ":"),
        **dict.fromkeys(rules.defender_camps, ";"),
    }
    size = rules.size
    files = "   " + " ".join(FILES[:size])
    rows = [files]
    for rank in reversed(range(size)):
        cells = (square(file, rank) for file in range(size))
        line = " ".join(pieces.get(sq) or signs.get(sq, ".") for sq in cells)
        rows.append(f"{rank + 1:2d} {line} {rank + 1}")
    rows.append(files)
    return "\n".join(rows)
